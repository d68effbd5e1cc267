//! Two models evaluated on the same samples.

use super::samples::{between, short};
use crate::output::{Context, Outcome, Table, grouped};
use gradus_app::evaluate::LossComparison;
use gradus_metrics::bounds::{Interval, Separation};

pub(super) fn show(compared: Option<&[LossComparison]>, context: Context) -> Outcome {
    compared.unwrap_or_default().iter().try_for_each(|found| show_loss(found, context))
}

/// The square root for people, of what is a square.
fn shown(name: &str, x: f64) -> f64 {
    if name == "squared error" { x.max(0.0).sqrt() } else { x }
}

fn show_loss(found: &LossComparison, context: Context) -> Outcome {
    let name = found.loss;
    let title = match name {
        "squared error" => "RMSE",
        "errors" => "share of errors",
        other => other,
    };
    let mut table = Table::new(&["", &format!(">{title}"), "both within, 95 %"]);
    let better = usize::from(found.models[0] != found.best);
    for at in [better, 1 - better] {
        let Interval { low, high, .. } = found.intervals[at];
        let interval =
            Interval { low: shown(name, low), high: shown(name, high), ..found.intervals[at] };
        let mean = short(shown(name, found.means[at]));
        table.row([found.models[at].clone(), mean, between(&interval)]);
    }
    context.say("")?;
    context.say(table)?;
    let Some(lead) = &found.lead else { return Ok(()) };
    context.say(separation(name, lead))
}

fn separation(name: &str, lead: &Separation) -> String {
    let what = match name {
        "squared error" => "mean squared errors differ",
        "errors" => "shares of errors differ",
        _ => "log losses differ",
    };
    let many = |n: u64| grouped(usize::try_from(n).unwrap_or(usize::MAX));
    let verdict = match lead.needed {
        _ if lead.sure => "distinguished by these points".to_owned(),
        Some(needed) => format!("it would take about {} to tell them apart", many(needed)),
        None => "the two are equal".to_owned(),
    };
    let guaranteed = lead.guaranteed.map_or(String::new(), |n| {
        format!(" ({} are enough whatever they are like, by Hoeffding)", many(n))
    });
    format!(
        "the {what} by {} ± {} on the same {} points: {verdict}{guaranteed}",
        small(lead.difference),
        small(lead.standard_error),
        grouped(lead.points)
    )
}

/// Five digits after the point; of less than that three digits and a power of ten.
fn small(x: f64) -> String {
    if x == 0.0 || x.abs() >= 1e-4 { format!("{x:.5}") } else { format!("{x:.2e}") }
}
