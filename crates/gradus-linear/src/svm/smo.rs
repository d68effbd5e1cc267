//! Kernel machines by sequential minimal optimisation.
//!
//! The dual in the numbers `β` (see `problem.rs`) is `½βᵀKβ − tᵀβ + ε‖β‖₁` to be made small under
//! `Σβ = 0` and bounds. Each step moves two samples against each other: the one that gains most by
//! moving up, and the partner that lowers the objective most by a second-order estimate. Rows of
//! the kernel matrix are kept in single precision while memory lasts. Samples that sit at a bound
//! (or at the kink at 0) and stay there by a margin are left out, and brought back before the
//! end.
//!
//! Reference: Fan, Chen, Lin: Working set selection using second order information for training
//! support vector machines, 2005. Chang, Lin: LIBSVM, a library for support vector machines, 2011.

use super::kernel::{KernelFunction, Points};
use super::newton::Watch;
use super::problem::Loss;
use gradus_kernel::Level;
use gradus_kernel::pairs::{self, Extremes, LEAST_CURVATURE};

/// A machine to learn: some of the points, their targets and costs.
pub(super) struct Task<'a> {
    pub(super) points: &'a Points,
    pub(super) function: KernelFunction,
    pub(super) loss: Loss,
    /// The points that take part, ascending.
    pub(super) rows: &'a [u32],
    pub(super) targets: &'a [f64],
    pub(super) costs: &'a [f64],
    /// Bytes for rows of the kernel matrix.
    pub(super) cache: usize,
}

/// The solution.
pub(super) struct Solution {
    /// A number for each of the rows of the task.
    pub(super) beta: Vec<f64>,
    pub(super) b: f64,
    /// Scores of the rows of the task.
    pub(super) scores: Vec<f64>,
    pub(super) primal: f64,
    pub(super) dual: f64,
    /// The largest violation of the conditions of optimality.
    pub(super) violation: f64,
}

/// Rows of the kernel matrix over the active samples, the least recently used one replaced.
struct Cache {
    rows: Vec<Vec<f32>>,
    /// The sample (of the task) in the slot, and the time of its last use.
    owner: Vec<(usize, u64)>,
    /// The slot of a sample, or `usize::MAX`.
    slot: Vec<usize>,
    bytes: usize,
    clock: u64,
}

impl Cache {
    fn new(n: usize, bytes: usize) -> Self {
        Self { rows: Vec::new(), owner: Vec::new(), slot: vec![usize::MAX; n], bytes, clock: 0 }
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.owner.clear();
        self.slot.fill(usize::MAX);
    }

    /// Keeps of every row only these places, and of the rows those of samples that are left.
    fn compact(&mut self, kept: &[usize]) {
        for row in &mut self.rows {
            for (to, &from) in kept.iter().enumerate() {
                row[to] = row[from];
            }
            row.truncate(kept.len());
            row.shrink_to_fit();
        }
    }

    /// How many rows of this length there is room for.
    fn room(&self, len: usize) -> usize {
        (self.bytes / (4 * len.max(1))).max(2)
    }

    /// The slot of a sample, if its row is there.
    fn find(&mut self, i: usize) -> Option<usize> {
        let slot = self.slot[i];
        if slot == usize::MAX {
            return None;
        }
        self.clock += 1;
        self.owner[slot].1 = self.clock;
        Some(slot)
    }

    /// A slot for a sample whose row is not there.
    fn take(&mut self, i: usize, len: usize) -> usize {
        self.clock += 1;
        let slot = if self.rows.len() < self.room(len) {
            self.rows.push(Vec::with_capacity(len));
            self.owner.push((i, 0));
            self.rows.len() - 1
        } else {
            let oldest = (0..self.owner.len()).min_by_key(|&at| self.owner[at].1).unwrap_or(0);
            self.slot[self.owner[oldest].0] = usize::MAX;
            oldest
        };
        self.slot[i] = slot;
        self.owner[slot] = (i, self.clock);
        slot
    }
}

/// The state of the active samples, in their order.
struct State<'a> {
    task: &'a Task<'a>,
    /// The dual coefficients of all samples of the task.
    beta: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    ridge: Vec<f64>,
    /// Slopes of all samples as of `known`, the numbers they were computed with.
    all_slopes: Vec<f64>,
    known: Vec<f64>,
    /// The active samples: places in the task, and in the points.
    active: Vec<u32>,
    rows: Vec<u32>,
    slopes: Vec<f64>,
    up: Vec<f64>,
    down: Vec<f64>,
    diagonal: Vec<f64>,
}

impl<'a> State<'a> {
    fn new(task: &'a Task<'a>) -> Self {
        let n = task.rows.len();
        let bounds = (0..n).map(|i| task.loss.bounds(task.targets[i], task.costs[i])).collect();
        let ridge = task.costs.iter().map(|&c| if c > 0.0 { task.loss.ridge(c) } else { 0.0 });
        let mut state = Self {
            task,
            beta: vec![0.0; n],
            bounds,
            ridge: ridge.collect(),
            all_slopes: task.targets.iter().map(|t| -t).collect(),
            known: vec![0.0; n],
            active: Vec::new(),
            rows: Vec::new(),
            slopes: Vec::new(),
            up: Vec::new(),
            down: Vec::new(),
            diagonal: Vec::new(),
        };
        state.activate_all();
        state
    }

    fn activate_all(&mut self) {
        let n = self.beta.len();
        self.active = (0..n as u32).collect();
        self.rows = self.task.rows.to_vec();
        self.slopes = self.all_slopes.clone();
        let diagonal = self.task.points.diagonal(&self.task.function);
        let diagonal = self.rows.iter().map(|&row| diagonal[row as usize]).zip(&self.ridge);
        self.diagonal = diagonal.map(|(k, ridge)| k + ridge).collect();
        (self.up, self.down) = (vec![0.0; n], vec![0.0; n]);
        (0..n).for_each(|at| self.set_offsets(at));
    }

    /// Sets the cost of moving the sample up and down besides its slope; see [`pairs`].
    fn set_offsets(&mut self, at: usize) {
        let i = self.active[at] as usize;
        let (beta, (low, high), epsilon) = (self.beta[i], self.bounds[i], self.task.loss.epsilon);
        self.up[at] = match beta {
            _ if beta >= high => f64::INFINITY,
            _ if beta >= 0.0 => epsilon,
            _ => -epsilon,
        };
        self.down[at] = match beta {
            _ if beta <= low => f64::NEG_INFINITY,
            _ if beta > 0.0 => epsilon,
            _ => -epsilon,
        };
    }

    /// How far a sample can go up, or down, before a bound or the kink at 0, and where it then is.
    fn room(&self, at: usize, up: bool) -> (f64, f64) {
        let i = self.active[at] as usize;
        let (beta, (low, high)) = (self.beta[i], self.bounds[i]);
        let end = match up {
            true if beta < 0.0 && high > 0.0 => 0.0,
            true => high,
            false if beta > 0.0 && low < 0.0 => 0.0,
            false => low,
        };
        ((end - beta).abs(), end)
    }

    /// Leaves out samples that will not move, if that is enough of them to matter.
    fn shrink(&mut self, found: Extremes, cache: &mut Cache) {
        let kept: Vec<usize> = (0..self.active.len())
            .filter(|&at| {
                let (gain, cost) =
                    (-self.slopes[at] - self.up[at], -self.slopes[at] - self.down[at]);
                !(gain < found.least && cost > found.most)
            })
            .collect();
        if kept.len() * 10 > self.active.len() * 9 || kept.len() < 2 {
            return;
        }
        cache.compact(&kept);
        let pick = |of: &[f64]| kept.iter().map(|&at| of[at]).collect::<Vec<_>>();
        (self.slopes, self.up, self.down) = (pick(&self.slopes), pick(&self.up), pick(&self.down));
        self.diagonal = pick(&self.diagonal);
        self.rows = kept.iter().map(|&at| self.rows[at]).collect();
        self.active = kept.iter().map(|&at| self.active[at]).collect();
    }

    /// Brings everybody back.
    fn restore(&mut self) {
        let n = self.beta.len();
        let mut is_active = vec![false; n];
        self.active.iter().for_each(|&i| is_active[i as usize] = true);
        let changed: Vec<usize> = (0..n).filter(|&i| self.beta[i] != self.known[i]).collect();
        let rows: Vec<u32> = changed.iter().map(|&i| self.task.rows[i]).collect();
        let by: Vec<f64> = changed.iter().map(|&i| self.beta[i] - self.known[i]).collect();
        let lost: Vec<usize> = (0..n).filter(|&i| !is_active[i]).collect();
        let lost_rows: Vec<u32> = lost.iter().map(|&i| self.task.rows[i]).collect();
        let sums = self.task.points.sums(&self.task.function, &lost_rows, (&rows, &by));
        for (&i, sum) in lost.iter().zip(&sums) {
            let ridge = self.ridge[i] * (self.beta[i] - self.known[i]);
            self.all_slopes[i] += sum + ridge;
        }
        for (at, &i) in self.active.iter().enumerate() {
            self.all_slopes[i as usize] = self.slopes[at];
        }
        self.known.clone_from(&self.beta);
        self.activate_all();
    }
}

/// Solves the task until no condition of optimality is violated by more than `tol`.
pub(super) fn solve(task: &Task<'_>, tol: f64, max_iter: usize, watch: &mut dyn Watch) -> Solution {
    let (n, level) = (task.rows.len(), Level::best());
    let mut state = State::new(task);
    let mut cache = Cache::new(n, task.cache);
    let nothing = vec![0.0f32; n];
    let mut found = pairs::advance(
        level,
        &mut state.slopes,
        (&state.up, &state.down),
        (0.0, &nothing),
        (0.0, &nothing),
    );
    let (each, often) = (n.max(1000), n.clamp(1, 1000));
    let (mut steps, mut looked, mut early) = (0usize, 0usize, false);
    let whole = |state: &State<'_>| state.active.len() == n;
    loop {
        let violation = found.most - found.least;
        if !early && violation <= 10.0 * tol && !whole(&state) {
            // Close to the end: what was left out too early is found in time.
            early = true;
            state.restore();
            cache.clear();
            found = look(level, &mut state);
            continue;
        }
        let mut partner = None;
        let mut first = usize::MAX;
        if violation > tol {
            first = fetch(&state, &mut cache, found.at);
            partner = pairs::partner(
                level,
                &state.slopes,
                &state.down,
                (&cache.rows[first], &state.diagonal),
                (found.most, state.diagonal[found.at]),
            );
        }
        let Some(j) = partner else {
            if whole(&state) {
                break;
            }
            state.restore();
            cache.clear();
            found = look(level, &mut state);
            looked = 0;
            continue;
        };
        let i = found.at;
        let second = fetch(&state, &mut cache, j);
        let (row_i, row_j) = (&cache.rows[first], &cache.rows[second]);
        let curvature = state.diagonal[i] + state.diagonal[j] - 2.0 * f64::from(row_i[j]);
        let gain = found.most + state.slopes[j] + state.down[j];
        let (room_i, end_i) = state.room(i, true);
        let (room_j, end_j) = state.room(j, false);
        let by = (gain / curvature.max(LEAST_CURVATURE)).min(room_i).min(room_j);
        let (own_i, own_j) = (state.active[i] as usize, state.active[j] as usize);
        state.beta[own_i] = if by >= room_i { end_i } else { state.beta[own_i] + by };
        state.beta[own_j] = if by >= room_j { end_j } else { state.beta[own_j] - by };
        state.set_offsets(i);
        state.set_offsets(j);
        found = pairs::advance(
            level,
            &mut state.slopes,
            (&state.up, &state.down),
            (by, row_i),
            (-by, row_j),
        );
        steps += 1;
        looked += 1;
        if looked >= often {
            looked = 0;
            state.shrink(found, &mut cache);
            found = look(level, &mut state);
        }
        if steps % 64 == 0 && (watch.stopped() || steps / each >= max_iter) {
            break;
        }
        if steps % each == 0 {
            watch.iteration(-objective(&state));
        }
    }
    if !whole(&state) {
        state.restore();
        found = look(level, &mut state);
    }
    finish(task, state, found)
}

/// The slot of the row of the active sample `at`.
fn fetch(state: &State<'_>, cache: &mut Cache, at: usize) -> usize {
    let i = state.active[at] as usize;
    if let Some(slot) = cache.find(i) {
        return slot;
    }
    let slot = cache.take(i, state.rows.len());
    let row = &mut cache.rows[slot];
    state.task.points.row(&state.task.function, state.rows[at] as usize, &state.rows, row);
    row[at] += state.ridge[i] as f32;
    slot
}

/// The extremes, without a step.
fn look(level: Level, state: &mut State<'_>) -> Extremes {
    let nothing = vec![0.0f32; state.slopes.len()];
    pairs::advance(
        level,
        &mut state.slopes,
        (&state.up, &state.down),
        (0.0, &nothing),
        (0.0, &nothing),
    )
}

/// The dual objective, of the active samples' slopes; those left out barely count.
fn objective(state: &State<'_>) -> f64 {
    let mut sum = 0.0;
    for (at, &i) in state.active.iter().enumerate() {
        let i = i as usize;
        let beta = state.beta[i];
        let quadratic = state.slopes[at] + state.task.targets[i];
        sum += state.task.targets[i] * beta
            - state.task.loss.epsilon * beta.abs()
            - 0.5 * beta * quadratic;
    }
    sum
}

fn finish(task: &Task<'_>, state: State<'_>, found: Extremes) -> Solution {
    let n = task.rows.len();
    // A sample that can go both ways has its score on the margin; else the middle of what is left.
    let (mut sum, mut count) = (0.0, 0usize);
    for i in 0..n {
        let (low, high) = state.bounds[i];
        let beta = state.beta[i];
        if beta > low && beta < high && beta != 0.0 {
            sum += -state.slopes[i] - state.up[i];
            count += 1;
        }
    }
    let b = if count > 0 {
        sum / count as f64
    } else if found.most.is_finite() && found.least.is_finite() {
        0.5 * (found.most + found.least)
    } else if found.most.is_finite() {
        found.most
    } else if found.least.is_finite() {
        found.least
    } else {
        0.0
    };
    let (mut square, mut linear, mut loss) = (0.0, 0.0, 0.0);
    let mut scores = Vec::with_capacity(n);
    for i in 0..n {
        let beta = state.beta[i];
        let own = state.slopes[i] + task.targets[i] - state.ridge[i] * beta;
        scores.push(own + b);
        square += beta * own;
        linear += task.targets[i] * beta
            - task.loss.epsilon * beta.abs()
            - 0.5 * state.ridge[i] * beta * beta;
        loss += task.costs[i] * task.loss.of(task.loss.residual(task.targets[i], own + b));
    }
    let violation = found.most - found.least;
    // Minus infinity where all samples are on one side; not a number is not optimal.
    let violation = if violation.is_nan() { f64::INFINITY } else { violation.max(0.0) };
    Solution {
        beta: state.beta,
        b,
        scores,
        primal: 0.5 * square + loss,
        dual: linear - 0.5 * square,
        violation,
    }
}
