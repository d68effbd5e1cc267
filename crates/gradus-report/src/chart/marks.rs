//! Named points: what each is called stands beside it.

use super::{AxesSpec, Chart, Labels, SIZE, axes, counted, header, label_setters, no_data, sane};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Anchor, Canvas, Drawing};
use crate::text;

/// A few named points, such as models by time and error, each with an interval in y if it is known.
///
/// Names are set beside their points where there is room, so that they cover neither each other nor
/// other points.
///
/// ```
/// use gradus_report::{Chart, Marks};
///
/// let svg = Marks::new([("als", 1.2, 0.91, (0.89, 0.93)), ("bias", 0.01, 0.94, (0.92, 0.96))])
///     .x_label("seconds")
///     .y_label("RMSE")
///     .log_x()
///     .highlight(["als"])
///     .to_svg();
/// assert_eq!(svg.matches("<circle").count(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Marks {
    labels: Labels,
    points: Vec<(String, f64, f64, (f64, f64))>,
    highlight: Vec<String>,
    log_x: bool,
}

impl Marks {
    label_setters!(height);

    /// A mark for each name, x, y and interval of y.
    pub fn new<N: Into<String>>(
        points: impl IntoIterator<Item = (N, f64, f64, (f64, f64))>,
    ) -> Self {
        let points = points.into_iter().map(|(name, x, y, within)| (name.into(), x, y, within));
        Self { points: points.collect(), ..Self::default() }
    }

    /// A logarithmic x axis; points that are not positive are left out.
    #[must_use]
    pub fn log_x(mut self) -> Self {
        self.log_x = true;
        self
    }

    /// Sets marks off from the others by their names.
    #[must_use]
    pub fn highlight<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.highlight = names.into_iter().map(Into::into).collect();
        self
    }
}

/// A rectangle that is taken: left, top, right, bottom.
type Area = [f64; 4];

fn overlap(a: Area, b: Area) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

impl Chart for Marks {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let ok =
            |p: &&(String, f64, f64, (f64, f64))| drawable(p.1, self.log_x) && drawable(p.2, false);
        let points: Vec<_> = self.points.iter().filter(ok).collect();
        let ends = points.iter().flat_map(|p| [p.2, p.3.0, p.3.1]);
        let x = Domain::of(points.iter().map(|p| p.1), self.log_x);
        let (Some(x), Some(y)) = (x, Domain::of(ends, false)) else {
            return no_data(&self.labels, width);
        };
        let (mut x, mut y) = (x.padded(0.08), y.padded(0.06));
        (x.integer, y.integer) = (false, false);
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, "");
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                height: self.labels.height_for(width),
                top,
                right: 10.0,
                x: Some(x),
                y,
                below: 0.0,
                square: false,
                falling: false,
                head_row: false,
            },
        );
        let at: Vec<(f64, f64)> =
            points.iter().map(|p| (plot.x.map(p.1), plot.y.map(p.2))).collect();
        let mut taken: Vec<Area> =
            at.iter().map(|p| [p.0 - 6.0, p.1 - 6.0, p.0 + 6.0, p.1 + 6.0]).collect();
        for (p, &(px, _)) in points.iter().zip(&at) {
            let strong = self.highlight.contains(&p.0);
            let [low, high] = [p.3.0, p.3.1].map(|end| drawable(end, false).then_some(end));
            let bottom = low.map_or(plot.bottom, |end| plot.y.map(end));
            let upper = high.map_or(plot.top, |end| plot.y.map(end));
            let colour = if strong { "gr-line gr-s1" } else { "gr-line gr-s6" };
            c.line(colour, (px, bottom), (px, upper)).num("stroke-opacity", 0.45).end();
        }
        for (p, &(px, py)) in points.iter().zip(&at) {
            let strong = self.highlight.contains(&p.0);
            let fill = if strong { "gr-f1 gr-halo" } else { "gr-f6 gr-halo" };
            let tip = format!("{}: {} at {}", p.0, number(p.2), number(p.1));
            c.circle(fill, px, py, 5.0).tip(&tip);
            let w = if strong { text::strong_width(&p.0, SIZE) } else { text::width(&p.0, SIZE) };
            let places = [
                (px + 9.0, py + 4.0, Anchor::Start, [px + 8.0, py - 7.0, px + 10.0 + w, py + 7.0]),
                (px - 9.0, py + 4.0, Anchor::End, [px - 10.0 - w, py - 7.0, px - 8.0, py + 7.0]),
                (px + 4.0, py - 10.0, Anchor::Start, [px, py - 21.0, px + 5.0 + w, py - 7.0]),
                (px + 4.0, py + 18.0, Anchor::Start, [px, py + 7.0, px + 5.0 + w, py + 21.0]),
                (px - 4.0, py - 10.0, Anchor::End, [px - 5.0 - w, py - 21.0, px, py - 7.0]),
                (px - 4.0, py + 18.0, Anchor::End, [px - 5.0 - w, py + 7.0, px, py + 21.0]),
            ];
            let inside = |a: &Area| a[0] >= plot.left && a[2] <= width && a[1] >= plot.top - 8.0;
            let own = [px - 6.0, py - 6.0, px + 6.0, py + 6.0];
            let free = |a: &Area| taken.iter().all(|b| *b == own || !overlap(*a, *b));
            let place = places.iter().find(|p| inside(&p.3) && free(&p.3));
            // Where all places are taken the tooltip has the name.
            if let Some(&(x, y, anchor, area)) = place {
                c.text(if strong { "gr-strong" } else { "" }, x, y, anchor, &p.0);
                taken.push(area);
            }
        }
        let [xn, yn] =
            [(&self.labels.x, "x"), (&self.labels.y, "y")].map(|(l, o)| Labels::name(l, o));
        let desc = format!("{yn} against {xn}, {}.", counted(points.len(), "point"));
        Drawing::new(width, plot.height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_beside_their_points_and_do_not_cover_each_other() {
        let inf = (f64::NEG_INFINITY, f64::INFINITY);
        let marks = Marks::new([
            ("one", 1.0, 1.0, (0.5, 1.5)),
            ("two", 1.0, 1.01, (0.5, 1.5)),
            ("far", 100.0, 2.0, inf),
            ("no time", 0.0, 2.0, inf),
        ]);
        let svg = marks.clone().log_x().draw(700.0).embedded();
        assert_eq!(svg.matches("<circle").count(), 3);
        for name in ["one", "two", "far"] {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}");
        }
        assert!(!svg.contains("NaN"));
        assert_eq!(marks.draw(700.0).embedded().matches("<circle").count(), 4);
        assert!(Marks::new([("a", f64::NAN, 1.0, inf)]).to_svg().contains("no data"));
    }
}
