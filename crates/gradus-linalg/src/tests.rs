use super::*;
use gradus_base::random::Stream;
use gradus_data::make::RatingsSpec;
use gradus_data::{Csr, Dense};

/// All singular values, largest first: textbook one-sided Jacobi on the columns of the matrix.
fn oracle(a: &Dense<f64>) -> Vec<f64> {
    let a = if a.n_rows() >= a.n_cols() { a.clone() } else { a.transpose() };
    let mut columns: Vec<Vec<f64>> =
        (0..a.n_cols()).map(|c| a.rows().map(|row| row[c]).collect()).collect();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    for _ in 0..40 {
        for i in 0..columns.len() {
            for j in i + 1..columns.len() {
                let (p, q, r) = (
                    dot(&columns[i], &columns[i]),
                    dot(&columns[j], &columns[j]),
                    dot(&columns[i], &columns[j]),
                );
                if r.abs() <= 1e-16 * (p * q).sqrt() {
                    continue;
                }
                let angle = 0.5 * (2.0 * r).atan2(p - q);
                let (sine, cosine) = angle.sin_cos();
                for row in 0..columns[i].len() {
                    let (x, y) = (columns[i][row], columns[j][row]);
                    columns[i][row] = cosine * x + sine * y;
                    columns[j][row] = cosine * y - sine * x;
                }
            }
        }
    }
    let mut values: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

fn normal(m: usize, n: usize, seed: u64) -> Dense<f64> {
    let mut stream = Stream::new(seed, "test.normal", 0);
    Dense::from_fn(m, n, |_, _| stream.normal())
}

fn product(a: &Dense<f64>, b: &Dense<f64>) -> Dense<f64> {
    Dense::from_fn(a.n_rows(), b.n_cols(), |r, c| {
        a.row(r).iter().enumerate().map(|(i, x)| x * b.row(i)[c]).sum()
    })
}

/// A matrix with these singular values, in general position.
fn with_values(m: usize, n: usize, values: &[f64], seed: u64) -> Dense<f64> {
    let orthonormal = |rows: usize, seed: u64| {
        let mut basis = Basis::new(rows, values.len());
        let mut index = 0;
        while basis.len < values.len() {
            basis.extend_at_random(seed, index);
            index += 1;
        }
        Dense::new(rows, values.len(), basis.packed()).unwrap()
    };
    let (u, v) = (orthonormal(m, seed), orthonormal(n, seed + 1));
    let scaled = Dense::from_fn(m, values.len(), |r, c| u.row(r)[c] * values[c]);
    product(&scaled, &v.transpose())
}

fn orthonormal(a: &Dense<f64>) -> bool {
    (0..a.n_cols()).all(|i| {
        (0..a.n_cols()).all(|j| {
            let dot: f64 = a.rows().map(|row| row[i] * row[j]).sum();
            (dot - f64::from(u8::from(i == j))).abs() < 1e-11
        })
    })
}

fn check_all(a: &Dense<f64>, k: usize, what: &str) {
    let exact = oracle(a);
    let found = truncated(a, k, &Options::default()).unwrap();
    let (scale, total) = (exact[0].max(1e-300), a.values().iter().map(|x| x * x).sum::<f64>());
    assert!(found.converged, "{what} {k}: {} restarts", found.iterations);
    for (got, want) in found.s.iter().zip(&exact) {
        assert!((got - want).abs() < 1e-11 * scale, "{what} {k}: {got} for {want}");
    }
    assert!(orthonormal(&found.u) && orthonormal(&found.v), "{what} {k}");
    let scaled = Dense::from_fn(a.n_rows(), k, |r, c| found.u.row(r)[c] * found.s[c]);
    let image = product(a, &found.v);
    let off = image.values().iter().zip(scaled.values()).map(|(x, y)| (x - y).abs());
    assert!(off.fold(0.0, f64::max) < 1e-7 * scale, "{what} {k}: A v is not s u");
    // The error reported is the one that is there, and the tail of the singular values.
    let near = product(&scaled, &found.v.transpose());
    let squares = a.values().iter().zip(near.values()).map(|(x, y)| (x - y).powi(2));
    let error = squares.sum::<f64>();
    let tail: f64 = exact[k..].iter().map(|s| s * s).sum();
    assert!((found.error.powi(2) - error).abs() <= 1e-11 * total, "{what} {k}");
    assert!((found.error.powi(2) - tail).abs() <= 1e-11 * total, "{what} {k}");
}

#[test]
fn many_shapes_agree_with_jacobi() {
    for (m, n) in [(1, 1), (1, 9), (9, 1), (2, 2), (5, 3), (3, 5), (40, 40), (90, 30), (30, 170)] {
        let a = normal(m, n, (m * 100 + n) as u64);
        for k in [1, 2, 7, m.min(n)] {
            if k <= m.min(n) {
                check_all(&a, k, &format!("{m} × {n}"));
            }
        }
    }
    // Large enough to restart.
    check_all(&normal(260, 200, 7), 5, "260 × 200");
    check_all(&normal(150, 210, 8), 20, "150 × 210");
}

#[test]
fn deficient_graded_and_repeated_values_agree_with_jacobi() {
    let graded: Vec<f64> = (0..20).map(|i| 0.5f64.powi(i)).collect();
    for (values, what) in [
        (vec![3.0, 2.0, 1.0], "rank 3"),
        (vec![2.0; 9], "9 times 2"),
        ([vec![5.0], vec![2.0; 12], vec![1.0; 12]].concat(), "repeated"),
        (graded, "graded"),
        (vec![1e-8, 1e-9], "small"),
        (vec![1e5, 1.0], "far apart"),
    ] {
        for (m, n) in [(60, 45), (45, 120)] {
            let a = with_values(m, n, &values, 5);
            for k in [1, 3, values.len(), values.len() + 4] {
                check_all(&a, k, what);
            }
        }
    }
    check_all(&Dense::full(8, 12, 0.0), 4, "zeros");
    check_all(&Dense::full(30, 20, 1.0), 3, "ones");
    check_all(&Dense::from_fn(100, 100, |r, c| f64::from(u8::from(r == c))), 20, "identity");
    let twos = |r: usize, c: usize| match (r == c, r < 30) {
        (false, _) => 0.0,
        (true, true) => 2.0,
        (true, false) => 1.0,
    };
    check_all(&Dense::from_fn(110, 110, twos), 25, "30 times 2");
}

/// Regression: values near 1e-100 were squared twice, vanished, and gave wrong singular values without a word.
#[test]
fn tiny_and_huge_matrices_have_the_values_of_usual_ones() {
    for (m, n) in [(30, 8), (8, 30), (20, 20)] {
        let a = normal(m, n, 5);
        let exact = oracle(&a);
        for unit in [1e-140, 1e-100, 1e-40, 1e40, 1e100, 1e140] {
            let b = Dense::from_fn(m, n, |r, c| unit * a[(r, c)]);
            let found = truncated(&b, 3, &Options::default()).unwrap();
            for (got, want) in found.s.iter().zip(&exact) {
                assert!((got / unit / want - 1.0).abs() < 1e-11, "{unit}: {got} for {want}");
            }
            let tail: f64 = exact[3..].iter().map(|s| s * s).sum();
            assert!((found.error / unit / tail.sqrt() - 1.0).abs() < 1e-9, "{unit}");
            assert!(orthonormal(&found.u) && orthonormal(&found.v), "{unit}");
        }
    }
}

#[test]
fn a_sparse_matrix_is_its_dense_form() {
    let data = RatingsSpec::new(120, 70, 1800).make(1).unwrap().ratings;
    let csr: &Csr = data.by_user();
    let mut dense = Dense::full(120, 70, 0.0);
    for r in data.iter() {
        dense.row_mut(r.user as usize)[r.item as usize] = f64::from(r.value);
    }
    let exact = oracle(&dense);
    let sparse = truncated(&Sparse::new(csr), 10, &Options::default()).unwrap();
    let full = truncated(&dense, 10, &Options::default()).unwrap();
    for ((a, b), want) in sparse.s.iter().zip(&full.s).zip(&exact) {
        assert!((a - want).abs() < 1e-11 * exact[0] && (b - want).abs() < 1e-11 * exact[0]);
    }
    assert!((sparse.error / full.error - 1.0).abs() < 1e-10);
}

#[test]
fn what_cannot_be_decomposed_is_named() {
    let say =
        |a: &Dense<f64>, k, options: Options| truncated(a, k, &options).unwrap_err().to_string();
    let a = normal(3, 4, 1);
    let options = Options::default();
    assert!(say(&a, 0, options).contains("`k` = 0: must be from 1 to 3"));
    assert!(say(&a, 4, options).contains("smaller side of 3 × 4"));
    assert!(say(&Dense::full(2, 2, f64::NAN), 1, options).contains("finite"));
    assert!(say(&Dense::full(2, 2, 1e200), 1, options).contains("1e150"));
    assert!(say(&a, 1, Options { tol: f64::NAN, ..options }).contains("`tol`"));
    assert!(say(&a, 1, Options { max_iter: 0, ..options }).contains("`max_iter`"));
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let data = RatingsSpec::new(1500, 1100, 30_000).make(2).unwrap().ratings;
    let found = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| truncated(&Sparse::new(data.by_user()), 6, &Options::default()).unwrap())
    };
    let one = found(1);
    assert!(one.converged);
    assert!(one == found(2) && one == found(7));
}
