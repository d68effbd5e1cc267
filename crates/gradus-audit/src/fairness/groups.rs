//! The groups of one or more sensitive attributes.

use gradus_base::text::grouped;
use gradus_base::{Error, Result};
use gradus_data::Column;

/// The largest number of different values of an attribute that are taken as groups.
pub const MAX_GROUPS: usize = 50;

/// The group of each row, and the names of the groups.
///
/// ```
/// use gradus_audit::fairness::SensitiveGroups;
/// let groups = SensitiveGroups::from_words("sex", &["f", "m", "f"])?;
/// assert_eq!((groups.names(), groups.codes()), (["f", "m"].map(String::from).as_slice(), [0, 1, 0].as_slice()));
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SensitiveGroups {
    attribute: String,
    names: Vec<String>,
    codes: Vec<u32>,
}

impl SensitiveGroups {
    /// Groups by their numbers in a list of names.
    ///
    /// # Errors
    /// If a number has no name, or there are fewer than two groups with members.
    pub fn new(attribute: &str, names: Vec<String>, codes: Vec<u32>) -> Result<Self> {
        check_codes(attribute, &names, &codes)?;
        let mut members = vec![0usize; names.len()];
        codes.iter().for_each(|&code| members[code as usize] += 1);
        if members.iter().filter(|n| **n > 0).count() < 2 {
            let all = members.iter().position(|n| *n > 0);
            let what =
                all.map_or("no rows".to_owned(), |at| format!("all rows are `{}`", names[at]));
            return Err(Error::data(format!(
                "groups of `{attribute}`: {what}; fairness compares two groups at least"
            )));
        }
        // Groups without members have no rates.
        let mut place = vec![0; names.len()];
        let mut kept = Vec::new();
        for (at, name) in names.into_iter().enumerate() {
            place[at] = kept.len() as u32;
            if members[at] > 0 {
                kept.push(name);
            }
        }
        let codes = codes.into_iter().map(|code| place[code as usize]).collect();
        Ok(Self { attribute: attribute.to_owned(), names: kept, codes })
    }

    /// Groups to predict by, of which there may be a single one.
    ///
    /// # Errors
    /// If a number has no name.
    pub fn of_any(attribute: &str, names: Vec<String>, codes: Vec<u32>) -> Result<Self> {
        check_codes(attribute, &names, &codes)?;
        Ok(Self { attribute: attribute.to_owned(), names, codes })
    }

    /// Groups by the words of an attribute, in ascending order.
    ///
    /// # Errors
    /// If all words are the same, or more than [`MAX_GROUPS`] are different.
    pub fn from_words<S: AsRef<str>>(attribute: &str, words: &[S]) -> Result<Self> {
        let mut names: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names.dedup();
        check_number(attribute, names.len(), "words")?;
        let place = |word: &S| names.partition_point(|name| *name < word.as_ref()) as u32;
        let codes = words.iter().map(place).collect();
        Self::new(attribute, names.iter().map(|name| (*name).to_owned()).collect(), codes)
    }

    /// Groups by the numbers of an attribute, in ascending order.
    ///
    /// # Errors
    /// If a number is missing, or there are so many different ones that the attribute is continuous; the message says what
    /// to do.
    pub fn from_numbers(attribute: &str, numbers: &[f64]) -> Result<Self> {
        if let Some(row) = numbers.iter().position(|x| x.is_nan()) {
            return Err(Error::data(format!(
                "group column `{attribute}`, row {}: missing value; every row needs a group",
                row + 1
            )));
        }
        let mut different = numbers.to_vec();
        different.sort_by(f64::total_cmp);
        different.dedup();
        let fractions = different.iter().any(|x| x.fract() != 0.0);
        if different.len() > MAX_GROUPS || fractions && different.len() > 10 {
            return Err(Error::data(format!(
                "group column `{attribute}` is continuous: it has {} different numbers, and groups are at most \
                 {MAX_GROUPS}; cut it into a few ranges (a column of words such as `under 25`, `25 to 60`) first",
                grouped(different.len())
            )));
        }
        let place = |x: &f64| different.partition_point(|other| other < x) as u32;
        let codes = numbers.iter().map(place).collect();
        Self::new(attribute, different.iter().map(f64::to_string).collect(), codes)
    }

    /// Groups by a column of a table.
    ///
    /// # Errors
    /// If a value is missing, or the column is not one of groups.
    pub fn from_column(attribute: &str, column: &Column) -> Result<Self> {
        if let Some(row) = (0..column.len()).find(|&row| column.is_missing(row)) {
            return Err(Error::data(format!(
                "group column `{attribute}`, row {}: missing value; every row needs a group",
                row + 1
            )));
        }
        match column {
            Column::Numbers(numbers) => Self::from_numbers(attribute, numbers),
            Column::Booleans(values) => {
                let codes = values.iter().map(|value| u32::from(*value == Some(true))).collect();
                Self::new(attribute, vec!["false".into(), "true".into()], codes)
            }
            Column::Words { codes, levels } => {
                let mut used = vec![false; levels.len()];
                codes.iter().for_each(|&code| used[code as usize] = true);
                let mut order: Vec<usize> = (0..levels.len()).filter(|&at| used[at]).collect();
                check_number(attribute, order.len(), "words")?;
                order.sort_unstable_by_key(|&at| &levels[at]);
                let mut place = vec![0; levels.len()];
                (0..).zip(&order).for_each(|(new, &old)| place[old] = new);
                let names = order.iter().map(|&at| levels[at].clone()).collect();
                Self::new(attribute, names, codes.iter().map(|&c| place[c as usize]).collect())
            }
        }
    }

    /// The intersections of several attributes, `f, black`, that have members.
    ///
    /// # Errors
    /// If the attributes differ in length, or there are none.
    pub fn crossed(attributes: &[Self]) -> Result<Self> {
        let Some((first, others)) = attributes.split_first() else {
            return Err(Error::data("fairness needs one group attribute at least"));
        };
        let mut all = first.clone();
        for other in others {
            if other.len() != all.len() {
                return Err(Error::Shape {
                    what: format!("groups of `{}`", other.attribute),
                    expected: format!("{} (as of `{}`)", all.len(), all.attribute),
                    got: other.len().to_string(),
                });
            }
            let k = other.names.len() as u32;
            let pairs =
                all.names.iter().flat_map(|a| other.names.iter().map(move |b| format!("{a}, {b}")));
            let codes = all.codes.iter().zip(&other.codes).map(|(a, b)| a * k + b).collect();
            let attribute = format!("{} × {}", all.attribute, other.attribute);
            all = Self::new(&attribute, pairs.collect(), codes)?;
        }
        Ok(all)
    }

    /// The name of the attribute.
    pub fn attribute(&self) -> &str {
        &self.attribute
    }

    /// The names of the groups.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The group of each row, as an index into the names.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The number of groups.
    pub fn n_groups(&self) -> usize {
        self.names.len()
    }

    /// The rows of each group.
    pub fn rows(&self) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); self.names.len()];
        (0..).zip(&self.codes).for_each(|(row, &code)| rows[code as usize].push(row));
        rows
    }

    /// The groups of these rows alone, with the names of all.
    pub(crate) fn select(&self, rows: &[u32]) -> Self {
        let codes = rows.iter().map(|&row| self.codes[row as usize]).collect();
        Self { attribute: self.attribute.clone(), names: self.names.clone(), codes }
    }

    /// Checks that every row has a group.
    pub(crate) fn check_len(&self, n: usize) -> Result<()> {
        if self.len() == n {
            return Ok(());
        }
        Err(Error::Shape {
            what: format!("groups of `{}`", self.attribute),
            expected: format!("{n} (one a row)"),
            got: self.len().to_string(),
        })
    }
}

fn check_codes(attribute: &str, names: &[String], codes: &[u32]) -> Result<()> {
    if let Some(row) = codes.iter().position(|&code| code as usize >= names.len()) {
        return Err(Error::data(format!(
            "groups of `{attribute}`, row {}: group {} is not below {}, the number of groups",
            row + 1,
            codes[row],
            names.len()
        )));
    }
    Ok(())
}

fn check_number(attribute: &str, n: usize, what: &str) -> Result<()> {
    if n <= MAX_GROUPS {
        return Ok(());
    }
    Err(Error::data(format!(
        "group column `{attribute}` has {} different {what}, and groups are at most {MAX_GROUPS}; merge some of them",
        grouped(n)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_every_kind_are_groups() {
        let words = Column::from_words([Some("m"), Some("f"), Some("m")]).unwrap();
        let groups = SensitiveGroups::from_column("sex", &words).unwrap();
        assert_eq!(
            (groups.names().join(" "), groups.codes()),
            ("f m".into(), [1, 0, 1].as_slice())
        );
        let truths = Column::Booleans(vec![Some(true), Some(false)]);
        assert_eq!(
            SensitiveGroups::from_column("old", &truths).unwrap().names().join(" "),
            "false true"
        );
        let numbers = Column::Numbers(vec![2.0, 1.0, 2.0]);
        assert_eq!(SensitiveGroups::from_column("class", &numbers).unwrap().codes(), [1, 0, 1]);
    }

    #[test]
    fn what_is_no_group_is_refused_with_advice() {
        let text =
            |column: &Column| SensitiveGroups::from_column("age", column).unwrap_err().to_string();
        let continuous = Column::Numbers((0..200).map(f64::from).collect());
        assert!(text(&continuous).contains("`age` is continuous: it has 200 different numbers"));
        assert!(text(&continuous).contains("cut it into a few ranges"));
        let fractions = Column::Numbers((0..30).map(|x| f64::from(x) / 7.0).collect());
        assert!(text(&fractions).contains("continuous"));
        let missing = Column::Numbers(vec![1.0, f64::NAN]);
        assert!(text(&missing).contains("row 2: missing value"));
        let alike = Column::Numbers(vec![1.0, 1.0]);
        assert!(text(&alike).contains("all rows are `1`"), "{}", text(&alike));
        let names = Column::from_words((0..80).map(|at| Some(format!("n{at}")))).unwrap();
        assert!(text(&names).contains("80 different words"));
        assert!(SensitiveGroups::crossed(&[]).is_err());
    }

    #[test]
    fn intersections_are_those_that_have_members() {
        let a = SensitiveGroups::from_words("sex", &["f", "m", "m"]).unwrap();
        let b = SensitiveGroups::from_words("race", &["x", "x", "y"]).unwrap();
        let both = SensitiveGroups::crossed(&[a.clone(), b]).unwrap();
        assert_eq!(both.names(), ["f, x", "m, x", "m, y"]);
        assert_eq!((both.codes(), both.attribute()), ([0, 1, 2].as_slice(), "sex × race"));
        let short = SensitiveGroups::from_words("race", &["x", "y"]).unwrap();
        let error = SensitiveGroups::crossed(&[a, short]).unwrap_err().to_string();
        assert!(error.contains("expected 3") && error.contains("got 2"), "{error}");
    }
}
