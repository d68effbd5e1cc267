//! A planted set of ratings: films with titles, users with preferences.

use super::choose::{Catalogue, Scratch, apportion};
use super::titles::{N_GENRES, titles};
use super::{at_least, setters, within};
use crate::{Csr, Dense, Ids, Rating, Ratings};
use gradus_base::random::{Stream, power_law_weights};
use gradus_base::{Error, Result, parallel};
use std::ops::Range;

/// Ratings per block: enough to keep a thread busy, little enough to hold several.
const BLOCK: usize = 1 << 16;
/// The part of an item factor's square that its genre makes up.
const GENRE_PART: f64 = 0.7;

/// The naming of the items of a made set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemIds {
    /// Film titles, such as `The Silent Harbour (1987)`; the words hint at the genre.
    #[default]
    Names,
    /// The integers from 1.
    Integer,
}

/// A planted set of ratings: a believable catalogue and a known truth.
///
/// Values follow `r = α + β_u + β_i + γ_u·γ_i + noise`, then are clipped to a range and rounded to
/// a step. Item popularity is a power law and correlates with `β_i`; user activity is lognormal;
/// each genre is a direction in factor space, and users rate more of the genres they like. Every
/// user and every item has at least one rating, no pair occurs twice.
///
/// Cost: `O(count · rank)`; memory `O((users + items) · rank)` beyond the ratings themselves, which
/// [`RatingsMaker::for_each_block`] need not hold.
///
/// ```
/// use gradus_data::make::RatingsSpec;
/// let made = RatingsSpec::new(100, 50, 1200).rank(4).make(42)?;
/// assert_eq!(made.ratings.len(), 1200);
/// let first = made.ratings.iter().next().unwrap();
/// let planted = made.truth.value(first.user as usize, first.item as usize);
/// assert!((f64::from(first.value) - planted).abs() < 5.0);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RatingsSpec {
    /// Number of users; they are called 1, 2, 3 …. Default 1,000.
    pub users: usize,
    /// Number of items. Default 500.
    pub items: usize,
    /// Number of ratings, exactly. Default 50,000.
    pub count: usize,
    /// Length of the planted factors; 0 plants biases alone. Default 8.
    pub rank: usize,
    /// Number of planted genres, 1 to 12. Default 8.
    pub genres: usize,
    /// The mean `α` over all pairs. Default 3.3; the mean of the ratings comes out near 3.7, since
    /// what is good, and what one likes, is rated more often.
    pub mean: f64,
    /// Standard deviation of `β_u`. Default 0.4.
    pub user_bias: f64,
    /// Standard deviation of `β_i`. Default 0.45.
    pub item_bias: f64,
    /// Standard deviation of `γ_u·γ_i`. Default 0.6.
    pub interaction: f64,
    /// Standard deviation of the noise. Default 0.7.
    pub noise: f64,
    /// Exponent of the popularity law `(rank + items / 20)^-exponent`; 0 makes all items equal.
    /// Default 2: in proportion, the head and the middle of real film data.
    pub popularity: f64,
    /// Correlation of an item's bias with the logarithm of its popularity. Default 0.4.
    pub popular_is_good: f64,
    /// Standard deviation of the logarithm of user activity. Default 1.2, as in MovieLens.
    pub activity: f64,
    /// How much users prefer to rate what they like: a genre one standard deviation above the
    /// user's mean is taken `e^selection` times as often. Default 0.7; 0 picks by popularity alone.
    pub selection: f64,
    /// Smallest and largest value; `None` leaves values unbounded. Default 0.5 to 5.
    pub range: Option<(f64, f64)>,
    /// Values are rounded to multiples of this; `None` leaves them as they are. Default 0.5.
    pub step: Option<f64>,
    /// The naming of items. Default film titles.
    pub ids: ItemIds,
}

impl Default for RatingsSpec {
    fn default() -> Self {
        Self {
            users: 1000,
            items: 500,
            count: 50_000,
            rank: 8,
            genres: 8,
            mean: 3.3,
            user_bias: 0.4,
            item_bias: 0.45,
            interaction: 0.6,
            noise: 0.7,
            popularity: 2.0,
            popular_is_good: 0.4,
            activity: 1.2,
            selection: 0.7,
            range: Some((0.5, 5.0)),
            step: Some(0.5),
            ids: ItemIds::Names,
        }
    }
}

impl RatingsSpec {
    /// Makes a generator with these numbers of users, items and ratings, and the other options at their defaults.
    pub fn new(users: usize, items: usize, count: usize) -> Self {
        Self { users, items, count, ..Self::default() }
    }

    setters! {
        rank: usize,
        genres: usize,
        mean: f64,
        user_bias: f64,
        item_bias: f64,
        interaction: f64,
        noise: f64,
        popularity: f64,
        popular_is_good: f64,
        activity: f64,
        selection: f64,
        range: Option<(f64, f64)>,
        step: Option<f64>,
        ids: ItemIds,
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// For the first parameter outside its range, named with the rule it broke.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [("users", self.users), ("items", self.items)] {
            if value == 0 || value >= u32::MAX as usize {
                return Err(Error::parameter(name, value, "must be between 1 and 2^32 - 2"));
            }
        }
        let pairs = self.users.saturating_mul(self.items);
        if self.count > pairs {
            let rule = format!(
                "there are only {pairs} pairs of {} users and {} items",
                self.users, self.items
            );
            return Err(Error::parameter("count", self.count, rule));
        }
        let least = self.users.max(self.items);
        if self.count < least {
            let rule = format!("every user and every item is to have one: at least {least}");
            return Err(Error::parameter("count", self.count, rule));
        }
        if !(1..=N_GENRES).contains(&self.genres) {
            let rule = format!("must be between 1 and {N_GENRES}");
            return Err(Error::parameter("genres", self.genres, rule));
        }
        if self.rank > 1 << 16 {
            return Err(Error::parameter("rank", self.rank, "must be at most 65536"));
        }
        at_least("mean", self.mean, f64::MIN)?;
        for (name, value) in [
            ("user_bias", self.user_bias),
            ("item_bias", self.item_bias),
            ("interaction", self.interaction),
            ("noise", self.noise),
        ] {
            at_least(name, value, 0.0)?;
        }
        // Beyond these bounds the weights leave the range of f64, or one item has them all.
        within("popularity", self.popularity, 0.0, 6.0)?;
        within("activity", self.activity, 0.0, 6.0)?;
        within("selection", self.selection, 0.0, 6.0)?;
        within("popular_is_good", self.popular_is_good, -1.0, 1.0)?;
        if let Some(step) = self.step
            && !(step > 0.0 && step.is_finite())
        {
            return Err(Error::parameter("step", step, "must be positive and finite"));
        }
        if let Some((low, high)) = self.range {
            let shown = format!("{low} to {high}");
            if !(low < high && low.is_finite() && high.is_finite()) {
                return Err(Error::parameter("range", shown, "must ascend and be finite"));
            }
            let whole = |x: f64| (x - x.round()).abs() < 1e-9;
            if self.step.is_some_and(|step| !whole(low / step) || !whole(high / step)) {
                return Err(Error::parameter("range", shown, "must be multiples of `step`"));
            }
        }
        Ok(())
    }

    /// Draws the catalogue and the users, ready to make the ratings.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn plan(&self, seed: u64) -> Result<RatingsMaker> {
        RatingsMaker::new(self.clone(), seed)
    }

    /// Makes the ratings.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn make(&self, seed: u64) -> Result<MadeRatings> {
        self.plan(seed)?.collect()
    }
}

/// Made ratings and the truth behind them.
#[derive(Clone, Debug)]
pub struct MadeRatings {
    /// The ratings.
    pub ratings: Ratings,
    /// The planted parameters; their rows are those of [`Ratings::users`] and [`Ratings::items`].
    pub truth: RatingsTruth,
}

/// The planted parameters of a made set of ratings.
#[derive(Clone, Debug, PartialEq)]
pub struct RatingsTruth {
    /// The mean `α`.
    pub mean: f64,
    /// The bias `β_u` of each user.
    pub user_bias: Vec<f32>,
    /// The bias `β_i` of each item.
    pub item_bias: Vec<f32>,
    /// The factors `γ_u`, users × rank.
    pub user_factors: Dense<f32>,
    /// The factors `γ_i`, items × rank.
    pub item_factors: Dense<f32>,
    /// The genre of each item; [`genre_name`](super::genre_name) has its name.
    pub genre: Vec<u32>,
    /// The direction of each genre in factor space, genres × rank.
    pub genre_directions: Dense<f32>,
    /// Each item's share of all popularity.
    pub popularity: Vec<f64>,
    /// Standard deviation of the noise.
    pub noise: f64,
}

impl RatingsTruth {
    /// The planted value of a pair, without noise, clipping or rounding.
    ///
    /// # Panics
    /// If `user` or `item` is not in the data.
    pub fn value(&self, user: usize, item: usize) -> f64 {
        let dot: f32 = self
            .user_factors
            .row(user)
            .iter()
            .zip(self.item_factors.row(item))
            .map(|(a, b)| a * b)
            .sum();
        self.mean + f64::from(self.user_bias[user] + self.item_bias[item] + dot)
    }
}

/// The ratings of a run of users.
#[derive(Clone, Debug, PartialEq)]
pub struct RatingsBlock {
    first_user: usize,
    starts: Vec<usize>,
    items: Vec<u32>,
    values: Vec<f32>,
}

impl RatingsBlock {
    /// The users whose ratings these are.
    pub fn users(&self) -> Range<usize> {
        self.first_user..self.first_user + self.starts.len() - 1
    }

    /// Number of ratings.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none; never true of a block that was made.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The ratings, user by user, items ascending.
    pub fn iter(&self) -> impl Iterator<Item = Rating> + '_ {
        self.users().zip(self.starts.windows(2)).flat_map(move |(user, bounds)| {
            (bounds[0]..bounds[1]).map(move |at| Rating {
                user: user as u32,
                item: self.items[at],
                value: self.values[at],
                weight: 1.0,
            })
        })
    }
}

/// A catalogue and its users, from which the ratings are made block by block.
pub struct RatingsMaker {
    spec: RatingsSpec,
    seed: u64,
    users: Ids,
    items: Ids,
    truth: RatingsTruth,
    catalogue: Catalogue,
    /// The position of each user's first rating among all, and the total at the end.
    starts: Vec<usize>,
    /// The items in random order: the `j`-th is promised to whoever has rating
    /// `j * count / items`, so that every item occurs.
    promised: Vec<u32>,
}

impl RatingsMaker {
    fn new(spec: RatingsSpec, seed: u64) -> Result<Self> {
        spec.check()?;
        let (n_users, n_items, rank) = (spec.users, spec.items, spec.rank);
        let stream = |purpose: &str, index: usize| {
            Stream::new(seed, &format!("make ratings: {purpose}"), index as u64)
        };

        // Items stand in the order of their names, which is that of their index in `Ratings`.
        let mut draw = stream("genre", 0);
        let mut genre: Vec<u32> = (0..n_items).map(|_| draw.index(spec.genres) as u32).collect();
        let items = match spec.ids {
            ItemIds::Integer => Ids::Int((1..=n_items as i64).collect()),
            ItemIds::Names => {
                let mut named: Vec<(String, u32)> =
                    titles(&genre, seed).into_iter().zip(genre).collect();
                named.sort_unstable();
                genre = named.iter().map(|&(_, genre)| genre).collect();
                Ids::Text(named.iter().map(|(name, _)| name.as_str()).collect())
            }
        };

        let by_rank = power_law_weights(n_items, spec.popularity, n_items as f64 / 20.0);
        let mut popularity = vec![0.0; n_items];
        for (&weight, item) in by_rank.iter().zip(stream("popularity", 0).permutation(n_items)) {
            popularity[item] = weight;
        }
        let fame = standardised(popularity.iter().map(|&weight| libm::log(weight)).collect());
        let own_part = (1.0 - spec.popular_is_good * spec.popular_is_good).sqrt();
        let mut draw = stream("item bias", 0);
        let item_bias = fame
            .iter()
            .map(|fame| spec.item_bias * (spec.popular_is_good * fame + own_part * draw.normal()))
            .map(|bias| bias as f32)
            .collect();

        // Lengths are shared out so that users' and items' factors are of one size.
        let balance = (rank.max(1) as f64).sqrt().sqrt();
        let root = spec.interaction.sqrt();
        let directions = directions(spec.genres, rank, &mut stream("genre direction", 0));
        let (genre_part, own_part) = (GENRE_PART.sqrt(), (1.0 - GENRE_PART).sqrt());
        let spread = own_part / (rank.max(1) as f64).sqrt();
        let mut item_factors = Vec::with_capacity(n_items * rank);
        for (item, &genre) in genre.iter().enumerate() {
            let mut draw = stream("item factors", item);
            item_factors.extend(directions.row(genre as usize).iter().map(|direction| {
                (root * balance * (genre_part * direction + spread * draw.normal())) as f32
            }));
        }
        let mut draw = stream("user bias", 0);
        let user_bias = (0..n_users).map(|_| (spec.user_bias * draw.normal()) as f32).collect();
        let mut user_factors = vec![0.0f32; n_users * rank];
        parallel::each_row(&mut user_factors, rank, |user, row| {
            let mut draw = stream("user factors", user);
            row.iter_mut().for_each(|x| *x = (root / balance * draw.normal()) as f32);
        });

        let mut draw = stream("activity", 0);
        let activity: Vec<f64> =
            (0..n_users).map(|_| libm::exp(spec.activity * draw.normal())).collect();
        let mut starts = vec![0];
        for part in apportion(spec.count, &activity, n_items) {
            starts.push(starts[starts.len() - 1] + part);
        }
        let promised = stream("promised", 0).permutation(n_items);
        Ok(Self {
            users: Ids::Int((1..=n_users as i64).collect()),
            items,
            catalogue: Catalogue::new(popularity.clone(), genre.clone(), spec.genres)?,
            truth: RatingsTruth {
                mean: spec.mean,
                user_bias,
                item_bias,
                user_factors: Dense::new(n_users, rank, user_factors)?,
                item_factors: Dense::new(n_items, rank, item_factors)?,
                genre,
                genre_directions: Dense::from(&directions),
                popularity,
                noise: spec.noise,
            },
            starts,
            promised: promised.into_iter().map(|item| item as u32).collect(),
            spec,
            seed,
        })
    }

    /// The ids of the users, ascending.
    pub fn users(&self) -> &Ids {
        &self.users
    }

    /// The ids of the items, ascending.
    pub fn items(&self) -> &Ids {
        &self.items
    }

    /// Returns the planted parameters.
    pub fn truth(&self) -> &RatingsTruth {
        &self.truth
    }

    /// How many ratings user `user` will have.
    ///
    /// # Panics
    /// If `user` is not below the number of users.
    pub fn ratings_of(&self, user: usize) -> usize {
        self.starts[user + 1] - self.starts[user]
    }

    /// Hands the ratings to `sink` in blocks, user by user, holding only a few blocks at a time:
    /// the next ones are made on all threads while `sink` works on the last. The ratings, and the
    /// order they come in, do not depend on the number of threads.
    ///
    /// # Errors
    /// The first error of `sink`, which ends the run.
    pub fn for_each_block(
        &self,
        mut sink: impl FnMut(&RatingsBlock) -> Result<()> + Send,
    ) -> Result<()> {
        let blocks = self.blocks();
        let mut done: Result<()> = Ok(());
        let mut ready: Vec<RatingsBlock> = Vec::new();
        let wave = 4 * rayon::current_num_threads();
        for wave in blocks.chunks(wave).chain([&[][..]]) {
            let (result, next) = parallel::join(
                || ready.iter().try_for_each(&mut sink),
                || parallel::map(wave, |users| self.block(users.clone())),
            );
            done = done.and(result);
            if done.is_err() {
                break;
            }
            ready = next;
        }
        done
    }

    /// Makes all ratings at once.
    ///
    /// # Errors
    /// None that a checked spec can cause.
    pub fn collect(self) -> Result<MadeRatings> {
        let mut items = Vec::with_capacity(self.spec.count);
        let mut values = Vec::with_capacity(self.spec.count);
        self.for_each_block(|block| {
            items.extend_from_slice(&block.items);
            values.extend_from_slice(&block.values);
            Ok(())
        })?;
        let by_user = Csr::new(self.spec.items, self.starts, items, values)?;
        Ok(MadeRatings {
            ratings: Ratings::from_by_user(self.users, self.items, by_user)?,
            truth: self.truth,
        })
    }

    /// Cuts the users into runs of about [`BLOCK`] ratings.
    fn blocks(&self) -> Vec<Range<usize>> {
        let mut blocks = Vec::new();
        let mut first = 0;
        for user in 0..self.spec.users {
            let last = user + 1 == self.spec.users;
            if last || self.starts[user + 1] - self.starts[first] >= BLOCK {
                blocks.push(first..user + 1);
                first = user + 1;
            }
        }
        blocks
    }

    fn block(&self, users: Range<usize>) -> RatingsBlock {
        let offset = self.starts[users.start];
        let n = self.starts[users.end] - offset;
        let mut block = RatingsBlock {
            first_user: users.start,
            starts: self.starts[users.start..=users.end].iter().map(|at| at - offset).collect(),
            items: Vec::with_capacity(n),
            values: Vec::with_capacity(n),
        };
        let mut scratch = Scratch::default();
        let mut liking = vec![1.0; self.spec.genres];
        let mut chosen = Vec::new();
        for user in users {
            let mut stream = Stream::new(self.seed, "make ratings: choice", user as u64);
            self.like(user, &mut liking);
            chosen.clear();
            chosen.extend_from_slice(self.promised_to(user));
            let n = self.ratings_of(user);
            self.catalogue.choose(n, &liking, &mut chosen, &mut stream, &mut scratch);
            let mut stream = Stream::new(self.seed, "make ratings: noise", user as u64);
            for &item in &chosen {
                let planted = self.truth.value(user, item as usize);
                block.values.push(self.shown(planted + self.spec.noise * stream.normal()));
            }
            block.items.extend_from_slice(&chosen);
        }
        block
    }

    /// The items that are this user's to rate whatever else is drawn.
    fn promised_to(&self, user: usize) -> &[u32] {
        let (n_items, count) = (self.spec.items as u128, self.spec.count as u128);
        // The first j with j * count / items >= start.
        let first = |start: usize| (start as u128 * n_items).div_ceil(count) as usize;
        &self.promised[first(self.starts[user])..first(self.starts[user + 1])]
    }

    /// How much more often than by popularity alone `user` takes an item of each genre.
    fn like(&self, user: usize, liking: &mut [f64]) {
        let factors = self.truth.user_factors.row(user);
        let unit = factors.len() as f64 / factors.iter().map(|&x| f64::from(x * x)).sum::<f64>();
        for (liking, direction) in liking.iter_mut().zip(self.truth.genre_directions.rows()) {
            let dot: f32 = factors.iter().zip(direction).map(|(a, b)| a * b).sum();
            let score = f64::from(dot) * unit.sqrt();
            *liking = if score.is_finite() { libm::exp(self.spec.selection * score) } else { 1.0 };
        }
    }

    /// The value as it is shown: rounded and clipped.
    fn shown(&self, value: f64) -> f32 {
        let value = self.spec.step.map_or(value, |step| libm::round(value / step) * step);
        self.spec.range.map_or(value, |(low, high)| value.clamp(low, high)) as f32
    }
}

/// Shifts and scales to mean 0 and variance 1; all 0 where they are all equal.
fn standardised(mut values: Vec<f64>) -> Vec<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
    // Below this the spread is rounding error of equal logarithms.
    let scale = if variance > 1e-20 { 1.0 / variance.sqrt() } else { 0.0 };
    values.iter_mut().for_each(|value| *value = (*value - mean) * scale);
    values
}

/// Random unit vectors, orthogonal as far as `rank` allows.
fn directions(n: usize, rank: usize, stream: &mut Stream) -> Dense<f64> {
    let mut directions = Dense::full(n, rank, 0.0);
    for row in 0..n {
        let mut vector: Vec<f64> = (0..rank).map(|_| stream.normal()).collect();
        for earlier in row - row % rank.max(1)..row {
            let dot: f64 = vector.iter().zip(directions.row(earlier)).map(|(a, b)| a * b).sum();
            for (x, y) in vector.iter_mut().zip(directions.row(earlier)) {
                *x -= dot * y;
            }
        }
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
        directions.row_mut(row).copy_from_slice(&vector);
    }
    directions
}

#[cfg(test)]
mod tests;
