//! Tests of language models.

use super::decode::Decoder;
use super::generate::{Writing, draw};
use super::*;
use gradus_base::random::Stream;
use gradus_core::density::{Continue as _, Density as _, Generate as _, Sampling};
use gradus_core::estimator::Model as _;
use gradus_data::END_TOKEN;
use gradus_file::{Reader, Writer};

const TEXT: &str =
    "Now is the winter of our discontent\nMade glorious summer by this sun of York;\n";

fn small() -> Lm {
    Lm::new().layers(2).dimension(16).heads(2).context(12).batch_size(4).max_iter(12usize)
}

fn text(n: usize) -> Documents {
    Documents::new([TEXT.repeat(n)])
}

fn written(model: &LmModel, prompt: &str, n: usize, sampling: &Sampling) -> String {
    let mut bytes = Vec::new();
    let mut take = |more: &[u8]| {
        bytes.extend_from_slice(more);
        true
    };
    model.continue_text(prompt, n, sampling, &mut take).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_later_token_changes_no_earlier_logit() {
    let fitted = small().fit(&text(6)).unwrap();
    let tokens: Vec<u32> = fitted.codec.encode(&TEXT.as_bytes()[..12]);
    let before = fitted.logits(&tokens).unwrap();
    for changed in 1..12 {
        let mut other = tokens.clone();
        other[changed] = 1 + (other[changed] + 4) % 20;
        let after = fitted.logits(&other).unwrap();
        for at in 0..12 {
            let same = before.row(at) == after.row(at);
            assert_eq!(same, at < changed, "token {changed} was changed, logits of {at}");
        }
    }
}

#[test]
fn kept_keys_and_values_give_what_reading_anew_gives() {
    for tied in [true, false] {
        let fitted = small().tied(tied).fit(&text(6)).unwrap();
        let decoder = Decoder::new(&fitted.model);
        let tokens: Vec<u32> = fitted.codec.encode(TEXT.as_bytes());
        let near = |found: &[f32], expected: &[f64], what: String| {
            for (a, b) in found.iter().zip(expected) {
                assert!((f64::from(*a) - b).abs() < 1e-4, "{what}: {a} and {b}");
            }
        };
        for first in [1, 5, 12] {
            let mut writing = Writing::new(&fitted.model, &decoder);
            let mut logits = writing.read(&tokens[..first]);
            for at in first..13 {
                let expected = fitted.logits(&tokens[..at]).unwrap();
                near(&logits, expected.row(at - 1), format!("{first} at once, then to {at}"));
                if at < 12 {
                    logits = writing.read(&tokens[at..at + 1]);
                }
            }
        }
        // Behind the context: the last half of it, the new token included, is a context of its own.
        let mut writing = Writing::new(&fitted.model, &decoder);
        let mut logits = Vec::new();
        for at in 0..13 {
            logits = writing.read(&tokens[at..at + 1]);
        }
        near(&logits, fitted.logits(&tokens[7..13]).unwrap().row(5), "behind the context".into());
        // A long prompt is read from where it fills the context.
        let logits = Writing::new(&fitted.model, &decoder).read(&tokens[..40]);
        near(&logits, fitted.logits(&tokens[28..40]).unwrap().row(11), "a long prompt".into());
    }
}

#[test]
fn probabilities_of_documents_are_those_of_their_tokens() {
    let fitted = small().fit(&text(6)).unwrap();
    let log = |logits: &[f64], token: u32| {
        logits[token as usize] - logits.iter().map(|x| x.exp()).sum::<f64>().ln()
    };
    // Within the context, token by token.
    let tokens = [&[END_TOKEN][..], &fitted.codec.encode(b"Now is the"), &[END_TOKEN]].concat();
    let logits = fitted.logits(&tokens[..11]).unwrap();
    let expected: f64 = (0..11).map(|at| log(logits.row(at), tokens[at + 1])).sum();
    let found = fitted.log_density(&Documents::new(["Now is the"])).unwrap()[0];
    assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    // A long one, window by window: every token once, with at least six before it.
    let long =
        [&[END_TOKEN][..], &fitted.codec.encode(&TEXT.as_bytes()[..29]), &[END_TOKEN]].concat();
    let mut expected = 0.0;
    for at in 0..30 {
        // Windows begin at 0, 6, 12 and 18.
        let start = if at < 12 { 0 } else { (at - 6) / 6 * 6 };
        let logits = fitted.logits(&long[start..=at]).unwrap();
        expected += log(logits.row(at - start), long[at + 1]);
    }
    let documents = Documents::new([&TEXT[..29], "", "é"]);
    let found = fitted.log_density(&documents).unwrap();
    assert!((found[0] - expected).abs() < 1e-3, "{} {expected}", found[0]);
    // A text without tokens, and one of a character that training did not have.
    assert!(found.iter().all(|log| log.is_finite() && *log < 0.0), "{found:?}");
    assert_eq!(fitted.n_tokens(&documents).unwrap().unwrap(), [30, 1, 5]);
}

#[test]
fn a_text_that_repeats_is_learned_by_heart() {
    for kind in [TokenKind::Chars, TokenKind::Bytes, TokenKind::Bpe] {
        let params =
            Lm::new().layers(1).dimension(32).context(32).tokens(kind).vocabulary_size(300usize);
        let fitted = params.learning_rate(1e-2).max_iter(200usize).fit(&text(20)).unwrap();
        let loss = fitted.report.validation.unwrap();
        assert!(loss < 0.3, "{kind:?}: {loss}");
        assert!(fitted.report.baselines[0].score > 2.0 * loss, "{:?}", fitted.report.baselines);
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        let found = written(&fitted, "Now is the winter of our", 20, &greedy);
        assert!(found.starts_with(" discontent\nMade"), "{kind:?}: {found:?}");
        // Other characters in a prompt are no error.
        written(&fitted, "日本\u{0}", 3, &greedy);
    }
}

#[test]
fn a_seed_repeats_its_text() {
    let fitted = small().fit(&text(6)).unwrap();
    let with = |seed: u64| {
        let sampling = Sampling { seed, temperature: 1.2, top_k: 30, top_p: 0.98 };
        written(&fitted, "Now", 60, &sampling)
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
    let (all, again) = (fitted.generate(5, 3).unwrap(), fitted.generate(5, 3).unwrap());
    let texts = |data: &dyn gradus_core::dataset::Dataset| {
        data.downcast_ref::<Documents>().unwrap().texts().join("|")
    };
    assert_eq!(texts(all.as_ref()), texts(again.as_ref()));
    assert_ne!(texts(all.as_ref()), texts(fitted.generate(5, 4).unwrap().as_ref()));
}

#[test]
fn tokens_are_drawn_with_their_probabilities() {
    let logits = [2.0f32, 1.0, 0.0, f32::NEG_INFINITY, 5.0];
    let allowed = |token: u32| token != 4;
    let counts = |sampling: Sampling| {
        let mut stream = Stream::new(1, "draw", 0);
        let mut counts = [0u32; 5];
        (0..20_000)
            .for_each(|_| counts[draw(&logits, allowed, &sampling, &mut stream) as usize] += 1);
        counts.map(|count| f64::from(count) / 20_000.0)
    };
    let near = |sampling: Sampling, expected: [f64; 3]| {
        let found = counts(sampling);
        assert_eq!(found[3..], [0.0, 0.0]);
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 0.015, "{sampling:?}: {found:?} and {expected:?}");
        }
    };
    let plain = Sampling::default();
    near(plain, [0.665, 0.245, 0.090]);
    near(Sampling { temperature: 0.5, ..plain }, [0.867, 0.117, 0.016]);
    near(Sampling { temperature: 0.0, ..plain }, [1.0, 0.0, 0.0]);
    near(Sampling { top_k: 2, ..plain }, [0.731, 0.269, 0.0]);
    near(Sampling { top_p: 0.7, ..plain }, [0.731, 0.269, 0.0]);
    near(Sampling { top_p: 0.5, ..plain }, [1.0, 0.0, 0.0]);
    for (bad, name) in [
        (Sampling { temperature: -1.0, ..plain }, "temperature"),
        (Sampling { temperature: f64::NAN, ..plain }, "temperature"),
        (Sampling { top_p: 0.0, ..plain }, "top_p"),
        (Sampling { top_p: 1.5, ..plain }, "top_p"),
    ] {
        assert!(bad.check().unwrap_err().to_string().contains(name));
    }
}

#[test]
fn texts_without_enough_tokens_are_refused_with_numbers() {
    let error = |texts: &[&str]| small().fit(&Documents::new(texts)).unwrap_err().to_string();
    assert!(error(&[]).contains("no text"), "{}", error(&[]));
    assert!(error(&["", ""]).contains("no text"), "{}", error(&["", ""]));
    // Nine characters and three ends.
    let short = error(&["winter", "sum"]);
    assert!(short.contains("`context` = 12") && short.contains("at most 11"), "{short}");
    assert!(small().fit(&Documents::new(["winter", "summ"])).is_ok());
    let error = small().heads(3).fit(&text(3)).unwrap_err().to_string();
    assert!(error.contains("dimension") && error.contains("heads"), "{error}");
}

#[test]
fn the_steps_are_as_many_as_asked_for() {
    for (steps, interval, iterations) in [(12, 5, 3), (10, 5, 2), (3, 100, 1), (1, 1, 1)] {
        let params = small().max_iter(steps as usize).interval(interval as usize);
        let fitted = params.fit(&text(6)).unwrap();
        assert_eq!(fitted.report.iterations, iterations, "{steps} by {interval}");
        // The last step has the last rate of the schedule, which is above 0.
        let rate = fitted.report.trace.last().unwrap().measures[0].value;
        assert!(rate > 0.0, "{steps} by {interval}: {rate}");
    }
}

#[test]
fn sizes_that_a_file_cannot_have_are_refused() {
    let fitted = small().fit(&text(6)).unwrap();
    type Change = (&'static str, fn(&mut LmArchitecture));
    let sizes: [Change; 7] = [
        ("layers", |it| it.layers = usize::MAX),
        ("dimension", |it| it.dimension = 1 << 40),
        ("context", |it| it.context = usize::MAX / 2),
        ("heads", |it| it.heads = 3),
        ("no heads", |it| it.heads = 0),
        ("tokens", |it| it.tokens += 1),
        ("dropout", |it| it.dropout = 1.0),
    ];
    for (what, change) in sizes {
        let mut model = fitted.model.clone();
        change(&mut model.architecture);
        let mut file = Writer::new("lm");
        model.write(&mut file);
        let bytes = file.to_bytes().unwrap();
        let read = Reader::from_bytes(bytes).and_then(|mut file| LmModel::read(&mut file));
        assert!(read.is_err(), "{what}");
    }
}
