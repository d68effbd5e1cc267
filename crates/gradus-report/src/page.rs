//! The report: one HTML file that needs nothing else.

use std::fmt::Write as _;

use crate::chart::{Chart, NARROW, WIDE};
use crate::svg::escape;
use crate::table::PageTable;
use crate::theme;

/// Charts up to this width are shown the same on every screen.
const ONE_FOR_ALL: f64 = 480.0;

/// A report page: title, headline numbers, sections, footer.
///
/// The result is a single file without scripts, external fonts or images; a content security policy in
/// its head forbids the browser to load anything. All text is escaped. Wide charts are laid out twice,
/// once for small screens, so that their labels stay readable there.
///
/// ```
/// use gradus_report::{Line, Page, PageTable};
///
/// let html = Page::new("ALS on ratings.csv")
///     .subtitle("32 factors, 20 iterations")
///     .stats([("RMSE", "0.862", "held-out"), ("Ratings", "1,000,209", "")])
///     .section("Training", |s| {
///         s.text("The objective falls at every iteration.")
///             .chart(Line::new().series("", [(1.0, 3.0), (2.0, 2.0)]))
///             .table(&PageTable::new(["user", "item"]).row(["<b>".into(), "7".into()]))
///     })
///     .footer("gradus")
///     .to_html();
/// assert!(html.contains("&lt;b&gt;"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    subtitle: String,
    stats: Vec<[String; 3]>,
    sections: String,
    footer: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A line below the title.
    #[must_use]
    pub fn subtitle(mut self, text: impl Into<String>) -> Self {
        self.subtitle = text.into();
        self
    }

    /// Headline numbers: label, value, note (which may be empty).
    #[must_use]
    pub fn stats<L, V, N>(mut self, stats: impl IntoIterator<Item = (L, V, N)>) -> Self
    where
        L: Into<String>,
        V: Into<String>,
        N: Into<String>,
    {
        self.stats.extend(stats.into_iter().map(|(l, v, n)| [l.into(), v.into(), n.into()]));
        self
    }

    /// Adds a section; `fill` puts its content in.
    #[must_use]
    pub fn section(mut self, heading: &str, fill: impl FnOnce(Section) -> Section) -> Self {
        let body = filled(WIDE, fill);
        self.push_section(heading, &body);
        self
    }

    fn push_section(&mut self, heading: &str, body: &str) {
        let heading = if heading.is_empty() {
            String::new()
        } else {
            format!("<h2>{}</h2>\n", escape(heading))
        };
        let _ = writeln!(self.sections, "<section>\n{heading}{body}</section>");
    }

    /// A line at the end: what made the report, and from what.
    #[must_use]
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer = text.into();
        self
    }

    /// The complete file.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut out = String::with_capacity(self.sections.len() + 16_384);
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n",
            theme::page_css()
        );
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p class=\"sub\">{}</p>", escape(&self.subtitle));
        }
        if !self.stats.is_empty() {
            out.push_str("<dl class=\"stats\">\n");
            for [label, value, note] in &self.stats {
                // A long value would be broken within a word.
                let class = if value.chars().count() > 8 { "v long" } else { "v" };
                let (label, value) = (escape(label), escape(value));
                let _ = write!(out, "<div><dt>{label}</dt><dd class=\"{class}\">{value}</dd>");
                if !note.is_empty() {
                    let _ = write!(out, "<dd class=\"n\">{}</dd>", escape(note));
                }
                out.push_str("</div>\n");
            }
            out.push_str("</dl>\n");
        }
        let _ = write!(out, "</header>\n<main>\n{}</main>\n", self.sections);
        if !self.footer.is_empty() {
            let _ = writeln!(out, "<footer>{}</footer>", escape(&self.footer));
        }
        out.push_str("</body>\n</html>\n");
        out
    }
}

/// The content of a section (or of one column in it), in the order it is added.
#[derive(Clone, Debug)]
pub struct Section {
    width: f64,
    html: String,
}

/// The text of a section that `fill` filled.
// Never inlined: with two of them inlined into one function, rustc 1.95 at opt-level 3 gave both
// sections the same place on the stack, and the demo read and freed the text of one twice (valgrind
// shows it; there is no unsafe code in this crate). `./check` runs the demo as it is released.
#[inline(never)]
fn filled(width: f64, fill: impl FnOnce(Section) -> Section) -> String {
    fill(Section { width, html: String::new() }).html
}

impl Section {
    /// A paragraph.
    #[must_use]
    pub fn text(mut self, text: impl AsRef<str>) -> Self {
        self.push_element("<p>", text.as_ref(), "</p>");
        self
    }

    /// A paragraph in small type, for remarks.
    #[must_use]
    pub fn note(mut self, text: impl AsRef<str>) -> Self {
        self.push_element("<p class=\"note\">", text.as_ref(), "</p>");
        self
    }

    /// A chart; by value or by reference.
    #[must_use]
    pub fn chart(mut self, chart: impl Chart) -> Self {
        self.push_chart(&chart);
        self
    }

    /// A table.
    #[must_use]
    pub fn table(mut self, table: &PageTable) -> Self {
        self.html.push_str(&table.to_html());
        self
    }

    /// A block of code or a command line, kept as it is.
    #[must_use]
    pub fn code(mut self, code: impl AsRef<str>) -> Self {
        self.push_element("<pre><code>", code.as_ref(), "</code></pre>");
        self
    }

    /// Two columns side by side; one below the other on small screens.
    #[must_use]
    pub fn columns(
        mut self,
        left: impl FnOnce(Section) -> Section,
        right: impl FnOnce(Section) -> Section,
    ) -> Self {
        let (left, right) = (filled(NARROW, left), filled(NARROW, right));
        let _ =
            writeln!(self.html, "<div class=\"cols\"><div>{left}</div><div>{right}</div></div>");
        self
    }

    fn push_chart(&mut self, chart: &dyn Chart) {
        let drawing = chart.draw(self.width);
        if drawing.width() <= ONE_FOR_ALL {
            let _ = writeln!(self.html, "<figure>{}</figure>", drawing.embedded());
        } else {
            let small = chart.draw(NARROW).embedded();
            let wide = drawing.embedded();
            let _ = writeln!(self.html, "<figure class=\"wide\">{wide}</figure>");
            let _ = writeln!(self.html, "<figure class=\"narrow\">{small}</figure>");
        }
    }

    fn push_element(&mut self, before: &str, text: &str, after: &str) {
        let _ = writeln!(self.html, "{before}{}{after}", escape(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bars, Line};

    const HOSTILE: &str = "</script><b>\"'&\u{0}</style></title>";

    #[test]
    fn hostile_text_is_escaped_wherever_it_goes() {
        let html = Page::new(HOSTILE)
            .subtitle(HOSTILE)
            .stats([(HOSTILE, HOSTILE, HOSTILE)])
            .section(HOSTILE, |s| {
                let bars = Bars::new([(HOSTILE, 1.0)]).title(HOSTILE).highlight(HOSTILE);
                let line = Line::new().series(HOSTILE, [(0.0, 1.0), (1.0, 2.0)]);
                let line = line.reference(1.0, HOSTILE).marker(0.5, HOSTILE).x_label(HOSTILE);
                let table = PageTable::new([HOSTILE]).caption(HOSTILE).row([HOSTILE.into()]);
                let s = s.text(HOSTILE).note(HOSTILE).code(HOSTILE).table(&table);
                s.columns(|l| l.chart(&bars), |r| r.chart(&line)).chart(&bars).chart(&line)
            })
            .footer(HOSTILE)
            .to_html();
        assert!(!html.contains("<b>") && !html.contains("</script>") && !html.contains('\u{0}'));
        assert_eq!(html.matches("</style>").count(), 1);
        assert!(html.contains("&lt;/script&gt;&lt;b&gt;"));
    }

    #[test]
    fn the_page_loads_nothing() {
        let html = Page::new("t").section("s", |s| s.text("x")).to_html();
        for forbidden in ["<script", "url(", "@import", "src=\"", "https://"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        assert!(html.contains("default-src 'none'") && html.contains("<meta charset=\"utf-8\">"));
    }

    #[test]
    fn wide_charts_have_a_small_layout_and_narrow_ones_do_not() {
        let line = Line::new().series("", [(0.0, 1.0), (1.0, 2.0)]);
        let html = Page::new("t").section("", |s| s.chart(&line)).to_html();
        assert_eq!(html.matches("<svg").count(), 2);
        let html = Page::new("t").section("", |s| s.columns(|c| c.chart(&line), |c| c)).to_html();
        assert_eq!(html.matches("<svg").count(), 1);
    }
}
