//! The audit of fairness of a recommender: quality by groups of users, exposure by groups of items.

use super::page::criteria_table;
use crate::App;
use gradus::audit::fairness::{
    AuditOptions, ExposureAudit, FairnessCriterion, QualityAudit, SensitiveGroups, audit_exposure,
    audit_quality,
};
use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_core::dataset::{RatingsFile, Remarks, read_side_table};
use gradus_core::estimator::AnyFitted;
use gradus_data::{Entity, Ids, Table};
use gradus_report::{Forest, Page, PageTable, TableColumn, fixed};
use gradus_select::{RankingOptions, RatingScale, UserRankings, rankings_by_user};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::PathBuf;

/// The name of the group of ids that the table lacks.
const UNKNOWN: &str = "(unknown)";

/// What exposure of items is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExposureReference {
    /// The share of a group among the items that can be recommended.
    #[default]
    Catalogue,
    /// The share of a group among the relevant items of the test data.
    Relevant,
}

/// An audit of fairness of a recommender: held-out ratings, and the tables that hold the groups.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RecommenderRequest {
    /// Ratings the model has not seen; `-` for standard input.
    pub data: PathBuf,
    /// How the ratings are read; its side tables of users and of items hold the groups.
    pub ratings: RatingsFile,
    /// The columns of the groups in these tables. Each is audited, and then the intersections of those of users, and of items.
    pub group: Vec<String>,
    /// The length of lists.
    pub at: usize,
    /// Test ratings of at least this count as relevant; by default all, or the upper quarter of the scale of a model of ratings.
    pub threshold: Option<f32>,
    /// What exposure is compared with.
    pub reference: ExposureReference,
    /// The training ratings, for a recommender that did not keep them.
    pub train: Option<PathBuf>,
    /// Options of the audit.
    pub options: AuditOptions,
}

impl Default for RecommenderRequest {
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            ratings: RatingsFile::default(),
            group: Vec::new(),
            at: 10,
            threshold: None,
            reference: ExposureReference::Catalogue,
            train: None,
            options: AuditOptions::default(),
        }
    }
}

/// An audit by one attribute.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecommenderAudit {
    /// A measure of the lists of users, by groups of users.
    Quality {
        /// The measure: `NDCG@10`.
        measure: String,
        /// The audit.
        audit: QualityAudit,
    },
    /// The exposure of groups of items.
    Exposure {
        /// The audit.
        audit: ExposureAudit,
    },
}

impl RecommenderAudit {
    /// The attribute whose groups are compared.
    pub fn attribute(&self) -> &str {
        match self {
            Self::Quality { audit, .. } => &audit.attribute,
            Self::Exposure { audit } => &audit.attribute,
        }
    }

    /// The criterion.
    pub fn criterion(&self) -> &FairnessCriterion {
        match self {
            Self::Quality { audit, .. } => &audit.criterion,
            Self::Exposure { audit } => &audit.criterion,
        }
    }

    /// What is audited, in words.
    pub fn title(&self) -> String {
        match self {
            Self::Quality { measure, audit } => {
                format!("{measure} by {} of users", audit.attribute)
            }
            Self::Exposure { audit } => format!("Exposure by {} of items", audit.attribute),
        }
    }

    /// The groups: name, members, share of the reference (of exposure), value, and the ends of its interval.
    pub fn rows(&self) -> Vec<(&str, usize, Option<f64>, [f64; 3])> {
        match self {
            Self::Quality { audit, .. } => audit
                .groups
                .iter()
                .map(|g| {
                    let rate = g.quality;
                    (g.group.as_str(), g.count, None, [rate.value, rate.low, rate.high])
                })
                .collect(),
            Self::Exposure { audit } => audit
                .groups
                .iter()
                .map(|g| {
                    let rate = g.exposure;
                    let ends = [rate.value, rate.low, rate.high];
                    (g.group.as_str(), g.count, Some(g.reference), ends)
                })
                .collect(),
        }
    }
}

/// What the audit of a recommender found.
#[derive(Clone, Debug, Serialize)]
pub struct RecommenderAnswer {
    /// The kind of model.
    pub model: String,
    /// Users with a list that was evaluated.
    pub users: usize,
    /// Users of the test data who could not be evaluated.
    pub skipped: usize,
    /// The length of the lists.
    pub at: usize,
    /// The value from which on a test rating counted as relevant, if not all did.
    pub threshold: Option<f32>,
    /// What exposure is compared with.
    pub reference: ExposureReference,
    /// The audits.
    pub audits: Vec<RecommenderAudit>,
}

impl App {
    /// Audits the lists of a recommender: their quality by groups of users, and the exposure of groups of items.
    ///
    /// # Errors
    /// If the model does not recommend, data or tables cannot be read, a group is in none of the tables or is no group, or nobody can be
    /// evaluated.
    pub fn audit_recommender(
        &self,
        fitted: &AnyFitted,
        request: &RecommenderRequest,
        remarks: &mut Remarks<'_>,
    ) -> Result<RecommenderAnswer> {
        let model = fitted.recommend()?;
        let tables = tables(request, remarks)?;
        let (test, has_values) = request.ratings.interactions(&request.data, remarks)?;
        let training = match &request.train {
            Some(path) => Some(request.ratings.interactions(path, remarks)?.0),
            None => None,
        };
        let implicit = self.registry.find(fitted.kind)?.traits().is_implicit();
        let scale = || {
            let values = match (&training, model.history()) {
                (Some(training), _) => training.by_user().values(),
                (None, Some(history)) => history.values(),
                (None, None) => test.by_user().values(),
            };
            RatingScale::of(values).upper_quarter()
        };
        let threshold = request.threshold.or_else(|| (has_values && !implicit).then(scale));
        let options =
            RankingOptions { threshold, training: training.as_ref(), ..RankingOptions::default() };
        let found = rankings_by_user(model, &test, &options, request.at)?;
        let mut audits = Vec::new();
        let user_ids: Vec<_> =
            found.users.iter().map(|one| test.users().get(one.user as usize)).collect();
        let of_users = tables.groups(Entity::User, &request.group, &user_ids, remarks)?;
        for groups in &of_users {
            let of = |measure: fn(&gradus_metrics::ranking::AtK) -> f64| -> Vec<f64> {
                found.users.iter().map(|one| measure(&one.at)).collect()
            };
            for (name, values) in [("NDCG", of(|at| at.ndcg)), ("recall", of(|at| at.recall))] {
                let audit = audit_quality(&values, groups, &request.options)?;
                let measure = format!("{name}@{}", request.at);
                audits.push(RecommenderAudit::Quality { measure, audit });
            }
        }
        let items: Vec<_> = model.items().iter().collect();
        let of_items = tables.groups(Entity::Item, &request.group, &items, remarks)?;
        let lists: Vec<&[u32]> = found.users.iter().map(|one| one.list.as_slice()).collect();
        let reference = reference(&found, request.reference, model.items());
        for groups in &of_items {
            let audit = audit_exposure(&lists, groups, Some(&reference), &request.options)?;
            audits.push(RecommenderAudit::Exposure { audit });
        }
        let warnings = audits.iter().filter_map(|audit| match audit {
            RecommenderAudit::Quality { audit, .. } => Some(&audit.warnings),
            RecommenderAudit::Exposure { .. } => None,
        });
        let mut said: Vec<&String> = warnings.flatten().collect();
        said.dedup();
        remarks.extend(said.into_iter().map(|warning| format!("warning: {warning}")));
        Ok(RecommenderAnswer {
            model: fitted.kind.to_owned(),
            users: found.users.len(),
            skipped: found.skipped.total(),
            at: request.at,
            threshold,
            reference: request.reference,
            audits,
        })
    }
}

/// How much attention each item is due.
fn reference(found: &UserRankings, of: ExposureReference, items: &Ids) -> Vec<f64> {
    match of {
        ExposureReference::Catalogue => {
            found.ranked.iter().map(|ranked| f64::from(u8::from(*ranked))).collect()
        }
        ExposureReference::Relevant => {
            let mut counts = vec![0.0; items.len()];
            for &item in found.users.iter().flat_map(|one| &one.relevant) {
                counts[item as usize] += 1.0;
            }
            counts
        }
    }
}

/// The side tables that were given.
struct Tables(Vec<(Entity, PathBuf, Table)>);

fn tables(request: &RecommenderRequest, remarks: &mut Remarks<'_>) -> Result<Tables> {
    if request.group.is_empty() {
        return Err(Error::data(
            "an audit of fairness compares groups: name their columns with option `group`",
        ));
    }
    let mut found = Vec::new();
    for of in Entity::ALL {
        if let Some(path) = request.ratings.features_file(of) {
            found.push((of, path.to_owned(), read_side_table(of, path, remarks)?));
        }
    }
    if found.is_empty() {
        return Err(Error::data(
            "the groups of a recommender are those of its users or items: give a table with their ids and the group columns \
             (option `user_features`, option `item_features`)",
        ));
    }
    for name in &request.group {
        if found.iter().all(|(_, _, table)| table.resolve(name).is_err()) {
            let columns = found.iter().flat_map(|(_, _, table)| table.names());
            return Err(Error::UnknownName {
                what: "column",
                name: name.clone(),
                known: columns.collect::<Vec<_>>().join(", "),
            });
        }
    }
    Ok(Tables(found))
}

impl Tables {
    /// The groups of these ids by each attribute that the table of users (or items) has, and by their intersections.
    fn groups(
        &self,
        of: Entity,
        names: &[String],
        ids: &[gradus_data::Id<'_>],
        remarks: &mut Remarks<'_>,
    ) -> Result<Vec<SensitiveGroups>> {
        let Some((_, path, table)) = self.0.iter().find(|(entity, _, _)| *entity == of) else {
            return Ok(Vec::new());
        };
        let of_table = of.ids(table)?;
        let mut rows: HashMap<String, usize> = HashMap::new();
        for row in 0..table.n_rows() {
            if rows.insert(of_table.get(row).to_string(), row).is_some() {
                return Err(Error::data(format!(
                    "option `{}`: {}: id `{}` is there twice",
                    of.option(),
                    path.display(),
                    of_table.get(row)
                )));
            }
        }
        let places: Vec<Option<usize>> =
            ids.iter().map(|id| rows.get(&id.to_string()).copied()).collect();
        if places.iter().all(Option::is_none) && !ids.is_empty() {
            return Err(Error::data(format!(
                "option `{}`: {}: no id of the table is one of the {}s: is it the right column of ids?",
                of.option(),
                path.display(),
                of.name()
            )));
        }
        let mut found = Vec::new();
        for name in names.iter().filter(|name| table.resolve(name).is_ok()) {
            let name = table.resolve(name)?;
            // A continuous column, or one of too many words, is refused as such.
            let present: Vec<u32> = (0..table.n_rows() as u32)
                .filter(|&row| !table.column(name).is_ok_and(|c| c.is_missing(row as usize)))
                .collect();
            SensitiveGroups::from_column(name, table.select_rows(&present).column(name)?)?;
            let texts = table.texts(name)?;
            let words: Vec<&str> = places
                .iter()
                .map(|place| place.and_then(|row| texts[row].as_deref()).unwrap_or(UNKNOWN))
                .collect();
            let unknown = words.iter().filter(|word| **word == UNKNOWN).count();
            if unknown > 0 {
                remarks.push(format!(
                    "{}: {} of {} {}s have no `{name}` there: they are the group `{UNKNOWN}`",
                    path.display(),
                    grouped(unknown),
                    grouped(words.len()),
                    of.name()
                ));
            }
            found.push(SensitiveGroups::from_words(name, &words)?);
        }
        if found.len() > 1 {
            found.push(SensitiveGroups::crossed(&found)?);
        }
        Ok(found)
    }
}

/// The page of the audit of a recommender. `title` names the model and `data` the file.
pub fn recommender_page(answer: &RecommenderAnswer, title: &str, data: &str) -> Page {
    let mut page = Page::new(format!("Fairness of {title}")).subtitle(format!(
        "model `{}`, lists of {} for {} users of {data}",
        answer.model,
        answer.at,
        grouped(answer.users)
    ));
    let violated = answer.audits.iter().filter(|a| a.criterion().rejected == Some(true)).count();
    let all = answer.audits.iter().filter(|audit| audit.criterion().rejected.is_some()).count();
    page = page.stats([("criteria violated", format!("{violated} of {all}"), String::new())]);
    for audit in &answer.audits {
        let mut columns =
            vec![TableColumn::text(audit.attribute()), TableColumn::number("members")];
        let is_exposure = matches!(audit, RecommenderAudit::Exposure { .. });
        if is_exposure {
            columns.push(TableColumn::number("share of the reference").decimals(3));
        }
        columns.push(TableColumn::number("value").decimals(3));
        columns.push(TableColumn::text("95 % interval"));
        let mut table = PageTable::new(columns);
        for (name, count, reference, [value, low, high]) in audit.rows() {
            let mut cells = vec![name.to_owned().into(), grouped(count).into()];
            cells.extend(reference.map(Into::into));
            cells.push(value.into());
            cells.push(format!("{} to {}", fixed(low, 3), fixed(high, 3)).into());
            table = table.row(cells);
        }
        let forest = Forest::new(
            audit
                .rows()
                .into_iter()
                .map(|(name, _, _, [value, low, high])| (name.to_owned(), value, low, high)),
        )
        .title(audit.title())
        .decimals(3);
        page = page.section(&audit.title(), |section| {
            section
                .table(&criteria_table(std::slice::from_ref(audit.criterion())))
                .table(&table)
                .chart(forest)
        });
    }
    page.section("How to read it", |section| {
        section
            .text(
                "Quality is the mean over the users of a group of how well their list ranks what they went on to like. Exposure is the \
                 share of attention that a group of items gets: a place of a list counts 1 / log2(1 + place). It is in \
                 proportion if it equals the share of the group in the reference.",
            )
            .text(match answer.reference {
                ExposureReference::Catalogue => {
                    "The reference is the catalogue: the share of a group among the items that can be recommended."
                }
                ExposureReference::Relevant => {
                    "The reference is what users liked: the share of a group among the relevant items of the test data."
                }
            })
    })
    .footer("gradus audit fairness")
}
