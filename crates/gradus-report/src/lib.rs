//! Plots (SVG) and the self-contained HTML report of gradus.
//!
//! The crate takes plain numbers and gives back text: a chart becomes a standalone `.svg` file with
//! [`Chart::to_svg`], or part of a [`Page`], which is one HTML file without scripts, fonts or network
//! access. Colours follow the reader's light or dark theme; paper is always light. The same input gives
//! the same bytes.
//!
//! Charts never fail. Values that are not finite (or not positive, on a logarithmic axis) are skipped, a
//! chart without data says so, and a constant series gets a sensible axis.
//!
//! ```
//! use gradus_report::{Bars, Line, Page};
//!
//! let curve = Line::new()
//!     .title("Validation error")
//!     .series("train", [(1.0, 1.02), (2.0, 0.91), (3.0, 0.86)])
//!     .series("validation", [(1.0, 1.05), (2.0, 0.97), (3.0, 0.98)])
//!     .reference(1.12, "global mean")
//!     .marker(2.0, "best iteration")
//!     .x_label("iteration")
//!     .y_label("RMSE");
//! let models = Bars::new([("mean", 1.12), ("ALS", 0.97)]).decimals(3).highlight("ALS");
//!
//! let html = Page::new("Model report")
//!     .subtitle("ALS on ratings.csv")
//!     .stats([("RMSE", "0.970", "validation"), ("Users", "6,040", "")])
//!     .section("Training", |s| s.text("Three iterations.").chart(&curve).chart(&models))
//!     .to_html();
//! assert!(html.starts_with("<!doctype html>"));
//! ```

mod chart;
mod page;
mod scale;
mod svg;
mod table;
mod text;
mod theme;

pub use chart::Chart;
pub use chart::bar::Bars;
pub use chart::beside::Beside;
pub use chart::boxes::Boxes;
pub use chart::confusion::Confusions;
pub use chart::contour::Contour;
pub use chart::curves::Curves;
pub use chart::density::Density;
pub use chart::forest::Forest;
pub use chart::heat::Heat;
pub use chart::layers::Layers;
pub use chart::line::Line;
pub use chart::marks::Marks;
pub use chart::path::coefficient_path;
pub use chart::pictures::Pictures;
pub use chart::reliability::{Reliability, ReliabilityBin};
pub use chart::residuals::{qq_plot, residual_plot};
pub use chart::rows::Rows;
pub use chart::scatter::Scatter;
pub use chart::stack::Stack;
pub use chart::versus::{PredictedVsTrue, predicted_vs_true};
pub use page::{Page, Section};
pub use scale::{fixed, number, ticks};
pub use svg::{Background, Drawing, escape};
pub use table::{Align, Cell, PageTable, TableColumn};
