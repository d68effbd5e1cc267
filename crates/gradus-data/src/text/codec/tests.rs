//! Tests of token codecs.

use super::*;
use gradus_base::random::Stream;

const TEXT: &str =
    "The cat sat on the mat.\n  The cats sat; the mats — 1999 or 2001 — were flat.\n";

fn codecs() -> Vec<TokenCodec> {
    [TokenKind::Chars, TokenKind::Bytes, TokenKind::Bpe]
        .map(|kind| TokenCodec::learn(kind, &[TEXT, "flat cats"], 280).unwrap())
        .to_vec()
}

#[test]
fn any_bytes_come_back() {
    let mut stream = Stream::new(1, "codec", 0);
    let mut texts: Vec<Vec<u8>> = vec![
        Vec::new(),
        TEXT.into(),
        "日本語 and Ünïcödé 🦀".into(),
        b"\xff\xfe broken \xc3( utf-8 \xe2\x82".to_vec(),
        vec![b' '; 500],
        vec![b'a'; 500],
    ];
    texts.extend((0..200).map(|n| (0..n).map(|_| stream.below(256) as u8).collect()));
    for codec in codecs() {
        for text in &texts {
            let tokens = codec.encode(text);
            assert!(tokens.iter().all(|&token| token != END && (token as usize) < codec.len()));
            assert_eq!(&codec.decode(&tokens), text, "{:?}", codec.kind());
        }
    }
}

#[test]
fn a_codec_comes_back_from_its_record() {
    for codec in codecs() {
        let record = serde_json::to_string(&codec).unwrap();
        assert_eq!(serde_json::from_str::<TokenCodec>(&record).unwrap(), codec);
    }
    for broken in [
        r#"{"kind":"chars","chars":"ba"}"#,
        r#"{"kind":"bpe","merges":[[256,1]]}"#,
        r#"{"kind":"bpe","merges":[[97,98],[97,98]]}"#,
        // Each merge doubles its token: 2 to the power of 40 bytes, if nobody looked.
        &format!(
            r#"{{"kind":"bpe","merges":[[97,97]{}]}}"#,
            (256..296).map(|at| format!(",[{at},{at}]")).collect::<String>()
        ),
    ] {
        assert!(serde_json::from_str::<TokenCodec>(broken).is_err(), "{broken}");
    }
}

/// Merges by hand, as in the paper: the counts of all pairs anew for each merge.
#[test]
fn merges_are_those_of_counting_all_pairs_anew() {
    let text = "low low low low low lower lower newest newest newest newest newest newest widest widest widest";
    let codec = TokenCodec::learn(TokenKind::Bpe, &[text], 257 + 12).unwrap();
    let mut words: Vec<Vec<u32>> = Vec::new();
    for (at, word) in text.split(' ').enumerate() {
        let word = if at == 0 { word.to_owned() } else { format!(" {word}") };
        words.push(word.bytes().map(u32::from).collect());
    }
    let mut expected = Vec::new();
    while expected.len() < 12 {
        let mut counts = std::collections::BTreeMap::new();
        for word in &words {
            word.windows(2).for_each(|p| *counts.entry((p[0], p[1])).or_insert(0u64) += 1);
        }
        let most = *counts.values().max().unwrap();
        let pair = *counts.iter().find(|(_, count)| **count == most).unwrap().0;
        let new = 256 + expected.len() as u32;
        for word in &mut words {
            let mut merged = Vec::new();
            let mut at = 0;
            while at < word.len() {
                if at + 1 < word.len() && (word[at], word[at + 1]) == pair {
                    merged.push(new);
                    at += 2;
                } else {
                    merged.push(word[at]);
                    at += 1;
                }
            }
            *word = merged;
        }
        expected.push(pair);
    }
    assert_eq!(codec.merges.list(), expected);
}

#[test]
fn pairs_do_not_cross_words_and_blanks_join_the_word_after_them() {
    let mut found = Vec::new();
    let text = "  a1 bc,\n\n d\u{a0}e";
    // What is cut is put together again.
    let codec = &codecs()[2];
    assert_eq!(codec.decode(&codec.encode(text.as_bytes())), text.as_bytes());
    pairs::cut(text.as_bytes(), |piece| found.push(String::from_utf8_lossy(piece).into_owned()));
    assert_eq!(found, [" ", " a", "1", " bc", ",", "\n\n", " d", "\u{a0}", "e"]);
}

#[test]
fn too_small_a_vocabulary_is_refused_by_number() {
    let error = TokenCodec::learn(TokenKind::Bpe, &["abc"], 256).unwrap_err().to_string();
    assert!(
        error.contains("vocabulary") && error.contains("256") && error.contains("257"),
        "{error}"
    );
}
