//! The singular value decomposition of `X = U Vᵀ` from its factors, without `X`.

use gradus_base::parallel;
use gradus_kernel::Rows;
use gradus_kernel::gemm::{Before, Factor, product as product_f32};
use gradus_linalg::symmetric_eigen;

/// Rows handed to a thread at a time.
const ROWS: usize = 512;

/// The singular values of `X = U Vᵀ`, and the matrices that turn its factors into `P √S` and `Q √S`.
pub(super) struct Balance {
    /// The singular values that are not rounding error, largest first.
    pub(super) values: Vec<f64>,
    /// `‖U‖_F² + ‖V‖_F²` of the factors as they are; at least twice the sum of the singular values.
    pub(super) squares: f64,
    k: usize,
    /// `k × k` each, by rows.
    turns: [Vec<f64>; 2],
}

impl Balance {
    /// Balances by the Gram matrices `UᵀU = E D Eᵀ` and `√D Eᵀ VᵀV E √D = F S² Fᵀ`: the factors become `U E D^-½ F S^½`
    /// and `V E D^½ F S^-½`.
    pub(super) fn new(users: &Rows, items: &Rows) -> Self {
        let k = users.k();
        let (of_users, of_items) = (gram(users), gram(items));
        let trace = |gram: &[f64]| (0..k).map(|i| gram[i * k + i]).sum::<f64>();
        let squares = trace(&of_users) + trace(&of_items);
        let (d, e) = symmetric_eigen(k, of_users);
        let largest = d.first().copied().unwrap_or(0.0);
        // What is below rounding has no direction.
        let least = 1e-12 * largest;
        let root: Vec<f64> = d.iter().map(|&d| if d > least { d.sqrt() } else { 0.0 }).collect();
        // e has eigenvectors in its rows: scaled = √D Eᵀ.
        let scaled: Vec<f64> = (0..k * k).map(|at| root[at / k] * e[at]).collect();
        let inner = product(k, &product(k, &scaled, &of_items), &transposed(k, &scaled));
        let (squared, f) = symmetric_eigen(k, inner);
        let values: Vec<f64> = squared.iter().map(|&s| s.max(0.0).sqrt()).collect();
        let largest = values.first().copied().unwrap_or(0.0);
        let real = values.iter().filter(|&&s| s > 1e-7 * largest && s > 0.0).count();
        // Fᵀ √D^∓ Eᵀ, then scaled by S^±½: rows of the turns, transposed.
        let turn = |inverse: bool| {
            let scaled: Vec<f64> = (0..k * k)
                .map(|at| {
                    let root = root[at / k];
                    let by = if !inverse {
                        root
                    } else if root > 0.0 {
                        1.0 / root
                    } else {
                        0.0
                    };
                    by * e[at]
                })
                .collect();
            let mut rows = product(k, &f, &scaled);
            for (row, &s) in rows.chunks_exact_mut(k).zip(&values) {
                let by = if inverse { s.sqrt() } else { 1.0 / s.sqrt() };
                row.iter_mut().for_each(|x| *x = if by.is_finite() { *x * by } else { 0.0 });
            }
            rows
        };
        let turns = [turn(true), turn(false)];
        Self { values: values[..real].to_vec(), squares, k, turns }
    }

    /// The leading `rank` columns of the turned factors (0 for the users, 1 for the items), and `more` columns of zeros.
    pub(super) fn turn(&self, side: usize, rows: &Rows, rank: usize, more: usize) -> Rows {
        let k = self.k;
        let mut turned = Rows::zeros(rows.n_rows(), (rank + more).max(1));
        let (stride, from_stride) = (turned.stride(), rows.stride());
        let turn: Vec<f32> = self.turns[side][..rank * k].iter().map(|&x| x as f32).collect();
        let blocks = turned.as_mut_slice().chunks_mut(ROWS * stride);
        parallel::each(blocks.zip(rows.as_slice().chunks(ROWS * from_stride)), |(to, from)| {
            let shape = (to.len() / stride, rank, k);
            let (from, turn) = (Factor::new(from, from_stride), Factor::new(&turn, k).transpose());
            product_f32(shape, from, turn, 1.0, Before::Replaced, (to, stride));
        });
        turned
    }
}

/// `AᵀA`, `k × k`, summed over blocks of rows in order.
fn gram(rows: &Rows) -> Vec<f64> {
    let k = rows.k();
    let parts = parallel::map(parallel::blocks(rows.n_rows(), ROWS), |block| {
        // The lower triangle, four rows at a time.
        let (mut sum, mut four) = (vec![0.0; k * k], vec![0.0; 4 * k]);
        let mut rest = block.peekable();
        while rest.peek().is_some() {
            four.fill(0.0);
            for (to, row) in four.chunks_exact_mut(k).zip(rest.by_ref()) {
                to.iter_mut().zip(rows.row(row)).for_each(|(to, &x)| *to = f64::from(x));
            }
            let (a, others) = four.split_at(k);
            let (b, others) = others.split_at(k);
            let (c, d) = others.split_at(k);
            for i in 0..k {
                let x = [a[i], b[i], c[i], d[i]];
                let columns = a.iter().zip(b).zip(c.iter().zip(d));
                for (sum, ((a, b), (c, d))) in sum[i * k..][..=i].iter_mut().zip(columns) {
                    *sum += x[0] * a + x[1] * b + x[2] * c + x[3] * d;
                }
            }
        }
        sum
    });
    let mut gram = vec![0.0; k * k];
    for part in parts {
        gram.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    for i in 0..k {
        (0..i).for_each(|j| gram[j * k + i] = gram[i * k + j]);
    }
    gram
}

fn product(k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; k * k];
    for (row, to) in a.chunks_exact(k.max(1)).zip(c.chunks_exact_mut(k.max(1))) {
        for (&x, from) in row.iter().zip(b.chunks_exact(k)) {
            to.iter_mut().zip(from).for_each(|(c, b)| *c += x * b);
        }
    }
    c
}

fn transposed(k: usize, a: &[f64]) -> Vec<f64> {
    (0..k * k).map(|at| a[at % k * k + at / k]).collect()
}
