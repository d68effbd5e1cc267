//! Inference of the column types of a text table, after all rows have been read.

use super::cells::{Gathered, MISSING, RawColumn, code};
use super::column::{Column, Interner, MISSING_WORD};
use super::options::CellMode;
use gradus_base::{Result, parallel};
use hashbrown::HashMap;

/// A column with this many different texts among its numbers is not one of numbers.
const MOST_STRAYS: usize = 10;

/// A cell that is not a number in a column of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The column's name.
    pub column: String,
    /// The row, from 0.
    pub row: u32,
    /// The text of the cell.
    pub text: String,
}

/// A column, the cells in it that are not what the others are, and what there is to say about it.
pub(super) struct Inferred {
    pub column: Column,
    pub strays: Vec<(u32, String)>,
    pub remark: Option<String>,
}

/// The columns by type.
///
/// A column holds numbers if all its values are numbers, or all but a few: at most ten different
/// texts, in at most 5 % of the values (or one text in ten values or more). Those texts are then
/// strays, which count as missing. Where cells are kept as text, all columns hold words.
pub(super) fn infer(
    gathered: Gathered,
    mark: u8,
    mode: CellMode,
) -> Result<(Vec<String>, Vec<Inferred>)> {
    let Gathered { names, columns, .. } = gathered;
    let columns = parallel::try_map(columns, |column| match mode {
        CellMode::Infer => of(column, mark),
        CellMode::Text | CellMode::Line => text_of(&column),
    });
    Ok((names, columns?))
}

/// The words of a column whose cells are all texts.
fn text_of(column: &RawColumn) -> Result<Inferred> {
    let words = (0..column.cells.len()).map(|row| column.text(row));
    Ok(Inferred { column: Column::from_words(words)?, strays: vec![], remark: None })
}

/// The meaning of a text besides a word.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spelling {
    Word,
    /// An integer that may be a code: zeros in front, or more digits than a number can hold.
    Digits(f64),
    /// A number with separators between thousands; whether nothing else can be meant.
    Grouped(f64, bool),
    /// A number in a form that columns of this file usually do not have.
    Number(f64),
}

fn of(column: RawColumn, mark: u8) -> Result<Inferred> {
    let RawColumn { cells, interner, .. } = column;
    let levels = interner.into_levels();
    let mut counts = vec![0usize; levels.len()];
    let mut n_numbers = 0usize;
    for &cell in &cells {
        match code(cell) {
            Some(code) => counts[code as usize] += 1,
            None => n_numbers += usize::from(cell != MISSING),
        }
    }
    let mut spellings: Vec<Spelling> = levels.iter().map(|level| spelling(level, mark)).collect();
    let grouped = settle_groups(&mut spellings, &cells);
    let total = n_numbers + counts.iter().sum::<usize>();
    let is_word = |at: &usize| spellings[*at] == Spelling::Word;
    let words: Vec<usize> = (0..levels.len()).filter(is_word).collect();
    let n_strays: usize = words.iter().map(|&at| counts[at]).sum();
    let few = 20 * n_strays <= total || (n_strays == 1 && total >= 10);
    let is_numeric =
        n_strays < total && (n_strays == 0 || (words.len() <= MOST_STRAYS && few)) || total == 0;
    if is_numeric && n_strays == 0 && is_code(&levels, &spellings, &cells) {
        let remark = "codes with zeros in front are taken as words".to_owned();
        return Ok(Inferred {
            column: words_of(&cells, levels)?,
            strays: vec![],
            remark: Some(remark),
        });
    }
    if is_numeric {
        let value = |code: u32| match spellings[code as usize] {
            Spelling::Word => f64::NAN,
            Spelling::Digits(x) | Spelling::Grouped(x, _) | Spelling::Number(x) => x,
        };
        let mut strays = Vec::new();
        if n_strays > 0 {
            for (row, &cell) in cells.iter().enumerate() {
                if let Some(code) = code(cell).filter(|&code| is_word(&(code as usize))) {
                    strays.push((row as u32, levels[code as usize].clone()));
                }
            }
        }
        let numbers = cells.into_iter().map(|cell| code(cell).map_or(f64::from_bits(cell), value));
        let remark = grouped.then(|| "separators between thousands were read as such".to_owned());
        return Ok(Inferred { column: Column::Numbers(numbers.collect()), strays, remark });
    }
    let truth = |level: &String| {
        if level.eq_ignore_ascii_case("true") {
            Some(true)
        } else if level.eq_ignore_ascii_case("false") {
            Some(false)
        } else {
            None
        }
    };
    let truths: Option<Vec<bool>> = levels.iter().map(truth).collect();
    if let Some(truths) = truths.filter(|_| n_numbers == 0) {
        let values = cells.iter().map(|&cell| code(cell).map(|code| truths[code as usize]));
        let column = Column::Booleans(values.collect());
        return Ok(Inferred { column, strays: vec![], remark: None });
    }
    let signs = !levels.is_empty() && levels.iter().all(|level| has_sign(level, mark));
    let remark = if signs {
        Some("numbers with a sign of currency or per cent are taken as words".to_owned())
    } else if 2 * n_strays <= total {
        let share = 100 * (total - n_strays) / total;
        let examples: Vec<String> =
            words.iter().take(3).map(|&at| format!("`{}`", levels[at])).collect();
        let examples = examples.join(", ");
        Some(format!("{share} % of the values are numbers, but not {examples}: taken as words"))
    } else {
        None
    };
    Ok(Inferred { column: words_of(&cells, levels)?, strays: vec![], remark })
}

/// The words of a column; numbers among them in their shortest form, so that 1 and 1.0 are one word.
fn words_of(cells: &[u64], levels: Vec<String>) -> Result<Column> {
    let mut interner = Interner::default();
    let known: Result<Vec<u32>> = levels.iter().map(|level| interner.code(level)).collect();
    let known = known?;
    let mut numbers = HashMap::new();
    let mut codes = Vec::with_capacity(cells.len());
    for &cell in cells {
        codes.push(match code(cell) {
            Some(code) => known[code as usize],
            None if cell == MISSING => MISSING_WORD,
            None => match numbers.get(&cell) {
                Some(&code) => code,
                None => {
                    let code = interner.code(&f64::from_bits(cell).to_string())?;
                    numbers.insert(cell, code);
                    code
                }
            },
        });
    }
    Ok(Column::Words { codes, levels: interner.into_levels() })
}

/// Whether a column holds codes: integers of equal width from three digits on, some with zeros in
/// front.
fn is_code(levels: &[String], spellings: &[Spelling], cells: &[u64]) -> bool {
    let is_padded = |level: &String| level.len() > 1 && level.starts_with('0');
    if !levels.iter().any(is_padded) {
        return false;
    }
    let width = levels[0].len();
    let all_digits = levels.iter().zip(spellings).all(|(level, spelling)| {
        matches!(spelling, Spelling::Digits(_))
            && level.len() == width
            && level.bytes().all(|byte| byte.is_ascii_digit())
    });
    let low = 10f64.powi(width as i32 - 1);
    let fits = |cell: u64| {
        let number = f64::from_bits(cell);
        (low..10.0 * low).contains(&number) && number.fract() == 0.0
    };
    width >= 3
        && all_digits
        && cells.iter().all(|&cell| cell == MISSING || code(cell).is_some() || fits(cell))
}

/// Whether the separators in a column are between thousands; if that is not sure, its texts are words.
fn settle_groups(spellings: &mut [Spelling], cells: &[u64]) -> bool {
    let groups = spellings.iter().filter(|s| matches!(s, Spelling::Grouped(..))).count();
    if groups == 0 {
        return false;
    }
    let sure = spellings.iter().any(|s| matches!(s, Spelling::Grouped(_, true)));
    // Separators wherever a number has more than three digits.
    let plain = |cell: u64| f64::from_bits(cell).abs() >= 1000.0;
    let always = groups >= 3 && !cells.iter().any(|&cell| code(cell).is_none() && plain(cell));
    if !(sure || always) {
        for spelling in spellings.iter_mut().filter(|s| matches!(s, Spelling::Grouped(..))) {
            *spelling = Spelling::Word;
        }
        return false;
    }
    true
}

/// Returns the meaning of a text that is no plain number.
fn spelling(text: &str, mark: u8) -> Spelling {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() {
        return Spelling::Word;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_or(Spelling::Word, Spelling::Digits);
    }
    let (mark, separator) = if mark == b',' { (',', '.') } else { ('.', ',') };
    if let Some((value, sure)) = grouped(digits, mark, separator) {
        let value = if text.starts_with('-') { -value } else { value };
        return Spelling::Grouped(value, sure);
    }
    let is_infinite = ["inf", "infinity"].iter().any(|word| digits.eq_ignore_ascii_case(word));
    // In a file with decimal commas, a column may still have decimal points.
    let is_plain =
        digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.parse() {
        Ok(value) if is_infinite || is_plain => Spelling::Number(value),
        _ => Spelling::Word,
    }
}

/// A number in groups of three digits, and whether it can be nothing else.
fn grouped(digits: &str, mark: char, separator: char) -> Option<(f64, bool)> {
    let (whole, fraction) = match digits.split_once(mark) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let groups: Vec<&str> = whole.split(separator).collect();
    let (first, others) = groups.split_first()?;
    let fits = is_digits(first)
        && first.len() <= 3
        && !others.is_empty()
        && others.iter().all(|group| group.len() == 3 && is_digits(group))
        && fraction.is_none_or(is_digits);
    if !fits {
        return None;
    }
    let plain = format!("{}.{}", groups.concat(), fraction.unwrap_or("0"));
    Some((plain.parse().ok()?, others.len() > 1 || fraction.is_some()))
}

/// Whether a text is a number with a sign of currency or per cent.
fn has_sign(text: &str, mark: u8) -> bool {
    const SIGNS: [char; 6] = ['$', '€', '£', '¥', '%', '₹'];
    let plain = text.trim_matches(|c: char| SIGNS.contains(&c) || c == ' ');
    if plain.len() == text.len() || plain.is_empty() {
        return false;
    }
    let number = super::cells::number(plain.as_bytes(), 0, mark);
    number.is_some_and(|(_, end)| end == plain.len()) || spelling(plain, mark) != Spelling::Word
}
