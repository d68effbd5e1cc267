//! Clusters beside classes that are known.

use super::{renumbered, same_length};
use gradus_base::Result;
use serde::Serialize;
use std::collections::BTreeMap;

/// How well clusters agree with classes that are known. All are 1 where they are the same but for the numbers.
///
/// ```
/// use gradus_metrics::clustering::Agreement;
/// let found = Agreement::new(&[0, 0, 1, 1], &[1, 1, 0, 2])?;
/// assert!((found.adjusted_rand - 4.0 / 7.0).abs() < 1e-15);
/// assert!((found.homogeneity - 1.0).abs() < 1e-12);
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The Rand index, corrected for chance: 0 is expected of labels drawn at random, and less is possible.
    pub adjusted_rand: f64,
    /// Mutual information over the mean of the two entropies, from 0 to 1; not corrected for chance.
    pub normalized_mutual_info: f64,
    /// The same, corrected for chance.
    pub adjusted_mutual_info: f64,
    /// Whether clusters hold samples of one class only, from 0 to 1.
    pub homogeneity: f64,
    /// Whether classes are in one cluster only, from 0 to 1.
    pub completeness: f64,
    /// The harmonic mean of the two.
    pub v_measure: f64,
}

/// How many samples of each class are in each cluster.
struct Table {
    n: f64,
    classes: Vec<usize>,
    clusters: Vec<usize>,
    cells: BTreeMap<(u32, u32), usize>,
}

fn entropy(n: f64, counts: &[usize]) -> f64 {
    if counts.len() <= 1 {
        return 0.0;
    }
    -counts.iter().map(|&c| c as f64 / n).map(|p| p * p.ln()).sum::<f64>()
}

impl Agreement {
    /// Compares the class of each sample with its cluster.
    ///
    /// # Errors
    /// If there are not as many of the one as of the other.
    pub fn new(classes: &[u32], clusters: &[u32]) -> Result<Self> {
        same_length("clusters", classes.len(), clusters.len())?;
        let n = classes.len() as f64;
        let (of_classes, classes) = renumbered(classes);
        let (of_clusters, clusters) = renumbered(clusters);
        let mut cells = BTreeMap::new();
        for pair in of_classes.into_iter().zip(of_clusters) {
            *cells.entry(pair).or_insert(0) += 1;
        }
        let table = Table { n, classes, clusters, cells };
        let information = table.information();
        let (h_classes, h_clusters) = (entropy(n, &table.classes), entropy(n, &table.clusters));
        let mean = 0.5 * (h_classes + h_clusters);
        let share = |of: f64| if of > 0.0 { information / of } else { 1.0 };
        let (homogeneity, completeness) = (share(h_classes), share(h_clusters));
        let both = homogeneity + completeness;
        let v_measure = if both > 0.0 { 2.0 * homogeneity * completeness / both } else { 0.0 };
        // One group on both sides, or the same groups: nothing is left to chance.
        let trivial = table.classes.len() <= 1 && table.clusters.len() <= 1;
        let same =
            table.cells.len() == table.classes.len() && table.cells.len() == table.clusters.len();
        let normalized = match trivial || same {
            true => 1.0,
            false => information / mean.max(f64::EPSILON),
        };
        Ok(Self {
            adjusted_rand: table.adjusted_rand(),
            normalized_mutual_info: normalized,
            adjusted_mutual_info: match trivial || same {
                true => 1.0,
                false => {
                    let chance = table.expected_information();
                    let rest = mean - chance;
                    let rest =
                        if rest < 0.0 { rest.min(-f64::EPSILON) } else { rest.max(f64::EPSILON) };
                    (information - chance) / rest
                }
            },
            homogeneity,
            completeness,
            v_measure,
        })
    }
}

impl Table {
    /// Pairs of samples that are together, or apart, in both.
    fn adjusted_rand(&self) -> f64 {
        let squares = |counts: &[usize]| counts.iter().map(|&c| (c as f64).powi(2)).sum::<f64>();
        let both: f64 = self.cells.values().map(|&c| (c as f64).powi(2)).sum();
        let (classes, clusters) = (squares(&self.classes), squares(&self.clusters));
        let together = both - self.n;
        let (lost, joined) = (classes - both, clusters - both);
        let apart = self.n * self.n - lost - joined - both;
        if lost == 0.0 && joined == 0.0 {
            return 1.0;
        }
        2.0 * (together * apart - lost * joined)
            / ((together + lost) * (lost + apart) + (together + joined) * (joined + apart))
    }

    fn information(&self) -> f64 {
        let of = |(&(class, cluster), &count): (&(u32, u32), &usize)| {
            let (a, b) =
                (self.classes[class as usize] as f64, self.clusters[cluster as usize] as f64);
            let count = count as f64;
            count / self.n * (count.ln() + self.n.ln() - a.ln() - b.ln())
        };
        self.cells.iter().map(of).sum::<f64>().max(0.0)
    }

    /// The mutual information expected of labels in random order with these numbers of samples (Vinh, Epps, Bailey,
    /// 2010): a sum over the hypergeometric distribution of each cell. Groups of one size are taken together.
    fn expected_information(&self) -> f64 {
        let sizes = |counts: &[usize]| {
            let mut sizes = BTreeMap::new();
            counts.iter().for_each(|&count| *sizes.entry(count).or_insert(0.0) += 1.0);
            sizes
        };
        let n = self.n as usize;
        let log_factorial = |x: usize| libm::lgamma(x as f64 + 1.0);
        let mut sum = 0.0;
        for (&a, times_a) in &sizes(&self.classes) {
            for (&b, times_b) in &sizes(&self.clusters) {
                let fixed = log_factorial(a)
                    + log_factorial(b)
                    + log_factorial(n - a)
                    + log_factorial(n - b)
                    - log_factorial(n);
                for c in (a + b).saturating_sub(n).max(1)..=a.min(b) {
                    let chance = fixed
                        - log_factorial(c)
                        - log_factorial(a - c)
                        - log_factorial(b - c)
                        - log_factorial(n + c - a - b);
                    let term = (c as f64 / self.n)
                        * (self.n.ln() + (c as f64).ln() - (a as f64).ln() - (b as f64).ln());
                    sum += times_a * times_b * term * chance.exp();
                }
            }
        }
        sum
    }
}
