//! Draws data from a model, with the options of models of images, and writes it as a picture, an array or a table.

use crate::App;
use gradus_base::{Error, Result};
use gradus_core::dataset::{Dataset, ImageSet, Remarks, TableFile};
use gradus_core::density::{Draw, Prefix};
use gradus_core::estimator::AnyFitted;
use gradus_data::{ImageShape, Images, Inputs, NpyArray, Samples};
use gradus_file::output::FileKind;
use gradus_report::{Chart, Page, Scatter};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is drawn, and how. What is left out is up to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SampleRequest {
    /// The number of units; left out 64, or as many as there are to complete.
    pub number: Option<usize>,
    /// The seed.
    pub seed: u64,
    /// The class to draw from.
    pub class: Option<String>,
    /// The strength of the guidance towards the class.
    pub guidance: Option<f64>,
    /// The number of steps from noise to data.
    pub steps: Option<usize>,
    /// The divisor of logits, or the factor of the deviation of noise.
    pub temperature: Option<f64>,
    /// Where to compute: `cpu` or `gpu`.
    pub device: Option<String>,
    /// A file of units to complete: images, or rows of a table.
    pub complete: Option<PathBuf>,
    /// The share of each that is kept: the upper rows of an image, the first features of a table.
    pub keep: f64,
}

impl Default for SampleRequest {
    fn default() -> Self {
        Self {
            number: None,
            seed: 0,
            class: None,
            guidance: None,
            steps: None,
            temperature: None,
            device: None,
            complete: None,
            keep: 0.5,
        }
    }
}

/// Units that are drawn where their number is left out.
pub const NUMBER: usize = 64;

impl App {
    /// Draws units of the kind of data that the model learned from.
    ///
    /// # Errors
    /// If the model cannot generate, an option is not for it, or the file of what is to be completed cannot be read.
    pub fn sample(
        &self,
        fitted: &AnyFitted,
        request: &SampleRequest,
        remarks: &mut Remarks<'_>,
    ) -> Result<Box<dyn Dataset>> {
        let model = fitted.generator()?;
        let begun: Option<Box<dyn Dataset>> = match &request.complete {
            None => None,
            Some(path) => {
                // Nothing drawn has the inputs that the model takes.
                let like = model.generate(0, 0)?;
                let Some(samples) = like.downcast_ref::<Samples>() else {
                    let kind = like.kind();
                    return Err(Error::data(format!(
                        "option `complete` is for models of images and of tables, and `{}` draws {kind}",
                        fitted.kind
                    )));
                };
                let inputs = (samples.inputs(), &[][..]);
                let found = TableFile::default().samples_for(path, inputs, false, remarks)?;
                Some(Box::new(found))
            }
        };
        let complete = begun.as_deref().map(|data| Prefix { data, keep: request.keep });
        let most = |found: &dyn Dataset| found.len().min(NUMBER);
        let n = request.number.unwrap_or_else(|| begun.as_deref().map_or(NUMBER, most));
        let draw = Draw {
            n,
            seed: request.seed,
            class: request.class.as_deref(),
            guidance: request.guidance,
            steps: request.steps,
            temperature: request.temperature,
            device: request.device.as_deref(),
            complete,
        };
        model.draw(&draw)
    }
}

/// What a file of samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleForm {
    /// A PNG picture: images side by side, or the points of a table of two columns.
    Picture,
    /// A NumPy array: images × height × width (× channels), or rows × columns.
    Array,
    /// An SVG drawing of the points of a table of two columns.
    Drawing,
    /// The same as a page.
    Page,
    /// A table with a row for each unit.
    Table,
}

impl SampleForm {
    /// The form of a file of this name: by its extension, a table where that is another one.
    pub fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|name| name.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "png" => Self::Picture,
            "npy" => Self::Array,
            "svg" => Self::Drawing,
            "html" | "htm" => Self::Page,
            _ => Self::Table,
        }
    }

    /// The kind of that file.
    pub fn kind(self, path: &Path) -> FileKind {
        match self {
            Self::Picture => FileKind::Picture,
            Self::Array => FileKind::Binary,
            Self::Drawing => FileKind::Drawing,
            Self::Page => FileKind::Page,
            Self::Table => FileKind::of_text_named(path),
        }
    }

    /// The bytes of such a file, with `title` on what is drawn; a table is written row by row by [`Dataset::write`].
    ///
    /// # Errors
    /// If data of this kind has no such form; the message says which it has.
    pub fn bytes(self, data: &dyn Dataset, title: &str) -> Result<Vec<u8>> {
        let io = |error: io::Error| Error::data(format!("the samples cannot be written: {error}"));
        let mut bytes = Vec::new();
        match self {
            Self::Table => data.write(&mut bytes).map_err(io)?,
            Self::Array => {
                array(data)?.to_writer(&mut bytes).map_err(io)?;
            }
            Self::Picture => match images(data)? {
                Some(images) => bytes = images.to_png()?,
                None => bytes = dots(&points(data)?)?,
            },
            Self::Drawing => bytes.extend(scatter(data, title)?.to_svg().bytes()),
            Self::Page => {
                let chart = scatter(data, title)?;
                let page = Page::new(title).subtitle(data.describe());
                let page = page.section("", |section| section.chart(chart));
                bytes.extend(page.to_html().bytes());
            }
        }
        Ok(bytes)
    }

    /// Writes data in this form.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); what the system refuses is an error within it.
    pub fn write(
        self,
        data: &dyn Dataset,
        title: &str,
        out: &mut dyn Write,
    ) -> Result<io::Result<()>> {
        Ok(match self {
            Self::Table => data.write(out),
            _ => out.write_all(&self.bytes(data, title)?),
        })
    }
}

/// The images that data is, if it is images.
fn images(data: &dyn Dataset) -> Result<Option<Images>> {
    if let Some(found) = data.downcast_ref::<ImageSet>() {
        return Ok(Some(found.images().clone()));
    }
    let Some(samples) = data.downcast_ref::<Samples>() else { return Ok(None) };
    let Inputs::Images(shape) = samples.inputs() else { return Ok(None) };
    let dense = samples.features().to_dense();
    Images::of_features(*shape, dense.values()).map(Some)
}

fn array(data: &dyn Dataset) -> Result<NpyArray<f32>> {
    if let Some(images) = images(data)? {
        let ImageShape { height, width, channels } = images.shape();
        let mut shape = vec![images.len(), height, width];
        if channels > 1 {
            shape.push(channels);
        }
        let values = images.features()?.values().iter().map(|x| *x as f32).collect();
        return NpyArray::new(shape, values);
    }
    let samples: &Samples = data.of_kind()?;
    let dense = samples.features().to_dense();
    let values = dense.values().iter().map(|x| *x as f32).collect();
    NpyArray::new(vec![dense.n_rows(), dense.n_cols()], values)
}

/// The points that a table of two columns has.
fn points(data: &dyn Dataset) -> Result<Vec<(f64, f64)>> {
    if images(data)?.is_some() {
        return Err(Error::data("images are drawn in a .png picture, not in a drawing of points"));
    }
    let samples: &Samples = data.of_kind()?;
    let dense = samples.features().to_dense();
    if dense.n_cols() != 2 {
        return Err(Error::data(format!(
            "points are drawn of tables of two columns, and these samples have {}: name a .csv or .npy file",
            dense.n_cols()
        )));
    }
    Ok(dense.rows().map(|row| (row[0], row[1])).collect())
}

fn scatter(data: &dyn Dataset, title: &str) -> Result<Scatter> {
    let found = points(data)?;
    let names = data.of_kind::<Samples>()?.inputs().feature_names();
    Ok(Scatter::new(found).title(title).x_label(&names[0]).y_label(&names[1]))
}

/// Pixels along a side of a picture of points, and of its margin.
const SIDE: (usize, usize) = (512, 16);

/// A picture of points: dark on white, darker where several lie, with one scale for both axes.
fn dots(points: &[(f64, f64)]) -> Result<Vec<u8>> {
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(of).filter(|x| x.is_finite());
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
    };
    let ((left, right), (bottom, top)) = (bounds(|p| p.0), bounds(|p| p.1));
    let (side, margin) = SIDE;
    let range = (right - left).max(top - bottom);
    let by =
        if range > 0.0 && range.is_finite() { (side - 2 * margin) as f64 / range } else { 0.0 };
    let mut pixels = vec![1.0f64; side * side];
    for &(x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
        let place = |x: f64| (side as f64 / 2.0 + x * by) as usize;
        let (column, row) = (place(x - 0.5 * (left + right)), place(0.5 * (bottom + top) - y));
        for (dy, dx) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let at = (row + dy).min(side - 1) * side + (column + dx).min(side - 1);
            pixels[at] *= 0.55;
        }
    }
    let shape = ImageShape { height: side, width: side, channels: 1 };
    Images::of_features(shape, &pixels)?.to_png()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_data::Dense;

    fn table(columns: usize) -> Samples {
        Samples::unlabelled(Dense::from_fn(5, columns, |row, at| (row * columns + at) as f64))
            .unwrap()
    }

    #[test]
    fn names_say_the_form() {
        for (name, form) in [
            ("a.png", SampleForm::Picture),
            ("a.PNG", SampleForm::Picture),
            ("a.npy", SampleForm::Array),
            ("a.svg", SampleForm::Drawing),
            ("a.html", SampleForm::Page),
            ("a.csv.gz", SampleForm::Table),
            ("a", SampleForm::Table),
        ] {
            assert_eq!(SampleForm::of(Path::new(name)), form, "{name}");
        }
    }

    #[test]
    fn tables_of_two_columns_are_drawn_and_others_refused() {
        for form in [SampleForm::Picture, SampleForm::Drawing, SampleForm::Page] {
            assert!(form.bytes(&table(2), "drawn").unwrap().len() > 100);
            let said = form.bytes(&table(3), "drawn").unwrap_err().to_string();
            assert!(said.contains('3') && said.contains(".csv"), "{said}");
        }
        let bytes = SampleForm::Array.bytes(&table(3), "").unwrap();
        let array = NpyArray::<f32>::from_bytes(&bytes).unwrap();
        assert_eq!((array.shape(), array.values()[4]), (&[5, 3][..], 4.0));
    }

    #[test]
    fn images_are_pictures_and_arrays_of_images() {
        let shape = ImageShape { height: 2, width: 3, channels: 1 };
        let x = Dense::from_fn(4, 6, |row, at| (row * 6 + at) as f64 / 24.0);
        let samples = Samples::unlabelled(x).unwrap().with_inputs(Inputs::Images(shape)).unwrap();
        assert!(SampleForm::Picture.bytes(&samples, "").unwrap().starts_with(b"\x89PNG"));
        let bytes = SampleForm::Array.bytes(&samples, "").unwrap();
        assert_eq!(NpyArray::<f32>::from_bytes(&bytes).unwrap().shape(), [4, 2, 3]);
        let said = SampleForm::Drawing.bytes(&samples, "").unwrap_err().to_string();
        assert!(said.contains(".png"), "{said}");
    }
}
