//! A model is defined once: its parameters are one plain struct.
//!
//! The struct derives `Serialize`, `Deserialize` and `JsonSchema`; its doc comments, defaults and
//! `#[schemars(range(...))]` attributes are the single place where a parameter is described. From
//! there come the validation ([`Params::check`]), the command line's flags and help, the record in
//! the model file and the keyword arguments of other languages ([`specs`]).
//!
//! ```
//! use gradus_core::params::{Params, specs};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// Fits a thing.
//! #[derive(Clone, Serialize, Deserialize, JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! struct Thing {
//!     /// Number of latent dimensions.
//!     #[schemars(range(min = 1, max = 4096))]
//!     rank: usize,
//! }
//! impl Default for Thing {
//!     fn default() -> Self {
//!         Self { rank: 8 }
//!     }
//! }
//! impl Params for Thing {}
//!
//! assert!(Thing { rank: 8 }.check().is_ok());
//! assert_eq!(
//!     Thing { rank: 0 }.check().unwrap_err().to_string(),
//!     "parameter `rank` = 0: must be an integer from 1 to 4096",
//! );
//! assert_eq!(specs::<Thing>()[0].doc, "Number of latent dimensions.");
//! ```

use gradus_base::{Error, Result};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The parameters of a model. Setters never fail; [`check`](Self::check) validates everything and
/// `fit` calls it.
pub trait Params:
    Serialize + DeserializeOwned + JsonSchema + Default + Clone + Send + Sync + 'static
{
    /// Earlier names of parameters, each with the name of today: files of earlier versions have them.
    const RENAMED: &'static [(&'static str, &'static str)] = &[];

    /// Rules that involve more than one parameter. The ranges of single ones are in the schema.
    fn check_together(&self) -> Result<()> {
        Ok(())
    }

    /// Checks every parameter against its range and choices.
    fn check(&self) -> Result<()> {
        let record = record(self);
        for spec in known::<Self>() {
            spec.check(record.get(&spec.name).unwrap_or(&Value::Null))?;
        }
        self.check_together()
    }

    /// Builds parameters from a JSON object; what it leaves out takes its default.
    ///
    /// # Errors
    /// Names the parameter that is unknown, of the wrong type or outside its range.
    fn from_record(record: &Map<String, Value>) -> Result<Self> {
        let specs = known::<Self>();
        let today = |name: &String| {
            let renamed = Self::RENAMED.iter().find(|(earlier, _)| earlier == name);
            renamed.map_or_else(|| name.clone(), |(_, today)| (*today).to_owned())
        };
        let record: Map<String, Value> =
            record.iter().map(|(name, value)| (today(name), value.clone())).collect();
        for (name, value) in &record {
            match specs.iter().find(|spec| spec.name == *name) {
                Some(spec) => spec.check(value)?,
                None => {
                    return Err(Error::UnknownName {
                        what: "parameter",
                        name: name.clone(),
                        known: specs.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", "),
                    });
                }
            }
        }
        let params: Self = serde_json::from_value(Value::Object(record))
            .map_err(|error| Error::data(format!("parameters: {error}")))?;
        params.check()?;
        Ok(params)
    }
}

/// The parameters as a JSON object, in the order of their definition.
pub fn record<P: Serialize>(params: &P) -> Map<String, Value> {
    // Through text, which says 0.1 for the single-precision 0.1, not 0.10000000149011612.
    let text = serde_json::to_string(params).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// One parameter, as its definition describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamSpec {
    /// The field's name, `snake_case`.
    pub name: String,
    /// The doc comment.
    pub doc: String,
    /// The type of the values.
    pub kind: ParamKind,
    /// The default, as JSON.
    pub default: Value,
    /// Whether `null` (not given) is a value of its own.
    pub optional: bool,
}

/// The type of the values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// `true` or `false`.
    Bool,
    /// An integer in a closed range.
    Integer {
        /// Smallest value.
        min: i128,
        /// Largest value.
        max: i128,
    },
    /// A finite number in a range.
    Number {
        /// Smallest value, and whether it is itself excluded.
        min: Option<(f64, bool)>,
        /// Largest value, and whether it is itself excluded.
        max: Option<(f64, bool)>,
    },
    /// A list of finite numbers, each at least so large, if there is a bound.
    Numbers {
        /// Smallest value.
        min: Option<f64>,
    },
    /// A list of words.
    Texts,
    /// A list of integers, each in a closed range.
    Integers {
        /// Smallest value.
        min: i128,
        /// Largest value.
        max: i128,
    },
    /// One of a few words, each with its explanation.
    Choice(Vec<(String, String)>),
    /// Any text.
    Text,
}

impl ParamSpec {
    /// The rule a value must obey, in words: `must be an integer from 1 to 4096`.
    pub fn rule(&self) -> String {
        let rule = match &self.kind {
            ParamKind::Bool => "must be true or false".to_owned(),
            ParamKind::Integer { min, max } => {
                format!("must be an integer {}", integer_range(*min, *max))
            }
            ParamKind::Integers { min, max } => {
                format!("must be a list of integers {}", integer_range(*min, *max))
            }
            ParamKind::Number { min, max } => {
                let bound = |(value, excluded): (f64, bool), words: [&str; 2]| {
                    format!("{} {value}", words[usize::from(excluded)])
                };
                let min = min.map(|b| bound(b, ["at least", "greater than"]));
                let max = max.map(|b| bound(b, ["at most", "less than"]));
                match (min, max) {
                    (Some(min), Some(max)) => format!("must be a number {min} and {max}"),
                    (Some(one), None) | (None, Some(one)) => {
                        format!("must be a finite number {one}")
                    }
                    (None, None) => "must be a finite number".to_owned(),
                }
            }
            ParamKind::Choice(choices) => {
                let words: Vec<_> = choices.iter().map(|(word, _)| word.as_str()).collect();
                format!("must be one of {}", words.join(", "))
            }
            ParamKind::Numbers { min: Some(min) } => {
                format!("must be a list of finite numbers at least {min}")
            }
            ParamKind::Numbers { min: None } => "must be a list of finite numbers".to_owned(),
            ParamKind::Text => "must be text".to_owned(),
            ParamKind::Texts => "must be a list of words".to_owned(),
        };
        if self.optional { format!("{rule}, or left out") } else { rule }
    }

    /// Checks a JSON value against the rule.
    pub fn check(&self, value: &Value) -> Result<()> {
        let fits = match (&self.kind, value) {
            (_, Value::Null) => self.optional,
            (ParamKind::Bool, value) => value.is_boolean(),
            (ParamKind::Integer { min, max }, value) => is_integer_in(value, *min, *max),
            (ParamKind::Integers { min, max }, Value::Array(values)) => {
                values.iter().all(|value| is_integer_in(value, *min, *max))
            }
            (ParamKind::Number { min, max }, Value::Number(number)) => {
                number.as_f64().is_some_and(|x| {
                    min.is_none_or(|(b, excluded)| if excluded { x > b } else { x >= b })
                        && max.is_none_or(|(b, excluded)| if excluded { x < b } else { x <= b })
                })
            }
            (ParamKind::Numbers { min }, Value::Array(numbers)) => numbers
                .iter()
                .all(|number| number.as_f64().is_some_and(|x| min.is_none_or(|min| x >= min))),
            (ParamKind::Choice(choices), Value::String(text)) => {
                choices.iter().any(|(word, _)| word == text)
            }
            (ParamKind::Text, value) => value.is_string(),
            (ParamKind::Texts, Value::Array(words)) => words.iter().all(Value::is_string),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        // A float that JSON cannot hold arrives here as null.
        let shown = match value {
            Value::Null => "not a finite number".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Err(Error::parameter(&self.name, shown, self.rule()))
    }

    /// Reads a value from text, as a command line gives it, and checks it.
    pub fn parse(&self, text: &str) -> Result<Value> {
        let wrong = || Error::parameter(&self.name, text, self.rule());
        let value = match self.kind {
            ParamKind::Bool => Value::Bool(text.parse().map_err(|_| wrong())?),
            ParamKind::Integer { .. } => parse_integer(text).ok_or_else(wrong)?,
            ParamKind::Integers { .. } => {
                let integer = |piece: &str| parse_integer(piece.trim());
                text.split(',').map(integer).collect::<Option<Vec<_>>>().ok_or_else(wrong)?.into()
            }
            ParamKind::Number { .. } => {
                let number: f64 = text.parse().map_err(|_| wrong())?;
                serde_json::Number::from_f64(number).map(Value::Number).ok_or_else(wrong)?
            }
            ParamKind::Numbers { .. } => {
                let number = |piece: &str| {
                    let number: f64 = piece.trim().parse().ok()?;
                    serde_json::Number::from_f64(number).map(Value::Number)
                };
                text.split(',').map(number).collect::<Option<Vec<_>>>().ok_or_else(wrong)?.into()
            }
            ParamKind::Choice(_) | ParamKind::Text => Value::String(text.to_owned()),
            ParamKind::Texts => text.split(',').map(Value::from).collect(),
        };
        self.check(&value)?;
        Ok(value)
    }
}

/// The parameters of `P`, in the order of their definition.
pub fn specs<P: Params>() -> Vec<ParamSpec> {
    known::<P>().to_vec()
}

/// The same, read from the schema once for each type: schemas were a large part of a small fit.
fn known<P: Params>() -> &'static [ParamSpec] {
    static KNOWN: Mutex<BTreeMap<TypeId, &'static [ParamSpec]>> = Mutex::new(BTreeMap::new());
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&TypeId::of::<P>()).copied() {
        return found;
    }
    // Read without the lock: a default may ask for the parameters of another type.
    let found = read::<P>();
    lock().entry(TypeId::of::<P>()).or_insert_with(|| Box::leak(found.into_boxed_slice()))
}

/// The parameters of `P`, from its schema.
fn read<P: Params>() -> Vec<ParamSpec> {
    let schema = schemars::schema_for!(P).to_value();
    let defaults = record(&P::default());
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    properties
        .iter()
        .map(|(name, property)| {
            let (kind, optional) = kind_of(property, &schema);
            ParamSpec {
                name: name.clone(),
                doc: description(property),
                kind,
                default: defaults.get(name).cloned().unwrap_or(Value::Null),
                optional,
            }
        })
        .collect()
}

/// The doc comment of `P` itself: first paragraph and the rest.
pub fn docs<P: Params>() -> (String, String) {
    let text = description(&schemars::schema_for!(P).to_value());
    match text.split_once("\n\n") {
        Some((first, rest)) => (first.replace('\n', " "), rest.to_owned()),
        None => (text.replace('\n', " "), String::new()),
    }
}

fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Follows `$ref`, `anyOf [T, null]` and `oneOf [const…]` as schemars writes them.
fn kind_of(property: &Value, root: &Value) -> (ParamKind, bool) {
    if let Some(target) = property.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null);
        return kind_of(target, root);
    }
    if let Some(either) = property.get("anyOf").and_then(Value::as_array) {
        let inner = either.iter().find(|s| s.get("type") != Some(&Value::from("null")));
        return (kind_of(inner.unwrap_or(&Value::Null), root).0, true);
    }
    if let Some(choices) = property.get("oneOf").and_then(Value::as_array) {
        let choices = choices
            .iter()
            .filter_map(|c| Some((c.get("const")?.as_str()?.to_owned(), description(c))))
            .collect();
        return (ParamKind::Choice(choices), false);
    }
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        let words = words.iter().filter_map(|w| Some((w.as_str()?.to_owned(), String::new())));
        return (ParamKind::Choice(words.collect()), false);
    }
    let (name, optional) = match property.get("type") {
        Some(Value::String(name)) => (name.as_str(), false),
        Some(Value::Array(names)) => {
            let name = names.iter().filter_map(Value::as_str).find(|n| *n != "null");
            (name.unwrap_or("string"), true)
        }
        _ => ("string", false),
    };
    let bound = |key: &str| property.get(key).and_then(Value::as_f64);
    let kind = match name {
        "boolean" => ParamKind::Bool,
        "integer" => {
            let (min, max) = integer_bounds(property);
            ParamKind::Integer { min, max }
        }
        "number" => ParamKind::Number {
            min: bound("exclusiveMinimum")
                .map(|b| (b, true))
                .or(bound("minimum").map(|b| (b, false))),
            max: bound("exclusiveMaximum")
                .map(|b| (b, true))
                .or(bound("maximum").map(|b| (b, false))),
        },
        "array" if property.pointer("/items/type") == Some(&Value::from("string")) => {
            ParamKind::Texts
        }
        "array" => {
            let items = property.get("items").unwrap_or(&Value::Null);
            if items.get("type") == Some(&Value::from("integer")) {
                let (min, max) = integer_bounds(items);
                ParamKind::Integers { min, max }
            } else {
                ParamKind::Numbers { min: items.get("minimum").and_then(Value::as_f64) }
            }
        }
        _ => ParamKind::Text,
    };
    (kind, optional)
}

/// The smallest and the largest integer that a schema allows.
fn integer_bounds(schema: &Value) -> (i128, i128) {
    let bound = |key: &str| {
        let number = schema.get(key)?.as_number()?;
        number.as_i128().or_else(|| number.as_f64().map(|x| x as i128))
    };
    (
        bound("minimum").unwrap_or(i128::from(i64::MIN)),
        bound("maximum").unwrap_or(i128::from(u64::MAX)),
    )
}

/// A closed range of integers in words: `from 1 to 4096`.
fn integer_range(min: i128, max: i128) -> String {
    if max >= i128::from(u64::MAX) {
        format!("of at least {min}")
    } else {
        format!("from {min} to {max}")
    }
}

fn is_integer_in(value: &Value, min: i128, max: i128) -> bool {
    let Value::Number(number) = value else { return false };
    number
        .as_i128()
        .or_else(|| number.as_f64().filter(|x| x.fract() == 0.0).map(|x| x as i128))
        .is_some_and(|x| min <= x && x <= max)
}

fn parse_integer(text: &str) -> Option<Value> {
    let positive = text.parse::<u64>().ok().map(Value::from);
    positive.or_else(|| text.parse::<i64>().ok().map(Value::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::{Fit, Fitted, Job, Model, Traits};
    use crate::iterate::{self, LoopOptions};
    use gradus_file::{Reader, Writer};
    use serde::Deserialize;

    /// How the penalty grows.
    #[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Scaling {
        /// A number of values.
        Count,
        /// Not at all.
        None,
    }

    /// A thing.
    ///
    /// The long story.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Thing {
        /// Rank.
        #[schemars(range(min = 1, max = 64))]
        rank: usize,
        /// Penalty.
        #[schemars(range(min = 0.0))]
        penalty: f64,
        /// Share.
        #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
        share: Option<f32>,
        /// Scale.
        scaling: Scaling,
        /// Biases.
        biases: bool,
        /// Seed.
        seed: u64,
        /// Penalties to try.
        #[schemars(inner(range(min = 0.0)))]
        penalties: Option<Vec<f64>>,
        /// Sizes of the hidden layers.
        #[schemars(inner(range(min = 1, max = 4096)))]
        hidden: Vec<usize>,
        /// Sizes without a bound.
        sizes: Option<Vec<u32>>,
    }
    impl Default for Thing {
        fn default() -> Self {
            Self {
                rank: 8,
                penalty: 0.1,
                share: None,
                scaling: Scaling::Count,
                biases: true,
                seed: 0,
                penalties: None,
                hidden: vec![128, 64],
                sizes: None,
            }
        }
    }
    impl Params for Thing {}

    #[test]
    fn the_struct_is_the_one_definition() {
        let specs = specs::<Thing>();
        let names: Vec<_> = specs.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "rank",
                "penalty",
                "share",
                "scaling",
                "biases",
                "seed",
                "penalties",
                "hidden",
                "sizes"
            ]
        );
        assert_eq!(specs[7].kind, ParamKind::Integers { min: 1, max: 4096 });
        assert_eq!(specs[7].default, serde_json::json!([128, 64]));
        let ParamKind::Integers { min: 0, .. } = specs[8].kind else { panic!("{:?}", specs[8]) };
        assert!(specs[8].optional && !specs[7].optional);
        assert_eq!(specs[6].kind, ParamKind::Numbers { min: Some(0.0) });
        assert!(specs[6].optional);
        assert_eq!(specs[0].kind, ParamKind::Integer { min: 1, max: 64 });
        assert_eq!(specs[0].default, Value::from(8));
        assert_eq!(specs[1].kind, ParamKind::Number { min: Some((0.0, false)), max: None });
        assert!(specs[2].optional);
        let ParamKind::Choice(choices) = &specs[3].kind else { panic!("{:?}", specs[3]) };
        assert_eq!(choices[0], ("count".to_owned(), "A number of values.".to_owned()));
        assert_eq!(docs::<Thing>(), ("A thing.".to_owned(), "The long story.".to_owned()));
        assert_eq!(Thing::from_record(&record(&Thing::default())).unwrap(), Thing::default());
        Thing::default().check().unwrap();
    }

    #[test]
    fn every_broken_rule_names_argument_value_and_rule() {
        let say = |change: fn(&mut Thing)| {
            let mut thing = Thing::default();
            change(&mut thing);
            thing.check().unwrap_err().to_string()
        };
        assert_eq!(say(|t| t.rank = 65), "parameter `rank` = 65: must be an integer from 1 to 64");
        assert_eq!(
            say(|t| t.penalty = -1.0),
            "parameter `penalty` = -1.0: must be a finite number at least 0"
        );
        assert_eq!(
            say(|t| t.penalty = f64::NAN),
            "parameter `penalty` = not a finite number: must be a finite number at least 0"
        );
        assert_eq!(
            say(|t| t.share = Some(1.0)),
            "parameter `share` = 1.0: must be a number greater than 0 and less than 1, or left out"
        );
        assert_eq!(
            say(|t| t.penalties = Some(vec![1.0, -1.0])),
            "parameter `penalties` = [1.0,-1.0]: must be a list of finite numbers at least 0, or left out"
        );
        assert!(say(|t| t.penalties = Some(vec![f64::INFINITY])).contains("finite numbers"));
        assert_eq!(
            say(|t| t.hidden = vec![64, 0]),
            "parameter `hidden` = [64,0]: must be a list of integers from 1 to 4096"
        );
    }

    #[test]
    fn text_becomes_checked_values() {
        let specs = specs::<Thing>();
        assert_eq!(specs[0].parse("12").unwrap(), Value::from(12));
        assert_eq!(specs[5].parse("18446744073709551615").unwrap(), Value::from(u64::MAX));
        for (index, text) in [
            (0, "0"),
            (0, "1.5"),
            (0, "x"),
            (1, "nan"),
            (1, "inf"),
            (1, "-1"),
            (3, "both"),
            (4, "maybe"),
            (5, "-1"),
            (6, "1,x"),
            (6, "1,inf"),
            (6, "-1"),
            (6, ""),
            (7, "128,0"),
            (7, "128,4097"),
            (7, "128,"),
            (7, "1.5"),
            (7, ""),
            (8, "-1"),
        ] {
            let error = specs[index].parse(text).unwrap_err().to_string();
            assert!(error.contains(&specs[index].name) && error.contains("must be"), "{error}");
        }
        assert_eq!(specs[6].parse("1, 0.5").unwrap(), serde_json::json!([1.0, 0.5]));
        assert_eq!(specs[7].parse("128, 64").unwrap(), serde_json::json!([128, 64]));
        assert_eq!(specs[7].parse("8").unwrap(), serde_json::json!([8]));
        specs[7].check(&serde_json::json!([1.5])).unwrap_err();
        let mut layers = Map::new();
        layers.insert("hidden".into(), serde_json::json!([32, 16]));
        assert_eq!(Thing::from_record(&layers).unwrap().hidden, [32, 16]);
        let mut unknown = Map::new();
        unknown.insert("ranc".into(), Value::from(3));
        assert!(Thing::from_record(&unknown).unwrap_err().to_string().contains("`ranc`"));
    }

    #[test]
    fn a_single_precision_number_is_recorded_as_it_was_written() {
        #[derive(Serialize)]
        struct One {
            x: f32,
        }
        for x in [0.1f32, 0.09, 1e-7, 3.4e38] {
            let recorded = &record(&One { x })["x"];
            assert_eq!(recorded.to_string().parse::<f32>(), Ok(x));
            assert!(recorded.to_string().len() < 8, "{recorded}");
        }
        assert!(record(&One { x: f32::NAN })["x"].is_null());
    }

    /// Weights between layers whose sizes are parameters.
    struct Layers(Vec<Vec<f64>>);
    impl Model for Layers {
        fn write<'a>(&'a self, file: &mut Writer<'a>) {
            for (layer, weights) in self.0.iter().enumerate() {
                file.tensor(&format!("layer.{layer}"), &[weights.len()], weights);
            }
        }
        fn read(file: &mut Reader) -> Result<Self> {
            let params = Thing::from_record(&file.get("params")?)?;
            let sizes = params.hidden.iter().enumerate();
            let mut layer =
                |(layer, &n): (usize, &usize)| file.tensor(&format!("layer.{layer}"), &[n]);
            Ok(Self(sizes.map(&mut layer).collect::<Result<_>>()?))
        }
        fn summary(&self) -> Vec<(&'static str, String)> {
            Vec::new()
        }
    }
    impl Fit for Thing {
        const NAME: &'static str = "thing";
        const CLASS: &'static str = "Thing";
        const FAMILY: &'static str = "test";
        type Data = gradus_data::Ratings;
        type Model = Layers;
        const TRAITS: Traits = Traits::RECOMMENDER;
        fn fit_job(&self, _: &Self::Data, job: &Job<'_, Self::Data>) -> Result<Fitted<Self>> {
            let options = LoopOptions { model: Self::NAME, ..LoopOptions::default() };
            let layers = self.hidden.iter().map(|&n| vec![n as f64; n]).collect();
            let (model, report) =
                iterate::direct(&options, job, || Ok((Layers(layers), 0.0, None)))?;
            Ok(Fitted { params: self.clone(), model, report })
        }
    }

    #[test]
    fn a_model_finds_its_parameters_in_its_file() {
        let thing = Thing { hidden: vec![3, 2], ..Thing::default() };
        let one = (gradus_data::Id::Int(1), gradus_data::Id::Int(1), 1.0);
        let fitted = thing.fit(&gradus_data::Ratings::from_triplets([one]).unwrap()).unwrap();
        let bytes = fitted.to_bytes().unwrap();
        let read = Fitted::<Thing>::read(&mut Reader::from_bytes(bytes).unwrap()).unwrap();
        assert_eq!(read.model.0, [vec![3.0; 3], vec![2.0; 2]]);
        assert_eq!(read.params, thing);
    }
}
