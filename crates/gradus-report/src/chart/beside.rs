//! Two charts in one drawing.

use super::{Chart, sane};
use crate::svg::{Canvas, Drawing};

/// Room between the two.
const GAP: f64 = 36.0;
/// Below this width they stand one above the other.
const ROOM: f64 = 640.0;

/// Two charts side by side in one drawing; one above the other where it is narrow.
///
/// ```
/// use gradus_report::{Beside, Chart, Line};
///
/// let line = |name: &str| Line::new().series(name, [(0.0, 1.0), (1.0, 2.0)]);
/// let svg = Beside::new(line("left"), line("right")).title("Both").to_svg();
/// assert_eq!(svg.matches("<svg").count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Beside<A, B> {
    left: A,
    right: B,
    share: f64,
    title: String,
}

impl<A: Chart, B: Chart> Beside<A, B> {
    /// Both of one width.
    pub fn new(left: A, right: B) -> Self {
        Self { left, right, share: 0.5, title: String::new() }
    }

    /// The share of the width that the left one has, brought inside 0.2–0.8.
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        self.share = if share.is_finite() { share.clamp(0.2, 0.8) } else { 0.5 };
        self
    }

    /// The title for screen readers; it is not drawn.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }
}

impl<A: Chart, B: Chart> Chart for Beside<A, B> {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let mut c = Canvas::default();
        let (desc, height);
        if width < ROOM {
            let (a, b) = (self.left.draw(width), self.right.draw(width));
            c.place(&a, 0.0, 0.0);
            c.place(&b, 0.0, a.height() + GAP);
            height = a.height() + GAP + b.height();
            desc = format!("{} {}", a.description(), b.description());
        } else {
            let first = ((width - GAP) * self.share).round();
            let (a, b) = (self.left.draw(first), self.right.draw(width - GAP - first));
            c.place(&a, 0.0, 0.0);
            c.place(&b, first + GAP, 0.0);
            height = a.height().max(b.height());
            desc = format!("{} {}", a.description(), b.description());
        }
        Drawing::new(width, height, &self.title, &desc, c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    #[test]
    fn wide_is_side_by_side_and_narrow_is_stacked() {
        let line = || Line::new().series("a", [(0.0, 1.0), (1.0, 2.0)]).height(200.0);
        let both = Beside::new(line(), line()).share(0.6);
        let (wide, narrow) = (both.draw(1000.0), both.draw(400.0));
        assert!(wide.height() < 250.0 && narrow.height() > 400.0);
        assert_eq!(wide.width(), 1000.0);
        let svg = wide.embedded();
        assert_eq!((svg.matches("<svg").count(), svg.matches("translate(").count()), (1, 2));
        // (1000 − 36) · 0.6 = 578, and the gap.
        assert!(svg.contains("translate(614 0)"));
    }
}
