//! `gradus audit robustness MODEL TEST --norm linf --eps 0.1`

use crate::input::Options;
use crate::output::{Context, Failure, Outcome, Table, grouped, seconds};
use crate::outputs::{FilePlan, ForceArg, RULE};
use crate::parameters::arguments;
use crate::progress;
use clap::{ArgMatches, Args, Command};
use gradus::audit::robustness::{Attack, RobustnessOptions, Share};
use gradus_app::audit::robustness::{
    FeatureBounds, FeatureUnits, RobustnessAnswer, RobustnessRequest, ValueRobustnessAnswer,
    robustness, value_robustness,
};
use gradus_app::lab::Drawn as _;
use gradus_core::capability::Capability;
use gradus_core::dataset::TableFile;
use gradus_file::output::FileKind;
use gradus_report::number;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;

/// Rows that fell which are listed.
const LISTED: usize = 10;

#[derive(Args)]
struct RobustnessArgs {
    /// The model
    model: PathBuf,

    /// Data the model has not seen; `-` for standard input
    data: PathBuf,

    /// The column that holds the truth [default: as in training]
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    target: Vec<String>,

    /// The norm of perturbations: linf (the largest change), l2 (root of the sum of squares) or l1 (sum)
    #[arg(long, value_name = "NORM", default_value_t = RobustnessRequest::default().norm, help_heading = "Perturbations")]
    norm: String,

    /// The radius of perturbations
    #[arg(long, value_name = "X", default_value_t = RobustnessOptions::default().eps, allow_negative_numbers = true, help_heading = "Perturbations")]
    eps: f64,

    /// Further radii of the curve [default: a quarter, half, three quarters, one and a half and twice --eps]
    #[arg(
        long,
        value_name = "X,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Perturbations"
    )]
    curve: Vec<f64>,

    /// The unit of changes: raw (that of the feature), std (its standard deviation in the data) or auto (std for tables with names, raw
    /// for images and arrays)
    #[arg(long, value_name = "UNIT", default_value = "auto", value_parser = ["auto", "raw", "std"], help_heading = "Perturbations")]
    units: String,

    /// The values that features may take: LOW,HIGH; data (the range of each in the data); none; or auto (0,1 for images, none for others)
    #[arg(
        long,
        value_name = "BOUNDS",
        default_value = "auto",
        allow_hyphen_values = true,
        help_heading = "Perturbations"
    )]
    bounds: String,

    /// Columns that stay as they are
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', help_heading = "Perturbations")]
    immutable: Vec<String>,

    /// Columns that change by whole numbers only
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', help_heading = "Perturbations")]
    integer: Vec<String>,

    /// Columns whose radius is multiplied by a factor; 0 lets one stay as it is
    #[arg(long, value_name = "COLUMN=X,…", value_delimiter = ',', help_heading = "Perturbations")]
    budget: Vec<String>,

    /// The attacks, in order [default: exact for linear models; apgd-ce,apgd-t,fab-t,square where the model gives gradients; else
    /// square,hopskipjump]. Also: fgsm, pgd, apgd-dlr, differences, transfer
    #[arg(long, value_name = "ATTACK,…", value_delimiter = ',', help_heading = "Attacks")]
    attacks: Vec<String>,

    /// Steps of attacks by gradients
    #[arg(long, value_name = "N", default_value_t = RobustnessOptions::default().iterations, help_heading = "Attacks")]
    iterations: usize,

    /// Starts of attacks by gradients
    #[arg(long, value_name = "N", default_value_t = RobustnessOptions::default().restarts, help_heading = "Attacks")]
    restarts: usize,

    /// Classes that targeted attacks try at most
    #[arg(long, value_name = "N", default_value_t = RobustnessOptions::default().targets, help_heading = "Attacks")]
    targets: usize,

    /// Evaluations of a row by each attack without gradients at most
    #[arg(long, value_name = "N", default_value_t = RobustnessOptions::default().queries, help_heading = "Attacks")]
    queries: usize,

    /// Momentum of pgd
    #[arg(long, value_name = "X", default_value_t = RobustnessOptions::default().momentum, help_heading = "Attacks")]
    momentum: f64,

    /// Rows that are audited at most, drawn at random; 0 for all
    #[arg(long, value_name = "N", default_value_t = RobustnessRequest::default().samples, help_heading = "Attacks")]
    samples: usize,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = RobustnessOptions::default().seed, help_heading = "Attacks")]
    seed: u64,

    /// The kind of model of the surrogate that the attack `transfer` trains on decisions of the model, as many as --queries
    #[arg(long, value_name = "MODEL", default_value_t = RobustnessRequest::default().surrogate, help_heading = "Attacks")]
    surrogate: String,

    /// Of a model that predicts numbers: the change of a prediction that counts as moved [default: a tenth of the standard deviation
    /// of the predictions]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    tolerance: Option<f64>,

    /// Certify the model smoothed by normal noise of this standard deviation, too
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true)]
    smoothing: Option<f64>,

    /// Where to write a page with the curve and the rows that fell: an .html file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    table: Options<TableFile>,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    RobustnessArgs::augment_args(
        Command::new("robustness")
            .about("Attack a model: how many decisions small changes of the features reverse, or how far they move predicted numbers"),
    )
    .after_help(RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<RobustnessArgs>(matches)?;
    let page = match &args.output {
        Some(path) => Some(FilePlan::new(args.force, [&args.model, &args.data]).output(
            "--output",
            path,
            FileKind::Page,
        )?),
        None => None,
    };
    let budget = args.budget.iter().map(|text| budget(text)).collect::<Outcome<_>>()?;
    let attacks = args.attacks.iter().map(|name| Attack::parse(name));
    let request = RobustnessRequest {
        data: args.data,
        table: args.table.0,
        target: args.target,
        norm: args.norm,
        units: match args.units.as_str() {
            "raw" => FeatureUnits::Raw,
            "std" => FeatureUnits::Std,
            _ => FeatureUnits::Auto,
        },
        bounds: FeatureBounds::parse(&args.bounds)?,
        immutable: args.immutable,
        integer: args.integer,
        budget,
        samples: args.samples,
        smoothing: args.smoothing,
        surrogate: args.surrogate,
        tolerance: args.tolerance,
        options: RobustnessOptions {
            eps: args.eps,
            curve: args.curve,
            attacks: attacks.collect::<gradus::Result<_>>()?,
            iterations: args.iterations,
            restarts: args.restarts,
            targets: args.targets,
            queries: args.queries,
            momentum: args.momentum,
            seed: args.seed,
            ..RobustnessOptions::default()
        },
    };
    let fitted = crate::registry().load(&args.model)?;
    if crate::registry().find(fitted.kind)?.traits().can(Capability::Recommend) {
        return Err(Failure::Usage(format!(
            "model `{}` recommends, and has no features that an attack could change; to see what fake users do, add their ratings to \
             the training data, fit again, and compare `gradus evaluate --ranking` and `gradus recommend` of both models",
            fitted.kind
        )));
    }
    let stop = progress::stop_on_ctrl_c();
    if fitted.predictor()?.outputs().labels().is_none() {
        let found = context
            .reading(|remarks| value_robustness(&fitted, &request, remarks, &|| stop.requested()));
        if stop.requested() {
            return Err(Failure::Interrupted);
        }
        let found = found?;
        if let Some(page) = &page {
            let html = found.page().to_html();
            page.write(|file| file.write_all(html.as_bytes()))?;
        }
        if context.json {
            return context.json(&json!(found));
        }
        show_values(&found, context)?;
        if let Some(path) = &args.output {
            context.remark(format_args!("wrote {}", path.display()));
        }
        return Ok(());
    }
    let found = context.reading(|remarks| {
        robustness(crate::app(), &fitted, &request, remarks, &|| stop.requested())
    });
    if stop.requested() {
        return Err(Failure::Interrupted);
    }
    let found = found?;
    if let Some(page) = &page {
        let html = found.page().to_html();
        page.write(|file| file.write_all(html.as_bytes()))?;
    }
    if context.json {
        return context.json(&json!(found));
    }
    show(&found, context)?;
    if let Some(path) = &args.output {
        context.remark(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

/// `age=2`: a column and a factor.
fn budget(text: &str) -> Outcome<(String, f64)> {
    let wrong =
        || Failure::Usage(format!("--budget {text}: must be a column and a number, as in age=2"));
    let (name, factor) = text.rsplit_once('=').ok_or_else(wrong)?;
    let factor = factor.trim().parse::<f64>().map_err(|_| wrong())?;
    Ok((name.to_owned(), factor))
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn within(share: &Share) -> String {
    format!("{:.2}–{:.2} %", 100.0 * share.interval.low, 100.0 * share.interval.high)
}

fn show(answer: &RobustnessAnswer, context: Context) -> Outcome {
    let found = &answer.found;
    let mut table = Table::new(&["", ">share", "95 %", ">rows"]);
    for (name, share) in [("accuracy", &found.accuracy), ("robust accuracy", &found.robust)] {
        table.row([name.to_owned(), percent(share.value), within(share), grouped(share.count)]);
    }
    context.say(table)?;
    let bound = if found.exact { "exact" } else { "an upper bound" };
    context.say(format_args!(
        "at {} ≤ {} in {}, on {} of {} rows; {bound}; intervals by {}",
        found.norm,
        number(found.eps),
        answer.units,
        grouped(found.rows.len()),
        grouped(answer.count),
        found.robust.interval.method
    ))?;
    context.say("")?;
    let mut table = Table::new(&[">eps", ">robust accuracy", "95 %"]);
    for point in &found.curve {
        table.row([number(point.eps), percent(point.robust.value), within(&point.robust)]);
    }
    context.say(table)?;
    context.say("")?;
    let mut table = Table::new(&["attack", ">rows", ">fell", ">evaluations", ">time"]);
    for attack in &found.attacks {
        let cells = [
            attack.attack.to_string(),
            grouped(attack.tried),
            grouped(attack.fell),
            grouped(attack.queries as usize),
            seconds(attack.seconds),
        ];
        table.row(cells);
    }
    context.say(table)?;
    if let Some(certified) = &answer.certified {
        context.say("")?;
        let mut table = Table::new(&[">l2 radius", ">certified accuracy", "95 %"]);
        for (radius, share) in &certified.curve {
            table.row([number(*radius), percent(share.value), within(share)]);
        }
        context.say(table)?;
        context.say(format_args!(
            "of the model smoothed by noise of deviation {}; each certificate holds with probability {}",
            number(certified.smoothing.sigma),
            1.0 - certified.smoothing.alpha
        ))?;
    }
    if !answer.examples.is_empty() {
        context.say("")?;
        let mut table =
            Table::new(&[">row", "class", "becomes", ">distance", "by", "largest changes"]);
        for row in answer.examples.iter().take(LISTED) {
            let changes = row.changes.iter().take(3).map(|change| {
                format!("{} {} → {}", change.feature, number(change.from), number(change.to))
            });
            table.row([
                row.row.to_string(),
                label(&row.was),
                label(&row.becomes),
                number(row.distance),
                row.by.clone(),
                changes.collect::<Vec<_>>().join(", "),
            ]);
        }
        context.say(table)?;
        let n = answer.examples.len();
        if n > LISTED {
            context.say(format_args!("and {} more rows that fell", grouped(n - LISTED)))?;
        }
    }
    found.notes.iter().for_each(|note| context.remark(note));
    context.remark(format_args!("\n{}", answer.about()));
    Ok(())
}

fn show_values(answer: &ValueRobustnessAnswer, context: Context) -> Outcome {
    let found = &answer.found;
    let mut table =
        Table::new(&[">eps", ">mean change", ">largest change", ">rows that move", "95 %"]);
    for point in &found.curve {
        table.row([
            number(point.eps),
            number(point.mean_change),
            number(point.largest_change),
            percent(point.moved.value),
            within(&point.moved),
        ]);
    }
    context.say(table)?;
    context.say(format_args!(
        "changes of the predicted number at {} within eps in {}, on {} of {} rows; {}; a row moves if its prediction changes by more \
         than {}",
        found.norm,
        answer.units,
        grouped(found.rows.len()),
        grouped(answer.count),
        if found.exact { "exact" } else { "the largest that were found" },
        number(found.tolerance)
    ))?;
    if !answer.examples.is_empty() {
        context.say("")?;
        let mut table = Table::new(&[">row", ">prediction", ">becomes", "largest changes"]);
        for row in answer.examples.iter().take(LISTED) {
            let changes = row.changes.iter().take(3).map(|change| {
                format!("{} {} → {}", change.feature, number(change.from), number(change.to))
            });
            table.row([
                row.row.to_string(),
                number(row.predicted),
                number(row.becomes),
                changes.collect::<Vec<_>>().join(", "),
            ]);
        }
        context.say(table)?;
    }
    context.remark(format_args!("\n{}", answer.about()));
    Ok(())
}

fn label(label: &Value) -> String {
    label.as_str().map_or_else(|| label.to_string(), str::to_owned)
}
