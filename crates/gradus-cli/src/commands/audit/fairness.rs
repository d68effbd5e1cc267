//! `gradus audit fairness MODEL TEST --group sex,race -o page.html`

use crate::input::Options;
use crate::output::{Context, Outcome, Table, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::audit::fairness::{AuditOptions, DecisionAudit, FairnessCriterion, Rate, ValueAudit};
use gradus_app::audit::fairness::{Audit, FairnessAnswer, FairnessRequest, page};
use gradus_core::dataset::TableFile;
use gradus_report::{fixed, number};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Args)]
struct FairnessArgs {
    /// The model: one that predicts classes or numbers
    model: PathBuf,

    /// Data the model has not seen; `-` for standard input
    data: PathBuf,

    /// Columns of the sensitive attributes, with commas between them; they need not be features of the model
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

    #[command(flatten)]
    table: Options<TableFile>,
}

pub fn command() -> Command {
    FairnessArgs::augment_args(Command::new("fairness").about(
        "Compare the decisions, errors and probabilities of groups: criteria with intervals and tests",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<FairnessArgs>(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model, &args.data]);
    let output = args.output.as_ref();
    let destination = output.map(|path| plan.page_or_stdout("--output", path)).transpose()?;
    let fitted = crate::registry().load(&args.model)?;
    let request = FairnessRequest {
        data: args.data.clone(),
        table: args.table.0,
        target: args.target,
        group: args.group,
        conditional: args.conditional,
        favourable: args.favourable,
        options: AuditOptions {
            level: args.level,
            tolerance: args.tolerance,
            min_group: args.min_group,
            ..AuditOptions::default()
        },
    };
    let answer =
        context.reading(|remarks| crate::app().audit_fairness(&fitted, &request, remarks))?;
    if let Some(destination) = &destination {
        let name = args.model.file_name().unwrap_or(args.model.as_os_str()).to_string_lossy();
        let html = page(&answer, &name, &args.data.display().to_string()).to_html();
        destination.write(|out| Ok(out.write_all(html.as_bytes())?))?;
        match destination.path() {
            Some(path) => context.remark(format_args!("wrote {}", path.display())),
            None => return Ok(()),
        }
    }
    if context.json {
        return context.json(&serde_json::json!(answer));
    }
    show(&answer, context)
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
