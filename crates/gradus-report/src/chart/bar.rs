//! Bars: named values.

use super::thinning;
use super::{AxesSpec, Chart, Labels, SIZE, axes, counted, header, label_setters, no_data, sane};
use crate::scale::{Domain, Scale, drawable, fixed, number};
use crate::svg::{Anchor, Canvas, Drawing};
use crate::text;

/// Height of one horizontal bar with its gap.
const ROW: f64 = 27.0;
const VALUE_GAP: f64 = 6.0;

/// A bar per name: models against baselines, contributions, spectra, histograms.
///
/// Bars start at zero and are horizontal unless [`vertical`](Bars::vertical) is asked for: names stay
/// readable. As soon as one value is negative, positive and negative bars get different colours.
///
/// ```
/// use gradus_report::{Bars, Chart};
///
/// let svg = Bars::new([("global mean", 1.12), ("user mean", 1.03), ("ALS", 0.86)])
///     .title("RMSE on held-out ratings")
///     .decimals(3)
///     .highlight("ALS")
///     .to_svg();
/// assert!(svg.contains("0.860"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Bars {
    labels: Labels,
    items: Vec<(String, f64)>,
    decimals: Option<usize>,
    highlight: Option<String>,
    reference: Option<(f64, String)>,
    vertical: bool,
}

impl Bars {
    label_setters!(height);

    /// One bar per item, in the order given.
    pub fn new<N: Into<String>>(items: impl IntoIterator<Item = (N, f64)>) -> Self {
        let items = items.into_iter().map(|(n, v)| (n.into(), v)).collect();
        Self { items, ..Self::default() }
    }

    /// Columns instead of rows: for values along a scale, such as a histogram.
    #[must_use]
    pub fn vertical(mut self) -> Self {
        self.vertical = true;
        self
    }

    /// Decimals of the value labels. By default four significant digits.
    #[must_use]
    pub fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = Some(decimals);
        self
    }

    /// Sets one bar off from the others by its name.
    #[must_use]
    pub fn highlight(mut self, name: impl Into<String>) -> Self {
        self.highlight = Some(name.into());
        self
    }

    /// Draws a dashed line across all bars, such as a target.
    #[must_use]
    pub fn reference(mut self, value: f64, label: impl Into<String>) -> Self {
        self.reference = Some((value, label.into()));
        self
    }

    fn format(&self, value: f64) -> String {
        match self.decimals {
            Some(d) if drawable(value, false) => fixed(value, d),
            None if drawable(value, false) => number(value),
            _ => "–".to_owned(),
        }
    }

    fn class(&self, name: &str, value: f64, signed: bool) -> &'static str {
        match &self.highlight {
            Some(h) if h == name => "gr-f1",
            Some(_) => "gr-bar",
            None if signed && value < 0.0 => "gr-f2",
            None => "gr-f1",
        }
    }

    fn domain(&self) -> Option<Domain> {
        let values = || self.items.iter().map(|i| i.1).filter(|&v| drawable(v, false));
        values().next()?;
        let reference = self.reference.iter().map(|r| r.0);
        let mut domain = Domain::of(values().chain(reference).chain([0.0]), false)?;
        // All zero: the widened domain lies around zero, but bars only need one side.
        if values().all(|v| v == 0.0) {
            domain.lo = domain.lo.max(0.0);
        }
        domain.integer &= values().all(|v| v.fract() == 0.0);
        Some(domain)
    }

    fn draw_rows(&self, width: f64, domain: Domain) -> Drawing {
        let width = width.min(680.0);
        let signed = domain.lo < 0.0;
        let mut c = Canvas::default();
        let mut top = header(&mut c, &self.labels, width, "");
        let reference = self.reference.as_ref().filter(|r| drawable(r.0, false));
        top += if reference.is_some_and(|r| !r.1.is_empty()) { 22.0 } else { 4.0 };

        let names =
            self.items.iter().map(|i| text::strong_width(&i.0, SIZE)).fold(0.0_f64, f64::max);
        let names = names.min(width * 0.45);
        // The value of the highlighted bar is set in bold, which is wider.
        let of = |item: &(String, f64)| {
            let label = self.format(item.1);
            let strong = self.highlight.as_ref() == Some(&item.0);
            if strong { text::strong_width(&label, SIZE) } else { text::width(&label, SIZE) }
        };
        let value = |negative: bool| {
            let items = self.items.iter().filter(|item| (item.1 < 0.0) == negative);
            items.map(of).fold(0.0_f64, f64::max) + VALUE_GAP
        };
        let left = names + 12.0 + if signed { value(true) } else { 0.0 };
        let right = (width - value(false)).max(left + 30.0);
        let x = Scale::new(domain, left, right);
        let zero = x.map(0.0).round();
        let bottom = top + ROW * self.items.len() as f64;
        for (i, (name, v)) in self.items.iter().enumerate() {
            let y = top + ROW * i as f64;
            let mid = y + ROW / 2.0;
            let strong = self.highlight.as_ref() == Some(name);
            let class = if strong { "gr-strong" } else { "" };
            c.text_within(class, (names, mid + 4.0), Anchor::End, name, SIZE, names);
            let label = self.format(*v);
            let mut end = zero;
            if drawable(*v, false) {
                end = x.map(*v);
                // A value that is not zero leaves at least a trace.
                let w = (end - zero).abs().max(if *v == 0.0 { 0.0 } else { 1.0 });
                let from = if *v < 0.0 { zero - w } else { zero };
                let tip = format!("{name}: {label}");
                c.rect(self.class(name, *v, signed), from, y + 5.0, w, ROW - 10.0).tip(&tip);
            }
            if *v < 0.0 {
                c.text(class, end - VALUE_GAP, mid + 4.0, Anchor::End, &label);
            } else {
                c.text(class, end + VALUE_GAP, mid + 4.0, Anchor::Start, &label);
            }
        }
        c.line("gr-axis", (zero, top), (zero, bottom)).end();
        if let Some((v, label)) = reference {
            let at = x.map(*v);
            let tip = format!("{label}: {}", self.format(*v));
            c.line("gr-ref", (at, top - 4.0), (at, bottom)).tip(&tip);
            let w = text::width(label, SIZE).min(width);
            let centre = at.clamp(w / 2.0, width - w / 2.0);
            c.text_within("gr-muted", (centre, top - 9.0), Anchor::Middle, label, SIZE, width);
        }
        let mut height = bottom + 4.0;
        if !self.labels.x.is_empty() {
            height += 18.0;
            let at = (zero, height - 4.0);
            c.text_within("gr-muted", at, Anchor::Start, &self.labels.x, SIZE, width - zero);
        }
        Drawing::new(width, height, &self.labels.title, &self.description_of(), c)
    }

    fn draw_columns(&self, width: f64, domain: Domain) -> Drawing {
        let signed = domain.lo < 0.0;
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, "");
        let reference = self.reference.as_ref().filter(|r| drawable(r.0, false));
        let name_room = reference.map_or(0.0, |r| text::width(&r.1, SIZE).min(width * 0.3) + 8.0);
        let plot = axes(
            &mut c,
            &AxesSpec {
                labels: &self.labels,
                width,
                height: self.labels.height_for(width),
                top,
                right: name_room.max(4.0),
                x: None,
                y: domain.padded(0.09),
                below: 22.0,
                square: false,
                falling: false,
                head_row: false,
            },
        );
        let pitch = (plot.right - plot.left) / self.items.len() as f64;
        let widest = |of: &dyn Fn(&(String, f64)) -> String| {
            self.items.iter().map(|i| text::width(&of(i), SIZE)).fold(0.0_f64, f64::max)
        };
        let every = thinning(widest(&|i| text::fit(&i.0, SIZE, 90.0)), pitch);
        let labelled = widest(&|i| self.format(i.1)) + 2.0 <= pitch;
        let w = (pitch * 0.72).min(64.0).max((pitch - 1.0).min(1.0)).max(0.3);
        let zero = plot.y.map(0.0);
        for (i, (name, v)) in self.items.iter().enumerate() {
            let x = plot.left + (i as f64 + 0.5) * pitch;
            let label = self.format(*v);
            let mut end = zero;
            if drawable(*v, false) {
                end = plot.y.map(*v);
                let h = (end - zero).abs().max(if *v == 0.0 { 0.0 } else { 1.0 });
                let from = if *v < 0.0 { zero } else { zero - h };
                let tip = format!("{name}: {label}");
                c.rect(self.class(name, *v, signed), x - w / 2.0, from, w, h).tip(&tip);
            }
            if labelled {
                let y = if *v < 0.0 { end + 14.0 } else { end - 5.0 };
                c.text("", x, y, Anchor::Middle, &label);
            }
            if i % every == 0 {
                // A label may be wider than its bar where its neighbours are left out.
                let half = text::width(&text::fit(name, SIZE, 90.0), SIZE) / 2.0;
                let at = (x.clamp(half, (width - half).max(half)), plot.bottom + 16.0);
                c.text_within("gr-muted", at, Anchor::Middle, name, SIZE, 90.0);
            }
        }
        if signed {
            c.line("gr-axis", (plot.left, zero.round()), (plot.right, zero.round())).end();
        }
        if let Some((v, label)) = reference {
            let at = plot.y.map(*v);
            let tip = format!("{label}: {}", self.format(*v));
            c.line("gr-ref", (plot.left, at), (plot.right, at)).tip(&tip);
            let from = (plot.right + 6.0, at + 4.0);
            c.text_within("gr-muted", from, Anchor::Start, label, SIZE, name_room - 6.0);
        }
        Drawing::new(width, plot.height, &self.labels.title, &self.description_of(), c)
    }

    fn description_of(&self) -> String {
        let shown = self.items.iter().take(20).map(|(n, v)| format!("{n} {}", self.format(*v)));
        let shown: Vec<_> = shown.collect();
        let bars = counted(self.items.len(), "bar");
        self.labels.desc_or(format!("Bar chart, {bars}: {}.", shown.join(", ")))
    }
}

impl Chart for Bars {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        match self.domain() {
            None => no_data(&self.labels, width),
            Some(domain) if self.vertical => self.draw_columns(width, domain),
            Some(domain) => self.draw_rows(width, domain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_labelled_and_missing_ones_dashed() {
        let svg = Bars::new([("a", 1.5), ("b", f64::NAN), ("c", -2.0)]).to_svg();
        for expected in [">1.5<", ">–<", ">−2<", "class=\"gr-f2\""] {
            assert!(svg.contains(expected), "{expected}");
        }
    }

    #[test]
    fn only_missing_values_are_no_data_and_zeros_are_data() {
        assert!(Bars::new([("a", f64::NAN)]).to_svg().contains("no data"));
        assert!(!Bars::new([("a", 0.0)]).to_svg().contains("no data"));
    }

    #[test]
    fn a_bold_value_has_the_room_it_takes() {
        // It once ran over the edge of the drawing.
        let bars = Bars::new([("a", 0.25), ("model", 0.4988)]).decimals(4);
        let (plain, bold) = (bars.clone().to_svg(), bars.highlight("model").to_svg());
        let longest = |svg: &str| {
            let widths = svg.split("width=\"").skip(1).filter_map(|rest| {
                rest.split('"').next().and_then(|width| width.parse::<f64>().ok())
            });
            widths.filter(|width| *width < 600.0).fold(0.0, f64::max)
        };
        assert!(longest(&bold) < longest(&plain), "{bold}");
    }

    #[test]
    fn bars_start_at_zero() {
        let domain = Bars::new([("a", 5.0), ("b", 6.0)]).domain().unwrap();
        assert_eq!((domain.lo, domain.hi), (0.0, 6.0));
        let domain = Bars::new([("a", 0.0)]).domain().unwrap();
        assert_eq!(domain.lo, 0.0);
    }
}
