use super::*;
use gradus_base::random::Stream;
use gradus_core::iterate::{Solver as _, Watch};
use gradus_core::topics::Topics as _;
use gradus_data::Csr;

fn csr(rows: &[&[f64]]) -> Csr<f64> {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        for (column, &x) in (0..).zip(*row) {
            if x > 0.0 {
                indices.push(column);
                values.push(x);
            }
        }
        indptr.push(indices.len());
    }
    Csr::new(rows[0].len(), indptr, indices, values).unwrap()
}

fn plan(n_topics: usize) -> Plan {
    Plan { n_topics, alpha: Some(0.3), beta: Some(0.4), max_iter: 1_000_000, seed: 5 }
}

/// `ln p(w, z | α, β)` up to a constant, from the definition.
fn log_joint(tokens: &[Vec<(u32, u16)>], k: usize, v: usize, alpha: f64, beta: f64) -> f64 {
    let rising = |x: f64, n: f64| libm::lgamma(x + n) - libm::lgamma(x);
    let (mut of_words, mut totals) = (vec![0.0; k * v], vec![0.0; k]);
    let mut log = 0.0;
    for tokens in tokens {
        let mut of_doc = vec![0.0; k];
        for &(word, topic) in tokens {
            of_doc[usize::from(topic)] += 1.0;
            of_words[usize::from(topic) * v + word as usize] += 1.0;
            totals[usize::from(topic)] += 1.0;
        }
        log += of_doc.iter().map(|&n| rising(alpha, n)).sum::<f64>();
        log -= rising(alpha * k as f64, tokens.len() as f64);
    }
    log += of_words.iter().map(|&n| rising(beta, n)).sum::<f64>();
    log - totals.iter().map(|&n| rising(beta * v as f64, n)).sum::<f64>()
}

/// With few tokens the posterior of all topics can be written down; the chain visits them in these shares.
#[test]
fn the_chain_draws_from_the_exact_posterior() {
    let counts = csr(&[&[2.0, 0.0, 1.0], &[0.0, 2.0, 1.0]]);
    let (k, v) = (2, 3);
    let sampler = Gibbs::new(plan(k), &counts, None);
    let mut state = sampler.start(0).unwrap();
    let slots: Vec<Vec<u32>> = sampler
        .topics_of(&state)
        .iter()
        .map(|tokens| tokens.iter().map(|token| token.0).collect())
        .collect();
    let n = slots.iter().map(Vec::len).sum::<usize>();
    let code = |tokens: &[Vec<(u32, u16)>]| {
        tokens.iter().flatten().fold(0, |code, &(_, topic)| 2 * code + usize::from(topic))
    };
    let mut exact = vec![0.0; 1 << n];
    for (which, exact) in exact.iter_mut().enumerate() {
        let mut bit = n;
        let tokens: Vec<Vec<(u32, u16)>> = slots
            .iter()
            .map(|words| {
                let token = |&word: &u32| {
                    bit -= 1;
                    (word, (which >> bit & 1) as u16)
                };
                words.iter().map(token).collect()
            })
            .collect();
        assert_eq!(code(&tokens), which);
        *exact = log_joint(&tokens, k, v, 0.3, 0.4).exp();
    }
    // Tokens of one word in one document cannot be distinguished: sorted, they share a place.
    let sorted = |which: usize| {
        let mut bit = n;
        let mut tokens: Vec<Vec<(u32, u16)>> = slots
            .iter()
            .map(|words| {
                let token = |&word: &u32| {
                    bit -= 1;
                    (word, (which >> bit & 1) as u16)
                };
                words.iter().map(token).collect()
            })
            .collect();
        tokens.iter_mut().for_each(|tokens| tokens.sort_unstable());
        code(&tokens)
    };
    let total: f64 = exact.iter().sum();
    let mut expected = vec![0.0; 1 << n];
    (0..1 << n).for_each(|which| expected[sorted(which)] += exact[which] / total);
    let sweeps = 200_000;
    let mut seen = vec![0.0; 1 << n];
    for _ in 0..sweeps {
        sampler.step(&mut state, &Watch::unwatched()).unwrap();
        seen[code(&sampler.topics_of(&state))] += 1.0 / f64::from(sweeps);
    }
    for (which, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        let bound = 8.0 * (expected * (1.0 - expected) / f64::from(sweeps)).sqrt() + 1e-4;
        assert!((seen - expected).abs() < bound, "{which:b}: {seen} and {expected}");
    }
}

/// The counts after many sweeps are those of the topics, and the objective is the definition.
#[test]
fn counts_stay_those_of_the_topics() {
    let mut stream = Stream::new(1, "test", 0);
    let rows: Vec<Vec<f64>> =
        (0..40).map(|_| (0..30).map(|_| stream.below(4) as f64).collect()).collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let counts = csr(&rows);
    let sampler = Gibbs::new(plan(7), &counts, None);
    let mut state = sampler.start(0).unwrap();
    for _ in 0..20 {
        let step = sampler.step(&mut state, &Watch::unwatched()).unwrap();
        let tokens = sampler.topics_of(&state);
        let n: f64 = counts.values().iter().sum();
        let expected = -log_joint(&tokens, 7, 30, 0.3, 0.4) / n;
        assert!((step.objective().unwrap() - expected).abs() < 1e-9);
        let mut of_words = vec![0.0f32; 30 * 7];
        for &(word, topic) in tokens.iter().flatten() {
            of_words[word as usize * 7 + usize::from(topic)] += 1.0;
        }
        let found = sampler.word_topics(&state);
        assert_eq!(found, of_words);
        // Lists that are made anew are in another order, and the next sweep is the same all the same.
        let (mut on, mut again) = (state.clone(), sampler.rebuilt(&state));
        let steps = [&mut on, &mut again].map(|state| sampler.step(state, &Watch::unwatched()));
        assert_eq!(sampler.topics_of(&on), sampler.topics_of(&again), "{steps:?}");
    }
}

/// Documents of planted topics, each about one or two of `k`, with words of their own.
fn planted(n: usize, k: usize, per_topic: usize) -> Documents {
    let mut stream = Stream::new(3, "test.planted", 0);
    let texts = (0..n).map(|_| {
        let two = [stream.index(k), stream.index(k)];
        let words = (0..60).map(|_| {
            let topic = two[usize::from(stream.chance(0.3))];
            format!("t{topic:02}w{:02}", stream.index(per_topic))
        });
        words.collect::<Vec<_>>().join(" ")
    });
    Documents::new(texts.collect::<Vec<_>>())
}

#[test]
fn planted_topics_are_recovered() {
    let data = planted(400, 8, 20);
    let fitted = Lda::new().n_topics(8).max_iter(150).fit(&data).unwrap();
    let mut found: Vec<String> = Vec::new();
    for words in fitted.top_words(20) {
        let topic = words[0].0[..3].to_owned();
        assert!(words.iter().all(|(word, _)| word.starts_with(&topic)), "{words:?}");
        assert!(words.iter().map(|(_, p)| p).sum::<f64>() > 0.95);
        found.push(topic);
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 8);
    assert!(fitted.coherence().unwrap().iter().all(|npmi| *npmi > 0.5));
    // A document of one topic is of that topic.
    let mixture = fitted.mixtures(&Documents::new(["t03w01 t03w05 t03w11 t03w02 t03w03"])).unwrap();
    let most = mixture.row(0).iter().copied().fold(0.0, f64::max);
    assert!(most > 0.9, "{mixture:?}");
    let shares = fitted.shares().unwrap();
    assert!(shares.is_sorted_by(|a, b| a >= b));
}

#[test]
fn priors_are_optimised_or_given() {
    let data = planted(300, 5, 20);
    let free = Lda::new().n_topics(5).max_iter(60).fit(&data).unwrap();
    let alpha = free.alpha();
    assert!(alpha.iter().all(|alpha| (0.01..1.0).contains(alpha)), "{alpha:?}");
    assert!(alpha[0] != alpha[1]);
    assert!(free.report.chosen.iter().any(|choice| choice.parameter == "beta"));
    let given = Lda::new().n_topics(5).max_iter(20).alpha(0.5).beta(0.1).fit(&data).unwrap();
    assert_eq!((given.alpha(), given.beta()), (&[0.5; 5][..], 0.1));
}

#[test]
fn chains_are_kept_by_likelihood() {
    let data = planted(100, 4, 10);
    let fitted = Lda::new().n_topics(4).max_iter(20).restarts(3).fit(&data).unwrap();
    let report = &fitted.report;
    assert_eq!(report.iterations, 60);
    let ends: Vec<f64> = [19, 39, 59].map(|at| report.trace[at].objective).to_vec();
    assert_eq!(report.objective, ends.iter().copied().fold(f64::INFINITY, f64::min));
}

/// With fixed priors neither half of a step lowers the bound, but for the tolerance of the documents.
#[test]
fn the_bound_of_variational_inference_never_falls() {
    let data = planted(150, 5, 20);
    let params = Lda::new()
        .n_topics(5)
        .algorithm(LdaAlgorithm::Variational)
        .alpha(0.2)
        .beta(0.05)
        .max_iter(30);
    let trace = params.fit(&data).unwrap().report.trace;
    for pair in trace.windows(2).skip(1) {
        assert!(pair[1].objective <= pair[0].objective + 1e-3, "{pair:?}");
    }
    assert!(trace[29].objective < trace[1].objective - 0.3, "{trace:?}");
}

#[test]
fn variational_inference_finds_planted_topics() {
    let data = planted(400, 5, 20);
    for algorithm in [LdaAlgorithm::Variational, LdaAlgorithm::Online] {
        let fitted =
            Lda::new().n_topics(5).algorithm(algorithm).max_iter(40).batch_size(50).fit(&data);
        let fitted = fitted.unwrap();
        let pure = fitted
            .top_words(15)
            .iter()
            .filter(|words| words.iter().all(|(word, _)| word.starts_with(&words[0].0[..3])))
            .count();
        assert!(pure >= 4, "{algorithm:?}: {:?}", fitted.top_words(15));
        assert!(fitted.alpha().iter().all(|alpha| (0.001..2.0).contains(alpha)));
    }
    let mut batches = OnlineLda::new(&Lda::new().n_topics(5), 400 * 20).unwrap();
    assert!(batches.finish().is_err());
    for _ in 0..20 {
        for first in (0..400).step_by(100) {
            let units: Vec<u32> = (first..first + 100).collect();
            batches.push(data.select(&units).of_kind().unwrap()).unwrap();
        }
    }
    let fitted = batches.finish().unwrap();
    assert_eq!((fitted.n_documents(), batches.n_seen()), (8000, 8000));
    let job = fitted.completion(&data).unwrap().unwrap().perplexity();
    assert!((20.0..50.0).contains(&job), "{job}");
}

#[test]
fn bad_input_is_reported() {
    let said = |result: Result<Fitted<Lda>>| result.unwrap_err().to_string();
    let lda = Lda::new().n_topics(3).max_iter(5);
    assert!(said(lda.fit(&Documents::new(["", "  "]))).contains("no word"));
    assert!(said(lda.fit(&Documents::new(["the of and"]))).contains("stop words"));
    let none = lda.clone().min_df(3.0).fit(&Documents::new(["cat dog", "sun moon"]));
    assert!(said(none).contains("min_df"));
    assert!(said(Lda::new().n_topics(0).fit(&planted(10, 2, 5))).contains("n_topics"));
    let half = Csr::new(2, vec![0, 2], vec![0, 1], vec![0.5, 1.0]).unwrap();
    let half = Documents::counted(&["a", "b"], half).unwrap();
    assert!(said(lda.fit(&half)).contains("whole"));
    // Empty documents and unknown words are no reason to stop.
    let some = Documents::new(["cat dog cat", "", "sun moon sun"]);
    let fitted = lda.fit(&some).unwrap();
    assert!(fitted.report.notes[0].contains("1 of 3 documents"));
    let mixtures = fitted.mixtures(&Documents::new(["", "zebra", "cat"])).unwrap();
    assert_eq!(mixtures.row(0), mixtures.row(1));
    assert!((mixtures.row(0).iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn counts_and_texts_give_the_same_model() {
    let texts = Documents::new(["cat dog cat", "dog dog", "sun moon", "moon sun cat"]);
    let lda = Lda::new().n_topics(2).max_iter(15);
    let of_texts = lda.fit(&texts).unwrap();
    // Columns in another order than that of the alphabet.
    let counts = csr(&[
        &[0.0, 0.0, 1.0, 2.0],
        &[0.0, 0.0, 2.0, 0.0],
        &[1.0, 1.0, 0.0, 0.0],
        &[1.0, 1.0, 0.0, 1.0],
    ]);
    let counted = Documents::counted(&["sun", "moon", "dog", "cat"], counts).unwrap();
    let of_counts = lda.fit(&counted).unwrap();
    assert_eq!(of_texts.word_probabilities(), of_counts.word_probabilities());
    assert_eq!(of_texts.mixtures(&texts).unwrap(), of_counts.mixtures(&counted).unwrap());
    assert_eq!(of_texts.mixtures(&counted).unwrap(), of_counts.mixtures(&texts).unwrap());
}

#[test]
fn held_out_documents_are_scored() {
    let data = planted(300, 5, 20);
    let units: Vec<u32> = (0..300).collect();
    let (train, held_out) = (data.select(&units[..250]), data.select(&units[250..]));
    let (train, held_out) =
        (train.of_kind::<Documents>().unwrap(), held_out.of_kind::<Documents>().unwrap());
    let job = Job::default().validation(held_out);
    let fitted = Lda::new().n_topics(5).max_iter(50).fit_job(train, &job).unwrap();
    let perplexity = fitted.report.validation.unwrap();
    let again = fitted.completion(held_out).unwrap().unwrap().perplexity();
    assert!((perplexity / again - 1.0).abs() < 1e-3, "{perplexity} and {again}");
    // Two topics of twenty words: far fewer than the hundred words there are.
    assert!((20.0..45.0).contains(&perplexity), "{perplexity}");
}

/// Documents that are read in parts give planted topics, and the same bytes again; what must hold its data says so.
#[test]
fn documents_in_parts_give_planted_topics() {
    let all = planted(2000, 5, 8);
    let texts: Vec<String> = all.texts().into_iter().map(str::to_owned).collect();
    let params = Lda::new().n_topics(5).algorithm(LdaAlgorithm::Online).batch_size(100usize);
    let mut readings = 0;
    let mut fit = |params: &Lda| {
        let mut parts = |take: &mut dyn FnMut(Documents) -> Result<bool>| {
            readings += 1;
            for part in texts.chunks(700) {
                if !take(Documents::new(part))? {
                    break;
                }
            }
            Ok(())
        };
        params.fit_parts(&mut parts, &Job::default())
    };
    let fitted = fit(&params.clone().max_iter(3usize)).unwrap();
    // Words of a topic share their first letters in what was planted: see `planted`.
    let whole = params.clone().max_iter(3usize).fit(&all).unwrap();
    let sets = |model: &TopicModel| -> std::collections::BTreeSet<Vec<String>> {
        let tops = model.top_words(8).into_iter();
        tops.map(|top| {
            let mut words: Vec<String> = top.into_iter().map(|word| word.0.to_string()).collect();
            words.sort();
            words
        })
        .collect()
    };
    assert_eq!(sets(&fitted.model), sets(&whole.model));
    assert_eq!(fitted.report.iterations, 3);
    assert!(fitted.report.notes[0].contains("2000 of 2000"), "{:?}", fitted.report.notes);
    let again = fit(&params.clone().max_iter(3usize)).unwrap();
    assert_eq!(fitted.model, again.model);
    let one = fit(&params).unwrap();
    assert!(one.report.chosen.iter().any(|choice| choice.parameter == "max_iter"));
    let error = fit(&Lda::new()).unwrap_err().to_string();
    assert!(error.contains("online"), "{error}");
    assert_eq!(readings, 4 + 4 + 2);
}
