use super::*;
use crate::catalogue::Catalogue;
use gradus_core::recommend::{Filter, Profile, Recipient, Recommend};
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Id};
use gradus_kernel::linalg;

fn made(seed: u64) -> Ratings {
    RatingsSpec { rank: 3, ..RatingsSpec::new(70, 50, 1200) }.make(seed).unwrap().ratings
}

fn given(rank: usize, low_pass: f32, sharpening: f32) -> Spectral {
    let filter = Spectral::new().rank(rank).low_pass(low_pass).sharpening(sharpening);
    filter.popularity(0.0).user_exponent(0.3).item_exponent(0.5)
}

fn product(n: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    linalg::product(a.len() / n, n, b.len() / n, a, b)
}

/// The scores of all users by dense matrices, with the eigenvectors of `R̃ᵀR̃`.
fn oracle(data: &Ratings, params: &Spectral) -> Vec<f64> {
    let (n, m) = (data.n_items(), data.n_users());
    let mut x = vec![0.0; m * n];
    for r in data.iter() {
        x[r.user as usize * n + r.item as usize] = f64::from(params.strength.of(r.value, r.weight));
    }
    let [a, b, gain] = [params.user_exponent, params.item_exponent, params.popularity]
        .map(|exponent| f64::from(exponent.unwrap()));
    let of_users: Vec<f64> =
        x.chunks_exact(n).map(|row| row.iter().sum::<f64>().powf(-a)).collect();
    let degrees: Vec<f64> = (0..n).map(|j| x.iter().skip(j).step_by(n).sum()).collect();
    let mut blur = vec![0.0; n * n];
    for (user, row) in x.chunks_exact(n).enumerate() {
        let scaled: Vec<f64> =
            row.iter().zip(&degrees).map(|(x, d)| x * of_users[user] * d.powf(-b)).collect();
        for i in 0..n {
            for j in 0..n {
                blur[i * n + j] += scaled[i] * scaled[j];
            }
        }
    }
    let eigen = linalg::symmetric_eigen(n, &blur).unwrap();
    let largest = eigen.values[n - 1];
    blur.iter_mut().for_each(|x| *x /= largest);
    let rank = params.rank.unwrap();
    let mut low_pass = vec![0.0; n * n];
    for vector in eigen.vectors.chunks_exact(n).rev().take(rank) {
        for i in 0..n {
            for j in 0..n {
                low_pass[i * n + j] +=
                    degrees[i].powf(-b) * vector[i] * vector[j] * degrees[j].powf(b);
            }
        }
    }
    let alpha = f64::from(params.low_pass.unwrap());
    let filter: Vec<f64> = blur.iter().zip(&low_pass).map(|(p, l)| p + alpha * l).collect();
    let start = product(n, &x, &filter);
    // A step of Runge and Kutta's method as it is written: four slopes.
    let time = f64::from(params.sharpening.unwrap());
    let slope = |y: &[f64]| -> Vec<f64> { product(n, y, &blur).iter().map(|s| -s).collect() };
    let moved = |by: f64, slope: &[f64]| -> Vec<f64> {
        start.iter().zip(slope).map(|(y, s)| y + by * s).collect()
    };
    let k1 = slope(&start);
    let k2 = slope(&moved(time / 2.0, &k1));
    let k3 = slope(&moved(time / 2.0, &k2));
    let k4 = slope(&moved(time, &k3));
    (0..m * n)
        .map(|at| start[at] + time / 6.0 * (k1[at] + 2.0 * k2[at] + 2.0 * k3[at] + k4[at]))
        .enumerate()
        .map(|(at, score)| score * degrees[at % n].powf(gain))
        .collect()
}

#[test]
fn scores_are_those_of_the_dense_filter() {
    let data = made(1);
    let cases = [
        given(8, 0.3, 2.5),
        given(5, 0.2, 0.0),
        given(0, 0.0, 1.5),
        given(12, 0.5, 1.0).user_exponent(0.3).item_exponent(0.6),
        given(6, 0.1, 2.0).strength(Strength::Value),
        given(6, 0.2, 1.0).popularity(-0.2),
        given(0, 0.0, 2.0).popularity(0.1).item_exponent(0.4),
    ];
    for params in cases {
        let fitted = params.fit(&data).unwrap();
        let expected = oracle(&data, &params);
        let size = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        let pairs: Vec<_> = (0..data.n_users() as u32)
            .flat_map(|user| (0..data.n_items() as u32).map(move |item| (Some(user), Some(item))))
            .collect();
        for (at, (got, expected)) in fitted.predict(&pairs).iter().zip(&expected).enumerate() {
            let off = (f64::from(*got) - expected).abs() / size;
            assert!(off < 2e-5, "{params:?} at {at}: {got} and {expected}");
        }
    }
}

#[test]
fn more_items_than_users_are_filtered_alike() {
    let data = RatingsSpec::new(40, 90, 900).make(2).unwrap().ratings;
    let params = given(10, 0.3, 2.0);
    let fitted = params.fit(&data).unwrap();
    // Items that nobody has are not in the data of the generator, so that no degree is 0.
    assert!((0..data.n_items()).all(|item| !data.by_item().range(item).is_empty()));
    let expected = oracle(&data, &params);
    let n = data.n_items();
    for scored in fitted.top(&Recipient::User(7), 20, &Filter::default()).unwrap() {
        let expected = expected[7 * n + scored.item as usize];
        assert!((f64::from(scored.score) - expected).abs() < 1e-4, "{scored:?} {expected}");
    }
}

#[test]
fn a_user_is_filtered_alike_alone_in_a_block_and_as_a_profile() {
    let data = made(3);
    let fitted = Spectral::new().fit(&data).unwrap();
    let all = Filter { include_seen: true, ..Filter::default() };
    let users: Vec<u32> = (0..70).collect();
    let lists = fitted.top_many(&users, 50, &all).unwrap();
    for user in [0, 33, 69] {
        let (items, values) = data.by_user().row(user as usize);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        assert_eq!(lists[user as usize], fitted.top(&Recipient::User(user), 50, &all).unwrap());
        assert_eq!(
            lists[user as usize],
            fitted.top(&Recipient::Profile(&profile), 50, &all).unwrap()
        );
    }
}

#[test]
fn a_weight_of_two_is_a_strength_of_two() {
    let data = made(4);
    let rows: Vec<_> = data.iter().collect();
    let (users, items): (Vec<u32>, Vec<u32>) = rows.iter().map(|r| (r.user, r.item)).unzip();
    let twice: Vec<f32> = (0..rows.len()).map(|at| [1.0, 2.0][at % 2]).collect();
    let of = |values: &[f32], weights: Option<&[f32]>| {
        let ids = (data.users().clone(), data.items().clone());
        Ratings::from_indexed(ids, (&users, &items), values, weights, Duplicates::Error).unwrap()
    };
    let params = given(4, 0.2, 1.0);
    let weighted = params.fit(&of(&vec![1.0; rows.len()], Some(&twice))).unwrap();
    let counted = params.strength(Strength::Value).fit(&of(&twice, None)).unwrap();
    let pairs: Vec<_> = rows.iter().map(|r| (Some(r.user), Some(r.item))).collect();
    assert_eq!(weighted.predict(&pairs), counted.predict(&pairs));
}

#[test]
fn what_is_left_out_is_chosen_by_the_scores_that_the_filter_gives() {
    let data = made(5);
    let fitted = Spectral::new().fit(&data).unwrap();
    let chosen = &fitted.report.chosen;
    let after =
        |name: &str| chosen.iter().find(|choice| choice.parameter == name).unwrap().value as f32;
    let params = given(after("rank") as usize, after("low_pass"), after("sharpening"))
        .popularity(after("popularity"))
        .user_exponent(after("user_exponent"))
        .item_exponent(after("item_exponent"));
    // The same settings on the same part give the score that the report tells.
    let part = crate::choice::Part::of_all_users(&data, 4000).unwrap();
    let trained = params.fit(&part.train).unwrap();
    let score = part.held_out.ndcg(|user, scores| {
        let profile = Catalogue::new(&part.train, true);
        trained.model.rule().scores(&profile.of_user(user), scores);
    });
    assert!(chosen[0].reason.ends_with(&format!("{score:.4}")), "{chosen:?} {score}");
    // What is given stays, and a filter without a low-pass has nothing to choose of it.
    let linear = Spectral::new().rank(0).item_exponent(0.6).fit(&data).unwrap();
    let chosen = |name: &str| linear.report.chosen.iter().any(|choice| choice.parameter == name);
    assert!(!chosen("rank") && !chosen("item_exponent") && chosen("user_exponent"));
    // More vectors than the data have.
    let large = Spectral::new().rank(90).fit(&data).unwrap();
    assert!(large.model.rule().inward.k() <= 50);
    let few = Ratings::from_triplets((0..6).map(|n| (Id::Int(n % 2), Id::Int(n / 2), 1.0)));
    let fitted = Spectral::new().fit(&few.unwrap()).unwrap();
    assert!(fitted.report.chosen[0].reason.contains("too few"));
}

#[test]
fn the_contributions_of_the_items_add_up_without_a_base() {
    let data = made(6);
    let fitted = given(6, 0.3, 2.0).popularity(-0.1).fit(&data).unwrap();
    for item in [0, 20, 49] {
        let reason = fitted.explain(&Recipient::User(3), item).unwrap();
        assert!(reason.base.abs() < 1e-4 * (1.0 + reason.score.abs()), "{reason:?}");
    }
}

#[test]
fn a_new_item_is_scored_much_as_after_a_fit_to_all() {
    let all = RatingsSpec { rank: 3, ..RatingsSpec::new(300, 60, 6000) }.make(8).unwrap().ratings;
    let items = all.by_user().indices();
    let (events, before) = all.partition(|at| items[at] == 20);
    let bare = |data: &Ratings| {
        let row = |r: gradus_data::Rating| {
            (data.users().get(r.user as usize), data.items().get(r.item as usize), r.value)
        };
        Ratings::from_triplets(data.iter().map(row)).unwrap()
    };
    for params in [given(8, 0.3, 2.0), given(8, 0.3, 0.0), given(0, 0.0, 1.5).popularity(0.1)] {
        let mut fitted = params.fit(&bare(&before)).unwrap();
        let updated = fitted.update(&bare(&events), &Default::default()).unwrap();
        assert_eq!(updated.new_items, 1, "{updated:?}");
        let refitted = params.fit(&all).unwrap();
        let users = 0..all.n_users() as u32;
        let pairs: Vec<_> = users.map(|user| (Some(user), Some(20))).collect();
        let (got, expected) = (fitted.predict(&pairs), refitted.predict(&pairs));
        let of = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        let cosine = of(&got, &expected) / (of(&got, &got) * of(&expected, &expected)).sqrt();
        let size = (of(&got, &got) / of(&expected, &expected)).sqrt();
        assert!(cosine > 0.98 && (0.8..1.25).contains(&size), "{params:?}: {cosine} {size}");
        // What it adds to other items.
        let other = fitted.explain(&Recipient::User(events.by_item().row(20).0[0]), 3).unwrap();
        assert!(other.contributions.iter().any(|c| c.item == 20 && c.contribution != 0.0));
    }
}

/// Lists of many users are made in another order of users and items than those of one, with the same bits.
#[test]
fn blocks_of_users_score_as_users_alone_do() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(400, 700, 9000) }.make(5).unwrap().ratings;
    let fitted = given(8, 0.3, 2.0).fit(&data).unwrap();
    let catalogue = Catalogue::new(&data, true);
    let profiles: Vec<_> = (0..37).map(|user| catalogue.of_user(user * 7)).collect();
    let n_items = data.n_items();
    let one_by_one: Vec<f32> = profiles
        .iter()
        .flat_map(|profile| {
            let mut scores = vec![0.0; n_items];
            fitted.model.rule().scores(profile, &mut scores);
            scores
        })
        .collect();
    let mut together = vec![0.0; profiles.len() * n_items];
    let workspace = &mut Workspace::default();
    fitted.model.rule().scores_of_block(&profiles, workspace, &mut together);
    assert!(one_by_one == together);
}
