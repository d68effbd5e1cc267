//! Agreement of two orders.

/// Spearman's rank correlation of two lists of numbers; equal numbers share the mean of their ranks. `None` if there are fewer
/// than two pairs, the lengths differ, a number is not one, or all numbers of a list are equal.
///
/// ```
/// use gradus_metrics::spearman;
/// assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 40.0, 90.0]), Some(1.0));
/// assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
/// ```
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.len() < 2 || a.iter().chain(b).any(|x| x.is_nan()) {
        return None;
    }
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() + 1) as f64 / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let size = (product(&a, &a) * product(&b, &b)).sqrt();
    (size > 0.0).then(|| (product(&a, &b) / size).clamp(-1.0, 1.0))
}

/// The rank of each number from 1; equal numbers share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for same in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = (2 * first + same.len() + 1) as f64 / 2.0;
        same.iter().for_each(|&at| ranks[at] = rank);
        first += same.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As SciPy's `spearmanr` has it, ties included.
    #[test]
    fn ties_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        let rho = spearman(&[1.0, 2.0, 2.0, 3.0, 5.0], &[2.0, 1.0, 4.0, 4.0, 9.0]).unwrap();
        assert!((rho - 0.763_157_894_736_842_1).abs() < 1e-12, "{rho}");
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }
}
