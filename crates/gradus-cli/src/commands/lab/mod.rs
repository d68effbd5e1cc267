//! `gradus lab …`: experiments that show how things work, one file each.

mod backprop;
mod bias_variance;
mod fairness;
mod generate;
mod learning_rate;
mod minmax;
mod optimize;
mod recovery;
mod tradeoff;

use super::Entry;
use crate::output::{Context, Failure, Outcome};
use crate::outputs::{FilePlan, ForceArg};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgMatches, Command};
use gradus_app::lab::Drawn;
use gradus_file::output::{FileKind, Output};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const LABS: &[Entry] = &[
    (optimize::command, optimize::run),
    (backprop::command, backprop::run),
    (bias_variance::command, bias_variance::run),
    (learning_rate::command, learning_rate::run),
    (minmax::command, minmax::run),
    (recovery::command, recovery::run),
    (tradeoff::command, tradeoff::run),
    (fairness::command, fairness::run),
    (generate::command, generate::run),
];

pub fn command() -> Command {
    Command::new("lab")
        .about("Experiments that show how things work, with pictures")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(LABS.iter().map(|(definition, _)| definition()))
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let found = matches.subcommand().and_then(|(name, matches)| {
        let lab = LABS.iter().find(|(definition, _)| definition().get_name() == name)?;
        Some((lab.1, matches))
    });
    match found {
        Some((work, matches)) => work(matches, context),
        None => Err(Failure::Usage("lab: no such experiment; see `gradus lab --help`".into())),
    }
}

/// The file that an experiment is drawn into, checked before the work begins.
struct Picture {
    output: Output,
    is_svg: bool,
}

impl Picture {
    /// An .svg file or an .html file, other than those that are read.
    fn new<'a>(
        path: &Path,
        force: ForceArg,
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Outcome<Self> {
        let is_svg = match path.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => true,
            Some("html") => false,
            _ => {
                let text = format!("--output {}: must end in .svg or .html", path.display());
                return Err(Failure::Usage(text));
            }
        };
        let kind = if is_svg { FileKind::Drawing } else { FileKind::Page };
        let output = FilePlan::new(force, inputs).output("--output", path, kind)?;
        Ok(Self { output, is_svg })
    }

    fn is_svg(&self) -> bool {
        self.is_svg
    }

    fn write(&self, drawn: &impl Drawn) -> Outcome {
        let text = if self.is_svg { drawn.svg() } else { drawn.page().to_html() };
        Ok(self.output.write(|file| file.write_all(text.as_bytes()))?)
    }
}

/// The values that an option takes, with their help.
fn values<T, const N: usize>(all: [(T, &'static str, &'static str); N]) -> PossibleValuesParser {
    PossibleValuesParser::new(all.map(|(_, name, about)| PossibleValue::new(name).help(about)))
}

/// The value of a name; the parser lets no other through.
fn value<T: Copy, const N: usize>(
    all: [(T, &'static str, &'static str); N],
    name: &str,
) -> Outcome<T> {
    let found = all.into_iter().find(|(_, known, _)| *known == name);
    found.map(|(value, ..)| value).ok_or_else(|| Failure::Usage(format!("unknown name `{name}`")))
}

/// `-1.2,1`: a point of two coordinates.
fn point(text: &str) -> Outcome<[f64; 2]> {
    let wrong =
        || Failure::Usage(format!("--start {text}: must be two finite numbers, as in -1.2,1"));
    let (x, y) = text.split_once(',').ok_or_else(wrong)?;
    let read = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    Ok([read(x).ok_or_else(wrong)?, read(y).ok_or_else(wrong)?])
}
