//! Recommending, and what is similar.

mod many;

pub use many::{ListedUser, ManyAnswer, ManyLists, ManyRequest, OnUnknown, UserList};

use gradus_base::{Error, Result, parallel};
use gradus_core::dataset::{Remarks, in_file, read_side_table};
use gradus_core::estimator::AnyFitted;
use gradus_core::recommend::{
    FeatureContribution, Filter, Profile, Recipient, Recommend, Scored, ScoredUser,
};
use gradus_data::{Entity, FeatureEncoder, FeatureRow, Id, Ids, Table, Titles};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Whom to recommend to, and how many items.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RecommendRequest {
    /// A user of the model, as the data called them.
    #[serde(default)]
    pub user: Option<String>,
    /// Someone the model does not know, by what they rated: items by id or title.
    #[serde(default)]
    pub rated: Vec<(String, f32)>,
    /// How many items.
    pub n: usize,
    /// Whether to say which ratings carried each score.
    #[serde(default)]
    pub explain: bool,
}

/// Items for someone.
#[derive(Clone, Debug, Serialize)]
pub struct RecommendAnswer<'a> {
    /// The user, if it is one of the model's.
    pub user: Option<Id<'a>>,
    /// The items, best first.
    pub recommendations: Vec<ScoredItem<'a>>,
}

/// An item with its score.
#[derive(Clone, Debug, Serialize)]
pub struct ScoredItem<'a> {
    /// The item, as the data called it.
    pub item: Id<'a>,
    /// The score of the item.
    pub score: f32,
    /// The title of the item, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// Why, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explained<'a>>,
}

/// The terms of a score.
#[derive(Clone, Debug, Serialize)]
pub struct Explained<'a> {
    /// The score.
    pub score: f32,
    /// The part that is the same for anyone.
    pub base: f32,
    /// The contribution of each rating, the largest first.
    pub contributions: Vec<RatingContribution<'a>>,
    /// The contribution of each feature of the user, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_features: Vec<FeaturePart>,
    /// The contribution of each feature of the item, the largest first: another decomposition of the same score.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub item_features: Vec<FeaturePart>,
}

/// The contribution of one feature to a score.
#[derive(Clone, Debug, Serialize)]
pub struct FeaturePart {
    /// The feature: `age`, `genres=Comedy`.
    pub feature: String,
    /// The contribution.
    pub adds: f32,
}

/// Items for someone described by features.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedAnswer<'a> {
    /// The id in the table of features.
    pub user: String,
    /// The items, best first.
    pub recommendations: Vec<ScoredItem<'a>>,
}

/// The contribution of one rating to a score.
#[derive(Clone, Debug, Serialize)]
pub struct RatingContribution<'a> {
    /// The item that was rated.
    pub item: Id<'a>,
    /// The rating.
    pub rated: f32,
    /// The contribution.
    pub adds: f32,
    /// The title of the item, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
}

/// Users for an item.
#[derive(Clone, Debug, Serialize)]
pub struct UsersAnswer<'a> {
    /// The item.
    pub item: Id<'a>,
    /// The users, best first.
    pub users: Vec<UserScore<'a>>,
    /// The title of the item, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
}

/// A user with a score.
#[derive(Clone, Debug, Serialize)]
pub struct UserScore<'a> {
    /// The user, as the data called them.
    pub user: Id<'a>,
    /// The score.
    pub score: f32,
}

/// Items like an item.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarItems<'a> {
    /// The item.
    pub item: Id<'a>,
    /// The most similar items, with their similarity.
    pub similar: Vec<ScoredItem<'a>>,
    /// The title of the item, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
}

/// Users like a user.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarUsers<'a> {
    /// The user.
    pub user: Id<'a>,
    /// The most similar users, with their similarity.
    pub similar: Vec<UserScore<'a>>,
}

/// The rows of a table as features of a model, each with its id: a column that is none of the features, or the
/// number of the row.
fn described(
    table: &Table,
    encoder: &Arc<FeatureEncoder>,
) -> Result<(Vec<String>, Vec<FeatureRow>)> {
    let (features, _) = encoder.encode(table)?;
    let columns = encoder.columns();
    let is_feature = |name: &str| columns.iter().any(|(column, _)| *column == name);
    let usual = Entity::User.id_column(table)?;
    let others = table.names().into_iter().find(|name| !is_feature(name));
    let id = if is_feature(&usual) { others.map(str::to_owned) } else { Some(usual) };
    let names = match id {
        Some(id) => table.texts(&id)?,
        None => vec![None; table.n_rows()],
    };
    let name = |(row, name): (usize, Option<String>)| name.unwrap_or((row + 1).to_string());
    let row = |row: usize| {
        let (indices, values) = features.row(row);
        FeatureRow { indices: indices.to_vec(), values: values.to_vec() }
    };
    Ok((names.into_iter().enumerate().map(name).collect(), (0..table.n_rows()).map(row).collect()))
}

/// A recommender with the titles of its items.
#[derive(Clone, Copy)]
pub struct Recommender<'a> {
    /// The model.
    pub model: &'a dyn Recommend,
    /// Titles of the items, if there are any.
    pub titles: Option<&'a Titles>,
}

impl<'a> Recommender<'a> {
    /// The recommending side of a model.
    ///
    /// # Errors
    /// If it does not recommend; the message says what it can do instead.
    pub fn of(fitted: &'a AnyFitted) -> Result<Self> {
        Ok(Self { model: fitted.recommend()?, titles: fitted.titles.as_ref() })
    }

    /// The id of an item.
    pub fn item(&self, item: u32) -> Id<'a> {
        self.model.items().get(item as usize)
    }

    /// The title of an item, if it has one.
    pub fn title(&self, item: u32) -> Option<&'a str> {
        self.titles?.get(self.item(item))
    }

    /// An item with its score.
    pub fn scored(&self, scored: &Scored) -> ScoredItem<'a> {
        let (item, title) = (self.item(scored.item), self.title(scored.item));
        ScoredItem { item, score: scored.score, title, explanation: None }
    }

    fn user_score(&self, scored: &ScoredUser) -> UserScore<'a> {
        UserScore { user: self.model.users().get(scored.user as usize), score: scored.score }
    }

    /// Recommends items to a user, or to someone described by a few ratings.
    ///
    /// # Errors
    /// If the user or a rated item is unknown, or the model cannot do it.
    pub fn recommend(
        &self,
        request: &RecommendRequest,
        filter: &Filter,
    ) -> Result<RecommendAnswer<'a>> {
        let mut profile = Profile::default();
        for (item, value) in &request.rated {
            profile.items.push(self.find_item(item)?);
            profile.values.push(*value);
        }
        let target = match &request.user {
            Some(user) => Recipient::User(self.find_user(user)?),
            None => Recipient::Profile(&profile),
        };
        let user = match target {
            Recipient::User(user) => Some(self.model.users().get(user as usize)),
            _ => None,
        };
        let recommendations = self.list(&target, request, filter)?;
        Ok(RecommendAnswer { user, recommendations })
    }

    /// The best items for a target.
    fn list(
        &self,
        target: &Recipient<'_>,
        request: &RecommendRequest,
        filter: &Filter,
    ) -> Result<Vec<ScoredItem<'a>>> {
        let mut recommendations = Vec::new();
        for scored in self.model.top(target, request.n, filter)? {
            let mut item = self.scored(&scored);
            if request.explain {
                let reason = self.model.explain(target, scored.item)?;
                let contributions = reason.contributions.iter().map(|part| RatingContribution {
                    item: self.item(part.item),
                    rated: part.value,
                    adds: part.contribution,
                    title: self.title(part.item),
                });
                let parts = |parts: Vec<FeatureContribution>| {
                    let part = |part: FeatureContribution| FeaturePart {
                        feature: part.feature,
                        adds: part.contribution,
                    };
                    parts.into_iter().map(part).collect()
                };
                item.explanation = Some(Explained {
                    score: reason.score,
                    base: reason.base,
                    contributions: contributions.collect(),
                    user_features: parts(reason.user_features),
                    item_features: parts(reason.item_features),
                });
            }
            recommendations.push(item);
        }
        Ok(recommendations)
    }

    /// Recommends items to everyone in a table of features; with ratings of the request the table must be of
    /// one.
    ///
    /// # Errors
    /// If the model learned from no features of users, the table cannot be read as such features, or a rated
    /// item is unknown.
    pub fn recommend_described(
        &self,
        path: &Path,
        request: &RecommendRequest,
        filter: &Filter,
        remarks: &mut Remarks<'_>,
    ) -> Result<Vec<DescribedAnswer<'a>>> {
        let encoder = self.model.encoder(Entity::User).ok_or_else(|| {
            Error::data(
                "option `features`: the model was fitted without features of users (option `user_features`)",
            )
        })?;
        let table = read_side_table(Entity::User, path, remarks)?;
        let (names, features) =
            described(&table, encoder).map_err(|error| in_file("features", path, error))?;
        let mut profile = Profile::default();
        for (item, value) in &request.rated {
            profile.items.push(self.find_item(item)?);
            profile.values.push(*value);
        }
        let rated = Some(&profile).filter(|profile| !profile.items.is_empty());
        if rated.is_some() && names.len() != 1 {
            return Err(Error::data(format!(
                "option `rated` goes with features of one person, and {} has {} rows",
                path.display(),
                names.len()
            )));
        }
        let answer = |(user, features): (String, FeatureRow)| {
            let target = Recipient::Described { features: &features, rated };
            let recommendations = self.list(&target, request, filter)?;
            Ok(DescribedAnswer { user, recommendations })
        };
        parallel::try_map(names.into_iter().zip(features), answer)
    }

    /// The users whom an item suits best.
    ///
    /// # Errors
    /// If the item is unknown, or the model cannot do it.
    pub fn users_for(&self, item: &str, n: usize, include_seen: bool) -> Result<UsersAnswer<'a>> {
        let item = self.find_item(item)?;
        let users = self.model.top_users(item, n, include_seen)?;
        let users = users.iter().map(|scored| self.user_score(scored)).collect();
        Ok(UsersAnswer { item: self.item(item), users, title: self.title(item) })
    }

    /// The items most like an item.
    ///
    /// # Errors
    /// If the item is unknown, or the model cannot do it.
    pub fn similar_items(&self, item: &str, n: usize) -> Result<SimilarItems<'a>> {
        let item = self.find_item(item)?;
        let similar = self.model.similar_items(item, n)?;
        let similar = similar.iter().map(|scored| self.scored(scored)).collect();
        Ok(SimilarItems { item: self.item(item), similar, title: self.title(item) })
    }

    /// The users most like a user.
    ///
    /// # Errors
    /// If the user is unknown, or the model cannot do it.
    pub fn similar_users(&self, user: &str, n: usize) -> Result<SimilarUsers<'a>> {
        let user = self.find_user(user)?;
        let similar = self.model.similar_users(user, n)?;
        let similar = similar.iter().map(|scored| self.user_score(scored)).collect();
        Ok(SimilarUsers { user: self.model.users().get(user as usize), similar })
    }

    /// The index of a user.
    ///
    /// # Errors
    /// If the model does not know the user; the message says how to go on.
    pub fn find_user(&self, user: &str) -> Result<u32> {
        self.model.users().find(Id::Text(user)).ok_or_else(|| Error::UnknownId {
            what: "user",
            id: user.to_owned(),
            hint:
                "the model was not trained on this user; describe them by a few ratings instead, \
                   option `rated`, and they are folded in without retraining"
                    .into(),
        })
    }

    /// The index of an item, by its id or by its whole title.
    ///
    /// # Errors
    /// If the model does not know the item; the message names those that are near.
    pub fn find_item(&self, item: &str) -> Result<u32> {
        let items = self.model.items();
        if let Some(found) = items.find(Id::Text(item)) {
            return Ok(found);
        }
        let wanted = item.trim().to_lowercase();
        let titled = || self.titles.iter().flat_map(|titles| titles.iter());
        let mut same = titled().filter(|(_, title)| title.to_lowercase() == wanted);
        if let (Some((id, _)), None) = (same.next(), same.next())
            && let Some(found) = items.find(id)
        {
            return Ok(found);
        }
        let of_titles = titled()
            .filter(|(id, title)| {
                title.to_lowercase().contains(&wanted) && items.find(*id).is_some()
            })
            .map(|(id, title)| format!("`{id}` ({title})"));
        let of_ids = match items {
            Ids::Text(ids) => Some(ids),
            Ids::Int(_) => None,
        };
        let of_ids = of_ids.into_iter().flat_map(|ids| ids.iter());
        let of_ids =
            of_ids.filter(|id| id.to_lowercase().contains(&wanted)).map(|id| format!("`{id}`"));
        let near: Vec<String> =
            if wanted.is_empty() { Vec::new() } else { of_titles.chain(of_ids).take(3).collect() };
        Err(Error::UnknownId {
            what: "item",
            id: item.to_owned(),
            hint: if near.is_empty() {
                "the model was not trained on this item".into()
            } else {
                format!("did you mean {}?", near.join(", "))
            },
        })
    }
}
