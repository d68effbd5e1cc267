//! A fit to documents that are read part by part, and never kept in memory.

use super::batches::OnlineLda;
use super::{Lda, variational};
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::estimator::{Fit as _, Fitted, Job, Parts};
use gradus_core::iterate::{LoopOptions, LoopOutcome, own_loop};
use gradus_core::params::{self, Params as _};
use gradus_core::report::{Choice, StopReason};
use gradus_text::Documents;
use std::collections::BinaryHeap;
use std::time::Instant;

/// The vocabulary is that of this many documents drawn at random, and of this many bytes of text.
const DRAWN: usize = 20_000;
const BYTES: usize = 64 << 20;

/// Documents drawn at random: those with the smallest of random keys.
#[derive(Default)]
struct Drawn {
    kept: BinaryHeap<(u64, String)>,
    bytes: usize,
}

impl Drawn {
    fn add(&mut self, key: u64, text: &str) {
        let full = self.kept.len() >= DRAWN || self.bytes >= BYTES;
        if full && self.kept.peek().is_some_and(|(largest, _)| key >= *largest) {
            return;
        }
        self.bytes += text.len();
        self.kept.push((key, text.to_owned()));
        while self.kept.len() > DRAWN || (self.bytes > BYTES && self.kept.len() > 1) {
            self.bytes -= self.kept.pop().map_or(0, |(_, text)| text.len());
        }
    }
}

/// One reading counts the documents and draws those of the vocabulary; `max_iter` further ones (one, where it is left out) are
/// passes of online variational Bayes.
pub(super) fn fit(
    params: &Lda,
    parts: &mut Parts<'_, Documents>,
    job: &Job<'_, Documents>,
) -> Result<Fitted<Lda>> {
    let started = Instant::now();
    params.check()?;
    let stopped = || Error::data("lda: stopped before all documents were read once");
    let mut keys = Stream::new(params.seed, "lda.drawn", 0);
    let (mut drawn, mut n, mut name) = (Drawn::default(), 0u64, None);
    parts(&mut |part: Documents| {
        if job.stop.requested() {
            return Err(stopped());
        }
        for text in part.texts() {
            drawn.add(keys.next_u64(), text);
            n += 1;
        }
        name.get_or_insert_with(|| part.name().to_owned());
        Ok(true)
    })?;
    if n == 0 {
        return Err(Error::data("lda: there are no documents to learn from"));
    }
    let mut kept = drawn.kept.into_vec();
    kept.sort_unstable();
    let n_drawn = kept.len();
    let sample = Documents::new(kept.into_iter().map(|(_, text)| text));
    let sample = sample.named(name.unwrap_or_default());
    let mut batches = OnlineLda::new(params, n)?;
    batches.begin(&sample)?;
    drop(sample);
    let passes = params.max_iter.unwrap_or(1);
    let mut chosen = batches.chosen();
    if params.max_iter.is_none() {
        let reason = "one pass over documents that are not kept in memory";
        chosen.push(Choice::new("max_iter", passes as f64, reason));
    }
    let options = LoopOptions {
        started: Some(started),
        model: Lda::NAME,
        metric: "perplexity",
        max_iter: passes,
        seed: params.seed,
        params: params::record(params),
        chosen,
        ..LoopOptions::default()
    };
    let (model, report) = own_loop(&options, job, |fit_loop| {
        let (mut stop_reason, mut objective) = (StopReason::MaxIterations, 0.0);
        for pass in 0..passes {
            let (mut done, mut bound, mut tokens, mut whole) = (0u64, 0.0, 0.0, true);
            let mut number = 0;
            parts(&mut |part: Documents| {
                if fit_loop.stopped() {
                    whole = false;
                    return Ok(false);
                }
                let counts = batches.encode(&part)?;
                let mut order: Vec<u32> = (0..counts.n_rows() as u32).collect();
                let index = (pass as u64) << 32 | number;
                Stream::new(params.seed, "lda.order", index).shuffle(&mut order);
                number += 1;
                for rows in order.chunks(params.batch_size) {
                    let (of_batch, n_tokens) = batches.learn(&counts, rows);
                    bound += of_batch;
                    tokens += n_tokens;
                }
                done += counts.n_rows() as u64;
                fit_loop.within(done as f64 / n as f64);
                Ok(true)
            })?;
            if !whole {
                stop_reason = StopReason::Interrupted;
                if pass == 0 && tokens == 0.0 {
                    return Err(stopped());
                }
            }
            if tokens > 0.0 {
                objective = -(bound + batches.of_topics()) / tokens;
            }
            fit_loop.iteration(objective);
            if !whole {
                break;
            }
        }
        let notes = vec![format!(
            "the documents were read in parts: {n_drawn} of {n}, drawn at random, gave the vocabulary, and coherence is \
             that in them"
        )];
        let model = batches.model(n)?;
        let (validation, certificate) = (None, None);
        Ok((model, LoopOutcome { stop_reason, objective, validation, certificate, notes }))
    })?;
    Ok(Fitted { params: params.clone(), model, report })
}

/// The rate of the next batch, and what it stands for.
pub(super) fn step(updates: u64, total: u64, n: usize) -> (f64, f64) {
    (variational::rate(updates), total as f64 / n as f64)
}
