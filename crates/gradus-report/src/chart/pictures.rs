//! Small pictures side by side: the components of images, and images with what is said of their parts drawn over them.

use super::{Chart, Labels, SIZE, counted, header, label_setters, no_data, sane};
use crate::scale::drawable;
use crate::svg::{Anchor, Canvas, Drawing};

/// Shades of a picture: more cannot be distinguished.
const SHADES: usize = 16;
/// Pixels along a side that are drawn; larger pictures are averaged over blocks.
const SIDE: usize = 64;
/// Opacity of the strongest mark over a picture: what lies below is still seen.
const OVER: f64 = 0.75;
/// Width of a picture on the page.
const WIDTH: f64 = 96.0;

/// Pictures of one channel, shaded from 0 to their own largest value; what is negative or not finite is left blank.
///
/// ```
/// use gradus_report::{Chart, Pictures};
///
/// let svg = Pictures::new().picture("diagonal", 2, &[1.0, 0.0, 0.0, 1.0]).to_svg();
/// assert!(svg.contains("diagonal"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    labels: Labels,
    pictures: Vec<Picture>,
}

#[derive(Clone, Debug)]
struct Picture {
    name: String,
    width: usize,
    values: Vec<f64>,
    over: Option<Vec<f64>>,
}

impl Pictures {
    label_setters!();

    /// No pictures yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a picture of `width` pixels a row; a row that is not whole is left out.
    #[must_use]
    pub fn picture(mut self, name: impl Into<String>, width: usize, values: &[f64]) -> Self {
        let whole = values.len() / width.max(1) * width;
        if whole > 0 {
            let values = values[..whole].to_vec();
            self.pictures.push(Picture { name: name.into(), width, values, over: None });
        }
        self
    }

    /// Adds a picture with a second one drawn over it in another colour, shaded from 0 to its own largest value; where that
    /// has another number of pixels, it is left out.
    #[must_use]
    pub fn overlaid(
        mut self,
        name: impl Into<String>,
        width: usize,
        values: &[f64],
        over: &[f64],
    ) -> Self {
        let n = self.pictures.len();
        self = self.picture(name, width, values);
        if let Some(picture) = self.pictures.get_mut(n)
            && picture.values.len() == over.len()
        {
            picture.over = Some(over.to_vec());
        }
        self
    }
}

impl Picture {
    /// Numbers of its pixels with at most [`SIDE`] along a side, and their width.
    fn drawn(&self, values: &[f64]) -> (usize, Vec<f64>) {
        let (width, height) = (self.width, values.len() / self.width);
        let block = width.max(height).div_ceil(SIDE);
        let (w, h) = (width.div_ceil(block), height.div_ceil(block));
        let mut drawn = Vec::with_capacity(w * h);
        for at in 0..w * h {
            let (mut sum, mut count) = (0.0, 0.0);
            for y in (at / w * block..height).take(block) {
                for x in (at % w * block..width).take(block) {
                    let value = values[y * width + x];
                    if drawable(value, false) && value > 0.0 {
                        sum += value / (block * block) as f64;
                    }
                    count += 1.0 / (block * block) as f64;
                }
            }
            drawn.push(sum / count);
        }
        (w, drawn)
    }
}

/// Draws pixels in shades of a colour, up to an opacity.
fn shade(
    c: &mut Canvas,
    (class, opacity): (&str, f64),
    to: ((f64, f64), f64),
    (width, values): (usize, &[f64]),
) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let of = |value: f64| match most > 0.0 {
        true => (value / most * SHADES as f64).round() as usize,
        false => 0,
    };
    for shade in 1..=SHADES {
        let shades: Vec<bool> = values.iter().map(|v| of(*v) == shade).collect();
        c.runs(class, to, width, &shades, opacity * shade as f64 / SHADES as f64);
    }
}

impl Chart for Pictures {
    fn draw(&self, width: f64) -> Drawing {
        let width = sane(width);
        if self.pictures.is_empty() {
            return no_data(&self.labels, width);
        }
        let mut c = Canvas::default();
        let top = header(&mut c, &self.labels, width, "");
        let across = ((width / (WIDTH + 12.0)) as usize).max(1);
        let mut y = top;
        for row in self.pictures.chunks(across) {
            let mut tallest = 0.0f64;
            for (column, picture) in row.iter().enumerate() {
                let (w, values) = picture.drawn(&picture.values);
                let scale = WIDTH / w as f64;
                let high = ((values.len() / w) as f64 * scale).min(4.0 * WIDTH);
                let scale = scale.min(high / (values.len() / w) as f64);
                let left = column as f64 * (WIDTH + 12.0);
                c.rect("gr-void", left, y, w as f64 * scale, high).num("fill-opacity", 0.15).end();
                shade(&mut c, ("gr-heat", 1.0), ((left, y), scale), (w, &values));
                if let Some(over) = &picture.over {
                    let (w, over) = picture.drawn(over);
                    shade(&mut c, ("gr-cold", OVER), ((left, y), scale), (w, &over));
                }
                let at = (left + WIDTH / 2.0, y + high + 15.0);
                c.text_within("gr-muted", at, Anchor::Middle, &picture.name, SIZE, WIDTH);
                tallest = tallest.max(high);
            }
            y += tallest + 28.0;
        }
        let desc = self.labels.desc_or(format!("{}.", counted(self.pictures.len(), "picture")));
        Drawing::new(width, y, &self.labels.title, &desc, c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_in_a_row_are_one_mark_and_large_pictures_are_averaged() {
        let svg = Pictures::new().picture("a", 4, &[1.0, 1.0, 0.0, 1.0]).to_svg();
        assert!(svg.contains("M0 0h2v1h-2zM3 0h1v1h-1z"), "{svg}");
        let large = vec![1.0; 300 * 200];
        let picture = Picture { name: String::new(), width: 300, values: large, over: None };
        let (w, drawn) = picture.drawn(&picture.values);
        assert!(w == 60 && drawn.len() == 60 * 40 && drawn.iter().all(|x| (x - 1.0).abs() < 1e-12));
        // Nothing, and nothing that can be drawn.
        assert!(Pictures::new().picture("a", 0, &[1.0]).to_svg().contains("svg"));
        let svg = Pictures::new().picture("a", 2, &[f64::NAN, -1.0, f64::INFINITY, 0.0]).to_svg();
        assert!(!svg.contains("gr-heat\" d"));
    }

    #[test]
    fn what_is_drawn_over_a_picture_has_its_own_colour() {
        let plain = Pictures::new().picture("a", 2, &[1.0, 0.0, 0.0, 1.0]);
        let over = Pictures::new().overlaid("a", 2, &[1.0, 0.0, 0.0, 1.0], &[0.0, 2.0, 0.0, 0.0]);
        assert!(!plain.to_svg().contains("<path class=\"gr-cold\""));
        let svg = over.to_svg();
        assert!(svg.contains("gr-cold\" d=\"M1 0h1v1h-1z\""), "{svg}");
        assert!(svg.contains("fill-opacity=\"0.75\""), "{svg}");
        // Another number of pixels.
        let other = Pictures::new().overlaid("a", 2, &[1.0, 0.0], &[1.0; 4]).to_svg();
        assert!(!other.contains("<path class=\"gr-cold\""));
    }
}
