//! What a search found, for people and for programs.

use crate::output::{Context, Outcome, Table, grouped, seconds};
use gradus::page::shown;
use gradus::select::bounds::Interval;
use gradus::select::search::{Found, Lead, Score};
use serde_json::{Value, json};

pub(super) struct Shown<'a> {
    pub name: &'a str,
    pub varied: &'a [String],
    pub found: &'a Found,
    pub seconds: f64,
    pub stopped_early: bool,
    pub at_an_end: bool,
}

impl Shown<'_> {
    pub(super) fn show(&self, context: Context) -> Outcome {
        if context.json {
            return context.json(&self.told());
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
        let method = found.candidates[0].score.interval.method;
        context.say(format_args!(
            "± is one standard error; the intervals of all {} candidates hold at once ({method}); \
             {} of {} folds in {}",
            found.candidates.len(),
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
        context.say(format_args!(
            "the winner's score is a little too good: it was chosen{} by the points it is measured on",
            if self.stopped_early { ", and stopped," } else { "" }
        ))
    }

    fn told(&self) -> Value {
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
                "needed": lead.needed, "guaranteed": lead.guaranteed, "sure": lead.is_sure(),
            })
        };
        json!({
            "model": self.name, "metric": found.metric,
            "higher_is_better": found.higher_is_better,
            "folds": found.folds.0, "planned": found.folds.1, "seconds": self.seconds,
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

/// Four digits after the point, or fewer for large numbers.
fn short(x: f64) -> String {
    if x.abs() >= 1000.0 { format!("{x:.1}") } else { format!("{x:.4}") }
}

fn leads(lead: &Lead, what: &str) -> String {
    let verb = if lead.difference < 0.0 { "trails" } else { "leads" };
    let verdict = match lead.needed {
        _ if lead.is_sure() => "told apart by these points".to_owned(),
        Some(needed) => format!("it would take about {} to be sure", many(needed)),
        None => "the two are equal".to_owned(),
    };
    let guaranteed = match lead.guaranteed {
        Some(guaranteed) => {
            format!(" ({} are enough whatever they are like, by Hoeffding)", many(guaranteed))
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
    if x == 0.0 || x.abs() >= 1e-4 { format!("{x:.5}") } else { format!("{x:.2e}") }
}

fn many(n: u64) -> String {
    grouped(usize::try_from(n).unwrap_or(usize::MAX))
}
