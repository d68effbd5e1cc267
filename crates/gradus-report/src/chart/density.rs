//! Two-dimensional histograms: scatter plots of any number of points.

use super::sane;
use super::{
    AxesSpec, Chart, Labels, axes, counted, diagonal, draw_trend, header, label_setters, level,
    no_data, ramp,
};
use crate::scale::{Domain, drawable, number};
use crate::svg::{Canvas, Drawing};

/// Cells along each axis: about ten pixels each, enough to see structure and few enough for a file.
const N_CELLS: usize = 40;

/// Counts of points on a grid, drawn as cells whose opacity grows with the logarithm of the count.
///
/// The points are binned when the chart is made, so it stays small however many there were. A few
/// outliers do not shrink the rest into a corner: when the full range is over four times the range of
/// the middle 99.8 %, the axes end half that range beyond it, and a note says how many points lie outside.
///
/// ```
/// use gradus_report::{Chart, Density};
///
/// let x: Vec<f32> = (0..100_000).map(|i| (i % 317) as f32).collect();
/// let y: Vec<f32> = x.iter().map(|v| v * 0.9 + 3.0).collect();
/// let svg = Density::new(&x, &y).x_label("true").y_label("predicted").to_svg();
/// assert!(svg.len() < 400_000);
/// ```
#[derive(Clone, Debug)]
pub struct Density {
    pub(crate) labels: Labels,
    grid: Option<Grid>,
    diagonal: bool,
    pub(crate) level: Option<f64>,
    pub(crate) trend: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
struct Grid {
    x: Domain,
    y: Domain,
    counts: Vec<u64>,
    total: usize,
    outside: usize,
}

impl Density {
    label_setters!(height);

    /// The density of the points `(x[i], y[i])`. What one slice has beyond the other is ignored.
    pub fn new(x: &[f32], y: &[f32]) -> Self {
        Self::of(&pairs(x, y), false)
    }

    /// Makes a chart like [`Density::new`], with the same range on both axes and the line on which they are equal.
    pub fn with_diagonal(x: &[f32], y: &[f32]) -> Self {
        Self::of(&pairs(x, y), true)
    }

    pub(crate) fn of(points: &[(f64, f64)], diagonal: bool) -> Self {
        Self {
            labels: Labels::default(),
            grid: Grid::of(points, diagonal),
            diagonal,
            level: None,
            trend: Vec::new(),
        }
    }
}

pub(crate) fn pairs(x: &[f32], y: &[f32]) -> Vec<(f64, f64)> {
    x.iter().zip(y).map(|(&x, &y)| (f64::from(x), f64::from(y))).collect()
}

impl Grid {
    fn of(points: &[(f64, f64)], shared: bool) -> Option<Self> {
        let ok = |p: &&(f64, f64)| drawable(p.0, false) && drawable(p.1, false);
        let x: Vec<f64> = points.iter().filter(ok).map(|p| p.0).collect();
        let y: Vec<f64> = points.iter().filter(ok).map(|p| p.1).collect();
        let (mut dx, mut dy) = (robust(&x)?, robust(&y)?);
        if shared {
            let both = Domain::of([dx.lo, dx.hi, dy.lo, dy.hi], false)?;
            (dx, dy) = (both, both);
        }
        let mut grid =
            Self { x: dx, y: dy, counts: vec![0; N_CELLS * N_CELLS], total: x.len(), outside: 0 };
        for (&x, &y) in x.iter().zip(&y) {
            match (cell(x, dx), cell(y, dy)) {
                (Some(i), Some(j)) => grid.counts[j * N_CELLS + i] += 1,
                _ => grid.outside += 1,
            }
        }
        Some(grid)
    }
}

fn cell(v: f64, d: Domain) -> Option<usize> {
    let share = (v - d.lo) / (d.hi - d.lo);
    (0.0..=1.0).contains(&share).then(|| ((share * N_CELLS as f64) as usize).min(N_CELLS - 1))
}

/// The range of the values. If the outermost 0.1 % at either end are far out, half the width of the rest
/// on either side of it must do.
fn robust(values: &[f64]) -> Option<Domain> {
    let full = Domain::of(values.iter().copied(), false)?;
    let cut = values.len() / 1000;
    if cut == 0 {
        return Some(full);
    }
    let mut sorted = values.to_vec();
    let lo = *sorted.select_nth_unstable_by(cut, f64::total_cmp).1;
    let hi = *sorted.select_nth_unstable_by(values.len() - 1 - cut, f64::total_cmp).1;
    if hi > lo && full.hi - full.lo > 4.0 * (hi - lo) {
        let by = (hi - lo) / 2.0;
        return Domain::of([full.lo.max(lo - by), full.hi.min(hi + by)], false);
    }
    Some(full)
}

impl Chart for Density {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width).min(if self.diagonal { 440.0 } else { 560.0 });
        let Some(grid) = &self.grid else { return no_data(&self.labels, width) };
        let most = grid.counts.iter().copied().max().unwrap_or(0).max(1);
        let opacity = |n: u64| {
            let share = if most == 1 { 1.0 } else { (n as f64).ln() / (most as f64).ln() };
            0.1 + 0.9 * share
        };
        let outside = match grid.outside {
            0 => String::new(),
            n => {
                format!("{} of {} outside the axes", number(n as f64), counted(grid.total, "point"))
            }
        };
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, &outside);
        let swatches: Vec<_> = (0..6).map(|i| ("gr-heat", 0.1 + 0.18 * f64::from(i))).collect();
        let hi = format!("{} per cell", counted(most as usize, "point"));
        let top = if most > 1 { ramp(&mut c, top, &swatches, "1", &hi) } else { top };
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                height: self.labels.height_for(width).max(320.0),
                top,
                right: 10.0,
                x: Some(grid.x),
                y: grid.y,
                below: 0.0,
                square: self.diagonal,
                falling: false,
                head_row: false,
            },
        );
        let (w, h) = (plot.right - plot.left, plot.bottom - plot.top);
        let (w, h) = (w / N_CELLS as f64, h / N_CELLS as f64);
        let edge = |d: Domain, i: usize| d.lo + (d.hi - d.lo) * i as f64 / N_CELLS as f64;
        for (k, &n) in grid.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let (i, j) = (k % N_CELLS, k / N_CELLS);
            let (x, y) = (plot.left + i as f64 * w, plot.bottom - (j + 1) as f64 * h);
            let tip = format!(
                "{}: x {} to {}, y {} to {}",
                counted(n as usize, "point"),
                number(edge(grid.x, i)),
                number(edge(grid.x, i + 1)),
                number(edge(grid.y, j)),
                number(edge(grid.y, j + 1)),
            );
            c.rect("gr-heat", x, y, w, h).num("fill-opacity", opacity(n)).tip(&tip);
        }
        if self.diagonal {
            diagonal(&mut c, &plot, grid.x, grid.y);
        }
        if let Some(at) = self.level {
            level(&mut c, &plot, grid.y, at);
        }
        draw_trend(&mut c, &plot, &self.trend);
        let [xn, yn] =
            [(&self.labels.x, "x"), (&self.labels.y, "y")].map(|(l, o)| Labels::name(l, o));
        let desc = format!("Density of {yn} against {xn}, {}.", counted(grid.total, "point"));
        Drawing::new(width, plot.height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_counted_once() {
        let points: Vec<_> = (0..10_000).map(|i| ((i % 101) as f64, (i % 37) as f64)).collect();
        let grid = Grid::of(&points, false).unwrap();
        assert_eq!(grid.counts.iter().sum::<u64>(), 10_000);
        assert_eq!(grid.outside, 0);
    }

    #[test]
    fn outliers_are_left_out_and_counted() {
        let mut points: Vec<_> = (0..10_000).map(|i| ((i % 100) as f64, (i % 10) as f64)).collect();
        points.push((1e9, 5.0));
        let grid = Grid::of(&points, false).unwrap();
        assert_eq!(grid.outside, 1);
        assert!(grid.x.hi < 200.0);
    }
}
