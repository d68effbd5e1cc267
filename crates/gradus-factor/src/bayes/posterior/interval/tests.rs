use super::*;
use gradus_base::random::Stream;
use gradus_data::Ids;
use gradus_kernel::{Bf16, Level};

const K: usize = 2;
const D: usize = K + 1;
/// Draws of the posterior; of the users every fourth is kept.
const DRAWS: usize = 8_000;

/// A Gaussian by its mean and the root of its covariance, the bias last.
struct Gaussian {
    mean: [f64; D],
    root: [[f64; D]; D],
}

impl Gaussian {
    fn draw(&self, stream: &mut Stream) -> [f64; D] {
        let z: [f64; D] = std::array::from_fn(|_| stream.normal());
        std::array::from_fn(|i| self.mean[i] + (0..D).map(|j| self.root[i][j] * z[j]).sum::<f64>())
    }

    /// Mean and precision, as the model keeps them.
    fn prior(&self) -> Vec<f32> {
        let mut root = Matrix::zeros(D);
        (0..D).for_each(|i| root.row_mut(i).copy_from_slice(&self.root[i]));
        let inverse = root.times(&root.transposed()).cholesky().unwrap().inverse_lower();
        let precision = inverse.transposed().times(&inverse);
        self.mean.iter().chain(&precision.values).map(|&x| x as f32).collect()
    }
}

fn score(user: &[f64; D], item: &[f64; D]) -> f64 {
    user[..K].iter().zip(item).map(|(a, b)| a * b).sum::<f64>() + user[K] + item[K]
}

#[test]
fn the_variance_of_known_and_unknown_pairs_is_that_of_many_simulated_ones() {
    // What is known of the user and the item, and what of any user and any item.
    let user = Gaussian {
        mean: [0.3, -0.2, 0.1],
        root: [[0.6, 0.0, 0.0], [0.2, 0.5, 0.0], [0.1, -0.1, 0.2]],
    };
    let item = Gaussian {
        mean: [-0.4, 0.5, 0.2],
        root: [[0.3, 0.0, 0.0], [-0.2, 0.4, 0.0], [0.0, 0.2, 0.1]],
    };
    let any_user = Gaussian {
        mean: [0.1, 0.0, -0.1],
        root: [[0.7, 0.0, 0.0], [0.0, 0.9, 0.0], [0.2, 0.1, 0.3]],
    };
    let any_item = Gaussian {
        mean: [0.0, 0.2, 0.0],
        root: [[0.8, 0.0, 0.0], [0.3, 0.6, 0.0], [-0.2, 0.1, 0.4]],
    };
    let mut stream = Stream::new(5, "test.interval", 0);
    let narrow = |row: [f64; D]| row.map(|x| Bf16::new(x as f32));
    let (mut user_rows, mut item_rows, mut user_deviations) = (vec![], vec![], vec![]);
    for draw in 0..DRAWS {
        user_rows.extend(narrow(user.mean));
        item_rows.extend(narrow(item.draw(&mut stream)));
        if draw % SPARSE == 0 {
            let drawn = user.draw(&mut stream);
            user_deviations.extend(narrow(std::array::from_fn(|i| drawn[i] - user.mean[i])));
        }
    }
    let tau = 4.0;
    let model = Posterior {
        side: [None, None],
        unobserved_items: Vec::new(),
        typical: [&any_user, &any_item].map(|any| any.prior()[..D].repeat(DRAWS)),
        users: Ids::range(1),
        items: Ids::range(1),
        rank: K,
        mean: 3.0,
        scale: 2.0,
        user_rows,
        item_rows,
        user_deviations,
        list_rows: None,
        noise: vec![tau; DRAWS],
        user_priors: any_user.prior().repeat(DRAWS),
        item_priors: any_item.prior().repeat(DRAWS),
        range: None,
        history: None,
        level: Level::best(),
    };
    for (pair, users, items) in [
        ((Some(0), Some(0)), &user, &item),
        ((Some(0), None), &user, &any_item),
        ((None, Some(0)), &any_user, &item),
        ((None, None), &any_user, &any_item),
    ] {
        let n = 100_000;
        let scores: Vec<f64> =
            (0..n).map(|_| score(&users.draw(&mut stream), &items.draw(&mut stream))).collect();
        let mean = scores.iter().sum::<f64>() / f64::from(n);
        let variance = scores.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        let spread = model.spread(&[pair])[0];
        let got = f64::from(spread.deviation_of_mean / 2.0).powi(2);
        assert!((got / variance - 1.0).abs() < 0.06, "{pair:?}: {got} for {variance}");
        let noisy = f64::from(spread.deviation / 2.0).powi(2);
        assert!((noisy - got - 1.0 / tau).abs() < 1e-4, "{pair:?}: {noisy}");
        // Of an unknown user and an unknown item the mean is that of all ratings.
        let mean = if pair == (None, None) { 0.0 } else { mean };
        assert!((f64::from(spread.mean) - 3.0 - 2.0 * mean).abs() < 0.03, "{pair:?}");
    }
}
