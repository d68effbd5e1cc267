use super::*;
use gradus_base::random::Stream;
use gradus_core::topics::Topics as _;

fn planted(n: usize, k: usize) -> Documents {
    let mut stream = Stream::new(9, "test.plsa", 0);
    let texts = (0..n).map(|_| {
        let two = [stream.index(k), stream.index(k)];
        let words = (0..40).map(|_| {
            let topic = two[usize::from(stream.chance(0.3))];
            format!("t{topic}w{:02}", stream.index(15))
        });
        words.collect::<Vec<_>>().join(" ")
    });
    Documents::new(texts.collect::<Vec<_>>())
}

#[test]
fn the_likelihood_never_falls() {
    let data = planted(80, 6);
    let params = Plsa::new().n_topics(6).max_iter(100).tol(0.0);
    let trace = params.fit(&data).unwrap().report.trace;
    assert_eq!(trace.len(), 100);
    for pair in trace.windows(2) {
        let (before, after) = (pair[0].objective, pair[1].objective);
        assert!(after <= before + 1e-6 * before, "{before} became {after}");
    }
    assert!(trace[99].objective < 0.95 * trace[0].objective);
}

/// One step against expectation maximisation written down.
#[test]
fn a_step_is_that_of_the_definition() {
    use gradus_core::iterate::{Solver as _, Watch};
    let data = Documents::new(["aa bb aa", "bb cc", "cc cc aa"]);
    let params = Plsa::new().n_topics(2);
    let corpus = params.words().count("plsa", &data).unwrap();
    let em = Em::new(&params, &corpus.counts, None);
    let mut state = em.start(0).unwrap();
    let x = [[2.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 2.0]];
    let mut theta = [[0.5; 2]; 3];
    let mut phi = [[0.0; 2]; 3];
    for k in 0..2 {
        let total: f64 = (0..3).map(|w| f64::from(state.words[2 * w + k])).sum();
        let words = state.words.iter().skip(k).step_by(2);
        phi.iter_mut().zip(words).for_each(|(phi, &n)| phi[k] = f64::from(n) / total);
    }
    for _ in 0..5 {
        let step = em.step(&mut state, &Watch::unwatched()).unwrap();
        let (mut docs, mut words) = ([[0.0; 2]; 3], [[0.0; 2]; 3]);
        for d in 0..3 {
            for w in 0..3 {
                let p: f64 = (0..2).map(|k| theta[d][k] * phi[w][k]).sum();
                for k in 0..2 {
                    let expected = x[d][w] * theta[d][k] * phi[w][k] / p;
                    docs[d][k] += expected;
                    words[w][k] += expected;
                }
            }
        }
        for k in 0..2 {
            let total: f64 = (0..3).map(|w| words[w][k]).sum();
            (0..3).for_each(|w| phi[w][k] = words[w][k] / total);
            (0..3).for_each(|d| theta[d][k] = docs[d][k] / (docs[d][0] + docs[d][1]));
        }
        let mut log = 0.0;
        for d in 0..3 {
            for w in 0..3 {
                let p: f64 = (0..2).map(|k| theta[d][k] * phi[w][k]).sum();
                log -= x[d][w] * p.ln() / 8.0;
            }
        }
        assert!((step.objective().unwrap() - log).abs() < 1e-5);
        for (found, expected) in state.words.iter().zip(words.iter().flatten()) {
            assert!((f64::from(*found) - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn planted_topics_are_recovered() {
    let data = planted(300, 4);
    let fitted = Plsa::new().n_topics(4).restarts(3).fit(&data).unwrap();
    let mut found: Vec<String> = Vec::new();
    for words in fitted.top_words(8) {
        let topic = words[0].0[..2].to_owned();
        assert!(words.iter().all(|(word, _)| word.starts_with(&topic)), "{words:?}");
        found.push(topic);
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 4);
    let mixtures = fitted.mixtures(&Documents::new(["t1w01 t1w02", "unknown", ""])).unwrap();
    assert!(mixtures.row(0).iter().any(|share| *share > 0.95));
    assert_eq!(mixtures.row(1), mixtures.row(2));
    assert!((mixtures.row(1)[0] - fitted.shares().unwrap()[0]).abs() < 1e-12);
}

/// Tempering gives up likelihood of training for less certain topics.
#[test]
fn a_temperature_below_one_overfits_less() {
    let data = planted(60, 3);
    let fit = |temperature| {
        Plsa::new().n_topics(12).temperature(temperature).max_iter(60).tol(0.0).fit(&data).unwrap()
    };
    let (plain, tempered) = (fit(1.0), fit(0.7));
    assert!(plain.report.objective < tempered.report.objective);
    assert!(Plsa::new().temperature(0.0).fit(&data).is_err());
}
