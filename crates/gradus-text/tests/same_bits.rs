//! The bytes of a model depend neither on the number of threads nor on whether the fit was stopped on the way: every loss and
//! every solver.

use gradus_base::random::Stream;
use gradus_core::estimator::{Fit, Job, Model};
use gradus_core::iterate::Checkpoint;
use gradus_core::progress::{Event, Observer, Stop};
use gradus_core::report::StopReason;
use gradus_file::Writer;
use gradus_text::{
    Cbow, Doc2Vec, Documents, Glove, GloveSolver, Ppmi, Sif, Skipgram, Word2vecLoss,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Stops a fit after two iterations.
struct AfterTwo(Stop, AtomicUsize);

impl Observer for AfterTwo {
    fn notice(&self, event: &Event<'_>) {
        if matches!(event, Event::Iteration { .. }) && self.1.fetch_add(1, Ordering::Relaxed) == 1 {
            self.0.request();
        }
    }
}

fn documents() -> Documents {
    let mut stream = Stream::new(4, "resumed.test", 0);
    let text = |_| (0..30).map(|_| format!("w{} ", stream.index(50))).collect::<String>();
    Documents::new((0..120).map(text).collect::<Vec<_>>())
}

fn bytes(model: &impl Model) -> Vec<u8> {
    let mut file = Writer::new("model");
    model.write(&mut file);
    file.to_bytes().unwrap()
}

fn check_resumed<P: Fit<Data = Documents>>(what: &str, params: &P) {
    let documents = documents();
    let whole = params.fit(&documents).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let checkpoint = Checkpoint { path, every: Duration::MAX, resume: true };
    let stop = Stop::new();
    let observer = AfterTwo(stop.clone(), AtomicUsize::new(0));
    let checkpoint = Some(checkpoint);
    let job = Job { observer: &observer, stop, checkpoint: checkpoint.clone(), ..Job::default() };
    let part = params.fit_job(&documents, &job).unwrap();
    assert_eq!(part.report.stop_reason, StopReason::Interrupted, "{what}");
    assert_eq!(part.report.iterations, 2, "{what}");
    assert_ne!(bytes(&part.model), bytes(&whole.model), "{what}");
    let job = Job { checkpoint, ..Job::default() };
    let rest = params.fit_job(&documents, &job).unwrap();
    assert_eq!(bytes(&rest.model), bytes(&whole.model), "{what}");
}

fn check_threads<P: Fit<Data = Documents>>(what: &str, params: &P) {
    let documents = documents();
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| bytes(&params.fit(&documents).unwrap().model))
    };
    let one = fit(1);
    assert!(fit(2) == one && fit(7) == one, "{what}");
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for loss in [Word2vecLoss::Negative, Word2vecLoss::Softmax, Word2vecLoss::Hierarchical] {
        let skipgram = Skipgram::new().dimension(6).max_iter(2).loss(loss);
        check_threads(&format!("skipgram {loss:?}"), &skipgram);
        check_threads(&format!("cbow {loss:?}"), &Cbow::new().dimension(6).max_iter(2).loss(loss));
    }
    for solver in [GloveSolver::AdaGrad, GloveSolver::Als] {
        let glove = Glove::new().dimension(6).max_iter(3).solver(solver);
        check_threads(&format!("glove {solver:?}"), &glove);
    }
    check_threads("ppmi", &Ppmi::new().dimension(6));
    check_threads("sif", &Sif::new().dimension(6));
    check_threads("doc2vec", &Doc2Vec::new().dimension(6).max_iter(2));
}

#[test]
fn a_fit_that_was_stopped_goes_on_to_the_same_bytes() {
    for loss in [Word2vecLoss::Negative, Word2vecLoss::Softmax, Word2vecLoss::Hierarchical] {
        check_resumed(&format!("skipgram {loss:?}"), &Skipgram::new().dimension(6).loss(loss));
        check_resumed(&format!("cbow {loss:?}"), &Cbow::new().dimension(6).loss(loss));
    }
    for solver in [GloveSolver::AdaGrad, GloveSolver::Als] {
        check_resumed(
            &format!("glove {solver:?}"),
            &Glove::new().dimension(6).solver(solver).max_iter(5),
        );
    }
    check_resumed("doc2vec", &Doc2Vec::new().dimension(6).max_iter(5));
}
