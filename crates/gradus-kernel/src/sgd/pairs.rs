//! Steps on pairs of items of which a user should rank one above the other.

use super::super::lanes::Lanes;
use super::super::rows::padded;
use super::super::{Kernel, Level, prefetch};
use super::loss::sigmoid;
use super::{AHEAD, Movable};

/// A user, an item of theirs, and another item that should rank below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Row of the user.
    pub user: u32,
    /// Row of the item that should rank higher.
    pub better: u32,
    /// Row of the item that should rank lower; another one.
    pub worse: u32,
    /// Weight of the pair.
    pub weight: f32,
}

/// How a step on a pair is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairRule {
    /// Values in a row.
    pub k: usize,
    /// Length η of a step.
    pub learning_rate: f32,
    /// Whether the steps of a row shrink with the root of the squared gradients it has seen.
    pub adaptive: bool,
    /// Whether the items have biases.
    pub biases: bool,
    /// Penalty on the factors of the user and the items.
    pub penalty: f32,
    /// Penalty on the biases of the items.
    pub bias_penalty: f32,
}

/// The sums of a sweep over pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairSums {
    /// Sum of the losses `−w ln σ(x_better − x_worse)`, each just before its step.
    pub loss: f64,
    /// Sum of the weights of the pairs that were in the right order.
    pub right: f64,
}

/// Takes one step for each pair, in order.
///
/// With `x = p·(q − r) + β_q − β_r` and the pseudo-residual `g = w (1 − σ(x))`, damped as in [`super::sweep`],
/// a step moves `p` by `η g (q − r)`, `q` by `η g p` and `r` by `−η g p`, and then shrinks each.
///
/// # Shapes
/// Panics if a pair names a row that is not there.
pub fn sweep_pairs(
    level: Level,
    rule: &PairRule,
    users: Movable<'_>,
    items: Movable<'_>,
    pairs: &[Pair],
) -> PairSums {
    level.dispatch(Pairs { rule, users, items, pairs })
}

struct Pairs<'a> {
    rule: &'a PairRule,
    users: Movable<'a>,
    items: Movable<'a>,
    pairs: &'a [Pair],
}

impl Kernel for Pairs<'_> {
    type Output = PairSums;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> PairSums {
        match padded(self.rule.k) / L::N {
            1 => self.sized::<L, 1>(lanes),
            2 => self.sized::<L, 2>(lanes),
            4 => self.sized::<L, 4>(lanes),
            8 => self.sized::<L, 8>(lanes),
            _ => self.sized::<L, 0>(lanes),
        }
    }
}

impl Pairs<'_> {
    #[inline(always)]
    fn sized<L: Lanes, const V: usize>(self, lanes: L) -> PairSums {
        let Pairs { rule, mut users, mut items, pairs } = self;
        let stride = padded(rule.k);
        let mut sums = PairSums::default();
        for (at, pair) in pairs.iter().enumerate() {
            if let Some(next) = pairs.get(at + AHEAD) {
                prefetch(items.rows, next.better as usize * stride, stride);
                prefetch(items.rows, next.worse as usize * stride, stride);
                prefetch(users.rows, next.user as usize * stride, stride);
            }
            step::<L, V>(lanes, rule, pair, &mut users, &mut items, &mut sums);
        }
        sums
    }
}

#[inline(always)]
fn step<L: Lanes, const V: usize>(
    lanes: L,
    rule: &PairRule,
    pair: &Pair,
    users: &mut Movable<'_>,
    items: &mut Movable<'_>,
    sums: &mut PairSums,
) {
    let stride = if V > 0 { V * L::N } else { padded(rule.k) };
    let row = |row: u32| row as usize * stride;
    let p = &mut users.rows[row(pair.user)..][..stride];
    let q = &items.rows[row(pair.better)..][..stride];
    let r = &items.rows[row(pair.worse)..][..stride];
    let mut totals = [lanes.zero(); 3];
    for v in (0..stride).step_by(L::N) {
        let x = lanes.load(&p[v..]);
        let apart = lanes.sub(lanes.load(&q[v..]), lanes.load(&r[v..]));
        totals[0] = lanes.fma(x, apart, totals[0]);
        totals[1] = lanes.fma(x, x, totals[1]);
        totals[2] = lanes.fma(apart, apart, totals[2]);
    }
    let (product, p_norm) = (lanes.sum(totals[0]), lanes.sum(totals[1]));
    let apart_norm = lanes.sum(totals[2]);
    let length = |squares: f32| {
        let shrunk = if rule.adaptive { (1.0 + squares).sqrt() } else { 1.0 };
        rule.learning_rate / shrunk
    };
    let (user, better, worse) = (
        &users.extras[pair.user as usize],
        &items.extras[pair.better as usize],
        &items.extras[pair.worse as usize],
    );
    let [by_user, by_better, by_worse] = [user, better, worse].map(|extra| length(extra.squares));
    let (mut bias_better, mut bias_worse) = (0.0, 0.0);
    if rule.biases {
        (bias_better, bias_worse) = (length(better.bias_squares), length(worse.bias_squares));
    }
    let difference = product + better.bias - worse.bias;
    let reach = by_user * apart_norm + (by_better + by_worse) * p_norm + bias_better + bias_worse;
    // The curvature of the loss is at most a quarter.
    let pseudo_residual = pair.weight * sigmoid(-difference) / (1.0 + pair.weight * reach / 4.0);
    let apart = f64::from(difference);
    sums.loss +=
        f64::from(pair.weight) * (libm::log1p(libm::exp(-apart.abs())) + (-apart).max(0.0));
    sums.right += if difference > 0.0 { f64::from(pair.weight) } else { 0.0 };

    let penalty = pair.weight * rule.penalty;
    let [keep_p, keep_q, keep_r] =
        [by_user, by_better, by_worse].map(|step| 1.0 / (1.0 + step * penalty));
    let (into_p, into_q, into_r) = (
        lanes.splat(by_user * pseudo_residual * keep_p),
        lanes.splat(by_better * pseudo_residual * keep_q),
        lanes.splat(by_worse * pseudo_residual * keep_r),
    );
    let [keep_p, keep_q, keep_r] = [keep_p, keep_q, keep_r].map(|keep| lanes.splat(keep));
    for v in (0..stride).step_by(L::N) {
        let x = lanes.load(&p[v..]);
        let y = lanes.load(&items.rows[row(pair.better) + v..]);
        let z = lanes.load(&items.rows[row(pair.worse) + v..]);
        let apart = lanes.sub(y, z);
        lanes.store(&mut p[v..], lanes.fma(into_p, apart, lanes.mul(keep_p, x)));
        let q = &mut items.rows[row(pair.better) + v..];
        lanes.store(q, lanes.fma(into_q, x, lanes.mul(keep_q, y)));
        let r = &mut items.rows[row(pair.worse) + v..];
        lanes.store(r, lanes.fnma(into_r, x, lanes.mul(keep_r, z)));
    }

    if rule.adaptive {
        let share = pseudo_residual * pseudo_residual / rule.k as f32;
        users.extras[pair.user as usize].squares += share * apart_norm;
        items.extras[pair.better as usize].squares += share * p_norm;
        items.extras[pair.worse as usize].squares += share * p_norm;
    }
    if rule.biases {
        let penalty = pair.weight * rule.bias_penalty;
        for (item, step, pseudo_residual) in [
            (pair.better, bias_better, pseudo_residual),
            (pair.worse, bias_worse, -pseudo_residual),
        ] {
            let extra = &mut items.extras[item as usize];
            if rule.adaptive {
                extra.bias_squares += pseudo_residual * pseudo_residual;
            }
            extra.bias = (extra.bias + step * pseudo_residual) / (1.0 + step * penalty);
        }
    }
}
