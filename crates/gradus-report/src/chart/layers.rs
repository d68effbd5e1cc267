//! A small network: units in layers, with a line of text for each number, and connections between them.

use super::{Chart, Labels, SIZE, counted, header, label_setters, no_data, sane};
use crate::svg::{Anchor, Canvas, Drawing};

/// Half the width, and half the height, of the box of a unit.
const HALF: (f64, f64) = (62.0, 30.0);
/// Distance of the centres of units in a layer.
const APART: f64 = 92.0;

/// A network of a few units, layer by layer from left to right.
///
/// ```
/// use gradus_report::{Chart, Layers};
///
/// let svg = Layers::new()
///     .layer("input", [("x1", vec!["1.0".to_owned()])])
///     .layer("output", [("y", vec!["0.5".to_owned()])])
///     .connect((0, 0), (1, 0), 0.5, "w = 0.5")
///     .to_svg();
/// assert!(svg.contains("w = 0.5"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Layers {
    labels: Labels,
    layers: Vec<(String, Vec<Unit>)>,
    connections: Vec<Connection>,
}

#[derive(Clone, Debug)]
struct Unit {
    name: String,
    lines: Vec<String>,
}

/// A connection of two units, each the number of its layer and its number there.
#[derive(Clone, Debug)]
struct Connection {
    from: (usize, usize),
    to: (usize, usize),
    weight: f64,
    text: String,
}

impl Layers {
    label_setters!();

    /// No units yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a layer of units, each with a name and lines of text.
    #[must_use]
    pub fn layer<N: Into<String>>(
        mut self,
        name: impl Into<String>,
        units: impl IntoIterator<Item = (N, Vec<String>)>,
    ) -> Self {
        let units = units.into_iter().map(|(name, lines)| Unit { name: name.into(), lines });
        self.layers.push((name.into(), units.collect()));
        self
    }

    /// Connects two units, `(layer, unit)`. The line is the stronger the larger the weight is beside the others, and its colour
    /// is that of its sign; `text` stands on it. Units that are not there are passed over.
    #[must_use]
    pub fn connect(
        mut self,
        from: (usize, usize),
        to: (usize, usize),
        weight: f64,
        text: impl Into<String>,
    ) -> Self {
        let there = |(layer, unit): (usize, usize)| {
            self.layers.get(layer).is_some_and(|(_, units)| unit < units.len())
        };
        if there(from) && there(to) {
            self.connections.push(Connection { from, to, weight, text: text.into() });
        }
        self
    }
}

impl Chart for Layers {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let tallest = self.layers.iter().map(|(_, units)| units.len()).max().unwrap_or(0);
        if tallest == 0 {
            return no_data(&self.labels, width);
        }
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, "") + 22.0;
        let height = tallest as f64 * APART;
        let gaps = (self.layers.len() - 1).max(1) as f64;
        let place = |(layer, unit): (usize, usize)| {
            let n = self.layers[layer].1.len() as f64;
            let x = HALF.0 + 2.0 + layer as f64 * (width - 2.0 * HALF.0 - 4.0) / gaps;
            (x, top + height / 2.0 + (unit as f64 - (n - 1.0) / 2.0) * APART)
        };
        let largest = self.connections.iter().map(|one| one.weight.abs()).filter(|w| w.is_finite());
        let largest = largest.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        for one in &self.connections {
            let ((x1, y1), (x2, y2)) = (place(one.from), place(one.to));
            let class = if one.weight < 0.0 { "gr-s2" } else { "gr-s1" };
            let share = if one.weight.is_finite() { one.weight.abs() / largest } else { 0.0 };
            let line = c.line(class, (x1 + HALF.0, y1), (x2 - HALF.0, y2));
            line.num("stroke-width", 0.75 + 3.25 * share).num("stroke-opacity", 0.55).end();
        }
        for one in &self.connections {
            let ((x1, y1), (x2, y2)) = (place(one.from), place(one.to));
            // Texts of the connections of one unit stand at different places along them, so that they do not cover each other.
            let n = self.layers[one.to.0].1.len().max(1) as f64;
            let share = 0.22 + 0.5 * (one.to.1 as f64 + 0.5) / n;
            let (left, right) = (x1 + HALF.0, x2 - HALF.0);
            let at = (left + share * (right - left), y1 + share * (y2 - y1) - 3.0);
            c.text("gr-small", at.0, at.1, Anchor::Middle, &one.text);
        }
        for (layer, (name, units)) in self.layers.iter().enumerate() {
            let x = place((layer, 0)).0;
            c.text_within("gr-muted", (x, top - 8.0), Anchor::Middle, name, SIZE, 2.0 * HALF.0);
            for (at, unit) in units.iter().enumerate() {
                let (x, y) = place((layer, at));
                let class = "gr-box";
                c.rect(class, x - HALF.0, y - HALF.1, 2.0 * HALF.0, 2.0 * HALF.1)
                    .num("rx", 8.0)
                    .end();
                c.text("gr-strong", x, y - HALF.1 + 15.0, Anchor::Middle, &unit.name);
                for (line, text) in unit.lines.iter().take(3).enumerate() {
                    let y = y - HALF.1 + 29.0 + 13.0 * line as f64;
                    c.text("gr-small", x, y, Anchor::Middle, text);
                }
            }
        }
        let units = self.layers.iter().map(|(_, units)| units.len()).sum();
        let desc =
            format!("{} in {}.", counted(units, "unit"), counted(self.layers.len(), "layer"));
        Drawing::new(width, top + height + 4.0, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_units_that_are_not_there_are_passed_over() {
        let chart = Layers::new()
            .layer("a", [("x", vec![])])
            .layer("b", [("y", vec!["1 < 2".to_owned()])])
            .connect((0, 0), (1, 0), -1.0, "here")
            .connect((0, 1), (1, 0), 1.0, "not here")
            .connect((0, 0), (2, 0), f64::NAN, "nor here");
        let svg = chart.to_svg();
        assert!(svg.contains("here") && !svg.contains("not here") && !svg.contains("nor here"));
        assert!(svg.contains("1 &lt; 2"));
        assert!(Layers::new().to_svg().contains("svg"));
    }
}
