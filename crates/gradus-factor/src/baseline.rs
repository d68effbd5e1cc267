//! What a model has to beat: the mean of all ratings, and the mean with biases; of rankings, the
//! popular items and chance.

use crate::latent::{Held, Ranked, range};
use gradus_core::Result;
use gradus_core::data::{Csr, Ratings};
use gradus_core::report::Baseline;
use rayon::prelude::*;

/// Ratings of zero surprise added to every row, so that few ratings make a small bias.
const DAMPING: f64 = 5.0;
/// Rounds of alternation; the biases hardly move after a few.
const ROUNDS: usize = 6;

/// The mean and the biases of users and items.
#[derive(Clone, Debug, PartialEq)]
pub struct Biases {
    /// The (weighted) mean of all ratings.
    pub mean: f64,
    /// What to add for each user.
    pub users: Vec<f32>,
    /// What to add for each item.
    pub items: Vec<f32>,
}

/// Fits `r̂ = α + β_u + β_i` by alternating damped means: `β_u = Σ w (r − α − β_i) / (Σ w + 5)`.
pub fn biases(data: &Ratings) -> Biases {
    let (sum, weight) = data.iter().fold((0.0, 0.0), |(sum, weight), rating| {
        let w = f64::from(rating.weight);
        (sum + w * f64::from(rating.value), weight + w)
    });
    let mean = if weight > 0.0 { sum / weight } else { 0.0 };
    let (mut users, mut items) = (vec![0.0; data.n_users()], vec![0.0; data.n_items()]);
    for _ in 0..ROUNDS {
        items = one_side(data.by_item(), data.weights_by_item(), mean, &users);
        users = one_side(data.by_user(), data.weights_by_user(), mean, &items);
    }
    Biases { mean, users, items }
}

fn one_side(rows: &Csr, weights: Option<&[f32]>, mean: f64, others: &[f32]) -> Vec<f32> {
    (0..rows.n_rows())
        .into_par_iter()
        .with_min_len(64)
        .map(|row| {
            let (mut sum, mut count) = (0.0, DAMPING);
            for at in rows.range(row) {
                let weight = weights.map_or(1.0, |weights| f64::from(weights[at]));
                let other = f64::from(others[rows.indices()[at] as usize]);
                sum += weight * (f64::from(rows.values()[at]) - mean - other);
                count += weight;
            }
            (sum / count) as f32
        })
        .collect()
}

/// The errors of the baselines on held-out ratings.
pub(crate) fn scores(data: &Ratings, held: &Ratings) -> Result<Vec<Baseline>> {
    let held = Held::new(held, data.users(), data.items())?;
    let biases = biases(data);
    let range = Some(range(data));
    let mean = biases.mean as f32;
    Ok(vec![
        Baseline { name: "global mean".into(), score: held.rmse(range, |_, _| mean) },
        Baseline {
            name: "biases only".into(),
            score: held.rmse(range, |user, item| {
                mean + user.map_or(0.0, |u| biases.users[u as usize])
                    + item.map_or(0.0, |i| biases.items[i as usize])
            }),
        },
    ])
}

/// The scores of the baselines on held-out signs of interest.
pub(crate) fn rankings(data: &Ratings, held: &Ranked<'_>) -> Vec<Baseline> {
    let mut popularity = vec![0.0; data.n_items()];
    for rating in data.iter().filter(|rating| rating.value > 0.0) {
        popularity[rating.item as usize] += f64::from(rating.weight);
    }
    let mut order: Vec<u32> = (0..data.n_items() as u32).collect();
    order.sort_by(|&a, &b| {
        popularity[b as usize].total_cmp(&popularity[a as usize]).then(a.cmp(&b))
    });
    vec![
        Baseline { name: "most popular".into(), score: held.ndcg_of_order(&order) },
        Baseline { name: "random order".into(), score: held.ndcg_of_chance() },
    ]
}
