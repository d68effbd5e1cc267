//! Vectors of words: what every model of words learns.

mod files;
mod near;
mod spelling;
mod subwords;

pub use files::{VectorFormat, check_export, export_vectors, read_vectors};
pub use subwords::Subwords;

use gradus_base::text::grouped;
use gradus_base::{Error, Result, parallel};
use gradus_core::embed::{Embed, Neighbour, Query, cosine};
use gradus_core::estimator::Model;
use gradus_data::{CharNgrams, Id, Ids, TextIds};
use gradus_file::{Reader, Writer};
use gradus_kernel::Rows;
use std::borrow::Cow;
use std::cmp::Reverse;

/// Vectors of words, with the vocabulary and its counts.
///
/// Words are stored in ascending order, and the model knows their order by frequency (of a vector file: the order of the
/// file). A word is looked up as it is written. Where no word of the vocabulary has a capital letter, a word that is not
/// found is looked up in lower case as well: `King` finds `king` in a model of text in lower case. Accents always count.
/// Words with blanks between them are looked up as a phrase: `new york` finds `new_york`.
/// A model with vectors of character n-grams ([`Subwords`]) has a vector of every other word too: the mean of those of its n-grams.
///
/// ```
/// use gradus_core::embed::{Analogy, Embed};
/// use gradus_text::WordVectors;
/// let words = ["king", "man", "queen", "woman"];
/// let vectors = [2.0, 1.0, 0.1, 1.0, 2.0, -1.0, 0.1, -1.0];
/// let model = WordVectors::new(&words, None, &vectors, None)?;
/// let found = model.analogy(["king", "man", "woman"], 1, Analogy::Add)?;
/// assert_eq!(model.word(found[0].at), "queen");
/// # Ok::<(), gradus_base::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WordVectors {
    words: Ids,
    /// The places of the words by descending frequency, or in the order of the file they came from.
    ranking: Vec<u32>,
    counts: Option<Vec<u64>>,
    /// The places of words that are phrases, ascending.
    phrases: Vec<u32>,
    vectors: Rows,
    context: Option<Rows>,
    subwords: Option<Subwords>,
    /// One over the length of each vector, as the search of neighbours takes it.
    inverse: Vec<f32>,
    /// Whether no word has a capital letter.
    is_lowercase: bool,
}

impl PartialEq for WordVectors {
    fn eq(&self, other: &Self) -> bool {
        // The rest follows from these.
        (&self.words, &self.ranking, &self.counts) == (&other.words, &other.ranking, &other.counts)
            && self.phrases == other.phrases
            && (&self.vectors, &self.context) == (&other.vectors, &other.context)
            && self.subwords == other.subwords
    }
}

impl WordVectors {
    /// Vectors of words in any order. By descending count, where counts are given, else in the order given, they are ranked;
    /// of equal counts the first word comes first.
    ///
    /// # Shapes
    /// `vectors` and `context` are words × coordinates, row by row, in the order of `words`. `context` is the other side
    /// of a factorisation: the vectors of words as neighbours.
    ///
    /// # Errors
    /// If there are no words, one is empty or there twice, a shape differs, or a number is not finite.
    pub fn new<T: AsRef<str>>(
        words: &[T],
        counts: Option<&[u64]>,
        vectors: &[f32],
        context: Option<&[f32]>,
    ) -> Result<Self> {
        let n = words.len();
        if n == 0 {
            return Err(Error::data("vectors of words: there are no words"));
        }
        let k = vectors.len() / n;
        let shape = |what: &str, got: usize, expected: usize| {
            if got == expected {
                return Ok(());
            }
            let (what, got) = (what.to_owned(), got.to_string());
            Err(Error::Shape { what, expected: expected.to_string(), got })
        };
        if k == 0 {
            return Err(Error::data("vectors of words: they have no coordinates"));
        }
        shape("numbers of the vectors of words", vectors.len(), n * k)?;
        if let Some(context) = context {
            shape("numbers of the context vectors of words", context.len(), n * k)?;
        }
        if let Some(counts) = counts {
            shape("counts of words", counts.len(), n)?;
        }
        let sides = [Some(vectors), context];
        let bad = |side: &[f32]| side.iter().position(|x| !x.is_finite());
        if let Some(at) = sides.into_iter().flatten().find_map(bad) {
            let word = words[at / k].as_ref();
            return Err(Error::data(format!(
                "the vector of the word {word:?} has a number that is not finite"
            )));
        }
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&at| words[at as usize].as_ref());
        let mut sorted = TextIds::new();
        for (at, &from) in order.iter().enumerate() {
            let word = words[from as usize].as_ref();
            if word.is_empty() {
                return Err(Error::data("vectors of words: a word is empty"));
            }
            if at > 0 && sorted.get(at - 1) == word {
                return Err(Error::data(format!("the word {word:?} is there twice")));
            }
            sorted.push(word);
        }
        let side = |values: &[f32]| {
            let mut rows = Rows::zeros(n, k);
            for (at, &from) in order.iter().enumerate() {
                rows.row_mut(at)[..k].copy_from_slice(&values[from as usize * k..][..k]);
            }
            rows
        };
        let counts: Option<Vec<u64>> =
            counts.map(|counts| order.iter().map(|&from| counts[from as usize]).collect());
        let mut ranking: Vec<u32> = vec![0; n];
        match &counts {
            Some(counts) => {
                ranking = (0..n as u32).collect();
                ranking.sort_by_key(|&at| Reverse(counts[at as usize]));
            }
            None => (0..).zip(&order).for_each(|(at, &from)| ranking[from as usize] = at),
        }
        let (vectors, context) = (side(vectors), context.map(side));
        Ok(Self::of_parts(Ids::Text(sorted), ranking, counts, vectors, context))
    }

    fn of_parts(
        words: Ids,
        ranking: Vec<u32>,
        counts: Option<Vec<u64>>,
        vectors: Rows,
        context: Option<Rows>,
    ) -> Self {
        let inverse =
            parallel::map_below(vectors.n_rows(), 1024, |at| near::inverse_of(vectors.row(at)));
        let has_capital = |word: Id<'_>| match word {
            Id::Text(word) => word.chars().any(char::is_uppercase),
            Id::Int(_) => false,
        };
        let is_lowercase = !words.iter().any(has_capital);
        let phrases = Vec::new();
        let subwords = None;
        Self { words, ranking, counts, phrases, vectors, context, subwords, inverse, is_lowercase }
    }

    /// Marks the words that are phrases, which the fit made of words.
    ///
    /// # Errors
    /// If one is not in the vocabulary.
    pub fn with_phrases<'a>(mut self, phrases: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let places = phrases.into_iter().map(|phrase| self.find(phrase).map(|at| at as u32));
        self.phrases = places.collect::<Result<_>>()?;
        self.phrases.sort_unstable();
        self.phrases.dedup();
        Ok(self)
    }

    /// The places of the words that are phrases, ascending.
    pub fn phrases(&self) -> &[u32] {
        &self.phrases
    }

    /// The same with vectors of character n-grams: of a word that is not there they give a vector.
    ///
    /// # Errors
    /// If they have another number of coordinates.
    pub fn with_subwords(mut self, subwords: Subwords) -> Result<Self> {
        if subwords.k() != self.dimension() {
            return Err(Error::Shape {
                what: "vectors of n-grams".into(),
                expected: format!("{} coordinates (as the words have)", self.dimension()),
                got: subwords.k().to_string(),
            });
        }
        self.subwords = Some(subwords);
        Ok(self)
    }

    /// The vectors of character n-grams, if there are any.
    pub fn subwords(&self) -> Option<&Subwords> {
        self.subwords.as_ref()
    }

    /// Returns the own part of the word at this place: `n + 1` times its vector without the vectors of its `n` n-grams.
    pub(crate) fn own(&self, at: usize) -> Vec<f32> {
        let vector = self.vector(at);
        let Some(subwords) = &self.subwords else { return vector.to_vec() };
        let mut sum = vec![0f32; vector.len()];
        let (n, _) = subwords.add(self.word(at), &mut sum);
        sum.iter().zip(vector).map(|(sum, x)| x * (n + 1) as f32 - sum).collect()
    }

    /// The word at this place, in ascending order.
    ///
    /// # Panics
    /// If there are not so many words.
    pub fn word(&self, at: usize) -> &str {
        match self.words.get(at) {
            Id::Text(word) => word,
            Id::Int(_) => unreachable!("words are text"),
        }
    }

    /// The number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no words; never true of a model that was made.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The vector of the word at this place as a neighbour of others, if the model keeps that side.
    pub fn context(&self, at: usize) -> Option<&[f32]> {
        self.context.as_ref().map(|rows| &rows.row(at)[..rows.k()])
    }

    /// The length of the vector at this place.
    pub fn length(&self, at: usize) -> f64 {
        cosine_length(self.vector(at))
    }

    fn place(&self, word: &str) -> Option<usize> {
        let find = |word: &str| {
            let exact = self.words.find(Id::Text(word));
            exact.or_else(|| {
                let lower = self.is_lowercase.then(|| word.to_lowercase())?;
                self.words.find(Id::Text(&lower))
            })
        };
        let found = find(word).or_else(|| {
            let parts: Vec<&str> = word.split_whitespace().collect();
            if parts.len() > 1 { find(&parts.join("_")) } else { None }
        });
        found.map(|at| at as usize)
    }

    /// A vector from the n-grams of a word, put in lower case where all words are.
    fn made_of_subwords(&self, word: &str) -> Option<Vec<f32>> {
        let subwords = self.subwords.as_ref()?;
        match self.is_lowercase {
            true => subwords.vector(&word.to_lowercase()),
            false => subwords.vector(word),
        }
    }
}

fn cosine_length(vector: &[f32]) -> f64 {
    vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

impl Embed for WordVectors {
    fn what(&self) -> &'static str {
        "word"
    }

    fn names(&self) -> &Ids {
        &self.words
    }

    fn dimension(&self) -> usize {
        self.vectors.k()
    }

    fn vector(&self, at: usize) -> &[f32] {
        &self.vectors.row(at)[..self.vectors.k()]
    }

    fn counts(&self) -> Option<&[u64]> {
        self.counts.as_deref()
    }

    fn ranking(&self) -> Cow<'_, [u32]> {
        Cow::Borrowed(&self.ranking)
    }

    /// The place of a word; see [the model](WordVectors) for the rule of cases. The error names words of similar spelling.
    fn find(&self, word: &str) -> Result<usize> {
        self.place(word).ok_or_else(|| {
            let near = spelling::near(self, word, 3);
            let hint = if near.is_empty() {
                "it is not in the vocabulary, which has the words that are frequent enough in training".to_owned()
            } else {
                let near: Vec<String> = near.iter().map(|word| format!("`{word}`")).collect();
                format!("did you mean {}?", near.join(", "))
            };
            Error::UnknownId { what: "word", id: word.to_owned(), hint }
        })
    }

    fn knows(&self, word: &str) -> bool {
        self.place(word).is_some() || self.made_of_subwords(word).is_some()
    }

    fn names_it(&self, word: &str) -> bool {
        self.place(word).is_some()
    }

    fn vector_of(&self, word: &str) -> Result<Cow<'_, [f32]>> {
        if let Some(at) = self.place(word) {
            return Ok(Cow::Borrowed(self.vector(at)));
        }
        match self.made_of_subwords(word) {
            Some(vector) => Ok(Cow::Owned(vector)),
            None => self.find(word).map(|at| Cow::Borrowed(self.vector(at))),
        }
    }

    fn cosines(&self, vector: &[f32]) -> Result<Vec<f64>> {
        self.check_dimension(vector)?;
        Ok(parallel::map_below(self.len(), 2048, |at| cosine(vector, self.vector(at))))
    }

    fn nearest(&self, vector: &[f32], n: usize, except: &[usize]) -> Result<Vec<Neighbour>> {
        let query = Query { vector: vector.to_vec(), n, except: except.to_vec() };
        let mut found = self.nearest_many(std::slice::from_ref(&query))?;
        Ok(found.pop().unwrap_or_default())
    }

    fn nearest_many(&self, queries: &[Query]) -> Result<Vec<Vec<Neighbour>>> {
        queries.iter().try_for_each(|query| self.check_dimension(&query.vector))?;
        Ok(near::nearest(&self.vectors, &self.inverse, queries))
    }
}

impl Model for WordVectors {
    fn write<'a>(&'a self, file: &mut Writer<'a>) {
        let (n, k) = (self.vectors.n_rows(), self.vectors.k());
        self.words.write("words", file);
        file.tensor("ranking", &[n], &self.ranking);
        if let Some(counts) = &self.counts {
            file.tensor("counts", &[n], counts);
        }
        if !self.phrases.is_empty() {
            file.tensor("phrases", &[self.phrases.len()], &self.phrases);
        }
        file.tensor_owned("vectors", &[n, k], packed(&self.vectors));
        if let Some(context) = &self.context {
            file.tensor_owned("context", &[n, k], packed(context));
        }
        if let Some(subwords) = &self.subwords {
            subwords.write(file);
        }
    }

    fn read(file: &mut Reader) -> Result<Self> {
        let words = Ids::read("words", file)?;
        if !matches!(words, Ids::Text(_)) {
            return Err(file.broken("the words are not text"));
        }
        let words = words.from_sorted().map_err(|error| file.broken(error))?;
        let n = words.len();
        if n == 0 {
            return Err(file.broken("there are no words"));
        }
        let ranking: Vec<u32> = file.tensor("ranking", &[n])?;
        let mut seen = vec![false; n];
        let is_new =
            |&at: &u32| !seen.get_mut(at as usize).is_none_or(|seen| std::mem::replace(seen, true));
        if !ranking.iter().all(is_new) {
            return Err(file.broken("`ranking` does not name every word once"));
        }
        let counts = file.has("counts").then(|| file.tensor("counts", &[n])).transpose()?;
        let shape = file.tensors().into_iter().find(|(name, ..)| name == "vectors");
        let k = match shape.as_ref().map(|(_, _, shape)| shape.as_slice()) {
            Some(&[rows, k]) if rows == n && k > 0 => k,
            _ => return Err(file.broken(format!("`vectors` is not a matrix of {n} rows"))),
        };
        let vectors = unpacked(n, k, &file.finite::<f32>("vectors", &[n, k])?);
        let context = match file.has("context") {
            true => Some(unpacked(n, k, &file.finite::<f32>("context", &[n, k])?)),
            false => None,
        };
        let mut model = Self::of_parts(words, ranking, counts, vectors, context);
        if let Some((_, _, shape)) = file.tensors().into_iter().find(|(name, ..)| name == "phrases")
        {
            model.phrases = file.tensor("phrases", &shape)?;
            let ascend = model.phrases.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascend || model.phrases.last().is_some_and(|&last| last as usize >= n) {
                return Err(file.broken("`phrases` does not name words in ascending order"));
            }
        }
        model.subwords = Subwords::read(k, file)?;
        Ok(model)
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let mut facts =
            vec![("words", grouped(self.len())), ("dimension", self.dimension().to_string())];
        if let Some(counts) = &self.counts {
            facts.push(("words of training", grouped(counts.iter().sum::<u64>() as usize)));
        }
        if !self.phrases.is_empty() {
            facts.push(("phrases", grouped(self.phrases.len())));
        }
        if let Some(subwords) = &self.subwords {
            let CharNgrams { min_n, max_n, .. } = subwords.ngrams();
            let n = grouped(subwords.len());
            facts.push(("n-grams", format!("{n} buckets, of {min_n} to {max_n} characters")));
        }
        facts
    }

    fn embedding(&self) -> Option<&dyn Embed> {
        Some(self)
    }
}

fn packed(rows: &Rows) -> Vec<f32> {
    (0..rows.n_rows()).flat_map(|at| &rows.row(at)[..rows.k()]).copied().collect()
}

fn unpacked(n: usize, k: usize, values: &[f32]) -> Rows {
    let mut rows = Rows::zeros(n, k);
    for (at, values) in values.chunks_exact(k).enumerate() {
        rows.row_mut(at)[..k].copy_from_slice(values);
    }
    rows
}

#[cfg(test)]
mod tests;
