//! A confusion matrix: predicted against true classes.

use super::{Chart, Labels, SIZE, header, label_setters, no_data, sane};
use crate::scale::{drawable, number};
use crate::svg::{Anchor, Canvas, Drawing};
use crate::text;

/// Classes that are shown: more would be specks.
const MAX_CLASSES: usize = 60;

/// A table of true against predicted classes: counts, and shares of the rows of each true class.
///
/// Of more than 60 classes the largest 60 are shown, and a note says so; shares are of all rows.
///
/// Right answers are on the diagonal in one colour, mistakes beside it in another, both the stronger
/// the larger their share. Numbers are left out where the cells are too small for them.
///
/// ```
/// use gradus_report::{Chart, Confusions};
///
/// let svg = Confusions::new([[90.0, 10.0], [3.0, 7.0]]).classes(["ham", "spam"]).to_svg();
/// assert!(svg.contains(">30 %</text>"));
/// ```
#[derive(Clone, Debug)]
pub struct Confusions {
    labels: Labels,
    counts: Vec<Vec<f64>>,
    names: Vec<String>,
}

impl Confusions {
    label_setters!(axes);

    /// A table of these counts (or weights): a row for each true class, a column for each predicted.
    pub fn new<R: AsRef<[f64]>>(rows: impl IntoIterator<Item = R>) -> Self {
        let counts = rows.into_iter().map(|row| row.as_ref().to_vec()).collect();
        let labels = Labels { x: "predicted".into(), y: "true".into(), ..Labels::default() };
        Self { labels, counts, names: Vec::new() }
    }

    /// Names of the classes. By default they are numbered from 0.
    #[must_use]
    pub fn classes<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }
}

fn classes(n: usize) -> String {
    if n == 1 { "1 class".into() } else { format!("{} classes", number(n as f64)) }
}

/// A share of 1 as it is read: whole percents, one decimal below 10.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        "0 %".into()
    } else if percent < 0.1 {
        "< 0.1 %".into()
    } else if percent < 9.95 && percent.fract() != 0.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

impl Chart for Confusions {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        let all = self.counts.iter().map(Vec::len).max().unwrap_or(0).max(self.counts.len());
        let known = |v: f64| drawable(v, false) && v >= 0.0;
        // Halves do not overflow where counts are near the end of the range.
        let half = |row: &Vec<f64>| {
            row.iter().filter(|v| known(**v)).map(|v| v / 2.0 / all as f64).sum::<f64>()
        };
        let totals: Vec<f64> = self.counts.iter().map(half).collect();
        if totals.iter().all(|&total| total == 0.0) {
            return no_data(&self.labels, width);
        }
        let size = |class: usize| totals.get(class).copied().unwrap_or(0.0);
        let mut shown: Vec<usize> = (0..all).collect();
        shown.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
        shown.truncate(MAX_CLASSES);
        shown.sort_unstable();
        let n = shown.len();
        let get = |i: usize, j: usize| {
            let row = self.counts.get(shown[i]);
            row.and_then(|row| row.get(shown[j])).copied().filter(|&v| known(v))
        };
        let name =
            |i: usize| self.names.get(shown[i]).cloned().unwrap_or_else(|| shown[i].to_string());
        let cut =
            if n < all { format!("the largest {n} of {}", classes(all)) } else { String::new() };

        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, &cut);
        let names = (0..n).map(|i| text::width(&name(i), SIZE)).fold(0.0_f64, f64::max);
        let room = names.max(text::width(&self.labels.y, SIZE)).min(width * 0.3);
        let left = room + 10.0;
        let pitch = ((width - left - 4.0) / n as f64).min(92.0);
        let high = (pitch * 0.62).clamp(6.0, 52.0);
        let values = (0..n * n).filter_map(|at| get(at / n, at % n));
        let widest = values.map(|v| text::strong_width(&number(v), SIZE)).fold(0.0_f64, f64::max);
        let widest = widest.max(text::width("99.9 %", 11.0));
        let written = widest + 6.0 <= pitch && high >= 34.0;
        let small = !written && text::width("100", 11.0) + 2.0 <= pitch && high >= 15.0;

        // The names of the columns stand above them, where reading begins.
        let middle = left + pitch * n as f64 / 2.0;
        c.text_within(
            "gr-muted",
            (middle, top + 10.0),
            Anchor::Middle,
            &self.labels.x,
            SIZE,
            width - left,
        );
        c.text_within("gr-muted", (room, top + 28.0), Anchor::End, &self.labels.y, SIZE, room);
        let fits = |j: usize| text::width(&name(j), SIZE) <= pitch - 4.0;
        let every =
            if pitch >= 34.0 || (0..n).all(fits) { 1 } else { super::thinning(names, pitch) };
        for j in (0..n).step_by(every) {
            let at = (left + pitch * (j as f64 + 0.5), top + 28.0);
            let room = (pitch * every as f64 - 6.0).max(14.0);
            c.text_within("", at, Anchor::Middle, &name(j), SIZE, room);
        }
        let top = top + 36.0;
        let row_every = super::thinning(SIZE - 6.0, high);
        let gap = if pitch >= 14.0 { 2.0 } else { 0.0 };
        for (i, &class) in shown.iter().enumerate() {
            let y = top + high * i as f64;
            if i % row_every == 0 {
                c.text_within("", (room, y + high / 2.0 + 4.0), Anchor::End, &name(i), SIZE, room);
            }
            let total = size(class);
            for j in 0..n {
                let x = left + pitch * j as f64;
                let (w, h) = (pitch - gap, high - gap);
                let Some(value) = get(i, j) else {
                    c.rect("gr-void", x, y, w, h).tip(&format!(
                        "{} as {}: no value",
                        name(i),
                        name(j)
                    ));
                    continue;
                };
                let share = if total > 0.0 {
                    (value / 2.0 / all as f64 / total).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let tip = format!(
                    "{} called {}: {}, {} of its rows",
                    name(i),
                    name(j),
                    number(value),
                    percent(share)
                );
                if value == 0.0 {
                    c.rect("gr-void", x, y, w, h).tip(&tip);
                } else {
                    let class = if i == j { "gr-heat" } else { "gr-cold" };
                    let opacity = 0.1 + 0.85 * share;
                    c.rect(class, x, y, w, h).num("fill-opacity", opacity).tip(&tip);
                }
                let on = if share > 0.66 { " gr-onheat" } else { "" };
                let (cx, cy) = (x + w / 2.0, y + h / 2.0);
                if written && value == 0.0 {
                    c.text("gr-small gr-muted", cx, cy + 4.0, Anchor::Middle, "0");
                } else if written {
                    let class = format!("gr-strong{on}");
                    c.text(&class, cx, cy - 2.0, Anchor::Middle, &number(value));
                    let class = format!("gr-small{on}");
                    c.text(&class, cx, cy + 13.0, Anchor::Middle, &percent(share));
                } else if small && value > 0.0 {
                    let class = format!("gr-small{on}");
                    c.text(&class, cx, cy + 4.0, Anchor::Middle, &format!("{:.0}", share * 100.0));
                }
            }
        }
        let mut height = top + high * n as f64 + 4.0;
        if small {
            let note = "percent of the rows of each true class";
            c.text_within(
                "gr-small gr-muted",
                (left, height + 10.0),
                Anchor::Start,
                note,
                11.0,
                width - left,
            );
            height += 16.0;
        }
        let used = (left + pitch * n as f64 + 4.0).clamp(width.min(300.0), width);
        let desc = format!("Confusion matrix of {}.", classes(all));
        Drawing::new(used, height, &self.labels.title, &self.labels.desc_or(desc), c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_true_class() {
        let svg = Confusions::new([[8.0, 2.0], [0.0, 0.0]]).to_svg();
        assert!(svg.contains(">80 %</text>") && svg.contains(">20 %</text>"));
        assert!(svg.contains("0 called 1: 2, 20 % of its rows"));
        assert_eq!(svg.matches("class=\"gr-void\"").count(), 2);
    }

    #[test]
    fn percents_read_well() {
        let shown = [0.0, 0.0004, 0.0312, 0.05, 0.0999, 0.5, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "< 0.1 %", "3.1 %", "5 %", "10 %", "50 %", "100 %"]);
    }

    #[test]
    fn many_classes_get_small_cells_and_missing_ones_are_grey() {
        let many: Vec<Vec<f64>> = (0..40).map(|i| vec![f64::from(i); 40]).collect();
        assert!(!Confusions::new(many).draw(404.0).embedded().contains("gr-strong"));
        assert!(Confusions::new([vec![1.0, f64::NAN], vec![-3.0]]).to_svg().contains("no value"));
        let huge = vec![[1.0]; 1000];
        let svg = Confusions::new(huge).to_svg();
        assert!(svg.contains("the largest 60 of 1000 classes") && svg.len() < 1_000_000);
        assert!(Confusions::new([[0.0]]).to_svg().contains("no data"));
    }
}
