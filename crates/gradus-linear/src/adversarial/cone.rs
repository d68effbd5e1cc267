//! The cone of the points `(z, ρ)` with `‖z‖ ≤ ρ`: the proximal step of adversarial training.
//!
//! A bound `ρ` on the norm of the coefficients makes the objective smooth, and the cone is simple: points outside are brought
//! in by their projection. The objective rises with `ρ`, so that at a solution it is the norm.

use gradus_base::Result;
use gradus_optim::AdversarialNorm;
use gradus_optim::proximal::{Penalty, soft_threshold};

/// `Σ l1_j |z_j|`, and infinity where the norm of the coefficients that move is above `ρ`. A point holds the coefficients, the
/// intercept and `ρ`.
pub(super) struct Cone<'p> {
    pub(super) norm: AdversarialNorm,
    pub(super) moves: &'p [bool],
    pub(super) l1: &'p [f64],
}

impl Cone<'_> {
    /// The norm of the coefficients that move.
    pub(super) fn size(&self, z: &[f64]) -> f64 {
        self.norm.dual(z.iter().zip(self.moves).filter(|(_, moves)| **moves).map(|(z, _)| *z))
    }

    /// The absolute values.
    pub(super) fn absolute(&self, z: &[f64]) -> f64 {
        z.iter().zip(self.l1).map(|(z, l1)| l1 * z.abs()).sum()
    }

    /// The projection onto the cone of the coefficients that move and `ρ`.
    fn project(&self, z: &mut [f64], rho: &mut f64) {
        let size = self.size(z);
        if size <= *rho {
            return;
        }
        let moving = z.iter_mut().zip(self.moves).filter(|(_, moves)| **moves).map(|(z, _)| z);
        match self.norm {
            AdversarialNorm::L2 => {
                let to = (0.5 * (size + *rho)).max(0.0);
                let share = if size > 0.0 { to / size } else { 0.0 };
                moving.for_each(|z| *z *= share);
                *rho = to;
            }
            AdversarialNorm::Linf => {
                // `ρ + λ` is the sum of what stays above λ: the root is between two sizes.
                let mut sizes: Vec<f64> =
                    z.iter().zip(self.moves).filter(|(_, m)| **m).map(|(z, _)| z.abs()).collect();
                sizes.sort_by(|a, b| b.total_cmp(a));
                let (mut sum, mut cut) = (0.0, -*rho);
                for (at, size) in sizes.iter().enumerate() {
                    sum += size;
                    let next = (sum - *rho) / (at + 2) as f64;
                    if *size <= next {
                        break;
                    }
                    cut = next;
                }
                // Below the polar cone everything is 0.
                let cut = cut.max(0.0);
                let each = z.iter_mut().zip(self.moves).filter(|(_, moves)| **moves);
                each.for_each(|(z, _)| *z = soft_threshold(*z, cut));
                *rho = (*rho + cut).max(0.0);
            }
        }
    }
}

impl Penalty for Cone<'_> {
    fn value(&self, x: &[f64]) -> f64 {
        // Only ever asked at points of the cone.
        self.absolute(&x[..self.l1.len()])
    }

    /// Absolute values first, then the cone: both only shrink, so that one after the other is the step of both.
    fn prox(&self, step: f64, x: &mut [f64]) {
        let (z, rest) = x.split_at_mut(self.l1.len());
        z.iter_mut().zip(self.l1).for_each(|(z, l1)| *z = soft_threshold(*z, step * l1));
        if let [_, rho] = rest {
            self.project(z, rho);
        }
    }

    fn check(&self, _: usize) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    /// Of all points of the cone, none that was tried is nearer; and the projection is in the cone.
    #[test]
    fn the_step_is_the_nearest_point() {
        let mut stream = Stream::new(3, "cone.tests", 0);
        let moves = [true, true, false, true];
        for norm in [AdversarialNorm::Linf, AdversarialNorm::L2] {
            for trial in 0..60 {
                let l1 = if trial % 2 == 0 { [0.0; 4] } else { [0.3, 0.1, 0.2, 0.0] };
                let cone = Cone { norm, moves: &moves, l1: &l1 };
                let x: Vec<f64> = (0..6).map(|_| 2.0 * stream.normal()).collect();
                let mut z = x.clone();
                cone.prox(0.5, &mut z);
                assert!(cone.size(&z[..4]) <= z[5] + 1e-12, "{norm:?} {x:?} {z:?}");
                let cost = |z: &[f64]| {
                    let apart: f64 = z.iter().zip(&x).map(|(z, x)| (z - x) * (z - x)).sum();
                    apart / (2.0 * 0.5) + cone.absolute(&z[..4])
                };
                let best = cost(&z);
                for _ in 0..400 {
                    let size = 10f64.powf(-4.0 * stream.uniform());
                    let mut other: Vec<f64> =
                        z.iter().map(|z| z + size * stream.normal()).collect();
                    other[5] = other[5].max(cone.size(&other[..4]));
                    assert!(cost(&other) >= best - 1e-12, "{norm:?} {x:?} {z:?} {other:?}");
                }
            }
        }
    }
}
