//! A recommender without latent factors: a rule scores items from the ratings of a user. Shared by the
//! baselines and by the models of item weights and graph filters.

mod update;

pub use update::Change;
pub(crate) use update::{not_kept, sparse_rows};

use crate::catalogue::{self, Catalogue, UserProfile};
use gradus_base::{Error, Result, parallel};
use gradus_core::estimator::Model;
use gradus_core::recommend::{Contribution, Explanation, Filter, Recipient, Recommend, Scored};
use gradus_core::update::Update;
use gradus_data::{Csr, Ids};
use gradus_file::{Reader, Writer};

/// A rule by which items are scored. [`Scorer`] does the rest of a recommender.
pub trait ScoringRule: Sized + Send + Sync + 'static {
    /// The scratch memory that a thread keeps between blocks, such as large buffers.
    type Workspace: Default + Send;

    /// Whether scores are made from the ratings of the user: the history is then always kept.
    const FROM_HISTORY: bool = false;

    /// Whether the score of one item costs as much as the scores of all: predictions are then made
    /// user by user, not pair by pair.
    const BY_USER: bool = false;

    /// The number of users that are scored together.
    const BLOCK: usize = 1;

    /// Whether new interactions can be taken in without a new fit.
    const UPDATES: bool = false;

    /// Writes the rule to a file.
    fn write<'a>(&'a self, file: &mut Writer<'a>);

    /// Reads it back, trusting nothing.
    fn read(file: &mut Reader, catalogue: &Catalogue) -> Result<Self>;

    /// The shape of the rule in a few words and numbers.
    fn summary(&self) -> Vec<(&'static str, String)>;

    /// The score of a pair before clipping; `None` is a user or item the model does not know.
    fn score(&self, profile: Option<&UserProfile<'_>>, item: Option<usize>) -> f32;

    /// The scores of all items for a user; the same bits as [`score`](Self::score).
    fn scores(&self, profile: &UserProfile<'_>, scores: &mut [f32]) {
        for (item, score) in scores.iter_mut().enumerate() {
            *score = self.score(Some(profile), Some(item));
        }
    }

    /// The scores of all items for each of some users, at most [`BLOCK`](Self::BLOCK) of them; the same
    /// bits as [`scores`](Self::scores).
    ///
    /// # Shapes
    /// `scores` has a row of all items for each user.
    fn scores_of_block(
        &self,
        profiles: &[UserProfile<'_>],
        workspace: &mut Self::Workspace,
        scores: &mut [f32],
    ) {
        let _ = workspace;
        let n_items = scores.len() / profiles.len().max(1);
        for (profile, scores) in profiles.iter().zip(scores.chunks_exact_mut(n_items.max(1))) {
            self.scores(profile, scores);
        }
    }

    /// The range that predictions are clipped to.
    fn range(&self) -> Option<(f32, f32)> {
        None
    }

    /// The contribution of each of a user's ratings to the score of an item.
    fn parts(&self, profile: &UserProfile<'_>, item: usize) -> Vec<f32>;

    /// Moves what is known of each item to its new place and adds the new items; the number of items solved. Called
    /// only of a rule that [`UPDATES`](Self::UPDATES). After an error the rule is unchanged.
    ///
    /// # Errors
    /// If the rule was read from a file that holds too little for it.
    fn update(&mut self, change: &Change<'_>) -> Result<usize> {
        let _ = change;
        Err(Error::data("this model takes in no new ratings"))
    }

    /// The items most similar to this one.
    ///
    /// # Errors
    /// If the model has no similarities.
    fn similar(&self, item: usize, n: usize) -> Result<Vec<Scored>> {
        let _ = (item, n);
        Err(Error::data("this model knows nothing by which items could be alike"))
    }
}

/// A fitted recommender: a rule that scores items, with the ids and the history of the users.
#[derive(Clone, Debug)]
pub struct Scorer<R> {
    catalogue: Catalogue,
    rule: R,
    /// Ratings added since the fit.
    added: u64,
}

/// Reads a sparse matrix of items by items, the items of each row ascending.
pub(crate) fn read_item_matrix(
    name: &str,
    catalogue: &Catalogue,
    file: &mut Reader,
) -> Result<Csr> {
    let n_items = catalogue.items.len();
    let matrix = Csr::read(name, n_items, n_items, file)?;
    if (0..n_items).any(|item| !matrix.row(item).0.is_sorted_by(|a, b| a < b)) {
        return Err(file.broken(format!("matrix `{name}`: the items of a row do not ascend")));
    }
    Ok(matrix)
}

impl<R: ScoringRule> Scorer<R> {
    pub(crate) fn new(catalogue: Catalogue, rule: R) -> Self {
        Self { catalogue, rule, added: 0 }
    }

    /// Predictions for pairs of rows, with the scores of all items made once for each user.
    fn predict_by_user(&self, pairs: &[(Option<usize>, Option<usize>)]) -> Vec<f32> {
        let n_items = self.catalogue.items.len();
        let mut order: Vec<(usize, usize)> = (0..pairs.len())
            .filter_map(|at| pairs[at].0.filter(|_| pairs[at].1.is_some()).map(|user| (user, at)))
            .collect();
        order.sort_unstable();
        let of_users: Vec<&[(usize, usize)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
        let state = || (vec![0.0; n_items * R::BLOCK], R::Workspace::default());
        let parts = parallel::map_with(of_users.chunks(R::BLOCK), state, |state, block| {
            let (scores, workspace) = state;
            let profiles: Vec<_> =
                block.iter().map(|places| self.catalogue.of_user(places[0].0)).collect();
            let scores = &mut scores[..n_items * block.len()];
            self.rule.scores_of_block(&profiles, workspace, scores);
            let mut found = Vec::new();
            for (places, scores) in block.iter().zip(scores.chunks_exact(n_items)) {
                for &(_, at) in *places {
                    found.push((at, pairs[at].1.map_or(0.0, |item| scores[item])));
                }
            }
            found
        });
        let unknown = self.clipped(self.rule.score(None, None));
        let mut predicted = vec![unknown; pairs.len()];
        for (at, score) in parts.into_iter().flatten() {
            predicted[at] = self.clipped(score);
        }
        predicted
    }

    #[cfg(test)]
    pub(crate) fn rule(&self) -> &R {
        &self.rule
    }

    fn clipped(&self, score: f32) -> f32 {
        self.rule.range().map_or(score, |(low, high)| score.clamp(low, high))
    }
}

impl<R: ScoringRule> Recommend for Scorer<R> {
    fn users(&self) -> &Ids {
        &self.catalogue.users
    }

    fn items(&self) -> &Ids {
        &self.catalogue.items
    }

    fn history(&self) -> Option<&Csr> {
        self.catalogue.history.as_ref().map(|history| &*history.ratings)
    }

    fn predict(&self, pairs: &[(Option<u32>, Option<u32>)]) -> Vec<f32> {
        let known = |index: Option<u32>, ids: &Ids| {
            index.map(|index| index as usize).filter(|&index| index < ids.len())
        };
        if R::BY_USER {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|&(user, item)| {
                    (known(user, &self.catalogue.users), known(item, &self.catalogue.items))
                })
                .collect();
            return self.predict_by_user(&pairs);
        }
        parallel::map_below(pairs.len(), 256, |at| {
            let (user, item) = pairs[at];
            let profile =
                known(user, &self.catalogue.users).map(|user| self.catalogue.of_user(user));
            let item = known(item, &self.catalogue.items);
            self.clipped(self.rule.score(profile.as_ref(), item))
        })
    }

    fn top(&self, target: &Recipient<'_>, n: usize, filter: &Filter) -> Result<Vec<Scored>> {
        let profile = self.catalogue.profile(target)?;
        let seen = self.catalogue.seen(&profile, filter)?;
        let n_items = self.catalogue.items.len();
        let allowed = filter.allowed(n_items, self.history())?;
        let mut scores = vec![0.0; n_items];
        self.rule.scores(&profile, &mut scores);
        Ok(filter.best(n, &scores, allowed.as_deref(), seen))
    }

    fn top_many(&self, users: &[u32], n: usize, filter: &Filter) -> Result<Vec<Vec<Scored>>> {
        let n_items = self.catalogue.items.len();
        let allowed = filter.allowed(n_items, self.history())?;
        let rows: Vec<usize> = users
            .iter()
            .map(|&user| catalogue::user_row(user, self.catalogue.users.len()))
            .collect::<Result<_>>()?;
        if let Some(&row) = rows.first() {
            // To say before any work that what was seen is not known, if so.
            self.catalogue.seen(&self.catalogue.of_user(row), filter)?;
        }
        let state = || (vec![0.0; n_items * R::BLOCK], R::Workspace::default());
        let lists = parallel::map_with(rows.chunks(R::BLOCK), state, |state, rows| {
            let (scores, workspace) = state;
            let profiles: Vec<_> = rows.iter().map(|&row| self.catalogue.of_user(row)).collect();
            let scores = &mut scores[..n_items * rows.len()];
            self.rule.scores_of_block(&profiles, workspace, scores);
            let lists =
                profiles.iter().zip(scores.chunks_exact(n_items)).map(|(profile, scores)| {
                    let seen = self.catalogue.seen(profile, filter)?;
                    Ok(filter.best(n, scores, allowed.as_deref(), seen))
                });
            lists.collect::<Result<Vec<_>>>()
        });
        lists.into_iter().collect::<Result<Vec<_>>>().map(|lists| lists.concat())
    }

    fn similar_items(&self, item: u32, n: usize) -> Result<Vec<Scored>> {
        self.rule.similar(catalogue::item_row(item, self.catalogue.items.len())?, n)
    }

    fn explain(&self, target: &Recipient<'_>, item: u32) -> Result<Explanation> {
        let row = catalogue::item_row(item, self.catalogue.items.len())?;
        let profile = self.catalogue.profile(target)?;
        if profile.user.is_some() && self.catalogue.history.is_none() {
            return Err(Error::data(
                "the model was fitted with keep_history = false and cannot explain",
            ));
        }
        let score = self.rule.score(Some(&profile), Some(row));
        let parts = self.rule.parts(&profile, row);
        let total: f64 = parts.iter().map(|&part| f64::from(part)).sum();
        let rated = profile.items.iter().zip(&*profile.values).zip(parts);
        let mut contributions: Vec<Contribution> = rated
            .map(|((&item, &value), contribution)| Contribution { item, value, contribution })
            .collect();
        contributions.sort_by(|a, b| {
            b.contribution.abs().total_cmp(&a.contribution.abs()).then(a.item.cmp(&b.item))
        });
        let base = (f64::from(score) - total) as f32;
        Ok(Explanation { score, base, contributions, ..Explanation::default() })
    }
}

impl<R: ScoringRule> Model for Scorer<R> {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.catalogue.write(file);
        self.rule.write(file);
        if self.added > 0 {
            file.set("added", &self.added);
        }
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let catalogue = Catalogue::read(file)?;
        if R::FROM_HISTORY && catalogue.history.is_none() {
            return Err(file.broken("header `history`: this kind of model cannot do without"));
        }
        let rule = R::read(file, &catalogue)?;
        let added: Option<u64> = file.get("added")?;
        Ok(Self { catalogue, rule, added: added.unwrap_or(0) })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("users", self.catalogue.users.len().to_string()),
            ("items", self.catalogue.items.len().to_string()),
        ];
        facts.extend(self.rule.summary());
        if let Some((low, high)) = self.rule.range() {
            facts.push(("range", format!("{low}–{high}")));
        }
        if let Some(history) = &self.catalogue.history {
            facts.push(("ratings kept", history.ratings.nnz().to_string()));
        }
        if self.added > 0 {
            facts.push(("ratings added since the fit", self.added.to_string()));
        }
        facts
    }

    fn recommend(&self) -> Option<&dyn Recommend> {
        Some(self)
    }

    fn updater(&mut self) -> Option<&mut dyn Update> {
        if R::UPDATES { Some(self) } else { None }
    }
}
