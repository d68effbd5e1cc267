//! A JSON object or array on each line.

use super::RatingRows;
use super::blocks::{MAX_RECORD, Record, record};
use super::detect::{ByRole, Layout, Role};
use super::number::{id, number, shown, weight};
use super::options::OnError;
use super::pipeline::{Bad, Parsed, Parser, too_long};
use super::time::time;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

pub(super) struct JsonParser {
    by_name: bool,
    /// Names by role.
    names: ByRole<Option<String>>,
    /// Positions by role.
    positions: ByRole<Option<usize>>,
}

impl JsonParser {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            by_name: layout.by_name,
            names: layout.names(),
            positions: layout.chosen.clone().map(|chosen| chosen.map(|chosen| chosen.position)),
        }
    }

    fn row(&self, line: &[u8], table: &mut RatingRows) -> Result<(), (Option<Role>, String)> {
        let line = std::str::from_utf8(line)
            .map_err(|_| (None, format!("`{}` is not UTF-8", shown(line))))?;
        let mut input = serde_json::Deserializer::from_str(line);
        let found = Row(self)
            .deserialize(&mut input)
            .and_then(|found| input.end().map(|()| found))
            .map_err(|error| (None, explain(&error, line)))?;
        let get = |role: Role| match (found[role as usize], &self.names[role as usize]) {
            (Some(value), _) => Ok(Some(value.get())),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err((Some(role), format!("missing in `{}`", shown(line.as_bytes()))))
            }
        };
        let blame = |role| move |reason| (Some(role), reason);
        let (Some(user), Some(item)) = (get(Role::User)?, get(Role::Item)?) else {
            return Err((None, "no user or item column".to_owned()));
        };
        let (value, weighed) = (get(Role::Rating)?, get(Role::Weight)?);
        let user = id_text(user).map_err(blame(Role::User))?;
        let user = id(user.as_bytes(), true).map_err(blame(Role::User))?;
        let item = id_text(item).map_err(blame(Role::Item))?;
        let item = id(item.as_bytes(), true).map_err(blame(Role::Item))?;
        let read = |value: Option<&str>, role, read: fn(&[u8]) -> Result<f32, String>| {
            value
                .map(|value| number_text(value).and_then(|text| read(text.as_bytes())))
                .transpose()
                .map_err(blame(role))
        };
        let value = read(value, Role::Rating, number)?;
        let weight = read(weighed, Role::Weight, |text| number(text).and_then(weight))?;
        let time = get(Role::Time)?
            .map(|value| number_text(value).and_then(|text| time(text.as_bytes())))
            .transpose()
            .map_err(blame(Role::Time))?;
        table.users.push(user);
        table.items.push(item);
        table.values.extend(value);
        table.weights.extend(weight);
        table.times.extend(time);
        Ok(())
    }
}

impl Parser<RatingRows> for JsonParser {
    fn parse(&self, text: &[u8], room: RatingRows, on_error: OnError) -> Parsed<RatingRows> {
        let mut parsed = Parsed { rows: room, ..Parsed::default() };
        let mut at = 0;
        while at < text.len() {
            let (next, outcome) = match record(text, at, None, true, MAX_RECORD) {
                Record::Whole { end, next } => match text[at..end].trim_ascii() {
                    [] => (next, Ok(())),
                    line => (next, self.row(line, &mut parsed.rows)),
                },
                Record::TooLong { next } => (next, Err((None, too_long(0, MAX_RECORD).reason))),
                Record::Cut => unreachable!("nothing follows the text"),
            };
            if let Err((role, reason)) = outcome {
                let column = role.and_then(|role| self.names[role as usize].clone());
                if !parsed.note(on_error, Bad { line: parsed.lines, column, reason }) {
                    break;
                }
            }
            parsed.lines += u64::from(text[next - 1] == b'\n');
            at = next;
        }
        parsed
    }
}

/// The serde error, without its own line number.
fn explain(error: &serde_json::Error, line: &str) -> String {
    let full = error.to_string();
    let reason = full.split(" at line ").next().unwrap_or(&full);
    format!("`{}` is not a JSON row: {reason}", shown(line.as_bytes()))
}

/// The text of a JSON string, or the JSON as it stands.
fn plain(json: &str) -> Result<Cow<'_, str>, String> {
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        None => Ok(Cow::Borrowed(json)),
        Some(inside) if !inside.contains('\\') => Ok(Cow::Borrowed(inside)),
        Some(_) => serde_json::from_str(json)
            .map(Cow::Owned)
            .map_err(|_| format!("`{}` is not text", shown(json.as_bytes()))),
    }
}

fn id_text(json: &str) -> Result<Cow<'_, str>, String> {
    let is_integer = |json: &str| {
        let digits = json.strip_prefix('-').unwrap_or(json);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if json.starts_with('"') || is_integer(json) {
        plain(json)
    } else {
        Err(format!("`{}` is neither an integer nor text", shown(json.as_bytes())))
    }
}

fn number_text(json: &str) -> Result<Cow<'_, str>, String> {
    match json.as_bytes().first() {
        Some(b'"' | b'-' | b'0'..=b'9') => plain(json),
        _ => Err(format!("`{}` is not a number", shown(json.as_bytes()))),
    }
}

/// Finds the wanted values of a row, unparsed.
#[derive(Clone, Copy)]
struct Row<'a>(&'a JsonParser);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ByRole<Option<&'de RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ByRole<Option<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.by_name {
            "an object, as on the first line"
        } else {
            "an array, as on the first line"
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if !self.0.by_name {
            return Err(A::Error::custom("expected an array, as on the first line"));
        }
        let mut found = ByRole::default();
        while let Some(role) = map.next_key_seed(Key(&self.0.names))? {
            match role {
                Some(role) => found[role] = Some(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<Self::Value, A::Error> {
        if self.0.by_name {
            return Err(A::Error::custom("expected an object, as on the first line"));
        }
        let mut found = ByRole::default();
        let mut position = 0;
        loop {
            match self.0.positions.iter().position(|&wanted| wanted == Some(position)) {
                Some(role) => match row.next_element()? {
                    Some(value) => found[role] = Some(value),
                    None => break,
                },
                None => {
                    if row.next_element::<IgnoredAny>()?.is_none() {
                        break;
                    }
                }
            }
            position += 1;
        }
        Ok(found)
    }
}

/// The wanted column that a key names.
struct Key<'a>(&'a ByRole<Option<String>>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| name.as_deref() == Some(key)))
    }
}
