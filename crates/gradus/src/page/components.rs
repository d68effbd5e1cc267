//! The page of principal component analysis: how much each component explains, and the samples in two of them.

use super::{close, objective, stats};
use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_core::transform::Transform as _;
use gradus_data::{Inputs, Samples, Target};
use gradus_latent::PcaModel;
use gradus_report::{Cell, Line, Page, PageTable, Pictures, Scatter, Section, TableColumn, number};

/// Components of the scree plot.
const DRAWN: usize = 100;
/// Features that are named for each component.
const FEATURES: usize = 5;
/// Components whose features are named.
const LOADINGS: usize = 8;
/// Components of images that are drawn.
const PICTURES: usize = 20;
/// Classes that have a colour of their own.
const CLASSES: usize = 6;

/// The principal components of a model, if it has any.
pub(super) fn components(fitted: &AnyFitted) -> Option<&PcaModel> {
    let any: &dyn std::any::Any = fitted.model.as_ref();
    any.downcast_ref()
}

/// The page: a scree plot, the features of each component, and samples in the first two if there are some.
///
/// # Errors
/// If the samples have other features than the model.
pub(super) fn components_page(
    fitted: &AnyFitted,
    model: &PcaModel,
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Result<Page> {
    let (k, report) = (model.n_components(), &fitted.report);
    let subtitle = format!("{k} principal components of {} features.", model.mean().len());
    let mut headline: Vec<(String, String, String)> = Vec::new();
    if let Some(score) = report.validation {
        headline.push((format!("held-out {}", report.metric), number(score), String::new()));
    }
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    page = page.section("Explained variance", |section| {
        let total = model.total_variance();
        let share = |x: f64| if total > 0.0 { 100.0 * x / total } else { 0.0 };
        let mut sum = 0.0;
        let (mut each, mut cumulative) = (Vec::new(), Vec::new());
        for (at, &value) in model.spectrum().iter().take(DRAWN.max(k.min(1000))).enumerate() {
            sum += value;
            each.push(((at + 1) as f64, value));
            cumulative.push(((at + 1) as f64, share(sum)));
        }
        let scree = Line::new()
            .title("Variance of each component")
            .x_label("component")
            .y_label("variance")
            .series("", each)
            .markers()
            .reference(model.noise_variance(), "noise")
            .marker(k as f64, "kept");
        let cumulative = Line::new()
            .title("Share of the variance, added up")
            .x_label("components")
            .y_label("per cent")
            .series("", cumulative)
            .markers()
            .marker(k as f64, "kept");
        section.columns(|left| left.chart(scree), |right| right.chart(cumulative))
    });
    if let Some((source, samples)) = samples {
        let z = model.transform(samples.features())?;
        let heading = format!("{} samples of {source}", number(samples.len() as f64));
        let errors = model.reconstruction_errors(samples.features())?;
        let logs = model.log_densities(samples.features())?;
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len().max(1) as f64;
        let (rmse, log) = ((mean(&errors) / model.mean().len() as f64).sqrt(), mean(&logs));
        page = page.section(&heading, |section| {
            let section = section.text(format!(
                "Root mean square error of the reconstruction: {}. Mean log density: {}.",
                number(rmse),
                number(log)
            ));
            let point = |row: usize| (z[(row, 0)], if k > 1 { z[(row, 1)] } else { 0.0 });
            let chart =
                match groups(samples) {
                    Some(groups) => Scatter::grouped(groups.into_iter().map(|(name, rows)| {
                        (name, rows.into_iter().map(point).collect::<Vec<_>>())
                    })),
                    None => Scatter::new((0..samples.len()).map(point)),
                };
            let y_label = if k > 1 { "component 2" } else { "" };
            section.chart(
                chart.title("The first two components").x_label("component 1").y_label(y_label),
            )
        });
    }
    page = page.section("Components", |section| {
        let section = match model.inputs() {
            Inputs::Images(shape) => pictures(section, model, (shape.width, shape.channels)),
            _ => section,
        };
        section.table(&loadings(model))
    });
    if report.trace.len() > 1 {
        page = page.section("How the fit went", |section| section.chart(objective(fitted)));
    }
    Ok(close(page, fitted))
}

/// Components of images, as images: the mean over channels, each shaded from its smallest to its largest entry.
fn pictures(section: Section, model: &PcaModel, (width, channels): (usize, usize)) -> Section {
    let channels = channels.max(1);
    let mean = |pixel: &[f64]| pixel.iter().sum::<f64>() / channels as f64;
    let picture = |name: String, values: &[f64], drawn: Pictures| {
        let pixels: Vec<f64> = values.chunks_exact(channels).map(mean).collect();
        let least = pixels.iter().fold(f64::INFINITY, |least, x| least.min(*x));
        let pixels: Vec<f64> = pixels.iter().map(|x| x - least).collect();
        drawn.picture(name, width, &pixels)
    };
    let drawn = picture("mean".into(), model.mean(), Pictures::new());
    let drawn = (0..model.n_components().min(PICTURES)).fold(drawn, |drawn, at| {
        picture(format!("component {}", at + 1), model.components().row(at), drawn)
    });
    section
        .text("The mean and the first components as pictures, each shaded from its smallest to its largest entry.")
        .chart(drawn)
}

/// The rows of each class, or of each quarter of the numbers to predict; `None` without a target.
pub(super) fn groups(samples: &Samples) -> Option<Vec<(String, Vec<usize>)>> {
    if !samples.has_target() {
        return None;
    }
    match samples.target() {
        Target::Classes { codes, labels } => {
            let name = &samples.target_names()[0];
            let few = labels.len() <= CLASSES;
            let n = if few { labels.len() } else { CLASSES };
            let mut groups: Vec<(String, Vec<usize>)> = (0..n)
                .map(|at| match few || at + 1 < n {
                    true => (format!("{name} {}", labels.get(at)), Vec::new()),
                    false => (format!("{} others", labels.len() - at), Vec::new()),
                })
                .collect();
            for (row, &code) in codes.iter().enumerate() {
                groups[(code as usize).min(n - 1)].1.push(row);
            }
            Some(groups)
        }
        Target::Values(values) => {
            let name = &samples.target_names()[0];
            let mut order: Vec<usize> = (0..values.n_rows()).collect();
            order.sort_by(|&a, &b| values[(a, 0)].total_cmp(&values[(b, 0)]));
            let size = order.len().div_ceil(4).max(1);
            let quarter = |rows: &[usize]| {
                let ends = [rows[0], rows[rows.len() - 1]].map(|row| number(values[(row, 0)]));
                (format!("{name} {} to {}", ends[0], ends[1]), rows.to_vec())
            };
            Some(order.chunks(size).map(quarter).collect())
        }
    }
}

/// The features with the largest entries of each component.
fn loadings(model: &PcaModel) -> PageTable {
    let names = model.inputs().feature_names();
    let table = PageTable::new([
        TableColumn::text("component"),
        TableColumn::number("variance"),
        TableColumn::number("per cent").decimals(2).bar(),
        TableColumn::text("largest entries"),
    ]);
    let ratios = model.explained_ratio();
    (0..model.n_components().min(LOADINGS)).fold(table, |table, at| {
        let entries = model.components().row(at);
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| entries[b].abs().total_cmp(&entries[a].abs()).then(a.cmp(&b)));
        let named = |&feature: &usize| {
            let name = names.get(feature).map_or("", String::as_str);
            format!("{name} {:+.3}", entries[feature])
        };
        let text: Vec<String> = order.iter().take(FEATURES).map(named).collect();
        let cells: [Cell; 4] = [
            (at + 1).to_string().into(),
            model.explained_variance()[at].into(),
            (100.0 * ratios[at]).into(),
            text.join(", ").into(),
        ];
        table.row(cells)
    })
}
