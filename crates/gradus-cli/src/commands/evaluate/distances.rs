//! How far samples of a generative model are from data.

use super::samples::short;
use crate::output::{Context, Outcome, Table, grouped};
use gradus_app::evaluate::DistancesAnswer;

pub(super) fn show(found: &DistancesAnswer, context: Context) -> Outcome {
    let mut table = Table::new(&["samples beside data", ">value", "best"]);
    let best = found
        .frechet_of_data
        .map_or("0".to_owned(), |x| format!("{} (of halves of the data)", short(x)));
    table.row([format!("Fréchet distance over {}", found.features), short(found.frechet), best]);
    let manifold = &found.manifold;
    let shares = [
        ("precision", manifold.precision),
        ("recall", manifold.recall),
        ("coverage", manifold.coverage),
    ];
    for (name, value) in shares {
        table.row([format!("{name} ({} neighbours)", manifold.k), short(value), "1".to_owned()]);
    }
    if let Some([of_samples, of_data]) = found.confidence {
        let best = format!("{} (of the data)", short(of_data));
        table.row(["confidence of the classifier".to_owned(), short(of_samples), best]);
    }
    context.say("")?;
    context.say(table)?;
    let (n, m) = (grouped(found.samples), grouped(found.data));
    context.say(format_args!("{n} samples, {m} data, {} features", found.n_features))?;
    if found.classes.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["class", ">share of samples", ">share of data"]);
    for class in &found.classes {
        table.row([class.class.clone(), short(class.samples), short(class.data)]);
    }
    context.say("")?;
    context.say(table)
}
