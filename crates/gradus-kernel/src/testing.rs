//! Random rows and slow, obvious oracles for the tests of the kernels.

use super::Rows;

/// The sizes every kernel is tested at: around each multiple of a vector or block, and large.
pub const SIZES: [usize; 19] =
    [1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 200];

/// The numbers of ratings a row is tested with: none, few, and more than one block.
pub const LENGTHS: [usize; 8] = [0, 1, 2, 5, 17, 100, 500, 1000];

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Uniform in −1..1.
    pub fn value(&mut self) -> f32 {
        ((self.next() >> 40) as f32) / (1u64 << 23) as f32 - 1.0
    }

    pub fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.value()).collect()
    }

    pub fn rows(&mut self, n_rows: usize, k: usize, scale: f32) -> Rows {
        let mut rows = Rows::zeros(n_rows, k);
        for i in 0..n_rows {
            rows.row_mut(i)[..k].fill_with(|| scale * self.value());
        }
        rows
    }
}

/// Solves a dense system by elimination with row exchanges.
pub fn solve_dense(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for c in 0..n {
        let pivot = (c..n).max_by(|&i, &j| a[i][c].abs().total_cmp(&a[j][c].abs())).unwrap();
        a.swap(c, pivot);
        b.swap(c, pivot);
        let (above, below) = a.split_at_mut(c + 1);
        let row = &above[c];
        for (i, other) in below.iter_mut().enumerate() {
            let by = other[c] / row[c];
            for j in c..n {
                other[j] -= by * row[j];
            }
            b[c + 1 + i] -= by * b[c];
        }
    }
    for c in (0..n).rev() {
        let known: f64 = (c + 1..n).map(|j| a[c][j] * b[j]).sum();
        b[c] = (b[c] - known) / a[c][c];
    }
    b
}
