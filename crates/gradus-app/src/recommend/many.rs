//! Lists of many users, block by block.

use super::Recommender;
use crate::filter::USER_NAMES;
use crate::lists::TextRows;
use gradus_base::{Error, Result};
use gradus_core::recommend::{Filter, Recommend, Scored};
use gradus_data::{Id, Ids, TextColumn};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;

/// Lists of users are kept in memory for this many recommendations at most.
const HELD: usize = 1 << 20;
/// Users in a block at most; enough that preparing the items is little beside the work.
const BLOCK: usize = 1 << 15;

/// Lists for many users: the users, and the number of items in each list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ManyRequest {
    /// A file of users: one id a line, or a column of a table; without it, every user of the model.
    #[serde(default)]
    pub users: Option<PathBuf>,
    /// The column of the users in their file, by name or position from 1.
    #[serde(default)]
    pub user_column: Option<String>,
    /// The treatment of a listed user whom the model does not know.
    #[serde(default)]
    pub on_unknown: OnUnknown,
    /// How many items in a list.
    pub n: usize,
}

/// The treatment of a user whom the model does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnknown {
    /// Stop, and name them.
    #[default]
    Fail,
    /// Leave them out, and count them.
    Skip,
    /// Give them the items with the most ratings.
    Popular,
}

/// Whom a list is for.
#[derive(Clone, Debug, PartialEq)]
pub enum ListedUser {
    /// A user of the model.
    Known(u32),
    /// A user that the model does not know, as the file names them.
    Unknown(String),
}

impl ListedUser {
    /// The id of the user: of the same type as those of the model.
    pub fn id<'a>(&'a self, model: &'a dyn Recommend) -> Id<'a> {
        match (self, model.users()) {
            (Self::Known(user), users) => users.get(*user as usize),
            (Self::Unknown(name), Ids::Text(_)) => Id::Text(name),
            (Self::Unknown(name), Ids::Int(_)) => Id::parse(name),
        }
    }
}

/// The list of one user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserList {
    /// Whom it is for.
    pub user: ListedUser,
    /// The items, best first.
    pub items: Vec<Scored>,
}

/// The number of lists, and the time they took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ManyAnswer {
    /// Lists made.
    pub users: usize,
    /// Listed users that the model does not know.
    pub unknown_users: usize,
    /// Seconds spent on choosing items, without reading and writing.
    pub choosing_seconds: f64,
}

/// The lists of many users, made a block at a time, so that memory stays bounded.
pub struct ManyLists<'a> {
    recommender: Recommender<'a>,
    request: &'a ManyRequest,
    filter: &'a Filter,
    users: Box<dyn Iterator<Item = Result<ListedUser>> + 'a>,
    /// The list of those the model does not know, once it was needed.
    popular: Option<Vec<Scored>>,
    done: ManyAnswer,
}

impl<'a> Recommender<'a> {
    /// The lists of many users.
    ///
    /// # Errors
    /// If the file of users cannot be read, or lacks the column.
    pub fn recommend_many(
        &self,
        request: &'a ManyRequest,
        filter: &'a Filter,
    ) -> Result<ManyLists<'a>> {
        let model = self.model;
        let users: Box<dyn Iterator<Item = Result<ListedUser>> + 'a> = match &request.users {
            None => {
                Box::new((0..model.users().len() as u32).map(|user| Ok(ListedUser::Known(user))))
            }
            Some(path) => {
                let given = request.user_column.as_deref();
                let wanted = TextColumn { what: "users", names: USER_NAMES, given };
                Box::new(TextRows::open(path, &[wanted])?.map(|row| {
                    let name = row?.swap_remove(0);
                    Ok(match model.users().find(Id::Text(&name)) {
                        Some(user) => ListedUser::Known(user),
                        None => ListedUser::Unknown(name),
                    })
                }))
            }
        };
        let done = ManyAnswer::default();
        Ok(ManyLists { recommender: *self, request, filter, users, popular: None, done })
    }
}

impl ManyLists<'_> {
    /// The number of users, if it is known before they are read.
    pub fn total(&self) -> Option<usize> {
        self.request.users.is_none().then(|| self.recommender.model.users().len())
    }

    /// Returns the counts so far.
    pub fn done(&self) -> ManyAnswer {
        self.done
    }

    /// The lists of the next users in order; none at the end.
    ///
    /// # Errors
    /// If a row cannot be read, a user is unknown and the request says to fail, or the model cannot recommend.
    pub fn next_block(&mut self) -> Result<Option<Vec<UserList>>> {
        let size = (HELD / self.request.n.max(1)).clamp(1024, BLOCK);
        let mut block: Vec<ListedUser> = self.users.by_ref().take(size).collect::<Result<_>>()?;
        if block.is_empty() {
            return Ok(None);
        }
        self.settle(&mut block)?;
        let model = self.recommender.model;
        let known: Vec<u32> = block
            .iter()
            .filter_map(|user| match user {
                ListedUser::Known(user) => Some(*user),
                ListedUser::Unknown(_) => None,
            })
            .collect();
        if known.len() < block.len() && self.popular.is_none() {
            self.popular = Some(popular(model, self.request.n, self.filter)?);
        }
        let started = Instant::now();
        let mut found = model.top_many(&known, self.request.n, self.filter)?.into_iter();
        self.done.choosing_seconds += started.elapsed().as_secs_f64();
        let mut list = |user: &ListedUser| match user {
            ListedUser::Known(_) => found.next().unwrap_or_default(),
            ListedUser::Unknown(_) => self.popular.clone().unwrap_or_default(),
        };
        let lists: Vec<UserList> =
            block.into_iter().map(|user| UserList { items: list(&user), user }).collect();
        self.done.users += lists.len();
        Ok(Some(lists))
    }

    /// Does with unknown users what the request says.
    fn settle(&mut self, block: &mut Vec<ListedUser>) -> Result<()> {
        let unknown = |user: &ListedUser| matches!(user, ListedUser::Unknown(_));
        self.done.unknown_users += block.iter().filter(|user| unknown(user)).count();
        match self.request.on_unknown {
            OnUnknown::Popular => {}
            OnUnknown::Skip => block.retain(|user| !unknown(user)),
            OnUnknown::Fail => {
                for user in block {
                    if let ListedUser::Unknown(name) = user {
                        let error = self.recommender.find_user(name).err();
                        let error = error.map(|error| error.to_string()).unwrap_or_default();
                        return Err(Error::data(format!(
                            "{error}; or go on without such users, option `on_unknown` = skip or popular"
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The most rated items that the filter lets through, with the model's prediction for an unknown user.
fn popular(model: &dyn Recommend, n: usize, filter: &Filter) -> Result<Vec<Scored>> {
    let history = model.history().ok_or_else(|| {
        Error::data(
            "option `on_unknown` = popular needs the number of ratings of each item, and the model was fitted with \
             keep_history = false",
        )
    })?;
    let n_items = model.items().len();
    let mut counts = vec![0f32; n_items];
    history.indices().iter().for_each(|&item| counts[item as usize] += 1.0);
    let allowed = filter.allowed(n_items, Some(history))?;
    let mut best = filter.best(n, &counts, allowed.as_deref(), &[]);
    let pairs: Vec<_> = best.iter().map(|scored| (None, Some(scored.item))).collect();
    for (scored, score) in best.iter_mut().zip(model.predict(&pairs)) {
        scored.score = score;
    }
    Ok(best)
}
