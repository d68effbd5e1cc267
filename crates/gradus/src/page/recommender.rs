//! The page of a recommender.

use super::tested::{CountErrors, Coverage, Tested, TestedRanking, TestedRatings};
use super::{against_baselines, close, held_out, objective, stats};
use gradus_core::estimator::AnyFitted;
use gradus_core::recommend::{Filter, Recommend};
use gradus_data::{Ids, Titles};
use gradus_report::{
    Bars, Cell, Line, Page, PageTable, Section, TableColumn, number, predicted_vs_true,
};
use gradus_select::{Estimate, RankingAt};

/// Users whose lists are looked at for what the model recommends.
const USERS: usize = 1000;
/// The length of these lists.
const LIST: usize = 10;
/// Users whose lists are shown.
const EXAMPLES: usize = 3;

/// The page of a recommender: how the fit went, how good it is, what it recommends, its parameters.
///
/// Add sections of your own with [`Page::section`], then [`Page::to_html`].
pub fn page(fitted: &AnyFitted, title: &str, tested: Option<&Tested>) -> Page {
    let report = &fitted.report;
    let metric = report.metric.to_uppercase();
    let subtitle = format!(
        "Model {}, {} iterations, {}; seed {}.",
        fitted.kind, report.iterations, report.stop_reason, report.seed
    );
    let mut page = Page::new(title)
        .subtitle(subtitle)
        .stats(stats(headline(fitted, tested), fitted))
        .section("How the fit went", |section| match held_out(fitted, &metric) {
            Some(held_out) => section
                .text(
                    "The objective after each iteration, and the score on held-out data; the model \
                     is that of the iteration marked.",
                )
                .columns(|l| l.chart(objective(fitted)), |r| r.chart(held_out)),
            None => section.text("The objective after each iteration.").chart(objective(fitted)),
        });
    if let Some(bars) = against_baselines(fitted, &metric) {
        let better = if report.higher_is_better { "longer" } else { "shorter" };
        let text = format!("{metric} on the data held out of the fit; {better} is better.");
        page = page.section("Against simpler models", |section| section.text(text).chart(bars));
    }
    if let Some(tested) = tested {
        page = evaluated(page, fitted, tested);
    }
    if let Some(model) = fitted.model.recommend() {
        page = recommended(page, model, fitted.titles.as_ref());
    }
    close(page, fitted)
}

/// The numbers to begin with.
fn headline(fitted: &AnyFitted, tested: Option<&Tested>) -> Vec<(String, String, String)> {
    let report = &fitted.report;
    let mut stats = Vec::new();
    let Some(tested) = tested else {
        if let Some(score) = report.validation {
            let nearest = report.baselines.last();
            let note = nearest.map(|b| format!("{}: {:.4}", b.name, b.score)).unwrap_or_default();
            let metric = report.metric.to_uppercase();
            stats.push((format!("held-out {metric}"), format!("{score:.4}"), note));
        }
        return stats;
    };
    let test = if tested.is_training() { "training" } else { "test" };
    if let Some(ratings) = &tested.ratings {
        let (low, high) = ratings.errors.rmse_interval();
        let note = format!("95 %: {} – {}", figure(low), figure(high));
        stats.push((format!("{test} RMSE"), format!("{:.4}", ratings.errors.rmse), note));
    }
    if let Some(ranking) = &tested.ranking
        && let Some(at) = ranking.report.at.iter().find(|at| at.k == 10)
    {
        let note = match &ranking.popular {
            Some(popular) => match popular.at.iter().find(|at| at.k == 10) {
                Some(popular) => format!("most popular: {:.4}", popular.ndcg.mean),
                None => String::new(),
            },
            None => String::new(),
        };
        stats.push((format!("{test} NDCG@10"), format!("{:.4}", at.ndcg.mean), note));
    }
    stats
}

/// The sections on data beside the training.
fn evaluated(mut page: Page, fitted: &AnyFitted, tested: &Tested) -> Page {
    let whence = whence(tested);
    if let Some(ratings) = &tested.ratings {
        page = page.section("How well it predicts ratings", |section| {
            let versus = predicted_vs_true(&ratings.predicted, &ratings.truth);
            section
                .text(&whence)
                .table(&errors(ratings, fitted.kind))
                .note(
                    "Intervals hold the error of ever more such ratings with 95 % confidence, the \
                     ratings taken as independent.",
                )
                .chart(
                    versus
                        .title("Predicted against true")
                        .x_label("true rating")
                        .y_label("predicted"),
                )
                .note(
                    "For each true value: the middle half of the predictions, with the median and \
                     the tails.",
                )
        });
        if ratings.by_count.len() > 1 {
            page = page.section("How well it knows its users", |section| {
                by_count(section, &ratings.by_count, fitted.kind)
            });
        }
        if !ratings.coverage.is_empty() {
            page = page
                .section("Do its intervals hold?", |section| coverage(section, &ratings.coverage));
        }
    }
    if let Some(ranking) = &tested.ranking {
        page = page.section("How well it ranks", |section| {
            let section = if tested.ratings.is_none() { section.text(&whence) } else { section };
            ranks(section, ranking, fitted.kind)
        });
    } else if let Some(reason) = &tested.unranked {
        page = page.section("How well it ranks", |section| {
            let stop = if reason.ends_with('?') { "" } else { "." };
            section.text(format!(
                "The ranking of {} cannot be evaluated: {reason}{stop}",
                tested.source
            ))
        });
    }
    page
}

/// Describes the data, and whether the model was trained on it.
fn whence(tested: &Tested) -> String {
    let (count, source) = (number(tested.count as f64), &tested.source);
    match tested.in_training {
        Some(0) => format!("{count} ratings of {source}. None of them is in the training data."),
        Some(known) if tested.is_training() => format!(
            "Caution: {} of the {count} ratings of {source} are in the training data. This is the \
             error on what the model has learned, not on what is new to it.",
            number(known as f64)
        ),
        Some(known) => format!(
            "{count} ratings of {source}. Caution: {} of them are in the training data, which makes \
             the errors look smaller than they are.",
            number(known as f64)
        ),
        None => format!(
            "{count} ratings of {source}, which should not be those it was trained on (the model did \
             not keep them, so that it cannot tell)."
        ),
    }
}

fn figure(x: f64) -> String {
    if x.is_finite() { format!("{x:.4}") } else { "?".into() }
}

fn errors(ratings: &TestedRatings, kind: &str) -> PageTable {
    let mut table = PageTable::new([
        TableColumn::text("model"),
        TableColumn::number("RMSE").decimals(4),
        TableColumn::text("95 % interval"),
        TableColumn::number("MAE").decimals(4),
        TableColumn::text("95 % interval"),
    ]);
    let between = |(low, high): (f64, f64)| format!("{} – {}", figure(low), figure(high));
    let row = |name: &str, errors: &gradus_metrics::RatingErrors| -> Vec<Cell> {
        vec![
            name.into(),
            errors.rmse.into(),
            between(errors.rmse_interval()).into(),
            errors.mae.into(),
            between(errors.mae_interval()).into(),
        ]
    };
    for (name, errors) in &ratings.baselines {
        table = table.row(row(name, errors));
    }
    table.highlighted(row(kind, &ratings.errors))
}

/// The errors by the number of ratings of a user.
fn by_count(section: Section, groups: &[CountErrors], kind: &str) -> Section {
    let mut table = PageTable::new([
        TableColumn::text("ratings of the user in training"),
        TableColumn::number("held-out ratings"),
        TableColumn::number("RMSE of biases only").decimals(4),
        TableColumn::number(format!("RMSE of {kind}")).decimals(4),
        TableColumn::text("95 % interval"),
    ]);
    for group in groups {
        let (low, high) = group.errors.rmse_interval();
        let name = match group.ratings {
            (0, _) => "none".to_owned(),
            (from, Some(to)) => format!("{from} – {to}"),
            (from, None) => format!("{from} or more"),
        };
        table = table.row([
            name.into(),
            group.errors.count.into(),
            group.biases.rmse.into(),
            group.errors.rmse.into(),
            format!("{} – {}", figure(low), figure(high)).into(),
        ]);
    }
    let text = "The fewer ratings a user has, the more a model has to go by others, and by features if it was \
                given any.";
    section.text(text).table(&table.caption("Errors by the number of ratings of the user"))
}

fn coverage(section: Section, coverage: &[Coverage]) -> Section {
    let mut table = PageTable::new([
        TableColumn::text("level"),
        TableColumn::text("ratings inside"),
        TableColumn::text("95 % interval"),
        TableColumn::number("mean width").decimals(2),
    ]);
    let percent = |x: f64| format!("{:.1} %", 100.0 * x);
    for at in coverage {
        table = table.row([
            format!("{:.0} %", 100.0 * at.level).into(),
            percent(at.share).into(),
            format!("{} – {}", percent(at.interval.low), percent(at.interval.high)).into(),
            at.width.into(),
        ]);
    }
    let points = coverage.iter().map(|at| (at.level, at.share));
    let ideal = [(0.0, 0.0), (1.0, 1.0)];
    let line = Line::new()
        .title("Share of ratings inside")
        .series("intervals", points)
        .faint("as promised", ideal)
        .markers()
        .x_label("level")
        .y_label("share inside");
    section
        .text(
            "The model gives an interval for every rating. Intervals of level 90 % should hold 90 % \
             of the ratings: fewer means that the model is too sure, more that it is not sure enough.",
        )
        .columns(|left| left.table(&table), |right| right.chart(line))
}

type Measure = (&'static str, fn(&RankingAt) -> Option<Estimate>);

const MEASURES: [Measure; 8] = [
    ("NDCG", |at| Some(at.ndcg)),
    ("recall", |at| Some(at.recall)),
    ("precision", |at| Some(at.precision)),
    ("MAP", |at| Some(at.map)),
    ("MRR", |at| Some(at.mrr)),
    ("hit rate", |at| Some(at.hit_rate)),
    ("novelty, bits", |at| at.novelty),
    ("popularity", |at| at.popularity),
];

fn ranks(section: Section, ranking: &TestedRanking, kind: &str) -> Section {
    let report = &ranking.report;
    let mut columns = vec![TableColumn::text("measure")];
    columns.extend(report.at.iter().map(|at| TableColumn::number(format!("@{}", at.k))));
    let mut table = PageTable::new(columns);
    let shown = |estimate: Estimate| {
        if estimate.standard_error.is_finite() {
            format!("{:.4} ± {:.4}", estimate.mean, estimate.standard_error)
        } else {
            format!("{:.4}", estimate.mean)
        }
    };
    for (name, measure) in MEASURES {
        let cells: Option<Vec<Cell>> =
            report.at.iter().map(|at| measure(at).map(|e| shown(e).into())).collect();
        if let Some(cells) = cells {
            table = table.row(std::iter::once(name.into()).chain(cells));
        }
    }
    let covered: Option<Vec<Cell>> =
        report.at.iter().map(|at| at.coverage.map(|share| format!("{share:.4}").into())).collect();
    if let Some(cells) = covered {
        table = table.row(std::iter::once("coverage".into()).chain(cells));
    }
    let relevant = match (&ranking.scale, report.threshold) {
        (Some(scale), Some(threshold)) => format!(
            " Ratings of at least {threshold} are relevant: the upper quarter of the scale {}–{}.",
            scale.low, scale.high
        ),
        _ => String::new(),
    };
    let section = section
        .text(format!(
            "Lists of {} users, evaluated by {} relevant ratings; all {} items with a rating in training \
             were ranked, without what the user has in training.{relevant}",
            number(report.users as f64),
            number(report.relevant as f64),
            number(report.items as f64)
        ))
        .table(&table)
        .note(
            "Means over users, ± one standard error. Coverage is the share of items that are in \
             someone's list; popularity the mean share of users who have the listed items in \
             training.",
        );
    let section = match &ranking.popular {
        Some(popular) => {
            let at = |report: &gradus_select::RankingReport| {
                report.at.iter().find(|at| at.k == 10).map_or(0.0, |at| at.ndcg.mean)
            };
            let bars = Bars::new([("most popular", at(popular)), (kind, at(report))]);
            section.chart(bars.decimals(4).highlight(kind).x_label("NDCG@10; longer is better"))
        }
        None => section,
    };
    match (report.relevant_popularity, report.at.iter().find_map(|at| at.popularity)) {
        (Some(chosen), Some(listed)) if chosen.mean > 0.0 => {
            let ratio = listed.mean / chosen.mean;
            section.text(format!(
                "Popularity bias: the items listed first are known to {:.2} % of the users on average, \
                 those that the users went on to choose to {:.2} %, {}.",
                100.0 * listed.mean,
                100.0 * chosen.mean,
                if ratio > 1.0 {
                    format!("so the lists favour popular items {ratio:.1} times")
                } else {
                    "so the lists do not favour popular items".to_owned()
                }
            ))
        }
        _ => section,
    }
}

/// Items by id and title.
struct Names<'a> {
    items: &'a Ids,
    titles: Option<&'a Titles>,
}

impl Names<'_> {
    /// The title, or the id of an item that has none.
    fn of(&self, item: u32) -> String {
        let id = self.items.get(item as usize);
        let title = self.titles.and_then(|titles| titles.get(id));
        title.map_or_else(|| id.to_string(), str::to_owned)
    }
}

/// Adds the recommendations for some users.
fn recommended(page: Page, model: &dyn Recommend, titles: Option<&Titles>) -> Page {
    // Without a history what users have rated cannot be left out.
    let Some(history) = model.history() else { return page };
    let with_ratings: Vec<u32> = (0..history.n_rows() as u32)
        .filter(|&user| !history.range(user as usize).is_empty())
        .collect();
    let step = with_ratings.len().div_ceil(USERS).max(1);
    let users: Vec<u32> = with_ratings.iter().copied().step_by(step).collect();
    let Ok(lists) = model.top_many(&users, LIST, &Filter::default()) else { return page };
    let n_items = model.items().len();
    let mut shown = vec![0usize; n_items];
    lists.iter().flatten().for_each(|scored| shown[scored.item as usize] += 1);
    let mut known = vec![0usize; n_items];
    history.indices().iter().for_each(|&item| known[item as usize] += 1);
    let places: usize = shown.iter().sum();
    if places == 0 {
        return page;
    }
    let names = Names { items: model.items(), titles };
    let mut order: Vec<u32> = (0..n_items as u32).collect();
    order.sort_by_key(|&item| (std::cmp::Reverse(shown[item as usize]), item));
    let mut table = PageTable::new([
        TableColumn::text("item"),
        TableColumn::number("in lists, %").decimals(1).bar(),
        TableColumn::number("ratings in training"),
    ]);
    for &item in order.iter().take(12).filter(|&&item| shown[item as usize] > 0) {
        let share = 100.0 * shown[item as usize] as f64 / users.len() as f64;
        table = table.row([names.of(item).into(), share.into(), known[item as usize].into()]);
    }
    let covered = shown.iter().filter(|count| **count > 0).count();
    // The most rated tenth of the items, by ratings and by places in lists.
    let mut by_count = order;
    by_count.sort_by_key(|&item| (std::cmp::Reverse(known[item as usize]), item));
    by_count.truncate(n_items.div_ceil(10));
    let share = |of: &[usize], all: usize| {
        let sum: usize = by_count.iter().map(|&item| of[item as usize]).sum();
        100.0 * sum as f64 / all as f64
    };
    let text = format!(
        "Lists of {LIST} items for {} users. {} of {} items are in at least one of them. The most rated tenth \
         of the items has {:.0} % of the ratings and {:.0} % of the places in these lists.",
        number(users.len() as f64),
        number(covered as f64),
        number(n_items as f64),
        share(&known, history.nnz()),
        share(&shown, places)
    );
    let page = page.section("What it recommends", |section| {
        section.text(text).table(&table.caption("The items recommended most"))
    });
    examples(page, model, &names, &users, &lists)
}

/// The lists of a few users beside what they rated.
fn examples(
    page: Page,
    model: &dyn Recommend,
    names: &Names<'_>,
    users: &[u32],
    lists: &[Vec<gradus_core::recommend::Scored>],
) -> Page {
    let Some(history) = model.history() else { return page };
    let count = |at: &usize| history.range(users[*at] as usize).len();
    // Enough ratings to know a person, few enough to look through.
    let mut order: Vec<usize> = (0..users.len()).filter(|&at| !lists[at].is_empty()).collect();
    order.sort_by_key(|at| (count(at).abs_diff(30), *at));
    order.truncate(EXAMPLES);
    if order.is_empty() {
        return page;
    }
    page.section("A few users", |section| {
        let section = section.text("What they rated highest, and what the model recommends.");
        order.into_iter().fold(section, |section, at| {
            let (user, list) = (users[at] as usize, &lists[at]);
            let (items, values) = history.row(user);
            let mut rated: Vec<(u32, f32)> =
                items.iter().copied().zip(values.iter().copied()).collect();
            rated.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let mut left =
                PageTable::new([TableColumn::text("rated"), TableColumn::number("value")])
                    .caption(format!("User {}: {} ratings", model.users().get(user), items.len()));
            for (item, value) in rated.iter().take(LIST) {
                left = left.row([names.of(*item).into(), (*value).into()]);
            }
            let mut right = PageTable::new([
                TableColumn::text("recommended"),
                TableColumn::number("score").decimals(3),
            ])
            .caption("The best items they do not have");
            for scored in list {
                right = right.row([names.of(scored.item).into(), scored.score.into()]);
            }
            section.columns(|l| l.table(&left), |r| r.table(&right))
        })
    })
}
