//! Tables with aligned columns and bars inside cells.

use std::fmt::Write as _;

use crate::scale::{fixed, number};
use crate::svg::escape;

/// How the cells of a column are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Left, for words.
    #[default]
    Left,
    /// Right, for numbers.
    Right,
    /// Centred.
    Center,
}

/// One column: its heading and how its cells are set.
#[derive(Clone, Debug)]
pub struct TableColumn {
    name: String,
    align: Align,
    decimals: Option<usize>,
    bar: bool,
}

impl TableColumn {
    /// A column of words, to the left.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), align: Align::Left, decimals: None, bar: false }
    }

    /// A column of numbers, to the right.
    pub fn number(name: impl Into<String>) -> Self {
        Self { align: Align::Right, ..Self::text(name) }
    }

    /// Sets the alignment.
    #[must_use]
    pub fn align(mut self, align: Align) -> Self {
        self.align = align;
        self
    }

    /// Shows numbers with this many decimals. By default they have four significant digits.
    #[must_use]
    pub fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = Some(decimals);
        self
    }

    /// Draws a bar beside each number, relative to the largest magnitude in the column.
    #[must_use]
    pub fn bar(mut self) -> Self {
        self.bar = true;
        self
    }
}

impl<S: Into<String>> From<S> for TableColumn {
    fn from(name: S) -> Self {
        Self::text(name)
    }
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words, shown as they are.
    Text(String),
    /// A number, formatted by its column.
    Number(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<f32> for Cell {
    fn from(value: f32) -> Self {
        Self::Number(f64::from(value))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

/// A table for a [`Page`](crate::Page).
///
/// ```
/// use gradus_report::{TableColumn, PageTable};
///
/// let table = PageTable::new([TableColumn::text("model"), TableColumn::number("RMSE").decimals(3).bar()])
///     .row(["global mean".into(), 1.12.into()])
///     .highlighted(["ALS".into(), 0.86.into()]);
/// assert!(table.to_html().contains("0.860"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    caption: String,
    columns: Vec<TableColumn>,
    rows: Vec<(Vec<Cell>, bool)>,
}

impl PageTable {
    /// A table with these columns and no rows yet.
    pub fn new<C: Into<TableColumn>>(columns: impl IntoIterator<Item = C>) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Self { columns, ..Self::default() }
    }

    /// A line above the table.
    #[must_use]
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// Adds a row. Missing cells stay empty; cells beyond the last column are left out.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push((cells.into_iter().collect(), false));
        self
    }

    /// Adds a row that stands out.
    #[must_use]
    pub fn highlighted(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push((cells.into_iter().collect(), true));
        self
    }

    /// The table as an HTML element.
    pub fn to_html(&self) -> String {
        let mut out = String::from("<div class=\"scroll\"><table>");
        if !self.caption.is_empty() {
            let _ = write!(out, "<caption>{}</caption>", escape(&self.caption));
        }
        out.push_str("<thead><tr>");
        for column in &self.columns {
            let class = class_of(column.align);
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&column.name));
        }
        out.push_str("</tr></thead><tbody>");
        let largest: Vec<f64> = (0..self.columns.len()).map(|j| self.largest(j)).collect();
        for (cells, strong) in &self.rows {
            out.push_str(if *strong { "<tr class=\"hi\">" } else { "<tr>" });
            for (j, column) in self.columns.iter().enumerate() {
                let _ = write!(out, "<td{}>", class_of(column.align));
                match cells.get(j) {
                    Some(Cell::Text(text)) => out.push_str(&escape(text)),
                    Some(Cell::Number(value)) => {
                        let shown = match column.decimals {
                            Some(d) => fixed(*value, d),
                            None => number(*value),
                        };
                        out.push_str(&shown);
                        if column.bar {
                            meter(&mut out, *value, largest[j]);
                        }
                    }
                    None => {}
                }
                out.push_str("</td>");
            }
            out.push_str("</tr>");
        }
        if self.rows.is_empty() {
            let n = self.columns.len().max(1);
            let _ = write!(out, "<tr><td class=\"note\" colspan=\"{n}\">no rows</td></tr>");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    fn largest(&self, column: usize) -> f64 {
        let numbers = self.rows.iter().filter_map(|(cells, _)| match cells.get(column) {
            Some(Cell::Number(v)) if v.is_finite() => Some(v.abs()),
            _ => None,
        });
        numbers.fold(0.0, f64::max)
    }
}

fn class_of(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"r\"",
        Align::Center => " class=\"c\"",
    }
}

fn meter(out: &mut String, value: f64, largest: f64) {
    let share = if value.is_finite() && largest > 0.0 { value.abs() / largest } else { 0.0 };
    let class = if value < 0.0 { " class=\"neg\"" } else { "" };
    let percent = fixed(100.0 * share, 1);
    let _ = write!(out, "<span class=\"meter\"><i{class} style=\"width:{percent}%\"></i></span>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_rows_and_hostile_text_are_safe() {
        let html = PageTable::new(["a", "b"])
            .row(["</script><b>".into()])
            .row(["1".into(), "2".into(), "3".into()])
            .to_html();
        assert!(html.contains("&lt;/script&gt;&lt;b&gt;") && !html.contains("<b>"));
        assert!(!html.contains(">3<"));
        assert_eq!(html.matches("<td").count(), 4);
    }

    #[test]
    fn bars_are_relative_to_the_largest_and_never_undefined() {
        let values = [1.0, -4.0, f64::NAN, f64::INFINITY];
        let table = PageTable::new([TableColumn::number("v").bar()]);
        let html = values.iter().fold(table, |t, &v| t.row([v.into()])).to_html();
        assert!(html.contains("width:25.0%") && html.contains("width:100.0%"));
        assert!(!html.contains("NaN") && !html.contains("inf"));
        assert!(PageTable::new(["a"]).to_html().contains("no rows"));
    }
}
