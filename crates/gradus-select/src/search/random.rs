//! Random search: a distribution for each parameter, and candidates drawn from them.

use super::Axis;
use gradus_base::random::Stream;
use gradus_base::{Error, Result};
use gradus_core::params::{ParamKind, ParamSpec};
use serde_json::{Map, Value};

/// How the values of a parameter are drawn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// One of these, each as likely as the others.
    Choice(Vec<Value>),
    /// A number between these, each distance as likely.
    Uniform(f64, f64),
    /// A positive number between these, each ratio as likely: for what matters in orders of
    /// magnitude, such as a penalty.
    LogUniform(f64, f64),
    /// A whole number from the first to the second, each as likely.
    Integers(i64, i64),
    /// A positive whole number from the first to the second, each ratio (nearly) as likely.
    LogIntegers(i64, i64),
}

/// A parameter and the law its values are drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// The parameter's name.
    pub name: String,
    /// The law.
    pub distribution: Distribution,
}

impl Dimension {
    /// Reads a distribution from text.
    ///
    /// | text | values |
    /// |---|---|
    /// | `0.001..10:log` | between the two at equal ratios |
    /// | `0..1` or `0..1:uniform` | between the two at equal distances |
    /// | `16,32,64` or `0.01..1:5` | one of these, as in a grid (see [`Axis::parse`]) |
    ///
    /// For a parameter that takes whole numbers, the ends are included.
    ///
    /// # Errors
    /// Names the text that cannot be read, and the rule it breaks.
    ///
    /// ```
    /// # use gradus_core::params::{ParamKind, ParamSpec};
    /// # use gradus_select::search::{Dimension, Distribution};
    /// # let spec = ParamSpec {
    /// #     name: "regularization".into(), doc: String::new(), default: 1.0.into(), optional: false,
    /// #     kind: ParamKind::Number { min: None, max: None },
    /// # };
    /// let found = Dimension::parse(&spec, "0.001..10:log")?;
    /// assert_eq!(found.distribution, Distribution::LogUniform(0.001, 10.0));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn parse(spec: &ParamSpec, text: &str) -> Result<Self> {
        let range = text.split_once("..").filter(|_| !text.contains(','));
        let distribution = match range.map(|(low, rest)| (low, cut(rest))) {
            Some((low, (high, Some(log)))) => between(spec, text, low, high, log)?,
            _ => Distribution::Choice(Axis::parse(spec, text)?.values),
        };
        Ok(Self { name: spec.name.clone(), distribution })
    }

    fn draw(&self, stream: &mut Stream) -> Value {
        match &self.distribution {
            Distribution::Choice(values) => {
                values.get(stream.index(values.len())).cloned().unwrap_or(Value::Null)
            }
            Distribution::Uniform(low, high) => {
                rounded(stream.uniform_in(*low, *high), *low, *high)
            }
            Distribution::LogUniform(low, high) => {
                let drawn = stream.uniform_in(low.ln(), high.ln()).exp();
                rounded(drawn.clamp(*low, *high), *low, *high)
            }
            Distribution::Integers(low, high) => {
                (low + stream.below((high - low) as u64 + 1) as i64).into()
            }
            Distribution::LogIntegers(low, high) => {
                // Each whole number has the ratios from itself up to the next.
                let (from, to) = ((*low as f64).ln(), (*high as f64 + 1.0).ln());
                let drawn = stream.uniform_in(from, to).exp().floor() as i64;
                drawn.clamp(*low, *high).into()
            }
        }
    }
}

/// The end of a range, and whether it is at equal ratios; nothing where it is a range of a grid.
fn cut(rest: &str) -> (&str, Option<bool>) {
    match rest.split_once(':') {
        None => (rest, Some(false)),
        Some((high, law)) => match law.trim() {
            "log" => (high, Some(true)),
            "uniform" => (high, Some(false)),
            _ => (high, None),
        },
    }
}

fn between(spec: &ParamSpec, text: &str, low: &str, high: &str, log: bool) -> Result<Distribution> {
    let wrong = |rule: &str| Error::parameter(&spec.name, text, rule);
    let whole = match spec.kind {
        ParamKind::Integer { .. } => true,
        ParamKind::Number { .. } => false,
        _ => return Err(wrong("only a number can be drawn from a range; list the values: a,b,c")),
    };
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    let (from, to) = number(low).zip(number(high)).ok_or_else(|| {
        wrong("a range to draw from is written low..high or low..high:log, as in 0.001..10:log")
    })?;
    if from >= to {
        return Err(wrong("a range must go from low to high"));
    }
    if log && from <= 0.0 {
        return Err(wrong("a range at equal ratios must be of positive numbers"));
    }
    for end in [low, high] {
        spec.parse(end.trim())?;
    }
    Ok(match (whole, log) {
        (false, false) => Distribution::Uniform(from, to),
        (false, true) => Distribution::LogUniform(from, to),
        (true, false) => Distribution::Integers(from as i64, to as i64),
        (true, true) => Distribution::LogIntegers(from as i64, to as i64),
    })
}

/// A number to four significant digits: enough to try, few enough to read and to type again.
fn rounded(x: f64, low: f64, high: f64) -> Value {
    format!("{x:.3e}").parse::<f64>().unwrap_or(x).clamp(low, high).into()
}

/// Candidates drawn at random: where few of many parameters matter, more values of those are tried
/// than a grid of the same size has (Bergstra and Bengio, 2012).
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// The parameters to draw.
    pub dimensions: Vec<Dimension>,
    /// How many candidates to try; fewer where there are not so many different ones.
    pub tries: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Random {
    /// The candidates, each different from the others and with the fixed parameters set.
    ///
    /// The first ones of more tries are those of fewer tries.
    ///
    /// # Errors
    /// If nothing is to be tried, or a dimension has no values.
    ///
    /// ```
    /// use gradus_select::search::{Dimension, Distribution, Random};
    ///
    /// let rank = Dimension { name: "rank".into(), distribution: Distribution::Integers(1, 3) };
    /// let random = Random { dimensions: vec![rank], tries: 100, seed: 1 };
    /// assert_eq!(random.candidates(&Default::default())?.len(), 3);
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn candidates(&self, fixed: &Map<String, Value>) -> Result<Vec<Map<String, Value>>> {
        if !(1..=100_000).contains(&self.tries) {
            return Err(Error::parameter("tries", self.tries, "must be from 1 to 100000"));
        }
        for Dimension { name, distribution } in &self.dimensions {
            let empty = match distribution {
                Distribution::Choice(values) => values.is_empty(),
                Distribution::Uniform(low, high) => !(low <= high && (high - low).is_finite()),
                Distribution::LogUniform(low, high) => {
                    !(*low > 0.0 && low <= high && high.is_finite())
                }
                Distribution::Integers(low, high) => {
                    !high.checked_sub(*low).is_some_and(|width| (0..i64::MAX).contains(&width))
                }
                Distribution::LogIntegers(low, high) => !(*low > 0 && low <= high),
            };
            if empty {
                let rule = "has nothing to draw from: it must be finite and go from low to high";
                return Err(Error::parameter(name, format!("{distribution:?}"), rule));
            }
        }
        let mut found: Vec<Map<String, Value>> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        // Where candidates run out, this many draws in vain are enough to believe it.
        let (mut index, mut in_vain) = (0, 0);
        while found.len() < self.tries && in_vain < 200 + self.tries {
            let mut stream = Stream::new(self.seed, "search.random", index);
            let mut candidate = fixed.clone();
            for dimension in &self.dimensions {
                candidate.insert(dimension.name.clone(), dimension.draw(&mut stream));
            }
            if seen.insert(Value::Object(candidate.clone()).to_string()) {
                found.push(candidate);
                in_vain = 0;
            } else {
                in_vain += 1;
            }
            index += 1;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: ParamKind) -> ParamSpec {
        ParamSpec {
            name: "x".into(),
            doc: String::new(),
            kind,
            default: Value::Null,
            optional: false,
        }
    }

    fn number() -> ParamSpec {
        spec(ParamKind::Number { min: None, max: None })
    }

    fn draws(distribution: Distribution, n: usize) -> Vec<f64> {
        let dimension = Dimension { name: "x".into(), distribution };
        let draw =
            |at: usize| dimension.draw(&mut Stream::new(7, "test", at as u64)).as_f64().unwrap();
        (0..n).map(draw).collect()
    }

    #[test]
    fn text_says_the_law() {
        let whole = spec(ParamKind::Integer { min: 0, max: 1000 });
        for (spec, text, expected) in [
            (&number(), "0.001..10:log", Distribution::LogUniform(0.001, 10.0)),
            (&number(), "-1 .. 1", Distribution::Uniform(-1.0, 1.0)),
            (&number(), "0..1:uniform", Distribution::Uniform(0.0, 1.0)),
            (&number(), "0.5", Distribution::Choice(vec![0.5.into()])),
            (&number(), "1..4:3", Distribution::Choice(vec![1.0.into(), 2.0.into(), 4.0.into()])),
            (&whole, "2..64", Distribution::Integers(2, 64)),
            (&whole, "2..64:log", Distribution::LogIntegers(2, 64)),
            (&whole, "1,5", Distribution::Choice(vec![1.into(), 5.into()])),
        ] {
            assert_eq!(Dimension::parse(spec, text).unwrap().distribution, expected, "{text}");
        }
        for (spec, text, part) in [
            (&number(), "0..1:log", "positive"),
            (&number(), "2..1", "from low to high"),
            (&number(), "a..1", "low..high:log"),
            (&number(), "0..1:many", "count of a range"),
            (&whole, "1..2000", "from 0 to 1000"),
            (&whole, "1..2.5", "2.5"),
            (&spec_of_bool(), "0..1", "only a number"),
        ] {
            let error = Dimension::parse(spec, text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    fn spec_of_bool() -> ParamSpec {
        spec(ParamKind::Bool)
    }

    #[test]
    fn draws_follow_the_law() {
        let n = 4000;
        // The mean of a uniform law: five standard errors are 0.023 of its width.
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let uniform = draws(Distribution::Uniform(-1.0, 3.0), n);
        assert!(
            (mean(&uniform) - 1.0).abs() < 0.1 && uniform.iter().all(|x| (-1.0..=3.0).contains(x))
        );
        let log = draws(Distribution::LogUniform(1e-4, 1e2), n);
        let below = log.iter().filter(|&&x| x < 0.1).count() as f64 / n as f64;
        assert!((below - 0.5).abs() < 0.04 && log.iter().all(|x| (1e-4..=1e2).contains(x)));
        let whole = draws(Distribution::Integers(3, 6), n);
        for value in [3.0, 4.0, 5.0, 6.0] {
            let share = whole.iter().filter(|&&x| x == value).count() as f64 / n as f64;
            assert!((share - 0.25).abs() < 0.035, "{value}: {share}");
        }
        let ratio = draws(Distribution::LogIntegers(1, 7), n);
        // ln 2 of ln 8.
        let ones = ratio.iter().filter(|&&x| x == 1.0).count() as f64 / n as f64;
        assert!((ones - 1.0 / 3.0).abs() < 0.04, "{ones}");
        assert!(ratio.iter().all(|x| (1.0..=7.0).contains(x)));
    }

    #[test]
    fn candidates_differ_and_grow_from_the_same_start() {
        let dimension = |name: &str, distribution| Dimension { name: name.into(), distribution };
        let mut random = Random {
            dimensions: vec![
                dimension("alpha", Distribution::LogUniform(0.01, 1.0)),
                dimension("rank", Distribution::Choice(vec![8.into(), 16.into()])),
            ],
            tries: 5,
            seed: 3,
        };
        let fixed = Map::from_iter([("seed".to_owned(), Value::from(1))]);
        let few = random.candidates(&fixed).unwrap();
        random.tries = 9;
        let more = random.candidates(&fixed).unwrap();
        assert_eq!((few.len(), more.len()), (5, 9));
        assert_eq!(more[..5], few);
        assert!(more.iter().all(|c| c["seed"] == 1 && c.len() == 3));
        assert!((0..9).all(|a| (0..a).all(|b| more[a] != more[b])));
        random.seed = 4;
        assert_ne!(random.candidates(&fixed).unwrap(), more);
        random.dimensions.remove(0);
        assert_eq!(random.candidates(&fixed).unwrap().len(), 2);
        random.dimensions[0].distribution = Distribution::Choice(vec![]);
        assert!(random.candidates(&fixed).is_err());
        random.tries = 0;
        assert!(random.candidates(&fixed).unwrap_err().to_string().contains("tries"));
    }
}
