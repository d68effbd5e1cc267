//! The inputs of a model, and the encoding of table columns as numbers.

use super::{ImageShape, TableLayout, TextBag, TokenInput, Vectorizer};
use gradus_base::{Error, Result};
use gradus_file::{Reader, Writer};
use serde::{Deserialize, Serialize};

mod encode;

pub(crate) use encode::complete;
pub use encode::{EncodeOptions, Encoded, Fill};

/// The inputs of a model: a number of plain features, or the columns of a table.
///
/// A model keeps it, so that a table is turned into the same numbers ever after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// Features without names; their number.
    Plain(usize),
    /// Columns of a table.
    Columns(InputColumns),
    /// The pixels of images of this size.
    Images(ImageShape),
}

/// The columns of a table that a model takes, and how the file they came from was laid out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct InputColumns {
    /// The columns.
    pub columns: Vec<Input>,
    /// The layout of the file, if it is not what one expects of a CSV file: files of the same kind
    /// are read alike ever after.
    pub layout: Option<TableLayout>,
}

/// The columns as a file holds them.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Columns(Vec<Input>),
    WithLayout { columns: Vec<Input>, layout: TableLayout },
}

impl From<Stored> for InputColumns {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Columns(columns) => Self { columns, layout: None },
            Stored::WithLayout { columns, layout } => Self { columns, layout: Some(layout) },
        }
    }
}

impl From<InputColumns> for Stored {
    fn from(InputColumns { columns, layout }: InputColumns) -> Self {
        match layout {
            None => Self::Columns(columns),
            Some(layout) => Self::WithLayout { columns, layout },
        }
    }
}

impl std::ops::Deref for InputColumns {
    type Target = [Input];

    fn deref(&self) -> &[Input] {
        &self.columns
    }
}

impl FromIterator<Input> for InputColumns {
    fn from_iter<I: IntoIterator<Item = Input>>(columns: I) -> Self {
        Self { columns: columns.into_iter().collect(), layout: None }
    }
}

/// A column of a table, as a model takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The column's name.
    pub name: String,
    /// The encoding of the column.
    #[serde(flatten)]
    pub kind: InputKind,
}

/// How a column becomes numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InputKind {
    /// A numeric column.
    Number {
        /// The substitute for a missing value; `None` refuses one.
        fill: Option<f64>,
        /// Whether a second feature is 1 where the value is missing and 0 elsewhere.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        indicator: bool,
        /// Whether a missing value stays one (NaN), for models that take missing entries.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep: bool,
    },
    /// A categorical column: a feature for each word, 1 where the value is that word.
    Category {
        /// The words, ascending.
        levels: Vec<String>,
        /// Whether the first word has no feature of its own, being what all others are compared
        /// with.
        #[serde(default)]
        drop_first: bool,
        /// The substitute for a missing value; `None` refuses one, unless `missing` says otherwise.
        fill: Option<String>,
        /// How a missing value is encoded.
        #[serde(default, skip_serializing_if = "MissingWord::is_fill")]
        missing: MissingWord,
        /// The share of each word among the rows of training, that of missing values last if they
        /// are a level of their own. A word that training did not have takes these shares as its
        /// features: the mean over the rows of training, and so the prediction of a linear model is
        /// its mean over the words. Only the 1,000 most frequent words have a share, to keep sparse
        /// matrices sparse. Empty in files of version 0.1: all shares are then equal.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shares: Vec<f64>,
    },
    /// A column of text: features by its words. A missing value is an empty text.
    Text(Vectorizer),
    /// Text: a feature for each word and each bucket of hashed n-grams, how often it is there. Stored like [`Text`](Self::Text).
    Bag(TextBag),
    /// Text: its first tokens in their order, by their numbers.
    Tokens(TokenInput),
    /// A column of lists of words with [`LIST_SEPARATOR`] between them: a feature for each word, 1 where the list has
    /// it. Words that training did not have are left aside; a missing list, and one without any known word, takes the
    /// shares.
    List {
        /// The words, ascending.
        levels: Vec<String>,
        /// The share of the rows of training whose list has the word; 0 but for the 1,000 most
        /// frequent ones.
        shares: Vec<f64>,
    },
}

/// The separator of the words of a list in a cell.
pub const LIST_SEPARATOR: char = '|';

/// How a missing value of a column of words is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingWord {
    /// The missing value takes the encoding of the fill word; it is refused if there is none.
    #[default]
    Fill,
    /// The missing value is a level of its own, the last feature of the column.
    Level,
    /// The missing value takes the encoding of a word that training did not have.
    Unseen,
}

impl MissingWord {
    fn is_fill(&self) -> bool {
        *self == Self::Fill
    }
}

impl Input {
    /// A column of numbers that must not be missing.
    pub fn number(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: InputKind::Number { fill: None, indicator: false, keep: false },
        }
    }

    /// How many features the column becomes.
    pub fn width(&self) -> usize {
        match &self.kind {
            InputKind::Number { indicator, .. } => 1 + usize::from(*indicator),
            InputKind::Category { levels, drop_first, missing, .. } => {
                levels.len() - usize::from(*drop_first && !levels.is_empty())
                    + usize::from(*missing == MissingWord::Level)
            }
            InputKind::Text(vectorizer) => vectorizer.n_features(),
            InputKind::Bag(bag) => bag.n_features(),
            InputKind::Tokens(tokens) => tokens.length,
            InputKind::List { levels, .. } => levels.len(),
        }
    }
}

impl Inputs {
    /// Number of features.
    pub fn n_features(&self) -> usize {
        match self {
            Self::Plain(n) => *n,
            Self::Images(shape) => shape.len(),
            Self::Columns(columns) => columns.iter().map(Input::width).sum(),
        }
    }

    /// The name of every feature: `age`, `colour=red`, or `x1`, `x2`, … where there are none.
    pub fn feature_names(&self) -> Vec<String> {
        match self {
            Self::Plain(n) => (1..=*n).map(|at| format!("x{at}")).collect(),
            Self::Images(shape) => shape.names(),
            Self::Columns(columns) => {
                let mut names = Vec::with_capacity(self.n_features());
                for column in columns.iter() {
                    let missing = || format!("{} is missing", column.name);
                    match &column.kind {
                        InputKind::Number { indicator, .. } => {
                            names.push(column.name.clone());
                            names.extend(indicator.then(missing));
                        }
                        InputKind::Category { levels, drop_first, missing: kind, .. } => {
                            let levels = &levels[usize::from(*drop_first && !levels.is_empty())..];
                            names.extend(levels.iter().map(|l| format!("{}={l}", column.name)));
                            names.extend((*kind == MissingWord::Level).then(missing));
                        }
                        InputKind::Text(vectorizer) => {
                            let terms = vectorizer.feature_names();
                            names
                                .extend(terms.iter().map(|term| format!("{}={term}", column.name)));
                        }
                        InputKind::Bag(bag) => names.extend(bag.feature_names()),
                        InputKind::Tokens(tokens) => names.extend(tokens.feature_names()),
                        InputKind::List { levels, .. } => {
                            names.extend(levels.iter().map(|l| format!("{}={l}", column.name)));
                        }
                    }
                }
                names
            }
        }
    }

    /// Whether missing values of a column stay missing (NaN).
    pub fn keeps_missing(&self) -> bool {
        let keeps = |column: &Input| matches!(column.kind, InputKind::Number { keep: true, .. });
        matches!(self, Self::Columns(columns) if columns.iter().any(keeps))
    }

    /// The layout of the file that the columns came from, if a model should remember it.
    pub fn layout(&self) -> Option<&TableLayout> {
        match self {
            Self::Plain(_) | Self::Images(_) => None,
            Self::Columns(columns) => columns.layout.as_ref(),
        }
    }

    /// Refuses another number of features.
    ///
    /// # Errors
    /// Names both numbers.
    pub fn check_width(&self, n_features: usize) -> Result<()> {
        if n_features == self.n_features() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "number of features".into(),
            expected: format!("{} (as in training)", self.n_features()),
            got: n_features.to_string(),
        })
    }

    /// Puts them into a file under the key `inputs`. The terms of text are tensors, `inputs.0.terms` and so on by the
    /// number of the column: they may be many.
    pub fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let Self::Columns(columns) = self else { return file.set("inputs", self) };
        let mut header = columns.clone();
        for (at, column) in columns.iter().enumerate() {
            if let InputKind::Text(vectorizer) = &column.kind {
                header.columns[at].kind = InputKind::Text(vectorizer.without_terms());
                vectorizer.write(&format!("inputs.{at}"), file);
            }
            if let InputKind::Bag(bag) = &column.kind {
                bag.write(&format!("inputs.{at}"), file);
            }
        }
        file.set("inputs", &Self::Columns(header));
    }

    /// Reads and checks what [`write`](Self::write) put into a file.
    ///
    /// # Errors
    /// If they contradict themselves.
    pub fn read(file: &mut Reader) -> Result<Self> {
        let mut inputs: Self = file.get("inputs")?;
        if let Self::Columns(columns) = &mut inputs {
            for (at, column) in columns.columns.iter_mut().enumerate() {
                if let InputKind::Text(stored) = &mut column.kind
                    && stored.check().is_err()
                {
                    let options = stored.options().clone();
                    *stored = Vectorizer::read(options, &format!("inputs.{at}"), file)?;
                }
                if let InputKind::Bag(stored) = &mut column.kind {
                    let options = stored.options().clone();
                    *stored = TextBag::read(options, &format!("inputs.{at}"), file)?;
                }
            }
        }
        inputs.check().map_err(|error| file.broken(error))?;
        Ok(inputs)
    }

    /// Refuses what contradicts itself, as a broken file may.
    ///
    /// # Errors
    /// Names the column.
    pub fn check(&self) -> Result<()> {
        if let Self::Images(ImageShape { height, width, channels }) = *self {
            let n = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
            if !n.is_some_and(|n| (1..=1 << 30).contains(&n)) {
                return Err(Error::data("input: images without pixels, or with too many"));
            }
        }
        let Self::Columns(columns) = self else { return Ok(()) };
        for column in columns.iter() {
            let fault = |what: &str| Err(Error::data(format!("input `{}`: {what}", column.name)));
            match &column.kind {
                InputKind::Number { fill: Some(fill), .. } if !fill.is_finite() => {
                    return fault("fills with what is not a finite number");
                }
                InputKind::Category { levels, .. } | InputKind::List { levels, .. }
                    if !levels.is_sorted_by(|a, b| a < b) =>
                {
                    return fault("its words do not ascend");
                }
                InputKind::List { levels, shares }
                    if shares.len() != levels.len()
                        || shares.iter().any(|share| !(0.0..=1.0).contains(share)) =>
                {
                    return fault(
                        "the shares of its words are not one number from 0 to 1 for each",
                    );
                }
                InputKind::Category { levels, shares, missing, .. }
                    if !shares.is_empty()
                        && (shares.len()
                            != levels.len() + usize::from(*missing == MissingWord::Level)
                            || shares.iter().any(|share| !(0.0..=1.0).contains(share))) =>
                {
                    return fault(
                        "the shares of its words are not one number from 0 to 1 for each",
                    );
                }
                InputKind::Text(vectorizer) => {
                    if let Err(error) = vectorizer.check() {
                        return fault(&error.to_string());
                    }
                }
                InputKind::Tokens(tokens) => {
                    if let Err(error) = tokens.check() {
                        return fault(&error.to_string());
                    }
                }
                InputKind::Bag(bag) => {
                    if let Err(error) = bag.check() {
                        return fault(&error.to_string());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
