//! Factors and biases of all users, or of all items.

use crate::blocks::{Block, Blocks};
use crate::latent::{self, LatentFactors};
use gradus_base::random::Stream;
use gradus_base::{Result, parallel};
use gradus_file::{Reader, Writer};
use gradus_kernel::{Level, Rows};

/// Implements `Clone` so that `clone_from` copies into the memory that is there: the loop takes a snapshot
/// of the best state again and again.
macro_rules! clone_in_place {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Clone for $type {
            fn clone(&self) -> Self {
                Self { $($field: self.$field.clone()),* }
            }

            fn clone_from(&mut self, source: &Self) {
                $(self.$field.clone_from(&source.$field);)*
            }
        }
    };
}
pub(crate) use clone_in_place;

/// A vector and a bias for each row of a side.
#[derive(Debug)]
pub(crate) struct Vectors {
    pub(crate) factors: Rows,
    pub(crate) bias: Vec<f32>,
}

clone_in_place!(Vectors { factors, bias });

impl Vectors {
    pub(crate) fn zeros(n_rows: usize, k: usize) -> Self {
        Self { factors: Rows::zeros(n_rows, k), bias: vec![0.0; n_rows] }
    }

    /// Factors drawn at random for a start, `(seed, purpose, number of the start)`; no biases. `unit` is
    /// that of the products of two factors.
    pub(crate) fn random(n_rows: usize, k: usize, unit: f64, start: (u64, &str, usize)) -> Self {
        let (seed, purpose, restart) = start;
        let mut vectors = Self::zeros(n_rows, k);
        // Small enough that the biases explain what they can before the factors do.
        let scale = 0.1 * (unit / k as f64).sqrt();
        let stride = vectors.factors.stride();
        parallel::each_row(vectors.factors.as_mut_slice(), stride, |row, factors| {
            let index = (row as u64).wrapping_add((restart as u64) << 32);
            let mut stream = Stream::new(seed, purpose, index);
            for x in &mut factors[..k] {
                *x = (scale * stream.normal()) as f32;
            }
        });
        vectors
    }

    /// Copies the users of a fitted model, as many factors as both have.
    pub(crate) fn take_over(&mut self, warm: &LatentFactors, biases: bool) {
        let common = self.factors.k().min(warm.rank());
        for (user, bias) in self.bias.iter_mut().enumerate() {
            let factors = &warm.user_factors(user)[..common];
            self.factors.row_mut(user)[..common].copy_from_slice(factors);
            *bias = if biases { warm.user_bias()[user] } else { 0.0 };
        }
    }

    /// Writes them to a file as `NAME_bias` and `NAMEs`.
    pub(crate) fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        file.tensor(&format!("{name}_bias"), &[self.bias.len()], &self.bias);
        latent::write_rows(file, &format!("{name}s"), &self.factors);
    }

    /// Reads them back.
    pub(crate) fn read(name: &str, file: &mut Reader, n_rows: usize, k: usize) -> Result<Self> {
        Ok(Self {
            bias: file.finite(&format!("{name}_bias"), &[n_rows])?,
            factors: latent::read_rows(file, &format!("{name}s"), n_rows, k)?,
        })
    }

    /// The sum over some rows, each times its coefficient (one where there are none): the factors
    /// go to `out`, the bias is returned.
    pub(crate) fn sum(
        &self,
        level: Level,
        indices: &[u32],
        coefficients: Option<&[f32]>,
        out: &mut [f32],
    ) -> f32 {
        let factors = self.factors.as_slice();
        gradus_kernel::sum_rows(level, self.factors.k(), factors, indices, coefficients, out);
        let bias = |at: usize| f64::from(self.bias[indices[at] as usize]);
        let sum: f64 = match coefficients {
            Some(by) => (0..indices.len()).map(|at| f64::from(by[at]) * bias(at)).sum(),
            None => (0..indices.len()).map(bias).sum(),
        };
        sum as f32
    }

    /// The values of a row, the bias last.
    pub(crate) fn row(&self, at: usize) -> impl Iterator<Item = f32> + '_ {
        self.factors.row(at)[..self.factors.k()].iter().copied().chain([self.bias[at]])
    }

    /// Rows with the bias as the last value.
    pub(crate) fn joined(&self) -> Rows {
        let k = self.factors.k();
        let mut joined = Rows::zeros(self.factors.n_rows(), k + 1);
        for (row, &bias) in self.bias.iter().enumerate() {
            joined.row_mut(row)[..k].copy_from_slice(&self.factors.row(row)[..k]);
            joined.row_mut(row)[k] = bias;
        }
        joined
    }

    /// The rows in blocks, to hand to threads.
    pub(crate) fn blocks<'v>(&'v mut self, blocks: &Blocks) -> Vec<Block<'v>> {
        blocks.cut_vectors(&mut self.factors, &mut self.bias)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_snapshot_takes_the_memory_of_the_first() {
        let mut snapshot = Vectors::zeros(100, 5);
        let memory = (snapshot.factors.as_slice().as_ptr(), snapshot.bias.as_ptr());
        let state = Vectors::random(100, 5, 1.0, (1, "test", 0));
        snapshot.clone_from(&state);
        assert_eq!((snapshot.factors.as_slice().as_ptr(), snapshot.bias.as_ptr()), memory);
        assert_eq!((snapshot.factors, snapshot.bias), (state.factors, state.bias));
    }
}
