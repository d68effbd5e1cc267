use super::*;
use crate::{Documents, Phrases, Words};
use gradus_base::random::Stream;
use gradus_data::{TokenRule, Tokenizer};
use std::collections::BTreeMap;

const SIDES: [ContextSide; 3] = [ContextSide::Symmetric, ContextSide::Left, ContextSide::Right];
const WEIGHTS: [DistanceWeights; 3] =
    [DistanceWeights::Harmonic, DistanceWeights::Flat, DistanceWeights::Dynamic];

/// The slow oracle: every pair of places of every sentence.
fn naive(sentences: &Sentences, window: &ContextWindow) -> BTreeMap<(u32, u32), f64> {
    let mut counts = BTreeMap::new();
    for sentence in sentences.iter() {
        for i in 0..sentence.len() {
            for j in 0..sentence.len() {
                let distance = i.abs_diff(j);
                let on_side = match window.side {
                    ContextSide::Symmetric => true,
                    ContextSide::Left => j < i,
                    ContextSide::Right => j > i,
                };
                if distance == 0 || distance > window.size || !on_side {
                    continue;
                }
                let weight = match window.weights {
                    DistanceWeights::Harmonic => 1.0 / distance as f64,
                    DistanceWeights::Flat => 1.0,
                    DistanceWeights::Dynamic => {
                        (window.size - distance + 1) as f64 / window.size as f64
                    }
                };
                *counts.entry((sentence[i], sentence[j])).or_insert(0.0) += weight;
            }
        }
    }
    counts
}

fn entries(matrix: &Csr<f64>) -> Vec<((u32, u32), f64)> {
    let row = |row: usize| {
        let (columns, values) = matrix.row(row);
        columns.iter().zip(values).map(move |(&column, &value)| ((row as u32, column), value))
    };
    (0..matrix.n_rows()).flat_map(row).collect()
}

/// Sentences of words drawn by a power law.
fn random(seed: u64, n_sentences: u64, n_words: u64, longest: u64) -> Sentences {
    let mut stream = Stream::new(seed, "cooccurrence.tests", 0);
    let zipf = gradus_base::random::Zipf::new(n_words, 1.0).unwrap();
    (0..n_sentences)
        .map(|_| {
            let length = stream.below(longest + 1);
            (0..length).map(|_| zipf.sample(&mut stream) as u32 - 1).collect::<Vec<u32>>()
        })
        .collect()
}

#[test]
fn counts_are_those_of_the_slow_oracle() {
    for (seed, (n_sentences, n_words, longest)) in
        (0u64..).zip([(0, 3, 5), (1, 1, 1), (3, 1, 9), (40, 7, 12), (60, 300, 40), (5, 5000, 900)])
    {
        let sentences = random(seed, n_sentences, n_words, longest);
        for side in SIDES {
            for weights in WEIGHTS {
                for size in [1, 2, 5, 30] {
                    let window = ContextWindow { size, side, weights };
                    let got: Csr<f64> = count(&sentences, n_words as usize, &window, None).unwrap();
                    assert_eq!((got.n_rows(), got.n_cols()), (n_words as usize, n_words as usize));
                    let got = entries(&got);
                    let want: Vec<_> = naive(&sentences, &window).into_iter().collect();
                    assert_eq!(got.len(), want.len());
                    for ((place, got), (wanted, want)) in got.into_iter().zip(want) {
                        assert_eq!(place, wanted, "columns ascend");
                        // Beyond a window of 22 a weight may be off by 2⁻²⁹.
                        assert!((got - want).abs() < 1e-7 * want, "{window:?}: {got} {want}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_case_counted_by_hand() {
    // a b a c
    let sentences: Sentences = [[0, 1, 0, 2]].into_iter().collect();
    let window = |side, weights| ContextWindow { size: 2, side, weights };
    let counted = |side, weights| {
        entries(&count::<f64>(&sentences, 3, &window(side, weights), None).unwrap())
    };
    assert_eq!(
        counted(ContextSide::Symmetric, DistanceWeights::Harmonic),
        [
            ((0, 0), 1.0),
            ((0, 1), 2.0),
            ((0, 2), 1.0),
            ((1, 0), 2.0),
            ((1, 2), 0.5),
            ((2, 0), 1.0),
            ((2, 1), 0.5)
        ]
    );
    assert_eq!(
        counted(ContextSide::Left, DistanceWeights::Flat),
        [((0, 0), 1.0), ((0, 1), 1.0), ((1, 0), 1.0), ((2, 0), 1.0), ((2, 1), 1.0)]
    );
    assert_eq!(
        counted(ContextSide::Right, DistanceWeights::Dynamic),
        [((0, 0), 0.5), ((0, 1), 1.0), ((0, 2), 1.0), ((1, 0), 1.0), ((1, 2), 0.5)]
    );
}

#[test]
fn symmetric_windows_give_symmetric_matrices_and_left_is_right_transposed() {
    for size in [3, 22, 23, 60] {
        let sentences = random(9, 80, 50, 70);
        for weights in WEIGHTS {
            let counted = |side| {
                let window = ContextWindow { size, side, weights };
                count::<f64>(&sentences, 50, &window, None).unwrap()
            };
            let both = counted(ContextSide::Symmetric);
            assert_eq!(both.transpose(), both);
            assert_eq!(counted(ContextSide::Left).transpose(), counted(ContextSide::Right));
            // One order of sentences is as good as another.
            let mut turned: Vec<Vec<u32>> = sentences.iter().map(<[u32]>::to_vec).collect();
            turned.reverse();
            let turned: Sentences = turned.into_iter().collect();
            let window = ContextWindow { size, side: ContextSide::Symmetric, weights };
            assert_eq!(count::<f64>(&turned, 50, &window, None).unwrap(), both);
        }
    }
}

#[test]
fn counts_depend_neither_on_threads_nor_on_the_memory_limit() {
    let sentences = random(11, 3000, 400, 60);
    for side in SIDES {
        let window = ContextWindow { size: 10, side, weights: DistanceWeights::Harmonic };
        let whole: Csr<f32> = count(&sentences, 400, &window, None).unwrap();
        // So little that there are many runs.
        let limit = (256 << 10) + 40_000;
        let rows = Rows { n_words: 400, side, weights: vec![1], block: 0 }.within(limit);
        let source = Source::Sentences(&sentences.words);
        assert!(most_places(&source, &rows, Some(limit)).unwrap() * 3 < source.len());
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                assert_eq!(count::<f32>(&sentences, 400, &window, None).unwrap(), whole);
                assert_eq!(count::<f32>(&sentences, 400, &window, Some(limit)).unwrap(), whole);
            });
        }
    }
}

/// A corpus whose words are in a file is counted as one in memory.
#[test]
fn a_corpus_on_disk_is_counted_to_the_same_bits() {
    let texts: Vec<String> = random(3, 900, 60, 30)
        .iter()
        .map(|sentence| sentence.iter().map(|word| format!("w{word} ")).collect())
        .collect();
    let tokenizer = Tokenizer { rule: TokenRule::Words, lowercase: true };
    let words =
        Words { tokenizer, shortest: 1, phrases: Phrases::NONE, min_count: 3, max_words: None };
    let in_memory = Corpus::new("test", &Documents::new(&texts), &words).unwrap();
    let streamed = Corpus::of_parts(
        "test",
        &mut |take| texts.chunks(100).try_for_each(|part| take(Documents::new(part)).map(|_| ())),
        &words,
    )
    .unwrap();
    let window =
        ContextWindow { size: 5, side: ContextSide::Left, weights: DistanceWeights::Harmonic };
    let want: Csr<f32> = count_corpus(&in_memory, &window, None).unwrap();
    assert!(want.nnz() > 100);
    for limit in [None, Some(200 << 10), Some(1 << 20)] {
        assert_eq!(count_corpus::<f32>(&streamed, &window, limit).unwrap(), want);
        assert_eq!(count_corpus::<f32>(&in_memory, &window, limit).unwrap(), want);
    }
}

#[test]
fn what_cannot_be_counted_is_named() {
    let sentences: Sentences = [[0, 1, 2]].into_iter().collect();
    let window =
        ContextWindow { size: 2, side: ContextSide::Symmetric, weights: DistanceWeights::Flat };
    let message = |result: Result<Csr<f32>>| result.unwrap_err().to_string();
    let error = message(count(&sentences, 2, &window, None));
    assert!(error.contains("word 2 is not below the number of different words, 2"), "{error}");
    let error = message(count(&sentences, 3, &window, Some(1 << 10)));
    assert!(error.contains("memory_limit") && error.contains("at least 1 megabytes"), "{error}");
    let wide = ContextWindow { size: 0, ..window };
    assert!(message(count(&sentences, 3, &wide, None)).contains("window"));
}

#[test]
fn a_long_sentence_is_counted_in_one_part() {
    let long: Sentences = [200_000, 5]
        .into_iter()
        .map(|length: u32| (0..length).map(|at| at % 3).collect::<Vec<u32>>())
        .collect();
    let window =
        ContextWindow { size: 4, side: ContextSide::Symmetric, weights: DistanceWeights::Dynamic };
    let whole: Csr<f64> = count(&long, 3, &window, None).unwrap();
    assert_eq!(count::<f64>(&long, 3, &window, Some(200 << 10)).unwrap(), whole);
}

/// The slow oracle of [`pmi`], from the definition.
fn slow_pmi(counts: &Csr<f64>, options: &Pmi) -> Vec<((u32, u32), f64)> {
    let all = entries(counts);
    let total: f64 = all.iter().map(|(_, n)| n).sum();
    let row = |i: u32| -> f64 { all.iter().filter(|(at, _)| at.0 == i).map(|(_, n)| n).sum() };
    let column = |j: u32| -> f64 { all.iter().filter(|(at, _)| at.1 == j).map(|(_, n)| n).sum() };
    let powers: f64 = (0..counts.n_cols() as u32)
        .map(column)
        .filter(|n| *n > 0.0)
        .map(|n| n.powf(options.smoothing))
        .sum();
    let information = |(i, j): (u32, u32), n: f64| {
        let of_context = column(j).powf(options.smoothing) / powers;
        ((n / total) / ((row(i) / total) * of_context)).ln() - options.shift.ln()
    };
    all.iter()
        .map(|&(at, n)| (at, information(at, n)))
        .filter(|(_, x)| !options.positive || *x > 0.0)
        .collect()
}

#[test]
fn mutual_information_is_that_of_the_definition() {
    let sentences = random(21, 50, 30, 20);
    let window =
        ContextWindow { size: 3, side: ContextSide::Left, weights: DistanceWeights::Harmonic };
    let counts: Csr<f64> = count(&sentences, 30, &window, None).unwrap();
    for positive in [true, false] {
        for (shift, smoothing) in [(1.0, 1.0), (1.0, 0.75), (5.0, 0.75), (0.5, 0.0)] {
            let options = Pmi { positive, shift, smoothing };
            let got = entries(&pmi(&counts, &options).unwrap());
            let want = slow_pmi(&counts, &options);
            assert_eq!(got.len(), want.len(), "{options:?}");
            for (got, want) in got.iter().zip(&want) {
                assert_eq!(got.0, want.0);
                assert!((got.1 - want.1).abs() < 1e-12 * (1.0 + want.1.abs()));
            }
        }
    }
    // Unsmoothed PMI of symmetric counts is symmetric, and another unit of the counts changes nothing.
    let window = ContextWindow { side: ContextSide::Symmetric, ..window };
    let counts: Csr<f64> = count(&sentences, 30, &window, None).unwrap();
    let plain = Pmi { positive: false, shift: 1.0, smoothing: 1.0 };
    let information = pmi(&counts, &plain).unwrap();
    let scaled = counts.with_values(counts.values().iter().map(|n| 64.0 * n).collect());
    for other in [information.transpose(), pmi(&scaled, &plain).unwrap()] {
        assert_eq!(other.indices(), information.indices());
        for (a, b) in other.values().iter().zip(information.values()) {
            assert!((a - b).abs() < 1e-12);
        }
    }
}

#[test]
fn options_of_mutual_information_are_checked() {
    let counts = Csr::new(1, vec![0, 1], vec![0], vec![1.0f64]).unwrap();
    let message = |options: Pmi| pmi(&counts, &options).unwrap_err().to_string();
    assert!(message(Pmi { shift: 0.0, ..Pmi::default() }).contains("shift"));
    assert!(message(Pmi { smoothing: 1.5, ..Pmi::default() }).contains("smoothing"));
    let negative = Csr::new(1, vec![0, 1], vec![0], vec![-1.0f64]).unwrap();
    assert!(pmi(&negative, &Pmi::default()).unwrap_err().to_string().contains("-1"));
    let nothing = Csr::<f64>::new(2, vec![0, 0, 0], vec![], vec![]).unwrap();
    assert_eq!(pmi(&nothing, &Pmi::default()).unwrap(), nothing);
}
