//! The results of a search, as tables and as JSON.

use crate::output::{Context, Outcome, Table, grouped, seconds};
use gradus::page::shown;
use gradus::select::search::{Found, Lead, Score};
use gradus_metrics::bounds::Interval;
use serde_json::{Value, json};

pub(super) struct Shown<'a> {
    pub name: &'a str,
    pub varied: &'a [String],
    pub found: &'a Found,
    pub seconds: f64,
    pub stopped_early: bool,
    /// The share of the data that the candidates were fitted on.
    pub fitted_on: f64,
    /// The independent units: users, groups or samples.
    pub units: &'static str,
    pub at_an_end: bool,
}

impl Shown<'_> {
    pub(super) fn show(&self, context: Context) -> Outcome {
        if context.json {
            return context.json(&self.to_json());
        }
        let found = self.found;
        let both = found.candidates.iter().all(|candidate| candidate.accuracy.is_some());
        let mut head: Vec<String> = self.varied.iter().map(|name| format!(">{name}")).collect();
        let metric = match found.metric.as_str() {
            words if words.contains(' ') || words == "accuracy" => words.to_owned(),
            short => short.to_uppercase(),
        };
        head.extend([format!(">{metric}"), ">±".into(), "all within, 95 %".into()]);
        if both {
            head.extend([">accuracy".to_owned(), ">±".into(), "all within, 95 %".into()]);
        }
        head.push(">iterations".into());
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let mut table = Table::new(&head);
        for candidate in &found.candidates {
            let value = |name: &String| candidate.params.get(name).map(shown).unwrap_or_default();
            let mut row: Vec<String> = self.varied.iter().map(value).collect();
            row.extend(cells(&candidate.score));
            row.extend(candidate.accuracy.iter().flat_map(cells));
            row.push(format!("{:.1}", candidate.iterations));
            table.row(row);
        }
        context.say(table)?;
        context.say(format_args!(
            "± is one standard error, {} taken as independent; {}; {} of {} folds in {}",
            self.units,
            self.meaning_of_intervals(),
            found.folds.0,
            found.folds.1,
            seconds(self.seconds)
        ))?;
        if let Some(lead) = &found.lead {
            context.say(leads(lead, ""))?;
        }
        if let Some(lead) = &found.accuracy_lead {
            context.say(leads(lead, "in accuracy "))?;
        }
        for note in &found.notes {
            context.remark(format_args!("note: {note}"));
        }
        if self.at_an_end {
            context.remark(format_args!(
                "note: the best is at an end of what was tried; go on with --{} from there",
                self.varied.join(" and --")
            ));
        }
        context.say(self.caveat())
    }

    /// Describes what the intervals promise.
    fn meaning_of_intervals(&self) -> String {
        let found = self.found;
        let (n, method) = (found.candidates.len(), found.candidates[0].score.interval.method);
        if !method.is_exact() {
            return format!("the intervals of all {n} candidates hold at once, nearly ({method})");
        }
        let each = if found.folds.0 > 1 { ", fold by fold" } else { "" };
        let over =
            if self.stopped_early { ", over every iteration a fit could stop at" } else { "" };
        format!(
            "the intervals of all {n} candidates hold at once whatever the data is like \
             ({method}{each}{over})"
        )
    }

    /// How the scores differ from that of the model that is saved.
    fn caveat(&self) -> String {
        let stopped = if self.stopped_early { ", and its fits were stopped," } else { "" };
        let size = if self.found.metric.starts_with("ndcg") {
            "; NDCG depends on how much is held out, so compare it on parts of the same size only"
        } else {
            ""
        };
        format!(
            "scores are of models fitted on {:.0} % of the data, which all of it may improve on; the \
             winner was chosen{stopped} by the points it is measured on, which flatters it{size}",
            100.0 * self.fitted_on
        )
    }

    fn to_json(&self) -> Value {
        let found = self.found;
        let candidates: Vec<Value> = found
            .candidates
            .iter()
            .map(|c| {
                json!({
                    "params": c.params, "score": c.score.value, "error": c.score.error,
                    "interval": c.score.interval, "accuracy": c.accuracy,
                    "iterations": c.iterations,
                })
            })
            .collect();
        let lead = |lead: &Lead| {
            json!({
                "difference": lead.difference, "error": lead.error, "points": lead.points,
                "groups": lead.groups, "differing": lead.differing,
                "needed": lead.needed, "guaranteed": lead.guaranteed, "sure": lead.is_sure(),
            })
        };
        json!({
            "model": self.name, "metric": found.metric,
            "higher_is_better": found.higher_is_better,
            "folds": found.folds.0, "planned": found.folds.1, "seconds": self.seconds,
            "stopped_early": self.stopped_early, "fitted_on": self.fitted_on,
            "candidates": candidates, "lead": found.lead.as_ref().map(lead),
            "accuracy_lead": found.accuracy_lead.as_ref().map(lead), "notes": found.notes,
        })
    }
}

/// Score, standard error and interval.
fn cells(score: &Score) -> [String; 3] {
    [short(score.value), short(score.error), between(&score.interval)]
}

fn between(interval: &Interval) -> String {
    format!("{}–{}", short(interval.low), short(interval.high))
}

/// Four digits after the point, or fewer for large numbers; `?` for what is not known.
fn short(x: f64) -> String {
    if x.is_nan() {
        return "?".into();
    }
    if x.is_infinite() {
        return "∞".into();
    }
    if x.abs() >= 1000.0 { format!("{x:.1}") } else { format!("{x:.4}") }
}

fn leads(lead: &Lead, what: &str) -> String {
    let verb = if lead.difference < 0.0 { "trails" } else { "leads" };
    let verdict = match lead.needed {
        _ if lead.is_sure() => "distinguished by these points".to_owned(),
        _ if lead.error.is_nan() => "one point says nothing of the spread".to_owned(),
        Some(needed) if needed as f64 > lead.points as f64 => {
            format!("it would take about {} to be sure", many(needed))
        }
        Some(_) => {
            format!("they differ in {} groups of points, too few to be sure", lead.differing)
        }
        None => "the two are equal".to_owned(),
    };
    let guaranteed = match lead.guaranteed {
        Some(guaranteed) => {
            format!(
                " ({} held out at once are enough whatever they are like, by Hoeffding)",
                many(guaranteed)
            )
        }
        None => String::new(),
    };
    format!(
        "the best {verb} the second {what}by {} ± {} on the same {} points: {verdict}{guaranteed}",
        small(lead.difference.abs()),
        small(lead.error),
        grouped(lead.points)
    )
}

/// Five digits after the point; of less than that three digits and a power of ten.
fn small(x: f64) -> String {
    if x.is_nan() {
        return "?".into();
    }
    if x == 0.0 || x.abs() >= 1e-4 { format!("{x:.5}") } else { format!("{x:.2e}") }
}

fn many(n: u64) -> String {
    grouped(usize::try_from(n).unwrap_or(usize::MAX))
}
