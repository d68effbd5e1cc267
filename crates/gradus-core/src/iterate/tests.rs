//! Tests of the loop, with solvers whose course is known by hand.

use super::*;
use crate::estimator::Job;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Halves a number; the objective is its square, the score its distance from a target.
struct Halving {
    target: Option<f64>,
}

impl Solver for Halving {
    type State = Vec<f64>;
    fn start(&self, restart: usize) -> Result<Vec<f64>> {
        Ok(vec![100.0 / (1 + restart) as f64])
    }
    fn step(&self, state: &mut Vec<f64>, _: &Watch<'_>) -> Result<Step> {
        state[0] /= 2.0;
        Ok(Step::Done(state[0] * state[0]))
    }
    fn validate(&self, state: &Vec<f64>) -> Option<f64> {
        self.target.map(|target| (state[0] - target).abs())
    }
    fn write_state<'a>(&self, state: &'a Vec<f64>, prefix: &str, file: &mut Writer<'a>) {
        file.tensor(&format!("{prefix}x"), &[1], state);
    }
    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Vec<f64>> {
        file.tensor(&format!("{prefix}x"), &[1])
    }
}

fn options() -> LoopOptions<'static> {
    LoopOptions {
        started: None,
        model: "halving",
        metric: "distance",
        higher_is_better: false,
        max_iter: 10,
        tol: 0.0,
        patience: 2,
        restarts: 1,
        seed: 7,
        params: Map::new(),
        fingerprint: 1,
        chosen: vec![Choice::new("rate", 0.5, "tried")],
    }
}

fn job(checkpoint: Option<Checkpoint>, stop: Stop) -> Job<'static, ()> {
    Job { stop, checkpoint, ..Job::default() }
}

#[test]
fn it_stops_for_each_reason() {
    let plain = Halving { target: None };
    let (state, report) = run(&plain, &options(), &job(None, Stop::new())).unwrap();
    assert_eq!((report.stop_reason, report.iterations), (StopReason::MaxIterations, 10));
    assert_eq!(state, [100.0 / 1024.0]);
    let loose = LoopOptions { tol: 0.8, ..options() };
    let (_, report) = run(&plain, &loose, &job(None, Stop::new())).unwrap();
    assert_eq!((report.stop_reason, report.iterations), (StopReason::Converged, 2));
    // 50, 25, 12.5, 6.25, 3.125: the second is nearest to 24, and the patience is 2.
    let (state, report) =
        run(&Halving { target: Some(24.0) }, &options(), &job(None, Stop::new())).unwrap();
    assert_eq!((report.stop_reason, report.iterations), (StopReason::NoImprovement, 4));
    assert_eq!((state[0], report.best, report.validation), (25.0, 1, Some(1.0)));
}

/// Halves a number until it is below a limit, by a rule of its own.
struct Limited(Halving, f64, StopReason);

impl Solver for Limited {
    type State = Vec<f64>;
    fn start(&self, restart: usize) -> Result<Vec<f64>> {
        self.0.start(restart)
    }
    fn step(&self, state: &mut Vec<f64>, watch: &Watch<'_>) -> Result<Step> {
        self.0.step(state, watch)
    }
    fn ended(&self, state: &Vec<f64>) -> Option<StopReason> {
        (state[0] < self.1).then_some(self.2)
    }
    fn validate(&self, state: &Vec<f64>) -> Option<f64> {
        self.0.validate(state)
    }
    fn write_state<'a>(&self, state: &'a Vec<f64>, prefix: &str, file: &mut Writer<'a>) {
        self.0.write_state(state, prefix, file);
    }
    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Vec<f64>> {
        self.0.read_state(prefix, file)
    }
}

#[test]
fn a_solver_ends_by_a_rule_of_its_own() {
    for reason in [StopReason::Converged, StopReason::Stalled] {
        // 50, 25, 12.5, 6.25: the fourth is the first below 10. A start is not asked before its first iteration.
        let solver = Limited(Halving { target: None }, 10.0, reason);
        let (state, report) = run(&solver, &options(), &job(None, Stop::new())).unwrap();
        assert_eq!((report.stop_reason, report.iterations), (reason, 4));
        assert_eq!(state, [6.25]);
        let at_once = Limited(Halving { target: None }, 1e9, reason);
        let (_, report) = run(&at_once, &options(), &job(None, Stop::new())).unwrap();
        assert_eq!((report.stop_reason, report.iterations), (reason, 1));
        // Each of several starts ends by it.
        let two = LoopOptions { restarts: 2, ..options() };
        let (_, report) = run(&solver, &two, &job(None, Stop::new())).unwrap();
        let of = |restart: usize| report.trace.iter().filter(|p| p.restart == restart).count();
        // 25, 12.5, 6.25 of the second.
        assert_eq!((of(0), of(1)), (4, 3));
    }
}

#[test]
fn an_average_keeps_its_last_state() {
    /// Halves a number and says that the last state counts.
    struct Lasting(Halving);
    impl Solver for Lasting {
        type State = Vec<f64>;
        fn start(&self, restart: usize) -> Result<Vec<f64>> {
            self.0.start(restart)
        }
        fn step(&self, state: &mut Vec<f64>, watch: &Watch<'_>) -> Result<Step> {
            self.0.step(state, watch)
        }
        fn validate(&self, state: &Vec<f64>) -> Option<f64> {
            self.0.validate(state)
        }
        fn keeps_last(&self) -> bool {
            true
        }
        fn write_state<'a>(&self, state: &'a Vec<f64>, prefix: &str, file: &mut Writer<'a>) {
            self.0.write_state(state, prefix, file);
        }
        fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Vec<f64>> {
            self.0.read_state(prefix, file)
        }
    }
    let solver = Lasting(Halving { target: Some(24.0) });
    let patient = LoopOptions { patience: 0, ..options() };
    let (state, report) = run(&solver, &patient, &job(None, Stop::new())).unwrap();
    assert_eq!((state[0], report.best), (100.0 / 1024.0, 9));
    assert_eq!(report.validation, report.trace[9].validation);
}

#[test]
fn of_several_starts_the_best_is_kept() {
    let several = LoopOptions { restarts: 3, ..options() };
    let (state, report) =
        run(&Halving { target: None }, &several, &job(None, Stop::new())).unwrap();
    assert_eq!((state[0], report.best), (100.0 / 3.0 / 1024.0, 29));
    let (state, report) =
        run(&Halving { target: Some(26.0) }, &several, &job(None, Stop::new())).unwrap();
    // Starts: 50 25 | 25 .. | 16.7 ..: the first to reach 25 wins the tie.
    assert_eq!((state[0], report.best), (25.0, 1));
}

#[test]
fn a_fit_resumed_at_any_point_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for (target, restarts) in [(None, 1), (Some(24.0), 1), (None, 3), (Some(5.0), 2)] {
        let solver = Halving { target };
        let options = LoopOptions { restarts, ..options() };
        let (whole, expected) = run(&solver, &options, &job(None, Stop::new())).unwrap();
        for interrupted_after in (1..expected.iterations).step_by(4) {
            let path = folder.path().join("c");
            let _ = std::fs::remove_file(&path);
            let checkpoint = Checkpoint { path, every: Duration::ZERO, resume: true };
            /// Raises the flag after this many iterations.
            struct After(usize, std::sync::atomic::AtomicUsize, Stop);
            impl Observer for After {
                fn notice(&self, event: &Event<'_>) {
                    if let Event::Iteration { .. } = event {
                        let n = self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        if n + 1 == self.0 {
                            self.2.request();
                        }
                    }
                }
            }
            let stop = Stop::new();
            let after = After(interrupted_after, 0.into(), stop.clone());
            let first = Job::<()> { observer: &after, ..job(Some(checkpoint.clone()), stop) };
            let (_, report) = run(&solver, &options, &first).unwrap();
            assert_eq!(report.stop_reason, StopReason::Interrupted);
            assert_eq!(report.iterations, interrupted_after);
            let second = job(Some(checkpoint), Stop::new());
            let (state, report) = run(&solver, &options, &second).unwrap();
            assert_eq!(state, whole);
            assert_eq!((report.trace, report.best), (expected.trace.clone(), expected.best));
        }
    }
}

#[test]
fn an_objective_that_rises_has_not_converged() {
    /// Goes through a list of objectives.
    struct Listed(Vec<f64>);
    impl Solver for Listed {
        type State = Vec<f64>;
        fn start(&self, _: usize) -> Result<Vec<f64>> {
            Ok(vec![0.0])
        }
        fn step(&self, state: &mut Vec<f64>, _: &Watch<'_>) -> Result<Step> {
            state[0] += 1.0;
            Ok(Step::Done(self.0[state[0] as usize - 1]))
        }
        fn validate(&self, _: &Vec<f64>) -> Option<f64> {
            None
        }
        fn write_state<'a>(&self, state: &'a Vec<f64>, prefix: &str, file: &mut Writer<'a>) {
            file.tensor(&format!("{prefix}x"), &[1], state);
        }
        fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Vec<f64>> {
            file.tensor(&format!("{prefix}x"), &[1])
        }
    }
    let options = LoopOptions { tol: 0.01, max_iter: 6, ..options() };
    // A rise within the tolerance, a large rise, a fall within the tolerance.
    let risen = Listed(vec![10.0, 10.05, 20.0, 8.0, 7.99, 7.0]);
    let (state, report) = run(&risen, &options, &job(None, Stop::new())).unwrap();
    assert_eq!((report.stop_reason, state[0]), (StopReason::Converged, 5.0));
    let rising = Listed(vec![1.0, 1.001, 1.002, 1.003, 1.004, 1.005]);
    let (_, report) = run(&rising, &options, &job(None, Stop::new())).unwrap();
    assert_eq!(report.stop_reason, StopReason::MaxIterations);
}

#[test]
fn a_checkpoint_of_another_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let checkpoint = Checkpoint { path, every: Duration::ZERO, resume: true };
    let with = |options: &LoopOptions<'_>| {
        run(&Halving { target: None }, options, &job(Some(checkpoint.clone()), Stop::new()))
    };
    let mut params = Map::new();
    params.insert("rank".into(), 4.into());
    with(&LoopOptions { params: params.clone(), ..options() }).unwrap();
    params.insert("rank".into(), 8.into());
    let error = with(&LoopOptions { params: params.clone(), ..options() }).unwrap_err().to_string();
    assert!(error.contains("rank = 4, not 8"), "{error}");
    params.insert("rank".into(), 4.into());
    let error = with(&LoopOptions { params, fingerprint: 2, ..options() }).unwrap_err().to_string();
    assert!(error.contains("other data"), "{error}");
    let error = with(&LoopOptions { model: "x", ..options() }).unwrap_err().to_string();
    assert!(error.contains("not a checkpoint of `x`"), "{error}");
}

/// Adds 1 in two halves. Told to stop between the halves, it leaves the state half changed. Its state is
/// a weight and a moment; a snapshot holds the weight alone.
struct InHalves {
    validates: bool,
    atomic: bool,
    /// How many snapshots were taken, and how many of them had to allocate.
    snapshots: AtomicUsize,
    allocated: AtomicUsize,
}

impl InHalves {
    fn new(validates: bool, atomic: bool) -> Self {
        Self { validates, atomic, snapshots: 0.into(), allocated: 0.into() }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Network {
    weights: Vec<f64>,
    moments: Option<Vec<f64>>,
}

impl Solver for InHalves {
    type State = Network;
    fn start(&self, _: usize) -> Result<Network> {
        Ok(Network { weights: vec![0.0], moments: Some(vec![0.0]) })
    }
    fn step(&self, state: &mut Network, watch: &Watch<'_>) -> Result<Step> {
        state.weights[0] += 0.5;
        watch.within(0.5);
        if watch.stopped() {
            return Ok(if self.atomic { Step::Stopped } else { Step::Partial });
        }
        state.weights[0] += 0.5;
        state.moments.as_mut().unwrap()[0] += 1.0;
        Ok(Step::Done(1.0 / state.weights[0]))
    }
    fn validate(&self, state: &Network) -> Option<f64> {
        self.validates.then(|| (state.weights[0] - 100.0).abs())
    }
    fn measures(&self, state: &Network) -> Vec<Measure> {
        let weight = state.weights[0];
        vec![Measure::new("weight", weight), Measure::new("undefined", f64::NAN)]
    }
    fn has_atomic_steps(&self) -> bool {
        self.atomic
    }
    fn snapshot(&self, state: &Network, snapshot: &mut Option<Network>) {
        self.snapshots.fetch_add(1, Ordering::Relaxed);
        match snapshot {
            Some(snapshot) => snapshot.weights.clone_from(&state.weights),
            None => {
                self.allocated.fetch_add(1, Ordering::Relaxed);
                *snapshot = Some(Network { weights: state.weights.clone(), moments: None });
            }
        }
    }
    fn write_state<'a>(&self, state: &'a Network, prefix: &str, file: &mut Writer<'a>) {
        file.tensor(&format!("{prefix}weights"), &[1], &state.weights);
        if let Some(moments) = &state.moments {
            file.tensor(&format!("{prefix}moments"), &[1], moments);
        }
    }
    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Network> {
        let moments = format!("{prefix}moments");
        Ok(Network {
            weights: file.tensor(&format!("{prefix}weights"), &[1])?,
            moments: if file.has(&moments) { Some(file.tensor(&moments, &[1])?) } else { None },
        })
    }
}

/// Asks a fit to stop in the middle of an iteration, counted from 1; and notes what it sees.
struct InTheMiddle {
    of: usize,
    stop: Stop,
    halves: AtomicUsize,
    seen: std::sync::Mutex<Vec<Iteration>>,
}

impl Observer for InTheMiddle {
    fn notice(&self, event: &Event<'_>) {
        match event {
            Event::Within(_) if self.halves.fetch_add(1, Ordering::Relaxed) + 1 == self.of => {
                self.stop.request();
            }
            Event::Iteration { point, .. } => self.seen.lock().unwrap().push((*point).clone()),
            _ => {}
        }
    }
}

/// Runs `solver` and stops it in the middle of iteration `of`.
fn stopped_in(
    of: usize,
    solver: &InHalves,
    checkpoint: Option<Checkpoint>,
) -> Result<(Network, Report)> {
    let stop = Stop::new();
    let observer =
        InTheMiddle { of, stop: stop.clone(), halves: 0.into(), seen: Default::default() };
    run(solver, &options(), &Job::<()> { observer: &observer, ..job(checkpoint, stop) })
}

#[test]
fn further_measures_reach_the_observer_and_the_trace() {
    let solver = InHalves::new(false, true);
    let observer =
        InTheMiddle { of: 0, stop: Stop::new(), halves: 0.into(), seen: Default::default() };
    let watched = Job::<()> { observer: &observer, ..job(None, Stop::new()) };
    let (_, report) = run(&solver, &options(), &watched).unwrap();
    assert_eq!(*observer.seen.lock().unwrap(), report.trace);
    assert_eq!(report.trace[3].measures, [Measure::new("weight", 4.0)]);
    let text = serde_json::to_string(&report.trace[3]).unwrap();
    assert_eq!(serde_json::from_str::<Iteration>(&text).unwrap(), report.trace[3]);
    // Without measures the record is what it was before there were any.
    let (_, report) = run(&Halving { target: None }, &options(), &job(None, Stop::new())).unwrap();
    let text = serde_json::to_string(&report.trace[0]).unwrap();
    assert_eq!(text, r#"{"restart":0,"iteration":1,"objective":2500.0,"validation":null}"#);
    assert!(serde_json::from_str::<Iteration>(&text).unwrap().measures.is_empty());
}

#[test]
fn an_own_loop_has_measures_too() {
    let (_, report) = own_loop(&options(), &job(None, Stop::new()), |own| {
        own.iteration_with(2.0, vec![Measure::new("gap", 0.5)]);
        own.iteration(1.0);
        let outcome = LoopOutcome {
            stop_reason: StopReason::Converged,
            objective: 1.0,
            validation: None,
            certificate: None,
            notes: Vec::new(),
        };
        Ok(((), outcome))
    })
    .unwrap();
    assert_eq!((report.iterations, report.objective), (2, 1.0));
    assert_eq!(report.trace[0].measures, [Measure::new("gap", 0.5)]);
}

#[test]
fn a_snapshot_may_hold_a_part_and_use_its_memory_again() {
    let solver = InHalves::new(true, true);
    let (state, report) = run(&solver, &options(), &job(None, Stop::new())).unwrap();
    assert_eq!((state, report.best), (Network { weights: vec![10.0], moments: None }, 9));
    let counts = (solver.snapshots.into_inner(), solver.allocated.into_inner());
    assert_eq!(counts, (10, 1));
    // The default copies the state into the last snapshot.
    let plain = Halving { target: None };
    let mut snapshot = Some(vec![0.0]);
    let memory = snapshot.as_ref().map(|snapshot| snapshot.as_ptr());
    plain.snapshot(&vec![3.0], &mut snapshot);
    assert_eq!(snapshot.as_deref(), Some(&[3.0][..]));
    assert_eq!(snapshot.as_ref().map(|snapshot| snapshot.as_ptr()), memory);
}

#[test]
fn a_partial_step_falls_back_to_the_snapshot() {
    let (state, report) = stopped_in(4, &InHalves::new(true, false), None).unwrap();
    assert_eq!((report.stop_reason, report.iterations), (StopReason::Interrupted, 3));
    assert_eq!((state.weights[0], report.best), (3.0, 2));
}

#[test]
fn a_partial_step_falls_back_to_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    for validates in [false, true] {
        let path = folder.path().join(format!("c{validates}"));
        let checkpoint = Checkpoint { path, every: Duration::ZERO, resume: true };
        let solver = InHalves::new(validates, false);
        let (state, report) = stopped_in(4, &solver, Some(checkpoint.clone())).unwrap();
        assert_eq!((report.stop_reason, report.iterations), (StopReason::Interrupted, 3));
        assert_eq!((state.weights[0], report.best), (3.0, 2));
        // Resumed, the fit ends as one that was never interrupted.
        let second = job(Some(checkpoint), Stop::new());
        let (state, report) = run(&solver, &options(), &second).unwrap();
        let (whole, expected) = run(&solver, &options(), &job(None, Stop::new())).unwrap();
        assert_eq!((state, report.trace), (whole, expected.trace));
    }
}

#[test]
fn without_anything_to_fall_back_to_the_iteration_is_finished() {
    // No snapshot, no checkpoint.
    let (state, report) = stopped_in(4, &InHalves::new(false, false), None).unwrap();
    assert_eq!((report.stop_reason, report.iterations), (StopReason::Interrupted, 4));
    assert_eq!(state.weights[0], 4.0);
    // A snapshot, but a checkpoint is wanted and was not written yet: it is written after the iteration.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let checkpoint = Checkpoint { path, every: Duration::MAX, resume: true };
    let solver = InHalves::new(true, false);
    let (_, report) = stopped_in(4, &solver, Some(checkpoint.clone())).unwrap();
    assert_eq!(report.iterations, 4);
    let (state, _) = run(&solver, &options(), &job(Some(checkpoint), Stop::new())).unwrap();
    assert_eq!(state.weights[0], 10.0);
}

#[test]
fn a_partial_step_that_was_not_announced_is_an_error_without_a_snapshot() {
    /// Says that its steps are atomic, and leaves one in the middle.
    struct Careless(InHalves);
    impl Solver for Careless {
        type State = Network;
        fn start(&self, restart: usize) -> Result<Network> {
            self.0.start(restart)
        }
        fn step(&self, state: &mut Network, watch: &Watch<'_>) -> Result<Step> {
            self.0.step(state, watch)
        }
        fn validate(&self, _: &Network) -> Option<f64> {
            None
        }
        fn write_state<'a>(&self, state: &'a Network, prefix: &str, file: &mut Writer<'a>) {
            self.0.write_state(state, prefix, file);
        }
        fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Network> {
            self.0.read_state(prefix, file)
        }
    }
    let stop = Stop::new();
    let observer =
        InTheMiddle { of: 4, stop: stop.clone(), halves: 0.into(), seen: Default::default() };
    let watched = Job::<()> { observer: &observer, ..job(None, stop) };
    let error = run(&Careless(InHalves::new(false, false)), &options(), &watched).unwrap_err();
    assert!(error.to_string().contains("no earlier state was kept"), "{error}");
}

#[test]
fn a_checkpoint_of_version_0_1_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let state = vec![25.0];
    let mut file = Writer::new("halving.checkpoint");
    file.set("params", &Map::<String, Value>::new());
    file.set("fingerprint", &1u64);
    let point = |iteration: usize, objective: f64| serde_json::json!({"restart": 0, "iteration": iteration, "objective": objective, "validation": null});
    let trace = [point(1, 2500.0), point(2, 625.0)];
    file.set(
        "course",
        &serde_json::json!({"restart": 0, "iteration": 2, "trace": trace, "clock": [0.1, 0.2]}),
    );
    file.set("best", &None::<usize>);
    let solver = Halving { target: None };
    solver.write_state(&state, "state.", &mut file);
    file.save(&path).unwrap();
    let checkpoint = Checkpoint { path, every: Duration::MAX, resume: true };
    let (state, report) = run(&solver, &options(), &job(Some(checkpoint), Stop::new())).unwrap();
    let (whole, expected) = run(&solver, &options(), &job(None, Stop::new())).unwrap();
    assert_eq!((state, report.trace), (whole, expected.trace));
}
