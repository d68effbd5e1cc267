use super::*;
use gradus_core::data::Dense;
use gradus_core::random::Stream;

fn sparse_like(n: usize, d: usize, seed: u64) -> [Matrix; 2] {
    let mut stream = Stream::new(seed, "design", 0);
    let dense = Dense::from_fn(n, d, |_, column| {
        if stream.uniform() < 0.4 {
            10f64.powi(column as i32 % 3) * stream.normal() + 1.0
        } else {
            0.0
        }
    });
    let mut indptr = vec![0];
    let (mut indices, mut values) = (vec![], vec![]);
    for row in dense.rows() {
        for (column, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(column as u32);
            values.push(x);
        }
        indptr.push(indices.len());
    }
    let sparse = Csr::new(d, indptr, indices, values).unwrap();
    [dense.into(), sparse.into()]
}

/// The matrix a design stands for, by the book.
fn formed(x: &Matrix, weights: &[f64], preparation: Preparation) -> Dense<f64> {
    let x = x.to_dense();
    let total: f64 = weights.iter().sum();
    let means: Vec<f64> = (0..x.n_cols())
        .map(|c| x.column(c).zip(weights).map(|(x, w)| w * x).sum::<f64>() / total)
        .collect();
    let spread = |c: usize| {
        let square: f64 =
            x.column(c).zip(weights).map(|(x, w)| w * (x - means[c]) * (x - means[c])).sum();
        let deviation = (square / total).sqrt();
        if deviation > 0.0 { deviation } else { 1.0 }
    };
    let scales: Vec<f64> =
        (0..x.n_cols()).map(|c| if preparation.scale { spread(c) } else { 1.0 }).collect();
    Dense::from_fn(x.n_rows(), x.n_cols(), |r, c| {
        (x[(r, c)] - if preparation.center { means[c] } else { 0.0 }) / scales[c]
    })
}

fn near(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    let size = expected.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (at, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= 1e-10 * size, "{at}: {g} {e}");
    }
}

#[test]
fn products_are_those_of_the_matrix_it_stands_for() {
    for (n, d) in [(1, 1), (7, 3), (40, 17), (3000, 20), (5, 60)] {
        for x in sparse_like(n, d, 1) {
            let mut stream = Stream::new(2, "design", 1);
            let weights: Vec<f64> = (0..n).map(|_| stream.uniform() + 0.1).collect();
            let v: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
            let r: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
            for weights in [None, Some(weights.as_slice())] {
                for (center, scale) in [(false, false), (true, false), (true, true), (false, true)]
                {
                    let preparation = Preparation { center, scale };
                    let design = Design::new(&x, weights, preparation);
                    let ones = vec![1.0; n];
                    let z = formed(&x, weights.unwrap_or(&ones), preparation);
                    let product: Vec<f64> =
                        Matrix::from(z.clone()).times(&v).iter().map(|x| x + 0.5).collect();
                    let mut out = vec![9.0; n];
                    design.times(&v, 0.5, &mut out);
                    near(&out, &product);
                    let back = Matrix::from(z.transpose()).times(&r);
                    let mut out = vec![9.0; d];
                    design.transposed_times(&r, &mut out);
                    near(&out, &back);
                    let mut out = vec![9.0; d];
                    let (value, sum) = design.sweep(&v, 0.5, &mut out, |rows, margins| {
                        let value = margins.iter().map(|m| m * m).sum();
                        margins.copy_from_slice(&r[rows]);
                        value
                    });
                    near(&[value], &[product.iter().map(|p| p * p).sum()]);
                    near(&[sum], &[r.iter().sum()]);
                    near(&out, &back);
                    let (gram, sums) = design.gram(weights);
                    let w = weights.unwrap_or(&ones);
                    let expected = Dense::from_fn(d, d, |i, j| {
                        (0..n).map(|r| w[r] * z[(r, i)] * z[(r, j)]).sum()
                    });
                    near(&gram, expected.values());
                    let expected: Vec<f64> =
                        (0..d).map(|c| z.column(c).zip(w).map(|(z, w)| z * w).sum()).collect();
                    near(&sums, &expected);
                    let (raw, b) = design.restore(&v, 0.5);
                    let restored: Vec<f64> = x.times(&raw).iter().map(|m| m + b).collect();
                    near(&restored, &product);
                }
            }
        }
    }
}

#[test]
fn a_constant_column_is_left_as_it_is() {
    let x = Matrix::from(Dense::from_rows(&[[3.3, 1.0], [3.3, 2.0], [3.3, 4.0]]));
    let design = Design::new(&x, None, Preparation { center: true, scale: true });
    assert_eq!(design.scale()[0], 1.0);
    let mut out = vec![0.0; 3];
    design.times(&[1.0, 0.0], 0.0, &mut out);
    near(&out, &[0.0; 3]);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let v: Vec<f64> = (0..30).map(|i| f64::from(i).sin()).collect();
    for x in sparse_like(20_000, 30, 4) {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let design = Design::new(&x, None, Preparation { center: true, scale: true });
                let mut out = vec![0.0; 30];
                let value = design.sweep(&v, 0.1, &mut out, |_, margins| margins.iter().sum());
                (value, out, design.gram(None))
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(7));
    }
}
