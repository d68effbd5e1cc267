use super::{Options, Task, Trainer, streams};
use crate::corpus::{Corpus, Phrases, Words};
use crate::{Cbow, Documents, Skipgram, Word2vecLoss, WordVectors};
use gradus_base::random::Stream;
use gradus_core::embed::{Embed as _, cosine};
use gradus_core::estimator::{Fit, Job, Model as _};
use gradus_core::iterate::{self, LoopOptions};
use gradus_data::{CharNgrams, TokenRule, Tokenizer};
use gradus_file::Writer;

const LOSSES: [Word2vecLoss; 3] =
    [Word2vecLoss::Negative, Word2vecLoss::Softmax, Word2vecLoss::Hierarchical];

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
    for loss in LOSSES {
        let skipgram = Skipgram::new().loss(loss).dimension(16).subsample(0.0).max_iter(5);
        let skipgram = skipgram.fit(&documents).unwrap();
        let cbow = Cbow::new().loss(loss).dimension(16).subsample(0.0).max_iter(10);
        let cbow = cbow.fit(&documents).unwrap();
        for model in [&skipgram.model, &cbow.model] {
            let (same, other) = separation(model);
            assert!(same > other + 0.3, "{loss:?}: {same} {other}");
        }
        let trace = &skipgram.report.trace;
        assert!(trace[4].objective < trace[0].objective - 0.05, "{loss:?}: {trace:?}");
    }
}

/// A regression test: added up, the changes of eight whole blocks to so few rows were too large, and the vectors infinite.
#[test]
fn few_words_and_many_epochs_do_not_diverge() {
    let documents = documents(600);
    for (rate, loss) in [0.025, 0.1].into_iter().flat_map(|rate| LOSSES.map(|loss| (rate, loss))) {
        let max_iter = if loss == Word2vecLoss::Softmax { 20 } else { 60 };
        let skipgram = Skipgram::new().loss(loss).dimension(16).subsample(0.0).max_iter(5);
        let skipgram = skipgram.learning_rate(rate).max_iter(max_iter);
        let cbow = Cbow::new().loss(loss).dimension(16).subsample(0.0);
        let cbow = cbow.learning_rate(rate).max_iter(max_iter);
        for model in [skipgram.fit(&documents).unwrap().model, cbow.fit(&documents).unwrap().model]
        {
            let longest = (0..model.len()).map(|at| model.length(at)).fold(0.0, f64::max);
            assert!(longest < 50.0, "{rate} {loss:?}: {longest}");
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let documents = documents(900);
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            LOSSES.map(|loss| {
                let skipgram = Skipgram::new().loss(loss).dimension(20).max_iter(2);
                let cbow = Cbow::new().loss(loss).dimension(20).max_iter(2);
                let skipgram = skipgram.fit(&documents).unwrap();
                (bytes(&skipgram.model), bytes(&cbow.fit(&documents).unwrap().model))
            })
        })
    };
    let one = fit(1);
    assert_eq!(fit(2), one);
    assert_eq!(fit(7), one);
    let other = Skipgram::new().dimension(20).max_iter(2).seed(1).fit(&documents).unwrap();
    assert_ne!(bytes(&other.model), one[0].0);
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
    let tree = Skipgram::new().loss(Word2vecLoss::Hierarchical).keep_context(true);
    assert!(tree.fit(&documents).unwrap_err().to_string().contains("`keep_context`"));
    assert!(fitted.report.notes[0].contains("2,400 of 2,400 words"), "{:?}", fitted.report.notes);
}

/// The softmax is exact: its probabilities become those of the text, which are known here.
#[test]
fn the_softmax_learns_the_probabilities_of_the_text() {
    let mut stream = Stream::new(7, "word2vec.softmax", 0);
    let text = |_| match stream.index(8) {
        0..3 => "a b",
        3..6 => "b a",
        6 => "a c",
        _ => "c a",
    };
    let documents = Documents::new((0..6000).map(text).collect::<Vec<_>>());
    let params = Skipgram::new().loss(Word2vecLoss::Softmax).dimension(8).subsample(0.0);
    let model = params.clone().keep_context(true).max_iter(10).fit(&documents).unwrap().model;
    let exp = |word: &str, given: &str| {
        let place = |word: &str| model.find(word).unwrap();
        let (x, y) = (model.vector(place(given)), model.context(place(word)).unwrap());
        x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum::<f64>().exp()
    };
    for (word, given, want) in
        [("b", "a", 0.75), ("c", "a", 0.25), ("a", "b", 1.0), ("a", "c", 1.0)]
    {
        let all: f64 = ["a", "b", "c"].iter().map(|word| exp(word, given)).sum();
        let found = exp(word, given) / all;
        assert!((found - want).abs() < 0.05, "p({word} | {given}) = {found}");
    }
    let many = (0..70_000).map(|at| format!("w{at}")).collect::<Vec<_>>().join(" ");
    let error = params.min_count(1).fit(&Documents::new([many])).unwrap_err().to_string();
    assert!(error.contains("`loss`") && error.contains("70000"), "{error}");
}

#[test]
fn parts_that_are_read_give_the_model_of_documents_that_are_held() {
    let mut stream = Stream::new(2, "word2vec.parts", 0);
    let text = |_| (0..20).map(|_| format!("w{} ", stream.index(40))).collect::<String>();
    let texts: Vec<String> = (0..300).map(text).collect();
    let params = Skipgram::new().dimension(6).max_iter(2).min_count(1);
    let in_memory = params.fit(&Documents::new(&texts)).unwrap();
    let mut parts = |take: &mut dyn FnMut(Documents) -> gradus_base::Result<bool>| {
        texts.chunks(70).try_for_each(|part| take(Documents::new(part)).map(|_| ()))
    };
    let streamed = params.fit_parts(&mut parts, &Default::default()).unwrap();
    assert_eq!(bytes(&streamed.model), bytes(&in_memory.model));
}

/// Words of one subject share a stem: with n-grams an unknown word of the stem is near them.
#[test]
fn words_of_ngrams_answer_for_unknown_ones_and_have_the_same_bits_on_any_number_of_threads() {
    let mut stream = Stream::new(6, "word2vec.test", 1);
    let texts: Vec<String> = (0..900)
        .map(|_| {
            let subject = ["garden", "tunnel"][stream.index(2)];
            let word = |_| match stream.index(3) {
                0 => format!("common{}", stream.index(4)),
                _ => format!("{subject}{}", ["er", "ing", "s", "ed", "ery"][stream.index(5)]),
            };
            (0..12).map(word).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let documents = Documents::new(&texts);
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let skipgram = Skipgram::new().dimension(12).subsample(0.0).max_n(5).max_iter(5);
        let cbow = Cbow::new().dimension(12).subsample(0.0).max_n(4).min_n(2).max_iter(5);
        let fit = || {
            let skipgram = skipgram.fit(&documents).unwrap();
            (skipgram.report, skipgram.model, cbow.fit(&documents).unwrap().model)
        };
        pool.install(fit)
    };
    let (report, skipgram, cbow) = fit(1);
    for threads in [2, 7] {
        let (_, again, other) = fit(threads);
        assert_eq!((bytes(&again), bytes(&other)), (bytes(&skipgram), bytes(&cbow)));
    }
    // At random the loss of a word and five negatives is 6 log 2 = 4.16. Words that share n-grams are put together so often that one
    // epoch learns most of it.
    let losses: Vec<f64> = report.trace.iter().map(|point| point.objective).collect();
    assert!(losses[0] < 2.6 && losses[4] < losses[0], "{losses:?}");
    for model in [&skipgram, &cbow] {
        let near = model.similarity("gardeners", "gardening").unwrap();
        let far = model.similarity("gardeners", "tunneling").unwrap();
        assert!(near > far + 0.2, "{near} {far}");
        assert!(model.find("gardeners").is_err() && !model.knows("qj"));
        // What is written is read.
        let mut file = gradus_file::Reader::from_bytes(bytes(model)).unwrap();
        assert_eq!(&WordVectors::read(&mut file).unwrap(), model);
    }
}

#[test]
fn short_texts_are_gone_through_more_often() {
    let documents = Documents::new(["the cat sat", "the dog sat", "a bird sang"].repeat(20));
    let fitted = Cbow::new().dimension(4).subsample(0.0).fit(&documents).unwrap();
    assert_eq!(fitted.report.iterations, 50);
    let chosen = &fitted.report.chosen[0];
    assert_eq!((chosen.parameter.as_str(), chosen.value), ("max_iter", 50.0));
    let given = Cbow::new().dimension(4).subsample(0.0).max_iter(3).fit(&documents).unwrap();
    assert!(given.report.iterations == 3 && given.report.chosen.is_empty());
    assert_eq!(Task::Skipgram.epochs(1_000_000_000), 5);
    assert_eq!(Task::Skipgram.epochs(5_000_000), 10);
    assert_eq!(Task::Cbow.epochs(5_000_000), 20);
}

#[test]
fn streams_begin_with_documents_and_have_about_as_many_words() {
    let lengths = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
    assert_eq!(streams(&lengths, 39, 3), [(0, 0), (13, 4), (29, 6), (39, 8)]);
    assert_eq!(streams(&lengths, 39, 1), [(0, 0), (39, 8)]);
    // A long document, and fewer documents than streams.
    assert_eq!(streams(&[9.0, 1.0], 12, 3), [(0, 0), (10, 1), (10, 1), (12, 2)]);
    assert_eq!(streams(&[5.0], 6, 2), [(0, 0), (6, 1), (6, 1)]);
}

/// Paragraph vectors of some texts: the trainer with its own number of blocks or this one, the loss of the last epoch, and the
/// length of the longest vector.
fn of_documents(texts: &[String], epochs: usize, rate: f32, n_blocks: Option<usize>) -> (f64, f64) {
    let documents = Documents::new(texts);
    let tokenizer = Tokenizer { rule: TokenRule::Words, lowercase: true };
    let phrases = Phrases::NONE;
    let words = Words { tokenizer, shortest: 1, phrases, min_count: 1, max_words: None };
    let corpus = Corpus::new("test", &documents, &words).unwrap();
    let options = Options {
        task: Task::Document,
        loss: Word2vecLoss::Negative,
        dimension: 32,
        window: 1,
        negatives: 5,
        negative_power: 0.75,
        subsample: 0.0,
        learning_rate: rate,
        epochs: Some(epochs),
        ngrams: CharNgrams { min_n: 1, max_n: 0, n_buckets: 1 },
        seed: 0,
    };
    let mut trainer = Trainer::new(&corpus, options).unwrap();
    if let Some(n) = n_blocks {
        let lengths: Vec<f64> =
            texts.iter().map(|text| text.split_whitespace().count() as f64).collect();
        trainer.block_words *= trainer.n_blocks / n;
        trainer.n_blocks = n;
        trainer.streams = Some(streams(&lengths, corpus.len(), n));
    }
    let settings =
        LoopOptions { model: "test", max_iter: epochs, restarts: 1, ..LoopOptions::default() };
    let (state, report) = iterate::run(&trainer, &settings, &Job::<Documents>::default()).unwrap();
    let rows = [&state.inputs, &state.outputs].map(|rows| rows.as_slice().chunks(rows.stride()));
    let length = |row: &[f32]| row.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
    let longest = rows.into_iter().flatten().map(length).fold(0.0, f64::max);
    (report.trace[report.trace.len() - 1].objective, longest)
}

/// A regression test: documents cut between blocks, and frequent words changed by several, took shorter steps by half: vectors of
/// 20 Newsgroups lost 3 % of a classifier's accuracy.
#[test]
fn blocks_of_documents_learn_as_much_as_one_after_the_other() {
    let mut stream = Stream::new(5, "word2vec.long", 0);
    let texts = (0..160).map(|_| {
        let subject = stream.index(10);
        let word = |_| match stream.index(2) {
            0 => format!("common{}", stream.index(60)),
            _ => format!("s{subject}w{}", stream.index(60)),
        };
        (0..500).map(word).collect::<Vec<_>>().join(" ")
    });
    let texts: Vec<String> = texts.collect();
    let of = |n_blocks| of_documents(&texts, 10, 0.05, n_blocks).0;
    let (alone, together) = (of(Some(1)), of(None));
    assert!(together < 1.03 * alone, "{together} {alone}");
}

/// Documents of two subjects point to two sides: their mean says nothing of how much blocks repeat each other.
#[test]
fn documents_of_few_words_do_not_diverge() {
    let mut stream = Stream::new(5, "word2vec.few", 0);
    let texts = (0..2000).map(|at| {
        let subject = ["a", "b"][at % 2];
        (0..20).map(|_| format!("{subject}{}", stream.index(4))).collect::<Vec<_>>().join(" ")
    });
    let texts: Vec<String> = texts.collect();
    for rate in [0.025, 0.2] {
        let (loss, longest) = of_documents(&texts, 40, rate, None);
        assert!(loss.is_finite() && longest < 50.0, "{rate}: {loss} {longest}");
    }
}
