// Several arrays share the index of a row or column.
#![allow(clippy::needless_range_loop)]

use super::*;
use crate::testing::{solve_dense, weighted};
use gradus_base::random::Stream;
use gradus_core::estimator::{Fit, Job};
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id, Ids};

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(70, 40, 900) }.make(seed).unwrap().ratings
}

/// Two users like items 0 and 1, one likes 1 and 2.
fn three_users() -> Ratings {
    let rows = [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0), (2, 1, 1.0), (2, 2, 4.0)];
    Ratings::from_triplets(rows.map(|(u, i, v)| (Id::Int(u), Id::Int(i), v))).unwrap()
}

#[test]
fn the_mean_is_the_mean() {
    let fitted = Mean::new().fit(&three_users()).unwrap();
    assert_eq!(fitted.predict(&[(Some(0), Some(0)), (None, None)]), [1.5, 1.5]);
    assert_eq!(fitted.report.objective, 5.0 * 0.25 + 2.5 * 2.5);
    let best = fitted.top(&Recipient::User(0), 5, &Filter::default()).unwrap();
    assert_eq!((best.len(), best[0].item, best[0].score), (1, 2, 1.5));
    assert!(fitted.similar_items(0, 3).is_err());
}

#[test]
fn biases_solve_the_whole_system_at_once() {
    for data in [made(1), weighted(&made(2), |n| (n % 4) as f32 * 0.5)] {
        for damping in [[0.5, 0.5], [5.0, 2.0], [100.0, 100.0], [3.0, 40.0]] {
            let (n, m) = (data.n_users(), data.n_items());
            let mean = n + m;
            let mut a = vec![vec![0.0; n + m + 1]; n + m + 1];
            let mut b = vec![0.0; n + m + 1];
            for (at, row) in a.iter_mut().enumerate().take(mean) {
                row[at] = damping[usize::from(at >= n)];
            }
            for r in data.iter() {
                let (u, i, w) = (r.user as usize, n + r.item as usize, f64::from(r.weight));
                for x in [u, i, mean] {
                    for y in [u, i, mean] {
                        a[x][y] += w;
                    }
                    b[x] += w * f64::from(r.value);
                }
            }
            let exact = solve_dense(a, b);
            let (found, at_rest) = bias::solve(&data, damping, &Stop::new()).unwrap();
            assert!(at_rest);
            assert!((found.mean - exact[mean]).abs() < 2e-5, "{damping:?}");
            for (got, want) in found.users.iter().chain(&found.items).zip(&exact) {
                assert!((f64::from(*got) - want).abs() < 2e-5, "{damping:?}: {got} for {want}");
            }
        }
    }
}

/// Ratings of the model itself: biases of the given variances, and noise.
fn of_components(users: f64, items: f64, noise: f64) -> Ratings {
    let (n, m) = (600, 300);
    let mut stream = Stream::new(4, "test.components", 0);
    let of_user: Vec<f64> = (0..n).map(|_| users * stream.normal()).collect();
    let of_item: Vec<f64> = (0..m).map(|_| items * stream.normal()).collect();
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    for (u, of_user) in of_user.iter().enumerate() {
        for (i, of_item) in of_item.iter().enumerate() {
            if !stream.chance(0.05) {
                continue;
            }
            rows.push(u as u32);
            columns.push(i as u32);
            values.push((3.0 + of_user + of_item + noise * stream.normal()) as f32);
        }
    }
    let ids = (Ids::range(n), Ids::range(m));
    Ratings::from_indexed(ids, (&rows, &columns), &values, None, Duplicates::Error).unwrap()
}

#[test]
fn variance_components_are_recovered_in_any_unit() {
    let data = of_components(0.5, 1.0, 2.0);
    let found = Components::estimate(&data, true, &Stop::new());
    assert!((found.noise - 2.0).abs() < 0.04, "{found:?}");
    assert!((found.damping[0] / 16.0).ln().abs() < 0.25, "{found:?}");
    assert!((found.damping[1] / 4.0).ln().abs() < 0.25, "{found:?}");
    let scaled = data.map_values(|rating| 20.0 * rating.value - 700.0);
    let of_scaled = Components::estimate(&scaled, true, &Stop::new());
    assert!((of_scaled.noise / found.noise / 20.0 - 1.0).abs() < 1e-4, "{of_scaled:?}");
    for (a, b) in found.damping.iter().zip(of_scaled.damping) {
        assert!((a / b - 1.0).abs() < 1e-3, "{found:?} and {of_scaled:?}");
    }
}

#[test]
fn variance_components_of_data_without_noise_or_biases_are_finite() {
    for (users, items, noise) in [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0)] {
        let found = Components::estimate(&of_components(users, items, noise), true, &Stop::new());
        assert!(found.noise > 0.0 && found.noise.is_finite(), "{found:?}");
        assert!(found.damping.iter().all(|d| d.is_finite() && *d > 0.0), "{found:?}");
    }
}

#[test]
fn biases_without_damping_and_rows_without_ratings_stay_finite() {
    let ids = (Ids::range(3), Ids::range(3));
    let data = Ratings::from_indexed(ids, (&[0, 1], &[0, 1]), &[1.0, 5.0], None, Duplicates::Error)
        .unwrap();
    let fitted = Bias::new().damping(0.0).fit(&data).unwrap();
    let predicted = fitted.predict(&[(Some(0), Some(0)), (Some(1), Some(1)), (Some(2), Some(2))]);
    for (got, want) in predicted.iter().zip([1.0, 5.0, 3.0]) {
        assert!((got - want).abs() < 1e-5, "{predicted:?}");
    }
}

#[test]
fn a_new_user_has_the_bias_of_the_same_user_in_training() {
    let data = made(3);
    let fitted = Bias::new().fit(&data).unwrap();
    let all = Filter { include_seen: true, ..Filter::default() };
    for user in [0u32, 20, 69] {
        let (items, values) = data.by_user().row(user as usize);
        let profile = Profile {
            items: items.iter().rev().copied().collect(),
            values: values.iter().rev().copied().collect(),
        };
        assert_eq!(
            fitted.top(&Recipient::User(user), 40, &all).unwrap(),
            fitted.top(&Recipient::Profile(&profile), 40, &all).unwrap()
        );
    }
}

#[test]
fn popularity_counts_what_it_says() {
    let with = |measure| Popular::new().measure(measure).fit(&three_users()).unwrap();
    let all = [(None, Some(0)), (None, Some(1)), (Some(0), Some(2)), (Some(0), None)];
    assert_eq!(with(PopularityMeasure::Count).predict(&all), [2.0, 3.0, 1.0, 0.0]);
    assert_eq!(with(PopularityMeasure::Sum).predict(&all), [2.0, 3.0, 4.0, 0.0]);
    let shares = with(PopularityMeasure::Share);
    assert_eq!(shares.predict(&all), [2.0 / 6.0, 0.5, 1.0 / 6.0, 0.0]);
    let entropy: f64 = [1.0 / 3.0, 0.5, 1.0 / 6.0].iter().map(|p: &f64| -p * p.ln()).sum();
    assert!((shares.report.objective - entropy).abs() < 1e-12);
    let best = shares.top(&Recipient::User(2), 9, &Filter::default()).unwrap();
    assert_eq!(best.iter().map(|s| s.item).collect::<Vec<_>>(), [0]);
}

/// Similarities once more: dense, by the formulas, in double precision.
fn dense_similarities(data: &Ratings, params: &Neighbours) -> Vec<Vec<f64>> {
    let (n, m) = (data.n_users(), data.n_items());
    let mut x = vec![vec![0.0; m]; n];
    let mut count = vec![0.0f64; n];
    for r in data.iter() {
        x[r.user as usize][r.item as usize] = f64::from(r.value) * f64::from(r.weight);
        count[r.user as usize] += if r.weight > 0.0 { 1.0 } else { 0.0 };
    }
    let column = |x: &[Vec<f64>], i: usize| -> Vec<f64> { x.iter().map(|row| row[i]).collect() };
    let sums: Vec<f64> = (0..m).map(|i| column(&x, i).iter().sum()).collect();
    let average = sums.iter().sum::<f64>() / m as f64;
    let (k1, b) = (f64::from(params.k1), f64::from(params.b));
    for u in 0..n {
        let idf = (1.0 + m as f64).ln() - (1.0 + count[u]).ln();
        for i in 0..m {
            let s = x[u][i];
            x[u][i] = match params.similarity {
                Similarity::Cosine => s,
                Similarity::Tfidf => s.sqrt() * idf,
                Similarity::Bm25 if s == 0.0 => 0.0,
                Similarity::Bm25 => {
                    s * (k1 + 1.0) / (k1 * (1.0 - b + b * sums[i] / average) + s) * idf
                }
            };
        }
    }
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    (0..m)
        .map(|i| {
            (0..m)
                .map(|j| {
                    let (a, b) = (column(&x, i), column(&x, j));
                    let scale = match params.similarity {
                        Similarity::Bm25 => 1.0,
                        _ => (dot(&a, &a) * dot(&b, &b)).sqrt(),
                    };
                    if i == j || scale == 0.0 { 0.0 } else { dot(&a, &b) / scale }
                })
                .collect()
        })
        .collect()
}

#[test]
fn neighbours_agree_with_dense_formulas() {
    for data in [made(4), weighted(&made(5), |n| (n % 4) as f32 * 0.5)] {
        for similarity in [Similarity::Cosine, Similarity::Tfidf, Similarity::Bm25] {
            for kept in [3, 10, 1000] {
                let params = Neighbours::new().similarity(similarity).neighbours(kept).k1(0.7);
                let mut exact = dense_similarities(&data, &params);
                let (mut total, mut left) = (0.0, 0.0);
                for row in &mut exact {
                    let mut sorted = row.clone();
                    sorted.sort_by(|a, b| b.total_cmp(a));
                    let least = sorted.get(kept - 1).copied().unwrap_or(0.0);
                    total += row.iter().sum::<f64>();
                    row.iter_mut().filter(|s| **s < least - 1e-12).for_each(|s| {
                        left += *s;
                        *s = 0.0;
                    });
                }
                let fitted = params.fit(&data).unwrap();
                assert!((fitted.report.objective - left / total).abs() < 1e-5);
                for user in 0..data.n_users() {
                    let mut scores = vec![0.0; data.n_items()];
                    for at in data.by_user().range(user) {
                        let weight = data.weights_by_user().map_or(1.0, |w| w[at]);
                        let strength = f64::from(data.by_user().values()[at] * weight);
                        let rated = data.by_user().indices()[at] as usize;
                        scores
                            .iter_mut()
                            .zip(&exact)
                            .for_each(|(s, row)| *s += strength * row[rated]);
                    }
                    let pairs: Vec<_> =
                        (0..40).map(|item| (Some(user as u32), Some(item))).collect();
                    let all = Filter { include_seen: true, ..Filter::default() };
                    let top = fitted.top(&Recipient::User(user as u32), 40, &all).unwrap();
                    for (item, predicted) in fitted.predict(&pairs).into_iter().enumerate() {
                        let ranked = top.iter().find(|s| s.item as usize == item).unwrap().score;
                        for got in [predicted, ranked] {
                            let off = (f64::from(got) - scores[item]).abs();
                            assert!(off < 1e-4 * (1.0 + scores[item]), "{params:?} {user} {item}");
                        }
                    }
                }
                for item in [0u32, 17, 39] {
                    let near = fitted.similar_items(item, 5).unwrap();
                    let row = &exact[item as usize];
                    let best = row.iter().copied().fold(0.0, f64::max);
                    assert!((f64::from(near[0].score) - best).abs() < 1e-5 * (1.0 + best));
                }
            }
        }
    }
}

#[test]
fn an_item_nobody_shares_has_no_neighbours() {
    let rows = [(0, 0, 1.0), (0, 1, 1.0), (1, 2, 1.0), (2, 0, 0.0), (2, 2, 1.0)];
    let data = Ratings::from_triplets(rows.map(|(u, i, v)| (Id::Int(u), Id::Int(i), v))).unwrap();
    let fitted = Neighbours::new().fit(&data).unwrap();
    assert_eq!(fitted.similar_items(2, 5).unwrap(), []);
    assert_eq!(fitted.similar_items(0, 5).unwrap().len(), 1);
    let best = fitted.top(&Recipient::User(1), 5, &Filter::default()).unwrap();
    assert!(best.iter().all(|s| s.score == 0.0) && best.len() == 2);
}

#[test]
fn neighbours_beat_popularity_where_tastes_differ() {
    // Two camps that share nothing, each choosing at random within its half of the items.
    let mut rows = Vec::new();
    let mut stream = gradus_base::random::Stream::new(1, "test.camps", 0);
    for user in 0..80i64 {
        for item in stream.sample(30, 12).unwrap() {
            rows.push((Id::Int(user), Id::Int(item as i64 + 30 * (user % 2)), 1.0));
        }
    }
    let data = Ratings::from_triplets(rows).unwrap();
    let (train, held_out) = data.partition(|at| at % 4 != 0);
    let job = Job::default().validation(&held_out);
    for similarity in [Similarity::Cosine, Similarity::Tfidf, Similarity::Bm25] {
        let report = Neighbours::new().similarity(similarity).fit_job(&train, &job).unwrap().report;
        assert!(report.higher_is_better && report.metric == "ndcg@20");
        let popular = report.baselines.iter().find(|b| b.name == "most popular").unwrap().score;
        assert!(report.validation.unwrap() > 1.3 * popular, "{report:?}");
    }
    let popular = Popular::new().fit_job(&train, &job).unwrap().report;
    assert_eq!(popular.validation.unwrap(), popular.baselines[1].score);
}

#[test]
fn what_cannot_be_learned_from_is_refused_by_name() {
    let negative = Ratings::from_triplets([(Id::Int(0), Id::Int(0), -1.5)]).unwrap();
    for error in [
        Popular::new().fit(&negative).unwrap_err().to_string(),
        Neighbours::new().fit(&negative).unwrap_err().to_string(),
    ] {
        assert!(error.contains("-1.5 is negative"), "{error}");
    }
    let huge = Ratings::from_triplets([0, 1].map(|i| (Id::Int(0), Id::Int(i), 3e38))).unwrap();
    let error = Neighbours::new().fit(&huge).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
    let forgetful = Bias::new().keep_history(false).fit(&made(6)).unwrap();
    let error = forgetful.top(&Recipient::User(0), 3, &Filter::default()).unwrap_err().to_string();
    assert!(error.contains("keep_history"), "{error}");
    assert!(forgetful.explain(&Recipient::User(0), 1).is_err());
    let all = Filter { include_seen: true, ..Filter::default() };
    assert!(forgetful.top(&Recipient::User(0), 3, &all).is_ok());
    let stopped = Job::default();
    stopped.stop.request();
    let error = Neighbours::new().fit_job(&made(7), &stopped).unwrap_err().to_string();
    assert!(error.contains("interrupted"), "{error}");
}

#[test]
fn a_neighbour_of_weight_zero_is_as_good_as_absent() {
    let data = made(12);
    let marked = weighted(&data, |n| (n % 4) as f32 * 0.5);
    let kept: Vec<f32> = marked.iter().map(|rating| rating.weight).collect();
    let absent = marked.filter(|at| kept[at] > 0.0);
    assert!(absent.len() < marked.len());
    let pairs: Vec<_> = data.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    for similarity in [Similarity::Cosine, Similarity::Tfidf, Similarity::Bm25] {
        let params = Neighbours::new().similarity(similarity);
        let [a, b] = [&marked, &absent].map(|data| params.fit(data).unwrap().predict(&pairs));
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-4, "{similarity:?}: {a} and {b}");
        }
    }
}
