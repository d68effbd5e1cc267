//! Steps of stochastic gradient descent on factor rows: one observed value, one step.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | what a step works on, and [`sweep`], one step after the other |
//! | `loss.rs` | [`ResidualLoss`], the loss of a residual and its pseudo-residual |
//! | `batch.rs` | the sweep that gathers the gradients of several values before it moves |
//! | `gradient.rs` | [`row_gradient`], the gradient of one row over all its values |
//! | `pairs.rs` | [`sweep_pairs`], steps on pairs of items of which one should rank higher |
//!
//! A step is *implicit to first order*: the pseudo-residual of an error is what remains of it after the step
//! (see [`ResidualLoss::pseudo_residual`]), and the penalty divides instead of subtracting. So no learning rate makes
//! the factors overshoot and diverge, whatever the data.

mod batch;
mod gradient;
mod loss;
mod pairs;
#[cfg(test)]
mod tests;

pub use gradient::{RowGradient, RowValues, row_gradient};
pub use loss::ResidualLoss;
pub use pairs::{Pair, PairRule, PairSums, sweep_pairs};

use super::lanes::Lanes;
use super::rows::padded;
use super::{Kernel, Level, prefetch};

/// How many values ahead of the step at hand the rows are asked for.
const AHEAD: usize = 4;

/// One observed value: the place of its user and item among the rows at hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Row of the user.
    pub user: u32,
    /// Row of the item.
    pub item: u32,
    /// The value.
    pub value: f32,
}

/// The values of a row beside its factors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extra {
    /// The bias.
    pub bias: f32,
    /// Sum of the mean squared gradients of the factors so far.
    pub squares: f32,
    /// Sum of the squared gradients of the bias so far.
    pub bias_squares: f32,
    /// Penalty on the factors, for each value of weight one.
    pub penalty: f32,
    /// Penalty on the bias, for each value of weight one.
    pub bias_penalty: f32,
}

/// Rows of one side, to be moved.
///
/// # Shapes
/// Rows of `k` values at stride `padded(k)`, padding zero; as many extras as rows.
#[derive(Debug)]
pub struct Movable<'a> {
    /// The factors.
    pub rows: &'a mut [f32],
    /// The rest.
    pub extras: &'a mut [Extra],
}

impl Movable<'_> {
    /// The same rows, lent once more.
    pub fn again(&mut self) -> Movable<'_> {
        Movable { rows: self.rows, extras: self.extras }
    }
}

/// How a step is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRule {
    /// Values in a row.
    pub k: usize,
    /// How an error counts.
    pub loss: ResidualLoss,
    /// The constant α of every prediction.
    pub mean: f32,
    /// Length η of a step.
    pub learning_rate: f32,
    /// Whether the steps of a row shrink with the root of the squared gradients it has seen.
    pub adaptive: bool,
    /// Whether the biases move.
    pub biases: bool,
    /// Values whose gradients are gathered before the rows move; 1 moves after each.
    pub batch: usize,
}

/// Takes one step for each value, in order. Gives the sum of the losses, each just before its step.
///
/// With weights `w`, steps `η_u`, `η_i` of the two rows and the pseudo-residual `g` of the error, a step is
///
/// `p ← (p + η_u g q) / (1 + η_u w λ_u)`, `q ← (q + η_i g p) / (1 + η_i w λ_i)`
///
/// with the old `p` and `q` on the right, and likewise for the biases, whose partner is 1. Adaptive
/// steps are `η / √(1 + G)`, where `G` is the sum of the (mean) squared gradients before this one.
///
/// # Shapes
/// As many weights as entries. Panics if an entry names a row that is not there.
pub fn sweep(
    level: Level,
    rule: &StepRule,
    users: Movable<'_>,
    items: Movable<'_>,
    entries: &[Entry],
    weights: Option<&[f32]>,
) -> f64 {
    assert!(weights.is_none_or(|weights| weights.len() == entries.len()), "a weight for each");
    if rule.batch > 1 {
        return level.dispatch(batch::Batches { rule, users, items, entries, weights });
    }
    level.dispatch(Sweep { rule, users, items, entries, weights })
}

struct Sweep<'a> {
    rule: &'a StepRule,
    users: Movable<'a>,
    items: Movable<'a>,
    entries: &'a [Entry],
    weights: Option<&'a [f32]>,
}

impl Kernel for Sweep<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        // Whole rows in registers where they fit.
        match padded(self.rule.k) / L::N {
            1 => self.sized::<L, 1>(lanes),
            2 => self.sized::<L, 2>(lanes),
            4 => self.sized::<L, 4>(lanes),
            8 => self.sized::<L, 8>(lanes),
            _ => self.sized::<L, 0>(lanes),
        }
    }
}

impl Sweep<'_> {
    #[inline(always)]
    fn sized<L: Lanes, const V: usize>(self, lanes: L) -> f64 {
        let Sweep { rule, users, items, entries, weights } = self;
        let stride = padded(rule.k);
        let mut total = 0.0;
        for (at, entry) in entries.iter().enumerate() {
            if let Some(next) = entries.get(at + AHEAD) {
                prefetch(items.rows, next.item as usize * stride, stride);
                prefetch(users.rows, next.user as usize * stride, stride);
            }
            let weight = weights.map_or(1.0, |weights| weights[at]);
            let (user, item) = (entry.user as usize, entry.item as usize);
            let p = &mut users.rows[user * stride..][..stride];
            let q = &mut items.rows[item * stride..][..stride];
            let (u, i) = (&mut users.extras[user], &mut items.extras[item]);
            total += step::<L, V>(lanes, rule, weight, entry.value, (p, u), (q, i));
        }
        total
    }
}

/// The steps of the two rows and their biases, and the pseudo-residual of the error.
#[derive(Clone, Copy)]
struct Steps {
    /// The step lengths of the user's factors and bias, then of the item's.
    user: (f32, f32),
    item: (f32, f32),
    /// The factors by which the penalty shrinks the user's and the item's factors, and their biases.
    keep: [f32; 4],
    pseudo_residual: f32,
    loss: f64,
}

/// Lengths of the steps of a row's factors and of its bias.
///
/// Roots and quotients are slow, but as quick for four numbers as for one: so both are taken of the
/// whole extra at once, and what they come to for its other fields is thrown away.
#[inline(always)]
fn lengths(rule: &StepRule, extra: &Extra) -> (f32, f32) {
    if rule.adaptive {
        let all = [extra.squares, extra.bias_squares, extra.penalty, extra.bias];
        let all = all.map(|x| rule.learning_rate / (1.0 + x).sqrt());
        (all[0], if rule.biases { all[1] } else { 0.0 })
    } else {
        (rule.learning_rate, if rule.biases { rule.learning_rate } else { 0.0 })
    }
}

/// `product`, `p_norm` and `q_norm` are `p·q`, `‖p‖²` and `‖q‖²`.
#[inline(always)]
fn steps(
    rule: &StepRule,
    weight: f32,
    value: f32,
    (u, i): (&Extra, &Extra),
    (product, p_norm, q_norm): (f32, f32, f32),
) -> Steps {
    let (user, item) = (lengths(rule, u), lengths(rule, i));
    let reach = user.0 * q_norm + item.0 * p_norm + user.1 + item.1;
    let predicted = rule.mean + u.bias + i.bias + product;
    // What is left of each of the four after its share of the penalty, all at once.
    let penalties = [
        user.0 * (weight * u.penalty),
        item.0 * (weight * i.penalty),
        user.1 * (weight * u.bias_penalty),
        item.1 * (weight * i.bias_penalty),
    ];
    Steps {
        user,
        item,
        keep: penalties.map(|penalty| 1.0 / (1.0 + penalty)),
        pseudo_residual: weight * rule.loss.pseudo_residual(value, predicted, weight * reach),
        loss: f64::from(weight) * rule.loss.of(value, predicted),
    }
}

/// Moves the bias of a row and counts its gradients. `norm` and `other` are the squared norms of
/// the row and of its partner.
#[inline(always)]
fn move_extra(
    rule: &StepRule,
    weight: f32,
    extra: &mut Extra,
    (bias_step, keep, pseudo_residual): (f32, f32, f32),
    (product, norm, other): (f32, f32, f32),
) {
    let penalty = weight * extra.penalty;
    if rule.adaptive {
        let share = 1.0 / rule.k as f32;
        // ‖g q − λp‖², from the three products there are already.
        let squares = pseudo_residual * pseudo_residual * other
            - 2.0 * pseudo_residual * penalty * product
            + penalty * penalty * norm;
        extra.squares += squares.max(0.0) * share;
    }
    if rule.biases {
        if rule.adaptive {
            let gradient = pseudo_residual - weight * extra.bias_penalty * extra.bias;
            extra.bias_squares += gradient * gradient;
        }
        extra.bias = (extra.bias + bias_step * pseudo_residual) * keep;
    }
}

/// One step; the loss before it.
#[inline(always)]
fn step<L: Lanes, const V: usize>(
    lanes: L,
    rule: &StepRule,
    weight: f32,
    value: f32,
    (p, u): (&mut [f32], &mut Extra),
    (q, i): (&mut [f32], &mut Extra),
) -> f64 {
    let vectors = if V > 0 { V } else { p.len() / L::N };
    let (p, q) = (&mut p[..vectors * L::N], &mut q[..vectors * L::N]);
    // Where V is known, these hold the rows from here to the end.
    let (mut ps, mut qs) = ([lanes.zero(); V], [lanes.zero(); V]);
    let mut sums = [lanes.zero(); 3];
    for v in 0..vectors {
        let (x, y) = (lanes.load(&p[v * L::N..]), lanes.load(&q[v * L::N..]));
        if V > 0 {
            (ps[v], qs[v]) = (x, y);
        }
        sums[0] = lanes.fma(x, y, sums[0]);
        sums[1] = lanes.fma(x, x, sums[1]);
        sums[2] = lanes.fma(y, y, sums[2]);
    }
    let (product, p_norm, q_norm) = (lanes.sum(sums[0]), lanes.sum(sums[1]), lanes.sum(sums[2]));
    let steps = steps(rule, weight, value, (u, i), (product, p_norm, q_norm));
    let [keep_p, keep_q, keep_u, keep_i] = steps.keep;
    let (from_q, from_p) = (
        steps.user.0 * steps.pseudo_residual * keep_p,
        steps.item.0 * steps.pseudo_residual * keep_q,
    );
    let (keep_p, keep_q) = (lanes.splat(keep_p), lanes.splat(keep_q));
    let (from_p, from_q) = (lanes.splat(from_p), lanes.splat(from_q));
    for v in 0..vectors {
        let (x, y) = if V > 0 {
            (ps[v], qs[v])
        } else {
            (lanes.load(&p[v * L::N..]), lanes.load(&q[v * L::N..]))
        };
        lanes.store(&mut p[v * L::N..], lanes.fma(from_q, y, lanes.mul(keep_p, x)));
        lanes.store(&mut q[v * L::N..], lanes.fma(from_p, x, lanes.mul(keep_q, y)));
    }
    move_extra(
        rule,
        weight,
        u,
        (steps.user.1, keep_u, steps.pseudo_residual),
        (product, p_norm, q_norm),
    );
    move_extra(
        rule,
        weight,
        i,
        (steps.item.1, keep_i, steps.pseudo_residual),
        (product, q_norm, p_norm),
    );
    steps.loss
}
