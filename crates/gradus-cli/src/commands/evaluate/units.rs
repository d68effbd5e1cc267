//! Models that neither recommend nor predict: one loss for each unit of the data, and its mean.

use super::EvaluateArgs;
use super::samples::{between, short};
use crate::output::{Context, Outcome, Table, grouped};
use crate::parameters::given;
use clap::ArgMatches;
use gradus::select::{UnitLosses, unit_losses};
use gradus_app::data::Source;
use gradus_core::dataset::RatingsFile;
use gradus_core::estimator::AnyFitted;
use gradus_core::params;
use gradus_metrics::bounds::Bootstrap;
use serde_json::json;

pub(super) fn run(
    args: &EvaluateArgs,
    matches: &ArgMatches,
    fitted: &AnyFitted,
    context: Context,
) -> Outcome {
    let model = crate::registry().find(fitted.kind)?;
    let specs = model.data().options();
    // Those options of its kind of data that this command has flags for, then those given by name.
    let flags = params::specs::<RatingsFile>();
    let known = specs.iter().filter(|spec| flags.iter().any(|flag| flag.name == spec.name));
    let mut options = given(&known.cloned().collect::<Vec<_>>(), matches);
    for option in &args.option {
        let (name, value) = option.split_once('=').unwrap_or((option, "true"));
        let spec = specs.iter().find(|spec| spec.name == name.replace('-', "_"));
        let spec = spec.ok_or_else(|| gradus::Error::UnknownName {
            what: "option",
            name: name.to_owned(),
            known: specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", "),
        })?;
        options.insert(spec.name.clone(), spec.parse(value)?);
    }
    let source = Source { path: args.data.clone(), options };
    let data = context.reading(|remarks| source.open(model, None, false, remarks))?.data;
    let UnitLosses { metric, values: losses, root } = unit_losses(fitted, data.as_ref())?;
    let found = Bootstrap::default().mean(&losses, None)?;
    let (mut score, mut interval) = (found.estimate, found.interval);
    if root {
        score = score.sqrt();
        (interval.low, interval.high) = (interval.low.max(0.0).sqrt(), interval.high.sqrt());
    }
    if context.json {
        return context.json(&json!({
            "model": fitted.kind, "count": losses.len(), "metric": metric, "value": score,
            "interval": interval,
        }));
    }
    let mut table = Table::new(&["", ">score", "95 %"]);
    table.row([metric.to_owned(), short(score), between(&interval)]);
    context.say(table)?;
    let n = grouped(losses.len());
    context.say(format_args!("on {n} {}; interval by bootstrap", data.kind()))
}
