//! An embedding: vectors of words from the words beside them.

use crate::Sequences;
use gradus::data::{Id, Ids, TextIds};
use gradus::model::{
    Capability, Embed, Fit, Fitted, Job, LoopOptions, Model, Params, Reader, Traits, Writer,
    direct, record,
};
use gradus::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Vectors of positive pointwise mutual information: words are alike if the same words stand beside them.
///
/// The vector of a word has a coordinate for each word of the vocabulary: `max(0, ln p(w, c) / p(w) p(c))`,
/// where `p(w, c)` is the share of the pairs of words at most `window` apart that are `w` and `c`. What is
/// not counted is 0. Rare words are left out. The cost is the number of pairs, and the memory the square of
/// the vocabulary. The objective in the report is the mean of the coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cooccurrence {
    /// How many places two words of a pair may be apart.
    #[schemars(range(min = 1, max = 100))]
    pub window: usize,
    /// Words that are there fewer times are left out.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_count: u64,
}

impl Default for Cooccurrence {
    fn default() -> Self {
        Self { window: 2, min_count: 1 }
    }
}

impl Params for Cooccurrence {}

/// Vectors of words.
#[derive(Clone, Debug, PartialEq)]
pub struct WordVectors {
    words: Ids,
    /// Words × words, row by row.
    vectors: Vec<f32>,
}

/// The largest vocabulary: its square is kept in memory.
const MOST_WORDS: usize = 20_000;

impl Fit for Cooccurrence {
    const NAME: &'static str = "cooccurrence";
    const CLASS: &'static str = "Cooccurrence";
    const FAMILY: &'static str = "text";
    type Data = Sequences;
    type Model = WordVectors;
    const TRAITS: Traits = Traits { capabilities: &[Capability::Embed], ..Traits::TRANSFORMER };

    fn fit_job(&self, data: &Sequences, job: &Job<'_, Sequences>) -> Result<Fitted<Self>> {
        self.check()?;
        let words = self.vocabulary(data);
        if words.is_empty() {
            let rule = format!("no word is there at least {} times", self.min_count);
            return Err(Error::data(format!("cooccurrence: {rule}")));
        }
        if words.len() > MOST_WORDS {
            return Err(Error::data(format!(
                "cooccurrence: {} words are more than {MOST_WORDS}; raise option `min_count`",
                words.len()
            )));
        }
        let options =
            LoopOptions { model: Self::NAME, params: record(self), ..LoopOptions::default() };
        let (model, report) = direct(&options, job, || {
            let vectors = self.information(&words, data);
            let objective = vectors.iter().map(|&x| f64::from(x)).sum::<f64>();
            let objective = objective / vectors.len() as f64;
            Ok((WordVectors { words: Ids::Text(words), vectors }, objective, None))
        })?;
        Ok(Fitted { params: self.clone(), model, report })
    }
}

impl Cooccurrence {
    /// The words that are frequent enough, ascending.
    fn vocabulary(&self, data: &Sequences) -> TextIds {
        let mut all: Vec<&str> = data.lines.iter().flatten().map(String::as_str).collect();
        all.sort_unstable();
        let mut words = TextIds::new();
        for same in all.chunk_by(|a, b| a == b) {
            if same.len() as u64 >= self.min_count {
                words.push(same[0]);
            }
        }
        words
    }

    /// The positive pointwise mutual information of each pair of words.
    fn information(&self, words: &TextIds, data: &Sequences) -> Vec<f32> {
        let n = words.len();
        let known: Vec<&str> = words.iter().collect();
        let mut counts = vec![0u64; n * n];
        for line in &data.lines {
            let places: Vec<Option<usize>> =
                line.iter().map(|word| known.binary_search(&word.as_str()).ok()).collect();
            for (at, first) in places.iter().enumerate() {
                for second in places[at + 1..].iter().take(self.window) {
                    if let (Some(first), Some(second)) = (*first, *second) {
                        counts[first * n + second] += 1;
                        counts[second * n + first] += 1;
                    }
                }
            }
        }
        let totals: Vec<f64> = counts.chunks(n).map(|row| row.iter().sum::<u64>() as f64).collect();
        let total: f64 = totals.iter().sum();
        let information = |(at, &count): (usize, &u64)| {
            if count == 0 {
                return 0.0;
            }
            let expected = totals[at / n] * totals[at % n] / total;
            (count as f64 / expected).ln().max(0.0) as f32
        };
        counts.iter().enumerate().map(information).collect()
    }
}

impl Embed for WordVectors {
    fn what(&self) -> &'static str {
        "word"
    }

    fn names(&self) -> &Ids {
        &self.words
    }

    fn dimension(&self) -> usize {
        self.words.len()
    }

    fn vector(&self, at: usize) -> &[f32] {
        &self.vectors[at * self.words.len()..][..self.words.len()]
    }
}

impl Model for WordVectors {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let n = self.words.len();
        self.words.write("words", file);
        file.tensor("vectors", &[n, n], &self.vectors);
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let words = Ids::read("words", file)?;
        let ascending = (1..words.len()).all(|at| match (words.get(at - 1), words.get(at)) {
            (Id::Text(before), Id::Text(word)) => before < word,
            _ => false,
        });
        if !ascending {
            return Err(file.broken("the words are not in ascending order"));
        }
        let vectors = file.finite("vectors", &[words.len(), words.len()])?;
        Ok(Self { words, vectors })
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        vec![("words", self.words.len().to_string())]
    }

    fn embedding(&self) -> Option<&dyn Embed> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `a b`, the pairs are (a, b) and (b, a), each half of all: ln(½ / ½·½) = ln 2.
    #[test]
    fn information_is_that_of_counts() {
        let fitted = Cooccurrence::default().fit(&Sequences::parse("a b", false)).unwrap();
        assert_eq!(fitted.vector(0), [0.0, 2f32.ln()]);
        assert_eq!(fitted.vector(1), [2f32.ln(), 0.0]);
    }

    #[test]
    fn words_with_the_same_neighbours_are_alike() {
        let text = "the cat eats\nthe dog eats\na sun shines\na moon shines\n".repeat(3);
        let fitted = Cooccurrence::default().fit(&Sequences::parse(&text, false)).unwrap();
        let cat = fitted.find("cat").unwrap();
        let near = fitted.nearest(fitted.vector(cat), 1, &[cat]).unwrap();
        assert_eq!(fitted.names().get(near[0].at), Id::Text("dog"));
        assert!((near[0].similarity - 1.0).abs() < 1e-6);
        let rare = Cooccurrence { min_count: 7, ..Cooccurrence::default() };
        let error = rare.fit(&Sequences::parse(&text, false)).unwrap_err().to_string();
        assert!(error.contains("at least 7 times"), "{error}");
    }
}
