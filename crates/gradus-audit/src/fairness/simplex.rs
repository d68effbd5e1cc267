//! A small linear program: the best mixture of classifiers under constraints.

/// What a classifier does: its error, and how far each rate is above the common one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub error: f64,
    pub gaps: Vec<f64>,
}

/// The solution of the program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mixture {
    /// The share of each classifier.
    pub shares: Vec<f64>,
    /// The price of each gap: positive where the upper bound holds it, negative where the lower one does.
    pub prices: Vec<f64>,
    /// The error, and the penalty on what the constraints are broken by.
    pub value: f64,
}

/// Minimises `Σ q_h error_h + penalty · ξ` over shares `q` that add up to 1, where `|Σ q_h gap_h| ≤ bound + ξ` for each
/// gap: the simplex method with Bland's rule, which cannot cycle.
pub(super) fn best_mixture(columns: &[Column], bound: f64, penalty: f64) -> Mixture {
    let m = columns[0].gaps.len();
    let (h, rows) = (columns.len(), 2 * m + 1);
    // Variables: the shares, ξ, and a slack for each constraint; then the right-hand side.
    let (xi, width) = (h, h + 1 + 2 * m + 1);
    let rhs = width - 1;
    let mut table = vec![vec![0.0; width]; rows];
    let mut cost = vec![0.0; width];
    for (at, column) in columns.iter().enumerate() {
        for (j, gap) in column.gaps.iter().enumerate() {
            table[2 * j][at] = *gap;
            table[2 * j + 1][at] = -gap;
        }
        table[2 * m][at] = 1.0;
        cost[at] = column.error;
    }
    for (j, row) in table.iter_mut().take(2 * m).enumerate() {
        row[xi] = -1.0;
        row[h + 1 + j] = 1.0;
        row[rhs] = bound;
    }
    table[2 * m][rhs] = 1.0;
    cost[xi] = penalty;
    let mut basis: Vec<usize> = (0..2 * m).map(|j| h + 1 + j).collect();
    basis.push(0);
    pivot(&mut table, &mut cost, (2 * m, 0));
    // The first classifier alone, with ξ as large as it needs.
    let worst = (0..2 * m).min_by(|&a, &b| table[a][rhs].total_cmp(&table[b][rhs]));
    if let Some(worst) = worst.filter(|&worst| table[worst][rhs] < 0.0) {
        pivot(&mut table, &mut cost, (worst, xi));
        basis[worst] = xi;
    }
    for _ in 0..100_000 {
        let Some(enters) = (0..rhs).find(|&at| cost[at] < -1e-11) else { break };
        let mut leaves: Option<(usize, f64)> = None;
        for row in 0..rows {
            if table[row][enters] > 1e-11 {
                let ratio = table[row][rhs].max(0.0) / table[row][enters];
                let better = leaves.is_none_or(|(other, least)| {
                    ratio < least || ratio == least && basis[row] < basis[other]
                });
                if better {
                    leaves = Some((row, ratio));
                }
            }
        }
        let Some((row, _)) = leaves else { break };
        pivot(&mut table, &mut cost, (row, enters));
        basis[row] = enters;
    }
    let mut shares = vec![0.0; h];
    for (row, &variable) in basis.iter().enumerate() {
        if variable < h {
            shares[variable] = table[row][rhs].max(0.0);
        }
    }
    let total: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= total);
    let price = |j: usize| cost[h + 1 + 2 * j].max(0.0) - cost[h + 2 + 2 * j].max(0.0);
    Mixture { shares, prices: (0..m).map(price).collect(), value: -cost[rhs] }
}

fn pivot(table: &mut [Vec<f64>], cost: &mut [f64], (row, column): (usize, usize)) {
    let scale = 1.0 / table[row][column];
    table[row].iter_mut().for_each(|x| *x *= scale);
    let own = table[row].clone();
    let eliminate = |other: &mut [f64]| {
        let factor = other[column];
        if factor != 0.0 {
            other.iter_mut().zip(&own).for_each(|(x, own)| *x -= factor * own);
            other[column] = 0.0;
        }
    };
    for (at, other) in table.iter_mut().enumerate() {
        if at != row {
            eliminate(other);
        }
    }
    eliminate(cost);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    #[test]
    fn two_classifiers_are_mixed_until_the_bound() {
        let columns =
            [Column { error: 0.2, gaps: vec![0.3] }, Column { error: 0.4, gaps: vec![-0.1] }];
        // 0.3 q − 0.1 (1 − q) = 0.1 at q = 1/2.
        let found = best_mixture(&columns, 0.1, 100.0);
        assert!((found.shares[0] - 0.5).abs() < 1e-12, "{found:?}");
        assert!((found.value - 0.3).abs() < 1e-12);
        // A unit of the bound is worth 0.2 / 0.4 of error.
        assert!((found.prices[0] - 0.5).abs() < 1e-12);
        // Without a penalty worth paying, the bound gives way.
        let cheap = best_mixture(&columns, 0.1, 0.1);
        assert!(
            (cheap.shares[0] - 1.0).abs() < 1e-12
                && (cheap.value - (0.2 + 0.1 * 0.2)).abs() < 1e-12
        );
    }

    /// Random programs: no mixture of a random search is better, and the prices prove the optimum.
    #[test]
    fn prices_prove_the_optimum() {
        let mut stream = Stream::new(1, "test.simplex", 0);
        for _ in 0..200 {
            let (h, m) = (1 + stream.index(12), 1 + stream.index(5));
            let mut columns: Vec<Column> = (0..h)
                .map(|_| Column {
                    error: stream.uniform(),
                    gaps: (0..m).map(|_| stream.uniform_in(-0.5, 0.5)).collect(),
                })
                .collect();
            columns.push(Column { error: 0.9, gaps: vec![0.0; m] });
            let (bound, penalty) = (0.02, 50.0);
            let found = best_mixture(&columns, bound, penalty);
            let mixed = |j: usize| -> f64 {
                columns.iter().zip(&found.shares).map(|(c, q)| q * c.gaps[j]).sum()
            };
            let broken = (0..m).map(|j| mixed(j).abs() - bound).fold(0.0, f64::max);
            let error: f64 = columns.iter().zip(&found.shares).map(|(c, q)| q * c.error).sum();
            assert!((error + penalty * broken - found.value).abs() < 1e-9);
            // Weak duality: no mixture can be better than the best classifier at these prices.
            let size: f64 = found.prices.iter().map(|p| p.abs()).sum();
            assert!(size <= penalty + 1e-9);
            let lowest = columns
                .iter()
                .map(|c| {
                    c.error + c.gaps.iter().zip(&found.prices).map(|(g, p)| g * p).sum::<f64>()
                })
                .fold(f64::INFINITY, f64::min);
            assert!((lowest - bound * size - found.value).abs() < 1e-9, "{found:?}");
        }
    }
}
