use super::*;
use gradus_base::random::Stream;
use gradus_data::Dense;

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

#[test]
fn several_margins_and_curvatures_are_those_of_plain_loops() {
    for x in sparse_like(500, 7, 6) {
        for (center, scale) in [(false, false), (true, true)] {
            let preparation = Preparation { center, scale };
            let design = Design::new(&x, None, preparation);
            let z = formed(&x, &[1.0; 500], preparation);
            let v: Vec<f64> = (0..21).map(|i| f64::from(i).cos()).collect();
            let b = [0.3, -0.2, 0.1];
            let mut out = vec![9.0; 21];
            let (value, slopes) = design.sweep_many(&v, &b, &mut out, |_, margins| {
                let value = margins.iter().sum();
                margins.iter_mut().for_each(|m| *m = m.tanh());
                value
            });
            let margin = |row: usize, k: usize| {
                (0..7).map(|j| z[(row, j)] * v[k * 7 + j]).sum::<f64>() + b[k]
            };
            let all: f64 = (0..1500).map(|at| margin(at / 3, at % 3)).sum();
            near(&[value], &[all]);
            for k in 0..3 {
                near(&[slopes[k]], &[(0..500).map(|row| margin(row, k).tanh()).sum()]);
                let plain: Vec<f64> = (0..7)
                    .map(|j| (0..500).map(|row| margin(row, k).tanh() * z[(row, j)]).sum())
                    .collect();
                near(&out[k * 7..(k + 1) * 7], &plain);
            }
            let curved = design.curved(&v[..7], 0.3, |_, margins, curvatures| {
                for (m, c) in margins.iter_mut().zip(curvatures) {
                    *c = m.cos() + 2.0;
                    *m = m.sin();
                }
                1.0
            });
            let c = |row: usize| margin(row, 0).cos() + 2.0;
            near(&[curved.slope], &[(0..500).map(|row| margin(row, 0).sin()).sum()]);
            near(&[curved.curvature], &[(0..500).map(c).sum()]);
            let plain: Vec<f64> =
                (0..7).map(|j| (0..500).map(|r| margin(r, 0).sin() * z[(r, j)]).sum()).collect();
            near(&curved.gradient, &plain);
            let plain: Vec<f64> =
                (0..7).map(|j| (0..500).map(|r| c(r) * z[(r, j)]).sum()).collect();
            near(&curved.cross, &plain);
            let plain: Vec<f64> = (0..49)
                .map(|at| (0..500).map(|r| c(r) * z[(r, at / 7)] * z[(r, at % 7)]).sum())
                .collect();
            near(&curved.gram, &plain);
            let curvatures: Vec<f64> = (0..1000).map(|at| 1.0 + f64::from(at % 5)).collect();
            let plain: Vec<f64> = (0..14)
                .map(|at| {
                    let square = |r: usize| curvatures[2 * r + at / 7] * z[(r, at % 7)].powi(2);
                    (0..500).map(square).sum()
                })
                .collect();
            near(&design.diagonals(2, &curvatures), &plain);
        }
    }
}

#[test]
fn means_far_from_zero_leave_their_digits() {
    let mut stream = Stream::new(9, "design.far", 0);
    let near_zero = Dense::from_fn(200, 2, |_, _| stream.normal());
    let far = Dense::from_fn(200, 2, |r, c| near_zero[(r, c)] * 4.0 + 1e8);
    let x = Matrix::from(far);
    let design = Design::new(&x, None, Preparation { center: true, scale: true });
    let mut out = vec![0.0; 200];
    design.times(&[1e3, -1e3], 0.0, &mut out);
    let plain = formed(&x, &[1.0; 200], Preparation { center: true, scale: true });
    let expected = Matrix::from(plain).times(&[1e3, -1e3]);
    out.iter().zip(&expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-8, "{a} {b}"));
    let (w, b) = design.restore(&[2.0, 0.0], 1.0);
    assert!(
        (w[0] * 1e8 + b - (1.0 + 2.0 * (1e8 - design.given_center()[0]) / design.given_scale()[0]))
            .abs()
            < 1e-6
    );
}
