//! The evaluation of rankings on the command line.

use crate::output::{Context, Outcome, Table, grouped};
use gradus::select::{Estimate, RankingAt, RankingReport};
use gradus_app::evaluate::{RankingAnswer, SAMPLED_CAUTION as CAUTION};

pub(super) fn show(found: &RankingAnswer, include_seen: bool, context: Context) -> Outcome {
    let report = &found.ranking.report;
    context.say(table(report))?;
    say_counts(report, include_seen, context)?;
    if let (Some(threshold), Some(scale)) = (report.threshold, &found.ranking.scale) {
        context.say(format_args!(
            "ratings of at least {threshold} are relevant: the upper quarter of the scale {}–{}; \
             choose with --threshold",
            scale.low, scale.high
        ))?;
    } else if let Some(threshold) = report.threshold {
        context.say(format_args!("ratings of at least {threshold} are relevant"))?;
    }
    Ok(())
}

fn table(report: &RankingReport) -> Table {
    let title = match report.sampled {
        Some(n) => format!("sampled, among {n}"),
        None => "full ranking".to_owned(),
    };
    let headers: Vec<String> =
        std::iter::once(title).chain(report.at.iter().map(|at| format!(">@{}", at.k))).collect();
    let mut table = Table::new(&headers.iter().map(String::as_str).collect::<Vec<_>>());
    type Measure = (&'static str, fn(&RankingAt) -> Option<Estimate>);
    let measures: [Measure; 8] = [
        ("precision", |at| Some(at.precision)),
        ("recall", |at| Some(at.recall)),
        ("NDCG", |at| Some(at.ndcg)),
        ("MAP", |at| Some(at.map)),
        ("MRR", |at| Some(at.mrr)),
        ("hit rate", |at| Some(at.hit_rate)),
        ("novelty, bits", |at| at.novelty),
        ("popularity", |at| at.popularity),
    ];
    for (name, measure) in measures {
        let cells: Option<Vec<String>> =
            report.at.iter().map(|at| measure(at).map(shown)).collect();
        if let Some(cells) = cells {
            table.row(std::iter::once(name.to_owned()).chain(cells));
        }
    }
    let coverage: Option<Vec<f64>> = report.at.iter().map(|at| at.coverage).collect();
    if let Some(coverage) = coverage {
        let cells = coverage.iter().map(|share| format!("{share:.4}"));
        table.row(std::iter::once("coverage".to_owned()).chain(cells));
    }
    if let Some(auc) = report.auc {
        table.row(["AUC".to_owned(), shown(auc)]);
    }
    table
}

fn shown(estimate: Estimate) -> String {
    if estimate.standard_error.is_nan() {
        return format!("{:.4}", estimate.mean);
    }
    format!("{:.4} ± {:.4}", estimate.mean, estimate.standard_error)
}

fn say_counts(report: &RankingReport, include_seen: bool, context: Context) -> Outcome {
    let seen = if include_seen { "" } else { ", without what the user has in training" };
    context.say(match report.sampled {
        None => format!(
            "means over {} users (± standard error) by {} relevant ratings; all {} items with a \
             rating in training were ranked{seen}",
            grouped(report.users),
            grouped(report.relevant),
            grouped(report.items)
        ),
        Some(n) => format!(
            "means over {} users (± standard error) by {} relevant ratings, each item ranked among \
             {n} random ones the user has not rated; {CAUTION}",
            grouped(report.users),
            grouped(report.relevant)
        ),
    })?;
    if report.folded_in > 0 {
        context.say(format_args!("of whom were folded in: {}", grouped(report.folded_in)))?;
    }
    let counts = [
        (report.skipped.unknown_users, "users skipped, without a rating in training"),
        (report.skipped.nothing_relevant, "users skipped, with nothing relevant in the test"),
        (
            report.skipped.nothing_known,
            "users skipped, with nothing relevant that could be recommended",
        ),
        (report.skipped.no_others, "users skipped, who have rated every item"),
        (report.unknown_items, "relevant ratings left out, of items without a rating in training"),
        (report.in_training, "relevant ratings left out, in training as well"),
    ];
    for (count, what) in counts {
        if count > 0 {
            context.say(format_args!("{what}: {}", grouped(count)))?;
        }
    }
    Ok(())
}
