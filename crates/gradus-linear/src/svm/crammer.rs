//! All classes at once: the machine of Crammer and Singer.
//!
//! The primal is `½ Σ_m ‖w_m‖² + Σ_i c_i max(0, 1 + max_{m ≠ y_i} s_im − s_{iy_i})` with scores
//! `s = X Wᵀ + b`. The dual has a number `α_im` for each sample and class, `w_m = Σ_i α_im x_i`, and
//! is `Σ_i α_{iy_i} − ½ Σ_m ‖w_m‖²` under `Σ_m α_im = 0`, `α_im ≤ 0` but for `α_{iy_i} ≤ c_i`. Each
//! visit of a sample solves for its numbers exactly. The intercepts are features of value 1.
//!
//! Reference: Keerthi, Sundararajan, Chang, Hsieh, Lin: A sequential dual method for large scale
//! multi-class linear SVMs, 2008.

use super::dual::Prepared;
use super::newton::Watch;
use super::problem::{squared_norm, sums};
use crate::parallel;
use gradus_base::random::Stream;

/// The problem to solve.
pub(super) struct Task<'a> {
    pub(super) prepared: &'a Prepared<'a>,
    pub(super) n_features: usize,
    pub(super) codes: &'a [u32],
    pub(super) n_classes: usize,
    pub(super) costs: &'a [f64],
    pub(super) intercept: bool,
    /// The `q` in the penalty `½ q b²` of an intercept.
    pub(super) intercept_penalty: f64,
}

impl Task<'_> {
    /// The square of the value of the feature that an intercept is.
    fn rho(&self) -> f64 {
        if self.intercept { 1.0 / self.intercept_penalty } else { 0.0 }
    }
}

/// The solution.
pub(super) struct Solution {
    /// Classes × features, for the design.
    pub(super) w: Vec<f64>,
    pub(super) b: Vec<f64>,
    /// Samples × classes.
    pub(super) alpha: Vec<f64>,
    pub(super) slacks: Vec<f64>,
    pub(super) primal: f64,
    pub(super) dual: f64,
    /// Rounding allows no more progress.
    pub(super) stalled: bool,
}

pub(super) fn solve(
    task: &Task<'_>,
    (tol, max_iter, seed): (f64, usize, u64),
    watch: &mut dyn Watch,
) -> Solution {
    let (n, k, d) = (task.codes.len(), task.n_classes, task.n_features);
    let usable: Vec<usize> = (0..n).filter(|&i| task.costs[i] > 0.0).collect();
    let (mut alpha, mut w, mut b) = (vec![0.0; n * k], vec![0.0; k * d], vec![0.0; k]);
    let (mut slopes, mut new, mut order) = (vec![0.0; k], vec![0.0; k], Vec::new());
    let rho = task.rho();
    let mut active = usable.clone();
    let (mut enough, mut epoch) = (0.1, 0);
    let mut best = evaluate(task, &w, &b, &alpha);
    watch.iteration(best.primal);
    while best.primal - best.dual > tol * best.primal && enough > 1e-13 {
        let patience = epoch + 10 + epoch / 3;
        let mut ended = false;
        while epoch < patience {
            ended = epoch >= max_iter || watch.stopped();
            if ended {
                break;
            }
            Stream::new(seed, "linear.svm.crammer", epoch as u64).shuffle(&mut active);
            epoch += 1;
            let looked_at_all = active.len() == usable.len();
            let (mut most, mut kept) = (0.0f64, 0);
            for at in 0..active.len() {
                if at % 1024 == 1023 && watch.stopped() {
                    // Those not looked at stay.
                    active.copy_within(at.., kept);
                    kept += active.len() - at;
                    break;
                }
                let i = active[at];
                let (class, cost) = (task.codes[i] as usize, task.costs[i]);
                let own = &mut alpha[i * k..(i + 1) * k];
                let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                for m in 0..k {
                    let score = task.prepared.dot(i, &w[m * d..(m + 1) * d]) + b[m];
                    slopes[m] = score + f64::from(u8::from(m != class));
                    high = high.max(slopes[m]);
                    if own[m] < if m == class { cost } else { 0.0 } {
                        low = low.min(slopes[m]);
                    }
                }
                let violation = high - low;
                let at_rest = own.iter().all(|a| *a == 0.0) && low - high > 0.1;
                if at_rest || (violation < 0.1 * enough && own[class] == 0.0) {
                    continue;
                }
                active[kept] = i;
                kept += 1;
                most = most.max(violation);
                let curvature = task.prepared.norms[i] + rho;
                if violation <= 1e-14 {
                    continue;
                }
                if curvature <= 0.0 {
                    // A row of zeros without an intercept scores 0 for every class whatever its
                    // coefficients are; the dual is largest with the true class at its bound.
                    own.fill(0.0);
                    own[class] = cost;
                    own[usize::from(class == 0)] = -cost;
                    continue;
                }
                best_numbers(curvature, &mut slopes, own, class, cost, &mut new, &mut order);
                for m in 0..k {
                    let by = new[m] - own[m];
                    if by != 0.0 {
                        own[m] = new[m];
                        task.prepared.add(i, by, &mut w[m * d..(m + 1) * d]);
                        b[m] += rho * by;
                    }
                }
            }
            active.truncate(kept);
            if most <= enough {
                let all = looked_at_all;
                active.clone_from(&usable);
                if all {
                    break;
                }
            }
        }
        let point = evaluate(task, &w, &b, &alpha);
        watch.iteration(point.primal);
        let dual = point.dual.max(best.dual);
        if point.primal < best.primal {
            best = point;
        }
        best.dual = dual;
        if ended {
            break;
        }
        if epoch < patience {
            enough *= 0.4;
        }
        best.stalled = enough <= 1e-13;
    }
    best
}

/// The numbers of one sample: `α_m = min(C_m, (θ − B_m) / A)`, with `θ` such that they add up to 0.
/// `slopes` are turned into `B`.
fn best_numbers(
    a: f64,
    slopes: &mut [f64],
    own: &[f64],
    class: usize,
    cost: f64,
    new: &mut [f64],
    order: &mut Vec<f64>,
) {
    for (slope, own) in slopes.iter_mut().zip(own) {
        *slope -= a * own;
    }
    order.clear();
    order.extend_from_slice(slopes);
    order[class] += a * cost;
    order.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut theta = order[0] - a * cost;
    let mut r = 1;
    while r < order.len() && theta < r as f64 * order[r] {
        theta += order[r];
        r += 1;
    }
    theta /= r as f64;
    for m in 0..new.len() {
        let most = if m == class { cost } else { 0.0 };
        new[m] = most.min((theta - slopes[m]) / a);
    }
    // Rounding may leave less than nothing of it.
    new[class] = new[class].max(0.0);
}

/// The objectives of a point, and the slacks.
fn evaluate(task: &Task<'_>, w: &[f64], b: &[f64], alpha: &[f64]) -> Solution {
    let (n, k, d) = (task.codes.len(), task.n_classes, task.n_features);
    let slacks = parallel::map_below(n, k * task.prepared.matrix().values().len(), |i| {
        let class = task.codes[i] as usize;
        let score = |m: usize| task.prepared.dot(i, &w[m * d..(m + 1) * d]) + b[m];
        let own = score(class);
        let other = (0..k).filter(|&m| m != class).map(score);
        (1.0 + other.fold(f64::NEG_INFINITY, f64::max) - own).max(0.0)
    });
    let [loss, linear] = sums(n, |rows| {
        let (mut loss, mut linear) = (0.0, 0.0);
        for i in rows {
            loss += task.costs[i] * slacks[i];
            linear += alpha[i * k + task.codes[i] as usize];
        }
        [loss, linear]
    });
    let square = 0.5 * (squared_norm(w) + task.intercept_penalty * squared_norm(b));
    let (primal, dual) = (square + loss, linear - square);
    Solution {
        w: w.to_vec(),
        b: b.to_vec(),
        alpha: alpha.to_vec(),
        slacks,
        primal,
        dual,
        stalled: false,
    }
}
