//! The laws of data and of fits, on images, with a model that learns nothing from them but their mean.

use gradus_base::{Error, Result};
use gradus_conformance::{data, fitting};
use gradus_core::capability::Capability;
use gradus_core::dataset::{Dataset as _, ImageSet};
use gradus_core::estimator::{Entry, Estimator as _, Fit, Fitted, Job, Model, Traits};
use gradus_core::iterate::{LoopOptions, direct};
use gradus_core::params::Params;
use gradus_file::{Reader, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mean of images.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct MeanImage {}

impl Params for MeanImage {}

struct Mean(Vec<f64>);

impl Model for Mean {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.tensor("mean", &[self.0.len()], &self.0);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        Ok(Self(file.vector("mean")?))
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("pixels", self.0.len().to_string())]
    }
}

impl Fit for MeanImage {
    const NAME: &'static str = "mean_image";
    const CLASS: &'static str = "MeanImage";
    const FAMILY: &'static str = "images";
    type Data = ImageSet;
    type Model = Mean;
    const TRAITS: Traits = Traits { capabilities: &[] as &[Capability], ..Traits::TRANSFORMER };

    fn fit_job(&self, data: &ImageSet, job: &Job<'_, ImageSet>) -> Result<Fitted<Self>> {
        if data.is_empty() {
            return Err(Error::data("mean_image: there are no images to learn from"));
        }
        let options = LoopOptions { model: Self::NAME, ..LoopOptions::default() };
        let (model, report) = direct(&options, job, || {
            let x = data.images().features()?;
            let mean = |at: usize| x.column(at).sum::<f64>() / x.n_rows() as f64;
            Ok((Mean((0..x.n_cols()).map(mean).collect()), 0.0, None))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

#[test]
fn images_keep_the_laws_of_data() {
    let model = Entry::<MeanImage>::new();
    for check in data::CHECKS.iter().chain(fitting::CHECKS) {
        (check.run)(&model).unwrap_or_else(|what| panic!("{}: {what}", check.name));
    }
}

#[test]
fn images_written_as_a_table_are_samples() {
    let model = Entry::<MeanImage>::new();
    let images = model.data().example(20, 3, &model.traits()).unwrap();
    let mut text = Vec::new();
    images.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("pixel_0_0,pixel_0_1,"), "{}", &text[..60]);
    assert_eq!(text.lines().count(), 21);
    assert!(text.lines().skip(1).all(|row| row.ends_with("upper") || row.ends_with("lower")));
}
