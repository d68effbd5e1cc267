//! Points, one mark each.

use super::density::Density;
use super::line::series_class;
use super::{
    AxesSpec, Chart, Key, Labels, axes, counted, diagonal, draw_trend, header, label_setters,
    legend, level, no_data, sane, trend,
};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Canvas, Drawing};
use crate::theme::N_SERIES;

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
    /// The names of groups, each with the number of points up to its end; points lie group after group.
    groups: Vec<(String, usize)>,
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

    /// A plot of groups of points, each in a colour of its own, with a legend. Of more points than can be seen
    /// apart, an even selection is drawn.
    pub fn grouped<N: Into<String>>(
        groups: impl IntoIterator<Item = (N, Vec<(f64, f64)>)>,
    ) -> Self {
        let groups: Vec<(String, Vec<(f64, f64)>)> =
            groups.into_iter().map(|(name, points)| (name.into(), points)).collect();
        let all: usize = groups.iter().map(|(_, points)| points.len()).sum();
        let every = all.div_ceil(MAX_POINTS).max(1);
        let mut scatter = Self::default();
        for (name, points) in groups {
            let ok = |p: &(f64, f64)| drawable(p.0, false) && drawable(p.1, false);
            scatter.points.extend(points.into_iter().filter(ok).step_by(every));
            scatter.groups.push((name, scatter.points.len()));
        }
        scatter
    }

    /// The group of a point.
    fn group(&self, at: usize) -> usize {
        self.groups.partition_point(|(_, end)| *end <= at)
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
        if self.points.len() > MAX_POINTS && self.groups.is_empty() {
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
        let keys = self.groups.iter().enumerate();
        let keys: Vec<Key<'_>> =
            keys.map(|(at, (name, _))| Key { name, class: series_class(at % N_SERIES) }).collect();
        let top = legend(&mut c, &keys, width, top);
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                height: self.labels.height_for(width).max(if keys.is_empty() {
                    0.0
                } else {
                    top + 260.0
                }),
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
        for (at, &(px, py)) in self.points.iter().enumerate() {
            let group = self.group(at);
            let of =
                self.groups.get(group).map(|(name, _)| format!("{name}: ")).unwrap_or_default();
            let tip = format!("{of}{} at {}", number(py), number(px));
            let class = format!("gr-f{} gr-dot", group % N_SERIES + 1);
            c.circle(&class, plot.x.map(px), plot.y.map(py), 2.75).tip(&tip);
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
