//! Vectors of character n-grams, from which vectors of unknown words are made.

use gradus_base::{Error, Result};
use gradus_data::CharNgrams;
use gradus_file::{Reader, Writer};

/// Vectors of the buckets of character n-grams.
#[derive(Clone, Debug, PartialEq)]
pub struct Subwords {
    ngrams: CharNgrams,
    /// The buckets that have a vector, ascending; the others have zeros. All have one if there is no list.
    buckets: Option<Vec<u32>>,
    k: usize,
    /// A row for each of them.
    values: Vec<f32>,
}

impl Subwords {
    /// Vectors of these buckets, ascending, or of all of them.
    ///
    /// # Shapes
    /// `values` is buckets × `k`, row by row.
    ///
    /// # Errors
    /// If the n-grams contradict themselves, the buckets do not ascend or are too many, a shape differs, or a number is not
    /// finite.
    pub fn new(
        ngrams: CharNgrams,
        buckets: Option<Vec<u32>>,
        k: usize,
        values: Vec<f32>,
    ) -> Result<Self> {
        ngrams.check()?;
        let n = buckets.as_ref().map_or(ngrams.n_buckets, Vec::len);
        if values.len() != n.saturating_mul(k) {
            return Err(Error::Shape {
                what: "vectors of n-grams".into(),
                expected: format!("{n} × {k}"),
                got: format!("{} numbers", values.len()),
            });
        }
        if let Some(buckets) = &buckets {
            let ascend = buckets.is_sorted_by(|a, b| a < b);
            if !ascend || buckets.last().is_some_and(|&last| last as usize >= ngrams.n_buckets) {
                return Err(Error::data(format!(
                    "the buckets of n-grams do not ascend below {}",
                    ngrams.n_buckets
                )));
            }
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            return Err(Error::data(format!(
                "the vector of n-grams {} has a number that is not finite",
                at / k.max(1)
            )));
        }
        Ok(Self { ngrams, buckets, k, values })
    }

    /// Returns the rule of n-grams.
    pub fn ngrams(&self) -> &CharNgrams {
        &self.ngrams
    }

    /// The number of coordinates.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The number of buckets that have a vector.
    pub fn len(&self) -> usize {
        self.buckets.as_ref().map_or(self.ngrams.n_buckets, Vec::len)
    }

    /// Whether no bucket has a vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vector of a bucket; zeros of one without.
    pub fn row(&self, bucket: u32) -> Option<&[f32]> {
        let at = match &self.buckets {
            Some(buckets) => buckets.binary_search(&bucket).ok()?,
            None => bucket as usize,
        };
        self.values.get(at * self.k..(at + 1) * self.k)
    }

    /// Adds the vectors of the n-grams of a word, and gives how many n-grams it has and how many of them have a vector.
    pub(super) fn add(&self, word: &str, sum: &mut [f32]) -> (usize, usize) {
        let (mut n, mut n_known) = (0, 0);
        self.ngrams.each(word, &mut String::new(), |bucket| {
            n += 1;
            if let Some(row) = self.row(bucket) {
                n_known += 1;
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        });
        (n, n_known)
    }

    /// Makes the vector of a word of a row of its own and those of its n-grams: their mean.
    pub(crate) fn complete(&self, word: &str, own: &mut [f32]) {
        let (n, _) = self.add(word, own);
        let share = 1.0 / (n + 1) as f32;
        own.iter_mut().for_each(|x| *x *= share);
    }

    /// The vector of a word that has none of its own: the mean of the vectors of its n-grams. `None` if none of these has one.
    pub fn vector(&self, word: &str) -> Option<Vec<f32>> {
        let mut sum = vec![0f32; self.k];
        let (n, n_known) = self.add(word, &mut sum);
        if n_known == 0 {
            return None;
        }
        let share = 1.0 / n as f32;
        sum.iter_mut().for_each(|x| *x *= share);
        Some(sum)
    }

    pub(super) fn write<'a>(&'a self, file: &mut Writer<'a>) {
        file.set("subwords", &self.ngrams);
        file.tensor("subwords.vectors", &[self.len(), self.k], &self.values);
        if let Some(buckets) = &self.buckets {
            file.tensor("subwords.buckets", &[buckets.len()], buckets);
        }
    }

    /// Reads them, of a file that has them.
    pub(super) fn read(k: usize, file: &mut Reader) -> Result<Option<Self>> {
        if !file.has("subwords.vectors") {
            return Ok(None);
        }
        let ngrams: CharNgrams = file.get("subwords")?;
        let buckets: Option<Vec<u32>> =
            file.has("subwords.buckets").then(|| file.vector("subwords.buckets")).transpose()?;
        let n = buckets.as_ref().map_or(ngrams.n_buckets, Vec::len);
        let values = file.finite("subwords.vectors", &[n, k])?;
        Self::new(ngrams, buckets, k, values).map(Some).map_err(|error| file.broken(error))
    }
}
