//! The parameters that were left out, chosen by held-out items.

use super::Spectral;
use super::trial::Trial;
use crate::choice::{Part, too_few};
use crate::ranking::METRIC;
use gradus_base::Result;
use gradus_core::estimator::Job;
use gradus_core::report::Choice;
use gradus_data::Ratings;

/// The weights of the low-pass filter, times of sharpening and exponents of popularity that are tried.
const LOW_PASS: [f32; 6] = [0.0, 0.05, 0.1, 0.2, 0.4, 0.8];
const SHARPENING: [f32; 3] = [0.0, 1.0, 2.0];
const POPULARITY: [f32; 5] = [-0.2, -0.1, 0.0, 0.1, 0.2];
/// The largest number of users that are scored, also while exponents are searched.
const USERS: u64 = 4000;
const USERS_OF_EXPONENTS: usize = 1000;
/// The shares of the largest rank that are tried, as one in this many.
const ONE_IN: [usize; 5] = [16, 8, 4, 2, 1];
/// All settings are tried on at least this many users, or on as many as make this many scores; the better ones on all.
const LEAST_USERS: usize = 300;
const SCORES: usize = 2_000_000_000;
/// One in this many settings is tried on all users.
const KEPT: usize = 8;
/// The exponents where there are too few data to choose.
const DEFAULT: (f32, f32) = (0.2, 1.0);
const EXPONENTS: Exponents = Exponents { user: 0.3, item: 0.5 };
/// The step in which exponents are looked for, and where they end.
const STEP: f32 = 0.1;
const RANGE: (f32, f32) = (0.0, 1.0);
/// Exponents are looked for where a try takes at most this many multiplications, some ten seconds on one core.
const CHEAP: f64 = 6e10;

/// The exponents of the degrees of users and items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exponents {
    pub(super) user: f32,
    pub(super) item: f32,
}

/// The parameters of the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) exponents: Exponents,
    pub(super) rank: usize,
    pub(super) low_pass: f32,
    pub(super) sharpening: f32,
    pub(super) popularity: f32,
}

impl Setting {
    /// Returns the given parameters, if nothing was left out.
    pub(super) fn given(params: &Spectral) -> Option<Self> {
        Some(Self {
            exponents: Exponents { user: params.user_exponent?, item: params.item_exponent? },
            rank: params.rank?,
            low_pass: params.low_pass?,
            sharpening: params.sharpening?,
            popularity: params.popularity?,
        })
    }

    /// Returns the given parameters, with the defaults for those left out.
    fn without_choice(params: &Spectral) -> Self {
        Self {
            exponents: exponents(params),
            rank: params.most(),
            low_pass: params.low_pass.unwrap_or(DEFAULT.0),
            sharpening: params.sharpening.unwrap_or(DEFAULT.1),
            popularity: params.popularity.unwrap_or(0.0),
        }
    }
}

/// The exponents that were given, or else the defaults.
fn exponents(params: &Spectral) -> Exponents {
    Exponents {
        user: params.user_exponent.unwrap_or(EXPONENTS.user),
        item: params.item_exponent.unwrap_or(EXPONENTS.item),
    }
}

/// The candidates for each parameter.
struct Grid {
    ranks: Vec<usize>,
    times: Vec<f32>,
    weights: Vec<f32>,
    popularities: Vec<f32>,
}

impl Grid {
    fn new(params: &Spectral, data: &Ratings) -> Self {
        fn or<const N: usize>(given: Option<f32>, all: [f32; N]) -> Vec<f32> {
            given.map_or(all.to_vec(), |given| vec![given])
        }
        // More vectors than a quarter of the smaller side were never the best.
        let side = data.n_users().min(data.n_items());
        let most = params.max_rank.min((side / 4).max(1));
        let mut ranks: Vec<usize> = match params.rank {
            Some(rank) => vec![rank],
            None => ONE_IN.iter().map(|one_in| most / one_in).filter(|&rank| rank > 0).collect(),
        };
        ranks.dedup();
        Self {
            ranks,
            times: or(params.sharpening, SHARPENING),
            weights: or(params.low_pass, LOW_PASS),
            popularities: or(params.popularity, POPULARITY),
        }
    }

    /// Returns the candidates that differ from a setting by one step at most, at the same time of sharpening and with
    /// no more vectors.
    fn near(&self, setting: &Setting) -> Self {
        fn about<T: Copy + PartialEq>(all: &[T], one: T) -> Vec<T> {
            let at = all.iter().position(|&other| other == one).unwrap_or(0);
            all[at.saturating_sub(1)..(at + 2).min(all.len())].to_vec()
        }
        let mut ranks = about(&self.ranks, setting.rank);
        // Data may have fewer vectors than the smallest rank.
        ranks.retain(|&rank| rank <= setting.rank.max(self.ranks[0]));
        Self {
            ranks,
            times: vec![setting.sharpening],
            weights: about(&self.weights, setting.low_pass),
            popularities: about(&self.popularities, setting.popularity),
        }
    }

    /// All settings of a trial, in the order in which they are tried.
    fn settings(&self, exponents: Exponents, trial: &Trial<'_>) -> Vec<Setting> {
        let mut all = Vec::new();
        for rank in trial.ranks() {
            for &sharpening in &self.times {
                for &low_pass in &self.weights {
                    for &popularity in &self.popularities {
                        all.push(Setting { exponents, rank, low_pass, sharpening, popularity });
                    }
                }
            }
        }
        all
    }
}

/// A setting and its score.
type Scored = (Setting, f64);

/// The first of the best: the smallest rank, and no more sharpening than pays.
fn best(settings: &[Setting], scores: &[f64]) -> Scored {
    let mut best = 0;
    for (at, &other) in scores.iter().enumerate() {
        if other > scores[best] {
            best = at;
        }
    }
    (settings[best], scores[best])
}

/// The search for the setting that ranks held-out items best.
struct Search<'a> {
    params: &'a Spectral,
    grid: Grid,
    part: &'a Part,
    job: &'a Job<'a, Ratings>,
    /// The number of settings that were tried.
    tried: usize,
}

impl Search<'_> {
    fn n_users(&self) -> usize {
        self.part.held_out.n_users()
    }

    /// The best of all settings of a pair of exponents: by some of the users, and then the better ones by all if `to_end`.
    fn all(&mut self, exponents: Exponents, to_end: bool) -> Result<Scored> {
        let trial = Trial::new(self.params, (exponents, &self.grid.ranks), self.part, self.job)?;
        let mut settings = self.grid.settings(exponents, &trial);
        self.tried += settings.len();
        let n_items = self.part.train.n_items();
        let users = (SCORES / (settings.len() * n_items).max(1)).max(LEAST_USERS);
        let users = if to_end { users } else { users.min(USERS_OF_EXPONENTS) };
        let every = (self.n_users() / users).max(1);
        let mut scores = trial.scores(&settings, every, self.job)?;
        if every > 1 && to_end {
            let mut sorted = scores.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let least = sorted[settings.len().div_ceil(KEPT) - 1];
            let mut kept = scores.iter().map(|&score| score >= least);
            settings.retain(|_| kept.next().unwrap_or(false));
            scores = trial.scores(&settings, 1, self.job)?;
        }
        Ok(best(&settings, &scores))
    }

    /// The best of the settings near another, with these exponents, by some of the users.
    fn near(&mut self, setting: &Setting, exponents: Exponents) -> Result<Scored> {
        let grid = self.grid.near(setting);
        let trial = Trial::new(self.params, (exponents, &grid.ranks), self.part, self.job)?;
        let settings = grid.settings(exponents, &trial);
        self.tried += settings.len();
        let every = (self.n_users() / USERS_OF_EXPONENTS).max(1);
        Ok(best(&settings, &trial.scores(&settings, every, self.job)?))
    }

    /// Whether other exponents can be tried at little cost.
    fn is_cheap(&self) -> bool {
        let data = &self.part.train;
        let rank = self.grid.ranks.last().copied().unwrap_or(0) as f64;
        let vectors = 10.0 * (data.n_users() + data.n_items()) as f64 * rank * rank;
        let users = self.n_users().min(USERS_OF_EXPONENTS) as f64;
        vectors + data.len() as f64 * (6.0 * rank + 10.0 * users) <= CHEAP
    }

    /// Goes up in steps, one exponent after the other.
    fn climb(&mut self, start: &Setting) -> Result<Setting> {
        let mut at = self.near(start, start.exponents)?;
        let [item, user] = [self.params.item_exponent, self.params.user_exponent];
        for (of_item, given) in [(true, item), (false, user)] {
            if given.is_some() {
                continue;
            }
            let before = at.0.exponents;
            for step in [-STEP, STEP] {
                if at.0.exponents != before {
                    break;
                }
                loop {
                    let mut next = at.0.exponents;
                    let moved = if of_item { &mut next.item } else { &mut next.user };
                    // In steps of the decimal system.
                    *moved = ((*moved + step) / STEP).round() / (1.0 / STEP);
                    if !(RANGE.0..=RANGE.1).contains(moved) {
                        break;
                    }
                    let other = self.near(&at.0, next)?;
                    if other.1 <= at.1 {
                        break;
                    }
                    at = other;
                }
            }
        }
        Ok(at.0)
    }
}

/// The settings that rank held-out items best, and what the report says of them.
pub(super) fn choose(
    params: &Spectral,
    data: &Ratings,
    job: &Job<'_, Ratings>,
) -> Result<(Setting, Vec<Choice>)> {
    let fallback = Setting::without_choice(params);
    // From all users, as data are split to measure a recommender: with items held out of a few users only, the rest
    // is denser than that, and too little of the low-pass is chosen.
    let Some(part) = Part::of_all_users(data, USERS) else {
        let choices = left_out(params, &fallback).map(|(name, value)| too_few(name, value));
        return Ok((fallback, choices.collect()));
    };
    let grid = Grid::new(params, data);
    let mut search = Search { params, grid, part: &part, job, tried: 0 };
    let open = params.user_exponent.is_none() || params.item_exponent.is_none();
    let cheap = search.is_cheap();
    let exponents = if open && cheap {
        let (start, _) = search.all(fallback.exponents, false)?;
        search.climb(&start)?.exponents
    } else {
        fallback.exponents
    };
    let (setting, score) = search.all(exponents, true)?;
    let reason = format!(
        "the best {METRIC} of {} settings on held-out items of a sample of the users, {score:.4}",
        search.tried
    );
    let choices = left_out(params, &setting).map(|(name, value)| {
        if name.ends_with("exponent") && !cheap {
            Choice::new(name, value, "by default: with so many data it takes long to try others")
        } else {
            Choice::new(name, value, reason.as_str())
        }
    });
    Ok((setting, choices.collect()))
}

/// The parameters that were left out, with their values in a setting.
fn left_out(params: &Spectral, setting: &Setting) -> impl Iterator<Item = (&'static str, f64)> {
    let all = [
        ("rank", setting.rank as f64, params.rank.is_none()),
        ("low_pass", f64::from(setting.low_pass), params.low_pass.is_none()),
        ("sharpening", f64::from(setting.sharpening), params.sharpening.is_none()),
        ("popularity", f64::from(setting.popularity), params.popularity.is_none()),
        ("user_exponent", f64::from(setting.exponents.user), params.user_exponent.is_none()),
        ("item_exponent", f64::from(setting.exponents.item), params.item_exponent.is_none()),
    ];
    all.into_iter().filter(|one| one.2).map(|(name, value, _)| (name, value))
}
