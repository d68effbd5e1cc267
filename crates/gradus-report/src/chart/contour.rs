//! Level lines of a surface, with paths over them.

use super::{
    AxesSpec, Chart, Key, Labels, Plot, axes, counted, header, label_setters, legend, sane,
};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Canvas, Drawing};
use crate::theme::N_SERIES;
use std::collections::HashMap;

/// Points of the surface along each axis.
const GRID: usize = 161;
/// Level lines drawn.
const LEVELS: usize = 14;
/// Paths with more points than this have no dot at each.
const MAX_DOTS: usize = 80;

/// A surface over two coordinates as level lines, with paths that lead over it: the course of an
/// optimiser.
///
/// Levels are spaced by equal factors above the lowest value, so that the bottom of a long valley
/// shows as well as its walls. Where the surface has no finite value it counts as high.
///
/// ```
/// use gradus_report::{Chart, Contour};
///
/// let svg = Contour::new((-2.0, 2.0), (-1.0, 1.0), |x, y| x * x + 4.0 * y * y)
///     .path("descent", [(-1.5, 0.8), (-0.7, 0.1), (-0.1, 0.0)])
///     .mark(0.0, 0.0, "minimum")
///     .to_svg();
/// assert!(svg.contains(">descent</text>"));
/// ```
#[derive(Clone, Debug)]
pub struct Contour {
    pub(crate) labels: Labels,
    x: (f64, f64),
    y: (f64, f64),
    /// The values by rows, from low to high y.
    values: Vec<f64>,
    paths: Vec<(String, Vec<(f64, f64)>)>,
    marks: Vec<(f64, f64, String)>,
}

impl Contour {
    label_setters!(height);

    /// The surface `f(x, y)` over a rectangle, taken at 161 × 161 points.
    pub fn new(x: (f64, f64), y: (f64, f64), f: impl Fn(f64, f64) -> f64) -> Self {
        let at = |range: (f64, f64), i: usize| {
            range.0 + (range.1 - range.0) * i as f64 / (GRID - 1) as f64
        };
        let values = (0..GRID * GRID).map(|at_| f(at(x, at_ % GRID), at(y, at_ / GRID))).collect();
        Self { labels: Labels::default(), x, y, values, paths: Vec::new(), marks: Vec::new() }
    }

    /// Adds a path. Its start is ringed and its end filled; what leaves the rectangle is cut off.
    #[must_use]
    pub fn path(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        self.paths.push((name.into(), points.into_iter().collect()));
        self
    }

    /// Marks a point with a cross, such as a known minimum.
    #[must_use]
    pub fn mark(mut self, x: f64, y: f64, label: impl Into<String>) -> Self {
        self.marks.push((x, y, label.into()));
        self
    }

    /// Values that rise by equal factors from the lowest.
    fn levels(&self) -> Vec<f64> {
        let mut sorted: Vec<f64> =
            self.values.iter().copied().filter(|&v| drawable(v, false)).collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else { return Vec::new() };
        let near = sorted[sorted.len() / 40] - low;
        let first = near.max((high - low) * 1e-5);
        if high <= low || first <= 0.0 {
            return Vec::new();
        }
        let factor = ((high - low) / first).powf(1.0 / LEVELS as f64);
        (0..LEVELS).map(|k| low + first * factor.powi(k as i32)).collect()
    }

    fn made_description(&self) -> String {
        let paths: Vec<String> = self
            .paths
            .iter()
            .map(|(name, points)| {
                let name = if name.is_empty() { "a path" } else { name };
                let end = points.last().map_or(String::new(), |end| {
                    format!(", ending at ({}, {})", number(end.0), number(end.1))
                });
                format!("{name}: {}{end}", counted(points.len(), "point"))
            })
            .collect();
        let over = format!(
            "Level lines of a surface over {} to {} and {} to {}",
            number(self.x.0),
            number(self.x.1),
            number(self.y.0),
            number(self.y.1)
        );
        if paths.is_empty() { format!("{over}.") } else { format!("{over}; {}.", paths.join("; ")) }
    }
}

impl Chart for Contour {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let [x, y] = [self.x, self.y].map(|(lo, hi)| {
            let usable = drawable(lo, false) && drawable(hi, false) && lo < hi;
            usable.then_some(Domain { lo, hi, log: false, integer: false })
        });
        let (Some(x), Some(y)) = (x, y) else { return super::no_data(&self.labels, width) };
        let mut c = Canvas::default();
        let mut top = header(&mut c, &self.labels, width, "");
        let named = self.paths.iter().enumerate().filter(|(_, (name, _))| !name.is_empty());
        let keys: Vec<Key<'_>> =
            named.map(|(i, (name, _))| Key { name, class: class(i) }).collect();
        top = legend(&mut c, &keys, width, top);
        let height = self.labels.height.unwrap_or_else(|| (width * 0.72).clamp(300.0, 560.0));
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                height: height.max(top + 200.0),
                top,
                right: 10.0,
                x: Some(x),
                falling: false,
                y,
                below: 0.0,
                square: false,
                head_row: false,
            },
        );
        for level in self.levels() {
            let loops = loops(&self.values, GRID, level);
            draw_level(&mut c, &plot, &loops, level);
        }
        for (x, y, label) in &self.marks {
            draw_mark(&mut c, &plot, (*x, *y), label);
        }
        // Longer paths first, so that none hides another whole.
        let mut order: Vec<usize> = (0..self.paths.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(self.paths[i].1.len()));
        for &i in &order {
            draw_path(&mut c, &plot, i, &self.paths[i].1);
        }
        for &i in &order {
            draw_ends(&mut c, &plot, i, &self.paths[i]);
        }
        let desc = self.labels.desc_or(self.made_description());
        Drawing::new(width, plot.height, &self.labels.title, &desc, c)
    }
}

fn class(index: usize) -> String {
    let dash = if index >= N_SERIES { " gr-dash" } else { "" };
    format!("gr-line gr-s{}{dash}", index % N_SERIES + 1)
}

/// The closed lines around where the surface is at most `level`, in grid coordinates.
///
/// Marching squares over the grid with a rim of infinitely high points around it, so that every line
/// closes; crossings with the rim lie on the edge of the grid itself.
fn loops(values: &[f64], n: usize, level: f64) -> Vec<Vec<(f64, f64)>> {
    let at = |i: isize, j: isize| -> f64 {
        let inside = i >= 0 && j >= 0 && (i as usize) < n && (j as usize) < n;
        let value = if inside { values[j as usize * n + i as usize] } else { f64::INFINITY };
        if value.is_nan() { f64::INFINITY } else { value }
    };
    // A crossing lies on the edge from a grid point to its right (0) or upper (1) neighbour.
    type Edge = (isize, isize, u8);
    let place = |(i, j, way): Edge| -> (f64, f64) {
        let (di, dj) = if way == 0 { (1, 0) } else { (0, 1) };
        let (a, b) = (at(i, j), at(i + di, j + dj));
        let share = match (a.is_finite(), b.is_finite()) {
            (true, true) => ((level - a) / (b - a)).clamp(0.0, 1.0),
            (true, false) => 0.0,
            (false, _) => 1.0,
        };
        (i as f64 + share * di as f64, j as f64 + share * dj as f64)
    };
    // Each piece leads from one crossing to another with the low side on its left.
    let mut pieces: HashMap<Edge, Edge> = HashMap::new();
    let mut starts: Vec<Edge> = Vec::new();
    for j in -1..n as isize {
        for i in -1..n as isize {
            let corners = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
            let low = corners.map(|v| v <= level);
            let case = low.iter().rev().fold(0, |case, &low| case * 2 + usize::from(low));
            let (bottom, right, upper, left) = ((i, j, 0), (i + 1, j, 1), (i, j + 1, 0), (i, j, 1));
            let middle_low = corners.iter().sum::<f64>() / 4.0 <= level;
            let found: &[(Edge, Edge)] = match case {
                1 => &[(bottom, left)],
                2 => &[(right, bottom)],
                3 => &[(right, left)],
                4 => &[(upper, right)],
                5 if middle_low => &[(bottom, right), (upper, left)],
                5 => &[(bottom, left), (upper, right)],
                6 => &[(upper, bottom)],
                7 => &[(upper, left)],
                8 => &[(left, upper)],
                9 => &[(bottom, upper)],
                10 if middle_low => &[(right, upper), (left, bottom)],
                10 => &[(right, bottom), (left, upper)],
                11 => &[(right, upper)],
                12 => &[(left, right)],
                13 => &[(bottom, right)],
                14 => &[(left, bottom)],
                _ => &[],
            };
            for &(from, to) in found {
                pieces.insert(from, to);
                starts.push(from);
            }
        }
    }
    let mut all = Vec::new();
    for start in starts {
        let mut line = Vec::new();
        let mut edge = start;
        while let Some(next) = pieces.remove(&edge) {
            line.push(place(edge));
            edge = next;
        }
        if line.len() > 2 {
            all.push(line);
        }
    }
    all
}

fn draw_level(c: &mut Canvas, plot: &Plot, loops: &[Vec<(f64, f64)>], level: f64) {
    let end = (GRID - 1) as f64;
    let spot = |&(i, j): &(f64, f64)| {
        let x = plot.left + i / end * (plot.right - plot.left);
        (x, plot.bottom - j / end * (plot.bottom - plot.top))
    };
    let on_rim = |p: &(f64, f64)| p.0 <= 0.0 || p.1 <= 0.0 || p.0 >= end || p.1 >= end;
    let closed: Vec<Vec<(f64, f64)>> = loops.iter().map(|l| l.iter().map(spot).collect()).collect();
    // Each level adds a little to those below it: the lowest place is the darkest.
    c.regions("gr-heat gr-depth", &closed).tip(&format!("at most {}", number(level)));
    let mut lines = Vec::new();
    for l in loops {
        // Begin at the rim, if the line touches it, so that the rest is in one piece.
        let n = l.len();
        let first = (0..n).find(|&k| on_rim(&l[k])).unwrap_or(0);
        let mut line: Vec<(f64, f64)> = Vec::new();
        for k in 0..=n {
            let (p, q) = (&l[(first + k) % n], &l[(first + k + n - 1) % n]);
            if k > 0 && on_rim(p) && on_rim(q) {
                lines.push(std::mem::take(&mut line));
            }
            line.push(spot(p));
        }
        lines.push(line);
    }
    for line in lines.iter().filter(|line| line.len() > 1) {
        c.polyline("gr-level", line).end();
    }
}

fn inside(plot: &Plot, at: (f64, f64)) -> bool {
    at.0 >= plot.left - 0.5
        && at.0 <= plot.right + 0.5
        && at.1 >= plot.top - 0.5
        && at.1 <= plot.bottom + 0.5
}

fn draw_mark(c: &mut Canvas, plot: &Plot, at: (f64, f64), label: &str) {
    if !drawable(at.0, false) || !drawable(at.1, false) {
        return;
    }
    let (x, y) = (plot.x.map(at.0), plot.y.map(at.1));
    if !inside(plot, (x, y)) {
        return;
    }
    let tip = format!("{label}: ({}, {})", number(at.0), number(at.1));
    for class in ["gr-under", "gr-cross"] {
        c.line(class, (x - 7.0, y - 7.0), (x + 7.0, y + 7.0)).tip(&tip);
        c.line(class, (x - 7.0, y + 7.0), (x + 7.0, y - 7.0)).tip(&tip);
    }
}

fn draw_path(c: &mut Canvas, plot: &Plot, index: usize, points: &[(f64, f64)]) {
    let (class, fill) = (class(index), format!("gr-f{}", index % N_SERIES + 1));
    let ok = |p: &(f64, f64)| drawable(p.0, false) && drawable(p.1, false);
    for run in points.split(|p| !ok(p)) {
        let at: Vec<_> = run.iter().map(|p| (plot.x.map(p.0), plot.y.map(p.1))).collect();
        for piece in clipped(plot, &at) {
            // A light line under the path keeps it visible where the surface is dark.
            c.polyline("gr-line gr-under", &piece).end();
            c.polyline(&class, &piece).end();
        }
        if at.len() <= MAX_DOTS {
            for &(x, y) in at.iter().filter(|&&p| inside(plot, p)) {
                c.circle(&fill, x, y, 2.5).end();
            }
        }
    }
}

fn draw_ends(
    c: &mut Canvas,
    plot: &Plot,
    index: usize,
    (name, points): &(String, Vec<(f64, f64)>),
) {
    let colour = index % N_SERIES + 1;
    let ok = |p: &&(f64, f64)| drawable(p.0, false) && drawable(p.1, false);
    let spot = |p: &(f64, f64)| (plot.x.map(p.0), plot.y.map(p.1));
    let tip = |what: &str, p: &(f64, f64)| {
        format!("{name} {what} at ({}, {})", number(p.0), number(p.1)).trim().to_owned()
    };
    if let Some(first) = points.iter().find(ok).filter(|p| inside(plot, spot(p))) {
        let (x, y) = spot(first);
        c.circle("gr-start", x, y, 5.5).tip(&tip("starts", first));
    }
    if let Some(last) = points.iter().rfind(ok).filter(|p| inside(plot, spot(p))) {
        let (x, y) = spot(last);
        c.circle(&format!("gr-f{colour} gr-halo"), x, y, 5.0).tip(&tip("ends", last));
    }
}

/// The parts of a line that lie in the plot.
fn clipped(plot: &Plot, line: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    for w in line.windows(2) {
        let (a, b) = (w[0], w[1]);
        let (mut from, mut to) = (0.0f64, 1.0f64);
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let sides = [
            (-dx, a.0 - plot.left),
            (dx, plot.right - a.0),
            (-dy, a.1 - plot.top),
            (dy, plot.bottom - a.1),
        ];
        for (toward, room) in sides {
            if toward == 0.0 {
                if room < 0.0 {
                    to = -1.0;
                }
            } else if toward < 0.0 {
                from = from.max(room / toward);
            } else {
                to = to.min(room / toward);
            }
        }
        if from > to {
            continue;
        }
        let at = |t: f64| (a.0 + t * dx, a.1 + t * dy);
        match parts.last_mut() {
            Some(part) if from == 0.0 && part.last() == Some(&a) => part.push(at(to)),
            _ => parts.push(vec![at(from), at(to)]),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice the area, positive if the inside is on the left.
    fn area(line: &[(f64, f64)]) -> f64 {
        let next = line.iter().cycle().skip(1);
        line.iter().zip(next).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum::<f64>() / 2.0
    }

    fn grid(n: usize, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        (0..n * n).map(|at| f((at % n) as f64, (at / n) as f64)).collect()
    }

    #[test]
    fn a_bowl_has_round_lines_of_the_right_area() {
        let n = 101;
        let values = grid(n, |x, y| (x - 50.0).powi(2) + (y - 50.0).powi(2));
        for radius in [5.0, 20.0, 45.0] {
            let found = loops(&values, n, radius * radius);
            assert_eq!(found.len(), 1);
            let expected = std::f64::consts::PI * radius * radius;
            let off = (area(&found[0]) / expected - 1.0).abs();
            assert!(off < 0.1 / radius, "{radius}: {off}");
            for p in &found[0] {
                let off = (p.0 - 50.0).hypot(p.1 - 50.0) - radius;
                assert!(off.abs() < 0.1, "{off}");
            }
        }
    }

    #[test]
    fn lines_close_along_the_edge_and_around_holes() {
        let n = 11;
        // Everything is low: the whole square.
        let found = loops(&grid(n, |_, _| 0.0), n, 1.0);
        assert_eq!((found.len(), area(&found[0])), (1, 100.0));
        // Half of it.
        let found = loops(&grid(n, |x, _| x), n, 5.0);
        assert_eq!((found.len(), area(&found[0])), (1, 50.0));
        // A hill in the middle leaves a hole, whose line runs the other way.
        let found = loops(&grid(n, |x, y| f64::from(u8::from(x == 5.0 && y == 5.0))), n, 0.5);
        let mut areas: Vec<f64> = found.iter().map(|l| area(l)).collect();
        areas.sort_by(f64::total_cmp);
        assert_eq!(areas, [-0.5, 100.0]);
        // Nothing is low.
        assert!(loops(&grid(n, |_, _| f64::NAN), n, 0.5).is_empty());
    }

    #[test]
    fn two_wells_that_touch_at_a_saddle_are_both_closed() {
        let n = 41;
        let f = |x: f64, y: f64| {
            let (x, y) = (x / 10.0 - 2.0, y / 10.0 - 2.0);
            (x * x - 1.0).powi(2) + y * y
        };
        for level in [0.3, 0.9999, 1.0, 1.0001] {
            let found = loops(&grid(n, f), n, level);
            assert_eq!(found.len(), if level >= 1.0 { 1 } else { 2 }, "{level}");
        }
    }

    #[test]
    fn paths_that_run_away_are_cut_at_the_frame() {
        let path = (0..40).map(|k| ((-3f64).powi(k), 0.5));
        let svg =
            Contour::new((-2.0, 2.0), (0.0, 1.0), |x, y| x * x + y).path("wild", path).to_svg();
        for number in svg.split(['"', ' ', 'L', 'M']).filter_map(|t| t.parse::<f64>().ok()) {
            assert!(number.abs() < 2000.0, "{number}");
        }
    }

    #[test]
    fn odd_surfaces_draw_something() {
        for f in [
            (|_, _| 1.0) as fn(f64, f64) -> f64,
            |_, _| f64::NAN,
            |x, _| if x > 0.0 { x } else { f64::INFINITY },
            |x, y| 1e308 * x * y,
        ] {
            let svg = Contour::new((-1.0, 1.0), (-1.0, 1.0), f)
                .path("", [(0.0, 0.0), (f64::NAN, 1.0), (0.5, 0.5)])
                .mark(f64::NAN, 0.0, "nowhere")
                .to_svg();
            assert!(svg.contains("</svg>") && !svg.contains("NaN") && !svg.contains("inf"));
        }
        let none = Contour::new((1.0, 1.0), (0.0, 1.0), |x, _| x).to_svg();
        assert!(none.contains("no data"));
    }
}
