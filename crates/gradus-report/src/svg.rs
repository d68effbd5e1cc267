//! Writing SVG: escaping, coordinates, and a small element writer.

use std::fmt::Write as _;

use crate::theme;

/// Escapes text for XML and HTML, both as content and inside a quoted attribute.
///
/// Characters that XML 1.0 forbids (most control characters) become U+FFFD, so that an id read from
/// a dirty file cannot make a drawing unreadable.
///
/// ```
/// assert_eq!(gradus_report::escape("</script><b>"), "&lt;/script&gt;&lt;b&gt;");
/// ```
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    escape_into(&mut out, text);
    out
}

pub(crate) fn escape_into(out: &mut String, text: &str) {
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(ch),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}')
            }
            _ => out.push(ch),
        }
    }
}

/// A coordinate with at most two decimals. Callers only draw finite points; should one slip
/// through, zero keeps the file readable.
pub(crate) fn coord(value: f64) -> String {
    debug_assert!(value.is_finite(), "coordinate {value} is not finite");
    let value = if value.is_finite() { value } else { 0.0 };
    let mut text = format!("{value:.2}");
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    if text == "-0" { "0".to_owned() } else { text }
}

/// The background of a standalone drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Background {
    /// White in a light theme, near black in a dark one (the default: legible wherever it is shown).
    #[default]
    Theme,
    /// No background: the page shows through.
    Transparent,
}

/// A finished drawing: what [`Chart::draw`](crate::Chart::draw) returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    width: f64,
    height: f64,
    title: String,
    desc: String,
    body: String,
}

impl Drawing {
    pub(crate) fn new(width: f64, height: f64, title: &str, desc: &str, canvas: Canvas) -> Self {
        let title = if title.is_empty() { "Chart" } else { title };
        Self { width, height, title: title.into(), desc: desc.into(), body: canvas.out }
    }

    /// Width in user units (CSS pixels at scale one).
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Height in user units.
    pub fn height(&self) -> f64 {
        self.height
    }

    pub(crate) fn description(&self) -> &str {
        &self.desc
    }

    /// An `<svg>` element for a page that carries the stylesheet, as [`Page`](crate::Page) does.
    pub fn embedded(&self) -> String {
        self.wrap("", "")
    }

    /// A complete `.svg` file: style, both themes and background included.
    pub fn standalone(&self, background: Background) -> String {
        let style = format!("<style>{}</style>", theme::svg_css());
        let back = match background {
            Background::Theme => {
                let mut c = Canvas::default();
                c.rect("gr-bg", -16.0, -16.0, self.width + 32.0, self.height + 32.0).end();
                c.out
            }
            Background::Transparent => String::new(),
        };
        self.wrap(&style, &back)
    }

    fn wrap(&self, style: &str, back: &str) -> String {
        // A standalone file has no page margin around it, so it brings its own.
        let pad = if style.is_empty() { 0.0 } else { 16.0 };
        let (w, h) = (self.width + 2.0 * pad, self.height + 2.0 * pad);
        let mut out = String::with_capacity(self.body.len() + style.len() + 512);
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gr\" role=\"img\" \
             viewBox=\"{0} {0} {1} {2}\" width=\"{1}\" height=\"{2}\"><title>",
            coord(-pad),
            coord(w),
            coord(h),
        );
        escape_into(&mut out, &self.title);
        out.push_str("</title><desc>");
        escape_into(&mut out, &self.desc);
        out.push_str("</desc>");
        out.push_str(style);
        out.push_str(back);
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }
}

/// The position of text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Collects the marks of one drawing.
#[derive(Default)]
pub(crate) struct Canvas {
    out: String,
}

impl Canvas {
    fn element(&mut self, tag: &'static str, class: &str) -> Element<'_> {
        self.out.push('<');
        self.out.push_str(tag);
        let element = Element { out: &mut self.out, tag };
        if class.is_empty() { element } else { element.attr("class", class) }
    }

    pub(crate) fn rect(&mut self, class: &str, x: f64, y: f64, w: f64, h: f64) -> Element<'_> {
        let e = self.element("rect", class).num("x", x).num("y", y);
        e.num("width", w.max(0.0)).num("height", h.max(0.0))
    }

    pub(crate) fn circle(&mut self, class: &str, x: f64, y: f64, r: f64) -> Element<'_> {
        self.element("circle", class).num("cx", x).num("cy", y).num("r", r)
    }

    pub(crate) fn line(&mut self, class: &str, a: (f64, f64), b: (f64, f64)) -> Element<'_> {
        let e = self.element("line", class).num("x1", a.0).num("y1", a.1);
        e.num("x2", b.0).num("y2", b.1)
    }

    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) -> Element<'_> {
        let mut d = String::with_capacity(points.len() * 12);
        for (i, &(x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, coord(x), coord(y));
        }
        self.element("path", class).attr("d", &d)
    }

    /// Regions within closed lines; a line within another is the edge of a hole.
    pub(crate) fn regions(&mut self, class: &str, lines: &[Vec<(f64, f64)>]) -> Element<'_> {
        let mut d = String::new();
        for line in lines {
            for (i, &(x, y)) in line.iter().enumerate() {
                let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, coord(x), coord(y));
            }
            d.push('Z');
        }
        self.element("path", class).attr("fill-rule", "evenodd").attr("d", &d)
    }

    /// The pixels of a picture that are set, as runs along its rows; `to` is where it begins and the size of a pixel.
    pub(crate) fn runs(
        &mut self,
        class: &str,
        ((x, y), scale): ((f64, f64), f64),
        width: usize,
        set: &[bool],
        opacity: f64,
    ) {
        let mut d = String::new();
        for (row, set) in set.chunks_exact(width).enumerate() {
            let mut at = 0;
            while at < width {
                let run = set[at..].iter().take_while(|set| **set).count();
                if run > 0 {
                    let _ = write!(d, "M{at} {row}h{run}v1h-{run}z");
                }
                at += run.max(1);
            }
        }
        if !d.is_empty() {
            let place = format!("translate({} {}) scale({scale:.4})", coord(x), coord(y));
            let path = self.element("path", class).attr("d", &d).attr("transform", &place);
            path.num("fill-opacity", opacity).end();
        }
    }

    /// Puts a finished drawing here.
    pub(crate) fn place(&mut self, drawing: &Drawing, x: f64, y: f64) {
        let _ = write!(self.out, "<g transform=\"translate({} {})\">", coord(x), coord(y));
        self.out.push_str(&drawing.body);
        self.out.push_str("</g>");
    }

    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let e = self.element("text", class).num("x", x).num("y", y);
        let e = match anchor {
            Anchor::Start => e,
            Anchor::Middle => e.attr("text-anchor", "middle"),
            Anchor::End => e.attr("text-anchor", "end"),
        };
        e.content(text);
    }

    /// Text shortened to `max` user units; hovering shows it whole.
    pub(crate) fn text_within(
        &mut self,
        class: &str,
        at: (f64, f64),
        anchor: Anchor,
        text: &str,
        size: f64,
        max: f64,
    ) {
        let short = crate::text::fit(text, size, max);
        if short == text {
            return self.text(class, at.0, at.1, anchor, text);
        }
        self.out.push_str("<g><title>");
        escape_into(&mut self.out, text);
        self.out.push_str("</title>");
        self.text(class, at.0, at.1, anchor, &short);
        self.out.push_str("</g>");
    }
}

/// An element being written: attributes, then exactly one of `end`, `tip`, `content`.
#[must_use = "an element must be closed with `end`, `tip` or `content`"]
pub(crate) struct Element<'a> {
    out: &'a mut String,
    tag: &'static str,
}

impl Element<'_> {
    pub(crate) fn attr(self, name: &str, value: &str) -> Self {
        let _ = write!(self.out, " {name}=\"");
        escape_into(self.out, value);
        self.out.push('"');
        self
    }

    pub(crate) fn num(self, name: &str, value: f64) -> Self {
        let _ = write!(self.out, " {name}=\"{}\"", coord(value));
        self
    }

    pub(crate) fn end(self) {
        self.out.push_str("/>");
    }

    /// Closes the element with a native tooltip.
    pub(crate) fn tip(self, text: &str) {
        self.out.push_str("><title>");
        escape_into(self.out, text);
        let _ = write!(self.out, "</title></{}>", self.tag);
    }

    fn content(self, text: &str) {
        self.out.push('>');
        escape_into(self.out, text);
        let _ = write!(self.out, "</{}>", self.tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_have_no_negative_zero() {
        assert_eq!(coord(1.0), "1");
        assert_eq!(coord(1.256), "1.26");
        assert_eq!(coord(-0.001), "0");
        assert_eq!(coord(100.0), "100");
    }

    #[test]
    fn control_characters_are_replaced_and_markup_is_escaped() {
        assert_eq!(escape("a\u{0}\u{1b}[1m\"'&"), "a\u{fffd}\u{fffd}[1m&quot;&#39;&amp;");
    }

    #[test]
    fn a_standalone_file_chooses_its_background() {
        let mut canvas = Canvas::default();
        canvas.text("gr-t", 1.0, 2.0, Anchor::Start, "<hi>");
        let drawing = Drawing::new(10.0, 10.0, "", "", canvas);
        assert!(drawing.standalone(Background::Theme).contains("class=\"gr-bg\""));
        assert!(!drawing.standalone(Background::Transparent).contains("class=\"gr-bg\""));
        assert!(!drawing.embedded().contains("<style>"));
        assert!(drawing.embedded().contains("&lt;hi&gt;"));
    }
}
