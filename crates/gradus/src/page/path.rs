//! The path of penalties that a sparse linear model was chosen from.

use gradus_linear::LinearModel;
use gradus_linear::path::Path;
use gradus_report::{Line, Section, coefficient_path, number};

/// Features whose coefficients are drawn.
const FEATURES: usize = 60;

/// The path of each target: coefficients over penalties, and the error on held-out folds.
pub(super) fn paths(section: Section, model: &LinearModel, names: &[String]) -> Section {
    let several = model.paths().len() > 1;
    let section = section.text(
        "The model for every penalty, from the strongest on the left, where no feature is used, to the \
         weakest. The penalty was chosen by the error on held-out folds.",
    );
    model.paths().iter().zip(names).take(super::samples::FEW).fold(
        section,
        |section, (path, name)| {
            let of = if several { format!(" of {name}") } else { String::new() };
            let drawn = drawn(path, &feature_names(model)).title(format!("Coefficients{of}"));
            let chosen = path.validation.as_ref().and_then(|found| path.lambdas.get(found.chosen));
            let drawn = match chosen {
                Some(&penalty) if penalty > 0.0 => drawn.marker(penalty, "chosen"),
                _ => drawn,
            };
            match curve(path) {
                Some(curve) => {
                    let curve = curve.title(format!("Error on held-out folds{of}"));
                    let section =
                        section.columns(|left| left.chart(drawn), |right| right.chart(curve));
                    chosen.map_or(section.clone(), |&penalty| section.note(caption(path, penalty)))
                }
                None => section.chart(drawn),
            }
        },
    )
}

fn feature_names(model: &LinearModel) -> Vec<String> {
    use gradus_core::predict::Predict as _;
    model.inputs().feature_names()
}

/// Describes the number of features that the chosen penalty uses, and its size.
fn caption(path: &Path, penalty: f64) -> String {
    let chosen = path.validation.as_ref().map_or(0, |found| found.chosen);
    let used = path.coefficients.range(chosen).len();
    format!(
        "Chosen: penalty {}, with {used} of {} features. Thin lines are one standard error over the \
         folds from the mean.",
        number(penalty),
        path.coefficients.n_cols()
    )
}

/// The coefficients over the penalties, of the features that are largest somewhere on the path.
fn drawn(path: &Path, names: &[String]) -> Line {
    let n_penalties = path.lambdas.len();
    let d = path.coefficients.n_cols();
    let mut largest = vec![0.0f64; d];
    for row in 0..n_penalties {
        let (features, values) = path.coefficients.row(row);
        for (&feature, value) in features.iter().zip(values) {
            let most = &mut largest[feature as usize];
            *most = most.max(value.abs());
        }
    }
    let mut order: Vec<usize> = (0..d).filter(|&feature| largest[feature] > 0.0).collect();
    order.sort_by(|&a, &b| largest[b].total_cmp(&largest[a]).then(a.cmp(&b)));
    order.truncate(FEATURES);
    let coefficients = order.iter().map(|&feature| {
        let value = |row: usize| {
            let (features, values) = path.coefficients.row(row);
            features.binary_search(&(feature as u32)).map_or(0.0, |at| values[at])
        };
        let name = names.get(feature).cloned().unwrap_or_default();
        (name, (0..n_penalties).map(value).collect::<Vec<f64>>())
    });
    coefficient_path(&path.lambdas, coefficients)
}

/// The root of the mean squared error on held-out folds over the penalties.
fn curve(path: &Path) -> Option<Line> {
    let found = path.validation.as_ref()?;
    let points = |of: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        let each = path.lambdas.iter().copied().enumerate().take(found.mean.len());
        each.map(|(at, penalty)| (penalty, of(at).max(0.0).sqrt())).collect()
    };
    let error = |at: usize| found.error.get(at).copied().unwrap_or(0.0);
    let line = Line::new()
        .log_x()
        .falling_x()
        .series("mean over the folds", points(&|at| found.mean[at]))
        .faint("one standard error above", points(&|at| found.mean[at] + error(at)))
        .faint("one standard error below", points(&|at| found.mean[at] - error(at)))
        .x_label("penalty")
        .y_label("RMSE");
    Some(match path.lambdas.get(found.chosen) {
        Some(&penalty) if penalty > 0.0 => line.marker(penalty, "chosen"),
        _ => line,
    })
}
