//! One iteration of Gibbs sampling: the hyper-parameters, what the lists add, all items, all users,
//! the noise.

use super::half::{Half, ROW_COST};
use super::hyper::{Gaussian, Moments};
use super::implicit::{Lists, Sweep};
use super::links::{Linked, Links, sum_of};
use super::samples::{Draw, Samples, Shape};
use super::typical::{Given, Typical};
use super::{Bayes, diagnose};
use crate::baseline::Components;
use crate::fitting;
use crate::half::Side;
use crate::latent::{self, HeldOut};
use crate::side::Strengths;
use crate::vectors::Vectors;
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::iterate::{self, Step, Watch};
use gradus_core::progress::Stop;
use gradus_data::{Csr, Entity, Ratings};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows, padded};
use std::borrow::Cow;

/// The variance of `p·q` at the start, in that of the ratings. Factors that start small take
/// hundreds of iterations to grow, since small ones on one side make small ones on the other; those
/// that start large are as slow to shrink.
const START: f64 = 0.05;

/// Number of pairs of user and item whose predictions are traced, to assess the chain.
const WATCHED: usize = 1024;

/// The prior of the noise: `τ ~ Gamma(1, 0.05)`, two ratings' worth. It matters only where the
/// model fits every rating exactly.
const NOISE_PRIOR: (f64, f64) = (1.0, 0.05);

/// The variance of `p·q` that the prior expects, in that of the ratings. Where ratings are too thin to tell
/// it, factors stay that small and predictions are those of the biases; where they tell it, they
/// outweigh the prior.
const INTERACTION: f64 = 0.02;

/// The variance of the factors that rows gain from lists, in that of their own.
const LIST_SHARE: f64 = 0.5;

/// The variance of the biases that rows gain from lists, in that of the ratings.
const LIST_BIAS: f64 = 0.01;

/// The random streams that users and items are drawn with.
pub(super) const USERS: &str = "bayes.user";
const ITEMS: &str = "bayes.item";

/// The solver, bound to its data.
pub(super) struct Solver<'a> {
    pub(super) params: &'a Bayes,
    pub(super) data: &'a Ratings,
    pub(super) level: Level,
    held_out: Option<HeldOut>,
    pub(super) range: Option<(f32, f32)>,
    /// Ratings are sampled as `(r − mean) / scale`.
    pub(super) mean: f64,
    pub(super) scale: f64,
    weight: f64,
    /// The variances that the priors of users and of items expect, the bias last.
    variances: [Vec<f64>; 2],
    /// The same for what rows gain from lists.
    list_variances: Vec<f64>,
    pub(super) users: Side<'a>,
    pub(super) items: Side<'a>,
    /// The features of users and of items, if there are any.
    pub(super) linked: [Option<Linked<'a>>; 2],
}

/// The state: everything that changes from step to step.
#[derive(Clone)]
pub(super) struct State {
    pub(super) iteration: usize,
    /// Precision of the noise of standardised ratings.
    pub(super) noise: f64,
    pub(super) users: Vectors,
    pub(super) items: Vectors,
    /// The sums that users gain from the items they rated, and items from the users who rated them.
    pub(super) to_users: Option<Lists>,
    pub(super) to_items: Option<Lists>,
    /// The gains of users and items from their features.
    pub(super) links: [Option<Links>; 2],
    pub(super) samples: Samples,
    /// Sums of the held-out predictions of the draws kept so far.
    held_out: Vec<f64>,
    /// A few scalars of each iteration, to assess the chain by.
    pub(super) scalars: Vec<[f64; diagnose::SCALARS]>,
    pub(super) fallbacks: u64,
}

/// The prior of one side: the Gaussian, and what its rows gain from lists and from features.
struct Drawn {
    prior: Gaussian,
    lists: Option<Lists>,
    links: Option<Links>,
    /// Both together.
    gains: Option<Rows>,
}

/// The Gaussians of an iteration.
pub(super) struct Priors {
    pub(super) users: Gaussian,
    pub(super) items: Gaussian,
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        params: &'a Bayes,
        data: &'a Ratings,
        held_out: Option<&Ratings>,
        strengths: &Strengths,
    ) -> Result<Self> {
        let (sum, weight) = fitting::total("bayes", data)?;
        let mean = sum / weight;
        let squares: f64 = data
            .iter()
            .map(|r| {
                f64::from(r.weight) * (f64::from(r.value) - mean) * (f64::from(r.value) - mean)
            })
            .sum();
        let spread = (squares / weight).sqrt();
        // Ratings that are all equal have no scale of their own; the model is then their mean.
        let flat = spread <= 1e-6 * mean.abs() || spread == 0.0;
        let scale = if flat { mean.abs().max(1e-30) * 1e-6 } else { spread };
        // Biases as they would be without factors; of factors no more than that they are small.
        let components = Components::estimate(data, true, &Stop::new());
        let noise = (components.noise / scale).powi(2).min(1.0);
        let of_factor = (INTERACTION / params.rank as f64).sqrt();
        let expected = |of_factor: f64, of_bias: f64| -> Vec<f64> {
            (0..params.rank).map(|_| of_factor).chain([of_bias]).collect()
        };
        Ok(Self {
            params,
            data,
            level: Level::best(),
            held_out: held_out
                .map(|held_out| HeldOut::new(held_out, data.users(), data.items()))
                .transpose()?,
            range: params.clip.then(|| latent::range(data)),
            mean,
            scale,
            weight,
            variances: components.damping.map(|damping| expected(of_factor, noise / damping)),
            list_variances: expected(LIST_SHARE * of_factor, LIST_BIAS),
            users: Side::with_row_cost(data.by_user(), data.weights_by_user(), ROW_COST),
            items: Side::with_row_cost(data.by_item(), data.weights_by_item(), ROW_COST),
            linked: Entity::ALL.map(|of| {
                let rows = if of == Entity::User { data.by_user() } else { data.by_item() };
                data.features(of).map(|features| Linked::new(features, rows, of, strengths))
            }),
        })
    }

    /// The sizes of a sample.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            n_users: self.data.n_users(),
            n_items: self.data.n_items(),
            rank: self.params.rank,
            lists: self.params.implicit_side.sides().0,
            features: self.linked.each_ref().map(|linked| {
                linked.as_ref().map_or(0, |linked| linked.features.encoder().n_features())
            }),
            typical: self.linked.each_ref().map(|linked| 1 + usize::from(linked.is_some())),
        }
    }

    /// Iterations before draws count.
    pub(super) fn burn_in(&self) -> usize {
        self.params.burn_in.min(self.params.max_iter / 2)
    }

    /// Whether the draw of this iteration (from 1) is kept: the kept draws are evenly spread.
    fn keeps(&self, iteration: usize) -> bool {
        let burn_in = self.burn_in();
        let Some(number) = iteration.checked_sub(burn_in).filter(|&n| n > 0) else { return false };
        let draws = self.params.max_iter - burn_in;
        let kept = self.params.keep_samples.min(draws);
        number * kept / draws != (number - 1) * kept / draws
    }

    /// A rating as it is sampled.
    pub(super) fn standard(&self, value: f32) -> f32 {
        ((f64::from(value) - self.mean) / self.scale) as f32
    }

    /// The prior of one side given its rows, with a draw of what lists and features add, where they count.
    fn prior(
        &self,
        (hyper, lists): (&'static str, &'static str),
        (iteration, side): (usize, usize),
        factors: &Vectors,
        (old, links): (Option<&Lists>, Option<&Links>),
        both: (&Csr, &Csr),
    ) -> Result<Drawn> {
        let joined = factors.joined();
        let mut stream = Stream::new(self.params.seed, hyper, iteration as u64);
        let of_links = links.map(|links| &links.gains);
        let gains = sum_of(old.map(|old| &old.gains), of_links);
        let moments = Moments::of(&joined, gains.as_ref());
        let mut prior = Gaussian::draw(&moments, &self.variances[side], &mut stream)?;
        let lists = match old {
            None => None,
            Some(old) => {
                // What features say is no matter of the lists.
                let mut rows = joined.clone();
                if let Some(gains) = of_links {
                    let pairs = rows.as_mut_slice().iter_mut().zip(gains.as_slice());
                    pairs.for_each(|(x, gain)| *x -= gain);
                }
                Some(self.sweep(&rows, &mut prior, old, lists, iteration, both, &mut stream)?)
            }
        };
        let Some((linked, links)) = self.linked[side].as_ref().zip(links) else {
            let gains = lists.as_ref().map(|lists| lists.gains.clone());
            return Ok(Drawn { prior, lists, links: None, gains });
        };
        let of_lists = lists.as_ref().map(|lists| &lists.gains);
        let rows = (&joined, of_lists);
        let links = linked.draw(rows, &prior, &self.variances[side], links, &mut stream)?;
        let gains = sum_of(of_lists, Some(&links.gains));
        Ok(Drawn { prior, lists, links: Some(links), gains })
    }

    /// A draw of what lists add to rows, with the mean of their prior.
    #[allow(clippy::too_many_arguments, reason = "the parts of one draw")]
    fn sweep(
        &self,
        rows: &Rows,
        prior: &mut Gaussian,
        Lists { sources, .. }: &Lists,
        lists: &'static str,
        iteration: usize,
        (own, other): (&Csr, &Csr),
        stream: &mut Stream,
    ) -> Result<Lists> {
        let of_sources = Moments::of(sources, None);
        let source_prior = Gaussian::draw(&of_sources, &self.list_variances, stream)?;
        let sweep = Sweep {
            level: self.level,
            rows,
            prior,
            sources,
            source_prior: &source_prior,
            lists: own,
            members: other,
            random: (self.params.seed, lists, iteration as u64),
        };
        let swept = sweep.run()?;
        prior.mean = swept.centre;
        Ok(swept.lists)
    }

    /// The rows as a kept draw has them: those without ratings at their means. With `centre`, the means that rows were
    /// drawn about, they keep their differences from it.
    fn kept(
        &self,
        of: Entity,
        rows: &Vectors,
        centre: Option<&Vectors>,
        typical: &Typical,
        gains: Option<&Rows>,
    ) -> Vectors {
        let (mut kept, k) = (rows.clone(), self.params.rank);
        for row in (0..kept.bias.len()).filter(|&row| self.is_unobserved(of, row)) {
            let mut mean = self.unobserved_mean(of, row, typical, gains);
            if let Some(centre) = centre {
                let pairs = rows.row(row).zip(centre.row(row));
                mean.iter_mut().zip(pairs).for_each(|(x, (a, b))| *x += f64::from(a - b));
            }
            let to = &mut kept.factors.row_mut(row)[..k];
            to.iter_mut().zip(&mean).for_each(|(to, &x)| *to = x as f32);
            kept.bias[row] = mean[k] as f32;
        }
        kept
    }

    /// The prediction of one draw, in ratings, before clipping.
    fn predict(
        &self,
        (users, items): (&Vectors, &Vectors),
        typical: &[Typical; 2],
        user: Option<u32>,
        item: Option<u32>,
    ) -> f32 {
        let k = self.params.rank;
        let (user, user_bias) = row_of(users, &typical[0], user, k);
        let (item, item_bias) = row_of(items, &typical[1], item, k);
        let product = gradus_kernel::dot(self.level, &user, &item);
        (self.mean + self.scale * f64::from(product + user_bias + item_bias)) as f32
    }

    /// The scalars by which the chain is assessed: the noise, and mean and spread of the predictions
    /// of some pairs of any user and any item. The sizes of biases and factors would not do: means
    /// and scales can move between them without a change in any prediction.
    fn scalars(&self, noise: f64, users: &Vectors, items: &Vectors) -> [f64; diagnose::SCALARS] {
        let mut stream = Stream::new(self.params.seed, "bayes.watched", 0);
        let watched: Vec<f64> = (0..WATCHED)
            .map(|_| {
                let user = stream.index(users.bias.len());
                let item = stream.index(items.bias.len());
                let product = gradus_kernel::dot(
                    self.level,
                    users.factors.row(user),
                    items.factors.row(item),
                );
                f64::from(product + users.bias[user] + items.bias[item])
            })
            .collect();
        let (mean, variance) = diagnose::moments(&watched);
        [self.scale / noise.sqrt(), self.mean + self.scale * mean, self.scale * variance.sqrt()]
    }
}

/// A row and its bias; an unknown row is the typical one.
fn row_of<'f>(
    factors: &'f Vectors,
    typical: &Typical,
    at: Option<u32>,
    k: usize,
) -> (Cow<'f, [f32]>, f32) {
    match at {
        Some(at) => (Cow::Borrowed(factors.factors.row(at as usize)), factors.bias[at as usize]),
        None => {
            let mut row = vec![0.0; padded(k)];
            row.iter_mut().zip(&typical.unknown[..k]).for_each(|(to, &x)| *to = x as f32);
            (Cow::Owned(row), typical.unknown[k] as f32)
        }
    }
}

impl iterate::Solver for Solver<'_> {
    type State = State;

    fn start(&self, _: usize) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.rank);
        let begin = |n: usize, name: &str| {
            let mut factors = Vectors::zeros(n, k);
            let scale = (START / k as f64).sqrt().sqrt();
            for row in 0..n {
                let mut stream = Stream::new(self.params.seed, name, row as u64);
                factors.factors.row_mut(row)[..k].fill_with(|| (scale * stream.normal()) as f32);
            }
            factors
        };
        let lists = |wanted: bool, n: usize, sources: usize| {
            wanted.then(|| Lists {
                sources: Rows::zeros(sources, k + 1),
                gains: Rows::zeros(n, k + 1),
            })
        };
        let (for_users, for_items) = self.params.implicit_side.sides();
        Ok(State {
            iteration: 0,
            noise: 1.0,
            users: begin(n_users, "bayes.user.start"),
            items: begin(n_items, "bayes.item.start"),
            to_users: lists(for_users, n_users, n_items),
            to_items: lists(for_items, n_items, n_users),
            links: self.linked.each_ref().map(|linked| Some(Links::zeros(linked.as_ref()?, k))),
            samples: Samples::default(),
            held_out: vec![0.0; self.held_out.as_ref().map_or(0, HeldOut::len)],
            scalars: Vec::new(),
            fallbacks: 0,
        })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let iteration = state.iteration + 1;
        let (by_user, by_item) = (self.users.rows, self.items.rows);
        let (of_users, of_items) = {
            let names = ("bayes.user.hyper", "bayes.user.lists");
            let other = ("bayes.item.hyper", "bayes.item.lists");
            let (users, items) = parallel::join(
                || {
                    let old = (state.to_users.as_ref(), state.links[0].as_ref());
                    self.prior(names, (iteration, 0), &state.users, old, (by_user, by_item))
                },
                || {
                    let old = (state.to_items.as_ref(), state.links[1].as_ref());
                    self.prior(other, (iteration, 1), &state.items, old, (by_item, by_user))
                },
            );
            (users?, items?)
        };
        let Drawn { prior, lists: to_users, links: user_links, gains: user_gains } = of_users;
        let user_prior = prior;
        let Drawn { prior, lists: to_items, links: item_links, gains: item_gains } = of_items;
        let priors = Priors { users: user_prior, items: prior };
        let half = Half {
            side: &self.items,
            stream: ITEMS,
            fixed: &state.users,
            prior: &priors.items,
            gains: item_gains.as_ref(),
            noise: state.noise,
            iteration,
            residuals: false,
            drawn: true,
        };
        let Some((items, by_item)) = self.half(&half, watch, (0.2, 0.6)) else {
            return Ok(Step::Stopped);
        };
        let half = Half {
            side: &self.users,
            stream: USERS,
            fixed: &items,
            prior: &priors.users,
            gains: user_gains.as_ref(),
            noise: state.noise,
            iteration,
            residuals: true,
            drawn: true,
        };
        let Some((users, by_user)) = self.half(&half, watch, (0.6, 1.0)) else {
            return Ok(Step::Stopped);
        };
        // Until a first draw is kept the last one stands in, so that an interrupted fit has one to
        // give.
        let keep = self.keeps(iteration);
        let means = if keep || state.samples.wait() {
            let half = Half { residuals: false, drawn: false, ..half };
            match self.half(&half, watch, (1.0, 1.0)) {
                Some((means, _)) => Some(means),
                None => return Ok(Step::Stopped),
            }
        } else {
            None
        };
        let mut stream = Stream::new(self.params.seed, "bayes.noise", iteration as u64);
        let shape = NOISE_PRIOR.0 + self.weight / 2.0;
        let noise = stream.gamma(shape) / (NOISE_PRIOR.1 + by_user.squares / 2.0);
        let rmse = self.scale * (by_user.squares / self.weight).sqrt();
        if !(rmse.is_finite() && noise.is_finite()) {
            return Ok(Step::Done(f64::NAN));
        }

        state.scalars.push(self.scalars(noise, &users, &items));
        if let Some(means) = &means {
            let lists = to_users.as_ref().map(|lists| &lists.sources);
            let first = state.samples.wait();
            let links = [user_links.as_ref(), item_links.as_ref()];
            let gains = links.map(|links| links.map(|links| &links.gains));
            let links = links.map(|links| links.map(|links| &links.coefficients));
            let given = |of: Entity| {
                let (side, fixed, prior) = match of {
                    Entity::User => (&self.items, &items, &priors.users),
                    Entity::Item => (&self.users, means, &priors.items),
                };
                Given { side, fixed, prior, gains: gains[of as usize], noise: state.noise }
            };
            let typical = &Entity::ALL.map(|of| self.typical(&given(of)));
            let kept = |of: Entity, rows: &Vectors, centre: Option<&Vectors>| {
                self.kept(of, rows, centre, &typical[of as usize], gains[of as usize])
            };
            let users = &kept(Entity::User, &users, Some(means));
            let means = &kept(Entity::User, means, None);
            let items = &kept(Entity::Item, &items, None);
            // With the noise that the users were drawn with, so that folding in repeats them.
            let drawn = Draw { users, means, items, lists, links, typical, noise: state.noise };
            state.samples.push(&drawn, &priors, keep);
            if let Some(held_out) = &self.held_out {
                if first {
                    state.held_out.fill(0.0);
                }
                let sides = (means, items);
                held_out.add(&mut state.held_out, |user, item| {
                    self.predict(sides, typical, user, item)
                });
            }
        }
        state.iteration = iteration;
        state.noise = noise;
        state.fallbacks += by_item.fallbacks + by_user.fallbacks;
        (state.users, state.items, state.to_users, state.to_items) =
            (users, items, to_users, to_items);
        state.links = [user_links, item_links];
        Ok(Step::Done(rmse))
    }

    fn validate(&self, state: &State) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        Some(held_out.rmse_of_sums(self.range, &state.held_out, state.samples.len()))
    }

    fn keeps_last(&self) -> bool {
        true
    }

    /// The burn-in and the choice of the kept draws depend on it.
    fn depends_on_max_iter(&self) -> bool {
        true
    }

    fn write_state<'a>(&self, state: &'a State, prefix: &str, file: &mut Writer<'a>) {
        let scalars = (state.iteration, state.noise, state.fallbacks);
        file.set(&format!("{prefix}scalars"), &scalars);
        file.set(&format!("{prefix}chain"), &state.scalars);
        file.tensor(&format!("{prefix}held"), &[state.held_out.len()], &state.held_out);
        for (name, side) in [("users", &state.users), ("items", &state.items)] {
            latent::write_rows(file, &format!("{prefix}{name}"), &side.factors);
            file.tensor(&format!("{prefix}{name}.bias"), &[side.bias.len()], &side.bias);
        }
        for (name, lists) in [("to_users", &state.to_users), ("to_items", &state.to_items)] {
            if let Some(Lists { sources, gains }) = lists {
                latent::write_rows(file, &format!("{prefix}{name}.sources"), sources);
                latent::write_rows(file, &format!("{prefix}{name}.gains"), gains);
            }
        }
        for (of, links) in Entity::ALL.into_iter().zip(&state.links) {
            if let Some(Links { coefficients, strengths, gains }) = links {
                let name = format!("{prefix}{}_links", of.name());
                file.set(&format!("{name}.strengths"), strengths);
                latent::write_rows(file, &name, coefficients);
                latent::write_rows(file, &format!("{name}.gains"), gains);
            }
        }
        state.samples.write(&format!("{prefix}samples."), self.shape(), file);
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let (n_users, n_items, k) = (self.data.n_users(), self.data.n_items(), self.params.rank);
        let (iteration, noise, fallbacks) = file.get(&format!("{prefix}scalars"))?;
        let side = |file: &mut Reader, name: &str, n: usize| -> Result<Vectors> {
            Ok(Vectors {
                factors: latent::read_rows(file, &format!("{prefix}{name}"), n, k)?,
                bias: file.finite(&format!("{prefix}{name}.bias"), &[n])?,
            })
        };
        let lists = |file: &mut Reader, wanted: bool, name: &str, n: usize, sources: usize| {
            if !wanted {
                return Ok(None);
            }
            Ok::<_, Error>(Some(Lists {
                sources: latent::read_rows(
                    file,
                    &format!("{prefix}{name}.sources"),
                    sources,
                    k + 1,
                )?,
                gains: latent::read_rows(file, &format!("{prefix}{name}.gains"), n, k + 1)?,
            }))
        };
        let (for_users, for_items) = self.params.implicit_side.sides();
        let mut links = [None, None];
        for of in Entity::ALL {
            let Some(linked) = &self.linked[of as usize] else { continue };
            let name = format!("{prefix}{}_links", of.name());
            let mut read = Links::zeros(linked, k);
            let strengths: Vec<[f64; 2]> = file.get(&format!("{name}.strengths"))?;
            if strengths.len() != read.strengths.len() {
                return Err(file.broken("the strengths of the features are of other columns"));
            }
            read.strengths = strengths;
            let (n_features, n) = (read.coefficients.n_rows(), read.gains.n_rows());
            read.coefficients = latent::read_rows(file, &name, n_features, k + 1)?;
            read.gains = latent::read_rows(file, &format!("{name}.gains"), n, k + 1)?;
            links[of as usize] = Some(read);
        }
        Ok(State {
            links,
            iteration,
            noise,
            users: side(file, "users", n_users)?,
            items: side(file, "items", n_items)?,
            to_users: lists(file, for_users, "to_users", n_users, n_items)?,
            to_items: lists(file, for_items, "to_items", n_items, n_users)?,
            samples: Samples::read(&format!("{prefix}samples."), self.shape(), file)?,
            held_out: file.tensor(
                &format!("{prefix}held"),
                &[self.held_out.as_ref().map_or(0, HeldOut::len)],
            )?,
            scalars: file.get(&format!("{prefix}chain"))?,
            fallbacks,
        })
    }
}
