//! One protocol for rankings: the validation of a fit, an evaluation and a search agree.

use gradus::select::search::{Dependence, Plan, Search};
use gradus::select::{RankingOptions, evaluate_ranking};
use gradus_core::estimator::Run;
use gradus_core::progress::Stop;
use gradus_data::make::RatingsSpec;
use gradus_data::split::holdout;
use gradus_data::{Duplicates, Ratings, RatingsBuilder};
use serde_json::{Map, json};

/// Few ratings of many items, so that a split leaves items and users without any in training; some
/// are 0.
fn sparse() -> Ratings {
    let made = RatingsSpec::new(70, 120, 500).make(5).unwrap().ratings;
    made.map_values(|r| if (r.user + r.item) % 6 == 0 { 0.0 } else { 1.0 })
}

/// The same ratings, with the ids that occur only: as if they had been read from a file.
fn alone(ratings: &Ratings) -> Ratings {
    let mut builder = RatingsBuilder::new();
    for r in ratings.iter() {
        let (user, item) =
            (ratings.users().get(r.user as usize), ratings.items().get(r.item as usize));
        builder.push(user, item, r.value).unwrap();
    }
    builder.finish(Duplicates::Error).unwrap()
}

fn params(name: &str) -> Map<String, serde_json::Value> {
    let model = gradus::find(name).unwrap();
    let few = |name: &str, value: u64| {
        model.specs().iter().any(|spec| spec.name == name).then(|| (name.to_owned(), json!(value)))
    };
    [few("rank", 4), few("max_iter", 4)].into_iter().flatten().collect()
}

#[test]
fn validation_evaluation_and_search_give_one_score() {
    let data = sparse();
    let (train, held_out) = holdout(&data, 0.3, 3).unwrap();
    let absent =
        (0..train.n_items()).filter(|&item| train.by_item().range(item).is_empty()).count();
    let gone = (0..train.n_users()).filter(|&user| train.by_user().range(user).is_empty()).count();
    assert!(absent > 3 && gone > 0, "{absent} {gone}: nothing to tell protocols apart by");
    let options = RankingOptions { at: vec![20], ..RankingOptions::default() };
    let implicit = gradus::models().iter().filter(|model| model.traits().is_implicit());
    for model in implicit {
        let (name, params) = (model.name(), params(model.name()));
        let any = (train.clone(), held_out.clone());
        let fitted = model.fit(&params, &any.0, Some(&any.1), &Run::default()).unwrap();
        let validation = fitted.report.validation.unwrap();
        let report = evaluate_ranking(fitted.recommend().unwrap(), &held_out, &options).unwrap();
        let ndcg = report.at[0].ndcg.mean;
        assert!(
            (ndcg - validation).abs() < 1e-9,
            "{name}: {ndcg} evaluated, {validation} in the fit"
        );
        // With the data in files of their own, ids that training does not have are not known at all.
        let apart =
            evaluate_ranking(fitted.recommend().unwrap(), &alone(&held_out), &options).unwrap();
        assert_eq!((apart.at, apart.users), (report.at.clone(), report.users), "{name}");
        assert_eq!(report.items, train.n_items() - absent, "{name}");
        // A search that holds the same part out.
        let search = Search {
            model: *model,
            fixed: params.clone(),
            axes: Vec::new(),
            plan: Plan::Holdout(0.3),
            rows: Dependence::Independent,
            seed: 3,
            warm: false,
            stop: Stop::new(),
        };
        let found = search.run(&data.clone(), &|_| {}).unwrap();
        let score = found.candidates[0].score;
        assert!((score.value - validation).abs() < 1e-9, "{name}: {} in the search", score.value);
        assert!((score.error / report.at[0].ndcg.standard_error - 1.0).abs() < 1e-6, "{name}");
    }
}

#[test]
fn models_of_the_part_alone_get_the_same_score() {
    // These do not depend on the order of ids, so they are the same model.
    let (train, held_out) = holdout(&sparse(), 0.3, 3).unwrap();
    let (alone, held_alone) = (alone(&train), alone(&held_out));
    assert!(alone.n_items() < train.n_items());
    for name in ["popular", "neighbours"] {
        let model = gradus::find(name).unwrap();
        let score = |train: &Ratings, held_out: &Ratings| {
            let any = (train.clone(), held_out.clone());
            let fitted = model.fit(&Map::new(), &any.0, Some(&any.1), &Run::default()).unwrap();
            (fitted.report.validation.unwrap(), fitted.report.baselines)
        };
        let (whole, part) = (score(&train, &held_out), score(&alone, &held_alone));
        assert!((whole.0 - part.0).abs() < 1e-9, "{name}: {} and {}", whole.0, part.0);
        for (a, b) in whole.1.iter().zip(&part.1) {
            assert!((a.score - b.score).abs() < 1e-9, "{name}: {a:?} {b:?}");
        }
    }
}

#[test]
fn held_out_zeros_and_weights_of_0_are_not_relevant() {
    let data = sparse();
    let (train, held_out) = holdout(&data, 0.3, 3).unwrap();
    let positive = held_out.filter(|at| held_out.by_user().values()[at] > 0.0);
    let model = gradus::find("popular").unwrap();
    let fitted = model.fit(&Map::new(), &train, None, &Run::default()).unwrap();
    let of = |test: &Ratings| {
        let report =
            evaluate_ranking(fitted.recommend().unwrap(), test, &RankingOptions::default())
                .unwrap();
        (report.at, report.relevant)
    };
    assert!(positive.len() < held_out.len());
    assert_eq!(of(&held_out), of(&positive));
    // The same by weights.
    let mut builder = RatingsBuilder::new();
    for r in held_out.iter() {
        let (user, item) =
            (held_out.users().get(r.user as usize), held_out.items().get(r.item as usize));
        builder.push_weighted(user, item, 1.0, r.value).unwrap();
    }
    assert_eq!(of(&builder.finish(Duplicates::Error).unwrap()), of(&positive));
}

#[test]
fn iterations_are_compared_on_a_sample_and_the_final_score_is_over_all_users() {
    let data = RatingsSpec::new(1600, 2500, 14_000).make(2).unwrap().ratings;
    let (train, held_out) = holdout(&data, 0.3, 1).unwrap();
    let any = (train, held_out.clone());
    let options = RankingOptions { at: vec![20], ..RankingOptions::default() };
    for name in ["ials", "bpr", "svd"] {
        let model = gradus::find(name).unwrap();
        let fit = || model.fit(&params(name), &any.0, Some(&any.1), &Run::default()).unwrap();
        let fitted = fit();
        let report = &fitted.report;
        let all = evaluate_ranking(fitted.recommend().unwrap(), &held_out, &options).unwrap();
        assert!(all.users > 1000, "{name}: {} users, too few for a sample", all.users);
        let note = format!("1000 of {} users", all.users);
        assert!(report.notes.iter().any(|said| said.contains(&note)), "{name}: {:?}", report.notes);
        let (kept, traced) = (report.validation.unwrap(), report.trace[report.best].validation);
        assert!((kept - all.at[0].ndcg.mean).abs() < 1e-9, "{name}: {kept} {:?}", all.at[0].ndcg);
        assert!(traced.unwrap() != kept, "{name}");
        // On any number of threads.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(fit).to_bytes().unwrap(), fitted.to_bytes().unwrap(), "{name}");
    }
}
