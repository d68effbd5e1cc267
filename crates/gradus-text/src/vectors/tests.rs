use super::*;
use gradus_base::random::Stream;
use gradus_core::embed::best;

fn random(n: usize, k: usize, seed: u64) -> WordVectors {
    let mut stream = Stream::new(seed, "vectors.test", 0);
    let words: Vec<String> = (0..n).map(|at| format!("w{:05}", (at * 7919) % n)).collect();
    let vectors: Vec<f32> = (0..n * k).map(|_| stream.normal() as f32).collect();
    let counts: Vec<u64> = (0..n as u64).map(|at| 1 + at % 100).collect();
    WordVectors::new(&words, Some(&counts), &vectors, None).unwrap()
}

#[test]
fn words_are_sorted_and_ranked() {
    let words = ["b", "c", "a"];
    let vectors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let model = WordVectors::new(&words, Some(&[5, 9, 5]), &vectors, Some(&vectors)).unwrap();
    assert_eq!((model.word(0), model.vector(0)), ("a", &[5.0, 6.0][..]));
    assert_eq!(model.context(2), Some(&[3.0, 4.0][..]));
    assert_eq!(model.counts(), Some(&[5, 5, 9][..]));
    assert_eq!(&*model.ranking(), [2, 0, 1]);
    let model = WordVectors::new(&words, None, &vectors, None).unwrap();
    assert_eq!(&*model.ranking(), [1, 2, 0]);
}

#[test]
fn what_cannot_be_a_model_is_refused() {
    let error = |words: &[&str], vectors: &[f32]| {
        WordVectors::new(words, None, vectors, None).unwrap_err().to_string()
    };
    assert!(error(&[], &[]).contains("no words"));
    assert!(error(&["a", "a"], &[1.0, 2.0]).contains("\"a\" is there twice"));
    assert!(error(&["a", ""], &[1.0, 2.0]).contains("a word is empty"));
    assert!(error(&["a", "b"], &[1.0, f32::NAN]).contains("\"b\""));
    assert!(error(&["a", "b"], &[1.0, 2.0, 3.0]).contains("expected 2, got 3"));
    assert!(error(&["a"], &[]).contains("no coordinates"));
}

#[test]
fn a_word_is_found_by_the_rule_of_cases() {
    let lower = WordVectors::new(&["king", "été"], None, &[1.0, 2.0], None).unwrap();
    assert_eq!(lower.find("KING").unwrap(), 0);
    assert_eq!(lower.find("Été").unwrap(), 1);
    assert!(lower.find("ete").is_err());
    let mixed = WordVectors::new(&["King", "king"], None, &[1.0, 2.0], None).unwrap();
    assert_eq!((mixed.find("King").unwrap(), mixed.find("king").unwrap()), (0, 1));
    let unknown = mixed.find("KING").unwrap_err().to_string();
    assert!(unknown.contains("unknown word `KING`: did you mean `King`, `king`?"), "{unknown}");
    let far = mixed.find("xyzzy").unwrap_err().to_string();
    assert!(far.contains("not in the vocabulary"), "{far}");
}

#[test]
fn words_with_blanks_are_a_phrase() {
    let model = WordVectors::new(&["new_york", "york"], None, &[1.0, 2.0], None).unwrap();
    assert_eq!(model.find("New  York").unwrap(), 0);
    assert!(model.find("york york").is_err() && model.find(" ").is_err());
    let model = model.with_phrases(["new_york"]).unwrap();
    let mut file = Writer::new("words");
    model.write(&mut file);
    let read = WordVectors::read(&mut Reader::from_bytes(file.to_bytes().unwrap()).unwrap());
    assert_eq!((read.as_ref().unwrap(), model.phrases()), (&model, &[0][..]));
    assert!(model.with_phrases(["zebra"]).is_err());
}

/// The kernel finds what a whole sort in double precision finds, ties and zeros included.
#[test]
fn the_nearest_are_exact() {
    for (n, k) in [(4, 1), (700, 5), (1500, 33)] {
        let mut model = random(n, k, n as u64);
        // Equal vectors, and one of zeros.
        let copy = model.vectors.row(0).to_vec();
        model.vectors.row_mut(n / 2).copy_from_slice(&copy);
        model.vectors.row_mut(n - 1).fill(0.0);
        // Lengths whose products single precision cannot hold.
        model.vectors.row_mut(1)[..k].iter_mut().for_each(|x| *x *= 1e38);
        model.vectors.row_mut(2)[..k].iter_mut().for_each(|x| *x = x.signum() * 1e-42);
        let WordVectors { words, ranking, counts, vectors, .. } = model;
        let model = WordVectors::of_parts(words, ranking, counts, vectors, None);
        let mut queries = Vec::new();
        for at in (0..n).step_by(n / 3) {
            for n in [0, 1, 10, 5000] {
                queries.push(Query { vector: model.vector(at).to_vec(), n, except: vec![at] });
            }
        }
        queries.push(Query { vector: vec![0.0; k], n: 4, except: vec![1] });
        let found = model.nearest_many(&queries).unwrap();
        for (query, found) in queries.iter().zip(&found) {
            let slow = best(&model.cosines(&query.vector).unwrap(), query.n, &query.except);
            assert_eq!(*found, slow);
            assert_eq!(model.nearest(&query.vector, query.n, &query.except).unwrap(), slow);
        }
    }
}

#[test]
fn a_model_is_written_and_read() {
    for context in [false, true] {
        let mut model = random(40, 7, 2);
        if context {
            model.context = Some(model.vectors.clone());
        }
        let mut file = Writer::new("words");
        model.write(&mut file);
        let bytes = file.to_bytes().unwrap();
        let read = WordVectors::read(&mut Reader::from_bytes(bytes).unwrap()).unwrap();
        assert_eq!(read, model);
    }
    let model = random(4, 2, 1);
    let broken = |change: &dyn Fn(&mut WordVectors)| {
        let mut model = model.clone();
        change(&mut model);
        let mut file = Writer::new("words");
        model.write(&mut file);
        let bytes = file.to_bytes().unwrap();
        WordVectors::read(&mut Reader::from_bytes(bytes).unwrap()).unwrap_err().to_string()
    };
    assert!(broken(&|model| model.ranking[0] = model.ranking[1]).contains("ranking"));
    assert!(broken(&|model| model.phrases = vec![9]).contains("`phrases`"));
    assert!(broken(&|model| model.words = Ids::Int(vec![1, 2, 3, 4])).contains("not text"));
    assert!(broken(&|model| model.vectors.row_mut(0)[0] = f32::NAN).contains("vectors"));
}
