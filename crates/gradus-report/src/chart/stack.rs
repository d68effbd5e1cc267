//! Parts that add up, along an axis: bias, variance and noise against complexity.

use super::line::{End, ROW, draw_ends, draw_marker, thinned};
use super::{
    AxesSpec, Chart, Key, Labels, SIZE, axes, header, label_setters, legend, no_data, sane,
};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Canvas, Drawing};
use crate::text;
use crate::theme::N_SERIES;

/// Layers on top of one another, whose heights add up to a total.
///
/// Points at which x or a layer cannot be drawn are left out; negative parts count as nothing.
///
/// ```
/// use gradus_report::{Chart, Stack};
///
/// let svg = Stack::new([1.0, 2.0, 3.0])
///     .layer("bias²", [4.0, 1.0, 0.5])
///     .layer("variance", [0.2, 0.5, 2.0])
///     .total("test error")
///     .marker(2.0, "least")
///     .to_svg();
/// assert!(svg.contains("variance"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stack {
    labels: Labels,
    x: Vec<f64>,
    layers: Vec<(String, Vec<f64>)>,
    total: Option<String>,
    marker: Option<(f64, String)>,
    log_x: bool,
    falling: bool,
}

impl Stack {
    label_setters!(height);

    /// A chart along these places.
    pub fn new(x: impl IntoIterator<Item = f64>) -> Self {
        Self { x: x.into_iter().collect(), ..Self::default() }
    }

    /// Adds a layer on top of those there are: a height for each place.
    #[must_use]
    pub fn layer(
        mut self,
        name: impl Into<String>,
        heights: impl IntoIterator<Item = f64>,
    ) -> Self {
        self.layers.push((name.into(), heights.into_iter().collect()));
        self
    }

    /// Names the upper edge.
    #[must_use]
    pub fn total(mut self, name: impl Into<String>) -> Self {
        self.total = Some(name.into());
        self
    }

    /// Marks one place along x with a vertical line, such as the least total.
    #[must_use]
    pub fn marker(mut self, x: f64, label: impl Into<String>) -> Self {
        self.marker = Some((x, label.into()));
        self
    }

    /// Makes the horizontal axis logarithmic.
    #[must_use]
    pub fn log_x(mut self) -> Self {
        self.log_x = true;
        self
    }

    /// Lets the horizontal axis fall from left to right: for a penalty, whose smallest values give
    /// the most complex model.
    #[must_use]
    pub fn falling_x(mut self) -> Self {
        self.falling = true;
        self
    }

    /// The places that can be drawn, by rising x, with the heights up to each layer's upper edge.
    fn edges(&self) -> Vec<(f64, Vec<f64>)> {
        let mut found: Vec<(f64, Vec<f64>)> = Vec::new();
        for (i, &x) in self.x.iter().enumerate().filter(|(_, x)| drawable(**x, self.log_x)) {
            let mut sum = 0.0;
            let heights = self.layers.iter().map(|(_, heights)| {
                sum += heights.get(i).copied().unwrap_or(f64::NAN).max(0.0);
                // `max` drops what is not a number; a layer that is missing must not pass for 0.
                let known = heights.get(i).is_some_and(|&v| drawable(v, false));
                if known { sum } else { f64::NAN }
            });
            let heights: Vec<f64> = heights.collect();
            if heights.iter().all(|&v| drawable(v, false)) && !heights.is_empty() {
                found.push((x, heights));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }
}

impl Chart for Stack {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let edges = self.edges();
        let marker = self.marker.as_ref().filter(|m| drawable(m.0, self.log_x));
        let xs = edges.iter().map(|e| e.0).chain(marker.map(|m| m.0));
        let tops = edges.iter().filter_map(|e| e.1.last().copied());
        let (Some(x), Some(mut y)) =
            (Domain::of(xs, self.log_x), Domain::of(tops.chain([0.0]), false))
        else {
            return no_data(&self.labels, width);
        };
        if edges.is_empty() {
            return no_data(&self.labels, width);
        }
        y.integer = false;
        y.lo = y.lo.max(0.0);
        let mut c = Canvas::default();
        let height = self.labels.height_for(width);
        let mut top = header(&mut c, &self.labels, width, "");
        let names = self.layers.iter().map(|(name, _)| name).chain(&self.total);
        let widest = names.map(|name| text::strong_width(name, SIZE)).fold(0.0_f64, f64::max);
        let rows = (self.layers.len() + 1) as f64 * ROW;
        let direct = widest + 16.0 <= width * 0.36 && rows <= height - top - 90.0;
        let fill = |i: usize| format!("gr-f{}", i % N_SERIES + 1);
        if !direct {
            let keys: Vec<Key<'_>> = self
                .layers
                .iter()
                .enumerate()
                .map(|(i, (name, _))| Key {
                    name,
                    class: format!("gr-line gr-s{}", i % N_SERIES + 1),
                })
                .chain(self.total.iter().map(|name| Key { name, class: "gr-line gr-edge".into() }))
                .collect();
            top = legend(&mut c, &keys, width, top);
        }
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                height: height.max(top + 200.0),
                top,
                right: if direct { widest + 16.0 } else { 10.0 },
                x: Some(x),
                y: y.padded(0.05),
                below: 0.0,
                square: false,
                falling: self.falling,
                head_row: marker.is_some_and(|m| !m.1.is_empty()),
            },
        );
        let mut edges = edges;
        if self.falling {
            edges.reverse();
        }
        let edge = |layer: usize| -> Vec<(f64, f64)> {
            let up_to = |heights: &[f64]| if layer == 0 { 0.0 } else { heights[layer - 1] };
            edges.iter().map(|(x, h)| (plot.x.map(*x), plot.y.map(up_to(h)))).collect()
        };
        let mut ends: Vec<End<'_>> = Vec::new();
        for (i, (name, _)) in self.layers.iter().enumerate() {
            let (below, above) = (thinned(&edge(i)), thinned(&edge(i + 1)));
            let mut area = above.clone();
            area.extend(below.iter().rev());
            if area.len() > 2 {
                c.polyline(&format!("gr-layer {}", fill(i)), &area).tip(name);
            }
            let (a, b) = (below[below.len() - 1].1, above[above.len() - 1].1);
            if !name.is_empty() {
                let class = format!("gr-strong {}", fill(i));
                ends.push(End { y: (a + b) / 2.0, name, class, touches: false });
            }
        }
        let total = thinned(&edge(self.layers.len()));
        if let [(x, y)] = total[..] {
            c.circle("gr-dot", x, y, 3.5).end();
        } else {
            c.polyline("gr-line gr-edge", &total).end();
        }
        if let Some(name) = &self.total {
            let y = total[total.len() - 1].1;
            ends.push(End { y, name, class: "gr-strong".into(), touches: true });
        }
        if let Some((x, label)) = marker {
            draw_marker(&mut c, &plot, *x, label);
        }
        let every = edges.len().div_ceil(120).max(1);
        for (x, heights) in edges.iter().step_by(every) {
            let mut before = 0.0;
            let mut tip = format!("at {}:", number(*x));
            for ((name, _), &h) in self.layers.iter().zip(heights) {
                tip.push_str(&format!(" {name} {},", number(h - before)));
                before = h;
            }
            tip.push_str(&format!(" together {}", number(before)));
            c.circle("gr-hit gr-f6", plot.x.map(*x), plot.y.map(before), 6.0).tip(&tip);
        }
        if direct {
            draw_ends(&mut c, &plot, ends);
        }
        let [xn, yn] =
            [(&self.labels.x, "x"), (&self.labels.y, "y")].map(|(l, o)| Labels::name(l, o));
        let names: Vec<_> = self.layers.iter().map(|(name, _)| name.as_str()).collect();
        let desc = format!("Layers of {yn} against {xn}: {}.", names.join(", "));
        Drawing::new(width, plot.height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_add_up_in_order_of_x() {
        let stack =
            Stack::new([2.0, 1.0, f64::NAN]).layer("a", [1.0, 2.0, 3.0]).layer("b", [4.0, -1.0]);
        assert_eq!(stack.edges(), [(1.0, vec![2.0, 2.0]), (2.0, vec![1.0, 5.0])]);
    }

    #[test]
    fn missing_heights_are_left_out() {
        let stack = Stack::new([1.0, 2.0]).layer("a", [1.0, f64::NAN]).layer("b", [1.0]);
        assert_eq!(stack.edges().len(), 1);
        assert!(Stack::new([1.0]).to_svg().contains("no data"));
        assert!(Stack::new([]).layer("a", [1.0]).to_svg().contains("no data"));
    }
}
