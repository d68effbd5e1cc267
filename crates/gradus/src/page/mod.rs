//! The report of a fitted model as a page: one HTML file that needs nothing else. [`page`] is for
//! recommenders, [`samples_page`] for models of features, [`topics_page`] for topic models, [`words_page`] for vectors of words, [`comparison_page`] for several models compared.

mod attention;
mod autoencoder;
mod choice;
mod clusters;
mod compare;
mod components;
mod generative;
mod parts;
mod path;
mod recommender;
mod reconstruction;
mod samples;
mod tested;
mod topics;
mod words;

pub use choice::clusters_choice_page;
pub use compare::comparison_page;
pub use recommender::page;
pub use samples::{largest_coefficients, linear_model, samples_page, score_names};
pub use tested::{CountErrors, Coverage, Tested, TestedRanking, TestedRatings};
pub use topics::topics_page;
pub use words::{AnalogySection, TestedAnalogies, words_page};

use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_data::Samples;
use gradus_report::{Bars, Line, Page, PageTable, TableColumn, number};
use serde_json::Value;

/// The page of a model of any kind, as far as the model itself knows.
pub fn any_page(fitted: &AnyFitted, title: &str) -> Page {
    if let Some(Ok(page)) = generative_page(fitted, title, None) {
        return page;
    }
    if let Some(Ok(page)) = latent_page(fitted, title, None) {
        return page;
    }
    if let Some(Ok(page)) =
        fitted.model.topics().map(|model| topics_page(fitted, model, title, None))
    {
        return page;
    }
    if let Some(Ok(page)) =
        fitted.model.embedding().map(|model| words_page(fitted, model, title, None))
    {
        return page;
    }
    if let Some(model) = parts::factors(fitted) {
        return parts::parts_page(fitted, model, title);
    }
    if let Some(Ok(page)) = clusters_page(fitted, title, None) {
        return page;
    }
    match samples_page(fitted, title, None) {
        Ok(page) => page,
        // Not a model that predicts: the page tells of the fit, and of recommendations if there are any.
        Err(_) => page(fitted, title, None),
    }
}

/// The page of a model of latent structure, with samples drawn in its components if there are some; `None` of
/// other models.
pub fn latent_page(
    fitted: &AnyFitted,
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Option<Result<Page>> {
    if let Some(model) = autoencoder::autoencoder(fitted) {
        return Some(autoencoder::autoencoder_page(fitted, model, title, samples));
    }
    if let Some(model) = reconstruction::autoencoder(fitted) {
        return Some(reconstruction::reconstruction_page(fitted, model, title, samples));
    }
    let model = components::components(fitted)?;
    Some(components::components_page(fitted, model, title, samples))
}

/// The page of a model that draws samples and kept some of the course of its fit, beside samples if there are some; `None` of other
/// models.
pub fn generative_page(
    fitted: &AnyFitted,
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Option<Result<Page>> {
    let model = generative::generator(fitted)?;
    Some(generative::generative_page(fitted, model, title, samples))
}

/// The page of a clustering, with its clusters of some samples if there are any; `None` of other models.
pub fn clusters_page(
    fitted: &AnyFitted,
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Option<Result<Page>> {
    let model = fitted.model.clusterer()?;
    Some(clusters::clusters_page(fitted, model, title, samples))
}

/// Headline numbers, with the shape of the model after them.
fn stats(
    mut stats: Vec<(String, String, String)>,
    fitted: &AnyFitted,
) -> Vec<(String, String, String)> {
    for (name, fact) in fitted.model.summary() {
        // What stands in brackets is set small below the number.
        let (value, note) = match fact.split_once(" (") {
            Some((value, note)) => (value, note.strip_suffix(')').unwrap_or(note)),
            None => (fact.as_str(), ""),
        };
        let value = value.parse::<f64>().map_or_else(|_| value.to_owned(), number);
        stats.push((name.into(), value, note.to_owned()));
    }
    stats
}

/// Adds the end of every page.
fn close(page: Page, fitted: &AnyFitted) -> Page {
    page.section("Parameters", |section| {
        let mut table =
            PageTable::new([TableColumn::text("parameter"), TableColumn::text("value")]);
        for (name, value) in &fitted.params {
            table = table.row([name.as_str().into(), shown(value).into()]);
        }
        let section = section.table(&table);
        let chosen = fitted.report.chosen.iter().map(|choice| format!("chosen: {choice}"));
        let section = chosen.fold(section, |section, choice| section.note(&choice));
        fitted.report.notes.iter().fold(section, |section, note| section.note(note))
    })
    .footer(format!("gradus {}", env!("CARGO_PKG_VERSION")))
}

/// A parameter as a person would write it: single precision without a double's digits.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not given".into(),
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_u64() && !number.is_i64() => {
            number.as_f64().map_or_else(|| number.to_string(), |x| (x as f32).to_string())
        }
        other => other.to_string(),
    }
}

/// The starts of the trace, each as points over its iterations.
fn starts(
    fitted: &AnyFitted,
    value: impl Fn(&gradus_core::report::Iteration) -> Option<f64>,
) -> Vec<(String, Vec<(f64, f64)>)> {
    let trace = &fitted.report.trace;
    let n_starts = trace.last().map_or(0, |point| point.restart + 1);
    (0..n_starts)
        .map(|start| {
            let name = if n_starts > 1 { format!("start {}", start + 1) } else { String::new() };
            let points = trace.iter().filter(|point| point.restart == start);
            let points = points.filter_map(|p| Some((p.iteration as f64, value(p)?)));
            (name, points.collect())
        })
        .collect()
}

fn objective(fitted: &AnyFitted) -> Line {
    let line = Line::new().title("Objective").x_label("iteration").y_label("objective").markers();
    starts(fitted, |point| Some(point.objective))
        .into_iter()
        .fold(line, |line, (name, points)| line.series(name, points))
}

fn held_out(fitted: &AnyFitted, metric: &str) -> Option<Line> {
    let report = &fitted.report;
    report.validation?;
    let line = Line::new()
        .title(format!("Held-out {metric}"))
        .x_label("iteration")
        .y_label(metric)
        .markers();
    let line = starts(fitted, |point| point.validation)
        .into_iter()
        .fold(line, |line, (name, points)| line.series(name, points));
    let line = match report.trace.get(report.best) {
        Some(best) => line.marker(best.iteration as f64, "kept"),
        None => line,
    };
    // The nearest baseline only: a far one would squeeze the curve.
    Some(match report.baselines.last() {
        Some(baseline) => line.reference(baseline.score, &baseline.name),
        None => line,
    })
}

fn against_baselines(fitted: &AnyFitted, metric: &str) -> Option<Bars> {
    let score = fitted.report.validation?;
    let baselines = fitted.report.baselines.iter().map(|b| (b.name.clone(), b.score));
    let all = baselines.chain([(fitted.kind.to_owned(), score)]);
    Some(Bars::new(all).decimals(4).highlight(fitted.kind).x_label(format!("held-out {metric}")))
}
