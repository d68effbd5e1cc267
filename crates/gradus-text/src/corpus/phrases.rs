//! Phrases: pairs of words that stand together more often than by chance become one word.

use super::read::Vocabulary;
use super::tokens::{END, Tokens};
use gradus_base::Result;
use hashbrown::HashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How strongly two words belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PhraseScore {
    /// Words stay alone
    #[default]
    Off,
    /// `(n(a b) − min_count) N / (n(a) n(b))` in a text of `N` words, as word2vec's program for phrases
    Word2phrase,
    /// Normalised mutual information `ln(p(a b) / (p(a) p(b))) / −ln p(a b)`, from −1 to 1
    Npmi,
}

impl PhraseScore {
    /// The score from which on pairs are phrases, if none is given.
    pub(crate) fn threshold(self) -> f64 {
        match self {
            Self::Off => f64::INFINITY,
            Self::Word2phrase => 100.0,
            Self::Npmi => 0.5,
        }
    }

    fn of(self, pair: u64, (a, b): (u64, u64), n: u64, min_count: u64) -> f64 {
        let [pair, a, b, n, least] = [pair, a, b, n, min_count].map(|count| count as f64);
        match self {
            Self::Off => f64::NEG_INFINITY,
            Self::Word2phrase => (pair - least) * n / (a * b),
            // A text of nothing but the pair.
            Self::Npmi if pair >= n => 1.0,
            Self::Npmi => ((pair / n) / ((a / n) * (b / n))).ln() / -(pair / n).ln(),
        }
    }
}

/// The rule by which pairs of words become phrases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phrases {
    /// How strongly two words belong together.
    pub score: PhraseScore,
    /// The score from which on a pair is a phrase.
    pub threshold: f64,
    /// How often pairs are looked for: the second time, phrases are parts of longer ones.
    pub passes: usize,
}

impl Phrases {
    /// No phrases.
    pub const NONE: Self = Self { score: PhraseScore::Off, threshold: f64::INFINITY, passes: 0 };
}

/// Pairs that are counted at most; when there are more, the rarest are forgotten, as word2vec's program does.
const MOST_PAIRS: usize = 1 << 25;

/// Joins the pairs of a text that are phrases, and gives the numbers of these. Their words and those that are left count anew.
pub(super) fn join(
    vocabulary: &mut Vocabulary,
    mut tokens: Tokens,
    phrases: &Phrases,
    min_count: u64,
) -> Result<(Tokens, Vec<u32>)> {
    let mut all = Vec::new();
    for _ in 0..phrases.passes {
        let found = find(vocabulary, &tokens, phrases, min_count)?;
        if found.is_empty() {
            break;
        }
        all.extend(found.values());
        let mut last = None;
        tokens = tokens.rewrite(|tokens, out| {
            for &token in tokens {
                let phrase = last.and_then(|last| found.get(&(last, token)).map(|at| (last, *at)));
                match phrase {
                    Some((first, phrase)) => {
                        for word in [first, token] {
                            vocabulary.counts[word as usize] -= 1;
                        }
                        vocabulary.counts[phrase as usize] += 1;
                        out.push(phrase);
                        last = None;
                    }
                    None => {
                        out.extend(last.take());
                        match token {
                            END => out.push(END),
                            word => last = Some(word),
                        }
                    }
                }
            }
        })?;
    }
    all.sort_unstable();
    all.dedup();
    Ok((tokens, all))
}

/// The pairs that are phrases, and their numbers.
fn find(
    vocabulary: &mut Vocabulary,
    tokens: &Tokens,
    phrases: &Phrases,
    min_count: u64,
) -> Result<HashMap<(u32, u32), u32>> {
    let (mut pairs, mut last) = (HashMap::<(u32, u32), u32>::new(), None);
    let mut forgotten = 0;
    tokens.each(|tokens| {
        for &token in tokens {
            let word =
                (token != END && vocabulary.counts[token as usize] >= min_count).then_some(token);
            if let (Some(a), Some(b)) = (last, word) {
                *pairs.entry((a, b)).or_default() += 1;
            }
            last = word;
        }
        if pairs.len() > MOST_PAIRS {
            forgotten += 1;
            pairs.retain(|_, n| *n > forgotten);
        }
        Ok(())
    })?;
    let n: u64 = vocabulary.counts.iter().sum();
    let is_phrase = |&(&(a, b), &pair): &(&(u32, u32), &u32)| {
        let of_words = (vocabulary.counts[a as usize], vocabulary.counts[b as usize]);
        let pair = u64::from(pair);
        pair >= min_count && phrases.score.of(pair, of_words, n, min_count) >= phrases.threshold
    };
    let mut found: Vec<(u32, u32)> =
        pairs.iter().filter(is_phrase).map(|(&pair, _)| pair).collect();
    // The table has an order of its own.
    found.sort_unstable();
    let named = found.into_iter().map(|(a, b)| {
        let phrase = [a, b].map(|at| vocabulary.words.get(at as usize)).join("_");
        ((a, b), vocabulary.add(&phrase))
    });
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use crate::corpus::{Corpus, PhraseScore, Phrases, Words};
    use crate::documents::Documents;
    use gradus_data::{TokenRule, Tokenizer};

    fn words(score: PhraseScore, threshold: f64, passes: usize) -> Words {
        Words {
            tokenizer: Tokenizer { rule: TokenRule::Words, lowercase: true },
            shortest: 1,
            phrases: Phrases { score, threshold, passes },
            min_count: 2,
            max_words: None,
        }
    }

    fn read(corpus: &Corpus) -> Vec<String> {
        let mut all = Vec::new();
        corpus
            .each_document(|document| {
                let words = document.iter().map(|&at| corpus.words().get(at as usize));
                all.push(words.collect::<Vec<_>>().join(" "));
                true
            })
            .unwrap();
        all
    }

    #[test]
    fn scores_are_those_of_hand() {
        // 5 times together, of 10 and 20 in 1000 words.
        let score = |score: PhraseScore| score.of(5, (10, 20), 1000, 2);
        assert!((score(PhraseScore::Word2phrase) - 15.0).abs() < 1e-12);
        let npmi = (0.005f64 / (0.01 * 0.02)).ln() / -(0.005f64.ln());
        assert!((score(PhraseScore::Npmi) - npmi).abs() < 1e-12);
        assert_eq!(PhraseScore::Npmi.of(3, (3, 3), 3, 1), 1.0);
    }

    /// Words that are only there together are one word; what stands together by chance stays.
    #[test]
    fn pairs_become_words_from_left_to_right() {
        let texts = ["New York is big", "new york new york", "is it big", "it is", "york, it is"];
        let documents = Documents::new(texts.repeat(3));
        let corpus = Corpus::new("test", &documents, &words(PhraseScore::Npmi, 0.7, 1)).unwrap();
        let want = ["new_york is big", "new_york new_york", "is it big", "it is", "york it is"];
        assert_eq!(read(&corpus), want.repeat(3));
        let at = corpus.words().iter().position(|word| word == "new_york").unwrap();
        assert_eq!((corpus.counts()[at], corpus.phrases()), (9, &[at as u32][..]));
        // `new` is no word of its own any more.
        assert!(corpus.words().iter().all(|word| word != "new"));
        assert_eq!(corpus.n_read(), 48);
        let off = Corpus::new("test", &documents, &words(PhraseScore::Off, 0.0, 1)).unwrap();
        assert_eq!(read(&off)[1], "new york new york");
        assert!(off.phrases().is_empty());
    }

    #[test]
    fn a_second_pass_joins_phrases_and_parts_give_the_same() {
        let texts = ["the new york times", "a times new york times", "the a times"].repeat(4);
        let two = words(PhraseScore::Npmi, 0.6, 2);
        let corpus = Corpus::new("test", &Documents::new(&texts), &two).unwrap();
        assert_eq!(read(&corpus)[0], "the new_york_times");
        let mut parts = |take: &mut dyn FnMut(Documents) -> gradus_base::Result<bool>| {
            texts.chunks(5).try_for_each(|part| take(Documents::new(part)).map(|_| ()))
        };
        let streamed = Corpus::of_parts("test", &mut parts, &two).unwrap();
        assert_eq!(read(&streamed), read(&corpus));
        assert_eq!((streamed.words(), streamed.phrases()), (corpus.words(), corpus.phrases()));
    }
}
