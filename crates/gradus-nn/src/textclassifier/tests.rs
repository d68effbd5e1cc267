//! Tests of text classifiers.

use super::*;
use gradus_base::random::Stream;
use gradus_core::dataset::DataKind as _;
use gradus_core::predict::Predict as _;
use gradus_data::{Dense, Matrix};

fn small() -> TextClassifier {
    TextClassifier::new().layers(1).dimension(32).heads(2).vocabulary_size(320usize).context(24)
}

fn accuracy(fitted: &Fitted<TextClassifier>, documents: &Documents) -> f64 {
    let samples = fitted.samples(documents).unwrap();
    let found = fitted.classes(samples.features()).unwrap();
    let (codes, _) = samples.classes().unwrap();
    found.iter().zip(codes).filter(|(a, b)| a == b).count() as f64 / codes.len() as f64
}

/// The class is whether `a` comes before `b`, which no bag of words knows.
fn ordered(n: usize, seed: u64) -> Documents {
    let mut stream = Stream::new(seed, "ordered", 0);
    let (mut texts, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let mut words = ["x"; 8];
        let (first, second) = (stream.index(7), stream.index(7));
        let (early, late) = (first.min(second), first.max(second) + 1);
        let is_ab = stream.chance(0.5);
        (words[early], words[late]) = if is_ab { ("a", "b") } else { ("b", "a") };
        texts.push(words.concat());
        labels.push(if is_ab { "ab" } else { "ba" });
    }
    Documents::new(&texts).with_classes("order", &labels).unwrap()
}

#[test]
fn the_order_of_words_is_learned() {
    let params = small().tokens(TokenKind::Chars).max_iter(30usize).learning_rate(3e-3);
    // Of texts that lack one of the two letters there is nothing to learn.
    let params = params.token_dropout(0.0).patience(0usize);
    let fitted = params.fit(&ordered(1000, 1)).unwrap();
    let found = accuracy(&fitted, &ordered(300, 2));
    assert!(found > 0.97, "{found}");
}

#[test]
fn padding_and_other_documents_change_nothing() {
    let documents = Documents::example(60, 1, &TextClassifier::TRAITS).unwrap();
    let fitted = small().max_iter(3usize).fit(&documents).unwrap();
    let samples = fitted.samples(&documents).unwrap();
    let all = fitted.logits(samples.features()).unwrap();
    for row in 0..10 {
        let one = fitted.logits(&samples.features().select_rows(&[row])).unwrap();
        for (a, b) in one.row(0).iter().zip(all.row(row as usize)) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }
}

#[test]
fn texts_without_tokens_and_features_of_other_data_have_classes_too() {
    let documents = Documents::example(60, 1, &TextClassifier::TRAITS).unwrap();
    let fitted = small().max_iter(2usize).fit(&documents).unwrap();
    let wild = [0.0, -7.0, 1e9, 2.5, 3.0, 4e4];
    let x = Dense::from_fn(4, 24, |row, column| wild[(row * (column + 1)) % 6]);
    let found = fitted.logits(&Matrix::from(x)).unwrap();
    assert!(found.values().iter().all(|logit| logit.is_finite()));
    let empty = Documents::new(["", "é\u{0}"]).with_classes("label", &["office", "sport"]).unwrap();
    assert_eq!(fitted.samples(&empty).unwrap().len(), 2);
    assert_eq!(fitted.classes(fitted.samples(&empty).unwrap().features()).unwrap().len(), 2);
}

#[test]
fn documents_that_cannot_be_learned_from_are_refused_by_cause() {
    let error = |documents: Documents| small().fit(&documents).unwrap_err().to_string();
    let none = error(Documents::new(["a", "b"]));
    assert!(none.contains("label_column"), "{none}");
    let one = error(Documents::new(["a", "b"]).with_classes("k", &["x", "x"]).unwrap());
    assert!(one.contains("class `x`"), "{one}");
    let blank = error(Documents::new(["", " "]).with_classes("k", &["x", "y"]).unwrap());
    assert!(blank.contains("empty"), "{blank}");
}
