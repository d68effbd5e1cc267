//! Points, one mark each.

use super::density::Density;
use super::{
    AxesSpec, Chart, Labels, axes, counted, diagonal, draw_trend, header, label_setters, level,
    no_data, sane, trend,
};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Canvas, Drawing};

/// More points than this are drawn as a density: marks would only hide one another.
const MAX_POINTS: usize = 4000;

/// A scatter plot for up to a few thousand points; more are drawn as a [`Density`].
///
/// ```
/// use gradus_report::{Chart, Scatter};
///
/// let svg = Scatter::new([(1.0, 1.2), (2.0, 1.9), (3.0, 3.3)]).diagonal().to_svg();
/// assert_eq!(svg.matches("<circle").count(), 3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    pub(crate) labels: Labels,
    points: Vec<(f64, f64)>,
    diagonal: bool,
    level: Option<f64>,
    trend: bool,
}

impl Scatter {
    label_setters!(height);

    /// A plot of these points.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let ok = |p: &(f64, f64)| drawable(p.0, false) && drawable(p.1, false);
        let points = points.into_iter().filter(ok).collect();
        Self { points, ..Self::default() }
    }

    /// Draws the line on which both coordinates are equal, and gives both axes the same range.
    #[must_use]
    pub fn diagonal(mut self) -> Self {
        self.diagonal = true;
        self
    }

    /// Draws a horizontal line at a level that matters, such as 0, and keeps it in view.
    #[must_use]
    pub fn level(mut self, y: f64) -> Self {
        self.level = drawable(y, false).then_some(y);
        self
    }

    /// Draws the mean of y along x, taken over groups of neighbouring points.
    #[must_use]
    pub fn trend(mut self) -> Self {
        self.trend = true;
        self
    }
}

impl Chart for Scatter {
    fn draw(&self, width: f64) -> Drawing {
        let width = if self.diagonal { sane(width).min(440.0) } else { sane(width) };
        if self.points.len() > MAX_POINTS {
            let mut density = Density::of(&self.points, self.diagonal);
            density.labels = self.labels.clone();
            density.level = self.level;
            if self.trend {
                density.trend = trend(&self.points);
            }
            return density.draw(width);
        }
        let [xs, ys] = [|p: &(f64, f64)| p.0, |p: &(f64, f64)| p.1]
            .map(|get| self.points.iter().map(get).collect::<Vec<_>>());
        let both = || Domain::of(xs.iter().chain(&ys).copied(), false);
        let (x, y) = if self.diagonal {
            (both(), both())
        } else {
            (
                Domain::of(xs.iter().copied(), false),
                Domain::of(ys.iter().copied().chain(self.level), false),
            )
        };
        let (Some(x), Some(y)) = (x, y) else { return no_data(&self.labels, width) };
        if self.points.is_empty() {
            return no_data(&self.labels, width);
        }
        let (x, y) = (x.padded(0.04), y.padded(0.04));

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
                square: self.diagonal,
                falling: false,
                head_row: false,
            },
        );
        if self.diagonal {
            diagonal(&mut c, &plot, x, y);
        }
        if let Some(at) = self.level {
            level(&mut c, &plot, y, at);
        }
        for &(px, py) in &self.points {
            let tip = format!("{} at {}", number(py), number(px));
            c.circle("gr-f1 gr-dot", plot.x.map(px), plot.y.map(py), 2.75).tip(&tip);
        }
        if self.trend {
            draw_trend(&mut c, &plot, &trend(&self.points));
        }
        let [xn, yn] =
            [(&self.labels.x, "x"), (&self.labels.y, "y")].map(|(l, o)| Labels::name(l, o));
        let desc =
            format!("Scatter plot of {yn} against {xn}, {}.", counted(self.points.len(), "point"));
        Drawing::new(width, plot.height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}
