//! `gradus lab biasvariance ridge --vary regularization 1e-4..10:9 -o bv.html`

use crate::input::SampleArgs;
use crate::output::{Context, Failure, Outcome, Table, grouped};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use clap::{ArgMatches, Args, Command};
use gradus::page::shown;
use gradus::select::bias_variance::{bias_variance, class_bias_variance};
use gradus::select::search::Axis;
use gradus_core::capability::Capability;
use gradus_core::estimator::{AnyFitted, Estimator, Run};
use gradus_data::make::{RegressionSpec, TargetKind};
use gradus_data::split::rows;
use gradus_data::{Id, Samples};
use gradus_file::output::FileKind;
use gradus_report::{Background, Chart as _, Page, Stack, TableColumn, number};
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::PathBuf;

/// A planted sample of n is every so-manieth of a pool so many times as large, so that rounds learn
/// from nearly different samples.
const POOL: usize = 50;

#[derive(Args)]
struct BiasVarianceArgs {
    /// The model: one that predicts from features, as `gradus models` lists
    model: String,

    /// The parameter that makes it more or less complex, and its values: as in regularization
    /// 1e-4..10:9, or degree 1,2,3
    #[arg(long, num_args = 2, value_names = ["PARAMETER", "VALUES"], required = true, allow_hyphen_values = true)]
    vary: Vec<String>,

    /// Another parameter and its value; may be given several times
    #[arg(long, num_args = 2, value_names = ["PARAMETER", "VALUE"], action = clap::ArgAction::Append, allow_hyphen_values = true)]
    set: Vec<String>,

    /// How often the model is fitted for each value
    #[arg(long, value_name = "N", default_value_t = 50)]
    rounds: usize,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where to write the picture: an .svg or .html file
    #[arg(short, long, value_name = "FILE", default_value = "biasvariance.html")]
    output: PathBuf,

    /// A file of samples to resample [default: planted data]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Share of the file that is tested on
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    holdout: f64,

    /// Planted samples to learn from
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Planted data")]
    samples: usize,

    /// Features of planted samples
    #[arg(long, value_name = "N", default_value_t = 40, help_heading = "Planted data")]
    features: usize,

    /// Standard deviation of the noise of planted samples
    #[arg(long, value_name = "X", default_value_t = 2.0, help_heading = "Planted data")]
    noise: f64,

    #[command(flatten)]
    force: ForceArg,

    #[command(flatten)]
    input: SampleArgs,
}

pub fn command() -> Command {
    BiasVarianceArgs::augment_args(Command::new("biasvariance").about(
        "Take the error of a model apart into bias and variance, by fitting it on many samples",
    ))
    .after_help(outputs::RULE)
}

/// What is learned from, and what is tested on.
struct Data {
    pool: Samples,
    test: Samples,
    /// The true values of the test rows: of planted data without the noise.
    truth: Truth,
    /// The variance of the noise, if it is known.
    noise: Option<f64>,
    /// Of the rows drawn, every so-manieth is learned from.
    step: usize,
    description: String,
}

enum Truth {
    Values(Vec<f64>),
    Classes(Vec<u32>),
}

/// The parts of the error for one value of the parameter.
struct Point {
    value: Value,
    bias: f64,
    variance: f64,
    /// What variance saves, of classes.
    helpful: f64,
    noise: f64,
    total: f64,
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<BiasVarianceArgs>(matches)?;
    let extension = args.output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !matches!(extension, "svg" | "html") {
        let text = format!("--output {}: must end in .svg or .html", args.output.display());
        return Err(Failure::Usage(text));
    }
    let kind = if extension == "svg" { FileKind::Drawing } else { FileKind::Page };
    let output = FilePlan::new(args.force, &args.data).output("--output", &args.output, kind)?;
    let model = crate::registry().find(&args.model)?;
    if model.traits().can(Capability::Recommend) {
        return Err(Failure::Usage(format!(
            "`{}` is a recommender; this experiment is for models that predict from features",
            args.model
        )));
    }
    let axis = axis(model, &args.vary[0], &args.vary[1])?;
    let mut fixed = Map::new();
    for pair in args.set.chunks_exact(2) {
        let one = self::axis(model, &pair[0], &pair[1])?;
        fixed.insert(one.name, one.values[0].clone());
    }
    let data = match &args.data {
        Some(_) => read(&args, model, context)?,
        None => planted(&args, model.traits().can(Capability::PredictClasses))?,
    };
    context.remark(format_args!(
        "{}; {} fits to do",
        data.description,
        grouped(args.rounds * axis.values.len())
    ));
    let points: Outcome<Vec<Point>> = axis
        .values
        .iter()
        .map(|value| {
            let mut params = fixed.clone();
            params.insert(axis.name.clone(), value.clone());
            one(&args, model, &params, &data, value)
        })
        .collect();
    let points = points?;
    let picture = Picture { args: &args, name: &axis.name, points: &points, data: &data };
    let text = if extension == "svg" { picture.svg() } else { picture.html() };
    output.write(|file| file.write_all(text.as_bytes()))?;
    let classes = matches!(data.truth, Truth::Classes(_));
    if context.json {
        let description: Vec<Value> = points
            .iter()
            .map(|p| {
                let bias = if classes { "bias" } else { "bias_squared" };
                json!({
                    "value": p.value, bias: p.bias, "variance": p.variance, "noise": p.noise,
                    "helpful_variance": p.helpful, "total": p.total,
                })
            })
            .collect();
        return context.json(&json!({
            "model": args.model, "parameter": axis.name, "rounds": args.rounds,
            "noise_known": data.noise.is_some(), "points": description,
            "best": best(&points).map(|p| &p.value),
            "output": args.output.display().to_string(),
        }));
    }
    context.say(picture.table())?;
    if let Some(best) = best(&points) {
        let (value, total) = (shown(&best.value), number(best.total));
        context.say(format_args!("the least error is {total}, at {} = {value}", axis.name))?;
    }
    context.remark(picture.about());
    context.remark(format_args!("wrote {}", args.output.display()));
    Ok(())
}

/// The point of the least error.
fn best(points: &[Point]) -> Option<&Point> {
    points.iter().min_by(|a, b| a.total.total_cmp(&b.total))
}

/// The values of a parameter by its name.
fn axis(model: &dyn Estimator, name: &str, values: &str) -> Outcome<Axis> {
    let specs = model.specs();
    let name = name.replace('-', "_");
    let spec = specs.iter().find(|spec| spec.name == name).ok_or_else(|| {
        let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        gradus::Error::UnknownName { what: "parameter", name, known: known.join(", ") }
    })?;
    Ok(Axis::parse(spec, values)?)
}

/// Planted samples: a pool to draw from, and others to test on.
fn planted(args: &BiasVarianceArgs, classes: bool) -> Outcome<Data> {
    let (n, n_test) = (args.samples, 500);
    if n == 0 {
        return Err(Failure::Usage("--samples 0: must be at least 1".into()));
    }
    let n_pool = n.saturating_mul(POOL);
    let spec = RegressionSpec {
        noise: args.noise,
        target: if classes { TargetKind::Class } else { TargetKind::Value },
        ..RegressionSpec::new(n_pool.saturating_add(n_test), args.features)
    };
    let made = spec.make(args.seed)?;
    let samples = if classes {
        Samples::classification(made.x, made.y.iter().map(|&y| Id::Int(y as i64)))?
    } else {
        Samples::regression(made.x, made.y)?
    };
    let clean = &made.clean[n_pool..];
    let truth = if classes {
        Truth::Classes(clean.iter().map(|&z| u32::from(z > 0.0)).collect())
    } else {
        Truth::Values(clean.to_vec())
    };
    let rows: Vec<u32> = (0..samples.len() as u32).collect();
    Ok(Data {
        pool: samples.select_rows(&rows[..n_pool]),
        test: samples.select_rows(&rows[n_pool..]),
        truth,
        noise: (!classes).then_some(args.noise * args.noise),
        step: POOL,
        description: format!(
            "planted data: {} features, {} fresh samples a round, {n_test} to test on",
            grouped(args.features),
            grouped(n)
        ),
    })
}

fn read(args: &BiasVarianceArgs, model: &dyn Estimator, context: Context) -> Outcome<Data> {
    let path = args.data.clone().unwrap_or_default();
    let samples =
        context.reading(|remarks| args.input.0.read_apart(&path, &model.traits(), [], remarks))?.0;
    let split = match samples.classes() {
        Ok((classes, _)) => rows::stratified_holdout(classes, args.holdout, args.seed)?.0,
        Err(_) => rows::holdout(samples.len(), args.holdout, args.seed)?,
    };
    let (pool, test) = (samples.select_rows(&split.train), samples.select_rows(&split.test));
    let truth = match test.values() {
        Ok(values) if values.n_cols() != 1 => {
            return Err(Failure::Usage("--target: this experiment takes one target".into()));
        }
        Ok(values) => Truth::Values(values.column(0).collect()),
        Err(_) => Truth::Classes(test.classes()?.0.to_vec()),
    };
    let description = format!(
        "{}: {} samples drawn with replacement a round, {} to test on",
        path.display(),
        grouped(pool.len()),
        grouped(test.len())
    );
    Ok(Data { pool, test, truth, noise: None, step: 1, description })
}

fn one(
    args: &BiasVarianceArgs,
    model: &dyn Estimator,
    params: &Map<String, Value>,
    data: &Data,
    value: &Value,
) -> Outcome<Point> {
    let fit = |rows: &[u32]| -> gradus::Result<AnyFitted> {
        let rows: Vec<u32> = rows.iter().copied().step_by(data.step).collect();
        let train = data.pool.select_rows(&rows);
        model.fit(params, &train, None, &Run::default())
    };
    let (n, value) = (data.pool.len(), value.clone());
    match &data.truth {
        Truth::Values(truth) => {
            let noise = data.noise.unwrap_or(0.0);
            let found = bias_variance(args.rounds, args.seed, n, truth, noise, |rows| {
                let fitted = fit(rows)?;
                Ok(fitted.predictor()?.scores(data.test.features())?.column(0).collect())
            })?;
            Ok(Point {
                value,
                bias: found.bias_squared,
                variance: found.variance,
                helpful: 0.0,
                noise: found.noise,
                total: found.total,
            })
        }
        Truth::Classes(truth) => {
            let found = class_bias_variance(args.rounds, args.seed, n, truth, |rows| {
                fit(rows)?.predictor()?.classes(data.test.features())
            })?;
            Ok(Point {
                value,
                bias: found.bias,
                variance: found.unbiased_variance,
                helpful: found.helpful_variance,
                noise: 0.0,
                total: found.total,
            })
        }
    }
}

/// The numbers, drawn.
struct Picture<'a> {
    args: &'a BiasVarianceArgs,
    name: &'a str,
    points: &'a [Point],
    data: &'a Data,
}

impl Picture<'_> {
    fn classes(&self) -> bool {
        matches!(self.data.truth, Truth::Classes(_))
    }

    fn table(&self) -> Table {
        let bias = if self.classes() { ">bias" } else { ">bias²" };
        let mut table =
            Table::new(&[&format!(">{}", self.name), bias, ">variance", ">noise", ">total"]);
        for point in self.points {
            let noise = match (self.data.noise, self.classes()) {
                (Some(_), _) => number(point.noise),
                // What variance saves has a sign.
                (None, true) => format!("−{} saved", number(point.helpful)),
                (None, false) => "in the bias".into(),
            };
            let cells = [shown(&point.value), number(point.bias), number(point.variance), noise];
            table.row(cells.into_iter().chain([number(point.total)]));
        }
        table
    }

    fn about(&self) -> String {
        let text = if self.classes() {
            "Bias: samples whose most frequent answer is wrong. Variance: other answers where it is \
             right, which cost, less those where it is wrong, which save."
        } else if self.data.noise.is_some() {
            "Bias²: how far the mean prediction is from the truth. Variance: how far predictions \
             stray from their mean. Their sum and the noise are the error, exactly."
        } else {
            "Bias²: how far the mean prediction is from what was measured, its noise included. \
             Variance: how far predictions stray from their mean; samples drawn with replacement \
             are more alike than new ones would be, so it is a little small."
        };
        text.to_owned()
    }

    fn chart(&self) -> Stack {
        let x: Vec<f64> = self
            .points
            .iter()
            .enumerate()
            .map(|(at, point)| point.value.as_f64().unwrap_or(at as f64 + 1.0))
            .collect();
        let (low, high) = x.iter().fold((f64::MAX, f64::MIN), |(l, h), &x| (l.min(x), h.max(x)));
        let of = |get: fn(&Point) -> f64| self.points.iter().map(get).collect::<Vec<f64>>();
        let mut stack = Stack::new(x.iter().copied());
        if self.data.noise.is_some_and(|noise| noise > 0.0) {
            stack = stack.layer("noise", of(|p| p.noise));
        }
        stack = if self.classes() {
            let stack = stack.layer("bias, less what variance saves", of(|p| p.bias - p.helpful));
            stack.layer("variance", of(|p| p.variance))
        } else {
            let bias = if self.data.noise.is_some() { "bias²" } else { "bias² and noise" };
            stack.layer(bias, of(|p| p.bias)).layer("variance", of(|p| p.variance))
        };
        let total = if self.classes() { "share of errors" } else { "mean squared error" };
        stack = stack.total("total").x_label(self.name).y_label(total);
        stack =
            stack.title(format!("Bias and variance of {} along {}", self.args.model, self.name));
        if low > 0.0 && high / low > 20.0 {
            stack = stack.log_x();
        }
        if self.name == "regularization" {
            stack = stack.falling_x();
        }
        let least =
            (0..x.len()).min_by(|&a, &b| self.points[a].total.total_cmp(&self.points[b].total));
        match least {
            Some(at) => stack.marker(x[at], "least"),
            None => stack,
        }
    }

    fn svg(&self) -> String {
        self.chart().draw(900.0).standalone(Background::Theme)
    }

    fn html(&self) -> String {
        let bias = if self.classes() { "bias" } else { "bias²" };
        let mut columns = vec![
            TableColumn::number(self.name),
            TableColumn::number(bias),
            TableColumn::number("variance"),
        ];
        let last = if self.classes() { "saved by variance" } else { "noise" };
        let three = self.classes() || self.data.noise.is_some();
        if three {
            columns.push(TableColumn::number(last));
        }
        columns.push(TableColumn::number("total"));
        let mut table = gradus_report::PageTable::new(columns);
        let least = best(self.points).map(|point| &point.value);
        for point in self.points {
            let mut cells =
                vec![shown(&point.value).into(), point.bias.into(), point.variance.into()];
            if three {
                cells.push(if self.classes() { point.helpful.into() } else { point.noise.into() });
            }
            cells.push(point.total.into());
            table = if Some(&point.value) == least {
                table.highlighted(cells)
            } else {
                table.row(cells)
            };
        }
        Page::new(format!("Bias and variance of {}", self.args.model))
            .subtitle(format!("{}; {} rounds", self.data.description, self.args.rounds))
            .section("Along the parameter", |s| s.text(self.about()).chart(self.chart()))
            .section("Numbers", |s| s.table(&table))
            .footer("gradus lab biasvariance")
            .to_html()
    }
}
