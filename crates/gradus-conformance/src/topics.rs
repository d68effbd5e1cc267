//! Models that describe documents by topics.

use crate::data::made;
use crate::{Check, Finding, ensure, found, quick};
use gradus_core::estimator::{AnyFitted, Estimator, Run};

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "each topic is a distribution over different words", run: distributions },
    Check { name: "a mixture adds up to 1, and is the same alone and among others", run: mixtures },
    Check { name: "the top words of a topic are its most probable ones", run: top },
    Check { name: "data of another kind is refused", run: kind },
];

fn fitted(model: &dyn Estimator, seed: u64) -> Result<AnyFitted, String> {
    found(model.fit(&quick(model), made(model, 90, seed)?.as_ref(), None, &Run::default()))
}

/// Whether these are probabilities that add up to 1.
fn is_distribution(row: &[f64]) -> bool {
    row.iter().all(|p| *p >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-9
}

fn distributions(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model, 1)?;
    let model = found(fitted.topics())?;
    let topics = model.word_probabilities();
    let shape = (model.n_topics(), model.words().len());
    ensure!(topics.shape() == shape, "{:?} probabilities, not {shape:?}", topics.shape());
    for (topic, row) in topics.rows().enumerate() {
        ensure!(is_distribution(row), "topic {topic} is no distribution");
    }
    let mut words: Vec<&String> = model.words().iter().collect();
    words.sort_unstable();
    words.dedup();
    ensure!(words.len() == model.words().len(), "a word is there twice");
    Ok(())
}

fn mixtures(model: &dyn Estimator) -> Finding {
    let (fitted, data) = (fitted(model, 2)?, made(model, 30, 3)?);
    let model = found(fitted.topics())?;
    let all = found(model.mixtures(data.as_ref()))?;
    let shape = (data.len(), model.n_topics());
    ensure!(all.shape() == shape, "{:?} shares, not {shape:?}", all.shape());
    for unit in 0..data.len() {
        ensure!(is_distribution(all.row(unit)), "the mixture of document {unit}");
        let one = found(model.mixtures(data.select(&[unit as u32]).as_ref()))?;
        let off = one.row(0).iter().zip(all.row(unit)).map(|(a, b)| (a - b).abs());
        ensure!(off.fold(0.0, f64::max) < 1e-9, "document {unit} depends on the others");
    }
    Ok(())
}

fn top(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model, 4)?;
    let model = found(fitted.topics())?;
    let topics = model.word_probabilities();
    let all = model.words().len();
    for n in [1, 2, all + 5] {
        let top = model.top_words(n);
        ensure!(top.len() == topics.n_rows(), "words of {} topics", top.len());
        for (topic, words) in top.iter().enumerate() {
            let mut row = topics.row(topic).to_vec();
            row.sort_by(|a, b| b.total_cmp(a));
            let given: Vec<f64> = words.iter().map(|(_, p)| *p).collect();
            ensure!(given == row[..n.min(all)], "topic {topic}: {given:?}");
            for (word, p) in words {
                let at = model.words().iter().position(|known| known == word);
                let at = at.ok_or_else(|| format!("{word:?} is not in the vocabulary"))?;
                ensure!(topics[(topic, at)] == *p, "{word:?} has another probability");
            }
        }
    }
    Ok(())
}

fn kind(model: &dyn Estimator) -> Finding {
    use gradus_data::{Dense, Samples};
    let fitted = fitted(model, 5)?;
    let ratings = found(gradus_data::make::RatingsSpec::new(5, 5, 10).make(1))?.ratings;
    let samples = found(Samples::unlabelled(Dense::full(2, 3, 1.0)))?;
    let topics = found(fitted.topics())?;
    let refused = [
        ("ratings", topics.mixtures(&ratings).is_err()),
        ("samples", topics.mixtures(&samples).is_err()),
    ];
    for (kind, refused) in refused {
        ensure!(refused || kind == model.data().name(), "{kind} are taken as documents");
    }
    Ok(())
}
