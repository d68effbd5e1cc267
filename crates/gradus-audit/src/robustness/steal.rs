//! Model stealing (Papernot et al., 2017): a surrogate is trained on the decisions of a model at rows of one's own and between them.

use super::classifier::Classifier;
use super::space::Space;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::AnyFitted;
use gradus_data::{Dense, Id, Matrix, Samples};

/// Noise on rows between rows, in units of the features' deviations.
const NOISE: f64 = 0.3;
/// Rows that are classified at once.
const BATCH: usize = 512;
/// Queries whose decisions are held back to measure how often the surrogate agrees: one in so many.
const HELD: usize = 10;

/// A surrogate.
pub struct Stolen {
    /// The surrogate.
    pub model: AnyFitted,
    /// Decisions that the model was asked for.
    pub queries: usize,
    /// The share of decisions, held back from training, in which the surrogate agrees.
    pub agreement: f64,
}

/// Asks a model for `queries` decisions, at most, at rows like `own` (the rows themselves, then points between two of them with noise),
/// and trains a surrogate on them with `fit`. Classes are numbered as those of the model.
///
/// # Errors
/// If there are no rows, fewer than 20 queries, the model decides for fewer than two classes, or the fit fails.
pub fn steal(
    victim: &dyn Classifier,
    space: &Space,
    own: &Dense<f64>,
    queries: usize,
    seed: u64,
    fit: &dyn Fn(&Samples) -> Result<AnyFitted>,
) -> Result<Stolen> {
    let (n, d) = own.shape();
    if n == 0 {
        return Err(Error::data("no rows of one's own to ask the model about"));
    }
    if queries < 20 {
        return Err(Error::parameter("queries", queries, "a surrogate needs 20 decisions or more"));
    }
    let deviation: Vec<f64> = (0..d)
        .map(|at| {
            let mean = own.column(at).sum::<f64>() / n as f64;
            (own.column(at).map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64).sqrt()
        })
        .collect();
    let movable: Vec<bool> =
        (0..d).map(|at| space.unit[at] > 0.0 && space.category_of(at).is_none()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    Stream::new(seed, "audit.steal.order", 0).shuffle(&mut order);
    let mut rows = Dense::full(queries, d, 0.0);
    parallel::each_row(rows.values_mut(), d.max(1), |row, out| {
        let mut stream = Stream::new(seed, "audit.steal", row as u64);
        out.copy_from_slice(own.row(order[row % n]));
        if row < n {
            return;
        }
        let other = own.row(order[stream.index(n)]);
        let share = stream.uniform();
        for at in (0..d).filter(|&at| movable[at]) {
            let between =
                out[at] + share * (other[at] - out[at]) + NOISE * deviation[at] * stream.normal();
            out[at] = between.max(space.low[at]).min(space.high[at]);
            if space.integer[at] {
                out[at] = out[at].round();
            }
        }
    });
    let all: Vec<u32> = (0..queries as u32).collect();
    let rows = Matrix::Dense(rows);
    let mut classes = Vec::with_capacity(queries);
    for part in all.chunks(BATCH) {
        classes.extend(victim.decide(&rows.select_rows(part))?);
    }
    let (held, kept): (Vec<u32>, Vec<u32>) =
        all.iter().partition(|&&row| (row as usize).is_multiple_of(HELD));
    // Every class of the model has a label, so that the numbers of the classes agree, even where none was decided for.
    let labels: Vec<Id<'_>> = (0..victim.n_classes() as i64).map(Id::Int).collect();
    let (_, labels) = gradus_data::numbered(&labels);
    let codes: Vec<u32> = kept.iter().map(|&row| classes[row as usize]).collect();
    let samples =
        Samples::new(rows.select_rows(&kept), gradus_data::Target::Classes { codes, labels })?;
    let model = fit(&samples)?;
    let decided = model.predictor()?.classes(&rows.select_rows(&held))?;
    let agrees =
        held.iter().zip(&decided).filter(|(row, class)| classes[**row as usize] == **class).count();
    Ok(Stolen { model, queries, agreement: agrees as f64 / held.len().max(1) as f64 })
}
