//! The leaderboard for people.

use crate::output::{Context, Outcome, Table, grouped};
use gradus::select::compare::{Comparison, Ranked};

/// A length of time with the digits that matter.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{:.1} ms", 1000.0 * seconds),
        ..10.0 => format!("{seconds:.2} s"),
        ..600.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        ..1e6 => format!("{:.0} kB", (bytes / 1e3).ceil()),
        ..1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}

/// The number of decimals that the standard errors justify, and one more for differences.
fn decimals(found: &Comparison) -> usize {
    let errors = found.rows.iter().map(|row| row.error).filter(|e| e.is_finite() && *e > 0.0);
    let least = errors.fold(f64::INFINITY, f64::min);
    if least.is_finite() { (1.0 - least.log10()).ceil().clamp(0.0, 6.0) as usize } else { 4 }
}

fn digits(value: f64, decimals: usize) -> String {
    match value {
        _ if value.is_nan() => "?".to_owned(),
        f64::INFINITY => "∞".to_owned(),
        f64::NEG_INFINITY => "−∞".to_owned(),
        _ => format!("{value:.decimals$}"),
    }
}

pub(super) fn show(found: &Comparison, context: Context) -> Outcome {
    if !found.rows.is_empty() {
        context.say(leaderboard(found))?;
        context.say(meaning(found))?;
        context.say(found.verdict())?;
    }
    for one in &found.others {
        let score = one.score.zip(one.share).map(|(score, share)| {
            format!(" ({} {score:.4} on {:.0} % of the data)", found.title, 100.0 * share)
        });
        context.say(format_args!("{}: {}{}", one.model, one.reason, score.unwrap_or_default()))?;
    }
    for note in &found.notes {
        context.remark(format_args!("note: {note}"));
    }
    if found.interrupted {
        context.remark("interrupted: this is what was complete by then");
    }
    Ok(())
}

fn leaderboard(found: &Comparison) -> Table {
    let d = decimals(found);
    let head = [
        "model".to_owned(),
        format!(">{}", found.title),
        "all within, 95 %".into(),
        ">less the best".into(),
        "all within, 95 %".into(),
        "".into(),
        ">fit".into(),
        ">memory".into(),
        ">model".into(),
    ];
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    let within =
        |low: f64, high: f64, d: usize| format!("{} to {}", digits(low, d), digits(high, d));
    for (at, row) in found.rows.iter().enumerate() {
        let Ranked { interval, difference, .. } = row;
        let (less, apart) = match at {
            0 => (String::new(), String::new()),
            _ => (
                format!("{:+.*}", d + 1, difference.value),
                within(difference.interval.low, difference.interval.high, d + 1),
            ),
        };
        let verdict = match (at, row.distinguished) {
            (0, _) => "best",
            (_, false) => "not distinguished",
            _ if row.baseline => "baseline",
            _ => "",
        };
        table.row([
            row.model.clone(),
            digits(row.score, d),
            within(interval.low, interval.high, d),
            less,
            apart,
            verdict.to_owned(),
            time(row.seconds),
            row.memory.map_or("?".to_owned(), size),
            size(row.bytes),
        ]);
    }
    table
}

fn meaning(found: &Comparison) -> String {
    let better = if found.higher_is_better { "more" } else { "less" };
    let parts = found.parts;
    let race = match parts.validation {
        0 => String::new(),
        n => format!("; the race had {} of the training part to evaluate by", grouped(n)),
    };
    let budget =
        found.budget.map_or("no limit".to_owned(), |budget| format!("of {}", time(budget)));
    format!(
        "{} ({better} is better) on {} held out once, after training on {}{race}; {} {} taken as \
         independent; {} ({budget})",
        found.title,
        grouped(parts.test),
        grouped(parts.train),
        grouped(found.n_units),
        found.units,
        time(found.seconds),
    )
}
