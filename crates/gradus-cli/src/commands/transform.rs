//! `gradus transform FILE DATA`

use crate::columns::write_columns;
use crate::input::{Options, options_by_name};
use crate::output::{Context, Failure, Outcome, grouped};
use crate::outputs::{self, Destination, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus_app::predict::{RowsRequest, Transformed};
use gradus_core::dataset::TableFile;
use gradus_data::{Libsvm, Matrix, NpyArray, NpzWriter};
use gradus_file::output::{FileKind, Output};
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Args)]
struct TransformArgs {
    /// The model
    model: PathBuf,

    /// Rows of features, `-` for standard input; of a model of documents a file or a folder of them
    data: PathBuf,

    /// Where to write the transformed features: CSV, compressed if so named, .npz (NumPy; sparse as SciPy has it) or
    /// .libsvm [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Where to write the names of the transformed features, one a line
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,

    /// Take transformed features back to those they came from
    #[arg(long)]
    inverse: bool,

    /// Fill in missing values by their mean given the others, of a model that knows it (gmm), instead of transforming
    #[arg(long, conflicts_with = "inverse")]
    impute: bool,

    /// Write the columns of the file before the results
    #[arg(long)]
    keep: bool,

    #[command(flatten)]
    force: ForceArg,

    /// Column of the texts, of a model of documents [default: the one of training]
    #[arg(
        long,
        value_name = "COLUMN",
        allow_negative_numbers = true,
        help_heading = "Reading the data"
    )]
    text: Option<String>,

    /// Reading option of other data than features, an option of its kind of data
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Reading the data")]
    option: Vec<String>,

    #[command(flatten)]
    input: Options<TableFile>,
}

pub fn command() -> Command {
    TransformArgs::augment_args(
        Command::new("transform").about(
            "Transform the features of each row of a file, or back; of a clustering its distances to the clusters, or memberships in them",
        ),
    )
    .after_help(outputs::RULE)
}

/// The format of the transformed features.
enum Target {
    Table(Destination),
    /// Arrays of NumPy, sparse ones as SciPy has them.
    Npz(Box<Output>),
    Libsvm(Destination),
}

impl Target {
    fn new(plan: &mut FilePlan, path: Option<&Path>) -> Outcome<Self> {
        let name = path.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        match path {
            Some(path) if name.ends_with(".npz") => {
                Ok(Self::Npz(Box::new(plan.output("--output", path, FileKind::Binary)?)))
            }
            _ => {
                let destination = plan.table_or_stdout("--output", path)?;
                let is_libsvm =
                    Libsvm::EXTENSIONS.into_iter().any(|extension| plain.ends_with(extension));
                Ok(if is_libsvm { Self::Libsvm(destination) } else { Self::Table(destination) })
            }
        }
    }

    fn write(&self, found: Transformed, keep: bool, json: bool) -> Outcome {
        match self {
            Self::Table(destination) => {
                let table = found.table(keep)?;
                destination.write(|out| Ok(write_columns(out, &table, json)?))
            }
            Self::Npz(output) => {
                let mut file = NpzWriter::new(output.create()?);
                match &found.matrix {
                    Matrix::Sparse(sparse) => file.add_sparse(sparse)?,
                    Matrix::Dense(dense) => {
                        let (n, k) = dense.shape();
                        file.add("x", &NpyArray::new(vec![n, k], dense.values().to_vec())?)?;
                    }
                }
                Ok(file.finish()?.commit()?)
            }
            Self::Libsvm(destination) => {
                let labels = vec![0.0; found.matrix.n_rows()];
                let rows = Libsvm { labels, features: found.matrix.into_sparse()?, qid: None };
                destination.write(|out| Ok(rows.to_writer(out)?))
            }
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Table(destination) | Self::Libsvm(destination) => destination.path(),
            Self::Npz(output) => Some(output.path()),
        }
    }
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args: TransformArgs = arguments(matches)?;
    let mut plan = FilePlan::new(args.force, [&args.model, &args.data]);
    let target = Target::new(&mut plan, args.output.as_deref())?;
    let names = match &args.names {
        Some(path) => Some(plan.table("--names", path)?),
        None => None,
    };
    let fitted = crate::registry().load(&args.model)?;
    let kind = crate::registry().find(fitted.kind)?.data();
    let mut options = options_by_name(&args.option, kind)?;
    options.extend(args.text.map(|column| ("text".to_owned(), column.into())));
    let request = RowsRequest {
        path: args.data.clone(),
        table: args.input.0,
        keep: args.keep,
        probabilities: false,
        top: None,
        inverse: args.inverse,
        impute: args.impute,
        options,
    };
    let app = crate::app();
    let found = context.reading(|remarks| app.transform(&fitted, &request, remarks))?;
    if !matches!(target, Target::Table(_)) {
        if args.keep {
            return Err(Failure::Usage("--keep: only a table has other columns".to_owned()));
        }
        if let Some(table) = found.table.as_ref().filter(|table| table.n_rows() != found.rows.len())
        {
            let lacking = table.n_rows() - found.rows.len();
            context
                .remark(format_args!("{} rows have no result and are left out", grouped(lacking)));
        }
    }
    if let Some(output) = names {
        let mut file = output.create()?;
        for name in &found.names {
            // One name a line, whatever is in it.
            writeln!(file, "{}", name.replace(['\n', '\r'], " "))?;
        }
        file.commit()?;
    }
    let n = found.matrix.n_rows();
    target.write(found, args.keep, context.json)?;
    if let Some(path) = target.path() {
        context.remark(format_args!("{} rows in {}", grouped(n), path.display()));
    }
    Ok(())
}
