//! The page of non-negative matrix factorisation: its components as pictures, or by their largest features.

use super::{close, objective, stats};
use gradus_core::estimator::AnyFitted;
use gradus_core::transform::Transform as _;
use gradus_data::Inputs;
use gradus_latent::NmfModel;
use gradus_report::{Cell, Page, PageTable, Pictures, Section, TableColumn, number};

/// Components that are drawn, or whose features are named.
const SHOWN: usize = 32;
/// Features that are named for each component.
const FEATURES: usize = 10;

/// The factors of a model, if it has any.
pub(super) fn factors(fitted: &AnyFitted) -> Option<&NmfModel> {
    let any: &dyn std::any::Any = fitted.model.as_ref();
    any.downcast_ref()
}

/// The page: how the fit went, and what the components are.
pub(super) fn parts_page(fitted: &AnyFitted, model: &NmfModel, title: &str) -> Page {
    let (k, report) = (model.n_components(), &fitted.report);
    let subtitle = format!(
        "{k} components of {} features: {} iterations, {}.",
        model.inputs().n_features(),
        report.iterations,
        report.stop_reason
    );
    let mut headline: Vec<(String, String, String)> = Vec::new();
    if let Some(score) = report.validation {
        headline.push((format!("held-out {}", report.metric), number(score), String::new()));
    }
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    page = page.section("Components", |section| {
        let section = match model.inputs() {
            Inputs::Images(shape) => pictures(section, model, (shape.width, shape.channels)),
            _ => section.table(&largest(model)),
        };
        match k > SHOWN {
            true => section.note(format!("The {SHOWN} that contribute most of {k}.")),
            false => section,
        }
    });
    if report.trace.len() > 1 {
        page = page.section("How the fit went", |section| section.chart(objective(fitted)));
    }
    close(page, fitted)
}

/// Components of images, as images: the mean over channels, each shaded up to its own largest value.
fn pictures(section: Section, model: &NmfModel, (width, channels): (usize, usize)) -> Section {
    let channels = channels.max(1);
    let mean = |pixel: &[f64]| pixel.iter().sum::<f64>() / channels as f64;
    let drawn = (0..model.n_components().min(SHOWN)).fold(Pictures::new(), |drawn, at| {
        let pixels: Vec<f64> =
            model.components().row(at).chunks_exact(channels).map(mean).collect();
        drawn.picture(format!("component {}", at + 1), width, &pixels)
    });
    section
        .text("Each picture is a component, shaded from 0 to its largest entry; images are sums of them.")
        .chart(drawn)
}

/// The features with the largest entries of each component.
fn largest(model: &NmfModel) -> PageTable {
    let table =
        PageTable::new([TableColumn::number("component"), TableColumn::text("largest entries")]);
    (0..model.n_components().min(SHOWN)).fold(table, |table, at| {
        let named = model.largest(at, FEATURES).into_iter();
        let text: Vec<String> = named.map(|(name, x)| format!("{name} {}", number(x))).collect();
        let cells: [Cell; 2] = [((at + 1) as f64).into(), text.join(", ").into()];
        table.row(cells)
    })
}
