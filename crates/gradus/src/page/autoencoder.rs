//! The page of a linear autoencoder: the angles between its subspace and that of the principal components over the
//! iterations.

use super::components::groups;
use super::{close, objective, stats};
use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_core::transform::Transform as _;
use gradus_data::Samples;
use gradus_latent::AutoencoderModel;
use gradus_metrics::regression::squared_errors;
use gradus_report::{Line, Page, Scatter, number};

/// Angles that are drawn.
const DRAWN: usize = 5;

/// The autoencoder of a model, if it is one.
pub(super) fn autoencoder(fitted: &AnyFitted) -> Option<&AutoencoderModel> {
    let any: &dyn std::any::Any = fitted.model.as_ref();
    any.downcast_ref()
}

/// The page: angles and objective over the iterations, and samples by their codes if there are some.
///
/// # Errors
/// If the samples have other features than the model.
pub(super) fn autoencoder_page(
    fitted: &AnyFitted,
    model: &AutoencoderModel,
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Result<Page> {
    let (k, report) = (model.n_components(), &fitted.report);
    let subtitle = format!(
        "A code of {k} number{} for {} features: {} iterations, {}.",
        if k == 1 { "" } else { "s" },
        model.mean().len(),
        report.iterations,
        report.stop_reason
    );
    let mut headline: Vec<(String, String, String)> = Vec::new();
    if let Some(score) = report.validation {
        headline.push((format!("held-out {}", report.metric), number(score), String::new()));
    }
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    page = page.section("How the fit reached the principal components", |section| {
        let section = section.text(
            "The error of a linear autoencoder is least where its decoder spans the first principal components. The angles \
             between the two spaces fall to 0 as the fit goes on.",
        );
        match angles(fitted) {
            Some(angles) => section.columns(|left| left.chart(angles), |right| right.chart(objective(fitted))),
            None => section.note("The features do not vary: there is no subspace to find."),
        }
    });
    if let Some((source, samples)) = samples {
        let z = model.transform(samples.features())?;
        let mut rmse = 0.0;
        if let Some(back) = model.inverse(&z) {
            let (dense, back) = (samples.features().to_dense(), back?);
            let errors = squared_errors(dense.values(), back.values(), dense.n_cols());
            rmse = (errors.iter().sum::<f64>() / errors.len().max(1) as f64).sqrt();
        }
        let heading = format!("{} samples of {source}", number(samples.len() as f64));
        page = page.section(&heading, |section| {
            let section = section
                .text(format!("Root mean square error of the reconstruction: {}.", number(rmse)));
            let point = |row: usize| (z[(row, 0)], if k > 1 { z[(row, 1)] } else { 0.0 });
            let chart =
                match groups(samples) {
                    Some(groups) => Scatter::grouped(groups.into_iter().map(|(name, rows)| {
                        (name, rows.into_iter().map(point).collect::<Vec<_>>())
                    })),
                    None => Scatter::new((0..samples.len()).map(point)),
                };
            let y_label = if k > 1 { "code 2" } else { "" };
            section.chart(
                chart
                    .title("The first two numbers of the codes")
                    .x_label("code 1")
                    .y_label(y_label),
            )
        });
    }
    Ok(close(page, fitted))
}

/// The angles after each iteration; `None` if there are none.
fn angles(fitted: &AnyFitted) -> Option<Line> {
    let trace = &fitted.report.trace;
    let named = |at: usize| format!("angle {}", at + 1);
    let series = |at: usize| -> Vec<(f64, f64)> {
        let name = named(at);
        let value = |point: &gradus_core::report::Iteration| {
            let measure = point.measures.iter().find(|measure| measure.name == name)?;
            // A logarithmic axis has no 0.
            Some((point.iteration as f64, measure.value.max(1e-9)))
        };
        trace.iter().filter_map(value).collect()
    };
    let drawn: Vec<Vec<(f64, f64)>> =
        (0..DRAWN).map(series).take_while(|points| !points.is_empty()).collect();
    if drawn.is_empty() {
        return None;
    }
    let several = drawn.len() > 1;
    let title = if several {
        "Angles to the principal components"
    } else {
        "Largest angle to the principal components"
    };
    let line = Line::new().title(title).x_label("iteration").y_label("degrees").log_y();
    Some(drawn.into_iter().enumerate().fold(line, |line, (at, points)| {
        let name = match (several, at) {
            (false, _) => String::new(),
            (true, 0) => "largest".into(),
            (true, at) => format!("{}", at + 1),
        };
        line.series(name, points)
    }))
}
