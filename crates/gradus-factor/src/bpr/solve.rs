//! One epoch: a step for each positive pair, block by block.

use super::{Bpr, Negatives, StepSchedule};
use crate::grid::{self, Grid, Partition};
use crate::latent::{self, FoldIn, LatentFactors, Pairs, Parts};
use crate::ranking::{HeldOutItems, Over};
use crate::vectors::clone_in_place;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::iterate::{self, Step, Watch};
use gradus_core::report::Baseline;
use gradus_data::Ratings;
use gradus_file::{Reader, Writer};
use gradus_kernel::sgd::{Entry, Extra, Pair, PairRule, PairSums, sweep_pairs};
use gradus_kernel::{Level, Rows};

/// Standard deviation of the scores at the start.
const START: f64 = 0.1;
/// Number of draws of another item before a pair is left out for this epoch.
const TRIES: usize = 16;
/// Pairs drawn before their steps are taken: they stay in the nearest cache.
const DRAWN: usize = 1 << 10;
/// Number of parts of them that are interleaved.
const TURNS: usize = 16;
/// Smallest number of items in a group, if there are that many.
const LEAST: usize = 8;

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    params: &'a Bpr,
    /// The strength λ.
    penalty: f32,
    data: &'a Ratings,
    level: Level,
    held_out: Option<HeldOutItems>,
    warm: Option<&'a LatentFactors>,
    users: Partition,
    groups: usize,
    /// Popularity to the power of the exponent, where negatives are drawn by it.
    popularity: Option<Vec<f64>>,
}

/// The state, which changes from step to step: users in the order of the partition, items in that of the data.
pub(super) struct State {
    restart: usize,
    epoch: usize,
    /// Share of the last epoch's pairs that were in the right order.
    pub(super) right: f64,
    users: Rows,
    items: Rows,
    user_extras: Vec<Extra>,
    item_extras: Vec<Extra>,
}

clone_in_place!(State { restart, epoch, right, users, items, user_extras, item_extras });

/// Checks that values are signs of interest, and that there are some.
pub(super) fn check_values(data: &Ratings) -> Result<()> {
    if let Some(value) = data.by_user().values().iter().find(|value| **value < 0.0) {
        return Err(Error::data(format!(
            "bpr: a value is {value}: values are signs of interest and must not be negative"
        )));
    }
    if !data.iter().any(|rating| rating.value > 0.0 && rating.weight > 0.0) {
        return Err(Error::data("bpr: all values or weights are 0; nothing to learn from"));
    }
    Ok(())
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        (params, penalty): (&'a Bpr, f32),
        data: &'a Ratings,
        held_out: Option<&Ratings>,
        warm: Option<&'a LatentFactors>,
    ) -> Result<Self> {
        let groups = grid::groups(data).min(data.n_items() / LEAST).max(1);
        let stream = &mut Stream::new(params.seed, "bpr.users", 0);
        let count = |item: usize| data.by_item().range(item).len() as f64;
        let popularity = (params.negatives == Negatives::Popularity).then(|| {
            (0..data.n_items()).map(|item| count(item).powf(f64::from(params.exponent))).collect()
        });
        Ok(Self {
            params,
            penalty,
            data,
            level: Level::best(),
            held_out: held_out.map(|held_out| HeldOutItems::new(held_out, data)).transpose()?,
            warm: warm.filter(|warm| warm.knows(data)),
            users: Partition::by_ratings(data.by_user(), groups, stream),
            groups,
            popularity,
        })
    }

    pub(super) fn baselines(&self) -> Vec<Baseline> {
        self.held_out.as_ref().map(|held_out| held_out.baselines(self.data)).unwrap_or_default()
    }

    /// A remark on how the held-out scores were taken.
    pub(super) fn note(&self) -> Option<String> {
        self.held_out.as_ref().and_then(HeldOutItems::note)
    }

    /// The held-out NDCG of a state.
    pub(super) fn ndcg(&self, held_out: &HeldOutItems, over: Over, state: &State) -> f64 {
        let bias: Vec<f32> = state.item_extras.iter().map(|extra| extra.bias).collect();
        let position = |user: u32| self.users.positions[user as usize] as usize;
        held_out.ndcg_of_factors(over, self.level, (&state.users, position), (&state.items, &bias))
    }

    fn rule(&self, state: &State) -> PairRule {
        PairRule {
            k: self.params.rank,
            learning_rate: self.params.schedule.rate(
                self.params.learning_rate,
                state.epoch,
                self.params.max_iter,
            ),
            adaptive: self.params.schedule == StepSchedule::Adaptive,
            biases: self.params.biases,
            penalty: self.penalty,
            bias_penalty: self.penalty,
        }
    }

    fn index(state: &State) -> u64 {
        (state.epoch as u64).wrapping_add((state.restart as u64) << 32)
    }

    pub(super) fn into_model(self, state: State) -> LatentFactors {
        let mut user_factors = Rows::zeros(state.users.n_rows(), state.users.k());
        for (user, &position) in self.users.positions.iter().enumerate() {
            user_factors.row_mut(user).copy_from_slice(state.users.row(position as usize));
        }
        LatentFactors::new(
            self.data,
            Parts {
                mean: 0.0,
                user_bias: vec![0.0; self.data.n_users()],
                item_bias: state.item_extras.iter().map(|extra| extra.bias).collect(),
                user_factors,
                item_factors: state.items,
                fold_in: FoldIn::Pairs(Pairs { pair_regularization: self.penalty }),
            },
            None,
            self.params.keep_history,
        )
    }
}

/// Draws items of one group.
struct Urn<'a> {
    n: usize,
    /// Running sums of the popularity of the group's items.
    sums: Option<&'a [f64]>,
}

impl Urn<'_> {
    #[inline]
    fn draw(&self, stream: &mut Stream) -> u32 {
        match self.sums.and_then(|sums| Some((sums, sums.last()?))) {
            Some((sums, total)) => {
                let point = stream.uniform() * total;
                sums.partition_point(|&sum| sum <= point).min(self.n - 1) as u32
            }
            None => stream.index(self.n) as u32,
        }
    }
}

/// Draws another item for each entry of a block and hands on the pairs, some at a time.
pub(super) fn draw_pairs(
    (entries, weights): (&[Entry], Option<&[f32]>),
    n_items: usize,
    sums: Option<&[f64]>,
    stream: &mut Stream,
    mut take: impl FnMut(&[Pair]),
) {
    let urn = Urn { n: n_items, sums };
    let mut interleaved = Vec::with_capacity(DRAWN.min(entries.len()));
    let mut take = |pairs: &[Pair]| {
        // In turns, so that steps that follow each other are mostly of other users and need not
        // wait for each other.
        interleaved.clear();
        let columns = pairs.len().div_ceil(TURNS).max(1);
        for first in 0..columns {
            interleaved.extend(pairs.iter().skip(first).step_by(columns));
        }
        take(&interleaved);
    };
    let mut pairs = Vec::with_capacity(DRAWN.min(entries.len()));
    // Which user has an item, 1 + the last one marked: the user's items of this group are all in
    // their run of entries.
    let mut marks = vec![0u32; n_items];
    let mut first = 0;
    for run in entries.chunk_by(|a, b| a.user == b.user) {
        let mark = run[0].user + 1;
        for entry in run {
            marks[entry.item as usize] = mark;
        }
        for (at, entry) in (first..).zip(run) {
            for _ in 0..TRIES {
                let worse = urn.draw(stream);
                if marks[worse as usize] != mark {
                    let weight = weights.map_or(1.0, |weights| weights[at]);
                    pairs.push(Pair { user: entry.user, better: entry.item, worse, weight });
                    break;
                }
            }
            if pairs.len() == DRAWN {
                take(&pairs);
                pairs.clear();
            }
        }
        first += run.len();
    }
    take(&pairs);
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, restart: usize) -> Result<State> {
        let k = self.params.rank;
        let spread = (START / (k as f64).sqrt()).sqrt();
        let warm = self.warm.filter(|_| restart == 0);
        let common = warm.map_or(0, |warm| k.min(warm.rank()));
        let random = |purpose: &str, row: usize, factors: &mut [f32]| {
            let index = (row as u64).wrapping_add((restart as u64) << 32);
            let mut stream = Stream::new(self.params.seed, purpose, index);
            for x in &mut factors[..k] {
                *x = (spread * stream.normal()) as f32;
            }
        };
        let (mut users, mut items) =
            (Rows::zeros(self.data.n_users(), k), Rows::zeros(self.data.n_items(), k));
        for (user, &position) in self.users.positions.iter().enumerate() {
            // A user without items has no opinion.
            if self.data.by_user().row(user).1.iter().all(|&value| value == 0.0) {
                continue;
            }
            let factors = users.row_mut(position as usize);
            random("bpr.user", user, factors);
            if let Some(warm) = warm {
                factors[..common].copy_from_slice(&warm.user_factors(user)[..common]);
            }
        }
        let mut item_extras = vec![Extra::default(); self.data.n_items()];
        for (item, extra) in item_extras.iter_mut().enumerate() {
            let factors = items.row_mut(item);
            random("bpr.item", item, factors);
            if let Some(warm) = warm {
                factors[..common].copy_from_slice(&warm.item_factors(item)[..common]);
                extra.bias = if self.params.biases { warm.item_bias()[item] } else { 0.0 };
            }
        }
        let user_extras = vec![Extra::default(); self.data.n_users()];
        Ok(State { restart, epoch: 0, right: 0.0, users, items, user_extras, item_extras })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let (rule, index) = (self.rule(state), Self::index(state));
        let (groups, seed) = (self.groups, self.params.seed);
        let partition = Partition::by_rows(
            self.data.n_items(),
            groups,
            &mut Stream::new(seed, "bpr.items", index),
        );
        let grid =
            Grid::new(self.data, &self.users, &partition, |value| (value > 0.0).then_some(value));
        let order = Stream::new(seed, "bpr.rounds", index).permutation(groups);
        let sums: Option<Vec<f64>> = self.popularity.as_ref().map(|popularity| {
            let group = |bound: &[usize]| {
                let mut sum = 0.0;
                let add = move |&item: &u32| {
                    sum += popularity[item as usize];
                    sum
                };
                partition.rows[bound[0]..bound[1]].iter().map(add).collect::<Vec<f64>>()
            };
            partition.bounds.windows(2).flat_map(group).collect()
        });
        let (mut users, mut user_extras) = (state.users.clone(), state.user_extras.clone());
        let mut items = Rows::zeros(state.items.n_rows(), state.items.k());
        let stride = items.stride();
        parallel::each_row(items.as_mut_slice(), stride, |position, to| {
            to.copy_from_slice(state.items.row(partition.rows[position] as usize));
        });
        let mut item_extras: Vec<Extra> =
            partition.rows.iter().map(|&row| state.item_extras[row as usize]).collect();
        let mut totals = PairSums::default();
        let mut steps = 0.0;
        let whole = grid::rounds(
            self.users.split(&mut users, &mut user_extras),
            partition.split(&mut items, &mut item_extras),
            &order,
            |a, b, mut users, mut items| {
                let block = (a * groups + b) as u64;
                let mut stream =
                    Stream::new(seed, "bpr.draws", index.wrapping_mul(1 << 16).wrapping_add(block));
                let (mut totals, mut steps) = (PairSums::default(), 0.0);
                let sums =
                    sums.as_ref().map(|sums| &sums[partition.bounds[b]..partition.bounds[b + 1]]);
                let n_items = items.extras.len();
                draw_pairs(grid.block(a, b), n_items, sums, &mut stream, |pairs| {
                    let part = sweep_pairs(self.level, &rule, users.again(), items.again(), pairs);
                    totals.loss += part.loss;
                    totals.right += part.right;
                    steps += pairs.iter().map(|pair| f64::from(pair.weight)).sum::<f64>();
                });
                (totals, steps)
            },
            |round, parts| {
                for (part, weight) in parts {
                    totals.loss += part.loss;
                    totals.right += part.right;
                    steps += weight;
                }
                watch.within((round + 1) as f64 / order.len() as f64);
                !watch.stopped()
            },
        );
        if !whole {
            return Ok(Step::Stopped);
        }
        let mut sorted = Rows::zeros(items.n_rows(), items.k());
        parallel::each_row(sorted.as_mut_slice(), stride, |row, to| {
            to.copy_from_slice(items.row(partition.positions[row] as usize));
        });
        let item_extras =
            partition.positions.iter().map(|&position| item_extras[position as usize]).collect();
        let steps = if steps > 0.0 { steps } else { 1.0 };
        *state = State {
            restart: state.restart,
            epoch: state.epoch + 1,
            right: totals.right / steps,
            users,
            items: sorted,
            user_extras,
            item_extras,
        };
        Ok(Step::Done(totals.loss / steps))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        Some(self.ndcg(self.held_out.as_ref()?, Over::Sample, state))
    }

    fn validate_kept(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        held_out.beyond_sample(|| self.ndcg(held_out, Over::All, state))
    }

    fn depends_on_max_iter(&self) -> bool {
        self.params.schedule == StepSchedule::Cosine
    }

    fn write_state<'b>(&self, state: &'b State, prefix: &str, file: &mut Writer<'b>) {
        file.set(&format!("{prefix}scalars"), &(state.restart, state.epoch, state.right));
        for (name, rows, extras) in [
            ("users", &state.users, &state.user_extras),
            ("items", &state.items, &state.item_extras),
        ] {
            latent::write_rows(file, &format!("{prefix}{name}"), rows);
            let flat = extras.iter().flat_map(|e| [e.bias, e.squares, e.bias_squares]).collect();
            file.tensor_owned(&format!("{prefix}{name}.extras"), &[extras.len(), 3], flat);
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (restart, epoch, right) = file.get(&format!("{prefix}scalars"))?;
        let k = self.params.rank;
        let mut side = |name: &str, n: usize| -> Result<(Rows, Vec<Extra>)> {
            let rows = latent::read_rows(file, &format!("{prefix}{name}"), n, k)?;
            let flat = file.finite(&format!("{prefix}{name}.extras"), &[n, 3])?;
            let extra = |e: &[f32]| Extra {
                bias: e[0],
                squares: e[1],
                bias_squares: e[2],
                ..Extra::default()
            };
            Ok((rows, flat.chunks_exact(3).map(extra).collect()))
        };
        let (users, user_extras) = side("users", self.data.n_users())?;
        let (items, item_extras) = side("items", self.data.n_items())?;
        Ok(State { restart, epoch, right, users, items, user_extras, item_extras })
    }
}
