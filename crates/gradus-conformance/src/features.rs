//! Models that transform features, or tell how their outputs depend on them.

use crate::data::made;
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::dataset::{DataKind as _, Dataset};
use gradus_core::estimator::{AnyFitted, Estimator, Run, Traits};
use gradus_data::{Dense, Matrix, Ratings, Samples};

/// The checks on models that transform features.
pub const TRANSFORMING: &[Check] = &[
    Check { name: "a row is transformed alike alone and among others", run: row_by_row },
    Check { name: "transformed, back and transformed again is transformed once", run: inverse },
    Check { name: "another number of features is refused by number", run: width_transformed },
    Check { name: "data of another kind is refused by name", run: other_kind },
    Check { name: "transformed features are finite, and each has a name", run: named },
];

/// The checks on models that have a gradient with respect to their features.
pub const GRADIENT: &[Check] = &[
    Check { name: "the gradient is that of the scores, by differences", run: differences },
    Check { name: "a sum of scores has the sum of their gradients", run: weighted },
    Check { name: "an output that is not there is refused", run: no_output },
];

fn fitted(model: &dyn Estimator, seed: u64) -> Result<(AnyFitted, Matrix), String> {
    let data = made(model, 90, seed)?;
    let fitted = found(model.fit(&quick(model), data.as_ref(), None, &Run::default()))?;
    let other = made(model, 30, seed + 1)?;
    let features = match fitted.predictor() {
        Ok(predictor) => found(predictor.samples(other.as_ref()))?.features().clone(),
        Err(_) => found(other.of_kind::<Samples>())?.features().clone(),
    };
    Ok((fitted, features))
}

/// A fitted model, and other data of its kind.
fn with_data(model: &dyn Estimator, seed: u64) -> Result<(AnyFitted, Box<dyn Dataset>), String> {
    let data = made(model, 90, seed)?;
    let fitted = found(model.fit(&quick(model), data.as_ref(), None, &Run::default()))?;
    Ok((fitted, made(model, 30, seed + 1)?))
}

fn row_by_row(model: &dyn Estimator) -> Finding {
    let (fitted, data) = with_data(model, 1)?;
    let model = found(fitted.transformer())?;
    let all = found(model.transform_data(data.as_ref()))?;
    ensure!(all.n_rows() == data.len(), "{} rows of {}", all.n_rows(), data.len());
    for row in 0..data.len() as u32 {
        let one = found(model.transform_data(data.select(&[row]).as_ref()))?;
        ensure!(one == all.select_rows(&[row]), "row {row} depends on the others");
    }
    Ok(())
}

fn other_kind(model: &dyn Estimator) -> Finding {
    let (fitted, _) = with_data(model, 7)?;
    let other = found(Ratings::example(20, 1, &Traits::RECOMMENDER))?;
    let text = error_text(found(fitted.transformer())?.transform_data(&other))?;
    ensure!(text.contains("ratings"), "{text:?}");
    Ok(())
}

fn named(model: &dyn Estimator) -> Finding {
    let (fitted, data) = with_data(model, 2)?;
    let model = found(fitted.transformer())?;
    let z = found(model.transform_data(data.as_ref()))?;
    let mut names = model.output_names();
    ensure!(names.len() == z.n_cols(), "{} names of {} features", names.len(), z.n_cols());
    names.sort_unstable();
    names.dedup();
    ensure!(names.len() == z.n_cols(), "two features have one name");
    ensure!(z.values().iter().all(|z| z.is_finite()), "a transformed feature is not finite");
    Ok(())
}

fn inverse(model: &dyn Estimator) -> Finding {
    // Only features are transformed back.
    if model.data().name() != Samples::NAME {
        return Ok(());
    }
    let (fitted, x) = fitted(model, 3)?;
    let model = found(fitted.transformer())?;
    let z = found(model.transform(&x))?;
    let Some(back) = model.inverse(&z) else { return Ok(()) };
    let back = found(back)?;
    ensure!(back.shape() == (x.n_rows(), x.n_cols()), "back it has another shape");
    ensure!(back.values().iter().all(|x| x.is_finite()), "back a number is not finite");
    if !model.inverse_is_exact() {
        // Then what comes back is nearer to the samples than their means are.
        let dense = x.to_dense();
        let n = dense.n_rows() as f64;
        let (mut rest, mut all) = (0.0, 0.0);
        for column in 0..dense.n_cols() {
            let mean = dense.column(column).sum::<f64>() / n;
            all += dense.column(column).map(|x| (x - mean).powi(2)).sum::<f64>();
            rest += dense
                .column(column)
                .zip(back.column(column))
                .map(|(a, b)| (a - b).powi(2))
                .sum::<f64>();
        }
        ensure!(rest < all, "the reconstruction is further off ({rest}) than the mean ({all})");
        return Ok(());
    }
    let again = found(model.transform(&Matrix::from(back)))?;
    let size = z.values().iter().fold(1e-9f64, |most, z| most.max(z.abs()));
    for (a, b) in z.values().iter().zip(again.values()) {
        ensure!((a - b).abs() <= 1e-6 * size, "{a} became {b}");
    }
    Ok(())
}

fn width_transformed(model: &dyn Estimator) -> Finding {
    let (fitted, _) = with_data(model, 4)?;
    let n = found(fitted.transformer())?.inputs().n_features();
    let wrong = Matrix::from(Dense::from_fn(2, n + 3, |_, _| 1.0));
    let text = error_text(found(fitted.transformer())?.transform(&wrong))?;
    let (got, expected) = ((n + 3).to_string(), n.to_string());
    ensure!(text.contains(&got) && text.contains(&expected), "{text:?}");
    Ok(())
}

/// Steps of differences, and how exact these are. Networks compute in single precision, which a small step is lost in, and
/// have kinks, which a large step goes over: each derivative has to be that of one of the steps.
const STEPS: [(f64, f64); 4] = [(1e-5, 1e-4), (3e-4, 3e-2), (3e-3, 3e-2), (3e-2, 3e-2)];

fn differences(model: &dyn Estimator) -> Finding {
    let exact = !model.traits().early_stopping;
    let steps = if exact { &STEPS[..1] } else { &STEPS[1..] };
    let (fitted, x) = fitted(model, 5)?;
    let (gradient, predict) = (found(fitted.gradient())?, found(fitted.predictor())?);
    let x = x.to_dense();
    let moved = |column: usize, by: f64| {
        let at = |row, col| x[(row, col)] + if col == column { by } else { 0.0 };
        let moved = Dense::from_fn(x.n_rows(), x.n_cols(), at);
        found(predict.scores(&Matrix::from(moved)))
    };
    for output in 0..gradient.n_outputs() {
        let exact = found(gradient.input_gradient(&Matrix::from(x.clone()), output))?;
        ensure!(exact.shape() == x.shape(), "a gradient of another shape");
        let size = exact.values().iter().fold(1e-6f64, |most, g| most.max(g.abs()));
        for column in 0..x.n_cols() {
            let mut differences = Vec::new();
            for &(step, tolerance) in steps {
                differences.push((moved(column, step)?, moved(column, -step)?, step, tolerance));
            }
            for row in 0..x.n_rows() {
                let rise = |(up, down, step, tolerance): &(Dense<f64>, Dense<f64>, f64, f64)| {
                    ((up[(row, output)] - down[(row, output)]) / (2.0 * step), *tolerance)
                };
                let found: Vec<(f64, f64)> = differences.iter().map(rise).collect();
                let exact = exact[(row, column)];
                let right =
                    |(rise, tolerance): &(f64, f64)| (rise - exact).abs() <= tolerance * size;
                ensure!(found.iter().any(right), "{found:?} by differences, {exact}");
            }
        }
    }
    Ok(())
}

/// Scores and the gradient of a weighted sum in one pass are those of two, and coefficients are the gradients.
fn weighted(model: &dyn Estimator) -> Finding {
    let (fitted, x) = fitted(model, 5)?;
    let (gradient, predict) = (found(fitted.gradient())?, found(fitted.predictor())?);
    let scores = found(predict.scores(&x))?;
    let k = gradient.n_outputs();
    let weight = |row: usize, output: usize| ((3 * row + 7 * output) % 5) as f64 - 2.0;
    let mut expected = Dense::full(x.n_rows(), x.n_cols(), 0.0);
    for output in 0..k {
        let one = found(gradient.input_gradient(&x, output))?;
        for row in 0..x.n_rows() {
            let sum = expected.row_mut(row).iter_mut().zip(one.row(row));
            sum.for_each(|(sum, g)| *sum += weight(row, output) * g);
        }
        if let Some(affine) = gradient.affine() {
            ensure!(one.row(0) == affine.coefficients.row(output), "coefficients of {output}");
        }
    }
    let mut weigh = |first: usize, scores: &Dense<f64>| {
        Dense::from_fn(scores.n_rows(), scores.n_cols(), |row, output| weight(first + row, output))
    };
    let Some(both) = found(gradient.scores_and_gradient(&x, &mut weigh))? else { return Ok(()) };
    ensure!(both.scores.shape() == scores.shape(), "scores of another shape");
    let size = expected.values().iter().fold(1e-6f64, |most, g| most.max(g.abs()));
    for (a, b) in both.gradient.values().iter().zip(expected.values()) {
        ensure!((a - b).abs() <= 1e-4 * size, "{a} in one pass, {b} in several");
    }
    let size = scores.values().iter().fold(1e-6f64, |most, s| most.max(s.abs()));
    for (a, b) in both.scores.values().iter().zip(scores.values()) {
        ensure!((a - b).abs() <= 1e-5 * size, "a score of {a} in one pass, {b} alone");
    }
    Ok(())
}

fn no_output(model: &dyn Estimator) -> Finding {
    let (fitted, x) = fitted(model, 6)?;
    let gradient = found(fitted.gradient())?;
    error_text(gradient.input_gradient(&x, gradient.n_outputs()))?;
    Ok(())
}
