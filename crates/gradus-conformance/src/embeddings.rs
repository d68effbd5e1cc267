//! Models that give vectors of names.

use crate::data::made;
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::estimator::{AnyFitted, Estimator, Run};

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "every name has a finite vector of the same length", run: vectors },
    Check { name: "every name is found, and an unknown one is refused by name", run: names },
    Check { name: "the nearest names are those of the largest cosine", run: nearest },
    Check { name: "a vector of another length is refused by number", run: length },
];

fn fitted(model: &dyn Estimator, seed: u64) -> Result<AnyFitted, String> {
    found(model.fit(&quick(model), made(model, 90, seed)?.as_ref(), None, &Run::default()))
}

fn vectors(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model, 1)?;
    let model = found(fitted.embedding())?;
    ensure!(model.names().len() > 1, "{} names", model.names().len());
    let mut different = false;
    for at in 0..model.names().len() {
        let vector = model.vector(at);
        ensure!(vector.len() == model.dimension(), "vector {at} has {} numbers", vector.len());
        ensure!(vector.iter().all(|x| x.is_finite()), "vector {at} is not finite");
        different |= vector != model.vector(0);
    }
    ensure!(different, "all names have the same vector");
    Ok(())
}

fn names(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model, 2)?;
    let model = found(fitted.embedding())?;
    for (at, name) in model.names().iter().enumerate() {
        let place = found(model.find(&name.to_string()))?;
        ensure!(place == at, "`{name}` is at {at} and found at {place}");
    }
    let text = error_text(model.find("no such name"))?;
    ensure!(text.contains("no such name") && text.contains(model.what()), "{text:?}");
    Ok(())
}

fn nearest(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model, 3)?;
    let model = found(fitted.embedding())?;
    let of = |at: usize| model.vector(at).iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    for at in 0..model.names().len().min(20) {
        let x = of(at);
        let mut cosines: Vec<f64> = (0..model.names().len())
            .filter(|other| *other != at)
            .map(|other| {
                let y = of(other);
                let size = norm(&x) * norm(&y);
                let dot: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
                if size > 0.0 { dot / size } else { 0.0 }
            })
            .collect();
        cosines.sort_by(|a, b| b.total_cmp(a));
        for n in [0, 3, cosines.len() + 5] {
            let near = found(model.nearest(model.vector(at), n, &[at]))?;
            ensure!(near.len() == n.min(cosines.len()), "{} of {n} names", near.len());
            for (near, cosine) in near.iter().zip(&cosines) {
                ensure!(near.at != at, "name {at} is near itself");
                let off = (near.similarity - cosine).abs();
                ensure!(off < 1e-5, "{} and not {cosine} is next", near.similarity);
            }
        }
    }
    Ok(())
}

fn length(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model, 4)?;
    let model = found(fitted.embedding())?;
    let wrong = vec![1.0; model.dimension() + 3];
    let text = error_text(model.nearest(&wrong, 2, &[]))?;
    let (got, expected) = (wrong.len().to_string(), model.dimension().to_string());
    ensure!(text.contains(&got) && text.contains(&expected), "{text:?}");
    Ok(())
}
