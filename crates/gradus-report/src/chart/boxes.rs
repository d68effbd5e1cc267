//! Quantile boxes: one distribution per group.

use super::thinning;
use super::{AxesSpec, Chart, Labels, SIZE, axes, counted, header, label_setters, no_data, sane};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Anchor, Canvas, Drawing};
use crate::text;

/// One box per group: the quartiles as a box, 5 % and 95 % as whiskers, the median as a bar, the mean as
/// a dot.
///
/// ```
/// use gradus_report::{Boxes, Chart};
///
/// let svg = Boxes::new([("a", vec![1.0, 2.0, 3.0]), ("b", vec![2.0, 4.0, 8.0])]).to_svg();
/// assert!(svg.contains("median 2"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Boxes {
    pub(crate) labels: Labels,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    name: String,
    /// The value every member should have had, if there is one.
    target: Option<f64>,
    n: usize,
    /// 5, 25, 50, 75 and 95 %.
    quantiles: [f64; 5],
    mean: f64,
}

impl Group {
    fn of(name: String, target: Option<f64>, mut values: Vec<f64>) -> Self {
        values.retain(|&v| drawable(v, false));
        values.sort_by(f64::total_cmp);
        // Dividing first keeps the sum of huge values finite.
        let n = values.len();
        let mean = values.iter().map(|v| v / n as f64).sum::<f64>();
        let quantiles = [0.05, 0.25, 0.5, 0.75, 0.95].map(|p| quantile(&values, p));
        Self { name, target, n, quantiles, mean }
    }
}

/// Linear interpolation between order statistics (Hyndman and Fan's type 7, as in NumPy and R).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = p * last as f64;
    let (i, share) = (at.floor() as usize, at.fract());
    let (a, b) = (sorted[i], sorted[(i + 1).min(last)]);
    a * (1.0 - share) + b * share
}

impl Boxes {
    label_setters!(height);

    /// One box per named group, in the order given.
    pub fn new<N: Into<String>>(groups: impl IntoIterator<Item = (N, Vec<f64>)>) -> Self {
        let groups = groups.into_iter().map(|(n, v)| Group::of(n.into(), None, v)).collect();
        Self { labels: Labels::default(), groups }
    }

    /// One box of predictions per distinct true value, with a dashed mark where they should be.
    ///
    /// Pairs with a value that is not finite are skipped; what one slice has beyond the other is
    /// ignored. Meant for few distinct true values, such as ratings.
    pub fn by_level(predicted: &[f32], truth: &[f32]) -> Self {
        let mut pairs: Vec<(f32, f32)> =
            truth.iter().copied().zip(predicted.iter().copied()).collect();
        pairs.retain(|p| p.0.is_finite() && p.1.is_finite());
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let groups = pairs.chunk_by(|a, b| a.0 == b.0).map(|level| {
            let values = level.iter().map(|p| f64::from(p.1)).collect();
            // Through the shortest decimal form: 0.1f32 means 0.1, not 0.10000000149.
            let target = level[0].0.to_string().parse().unwrap_or(f64::from(level[0].0));
            Group::of(number(target), Some(target), values)
        });
        Self { labels: Labels::default(), groups: groups.collect() }
    }
}

impl Chart for Boxes {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width).min(640.0);
        let filled = || self.groups.iter().filter(|g| g.n > 0);
        let values = filled().flat_map(|g| g.quantiles.into_iter().chain([g.mean]).chain(g.target));
        let Some(mut y) = Domain::of(values, false) else { return no_data(&self.labels, width) };
        y.integer = false;
        let targets = filled().any(|g| g.target.is_some());
        let mut note = "box 25–75 %, whiskers 5–95 %, bar median, dot mean".to_owned();
        if targets {
            note.push_str(", dashes exact");
        }
        let n = |g: &Group| format!("n = {}", number(g.n as f64));
        let widest_n = self.groups.iter().map(|g| text::width(&n(g), 11.0)).fold(0.0_f64, f64::max);
        // The axis labels on the left take about 40.
        let sizes = widest_n + 4.0 <= (width - 40.0) / self.groups.len() as f64;
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, &note);
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                height: self.labels.height.unwrap_or(350.0),
                top,
                right: 10.0,
                x: None,
                y: y.padded(0.05),
                below: if sizes { 38.0 } else { 22.0 },
                square: false,
                falling: false,
                head_row: false,
            },
        );
        let pitch = (plot.right - plot.left) / self.groups.len() as f64;
        let widest = self.groups.iter().map(|g| text::width(&g.name, SIZE)).fold(0.0_f64, f64::max);
        let every = thinning(widest.min(110.0), pitch);
        for (i, g) in self.groups.iter().enumerate() {
            let x = plot.left + (i as f64 + 0.5) * pitch;
            if i % every == 0 {
                let at = (x, plot.bottom + 16.0);
                c.text_within("", at, Anchor::Middle, &g.name, SIZE, 110.0);
            }
            if sizes {
                let at = plot.bottom + 31.0;
                c.text("gr-small gr-muted", x, at, Anchor::Middle, &n(g));
            }
            if g.n > 0 {
                draw_box(&mut c, g, x, pitch, &|v| plot.y.map(v));
            }
        }
        let desc = format!("Box plot of {}.", counted(self.groups.len(), "group"));
        Drawing::new(width, plot.height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

fn draw_box(c: &mut Canvas, g: &Group, x: f64, pitch: f64, y: &dyn Fn(f64) -> f64) {
    let half = (pitch * 0.3).clamp(1.0, 24.0);
    let [p5, p25, p50, p75, p95] = g.quantiles.map(y);
    let cap = half * 0.45;
    if let Some(target) = g.target {
        let reach = (pitch * 0.46).max(half);
        let tip = format!("exact: {}", number(target));
        c.line("gr-ref", (x - reach, y(target)), (x + reach, y(target))).tip(&tip);
    }
    for (from, to) in [((x, p95), (x, p75)), ((x, p25), (x, p5))] {
        c.line("gr-box", from, to).end();
    }
    for at in [p5, p95] {
        c.line("gr-box", (x - cap, at), (x + cap, at)).end();
    }
    let [q5, q25, q50, q75, q95] = g.quantiles.map(number);
    let tip = format!(
        "{} ({}): median {q50}, mean {}, quartiles {q25} to {q75}, 5–95 % {q5} to {q95}",
        g.name,
        counted(g.n, "value"),
        number(g.mean),
    );
    c.rect("gr-box", x - half, p75, 2.0 * half, (p25 - p75).max(1.0)).tip(&tip);
    c.line("gr-med", (x - half, p50), (x + half, p50)).end();
    c.circle("gr-f2 gr-halo", x, y(g.mean), 4.0).tip(&tip);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let v = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&v, 0.5), 2.5);
        assert_eq!(quantile(&v, 0.25), 1.75);
        assert_eq!(quantile(&[7.0], 0.95), 7.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn levels_are_grouped_in_order_and_hold_every_pair() {
        let truth = [5.0, 1.0, 5.0, 0.1, f32::NAN, 2.0];
        let predicted = [4.0, 2.0, 4.5, 0.0, 1.0, f32::INFINITY];
        let boxes = Boxes::by_level(&predicted, &truth);
        let names: Vec<_> = boxes.groups.iter().map(|g| (g.name.as_str(), g.n)).collect();
        assert_eq!(names, [("0.1", 1), ("1", 1), ("5", 2)]);
        assert_eq!(boxes.groups[2].mean, 4.25);
    }
}
