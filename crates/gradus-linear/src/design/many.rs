//! Looks at the samples that gather more than one gradient.

use super::Design;
use crate::parallel;
use gradus_data::Matrix;
use gradus_kernel::dense;
use std::ops::Range;

/// Value, gradient and curvature of one pass, all for the centred and scaled features.
pub(crate) struct Curved {
    /// The sum of the numbers given.
    pub(crate) value: f64,
    /// `Xᵀ r` of what was put for the margins.
    pub(crate) gradient: Vec<f64>,
    /// `Σ r`.
    pub(crate) slope: f64,
    /// `Xᵀ diag(c) X`, both triangles.
    pub(crate) gram: Vec<f64>,
    /// `Xᵀ c`.
    pub(crate) cross: Vec<f64>,
    /// `Σ c`.
    pub(crate) curvature: f64,
}

impl Design<'_> {
    /// Computes what [`sweep`](Design::sweep) does, with a curvature for each sample besides: everything that a Newton
    /// step of one margin needs, from one read of dense rows. For not too many columns.
    pub(crate) fn curved(
        &self,
        v: &[f64],
        b: f64,
        look: impl Fn(Range<usize>, &mut [f64], &mut [f64]) -> f64 + Sync,
    ) -> Curved {
        let d = self.d();
        let (v, shift) = self.unscaled(v);
        if let Matrix::Sparse(_) = self.matrix() {
            let (mut margins, mut curvatures) = (vec![0.0; self.n()], vec![0.0; self.n()]);
            // The rows of a block, their margins and their curvatures.
            type Block<'a> = (Range<usize>, &'a mut [f64], &'a mut [f64]);
            let pairs = self.cut(&mut margins).into_iter().zip(self.cut(&mut curvatures));
            let blocks: Vec<Block<'_>> = pairs
                .map(|((rows, margins), (_, curvatures))| (rows, margins, curvatures))
                .collect();
            let values =
                parallel::map(blocks, self.size(), |(rows, margins, curvatures): Block<'_>| {
                    self.raw_times(&rows, &v, margins);
                    margins.iter_mut().for_each(|x| *x += b - shift);
                    look(rows, margins, curvatures)
                });
            let mut gradient = vec![0.0; d];
            self.transposed_times(&margins, &mut gradient);
            let (gram, cross) = self.gram(Some(&curvatures));
            return Curved {
                value: values.iter().sum(),
                gradient,
                slope: margins.iter().sum(),
                gram,
                cross,
                curvature: curvatures.iter().sum(),
            };
        }
        let (value, mut sums) = self.sums_with(d * d + 2 * d + 2, |rows, sums| {
            let x = self.dense_rows(rows).unwrap_or_default();
            let (mut margins, mut curvatures) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
            dense::dots(self.level, x, &v, &mut margins);
            margins.iter_mut().for_each(|x| *x += b - shift);
            let value = look(rows.clone(), &mut margins, &mut curvatures);
            let (gram, rest) = sums.split_at_mut(d * d);
            let (gradient, rest) = rest.split_at_mut(d);
            let (cross, rest) = rest.split_at_mut(d);
            dense::gram(self.level, x, &self.center, Some(&curvatures), gram);
            dense::add_rows(self.level, x, &margins, gradient);
            dense::add_rows(self.level, x, &curvatures, cross);
            rest[0] += margins.iter().sum::<f64>();
            rest[1] += curvatures.iter().sum::<f64>();
            value
        });
        let (curvature, slope) = (sums.pop().unwrap_or_default(), sums.pop().unwrap_or_default());
        let mut cross = sums.split_off(d * d + d);
        let mut gradient = sums.split_off(d * d);
        let mut gram = sums;
        self.finish_gradient(slope, &mut gradient);
        self.finish_gradient(curvature, &mut cross);
        self.finish_gram(&mut gram);
        Curved { value, gradient, slope, gram, cross, curvature }
    }

    /// `Σ_i c_ik z_ij²` for centred and scaled features `z` and `k` curvatures of each sample, row
    /// after row: the diagonal of a Hessian, a vector for each curvature.
    pub(crate) fn diagonals(&self, k: usize, curvatures: &[f64]) -> Vec<f64> {
        let d = self.d();
        let (center, scale) = (&self.center, &self.scale);
        match self.columns() {
            None => {
                let (_, sums) = self.sums_with(k * d, |rows, sums| {
                    let x = self.dense_rows(rows).unwrap_or_default();
                    let mut squares = vec![0.0; d];
                    for (row, x) in rows.clone().zip(x.chunks_exact(d.max(1))) {
                        for (((square, x), c), s) in
                            squares.iter_mut().zip(x).zip(center).zip(scale)
                        {
                            let z = (x - c) / s;
                            *square = z * z;
                        }
                        let own = &curvatures[row * k..][..k];
                        for (sums, c) in sums.chunks_exact_mut(d.max(1)).zip(own) {
                            sums.iter_mut().zip(&squares).for_each(|(sum, z)| *sum += c * z);
                        }
                    }
                    0.0
                });
                sums
            }
            Some(columns) => {
                let mut totals = vec![0.0; k];
                for own in curvatures.chunks_exact(k.max(1)) {
                    totals.iter_mut().zip(own).for_each(|(total, c)| *total += c);
                }
                let mut turned = vec![0.0; d * k];
                parallel::each_row(&mut turned, k, k * columns.nnz(), |column, out| {
                    let (mean, s) = (center[column], scale[column]);
                    let (rows, values) = columns.row(column);
                    for (&row, x) in rows.iter().zip(values) {
                        let own = &curvatures[row as usize * k..][..k];
                        // (x − c)² instead of the c² that an entry of 0 has.
                        let square = x * (x - 2.0 * mean);
                        out.iter_mut().zip(own).for_each(|(out, c)| *out += c * square);
                    }
                    for (out, total) in out.iter_mut().zip(&totals) {
                        *out = (*out + total * mean * mean) / (s * s);
                    }
                });
                (0..k * d).map(|at| turned[at % d * k + at / d]).collect()
            }
        }
    }

    /// Computes [`sweep`](Design::sweep) with `k` margins for each sample: `v` holds a vector for each,
    /// `b` a number for each, and `look` gets the margins row after row. `out` becomes a gradient
    /// for each. Gives the sum of the numbers, and of what was put for each margin.
    pub(crate) fn sweep_many(
        &self,
        v: &[f64],
        b: &[f64],
        out: &mut [f64],
        look: impl Fn(Range<usize>, &mut [f64]) -> f64 + Sync,
    ) -> (f64, Vec<f64>) {
        let (d, k) = (self.d(), b.len());
        let (mut raw, mut first) = (Vec::with_capacity(k * d), Vec::with_capacity(k));
        for (v, b) in v.chunks_exact(d.max(1)).zip(b) {
            let (v, shift) = self.unscaled(v);
            raw.extend(v);
            first.push(b - shift);
        }
        let (value, slopes) = match self.matrix() {
            Matrix::Dense(_) => {
                let (value, mut sums) = self.sums_with(k * d + k, |rows, sums| {
                    let x = self.dense_rows(rows).unwrap_or_default();
                    let n = rows.len();
                    let (mut put, mut one) = (vec![0.0; n * k], vec![0.0; n]);
                    for (at, (v, b)) in raw.chunks_exact(d.max(1)).zip(&first).enumerate() {
                        dense::dots(self.level, x, v, &mut one);
                        (0..n).for_each(|row| put[row * k + at] = one[row] + b);
                    }
                    let value = look(rows.clone(), &mut put);
                    let (gradients, slopes) = sums.split_at_mut(k * d);
                    for (at, gradient) in gradients.chunks_exact_mut(d.max(1)).enumerate() {
                        (0..n).for_each(|row| one[row] = put[row * k + at]);
                        dense::add_rows(self.level, x, &one, gradient);
                        slopes[at] += one.iter().sum::<f64>();
                    }
                    value
                });
                let slopes = sums.split_off(k * d);
                out.copy_from_slice(&sums);
                (value, slopes)
            }
            Matrix::Sparse(x) => {
                // A row of k values for each feature, so that an entry touches one place.
                let mut turned = vec![0.0; d * k];
                for at in 0..k {
                    (0..d).for_each(|j| turned[j * k + at] = raw[at * d + j]);
                }
                let mut put = vec![0.0; self.n() * k];
                let mut parts = Vec::with_capacity(self.bounds.len());
                let mut rest = put.as_mut_slice();
                for bound in self.bounds.windows(2) {
                    let (part, after) = rest.split_at_mut((bound[1] - bound[0]) * k);
                    parts.push((bound[0]..bound[1], part));
                    rest = after;
                }
                let values: Vec<f64> = parallel::map(parts, k * x.nnz(), |(rows, put)| {
                    for (row, put) in rows.clone().zip(put.chunks_exact_mut(k)) {
                        put.copy_from_slice(&first);
                        let (columns, values) = x.row(row);
                        for (&column, value) in columns.iter().zip(values) {
                            let v = &turned[column as usize * k..][..k];
                            put.iter_mut().zip(v).for_each(|(p, v)| *p += value * v);
                        }
                    }
                    look(rows, put)
                });
                let mut slopes = vec![0.0; k];
                for row in put.chunks_exact(k) {
                    slopes.iter_mut().zip(row).for_each(|(s, p)| *s += p);
                }
                if let Some(columns) = self.columns() {
                    parallel::each_row(&mut turned, k, k * columns.nnz(), |column, out| {
                        out.fill(0.0);
                        let (rows, values) = columns.row(column);
                        for (&row, value) in rows.iter().zip(values) {
                            let put = &put[row as usize * k..][..k];
                            out.iter_mut().zip(put).for_each(|(o, p)| *o += value * p);
                        }
                    });
                }
                for at in 0..k {
                    (0..d).for_each(|j| out[at * d + j] = turned[j * k + at]);
                }
                (values.iter().sum(), slopes)
            }
        };
        for (gradient, slope) in out.chunks_exact_mut(d.max(1)).zip(&slopes) {
            self.finish_gradient(*slope, gradient);
        }
        (value, slopes)
    }
}
