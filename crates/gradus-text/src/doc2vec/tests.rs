use super::*;
use gradus_base::random::Stream;
use gradus_core::embed::cosine;
use gradus_core::estimator::Model as _;
use gradus_core::transform::Transform as _;
use gradus_data::{Dense, Matrix};
use gradus_file::{Reader, Writer};

/// Documents about one of two subjects in turn, with words of both.
fn documents(n: usize) -> Documents {
    let mut stream = Stream::new(8, "doc2vec.test", 0);
    let texts = (0..n).map(|at| {
        let subject = ["ant", "bee"][at % 2];
        let word = |_| match stream.index(2) {
            0 => format!("common{}", stream.index(10)),
            _ => format!("{subject}{}", stream.index(20)),
        };
        (0..30).map(word).collect::<Vec<_>>().join(" ")
    });
    Documents::new(texts.collect::<Vec<_>>())
}

fn rows(model: &ParagraphVectors, documents: &Documents) -> Vec<Vec<f32>> {
    let Matrix::Dense(features) = model.transform_data(documents).unwrap() else {
        panic!("dense features");
    };
    features.rows().map(|row| row.iter().map(|&x| x as f32).collect()).collect()
}

fn bytes(model: &ParagraphVectors) -> Vec<u8> {
    let mut file = Writer::new("doc2vec");
    model.write(&mut file);
    file.to_bytes().unwrap()
}

fn small() -> Doc2Vec {
    Doc2Vec::new().dimension(8).subsample(0.0)
}

#[test]
fn documents_of_a_subject_are_near_each_other() {
    let fitted = small().fit(&documents(300)).unwrap();
    let trace = &fitted.report.trace;
    assert!(trace[trace.len() - 1].objective < trace[0].objective - 0.1, "{trace:?}");
    // Documents that training did not have.
    let mut stream = Stream::new(1, "doc2vec.test", 1);
    let unseen = (0..40).map(|at| {
        let subject = ["ant", "bee"][at % 2];
        (0..15).map(|_| format!("{subject}{} ", stream.index(20))).collect::<String>()
    });
    let found = rows(&fitted.model, &Documents::new(unseen.collect::<Vec<_>>()));
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for i in 0..found.len() {
        for j in 0..i {
            let list = if i % 2 == j % 2 { &mut same } else { &mut other };
            list.push(cosine(&found[i], &found[j]));
        }
    }
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    assert!(mean(&same) > mean(&other) + 0.5, "{} {}", mean(&same), mean(&other));
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let documents = documents(200);
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let model = small().max_iter(3).fit(&documents).unwrap().model;
            (bytes(&model), rows(&model, &documents))
        })
    };
    let one = fit(1);
    assert_eq!(fit(2), one);
    assert_eq!(fit(7), one);
}

#[test]
fn a_vector_depends_on_the_words_of_its_document_alone() {
    let model = small().max_iter(3).fit(&documents(100)).unwrap().model;
    let all =
        rows(&model, &Documents::new(["ant1 ant2 bee3", "", "zebra", "bee3, Ant2 ant1 zebra"]));
    assert_eq!(all[0], all[3]);
    assert!(all[1].iter().chain(&all[2]).all(|&x| x == 0.0));
    assert_eq!(rows(&model, &Documents::new(["ant2 ant1 bee3"]))[0], all[0]);
    // As counts, too.
    let names = model.inputs().feature_names();
    let mut dense = Dense::full(1, names.len(), 0.0);
    for (at, name) in names.iter().enumerate() {
        if ["ant1", "ant2", "bee3"].iter().any(|word| name.ends_with(word)) {
            dense.row_mut(0)[at] = 1.0;
        }
    }
    let of_counts = model.transform(&Matrix::Dense(dense)).unwrap();
    assert!(of_counts.row(0).iter().zip(&all[0]).all(|(a, b)| *a == f64::from(*b)));
}

#[test]
fn a_model_is_written_and_read() {
    let model = small().max_iter(2).fit(&documents(60)).unwrap().model;
    let read = ParagraphVectors::read(&mut Reader::from_bytes(bytes(&model)).unwrap()).unwrap();
    assert_eq!(read, model);
}

#[test]
fn texts_without_words_are_refused_by_reason() {
    let error = |texts: &[&str]| {
        let params = Doc2Vec::new().min_count(1);
        params.fit(&Documents::new(texts)).unwrap_err().to_string()
    };
    assert!(error(&["word word", "word"]).contains("one word alone, \"word\""));
    assert!(error(&["", "a I"]).contains("the vocabulary is empty"));
    let rare = Doc2Vec::new().fit(&Documents::new(["some words"])).unwrap_err().to_string();
    assert!(rare.contains("doc2vec") && rare.contains("`min_count` = 5"), "{rare}");
}
