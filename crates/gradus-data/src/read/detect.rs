//! Detection of format, delimiter, header and the roles of columns.

use super::blocks::{Dialect, MAX_RECORD, Record, record};
use super::csv::Fields;
use super::delimiter::Delimiter;
use super::number::shown;
use super::options::{ColumnRef, Columns, Format, ReadOptions};
use super::source::Input;
use super::time::looks_like_time;
use gradus_base::{Error, Result};

/// The delimiter of some MovieLens files.
const DOUBLE_COLON: Delimiter = Delimiter::twice(b':');

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    User,
    Item,
    Rating,
    Weight,
    Time,
}

/// One of something for each [`Role`].
pub(super) type ByRole<T> = [T; 5];

impl Role {
    pub(super) const ALL: ByRole<Self> =
        [Self::User, Self::Item, Self::Rating, Self::Weight, Self::Time];

    pub(super) fn name(self) -> &'static str {
        ["user", "item", "rating", "weight", "time"][self as usize]
    }

    /// Names such a column goes by, best first; compared without case and without `_`, `-` and
    /// spaces.
    fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::User => &[
                "user",
                "userid",
                "uid",
                "users",
                "customer",
                "customerid",
                "reviewer",
                "reviewerid",
                "member",
                "memberid",
                "visitor",
                "visitorid",
                "account",
                "accountid",
                "client",
                "clientid",
                "person",
                "personid",
                "profileid",
                "username",
            ],
            Self::Item => &[
                "item",
                "itemid",
                "iid",
                "items",
                "movie",
                "movieid",
                "film",
                "filmid",
                "product",
                "productid",
                "article",
                "articleid",
                "artist",
                "artistid",
                "song",
                "songid",
                "track",
                "trackid",
                "book",
                "bookid",
                "isbn",
                "business",
                "businessid",
                "asin",
                "parentasin",
                "anime",
                "animeid",
                "game",
                "gameid",
                "joke",
                "jokeid",
                "show",
                "showid",
                "sku",
            ],
            Self::Rating => &[
                "rating",
                "ratings",
                "score",
                "value",
                "stars",
                "star",
                "starrating",
                "bookrating",
                "userrating",
                "overall",
                "grade",
                "count",
                "plays",
                "playcount",
                "listens",
                "clicks",
                "views",
                "quantity",
            ],
            Self::Weight => &["weight", "weights", "sampleweight", "confidence"],
            Self::Time => &[
                "timestamp",
                "time",
                "datetime",
                "date",
                "ts",
                "unixtime",
                "unixtimestamp",
                "unixreviewtime",
                "eventtime",
                "createdat",
                "ratedat",
                "timeunix",
                "epoch",
            ],
        }
    }
}

/// The required columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// User, item and rating.
    Ratings,
    /// User and item; the rating if there is one.
    PairsAndValues,
    /// User and item; no rating is read.
    Pairs,
}

/// A column that will be read.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// The position of the column, from 0.
    pub position: usize,
    /// The name, or the position from 1.
    pub name: String,
}

/// How the rows of a file are laid out.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub format: Format,
    pub dialect: Dialect,
    /// Cells of a row.
    pub n_columns: usize,
    /// Lines up to and with the header.
    pub lines_before: u64,
    /// Whether rows are looked up by name (JSON objects).
    pub by_name: bool,
    /// The columns, by [`Role`].
    pub chosen: ByRole<Option<Chosen>>,
}

impl Layout {
    /// Place and role of each column.
    pub(super) fn positions(&self) -> impl Iterator<Item = (usize, Role)> {
        let chosen = Role::ALL.into_iter().zip(&self.chosen);
        chosen.filter_map(|(role, chosen)| chosen.as_ref().map(|chosen| (chosen.position, role)))
    }

    /// The names of the columns, by role.
    pub(super) fn names(&self) -> ByRole<Option<String>> {
        self.chosen.clone().map(|chosen| chosen.map(|chosen| chosen.name))
    }
}

impl From<&Layout> for Columns {
    fn from(layout: &Layout) -> Self {
        let [user, item, rating, weight, time] = layout.names();
        let (user, item) = (user.unwrap_or_default(), item.unwrap_or_default());
        Self { user, item, rating, weight, time }
    }
}

/// The format of the input: as given, or by its first bytes, or by its name.
pub(crate) fn format(input: &Input<'_>, given: Option<Format>) -> Result<Format> {
    if input.sample.is_empty() {
        return Err(Error::format(&input.name, "is empty"));
    }
    if let Some(format) = given {
        return Ok(format);
    }
    let foreign = match input.sample.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => return Ok(Format::Parquet),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive (or a spreadsheet); unpack it first"),
        [b'B', b'Z', b'h', ..] => Some("compressed with bzip2; unpack it, or use gzip or zstd"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            Some("compressed with xz; unpack it, or use gzip or zstd")
        }
        [0x89, b'H', b'D', b'F', ..] => Some("an HDF5 file; export it as CSV or Parquet"),
        _ => None,
    };
    if let Some(what) = foreign {
        return Err(Error::format(&input.name, format!("is {what}")));
    }
    let name = input.name.to_ascii_lowercase();
    let name =
        [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let ending = name.rsplit(['/', '\\']).next().and_then(|name| name.rsplit_once('.'));
    match ending.map(|(_, ending)| ending) {
        Some("csv") => return Ok(Format::Csv),
        Some("tsv" | "tab") => return Ok(Format::Tsv),
        Some("jsonl" | "ndjson") => return Ok(Format::JsonLines),
        Some("parquet" | "pq") => {
            let reason = "is named as a Parquet file, but does not start as one (`PAR1`)";
            return Err(Error::format(&input.name, reason));
        }
        _ => {}
    }
    match input.sample.trim_ascii_start().first() {
        Some(b'{' | b'[') => Ok(Format::JsonLines),
        _ => Ok(Format::Csv),
    }
}

/// The layout of delimited text. Takes the header off the input.
pub(super) fn csv(
    input: &mut Input<'_>,
    options: &ReadOptions,
    need: Need,
    format: Format,
) -> Result<Layout> {
    let delimiter = match (options.delimiter, format) {
        (Some(given), _)
            if given == Delimiter::single(b':') && sniff(input, format) == DOUBLE_COLON =>
        {
            DOUBLE_COLON
        }
        (Some(given), _) => given,
        (None, Format::Tsv) if options.format.is_some() => Delimiter::single(b'\t'),
        _ => sniff(input, format),
    };
    let format = if delimiter.byte == b'\t' { Format::Tsv } else { Format::Csv };
    let mut rows = Sample::new(input, delimiter);
    let Some((first, first_end)) = rows.next() else {
        let reason = if input.is_whole {
            "holds nothing but blank lines".to_owned()
        } else {
            format!(
                "the first line is longer than {} KiB: is this a text file?",
                input.sample.len() >> 10
            )
        };
        return Err(Error::format(&input.name, reason));
    };
    let named = options.columns().iter().any(|column| matches!(column, Some(ColumnRef::Name(_))));
    let has_header = match options.header {
        Some(header) => header,
        None => named || looks_like_header(&first, rows.next().map(|(second, _)| second)),
    };
    let names = has_header.then(|| first.clone());
    let guess = Guess {
        third_is_number: first.get(2).is_some_and(|field| is_number(field)),
        fourth_is_time: first.get(3).is_some_and(|field| looks_like_time(field.as_bytes())),
    };
    let chosen = choose(&input.name, options, need, names.as_deref(), first.len(), guess)?;
    let mut lines_before = 0;
    if has_header {
        let header: Vec<u8> = input.sample.drain(..first_end).collect();
        lines_before = memchr::memchr_iter(b'\n', &header).count() as u64;
    }
    let quotes = options.quotes.unwrap_or(true);
    let dialect = Dialect { quotes, ..Dialect::of(delimiter, &input.sample) };
    let n_columns = first.len();
    Ok(Layout { format, dialect, n_columns, lines_before, by_name: false, chosen })
}

/// The layout of JSON Lines, by the first line that can be read.
pub(super) fn json(input: &Input<'_>, options: &ReadOptions, need: Need) -> Result<Layout> {
    let lines =
        input.sample.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let first = lines.take(20).find_map(|line| serde_json::from_slice(line).ok());
    let (names, n, guess) = match &first {
        Some(serde_json::Value::Object(map)) => {
            (Some(map.keys().cloned().collect::<Vec<_>>()), map.len(), Guess::default())
        }
        Some(serde_json::Value::Array(row)) => {
            let is_time = |value: &serde_json::Value| match value {
                serde_json::Value::String(text) => looks_like_time(text.as_bytes()),
                other => other.is_i64(),
            };
            let guess = Guess {
                third_is_number: row.get(2).is_some_and(serde_json::Value::is_number),
                fourth_is_time: row.get(3).is_some_and(is_time),
            };
            (None, row.len(), guess)
        }
        _ => {
            let start = shown(&input.sample[..input.sample.len().min(60)]).into_owned();
            let reason = format!("is not JSON Lines (an object or array on each line): `{start}`");
            return Err(Error::format(&input.name, reason));
        }
    };
    let by_name = names.is_some();
    let asked = options.columns();
    if by_name
        && let Some(column @ ColumnRef::Position(_)) =
            asked.into_iter().flatten().find(|column| matches!(column, ColumnRef::Position(_)))
    {
        let reason = format!("column {column}: the rows are objects; give the name of the column");
        return Err(Error::format(&input.name, reason));
    }
    let chosen = choose(&input.name, options, need, names.as_deref(), n, guess)?;
    let dialect = Dialect::new(Delimiter::single(b','));
    Ok(Layout {
        format: Format::JsonLines,
        dialect,
        n_columns: n,
        lines_before: 0,
        by_name,
        chosen,
    })
}

/// Whether the rows are lists of items behind a user: integers, not equally many in each row.
pub(super) fn is_adjacency(input: &Input<'_>, options: &ReadOptions) -> bool {
    let given = options.columns().iter().any(|column| column.is_some());
    if given || options.header == Some(true) {
        return false;
    }
    let delimiter = options.delimiter.unwrap_or_else(|| sniff(input, Format::Csv));
    // Blanks and tabs may be mixed, as the parser takes them.
    let is_blank = matches!(delimiter.byte, b' ' | b'\t');
    let split = |row: Vec<String>| match is_blank {
        true => row.iter().flat_map(|cell| cell.split_whitespace()).map(str::to_owned).collect(),
        false => row,
    };
    let rows: Vec<Vec<String>> =
        Sample::new(input, delimiter).take(100).map(|(row, _)| split(row)).collect();
    let is_id = |cell: &String| cell.is_empty() || cell.parse::<i64>().is_ok();
    if rows.len() < 2 || !rows.iter().flatten().all(is_id) {
        return false;
    }
    let count = |row: &Vec<String>| row.iter().filter(|cell| !cell.is_empty()).count();
    let mut lengths: Vec<usize> = rows.iter().map(count).collect();
    lengths.sort_unstable();
    let usual = lengths.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0);
    // A few odd rows are faults in a table.
    5 * usual < 4 * lengths.len()
}

/// The layout of an adjacency list.
pub(super) fn adjacency(input: &Input<'_>, options: &ReadOptions) -> Layout {
    let delimiter = options.delimiter.unwrap_or_else(|| sniff(input, Format::Csv));
    let chosen = |position: usize, name: &str| Some(Chosen { position, name: name.to_owned() });
    Layout {
        format: Format::Adjacency,
        dialect: Dialect::new(delimiter),
        n_columns: 0,
        lines_before: 0,
        by_name: false,
        chosen: [chosen(0, "1"), chosen(1, "2, 3, …"), None, None, None],
    }
}

/// A guess at the roles of columns without names, from the first row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guess {
    pub third_is_number: bool,
    pub fourth_is_time: bool,
}

/// Chooses the column of each role: as given, or by name, or by position.
pub(super) fn choose(
    file: &str,
    options: &ReadOptions,
    need: Need,
    names: Option<&[String]>,
    n_columns: usize,
    guess: Guess,
) -> Result<ByRole<Option<Chosen>>> {
    let mut given: ByRole<Option<usize>> = Default::default();
    for (role, column) in Role::ALL.into_iter().zip(options.columns()) {
        if let Some(column) = column {
            given[role as usize] = Some(look_up(file, role, column, names, n_columns)?);
        }
    }
    let is_free = |position: &usize| !given.contains(&Some(*position));
    let mut chosen: ByRole<Option<Chosen>> = Default::default();
    for role in Role::ALL {
        let found = match (given[role as usize], names) {
            // Nobody asked for the times, but a column given as theirs is no other.
            _ if role == Role::Time && !options.times => None,
            (Some(position), _) => Some(position),
            (None, _) if role == Role::Rating && need == Need::Pairs => None,
            (None, Some(names)) => by_alias(role, names).filter(is_free),
            (None, None) => {
                let there = match role {
                    Role::User | Role::Item => true,
                    Role::Rating => need == Need::Ratings || guess.third_is_number,
                    Role::Weight => false,
                    Role::Time => guess.fourth_is_time,
                };
                let at = if role == Role::Time { 3 } else { role as usize };
                Some(at).filter(|&at| there && at < n_columns).filter(is_free)
            }
        };
        if found.is_none()
            && (role <= Role::Item || (role == Role::Rating && need == Need::Ratings))
        {
            return Err(Error::format(file, missing(role, names, n_columns)));
        }
        chosen[role as usize] = found.map(|position| Chosen {
            position,
            name: match names {
                Some(names) if !names[position].is_empty() => names[position].clone(),
                _ => (position + 1).to_string(),
            },
        });
    }
    for (k, second) in Role::ALL.into_iter().enumerate() {
        for first in &Role::ALL[..k] {
            if let (Some(a), Some(b)) = (&chosen[*first as usize], &chosen[k])
                && a.position == b.position
            {
                let (first, second) = (first.name(), second.name());
                let reason = format!(
                    "{first} and {second} are both column `{}`: say which they are with \
                     option `{first}` and option `{second}`",
                    a.name
                );
                return Err(Error::format(file, reason));
            }
        }
    }
    Ok(chosen)
}

fn look_up(
    file: &str,
    role: Role,
    column: &ColumnRef,
    names: Option<&[String]>,
    n_columns: usize,
) -> Result<usize> {
    match (column, names) {
        (ColumnRef::Position(position), _) if (1..=n_columns).contains(position) => {
            Ok(position - 1)
        }
        (ColumnRef::Position(position), _) => Err(Error::format(
            file,
            format!("{} column {position}: there are {n_columns} columns", role.name()),
        )),
        (ColumnRef::Name(name), Some(names)) => names
            .iter()
            .position(|known| known == name)
            .or_else(|| names.iter().position(|known| known.eq_ignore_ascii_case(name)))
            .ok_or_else(|| {
                let reason =
                    format!("there is no column `{name}`; the columns are {}", listed(names));
                Error::format(file, reason)
            }),
        (ColumnRef::Name(name), None) => Err(Error::format(
            file,
            format!("{} column `{name}`: there is no header; give its position", role.name()),
        )),
    }
}

/// The positions of the columns of users, items, ratings, weights and times, by the names that
/// [`read_ratings`](super::read_ratings) knows for them (`userId`, `movie_id`, `stars`, …).
///
/// ```
/// use gradus_data::rating_columns;
/// let names = ["title", "user_id", "stars", "item"].map(String::from);
/// assert_eq!(rating_columns(&names), [Some(1), Some(3), Some(2), None, None]);
/// ```
pub fn rating_columns(names: &[String]) -> [Option<usize>; 5] {
    Role::ALL.map(|role| by_alias(role, names))
}

fn by_alias(role: Role, names: &[String]) -> Option<usize> {
    let plain: Vec<String> = names
        .iter()
        .map(|name| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase())
        .collect();
    role.aliases().iter().find_map(|alias| plain.iter().position(|name| name == alias))
}

fn missing(role: Role, names: Option<&[String]>, n_columns: usize) -> String {
    let among = match names {
        Some(names) => format!("among {}", listed(names)),
        None if n_columns == 1 => "in rows of one column (is option `delimiter` right?)".to_owned(),
        None => format!("in rows of {n_columns} columns"),
    };
    let name = role.name();
    let other = match role {
        Role::Rating => ", or take every row as 1 with option `implicit`",
        _ => "",
    };
    format!("there is no {name} column {among}: name it with option `{name}`{other}")
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let some = names.iter().take(MOST).map(|name| format!("`{}`", shown(name.as_bytes())));
    let mut list = some.collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        list.push_str(", …");
    }
    list
}

/// The delimiter that cuts the first lines into equally many columns.
fn sniff(input: &Input<'_>, format: Format) -> Delimiter {
    let [tab, comma, semicolon, bar, space] =
        [b'\t', b',', b';', b'|', b' '].map(Delimiter::single);
    let agreement = |delimiter: Delimiter| {
        let counts: Vec<usize> =
            Sample::new(input, delimiter).take(100).map(|(row, _)| row.len()).collect();
        let first = counts.first().copied().filter(|&n| n >= 2)?;
        let same = counts.iter().filter(|&&n| n == first).count();
        Some((same as f64 / counts.len() as f64, first))
    };
    if format == Format::Tsv && agreement(tab).is_some() {
        return tab;
    }
    let mut best: Option<(Delimiter, (f64, usize))> = None;
    for delimiter in [tab, comma, semicolon, bar, DOUBLE_COLON] {
        if let Some(score) = agreement(delimiter)
            && best.is_none_or(|(_, best)| score > best)
        {
            best = Some((delimiter, score));
        }
    }
    // Spaces are common inside text, so they count only where nothing else does.
    best.or_else(|| agreement(space).map(|score| (space, score))).map_or(comma, |(best, _)| best)
}

fn is_number(field: &str) -> bool {
    field.trim().parse::<f64>().is_ok()
}

/// A header holds no number, and either names we know or numbers below it.
fn looks_like_header(first: &[String], second: Option<Vec<String>>) -> bool {
    !first.iter().any(|field| is_number(field))
        && (Role::ALL.into_iter().any(|role| by_alias(role, first).is_some())
            || second.is_some_and(|second| second.iter().any(|field| is_number(field))))
}

/// The first rows of an input that are whole, and where each ends.
pub(crate) struct Sample<'a> {
    text: &'a [u8],
    at: usize,
    is_whole: bool,
    dialect: Dialect,
}

impl<'a> Sample<'a> {
    pub(crate) fn new(input: &'a Input<'_>, delimiter: Delimiter) -> Self {
        let dialect = Dialect::of(delimiter, &input.sample);
        Self { text: &input.sample, at: 0, is_whole: input.is_whole, dialect }
    }
}

impl Iterator for Sample<'_> {
    type Item = (Vec<String>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.text.len() {
            let record = record(self.text, self.at, Some(self.dialect), self.is_whole, MAX_RECORD);
            let Record::Whole { end, next } = record else { return None };
            let line = &self.text[self.at..end];
            self.at = next;
            if !line.trim_ascii().is_empty() {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                return Some((fields(line, self.dialect), next));
            }
        }
        None
    }
}

fn fields(line: &[u8], dialect: Dialect) -> Vec<String> {
    Fields { text: line, at: Some(0), dialect }
        .map(|field| match field {
            Ok(field) => {
                let text = String::from_utf8_lossy(&field.text).into_owned();
                if field.quoted { text } else { text.trim().to_owned() }
            }
            Err(_) => String::new(),
        })
        .collect()
}
