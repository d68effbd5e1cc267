//! Lines: one or several series against a common axis.

use super::{AxesSpec, Chart, Key, Labels, Plot, SIZE, axes, header, label_setters, legend};
use super::{no_data, sane};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Anchor, Canvas, Drawing};
use crate::text;
use crate::theme::N_SERIES;

/// Distance between labels beside the plot.
pub(crate) const ROW: f64 = 15.0;
/// Above this many points, tooltips are attached to a selection of them.
const MAX_TIPS: usize = 120;

/// A line chart: training curves, learning curves, anything with an order along x.
///
/// Series are labelled at their ends where there is room, in a legend otherwise. A point that cannot be
/// drawn (not finite, or not positive on a logarithmic axis) leaves a gap. Series with more points than
/// the drawing has pixels are thinned per pixel column to first, lowest, highest and last, which looks
/// the same.
///
/// ```
/// use gradus_report::{Chart, Line};
///
/// let svg = Line::new()
///     .title("Objective")
///     .series("ALS", (1..=20).map(|i| (i as f64, 10.0 / i as f64)))
///     .log_y()
///     .to_svg();
/// assert!(svg.starts_with("<svg"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Line {
    labels: Labels,
    series: Vec<Series>,
    references: Vec<(f64, String)>,
    marker: Option<(f64, String)>,
    markers: bool,
    log_x: bool,
    log_y: bool,
    falling: bool,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    /// One of many in the background: thin, grey and without a name beside it.
    faint: bool,
}

impl Series {
    fn drawable(&self, log: (bool, bool)) -> impl Iterator<Item = (f64, f64)> + Clone {
        let keep = move |p: &&(f64, f64)| drawable(p.0, log.0) && drawable(p.1, log.1);
        self.points.iter().filter(keep).copied()
    }

    fn is_named(&self) -> bool {
        !self.name.is_empty() && !self.faint
    }
}

impl Line {
    label_setters!(height);

    /// A chart without series.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a series of points, drawn in the order given. The name may be empty.
    #[must_use]
    pub fn series(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter().collect();
        self.series.push(Series { name: name.into(), points, faint: false });
        self
    }

    /// Adds a series that stays in the background: a thin grey line whose name only its tooltips
    /// tell.
    #[must_use]
    pub fn faint(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter().collect();
        self.series.push(Series { name: name.into(), points, faint: true });
        self
    }

    /// Adds a dashed horizontal line, such as the error of a baseline.
    #[must_use]
    pub fn reference(mut self, y: f64, label: impl Into<String>) -> Self {
        self.references.push((y, label.into()));
        self
    }

    /// Marks one place along x with a vertical line, such as the best iteration.
    #[must_use]
    pub fn marker(mut self, x: f64, label: impl Into<String>) -> Self {
        self.marker = Some((x, label.into()));
        self
    }

    /// Draws a dot at every point.
    #[must_use]
    pub fn markers(mut self) -> Self {
        self.markers = true;
        self
    }

    /// Makes the vertical axis logarithmic.
    #[must_use]
    pub fn log_y(mut self) -> Self {
        self.log_y = true;
        self
    }

    /// Makes the horizontal axis logarithmic.
    #[must_use]
    pub fn log_x(mut self) -> Self {
        self.log_x = true;
        self
    }

    /// Lets the horizontal axis fall from left to right: for a penalty, whose smallest values give
    /// the fullest model.
    #[must_use]
    pub fn falling_x(mut self) -> Self {
        self.falling = true;
        self
    }

    fn log(&self) -> (bool, bool) {
        (self.log_x, self.log_y)
    }

    /// The colour of each series: those in the background have none.
    fn colours(&self) -> impl Iterator<Item = (usize, &Series)> {
        let mut next = 0;
        self.series.iter().map(move |series| {
            let colour = next;
            next += usize::from(!series.faint);
            (colour, series)
        })
    }

    fn made_description(&self) -> String {
        let series: Vec<_> = self
            .series
            .iter()
            .filter(|s| !s.faint)
            .map(|s| {
                let what = if s.name.is_empty() { "a series" } else { &s.name };
                let mut points = s.drawable(self.log());
                let Some(first) = points.next() else { return format!("{what}: no data") };
                let last = points.last().unwrap_or(first);
                format!("{what} from {} to {}", number(first.1), number(last.1))
            })
            .collect();
        let [x, y] =
            [(&self.labels.x, "x"), (&self.labels.y, "y")].map(|(l, o)| Labels::name(l, o));
        format!("Line chart of {y} against {x}: {}.", series.join("; "))
    }
}

pub(crate) fn series_class(index: usize) -> String {
    let dash = if index >= N_SERIES { " gr-dash" } else { "" };
    format!("gr-line gr-s{}{dash}", index % N_SERIES + 1)
}

impl Chart for Line {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let log = self.log();
        let all = || self.series.iter().flat_map(|s| s.drawable(log));
        if all().next().is_none() {
            return no_data(&self.labels, width);
        }
        let references = || self.references.iter().filter(|r| drawable(r.0, log.1));
        let marker = self.marker.as_ref().filter(|m| drawable(m.0, log.0));
        let xs = all().map(|p| p.0).chain(marker.map(|m| m.0));
        let ys = all().map(|p| p.1).chain(references().map(|r| r.0));
        let (Some(x), Some(mut y)) = (Domain::of(xs, log.0), Domain::of(ys, log.1)) else {
            return no_data(&self.labels, width);
        };
        y.integer = false;

        let mut c = Canvas::default();
        let height = self.labels.height_for(width);
        let mut top = header(&mut c, &self.labels, width, "");
        // Names beside the lines they belong to read faster than a legend; they need room.
        let named = self.series.iter().filter(|s| s.is_named());
        let named = named.map(|s| text::strong_width(&s.name, SIZE));
        let others = references().filter(|r| !r.1.is_empty());
        let widths = named.chain(others.map(|r| text::width(&r.1, SIZE)));
        let (n_named, widest) = widths.fold((0, 0.0_f64), |(n, m), w| (n + 1, m.max(w)));
        let room = height - top - 90.0;
        let direct = widest + 16.0 <= width * 0.36 && n_named as f64 * ROW <= room;
        if !direct {
            let mut keys: Vec<Key<'_>> = Vec::new();
            for (i, s) in self.colours().filter(|(_, s)| s.is_named()) {
                keys.push(Key { name: &s.name, class: series_class(i) });
            }
            for r in references().filter(|r| !r.1.is_empty()) {
                keys.push(Key { name: &r.1, class: "gr-ref".into() });
            }
            top = legend(&mut c, &keys, width, top);
        }
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                // A long legend pushes the plot down instead of squeezing it.
                height: height.max(top + 200.0),
                top,
                right: if direct && n_named > 0 { widest + 16.0 } else { 10.0 },
                x: Some(x),
                y: y.padded(0.05),
                below: 0.0,
                square: false,
                falling: self.falling,
                head_row: marker.is_some_and(|m| !m.1.is_empty()),
            },
        );
        for (y, label) in references() {
            let at = plot.y.map(*y);
            let tip = format!("{label}: {}", number(*y));
            c.line("gr-ref", (plot.left, at), (plot.right, at)).tip(&tip);
        }
        if let Some((x, label)) = marker {
            draw_marker(&mut c, &plot, *x, label);
        }
        // What is in the background comes first.
        for faint in [true, false] {
            for (i, series) in self.colours().filter(|(_, s)| s.faint == faint) {
                self.draw_series(&mut c, &plot, i, series);
            }
        }
        if direct {
            let mut ends: Vec<End<'_>> = Vec::new();
            for (i, s) in self.colours().filter(|(_, s)| s.is_named()) {
                if let Some((x, y)) = s.drawable(log).last() {
                    let class = format!("gr-strong gr-f{}", i % N_SERIES + 1);
                    let touches = plot.right - plot.x.map(x) < 2.0;
                    ends.push(End { y: plot.y.map(y), name: &s.name, class, touches });
                }
            }
            for (y, label) in references().filter(|r| !r.1.is_empty()) {
                let class = "gr-muted".into();
                ends.push(End { y: plot.y.map(*y), name: label, class, touches: true });
            }
            draw_ends(&mut c, &plot, ends);
        }
        let desc = self.labels.desc_or(self.made_description());
        Drawing::new(width, plot.height, &self.labels.title, &desc, c)
    }
}

impl Line {
    fn draw_series(&self, c: &mut Canvas, plot: &Plot, index: usize, series: &Series) {
        let (class, fill) = if series.faint {
            ("gr-line gr-faint".to_owned(), "gr-bar".to_owned())
        } else {
            (series_class(index), format!("gr-f{}", index % N_SERIES + 1))
        };
        let ok = |p: &(f64, f64)| drawable(p.0, self.log_x) && drawable(p.1, self.log_y);
        for run in series.points.split(|p| !ok(p)).filter(|run| !run.is_empty()) {
            let at: Vec<_> = run.iter().map(|p| (plot.x.map(p.0), plot.y.map(p.1))).collect();
            if let [(x, y)] = at[..] {
                c.circle(&fill, x, y, 3.5).end();
                continue;
            }
            c.polyline(&class, &thinned(&at)).end();
            if self.markers && at.len() <= 400 {
                at.iter().for_each(|&(x, y)| c.circle(&fill, x, y, 3.0).end());
            }
        }
        let n = series.drawable(self.log()).count();
        let every = n.div_ceil(MAX_TIPS).max(1);
        let spacing = (plot.right - plot.left) / (n / every).max(1) as f64;
        let radius = (spacing / 2.0).clamp(3.0, 8.0);
        for (i, (x, y)) in series.drawable(self.log()).enumerate() {
            if i % every == 0 || i + 1 == n {
                let name = if series.name.is_empty() { "" } else { &format!("{}: ", series.name) };
                let tip = format!("{name}{} at {}", number(y), number(x));
                let class = format!("gr-hit {fill}");
                c.circle(&class, plot.x.map(x), plot.y.map(y), radius).tip(&tip);
            }
        }
    }
}

/// Keeps at most four points per pixel column when x never goes back.
pub(crate) fn thinned(at: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let span = at[at.len() - 1].0 - at[0].0;
    if (at.len() as f64) < 4.0 * span.max(1.0) || at.windows(2).any(|w| w[1].0 < w[0].0) {
        return at.to_vec();
    }
    let mut out = Vec::new();
    for column in at.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let mut keep = vec![0, column.len() - 1];
        keep.extend((0..column.len()).min_by(by));
        keep.extend((0..column.len()).max_by(by));
        keep.sort_unstable();
        keep.dedup();
        out.extend(keep.into_iter().map(|i| column[i]));
    }
    out
}

pub(crate) fn draw_marker(c: &mut Canvas, plot: &Plot, x: f64, label: &str) {
    let at = plot.x.map(x);
    let tip = format!("{label}: {}", number(x));
    c.line("gr-ref", (at, plot.top - 2.0), (at, plot.bottom)).tip(&tip);
    let w = text::width(label, SIZE).min(plot.right);
    let centre = at.clamp(w / 2.0, (plot.right - w / 2.0).max(w / 2.0));
    let at = (centre, plot.top - 7.0);
    c.text_within("gr-muted", at, Anchor::Middle, label, SIZE, plot.right);
}

/// A name to be written beside the plot.
pub(crate) struct End<'a> {
    pub(crate) y: f64,
    pub(crate) name: &'a str,
    pub(crate) class: String,
    /// The line reaches the edge of the plot, so that a stroke can lead from it to its name.
    pub(crate) touches: bool,
}

/// Writes the names beside the plot, moved apart where lines end close together.
pub(crate) fn draw_ends(c: &mut Canvas, plot: &Plot, mut ends: Vec<End<'_>>) {
    ends.sort_by(|a, b| a.y.total_cmp(&b.y));
    let at: Vec<_> = ends.iter().map(|e| e.y).collect();
    let spread = text::spread(&at, ROW, plot.top - 4.0, plot.bottom + 4.0).unwrap_or(at);
    for (end, to) in ends.into_iter().zip(spread) {
        if end.touches {
            c.line("gr-lead", (plot.right + 2.0, end.y), (plot.right + 9.0, to)).end();
        }
        c.text(&end.class, plot.right + 12.0, to + 4.0, Anchor::Start, end.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes_and_the_ends() {
        let at: Vec<_> =
            (0..10_000).map(|i| (i as f64 / 100.0, ((i * 7919) % 1000) as f64)).collect();
        let out = thinned(&at);
        assert!(out.len() <= 4 * 101, "{}", out.len());
        assert_eq!((out[0], out[out.len() - 1]), (at[0], at[9_999]));
        let top = |p: &[(f64, f64)]| p.iter().map(|p| p.1).fold(0.0, f64::max);
        assert_eq!(top(&out), top(&at));
    }

    #[test]
    fn a_gap_splits_the_line() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 2.0)];
        let svg = Line::new().series("a", points).to_svg();
        assert_eq!(svg.matches("<path").count(), 2);
    }

    #[test]
    fn long_names_move_into_a_legend() {
        let name = "a model with a name that would take half of the drawing for itself";
        let line = Line::new().series(name, [(0.0, 1.0), (1.0, 2.0)]);
        assert!(line.to_svg().contains(&format!(">{name}</text>")));
        assert!(!line.to_svg().contains("class=\"gr-lead\""));
        let short = Line::new().series("short", [(0.0, 1.0), (1.0, 2.0)]);
        assert!(short.to_svg().contains("class=\"gr-lead\""));
    }

    #[test]
    fn a_falling_axis_is_a_mirror() {
        let line = Line::new().log_x().falling_x().series("a", [(100.0, 0.0), (1.0, 2.0)]);
        let svg = line.draw(400.0).embedded();
        let path = svg.split("d=\"M").nth(1).unwrap().split('"').next().unwrap();
        let x: Vec<f64> =
            path.split('L').map(|p| p.split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(x[0] < x[1], "{path}");
        assert!(svg.find(">100<").unwrap() < svg.find(">10<").unwrap());
    }

    #[test]
    fn what_is_in_the_background_has_no_name_and_takes_no_colour() {
        let line = Line::new().faint("grey", [(0.0, 1.0), (1.0, 1.0)]).series("a", [(0.0, 0.0)]);
        let svg = line.draw(400.0).embedded();
        assert!(svg.contains("gr-faint") && !svg.contains(">grey</text>"));
        assert!(svg.contains("gr-strong gr-f1") && svg.contains("grey: 1 at 0"));
    }

    #[test]
    fn log_axis_drops_what_is_not_positive() {
        let only = Line::new().log_y().series("a", [(0.0, -1.0), (1.0, 0.0)]);
        assert!(only.to_svg().contains("no data"));
    }
}
