//! Whom to ask for, what is relevant to them, what is left out and why.

use super::RankingOptions;
use super::report::Skipped;
use gradus_base::{Error, Result, parallel};
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend, Scored};
use gradus_data::{Csr, Entity, Ids, Ratings};

/// Someone to rank for.
pub(super) struct Case {
    pub who: Who,
    /// The user's place in the test data: the number of their random stream.
    pub number: u64,
    /// Item indices of the model, ascending; never empty.
    pub relevant: Vec<u32>,
    /// All test items the model knows, ascending: none of them is a negative to draw.
    pub tested: Vec<u32>,
}

/// A user of the model, or someone folded in.
pub(super) enum Who {
    User(u32),
    Profile(Profile),
}

/// Everyone to rank for, and how.
pub(super) struct Cases<'a> {
    pub model: &'a dyn Recommend,
    pub all: Vec<Case>,
    pub skipped: Skipped,
    /// Relevant test ratings of items the model does not know.
    pub unknown_items: usize,
    /// Relevant test ratings that are in training as well.
    pub in_training: usize,
    include_seen: bool,
    training: Training<'a>,
    /// The number of users who have each item in training, if that is known.
    counts: Option<Vec<u32>>,
    /// Items that no user has in training and that have no features, ascending: they are not ranked.
    pub untrained: Vec<u32>,
    /// Whether the model learned from features of users, and of items.
    described: [bool; 2],
}

/// The training items of the users of the model.
enum Training<'a> {
    /// The training data is unknown and not needed.
    Unknown,
    /// The model's own.
    Kept(&'a Csr),
    /// Given, with its items by index of the model: for each user of the model the row there.
    Given { ratings: &'a Ratings, rows: Vec<Option<u32>>, items: Vec<Option<u32>> },
}

impl Training<'_> {
    /// Whether anything is known of a user. Data that is a part of larger data keeps all of its
    /// ids, so an id alone does not mean that training has a rating of it.
    fn has(&self, user: u32) -> bool {
        match self {
            Self::Unknown => true,
            Self::Kept(history) => !history.range(user as usize).is_empty(),
            Self::Given { ratings, rows, .. } => rows[user as usize]
                .is_some_and(|row| !ratings.by_user().range(row as usize).is_empty()),
        }
    }

    /// The ratings of users by items, and the index in the model of each item there.
    fn matrix(&self) -> Option<(&Csr, Option<&[Option<u32>]>)> {
        match self {
            Self::Unknown => None,
            Self::Kept(history) => Some((history, None)),
            Self::Given { ratings, items, .. } => Some((ratings.by_user(), Some(items))),
        }
    }

    /// How many users have each item of the model.
    fn counts(&self, n_items: usize) -> Option<Vec<u32>> {
        let (matrix, places) = self.matrix()?;
        let mut counts = vec![0; n_items];
        for &column in matrix.indices() {
            let item = places.map_or(Some(column), |items| items[column as usize]);
            if let Some(count) = item.and_then(|item| counts.get_mut(item as usize)) {
                *count += 1;
            }
        }
        Some(counts)
    }

    /// The items of a user, ascending.
    fn of(&self, user: u32) -> Vec<u32> {
        match self {
            Self::Unknown => Vec::new(),
            Self::Kept(history) => history.row(user as usize).0.to_vec(),
            Self::Given { ratings, rows, items } => {
                let Some(row) = rows[user as usize] else { return Vec::new() };
                let (columns, _) = ratings.by_user().row(row as usize);
                let mut known: Vec<u32> =
                    columns.iter().filter_map(|&column| items[column as usize]).collect();
                known.sort_unstable();
                known
            }
        }
    }
}

/// The index in `to` of each of `from`.
fn mapped(from: &Ids, to: &Ids) -> Vec<Option<u32>> {
    if from == to {
        return (0..from.len() as u32).map(Some).collect();
    }
    from.iter().map(|id| to.find(id)).collect()
}

impl<'a> Cases<'a> {
    pub(super) fn new(
        model: &'a dyn Recommend,
        test: &Ratings,
        options: &RankingOptions<'a>,
    ) -> Result<Self> {
        if test.is_empty() {
            return Err(Error::data("the test data holds no ratings"));
        }
        let training = match (options.training, model.history()) {
            (Some(ratings), _) => Training::Given {
                ratings,
                rows: mapped(model.users(), ratings.users()),
                items: mapped(ratings.items(), model.items()),
            },
            (None, Some(history)) => Training::Kept(history),
            (None, None) if options.include_seen => Training::Unknown,
            (None, None) => {
                return Err(Error::data(
                    "the model was fitted with keep_history = false, so what users have in training \
                     cannot be left out: give the training ratings (option `training`), or rank these \
                     items as well (option `include_seen`)",
                ));
            }
        };
        let counts = training.counts(model.items().len());
        // An item without ratings is ranked by a model that knows it by its features.
        let items_described = model.encoder(Entity::Item).is_some();
        let untrained = counts.iter().flatten().zip(0..).filter(|(count, _)| **count == 0);
        let untrained = untrained.map(|(_, item)| item).filter(|_| !items_described).collect();
        let mut cases = Self {
            model,
            all: Vec::new(),
            skipped: Skipped::default(),
            unknown_items: 0,
            in_training: 0,
            include_seen: options.include_seen,
            training,
            counts,
            untrained,
            described: [model.encoder(Entity::User).is_some(), items_described],
        };
        cases.collect(test, options);
        if cases.all.is_empty() {
            return Err(cases.nobody(test, options));
        }
        Ok(cases)
    }

    fn collect(&mut self, test: &Ratings, options: &RankingOptions<'_>) {
        let items = mapped(test.items(), self.model.items());
        let users = mapped(test.users(), self.model.users());
        let fold_in = options.fold_in.map(|ratings| {
            let rows = mapped(test.users(), ratings.users());
            (ratings, rows, mapped(ratings.items(), self.model.items()))
        });
        for user in 0..test.n_users() {
            let range = test.by_user().range(user);
            if range.is_empty() {
                continue;
            }
            let is_relevant = |at: usize| {
                let value = test.by_user().values()[at];
                let by_value = options.threshold.map_or(value > 0.0, |least| value >= least);
                by_value && test.weights_by_user().is_none_or(|weights| weights[at] > 0.0)
            };
            if !range.clone().any(is_relevant) {
                self.skipped.nothing_relevant += 1;
                continue;
            }
            let described = fold_in.as_ref().and_then(|(ratings, rows, items)| {
                let (columns, values) = ratings.by_user().row(rows[user]? as usize);
                let known = columns.iter().zip(values);
                let known = known.filter_map(|(&at, &value)| Some((items[at as usize]?, value)));
                let (items, values) = known.unzip();
                Some(Profile { items, values })
            });
            let who = match (described, users[user]) {
                (Some(profile), _) if !profile.items.is_empty() => Who::Profile(profile),
                (_, Some(user)) if self.described[0] || self.training.has(user) => Who::User(user),
                (_, _) => {
                    self.skipped.unknown_users += 1;
                    continue;
                }
            };
            let seen = if self.include_seen { Vec::new() } else { self.seen(&who) };
            let (mut relevant, mut tested) = (Vec::new(), Vec::new());
            for at in range {
                let item = items[test.by_user().indices()[at] as usize];
                let Some(item) = item.filter(|item| self.is_ranked(*item)) else {
                    self.unknown_items += usize::from(is_relevant(at));
                    continue;
                };
                tested.push(item);
                if is_relevant(at) {
                    if seen.binary_search(&item).is_ok() {
                        self.in_training += 1;
                    } else {
                        relevant.push(item);
                    }
                }
            }
            if relevant.is_empty() {
                self.skipped.nothing_known += 1;
                continue;
            }
            relevant.sort_unstable();
            tested.sort_unstable();
            self.all.push(Case { who, number: user as u64, relevant, tested });
        }
    }

    /// Whether an item has a rating in training, as far as that is known, or features.
    pub(super) fn is_ranked(&self, item: u32) -> bool {
        self.described[1] || self.counts.as_ref().is_none_or(|counts| counts[item as usize] > 0)
    }

    /// Why nobody is left.
    fn nobody(&self, test: &Ratings, options: &RankingOptions<'_>) -> Error {
        let Skipped { unknown_users, nothing_relevant, nothing_known, .. } = self.skipped;
        let n = unknown_users + nothing_relevant + nothing_known;
        let reason = if nothing_relevant == n {
            let highest = test.by_user().values().iter().copied().fold(f32::MIN, f32::max);
            match options.threshold {
                Some(threshold) => format!(
                    "no test rating is at least {threshold} (the highest is {highest}); lower the \
                     threshold"
                ),
                None => format!("no test rating is above 0 (the highest is {highest})"),
            }
        } else if unknown_users + nothing_relevant == n {
            format!(
                "none of the {unknown_users} users has a rating in training; give ratings to fold them in by \
                 (option `fold_in`)"
            )
        } else if self.in_training > 0 && self.unknown_items == 0 {
            "every relevant test rating is in training as well, and is not recommended again: was \
             the model trained on the test data?"
                .to_owned()
        } else {
            format!(
                "no relevant test item can be recommended: {} ratings are of items without a \
                 rating in training, {} are in training as well by the user",
                self.unknown_items, self.in_training
            )
        };
        Error::data(format!("nobody to rank for: {reason}"))
    }

    /// Returns the training items of a user, ascending.
    pub(super) fn seen(&self, who: &Who) -> Vec<u32> {
        match who {
            Who::User(user) => self.training.of(*user),
            Who::Profile(profile) => {
                let mut items = profile.items.clone();
                items.sort_unstable();
                items
            }
        }
    }

    /// Returns the number of users who are folded in.
    pub(super) fn folded_in(&self) -> usize {
        self.all.iter().filter(|case| matches!(case.who, Who::Profile(_))).count()
    }

    /// Returns the number of users who have each item in training, and the number of users.
    pub(super) fn popularity(&self) -> Option<(Vec<u32>, usize)> {
        let (matrix, _) = self.training.matrix()?;
        let users = (0..matrix.n_rows()).filter(|&row| !matrix.range(row).is_empty()).count();
        Some((self.counts.clone()?, users))
    }

    /// Items that are ranked.
    pub(super) fn n_ranked(&self) -> usize {
        self.model.items().len() - self.untrained.len()
    }

    /// The best `n` items of each case, without what they have in training.
    pub(super) fn top(&self, cases: &[Case], n: usize) -> Result<Vec<Vec<Scored>>> {
        // Given training data the model knows nothing of: its items are taken out of longer lists.
        let given: Vec<Vec<u32>> = match &self.training {
            Training::Given { .. } if !self.include_seen => cases
                .iter()
                .map(|case| match case.who {
                    Who::User(_) => self.seen(&case.who),
                    Who::Profile(_) => Vec::new(),
                })
                .collect(),
            _ => vec![Vec::new(); cases.len()],
        };
        let extra = given.iter().map(Vec::len).max().unwrap_or(0);
        let deny = self.untrained.clone();
        let by_model = Filter { include_seen: self.include_seen, deny, ..Filter::default() };
        let everything = Filter { include_seen: true, ..by_model.clone() };
        let is_given = matches!(self.training, Training::Given { .. });
        let for_users = if is_given { &everything } else { &by_model };
        let users: Vec<u32> = cases
            .iter()
            .filter_map(|case| match case.who {
                Who::User(user) => Some(user),
                Who::Profile(_) => None,
            })
            .collect();
        let mut known =
            self.model.top_many(&users, n.saturating_add(extra), for_users)?.into_iter();
        let mut lists: Vec<Vec<Scored>> = parallel::try_map(cases, |case| match &case.who {
            Who::User(_) => Ok(Vec::new()),
            Who::Profile(profile) => self.model.top(&Recipient::Profile(profile), n, &by_model),
        })?;
        for ((list, case), seen) in lists.iter_mut().zip(cases).zip(&given) {
            if let Who::User(_) = case.who {
                *list = known.next().unwrap_or_default();
                list.retain(|scored| seen.binary_search(&scored.item).is_err());
                list.truncate(n);
            }
        }
        Ok(lists)
    }
}
