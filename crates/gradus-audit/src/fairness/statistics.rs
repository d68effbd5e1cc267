//! Tail probabilities, and tests that several groups have the same rates.

use serde::Serialize;

/// A test of a null hypothesis: the criterion holds, and what is seen is chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Test {
    /// The test statistic.
    pub statistic: f64,
    /// Degrees of freedom of its distribution under the hypothesis.
    pub degrees: f64,
    /// The chance of a statistic at least so large if the criterion holds.
    pub p_value: f64,
    /// The method.
    pub method: TestMethod,
}

/// The method of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TestMethod {
    /// The generalised Mantel–Haenszel test (Birch, 1965): in one stratum Pearson's χ² times (n − 1)/n.
    MantelHaenszel,
    /// Welch's analysis of variance (1951): means of groups with unlike variances.
    Welch,
    /// Rao's score test of a logistic model.
    Score,
}

impl TestMethod {
    /// The name in prose.
    pub fn name(self) -> &'static str {
        match self {
            Self::MantelHaenszel => "Mantel–Haenszel",
            Self::Welch => "Welch",
            Self::Score => "score test",
        }
    }
}

impl Test {
    fn chi_square(statistic: f64, degrees: usize, method: TestMethod) -> Option<Self> {
        let p_value = chi_square_tail(statistic, degrees as f64);
        (degrees > 0 && p_value.is_finite()).then_some(Self {
            statistic,
            degrees: degrees as f64,
            p_value,
            method,
        })
    }

    /// The sum of independent tests of this kind: all hypotheses at once.
    pub(super) fn sum(tests: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (mut statistic, mut degrees, mut method) = (0.0, 0.0, None);
        for test in tests {
            statistic += test.statistic;
            degrees += test.degrees;
            method = Some(test.method);
        }
        Self::chi_square(statistic, degrees as usize, method?)
    }
}

/// The chance that a χ² variate of `degrees` degrees of freedom is at least `x`.
///
/// ```
/// use gradus_audit::fairness::chi_square_tail;
/// assert!((chi_square_tail(3.841_458_820_694_124, 1.0) - 0.05).abs() < 1e-12);
/// ```
pub fn chi_square_tail(x: f64, degrees: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let (a, x) = (degrees / 2.0, x / 2.0);
    let scale = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        // The series of the lower tail.
        let (mut term, mut sum, mut k) = (1.0 / a, 1.0 / a, a);
        for _ in 0..10_000 {
            k += 1.0;
            term *= x / k;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        return (1.0 - scale * sum).clamp(0.0, 1.0);
    }
    // The continued fraction of the upper tail (Lentz).
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut fraction = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / nonzero(numerator * d + b);
        c = nonzero(b + numerator / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    (scale * fraction).clamp(0.0, 1.0)
}

fn nonzero(v: f64) -> f64 {
    if v.abs() < 1e-300 { 1e-300 } else { v }
}

/// The chance that an F variate of these degrees of freedom is at least `x`.
pub(super) fn f_tail(x: f64, d1: f64, d2: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    beta_cdf(d2 / (d2 + d1 * x), d2 / 2.0, d1 / 2.0)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz).
fn beta_cdf(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges fast on its own side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_cdf(1.0 - x, b, a);
    }
    let log =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    let (mut c, mut d) = (1.0, 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        for part in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / nonzero(1.0 + part * d);
            c = nonzero(1.0 + part / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (log.exp() * fraction / a).clamp(0.0, 1.0)
}

/// Solves `A x = b` for a symmetric positive semidefinite `A` (row by row), and gives `bᵀ x` and the rank: directions
/// without variance are left out.
pub(super) fn quadratic_form(mut a: Vec<f64>, b: &[f64]) -> (f64, usize) {
    let n = b.len();
    let mut b = b.to_vec();
    let scale = (0..n).map(|i| a[i * n + i]).fold(0.0, f64::max);
    let (mut total, mut rank) = (0.0, 0);
    let mut done = vec![false; n];
    for _ in 0..n {
        let open = (0..n).filter(|&i| !done[i]);
        let Some(pivot) = open.max_by(|&i, &j| a[i * n + i].total_cmp(&a[j * n + j])) else {
            break;
        };
        let p = a[pivot * n + pivot];
        if p.is_nan() || p <= (1e-10 * scale).max(0.0) {
            break;
        }
        done[pivot] = true;
        rank += 1;
        total += b[pivot] * b[pivot] / p;
        for i in (0..n).filter(|&i| !done[i]) {
            let factor = a[i * n + pivot] / p;
            for j in 0..n {
                a[i * n + j] -= factor * a[pivot * n + j];
            }
            b[i] -= factor * b[pivot];
        }
    }
    (total, rank)
}

/// How many of the members of each group have a property: `(with it, all)`, one pair for each group.
pub(super) type Counts = [(f64, f64)];

/// The generalised Mantel–Haenszel test that within every stratum the share is the same in all groups.
///
/// Strata are added up before the test, so that they may be small; a stratum where all members agree says nothing.
/// `None` if no stratum says anything.
pub(super) fn mantel_haenszel<'a>(strata: impl IntoIterator<Item = &'a Counts>) -> Option<Test> {
    let (mut difference, mut covariance): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for stratum in strata {
        let k = stratum.len();
        difference.resize(k, 0.0);
        covariance.resize(k * k, 0.0);
        let all: f64 = stratum.iter().map(|(_, n)| n).sum();
        let with: f64 = stratum.iter().map(|(with, _)| with).sum();
        if all <= 1.0 || with <= 0.0 || with >= all {
            continue;
        }
        // Given the margins, the counts of a stratum are hypergeometric.
        let spread = with * (all - with) / (all * all * (all - 1.0));
        for (i, (with_i, n_i)) in stratum.iter().enumerate() {
            difference[i] += with_i - n_i * with / all;
            for (j, (_, n_j)) in stratum.iter().enumerate() {
                let own = if i == j { all } else { 0.0 };
                covariance[i * k + j] += spread * n_i * (own - n_j);
            }
        }
    }
    let (statistic, rank) = quadratic_form(covariance, &difference);
    Test::chi_square(statistic, rank, TestMethod::MantelHaenszel)
}

/// The weight, the mean and the variance of the values of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub weight: f64,
    pub mean: f64,
    /// The unbiased estimate.
    pub variance: f64,
}

/// Welch's test that the means of all groups are equal, whatever their variances. Groups of fewer than two members say
/// nothing of their variance and are left out.
pub(super) fn welch(groups: &[Moments]) -> Option<Test> {
    let groups: Vec<&Moments> = groups.iter().filter(|group| group.weight >= 2.0).collect();
    let k = groups.len() as f64;
    if groups.len() < 2 {
        return None;
    }
    let precision = |group: &Moments| group.weight / group.variance;
    if groups.iter().any(|group| !(group.variance > 0.0 && precision(group).is_finite())) {
        return None;
    }
    let total: f64 = groups.iter().map(|group| precision(group)).sum();
    let mean = groups.iter().map(|group| precision(group) * group.mean).sum::<f64>() / total;
    let between =
        groups.iter().map(|g| precision(g) * (g.mean - mean).powi(2)).sum::<f64>() / (k - 1.0);
    let lambda: f64 =
        groups.iter().map(|g| (1.0 - precision(g) / total).powi(2) / (g.weight - 1.0)).sum();
    let statistic = between / (1.0 + 2.0 * (k - 2.0) * lambda / (k * k - 1.0));
    let second = (k * k - 1.0) / (3.0 * lambda);
    let p_value = f_tail(statistic, k - 1.0, second);
    p_value.is_finite().then_some(Test {
        statistic,
        degrees: k - 1.0,
        p_value,
        method: TestMethod::Welch,
    })
}

/// A test of a statistic that is χ² with so many degrees of freedom if the criterion holds.
pub(super) fn score_test(statistic: f64, degrees: usize) -> Option<Test> {
    Test::chi_square(statistic, degrees, TestMethod::Score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        // From tables of the distributions.
        for (x, degrees, p) in [
            (2.705_543_454_095_404, 1.0, 0.1),
            (5.991_464_547_107_979, 2.0, 0.05),
            (18.307_038_053_275_15, 10.0, 0.05),
            (135.806_723_171_026_76, 100.0, 0.01),
        ] {
            assert!((chi_square_tail(x, degrees) - p).abs() < 1e-12, "{x} {degrees}");
        }
        for (x, d1, d2, p) in
            [(4.964_602_743_730_711, 1.0, 10.0, 0.05), (2.756_477_636_055_436, 3.0, 37.0, 0.056)]
        {
            assert!((f_tail(x, d1, d2) - p).abs() < 1e-12, "{x}: {}", f_tail(x, d1, d2));
        }
        // Two degrees of freedom: exp(-x / 2).
        for x in [0.1, 1.0, 7.0, 80.0] {
            let expected = (-x / 2.0f64).exp();
            assert!((chi_square_tail(x, 2.0) / expected - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn one_stratum_is_pearsons_statistic() {
        let counts = [(30.0, 100.0), (45.0, 90.0), (10.0, 60.0)];
        let (with, all) = (85.0, 250.0);
        let mut pearson = 0.0;
        for (w, n) in counts {
            let (e1, e0) = (n * with / all, n * (all - with) / all);
            pearson += (w - e1) * (w - e1) / e1 + (n - w - e0) * (n - w - e0) / e0;
        }
        let test = mantel_haenszel([counts.as_slice()]).unwrap();
        assert_eq!(test.degrees, 2.0);
        assert!((test.statistic - pearson * (all - 1.0) / all).abs() < 1e-10);
    }

    #[test]
    fn two_groups_are_cochrans_formula_over_strata() {
        // Mantel and Haenszel's formula for 2 × 2 tables, without the correction for continuity.
        let strata = [[(4.0, 10.0), (7.0, 9.0)], [(2.0, 11.0), (6.0, 13.0)]];
        let (mut sum, mut variance) = (0.0, 0.0);
        for [(a, n1), (b, n2)] in strata {
            let (n, m) = (n1 + n2, a + b);
            sum += a - n1 * m / n;
            variance += n1 * n2 * m * (n - m) / (n * n * (n - 1.0));
        }
        let test = mantel_haenszel(strata.iter().map(|s| s.as_slice())).unwrap();
        assert_eq!(test.degrees, 1.0);
        assert!((test.statistic - sum * sum / variance).abs() < 1e-12, "{test:?}");
    }

    #[test]
    fn strata_that_say_nothing_are_left_out() {
        let nothing = [(0.0, 10.0), (0.0, 20.0)];
        assert!(mantel_haenszel([nothing.as_slice()]).is_none());
        let some = [(3.0, 10.0), (9.0, 20.0)];
        let both = mantel_haenszel([nothing.as_slice(), some.as_slice()]);
        assert_eq!(both, mantel_haenszel([some.as_slice()]));
        let one = [(3.0, 10.0), (0.0, 0.0)];
        assert!(mantel_haenszel([one.as_slice()]).is_none());
    }

    #[test]
    fn welch_of_two_groups_is_the_square_of_his_t() {
        let a = Moments { weight: 12.0, mean: 3.0, variance: 4.0 };
        let b = Moments { weight: 20.0, mean: 1.5, variance: 9.0 };
        let test = welch(&[a, b]).unwrap();
        let squares: (f64, f64) = (4.0 / 12.0, 9.0 / 20.0);
        let t = 1.5 / (squares.0 + squares.1).sqrt();
        assert!((test.statistic - t * t).abs() < 1e-12);
        let single = Moments { weight: 1.0, mean: 9.0, variance: f64::NAN };
        assert_eq!(welch(&[a, b, single]), Some(test));
        assert!(welch(&[a, single]).is_none());
    }
}
