//! Shared helpers of the tests of several models.

use gradus_core::estimator::Fit;
use gradus_data::make::RatingsSpec;
use gradus_data::{Duplicates, Ratings};

/// Does this work on this many threads.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// Fits on 1, 2 and 7 threads and compares the model files.
pub(crate) fn same_bits_on_any_number_of_threads<P: Fit<Data = Ratings> + Sync>(
    params: &P,
    data: &Ratings,
) {
    let bytes =
        |threads: usize| on_threads(threads, || params.fit(data).unwrap().to_bytes().unwrap());
    let one = bytes(1);
    assert!(one == bytes(2), "{} on 2 threads", P::NAME);
    assert!(one == bytes(7), "{} on 7 threads", P::NAME);
}

/// The same ratings with weights, by their places in the order of users.
pub(crate) fn weighted(data: &Ratings, weight: impl Fn(usize) -> f32) -> Ratings {
    let weights: Vec<f32> = (0..data.len()).map(weight).collect();
    let rows: Vec<_> = data.iter().collect();
    let (users, items): (Vec<u32>, Vec<u32>) = rows.iter().map(|r| (r.user, r.item)).unzip();
    let values: Vec<f32> = rows.iter().map(|r| r.value).collect();
    let ids = (data.users().clone(), data.items().clone());
    Ratings::from_indexed(ids, (&users, &items), &values, Some(&weights), Duplicates::Error)
        .unwrap()
}

/// Ratings of three planted factors with noise of standard deviation 0.3: nine tenths to train on, the others to test.
pub(crate) fn planted() -> (Ratings, Ratings) {
    let spec = RatingsSpec {
        rank: 3,
        noise: 0.3,
        step: None,
        range: None,
        ..RatingsSpec::new(600, 200, 40_000)
    };
    spec.make(4).unwrap().ratings.partition(|at| at % 10 != 0)
}

/// Solves a dense system by elimination with row exchanges.
pub(crate) fn solve_dense(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for c in 0..n {
        let best = (c..n).max_by(|&i, &j| a[i][c].abs().total_cmp(&a[j][c].abs())).unwrap();
        a.swap(c, best);
        b.swap(c, best);
        let row = a[c].clone();
        for i in (0..n).filter(|&i| i != c) {
            let by = a[i][c] / row[c];
            a[i].iter_mut().zip(&row).for_each(|(x, y)| *x -= by * y);
            b[i] -= by * b[c];
        }
    }
    (0..n).map(|i| b[i] / a[i][i]).collect()
}
