//! Images, for models that take them as images; models of features take their pixels as samples.

use super::{DataKind, Dataset, Purpose, Remarks, TableFile};
use crate::estimator::Traits;
use crate::params::Params;
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_base::text::grouped;
use gradus_data::{Id, Ids, ImageShape, Images, Pixels, Sketch, numbered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;

/// How images are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ImagesFile {
    /// File of the labels: IDX, a NumPy array, or a label a line; `coarse` for the coarse labels of CIFAR-100. By default
    /// sub-folders are labels, the labels in files of CIFAR (the fine ones of CIFAR-100), or the IDX file of labels beside the
    /// IDX file of images.
    pub labels: Option<String>,
}

impl Params for ImagesFile {}

/// Images as a data set: with the numbers of their classes at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSet {
    images: Images,
    classes: Option<(Vec<u32>, Ids)>,
}

impl From<Images> for ImageSet {
    fn from(images: Images) -> Self {
        let classes = images.labels().map(|labels| {
            numbered(&labels.iter().map(|label| Id::parse(label)).collect::<Vec<_>>())
        });
        Self { images, classes }
    }
}

impl ImageSet {
    /// The images.
    pub fn images(&self) -> &Images {
        &self.images
    }
}

impl Dataset for ImageSet {
    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn len(&self) -> usize {
        self.images.len()
    }

    fn describe(&self) -> String {
        let classes = self
            .classes
            .as_ref()
            .map_or(String::new(), |(_, labels)| format!(", {} classes", grouped(labels.len())));
        format!("{} images of {}{classes}", grouped(self.len()), self.images.shape())
    }

    fn summary(&self) -> Map<String, Value> {
        let ImageShape { height, width, channels } = self.images.shape();
        let facts = json!({
            "images": self.len(),
            "height": height,
            "width": width,
            "channels": channels,
            "classes": self.classes.as_ref().map(|(_, labels)| labels.len()),
        });
        facts.as_object().cloned().unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let number = if matches!(self.images.pixels(), Pixels::Bytes(_)) { 1 } else { 4 };
        self.len() * (self.images.shape().len() * number + 4)
    }

    fn sketch(&self) -> Sketch {
        let (size, labels) = (self.images.shape().len(), self.images.labels());
        Sketch::of_text((0..self.len()).map(|at| {
            let range = at * size..(at + 1) * size;
            let mut bytes: Vec<u8> = match self.images.pixels() {
                Pixels::Bytes(all) => all[range].to_vec(),
                Pixels::Floats(all) => all[range].iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            if let Some(labels) = labels {
                bytes.extend_from_slice(labels[at].as_bytes());
            }
            bytes
        }))
    }

    fn classes(&self) -> Option<(&[u32], &Ids)> {
        self.classes.as_ref().map(|(codes, labels)| (codes.as_slice(), labels))
    }

    fn select(&self, units: &[u32]) -> Box<dyn Dataset> {
        Box::new(Self::from(self.images.select(units)))
    }

    /// A column for each pixel, from 0 to 1, then the label if there is one: a table that models of features read.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let labelled = self.images.labels().map(|_| true);
        self.images.to_samples(labelled).map_err(io::Error::other)?.write(out)
    }
}

impl DataKind for ImageSet {
    const NAME: &'static str = "images";

    type Options = ImagesFile;

    fn read(
        path: &Path,
        options: &Self::Options,
        _purpose: &Purpose<'_>,
        remarks: &mut Remarks<'_>,
    ) -> Result<Self> {
        let file = TableFile { labels: options.labels.clone(), ..TableFile::default() };
        Ok(file.images(path, remarks)?.into())
    }

    /// Images of 8 × 8 with a bright upper or lower half.
    fn example(n: usize, seed: u64, _traits: &Traits) -> Result<Self> {
        let shape = ImageShape { height: 8, width: 8, channels: 1 };
        let mut stream = Stream::new(seed, "images.example", 0);
        let (mut pixels, mut labels) = (Vec::with_capacity(n * shape.len()), Vec::with_capacity(n));
        for _ in 0..n {
            let upper = stream.chance(0.5);
            labels.push(if upper { "upper" } else { "lower" }.to_owned());
            pixels.extend((0..shape.len()).map(|at| {
                let bright = (at < shape.len() / 2) == upper;
                (if bright { 128 } else { 0 }) + stream.below(128) as u8
            }));
        }
        Ok(Images::new(n, shape, Pixels::Bytes(pixels))?.with_labels(labels)?.into())
    }
}
