//! Values of parameters, and the grid of candidates they make.

use gradus_base::{Error, Result};
use gradus_core::params::{ParamKind, ParamSpec};
use serde_json::{Map, Value};

/// A parameter and the values to try for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The parameter's name.
    pub name: String,
    /// The values of the parameter.
    pub values: Vec<Value>,
}

impl Axis {
    /// Reads the values of a parameter from text: `16,32,64`, or `0.01..1:5` for five values from
    /// 0.01 to 1 at equal ratios (at equal distances where the range is not positive), or `2..12` for every
    /// whole number from 2 to 12.
    ///
    /// # Errors
    /// Names the piece that cannot be read, and the rule it breaks.
    ///
    /// ```
    /// # use gradus_core::params::{ParamKind, ParamSpec};
    /// # use gradus_select::search::Axis;
    /// # let spec = ParamSpec {
    /// #     name: "rank".into(), doc: String::new(), default: 8.into(), optional: false,
    /// #     kind: ParamKind::Integer { min: 1, max: 100 },
    /// # };
    /// assert_eq!(Axis::parse(&spec, "3,10..40:3")?.values, [3, 10, 20, 40]);
    /// assert_eq!(Axis::parse(&spec, "2..5")?.values, [2, 3, 4, 5]);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn parse(spec: &ParamSpec, text: &str) -> Result<Self> {
        let mut values: Vec<Value> = Vec::new();
        for piece in text.split(',').map(str::trim) {
            let found = match piece.split_once("..") {
                Some((low, rest)) => between(spec, piece, low, rest)?,
                None => vec![spec.parse(piece)?],
            };
            for value in found {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        Ok(Self { name: spec.name.clone(), values })
    }
}

/// A range of whole numbers without a count has at most this many.
const EVERY: i64 = 50;

/// The values of `low..high:count`, or of `low..high` for whole numbers.
fn between(spec: &ParamSpec, piece: &str, low: &str, rest: &str) -> Result<Vec<Value>> {
    let wrong = || {
        Error::parameter(&spec.name, piece, "a range is written low..high:count, as in 0.01..1:5")
    };
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    if let (ParamKind::Integer { .. }, Ok(low), Ok(high)) =
        (&spec.kind, low.trim().parse::<i64>(), rest.trim().parse::<i64>())
        && (low + 1..low.saturating_add(EVERY)).contains(&high)
    {
        let value = |x: i64| spec.check(&x.into()).map(|()| Value::from(x));
        return (low..=high).map(value).collect();
    }
    let (high, count) = rest.split_once(':').ok_or_else(wrong)?;
    let (low, high) = number(low).zip(number(high)).ok_or_else(wrong)?;
    let count: usize =
        count.trim().parse().ok().filter(|n| (2..=1000).contains(n)).ok_or_else(|| {
            Error::parameter(&spec.name, piece, "the count of a range must be from 2 to 1000")
        })?;
    if low >= high {
        return Err(Error::parameter(&spec.name, piece, "a range must go from low to high"));
    }
    let whole = matches!(spec.kind, ParamKind::Integer { .. });
    (0..count)
        .map(|n| {
            let share = n as f64 / (count - 1) as f64;
            let x = match n {
                0 => low,
                _ if n + 1 == count => high,
                _ if low > 0.0 => low * (high / low).powf(share),
                _ => low + (high - low) * share,
            };
            // Enough digits for a step, few enough to read and to type again.
            let value = if whole { Value::from(x.round() as i64) } else { rounded(x) };
            spec.check(&value).map(|()| value)
        })
        .collect()
}

/// A number to four significant digits.
fn rounded(x: f64) -> Value {
    let text = format!("{x:.3e}");
    text.parse::<f64>().unwrap_or(x).into()
}

/// A sequence of candidates that differ in one parameter only: each can start from the one before.
pub(super) type Chain = Vec<Map<String, Value>>;

/// Every combination of the values, in chains along the parameter whose neighbours are most alike.
pub(super) fn chains(fixed: &Map<String, Value>, axes: &[Axis]) -> Vec<Chain> {
    // A weaker penalty is reached best from a stronger one.
    let along = axes.iter().position(|axis| axis.name == "regularization");
    let mut heads = vec![fixed.clone()];
    for (at, axis) in axes.iter().enumerate() {
        if Some(at) != along {
            heads = heads.iter().flat_map(|head| extended(head, axis)).collect();
        }
    }
    let Some(along) = along else {
        return heads.into_iter().map(|head| vec![head]).collect();
    };
    let mut axis = axes[along].clone();
    let size = |value: &Value| value.as_f64().unwrap_or(0.0);
    axis.values.sort_by(|a, b| size(b).total_cmp(&size(a)));
    heads.iter().map(|head| extended(head, &axis)).collect()
}

fn extended(head: &Map<String, Value>, axis: &Axis) -> Vec<Map<String, Value>> {
    let with = |value: &Value| {
        let mut candidate = head.clone();
        candidate.insert(axis.name.clone(), value.clone());
        candidate
    };
    axis.values.iter().map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(kind: ParamKind) -> ParamSpec {
        ParamSpec {
            name: "x".into(),
            doc: String::new(),
            kind,
            default: Value::Null,
            optional: false,
        }
    }

    #[test]
    fn ranges_keep_their_ends_and_their_ratios() {
        let number = spec(ParamKind::Number { min: None, max: None });
        let values = |text: &str| Axis::parse(&number, text).unwrap().values;
        assert_eq!(values("0.01..1:3"), [0.01, 0.1, 1.0]);
        assert_eq!(values("-1..1:3"), [-1.0, 0.0, 1.0]);
        assert_eq!(values("0.5, 0.5,2"), [0.5, 2.0]);
        assert!(Axis::parse(&number, "1..3").is_err());
        let whole = spec(ParamKind::Integer { min: 0, max: 9 });
        assert_eq!(Axis::parse(&whole, "1..4:9").unwrap().values, [1, 2, 3, 4]);
        assert_eq!(Axis::parse(&whole, "1..4").unwrap().values, [1, 2, 3, 4]);
        assert!(Axis::parse(&whole, "1..99").is_err());
    }

    #[test]
    fn what_cannot_be_tried_is_named() {
        let whole = spec(ParamKind::Integer { min: 0, max: 9 });
        for (text, part) in [
            ("1..3:1", "from 2 to 1000"),
            ("3..1:2", "from low to high"),
            ("1,many", "many"),
            ("5..20:2", "from 0 to 9"),
            ("", "integer"),
        ] {
            let error = Axis::parse(&whole, text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn chains_cover_the_grid_once_and_weaken_the_penalty() {
        let axis = |name: &str, values: &[f64]| Axis {
            name: name.into(),
            values: values.iter().map(|&v| v.into()).collect(),
        };
        let fixed = Map::from_iter([("seed".to_owned(), json!(3))]);
        let axes = [axis("regularization", &[0.1, 1.0]), axis("rank", &[2.0, 4.0, 8.0])];
        let found = chains(&fixed, &axes);
        assert_eq!(found.len(), 3);
        for (chain, rank) in found.iter().zip([2.0, 4.0, 8.0]) {
            let strengths: Vec<_> = chain.iter().map(|c| c["regularization"].clone()).collect();
            assert_eq!(strengths, [1.0, 0.1]);
            assert!(chain.iter().all(|c| c["rank"] == rank && c["seed"] == 3));
        }
        assert_eq!(chains(&fixed, &[]), [vec![fixed.clone()]]);
    }
}
