//! Choosing parameters, over a real model.

use gradus::select::search::{
    Axis, Dependence, Dimension, Distribution, Found, Plan, Random, Search,
};
use gradus_core::estimator::Run;
use gradus_core::progress::Stop;
use gradus_data::Ratings;
use gradus_data::make::RatingsSpec;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

fn data() -> Ratings {
    let spec = RatingsSpec { rank: 3, ..RatingsSpec::new(200, 80, 5000) };
    spec.make(1).unwrap().ratings
}

fn axis(name: &str, values: &[Value]) -> Axis {
    Axis { name: name.into(), values: values.to_vec() }
}

fn search(plan: Plan, warm: bool) -> Search<'static> {
    let fixed = Map::from_iter([
        ("max_iter".to_owned(), json!(15)),
        ("tol".into(), json!(1e-4)),
        ("scaling".into(), json!("count")),
    ]);
    Search {
        model: gradus::find("als").unwrap(),
        fixed,
        axes: vec![
            axis("rank", &[json!(2), json!(4)]),
            axis("regularization", &[json!(0.0005), json!(0.1), json!(5.0)]),
        ],
        plan,
        rows: Dependence::Independent,
        seed: 3,
        warm,
        stop: Stop::new(),
    }
}

fn run(search: &Search<'_>) -> Found {
    search.run(&data(), &|_| {}).unwrap()
}

#[test]
fn random_candidates_are_evaluated_like_those_of_a_grid() {
    let search = search(Plan::Holdout(0.2), false);
    let draw = |name: &str, values: &[Value]| Dimension {
        name: name.into(),
        distribution: Distribution::Choice(values.to_vec()),
    };
    let mut random = Random {
        dimensions: search.axes.iter().map(|axis| draw(&axis.name, &axis.values)).collect(),
        tries: 50,
        seed: 1,
    };
    let done = AtomicUsize::new(0);
    let tell = |_| {
        done.fetch_add(1, Ordering::Relaxed);
    };
    // With all six drawn it is the grid in another order.
    let mut drawn = search.run_random(&random, &data(), &tell).unwrap();
    assert_eq!(search.fits_random(&random).unwrap(), done.into_inner());
    let mut grid = run(&search);
    for found in [&mut drawn, &mut grid] {
        found.candidates.sort_by_key(|c| Value::Object(c.params.clone()).to_string());
    }
    assert_eq!(drawn.candidates, grid.candidates);
    random.dimensions[1].distribution = Distribution::LogUniform(0.01, 1.0);
    random.tries = 4;
    let found = search.run_random(&random, &data(), &|_| {}).unwrap();
    assert_eq!(found.candidates.len(), 4);
    let penalty = |c: &Map<String, Value>| c["regularization"].as_f64().unwrap();
    assert!(found.candidates.iter().all(|c| (0.01..=1.0).contains(&penalty(&c.params))));
}

#[test]
fn the_sensible_penalty_wins_and_the_lead_is_sure() {
    for plan in [Plan::Folds(3), Plan::Holdout(0.2)] {
        let done = AtomicUsize::new(0);
        let search = search(plan, false);
        let found = search
            .run(&data(), &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        assert_eq!(found.candidates.len(), 6);
        assert_eq!(done.into_inner(), search.fits());
        assert_eq!(found.candidates[0].params["regularization"], 0.1);
        let scores: Vec<f64> = found.candidates.iter().map(|c| c.score.value).collect();
        assert!(scores.is_sorted() && scores[5] > scores[0] + 0.05, "{scores:?}");
        assert!(found.candidates.iter().all(|c| c.score.error > 0.0 && c.score.error < 0.1));
        let lead = found.lead.unwrap();
        assert!((lead.difference - (scores[1] - scores[0])).abs() < 1e-12);
    }
}

#[test]
fn threads_do_not_matter_and_neither_does_a_refit() {
    let whole = run(&search(Plan::Folds(2), true));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| run(&search(Plan::Folds(2), true))), whole);
}

#[test]
fn a_warm_start_takes_fewer_iterations_to_the_same_winner() {
    let (cold, warm) = (run(&search(Plan::Folds(2), false)), run(&search(Plan::Folds(2), true)));
    for found in [&cold, &warm] {
        assert_eq!(found.candidates[0].params["regularization"], 0.1);
    }
    // From random starts to convergence, for comparison.
    let mut alone = 0.0;
    for candidate in &warm.candidates {
        let mut single = search(Plan::Folds(2), true);
        single.axes.clear();
        single.fixed = candidate.params.clone();
        alone += run(&single).candidates[0].iterations;
    }
    let chained: f64 = warm.candidates.iter().map(|c| c.iterations).sum();
    assert!(chained < alone, "{chained} iterations, {alone} from random starts");
}

#[test]
fn the_winner_is_refitted_for_as_long_as_was_best() {
    let search = search(Plan::Folds(2), false);
    let found = run(&search);
    let fitted = search.refit(&found, &data(), &Run::default()).unwrap();
    assert_eq!(fitted.params["rank"], found.candidates[0].params["rank"]);
    assert_eq!(fitted.params["max_iter"], found.candidates[0].iterations.round() as u64);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |search: &Search<'_>| search.run(&data(), &|_| {}).unwrap_err().to_string();
    assert!(refused(&search(Plan::Folds(1), false)).contains("from 2 to 1000"));
    assert!(refused(&search(Plan::Holdout(1.5), false)).contains("less than 1"));
    let mut empty = search(Plan::Folds(2), false);
    empty.axes[0].values.clear();
    assert!(refused(&empty).contains("nothing to try"));
    let mut wrong = search(Plan::Folds(2), false);
    wrong.axes[0].values[0] = json!(0);
    assert!(refused(&wrong).contains("rank"));
    let stopped = search(Plan::Folds(2), false);
    stopped.stop.request();
    assert!(refused(&stopped).contains("interrupted"));
}
