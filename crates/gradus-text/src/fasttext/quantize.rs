//! Product quantisation: a row is a norm and, for every few of its coordinates, the nearest of 256 centroids.

use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_file::{Reader, Writer};

/// Centroids of a subspace: as many as a byte can tell.
const CENTROIDS: usize = 256;

/// Rows that centroids are learned from, drawn at random from all.
const SAMPLE: usize = 100 * CENTROIDS;

/// Iterations of k-means.
const ITERATIONS: usize = 20;

/// Centroids of subspaces: the first coordinates, the next, and so on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Centroids {
    dimension: usize,
    /// Coordinates of a subspace; the last may have fewer.
    width: usize,
    /// Subspace by subspace, centroid by centroid.
    values: Vec<f32>,
}

impl Centroids {
    pub(crate) fn new(dimension: usize, width: usize, values: Vec<f32>) -> Result<Self> {
        if dimension == 0 || !(1..=dimension).contains(&width) {
            return Err(Error::data(format!(
                "subspaces of {width} of {dimension} coordinates cannot be"
            )));
        }
        if values.len() != dimension * CENTROIDS || values.iter().any(|x| !x.is_finite()) {
            let n = dimension * CENTROIDS;
            return Err(Error::data(format!("centroids are not {n} finite numbers")));
        }
        Ok(Self { dimension, width, values })
    }

    pub(crate) fn n_subspaces(&self) -> usize {
        self.dimension.div_ceil(self.width)
    }

    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// The width of a subspace.
    fn width_of(&self, subspace: usize) -> usize {
        self.width.min(self.dimension - subspace * self.width)
    }

    fn centroid(&self, subspace: usize, code: u8) -> &[f32] {
        let width = self.width_of(subspace);
        let start = subspace * CENTROIDS * self.width + usize::from(code) * width;
        &self.values[start..start + width]
    }

    /// Learns centroids of rows, and gives their codes, row by row.
    fn learn(rows: &[f32], dimension: usize, width: usize, seed: u64) -> (Self, Vec<u8>) {
        let n = rows.len() / dimension;
        let n_subspaces = dimension.div_ceil(width);
        let found = parallel::map(0..n_subspaces, |subspace| {
            let start = subspace * width;
            let width = width.min(dimension - start);
            let part = |row: usize| &rows[row * dimension + start..][..width];
            let mut stream = Stream::new(seed, "quantise", subspace as u64);
            let chosen: Vec<usize> = match stream.sample(n, SAMPLE.min(n)) {
                Ok(chosen) => chosen,
                Err(_) => (0..n).collect(),
            };
            let centroids = k_means(&chosen, part, width, &mut stream);
            let codes: Vec<u8> = (0..n).map(|row| nearest(part(row), &centroids)).collect();
            (centroids, codes)
        });
        let mut values = Vec::with_capacity(dimension * CENTROIDS);
        let mut codes = vec![0u8; n * n_subspaces];
        for (subspace, (centroids, of_rows)) in found.into_iter().enumerate() {
            for centroid in 0..CENTROIDS {
                values.extend(centroids.iter().map(|coordinate| coordinate[centroid]));
            }
            for (row, code) in of_rows.into_iter().enumerate() {
                codes[row * n_subspaces + subspace] = code;
            }
        }
        (Self { dimension, width, values }, codes)
    }

    fn write<'a>(&'a self, name: &str, file: &mut Writer<'a>) {
        file.set(name, &(self.dimension, self.width));
        file.tensor(&format!("{name}.centroids"), &[self.values.len()], &self.values);
    }

    fn read(name: &str, file: &mut Reader) -> Result<Self> {
        let (dimension, width): (usize, usize) = file.get(name)?;
        let n = dimension.saturating_mul(CENTROIDS);
        let values = file.finite(&format!("{name}.centroids"), &[n])?;
        Self::new(dimension, width, values).map_err(|error| file.broken(error))
    }
}

/// The nearest centroid; coordinate by coordinate, so that the loop over centroids becomes vector code.
fn nearest(x: &[f32], centroids: &[[f32; CENTROIDS]]) -> u8 {
    let mut distances = [0f32; CENTROIDS];
    for (x, coordinate) in x.iter().zip(centroids) {
        for (distance, c) in distances.iter_mut().zip(coordinate) {
            *distance += (x - c) * (x - c);
        }
    }
    let mut best = 0;
    for (at, distance) in distances.iter().enumerate() {
        if *distance < distances[best] {
            best = at;
        }
    }
    best as u8
}

/// Lloyd's algorithm from rows drawn at random; a centroid without rows takes the row that is farthest from its own.
fn k_means<'a>(
    rows: &[usize],
    part: impl Fn(usize) -> &'a [f32],
    width: usize,
    stream: &mut Stream,
) -> Vec<[f32; CENTROIDS]> {
    let mut centroids = vec![[0f32; CENTROIDS]; width];
    let order = stream.permutation(rows.len());
    for at in 0..CENTROIDS.min(CENTROIDS * rows.len()) {
        // Of fewer rows than centroids, some are there twice.
        let row = part(rows[order[at % order.len()]]);
        centroids.iter_mut().zip(row).for_each(|(coordinate, &x)| coordinate[at] = x);
    }
    for _ in 0..ITERATIONS {
        let mut sums = vec![[0f64; CENTROIDS]; width];
        let mut counts = [0u32; CENTROIDS];
        let (mut far, mut farthest) = (0f32, None);
        for &row in rows {
            let x = part(row);
            let code = usize::from(nearest(x, &centroids));
            counts[code] += 1;
            let distance: f32 =
                x.iter().zip(&centroids).map(|(x, c)| (x - c[code]) * (x - c[code])).sum();
            if distance > far {
                (far, farthest) = (distance, Some(row));
            }
            sums.iter_mut().zip(x).for_each(|(sum, &x)| sum[code] += f64::from(x));
        }
        for at in 0..CENTROIDS {
            match (counts[at], farthest.take()) {
                (0, Some(row)) => {
                    let row = part(row);
                    centroids.iter_mut().zip(row).for_each(|(c, &x)| c[at] = x);
                }
                (0, None) => {}
                (n, rest) => {
                    farthest = rest;
                    for (c, sum) in centroids.iter_mut().zip(&sums) {
                        c[at] = (sum[at] / f64::from(n)) as f32;
                    }
                }
            }
        }
    }
    centroids
}

/// The codes of the norms of rows, and their centroids.
pub(crate) type Norms = (Vec<u8>, Centroids);

/// Rows in a byte for every few coordinates, and one for the norm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantised {
    centroids: Centroids,
    codes: Vec<u8>,
    /// The codes and centroids of the norms, where rows were divided by them.
    norms: Option<Norms>,
}

impl Quantised {
    pub(crate) fn new(centroids: Centroids, codes: Vec<u8>, norms: Option<Norms>) -> Result<Self> {
        let per_row = centroids.n_subspaces();
        if !codes.len().is_multiple_of(per_row) {
            return Err(Error::data(format!("{} codes are no rows of {per_row}", codes.len())));
        }
        let n = codes.len() / per_row;
        if norms
            .as_ref()
            .is_some_and(|(codes, of_norms)| codes.len() != n || of_norms.dimension != 1)
        {
            return Err(Error::data(format!("the norms of {n} rows have other codes")));
        }
        Ok(Self { centroids, codes, norms })
    }

    /// Quantises rows, this many coordinates at a time; their norms apart.
    pub(crate) fn learn(rows: &[f32], dimension: usize, width: usize, seed: u64) -> Self {
        let norms: Vec<f32> = rows
            .chunks_exact(dimension)
            .map(|row| row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt() as f32)
            .collect();
        let unit: Vec<f32> = rows
            .chunks_exact(dimension)
            .zip(&norms)
            .flat_map(|(row, &norm)| {
                row.iter().map(move |x| if norm > 0.0 { x / norm } else { 0.0 })
            })
            .collect();
        let (of_norms, norm_codes) = Centroids::learn(&norms, 1, 1, seed.wrapping_add(1));
        let (centroids, codes) = Centroids::learn(&unit, dimension, width, seed);
        Self { centroids, codes, norms: Some((norm_codes, of_norms)) }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.codes.len() / self.centroids.n_subspaces()
    }

    pub(crate) fn parts(&self) -> (&Centroids, &[u8], Option<&Norms>) {
        (&self.centroids, &self.codes, self.norms.as_ref())
    }

    /// Adds this many times a row.
    pub(crate) fn add(&self, row: usize, times: f32, sum: &mut [f32]) {
        let norm = self.norms.as_ref().map_or(1.0, |(codes, of)| of.centroid(0, codes[row])[0]);
        let n = self.centroids.n_subspaces();
        let codes = &self.codes[row * n..(row + 1) * n];
        for (subspace, (&code, sum)) in
            codes.iter().zip(sum.chunks_mut(self.centroids.width)).enumerate()
        {
            for (sum, x) in sum.iter_mut().zip(self.centroids.centroid(subspace, code)) {
                *sum += times * norm * x;
            }
        }
    }

    pub(super) fn write<'a>(&'a self, file: &mut Writer<'a>) {
        self.centroids.write("quantised", file);
        file.tensor("quantised.codes", &[self.codes.len()], &self.codes);
        if let Some((codes, of_norms)) = &self.norms {
            of_norms.write("norms", file);
            file.tensor("norms.codes", &[codes.len()], codes);
        }
    }

    pub(super) fn read(file: &mut Reader) -> Result<Self> {
        let centroids = Centroids::read("quantised", file)?;
        let codes = file.vector("quantised.codes")?;
        let norms = match file.has("norms.codes") {
            true => Some((file.vector("norms.codes")?, Centroids::read("norms", file)?)),
            false => None,
        };
        Self::new(centroids, codes, norms).map_err(|error| file.broken(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_different_rows_are_held_exactly_and_many_nearly() {
        let mut stream = Stream::new(1, "quantise.test", 0);
        let dimension = 7;
        let prototypes: Vec<f32> = (0..20 * dimension).map(|_| stream.normal() as f32).collect();
        let rows: Vec<f32> = (0..300)
            .flat_map(|at| prototypes[(at % 20) * dimension..][..dimension].to_vec())
            .collect();
        let few = Quantised::learn(&rows, dimension, 2, 5);
        assert_eq!((few.n_rows(), few.parts().0.n_subspaces()), (300, 4));
        let error = |of: &Quantised, rows: &[f32]| {
            let (mut off, mut all) = (0.0, 0.0);
            for (at, row) in rows.chunks_exact(dimension).enumerate() {
                let mut sum = vec![0f32; dimension];
                of.add(at, 1.0, &mut sum);
                off += row.iter().zip(&sum).map(|(a, b)| f64::from((a - b) * (a - b))).sum::<f64>();
                all += row.iter().map(|a| f64::from(a * a)).sum::<f64>();
            }
            off / all
        };
        assert!(error(&few, &rows) < 1e-8, "{}", error(&few, &rows));
        let rows: Vec<f32> = (0..3000 * dimension).map(|_| stream.normal() as f32).collect();
        let many = Quantised::learn(&rows, dimension, 2, 5);
        assert!(error(&many, &rows) < 0.02, "{}", error(&many, &rows));
        let zero = Quantised::learn(&[0.0; 14], dimension, 2, 5);
        let mut sum = [1f32; 7];
        zero.add(1, 1.0, &mut sum);
        assert_eq!(sum, [1.0; 7]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let centroids = |d: usize, w: usize| Centroids::new(d, w, vec![0.0; d * CENTROIDS]);
        assert!(centroids(5, 6).is_err() && centroids(5, 0).is_err() && centroids(0, 0).is_err());
        assert!(Centroids::new(5, 2, vec![0.0; 3]).is_err());
        assert!(Quantised::new(centroids(5, 2).unwrap(), vec![0; 4], None).is_err());
        let norms = Some((vec![0; 3], centroids(1, 1).unwrap()));
        assert!(Quantised::new(centroids(5, 2).unwrap(), vec![0; 6], norms).is_err());
    }
}
