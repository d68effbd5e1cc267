//! Experiments that show how things work, one file each: a request, an answer in numbers, and its picture.

pub mod backprop;
pub mod bias_variance;
pub mod fairness;
pub mod generate;
pub mod learning_rate;
pub mod minmax;
pub mod optimize;
pub mod recovery;
pub mod tradeoff;

use gradus_report::{Background, Chart, Page};

/// The result of an experiment, drawn: one picture, or a page.
pub trait Drawn {
    /// The picture as an SVG file.
    fn svg(&self) -> String;

    /// The page with all there is to see.
    fn page(&self) -> Page;
}

/// A chart as a file of its own.
fn standalone(chart: &dyn Chart, width: f64) -> String {
    chart.draw(width).standalone(Background::Theme)
}
