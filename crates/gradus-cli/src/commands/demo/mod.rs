//! `gradus demo`: the whole road, without data of one's own.

mod recovery;

use super::recommend::explained;
use crate::output::{Context, Failure, Outcome, Table, grouped, seconds};
use crate::outputs::{self, FilePlan, ForceArg};
use crate::parameters::arguments;
use crate::progress::{Bar, stop_on_ctrl_c};
use clap::{ArgMatches, Args, Command};
use gradus::page::{Tested, page};
use gradus::prelude::*;
use gradus::report::{Bars, Density, Line, Page};
use gradus_app::evaluate::baselines;
use gradus_app::recommend::{RecommendRequest, Recommender};
use gradus_data::make::{MadeRatings, RatingsSpec, genre_name};
use gradus_data::split::holdout;
use gradus_file::output::FileKind;
use gradus_metrics::rating_errors;
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

/// The ranks of the curve "error against rank".
const RANKS: [usize; 6] = [1, 2, 4, 8, 16, 32];

#[derive(Args)]
struct DemoArgs {
    /// Folder for the model and the report
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,

    /// Number of users
    #[arg(long, value_name = "N", default_value_t = 3000)]
    users: usize,

    /// Number of items
    #[arg(long, value_name = "N", default_value_t = 1000)]
    items: usize,

    /// Number of ratings
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    count: usize,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    force: ForceArg,
}

pub fn command() -> Command {
    DemoArgs::augment_args(Command::new("demo").about(
        "Make a catalogue of films and ratings, train, recommend, and draw a report: no data needed",
    ))
    .after_help(outputs::RULE)
}

pub fn run(matches: &ArgMatches, context: Context) -> Outcome {
    let args = arguments::<DemoArgs>(matches)?;
    let started = Instant::now();
    std::fs::create_dir_all(&args.output).map_err(|e| gradus::Error::io(&args.output, e))?;
    let (model_file, report_file) =
        (args.output.join("demo.gradus"), args.output.join("report.html"));
    let mut plan = FilePlan::new(args.force, []);
    let model_output = plan.output("--output", &model_file, FileKind::Model)?;
    let report_output = plan.output("--output", &report_file, FileKind::Page)?;

    let made = RatingsSpec::new(args.users, args.items, args.count).make(args.seed)?;
    // One part tells when to stop, another, which nothing has seen, how good it is.
    let (rest, test) = holdout(&made.ratings, 0.1, args.seed)?;
    let (train, watched) = holdout(&rest, 0.05, args.seed)?;
    context.remark(format_args!(
        "Made {} ratings of {} films by {} users, from {} planted factors, biases and noise.",
        grouped(args.count),
        grouped(args.items),
        grouped(args.users),
        made.truth.item_factors.n_cols()
    ));

    let params = Als { seed: args.seed, ..Als::default() };
    let bar = Bar::new(context.quiet || context.json);
    let job = Job::default().validation(&watched).observer(&bar).stop(stop_on_ctrl_c());
    let fitted = params.fit_job(&train, &job)?;
    if fitted.report.stop_reason == StopReason::Interrupted {
        return Err(Failure::Interrupted);
    }
    let pairs: Vec<_> = test.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    let truth: Vec<f32> = test.iter().map(|r| r.value).collect();
    let predicted = fitted.predict(&pairs);
    let errors = rating_errors(&truth, &predicted, None)?;
    if !context.json {
        let mut table = Table::new(&["on ratings it has not seen", ">RMSE"]);
        for baseline in baselines(&train, &pairs, &truth)? {
            table.row([baseline.name.to_owned(), format!("{:.4}", baseline.errors.rmse)]);
        }
        table.row(["als".to_owned(), format!("{:.4}", errors.rmse)]);
        table.row(["the noise itself".to_owned(), format!("{:.4}", best_possible(&made, &test))]);
        context.say(format_args!(
            "\nTrained `als` ({} iterations, {}).\n\n{table}\n",
            fitted.report.iterations,
            seconds(fitted.report.seconds)
        ))?;
    }

    let user = typical_user(&train);
    let name = fitted.users().get(user as usize).to_string();
    let request =
        RecommendRequest { user: Some(name.clone()), n: 10, explain: true, ..Default::default() };
    let recommender = Recommender { model: &fitted.model, titles: None };
    let found = recommender.recommend(&request, &Filter::default())?.recommendations;
    if !context.json {
        let mut table = Table::new(&[">", &format!("for user {name}"), "genre", ">score"]);
        for (place, scored) in found.iter().enumerate() {
            let item = recommender.model.items().find(scored.item).unwrap_or_default();
            table.row([
                (place + 1).to_string(),
                scored.item.to_string(),
                genre_name(made.truth.genre[item as usize] as usize).to_owned(),
                format!("{:.3}", scored.score),
            ]);
        }
        context.say(table)?;
        if let Some(first) = found.first()
            && let Some(reason) = &first.explanation
        {
            context.say(explained(first, reason))?;
        }
    }
    let found = json!(found);

    let (by_rank, at_planted_rank) = error_by_rank(&params, &train, &watched, &made, context)?;
    let recovered = at_planted_rank
        .map(|fitted| recovery::canonical_correlations(&fitted, &made, &train))
        .unwrap_or_default();
    let rmse = errors.rmse;
    let noise_free: Vec<f32> =
        test.iter().map(|r| made.truth.value(r.user as usize, r.item as usize) as f32).collect();
    let fitted = fitted.into_any();
    let tested = Tested::new(&fitted, "the demo", &test, true)?;
    let page = page(&fitted, "gradus demo", Some(&tested));
    let page = with_truth(page, &by_rank, &recovered, &predicted, &noise_free);
    fitted.save_to(&model_output)?;
    report_output.write(|file| file.write_all(page.to_html().as_bytes()))?;

    if context.json {
        let model = fitted.recommend()?;
        return context.json(&json!({
            "model": model_file.display().to_string(),
            "page": report_file.display().to_string(),
            "rmse": rmse,
            "baselines": fitted.report.baselines,
            "user": model.users().get(user as usize),
            "recommendations": found,
            "recovered": recovered,
            "report": fitted.report.to_json(),
        }));
    }
    context.say(format_args!(
        "\nWrote {} and {} in {}. Now try\n  gradus recommend {} --user {name} -n 5 --explain\n  gradus info {}",
        report_file.display(),
        model_file.display(),
        seconds(started.elapsed().as_secs_f64()),
        model_file.display(),
        model_file.display(),
    ))
}

/// The error that remains when the planted truth itself predicts: noise and rounding.
fn best_possible(made: &MadeRatings, test: &Ratings) -> f64 {
    let squares: f64 = test
        .iter()
        .map(|r| {
            let truth = made.truth.value(r.user as usize, r.item as usize).clamp(0.5, 5.0);
            (truth - f64::from(r.value)).powi(2)
        })
        .sum();
    (squares / test.len() as f64).sqrt()
}

/// A user with some thirty ratings: enough to know them, few enough to explain.
fn typical_user(train: &Ratings) -> u32 {
    let count = |user: &u32| train.by_user().range(*user as usize).len();
    (0..train.n_users() as u32).min_by_key(|user| count(user).abs_diff(30)).unwrap_or(0)
}

/// Ranks and the held-out error at each.
type Curve = Vec<(usize, f64)>;

/// Held-out error at several ranks, other parameters equal; and the model at the planted rank.
fn error_by_rank(
    params: &Als,
    train: &Ratings,
    watched: &Ratings,
    made: &MadeRatings,
    context: Context,
) -> Outcome<(Curve, Option<Fitted<Als>>)> {
    context.remark("\nTraining at other ranks for the report …");
    let (mut curve, mut at_planted_rank) = (Vec::new(), None);
    for rank in RANKS {
        let fitted = Als { rank: Some(rank), ..params.clone() }
            .fit_job(train, &Job::default().validation(watched).stop(stop_on_ctrl_c()))?;
        if fitted.report.stop_reason == StopReason::Interrupted {
            return Err(Failure::Interrupted);
        }
        curve.push((rank, fitted.report.validation.unwrap_or(f64::NAN)));
        if rank == made.truth.item_factors.n_cols() {
            at_planted_rank = Some(fitted);
        }
    }
    Ok((curve, at_planted_rank))
}

/// The sections that only planted data can have.
fn with_truth(
    page: Page,
    by_rank: &[(usize, f64)],
    recovered: &[f64],
    predicted: &[f32],
    noise_free: &[f32],
) -> Page {
    let points = by_rank.iter().map(|&(rank, error)| (rank as f64, error));
    let curve = Line::new()
        .title("Held-out RMSE against rank")
        .x_label("rank")
        .y_label("RMSE")
        .series("", points)
        .markers();
    let names = (1..=recovered.len()).map(|at| format!("direction {at}"));
    let bars = Bars::new(names.zip(recovered.iter().copied())).decimals(2).x_label("correlation");
    let cloud = Density::with_diagonal(noise_free, predicted)
        .x_label("planted value, without noise")
        .y_label("predicted");
    page.section("Error against rank", |section| {
        section
            .text("The same data at other ranks. The penalty keeps a rank that is too large from doing harm.")
            .chart(curve)
    })
    .section("Recovery of the planted factors", |section| {
        section
            .text("The ratings were made from planted factors. Left: the canonical correlations between the planted item factors and those learned at the same rank, over items with 30 ratings or more; 1 is a direction found exactly, 0 one that was missed. Right: predictions for held-out pairs against the planted value before noise and rounding.")
            .columns(|left| left.chart(bars), |right| right.chart(cloud))
    })
}
