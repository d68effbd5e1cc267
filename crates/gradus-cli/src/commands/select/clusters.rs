//! Choosing the number of clusters: a table of all criteria, and a picture of them.

use super::bar;
use crate::output::{Context, Failure, Outcome, Table, grouped};
use crate::outputs::FilePlan;
use crate::parameters::arguments;
use crate::progress::stop_on_ctrl_c;
use clap::{ArgMatches, Args};
use gradus::page::{clusters_choice_page, shown};
use gradus::select::search::{ClustersFound, Criterion};
use gradus_app::select::{Candidates, SelectRequest};
use gradus_file::output::Output;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::PathBuf;

// Flags of clusterings.
#[derive(Args)]
pub(super) struct ClusterArgs {
    /// Criterion that decides: silhouette, bic, aic, gap or stability [default: bic of models that have it, else
    /// silhouette]
    #[arg(long, value_name = "WORD")]
    criterion: Option<String>,

    /// Draw all criteria on a page: one HTML file that needs no network; `-` for standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Refuses the flags that held-out data leaves without a meaning.
pub(super) fn refuse(matches: &ArgMatches) -> Outcome {
    let args: ClusterArgs = arguments(matches)?;
    let given = args.criterion.map(|_| "--criterion").or(args.report.map(|_| "--report"));
    match given {
        Some(flag) => Err(Failure::Usage(format!(
            "{flag}: candidates are measured on held-out data, as --cv, --holdout, --tries, --group and --time ask for"
        ))),
        None => Ok(()),
    }
}

pub(super) fn run(
    matches: &ArgMatches,
    (request, candidates): (&SelectRequest, Candidates),
    mut plan: FilePlan,
    output: Option<Output>,
    context: Context,
) -> Outcome {
    let args: ClusterArgs = arguments(matches)?;
    let criterion = args.criterion.as_deref().map(Criterion::parse).transpose()?;
    let page = match &args.report {
        Some(path) => Some(plan.page_or_stdout("--report", path)?),
        None => None,
    };
    let stop = stop_on_ctrl_c();
    let selection = context.reading(|remarks| candidates.open(request, stop.clone(), remarks))?;
    let (fits, path) = (selection.fits_clusters(), request.data.path.display());
    let description = selection.data.describe();
    context.remark(format_args!("{path}: {description}; {} fits to do", grouped(fits)));
    let bar = bar(fits, context);
    let found = selection.run_clusters(criterion, &|done: usize| bar.set_position(done as u64));
    bar.finish_and_clear();
    let found = match found {
        Err(_) if stop.requested() => return Err(Failure::Interrupted),
        found => found?,
    };
    if context.json {
        context.json(&to_json(&request.model, &found))?;
    } else if page.as_ref().is_none_or(|page| page.path().is_some()) {
        show(&found, &selection.varied, context)?;
    }
    if let Some(page) = &page {
        let name = request.data.path.file_name().unwrap_or_default().to_string_lossy();
        let title = format!("Clusters of {name} by {}", request.model);
        let html = clusters_choice_page(&found, &selection.varied, &title, &description).to_html();
        page.write(|out| Ok(out.write_all(html.as_bytes())?))?;
        if let Some(path) = page.path() {
            context.remark(format_args!("wrote {}", path.display()));
        }
    }
    if let Some(output) = &output {
        let refitted = selection.refit_clusters(&found);
        if stop.requested() {
            context.remark("interrupted while fitting the winner; nothing was saved");
            return Err(Failure::Interrupted);
        }
        refitted?.save_to(output)?;
        let path = output.path().display();
        context.remark(format_args!("saved {path}, fitted on all the data"));
    }
    Ok(())
}

fn show(found: &ClustersFound, varied: &[String], context: Context) -> Outcome {
    let known: Vec<Criterion> = found.choices.iter().map(|(criterion, _)| *criterion).collect();
    let mut head: Vec<String> = varied.iter().map(|name| format!(">{name}")).collect();
    head.push(">clusters".into());
    for criterion in &known {
        head.push(format!(">{}", criterion.name()));
        if has_error(*criterion) {
            head.push(">±".into());
        }
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    for (at, candidate) in found.candidates.iter().enumerate() {
        let value = |name: &String| candidate.params.get(name).map(shown).unwrap_or_default();
        let mut row: Vec<String> = varied.iter().map(value).collect();
        row.push(candidate.clusters.to_string());
        for &criterion in &known {
            let measured = candidate.measure(criterion);
            let star = if found.choices.contains(&(criterion, at)) { "*" } else { "" };
            row.push(measured.map_or("–".into(), |m| format!("{star}{}", short(m.value))));
            if has_error(criterion) {
                row.push(measured.map_or(String::new(), |m| short(m.error)));
            }
        }
        table.row(row);
    }
    context.say(table)?;
    context.say(
        "* is what a criterion chooses: the highest silhouette and stability, the lowest BIC and AIC, of gaps the first that \
         the next does not beat by a standard error",
    )?;
    let best = &found.candidates[found.best].params;
    let value = |name: &String| best.get(name).map(shown).unwrap_or_default();
    let values: Vec<String> =
        varied.iter().map(|name| format!("{name} = {}", value(name))).collect();
    context.say(format_args!("chosen by {}: {}", found.criterion.name(), values.join(", ")))?;
    let others = found.choices.iter().filter(|(_, at)| *at != found.best);
    let others: Vec<&str> = others.map(|(criterion, _)| criterion.name()).collect();
    if others.is_empty() {
        context.say("all criteria choose the same")?;
    } else {
        context.say(format_args!("{} would choose otherwise", others.join(", ")))?;
    }
    for note in &found.notes {
        context.remark(format_args!("note: {note}"));
    }
    Ok(())
}

fn has_error(criterion: Criterion) -> bool {
    matches!(criterion, Criterion::Gap | Criterion::Stability)
}

fn short(x: f64) -> String {
    if x.abs() >= 1000.0 { format!("{x:.1}") } else { format!("{x:.4}") }
}

fn to_json(model: &str, found: &ClustersFound) -> Value {
    let candidates: Vec<Value> = found
        .candidates
        .iter()
        .map(|candidate| {
            let mut row = json!({ "params": candidate.params, "clusters": candidate.clusters });
            for criterion in Criterion::ALL {
                row[criterion.name().to_lowercase()] = match candidate.measure(criterion) {
                    Some(found) if has_error(criterion) => json!(found),
                    Some(found) => json!(found.value),
                    None => Value::Null,
                };
            }
            row
        })
        .collect();
    let choices: Map<String, Value> = found
        .choices
        .iter()
        .map(|(one, at)| (one.name().to_lowercase(), json!(found.candidates[*at].params)))
        .collect();
    json!({
        "model": model, "criterion": found.criterion.name().to_lowercase(),
        "best": found.candidates[found.best].params, "choices": choices,
        "candidates": candidates, "notes": found.notes,
    })
}
