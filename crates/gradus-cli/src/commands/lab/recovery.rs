//! `gradus lab recovery -o recovery.html`

use crate::output::{Context, Failure, Outcome, Table, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::recommenders::recovery::{self, Method, Trial};
use gradus_base::parallel;
use gradus_file::output::FileKind;
use gradus_report::{Background, Chart as _, Heat, Page, number};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
struct RecoveryArgs {
    /// The methods, with commas between them: softimpute, svt, svp
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = ["softimpute".to_owned(), "svt".to_owned(), "svp".to_owned()])]
    methods: Vec<String>,

    /// Number of rows and of columns of the planted matrices
    #[arg(long, value_name = "N", default_value_t = 40)]
    size: usize,

    /// The largest share of the size that is tried as a rank
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    ranks: f64,

    /// Number of ranks, and of shares observed, that are tried
    #[arg(long, value_name = "N", default_value_t = 10)]
    steps: usize,

    /// Planted matrices for each rank and share
    #[arg(long, value_name = "N", default_value_t = 4)]
    rounds: usize,

    /// The relative error up to which a matrix counts as recovered
    #[arg(long, value_name = "X", default_value_t = 0.01)]
    tolerance: f64,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
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

/// How often a method recovered matrices of each rank, from each share of the entries.
struct Found {
    method: Method,
    /// By rank, then by share.
    success: Vec<Vec<f64>>,
    seconds: f64,
}

struct Grid {
    size: usize,
    ranks: Vec<usize>,
    shares: Vec<f64>,
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<RecoveryArgs>(matches)?;
    let (methods, grid) = check(&args)?;
    let extension = args.output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let kind = if extension == "svg" { FileKind::Drawing } else { FileKind::Page };
    let nothing: Option<PathBuf> = None;
    let output = FilePlan::new(args.force, &nothing).output("--output", &args.output, kind)?;
    let fits = grid.ranks.len() * grid.shares.len() * args.rounds;
    context.remark(format_args!(
        "planted matrices of {0} × {0}; {1} to complete by each method",
        grid.size,
        grouped(fits)
    ));
    let mut found = Vec::new();
    for method in methods {
        found.push(complete(&args, &grid, method)?);
    }
    let text = if extension == "svg" {
        grid.chart(&found[0]).draw(900.0).standalone(Background::Theme)
    } else {
        grid.html(&args, &found)
    };
    output.write(|file| file.write_all(text.as_bytes()))?;
    if context.json {
        let methods: Vec<_> = found
            .iter()
            .map(|f| json!({ "method": f.method.name(), "success": f.success, "seconds": f.seconds }))
            .collect();
        let theory = |f: fn(usize, usize, usize) -> f64| -> Vec<f64> {
            grid.ranks.iter().map(|&k| f(grid.size, grid.size, k)).collect()
        };
        return context.json(&json!({
            "size": grid.size, "ranks": grid.ranks, "shares": grid.shares, "rounds": args.rounds,
            "tolerance": args.tolerance, "methods": methods,
            "degrees_of_freedom": theory(recovery::least_share),
            "nuclear_norm": theory(recovery::nuclear_norm_share),
            "output": args.output.display().to_string(),
        }));
    }
    context.say(grid.table(&found))?;
    for f in &found {
        context.remark(format_args!("{}: {:.1} s", f.method.name(), f.seconds));
    }
    context.remark(ABOUT);
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

const ABOUT: &str = "The share observed is the one from which at least half of the matrices of a rank were recovered. The \
    degrees of freedom bound every method; the curve of the nuclear norm is where theory puts the transition of softimpute \
    and svt in large matrices. svp is told the rank.";

/// The methods and the grid, if the options make sense.
fn check(args: &RecoveryArgs) -> Outcome<(Vec<Method>, Grid)> {
    let usage = |text: String| Err(Failure::Usage(text));
    let mut methods = Vec::new();
    for name in &args.methods {
        match Method::ALL.into_iter().find(|method| method.name() == name) {
            Some(method) if !methods.contains(&method) => methods.push(method),
            Some(_) => {}
            None => return usage(format!("--methods {name}: must be softimpute, svt or svp")),
        }
    }
    let extension = args.output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match (extension, methods.len()) {
        ("html", _) | ("svg", 1) => {}
        ("svg", count) => {
            let text = format!(
                "--output {}: an .svg shows one method, not {count}; write an .html file or name one with --methods",
                args.output.display()
            );
            return usage(text);
        }
        _ => {
            return usage(format!("--output {}: must end in .svg or .html", args.output.display()));
        }
    }
    if !(4..=1000).contains(&args.size) {
        return usage(format!("--size {}: must be from 4 to 1000", args.size));
    }
    if !(1..=100).contains(&args.steps) {
        return usage(format!("--steps {}: must be from 1 to 100", args.steps));
    }
    if !(1..=10_000).contains(&args.rounds) {
        return usage(format!("--rounds {}: must be from 1 to 10000", args.rounds));
    }
    let fits = args.ranks > 0.0 && args.ranks <= 1.0;
    if !fits {
        return usage(format!("--ranks {}: must be above 0 and at most 1", args.ranks));
    }
    let fits = args.tolerance > 0.0 && args.tolerance < 1.0;
    if !fits {
        return usage(format!("--tolerance {}: must be between 0 and 1", args.tolerance));
    }
    let (n, steps) = (args.size, args.steps as f64);
    let mut ranks: Vec<usize> = (1..=args.steps)
        .map(|step| (n as f64 * args.ranks * step as f64 / steps).round() as usize)
        .map(|rank| rank.clamp(1, n))
        .collect();
    ranks.dedup();
    let shares: Vec<f64> = (1..=args.steps).map(|step| step as f64 / steps).collect();
    Ok((methods, Grid { size: n, ranks, shares }))
}

/// Completes every matrix of the grid, many at a time.
fn complete(args: &RecoveryArgs, grid: &Grid, method: Method) -> Outcome<Found> {
    let started = Instant::now();
    let mut trials = Vec::new();
    for &rank in &grid.ranks {
        for &share in &grid.shares {
            for round in 0..args.rounds as u64 {
                let seed = args.seed.wrapping_mul(10_007).wrapping_add(round);
                trials.push(Trial { n_rows: grid.size, n_cols: grid.size, rank, share, seed });
            }
        }
    }
    let recovered = parallel::try_map(trials, |trial| {
        Ok::<_, gradus::Error>(trial.error(method)? <= args.tolerance)
    })?;
    let cells: Vec<f64> = recovered
        .chunks(args.rounds)
        .map(|cell| cell.iter().filter(|&&ok| ok).count() as f64 / args.rounds as f64)
        .collect();
    let success = cells.chunks(grid.shares.len()).map(<[f64]>::to_vec).collect();
    Ok(Found { method, success, seconds: started.elapsed().as_secs_f64() })
}

impl Grid {
    /// The least share from which on half of the matrices of a rank were recovered.
    fn transition(&self, success: &[f64]) -> Option<f64> {
        let last = success.iter().rposition(|&rate| rate < 0.5);
        self.shares.get(last.map_or(0, |at| at + 1)).copied()
    }

    fn table(&self, found: &[Found]) -> Table {
        let mut head = vec![">rank".to_owned()];
        head.extend(found.iter().map(|f| format!(">{}", f.method.name())));
        head.extend([">degrees of freedom".to_owned(), ">nuclear norm".to_owned()]);
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let mut table = Table::new(&head);
        for (at, &rank) in self.ranks.iter().enumerate() {
            let mut cells = vec![rank.to_string()];
            cells.extend(found.iter().map(|f| {
                self.transition(&f.success[at]).map_or_else(|| "never".to_owned(), number)
            }));
            cells.push(number(recovery::least_share(self.size, self.size, rank)));
            cells.push(number(recovery::nuclear_norm_share(self.size, self.size, rank)));
            table.row(cells);
        }
        table
    }

    /// Success over share and rank, the largest rank on top, with the curves of theory.
    fn chart(&self, found: &Found) -> Heat {
        let n_ranks = self.ranks.len() as f64;
        let n_shares = self.shares.len() as f64;
        // A share of s stands in the middle of its column, a rank of k in that of its row or between two.
        let row = |rank: usize| {
            let above = self.ranks.iter().position(|&k| k >= rank)?;
            let high = self.ranks[above];
            let low = if above == 0 { 0 } else { self.ranks[above - 1] };
            let within = (rank - low) as f64 / (high - low) as f64;
            Some(n_ranks - (above as f64 + within - 0.5))
        };
        let curve = |theory: fn(usize, usize, usize) -> f64| {
            let points = (1..=self.size).filter_map(move |rank| {
                let share = theory(self.size, self.size, rank);
                Some((share * n_shares - 0.5, row(rank)?))
            });
            points.collect::<Vec<_>>()
        };
        Heat::new(found.success.iter().rev())
            .rows(self.ranks.iter().rev().map(ToString::to_string))
            .columns(self.shares.iter().map(|share| number(*share)))
            .max(1.0)
            .decimals(2)
            .curve("degrees of freedom", curve(recovery::least_share))
            .curve("theory of the nuclear norm", curve(recovery::nuclear_norm_share))
            .title(format!("Matrices recovered by {}", found.method.name()))
            .x_label("share of the entries observed")
            .y_label("rank")
    }

    fn html(&self, args: &RecoveryArgs, found: &[Found]) -> String {
        let mut page = Page::new("Exact recovery").subtitle(format!(
            "planted matrices of {0} × {0} with normal factors and no noise; {1} for each cell, recovered if the \
             relative error is at most {2}",
            self.size,
            args.rounds,
            number(args.tolerance)
        ));
        for f in found {
            let chart = self.chart(f);
            page = page.section(f.method.name(), |s| s.chart(chart));
        }
        page.section("How to read it", |s| s.text(ABOUT)).footer("gradus lab recovery").to_html()
    }
}
