use super::*;
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::transform::{ScoresAndGradient, Weigh};
use gradus_data::{Dense, Matrix};
use std::cell::RefCell;
use std::collections::HashMap;

/// A linear classifier that shows as much as it is told to, and counts what it is asked.
struct Linear {
    w: Dense<f64>,
    b: Vec<f64>,
    access: Access,
    affine: bool,
    asked: RefCell<usize>,
}

impl Linear {
    fn random(seed: u64, k: usize, d: usize, access: Access) -> Self {
        let mut stream = Stream::new(seed, "test.linear", 0);
        Self {
            w: Dense::from_fn(k, d, |_, _| stream.normal()),
            b: (0..k).map(|at| 0.1 * at as f64).collect(),
            access,
            affine: false,
            asked: RefCell::new(0),
        }
    }
}

impl Classifier for Linear {
    fn n_features(&self) -> usize {
        self.w.n_cols()
    }

    fn n_classes(&self) -> usize {
        self.b.len()
    }

    fn access(&self) -> Access {
        self.access
    }

    fn decide(&self, features: &Matrix) -> Result<Vec<u32>> {
        Ok(gradus_core::predict::strongest(&self.scores(features)?))
    }

    fn scores(&self, features: &Matrix) -> Result<Dense<f64>> {
        *self.asked.borrow_mut() += features.n_rows();
        let x = features.to_dense();
        let dot = |row: usize, class: usize| {
            x.row(row).iter().zip(self.w.row(class)).map(|(x, w)| x * w).sum::<f64>()
                + self.b[class]
        };
        Ok(Dense::from_fn(x.n_rows(), self.b.len(), dot))
    }

    fn scores_and_gradient(
        &self,
        features: &Matrix,
        weigh: &mut Weigh<'_>,
    ) -> Result<ScoresAndGradient> {
        let scores = self.scores(features)?;
        let weights = weigh(0, &scores);
        let slope = |row: usize, at: usize| {
            (0..self.b.len()).map(|class| weights[(row, class)] * self.w[(class, at)]).sum()
        };
        let gradient = Dense::from_fn(scores.n_rows(), self.w.n_cols(), slope);
        Ok(ScoresAndGradient { scores, gradient })
    }

    fn affine(&self) -> Option<(Dense<f64>, Vec<f64>)> {
        self.affine.then(|| (self.w.clone(), self.b.clone()))
    }
}

fn rows(n: usize, d: usize) -> Dense<f64> {
    let mut stream = Stream::new(5, "test.rows", 0);
    Dense::from_fn(n, d, |_, _| stream.uniform())
}

fn audited(
    victim: &Linear,
    space: &Space,
    x: &Dense<f64>,
    options: &RobustnessOptions,
) -> Robustness {
    let truth = victim.decide(&Matrix::Dense(x.clone())).unwrap();
    let truth: Vec<Option<u32>> = truth.into_iter().map(Some).collect();
    audit(victim, space, x, &truth, options, &|| false).unwrap()
}

/// A space between 0 and 1, where rows lie.
fn unit_box(norm: Norm, d: usize) -> Space {
    Space { low: vec![0.0; d], high: vec![1.0; d], ..Space::new(norm, d) }
}

fn exact(victim: &Linear, space: &Space, x: &Dense<f64>) -> Vec<f64> {
    let truth = victim.decide(&Matrix::Dense(x.clone())).unwrap();
    let one = |(row, truth): (&[f64], u32)| {
        linear_distance(&victim.w, &victim.b, row, truth, space).distance
    };
    x.rows().zip(truth).map(one).collect()
}

#[test]
fn shortest_perturbations_of_linear_models_are_found_to_one_in_a_hundred() {
    for (k, d) in [(2, 5), (4, 12)] {
        for norm in [Norm::Linf, Norm::L2, Norm::L1] {
            for bounded in [false, true] {
                let victim = Linear::random(3, k, d, Access::Gradients);
                let space = if bounded { unit_box(norm, d) } else { Space::new(norm, d) };
                let x = rows(24, d);
                let truth = exact(&victim, &space, &x);
                let options = RobustnessOptions {
                    eps: 1e3,
                    attacks: vec![Attack::FabT],
                    ..Default::default()
                };
                let found = audited(&victim, &space, &x, &options);
                // A large radius is enough for the first perturbation, a small one asks for the shortest.
                let options = RobustnessOptions { eps: 1e-9, curve: vec![1e3], ..options };
                let shortest = audited(&victim, &space, &x, &options);
                for (at, truth) in truth.iter().enumerate() {
                    assert_eq!(found.rows[at].distance.is_some(), truth.is_finite());
                    if let Some(distance) = shortest.rows[at].distance {
                        let ratio = distance / truth;
                        assert!(
                            (1.0 - 1e-6..1.01).contains(&ratio),
                            "{norm} {k} {bounded}: {ratio}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn attacks_at_a_radius_succeed_just_beyond_the_exact_distance_and_never_before() {
    for attack in [Attack::Fgsm, Attack::Pgd, Attack::ApgdCe, Attack::ApgdDlr, Attack::ApgdT] {
        for norm in [Norm::Linf, Norm::L2, Norm::L1] {
            // Of more classes a loss that looks at all of them at once may follow one that is not the nearest.
            let k = if attack == Attack::ApgdT { 4 } else { 2 };
            let (d, n) = (6, 20);
            let victim = Linear::random(8, k, d, Access::Gradients);
            let x = rows(n, d);
            let space = Space::new(norm, d);
            let truth = exact(&victim, &space, &x);
            let (mut beyond, mut before) = (0, 0);
            for at in 0..n {
                let one = Dense::from_fn(1, d, |_, column| x[(at, column)]);
                let run = |eps: f64| {
                    let options =
                        RobustnessOptions { eps, attacks: vec![attack], ..Default::default() };
                    audited(&victim, &space, &one, &options).fallen().count()
                };
                beyond += run(1.01 * truth[at]);
                before += run(0.99 * truth[at]);
            }
            assert_eq!(
                before, 0,
                "{attack} {norm}: a decision changed within the certified radius"
            );
            assert_eq!(beyond, n, "{attack} {norm}");
        }
    }
}

#[test]
fn attacks_without_gradients_come_near_and_keep_to_their_budget() {
    let (d, n, queries) = (8, 12, 2000);
    for norm in [Norm::Linf, Norm::L2, Norm::L1] {
        for attack in [Attack::Square, Attack::Differences, Attack::HopSkipJump] {
            let victim = Linear::random(2, 3, d, attack.access());
            let x = rows(n, d);
            let space = unit_box(norm, d);
            let truth = exact(&victim, &space, &x);
            let far = truth.iter().copied().filter(|far| far.is_finite()).fold(0.0, f64::max);
            let options = RobustnessOptions {
                eps: 1.1 * far,
                attacks: vec![attack],
                queries,
                ..Default::default()
            };
            let found = audited(&victim, &space, &x, &options);
            let fell = found.fallen().count();
            assert!(
                fell + 1 >= truth.iter().filter(|far| far.is_finite()).count(),
                "{attack} {norm}: {fell}"
            );
            assert!(found.attacks[0].queries <= (n * queries) as u64, "{attack} {norm}");
            for (row, truth) in found.rows.iter().zip(&truth) {
                assert!(
                    row.distance.is_none_or(|distance| distance >= truth * (1.0 - 1e-9)),
                    "{attack} {norm}"
                );
            }
            // A small radius is out of reach, and takes the whole budget without going beyond it.
            let options = RobustnessOptions {
                eps: 1e-6,
                attacks: vec![attack],
                queries: 300,
                ..Default::default()
            };
            let stands = audited(&victim, &space, &x, &options);
            assert_eq!(stands.robust.count, n);
            assert!(
                stands.attacks[0].queries <= (n * 300) as u64,
                "{attack}: {}",
                stands.attacks[0].queries
            );
        }
    }
}

#[test]
fn hop_skip_jump_comes_within_a_tenth_of_the_exact_distance() {
    let d = 6;
    let victim = Linear::random(4, 3, d, Access::Decisions);
    let x = rows(10, d);
    for norm in [Norm::L2, Norm::Linf] {
        let space = Space::new(norm, d);
        let truth = exact(&victim, &space, &x);
        let options = RobustnessOptions {
            eps: 1e-6,
            queries: 20_000,
            curve: vec![10.0],
            ..Default::default()
        };
        let found = audited(&victim, &space, &x, &options);
        let ratios: Vec<f64> = found
            .rows
            .iter()
            .zip(&truth)
            .map(|(row, truth)| row.distance.unwrap_or(f64::INFINITY) / truth)
            .collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        assert!(mean < 1.1, "{norm}: {ratios:?}");
    }
}

#[test]
fn the_exact_audit_counts_distances() {
    let mut victim = Linear::random(7, 3, 4, Access::Gradients);
    victim.affine = true;
    let x = rows(200, 4);
    let space = unit_box(Norm::L2, 4);
    let truth = exact(&victim, &space, &x);
    let options = RobustnessOptions { eps: 0.2, curve: vec![0.05, 0.4], ..Default::default() };
    let found = audited(&victim, &space, &x, &options);
    assert!(found.exact);
    let stand = |eps: f64| truth.iter().filter(|far| **far > eps * (1.0 + 1e-6)).count();
    let curve: Vec<(f64, usize)> =
        found.curve.iter().map(|point| (point.eps, point.robust.count)).collect();
    assert_eq!(curve, [(0.0, 200), (0.05, stand(0.05)), (0.2, stand(0.2)), (0.4, stand(0.4))]);
    assert!(found.robust.interval.contains(found.robust.value));
    // A space of whole numbers has no exact distances.
    let mut space = space;
    space.integer[0] = true;
    let options = RobustnessOptions { attacks: vec![Attack::Exact], ..options };
    let truth: Vec<Option<u32>> =
        victim.decide(&Matrix::Dense(x.clone())).unwrap().into_iter().map(Some).collect();
    let error = audit(&victim, &space, &x, &truth, &options, &|| false).unwrap_err().to_string();
    assert!(error.contains("linear models alone") && error.contains("fab-t"), "{error}");
}

#[test]
fn results_do_not_depend_on_threads_nor_on_the_rows_beside() {
    let victim = Linear::random(9, 5, 9, Access::Gradients);
    let x = rows(30, 9);
    let space = unit_box(Norm::L2, 9);
    let options = RobustnessOptions {
        eps: 0.1,
        iterations: 20,
        queries: 200,
        curve: vec![0.05],
        ..Default::default()
    };
    let attacks =
        [Attack::ApgdCe, Attack::ApgdT, Attack::FabT, Attack::Square, Attack::HopSkipJump];
    for attack in attacks {
        let options = RobustnessOptions { attacks: vec![attack], ..options.clone() };
        let mut seen: HashMap<usize, String> = HashMap::new();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (w, b) = (victim.w.clone(), victim.b.clone());
            let (x, space, options) = (x.clone(), space.clone(), options.clone());
            let found = pool.install(move || {
                let victim = Linear {
                    w,
                    b,
                    access: Access::Gradients,
                    affine: false,
                    asked: RefCell::new(0),
                };
                audited(&victim, &space, &x, &options)
            });
            seen.insert(threads, format!("{:?}", (&found.rows, &found.examples)));
        }
        assert_eq!(seen[&1], seen[&3], "{attack}");
    }
}

#[test]
fn attacks_keep_to_what_may_change() {
    let d = 7;
    let victim = Linear::random(1, 3, d, Access::Gradients);
    let mut space = Space::new(Norm::Linf, d);
    space.unit[0] = 0.0;
    space.integer[1] = true;
    space.unit[2] = 3.0;
    space.categories.push(Category { features: 4..7, cost: 1.0, implicit: false });
    let x = Dense::from_fn(30, d, |row, column| match column {
        1 => (row % 4) as f64,
        4..7 => f64::from(row % 3 == column - 4),
        _ => (row * 7 % 11) as f64 / 11.0,
    });
    for attack in [Attack::Pgd, Attack::ApgdCe, Attack::FabT, Attack::Square, Attack::HopSkipJump] {
        let options = RobustnessOptions {
            eps: 1.5,
            attacks: vec![attack],
            queries: 500,
            ..Default::default()
        };
        let found = audited(&victim, &space, &x, &options);
        assert!(found.fallen().count() > 0, "{attack}");
        for (at, example) in found.examples.iter().enumerate() {
            let Some(example) = example else { continue };
            assert_eq!(example[0], x[(at, 0)]);
            assert_eq!(example[1].fract(), 0.0);
            let words = &example[4..7];
            assert!(
                words.iter().all(|x| *x == 0.0 || *x == 1.0) && words.iter().sum::<f64>() == 1.0,
                "{attack}: {example:?}"
            );
            let row = &found.rows[at];
            assert_eq!(row.distance, Some(space.distance(x.row(at), example)));
            let class = victim
                .decide(&Matrix::Dense(Dense::new(1, d, example.clone()).unwrap()))
                .unwrap()[0];
            assert_eq!(Some(class), row.becomes);
            assert_ne!(class, row.predicted);
        }
    }
}

#[test]
fn bad_input_is_refused_with_what_would_work() {
    let victim = Linear::random(1, 2, 3, Access::Scores);
    let x = rows(4, 3);
    let truth = vec![Some(0); 4];
    let text = |x: &Dense<f64>, truth: &[Option<u32>], options: RobustnessOptions| {
        audit(&victim, &Space::new(Norm::Linf, 3), x, truth, &options, &|| false)
            .unwrap_err()
            .to_string()
    };
    let options = RobustnessOptions::default();
    for eps in [-0.1, f64::NAN, f64::INFINITY] {
        let error = text(&x, &truth, RobustnessOptions { eps, ..options.clone() });
        assert!(error.contains("`eps`") && error.contains("0 or more"), "{error}");
    }
    let error = text(&x, &truth, RobustnessOptions { curve: vec![0.1, -1.0], ..options.clone() });
    assert!(error.contains("`curve` = -1"), "{error}");
    let error =
        text(&x, &truth, RobustnessOptions { attacks: vec![Attack::Pgd], ..options.clone() });
    assert!(
        error.contains("gradient")
            && error.contains("would work: square, differences, transfer, hopskipjump"),
        "{error}"
    );
    let error = text(&x, &truth, RobustnessOptions { queries: 0, ..options.clone() });
    assert!(error.contains("`queries` = 0"), "{error}");
    let mut holes = x.clone();
    holes.row_mut(2)[1] = f64::NAN;
    let error = text(&holes, &truth, options.clone());
    assert!(error.contains("NaN") || error.contains("finite"), "{error}");
    let error = text(&x, &truth[..3], options.clone());
    assert!(error.contains("expected 4, got 3"), "{error}");
    let error = text(&Dense::full(0, 3, 0.0), &[], options);
    assert!(error.contains("no rows"), "{error}");
    assert!(Attack::parse("pdg").unwrap_err().to_string().contains("apgd-ce"));
}

#[test]
fn wrong_decisions_are_not_attacked() {
    let victim = Linear::random(1, 2, 3, Access::Scores);
    let x = rows(10, 3);
    let decided = victim.decide(&Matrix::Dense(x.clone())).unwrap();
    let mut truth: Vec<Option<u32>> = decided.iter().map(|class| Some(*class)).collect();
    truth[0] = Some(1 - decided[0]);
    truth[1] = None;
    let options = RobustnessOptions {
        eps: 1e-9,
        queries: 10,
        attacks: vec![Attack::Square],
        ..Default::default()
    };
    let found = audit(&victim, &Space::new(Norm::L2, 3), &x, &truth, &options, &|| false).unwrap();
    assert_eq!((found.accuracy.count, found.robust.count, found.attacks[0].tried), (8, 8, 8));
    assert_eq!(found.rows[1].truth, None);
}

#[test]
fn certificates_of_a_linear_model_stay_below_its_distance_and_come_near_it() {
    let victim = Linear::random(6, 2, 4, Access::Decisions);
    let x = rows(30, 4);
    let space = Space::new(Norm::L2, 4);
    let truth = victim.decide(&Matrix::Dense(x.clone())).unwrap();
    let truth: Vec<Option<u32>> = truth.into_iter().map(Some).collect();
    let options = Smoothing { sigma: 0.5, n_estimate: 4000, ..Default::default() };
    let found = certify(&victim, &space, &x, &truth, &[0.0, 0.2], &options).unwrap();
    // A linear classifier smoothed by normal noise decides as before, and its true radius is the distance to the hyperplane.
    let (mut near, mut certified) = (0, 0);
    for (row, distance) in found.rows.iter().zip(exact(&victim, &space, &x)) {
        assert!(row.radius <= distance + 1e-9, "{} above {distance}", row.radius);
        if distance < found.largest && distance > 0.1 {
            certified += 1;
            near += usize::from(row.radius > 0.75 * distance);
        }
    }
    assert!(certified > 5 && near * 10 >= certified * 9, "{near} of {certified}");
    assert!(found.curve[0].1.count >= found.curve[1].1.count);
    let wrong = certify(&victim, &Space::new(Norm::Linf, 4), &x, &truth, &[], &options);
    assert!(wrong.unwrap_err().to_string().contains("l2"));
    let wrong = certify(&victim, &space, &x, &truth, &[], &Smoothing { sigma: -1.0, ..options });
    assert!(wrong.unwrap_err().to_string().contains("`sigma` = -1"));
}

#[test]
fn perturbations_of_a_stolen_model_transfer() {
    use gradus_core::estimator::Fit as _;
    let d = 6;
    let victim = Linear::random(11, 3, d, Access::Decisions);
    let x = rows(120, d);
    let space = unit_box(Norm::L2, d);
    let fit = |samples: &gradus_data::Samples| {
        Ok(gradus_linear::Logistic::new().fit(samples)?.into_any())
    };
    let stolen = steal(&victim, &space, &x, 1000, 3, &fit).unwrap();
    assert_eq!((stolen.queries, *victim.asked.borrow()), (1000, 1000));
    assert!(stolen.agreement > 0.9, "{}", stolen.agreement);
    let surrogate = ModelClassifier::new(&stolen.model).unwrap();
    let truth = exact(&victim, &space, &x);
    let mut finite: Vec<f64> = truth.iter().copied().filter(|far| far.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    let options = RobustnessOptions {
        eps: finite[finite.len() * 3 / 4],
        attacks: vec![Attack::Transfer],
        ..Default::default()
    };
    let decided: Vec<Option<u32>> =
        victim.decide(&Matrix::Dense(x.clone())).unwrap().into_iter().map(Some).collect();
    let found =
        audit_with(&victim, Some(&surrogate), &space, &x, &decided, &options, &|| false).unwrap();
    let could = truth.iter().filter(|far| **far <= options.eps).count();
    assert!(found.fallen().count() * 10 >= could * 7, "{} of {could}", found.fallen().count());
    assert_eq!(found.attacks[0].queries, 120, "one decision a row");
    let error = audit(&victim, &space, &x, &decided, &options, &|| false).unwrap_err().to_string();
    assert!(error.contains("surrogate"), "{error}");
    let error = steal(&victim, &space, &x, 5, 3, &fit).err().unwrap().to_string();
    assert!(error.contains("20 decisions"), "{error}");
}

#[test]
fn an_audit_ends_when_asked_to() {
    let victim = Linear::random(1, 2, 3, Access::Scores);
    let x = rows(4, 3);
    let truth: Vec<Option<u32>> =
        victim.decide(&Matrix::Dense(x.clone())).unwrap().into_iter().map(Some).collect();
    let options = RobustnessOptions {
        eps: 1e-9,
        queries: 1_000_000_000,
        attacks: vec![Attack::Square],
        ..Default::default()
    };
    let asked = || *victim.asked.borrow() > 100;
    let error = audit(&victim, &Space::new(Norm::L2, 3), &x, &truth, &options, &asked).unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
    assert!(*victim.asked.borrow() < 200);
}
