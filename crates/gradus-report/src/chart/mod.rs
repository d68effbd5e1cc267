//! The charts, and what they share: the trait, titles and labels, axes, legends.

pub(crate) mod bar;
pub(crate) mod beside;
pub(crate) mod boxes;
pub(crate) mod confusion;
pub(crate) mod contour;
pub(crate) mod curves;
pub(crate) mod density;
pub(crate) mod forest;
pub(crate) mod heat;
pub(crate) mod layers;
pub(crate) mod line;
pub(crate) mod marks;
pub(crate) mod path;
pub(crate) mod pictures;
pub(crate) mod reliability;
pub(crate) mod residuals;
pub(crate) mod rows;
pub(crate) mod scatter;
pub(crate) mod stack;
pub(crate) mod versus;

use crate::scale::{Domain, Scale, Tick};
use crate::svg::{Anchor, Background, Canvas, Drawing};
use crate::text;

/// Width of a chart that stands alone or fills a page, in user units.
pub(crate) const WIDE: f64 = 840.0;
/// Width of a chart in one of two columns, or on a small screen.
pub(crate) const NARROW: f64 = 404.0;

/// Size of ordinary chart text, in user units; the stylesheet says the same.
pub(crate) const SIZE: f64 = 12.0;
const SMALL: f64 = 11.0;

/// Anything that can be drawn.
pub trait Chart {
    /// Draws the chart at most `width` user units wide (one unit is a CSS pixel until the drawing is
    /// scaled). Text keeps its size; the layout adapts. Widths outside 240–2000 are brought inside.
    fn draw(&self, width: f64) -> Drawing;

    /// The chart as a complete `.svg` file, style and background included.
    ///
    /// For another width or background: `chart.draw(500.0).standalone(Background::Transparent)`.
    fn to_svg(&self) -> String {
        self.draw(720.0).standalone(Background::Theme)
    }
}

impl<C: Chart + ?Sized> Chart for &C {
    fn draw(&self, width: f64) -> Drawing {
        (**self).draw(width)
    }
}

impl<C: Chart + ?Sized> Chart for Box<C> {
    fn draw(&self, width: f64) -> Drawing {
        (**self).draw(width)
    }
}

/// The words around a chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    pub(crate) title: String,
    pub(crate) desc: String,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) height: Option<f64>,
}

impl Labels {
    pub(crate) fn height_for(&self, width: f64) -> f64 {
        self.height.unwrap_or_else(|| (width * 0.4).clamp(270.0, 340.0))
    }

    /// The caller's description, or the one made up from the data.
    pub(crate) fn desc_or(&self, made: String) -> String {
        if self.desc.is_empty() { made } else { self.desc.clone() }
    }

    /// Returns the name of an axis for sentences.
    pub(crate) fn name<'a>(label: &'a str, otherwise: &'a str) -> &'a str {
        if label.is_empty() { otherwise } else { label }
    }
}

/// The setters every chart has. `axes` adds those of charts with two axes.
macro_rules! label_setters {
    () => {
        /// The title, drawn above the chart and read out by screen readers.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.labels.title = title.into();
            self
        }

        /// The description for screen readers. By default one is made up from the data.
        #[must_use]
        pub fn description(mut self, text: impl Into<String>) -> Self {
            self.labels.desc = text.into();
            self
        }
    };
    (axes) => {
        $crate::chart::label_setters!();

        /// Sets the label of the horizontal axis.
        #[must_use]
        pub fn x_label(mut self, label: impl Into<String>) -> Self {
            self.labels.x = label.into();
            self
        }

        /// Sets the label of the vertical axis.
        #[must_use]
        pub fn y_label(mut self, label: impl Into<String>) -> Self {
            self.labels.y = label.into();
            self
        }
    };
    (height) => {
        $crate::chart::label_setters!(axes);

        /// Height in user units, brought inside 160–1200. By default it follows from the width.
        #[must_use]
        pub fn height(mut self, height: f64) -> Self {
            self.labels.height = height.is_finite().then(|| height.clamp(160.0, 1200.0));
            self
        }
    };
}
pub(crate) use label_setters;

/// Brings a requested width into the range the layouts are made for.
pub(crate) fn sane(width: f64) -> f64 {
    if width.is_finite() { width.clamp(240.0, 2000.0).round() } else { WIDE }
}

/// Draws title and note; returns where the rest begins.
pub(crate) fn header(c: &mut Canvas, labels: &Labels, width: f64, note: &str) -> f64 {
    let mut y = 0.0;
    if !labels.title.is_empty() {
        c.text_within("gr-title", (0.0, 15.0), Anchor::Start, &labels.title, 14.6, width);
        y = 26.0;
    }
    for line in text::wrap(note, SMALL, width) {
        c.text_within("gr-small gr-muted", (0.0, y + 9.0), Anchor::Start, &line, SMALL, width);
        y += 15.0;
    }
    if note.is_empty() { y } else { y + 5.0 }
}

/// The drawing of a chart that has nothing to show.
pub(crate) fn no_data(labels: &Labels, width: f64) -> Drawing {
    let mut c = Canvas::default();
    let top = header(&mut c, labels, width, "");
    let height = top + 120.0;
    c.line("gr-axis", (0.0, top), (width, top)).end();
    c.line("gr-axis", (0.0, height - 1.0), (width, height - 1.0)).end();
    c.text("gr-muted", width / 2.0, top + 64.0, Anchor::Middle, "no data");
    Drawing::new(width, height, &labels.title, &labels.desc_or("No data.".into()), c)
}

/// One entry of a legend.
pub(crate) struct Key<'a> {
    pub(crate) name: &'a str,
    pub(crate) class: String,
}

/// Draws a wrapping legend of short strokes; returns where the rest begins.
pub(crate) fn legend(c: &mut Canvas, keys: &[Key<'_>], width: f64, top: f64) -> f64 {
    let (mut x, mut y) = (0.0, top);
    for key in keys {
        let w = text::width(key.name, SIZE).min(width - 30.0);
        if x > 0.0 && x + 24.0 + w > width {
            x = 0.0;
            y += 18.0;
        }
        c.line(&key.class, (x + 1.0, y + 8.0), (x + 19.0, y + 8.0)).end();
        c.text_within("", (x + 25.0, y + 12.0), Anchor::Start, key.name, SIZE, width - 30.0);
        x += 25.0 + w + 18.0;
    }
    if keys.is_empty() { top } else { y + 24.0 }
}

/// A ramp of swatches for cell opacity, with its end labels; returns where the rest begins.
pub(crate) fn ramp(c: &mut Canvas, top: f64, classes: &[(&str, f64)], lo: &str, hi: &str) -> f64 {
    let mut x = text::width(lo, SMALL) + 6.0;
    c.text("gr-small gr-muted", 0.0, top + 10.0, Anchor::Start, lo);
    for (class, opacity) in classes {
        c.rect(class, x, top + 1.0, 16.0, 10.0).num("fill-opacity", *opacity).end();
        x += 17.0;
    }
    c.text("gr-small gr-muted", x + 5.0, top + 10.0, Anchor::Start, hi);
    top + 22.0
}

/// The parameters of [`axes`].
pub(crate) struct AxesSpec<'a> {
    pub(crate) labels: &'a Labels,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The lower end of the header.
    pub(crate) top: f64,
    /// Room kept free to the right of the plot.
    pub(crate) right: f64,
    /// `None` for a categorical axis: the caller labels it.
    pub(crate) x: Option<Domain>,
    pub(crate) y: Domain,
    /// Room below the plot when the caller labels the axis.
    pub(crate) below: f64,
    pub(crate) square: bool,
    /// Whether values of x fall from left to right.
    pub(crate) falling: bool,
    /// A row between the y label and the plot (for the label of a vertical marker).
    pub(crate) head_row: bool,
}

impl<'a> AxesSpec<'a> {
    /// Square axes from 0 to 1.
    pub(crate) fn unit_square(labels: &'a Labels, width: f64, top: f64) -> Self {
        let unit = Domain { lo: 0.0, hi: 1.0, log: false, integer: false };
        Self {
            labels,
            width,
            height: width,
            top,
            right: 12.0,
            x: Some(unit),
            y: unit,
            below: 0.0,
            square: true,
            falling: false,
            head_row: false,
        }
    }
}

/// The area of the data.
pub(crate) struct Plot {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// Maps onto `left..right`; on a categorical axis its domain is `[0, 1]`.
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    /// The height the drawing really has (square plots choose their own).
    pub(crate) height: f64,
}

/// Draws grid, axes, tick labels and axis labels.
pub(crate) fn axes(c: &mut Canvas, spec: &AxesSpec<'_>) -> Plot {
    let AxesSpec { labels, width, .. } = *spec;
    let mut top = spec.top;
    if !labels.y.is_empty() {
        c.text_within("gr-muted", (0.0, top + 10.0), Anchor::Start, &labels.y, SIZE, width);
        top += 20.0;
    }
    top += if spec.head_row { 16.0 } else { 6.0 };
    let x_label = if labels.x.is_empty() { 0.0 } else { 20.0 };
    let below = if spec.x.is_some() { 22.0 } else { spec.below } + x_label;

    let mut bottom = (spec.height - below).max(top + 60.0);
    let n_ticks = (((bottom - top) / 27.0) as usize).clamp(2, 6);
    let widest =
        |ticks: &[Tick]| ticks.iter().map(|t| text::width(&t.label, SIZE)).fold(0.0_f64, f64::max);
    let left = (widest(&Scale::new(spec.y, bottom, top).ticks(n_ticks)) + 8.0).min(width * 0.4);
    let right = (width - spec.right.max(10.0)).max(left + 40.0);
    if spec.square {
        bottom = top + (right - left);
    }

    let y = Scale::new(spec.y, bottom, top);
    for tick in y.ticks(n_ticks) {
        c.line("gr-grid", (left, tick.at.round()), (right, tick.at.round())).end();
        let at = (left - 8.0, tick.at + 4.0);
        c.text_within("gr-muted", at, Anchor::End, &tick.label, SIZE, left - 8.0);
    }
    c.line("gr-axis", (left, bottom.round()), (right, bottom.round())).end();

    let unit = Domain { lo: 0.0, hi: 1.0, log: false, integer: false };
    let (from, to) = if spec.falling { (right, left) } else { (left, right) };
    let x = Scale::new(spec.x.unwrap_or(unit), from, to);
    if spec.x.is_some() {
        for (tick, at) in fitting_ticks(&x, width) {
            c.line("gr-axis", (tick.at.round(), bottom), (tick.at.round(), bottom + 4.0)).end();
            c.text("gr-muted", at, bottom + 17.0, Anchor::Middle, &tick.label);
        }
    }
    if !labels.x.is_empty() {
        let at = ((left + right) / 2.0, bottom + below - 5.0);
        c.text_within("gr-muted", at, Anchor::Middle, &labels.x, SIZE, right - left);
    }
    Plot { left, right, top, bottom, x, y, height: bottom + below }
}

/// Returns as many ticks (at most six) as have room for their labels, each with the centre of its label.
fn fitting_ticks(x: &Scale, width: f64) -> Vec<(Tick, f64)> {
    for n in (1..=6).rev() {
        let mut placed: Vec<_> = x
            .ticks(n)
            .into_iter()
            .map(|tick| {
                let half = text::width(&tick.label, SIZE) / 2.0;
                let at = tick.at.clamp(half.min(width / 2.0), (width - half).max(width / 2.0));
                (tick, at, half)
            })
            .collect();
        placed.sort_by(|a, b| a.1.total_cmp(&b.1));
        if n == 1 || placed.windows(2).all(|w| w[0].1 + w[0].2 + 10.0 <= w[1].1 - w[1].2) {
            return placed.into_iter().map(|(tick, at, _)| (tick, at)).collect();
        }
    }
    Vec::new()
}

/// Every how many categories `pitch` apart are labelled, given the widest label. Once some are left out
/// anyway, a round step is easier to count by.
pub(crate) fn thinning(widest: f64, pitch: f64) -> usize {
    let pitch = pitch.max(0.1);
    if widest + 8.0 <= pitch {
        return 1;
    }
    let least = ((widest + 24.0) / pitch).ceil() as usize;
    let round = (0..6).flat_map(|p| [1, 2, 5].map(|m| m * 10_usize.pow(p)));
    round.into_iter().find(|&step| step >= least.max(2)).unwrap_or(least)
}

/// A dashed horizontal line at a level, if the axis shows it.
pub(crate) fn level(c: &mut Canvas, plot: &Plot, y: Domain, at: f64) {
    if (y.lo..=y.hi).contains(&at) {
        let [a, b] = [plot.left, plot.right].map(|x| (x, plot.y.map(at)));
        c.line("gr-under", a, b).end();
        c.line("gr-ref gr-diag", a, b).tip(&crate::scale::number(at));
    }
}

/// The mean of y along x, in about thirty groups of as many points each.
pub(crate) fn trend(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let size = points.len().div_ceil(30).max(10);
    let mean = |group: &[(f64, f64)], get: fn(&(f64, f64)) -> f64| {
        group.iter().map(|p| get(p) / group.len() as f64).sum::<f64>()
    };
    let groups = points.chunks(size).filter(|group| 2 * group.len() >= size);
    groups.map(|group| (mean(group, |p| p.0), mean(group, |p| p.1))).collect()
}

/// The line of a trend, on a light ground.
pub(crate) fn draw_trend(c: &mut Canvas, plot: &Plot, trend: &[(f64, f64)]) {
    let inside = |p: &(f64, f64)| {
        (plot.left..=plot.right).contains(&p.0) && (plot.top..=plot.bottom).contains(&p.1)
    };
    let at: Vec<_> =
        trend.iter().map(|p| (plot.x.map(p.0), plot.y.map(p.1))).filter(inside).collect();
    if at.len() > 1 {
        c.polyline("gr-line gr-under", &at).end();
        c.polyline("gr-line gr-s2", &at).tip("mean");
    }
}

/// A dashed line where x equals y, clipped to what both axes show.
pub(crate) fn diagonal(c: &mut Canvas, plot: &Plot, x: Domain, y: Domain) {
    let (lo, hi) = (x.lo.max(y.lo), x.hi.min(y.hi));
    if lo < hi {
        let [a, b] = [lo, hi].map(|v| (plot.x.map(v), plot.y.map(v)));
        // A light line under the dashes keeps them visible where the cells are dark.
        c.line("gr-under", a, b).end();
        c.line("gr-ref gr-diag", a, b).tip("both equal");
    }
}

/// Plural that reads well: `1 point`, `2,000 points`.
pub(crate) fn counted(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {what}{s}", crate::scale::number(n as f64))
}
