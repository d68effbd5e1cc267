//! The error of predicted ratings, beside that of simpler models.

use crate::output::{Context, Outcome, Table, grouped};
use gradus_app::evaluate::{Errors, RatingsAnswer};

pub(super) fn show(found: &RatingsAnswer, context: Context) -> Outcome {
    let mut table = Table::new(&["", ">RMSE", "95 %", ">MAE", "95 %"]);
    let baselines = found.baselines.iter().map(|baseline| (baseline.name, baseline.errors));
    for (name, errors) in baselines.chain([(found.model.as_str(), found.errors)]) {
        let Errors { rmse, rmse_interval, mae, mae_interval, .. } = errors;
        let shown = |(low, high): (f64, f64)| format!("{low:.4}–{high:.4}");
        table.row([
            name.to_owned(),
            format!("{rmse:.4}"),
            shown(rmse_interval),
            format!("{mae:.4}"),
            shown(mae_interval),
        ]);
    }
    context.say(table)?;
    context.say(format_args!("on {} ratings", grouped(found.count)))?;
    if found.unknown_users + found.unknown_items > 0 {
        context.say(format_args!(
            "of which {} are of users and {} of items unknown to the model",
            grouped(found.unknown_users),
            grouped(found.unknown_items)
        ))?;
    }
    Ok(())
}
