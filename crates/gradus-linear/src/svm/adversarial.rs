//! Linear machines against perturbations of the features, with squared hinge loss.
//!
//! `½‖w‖² + C Σ c_i ℓ(t_i f(x_i) − ε ‖u∘w‖*)`, divided by `C Σ c_i`, is the problem of [`Margins`].

use super::learn::{Options, Part};
use super::model::{Machine, Support, SvmModel};
use super::newton::Watch;
use super::problem::Intercept;
use crate::adversarial::{Adversary, Frame, MarginLoss, Margins};
use crate::model::{LinearModel, Link};
use gradus_base::Result;
use gradus_core::iterate::LoopOutcome;
use gradus_core::report::{Certificate, StopReason};
use gradus_data::{Dense, Samples};

/// Learns a linear machine for each part. `weights` is what each sample counts, without the cost.
pub(super) fn learn(
    options: &Options,
    adversary: Adversary,
    data: &Samples,
    parts: &[Part],
    (weights, warm): (&[f64], Option<&LinearModel>),
    watch: &mut dyn Watch,
) -> Result<(SvmModel, LoopOutcome)> {
    let center = options.intercept() == Intercept::Free && !data.features().is_sparse();
    let frame = Frame::new(data, Some(weights), (center, options.standardize));
    let design = &frame.design;
    let (n, d, total) = (design.n(), design.d(), design.total());
    let (mut w, mut b, mut supports) = (Vec::new(), Vec::new(), Vec::new());
    let (mut objective, mut worst, mut interrupted) = (0.0, 0.0f64, false);
    for (at, part) in parts.iter().enumerate() {
        if let Some(constant) = part.constant {
            w.extend(std::iter::repeat_n(0.0, d));
            b.push(if options.fit_intercept { constant } else { 0.0 });
            supports.push(Support::default());
            continue;
        }
        // A cost without bound would leave nothing of the penalty.
        let share = (1.0 / (part.c * total)).max(f64::MIN_POSITIVE);
        let (ridge, l1) = match options.l1 {
            true => (vec![0.0; d], frame.l1(share)),
            false => (frame.ridge(share), vec![0.0; d]),
        };
        let penalises = options.intercept() == Intercept::Penalized && !options.l1;
        let problem = Margins {
            design,
            signs: &part.targets,
            loss: MarginLoss::SquaredHinge,
            adversary,
            moves: &frame.moves,
            ridge: &ridge,
            ridge_b: if penalises { share } else { 0.0 },
            l1: &l1,
            intercept: options.fit_intercept,
        };
        let start = warm
            .filter(|model| model.coefficients().n_cols() == d && at < model.intercepts().len())
            .map(|model| {
                let own = model.coefficients().row(at);
                let (mut w, b) = design.prepared(own, model.intercepts()[at]);
                w.push(if options.fit_intercept { b } else { 0.0 });
                w
            })
            .filter(|start| start.iter().all(|x| x.is_finite()));
        let limits = (options.tolerance(), options.max_iter);
        let found = problem.solve(start.as_deref(), limits, &mut |value| {
            watch.iteration((value / share).min(f64::MAX));
            watch.stopped()
        })?;
        let mut scores = vec![0.0; n];
        design.times(&found.coefficients, found.intercept, &mut scores);
        let lowered = adversary.radius
            * adversary.norm.dual(
                found.coefficients.iter().zip(&frame.moves).filter(|(_, m)| **m).map(|(w, _)| *w),
            );
        let slack = |row: usize| (1.0 - part.targets[row] * scores[row] + lowered).max(0.0);
        let beta = (0..n as u32).map(|row| {
            let at = row as usize;
            (row, 2.0 * part.c * weights[at] * slack(at) * part.targets[at])
        });
        supports.push(Support::of(beta, slack, |_| f64::INFINITY));
        let (own_w, own_b) = design.restore(&found.coefficients, found.intercept);
        w.extend(own_w);
        b.push(if options.fit_intercept { own_b } else { 0.0 });
        objective += found.objective / share;
        worst = worst.max(found.residual);
        interrupted |= found.interrupted;
    }
    super::linear::check_finite(options, &w, &b)?;
    let w = Dense::new(parts.len(), d, w)?;
    let machine = Machine::Linear(LinearModel::new(data, Link::Margin, w, b));
    let tolerance = options.tolerance();
    let ending = LoopOutcome {
        stop_reason: match worst <= tolerance {
            true => StopReason::Converged,
            false if interrupted => StopReason::Interrupted,
            false => StopReason::MaxIterations,
        },
        objective: objective.min(f64::MAX),
        validation: None,
        certificate: Some(Certificate {
            name: "gradient (largest entry, as a share of that at 0)".into(),
            value: worst,
            tolerance,
        }),
        notes: vec![adversary.note()],
    };
    Ok((SvmModel::new(machine, supports), ending))
}
