//! Whether probabilities mean what they say: a reliability diagram.

use super::{AxesSpec, Chart, Key, Labels, SIZE, axes, counted, header, label_setters, legend};
use super::{no_data, sane};
use crate::scale::{drawable, fixed, number};
use crate::svg::{Anchor, Canvas, Drawing};

/// Bars of the histogram below the diagram.
const N_BARS: usize = 20;
/// The height of the strip.
const STRIP: f64 = 64.0;

/// One bin of a [`Reliability`] diagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReliabilityBin {
    /// The mean of the probabilities in it.
    pub predicted: f64,
    /// The share of its rows that are yes.
    pub observed: f64,
    /// The number of rows of the bin.
    pub count: f64,
    /// The interval of the true share, if known.
    pub interval: Option<(f64, f64)>,
}

/// Observed shares against predicted probabilities, with the diagonal on which they agree and a
/// histogram of the probabilities below. Larger dots stand for more rows.
///
/// ```
/// use gradus_report::{Chart, Reliability, ReliabilityBin};
///
/// let bin = |predicted, observed, count| ReliabilityBin { predicted, observed, count, interval: None };
/// let svg = Reliability::new([bin(0.1, 0.05, 200.0), bin(0.9, 0.8, 50.0)])
///     .scores(&[0.1, 0.12, 0.9])
///     .to_svg();
/// assert!(svg.contains("perfectly calibrated"));
/// ```
#[derive(Clone, Debug)]
pub struct Reliability {
    labels: Labels,
    bins: Vec<ReliabilityBin>,
    histogram: Option<Vec<u64>>,
}

impl Reliability {
    label_setters!(axes);

    /// A diagram of these bins, by rising probability. Those that are not in the unit square are
    /// skipped.
    pub fn new(bins: impl IntoIterator<Item = ReliabilityBin>) -> Self {
        let unit = |v: f64| (0.0..=1.0).contains(&v);
        let keep = |bin: &ReliabilityBin| unit(bin.predicted) && unit(bin.observed);
        let labels = Labels {
            x: "predicted probability".into(),
            y: "observed share".into(),
            ..Labels::default()
        };
        Self { labels, bins: bins.into_iter().filter(keep).collect(), histogram: None }
    }

    /// Adds a histogram of all probabilities, in bars of 0.05.
    #[must_use]
    pub fn scores(mut self, probabilities: &[f64]) -> Self {
        let mut counts = vec![0; N_BARS];
        for &p in probabilities.iter().filter(|p| (0.0..=1.0).contains(*p)) {
            counts[((p * N_BARS as f64) as usize).min(N_BARS - 1)] += 1;
        }
        self.histogram = counts.iter().any(|&n| n > 0).then_some(counts);
        self
    }
}

impl Chart for Reliability {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width).min(440.0);
        if self.bins.is_empty() {
            return no_data(&self.labels, width);
        }
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, "");
        let keys = [
            Key { name: "model", class: "gr-line gr-s1".into() },
            Key { name: "perfectly calibrated", class: "gr-ref".into() },
        ];
        let top = legend(&mut c, &keys, width, top) + 2.0;
        // With a histogram below, the label of x belongs under that.
        let mut labels = self.labels.clone();
        if self.histogram.is_some() {
            labels.x.clear();
        }
        let plot = axes(&mut c, &AxesSpec::unit_square(&labels, width, top));
        let at = |x: f64, y: f64| (plot.x.map(x), plot.y.map(y));
        c.line("gr-ref", at(0.0, 0.0), at(1.0, 1.0)).tip("perfectly calibrated");
        for bin in &self.bins {
            let Some((low, high)) = bin.interval else { continue };
            if drawable(low, false) && drawable(high, false) && low <= high {
                let [low, high] = [low, high].map(|v| v.clamp(0.0, 1.0));
                let (a, b) = (at(bin.predicted, low), at(bin.predicted, high));
                c.line("gr-whisker gr-s1", a, b).end();
            }
        }
        let path: Vec<_> = self.bins.iter().map(|bin| at(bin.predicted, bin.observed)).collect();
        if path.len() > 1 {
            c.polyline("gr-line gr-s1", &path).end();
        }
        let most = self.bins.iter().map(|bin| bin.count).filter(|n| n.is_finite());
        let most = most.fold(0.0, f64::max);
        for (bin, &(x, y)) in self.bins.iter().zip(&path) {
            let share = if most > 0.0 && bin.count.is_finite() { bin.count / most } else { 0.0 };
            let tip = format!(
                "predicted {}, observed {} of {}",
                fixed(bin.predicted, 3),
                fixed(bin.observed, 3),
                number(bin.count)
            );
            c.circle("gr-f1 gr-halo", x, y, 3.0 + 4.0 * share.clamp(0.0, 1.0).sqrt()).tip(&tip);
        }
        let height = match &self.histogram {
            None => plot.height,
            Some(counts) => {
                let (from, to) = (plot.height + 8.0, plot.height + 8.0 + STRIP);
                let most = counts.iter().copied().max().unwrap_or(1).max(1);
                let rows = counts.iter().sum::<u64>();
                let note = format!(
                    "{}, at most {} a bar",
                    counted(rows as usize, "row"),
                    number(most as f64)
                );
                c.text("gr-small gr-muted", plot.left, from + 8.0, Anchor::Start, &note);
                let wide = (plot.right - plot.left) / N_BARS as f64;
                for (i, &n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
                    let high = ((STRIP - 14.0) * n as f64 / most as f64).max(1.0);
                    let (lo, hi) = (i as f64 / N_BARS as f64, (i + 1) as f64 / N_BARS as f64);
                    let tip =
                        format!("{} to {}: {}", number(lo), number(hi), counted(n as usize, "row"));
                    let x = plot.left + i as f64 * wide;
                    c.rect("gr-bar", x + 0.5, to - high, wide - 1.0, high).tip(&tip);
                }
                c.line("gr-axis", (plot.left, to), (plot.right, to)).end();
                let middle = ((plot.left + plot.right) / 2.0, to + 18.0);
                let room = plot.right - plot.left;
                c.text_within("gr-muted", middle, Anchor::Middle, &self.labels.x, SIZE, room);
                to + 24.0
            }
        };
        let off = self.bins.iter().map(|bin| (bin.predicted - bin.observed).abs());
        let desc = format!(
            "Reliability diagram of {}; the largest distance from the diagonal is {}.",
            counted(self.bins.len(), "bin"),
            fixed(off.fold(0.0, f64::max), 3)
        );
        Drawing::new(width, height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probability_is_in_a_bar() {
        let bin = ReliabilityBin { predicted: 0.5, observed: 0.5, count: 4.0, interval: None };
        let chart = Reliability::new([bin]).scores(&[0.0, 1.0, 0.5, 0.499, f64::NAN, 7.0]);
        let counts = chart.histogram.as_ref().unwrap();
        assert_eq!((counts.iter().sum::<u64>(), counts[0], counts[9], counts[19]), (4, 1, 1, 1));
        assert!(chart.to_svg().contains("4 rows"));
    }
}
