//! Axis scales: domains that are never degenerate, ticks at round numbers, and number formatting.

/// Values beyond this magnitude are treated like infinities: differences of them may overflow.
const LARGEST: f64 = 1e300;
/// The value below which a logarithmic axis treats values like zero.
const SMALLEST: f64 = 1e-300;

/// Whether a value can be placed on an axis.
pub(crate) fn drawable(value: f64, log: bool) -> bool {
    value.is_finite() && value.abs() <= LARGEST && (!log || value >= SMALLEST)
}

/// The interval of values an axis shows: finite, and never of zero width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Domain {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) log: bool,
    /// All values were integers: ticks between them would be nonsense.
    pub(crate) integer: bool,
}

impl Domain {
    /// The domain that holds every drawable value, or `None` when there is none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>, log: bool) -> Option<Self> {
        let mut found: Option<Self> = None;
        for v in values.into_iter().filter(|&v| drawable(v, log)) {
            let d = found.get_or_insert(Self { lo: v, hi: v, log, integer: true });
            d.lo = d.lo.min(v);
            d.hi = d.hi.max(v);
            d.integer &= v.fract() == 0.0 && v.abs() < 1e15;
        }
        found.map(Self::widened)
    }

    /// Opens up a constant (or nearly constant) domain so that it can be divided by its width.
    fn widened(mut self) -> Self {
        let size = self.lo.abs().max(self.hi.abs());
        if self.log {
            if self.hi / self.lo < 1.0 + 1e-9 {
                self.lo = (self.lo / 1.5).max(SMALLEST);
                self.hi *= 1.5;
            }
        } else if self.hi - self.lo <= (size * 1e-9).max(SMALLEST) {
            let small = size < 1e-290 || (self.integer && size < 20.0);
            let by = if small { 1.0 } else { size * 0.05 };
            self.lo -= by;
            self.hi += by;
        }
        self
    }

    /// Adds `share` of the width on both sides; a domain that starts or ends at zero keeps that end.
    pub(crate) fn padded(mut self, share: f64) -> Self {
        if self.log {
            let by = (self.hi / self.lo).ln() * share;
            self.lo = (self.lo * (-by).exp()).max(SMALLEST);
            // Padding 600 decades by a share of themselves would leave the range of f64.
            self.hi = (self.hi * by.exp()).min(1e305);
        } else {
            let by = (self.hi - self.lo) * share;
            if self.lo != 0.0 {
                self.lo -= by;
            }
            if self.hi != 0.0 {
                self.hi += by;
            }
        }
        self
    }
}

/// A domain mapped onto an interval of the drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    domain: Domain,
    from: f64,
    to: f64,
}

/// A position worth a label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl Scale {
    pub(crate) fn new(domain: Domain, from: f64, to: f64) -> Self {
        Self { domain, from, to }
    }

    /// Returns the position of `value`.
    pub(crate) fn map(&self, value: f64) -> f64 {
        let Domain { lo, hi, log, .. } = self.domain;
        let share = if log {
            (value.max(SMALLEST).ln() - lo.ln()) / (hi.ln() - lo.ln())
        } else {
            (value - lo) / (hi - lo)
        };
        self.from + share * (self.to - self.from)
    }

    /// Returns at most `max` ticks with their labels.
    pub(crate) fn ticks(&self, max: usize) -> Vec<Tick> {
        let Domain { lo, hi, log, integer } = self.domain;
        let (values, step) = if log {
            (log_ticks(lo, hi, max), None)
        } else {
            let step = nice_step(lo, hi, max, if integer { 1.0 } else { 0.0 });
            (multiples(lo, hi, step), Some(step))
        };
        let top = values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let label = |v: f64| match step {
            Some(step) => tick_label(v, step, top),
            None if !(1e-3..1e5).contains(&v) => minus(scientific(v, 4)),
            None => number(v),
        };
        values.iter().map(|&v| Tick { at: self.map(v), label: label(v) }).collect()
    }
}

/// Round numbers in `[lo, hi]`, increasing, at most `max` of them.
///
/// The step is the smallest of 1, 2, 2.5 and 5 times a power of ten that keeps within `max`. An empty,
/// reversed or non-finite interval has no ticks.
///
/// ```
/// assert_eq!(gradus_report::ticks(0.0, 1.0, 6), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
/// assert!(gradus_report::ticks(f64::NAN, 1.0, 6).is_empty());
/// ```
pub fn ticks(lo: f64, hi: f64, max: usize) -> Vec<f64> {
    let usable = drawable(lo, false) && drawable(hi, false) && max > 0;
    if !usable || hi - lo <= (lo.abs().max(hi.abs()) * 1e-9).max(SMALLEST) {
        return Vec::new();
    }
    multiples(lo, hi, nice_step(lo, hi, max, 0.0))
}

fn nice_step(lo: f64, hi: f64, max: usize, least: f64) -> f64 {
    let rough = (hi - lo) / (max.max(1) as f64 + 1.0);
    let mut power = rough.log10().floor() as i32;
    loop {
        for m in [1.0, 2.0, 2.5, 5.0] {
            let step = m * 10f64.powi(power);
            let whole = least == 0.0 || (step >= least && step.fract() == 0.0);
            if whole && count(lo, hi, step) <= max.max(1) {
                return step;
            }
        }
        power += 1;
    }
}

/// First and last multiple of `step` in the interval; a hair of slack absorbs the division.
fn bounds(lo: f64, hi: f64, step: f64) -> (f64, f64) {
    ((lo / step - 1e-9).ceil(), (hi / step + 1e-9).floor())
}

fn count(lo: f64, hi: f64, step: f64) -> usize {
    let (a, b) = bounds(lo, hi, step);
    (b - a + 1.0).max(0.0) as usize
}

fn multiples(lo: f64, hi: f64, step: f64) -> Vec<f64> {
    let (first, _) = bounds(lo, hi, step);
    // Dividing by 1/step instead of multiplying by step gives 0.3 rather than 0.30000000000000004.
    let inverse = (1.0 / step).round();
    let exact = step < 1.0 && inverse < 1e15 && ((1.0 / inverse) - step).abs() < step * 1e-12;
    (0..count(lo, hi, step))
        .map(|i| {
            let k = first + i as f64;
            let v = if exact { k / inverse } else { k * step };
            // A tick a rounding error outside belongs on the edge; `+ 0.0` turns −0 into 0.
            v.clamp(lo, hi) + 0.0
        })
        .collect()
}

/// Round numbers for a logarithmic axis: decades, or 1-2-5 when there are few decades.
fn log_ticks(lo: f64, hi: f64, max: usize) -> Vec<f64> {
    let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let inside = |mantissas: &[f64], every: i32| -> Vec<f64> {
        (first..=last)
            .filter(|p| p.rem_euclid(every) == 0)
            .flat_map(|p| mantissas.iter().map(move |m| power_of_ten(p) * m))
            .filter(|v| (lo..=hi).contains(v))
            .collect()
    };
    for mantissas in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let found = inside(mantissas, 1);
        if (2..=max).contains(&found.len()) {
            return found;
        }
    }
    let decades = inside(&[1.0], 1);
    if decades.len() < 2 {
        return multiples(lo, hi, nice_step(lo, hi, max, 0.0));
    }
    (2..).map(|every| inside(&[1.0], every)).find(|found| found.len() <= max).unwrap_or_default()
}

/// `10^p`, correctly rounded where `powi` accumulates errors.
fn power_of_ten(p: i32) -> f64 {
    format!("1e{p}").parse().unwrap_or_else(|_| 10f64.powi(p))
}

/// A tick's label: as many decimals as the step needs, and one unit for the whole axis.
fn tick_label(value: f64, step: f64, top: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e12).contains(&top) {
        let digits = (value.abs().log10().floor() - step.log10().floor()).clamp(0.0, 12.0);
        return minus(scientific(value, digits as usize + 1));
    }
    let (unit, suffix) = match top {
        t if t >= 1e9 => (1e9, "B"),
        t if t >= 1e6 => (1e6, "M"),
        t if t >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let step = step / unit;
    // 2.5 needs one decimal more than 2: look for the first precision that shows the step exactly.
    let decimals = (0..12).find(|&d| {
        let scaled = step * 10f64.powi(d);
        (scaled - scaled.round()).abs() < 1e-6 && scaled.round() > 0.0
    });
    minus(format!("{:.*}{suffix}", decimals.unwrap_or(12) as usize, value / unit))
}

/// A number for people: four significant digits, thousands separated, a true minus sign; scientific
/// notation outside `1e-4 ..= 1e12`; an en dash for what is not a finite number.
///
/// ```
/// use gradus_report::number;
/// assert_eq!(number(0.87654321), "0.8765");
/// assert_eq!(number(1234567.0), "1,234,567");
/// assert_eq!(number(-2.5), "−2.5");
/// assert_eq!(number(f64::NAN), "–");
/// ```
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e12).contains(&size) {
        return minus(scientific(value, 4));
    }
    let decimals = if size >= 1000.0 || value.fract() == 0.0 {
        0
    } else {
        (3 - size.log10().floor() as i32).max(0) as usize
    };
    let mut text = format!("{value:.decimals$}");
    if decimals > 0 {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    minus(grouped(&text))
}

/// A number with exactly `decimals` decimals, thousands separated; an en dash when it is not finite.
///
/// ```
/// assert_eq!(gradus_report::fixed(0.9, 4), "0.9000");
/// ```
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() >= 1e15 {
        return minus(scientific(value, 4));
    }
    let text = format!("{value:.*}", decimals.min(12));
    let zero = !text.bytes().any(|b| matches!(b, b'1'..=b'9'));
    minus(grouped(if zero { text.trim_start_matches('-') } else { &text }))
}

fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits - 1);
    match text.split_once('e') {
        Some((m, e)) if m.contains('.') => {
            format!("{}e{e}", m.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |r| ("-", r));
    let (whole, tail) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    if whole.len() <= 4 {
        return text.to_owned();
    }
    let mut out = sign.to_owned();
    for (i, ch) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(ch);
    }
    out + tail
}

fn minus(text: String) -> String {
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(lo: f64, hi: f64) -> Vec<String> {
        let domain = Domain { lo, hi, log: false, integer: false };
        Scale::new(domain, 0.0, 1.0).ticks(6).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn labels_share_their_precision_and_unit() {
        assert_eq!(labels(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.0, 1e6), ["0", "0.2M", "0.4M", "0.6M", "0.8M", "1.0M"]);
        assert_eq!(labels(-2e4, 2e4), ["−20k", "−10k", "0", "10k", "20k"]);
        assert_eq!(labels(0.85, 0.9), ["0.85", "0.86", "0.87", "0.88", "0.89", "0.90"]);
    }

    #[test]
    fn integers_get_no_fractional_ticks() {
        let domain = Domain::of([1.0, 2.0, 3.0], false).unwrap();
        let labels: Vec<_> =
            Scale::new(domain, 0.0, 1.0).ticks(6).into_iter().map(|t| t.label).collect();
        assert_eq!(labels, ["1", "2", "3"]);
    }

    #[test]
    fn log_ticks_fit_few_and_many_decades() {
        assert_eq!(log_ticks(0.9, 120.0, 6), [1.0, 3.0, 10.0, 30.0, 100.0]);
        assert_eq!(log_ticks(1.0, 10.0, 6), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(log_ticks(1e-9, 1e9, 6), [1e-8, 1e-4, 1.0, 1e4, 1e8]);
        assert!(log_ticks(3.1, 3.4, 6).len() >= 2);
    }

    #[test]
    fn a_constant_becomes_an_interval_around_it() {
        for v in [0.0, 3.0, -7.5, 1e-299, 1e299, 5e-324] {
            let d = Domain::of([v, v], false).unwrap();
            assert!(d.lo < v && v < d.hi && (d.hi - d.lo).is_finite(), "{v}: {d:?}");
        }
        assert_eq!(Domain::of([f64::NAN, f64::INFINITY], false), None);
        assert_eq!(Domain::of([0.0, -1.0], true), None);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(12.0), "12");
        assert_eq!(number(1e-7), "1e−7");
        assert_eq!(number(-12345.6), "−12,346");
        assert_eq!(number(0.1 + 0.2), "0.3");
        assert_eq!(fixed(-0.00001, 2), "0.00");
        assert_eq!(fixed(f64::INFINITY, 2), "–");
        assert_eq!(fixed(1234567.891, 1), "1,234,567.9");
    }

    proptest! {
        #[test]
        fn ticks_rise_stay_inside_and_are_few(
            a in -1e12..1e12f64, width in 1e-3..1e12f64, max in 1usize..12,
        ) {
            let found = ticks(a, a + width, max);
            prop_assert!(found.len() <= max);
            prop_assert!(found.windows(2).all(|w| w[0] < w[1]));
            prop_assert!(found.iter().all(|&t| (a..=a + width).contains(&t)));
        }

        #[test]
        fn six_ticks_leave_no_axis_bare(a in -1e6..1e6f64, width in 1e-2..1e6f64) {
            prop_assert!(ticks(a, a + width, 6).len() >= 2);
        }

        #[test]
        fn log_ticks_obey_the_same_laws(p in -200f64..200.0, decades in 0.01..100f64, max in 2usize..9) {
            let (lo, hi) = (10f64.powf(p), 10f64.powf(p + decades));
            let found = log_ticks(lo, hi, max);
            prop_assert!(found.len() <= max);
            prop_assert!(found.windows(2).all(|w| w[0] < w[1]));
            prop_assert!(found.iter().all(|t| (lo..=hi).contains(t)));
        }

        #[test]
        fn any_bits_make_a_finite_axis(bits in prop::collection::vec(any::<u64>(), 1..5), log: bool) {
            let values = bits.iter().map(|&b| f64::from_bits(b));
            if let Some(domain) = Domain::of(values.clone(), log) {
                let scale = Scale::new(domain.padded(0.05), 0.0, 100.0);
                prop_assert!(scale.ticks(6).iter().all(|t| t.at.is_finite()));
                for v in values.filter(|&v| drawable(v, log)) {
                    let at = scale.map(v);
                    prop_assert!((-1e-6..=100.0 + 1e-6).contains(&at), "{v} at {at}");
                }
            }
        }
    }
}
