//! Tests of encoders and decoders.

use super::*;
use crate::layers::Pass;
use crate::weights::Weights;
use gradus_core::density::Density as _;
use gradus_core::estimator::Model as _;
use gradus_core::translate::Translate as _;
use gradus_data::END_TOKEN;
use gradus_file::{Reader, Writer};

/// Strings of letters, and what a function makes of them.
fn strings(n: usize, seed: u64, make: impl Fn(&[char]) -> String) -> TextPairs {
    let mut stream = Stream::new(seed, "strings", 0);
    let mut sources = Vec::new();
    for _ in 0..n {
        let length = 1 + stream.index(6);
        let letters: Vec<char> =
            (0..length).map(|_| char::from(b'a' + stream.index(8) as u8)).collect();
        sources.push(letters);
    }
    let targets: Vec<String> = sources.iter().map(|letters| make(letters)).collect();
    let sources: Vec<String> = sources.into_iter().map(String::from_iter).collect();
    TextPairs::new(&sources, &targets).unwrap()
}

fn reversed(letters: &[char]) -> String {
    letters.iter().rev().collect()
}

fn small() -> Seq2Seq {
    Seq2Seq::new().layers(1).dimension(32).heads(2).context(12).batch_size(16)
}

#[test]
fn strings_are_reversed() {
    let params = small().dimension(64).batch_size(32).learning_rate(3e-3).max_iter(600usize);
    let fitted = params.fit(&strings(2000, 1, reversed)).unwrap();
    let exact = fitted.report.trace.last().unwrap().measures.last().unwrap();
    assert!(exact.name == "exact match" && exact.value > 0.9, "{exact:?}");
    let test = strings(200, 2, reversed);
    for beams in [1, 4] {
        let found = fitted.translate(&test.sources(), beams).unwrap();
        let exact = found.iter().zip(test.targets()).filter(|(a, b)| *a == b).count();
        assert!(exact > 180, "{exact} of 200 with {beams} beams");
    }
}

#[test]
fn a_search_with_all_beams_finds_the_most_probable_target() {
    let params = Seq2Seq::new().layers(1).dimension(16).heads(2).context(4).batch_size(8);
    let data = TextPairs::new(&["ab", "ba", "a", "b"], &["ba", "a", "b", "ab"]).unwrap();
    let fitted = params.max_iter(20usize).fit(&data).unwrap();
    // All targets of up to three tokens that are no halves of bytes, and those that never end.
    let mut targets = vec![String::new()];
    for length in 0..3 {
        let longer: Vec<String> = targets
            .iter()
            .filter(|target| target.len() == length)
            .flat_map(|target| ["a", "b"].map(|letter| format!("{target}{letter}")))
            .collect();
        targets.extend(longer);
    }
    for source in ["ab", "a"] {
        let pairs = TextPairs::new(&vec![source; targets.len()], &targets).unwrap();
        let logs = fitted.log_density(&pairs).unwrap();
        let best = (0..targets.len()).max_by(|a, b| logs[*a].total_cmp(&logs[*b])).unwrap();
        let tokens = [fitted.codec().encode(source.as_bytes()), vec![END_TOKEN]].concat();
        let (_, wide) = fitted.network.search(fitted.weights(), &[&tokens], 400).remove(0);
        let (_, greedy) = fitted.network.search(fitted.weights(), &[&tokens], 1).remove(0);
        assert!(wide >= logs[best] - 1e-4 && wide >= greedy - 1e-6, "{source}: {wide} {greedy}");
    }
}

#[test]
fn the_log_probability_of_what_is_found_is_that_of_the_density() {
    let fitted = small().max_iter(200usize).fit(&strings(300, 1, reversed)).unwrap();
    let sources = ["abc", "hgfedc", "a"];
    for beams in [1, 3] {
        let tokens: Vec<Vec<u32>> = sources
            .iter()
            .map(|source| [fitted.codec().encode(source.as_bytes()), vec![END_TOKEN]].concat())
            .collect();
        let tokens: Vec<&[u32]> = tokens.iter().map(Vec::as_slice).collect();
        let found = fitted.network.search(fitted.weights(), &tokens, beams);
        let texts = fitted.translate(&sources, beams).unwrap();
        let logs = fitted.log_density(&TextPairs::new(&sources, &texts).unwrap()).unwrap();
        for ((_, log), expected) in found.iter().zip(logs) {
            assert!((log - expected).abs() < 1e-3, "{beams}: {log} {expected}");
        }
        // One at a time as together.
        for (source, text) in sources.iter().zip(&texts) {
            assert_eq!(&fitted.translate(&[source], beams).unwrap()[0], text);
        }
    }
    assert!(fitted.translate(&[], 1).unwrap().is_empty());
}

#[test]
fn later_tokens_of_a_target_and_padding_of_a_source_change_nothing() {
    let architecture = small().architecture(30);
    let mut layout = Layout::new();
    let network = Seq2SeqNetwork::new(&architecture, &mut layout).unwrap();
    let weights = Weights::init(&layout, 1, &Device::flex());
    let pass = Pass::predicting();
    let logits = |sources: &[&[u32]], target: &[u32]| {
        let memory = network.encode(&weights, sources, &pass);
        let targets = vec![target; sources.len()];
        crate::device::numbers(network.decode(&weights, &targets, &memory, &pass))
    };
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
    let alone = logits(&[&[5, 6, 0]], &[0, 7, 8, 9]);
    let other = logits(&[&[5, 6, 0]], &[0, 7, 1, 2]);
    assert!(near(&alone[..60], &other[..60]) && !near(&alone[60..], &other[60..]));
    let beside = logits(&[&[5, 6, 0], &[1, 2, 3, 4, 5, 6, 0]], &[0, 7, 8, 9]);
    assert!(near(&alone, &beside[..120]));
    assert!(!near(&alone, &logits(&[&[6, 5, 0]], &[0, 7, 8, 9])));
}

#[test]
fn what_cannot_be_learned_or_translated_is_refused_by_cause() {
    let none: [&str; 0] = [];
    let error = small().fit(&TextPairs::new(&none, &none).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no pairs"), "{error}");
    let long = TextPairs::new(&["a", "b"], &["b", "aaaaaaaaaaaa"]).unwrap();
    let error = small().fit(&long).unwrap_err().to_string();
    assert!(
        error.contains("context") && error.contains("pair 2") && error.contains("13"),
        "{error}"
    );
    let fitted = small().max_iter(2usize).fit(&strings(20, 1, reversed)).unwrap();
    let error = fitted.translate(&["a", "aaaaaaaaaaaaaaa"], 1).unwrap_err().to_string();
    assert!(error.contains("text 2") && error.contains("15") && error.contains("11"), "{error}");
    for beams in [0, 1001] {
        let error = fitted.translate(&["a"], beams).unwrap_err().to_string();
        assert!(error.contains("beams") && error.contains(&beams.to_string()), "{error}");
    }
    let mut model = fitted.model;
    model.architecture.layers = 1 << 40;
    let mut file = Writer::new("seq2seq");
    model.write(&mut file);
    let bytes = file.to_bytes().unwrap();
    assert!(Reader::from_bytes(bytes).and_then(|mut file| Seq2SeqModel::read(&mut file)).is_err());
}
