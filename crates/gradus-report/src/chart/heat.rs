//! Heat maps of small matrices.

use super::{
    Chart, Key, Labels, SIZE, counted, header, label_setters, legend, no_data, ramp, sane, thinning,
};
use crate::scale::{drawable, fixed, number};
use crate::svg::{Anchor, Canvas, Drawing};
use crate::text;

/// A matrix as coloured cells, with the numbers written in where they fit.
///
/// Values are shaded from zero to the largest magnitude; negative values get a second colour. Cells that
/// are missing or not finite are grey.
///
/// ```
/// use gradus_report::{Chart, Heat};
///
/// let svg = Heat::new([[0.97, 0.02], [0.05, 0.94]])
///     .rows(["planted 1", "planted 2"])
///     .columns(["learned 1", "learned 2"])
///     .max(1.0)
///     .to_svg();
/// assert!(svg.contains("planted 1"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Heat {
    labels: Labels,
    cells: Vec<Vec<f64>>,
    rows: Vec<String>,
    columns: Vec<String>,
    max: Option<f64>,
    decimals: usize,
    curves: Vec<(String, Vec<(f64, f64)>)>,
}

impl Heat {
    label_setters!(axes);

    /// A heat map of the rows given; a short row lacks its last cells.
    pub fn new<R: AsRef<[f64]>>(rows: impl IntoIterator<Item = R>) -> Self {
        let cells = rows.into_iter().map(|r| r.as_ref().to_vec()).collect();
        Self { cells, decimals: 2, ..Self::default() }
    }

    /// Names of the rows. By default they are numbered from 1.
    #[must_use]
    pub fn rows<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.rows = names.into_iter().map(Into::into).collect();
        self
    }

    /// Names of the columns. By default they are numbered from 1.
    #[must_use]
    pub fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// The magnitude that is fully coloured, such as 1 for correlations. By default the largest there is.
    #[must_use]
    pub fn max(mut self, max: f64) -> Self {
        self.max = (drawable(max, true)).then_some(max);
        self
    }

    /// Decimals of the numbers in the cells; 2 by default.
    #[must_use]
    pub fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = decimals;
        self
    }

    /// Adds a line over the cells. Its points are in columns from the left and rows from the top: the centre of the
    /// first cell is at (0.5, 0.5). What lies outside the cells is left out.
    #[must_use]
    pub fn curve(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        self.curves.push((name.into(), points.into_iter().collect()));
        self
    }
}

/// Opacity for a share of the largest magnitude: never quite invisible.
fn opacity(share: f64) -> f64 {
    0.04 + 0.96 * share.clamp(0.0, 1.0)
}

impl Chart for Heat {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let values = || self.cells.iter().flatten().copied().filter(|&v| drawable(v, false));
        let (n_rows, n_cols) =
            (self.cells.len(), self.cells.iter().map(Vec::len).max().unwrap_or(0));
        if values().next().is_none() {
            return no_data(&self.labels, width);
        }
        let largest = values().fold(0.0_f64, |m, v| m.max(v.abs()));
        let max = self.max.unwrap_or(if largest > 1e-300 { largest } else { 1.0 });
        let signed = values().any(|v| v < 0.0);
        let row = |i: usize| self.rows.get(i).cloned().unwrap_or_else(|| (i + 1).to_string());
        let col = |j: usize| self.columns.get(j).cloned().unwrap_or_else(|| (j + 1).to_string());

        let mut c = Canvas::default();
        let mut top = header(&mut c, &self.labels, width, "");
        let steps = [0.0, 0.25, 0.5, 0.75, 1.0];
        let mut swatches: Vec<(&str, f64)> = Vec::new();
        if signed {
            swatches.extend(steps[1..].iter().rev().map(|&s| ("gr-cold", opacity(s))));
        }
        swatches.extend(steps.iter().map(|&s| ("gr-heat", opacity(s))));
        let lo = if signed { number(-max) } else { "0".to_owned() };
        top = ramp(&mut c, top, &swatches, &lo, &number(max)) + 2.0;
        let class = |index: usize| format!("gr-line gr-s{}", index % 6 + 2);
        let keys: Vec<Key<'_>> = self
            .curves
            .iter()
            .enumerate()
            .map(|(i, (name, _))| Key { name, class: class(i) })
            .collect();
        top = legend(&mut c, &keys, width, top);
        let names = (0..n_rows).map(|i| text::width(&row(i), SIZE)).fold(0.0_f64, f64::max);
        let names = names.min(width * 0.3);
        if !self.labels.y.is_empty() {
            let at = (0.0, top + 10.0);
            c.text_within("gr-muted", at, Anchor::Start, &self.labels.y, SIZE, width);
            top += 20.0;
        }
        let left = names + 8.0;
        let pitch = ((width - left) / n_cols as f64).min(64.0);
        let high = pitch.clamp(8.0, 34.0);
        let widest = (0..n_cols).map(|j| text::width(&col(j), SIZE)).fold(0.0_f64, f64::max);
        let room = (pitch - 6.0).max(64.0).min((width - left).max(20.0));
        let every = thinning(widest.min(room), pitch);
        let row_every = thinning(SIZE - 6.0, high);
        let written = values().map(|v| text::width(&fixed(v, self.decimals), 11.0));
        // Curves would run across the numbers; the tip of a cell has its number then.
        let written = written.fold(0.0_f64, f64::max) + 6.0 <= pitch
            && high >= 18.0
            && self.curves.is_empty();
        let bottom = top + high * n_rows as f64;
        // Hairlines between cells cost too much of a small cell.
        let gap = if pitch >= 14.0 { 1.0 } else { 0.0 };
        for (i, cells) in self.cells.iter().enumerate() {
            let y = top + high * i as f64;
            if i % row_every == 0 {
                let at = (names, y + high / 2.0 + 4.0);
                c.text_within("", at, Anchor::End, &row(i), SIZE, names);
            }
            for (j, &v) in cells.iter().enumerate() {
                let x = left + pitch * j as f64;
                let known = drawable(v, false);
                let value = if known { number(v) } else { "no value".to_owned() };
                let tip = format!("{} × {}: {value}", row(i), col(j));
                let (w, h) = (pitch - gap, high - gap);
                if !known {
                    c.rect("gr-void", x, y, w, h).tip(&tip);
                    continue;
                }
                let share = (v.abs() / max).min(1.0);
                let class = if v < 0.0 { "gr-cold" } else { "gr-heat" };
                c.rect(class, x, y, w, h).num("fill-opacity", opacity(share)).tip(&tip);
                if written {
                    let class = if share > 0.62 { "gr-small gr-onheat" } else { "gr-small" };
                    let at = (x + w / 2.0, y + h / 2.0 + 4.0);
                    c.text(class, at.0, at.1, Anchor::Middle, &fixed(v, self.decimals));
                }
            }
        }
        for (index, (_, points)) in self.curves.iter().enumerate() {
            let inside = |&(x, y): &(f64, f64)| {
                (0.0..=n_cols as f64).contains(&x) && (0.0..=n_rows as f64).contains(&y)
            };
            let points = points.iter().copied().filter(inside);
            let points: Vec<_> = points.map(|(x, y)| (left + pitch * x, top + high * y)).collect();
            if points.len() > 1 {
                // A light line under the curve keeps it visible on dark cells.
                c.polyline("gr-line gr-under", &points).end();
                c.polyline(&class(index), &points).end();
            }
        }
        let shown = text_width_of_last(n_cols, every, &col, room);
        for j in (0..n_cols).step_by(every) {
            let centre = left + pitch * (j as f64 + 0.5);
            let at = (centre.min((width - shown / 2.0).max(left)), bottom + 15.0);
            c.text_within("", at, Anchor::Middle, &col(j), SIZE, room);
        }
        let mut height = bottom + 20.0;
        if !self.labels.x.is_empty() {
            height += 18.0;
            let at = (left, height - 4.0);
            c.text_within("gr-muted", at, Anchor::Start, &self.labels.x, SIZE, width - left);
        }
        let used = (left + pitch * n_cols as f64 + 32.0).clamp(width.min(300.0), width);
        let size = format!("{} by {}", counted(n_rows, "row"), counted(n_cols, "column"));
        let desc = self.labels.desc_or(format!("Heat map, {size}."));
        Drawing::new(used, height, &self.labels.title, &desc, c)
    }
}

/// Width of the last column label that is shown, so that it can be kept inside the drawing.
fn text_width_of_last(n: usize, every: usize, col: &dyn Fn(usize) -> String, room: f64) -> f64 {
    let last = (n.max(1) - 1) / every * every;
    text::width(&col(last), SIZE).min(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_cells_are_grey_and_negative_ones_another_colour() {
        let svg = Heat::new([vec![1.0, f64::NAN], vec![-0.5]]).to_svg();
        assert!(svg.contains("class=\"gr-void\"") && svg.contains("class=\"gr-cold\""));
        assert!(svg.contains("1 × 2: no value"));
    }

    #[test]
    fn a_curve_stays_on_the_cells() {
        let heat = Heat::new([[0.0, 1.0], [0.5, 1.0]]);
        let svg =
            heat.curve("theory", [(0.5, 0.5), (1.5, 1.5), (9.0, 9.0), (f64::NAN, 1.0)]).to_svg();
        assert!(svg.contains("theory") && svg.contains("gr-line gr-s2"));
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn numbers_are_written_only_where_they_fit() {
        assert!(Heat::new([[0.25, 0.5]]).to_svg().contains(">0.25</text>"));
        let wide = vec![0.25; 60];
        assert!(!Heat::new([wide]).max(1.0).draw(404.0).embedded().contains(">0.25</text>"));
    }
}
