//! Results do not depend on the number of threads, also where vectors are long enough to be cut up.

use gradus_optim::{
    Descent, Lbfgs, Newton, Optimizer, Proximal, objective, proximal::ElasticNetPenalty,
};

const DIM: usize = 200_003;

/// A chain of springs of very different strength, in one thread: only the solvers run in several.
fn chain() -> impl gradus_optim::Objective + Sync {
    let strength = |j: usize| 1.0 + (j % 97) as f64;
    objective::from_fn(
        DIM,
        move |x| {
            let own: f64 = x.iter().enumerate().map(|(j, x)| strength(j) * (x - 1.0).powi(2)).sum();
            let ties: f64 = x.windows(2).map(|w| (w[1] - w[0]).powi(4)).sum();
            0.5 * own + 0.25 * ties
        },
        move |x, g| {
            for (j, g) in g.iter_mut().enumerate() {
                let tie = |at: usize| (x[at + 1] - x[at]).powi(3);
                let before = if j > 0 { tie(j - 1) } else { 0.0 };
                let after = if j + 1 < x.len() { tie(j) } else { 0.0 };
                *g = strength(j) * (x[j] - 1.0) + before - after;
            }
        },
    )
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let f = chain();
    let start: Vec<f64> = (0..DIM).map(|j| ((j * 7919) % 1000) as f64 / 500.0).collect();
    let solvers: [Box<dyn Optimizer + Sync>; 4] = [
        Box::new(Lbfgs::new().max_iter(12)),
        Box::new(Newton::new().max_iter(3)),
        Box::new(Descent::adam(0.1).max_iter(5)),
        Box::new(Descent::nesterov(0.01).max_iter(5)),
    ];
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    for solver in &solvers {
        let run = |threads: usize| pool(threads).install(|| solver.minimize(&f, &start)).unwrap();
        let (one, three) = (run(1), run(3));
        assert!(one.value < 0.9 * one.trace.steps[0].value, "{} goes down", solver.name());
        assert!(one.x == three.x, "{}", solver.name());
        assert_eq!(one.value.to_bits(), three.value.to_bits());
    }
    let run = |threads: usize| {
        let solver = Proximal::fista().max_iter(5);
        pool(threads)
            .install(|| solver.minimize(&f, &ElasticNetPenalty::l1(0.1), &start))
            .unwrap()
            .x
    };
    assert!(run(1) == run(4));
}
