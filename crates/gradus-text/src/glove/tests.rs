use super::problem::start;
use super::*;
use gradus_base::random::Stream;
use gradus_core::embed::Embed as _;
use gradus_core::iterate::{Solver, Watch};
use gradus_data::Csr;
use gradus_kernel::Rows;

/// Counts of a planted model, some of them left out, and whether they are symmetric.
fn planted(n: usize, k: usize, share: f64, symmetric: bool) -> Csr<f32> {
    let mut stream = Stream::new(3, "glove.tests", n as u64);
    let mut draw = |n: usize| (0..n).map(|_| stream.normal()).collect::<Vec<f64>>();
    let (w, mut c) = (draw(n * k), draw(n * k));
    let (b, mut d) = (draw(n), draw(n));
    if symmetric {
        (c, d) = (w.clone(), b.clone());
    }
    let mut kept = Stream::new(4, "glove.tests", n as u64);
    let shown: Vec<bool> = (0..n * n).map(|_| kept.chance(share)).collect();
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for i in 0..n {
        for j in 0..n {
            let pair = if symmetric { i.min(j) * n + i.max(j) } else { i * n + j };
            if shown[pair] {
                let dot: f64 = (0..k).map(|at| w[i * k + at] * c[j * k + at]).sum();
                indices.push(j as u32);
                values.push((0.5 * dot + b[i] + d[j] + 2.0).exp() as f32);
            }
        }
        indptr.push(indices.len());
    }
    Csr::new(n, indptr, indices, values).unwrap()
}

/// The cost, written out.
fn slow_cost(params: &Glove, counts: &Csr<f32>, sides: &Sides) -> f64 {
    let mut sum = 0.0;
    for i in 0..counts.n_rows() {
        for (&j, &n) in counts.row(i).0.iter().zip(counts.row(i).1) {
            let (n, j) = (f64::from(n), j as usize);
            let dot: f64 = (0..params.dimension)
                .map(|at| f64::from(sides.words.row(i)[at]) * f64::from(sides.contexts.row(j)[at]))
                .sum();
            let biases = f64::from(sides.word_biases[i]) + f64::from(sides.context_biases[j]);
            let weight = (n / params.n_max).powf(params.alpha).min(1.0);
            sum += weight * (dot + biases - n.ln()).powi(2);
        }
    }
    0.5 * sum / counts.nnz() as f64
}

fn problem(params: &Glove, counts: &Csr<f32>, symmetric: bool) -> Problem {
    Problem::new(counts.clone(), symmetric, params.n_max, params.alpha).unwrap()
}

#[test]
fn als_never_rises_reports_its_cost_and_finds_planted_vectors() {
    for symmetric in [true, false] {
        let counts = planted(60, 3, 0.7, symmetric);
        let params = Glove::new().dimension(4).regularization(1e-3).solver(GloveSolver::Als);
        let problem = problem(&params, &counts, symmetric);
        let solver = Als::new(&params, &problem);
        let mut state = solver.start(0).unwrap();
        let mut before = f64::INFINITY;
        for _ in 0..40 {
            let cost = solver.step(&mut state, &Watch::unwatched()).unwrap().objective().unwrap();
            assert!(cost <= before * (1.0 + 1e-5), "{cost} after {before}");
            let norms = |rows: &Rows| rows.as_slice().iter().map(|x| f64::from(x * x)).sum::<f64>();
            let penalty = 0.5 * 1e-3 * (norms(&state.words) + norms(&state.contexts));
            let slow = slow_cost(&params, &counts, &state) + penalty / counts.nnz() as f64;
            assert!((cost / slow - 1.0).abs() < 1e-3, "{cost} {slow}");
            before = cost;
        }
        assert!(slow_cost(&params, &counts, &state) < 1e-4, "symmetric: {symmetric}");
    }
}

#[test]
fn a_half_step_of_als_leaves_no_gradient() {
    let counts = planted(25, 2, 0.6, false);
    let params = Glove::new().dimension(3).regularization(0.2).solver(GloveSolver::Als);
    let problem = problem(&params, &counts, false);
    let solver = Als::new(&params, &problem);
    let mut state = solver.start(0).unwrap();
    solver.step(&mut state, &Watch::unwatched()).unwrap();
    // Contexts were solved last.
    for j in 0..25usize {
        let mut gradient = [0.0f64; 4];
        for i in 0..25 {
            let (columns, values) = counts.row(i);
            let Ok(at) = columns.binary_search(&(j as u32)) else { continue };
            let n = f64::from(values[at]);
            let w: Vec<f64> = state.words.row(i)[..3].iter().map(|&x| f64::from(x)).collect();
            let dot: f64 =
                w.iter().zip(state.contexts.row(j)).map(|(a, &b)| a * f64::from(b)).sum();
            let biases = f64::from(state.word_biases[i]) + f64::from(state.context_biases[j]);
            let error = (n / 10.0).powf(0.75).min(1.0) * (dot + biases - n.ln());
            (0..3).for_each(|c| gradient[c] += error * w[c]);
            gradient[3] += error;
        }
        (0..3).for_each(|c| gradient[c] += 0.2 * f64::from(state.contexts.row(j)[c]));
        assert!(gradient.iter().all(|x| x.abs() < 1e-4), "{gradient:?}");
    }
}

#[test]
fn adagrad_finds_planted_vectors_and_reports_its_cost() {
    let counts = planted(80, 3, 0.7, true);
    let params = Glove::new().dimension(4).learning_rate(0.2);
    let problem = problem(&params, &counts, true);
    let solver = AdaGrad::new(&params, &problem);
    let mut state = solver.start(0).unwrap();
    let first = slow_cost(&params, &counts, &solver.finish(&state));
    let mut trace = Vec::new();
    for _ in 0..400 {
        trace.extend(solver.step(&mut state, &Watch::unwatched()).unwrap().objective());
    }
    let last = slow_cost(&params, &counts, &solver.finish(&state));
    assert!(last < 0.02 * first, "{first} {last}");
    // The cost of an epoch is met before its steps: between that of its start and that of its end, about.
    let reported = trace[trace.len() - 1];
    assert!((reported / last - 1.0).abs() < 0.2, "{reported} {last}");
    assert!(trace[0] < 1.5 * first && trace[20] < trace[0]);
}

#[test]
fn both_solvers_give_the_same_bits_on_any_number_of_threads() {
    let texts: Vec<String> = (0..300)
        .map(|at| {
            let mut stream = Stream::new(7, "glove.texts", at);
            let words = (0..30).map(|_| format!("w{}", stream.below(60) * stream.below(2)));
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let documents = Documents::new(&texts);
    for solver in [GloveSolver::AdaGrad, GloveSolver::Als] {
        for context in [ContextSide::Symmetric, ContextSide::Right] {
            let params = Glove::new().dimension(7).max_iter(3).solver(solver).context(context);
            let fits: Vec<Vec<u8>> = [1, 2, 7]
                .into_iter()
                .map(|threads| {
                    let pool =
                        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| params.fit(&documents).unwrap().to_bytes().unwrap())
                })
                .collect();
            assert!(fits.iter().all(|fit| *fit == fits[0]), "{solver:?} {context:?}");
            let limited = params.clone().memory_limit(1).fit(&documents).unwrap();
            assert_eq!(limited.model, params.fit(&documents).unwrap().model);
        }
    }
}

#[test]
fn words_of_the_same_contexts_are_near_each_other() {
    let texts: Vec<String> = (0..200)
        .flat_map(|at| {
            let pick = |words: [&str; 2], bit: usize| words[at >> bit & 1].to_owned();
            [
                format!("my {} eats {} daily", pick(["cat", "dog"], 0), pick(["fish", "meat"], 1)),
                format!(
                    "one {} drives down a {}",
                    pick(["car", "bus"], 2),
                    pick(["road", "street"], 3)
                ),
            ]
        })
        .collect();
    let documents = Documents::new(&texts);
    for solver in [GloveSolver::AdaGrad, GloveSolver::Als] {
        let params = Glove::new().dimension(8).solver(solver);
        let fitted = params.max_iter(100).fit(&documents).unwrap();
        let similarity = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|word| fitted.vector(fitted.find(word).unwrap()));
            gradus_core::embed::cosine(a, b)
        };
        for (word, other) in [("cat", "dog"), ("car", "bus"), ("road", "street"), ("fish", "meat")]
        {
            let far = if ["cat", "fish"].contains(&word) { "bus" } else { "dog" };
            let (near, far) = (similarity(word, other), similarity(word, far));
            assert!(near > 0.5 && near > far + 0.3, "{solver:?} {word}: {near} {far}");
        }
    }
}

#[test]
fn independent_words_are_met_by_the_first_biases() {
    // Counts of independent words: n(i, j) = a_i a_j.
    let a = [1.0f32, 2.0, 4.0, 8.0];
    let values = a.iter().flat_map(|x| a.iter().map(move |y| x * y)).collect();
    let indices = (0..16).map(|at| at % 4).collect();
    let counts = Csr::new(4, vec![0, 4, 8, 12, 16], indices, values).unwrap();
    let params = Glove::new().dimension(2);
    let sides = start(&params, &problem(&params, &counts, true), 0.0);
    assert!(slow_cost(&params, &counts, &sides) < 1e-10);
}

#[test]
fn what_cannot_be_learned_from_is_named() {
    let message =
        |params: Glove, texts: &[&str]| params.fit(&Documents::new(texts)).unwrap_err().to_string();
    let few = Glove::new().min_count(1);
    let empty = message(Glove::new(), &["too rare a word"]);
    assert!(empty.contains("glove") && empty.contains("the vocabulary is empty"), "{empty}");
    assert!(message(few.clone(), &["word"]).contains("no word of the vocabulary is near another"));
    let many: Vec<String> = (0..20_000).map(|at| format!("w{at} ")).collect();
    let error = message(few.clone().memory_limit(1), &[&many.concat()]);
    assert!(error.contains("memory_limit") && error.contains("megabytes for 20000"), "{error}");
    assert!(message(few.n_max(0.0), &["a b"]).contains("n_max"));
}
