//! The loop that every iterative fit shares: trace, stopping, restarts, checkpoints, Ctrl-C.
//!
//! A model implements [`Solver`]: how to start, how to take one step, how to keep its state in a
//! file. [`run`] does the rest and gives the best state with the [`Report`]. Because the loop is in
//! one place, every model stops for the same reasons, resumes to the same bits and keeps the best
//! iterate in the same way.

use crate::estimator::Job;
use crate::progress::{Event, Observer, Silent, Stop};
use crate::report::{Certificate, Iteration, Report, StopReason};
use gradus_base::{Error, Result};
use gradus_file::output::{self, FileKind};
use gradus_file::{Reader, Writer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where and how often the state of a fit is kept.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The file. Whoever asked for it removes it when the fit is done: [`Checkpoint::remove`].
    pub path: PathBuf,
    /// Time between two writes at least; zero writes after every iteration, [`Duration::MAX`] only
    /// when the fit is interrupted.
    pub every: Duration,
    /// Go on from the file if it is there.
    pub resume: bool,
}

impl Checkpoint {
    /// Refuses a file that is there and is no checkpoint.
    ///
    /// # Errors
    /// If it is something else, or cannot be read.
    pub fn check(&self) -> Result<()> {
        match FileKind::of(&self.path)? {
            Some(FileKind::Checkpoint) | None => Ok(()),
            Some(found) => Err(Error::format(
                &self.path,
                format!("exists and is {found}, not {}; it is left as it is", FileKind::Checkpoint),
            )),
        }
    }

    /// Removes the file, if it is a checkpoint.
    ///
    /// # Errors
    /// If it is something else, or the system refuses.
    pub fn remove(&self) -> Result<()> {
        self.check()?;
        output::remove(&self.path)
    }
}

/// One iterative algorithm, bound to its data.
pub trait Solver {
    /// Everything that changes from step to step.
    type State: Clone;

    /// The state to begin with; `restart` counts the random starts from 0.
    fn start(&self, restart: usize) -> Result<Self::State>;

    /// One iteration: the objective after it, or `None` if [`Watch::stopped`] told it to leave.
    /// In that case the state must be as it was before.
    fn step(&self, state: &mut Self::State, watch: &Watch<'_>) -> Result<Option<f64>>;

    /// The held-out score, if there is held-out data: an error, or a score under
    /// [`Rules::higher_is_better`].
    fn validate(&self, state: &Self::State) -> Option<f64>;

    /// Whether the steps depend on the number of iterations asked for, as those of a schedule do
    /// that ends with the last one. If so, a fit cannot be resumed with another number.
    fn depends_on_max_iter(&self) -> bool {
        false
    }

    /// The held-out score of the state that is kept, where [`validate`](Self::validate) looks at a
    /// sample of the held-out data only; `None` where the two are the same.
    fn validate_kept(&self, state: &Self::State) -> Option<f64> {
        let _ = state;
        None
    }

    /// Whether the last state is the result, whatever its score: true of an average that every
    /// further iteration completes. Otherwise the best one is.
    fn keeps_last(&self) -> bool {
        false
    }

    /// Puts the state into a file under names that begin with `prefix`.
    fn write_state<'a>(&self, state: &'a Self::State, prefix: &str, file: &mut Writer<'a>);

    /// Reads it back.
    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<Self::State>;
}

/// What a step may ask and tell while it runs.
pub struct Watch<'a> {
    stop: &'a Stop,
    observer: &'a dyn Observer,
}

impl Watch<'static> {
    /// Nobody watches: to call a solver's step by hand.
    pub fn unwatched() -> Self {
        static NEVER: std::sync::LazyLock<Stop> = std::sync::LazyLock::new(Stop::new);
        Self { stop: &NEVER, observer: &Silent }
    }
}

impl Watch<'_> {
    /// Whether to leave at once.
    pub fn stopped(&self) -> bool {
        self.stop.requested()
    }

    /// Tells the share of this iteration that is done.
    pub fn within(&self, share: f64) {
        self.observer.notice(&Event::Within(share));
    }
}

/// When the loop ends, and what it is called.
#[derive(Clone, Debug, Default)]
pub struct Rules<'a> {
    /// When the fit began, if before the loop: its preparations count as time of the fit.
    pub since: Option<Instant>,
    /// The model's name.
    pub model: &'a str,
    /// What the held-out score measures.
    pub metric: &'a str,
    /// Whether a larger held-out score is better: true of NDCG, false of RMSE.
    pub higher_is_better: bool,
    /// Iterations at most, for each start.
    pub max_iter: usize,
    /// Ends when the objective falls by less than this share of itself.
    pub tol: f64,
    /// Ends when the held-out score has not improved for so many iterations; 0 never ends so.
    pub patience: usize,
    /// How many random starts; the best is kept.
    pub restarts: usize,
    /// The seed, for the report.
    pub seed: u64,
    /// The parameters, so that a checkpoint of another fit is not taken up.
    pub params: Map<String, Value>,
    /// A fingerprint of the data, for the same reason.
    pub fingerprint: u64,
}

/// Where the loop stands; kept in the checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Course {
    restart: usize,
    /// Iterations done in the current start.
    iteration: usize,
    trace: Vec<Iteration>,
    clock: Vec<f64>,
    /// The point of the trace whose state is set aside; kept under a name of its own.
    #[serde(skip)]
    best: Option<usize>,
}

impl Course {
    /// The badness of a point: its held-out score if there is one, else the objective.
    fn badness(&self, at: usize, rules: &Rules<'_>) -> f64 {
        let point = &self.trace[at];
        match point.validation {
            Some(score) if rules.higher_is_better => -score,
            Some(score) => score,
            None => point.objective,
        }
    }

    /// Why the current start is over, if it is.
    fn over(&self, rules: &Rules<'_>) -> Option<StopReason> {
        let last = self.trace.len().checked_sub(1).filter(|_| self.iteration > 0)?;
        let first = self.trace.len() - self.iteration;
        let best = (first..=last)
            .min_by(|&a, &b| self.badness(a, rules).total_cmp(&self.badness(b, rules)))?;
        if self.trace[last].validation.is_some()
            && rules.patience > 0
            && last - best >= rules.patience
        {
            return Some(StopReason::NoImprovement);
        }
        if rules.tol > 0.0 && last > first {
            let before = self.trace[last - 1].objective;
            let fall = before - self.trace[last].objective;
            // A method that may rise has not converged because it rose.
            if (0.0..=rules.tol * before.abs()).contains(&fall) {
                return Some(StopReason::Converged);
            }
        }
        (self.iteration >= rules.max_iter).then_some(StopReason::MaxIterations)
    }
}

/// A solver with the state it has reached and the best one set aside: what the loop knows of them, so that it is
/// compiled once for all solvers.
trait Reached {
    fn start(&mut self, restart: usize) -> Result<()>;
    fn step(&mut self, watch: &Watch<'_>) -> Result<Option<f64>>;
    fn validate(&self) -> Option<f64>;
    fn validate_kept(&self, best: bool) -> Option<f64>;
    fn keeps_last(&self) -> bool;
    fn set_aside(&mut self);
    fn write<'a>(&'a self, file: &mut Writer<'a>);
}

struct States<'s, S: Solver> {
    solver: &'s S,
    state: S::State,
    best: Option<S::State>,
}

impl<S: Solver> Reached for States<'_, S> {
    fn start(&mut self, restart: usize) -> Result<()> {
        self.state = self.solver.start(restart)?;
        Ok(())
    }

    fn step(&mut self, watch: &Watch<'_>) -> Result<Option<f64>> {
        self.solver.step(&mut self.state, watch)
    }

    fn validate(&self) -> Option<f64> {
        self.solver.validate(&self.state)
    }

    fn validate_kept(&self, best: bool) -> Option<f64> {
        let best = self.best.as_ref().filter(|_| best);
        self.solver.validate_kept(best.unwrap_or(&self.state))
    }

    fn keeps_last(&self) -> bool {
        self.solver.keeps_last()
    }

    fn set_aside(&mut self) {
        self.best = Some(self.state.clone());
    }

    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.solver.write_state(&self.state, "state.", file);
        if let Some(best) = &self.best {
            self.solver.write_state(best, "best.", file);
        }
    }
}

/// Runs a solver to its end and gives the best state with the report.
///
/// With held-out data the best state is the one with the best held-out score; without, it is the
/// last one of a start, and over several starts the one whose last objective is smallest. A solver
/// that [keeps its last state](Solver::keeps_last) gives that one of each start.
pub fn run<S: Solver, D>(
    solver: &S,
    rules: &Rules<'_>,
    job: &Job<'_, D>,
) -> Result<(S::State, Report)> {
    let watch = Watch { stop: &job.stop, observer: job.observer };
    let checkpoint = job.checkpoint.as_ref();
    let (course, mut states) =
        match open_checkpoint(rules, checkpoint, solver.depends_on_max_iter())? {
            Some((mut file, course)) => {
                let best =
                    course.best.map(|_| solver.read_state("best.", &mut file)).transpose()?;
                let state = solver.read_state("state.", &mut file)?;
                file.verify()?;
                let (restart, iteration) = (course.restart, course.iteration);
                job.observer.notice(&Event::Resumed { restart, iteration });
                (course, States { solver, state, best })
            }
            None => (Course::default(), States { solver, state: solver.start(0)?, best: None }),
        };
    let (report, keeps_best) = repeat(&mut states, course, rules, &watch, checkpoint)?;
    Ok((states.best.filter(|_| keeps_best).unwrap_or(states.state), report))
}

/// The loop. Gives the report, and whether the state that was set aside is the result.
fn repeat(
    states: &mut dyn Reached,
    mut course: Course,
    rules: &Rules<'_>,
    watch: &Watch<'_>,
    checkpoint: Option<&Checkpoint>,
) -> Result<(Report, bool)> {
    // What cannot be kept is no reason to throw away what was computed.
    let keep = |course: &Course, states: &dyn Reached| {
        if let Some(checkpoint) = checkpoint {
            let failure = write_checkpoint(rules, checkpoint, course, states).err();
            watch.observer.notice(&Event::Checkpoint { failure: failure.as_ref() });
        }
    };
    let before = course.clock.last().copied().unwrap_or(0.0);
    let begun = rules.since.unwrap_or_else(Instant::now);
    let mut written = Instant::now();
    watch.observer.notice(&Event::Started {
        model: rules.model,
        max_iterations: rules.max_iter * rules.restarts,
        done: course.restart * rules.max_iter + course.iteration,
    });

    let stop_reason = loop {
        if let Some(reason) = course.over(rules) {
            if course.restart + 1 >= rules.restarts {
                break reason;
            }
            set_aside(&mut course, rules, states);
            course.restart += 1;
            course.iteration = 0;
            states.start(course.restart)?;
        }
        let step = if watch.stopped() { None } else { states.step(watch)? };
        let Some(objective) = step else {
            // Before the first iteration there is nothing to keep.
            if !course.trace.is_empty() {
                keep(&course, states);
            }
            break StopReason::Interrupted;
        };
        if !objective.is_finite() {
            return Err(Error::data(format!(
                "{}: the objective became {objective} in iteration {}: the values are too large",
                rules.model,
                course.iteration + 1
            )));
        }
        course.iteration += 1;
        let (restart, iteration) = (course.restart, course.iteration);
        let validation = states.validate();
        let point = Iteration { restart, iteration, objective, validation };
        let seconds = before + begun.elapsed().as_secs_f64();
        watch.observer.notice(&Event::Iteration { point: &point, metric: rules.metric, seconds });
        course.trace.push(point);
        course.clock.push(seconds);
        if validation.is_some() && !states.keeps_last() {
            set_aside(&mut course, rules, states);
        }
        if checkpoint.is_some_and(|checkpoint| written.elapsed() >= checkpoint.every) {
            keep(&course, states);
            written = Instant::now();
        }
    };
    // A fit that only ran out of iterations can go on with more.
    let kept = checkpoint.is_some_and(|checkpoint| checkpoint.every < Duration::MAX);
    if kept && stop_reason == StopReason::MaxIterations {
        keep(&course, states);
    }
    watch.observer.notice(&Event::Finished);

    let last = course.trace.len().checked_sub(1).ok_or_else(|| {
        Error::data(format!("{}: interrupted before the first iteration was done", rules.model))
    })?;
    let best = course.best.filter(|&at| {
        course.iteration == 0 || course.badness(at, rules) <= course.badness(last, rules)
    });
    let at = best.unwrap_or(last);
    let report = Report {
        iterations: course.trace.len(),
        stop_reason,
        objective: course.trace[at].objective,
        validation: states.validate_kept(best.is_some()).or(course.trace[at].validation),
        metric: rules.metric.to_owned(),
        higher_is_better: rules.higher_is_better,
        best: at,
        seed: rules.seed,
        baselines: Vec::new(),
        certificate: None,
        notes: Vec::new(),
        training: None,
        seconds: before + begun.elapsed().as_secs_f64(),
        clock: course.clock,
        trace: course.trace,
    };
    Ok((report, best.is_some()))
}

/// Runs a fit that has a closed form, telling the observer as [`run`] would: one iteration.
///
/// `solve` gives what was found, the objective and the held-out score.
pub fn direct<T, D>(
    rules: &Rules<'_>,
    job: &Job<'_, D>,
    solve: impl FnOnce() -> Result<(T, f64, Option<f64>)>,
) -> Result<(T, Report)> {
    let begun = rules.since.unwrap_or_else(Instant::now);
    job.observer.notice(&Event::Started { model: rules.model, max_iterations: 1, done: 0 });
    let (found, objective, validation) = solve()?;
    let seconds = begun.elapsed().as_secs_f64();
    let point = Iteration { restart: 0, iteration: 1, objective, validation };
    job.observer.notice(&Event::Iteration { point: &point, metric: rules.metric, seconds });
    job.observer.notice(&Event::Finished);
    let report = Report {
        iterations: 1,
        stop_reason: StopReason::Solved,
        objective,
        validation,
        metric: rules.metric.to_owned(),
        higher_is_better: rules.higher_is_better,
        best: 0,
        seed: rules.seed,
        baselines: Vec::new(),
        certificate: None,
        notes: Vec::new(),
        training: None,
        seconds,
        clock: vec![seconds],
        trace: vec![point],
    };
    Ok((found, report))
}

/// What a fit with a loop of its own tells while it runs; see [`guided`].
pub struct Guide<'a> {
    rules: &'a Rules<'a>,
    watch: Watch<'a>,
    begun: Instant,
    trace: Vec<Iteration>,
    clock: Vec<f64>,
}

impl Guide<'_> {
    /// The model's name.
    pub fn model(&self) -> &str {
        self.rules.model
    }

    /// Whether to leave at once, with the best so far.
    pub fn stopped(&self) -> bool {
        self.watch.stopped()
    }

    /// The flag that [`stopped`](Self::stopped) reads, to hand on.
    pub fn stop(&self) -> &Stop {
        self.watch.stop
    }

    /// Tells the share of the current iteration that is done.
    pub fn within(&self, share: f64) {
        self.watch.within(share);
    }

    /// Tells that an iteration is done.
    pub fn iteration(&mut self, objective: f64) {
        let iteration = self.trace.len() + 1;
        let point = Iteration { restart: 0, iteration, objective, validation: None };
        let seconds = self.begun.elapsed().as_secs_f64();
        let metric = self.rules.metric;
        self.watch.observer.notice(&Event::Iteration { point: &point, metric, seconds });
        self.trace.push(point);
        self.clock.push(seconds);
    }
}

/// How a fit with a loop of its own ended; see [`guided`].
pub struct Ending {
    /// Why.
    pub stop_reason: StopReason,
    /// The objective at the end.
    pub objective: f64,
    /// The held-out score at the end, if there was held-out data.
    pub validation: Option<f64>,
    /// How far from the best it can be.
    pub certificate: Option<Certificate>,
    /// Things worth knowing.
    pub notes: Vec<String>,
}

/// Runs a fit that has a loop of its own, too short or too intricate to be cut into steps that can
/// be kept: it tells the observer of its iterations and looks at the stop flag, and is begun anew
/// instead of resumed, to the same result.
///
/// # Errors
/// Those of `solve`; and if its objective is not finite.
pub fn guided<T, D>(
    rules: &Rules<'_>,
    job: &Job<'_, D>,
    solve: impl FnOnce(&mut Guide<'_>) -> Result<(T, Ending)>,
) -> Result<(T, Report)> {
    let begun = rules.since.unwrap_or_else(Instant::now);
    job.observer.notice(&Event::Started {
        model: rules.model,
        max_iterations: rules.max_iter.max(1),
        done: 0,
    });
    let watch = Watch { stop: &job.stop, observer: job.observer };
    let mut guide = Guide { rules, watch, begun, trace: Vec::new(), clock: Vec::new() };
    let (found, ending) = solve(&mut guide)?;
    if !ending.objective.is_finite() {
        return Err(Error::data(format!(
            "{}: the objective became {}: the values are too large",
            rules.model, ending.objective
        )));
    }
    if guide.trace.last().is_none_or(|last| last.objective != ending.objective) {
        guide.iteration(ending.objective);
    }
    job.observer.notice(&Event::Finished);
    let Guide { mut trace, clock, .. } = guide;
    let best = trace.len() - 1;
    trace[best].validation = ending.validation;
    let report = Report {
        iterations: trace.len(),
        stop_reason: ending.stop_reason,
        objective: ending.objective,
        validation: ending.validation,
        metric: rules.metric.to_owned(),
        higher_is_better: rules.higher_is_better,
        best,
        seed: rules.seed,
        baselines: Vec::new(),
        certificate: ending.certificate,
        notes: ending.notes,
        training: None,
        seconds: begun.elapsed().as_secs_f64(),
        clock,
        trace,
    };
    Ok((found, report))
}

/// Keeps a copy of the state if the last point is the best so far.
fn set_aside(course: &mut Course, rules: &Rules<'_>, states: &mut dyn Reached) {
    let last = course.trace.len() - 1;
    if course.best.is_none_or(|at| course.badness(last, rules) < course.badness(at, rules)) {
        course.best = Some(last);
        states.set_aside();
    }
}

/// The kind under which the checkpoint of a model is filed.
fn checkpoint_kind(rules: &Rules<'_>) -> String {
    format!("{}.checkpoint", rules.model)
}

fn write_checkpoint(
    rules: &Rules<'_>,
    checkpoint: &Checkpoint,
    course: &Course,
    states: &dyn Reached,
) -> Result<()> {
    let mut file = Writer::new(&checkpoint_kind(rules));
    file.set("params", &rules.params);
    file.set("fingerprint", &rules.fingerprint);
    file.set("course", course);
    file.set("best", &course.best);
    states.write(&mut file);
    file.save(&checkpoint.path)
}

/// The checkpoint to go on from, its states still to be read; `None` if the fit begins anew. `steps_vary` if the steps
/// depend on `max_iter`.
fn open_checkpoint(
    rules: &Rules<'_>,
    checkpoint: Option<&Checkpoint>,
    steps_vary: bool,
) -> Result<Option<(Reader, Course)>> {
    let Some(checkpoint) = checkpoint else { return Ok(None) };
    checkpoint.check()?;
    if !checkpoint.resume || !checkpoint.path.exists() {
        return Ok(None);
    }
    let file = Reader::open(&checkpoint.path)?;
    let refuse = |reason: String| {
        Error::format(
            &checkpoint.path,
            format!("{reason}; begin anew instead of resuming, or name another checkpoint"),
        )
    };
    if file.kind() != checkpoint_kind(rules) {
        return Err(refuse(format!("is not a checkpoint of `{}`", rules.model)));
    }
    let params: Map<String, Value> = file.get("params")?;
    for (name, value) in &rules.params {
        let other = params.get(name).unwrap_or(&Value::Null);
        // How long the fit goes on is no part of the state, unless the steps depend on it.
        if other != value && (name != "max_iter" || steps_vary) {
            return Err(refuse(format!("belongs to a fit with {name} = {other}, not {value}")));
        }
    }
    if file.get::<u64>("fingerprint")? != rules.fingerprint {
        return Err(refuse("belongs to a fit on other data".into()));
    }
    let mut course: Course = file.get("course")?;
    course.best = file.get("best")?;
    let consistent = course.restart < rules.restarts.max(1)
        && course.iteration <= course.trace.len()
        && course.clock.len() == course.trace.len();
    if !consistent {
        return Err(file.broken("its course contradicts itself"));
    }
    if course.iteration > rules.max_iter {
        let done = course.iteration;
        return Err(refuse(format!("has done {done} iterations, more than {}", rules.max_iter)));
    }
    let before = params.get("max_iter").and_then(Value::as_u64);
    if course.restart > 0 && before.is_some_and(|before| before != rules.max_iter as u64) {
        // The starts before this one had the old number of iterations.
        return Err(refuse("has done more than one start with another max_iter".into()));
    }
    if let Some(at) = course.best.filter(|&at| at >= course.trace.len()) {
        return Err(file.broken(format!("no point {at} in its trace")));
    }
    Ok(Some((file, course)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves a number; the objective is its square, the score its distance from a target.
    struct Halving {
        target: Option<f64>,
    }

    impl Solver for Halving {
        type State = Vec<f64>;
        fn start(&self, restart: usize) -> Result<Vec<f64>> {
            Ok(vec![100.0 / (1 + restart) as f64])
        }
        fn step(&self, state: &mut Vec<f64>, _: &Watch<'_>) -> Result<Option<f64>> {
            state[0] /= 2.0;
            Ok(Some(state[0] * state[0]))
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

    fn rules() -> Rules<'static> {
        Rules {
            since: None,
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
        }
    }

    fn job(checkpoint: Option<Checkpoint>, stop: Stop) -> Job<'static, ()> {
        Job { stop, checkpoint, ..Job::default() }
    }

    #[test]
    fn it_stops_for_each_reason() {
        let plain = Halving { target: None };
        let (state, report) = run(&plain, &rules(), &job(None, Stop::new())).unwrap();
        assert_eq!((report.stop_reason, report.iterations), (StopReason::MaxIterations, 10));
        assert_eq!(state, [100.0 / 1024.0]);
        let loose = Rules { tol: 0.8, ..rules() };
        let (_, report) = run(&plain, &loose, &job(None, Stop::new())).unwrap();
        assert_eq!((report.stop_reason, report.iterations), (StopReason::Converged, 2));
        // 50, 25, 12.5, 6.25, 3.125: the second is nearest to 24, and the patience is 2.
        let (state, report) =
            run(&Halving { target: Some(24.0) }, &rules(), &job(None, Stop::new())).unwrap();
        assert_eq!((report.stop_reason, report.iterations), (StopReason::NoImprovement, 4));
        assert_eq!((state[0], report.best, report.validation), (25.0, 1, Some(1.0)));
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
            fn step(&self, state: &mut Vec<f64>, watch: &Watch<'_>) -> Result<Option<f64>> {
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
        let patient = Rules { patience: 0, ..rules() };
        let (state, report) = run(&solver, &patient, &job(None, Stop::new())).unwrap();
        assert_eq!((state[0], report.best), (100.0 / 1024.0, 9));
        assert_eq!(report.validation, report.trace[9].validation);
    }

    #[test]
    fn of_several_starts_the_best_is_kept() {
        let several = Rules { restarts: 3, ..rules() };
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
            let rules = Rules { restarts, ..rules() };
            let (whole, expected) = run(&solver, &rules, &job(None, Stop::new())).unwrap();
            for interrupted_after in (1..expected.iterations).step_by(4) {
                let path = folder.path().join("c");
                let _ = std::fs::remove_file(&path);
                let checkpoint = Checkpoint { path, every: Duration::ZERO, resume: true };
                /// Raises the flag after so many iterations.
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
                let (_, report) = run(&solver, &rules, &first).unwrap();
                assert_eq!(report.stop_reason, StopReason::Interrupted);
                assert_eq!(report.iterations, interrupted_after);
                let second = job(Some(checkpoint), Stop::new());
                let (state, report) = run(&solver, &rules, &second).unwrap();
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
            fn step(&self, state: &mut Vec<f64>, _: &Watch<'_>) -> Result<Option<f64>> {
                state[0] += 1.0;
                Ok(Some(self.0[state[0] as usize - 1]))
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
        let rules = Rules { tol: 0.01, max_iter: 6, ..rules() };
        // A rise within the tolerance, a large rise, a fall within the tolerance.
        let risen = Listed(vec![10.0, 10.05, 20.0, 8.0, 7.99, 7.0]);
        let (state, report) = run(&risen, &rules, &job(None, Stop::new())).unwrap();
        assert_eq!((report.stop_reason, state[0]), (StopReason::Converged, 5.0));
        let rising = Listed(vec![1.0, 1.001, 1.002, 1.003, 1.004, 1.005]);
        let (_, report) = run(&rising, &rules, &job(None, Stop::new())).unwrap();
        assert_eq!(report.stop_reason, StopReason::MaxIterations);
    }

    #[test]
    fn a_checkpoint_of_another_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let checkpoint = Checkpoint { path, every: Duration::ZERO, resume: true };
        let with = |rules: &Rules<'_>| {
            run(&Halving { target: None }, rules, &job(Some(checkpoint.clone()), Stop::new()))
        };
        let mut params = Map::new();
        params.insert("rank".into(), 4.into());
        with(&Rules { params: params.clone(), ..rules() }).unwrap();
        params.insert("rank".into(), 8.into());
        let error = with(&Rules { params: params.clone(), ..rules() }).unwrap_err().to_string();
        assert!(error.contains("rank = 4, not 8"), "{error}");
        params.insert("rank".into(), 4.into());
        let error = with(&Rules { params, fingerprint: 2, ..rules() }).unwrap_err().to_string();
        assert!(error.contains("other data"), "{error}");
        let error = with(&Rules { model: "x", ..rules() }).unwrap_err().to_string();
        assert!(error.contains("not a checkpoint of `x`"), "{error}");
    }
}
