//! Problems for tests.

use gradus_base::random::Stream;
use gradus_data::{Csr, Dense, Id, Matrix, Samples};

/// Features with a target that depends on them, some weights, dense or sparse.
pub(crate) fn regression(n: usize, d: usize, sparse: bool, weighted: bool, seed: u64) -> Samples {
    let (x, clean) = features(n, d, seed);
    let mut stream = Stream::new(seed, "testing.noise", 0);
    let y = clean.iter().map(|c| c + 2.0 + 0.3 * stream.normal()).collect();
    let samples = Samples::regression(as_matrix(x, sparse), y).unwrap();
    weighed(samples, weighted, seed)
}

/// The same with classes.
pub(crate) fn classification(
    n: usize,
    d: usize,
    classes: usize,
    sparse: bool,
    weighted: bool,
    seed: u64,
) -> Samples {
    let (x, _) = features(n, d, seed);
    let mut stream = Stream::new(seed, "testing.classes", 0);
    let w: Vec<Vec<f64>> =
        (0..classes).map(|_| (0..d).map(|_| stream.normal()).collect()).collect();
    let codes: Vec<i64> = x
        .rows()
        .map(|row| {
            let score = |w: &Vec<f64>, noise: f64| {
                w.iter().zip(row).map(|(w, x)| w * x).sum::<f64>() + noise
            };
            let scores: Vec<f64> = w.iter().map(|w| score(w, 1.5 * stream.normal())).collect();
            (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0) as i64
        })
        .collect();
    let samples =
        Samples::classification(as_matrix(x, sparse), codes.into_iter().map(Id::Int)).unwrap();
    weighed(samples, weighted, seed)
}

fn features(n: usize, d: usize, seed: u64) -> (Dense<f64>, Vec<f64>) {
    let mut stream = Stream::new(seed, "testing.features", 0);
    let x = Dense::from_fn(
        n,
        d,
        |_, _| {
            if stream.uniform() < 0.6 { stream.normal() + 0.5 } else { 0.0 }
        },
    );
    let w: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
    let clean = Matrix::from(x.clone()).times(&w);
    (x, clean)
}

fn weighed(samples: Samples, weighted: bool, seed: u64) -> Samples {
    if !weighted {
        return samples;
    }
    let mut stream = Stream::new(seed, "testing.weights", 0);
    let weights = (0..samples.len()).map(|_| (3.0 * stream.uniform()).ceil()).collect();
    samples.with_weights(weights).unwrap()
}

/// The matrix as dense or as sparse.
pub(crate) fn as_matrix(x: Dense<f64>, sparse: bool) -> Matrix {
    if !sparse {
        return x.into();
    }
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (column, &value) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(column as u32);
            values.push(value);
        }
        indptr.push(indices.len());
    }
    Csr::new(x.n_cols(), indptr, indices, values).unwrap().into()
}

/// Every sample as often as it weighs.
pub(crate) fn repeated(samples: &Samples) -> Samples {
    let weights = samples.weights().unwrap();
    let rows: Vec<u32> = (0..samples.len())
        .flat_map(|row| std::iter::repeat_n(row as u32, weights[row] as usize))
        .collect();
    let n = rows.len();
    samples.select_rows(&rows).with_weights(vec![1.0; n]).unwrap()
}

/// Asserts that two lists of numbers agree.
pub(crate) fn near(got: &[f64], expected: &[f64], share: f64) {
    assert_eq!(got.len(), expected.len());
    let size = expected.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
    for (at, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= share * size, "{at}: {g} {e}");
    }
}
