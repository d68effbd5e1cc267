//! The kernels against the same steps in plain double precision.

use super::super::testing::Random;
use super::*;

const LOSSES: [ResidualLoss; 4] = [
    ResidualLoss::Squared,
    ResidualLoss::Absolute,
    ResidualLoss::Huber(0.4),
    ResidualLoss::Logistic,
];

/// A side in double precision.
#[derive(Clone)]
struct Plain {
    rows: Vec<Vec<f64>>,
    extras: Vec<[f64; 5]>,
}

/// A side of random rows.
fn side(random: &mut Random, n: usize, k: usize) -> (super::super::Rows, Vec<Extra>) {
    let rows = random.rows(n, k, 0.7);
    let extras = (0..n)
        .map(|_| Extra {
            bias: random.value(),
            squares: random.value().abs(),
            bias_squares: random.value().abs(),
            penalty: 0.2 * random.value().abs(),
            bias_penalty: 0.1 * random.value().abs(),
        })
        .collect();
    (rows, extras)
}

fn plain(rows: &super::super::Rows, extras: &[Extra]) -> Plain {
    let row = |i: usize| rows.row(i)[..rows.k()].iter().map(|&x| f64::from(x)).collect();
    Plain {
        rows: (0..extras.len()).map(row).collect(),
        extras: extras
            .iter()
            .map(|e| [e.bias, e.squares, e.bias_squares, e.penalty, e.bias_penalty].map(f64::from))
            .collect(),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn pseudo_residual(loss: ResidualLoss, y: f64, x: f64, reach: f64) -> f64 {
    let e = y - x;
    match loss {
        ResidualLoss::Squared => e / (1.0 + reach),
        ResidualLoss::Absolute => (e.abs() / reach).min(0.5) * e.signum(),
        ResidualLoss::Huber(delta) => {
            let g = e / (1.0 + reach);
            g.signum() * g.abs().min(f64::from(delta))
        }
        ResidualLoss::Logistic => (y - 1.0 / (1.0 + (-x).exp())) / 2.0 / (1.0 + reach / 8.0),
    }
}

fn value(loss: ResidualLoss, y: f64, x: f64) -> f64 {
    let e = (y - x).abs();
    match loss {
        ResidualLoss::Squared => e * e,
        ResidualLoss::Absolute => e,
        ResidualLoss::Huber(delta) => {
            let d = f64::from(delta);
            if e <= d { e * e } else { 2.0 * d * e - d * d }
        }
        ResidualLoss::Logistic => {
            let s = 1.0 / (1.0 + (-x).exp());
            -y * s.ln() - (1.0 - y) * (1.0 - s).ln()
        }
    }
}

/// The batches of the oracle: every gradient from the rows as they were when the batch began.
fn oracle(
    rule: &StepRule,
    users: &mut Plain,
    items: &mut Plain,
    entries: &[Entry],
    weights: &[f32],
) -> f64 {
    let eta = f64::from(rule.learning_rate);
    let length = |g: f64| if rule.adaptive { eta / (1.0 + g).sqrt() } else { eta };
    let bias_length = |g: f64| if rule.biases { length(g) } else { 0.0 };
    let mut total = 0.0;
    for (batch, weights) in entries.chunks(rule.batch).zip(weights.chunks(rule.batch)) {
        let (before_u, before_i) = (users.clone(), items.clone());
        let reach_through = |own: &Plain, row: usize, others: &[(usize, f64)], other: &Plain| {
            let e = own.extras[row];
            others
                .iter()
                .map(|&(o, w)| {
                    w * (length(e[1]) * dot(&other.rows[o], &other.rows[o]) + bias_length(e[2]))
                })
                .sum::<f64>()
        };
        let of = |user: Option<u32>, item: Option<u32>| -> Vec<(usize, f64)> {
            let all = batch.iter().zip(weights);
            all.filter(|(e, _)| {
                user.is_none_or(|u| e.user == u) && item.is_none_or(|i| e.item == i)
            })
            .map(|(e, &w)| (if user.is_some() { e.item } else { e.user } as usize, f64::from(w)))
            .collect()
        };
        let mut pseudo_residuals = Vec::new();
        for (e, &w) in batch.iter().zip(weights) {
            let (u, i) = (e.user as usize, e.item as usize);
            let x = f64::from(rule.mean)
                + before_u.extras[u][0]
                + before_i.extras[i][0]
                + dot(&before_u.rows[u], &before_i.rows[i]);
            let reach = reach_through(&before_u, u, &of(Some(e.user), None), &before_i)
                + reach_through(&before_i, i, &of(None, Some(e.item)), &before_u);
            let y = f64::from(e.value);
            total += f64::from(w) * value(rule.loss, y, x);
            pseudo_residuals.push(f64::from(w) * pseudo_residual(rule.loss, y, x, reach));
        }
        let one_side = |own: &mut Plain, other: &Plain, by_user: bool| {
            for row in 0..own.rows.len() {
                let mine: Vec<usize> = (0..batch.len())
                    .filter(|&n| {
                        (if by_user { batch[n].user } else { batch[n].item }) as usize == row
                    })
                    .collect();
                if mine.is_empty() {
                    continue;
                }
                let w: f64 = mine.iter().map(|&n| f64::from(weights[n])).sum();
                let g: f64 = mine.iter().map(|&n| pseudo_residuals[n]).sum();
                let [bias, squares, bias_squares, penalty, bias_penalty] = own.extras[row];
                let lambda = w * penalty;
                let mut norm = 0.0;
                for c in 0..rule.k {
                    let sum: f64 = mine
                        .iter()
                        .map(|&n| {
                            let o = if by_user { batch[n].item } else { batch[n].user } as usize;
                            pseudo_residuals[n] * other.rows[o][c]
                        })
                        .sum();
                    norm += (sum - lambda * own.rows[row][c]).powi(2);
                    own.rows[row][c] = (own.rows[row][c] + length(squares) * sum)
                        / (1.0 + length(squares) * lambda);
                }
                if rule.adaptive {
                    own.extras[row][1] += norm / rule.k as f64;
                }
                if rule.biases {
                    let lambda = w * bias_penalty;
                    if rule.adaptive {
                        own.extras[row][2] += (g - lambda * bias).powi(2);
                    }
                    let step = length(bias_squares);
                    own.extras[row][0] = (bias + step * g) / (1.0 + step * lambda);
                }
            }
        };
        one_side(users, &before_i, true);
        one_side(items, &before_u, false);
    }
    total
}

fn near(got: &super::super::Rows, extras: &[Extra], want: &Plain, case: &str) {
    let got = plain(got, extras);
    for (row, (a, b)) in got.rows.iter().zip(&want.rows).enumerate() {
        let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 2e-4, "{case}: row {row} is off by {off}");
    }
    for (row, (a, b)) in got.extras.iter().zip(&want.extras).enumerate() {
        let off = a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max);
        assert!(off < 2e-4, "{case}: extra {row}: {a:?} and {b:?}");
    }
}

fn entries(random: &mut Random, n: usize, users: usize, items: usize) -> (Vec<Entry>, Vec<f32>) {
    let entries = (0..n)
        .map(|_| Entry {
            user: random.below(users) as u32,
            item: random.below(items) as u32,
            value: 0.5 + 0.5 * random.value(),
        })
        .collect();
    (entries, (0..n).map(|_| 1.0 + random.value()).collect())
}

#[test]
fn steps_match_plain_arithmetic_at_every_level_and_rank() {
    for k in (1..=130).filter(|k| k % 7 == 1 || k % 16 < 2 || k % 16 == 15) {
        let mut random = Random(k as u64);
        let (users, user_extras) = side(&mut random, 5, k);
        let (items, item_extras) = side(&mut random, 7, k);
        let (entries, weights) = entries(&mut random, 40, 5, 7);
        let ones = vec![1.0; entries.len()];
        for (case, loss) in LOSSES.into_iter().enumerate() {
            let rule = StepRule {
                k,
                loss,
                mean: 0.1,
                learning_rate: 0.05,
                adaptive: (k + case) % 2 == 0,
                biases: (k + case) % 3 != 0,
                batch: if (k + case) % 5 == 0 { 6 } else { 1 },
            };
            let weights = ((k + case) % 4 < 2).then_some(weights.as_slice());
            let (mut want_users, mut want_items) =
                (plain(&users, &user_extras), plain(&items, &item_extras));
            let want =
                oracle(&rule, &mut want_users, &mut want_items, &entries, weights.unwrap_or(&ones));
            for level in Level::available() {
                let (mut p, mut u) = (users.clone(), user_extras.clone());
                let (mut q, mut i) = (items.clone(), item_extras.clone());
                let got = sweep(
                    level,
                    &rule,
                    Movable { rows: p.as_mut_slice(), extras: &mut u },
                    Movable { rows: q.as_mut_slice(), extras: &mut i },
                    &entries,
                    weights,
                );
                let case = format!("{level} {rule:?}");
                assert!((got - want).abs() < 1e-4 * want, "{case}: {got} and {want}");
                near(&p, &u, &want_users, &case);
                near(&q, &i, &want_items, &case);
            }
        }
    }
}

#[test]
fn pairs_match_plain_arithmetic_at_every_level_and_rank() {
    for k in (1..=130).filter(|k| k % 9 == 1 || k % 16 < 2) {
        let mut random = Random(1000 + k as u64);
        let (users, user_extras) = side(&mut random, 4, k);
        let (items, item_extras) = side(&mut random, 6, k);
        let pairs: Vec<Pair> = (0..30)
            .map(|_| {
                let better = random.below(6);
                let worse = (better + 1 + random.below(5)) % 6;
                let user = random.below(4) as u32;
                let weight = 1.0 + random.value();
                Pair { user, better: better as u32, worse: worse as u32, weight }
            })
            .collect();
        for adaptive in [false, true] {
            let rule = PairRule {
                k,
                learning_rate: 0.08,
                adaptive,
                biases: k % 2 == 0,
                penalty: 0.05,
                bias_penalty: 0.02,
            };
            let (mut a, mut b) = (plain(&users, &user_extras), plain(&items, &item_extras));
            let mut want = (0.0, 0.0);
            for pair in &pairs {
                let (u, i, j) = (pair.user as usize, pair.better as usize, pair.worse as usize);
                let w = f64::from(pair.weight);
                let (p, q, r) = (a.rows[u].clone(), b.rows[i].clone(), b.rows[j].clone());
                let apart: Vec<f64> = q.iter().zip(&r).map(|(q, r)| q - r).collect();
                let x = dot(&p, &apart) + b.extras[i][0] - b.extras[j][0];
                let length = |g: f64| 0.08 / if adaptive { (1.0 + g).sqrt() } else { 1.0 };
                let [lu, li, lj] = [a.extras[u][1], b.extras[i][1], b.extras[j][1]].map(length);
                let bias_length = |g: f64| if rule.biases { length(g) } else { 0.0 };
                let [bi, bj] = [b.extras[i][2], b.extras[j][2]].map(bias_length);
                let reach = lu * dot(&apart, &apart) + (li + lj) * dot(&p, &p) + bi + bj;
                let g = w / (1.0 + x.exp()) / (1.0 + w * reach / 4.0);
                want.0 += w * (1.0 + (-x).exp()).ln();
                want.1 += if x > 0.0 { w } else { 0.0 };
                for c in 0..k {
                    let shrink = |step: f64| 1.0 + step * w * 0.05;
                    a.rows[u][c] = (p[c] + lu * g * apart[c]) / shrink(lu);
                    b.rows[i][c] = (q[c] + li * g * p[c]) / shrink(li);
                    b.rows[j][c] = (r[c] - lj * g * p[c]) / shrink(lj);
                }
                if adaptive {
                    a.extras[u][1] += g * g * dot(&apart, &apart) / k as f64;
                    b.extras[i][1] += g * g * dot(&p, &p) / k as f64;
                    b.extras[j][1] += g * g * dot(&p, &p) / k as f64;
                }
                if rule.biases {
                    for (item, step, g) in [(i, bi, g), (j, bj, -g)] {
                        if adaptive {
                            b.extras[item][2] += g * g;
                        }
                        b.extras[item][0] =
                            (b.extras[item][0] + step * g) / (1.0 + step * w * 0.02);
                    }
                }
            }
            for level in Level::available() {
                let (mut p, mut u) = (users.clone(), user_extras.clone());
                let (mut q, mut i) = (items.clone(), item_extras.clone());
                let got = sweep_pairs(
                    level,
                    &rule,
                    Movable { rows: p.as_mut_slice(), extras: &mut u },
                    Movable { rows: q.as_mut_slice(), extras: &mut i },
                    &pairs,
                );
                let case = format!("{level} {rule:?}");
                assert!((got.loss - want.0).abs() < 1e-4 * want.0, "{case}: {got:?}");
                assert!((got.right - want.1).abs() < 1e-4 * (1.0 + want.1), "{case}: {got:?}");
                near(&p, &u, &a, &case);
                near(&q, &i, &b, &case);
            }
        }
    }
}

#[test]
fn a_pull_is_half_the_slope_of_the_loss() {
    for loss in LOSSES {
        for (y, x) in [(0.9f32, 0.2f32), (0.1, 0.25), (0.3, -2.0), (0.0, 3.0)] {
            let h = 1e-3f32;
            let slope = (loss.of(y, x + h) - loss.of(y, x - h)) / (2.0 * f64::from(h));
            let pseudo_residual = f64::from(loss.pseudo_residual(y, x, 0.0));
            assert!(
                (pseudo_residual + slope / 2.0).abs() < 1e-3,
                "{loss:?} {y} {x}: {pseudo_residual} and {slope}"
            );
        }
    }
}

#[test]
fn no_learning_rate_makes_a_step_overshoot() {
    for loss in [ResidualLoss::Squared, ResidualLoss::Absolute, ResidualLoss::Huber(1.0)] {
        for reach in [0.1f32, 1.0, 1e6] {
            let moved = reach * loss.pseudo_residual(5.0, 1.0, reach);
            assert!(moved > 0.0 && moved <= 4.0 * (1.0 + 1e-6), "{loss:?} {reach}: {moved}");
        }
    }
}
