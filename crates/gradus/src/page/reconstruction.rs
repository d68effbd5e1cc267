//! The page of an autoencoder: how the fit went, samples beside what comes back from their codes, and the codes.

use super::components::groups;
use super::{close, held_out, objective, stats};
use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_core::transform::Transform as _;
use gradus_data::{Dense, ImageShape, Inputs, Samples};
use gradus_nn::autoencoder::DeepAutoencoder;
use gradus_report::{Page, PageTable, Pictures, Scatter, Section, TableColumn, number};

/// Images that are drawn.
const DRAWN: u32 = 12;
/// Features in the table.
const FEATURES: usize = 20;

/// The autoencoder of a model, if it is one.
pub(super) fn autoencoder(fitted: &AnyFitted) -> Option<&DeepAutoencoder> {
    let any: &dyn std::any::Any = fitted.model.as_ref();
    any.downcast_ref()
}

/// The page.
///
/// # Errors
/// If the samples have other features than the model.
pub(super) fn reconstruction_page(
    fitted: &AnyFitted,
    model: &DeepAutoencoder,
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Result<Page> {
    let (k, d, report) = (model.architecture().code, model.inputs().n_features(), &fitted.report);
    let subtitle = format!(
        "A code of {k} number{} for {d} features: {} iterations, {}.",
        if k == 1 { "" } else { "s" },
        report.iterations,
        report.stop_reason
    );
    let mut headline: Vec<(String, String, String)> = Vec::new();
    if let Some(score) = report.validation {
        let note = "in standard deviations of the features".to_owned();
        headline.push((format!("held-out {}", report.metric), number(score), note));
    }
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    page = page.section("How the fit went", |section| match held_out(fitted, &report.metric) {
        Some(line) => {
            section.columns(|left| left.chart(line), |right| right.chart(objective(fitted)))
        }
        None => section.chart(objective(fitted)),
    });
    if let Some((source, samples)) = samples.filter(|(_, samples)| !samples.is_empty()) {
        let codes = model.transform(samples.features())?;
        let errors = model.reconstruction_errors(samples.features())?;
        let rmse = (errors.iter().sum::<f64>() / errors.len().max(1) as f64).sqrt();
        let heading = format!("{} samples of {source}", number(samples.len() as f64));
        let drawn = match model.inputs() {
            Inputs::Images(shape) => Drawn::Pictures(pictures(model, samples, *shape)?),
            _ => Drawn::Table(features(model, samples)?),
        };
        page = page.section(&heading, |section| {
            let section = section.text(format!(
                "Root mean square error of the reconstruction: {} standard deviations.",
                number(rmse)
            ));
            let section = match drawn {
                Drawn::Pictures(both) => both.into_iter().fold(section, Section::chart),
                Drawn::Table(table) => section.table(&table),
            };
            section.chart(scatter(samples, &codes))
        });
    }
    Ok(close(page, fitted))
}

enum Drawn {
    Pictures([Pictures; 2]),
    Table(PageTable),
}

/// Some images, and what comes back of them.
fn pictures(
    model: &DeepAutoencoder,
    samples: &Samples,
    shape: ImageShape,
) -> Result<[Pictures; 2]> {
    let rows: Vec<u32> = (0..(samples.len() as u32).min(DRAWN)).collect();
    let features = samples.select_rows(&rows).features().to_dense();
    let back = model.reconstruct(&features.clone().into())?;
    // Brightness from the darkest pixel of the samples up, in both.
    let least = features.values().iter().copied().fold(f64::INFINITY, f64::min);
    let draw = |title: &str, images: &Dense<f64>| {
        let mean =
            |pixel: &[f64]| (pixel.iter().sum::<f64>() / pixel.len() as f64 - least).max(0.0);
        images.rows().enumerate().fold(Pictures::new().title(title), |drawn, (at, image)| {
            let pixels: Vec<f64> = image.chunks_exact(shape.channels.max(1)).map(mean).collect();
            drawn.picture((at + 1).to_string(), shape.width, &pixels)
        })
    };
    Ok([draw("Images", &features), draw("The same, back from their codes", &back)])
}

/// How much of each feature comes back, the worst first.
fn features(model: &DeepAutoencoder, samples: &Samples) -> Result<PageTable> {
    let (dense, back) = (samples.features().to_dense(), model.reconstruct(samples.features())?);
    let n = samples.len() as f64;
    let mut rows: Vec<(String, f64, f64)> = model
        .inputs()
        .feature_names()
        .into_iter()
        .enumerate()
        .map(|(at, name)| {
            let mean = dense.column(at).sum::<f64>() / n;
            let all = dense.column(at).map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let both = dense.column(at).zip(back.column(at));
            let rest = both.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / n;
            (name, all.sqrt(), rest.sqrt())
        })
        .collect();
    let share = |(_, all, rest): &(String, f64, f64)| if *all > 0.0 { rest / all } else { 0.0 };
    rows.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let table = PageTable::new([
        TableColumn::text("feature"),
        TableColumn::number("standard deviation"),
        TableColumn::number("error of the reconstruction"),
        TableColumn::number("in standard deviations"),
    ]);
    Ok(rows.iter().take(FEATURES).fold(table, |table, row| {
        table.row([row.0.as_str().into(), row.1.into(), row.2.into(), share(row).into()])
    }))
}

pub(super) fn scatter(samples: &Samples, codes: &Dense<f64>) -> Scatter {
    let two = codes.n_cols() > 1;
    let point = |row: usize| (codes[(row, 0)], if two { codes[(row, 1)] } else { 0.0 });
    let chart = match groups(samples) {
        Some(groups) => Scatter::grouped(
            groups
                .into_iter()
                .map(|(name, rows)| (name, rows.into_iter().map(point).collect::<Vec<_>>())),
        ),
        None => Scatter::new((0..samples.len()).map(point)),
    };
    let y_label = if two { "code 2" } else { "" };
    chart.title("The first two numbers of the codes").x_label("code 1").y_label(y_label)
}
