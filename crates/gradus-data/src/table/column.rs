//! The columns of a table.

use gradus_base::Result;
use gradus_base::error::Error;
use hashbrown::HashMap;

/// The code of a missing word.
pub const MISSING_WORD: u32 = u32::MAX;

/// A column of a [`Table`](super::Table): numbers, truth values or words.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers; NaN is a missing value.
    Numbers(Vec<f64>),
    /// Truth values; `None` is a missing value. As features they are 0 and 1, as classes `false` and `true`.
    Booleans(Vec<Option<bool>>),
    /// Words from a list of different ones.
    Words {
        /// For each row, an index into `levels`; [`MISSING_WORD`] is a missing value.
        codes: Vec<u32>,
        /// The different words, in any order. Readers list them in the order of first appearance.
        levels: Vec<String>,
    },
}

impl Column {
    /// A column of words from one word a row; `None` is a missing value.
    ///
    /// # Errors
    /// If there are 2³² − 1 different words or more.
    ///
    /// ```
    /// use gradus_data::{Column, MISSING_WORD};
    /// let column = Column::from_words([Some("red"), None, Some("blue"), Some("red")])?;
    /// let Column::Words { codes, levels } = column else { unreachable!() };
    /// assert_eq!((codes, levels), (vec![0, MISSING_WORD, 1, 0], vec!["red".into(), "blue".into()]));
    /// # Ok::<(), gradus_base::Error>(())
    /// ```
    pub fn from_words<S: AsRef<str>>(words: impl IntoIterator<Item = Option<S>>) -> Result<Self> {
        let mut interner = Interner::default();
        let words = words.into_iter();
        let mut codes = Vec::with_capacity(words.size_hint().0);
        for word in words {
            codes.push(match word {
                Some(word) => interner.code(word.as_ref())?,
                None => MISSING_WORD,
            });
        }
        Ok(Self::Words { codes, levels: interner.into_levels() })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Booleans(values) => values.len(),
            Self::Words { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the value of a row is missing.
    ///
    /// # Panics
    /// If `row` is not below `len()`.
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Numbers(values) => values[row].is_nan(),
            Self::Booleans(values) => values[row].is_none(),
            Self::Words { codes, .. } => codes[row] == MISSING_WORD,
        }
    }

    /// Number of missing values.
    pub fn n_missing(&self) -> usize {
        (0..self.len()).filter(|&row| self.is_missing(row)).count()
    }

    /// The value of a row as text: a number in its shortest form, `true` or `false`, a word.
    ///
    /// # Panics
    /// If `row` is not below `len()`.
    pub fn text(&self, row: usize) -> Option<std::borrow::Cow<'_, str>> {
        match self {
            Self::Numbers(values) => Some(values[row])
                .filter(|value| !value.is_nan())
                .map(|value| value.to_string().into()),
            Self::Booleans(values) => values[row].map(|value| value.to_string().into()),
            Self::Words { codes, levels } => {
                levels.get(codes[row] as usize).map(|word| word.as_str().into())
            }
        }
    }

    /// The rows `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below `len()`.
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        match self {
            Self::Numbers(values) => {
                Self::Numbers(rows.iter().map(|&row| values[row as usize]).collect())
            }
            Self::Booleans(values) => {
                Self::Booleans(rows.iter().map(|&row| values[row as usize]).collect())
            }
            Self::Words { codes, levels } => Self::Words {
                codes: rows.iter().map(|&row| codes[row as usize]).collect(),
                levels: levels.clone(),
            },
        }
    }

    /// Refuses codes without a level, and a level that is listed twice.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        let Self::Words { codes, levels } = self else { return Ok(()) };
        let fault = |what: String| Err(Error::data(format!("column `{name}`: {what}")));
        let n = levels.len();
        if let Some(code) = codes.iter().find(|&&code| code != MISSING_WORD && code as usize >= n) {
            return fault(format!("code {code} is not below {n}, the number of words"));
        }
        let mut sorted: Vec<&String> = levels.iter().collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => fault(format!("the word `{}` is listed twice", pair[0])),
            None => Ok(()),
        }
    }
}

/// Gives different words different codes, in the order of first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    codes: HashMap<Box<str>, u32>,
    levels: Vec<String>,
}

impl Interner {
    /// The code of a word.
    pub(crate) fn code(&mut self, word: &str) -> Result<u32> {
        if let Some(&code) = self.codes.get(word) {
            return Ok(code);
        }
        let code = u32::try_from(self.levels.len()).ok().filter(|&code| code != MISSING_WORD);
        let code =
            code.ok_or_else(|| Error::data("a column has 2³² − 1 different words or more"))?;
        self.codes.insert(word.into(), code);
        self.levels.push(word.to_owned());
        Ok(code)
    }

    /// The words by code.
    pub(crate) fn into_levels(self) -> Vec<String> {
        self.levels
    }
}
