//! The page of a model of features.

use super::path::paths;
use super::{close, objective, stats};
use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_core::report::StopReason;
use gradus_data::Samples;
use gradus_linear::{LinearModel, SvmModel};
use gradus_metrics::bounds::{Interval, wilson};
use gradus_metrics::classification::{Bins, Calibration, PrecisionRecall, Roc, top_label};
use gradus_report::{
    Bars, Cell, Confusions, Curves, Page, PageTable, Reliability, ReliabilityBin, Section,
    TableColumn, number, predicted_vs_true, qq_plot, residual_plot,
};
use gradus_select::samples::{
    ClassesEvaluation, NamedScore, ValuesEvaluation, evaluate_classes, evaluate_values,
};

/// Coefficients that are shown.
const COEFFICIENTS: usize = 24;
/// Targets, or classes, that are shown one by one.
pub(super) const FEW: usize = 6;
/// Points of a curve: more cannot be distinguished on a page.
const POINTS: usize = 1000;

/// The page of a model of features: how the fit went, its coefficients, how well it predicts
/// samples it has not seen (with where they came from), its parameters.
///
/// # Errors
/// If the model does not predict from features, or the samples are not for it.
pub fn samples_page(
    fitted: &AnyFitted,
    title: &str,
    tested: Option<(&str, &Samples)>,
) -> Result<Page> {
    let model = fitted.predictor()?;
    let report = &fitted.report;
    let (mut values, mut classes) = (Vec::new(), None);
    if let Some((_, samples)) = tested {
        if model.outputs().labels().is_some() {
            classes = Some(evaluate_classes(model, samples)?);
        } else {
            values = evaluate_values(model, samples)?;
        }
    }
    let mut headline: Vec<(String, String, String)> = Vec::new();
    let shown = |score: &NamedScore| {
        let note = score.interval.as_ref().map(|i| format!("95 %: {}", between(i)));
        (format!("test {}", score.name), short(score.value), note.unwrap_or_default())
    };
    if let [one] = values.as_slice() {
        let some = one.scores.iter().filter(|score| ["RMSE", "R²"].contains(&score.name));
        headline.extend(some.map(shown));
    }
    if let Some(evaluated) = &classes {
        let wanted = ["accuracy", "AUC", "log loss"];
        let some = evaluated.scores.iter().filter(|score| wanted.contains(&score.name));
        headline.extend(some.map(shown));
    }
    if tested.is_none()
        && let Some(score) = report.validation
    {
        let metric = report.metric.to_uppercase();
        headline.push((format!("held-out {metric}"), short(score), String::new()));
    }
    let names = model.outputs().names().join(", ");
    let subtitle = match report.stop_reason {
        StopReason::Solved => format!("Model {} for {names}: solved in closed form.", fitted.kind),
        reason => {
            format!(
                "Model {} for {names}: {} iterations, {reason}.",
                fitted.kind, report.iterations
            )
        }
    };
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    if let Some((source, samples)) = tested {
        let heading = format!("{} samples of {source}", number(samples.len() as f64));
        for evaluated in values.iter().take(FEW) {
            page = numbers(page, evaluated, &heading);
        }
        if let Some(evaluated) = &classes {
            page = by_class(page, evaluated, samples, &heading)?;
        }
    }
    page = super::attention::attention(page, fitted, tested.map(|(_, samples)| samples))?;
    if let Some(model) = linear_model(fitted) {
        page = page.section("Coefficients", |section| coefficients(section, model));
        if !model.paths().is_empty() {
            let names = score_names(model);
            page = page.section("The path of penalties", |section| paths(section, model, &names));
        }
    }
    if report.trace.len() > 1 || report.certificate.is_some() || !report.baselines.is_empty() {
        page = page.section("How the fit went", |section| {
            let section = match &report.certificate {
                Some(certificate) => section.text(format!(
                    "How far the solution can be from the best: {certificate}. {}",
                    if certificate.holds() {
                        "It is as exact as was asked for."
                    } else {
                        "It is not as exact as was asked for: more iterations would help."
                    }
                )),
                None => section,
            };
            let section =
                if report.trace.len() > 1 { section.chart(objective(fitted)) } else { section };
            match super::against_baselines(fitted, &report.metric.to_uppercase()) {
                Some(bars) if !report.baselines.is_empty() => section.chart(bars),
                _ => section,
            }
        });
    }
    Ok(close(page, fitted))
}

fn between(interval: &Interval) -> String {
    format!("{} – {}", short(interval.low), short(interval.high))
}

fn short(x: f64) -> String {
    if x.abs() >= 1000.0 { number(x) } else { format!("{x:.4}") }
}

/// Scores with their intervals.
fn scores(scores: &[NamedScore]) -> PageTable {
    let columns = [
        TableColumn::text("score"),
        TableColumn::number("value"),
        TableColumn::text("95 % interval"),
    ];
    scores.iter().fold(PageTable::new(columns), |table, score| {
        let interval = score.interval.as_ref().map(between).unwrap_or_default();
        table.row([score.name.into(), short(score.value).into(), interval.into()])
    })
}

fn numbers(page: Page, evaluated: &ValuesEvaluation, heading: &str) -> Page {
    let residuals: Vec<f64> =
        evaluated.truth.iter().zip(&evaluated.predicted).map(|(y, p)| y - p).collect();
    let single = |values: &[f64]| values.iter().map(|&v| v as f32).collect::<Vec<f32>>();
    let versus = predicted_vs_true(&single(&evaluated.predicted), &single(&evaluated.truth))
        .title("Predicted against true");
    page.section(&format!("How well it predicts {}", evaluated.target), |section| {
        section
            .text(format!(
                "On {heading}, which should not be those it was trained on. Intervals are by \
                 bootstrap."
            ))
            .table(&scores(&evaluated.scores))
            .columns(
                |left| left.chart(versus),
                |right| right.chart(qq_plot(&residuals).title("Residuals against a normal law")),
            )
            .chart(residual_plot(&evaluated.predicted, &evaluated.truth).title("Residuals"))
            .note(
                "A trend in the residuals is something the model missed; a funnel is noise that \
                 grows with the prediction; ends that leave the line are outliers.",
            )
    })
}

fn by_class(
    page: Page,
    evaluated: &ClassesEvaluation,
    samples: &Samples,
    heading: &str,
) -> Result<Page> {
    let n = evaluated.names.len();
    let rows: Vec<&[f64]> = (0..n as u32).map(|class| evaluated.confusion.row(class)).collect();
    let confusions = Confusions::new(rows).classes(evaluated.names.iter().cloned());
    let columns = [
        TableColumn::text("class"),
        TableColumn::number("precision").decimals(3),
        TableColumn::number("recall").decimals(3),
        TableColumn::number("F1").decimals(3),
        TableColumn::number("weight"),
    ];
    let mut table = PageTable::new(columns);
    for (name, scores) in evaluated.names.iter().zip(evaluated.confusion.classes()).take(60) {
        table = table.row([
            name.as_str().into(),
            scores.precision.into(),
            scores.recall.into(),
            scores.f1.into(),
            scores.support.into(),
        ]);
    }
    let mut page = page.section("How well it predicts", |section| {
        section
            .text(format!(
                "On {heading}, which should not be those it was trained on. Intervals are by \
                 bootstrap; by Hoeffding's inequality the accuracy is within {} whatever the samples are like.",
                between(&evaluated.sure)
            ))
            .table(&scores(&evaluated.scores))
            .chart(confusions.title("What was taken for what"))
            .table(&table)
    });
    let (roc, precision) = curves(evaluated, samples);
    if let Some((roc, precision)) = roc.zip(precision) {
        page = page.section("Over all thresholds", |section| {
            let many = evaluated.decisions.n_cols() > 1;
            let section = section.columns(|left| left.chart(roc), |right| right.chart(precision));
            if many {
                section
                    .note("Each class against the rest; the largest classes where there are many.")
            } else {
                section
            }
        });
    }
    if let Some(reliability) = reliability(evaluated, samples)? {
        page = page.section("Are the probabilities right?", |section| {
            section
                .text(
                    "Samples put together by their probability: where the model is calibrated, the \
                     share that is right is the probability it gave. Bars are 95 % intervals.",
                )
                .chart(reliability)
        });
    }
    Ok(page)
}

/// The classes to draw one by one, the largest.
fn largest(evaluated: &ClassesEvaluation, n_classes: usize) -> Vec<u32> {
    let support = evaluated.confusion.classes();
    let mut order: Vec<u32> = (0..n_classes as u32).collect();
    order.sort_by(|a, b| support[*b as usize].support.total_cmp(&support[*a as usize].support));
    order.truncate(FEW);
    order.sort_unstable();
    order
}

/// Returns at most `POINTS` of the points and one more, the first and the last among them.
fn thinned<T: Copy>(points: &[T]) -> Vec<T> {
    let step = points.len().div_ceil(POINTS).max(1);
    let last = points.last().copied().filter(|_| !(points.len() - 1).is_multiple_of(step));
    points.iter().copied().step_by(step).chain(last).collect()
}

/// ROC and precision–recall curves, one against the rest; of two classes those of the second.
fn curves(evaluated: &ClassesEvaluation, samples: &Samples) -> (Option<Curves>, Option<Curves>) {
    let of = evaluated.probabilities.as_ref().unwrap_or(&evaluated.decisions);
    let known = evaluated.names.len() - usize::from(evaluated.unknown > 0);
    let two = evaluated.decisions.n_cols() == 1;
    let classes = if two { vec![1] } else { largest(evaluated, known) };
    let kept: Vec<usize> =
        (0..evaluated.truth.len()).filter(|&row| (evaluated.truth[row] as usize) < known).collect();
    let weights: Option<Vec<f64>> =
        samples.weights().map(|weights| kept.iter().map(|&row| weights[row]).collect());
    let (mut roc, mut precision, mut share) = (Curves::roc(), Vec::new(), 0.0);
    let mut drawn = 0;
    for class in classes {
        let yes: Vec<bool> = kept.iter().map(|&row| evaluated.truth[row] == class).collect();
        let scores: Vec<f64> = kept
            .iter()
            .map(|&row| if two { evaluated.decisions[(row, 0)] } else { of[(row, class as usize)] })
            .collect();
        let Ok(one) = Roc::new(&yes, &scores, weights.as_deref()) else { continue };
        let Ok(pr) = PrecisionRecall::new(&yes, &scores, weights.as_deref()) else { continue };
        let name = evaluated.names.get(class as usize).cloned().unwrap_or_default();
        let corners = one.corners();
        let points = thinned(corners.points());
        let points = points.iter().map(|p| (p.false_positive_rate, p.true_positive_rate));
        roc = roc.curve(name.clone(), points, one.auc());
        let points = thinned(pr.points());
        let points: Vec<(f64, f64)> = points.iter().map(|p| (p.recall, p.precision)).collect();
        share += pr.share();
        precision.push((name, points, pr.average_precision()));
        drawn += 1;
    }
    if drawn == 0 {
        return (None, None);
    }
    let start = Curves::precision_recall(share / f64::from(drawn));
    let precision = precision
        .into_iter()
        .fold(start, |all, (name, points, area)| all.curve(name, points, area));
    (Some(roc.title("ROC")), Some(precision.title("Precision and recall")))
}

/// The reliability of the probability of the second of two classes; with more classes, of the predicted class.
fn reliability(evaluated: &ClassesEvaluation, samples: &Samples) -> Result<Option<Reliability>> {
    let Some(probabilities) = &evaluated.probabilities else { return Ok(None) };
    let known = probabilities.n_cols();
    let kept: Vec<usize> =
        (0..evaluated.truth.len()).filter(|&row| (evaluated.truth[row] as usize) < known).collect();
    let truth: Vec<u32> = kept.iter().map(|&row| evaluated.truth[row]).collect();
    let weights: Option<Vec<f64>> =
        samples.weights().map(|weights| kept.iter().map(|&row| weights[row]).collect());
    if kept.is_empty() {
        return Ok(None);
    }
    let (yes, p, x, y) = if known == 2 {
        let yes = truth.iter().map(|&class| class == 1).collect();
        let p: Vec<f64> = kept.iter().map(|&row| probabilities[(row, 1)]).collect();
        (yes, p, format!("probability of {}", evaluated.names[1]), "observed share")
    } else {
        let table: Vec<f64> =
            kept.iter().flat_map(|&row| probabilities.row(row).iter().copied()).collect();
        let (yes, p) = top_label(&truth, &table, known)?;
        (yes, p, "probability of the predicted class".to_owned(), "share that is right")
    };
    let found = Calibration::new(&yes, &p, 10, Bins::Uniform, weights.as_deref())?;
    let bin = |bin: &gradus_metrics::classification::CalibrationBin| {
        let right = (bin.observed * bin.count as f64).round() as u64;
        let interval = wilson(right.min(bin.count as u64), bin.count as u64, 0.95).ok();
        ReliabilityBin {
            predicted: bin.predicted,
            observed: bin.observed,
            count: bin.count as f64,
            interval: interval.filter(|_| weights.is_none()).map(|i| (i.low, i.high)),
        }
    };
    let title = format!("Expected calibration error {:.3}", found.expected_error());
    let chart = Reliability::new(found.bins().iter().map(bin)).scores(&p);
    Ok(Some(chart.title(title).x_label(x).y_label(y)))
}

/// The coefficients of a model that has any: of a linear model, or of a linear support vector
/// machine.
pub fn linear_model(fitted: &AnyFitted) -> Option<&LinearModel> {
    let any: &dyn std::any::Any = fitted.model.as_ref();
    any.downcast_ref().or_else(|| any.downcast_ref::<SvmModel>()?.linear())
}

/// The features with the largest coefficients, at most `n` of them, largest first, and how many have
/// one that is not 0. The size of a feature with several coefficients is that of the largest.
pub fn largest_coefficients(model: &LinearModel, n: usize) -> (Vec<usize>, usize) {
    let w = model.coefficients();
    let size = |feature: usize| w.column(feature).map(f64::abs).fold(0.0, f64::max);
    let mut order: Vec<usize> = (0..w.n_cols()).filter(|&feature| size(feature) > 0.0).collect();
    order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    let used = order.len();
    order.truncate(n);
    (order, used)
}

/// Returns the name of each score: the target, or the class it is in favour of.
pub fn score_names(model: &LinearModel) -> Vec<String> {
    use gradus_core::predict::Predict as _;
    match (model.outputs().labels(), model.intercepts().len()) {
        (Some(labels), 1) => {
            let last = labels.len().saturating_sub(1);
            labels.iter().skip(last).map(|label| label.to_string()).collect()
        }
        (Some(labels), _) => labels.iter().map(|label| label.to_string()).collect(),
        (None, _) => model.outputs().names().to_vec(),
    }
}

/// The largest coefficients, and what is known of them.
fn coefficients(section: Section, model: &LinearModel) -> Section {
    use gradus_core::predict::Predict as _;
    let w = model.coefficients();
    let (k, d) = w.shape();
    let names = model.inputs().feature_names();
    let (order, used) = largest_coefficients(model, COEFFICIENTS);
    let how_many = if used > order.len() {
        format!("The {} largest of {} that are not 0", order.len(), number(used as f64))
    } else {
        format!("All {} that are not 0", number(used as f64))
    };
    let section = section.text(format!(
        "{how_many}, of {} features. They are for features as they are, so a small one may belong to a feature of large values.",
        number(d as f64)
    ));
    let titles = score_names(model);
    let shown = k.min(FEW);
    let mut columns = vec![TableColumn::text("feature")];
    columns.extend(titles.iter().take(shown).map(TableColumn::number));
    let more = if k == 1 { model.columns() } else { &[] };
    columns.extend(more.iter().map(|column| TableColumn::number(column.name.clone())));
    let mut table = PageTable::new(columns);
    let known =
        |value: f64| -> Cell { if value.is_finite() { value.into() } else { "–".into() } };
    for &feature in &order {
        let mut row: Vec<Cell> = vec![names[feature].as_str().into()];
        row.extend((0..shown).map(|score| Cell::from(w[(score, feature)])));
        row.extend(more.iter().map(|column| known(column.values[feature])));
        table = table.row(row);
    }
    let mut row: Vec<Cell> = vec!["(intercept)".into()];
    row.extend(model.intercepts().iter().take(shown).map(|&b| Cell::from(b)));
    row.extend(more.iter().map(|column| known(column.values[d * k])));
    let table = table.row(row);
    if k > 1 {
        return section.table(&table);
    }
    let bars = Bars::new(order.iter().map(|&feature| (names[feature].clone(), w[(0, feature)])));
    let bars =
        bars.title(format!("Coefficients for {}", titles.first().map_or("", String::as_str)));
    section.columns(|left| left.chart(bars), |right| right.table(&table))
}
