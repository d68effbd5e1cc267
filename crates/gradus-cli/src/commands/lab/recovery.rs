//! `gradus lab recovery -o recovery.html`

use super::Picture;
use crate::output::{Context, Failure, Outcome, Table, grouped};
use crate::outputs::{self, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::lab::recovery::{RecoveryAnswer, RecoveryRequest};
use gradus_report::number;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
struct RecoveryArgs {
    /// The methods, with commas between them: softimpute, svt, svp
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = RecoveryRequest::default().methods)]
    methods: Vec<String>,

    /// Number of rows and of columns of the planted matrices
    #[arg(long, value_name = "N", default_value_t = RecoveryRequest::default().size)]
    size: usize,

    /// The largest share of the size that is tried as a rank
    #[arg(long, value_name = "SHARE", default_value_t = RecoveryRequest::default().ranks)]
    ranks: f64,

    /// Number of ranks, and of shares observed, that are tried
    #[arg(long, value_name = "N", default_value_t = RecoveryRequest::default().steps)]
    steps: usize,

    /// Planted matrices for each rank and share
    #[arg(long, value_name = "N", default_value_t = RecoveryRequest::default().rounds)]
    rounds: usize,

    /// The relative error up to which a matrix counts as recovered
    #[arg(long, value_name = "X", default_value_t = RecoveryRequest::default().tolerance)]
    tolerance: f64,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = RecoveryRequest::default().seed)]
    seed: u64,

    /// Where to write the picture: an .svg file (of one method) or an .html file
    #[arg(short, long, value_name = "FILE", default_value = "recovery.html")]
    output: PathBuf,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    RecoveryArgs::augment_args(Command::new("recovery").about(
        "Complete planted matrices of many ranks from few entries: where exact recovery begins",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<RecoveryArgs>(matches)?;
    let picture = Picture::new(&args.output, args.force, [])?;
    let request = RecoveryRequest {
        methods: args.methods,
        size: args.size,
        ranks: args.ranks,
        steps: args.steps,
        rounds: args.rounds,
        tolerance: args.tolerance,
        seed: args.seed,
    };
    let trials = request.n_trials()?;
    if picture.is_svg() && request.methods.len() > 1 {
        return Err(Failure::Usage(format!(
            "--output {}: an .svg shows one method, not {}; write an .html file or name one with --methods",
            args.output.display(),
            request.methods.len()
        )));
    }
    context.remark(format_args!(
        "planted matrices of {0} × {0}; {1} to complete by each method",
        request.size,
        grouped(trials)
    ));
    let answer = request.run()?;
    picture.write(&answer)?;
    if context.json {
        let mut shown = json!(answer);
        shown["output"] = args.output.display().to_string().into();
        return context.json(&shown);
    }
    context.say(table(&answer))?;
    for method in &answer.methods {
        context.remark(format_args!("{}: {:.1} s", method.method, method.seconds));
    }
    context.remark(RecoveryAnswer::ABOUT);
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

fn table(answer: &RecoveryAnswer) -> Table {
    let mut head = vec![">rank".to_owned()];
    head.extend(answer.methods.iter().map(|method| format!(">{}", method.method)));
    head.extend([">degrees of freedom".to_owned(), ">nuclear norm".to_owned()]);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    for (at, rank) in answer.ranks.iter().enumerate() {
        let mut cells = vec![rank.to_string()];
        cells.extend(answer.methods.iter().map(|method| {
            answer.transition(method, at).map_or_else(|| "never".to_owned(), number)
        }));
        cells.push(number(answer.degrees_of_freedom[at]));
        cells.push(number(answer.nuclear_norm[at]));
        table.row(cells);
    }
    table
}
