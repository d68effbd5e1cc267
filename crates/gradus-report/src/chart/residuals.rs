//! Residuals of a regression: against predictions, and their quantiles.

use super::scatter::Scatter;
use crate::scale::drawable;

/// More quantiles than this are drawn as a selection that keeps every one in the tails.
const MAX_QUANTILES: usize = 600;

/// Residuals (truth − prediction) against predictions, with the line of no error and the mean of the
/// residuals along the predictions: a trend in it is something the model missed, a funnel is noise
/// that grows with the prediction. A density where there are many points.
///
/// What one slice has beyond the other is ignored.
///
/// ```
/// use gradus_report::{Chart, residual_plot};
///
/// let svg = residual_plot(&[1.0, 2.0, 3.0], &[1.2, 1.9, 3.3]).title("Held-out rows").to_svg();
/// assert_eq!(svg.matches("<circle").count(), 3);
/// ```
pub fn residual_plot(predicted: &[f64], truth: &[f64]) -> Scatter {
    let points = predicted.iter().zip(truth).map(|(&p, &t)| (p, t - p));
    Scatter::new(points).level(0.0).trend().x_label("predicted").y_label("true − predicted")
}

/// The quantiles of the residuals against those of a normal distribution of the same mean and
/// spread, with the line on which they would lie: ends that turn away from it are outliers.
///
/// ```
/// use gradus_report::{Chart, qq_plot};
///
/// let residuals: Vec<f64> = (0..50).map(|i| f64::from(i * 37 % 50) - 25.0).collect();
/// assert_eq!(qq_plot(&residuals).to_svg().matches("<circle").count(), 50);
/// ```
pub fn qq_plot(residuals: &[f64]) -> Scatter {
    let mut values: Vec<f64> = residuals.iter().copied().filter(|&v| drawable(v, false)).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let largest = values.iter().fold(0.0_f64, |m, v| m.max(v.abs())).max(1e-300);
    let mean = values.iter().map(|v| v / largest).sum::<f64>() / n.max(1) as f64;
    let square = values.iter().map(|v| (v / largest - mean).powi(2)).sum::<f64>();
    let spread = (square / n.max(1) as f64).sqrt();
    let standard = |v: f64| if spread > 0.0 { (v / largest - mean) / spread } else { 0.0 };
    let point = |i: usize| (normal_quantile((i as f64 + 0.5) / n as f64), standard(values[i]));
    Scatter::new(selected(n).map(point))
        .diagonal()
        .x_label("normal quantile")
        .y_label("quantile of the residuals, standardised")
}

/// All indices below `n`, or the first and last hundred and some evenly between.
fn selected(n: usize) -> impl Iterator<Item = usize> {
    let ends = 100.min(n / 2);
    let inner = (n - 2 * ends).div_ceil(MAX_QUANTILES - 200).max(1);
    let step = if n > MAX_QUANTILES { inner } else { 1 };
    (0..ends).chain((ends..n - ends).step_by(step)).chain(n - ends..n)
}

/// The number below which a standard normal deviate lies with probability `p`, to nine digits
/// (Acklam's rational approximation).
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    let poly = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p < 0.02425 {
        let q = (-2.0 * p.max(1e-300).ln()).sqrt();
        return poly(&C, q) / poly(&D, q);
    }
    let q = p - 0.5;
    q * poly(&A, q * q) / poly(&B, q * q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chart;

    #[test]
    fn quantiles_of_the_normal_distribution() {
        for (p, z) in
            [(0.5, 0.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874), (0.16, -0.994_457_883)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn many_quantiles_are_thinned_in_the_middle_only() {
        for n in [0, 1, 2, 199, 600, 601, 5000, 1_000_000] {
            let found: Vec<usize> = selected(n).collect();
            assert!(found.len() <= MAX_QUANTILES + 1, "{n}: {}", found.len());
            assert!(found.windows(2).all(|w| w[0] < w[1]), "{n}");
            let ends = 100.min(n / 2);
            assert!((0..ends).chain(n - ends..n).all(|i| found.contains(&i)), "{n}");
        }
    }

    #[test]
    fn residuals_that_are_all_alike_are_drawn() {
        assert!(qq_plot(&[2.0; 5]).to_svg().contains("<circle"));
        assert!(qq_plot(&[]).to_svg().contains("no data"));
        assert!(residual_plot(&[f64::NAN], &[1.0]).to_svg().contains("no data"));
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        assert!(residual_plot(&many, &many).to_svg().contains("gr-heat"));
    }
}
