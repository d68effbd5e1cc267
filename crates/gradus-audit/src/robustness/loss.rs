//! Losses of scores that attacks raise, with their derivatives with respect to the scores.

/// A loss that is the higher the nearer a sample is to another class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttackLoss {
    /// Cross-entropy: `log Σ exp z − z_y`.
    CrossEntropy,
    /// Difference of logits ratio (Croce and Hein, 2020): `−(z_y − max_{k≠y} z_k) / (z_(1) − z_(3))`, which does not change when
    /// the scores are shifted or scaled. Of two classes the margin.
    Dlr,
    /// The same towards one class `t`: `−(z_y − z_t) / (z_(1) − ½ (z_(3) + z_(4)))`; of three classes with `z_(3)` alone, of two
    /// the margin.
    TargetedDlr(u32),
    /// `max_{k≠y} z_k − z_y`: positive where the sample has fallen.
    Margin,
    /// `z_t − z_y` for a class `t`.
    TargetedMargin(u32),
}

/// Keeps ratios finite where all scores are equal.
const TINY: f64 = 1e-12;

impl AttackLoss {
    /// The loss, and its derivatives with respect to the scores, written to `slopes`.
    pub fn value(self, scores: &[f64], truth: u32, slopes: &mut [f64]) -> f64 {
        slopes.fill(0.0);
        let y = truth as usize;
        let rival = || {
            let others = (0..scores.len()).filter(|&class| class != y);
            others.fold(usize::from(y == 0), |best, class| {
                if scores[class] > scores[best] { class } else { best }
            })
        };
        match self {
            Self::CrossEntropy => {
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut sum = 0.0;
                for (slope, z) in slopes.iter_mut().zip(scores) {
                    *slope = (z - most).exp();
                    sum += *slope;
                }
                slopes.iter_mut().for_each(|slope| *slope /= sum);
                slopes[y] -= 1.0;
                most + sum.ln() - scores[y]
            }
            Self::Margin => {
                let other = rival();
                slopes[y] = -1.0;
                slopes[other] = 1.0;
                scores[other] - scores[y]
            }
            Self::TargetedMargin(target) => {
                slopes[y] = -1.0;
                slopes[target as usize] += 1.0;
                scores[target as usize] - scores[y]
            }
            Self::Dlr | Self::TargetedDlr(_) => {
                let other = match self {
                    Self::TargetedDlr(target) => target as usize,
                    _ => rival(),
                };
                if scores.len() == 2 {
                    slopes[y] = -1.0;
                    slopes[other] = 1.0;
                    return scores[other] - scores[y];
                }
                let mut order: Vec<usize> = (0..scores.len()).collect();
                order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
                let rest: &[usize] = match self {
                    Self::TargetedDlr(_) if order.len() > 3 => &order[2..4],
                    _ => &order[2..3],
                };
                let part = 1.0 / rest.len() as f64;
                let below: f64 = rest.iter().map(|&class| part * scores[class]).sum();
                let width = scores[order[0]] - below + TINY;
                let gap = scores[y] - scores[other];
                // L = −gap / width.
                slopes[y] -= 1.0 / width;
                slopes[other] += 1.0 / width;
                let by = gap / (width * width);
                slopes[order[0]] += by;
                rest.iter().for_each(|&class| slopes[class] -= part * by);
                -gap / width
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    #[test]
    fn slopes_are_those_of_differences() {
        for k in [2usize, 3, 4, 7] {
            for seed in 0..20 {
                let mut stream = Stream::new(seed, "test.loss", k as u64);
                let scores: Vec<f64> = (0..k).map(|_| stream.normal()).collect();
                let truth = stream.index(k) as u32;
                let target = (truth + 1) % k as u32;
                for loss in [
                    AttackLoss::CrossEntropy,
                    AttackLoss::Dlr,
                    AttackLoss::TargetedDlr(target),
                    AttackLoss::Margin,
                    AttackLoss::TargetedMargin(target),
                ] {
                    let (mut slopes, mut scratch) = (vec![0.0; k], vec![0.0; k]);
                    loss.value(&scores, truth, &mut slopes);
                    for at in 0..k {
                        let mut moved = |by: f64| {
                            let mut moved = scores.clone();
                            moved[at] += by;
                            loss.value(&moved, truth, &mut scratch)
                        };
                        let rise = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                        assert!(
                            (rise - slopes[at]).abs() < 1e-5 * (1.0 + rise.abs()),
                            "{loss:?} {k} {seed}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_margin_is_positive_where_another_class_has_the_higher_score() {
        let mut slopes = [0.0; 3];
        assert_eq!(AttackLoss::Margin.value(&[1.0, 3.0, 2.0], 1, &mut slopes), -1.0);
        assert_eq!(slopes, [0.0, -1.0, 1.0]);
        assert_eq!(AttackLoss::Margin.value(&[1.0, 3.0, 2.0], 0, &mut slopes), 2.0);
    }
}
