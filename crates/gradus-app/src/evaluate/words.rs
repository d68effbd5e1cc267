//! Vectors of words against sets made by people: pairs with their similarity, and analogies.

use gradus_base::{Error, Result};
use gradus_core::embed::{Embed, Query};
use gradus_data::TextFile;
use gradus_metrics::bounds::{Interval, wilson};
use gradus_metrics::spearman;
use serde::Serialize;
use std::path::Path;

/// The level of the intervals.
const LEVEL: f64 = 0.95;

/// How good vectors are by such a set.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum WordsAnswer {
    /// Pairs of words with their similarity.
    Similarity(SimilarityAnswer),
    /// Analogies.
    Analogies(AnalogiesAnswer),
}

/// The agreement of similarities with human judgements.
#[derive(Clone, Debug, Serialize)]
pub struct SimilarityAnswer {
    /// Spearman's rank correlation of the cosines and the similarities people gave.
    pub spearman: f64,
    /// The 95 % interval; absent for fewer than four pairs.
    pub interval: Option<(f64, f64)>,
    /// Pairs that were compared: the model has vectors of both words.
    pub compared: usize,
    /// Pairs in the file.
    pub pairs: usize,
    /// Words of the file that the model has no vector of, some of them.
    pub unknown: Vec<String>,
}

/// How many analogies are completed rightly.
#[derive(Clone, Debug, Serialize)]
pub struct AnalogiesAnswer {
    /// The scores of each section, in the order of the file.
    pub sections: Vec<SectionAnswer>,
    /// All sections together.
    pub total: SectionAnswer,
}

/// A section of a set of analogies.
#[derive(Clone, Debug, Serialize)]
pub struct SectionAnswer {
    /// The name of the section.
    pub section: String,
    /// Analogies that were completed rightly.
    pub right: u64,
    /// Analogies that were asked: the model has vectors of the words, and the fourth is one of its names.
    pub asked: u64,
    /// Analogies in the file.
    pub analogies: u64,
    /// The share of right ones among those asked, where it is with 95 % confidence; none if none was asked.
    pub accuracy: Option<(f64, Interval)>,
}

/// A line of a file of analogies: its section, and the four words.
type Four<'a> = (usize, [&'a str; 4]);

/// Measures vectors on a file of WordSim-353, SimLex-999 and the like (two words and a number on each line, set apart by tabs,
/// blanks, commas or semicolons), or of analogies as Google's (four words on each line, sections begin with a colon).
///
/// # Errors
/// If a line is neither, or no word of the file is known.
pub fn evaluate(model: &dyn Embed, path: &Path) -> Result<WordsAnswer> {
    let file = TextFile::read(path)?
        .ok_or_else(|| Error::format(path, "holds no text: there is a zero byte in it"))?;
    let lines: Vec<(usize, &str)> = (1..)
        .zip(file.text.lines())
        .map(|(number, line)| (number, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let Some(&(_, first)) = lines.first() else {
        return Err(Error::format(path, "holds no words to compare"));
    };
    let last = lines.last().map_or(first, |(_, line)| line);
    let is_analogies = first.starts_with(':') || fields(last).len() == 4 && !has_number(last);
    if is_analogies {
        return analogies(model, path, &lines).map(WordsAnswer::Analogies);
    }
    similarity(model, path, &lines).map(WordsAnswer::Similarity)
}

fn fields(line: &str) -> Vec<&str> {
    // Words may have blanks where columns are set apart by something else.
    let separator = ['\t', ';', ','].into_iter().find(|separator| line.contains(*separator));
    match separator {
        Some(separator) => line.split(separator).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

fn number(field: &str) -> Option<f64> {
    field.parse::<f64>().ok().filter(|x| x.is_finite())
}

fn has_number(line: &str) -> bool {
    fields(line).iter().any(|field| number(field).is_some())
}

fn bad(path: &Path, line: usize, reason: String) -> Error {
    let file = path.display().to_string();
    Error::Row { file, line: line as u64, column: None, reason }
}

fn similarity(model: &dyn Embed, path: &Path, lines: &[(usize, &str)]) -> Result<SimilarityAnswer> {
    let (mut cosines, mut given, mut pairs) = (Vec::new(), Vec::new(), 0);
    let mut unknown: Vec<String> = Vec::new();
    for (at, &(line, text)) in lines.iter().enumerate() {
        let fields = fields(text);
        let score = fields.iter().skip(2).find_map(|field| number(field));
        let (Some(score), Some(&[a, b])) = (score, fields.first_chunk::<2>()) else {
            // The names of the columns.
            if at == 0 && lines.len() > 1 {
                continue;
            }
            let reason = format!(
                "{text:?} is not two words and their similarity; vectors are evaluated on such lines, or on analogies of \
                 four words"
            );
            return Err(bad(path, line, reason));
        };
        pairs += 1;
        match (model.knows(a), model.knows(b)) {
            (true, true) => {
                cosines.push(model.similarity(a, b)?);
                given.push(score);
            }
            (knows_a, knows_b) => {
                let words = [(a, knows_a), (b, knows_b)];
                let lacking = words.iter().filter(|(_, is_known)| !is_known);
                unknown.extend(lacking.map(|(word, _)| (*word).to_owned()));
            }
        }
    }
    unknown.sort();
    unknown.dedup();
    if cosines.len() < 2 {
        return Err(Error::format(
            path,
            format!(
                "the model knows both words of {} of {pairs} pairs; at least 2 are needed",
                cosines.len()
            ),
        ));
    }
    let rho = spearman(&cosines, &given).ok_or_else(|| {
        Error::format(path, "all similarities are equal: there is no order to compare with")
    })?;
    let n = cosines.len() as f64;
    // Bonett and Wright, 2000: the standard error of Fisher's transform of a rank correlation.
    let interval = (cosines.len() > 3).then(|| {
        let z = rho.clamp(-1.0 + 1e-12, 1.0 - 1e-12).atanh();
        let half = 1.959_963_985 * ((1.0 + rho * rho / 2.0) / (n - 3.0)).sqrt();
        ((z - half).tanh(), (z + half).tanh())
    });
    unknown.truncate(20);
    Ok(SimilarityAnswer { spearman: rho, interval, compared: cosines.len(), pairs, unknown })
}

fn analogies(model: &dyn Embed, path: &Path, lines: &[(usize, &str)]) -> Result<AnalogiesAnswer> {
    let mut names: Vec<String> = Vec::new();
    let mut counts: Vec<u64> = Vec::new();
    let mut asked: Vec<Four<'_>> = Vec::new();
    for &(line, text) in lines {
        if let Some(name) = text.strip_prefix(':') {
            names.push(name.trim().to_owned());
            counts.push(0);
            continue;
        }
        let words = fields(text);
        let Some(&four) = words.first_chunk::<4>().filter(|_| words.len() == 4) else {
            return Err(bad(path, line, format!("{text:?} is not four words")));
        };
        if names.is_empty() {
            names.push("all".to_owned());
            counts.push(0);
        }
        *counts.last_mut().expect("a section has begun") += 1;
        // What has a vector but is no name of the model can be part of a question, not its answer.
        if four.iter().all(|word| model.knows(word)) && model.names_it(four[3]) {
            asked.push((names.len() - 1, four));
        }
    }
    // The first is to the second as the third to the fourth: b − a + c.
    let query = |(_, [a, b, c, _]): &Four<'_>| model.query(&[b, c], &[a], 1);
    let queries: Vec<Query> = asked.iter().map(query).collect::<Result<_>>()?;
    let found = model.nearest_many(&queries)?;
    let (mut right, mut total) = (vec![0u64; names.len()], vec![0u64; names.len()]);
    for ((section, words), found) in asked.iter().zip(&found) {
        total[*section] += 1;
        let wanted = model.find(words[3]).ok();
        right[*section] += u64::from(found.first().is_some_and(|near| Some(near.at) == wanted));
    }
    let section = |name: &str, right: u64, asked: u64, analogies: u64| -> Result<SectionAnswer> {
        let accuracy = match asked {
            0 => None,
            _ => Some((right as f64 / asked as f64, wilson(right, asked, LEVEL)?)),
        };
        Ok(SectionAnswer { section: name.to_owned(), right, asked, analogies, accuracy })
    };
    let sections = (0..names.len())
        .map(|at| section(&names[at], right[at], total[at], counts[at]))
        .collect::<Result<Vec<_>>>()?;
    let total = section("total", right.iter().sum(), total.iter().sum(), counts.iter().sum())?;
    if total.asked == 0 {
        return Err(Error::format(
            path,
            format!("the model knows all four words of none of {} analogies", total.analogies),
        ));
    }
    Ok(AnalogiesAnswer { sections, total })
}
