//! Curves in the unit square: ROC, and precision against recall.

use super::line::{series_class, thinned};
use super::{AxesSpec, Chart, Key, Labels, axes, header, label_setters, legend, no_data, sane};
use crate::scale::{drawable, fixed};
use crate::svg::{Canvas, Drawing};
use crate::theme::N_SERIES;

/// Tooltips along a curve.
const TIPS: usize = 40;

/// One curve or several in the unit square, each with the area below it, beside what guessing gets.
///
/// ```
/// use gradus_report::{Chart, Curves};
///
/// let svg = Curves::roc()
///     .curve("logistic", [(0.0, 0.0), (0.1, 0.7), (0.4, 0.95), (1.0, 1.0)], 0.873)
///     .to_svg();
/// assert!(svg.contains("logistic, AUC 0.873"));
/// ```
#[derive(Clone, Debug)]
pub struct Curves {
    labels: Labels,
    curves: Vec<Curve>,
    kind: Kind,
}

#[derive(Clone, Debug)]
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    area: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Roc,
    /// A precision-recall curve, with the share of positive rows.
    PrecisionRecall(f64),
}

impl Curves {
    label_setters!(axes);

    /// Receiver operating characteristics: points are (false positive rate, true positive rate), from
    /// (0, 0) to (1, 1), and areas are AUCs. Guessing is on the diagonal.
    pub fn roc() -> Self {
        let labels = Labels {
            x: "false positive rate".into(),
            y: "true positive rate".into(),
            ..Labels::default()
        };
        Self { labels, curves: Vec::new(), kind: Kind::Roc }
    }

    /// Precision against recall: points are (recall, precision) by rising recall, drawn in steps, and
    /// areas are average precisions. `share` is the share of the rows that are yes, which is the
    /// precision of guessing.
    pub fn precision_recall(share: f64) -> Self {
        let labels = Labels { x: "recall".into(), y: "precision".into(), ..Labels::default() };
        Self { labels, curves: Vec::new(), kind: Kind::PrecisionRecall(share) }
    }

    /// Adds a curve and the area below it. The name may be empty.
    #[must_use]
    pub fn curve(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
        area: f64,
    ) -> Self {
        let inside = |v: f64| drawable(v, false) && (-1e-9..=1.0 + 1e-9).contains(&v);
        let points = points.into_iter().filter(|p| inside(p.0) && inside(p.1)).collect();
        self.curves.push(Curve { name: name.into(), points, area });
        self
    }

    fn legend_of(&self, name: &str, area: f64) -> String {
        let what = if self.kind == Kind::Roc { "AUC" } else { "average precision" };
        let comma = if name.is_empty() { "" } else { ", " };
        format!("{name}{comma}{what} {}", fixed(area, 3))
    }
}

/// The corners of a curve that keeps its height until the next point is reached from the left.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(2 * points.len());
    let mut before = 0.0;
    for &(x, y) in points {
        out.push((before, y));
        out.push((x, y));
        before = x;
    }
    out
}

impl Chart for Curves {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width).min(440.0);
        if self.curves.iter().all(|curve| curve.points.is_empty()) {
            return no_data(&self.labels, width);
        }
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, "");
        let names: Vec<String> =
            self.curves.iter().map(|curve| self.legend_of(&curve.name, curve.area)).collect();
        let mut keys: Vec<Key<'_>> = Vec::new();
        for (i, name) in names.iter().enumerate() {
            keys.push(Key { name, class: series_class(i) });
        }
        keys.push(Key { name: "guessing", class: "gr-ref".into() });
        let top = legend(&mut c, &keys, width, top) + 2.0;
        let plot = axes(&mut c, &AxesSpec::unit_square(&self.labels, width, top));
        let at = |p: &(f64, f64)| (plot.x.map(p.0), plot.y.map(p.1));
        match self.kind {
            Kind::Roc => {
                c.line("gr-ref", at(&(0.0, 0.0)), at(&(1.0, 1.0))).tip("guessing");
            }
            Kind::PrecisionRecall(share) if (0.0..=1.0).contains(&share) => {
                let tip = format!("guessing: {}", fixed(share, 3));
                c.line("gr-ref", at(&(0.0, share)), at(&(1.0, share))).tip(&tip);
            }
            Kind::PrecisionRecall(_) => {}
        }
        // With one curve the area itself can be shown.
        for (i, Curve { name, points, .. }) in self.curves.iter().enumerate() {
            if points.is_empty() {
                continue;
            }
            let drawn: Vec<_> = match self.kind {
                Kind::Roc => points.iter().map(at).collect(),
                Kind::PrecisionRecall(_) => steps(points).iter().map(at).collect(),
            };
            let drawn = thinned(&drawn);
            if self.curves.len() == 1 {
                let mut area = drawn.clone();
                area.push((drawn[drawn.len() - 1].0, plot.bottom));
                area.push((drawn[0].0, plot.bottom));
                c.polyline("gr-area gr-f1", &area).end();
            }
            c.polyline(&series_class(i), &drawn).end();
            let every = points.len().div_ceil(TIPS).max(1);
            for (x, y) in points.iter().step_by(every) {
                let [xn, yn] = [&self.labels.x, &self.labels.y];
                let colon = if name.is_empty() { "" } else { ": " };
                let tip = format!("{name}{colon}{yn} {}, {xn} {}", fixed(*y, 3), fixed(*x, 3));
                let class = format!("gr-hit gr-f{}", i % N_SERIES + 1);
                c.circle(&class, plot.x.map(*x), plot.y.map(*y), 6.0).tip(&tip);
            }
        }
        let [xn, yn] = [&self.labels.x, &self.labels.y];
        let desc = format!("{yn} against {xn}: {}.", names.join("; "));
        Drawing::new(width, plot.height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_is_drawn_in_steps() {
        assert_eq!(
            steps(&[(0.5, 1.0), (1.0, 0.6)]),
            [(0.0, 1.0), (0.5, 1.0), (0.5, 0.6), (1.0, 0.6)]
        );
    }

    #[test]
    fn a_million_points_make_a_small_drawing() {
        let n = 1_000_000;
        let points = (0..=n).map(|i| f64::from(i) / f64::from(n)).map(|x| (x, x.sqrt()));
        let svg = Curves::roc().curve("", points, 2.0 / 3.0).to_svg();
        assert!(svg.len() < 100_000, "{}", svg.len());
        assert!(svg.contains("AUC 0.667"));
    }

    #[test]
    fn points_outside_are_not_drawn() {
        let curves =
            Curves::precision_recall(f64::NAN).curve("a", [(2.0, 0.5), (f64::NAN, 0.1)], 0.1);
        assert!(curves.to_svg().contains("no data"));
    }
}
