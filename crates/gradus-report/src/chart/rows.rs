//! Charts one above the other in one drawing.

use super::{Chart, sane};
use crate::svg::{Canvas, Drawing};

/// Room between two charts.
const GAP: f64 = 16.0;

/// Charts one above the other in one drawing, all of one width.
///
/// ```
/// use gradus_report::{Chart, Line, Rows};
///
/// let line = |name: &str| Line::new().series(name, [(0.0, 1.0), (1.0, 2.0)]);
/// let svg = Rows::new([line("above"), line("below")]).title("Both").to_svg();
/// assert_eq!(svg.matches("<svg").count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Rows<C> {
    charts: Vec<C>,
    title: String,
}

impl<C: Chart> Rows<C> {
    /// These charts, from top to bottom.
    pub fn new(charts: impl IntoIterator<Item = C>) -> Self {
        Self { charts: charts.into_iter().collect(), title: String::new() }
    }

    /// The title for screen readers; it is not drawn.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }
}

impl<C: Chart> Chart for Rows<C> {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let mut c = Canvas::default();
        let (mut top, mut desc) = (0.0, String::new());
        for (at, chart) in self.charts.iter().enumerate() {
            let drawing = chart.draw(width);
            if at > 0 {
                top += GAP;
                desc.push(' ');
            }
            c.place(&drawing, 0.0, top);
            top += drawing.height();
            desc.push_str(drawing.description());
        }
        Drawing::new(width, top, &self.title, &desc, c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    #[test]
    fn charts_stand_one_above_the_other() {
        let line = || Line::new().series("a", [(0.0, 1.0), (1.0, 2.0)]).height(200.0);
        let one = line().draw(500.0);
        let three = Rows::new([line(), line(), line()]).draw(500.0);
        assert_eq!(three.height(), 3.0 * one.height() + 2.0 * GAP);
        assert_eq!(three.embedded().matches("translate(").count(), 3);
    }
}
