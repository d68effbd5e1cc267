use super::*;
use gradus_base::random::Stream;
use gradus_core::estimator::Model as _;
use gradus_core::predict::Predict as _;
use gradus_data::Matrix;
use gradus_file::Writer;

/// Documents of `n` subjects, each with words of its own and a pair of words that others have in another order.
fn documents(n: usize, n_classes: usize, seed: u64) -> Documents {
    let mut stream = Stream::new(seed, "fasttext.test", 0);
    let (mut texts, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let (class, n_words) = (stream.index(n_classes), 3 + stream.index(9));
        let word = |_| match stream.index(3) {
            0 => format!("common{}", stream.index(9)),
            _ => format!("own{class}x{}", stream.index(7)),
        };
        texts.push((0..n_words).map(word).collect::<Vec<_>>().join(" "));
        labels.push(format!("c{class}"));
    }
    Documents::new(texts).with_classes("subject", &labels).unwrap()
}

fn bytes(model: &FastTextModel) -> Vec<u8> {
    let mut file = Writer::new("fasttext");
    model.write(&mut file);
    file.to_bytes().unwrap()
}

fn accuracy(model: &FastTextModel, data: &Documents) -> f64 {
    let samples = model.samples(data).unwrap();
    let (codes, labels) = samples.classes().unwrap();
    let known = model.outputs().labels().unwrap();
    let found = model.classes(samples.features()).unwrap();
    let right = codes
        .iter()
        .zip(&found)
        .filter(|(code, found)| labels.get(**code as usize) == known.get(**found as usize));
    right.count() as f64 / codes.len() as f64
}

#[test]
fn planted_classes_are_learned_by_every_loss() {
    let (train, test) = (documents(600, 4, 1), documents(200, 4, 2));
    for loss in [FastTextLoss::Softmax, FastTextLoss::Ova, FastTextLoss::Hs] {
        let params = FastText::new().dimension(10).loss(loss).max_iter(8).n_buckets(5000);
        let fitted = params.fit(&train).unwrap();
        assert!(accuracy(&fitted.model, &test) > 0.97, "{loss:?}");
        let trace = &fitted.report.trace;
        assert!(trace[7].objective < 0.5 * trace[0].objective, "{loss:?} {trace:?}");
        let samples = fitted.model.samples(&test).unwrap();
        let p = fitted.model.probabilities(samples.features()).unwrap().unwrap();
        if loss != FastTextLoss::Ova {
            for row in p.rows() {
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{loss:?} {row:?}");
            }
        }
        // Texts and their features have the same answers.
        let best = fitted.model.predict(&test.texts(), 2);
        for (at, classes) in fitted.model.classes(samples.features()).unwrap().iter().enumerate() {
            assert_eq!(best[at][0].0, *classes, "{loss:?}");
            assert!((best[at][0].1 - p[(at, *classes as usize)]).abs() < 1e-5);
            assert!(best[at][1].1 <= best[at][0].1);
        }
    }
}

/// One epoch of one document at a time, by the formulas, is what the trainer does where documents have nothing in common but
/// what the small batches leave out.
#[test]
fn steps_are_those_of_the_definition() {
    // Without common words, so that batches change nothing: each document has words of its own, seen once.
    let texts: Vec<String> = (0..24).map(|at| format!("a{at} b{at} a{at}")).collect();
    let labels: Vec<String> = (0..24).map(|at| format!("c{}", at % 3)).collect();
    let data = Documents::new(&texts).with_classes("y", &labels).unwrap();
    let k = 5;
    let params = FastText::new()
        .dimension(k)
        .word_ngrams(1)
        .tokens(TokenRule::Blanks)
        .max_iter(1)
        .max_words(10_000)
        .learning_rate(0.3);
    let prepared = params.prepare(&data).unwrap();
    let n_features = prepared.bag.n_known();
    let options = Options {
        dimension: k,
        learning_rate: 0.3,
        epochs: 1,
        loss: FastTextLoss::Softmax,
        cutoff: None,
        line_end: None,
        seed: 0,
    };
    // The word that ends a line is common to all: without it, batches are exact.
    let end = prepared.bag.find(gradus_data::LINE_END).unwrap();
    let mut bags = Bags::default();
    for at in 0..24 {
        bags.features.extend(prepared.bags.document(at).iter().filter(|&&f| f != end));
        bags.ends.push(bags.features.len());
    }
    let trainer = Trainer::new((&bags, n_features), &prepared.labels, None, options);
    use gradus_core::iterate::{Solver as _, Watch};
    let mut state = trainer.start(0).unwrap();
    let rows = |rows: &gradus_kernel::Rows| -> Vec<Vec<f64>> {
        (0..rows.n_rows())
            .map(|at| rows.row(at)[..k].iter().map(|&x| f64::from(x)).collect())
            .collect()
    };
    let (mut inputs, mut outputs) = (rows(&state.inputs), rows(&state.outputs));
    trainer.step(&mut state, &Watch::unwatched()).unwrap();
    let mut order: Vec<u32> = (0..24).collect();
    Stream::new(0, "fasttext.order", 0).shuffle(&mut order);
    // All of them are one batch.
    let batch = 24;
    for (step, &at) in order.iter().enumerate() {
        let rate = 0.3 * (1.0 - (step / batch * batch) as f64 / 24.0);
        let features = bags.document(at as usize);
        let mean: Vec<f64> = (0..k)
            .map(|v| features.iter().map(|&f| inputs[f as usize][v]).sum::<f64>() / 3.0)
            .collect();
        let dots: Vec<f64> =
            outputs.iter().map(|row| row.iter().zip(&mean).map(|(a, b)| a * b).sum()).collect();
        let sum: f64 = dots.iter().map(|dot| dot.exp()).sum();
        let mut change = vec![0.0; k];
        let target = prepared.labels.rounds(at as usize, FastTextLoss::Softmax);
        let labels::Target::All(classes) = target[0] else { panic!("one step of all classes") };
        for class in 0..3 {
            let y = f64::from(u8::from(classes[0] as usize == class));
            let g = rate * (y - dots[class].exp() / sum);
            for v in 0..k {
                change[v] += g * outputs[class][v];
                outputs[class][v] += g * mean[v];
            }
        }
        for &feature in features {
            (0..k).for_each(|v| inputs[feature as usize][v] += change[v] / 3.0);
        }
    }
    for (got, want) in [(rows(&state.inputs), inputs), (rows(&state.outputs), outputs)] {
        for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
            assert!((got - want).abs() < 1e-5, "{got} {want}");
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    // Long documents, so that batches are worth threads.
    let mut stream = Stream::new(4, "fasttext.test", 1);
    let texts: Vec<String> = (0..90)
        .map(|_| (0..400).map(|_| format!("w{}", stream.index(3000))).collect::<Vec<_>>().join(" "))
        .collect();
    let labels: Vec<String> = (0..90).map(|at| format!("c{}", at % 3)).collect();
    let data = Documents::new(&texts).with_classes("y", &labels).unwrap();
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let params = FastText::new().dimension(20).max_iter(3).n_buckets(10_000).quantize(true);
        pool.install(|| bytes(&params.fit(&data).unwrap().model))
    };
    let one = fit(1);
    assert_eq!(fit(2), one);
    assert_eq!(fit(7), one);
}

#[test]
fn order_of_words_tells_classes_that_words_do_not() {
    let (mut texts, mut labels) = (Vec::new(), Vec::new());
    for at in 0..200 {
        let pair = if at % 2 == 0 { "left right" } else { "right left" };
        texts.push(format!("x{} {pair} y{}", at % 7, at % 5));
        labels.push(["a", "b"][at % 2]);
    }
    let data = Documents::new(&texts).with_classes("y", &labels).unwrap();
    let fit = |n: usize| {
        let fitted = FastText::new().dimension(8).word_ngrams(n).max_iter(30).fit(&data).unwrap();
        accuracy(&fitted.model, &data)
    };
    assert!(fit(2) > 0.99);
    assert!(fit(1) < 0.75);
}

#[test]
fn documents_may_have_several_classes() {
    let (mut texts, mut labels) = (Vec::new(), Vec::new());
    for at in 0..300 {
        let (a, b) = (at % 3, at / 3 % 2);
        texts.push(format!("kind{a} size{b} word{}", at % 11));
        labels.push(vec![format!("kind{a}"), format!("size{b}")]);
    }
    let data = Documents::new(&texts).with_several_classes("y", &labels).unwrap();
    for loss in [FastTextLoss::Ova, FastTextLoss::Softmax, FastTextLoss::Hs] {
        let params = FastText::new().dimension(8).loss(loss).max_iter(20).word_ngrams(1);
        let fitted = params.fit(&data).unwrap();
        let names = fitted.model.outputs().labels().unwrap().clone();
        let both = fitted.model.predict(&["kind2 size1 word5"], 2);
        let mut found: Vec<String> =
            both[0].iter().map(|(class, _)| names.get(*class as usize).to_string()).collect();
        found.sort();
        assert_eq!(found, ["kind2", "size1"], "{loss:?}");
        let least = if loss == FastTextLoss::Ova { 0.8 } else { 0.35 };
        assert!(both[0].iter().all(|(_, p)| *p > least), "{loss:?} {both:?}");
    }
}

#[test]
fn cut_off_and_quantised_it_is_small_and_still_right() {
    let (train, test) = (documents(800, 3, 5), documents(200, 3, 6));
    let params = FastText::new().dimension(16).max_iter(10);
    let whole = params.clone().fit(&train).unwrap();
    let small = params.cutoff(60).quantize(true).fit(&train).unwrap();
    assert!(accuracy(&small.model, &test) > 0.97);
    assert_eq!(small.model.bag().n_known(), 60);
    assert!(whole.model.bag().n_known() > 300);
    assert!(small.model.is_quantised());
    // It is written and read.
    let mut file = gradus_file::Reader::from_bytes(bytes(&small.model)).unwrap();
    assert_eq!(FastTextModel::read(&mut file).unwrap(), small.model);
}

#[test]
fn vectors_of_words_are_where_a_fit_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.vec");
    std::fs::write(&path, "2 3\ngood 1 0 0\nbad -1 0 0\n").unwrap();
    let data = Documents::new(["good film", "bad film", "good book", "bad book"])
        .with_classes("y", &["p", "n", "p", "n"])
        .unwrap();
    let params = FastText::new().vectors(path.display().to_string()).dimension(3).word_ngrams(1);
    let fitted = params.clone().max_iter(1).learning_rate(1e-6).fit(&data).unwrap();
    let good = fitted.model.word_vector("good").unwrap();
    assert!((good[0] - 1.0).abs() < 1e-3 && good[1].abs() < 1e-3, "{good:?}");
    assert!(fitted.report.notes.iter().any(|note| note.contains("2 of 5 words")));
    let wrong = params.dimension(4).fit(&data).unwrap_err().to_string();
    assert!(wrong.contains("`dimension`") && wrong.contains('3'), "{wrong}");
}

#[test]
fn what_cannot_be_learned_from_is_refused_by_reason() {
    let error = |documents: &Documents| FastText::new().fit(documents).unwrap_err().to_string();
    assert!(error(&Documents::new(["a b"])).contains("label_column"));
    let one = Documents::new(["a", "b"]).with_classes("y", &["x", "x"]).unwrap();
    assert!(error(&one).contains("class `x`"), "{}", error(&one));
    let empty = Documents::new(["", " "]).with_classes("y", &["x", "z"]).unwrap();
    assert!(error(&empty).contains("no word"), "{}", error(&empty));
    let none = Documents::new(Vec::<&str>::new()).with_classes("y", &Vec::<&str>::new()).unwrap();
    assert!(error(&none).contains("no documents"), "{}", error(&none));
    let rule = FastText::new().quantize(true).dimension(2).subvector(3).check().unwrap_err();
    assert!(rule.to_string().contains("`subvector`"));
    assert!(FastText::new().cutoff(5).max_iter(1).check().is_err());
    assert!(FastText::new().max_n(2).check().is_err());
    let lists = [vec!["a"], vec![]];
    let several = Documents::new(["x", "y"]).with_several_classes("y", &lists);
    assert!(several.unwrap_err().to_string().contains("document 2 has no class"));
}

/// An empty document, and one of unknown words, have probabilities too.
#[test]
fn documents_without_known_words_are_answered() {
    let fitted = FastText::new().dimension(4).max_iter(3).fit(&documents(60, 2, 9)).unwrap();
    for found in fitted.model.predict(&["", "zzz yyy"], 2) {
        assert!((found[0].1 + found[1].1 - 1.0).abs() < 1e-5);
    }
    let width = fitted.model.inputs().n_features();
    let wrong = Matrix::Dense(gradus_data::Dense::full(1, width + 1, 0.0));
    let text = fitted.model.scores(&wrong).unwrap_err().to_string();
    assert!(text.contains(&width.to_string()), "{text}");
}
