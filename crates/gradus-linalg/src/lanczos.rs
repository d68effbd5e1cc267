//! Block Lanczos with restarts: the largest singular values of a matrix and their vectors.
//!
//! A basis `Q` of the row space grows by blocks `AᵀA q`, each orthogonalised against the basis.
//! A restart reduces the basis to the leading eigenvectors of `H = Qᵀ AᵀA Q` and the next block; then
//! the basis grows again. Since the best vectors so far are always kept, the sum of the leading values
//! never falls.

use crate::basis::{Basis, WIDTH, random_block};
use crate::operator::Operator;
use crate::small::symmetric_eigen;
use gradus_kernel::linalg;

/// The state of the iteration between two restarts.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanczos {
    /// The best vectors so far, then the block that comes next.
    pub basis: Basis,
    /// The values `σ²` of these vectors, largest first.
    pub squares: Vec<f64>,
    /// How far the leading vectors are from being singular vectors: `max ‖AᵀA v − σ² v‖ / σ₁²`.
    pub residual: f64,
    /// Restarts so far.
    pub cycles: u64,
}

/// The options of the method.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// The number of singular values wanted.
    pub k: usize,
    /// The seed of the random start.
    pub seed: u64,
}

impl Aim {
    /// Largest number of columns of the basis: three times the number wanted, so that restarts are few.
    fn most(&self, n: usize) -> usize {
        (3 * self.k + 4 * WIDTH).max(self.k + 8 * WIDTH).min(n)
    }

    /// Capacity of the basis: the last block that is multiplied may begin just before its full size, and
    /// brings another.
    pub fn capacity(&self, n: usize) -> usize {
        (self.most(n) + 2 * WIDTH).min(n)
    }

    /// Vectors kept over a restart: some more than wanted, so that the last of these converge, too.
    fn kept(&self, n: usize) -> usize {
        (self.k + WIDTH).min(n)
    }
}

impl Lanczos {
    /// A random start for a matrix of `n` columns.
    pub fn start(n: usize, aim: &Aim) -> Self {
        let mut basis = Basis::new(n, aim.capacity(n));
        basis.extend(&mut random_block(n, aim.seed, 0));
        Self { basis, squares: Vec::new(), residual: f64::INFINITY, cycles: 0 }
    }

    /// One cycle: the basis grows to its full size and is cut down to the best. `false` if `stopped`
    /// said to stop; the state is then as it was.
    pub fn cycle(&mut self, matrix: &dyn Operator, aim: &Aim, stopped: &dyn Fn() -> bool) -> bool {
        let (m, n) = matrix.shape();
        let (most, capacity) = (aim.most(n), aim.capacity(n));
        let mut basis = self.basis.clone();
        // Columns whose row of H is known; those after them come next.
        let mut done = self.squares.len();
        let mut h = vec![0.0; capacity * capacity];
        for (i, &square) in self.squares.iter().enumerate() {
            h[i * capacity + i] = square;
        }
        let (mut image, mut injected) = (vec![0.0; m * WIDTH], 0);
        let mut last = (done..done, Vec::new());
        while done < basis.len && done < most {
            if stopped() {
                return false;
            }
            let block = done..basis.len.min(done + WIDTH);
            let mut z = basis.block(done);
            matrix.times(WIDTH, &z, &mut image);
            matrix.transposed_times(WIDTH, &image, &mut z);
            let len = basis.len;
            let split = basis.extend(&mut z);
            for (at, column) in block.clone().enumerate() {
                for row in 0..len {
                    let entry = split.inside[row * WIDTH + at];
                    h[row * capacity + column] = entry;
                    h[column * capacity + row] = entry;
                }
            }
            if basis.len == len && len < n && len < capacity {
                // An invariant subspace; what lies beside it has to be looked for.
                injected += 1;
                basis.extend_at_random(aim.seed, ((self.cycles + 1) << 12) + injected);
            }
            done = block.end;
            last = (block, split.outside);
        }
        let packed: Vec<f64> = (0..done)
            .flat_map(|i| (0..done).map(move |j| (i, j)))
            .map(|(i, j)| 0.5 * (h[i * capacity + j] + h[j * capacity + i]))
            .collect();
        let kept = aim.kept(n).min(done);
        let found = linalg::leading_eigen(done, &packed, |_| kept);
        // The own one is slower, and never gives up.
        let (values, vectors) = found.unwrap_or_else(|_| symmetric_eigen(done, packed));
        let k = aim.k.min(kept);
        let largest = values.first().copied().unwrap_or(0.0);
        let (range, outside) = last;
        let residual = (0..k).map(|i| {
            let part = &vectors[i * done..][range.clone()];
            let squares = outside
                .chunks_exact(WIDTH)
                .map(|row| row.iter().zip(part).map(|(s, y)| s * y).sum::<f64>().powi(2));
            squares.sum::<f64>().sqrt()
        });
        let residual = residual.fold(0.0, f64::max);
        // The vectors, and what comes next, make up the new basis.
        let turned: Vec<f64> = (0..done)
            .flat_map(|row| (0..kept).map(move |i| (row, i)))
            .map(|(row, i)| vectors[i * done + row])
            .collect();
        let best = basis.times(done, kept, &turned);
        let next = basis.len - done;
        let len = kept + next;
        let old = basis.packed();
        let mut new = vec![0.0; n * len];
        for row in 0..n {
            new[row * len..][..kept].copy_from_slice(&best[row * kept..][..kept]);
            let from = &old[row * basis.len + done..][..next];
            new[row * len + kept..][..next].copy_from_slice(from);
        }
        let squares: Vec<f64> = values[..kept].iter().map(|&value| value.max(0.0)).collect();
        let sum = |squares: &[f64]| squares.iter().take(k).sum::<f64>();
        // Where random vectors were brought in and found more, more may be found by the next.
        let found_more =
            injected > 0 && sum(&squares) > sum(&self.squares) * (1.0 + 1e-12) && done < n;
        *self = Self {
            basis: Basis::from_packed(n, len, capacity, &new),
            residual: if found_more {
                f64::INFINITY
            } else if largest > 0.0 {
                residual / largest
            } else {
                0.0
            },
            squares,
            cycles: self.cycles + 1,
        };
        true
    }

    /// Whether there is nothing left to find: the basis is the whole space.
    pub fn complete(&self) -> bool {
        self.basis.len == self.squares.len() && self.cycles > 0
    }

    /// The leading vectors, by rows.
    pub fn vectors(&self, k: usize) -> Vec<f64> {
        let len = self.basis.len;
        self.basis.packed().chunks_exact(len.max(1)).flat_map(|row| &row[..k]).copied().collect()
    }
}
