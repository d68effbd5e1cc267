//! Predicted against true: the right chart for the data at hand.

use super::Chart;
use super::boxes::Boxes;
use super::density::Density;
use super::density::pairs;
use super::scatter::Scatter;
use crate::svg::Drawing;

/// The largest number of distinct true values that are levels (ten half-star ratings, zero, and one to spare).
const MAX_LEVELS: usize = 12;
/// Below this many pairs, single points say more than counts.
const FEW: usize = 1500;

/// The chart that [`predicted_vs_true`] chose.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PredictedVsTrue {
    /// Few distinct true values: a box per value.
    Boxes(Boxes),
    /// Few pairs: a point per pair.
    Scatter(Scatter),
    /// Many pairs: counts on a grid.
    Density(Density),
}

/// Draws predictions against true values, in the form that is most legible for them.
///
/// A box per level when the true values are at most 12 levels with five pairs each on average (ratings),
/// else one point per pair up to 1500 pairs, else a density; the latter two with the diagonal on which
/// predictions are exact. Pairs that are not finite are skipped; what one slice has beyond the other is
/// ignored.
///
/// ```
/// use gradus_report::{Chart, PredictedVsTrue, predicted_vs_true};
///
/// let truth: Vec<f32> = (0..1000).map(|i| (i % 5 + 1) as f32).collect();
/// let predicted: Vec<f32> = truth.iter().map(|t| 0.7 * t + 1.0).collect();
/// let chart = predicted_vs_true(&predicted, &truth).title("Held-out ratings");
/// assert!(matches!(chart, PredictedVsTrue::Boxes(_)));
/// assert!(chart.to_svg().contains("Held-out ratings"));
/// ```
pub fn predicted_vs_true(predicted: &[f32], truth: &[f32]) -> PredictedVsTrue {
    let finite = || predicted.iter().zip(truth).filter(|p| p.0.is_finite() && p.1.is_finite());
    let mut levels: Vec<f32> = Vec::new();
    for (_, &t) in finite() {
        if !levels.contains(&t) {
            levels.push(t);
            if levels.len() > MAX_LEVELS {
                break;
            }
        }
    }
    let n = finite().count();
    let chart = if levels.len() <= MAX_LEVELS && n >= 5 * levels.len() && n > 0 {
        PredictedVsTrue::Boxes(Boxes::by_level(predicted, truth))
    } else if n <= FEW {
        PredictedVsTrue::Scatter(Scatter::new(pairs(truth, predicted)).diagonal())
    } else {
        PredictedVsTrue::Density(Density::with_diagonal(truth, predicted))
    };
    chart.with(|labels| {
        labels.x = "true".into();
        labels.y = "predicted".into();
    })
}

impl PredictedVsTrue {
    fn with(mut self, change: impl FnOnce(&mut super::Labels)) -> Self {
        change(match &mut self {
            Self::Boxes(c) => &mut c.labels,
            Self::Scatter(c) => &mut c.labels,
            Self::Density(c) => &mut c.labels,
        });
        self
    }

    /// The title, drawn above the chart and read out by screen readers.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with(|labels| labels.title = title.into())
    }

    /// Sets the label of the horizontal axis; `true` by default.
    #[must_use]
    pub fn x_label(self, label: impl Into<String>) -> Self {
        self.with(|labels| labels.x = label.into())
    }

    /// Sets the label of the vertical axis; `predicted` by default.
    #[must_use]
    pub fn y_label(self, label: impl Into<String>) -> Self {
        self.with(|labels| labels.y = label.into())
    }
}

impl Chart for PredictedVsTrue {
    fn draw(&self, width: f64) -> Drawing {
        match self {
            Self::Boxes(c) => c.draw(width),
            Self::Scatter(c) => c.draw(width),
            Self::Density(c) => c.draw(width),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_the_data() {
        let many: Vec<f32> = (0..5000).map(|i| i as f32 / 10.0).collect();
        assert!(matches!(predicted_vs_true(&many, &many), PredictedVsTrue::Density(_)));
        assert!(matches!(predicted_vs_true(&many[..50], &many[..50]), PredictedVsTrue::Scatter(_)));
        let levels: Vec<f32> = (0..5000).map(|i| (i % 10) as f32 / 2.0).collect();
        assert!(matches!(predicted_vs_true(&many, &levels), PredictedVsTrue::Boxes(_)));
        assert!(predicted_vs_true(&[], &[]).to_svg().contains("no data"));
        assert!(predicted_vs_true(&[f32::NAN], &[1.0]).to_svg().contains("no data"));
    }
}
