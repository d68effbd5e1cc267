//! `gradus transform FILE DATA`

use crate::columns::{beside, spread, write_columns};
use crate::input::SampleArgs;
use crate::output::{Context, Outcome, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_core::dataset::Features;
use gradus_core::transform::Transform;
use gradus_data::{Dense, Missing, Table};
use serde_json::Value;
use std::path::PathBuf;

#[derive(Args)]
struct TransformArgs {
    /// The model
    model: PathBuf,

    /// Rows of features; `-` for standard input
    data: PathBuf,

    /// Where to write the transformed features, CSV, compressed if so named [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Take transformed features back to those they came from
    #[arg(long)]
    inverse: bool,

    /// Write the columns of the file before the results
    #[arg(long)]
    keep: bool,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    input: SampleArgs,
}

pub fn command() -> Command {
    TransformArgs::augment_args(
        Command::new("transform").about("Transform the features of each row of a file, or back"),
    )
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: TransformArgs = arguments(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model, &args.data]);
    let destination = plan.table_or_stdout("--output", args.output.as_deref())?;
    let fitted = crate::registry().load(&args.model)?;
    let model = fitted.transformer()?;
    let (results, names, table, rows) = if args.inverse {
        back(&args, model, fitted.kind, context)?
    } else {
        let Features { matrix, table, rows } = context
            .reading(|remarks| args.input.0.table.features(&args.data, model.inputs(), remarks))?;
        (model.transform(&matrix)?, model.output_names(), table, rows)
    };
    let n = table.as_ref().map_or(results.n_rows(), Table::n_rows);
    let columns = names.into_iter().enumerate();
    let columns = columns.map(|(at, name)| (name, results.column(at).map(Value::from).collect()));
    let mut columns = spread(columns.collect(), &rows, n);
    if let Some(table) = table.filter(|_| args.keep) {
        columns = beside(&table, columns);
    }
    destination.write(|out| Ok(write_columns(out, n, &columns, context.json)?))?;
    if let Some(path) = destination.path() {
        context.remark(format_args!("{} rows in {}", grouped(n), path.display()));
    }
    Ok(())
}

type Results = (Dense<f64>, Vec<String>, Option<Table>, Vec<u32>);

/// Features from transformed ones: columns by the names that the model gives.
fn back(
    args: &TransformArgs,
    model: &dyn Transform,
    kind: &str,
    context: Context,
) -> Outcome<Results> {
    let names = model.output_names();
    let table = args.input.0.table.table(&args.data, None, &names)?;
    context.reading(|remarks| {
        gradus_core::dataset::remark_on_source(&args.data, &table, remarks);
        Ok(())
    })?;
    let columns: Vec<&str> = names.iter().map(String::as_str).collect();
    let z = table.to_dense(&columns, Missing::Refuse)?;
    let x = model.inverse(&z).ok_or_else(|| gradus::Error::Unsupported {
        model: kind.to_owned(),
        capability: "transform back",
        instead: "it transforms one way only".to_owned(),
    })??;
    let rows = (0..x.n_rows() as u32).collect();
    let names = match model.inputs().feature_names() {
        names if names.len() == x.n_cols() => names,
        _ => (1..=x.n_cols()).map(|at| format!("x{at}")).collect(),
    };
    Ok((x, names, Some(table), rows))
}
