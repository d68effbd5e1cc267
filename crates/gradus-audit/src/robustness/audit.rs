//! The audit: an ensemble of attacks on every row that is classified rightly, as AutoAttack (Croce and Hein, 2020) has it.

use super::apgd::{Apgd, apgd};
use super::classifier::{Access, Classifier};
use super::decision::{HopSkipJump, hop_skip_jump};
use super::estimate::{Differences, differences};
use super::gradient::{Pgd, fgsm, pgd, transferred};
use super::loss::AttackLoss;
use super::minimum::{Fab, Shortest, fab, linear_distance, shorten};
use super::problem::{Found, Point, Problem, rivals};
use super::space::Space;
use super::square::{Square, square};
use super::{Attack, Norm};
use gradus_base::{Error, Result};
use gradus_data::{Dense, Matrix};
use gradus_metrics::bounds::{Interval, proportion};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Rows that are attacked together.
const ROWS: usize = 1024;
/// A perturbation longer than the radius by this share is rounding.
const ROUNDING: f64 = 1e-6;

/// Options of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobustnessOptions {
    /// The radius of perturbations.
    pub eps: f64,
    /// Further radii of the curve. At these only the first attack runs, so that the curve is an upper bound there.
    pub curve: Vec<f64>,
    /// The attacks, in order; those that suit the model if none is named.
    pub attacks: Vec<Attack>,
    /// Steps of attacks by gradients: 100, as AutoAttack takes.
    pub iterations: usize,
    /// Starts of attacks by gradients.
    pub restarts: usize,
    /// Classes that targeted attacks try at most: 9, as AutoAttack does.
    pub targets: usize,
    /// Evaluations of a row by each attack without gradients at most: 5,000, as AutoAttack allows.
    pub queries: usize,
    /// Momentum of `pgd`.
    pub momentum: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Level of the intervals.
    pub level: f64,
}

impl Default for RobustnessOptions {
    fn default() -> Self {
        Self {
            eps: 0.1,
            curve: Vec::new(),
            attacks: Vec::new(),
            iterations: 100,
            restarts: 1,
            targets: 9,
            queries: 5000,
            momentum: 0.0,
            seed: 0,
            level: 0.95,
        }
    }
}

impl RobustnessOptions {
    /// Refuses values out of range.
    ///
    /// # Errors
    /// Names the first one.
    pub fn check(&self) -> Result<()> {
        for (name, radius) in [("eps", &self.eps)]
            .into_iter()
            .chain(self.curve.iter().map(|radius| ("curve", radius)))
        {
            if !(*radius >= 0.0 && radius.is_finite()) {
                return Err(Error::parameter(
                    name,
                    radius,
                    "a radius must be a number that is 0 or more",
                ));
            }
        }
        let counts = [
            ("iterations", self.iterations),
            ("restarts", self.restarts),
            ("targets", self.targets),
            ("queries", self.queries),
        ];
        if let Some((name, value)) = counts.into_iter().find(|(_, value)| *value == 0) {
            return Err(Error::parameter(name, value, "must be 1 or more"));
        }
        if !(0.0..=1.0).contains(&self.momentum) {
            return Err(Error::parameter("momentum", self.momentum, "must be from 0 to 1"));
        }
        Ok(())
    }

    /// The radii of the curve, ascending, with that of the audit and 0.
    fn radii(&self) -> Vec<f64> {
        let mut radii: Vec<f64> = self.curve.iter().copied().chain([0.0, self.eps]).collect();
        radii.sort_by(f64::total_cmp);
        radii.dedup();
        radii
    }
}

/// A share of the rows, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Rows that count.
    pub count: usize,
    /// All rows.
    pub of: usize,
    /// Their quotient.
    pub value: f64,
    /// The interval of the share among all rows that there could be.
    pub interval: Interval,
}

impl Share {
    pub(super) fn new(count: usize, of: usize, level: f64) -> Result<Self> {
        let interval = proportion(count as u64, of as u64, level)?;
        Ok(Self { count, of, value: count as f64 / of as f64, interval })
    }
}

/// Robust accuracy at one radius.
#[derive(Clone, Debug, Serialize)]
pub struct CurvePoint {
    /// The radius.
    pub eps: f64,
    /// Rows whose decision is right and was not changed within the radius.
    pub robust: Share,
    /// The attacks that ran at this radius.
    pub attacks: Vec<Attack>,
}

/// What one attack did at the radius of the audit.
#[derive(Clone, Debug, Serialize)]
pub struct AttackOutcome {
    /// The attack.
    pub attack: Attack,
    /// Rows that it attacked: those still standing.
    pub tried: usize,
    /// Rows that fell.
    pub fell: usize,
    /// Evaluations of the model, over all rows.
    pub queries: u64,
    /// The time, in seconds.
    pub seconds: f64,
}

/// What is known of one row.
#[derive(Clone, Debug, Serialize)]
pub struct RowOutcome {
    /// The number of the row.
    pub row: usize,
    /// The true class; `None` of a class that the model does not know.
    pub truth: Option<u32>,
    /// The class predicted.
    pub predicted: u32,
    /// The length of the shortest perturbation known to change a right decision.
    pub distance: Option<f64>,
    /// The attack that found that perturbation.
    pub by: Option<Attack>,
    /// The class that the decision changes to.
    pub becomes: Option<u32>,
}

/// The result of an audit.
#[derive(Clone, Debug, Serialize)]
pub struct Robustness {
    /// The norm.
    pub norm: Norm,
    /// The radius.
    pub eps: f64,
    /// What the attacks could ask the model for.
    pub access: Access,
    /// Whether distances are exact: no perturbation is shorter.
    pub exact: bool,
    /// Rows whose decision is right.
    pub accuracy: Share,
    /// Rows whose decision is right and was not changed within the radius.
    pub robust: Share,
    /// The same over further radii.
    pub curve: Vec<CurvePoint>,
    /// What each attack did.
    pub attacks: Vec<AttackOutcome>,
    /// What is known of each row.
    pub rows: Vec<RowOutcome>,
    /// Remarks on what to make of the numbers.
    pub notes: Vec<String>,
    /// The changed features of each row whose decision could be changed, in the order of `rows`.
    #[serde(skip)]
    pub examples: Vec<Option<Vec<f64>>>,
}

impl Robustness {
    /// Rows that fell within the radius, and how.
    pub fn fallen(&self) -> impl Iterator<Item = &RowOutcome> {
        let within = self.eps * (1.0 + ROUNDING);
        self.rows.iter().filter(move |row| row.distance.is_some_and(|distance| distance <= within))
    }

    /// The median of the lengths of the perturbations known; `None` if fewer than half of the right decisions could be changed.
    pub fn median_distance(&self) -> Option<f64> {
        let right = self.accuracy.count;
        let mut known: Vec<f64> = self.rows.iter().filter_map(|row| row.distance).collect();
        known.sort_by(f64::total_cmp);
        (right > 0).then(|| known.get((right - 1) / 2).copied()).flatten()
    }
}

/// The shortest perturbation known of a row.
struct Known {
    distance: f64,
    by: Attack,
    becomes: u32,
    delta: Vec<f64>,
    example: Vec<f64>,
}

/// Attacks every row that is classified rightly, and tells which decisions stand.
///
/// # Errors
/// If an option is out of range, an attack needs more than the model gives, the features are not those of training, or there are no rows.
pub fn audit(
    victim: &dyn Classifier,
    space: &Space,
    features: &Dense<f64>,
    truth: &[Option<u32>],
    options: &RobustnessOptions,
    stopped: &dyn Fn() -> bool,
) -> Result<Robustness> {
    audit_with(victim, None, space, features, truth, options, stopped)
}

/// The same with a surrogate for the attack by transfer, as [`steal`](super::steal) trains one.
///
/// # Errors
/// As [`audit`]; and if that attack is asked for without a surrogate, or one of other features or classes.
pub fn audit_with(
    victim: &dyn Classifier,
    surrogate: Option<&dyn Classifier>,
    space: &Space,
    features: &Dense<f64>,
    truth: &[Option<u32>],
    options: &RobustnessOptions,
    stopped: &dyn Fn() -> bool,
) -> Result<Robustness> {
    options.check()?;
    space.check(victim.n_features())?;
    let n = features.n_rows();
    if n == 0 {
        return Err(Error::data("no rows to audit"));
    }
    if n != truth.len() {
        return Err(Error::Shape {
            what: "true classes".into(),
            expected: n.to_string(),
            got: truth.len().to_string(),
        });
    }
    Matrix::Dense(features.clone()).check_finite()?;
    let affine = victim.affine().filter(|_| space.is_continuous());
    let attacks = match &options.attacks[..] {
        [] => Attack::ensemble(victim.access(), affine.is_some()),
        given => given.to_vec(),
    };
    attacks.iter().try_for_each(|attack| attack.check(victim.access(), affine.is_some()))?;
    if attacks.contains(&Attack::Transfer) {
        let fits = |other: &&dyn Classifier| {
            let same = (other.n_features(), other.n_classes())
                == (victim.n_features(), victim.n_classes());
            same && other.access() == Access::Gradients
        };
        if surrogate.filter(fits).is_none() {
            let rule =
                "the attack needs a surrogate with gradients, of the same features and classes";
            return Err(Error::parameter("attacks", Attack::Transfer, rule));
        }
    }
    let predicted = victim.decide(&Matrix::Dense(features.clone()))?;
    let right: Vec<u32> =
        (0..n as u32).filter(|&at| truth[at as usize] == Some(predicted[at as usize])).collect();
    let mut run = Run {
        victim,
        surrogate,
        space,
        features,
        predicted: &predicted,
        options,
        affine,
        attacks: &attacks,
        outcomes: attacks
            .iter()
            .map(|&attack| AttackOutcome { attack, tried: 0, fell: 0, queries: 0, seconds: 0.0 })
            .collect(),
        stopped,
    };
    let mut known: Vec<Option<Known>> = (0..n).map(|_| None).collect();
    for part in right.chunks(ROWS) {
        for (&at, found) in part.iter().zip(run.part(part)?) {
            known[at as usize] = found;
        }
    }
    let outcomes = run.outcomes;
    let exact = attacks.contains(&Attack::Exact);
    let share = |eps: f64| -> Result<Share> {
        let fallen =
            known.iter().flatten().filter(|known| known.distance <= eps * (1.0 + ROUNDING)).count();
        Share::new(right.len() - fallen, n, options.level)
    };
    let point = |eps: f64| -> Result<CurvePoint> {
        let attacks = match eps {
            0.0 => Vec::new(),
            eps if eps == options.eps || exact => attacks.clone(),
            _ => attacks[..1].to_vec(),
        };
        Ok(CurvePoint { eps, robust: share(eps)?, attacks })
    };
    let curve = options.radii().into_iter().map(point).collect::<Result<Vec<_>>>()?;
    let mut notes = Vec::new();
    let fell = |of: &dyn Fn(&Attack) -> bool| -> usize {
        outcomes.iter().filter(|outcome| of(&outcome.attack)).map(|outcome| outcome.fell).sum()
    };
    let blind = fell(&|attack| attack.access() != Access::Gradients && *attack != Attack::Exact);
    if blind > 0 && attacks.iter().any(|attack| attack.access() == Access::Gradients) {
        notes.push(format!(
            "{blind} rows fell to an attack without gradients after those with gradients had failed: gradients of the model may be \
             too small or too rough to follow (gradient masking), and the accuracy may be lower than shown"
        ));
    }
    let rows = (0..n)
        .map(|row| RowOutcome {
            row,
            truth: truth[row],
            predicted: predicted[row],
            distance: known[row].as_ref().map(|known| known.distance),
            by: known[row].as_ref().map(|known| known.by),
            becomes: known[row].as_ref().map(|known| known.becomes),
        })
        .collect();
    Ok(Robustness {
        norm: space.norm,
        eps: options.eps,
        access: victim.access(),
        exact,
        accuracy: Share::new(right.len(), n, options.level)?,
        robust: share(options.eps)?,
        curve,
        attacks: outcomes,
        rows,
        notes,
        examples: known.into_iter().map(|known| known.map(|known| known.example)).collect(),
    })
}

struct Run<'a> {
    victim: &'a dyn Classifier,
    surrogate: Option<&'a dyn Classifier>,
    space: &'a Space,
    features: &'a Dense<f64>,
    predicted: &'a [u32],
    options: &'a RobustnessOptions,
    affine: Option<(Dense<f64>, Vec<f64>)>,
    attacks: &'a [Attack],
    outcomes: Vec<AttackOutcome>,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Run<'a> {
    /// Attacks some rows of right decisions at all radii.
    fn part(&mut self, part: &[u32]) -> Result<Vec<Option<Known>>> {
        let d = self.features.n_cols();
        let values = part.iter().flat_map(|&at| self.features.row(at as usize)).copied().collect();
        let rows = Dense::new(part.len(), d, values)?;
        let truth = part.iter().map(|&at| self.predicted[at as usize]).collect();
        let ids = part.iter().map(|&at| u64::from(at)).collect();
        let mut problem = Problem::new(self.victim, self.space, rows, truth, ids, self.stopped);
        let mut known: Vec<Option<Known>> = part.iter().map(|_| None).collect();
        if self.attacks.contains(&Attack::Exact) {
            self.exact(&problem, part, &mut known)?;
            return Ok(known);
        }
        for eps in self.options.radii() {
            if eps == 0.0 {
                continue;
            }
            let all = eps == self.options.eps;
            let n = if all { self.attacks.len() } else { 1 };
            for at in 0..n {
                let standing = |known: &[Option<Known>]| -> Vec<u32> {
                    let fell = |known: &Option<Known>| {
                        known.as_ref().is_some_and(|known| known.distance <= eps * (1.0 + ROUNDING))
                    };
                    (0..part.len() as u32).filter(|&row| !fell(&known[row as usize])).collect()
                };
                let rows = standing(&known);
                if rows.is_empty() {
                    break;
                }
                let started = Instant::now();
                let attack = self.attacks[at];
                problem.eps = if attack.is_minimal() { f64::INFINITY } else { eps };
                let before: u64 = rows.iter().map(|&row| problem.queries(row)).sum();
                self.attack(attack, &problem, &rows, part, eps, &mut known)?;
                let after: u64 = rows.iter().map(|&row| problem.queries(row)).sum();
                if all {
                    let outcome = &mut self.outcomes[at];
                    outcome.tried += rows.len();
                    outcome.fell += rows.len() - standing(&known).len();
                    outcome.queries += after - before;
                    outcome.seconds += started.elapsed().as_secs_f64();
                }
            }
        }
        self.shortened(&mut problem, &mut known)?;
        Ok(known)
    }

    /// The exact distances of a linear model.
    fn exact(
        &mut self,
        problem: &Problem<'_>,
        part: &[u32],
        known: &mut [Option<Known>],
    ) -> Result<()> {
        let started = Instant::now();
        let Some((w, b)) = &self.affine else { return Ok(()) };
        let found = gradus_base::parallel::map_below(part.len(), 16, {
            let (rows, truth, space) = (&problem.moves.rows, &problem.truth, self.space);
            move |at| linear_distance(w, b, rows.row(at), truth[at], space)
        });
        for (known, found) in known.iter_mut().zip(found) {
            if found.distance.is_finite() {
                *known = Some(Known {
                    distance: found.distance,
                    by: Attack::Exact,
                    becomes: found.becomes,
                    delta: Vec::new(),
                    example: found.point,
                });
            }
        }
        let fell = known
            .iter()
            .flatten()
            .filter(|known| known.distance <= self.options.eps * (1.0 + ROUNDING))
            .count();
        if let Some(outcome) =
            self.outcomes.iter_mut().find(|outcome| outcome.attack == Attack::Exact)
        {
            outcome.tried += part.len();
            outcome.fell += fell;
            outcome.seconds += started.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Runs one attack, and keeps what it found if that is shorter than what was known.
    fn attack(
        &self,
        attack: Attack,
        problem: &Problem<'a>,
        rows: &[u32],
        part: &[u32],
        eps: f64,
        known: &mut [Option<Known>],
    ) -> Result<()> {
        let options = self.options;
        let apgd_options =
            Apgd { iterations: options.iterations, restarts: options.restarts, seed: options.seed };
        let found: Found = match attack {
            Attack::Exact => return Ok(()),
            Attack::Fgsm => fgsm(problem, rows, eps)?,
            Attack::Pgd => {
                let pgd_options = Pgd {
                    iterations: options.iterations,
                    restarts: options.restarts,
                    momentum: options.momentum,
                    seed: options.seed,
                    ..Pgd::default()
                };
                pgd(problem, rows, eps, &pgd_options)?
            }
            Attack::ApgdCe => apgd(
                problem,
                rows,
                eps,
                &vec![AttackLoss::CrossEntropy; rows.len()],
                &apgd_options,
            )?,
            Attack::ApgdDlr => {
                apgd(problem, rows, eps, &vec![AttackLoss::Dlr; rows.len()], &apgd_options)?
            }
            Attack::ApgdT | Attack::FabT => self.targeted(attack, problem, rows, eps)?,
            Attack::Square => square(
                problem,
                rows,
                eps,
                &Square { queries: options.queries, seed: options.seed },
            )?,
            Attack::Differences => differences(
                problem,
                rows,
                eps,
                &Differences {
                    queries: options.queries,
                    iterations: options.iterations,
                    seed: options.seed,
                },
            )?,
            Attack::Transfer => match self.surrogate {
                None => vec![None; rows.len()],
                Some(surrogate) => {
                    let found =
                        transferred(&problem.against(surrogate), rows, eps, options.iterations)?;
                    let points: Vec<Point<'_>> =
                        rows.iter().zip(&found).map(|(&row, delta)| (row, &delta[..])).collect();
                    problem.decide(&points)?;
                    found.into_iter().map(Some).collect()
                }
            },
            Attack::HopSkipJump => {
                let starts: Vec<Option<Vec<f64>>> =
                    rows.iter().map(|&row| self.nearest_other(problem, part, row)).collect();
                let hop = HopSkipJump { queries: options.queries, enough: eps, seed: options.seed };
                let found = hop_skip_jump(problem, rows, &starts, &hop)?;
                found.into_iter().map(|found| found.map(|(_, delta)| delta)).collect()
            }
        };
        record(attack, problem, rows, found, known)
    }

    /// A targeted attack, towards one class after another.
    fn targeted(
        &self,
        attack: Attack,
        problem: &Problem<'_>,
        rows: &[u32],
        eps: f64,
    ) -> Result<Found> {
        let options = self.options;
        let order = rivals(problem, rows)?;
        let mut best: Shortest = vec![None; rows.len()];
        for rank in 0..options.targets.min(self.victim.n_classes() - 1) {
            if attack == Attack::FabT {
                let targets: Vec<u32> = order.iter().map(|order| order[rank]).collect();
                let fab_options = Fab { iterations: options.iterations, enough: eps };
                fab(problem, rows, &targets, &mut best, &fab_options)?;
                continue;
            }
            let open: Vec<usize> = (0..rows.len()).filter(|&at| best[at].is_none()).collect();
            let some: Vec<u32> = open.iter().map(|&at| rows[at]).collect();
            let losses: Vec<AttackLoss> =
                open.iter().map(|&at| AttackLoss::TargetedDlr(order[at][rank])).collect();
            let seed = options.seed.wrapping_add(1 + rank as u64);
            let apgd_options =
                Apgd { iterations: options.iterations, restarts: options.restarts, seed };
            for (at, found) in
                open.into_iter().zip(apgd(problem, &some, eps, &losses, &apgd_options)?)
            {
                best[at] = found.map(|delta| (0.0, delta));
            }
        }
        Ok(best.into_iter().map(|found| found.map(|(_, delta)| delta)).collect())
    }

    /// The perturbation that makes a row the nearest one of the data whose decision differs, to start from.
    fn nearest_other(&self, problem: &Problem<'_>, part: &[u32], row: u32) -> Option<Vec<f64>> {
        let own = self.predicted[part[row as usize] as usize];
        let others = (0..self.features.n_rows()).filter(|&at| self.predicted[at] != own);
        let apart = |at: usize| {
            let delta = problem.moves.delta_to(row, self.features.row(at));
            (Norm::L2.length(&delta), delta)
        };
        let nearest = others.map(apart).min_by(|a, b| a.0.total_cmp(&b.0));
        nearest.map(|(_, delta)| delta)
    }

    /// Shortens all perturbations along the segment to the row.
    fn shortened(&self, problem: &mut Problem<'_>, known: &mut [Option<Known>]) -> Result<()> {
        problem.eps = f64::INFINITY;
        let rows: Vec<u32> =
            (0..known.len() as u32).filter(|&row| known[row as usize].is_some()).collect();
        let of = |row: &u32| {
            known[*row as usize].as_ref().map(|known| (known.distance, known.delta.clone()))
        };
        let mut best: Shortest = rows.iter().map(of).collect();
        shorten(problem, &rows, &mut best)?;
        let by: Vec<Option<Attack>> =
            known.iter().map(|known| known.as_ref().map(|known| known.by)).collect();
        for (&row, found) in rows.iter().zip(best) {
            if let (Some(by), Some((_, delta))) = (by[row as usize], found) {
                record(by, problem, &[row], vec![Some(delta)], known)?;
            }
        }
        Ok(())
    }
}

/// Keeps perturbations whose decision differs, if they are shorter than what is known.
fn record(
    attack: Attack,
    problem: &Problem<'_>,
    rows: &[u32],
    found: Found,
    known: &mut [Option<Known>],
) -> Result<()> {
    let found: Vec<(u32, Vec<f64>)> = rows
        .iter()
        .zip(found)
        .filter_map(|(&row, delta)| delta.map(|delta| (row, delta)))
        .collect();
    if found.is_empty() {
        return Ok(());
    }
    let points: Vec<Point<'_>> = found.iter().map(|(row, delta)| (*row, &delta[..])).collect();
    let lifted = problem.moves.lift_all(&points, problem.eps);
    // The check is not part of the attack, and not counted.
    let classes = problem.victim.decide(&lifted)?;
    let lifted = lifted.to_dense();
    for (((row, delta), class), example) in found.into_iter().zip(classes).zip(lifted.rows()) {
        let at = row as usize;
        if class == problem.truth[at] {
            continue;
        }
        let distance = problem.moves.space.distance(problem.moves.rows.row(at), example);
        if known[at].as_ref().is_none_or(|known| distance < known.distance) {
            known[at] = Some(Known {
                distance,
                by: attack,
                becomes: class,
                delta,
                example: example.to_vec(),
            });
        }
    }
    Ok(())
}
