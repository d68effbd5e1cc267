use crate::{Cbow, Documents, Skipgram, WordVectors};
use gradus_base::random::Stream;
use gradus_core::embed::{Embed as _, cosine};
use gradus_core::estimator::{Fit, Model as _};
use gradus_file::Writer;

/// Sentences about one of two subjects, each with words of its own, and words of both.
fn documents(n: usize) -> Documents {
    let mut stream = Stream::new(5, "word2vec.test", 0);
    let texts = (0..n).map(|_| {
        let subject = ["a", "b"][stream.index(2)];
        let word = |_| match stream.index(3) {
            0 => format!("common{}", stream.index(4)),
            _ => format!("{subject}{}", stream.index(12)),
        };
        (0..12).map(word).collect::<Vec<_>>().join(" ")
    });
    Documents::new(texts.collect::<Vec<_>>())
}

fn bytes(model: &WordVectors) -> Vec<u8> {
    let mut file = Writer::new("words");
    model.write(&mut file);
    file.to_bytes().unwrap()
}

/// Words of one subject are nearer to each other than to those of the other.
fn separation(model: &WordVectors) -> (f64, f64) {
    let (mut same, mut other) = (Vec::new(), Vec::new());
    let subject = |at: usize| Some(model.word(at).as_bytes()[0]).filter(|&first| first != b'c');
    for i in 0..model.len() {
        for j in 0..i {
            if let (Some(a), Some(b)) = (subject(i), subject(j)) {
                let list = if a == b { &mut same } else { &mut other };
                list.push(cosine(model.vector(i), model.vector(j)));
            }
        }
    }
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    (mean(&same), mean(&other))
}

#[test]
fn planted_subjects_are_found() {
    let documents = documents(2000);
    let skipgram = Skipgram::new().dimension(16).subsample(0.0).fit(&documents).unwrap();
    let cbow = Cbow::new().dimension(16).subsample(0.0).max_iter(10).fit(&documents).unwrap();
    for model in [&skipgram.model, &cbow.model] {
        let (same, other) = separation(model);
        assert!(same > other + 0.3, "{same} {other}");
    }
    let trace = &skipgram.report.trace;
    assert!(trace[4].objective < trace[0].objective - 0.1, "{trace:?}");
}

/// A regression test: added up, the changes of eight whole blocks to so few rows were too large, and the vectors infinite.
#[test]
fn few_words_and_many_epochs_do_not_diverge() {
    let documents = documents(600);
    for rate in [0.025, 0.1] {
        let skipgram =
            Skipgram::new().dimension(16).subsample(0.0).learning_rate(rate).max_iter(60);
        let cbow = Cbow::new().dimension(16).subsample(0.0).learning_rate(rate).max_iter(60);
        for model in [skipgram.fit(&documents).unwrap().model, cbow.fit(&documents).unwrap().model]
        {
            let longest = (0..model.len()).map(|at| model.length(at)).fold(0.0, f64::max);
            assert!(longest < 50.0, "{rate}: {longest}");
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let documents = documents(900);
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let skipgram = Skipgram::new().dimension(20).max_iter(2).fit(&documents).unwrap();
            let cbow = Cbow::new().dimension(20).max_iter(2).fit(&documents).unwrap();
            (bytes(&skipgram.model), bytes(&cbow.model))
        })
    };
    let one = fit(1);
    assert_eq!(fit(2), one);
    assert_eq!(fit(7), one);
    let other = Skipgram::new().dimension(20).max_iter(2).seed(1).fit(&documents).unwrap();
    assert_ne!(bytes(&other.model), one.0);
}

#[test]
fn texts_without_neighbours_are_refused_by_reason() {
    let error = |texts: &[&str]| {
        Skipgram::new().min_count(1).fit(&Documents::new(texts)).unwrap_err().to_string()
    };
    let one = error(&["word word word"]);
    assert!(one.contains("one word alone, \"word\" (3 times)"), "{one}");
    let alone = error(&["one", "two", ""]);
    assert!(alone.contains("no word has neighbours"), "{alone}");
    assert!(error(&[""]).contains("the vocabulary is empty"));
    let rare = Cbow::new().fit(&Documents::new(["a b c"])).unwrap_err().to_string();
    assert!(rare.contains("cbow") && rare.contains("`min_count` = 5"), "{rare}");
}

#[test]
fn the_other_side_is_kept_if_asked_for() {
    let documents = documents(200);
    let fitted = Skipgram::new().dimension(4).keep_context(true).fit(&documents).unwrap();
    let context = fitted.model.context(0).unwrap();
    assert!(context.len() == 4 && context != fitted.model.vector(0));
    let fitted = Skipgram::new().dimension(4).fit(&documents).unwrap();
    assert!(fitted.model.context(0).is_none());
    assert!(fitted.report.notes[0].contains("2,400 of 2,400 words"), "{:?}", fitted.report.notes);
}
