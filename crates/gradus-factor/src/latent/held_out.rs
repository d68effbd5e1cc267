//! Errors on held-out ratings.

use gradus_base::{Error, Result, parallel};
use gradus_data::{Ids, Ratings};

/// Sums are taken over blocks of this many ratings, in order.
const BLOCK: usize = 1 << 14;

/// Held-out ratings in the indices of the training data; `None` stands for a user or item that training never saw.
pub(crate) struct HeldOut {
    pairs: Vec<Pair>,
}

struct Pair {
    user: Option<u32>,
    item: Option<u32>,
    value: f32,
    weight: f32,
}

impl HeldOut {
    pub(crate) fn new(held_out: &Ratings, users: &Ids, items: &Ids) -> Result<Self> {
        let map = |from: &Ids, to: &Ids| -> Vec<Option<u32>> {
            if from == to {
                (0..from.len() as u32).map(Some).collect()
            } else {
                from.iter().map(|id| to.find(id)).collect()
            }
        };
        let (users, items) = (map(held_out.users(), users), map(held_out.items(), items));
        let pairs: Vec<_> = held_out
            .iter()
            .map(|rating| Pair {
                user: users[rating.user as usize],
                item: items[rating.item as usize],
                value: rating.value,
                weight: rating.weight,
            })
            .collect();
        if pairs.iter().all(|pair| pair.weight == 0.0) {
            return Err(Error::data("held-out ratings: there are none (or all have weight 0)"));
        }
        Ok(Self { pairs })
    }

    /// The number of held-out ratings.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Adds the prediction of each rating to its sum: for the mean of many predictions.
    pub(crate) fn add(
        &self,
        sums: &mut [f64],
        predict: impl Fn(Option<u32>, Option<u32>) -> f32 + Sync,
    ) {
        let blocks = self.pairs.chunks(BLOCK).zip(sums.chunks_mut(BLOCK));
        parallel::each(blocks, |(pairs, sums)| {
            for (pair, sum) in pairs.iter().zip(sums) {
                *sum += f64::from(predict(pair.user, pair.item));
            }
        });
    }

    /// The root of the (weighted) mean squared error of the mean of `count` predictions, of which
    /// `sums` holds the sums, clipped to `range`.
    pub(crate) fn rmse_of_sums(
        &self,
        range: Option<(f32, f32)>,
        sums: &[f64],
        count: usize,
    ) -> f64 {
        let (low, high) = range.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        let (mut squares, mut weight) = (0.0, 0.0);
        for (pair, sum) in self.pairs.iter().zip(sums) {
            let predicted = (sum / count as f64).clamp(f64::from(low), f64::from(high));
            let (error, w) = (predicted - f64::from(pair.value), f64::from(pair.weight));
            squares += w * error * error;
            weight += w;
        }
        (squares / weight).sqrt()
    }

    /// The root of the (weighted) mean squared error of `predict`, clipped to `range`.
    pub(crate) fn rmse(
        &self,
        range: Option<(f32, f32)>,
        predict: impl Fn(Option<u32>, Option<u32>) -> f32 + Sync,
    ) -> f64 {
        let sums = parallel::map(self.pairs.chunks(BLOCK), |block| {
            block.iter().fold((0.0, 0.0), |(sum, weight), pair| {
                let mut predicted = predict(pair.user, pair.item);
                if let Some((low, high)) = range {
                    predicted = predicted.clamp(low, high);
                }
                let error = f64::from(predicted) - f64::from(pair.value);
                let w = f64::from(pair.weight);
                (sum + w * error * error, weight + w)
            })
        });
        let (sum, weight) = sums.into_iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        (sum / weight).sqrt()
    }
}
