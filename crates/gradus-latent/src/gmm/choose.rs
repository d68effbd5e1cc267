//! The number of components, where it was left out.

use super::Gmm;
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit as _, Job};
use gradus_core::progress::Event;
use gradus_core::report::Choice;
use gradus_data::Samples;

/// The search ends when this many numbers in a row were no better than the best before them.
const PATIENCE: usize = 3;
/// Trials are made on this many samples at most.
const SAMPLES: usize = 50_000;

/// The number of components with the lowest BIC, from 1 upwards; numbers at which a component collapses are left out.
pub(super) fn choose(params: &Gmm, samples: &Samples, job: &Job<'_, Samples>) -> Result<Choice> {
    let n = samples.len();
    let some;
    let (samples, of) = if n > SAMPLES {
        let mut rows: Vec<u32> = (0..n as u32).collect();
        Stream::new(params.seed, "gmm.choose", 0).shuffle(&mut rows);
        rows.truncate(SAMPLES);
        rows.sort_unstable();
        some = samples.select_rows(&rows);
        (&some, format!(" on {SAMPLES} of the samples"))
    } else {
        (samples, String::new())
    };
    let weighty =
        samples.weights().map_or(samples.len(), |w| w.iter().filter(|w| **w > 0.0).count());
    let most = params.max_components.min(weighty);
    let (mut best, mut lowest, mut tried) = (1, f64::INFINITY, 0);
    for k in 1..=most {
        // What was found so far stands: the fit that follows is told to stop as well.
        if k > 1 && job.stop.requested() {
            break;
        }
        let what = format!("n_components = {k}");
        job.observer.notice(&Event::Choosing { model: Gmm::NAME, trial: k, what: &what });
        let trial = Gmm { n_components: Some(k), ..params.clone() };
        let fitted = trial.fit_job(samples, &Job::default().stop(job.stop.clone()))?;
        if k > 1 && job.stop.requested() {
            break;
        }
        let bic = fitted.model.bic();
        tried = k;
        // A component that collapsed has whatever likelihood the floor gives it.
        if k == 1 || (bic < lowest && fitted.model.n_collapsed() == 0) {
            (best, lowest) = (k, bic);
        } else if k >= best + PATIENCE {
            break;
        }
    }
    let reason =
        format!("the lowest BIC ({lowest:.6}) of 1 to {tried} components without a collapse{of}");
    Ok(Choice::new("n_components", best as f64, reason))
}
