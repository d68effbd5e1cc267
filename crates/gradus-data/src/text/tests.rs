//! Vectorizers against slow, obvious ones.

use super::*;
use crate::Matrix;
use gradus_base::random::Stream;
use gradus_file::{Reader, Writer};
use std::collections::BTreeMap;

fn counts() -> TextOptions {
    TextOptions { weights: TextWeights::Counts, ..TextOptions::default() }
}

/// Documents of made words, some of them not ASCII.
fn made(n: usize, seed: u64) -> Vec<String> {
    let mut stream = Stream::new(seed, "text.tests", 0);
    (0..n)
        .map(|_| {
            let words = (0..stream.below(30)).map(|_| {
                let at = stream.below(60).min(stream.below(60));
                let word = format!("{}{at}", ["w", "été", "Ω", "X"][at as usize % 4]);
                word + [" ", ", ", ".\n", "-"][stream.below(4) as usize]
            });
            words.collect()
        })
        .collect()
}

fn refs(documents: &[String]) -> Vec<&str> {
    documents.iter().map(String::as_str).collect()
}

/// Terms with their counts by document, one after another.
fn slow(documents: &[&str], options: &TextOptions) -> Vec<BTreeMap<String, f64>> {
    let stop = options.stop_list();
    let one = |document: &&str| {
        let text = if options.lowercase { document.to_lowercase() } else { (*document).to_owned() };
        let words: Vec<&str> = text
            .split(|c| !words::is_word_char(c))
            .filter(|word| word.chars().count() > 1 && !stop.iter().any(|s| s == word))
            .collect();
        let mut found = BTreeMap::new();
        for n in options.min_ngram..=options.max_ngram {
            for words in words.windows(n) {
                *found.entry(words.join(" ")).or_insert(0.0) += 1.0;
            }
        }
        found
    };
    documents.iter().map(one).collect()
}

#[test]
fn counts_are_those_of_a_slow_count() {
    let documents = made(300, 1);
    let documents = refs(&documents);
    let stop_words = vec!["w4".to_owned(), "X7".to_owned()];
    for options in [
        counts(),
        TextOptions { lowercase: false, ..counts() },
        TextOptions { max_ngram: 3, stop_words: stop_words.clone(), ..counts() },
        TextOptions { min_ngram: 2, max_ngram: 2, min_df: 3.0, ..counts() },
        TextOptions { min_df: 0.1, max_df: 0.5, stop_words, ..counts() },
    ] {
        let expected = slow(&documents, &options);
        let mut df: BTreeMap<&str, usize> = BTreeMap::new();
        expected.iter().flat_map(BTreeMap::keys).for_each(|t| *df.entry(t).or_default() += 1);
        let (least, most) = options.bounds(documents.len()).unwrap();
        df.retain(|_, df| (least..=most).contains(&(*df as f64)));
        let (learned, x) = Vectorizer::learn(&documents, &options).unwrap();
        let terms: Vec<&str> = learned.terms().unwrap().iter().collect();
        assert_eq!(terms, df.keys().copied().collect::<Vec<_>>());
        assert_eq!(learned.encode(&documents).unwrap(), x, "{options:?}");
        for (row, expected) in expected.iter().enumerate() {
            let (columns, values) = x.row(row);
            assert!(columns.is_sorted_by(|a, b| a < b));
            let found: BTreeMap<&str, f64> =
                columns.iter().zip(values).map(|(&c, &v)| (terms[c as usize], v)).collect();
            let expected: BTreeMap<&str, f64> = expected
                .iter()
                .filter(|(term, _)| df.contains_key(term.as_str()))
                .map(|(term, &count)| (term.as_str(), count))
                .collect();
            assert_eq!(found, expected, "document {row}, {options:?}");
            let alone = learned.encode(&documents[row..=row]).unwrap();
            assert_eq!(alone.row(0), x.row(row));
        }
    }
}

#[test]
fn blocks_and_threads_do_not_matter() {
    // More text than a block holds, and one document that is a block of its own.
    let mut documents = made(40_000, 2);
    documents.insert(7, documents.concat());
    let documents = refs(&documents);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Vectorizer::learn(&documents, &TextOptions::default()).unwrap())
    };
    let (one, x) = with(1);
    let (three, same) = with(3);
    assert_eq!(one, three);
    assert!(x == same);
    let expected = slow(&documents[7..8], &TextOptions::default());
    assert_eq!(x.row(7).0.len(), expected[0].len());
}

#[test]
fn tfidf_by_hand() {
    let documents = ["aa bb bb", "aa", "cc aa cc cc", ""];
    let (learned, x) = Vectorizer::learn(&documents, &TextOptions::default()).unwrap();
    let idf = |df: f64| (5.0 / (1.0 + df)).ln() + 1.0;
    assert_eq!(learned.idf(), [idf(3.0), idf(1.0), idf(1.0)]);
    let length = (idf(3.0).powi(2) + (2.0 * idf(1.0)).powi(2)).sqrt();
    let (columns, values) = x.row(0);
    assert_eq!(columns, [0, 1]);
    assert!((values[0] - idf(3.0) / length).abs() < 1e-15);
    assert!((values[1] - 2.0 * idf(1.0) / length).abs() < 1e-15);
    assert_eq!(x.row(1), (&[0][..], &[1.0][..]));
    assert_eq!(x.row(3), (&[][..], &[][..]));
    let plain = TextOptions {
        sublinear: true,
        smooth: false,
        norm: TextNorm::None,
        ..TextOptions::default()
    };
    let (_, x) = Vectorizer::learn(&documents, &plain).unwrap();
    let expected = (1.0 + 3.0f64.ln()) * (4.0f64.ln() + 1.0);
    assert!((x.row(2).1[1] - expected).abs() < 1e-15);
    let l1 = TextOptions { norm: TextNorm::L1, ..TextOptions::default() };
    let (_, x) = Vectorizer::learn(&documents, &l1).unwrap();
    assert!((x.row(2).1.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    let binary = TextOptions { weights: TextWeights::Binary, ..TextOptions::default() };
    let (_, x) = Vectorizer::learn(&documents, &binary).unwrap();
    assert_eq!(x.row(2), (&[0, 2][..], &[1.0, 1.0][..]));
}

#[test]
fn the_most_frequent_terms_are_kept() {
    let documents = ["dd cc bb aa", "dd cc", "dd ee ee"];
    let options = |n| TextOptions { max_features: Some(n), ..counts() };
    let terms = |n| {
        let (learned, _) = Vectorizer::learn(&documents, &options(n)).unwrap();
        learned.terms().unwrap().iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(terms(1), ["dd"]);
    // Of equally frequent terms the first.
    assert_eq!(terms(2), ["cc", "dd"]);
    assert_eq!(terms(4), ["aa", "cc", "dd", "ee"]);
    assert_eq!(terms(9).len(), 5);
}

#[test]
fn hashed_terms_need_no_vocabulary() {
    // The values that other implementations publish.
    for (text, hash) in
        [("", 0), ("a", 0x3c25_69b2), ("hello", 0x248b_fa47), ("hello, world", 0x149b_bb7f)]
    {
        assert_eq!(vectorizer::murmur3(text.as_bytes()), hash, "{text:?}");
    }
    let documents = made(200, 3);
    let documents = refs(&documents);
    for n_hashed in [1, 7, 1 << 20] {
        let options = TextOptions { n_hashed: Some(n_hashed), ..counts() };
        let (learned, x) = Vectorizer::learn(&documents, &options).unwrap();
        assert_eq!((learned.n_features(), x.n_cols()), (n_hashed, n_hashed));
        assert_eq!(learned.encode(&documents).unwrap(), x);
        // The signed counts of a document add up whatever the number of features.
        for (row, terms) in slow(&documents, &options).iter().enumerate() {
            let sign = |t: &str| {
                if vectorizer::murmur3(t.as_bytes()).cast_signed() < 0 { -1.0 } else { 1.0 }
            };
            let expected: f64 = terms.iter().map(|(t, n)| n * sign(t)).sum();
            assert_eq!(x.row(row).1.iter().sum::<f64>(), expected);
        }
    }
    let options = TextOptions { n_hashed: Some(64), ..TextOptions::default() };
    let (learned, x) = Vectorizer::learn(&documents, &options).unwrap();
    assert_eq!((learned.idf().len(), learned.feature_names()[63].as_str()), (64, "hash_63"));
    Matrix::from(x).check_finite().unwrap();
}

#[test]
fn what_leaves_nothing_is_refused() {
    let said = |documents: &[&str], options: &TextOptions| {
        Vectorizer::learn(documents, options).unwrap_err().to_string()
    };
    let fine = TextOptions::default();
    assert!(said(&[], &fine).contains("no documents"));
    assert!(said(&["", " a ! "], &fine).contains("2 documents have no word"));
    let english = TextOptions { stop_words: vec!["english".into()], ..TextOptions::default() };
    assert!(said(&["the of and"], &english).contains("stop words"));
    let rare = TextOptions { min_df: 2.0, ..TextOptions::default() };
    assert!(said(&["aa", "bb"], &rare).contains("none of the 2 terms"));
    for (options, name) in [
        (TextOptions { min_ngram: 0, ..TextOptions::default() }, "min_ngram"),
        (TextOptions { min_ngram: 2, ..TextOptions::default() }, "max_ngram"),
        (TextOptions { max_ngram: 21, ..TextOptions::default() }, "max_ngram"),
        (TextOptions { min_df: -1.0, ..TextOptions::default() }, "min_df"),
        (TextOptions { min_df: 1.5, ..TextOptions::default() }, "min_df"),
        (TextOptions { max_df: f64::NAN, ..TextOptions::default() }, "max_df"),
        (TextOptions { min_df: 2.0, max_df: 0.5, ..TextOptions::default() }, "max_df"),
        (TextOptions { max_features: Some(0), ..TextOptions::default() }, "max_features"),
        (TextOptions { n_hashed: Some(0), ..TextOptions::default() }, "n_hashed"),
    ] {
        let said = said(&["aa bb", "cc", "dd"], &options);
        assert!(said.contains(&format!("`{name}`")), "{said}");
    }
}

#[test]
fn a_file_keeps_it() {
    let documents = made(50, 4);
    for options in [
        TextOptions::default(),
        counts(),
        TextOptions { n_hashed: Some(8), ..TextOptions::default() },
    ] {
        let (learned, x) = Vectorizer::learn(&refs(&documents), &options).unwrap();
        let mut file = Writer::new("x");
        learned.write("t", &mut file);
        let mut file = Reader::from_bytes(file.to_bytes().unwrap()).unwrap();
        let read = Vectorizer::read(options.clone(), "t", &mut file).unwrap();
        assert_eq!(read, learned);
        assert_eq!(read.encode(&refs(&documents)).unwrap(), x);
        let json = serde_json::to_string(&learned).unwrap();
        assert_eq!(serde_json::from_str::<Vectorizer>(&json).unwrap(), learned);
    }
    let unsorted = r#"{"options":{"weights":"counts"},"terms":["b","a"]}"#;
    assert!(serde_json::from_str::<Vectorizer>(unsorted).is_err());
}

#[test]
fn files_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        TextFile::read(&path).unwrap()
    };
    let file = |text: &str, encoding| Some(TextFile { text: text.to_owned(), encoding });
    assert_eq!(read(b""), file("", None));
    assert_eq!(read("\u{feff}été\n".as_bytes()), file("été\n", None));
    assert_eq!(read(b"\xe9t\xe9 \x80"), file("été €", Some("Windows-1252")));
    let wide: Vec<u8> = "\u{feff}été".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read(&wide), file("été", Some("UTF-16")));
    assert_eq!(read(b"\x89PNG\r\n\x1a\n\0\0\0\x0d"), None);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    std::io::Write::write_all(&mut packed, b"packed words").unwrap();
    assert_eq!(read(&packed.finish().unwrap()), file("packed words", None));
}

#[test]
fn stop_words_may_be_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stop.txt");
    std::fs::write(&path, "aa\nBB\n").unwrap();
    let stop_words = vec![format!("@{}", path.display()), "cc".to_owned()];
    let options = TextOptions { stop_words, ..counts() };
    let (learned, _) = Vectorizer::learn(&["aa bb cc dd"], &options).unwrap();
    assert_eq!(learned.feature_names(), ["dd"]);
    // The model needs the file no more.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(learned.encode(&["aa dd"]).unwrap().nnz(), 1);
    let said = Vectorizer::learn(&["aa"], &options).unwrap_err().to_string();
    assert!(said.contains("`stop_words`") && said.contains("stop.txt"), "{said}");
}
