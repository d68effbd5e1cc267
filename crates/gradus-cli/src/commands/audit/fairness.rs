//! `gradus audit fairness MODEL TEST --group sex,race -o page.html`

use crate::input::DataArgs;
use crate::output::{Context, Failure, Outcome, Table, grouped};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::audit::fairness::{AuditOptions, DecisionAudit, FairnessCriterion, Rate, ValueAudit};
use gradus_app::audit::fairness::{
    Audit, ExposureReference, FairnessAnswer, FairnessRequest, RecommenderAnswer,
    RecommenderRequest, page, recommender_page,
};
use gradus_core::capability::Capability;
use gradus_core::estimator::AnyFitted;
use gradus_report::Page;
use gradus_report::{fixed, number};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Args)]
struct FairnessArgs {
    /// The model: one that predicts classes or numbers, or a recommender
    model: PathBuf,

    /// Data the model has not seen; `-` for standard input
    data: PathBuf,

    /// Columns of the sensitive attributes, with commas between them; they need not be features of the model. Of a recommender
    /// columns of --user-features (quality by group) or --item-features (exposure by group)
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', required = true)]
    group: Vec<String>,

    /// The column that holds the truth [default: as in training]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    target: Vec<String>,

    /// The class that is the favourable decision [default: the second of two]
    #[arg(long, value_name = "CLASS")]
    favourable: Option<String>,

    /// A column to hold fixed: conditional criteria compare only those of like value
    #[arg(long, value_name = "COLUMN")]
    conditional: Option<String>,

    /// Level of intervals and tests
    #[arg(long, value_name = "X", default_value_t = AuditOptions::default().level)]
    level: f64,

    /// Differences up to this hold for practical purposes
    #[arg(long, value_name = "X", default_value_t = AuditOptions::default().tolerance)]
    tolerance: f64,

    /// Groups of fewer members are left out of the criteria
    #[arg(long, value_name = "N", default_value_t = AuditOptions::default().min_group)]
    min_group: usize,

    /// Write a page: rates, ROC and calibration by group, the criteria, what mitigation would buy
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArg,

    /// Length of lists
    #[arg(long, value_name = "K", default_value_t = RecommenderRequest::default().at, help_heading = "Recommenders")]
    at: usize,

    /// Test ratings of at least this count as relevant [default: all for models of clicks, plays and purchases; for models of
    /// ratings the upper quarter of the scale, 4 of 1–5]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Recommenders")]
    threshold: Option<f32>,

    /// What the exposure of a group of items is compared with: its share of the catalogue, or of the relevant items of the
    /// test data
    #[arg(long, value_name = "WHAT", default_value = "catalogue", value_parser = ["catalogue", "relevant"], help_heading = "Recommenders")]
    reference: String,

    /// The training ratings, for a recommender that did not keep them
    #[arg(long, value_name = "FILE", help_heading = "Recommenders")]
    train: Option<PathBuf>,

    #[command(flatten)]
    input: DataArgs,
}

pub fn command() -> Command {
    FairnessArgs::augment_args(Command::new("fairness").about(
        "Compare the decisions, errors and probabilities of groups, or the lists of a recommender: criteria with intervals and tests",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<FairnessArgs>(matches)?;
    let side = [&args.input.0.user_features, &args.input.0.item_features];
    let side: Vec<PathBuf> = side.into_iter().flatten().map(PathBuf::from).collect();
    let inputs = [&args.model, &args.data].into_iter().chain(&args.train).chain(&side);
    let mut plan = FilePlan::new(args.force, inputs);
    let output = args.output.as_ref();
    let destination = output.map(|path| plan.page_or_stdout("--output", path)).transpose()?;
    let fitted = crate::registry().load(&args.model)?;
    let options = AuditOptions {
        level: args.level,
        tolerance: args.tolerance,
        min_group: args.min_group,
        ..AuditOptions::default()
    };
    let name =
        args.model.file_name().unwrap_or(args.model.as_os_str()).to_string_lossy().into_owned();
    let data = args.data.display().to_string();
    let recommends = crate::registry().find(fitted.kind)?.traits().can(Capability::Recommend);
    check_flags(matches, recommends)?;
    if recommends {
        let request = RecommenderRequest {
            data: args.data,
            ratings: args.input.0,
            group: args.group,
            at: args.at,
            threshold: args.threshold,
            reference: match args.reference.as_str() {
                "relevant" => ExposureReference::Relevant,
                _ => ExposureReference::Catalogue,
            },
            train: args.train,
            options,
        };
        return run_recommender(&fitted, &request, destination.as_ref(), (&name, &data), context);
    }
    let request = FairnessRequest {
        data: args.data.clone(),
        table: args.input.0.table,
        target: args.target,
        group: args.group,
        conditional: args.conditional,
        favourable: args.favourable,
        options,
    };
    let answer =
        context.reading(|remarks| crate::app().audit_fairness(&fitted, &request, remarks))?;
    if write_page(destination.as_ref(), || page(&answer, &name, &data), context)? {
        return Ok(());
    }
    if context.json {
        return context.json(&serde_json::json!(answer));
    }
    show(&answer, context)
}

/// Refuses flags that are about models of the other kind.
fn check_flags(matches: &ArgMatches, recommends: bool) -> Outcome {
    let (flags, about): (&[&str], _) = match recommends {
        true => (&["target", "favourable", "conditional"], "models that predict, not recommenders"),
        false => (
            &["at", "threshold", "reference", "train", "user_features", "item_features"],
            "recommenders, and the model predicts from features",
        ),
    };
    let flags = flags.iter().filter(|name| matches.try_contains_id(name).is_ok());
    let given = Some(clap::parser::ValueSource::CommandLine);
    match flags.copied().find(|name| matches.value_source(name) == given) {
        Some(name) => {
            let flag = name.replace('_', "-");
            Err(Failure::Usage(format!("--{flag} is about {about}")))
        }
        None => Ok(()),
    }
}

/// Writes the page, if one is asked for; whether it went to standard output.
fn write_page(
    destination: Option<&Destination>,
    page: impl FnOnce() -> Page,
    context: Context,
) -> Outcome<bool> {
    let Some(destination) = destination else { return Ok(false) };
    let html = page().to_html();
    destination.write(|out| Ok(out.write_all(html.as_bytes())?))?;
    match destination.path() {
        Some(path) => context.remark(format_args!("wrote {}", path.display())),
        None => return Ok(true),
    }
    Ok(false)
}

fn run_recommender(
    fitted: &AnyFitted,
    request: &RecommenderRequest,
    destination: Option<&Destination>,
    (name, data): (&str, &str),
    context: Context,
) -> Outcome {
    let answer =
        context.reading(|remarks| crate::app().audit_recommender(fitted, request, remarks))?;
    if write_page(destination, || recommender_page(&answer, name, data), context)? {
        return Ok(());
    }
    if context.json {
        return context.json(&serde_json::json!(answer));
    }
    show_recommender(&answer, context)
}

fn show_recommender(answer: &RecommenderAnswer, context: Context) -> Outcome {
    for audit in &answer.audits {
        let is_exposure = audit.rows().first().is_some_and(|row| row.2.is_some());
        let value = if is_exposure { ">exposure" } else { ">mean" };
        let mut table = match is_exposure {
            true => Table::new(&[audit.attribute(), ">items", ">reference", value, "95 %"]),
            false => Table::new(&[audit.attribute(), ">users", value, "95 %"]),
        };
        for (name, count, reference, [value, low, high]) in audit.rows() {
            let mut cells = vec![name.to_owned(), grouped(count)];
            cells.extend(reference.map(|share| fixed(share, 3)));
            cells.push(fixed(value, 3));
            cells.push(format!("{}–{}", fixed(low, 3), fixed(high, 3)));
            table.row(cells);
        }
        context.say(audit.title())?;
        context.say(table)?;
        context.say("")?;
        context.say(criteria_table(std::slice::from_ref(audit.criterion())))?;
        context.say("")?;
    }
    let relevant = answer.threshold.map_or(String::new(), |threshold| {
        format!("; test ratings of at least {threshold} count as relevant")
    });
    context.say(format_args!(
        "lists of {} for {} users ({} could not be evaluated){relevant}",
        answer.at,
        grouped(answer.users),
        grouped(answer.skipped)
    ))?;
    Ok(())
}

fn show(answer: &FairnessAnswer, context: Context) -> Outcome {
    for audit in &answer.audits {
        let criteria = match audit {
            Audit::Decisions(audit) => {
                context.say(rates(audit))?;
                &audit.criteria
            }
            Audit::Values(audit) => {
                context.say(figures(audit))?;
                &audit.criteria
            }
        };
        context.say("")?;
        context.say(criteria_table(criteria))?;
        context.say("")?;
    }
    if !answer.mitigation.is_empty() {
        context.say(bought(answer))?;
        context.say("")?;
        context.say(frontier(answer))?;
    }
    let favourable = answer.favourable.as_ref();
    let favourable =
        favourable.map_or(String::new(), |name| format!("; the favourable decision is `{name}`"));
    context.say(format_args!("on {} rows{favourable}", grouped(answer.count)))?;
    Ok(())
}

fn shown(rate: &Rate) -> String {
    if rate.value.is_nan() {
        return "–".to_owned();
    }
    format!("{} ± {}", fixed(rate.value, 3), fixed(0.5 * (rate.high - rate.low), 3))
}

fn rates(audit: &DecisionAudit) -> Table {
    let mut table = Table::new(&[
        &audit.attribute,
        ">rows",
        ">base rate",
        ">selection rate",
        ">true positive rate",
        ">false positive rate",
        ">precision",
        ">accuracy",
    ]);
    for group in audit.groups.iter().chain([&audit.overall]) {
        table.row([
            group.group.clone(),
            grouped(group.count),
            shown(&group.base_rate),
            shown(&group.selection_rate),
            shown(&group.true_positive_rate),
            shown(&group.false_positive_rate),
            shown(&group.precision),
            shown(&group.accuracy),
        ]);
    }
    table
}

fn figures(audit: &ValueAudit) -> Table {
    let mut table = Table::new(&[
        &audit.attribute,
        ">rows",
        ">mean truth",
        ">mean prediction",
        ">mean residual",
        ">mean absolute error",
        ">RMSE",
    ]);
    for group in audit.groups.iter().chain([&audit.overall]) {
        table.row([
            group.group.clone(),
            grouped(group.count),
            number(group.mean_truth.value),
            number(group.mean_prediction.value),
            number(group.mean_residual.value),
            number(group.mean_absolute_error.value),
            number(group.root_mean_squared_error),
        ]);
    }
    table
}

fn criteria_table(criteria: &[FairnessCriterion]) -> Table {
    let mut table =
        Table::new(&["criterion", "kind", ">difference", "interval", ">ratio", ">p", "verdict"]);
    for one in criteria {
        let none = || "–".to_owned();
        table.row([
            one.name.to_owned(),
            one.family.name().to_owned(),
            one.gap.map_or_else(none, |gap| number(gap.difference)),
            one.gap.map_or_else(none, |gap| {
                format!("{} to {}", number(gap.interval[0]), number(gap.interval[1]))
            }),
            one.gap.and_then(|gap| gap.ratio).map_or_else(none, |ratio| fixed(ratio, 3)),
            one.test.map_or_else(none, |test| number(test.p_value)),
            one.verdict().to_owned(),
        ]);
    }
    table
}

fn bought(answer: &FairnessAnswer) -> Table {
    let mut table = Table::new(&[
        "thresholds by group",
        "for",
        ">accuracy now",
        ">difference now",
        ">accuracy then",
        ">difference then",
    ]);
    for one in &answer.mitigation {
        table.row([
            one.attribute.clone(),
            one.constraint.replace('_', " "),
            fixed(one.accuracy, 4),
            fixed(one.difference, 4),
            fixed(one.accuracy_after, 4),
            fixed(one.difference_after, 4),
        ]);
    }
    table
}

/// Every sixth point of each frontier.
fn frontier(answer: &FairnessAnswer) -> Table {
    let mut table = Table::new(&[
        "greatest accuracy at a difference of",
        "for",
        ">at most",
        ">at most",
        ">at most",
        ">at most",
        ">at most",
    ]);
    for one in &answer.mitigation {
        let shown = one.frontier.points.iter().step_by(6);
        let shown = shown.map(|p| format!("{}: {}", fixed(p.difference, 3), fixed(p.accuracy, 4)));
        let names = [one.attribute.clone(), one.constraint.replace('_', " ")];
        table.row(names.into_iter().chain(shown).collect::<Vec<_>>());
    }
    table
}
