//! Measures of clusters.

use crate::output::{Context, Outcome, Table, grouped};
use gradus_app::evaluate::ClustersAnswer;

pub(super) fn show(found: &ClustersAnswer, context: Context) -> Outcome {
    let mut table = Table::new(&["", ">value", "best"]);
    let mut row = |name: &str, value: f64, best: &str| {
        table.row([name.to_owned(), super::samples::short(value), best.to_owned()]);
    };
    if let Some(silhouette) = &found.silhouette {
        row("silhouette", silhouette.mean, "1");
    }
    if let Some(shape) = &found.shape {
        row("Davies–Bouldin", shape.davies_bouldin, "0");
        row("Calinski–Harabasz", shape.calinski_harabasz, "large");
    }
    if let Some(agreement) = &found.agreement {
        row("adjusted Rand index", agreement.adjusted_rand, "1");
        row("normalised mutual information", agreement.normalized_mutual_info, "1");
        row("adjusted mutual information", agreement.adjusted_mutual_info, "1");
        row("homogeneity", agreement.homogeneity, "1");
        row("completeness", agreement.completeness, "1");
        row("V-measure", agreement.v_measure, "1");
    }
    if found.silhouette.is_none() && found.agreement.is_none() {
        return context.say("one cluster, or one for each sample, has no measure of its shape");
    }
    context.say("")?;
    context.say(table)?;
    let sampled = match &found.silhouette {
        Some(found) if found.samples < found.of => {
            format!("; silhouette of {} samples drawn at random", grouped(found.samples))
        }
        _ => String::new(),
    };
    let target = match &found.target {
        Some(target) => format!(", beside `{target}`"),
        None => String::new(),
    };
    context.say(format_args!("{} clusters{target}{sampled}", grouped(found.clusters)))
}
