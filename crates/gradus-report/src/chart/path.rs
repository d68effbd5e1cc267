//! Coefficients along a path of penalties.

use super::line::Line;

/// The number of coefficients with a colour and a name.
const NAMED: usize = 6;

/// The coefficients of a model against the penalty, strongest first: where each enters, and how it
/// grows as the penalty weakens. The six largest at the end of the path are named, the others grey.
///
/// `coefficients` has a row for each feature with a value for each penalty. Penalties must be
/// positive, for the axis is logarithmic.
///
/// ```
/// use gradus_report::{Chart, coefficient_path};
///
/// let path = coefficient_path(&[1.0, 0.1, 0.01], [("age", [0.0, 0.3, 0.4]), ("dose", [0.5, 0.9, 1.0])]);
/// assert!(path.marker(0.1, "chosen").to_svg().contains("dose"));
/// ```
pub fn coefficient_path<N: Into<String>, C: AsRef<[f64]>>(
    penalties: &[f64],
    coefficients: impl IntoIterator<Item = (N, C)>,
) -> Line {
    let features: Vec<(String, C)> =
        coefficients.into_iter().map(|(name, values)| (name.into(), values)).collect();
    // The end of the path is where the penalty is least.
    let least = (0..penalties.len()).min_by(|&a, &b| penalties[a].total_cmp(&penalties[b]));
    let size = |at: usize| {
        let value = least.and_then(|least| features[at].1.as_ref().get(least));
        value.copied().filter(|v| v.is_finite()).unwrap_or(0.0).abs()
    };
    let mut order: Vec<usize> = (0..features.len()).collect();
    order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    let mut line = Line::new().log_x().falling_x().x_label("penalty").y_label("coefficient");
    for (place, &at) in order.iter().enumerate() {
        let (name, values) = &features[at];
        let mut points: Vec<(f64, f64)> =
            penalties.iter().copied().zip(values.as_ref().iter().copied()).collect();
        points.sort_by(|a, b| b.0.total_cmp(&a.0));
        line = if place < NAMED && size(at) > 0.0 {
            line.series(name, points)
        } else {
            line.faint(name, points)
        };
    }
    line.reference(0.0, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chart;

    #[test]
    fn the_largest_are_named() {
        let features: Vec<(String, [f64; 2])> =
            (0..9).map(|i| (format!("feature {i}"), [0.0, f64::from(i)])).collect();
        let svg = coefficient_path(&[1.0, 0.1], features).to_svg();
        assert!(svg.contains(">feature 8</text>") && svg.contains(">feature 3</text>"));
        assert!(!svg.contains(">feature 2</text>"));
        assert_eq!(svg.matches("class=\"gr-line gr-faint\"").count(), 3);
    }
}
