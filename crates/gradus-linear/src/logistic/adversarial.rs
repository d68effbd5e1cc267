//! Logistic regression against perturbations.

use super::{Found, Logistic, LogisticSolver};
use crate::adversarial::{Adversary, Frame, MarginLoss, Margins, Pairs};
use gradus_base::{Error, Result};
use gradus_core::iterate::OwnLoop;
use gradus_core::report::StopReason;

impl Logistic {
    /// The perturbations to learn against, if any.
    pub(super) fn adversary(&self) -> Option<Adversary> {
        let adversary = Adversary { radius: self.adversarial, norm: self.adversarial_norm };
        (self.adversarial > 0.0).then_some(adversary)
    }

    /// Refuses what does not go together with perturbations.
    pub(super) fn check_adversary(&self) -> Result<()> {
        crate::adversarial::check_radius(self.adversarial)?;
        if self.adversarial > 0.0 && self.solver != LogisticSolver::Auto {
            let name = serde_json::to_value(self.solver).unwrap_or_default();
            return Err(Error::parameter(
                "solver",
                name.as_str().unwrap_or_default(),
                "must be auto with `adversarial`, which has a solver of its own",
            ));
        }
        Ok(())
    }

    /// The solution against perturbations, in units of the frame.
    pub(super) fn worst_case(
        &self,
        adversary: Adversary,
        frame: &Frame<'_>,
        (codes, present, n_classes): (&[u32], &[u32], usize),
        start: Option<&[f64]>,
        fit_loop: &mut OwnLoop<'_>,
    ) -> Result<Found> {
        let (ridge, l1) = (frame.ridge(self.ridge()), frame.l1(self.l1()));
        let limits = (self.tol, self.max_iter);
        let mut watch = |value: f64| {
            fit_loop.iteration(value);
            fit_loop.stopped()
        };
        let (point, scores, objective, residual, interrupted) = if n_classes == 2 {
            let signs: Vec<f64> = codes.iter().map(|&c| if c == 1 { 1.0 } else { -1.0 }).collect();
            let problem = Margins {
                design: &frame.design,
                signs: &signs,
                loss: MarginLoss::Logistic,
                adversary,
                moves: &frame.moves,
                ridge: &ridge,
                ridge_b: 0.0,
                l1: &l1,
                intercept: self.fit_intercept,
            };
            let found = problem.solve(start, limits, &mut watch)?;
            let mut point = found.coefficients;
            point.push(found.intercept);
            (point, 1, found.objective, found.residual, found.interrupted)
        } else {
            let place = |code: u32| present.binary_search(&code).unwrap_or_default() as u32;
            let classes: Vec<u32> = codes.iter().map(|&code| place(code)).collect();
            let problem = Pairs {
                design: &frame.design,
                classes: &classes,
                n_classes: present.len(),
                adversary,
                moves: &frame.moves,
                ridge: &ridge,
                l1: &l1,
                intercept: self.fit_intercept,
                smoothing: 0.0,
            };
            let found = problem.solve(start, limits, &mut watch)?;
            (found.point, present.len(), found.objective, found.residual, found.interrupted)
        };
        let stop_reason = match residual <= self.tol {
            true => StopReason::Converged,
            false if interrupted => StopReason::Interrupted,
            false => StopReason::MaxIterations,
        };
        let mut coefficients = point;
        let intercepts = coefficients.split_off(coefficients.len() - scores);
        let mut notes = vec![adversary.note()];
        if scores > 1 {
            notes.push("of each pair of classes the worst perturbation: an upper bound".into());
        }
        let mut found = Found { coefficients, intercepts, objective, residual, stop_reason, notes };
        if scores > 1 && self.l1() == 0.0 {
            found.centre(scores);
        }
        Ok(found)
    }
}
