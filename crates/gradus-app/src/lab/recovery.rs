//! The limits of exact recovery: planted matrices of many ranks, completed from few entries.

use super::{Drawn, standalone};
use gradus::recommenders::recovery::{self, RecoveryMethod, Trial};
use gradus_base::{Error, Result, parallel};
use gradus_report::{Heat, Page, number};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The matrices and the methods that complete them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecoveryRequest {
    /// The methods by name.
    pub methods: Vec<String>,
    /// Number of rows and of columns of the planted matrices.
    pub size: usize,
    /// The largest share of the size that is tried as a rank.
    pub ranks: f64,
    /// Number of ranks, and of shares observed, that are tried.
    pub steps: usize,
    /// Planted matrices for each rank and share.
    pub rounds: usize,
    /// The relative error up to which a matrix counts as recovered.
    pub tolerance: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for RecoveryRequest {
    fn default() -> Self {
        let methods = RecoveryMethod::ALL.iter().map(|method| method.name().to_owned()).collect();
        Self { methods, size: 40, ranks: 0.5, steps: 10, rounds: 4, tolerance: 0.01, seed: 0 }
    }
}

/// How often each method recovered matrices of each rank, from each share of the entries.
#[derive(Clone, Debug, Serialize)]
pub struct RecoveryAnswer {
    /// Number of rows and of columns.
    pub size: usize,
    /// The ranks.
    pub ranks: Vec<usize>,
    /// The shares of the entries that were observed.
    pub shares: Vec<f64>,
    /// Planted matrices for each rank and share.
    pub rounds: usize,
    /// The relative error up to which a matrix counts as recovered.
    pub tolerance: f64,
    /// The results of each method.
    pub methods: Vec<MethodRecovery>,
    /// For each rank, the share of the entries that equals the degrees of freedom.
    pub degrees_of_freedom: Vec<f64>,
    /// For each rank, the share at which theory puts the transition of the nuclear norm.
    pub nuclear_norm: Vec<f64>,
}

/// The results of one method.
#[derive(Clone, Debug, Serialize)]
pub struct MethodRecovery {
    /// The method.
    pub method: &'static str,
    /// The share of matrices recovered, by rank, then by share observed.
    pub success: Vec<Vec<f64>>,
    /// The time in seconds.
    pub seconds: f64,
}

impl RecoveryRequest {
    /// Number of matrices that each method completes.
    ///
    /// # Errors
    /// If an option is outside its range.
    pub fn n_trials(&self) -> Result<usize> {
        self.check()?;
        let (ranks, shares) = self.grid();
        Ok(ranks.len() * shares.len() * self.rounds)
    }

    /// Completes all matrices by all methods.
    ///
    /// # Errors
    /// If an option is outside its range.
    pub fn run(&self) -> Result<RecoveryAnswer> {
        let methods = self.check()?;
        let (ranks, shares) = self.grid();
        let methods = methods
            .into_iter()
            .map(|method| self.complete(&ranks, &shares, method))
            .collect::<Result<_>>()?;
        let theory = |share: fn(usize, usize, usize) -> f64| {
            ranks.iter().map(|&rank| share(self.size, self.size, rank)).collect()
        };
        Ok(RecoveryAnswer {
            size: self.size,
            rounds: self.rounds,
            tolerance: self.tolerance,
            methods,
            degrees_of_freedom: theory(recovery::least_share),
            nuclear_norm: theory(recovery::nuclear_norm_share),
            ranks,
            shares,
        })
    }

    /// The methods, each once, if all options make sense.
    fn check(&self) -> Result<Vec<RecoveryMethod>> {
        let wrong = |name: &str, value: String, rule: &str| {
            Err(Error::data(format!("option `{name}` = {value}: must be {rule}")))
        };
        let mut methods = Vec::new();
        for name in &self.methods {
            match RecoveryMethod::ALL.into_iter().find(|method| method.name() == name) {
                Some(method) if !methods.contains(&method) => methods.push(method),
                Some(_) => {}
                None => return wrong("methods", name.clone(), "softimpute, svt or svp"),
            }
        }
        if methods.is_empty() {
            return wrong("methods", "none".into(), "softimpute, svt or svp");
        }
        if !(4..=1000).contains(&self.size) {
            return wrong("size", self.size.to_string(), "from 4 to 1000");
        }
        if !(1..=100).contains(&self.steps) {
            return wrong("steps", self.steps.to_string(), "from 1 to 100");
        }
        if !(1..=10_000).contains(&self.rounds) {
            return wrong("rounds", self.rounds.to_string(), "from 1 to 10000");
        }
        let fits = self.ranks > 0.0 && self.ranks <= 1.0;
        if !fits {
            return wrong("ranks", self.ranks.to_string(), "above 0 and at most 1");
        }
        let fits = self.tolerance > 0.0 && self.tolerance < 1.0;
        if !fits {
            return wrong("tolerance", self.tolerance.to_string(), "between 0 and 1");
        }
        Ok(methods)
    }

    /// The ranks and the shares.
    fn grid(&self) -> (Vec<usize>, Vec<f64>) {
        let (n, steps) = (self.size, self.steps as f64);
        let mut ranks: Vec<usize> = (1..=self.steps)
            .map(|step| (n as f64 * self.ranks * step as f64 / steps).round() as usize)
            .map(|rank| rank.clamp(1, n))
            .collect();
        ranks.dedup();
        (ranks, (1..=self.steps).map(|step| step as f64 / steps).collect())
    }

    /// Completes every matrix by one method, many at a time.
    fn complete(
        &self,
        ranks: &[usize],
        shares: &[f64],
        method: RecoveryMethod,
    ) -> Result<MethodRecovery> {
        let started = Instant::now();
        let (n_rows, n_cols) = (self.size, self.size);
        let mut trials = Vec::new();
        for &rank in ranks {
            for &share in shares {
                for round in 0..self.rounds as u64 {
                    let seed = self.seed.wrapping_mul(10_007).wrapping_add(round);
                    trials.push(Trial { n_rows, n_cols, rank, share, seed });
                }
            }
        }
        let recovered = parallel::try_map(trials, |trial| {
            Ok::<_, Error>(trial.error(method)? <= self.tolerance)
        })?;
        let cells: Vec<f64> = recovered
            .chunks(self.rounds)
            .map(|cell| cell.iter().filter(|&&ok| ok).count() as f64 / self.rounds as f64)
            .collect();
        let success = cells.chunks(shares.len()).map(<[f64]>::to_vec).collect();
        let seconds = started.elapsed().as_secs_f64();
        Ok(MethodRecovery { method: method.name(), success, seconds })
    }
}

impl RecoveryAnswer {
    /// How to read the numbers and the picture.
    pub const ABOUT: &str = "The share observed is the one from which at least half of the matrices of a rank were \
        recovered. The degrees of freedom bound every method; the curve of the nuclear norm is where theory puts the \
        transition of softimpute and svt in large matrices. svp knows the rank.";

    /// The least share from which on half of the matrices of a rank were recovered, by the place of the rank.
    pub fn transition(&self, method: &MethodRecovery, rank: usize) -> Option<f64> {
        let last = method.success[rank].iter().rposition(|&rate| rate < 0.5);
        self.shares.get(last.map_or(0, |at| at + 1)).copied()
    }

    /// Success over share and rank, the largest rank on top, with the curves of theory.
    fn chart(&self, method: &MethodRecovery) -> Heat {
        let n_ranks = self.ranks.len() as f64;
        let n_shares = self.shares.len() as f64;
        // A share of s stands in the middle of its column, a rank of k in that of its row or between two.
        let row = |rank: usize| {
            let above = self.ranks.iter().position(|&k| k >= rank)?;
            let high = self.ranks[above];
            let low = if above == 0 { 0 } else { self.ranks[above - 1] };
            let within = (rank - low) as f64 / (high - low) as f64;
            Some(n_ranks - (above as f64 + within - 0.5))
        };
        let curve = |theory: fn(usize, usize, usize) -> f64| {
            let points = (1..=self.size).filter_map(move |rank| {
                let share = theory(self.size, self.size, rank);
                Some((share * n_shares - 0.5, row(rank)?))
            });
            points.collect::<Vec<_>>()
        };
        Heat::new(method.success.iter().rev())
            .rows(self.ranks.iter().rev().map(ToString::to_string))
            .columns(self.shares.iter().map(|share| number(*share)))
            .max(1.0)
            .decimals(2)
            .curve("degrees of freedom", curve(recovery::least_share))
            .curve("theory of the nuclear norm", curve(recovery::nuclear_norm_share))
            .title(format!("Matrices recovered by {}", method.method))
            .x_label("share of the entries observed")
            .y_label("rank")
    }
}

impl Drawn for RecoveryAnswer {
    /// The picture of the first method.
    fn svg(&self) -> String {
        standalone(&self.chart(&self.methods[0]), 900.0)
    }

    fn page(&self) -> Page {
        let mut page = Page::new("Exact recovery").subtitle(format!(
            "planted matrices of {0} × {0} with normal factors and no noise; {1} for each cell, recovered if the \
             relative error is at most {2}",
            self.size,
            self.rounds,
            number(self.tolerance)
        ));
        for method in &self.methods {
            let chart = self.chart(method);
            page = page.section(method.method, |s| s.chart(chart));
        }
        page.section("How to read it", |s| s.text(Self::ABOUT)).footer("gradus lab recovery")
    }
}
