//! Forest plots: named values with their intervals.

use super::{Chart, Labels, SIZE, counted, fitting_ticks, header, label_setters, no_data, sane};
use crate::scale::{Domain, Scale, drawable, fixed, number};
use crate::svg::{Anchor, Canvas, Drawing};
use crate::text;

/// Height of one row.
const ROW: f64 = 26.0;

/// One row per name: a value as a mark, its interval as a line, and both in digits beside it.
///
/// Intervals may be open: an infinite end is drawn to the edge of the plot.
///
/// ```
/// use gradus_report::{Chart, Forest};
///
/// let svg = Forest::new([("als", 0.91, 0.89, 0.93), ("bias", 0.94, 0.92, 0.96)])
///     .title("RMSE on the test part")
///     .highlight(["als"])
///     .decimals(3)
///     .to_svg();
/// assert!(svg.contains("0.910"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Forest {
    labels: Labels,
    rows: Vec<(String, f64, f64, f64)>,
    highlight: Vec<String>,
    reference: Option<f64>,
    decimals: Option<usize>,
}

impl Forest {
    label_setters!(axes);

    /// One row for each name, value, lower and upper end, in the order given.
    pub fn new<N: Into<String>>(rows: impl IntoIterator<Item = (N, f64, f64, f64)>) -> Self {
        let rows = rows.into_iter().map(|(name, v, low, high)| (name.into(), v, low, high));
        Self { rows: rows.collect(), ..Self::default() }
    }

    /// Sets rows off from the others by their names.
    #[must_use]
    pub fn highlight<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.highlight = names.into_iter().map(Into::into).collect();
        self
    }

    /// Draws a vertical line at a value that matters, such as 0, and keeps it in view.
    #[must_use]
    pub fn reference(mut self, value: f64) -> Self {
        self.reference = drawable(value, false).then_some(value);
        self
    }

    /// Decimals of the digits beside the rows. By default four significant digits.
    #[must_use]
    pub fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = Some(decimals);
        self
    }

    fn digits(&self, value: f64) -> String {
        match self.decimals {
            _ if value == f64::INFINITY => "∞".to_owned(),
            _ if value == f64::NEG_INFINITY => "−∞".to_owned(),
            Some(decimals) if drawable(value, false) => fixed(value, decimals),
            None if drawable(value, false) => number(value),
            _ => "–".to_owned(),
        }
    }
}

impl Chart for Forest {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let ends = self.rows.iter().flat_map(|row| [row.1, row.2, row.3]);
        let Some(domain) = Domain::of(ends.chain(self.reference), false) else {
            return no_data(&self.labels, width);
        };
        let mut domain = domain.padded(0.05);
        domain.integer = false;
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, "") + 4.0;
        let names = self.rows.iter().map(|row| text::strong_width(&row.0, SIZE));
        let names = names.fold(0.0_f64, f64::max).min(width * 0.35);
        let said: Vec<String> = self
            .rows
            .iter()
            .map(|(_, value, low, high)| {
                format!("{} ({} to {})", self.digits(*value), self.digits(*low), self.digits(*high))
            })
            .collect();
        let digits = said.iter().map(|text| text::strong_width(text, SIZE)).fold(0.0_f64, f64::max);
        // On a narrow drawing the digits are left to the tooltip.
        let shown = names + digits + 220.0 <= width;
        let left = names + 14.0;
        let right = (width - if shown { digits + 14.0 } else { 10.0 }).max(left + 60.0);
        let x = Scale::new(domain, left, right);
        let bottom = top + ROW * self.rows.len() as f64;
        for (tick, at) in fitting_ticks(&x, width) {
            if (left..=right).contains(&tick.at) {
                c.line("gr-grid", (tick.at.round(), top), (tick.at.round(), bottom)).end();
                c.text("gr-muted", at, bottom + 17.0, Anchor::Middle, &tick.label);
            }
        }
        c.line("gr-axis", (left, bottom.round()), (right, bottom.round())).end();
        if let Some(value) = self.reference {
            let at = x.map(value);
            c.line("gr-ref gr-diag", (at, top), (at, bottom)).tip(&number(value));
        }
        for (at, ((name, value, low, high), said)) in self.rows.iter().zip(&said).enumerate() {
            let mid = top + ROW * (at as f64 + 0.5);
            let strong = self.highlight.contains(name);
            let class = if strong { "gr-strong" } else { "" };
            c.text_within(class, (names, mid + 4.0), Anchor::End, name, SIZE, names);
            let tip = format!("{name}: {said}");
            let [from, to] = [(*low, left), (*high, right)].map(|(end, edge)| {
                if drawable(end, false) { x.map(end).clamp(left, right) } else { edge }
            });
            let colour = if strong { "gr-s1" } else { "gr-s6" };
            c.line(&format!("gr-line {colour}"), (from, mid), (to, mid)).tip(&tip);
            for (end, at) in [(*low, from), (*high, to)] {
                if drawable(end, false) {
                    c.line(&format!("gr-line {colour}"), (at, mid - 4.0), (at, mid + 4.0)).end();
                }
            }
            if drawable(*value, false) {
                let fill = if strong { "gr-f1 gr-halo" } else { "gr-f6 gr-halo" };
                c.circle(fill, x.map(*value), mid, 5.0).tip(&tip);
            }
            if shown {
                c.text(class, right + 14.0, mid + 4.0, Anchor::Start, said);
            }
        }
        let mut height = bottom + 24.0;
        if !self.labels.x.is_empty() {
            let at = ((left + right) / 2.0, height + 11.0);
            c.text_within("gr-muted", at, Anchor::Middle, &self.labels.x, SIZE, right - left);
            height += 20.0;
        }
        let desc = format!("Forest plot of {}.", counted(self.rows.len(), "value"));
        Drawing::new(width, height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_marked_and_open_ends_reach_the_edge() {
        let inf = f64::INFINITY;
        let forest = Forest::new([("a", 1.0, 0.5, 1.5), ("b", 2.0, -inf, inf)]).reference(0.0);
        let svg = forest.draw(700.0).embedded();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("2 (−∞ to ∞)") && svg.contains("1 (0.5 to 1.5)"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""));
        // Narrow drawings leave the digits to the tooltip.
        assert!(forest.draw(300.0).embedded().matches("1 (0.5 to 1.5)").count() < 3);
        let nothing = Forest::new([("a", f64::NAN, -inf, inf)]).to_svg();
        assert!(nothing.contains("no data"));
    }
}
