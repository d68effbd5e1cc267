//! The page of a comparison of models.

use gradus_report::{Forest, Marks, Page, PageTable, TableColumn, number};
use gradus_select::compare::{Comparison, FitOutcome, FitStage, Ranked};

/// The leaderboard as a page: scores with intervals, paired differences, time against quality, and every
/// fit that was done.
pub fn comparison_page(found: &Comparison, title: &str, data: &str) -> Page {
    let metric = found.title.as_str();
    let together = found.not_distinguished.as_slice();
    let page = Page::new(title).subtitle(data).stats(stats(found));
    let page = page.section("Leaderboard", |section| {
        let section = section.text(format!("{}.", found.verdict())).table(&leaderboard(found));
        let section = section.note(
            "“fit” is the time of the fit on the training part; “memory” how much the process grew at its \
             peak during that fit, as far as a look every few milliseconds shows; “model” the size of the \
             arrays in the model file.",
        );
        if found.others.is_empty() { section } else { section.table(&not_tested(found)) }
    });
    let page = if found.rows.is_empty() {
        page
    } else {
        page.section("Scores", |section| {
            let rows = drawn(found).into_iter();
            let rows = rows.map(|r| (r.model.clone(), r.score, r.interval.low, r.interval.high));
            let better = if found.higher_is_better { "higher" } else { "lower" };
            section
                .chart(
                    Forest::new(rows)
                        .title(format!("{metric} on the test part"))
                        .x_label(format!("{metric} ({better} is better)"))
                        .highlight(together)
                        .decimals(decimals(found)),
                )
                .note(meaning(found))
        })
    };
    let page = if found.rows.len() < 2 {
        page
    } else {
        page.section("Differences to the winner", |section| {
            let rows = drawn(found).into_iter().skip(1).map(|row| {
                let between = row.difference.interval;
                (row.model.clone(), row.difference.value, between.low, between.high)
            });
            let winner = found.winner.as_deref().unwrap_or_default();
            section
                .text(
                    "The models were tested on the same points, so the difference of two of them is known \
                     better than the score of either. Where the interval holds 0, the test part does not \
                     tell the model apart from the winner.",
                )
                .chart(
                    Forest::new(rows)
                        .title(format!("{metric} less that of {winner}"))
                        .highlight(together)
                        .reference(0.0)
                        .decimals(decimals(found) + 1),
                )
        })
        .section("Time against quality", |section| {
            let marks = drawn(found).into_iter().map(|row| {
                let within = (row.interval.low, row.interval.high);
                (row.model.clone(), row.seconds.max(1e-4), row.score, within)
            });
            section.chart(
                Marks::new(marks)
                    .x_label("seconds of the fit on the training part")
                    .y_label(metric)
                    .log_x()
                    .highlight(together),
            )
        })
    };
    page.section("Fits", |section| {
        let section = section.text(protocol(found)).table(&fits(found));
        found.notes.iter().fold(section, |section, note| section.note(note))
    })
    .footer(format!("gradus {}", env!("CARGO_PKG_VERSION")))
}

/// Returns the models of the charts: of baselines the best alone, for a far one would squeeze all others.
fn drawn(found: &Comparison) -> Vec<&Ranked> {
    let mut baselines = 0;
    let mut keep = |row: &&Ranked| {
        baselines += usize::from(row.baseline);
        !row.baseline || baselines == 1
    };
    found
        .rows
        .iter()
        .enumerate()
        .filter(|(at, row)| keep(row) || *at == 0)
        .map(|(_, row)| row)
        .collect()
}

/// Digits that the standard errors are worth.
fn decimals(found: &Comparison) -> usize {
    let errors = found.rows.iter().map(|row| row.error).filter(|e| e.is_finite() && *e > 0.0);
    let least = errors.fold(f64::INFINITY, f64::min);
    if least.is_finite() { (1.0 - least.log10()).ceil().clamp(0.0, 6.0) as usize } else { 4 }
}

fn stats(found: &Comparison) -> Vec<(String, String, String)> {
    let mut stats = Vec::new();
    if let Some(best) = found.rows.first() {
        stats.push(("Best".to_owned(), best.model.clone(), String::new()));
        let score = gradus_report::fixed(best.score, decimals(found));
        stats.push((found.title.clone(), score, "test part".to_owned()));
    }
    stats.push(("Models tested".into(), number(found.rows.len() as f64), String::new()));
    let of = found.budget.map_or("no limit".to_owned(), |budget| format!("of {}", time(budget)));
    stats.push(("Time".into(), time(found.seconds), of));
    stats
}

fn meaning(found: &Comparison) -> String {
    let left_out: Vec<&str> = {
        let shown = drawn(found);
        let hidden = found.rows.iter().filter(|row| shown.iter().all(|s| s.model != row.model));
        hidden.map(|row| row.model.as_str()).collect()
    };
    let left_out = match left_out.as_slice() {
        [] => String::new(),
        names => format!(" Of the baselines the best is drawn ({} not).", names.join(", ")),
    };
    format!(
        "The intervals of all {} models hold at once with {:.0} % confidence ({}; {} {} taken as \
         independent). They are about these fitted models on more data like the test part.{left_out}",
        found.rows.len(),
        100.0 * found.level,
        found.rows.first().map_or("", |row| row.interval.method.name()),
        number(found.n_units as f64),
        found.units
    )
}

fn protocol(found: &Comparison) -> String {
    let parts = found.parts;
    let race = if parts.validation > 0 {
        format!(
            " The race that chose what to test had {} of these held out as its own validation part.",
            number(parts.validation as f64)
        )
    } else {
        String::new()
    };
    format!(
        "The tested models learned from {} and were tested once on {}, which nothing else looked \
         at.{race} Seed {}.",
        number(parts.train as f64),
        number(parts.test as f64),
        found.seed
    )
}

fn leaderboard(found: &Comparison) -> PageTable {
    let d = decimals(found);
    let table = PageTable::new([
        TableColumn::text("model"),
        TableColumn::number(found.title.clone()).decimals(d),
        TableColumn::text("all within, 95 %"),
        TableColumn::number("less the winner").decimals(d + 1),
        TableColumn::text(""),
        TableColumn::number("fit"),
        TableColumn::number("memory"),
        TableColumn::number("model"),
    ]);
    let cell = |row: &Ranked| {
        let between = row.interval;
        let within = format!("{} to {}", digits(between.low, d), digits(between.high, d));
        let first = found.winner.as_deref() == Some(row.model.as_str());
        let verdict = match (first, row.distinguished) {
            (true, _) => "best",
            (_, true) => "",
            (_, false) => "not distinguished",
        };
        let baseline = if row.baseline { " (baseline)" } else { "" };
        [
            format!("{}{baseline}", row.model).into(),
            row.score.into(),
            within.into(),
            row.difference.value.into(),
            verdict.into(),
            time(row.seconds).into(),
            row.memory.map_or("–".to_owned(), size).into(),
            size(row.bytes).into(),
        ]
    };
    found.rows.iter().fold(table, |table, row| table.row(cell(row)))
}

fn digits(value: f64, decimals: usize) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    gradus_report::fixed(value, decimals)
}

fn not_tested(found: &Comparison) -> PageTable {
    let table = PageTable::new([
        TableColumn::text("not tested"),
        TableColumn::text("why"),
        TableColumn::number(format!("{} in the race", found.title)),
    ]);
    found.others.iter().fold(table, |table, one| {
        let score = one.score.map_or("–".to_owned(), number);
        table.row([one.model.as_str().into(), one.reason.as_str().into(), score.into()])
    })
}

fn fits(found: &Comparison) -> PageTable {
    let table = PageTable::new([
        TableColumn::text("model"),
        TableColumn::text("for"),
        TableColumn::number("fitted on"),
        TableColumn::number("seconds"),
        TableColumn::number(found.title.clone()),
        TableColumn::text("ended"),
    ]);
    found.fits.iter().fold(table, |table, fit| {
        let stage = match fit.stage {
            FitStage::Race => format!("race, {:.0} % of the data", 100.0 * fit.share),
            FitStage::Test => "test".to_owned(),
            FitStage::Refit => "the winner on all the data".to_owned(),
        };
        let ended = match &fit.outcome {
            FitOutcome::Complete => "complete".to_owned(),
            FitOutcome::OutOfTime => "stopped by the budget".to_owned(),
            FitOutcome::Interrupted => "interrupted".to_owned(),
            FitOutcome::Failed(error) => error.clone(),
        };
        table.row([
            fit.model.as_str().into(),
            stage.into(),
            fit.units.into(),
            fit.seconds.into(),
            fit.score.map_or("–".to_owned(), number).into(),
            ended.into(),
        ])
    })
}

/// A length of time with the digits that matter.
fn time(seconds: f64) -> String {
    match seconds {
        ..0.1 => format!("{:.1} ms", 1000.0 * seconds),
        ..10.0 => format!("{seconds:.2} s"),
        ..600.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

/// A size with the digits that matter.
fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        ..1e3 => format!("{bytes:.0} B"),
        ..1e6 => format!("{:.0} kB", bytes / 1e3),
        ..1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_the_digits_that_matter() {
        assert_eq!([0.0012, 1.234, 61.7, 1800.0].map(time), ["1.2 ms", "1.23 s", "62 s", "30 min"]);
        assert_eq!([999, 12_345, 1_234_567].map(size), ["999 B", "12 kB", "1.2 MB"]);
    }
}
