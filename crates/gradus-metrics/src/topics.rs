//! The coherence of the top words of topics.
//!
//! A topic is coherent if its words occur together. The measures compare how often pairs of its top words occur in the same
//! document, or in the same window of a text, with how often each occurs; they agree with those of gensim's
//! `CoherenceModel` of the same name.
//!
//! | function | measure | units |
//! |---|---|---|
//! | [`umass`] | mean of `ln (p(w, v) + ε) / p(v)` over pairs, `v` before `w` | documents |
//! | [`npmi`] | mean of the normalised pointwise mutual information of pairs | windows of 10 words (`c_npmi`), or documents |
//! | [`cv`] | mean cosine of the NPMI vector of a word and that of all words | windows of 110 words (`c_v`) |
//!
//! References: Mimno et al.: Optimizing semantic coherence in topic models, 2011. Röder, Both, Hinneburg: Exploring the
//! space of topic coherence measures, 2015.

use gradus_base::parallel;
use gradus_data::Csr;
use std::collections::{HashMap, VecDeque};

/// Keeps logarithms finite where two words never occur together; gensim's value.
const EPSILON: f64 = 1e-12;

/// The place of a word that is in no topic.
pub const OTHER: u32 = u32::MAX;

/// The window of `c_npmi`.
pub const NPMI_WINDOW: usize = 10;
/// The window of `c_v`.
pub const CV_WINDOW: usize = 110;

/// The documents, or windows of texts, in which words occur.
#[derive(Clone, Debug, PartialEq)]
pub struct Cooccurrence {
    /// The units that have each word: disjoint ranges, ascending.
    units: HashMap<u32, Vec<(u64, u64)>>,
    n_units: u64,
}

impl Cooccurrence {
    fn new(topics: &[Vec<u32>]) -> Self {
        let units = topics.iter().flatten().map(|&word| (word, Vec::new())).collect();
        Self { units, n_units: 0 }
    }

    fn add(&mut self, word: u32, from: u64, to: u64) {
        let Some(ranges) = self.units.get_mut(&word) else { return };
        match ranges.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => ranges.push((from, to)),
        }
    }

    /// The documents that have each of the words of topics.
    ///
    /// # Shapes
    /// `counts` is documents × words.
    pub fn in_documents(topics: &[Vec<u32>], counts: &Csr<f64>) -> Self {
        let mut found = Self::new(topics);
        for row in 0..counts.n_rows() {
            let (words, values) = counts.row(row);
            for (&word, &count) in words.iter().zip(values) {
                if count > 0.0 {
                    found.add(word, row as u64, row as u64 + 1);
                }
            }
        }
        found.n_units = counts.n_rows() as u64;
        found
    }

    /// The windows of this many words that have each of the words of topics. A text is a list of numbers of words, with
    /// [`OTHER`] for any other word; one that is shorter than a window is a window.
    ///
    /// Windows are counted as gensim counts them, so that figures can be compared: a word that leaves a window at its
    /// left end is taken as gone until it enters again, even if it occurs once more in between.
    pub fn in_windows(topics: &[Vec<u32>], texts: &[Vec<u32>], window: usize) -> Self {
        let mut found = Self::new(topics);
        let window = window.max(1) as u64;
        // The places of each word in the text that are still in the window.
        let mut places: HashMap<u32, VecDeque<u64>> = HashMap::new();
        for text in texts {
            places.clear();
            let n = (text.len() as u64 + 1).saturating_sub(window).max(1);
            for (at, &word) in (0u64..).zip(text) {
                if !found.units.contains_key(&word) {
                    continue;
                }
                let from = (at + 1).saturating_sub(window);
                let inside = places.entry(word).or_default();
                inside.push_back(at);
                while inside.front().is_some_and(|place| *place < from) {
                    inside.pop_front();
                }
                let to = inside.front().map_or(at + 1, |place| place + 1).min(n);
                found.add(word, found.n_units + from, found.n_units + to.max(from + 1));
            }
            found.n_units += n;
        }
        found
    }

    fn share(&self, n: u64) -> f64 {
        n as f64 / self.n_units.max(1) as f64
    }

    fn ranges(&self, word: u32) -> &[(u64, u64)] {
        self.units.get(&word).map_or(&[], Vec::as_slice)
    }

    /// The share of units that have a word.
    pub fn probability(&self, word: u32) -> f64 {
        self.share(self.ranges(word).iter().map(|(from, to)| to - from).sum())
    }

    /// The share of units that have both words.
    pub fn joint(&self, a: u32, b: u32) -> f64 {
        let (a, b) = (self.ranges(a), self.ranges(b));
        let (mut at, mut other, mut n) = (0, 0, 0);
        while at < a.len() && other < b.len() {
            let (from, to) = (a[at].0.max(b[other].0), a[at].1.min(b[other].1));
            n += to.saturating_sub(from);
            if a[at].1 <= b[other].1 {
                at += 1;
            } else {
                other += 1;
            }
        }
        self.share(n)
    }

    /// The normalised pointwise mutual information of two words, from −1 (never together) to 1 (always); 0 if one never
    /// occurs.
    fn npmi_of(&self, a: u32, b: u32) -> f64 {
        let apart = self.probability(a) * self.probability(b);
        if apart == 0.0 {
            return 0.0;
        }
        let joint = self.joint(a, b) + EPSILON;
        (joint / apart).ln() / -joint.ln()
    }
}

/// The mean over pairs of words; 0 of fewer than two.
fn mean_of_pairs(words: &[u32], value: impl Fn(u32, u32) -> f64) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for (at, &word) in words.iter().enumerate() {
        for &before in &words[..at] {
            sum += value(word, before);
            n += 1.0;
        }
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// The UMass coherence of the top words of a topic, most probable first; 0 is best. Units should be documents.
pub fn umass(units: &Cooccurrence, words: &[u32]) -> f64 {
    mean_of_pairs(words, |word, before| match units.probability(before) {
        0.0 => 0.0,
        p => ((units.joint(word, before) + EPSILON) / p).ln(),
    })
}

/// The mean NPMI of pairs of the top words of a topic, from −1 to 1.
pub fn npmi(units: &Cooccurrence, words: &[u32]) -> f64 {
    mean_of_pairs(words, |a, b| units.npmi_of(a, b))
}

/// The C_V coherence of the top words of a topic, from 0 to 1 in practice.
pub fn cv(units: &Cooccurrence, words: &[u32]) -> f64 {
    let vectors: Vec<Vec<f64>> =
        words.iter().map(|&a| words.iter().map(|&b| units.npmi_of(a, b)).collect()).collect();
    let sum: Vec<f64> =
        (0..words.len()).map(|at| vectors.iter().map(|vector| vector[at]).sum()).collect();
    let length = |vector: &[f64]| vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    let cosine = |vector: &Vec<f64>| {
        let product: f64 = vector.iter().zip(&sum).map(|(a, b)| a * b).sum();
        let lengths = length(vector) * length(&sum);
        if lengths > 0.0 { product / lengths } else { 0.0 }
    };
    vectors.iter().map(cosine).sum::<f64>() / words.len().max(1) as f64
}

/// The measures of all topics.
#[derive(Clone, Debug, PartialEq)]
pub struct Coherence {
    /// [`umass`] by documents, of each topic.
    pub umass: Vec<f64>,
    /// [`npmi`] by windows of ten words.
    pub npmi: Vec<f64>,
    /// [`cv`] by windows of 110 words.
    pub cv: Vec<f64>,
}

impl Coherence {
    /// The coherence of topics, given their top words and texts as lists of words.
    pub fn new(topics: &[Vec<u32>], texts: &[Vec<u32>]) -> Self {
        let [documents, near, far] = [usize::MAX, NPMI_WINDOW, CV_WINDOW]
            .map(|window| Cooccurrence::in_windows(topics, texts, window));
        let each = |measure: &(dyn Fn(&[u32]) -> f64 + Sync)| {
            parallel::map(topics, |topic| measure(topic))
        };
        Self {
            umass: each(&|topic| umass(&documents, topic)),
            npmi: each(&|topic| npmi(&near, topic)),
            cv: each(&|topic| cv(&far, topic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&[u32]; 4] = [&[0, 1, 2], &[0, 1], &[2, 3, OTHER], &[3]];

    fn texts() -> Vec<Vec<u32>> {
        TEXTS.iter().map(|text| text.to_vec()).collect()
    }

    #[test]
    fn umass_is_that_computed_by_hand() {
        let topics = [vec![0, 1, 2]];
        let units = Cooccurrence::in_windows(&topics, &texts(), usize::MAX);
        // Documents: 0 in 2 of 4, 1 in 2, 2 in 2; 0 and 1 together in 2, the others in 1.
        let expected = (0.0 + 2.0 * (0.5f64).ln()) / 3.0;
        assert!((umass(&units, &topics[0]) - expected).abs() < 1e-9);
        let counts = Csr::new(4, vec![0, 3, 5, 7, 8], vec![0, 1, 2, 0, 1, 2, 3, 3], vec![1.0; 8]);
        let by_rows = Cooccurrence::in_documents(&topics, &counts.unwrap());
        assert_eq!(umass(&by_rows, &topics[0]), umass(&units, &topics[0]));
    }

    #[test]
    fn npmi_is_that_computed_by_hand() {
        let topics = [vec![0, 1], vec![0, 3], vec![0, 2]];
        let units = Cooccurrence::in_windows(&topics, &texts(), 100);
        assert!((npmi(&units, &[0, 1]) - 1.0).abs() < 1e-9, "always together");
        let never = (EPSILON / 0.25).ln() / -EPSILON.ln();
        assert!((npmi(&units, &[0, 3]) - never).abs() < 1e-12);
        // p(0) = p(2) = ½, p(0, 2) = ¼: independent.
        assert!(npmi(&units, &[0, 2]).abs() < 1e-9);
        assert_eq!(npmi(&units, &[0]), 0.0, "one word has no pair");
        assert_eq!(npmi(&units, &[0, 77]), 0.0, "a word that never occurs");
    }

    #[test]
    fn windows_are_counted_as_a_slow_count_does() {
        let texts: Vec<Vec<u32>> =
            vec![vec![0, 1, 1, 2, 0, OTHER, 3, 0], vec![2, 0], vec![], vec![3, 3, 1, 0, 2]];
        for window in [1, 2, 3, 5, 50] {
            let all = vec![vec![0, 1, 2, 3]];
            let units = Cooccurrence::in_windows(&all, &texts, window);
            let mut windows: Vec<[bool; 4]> = Vec::new();
            for text in &texts {
                let mut is_in = [false; 4];
                let mut set = |word: u32, to: bool| {
                    if word != OTHER {
                        is_in[word as usize] = to;
                    }
                    is_in
                };
                let first = text.len().min(window);
                let mut now = [false; 4];
                text[..first].iter().for_each(|&word| now = set(word, true));
                windows.push(now);
                for end in first..text.len() {
                    set(text[end - window], false);
                    windows.push(set(text[end], true));
                }
            }
            let share = |a: u32, b: u32| {
                let both = windows.iter().filter(|w| w[a as usize] && w[b as usize]).count();
                both as f64 / windows.len() as f64
            };
            for a in 0..4 {
                assert_eq!(units.probability(a), share(a, a), "{window}");
                (0..4).for_each(|b| assert_eq!(units.joint(a, b), share(a, b), "{window}"));
            }
        }
    }

    #[test]
    fn cv_is_one_where_words_are_always_together() {
        let texts = vec![vec![0, 1], vec![1, 0], vec![2], vec![3, 2]];
        let units = Cooccurrence::in_windows(&[vec![0, 1], vec![0, 2]], &texts, 110);
        assert!((cv(&units, &[0, 1]) - 1.0).abs() < 1e-9);
        assert!(cv(&units, &[0, 2]) < 0.5, "{}", cv(&units, &[0, 2]));
        let all = Coherence::new(&[vec![0, 1]], &texts);
        assert_eq!((all.umass.len(), all.npmi.len(), all.cv.len()), (1, 1, 1));
    }

    /// The figures of gensim 4.4 on texts that this makes, printed by
    ///
    /// ```python
    /// from gensim.corpora import Dictionary
    /// from gensim.models import CoherenceModel
    /// state, texts = 1, []
    /// def draw(n):
    ///     global state
    ///     state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    ///     return (state >> 33) % n
    /// for i in range(60):
    ///     topic = i % 3
    ///     texts.append([str(draw(8) + 8 * topic if draw(4) else draw(24)) for _ in range(5 + draw(200))])
    /// topics = [[str(w) for w in t] for t in ([0, 1, 2, 3], [8, 9, 17, 2], [16, 17, 18, 19, 20])]
    /// words = Dictionary(texts)
    /// for name in ("u_mass", "c_npmi", "c_v"):
    ///     arguments = {"corpus": [words.doc2bow(t) for t in texts]} if name == "u_mass" else {"texts": texts}
    ///     model = CoherenceModel(topics=topics, dictionary=words, coherence=name, processes=1, topn=5, **arguments)
    ///     print(name, model.get_coherence_per_topic())
    /// ```
    #[test]
    fn coherence_is_that_of_gensim() {
        let mut state = 1u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut texts: Vec<Vec<u32>> = Vec::new();
        for i in 0..60 {
            let topic = i % 3;
            let length = 5 + draw(200);
            let mut word = || match draw(4) {
                0 => draw(24),
                _ => draw(8) + 8 * topic,
            };
            texts.push((0..length).map(|_| word() as u32).collect());
        }
        let topics = [vec![0, 1, 2, 3], vec![8, 9, 17, 2], vec![16, 17, 18, 19, 20]];
        let found = Coherence::new(&topics, &texts);
        let expected = [
            (found.umass, [-0.16726563305234135, -0.25772639995057006, -0.18788138723921483]),
            (found.npmi, [0.1412142645437576, -0.053704586991657866, 0.1774281521506085]),
            (found.cv, [0.5116132915367416, 0.537254562648608, 0.40638216582616016]),
        ];
        for (found, expected) in expected {
            for (a, b) in found.iter().zip(expected) {
                assert!((a - b).abs() < 1e-9, "{found:?} {expected:?}");
            }
        }
    }
}
