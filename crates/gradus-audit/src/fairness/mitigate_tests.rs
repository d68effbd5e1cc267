//! Mitigated models on planted data: what they promise, alone and from a file.

use super::*;
use gradus_base::random::Stream;
use gradus_core::dataset::Dataset;
use gradus_core::estimator::{Fit, Fitted};
use gradus_core::predict::Predict;
use gradus_data::{Dense, Id, Samples};

/// Groups of unlike size and base rate; one feature tells the group, one the class.
fn biased(n: usize, seed: u64) -> GroupedSamples {
    let mut stream = Stream::new(seed, "test.mitigate", 0);
    let (mut x, mut y, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let minor = stream.chance(0.3);
        let merit = stream.normal();
        let score = 1.5 * merit + if minor { -1.0 } else { 0.5 } + 0.7 * stream.normal();
        let proxy = if minor { -1.0 } else { 1.0 } + 0.5 * stream.normal();
        x.extend([merit, proxy, stream.normal()]);
        y.push(Id::Text(if score > 0.0 { "yes" } else { "no" }));
        words.push(if minor { "minor" } else { "major" });
    }
    let samples = Samples::classification(Dense::new(n, 3, x).unwrap(), y).unwrap();
    GroupedSamples::new(samples, vec![SensitiveGroups::from_words("group", &words).unwrap()])
        .unwrap()
}

fn number(values: impl IntoIterator<Item = u32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

/// The accuracy, and the gaps of demographic parity and of equalised odds, in expectation over the coins.
fn reached(model: &FairModel, data: &GroupedSamples) -> (f64, f64, f64) {
    let samples = model.samples(data).unwrap();
    let p = model.decision_probabilities(samples.features()).unwrap();
    let truth = number(samples.classes().unwrap().0.iter().copied());
    let right = truth.iter().zip(&p).map(|(y, p)| y * p + (1.0 - y) * (1.0 - p)).sum::<f64>();
    let gap = |class: Option<f64>| {
        let mut rates = vec![(0.0, 0.0); data.groups().n_groups()];
        for (row, &group) in data.groups().codes().iter().enumerate() {
            if class.is_none_or(|class| class == truth[row]) {
                rates[group as usize].0 += p[row];
                rates[group as usize].1 += 1.0;
            }
        }
        let rates: Vec<f64> = rates.iter().map(|(s, n)| s / n).collect();
        rates.iter().copied().fold(0.0, f64::max) - rates.iter().copied().fold(1.0, f64::min)
    };
    (right / truth.len() as f64, gap(None), gap(Some(1.0)).max(gap(Some(0.0))))
}

fn again<P: Fit<Model = FairModel>>(fitted: &Fitted<P>) -> FairModel {
    let bytes = fitted.to_bytes().unwrap();
    let mut file = gradus_file::Reader::from_bytes(bytes).unwrap();
    Fitted::<P>::read(&mut file).unwrap().model
}

#[test]
fn the_reduction_keeps_its_bound_and_most_of_the_accuracy() {
    let data = biased(4000, 1);
    let plain = FairReduction::new().difference_bound(1.0).fit(&data).unwrap();
    let (best, parity, odds) = reached(&plain, &data);
    assert!(parity > 0.3 && odds > 0.05, "the data are unfair: {parity} {odds}");
    for (constraint, bound) in [
        (RateConstraint::DemographicParity, 0.01),
        (RateConstraint::EqualizedOdds, 0.01),
        (RateConstraint::TruePositiveRateParity, 0.02),
        (RateConstraint::FalsePositiveRateParity, 0.02),
    ] {
        let fitted =
            FairReduction::new().constraint(constraint).difference_bound(bound).fit(&data).unwrap();
        let model = again(&fitted);
        assert_eq!(model, fitted.model);
        assert!(!model.needs_groups());
        let (accuracy, parity, odds) = reached(&model, &data);
        // The gap of two groups is at most twice the distance from the common rate.
        match constraint {
            RateConstraint::DemographicParity => assert!(parity <= 2.0 * bound + 1e-9, "{parity}"),
            RateConstraint::EqualizedOdds => assert!(odds <= 2.0 * bound + 1e-9, "{odds}"),
            _ => {}
        }
        assert!(
            accuracy > best - 0.12 && accuracy <= best + 0.01,
            "{constraint:?}: {accuracy} of {best}"
        );
        // Decisions follow their probabilities.
        let samples = model.samples(&data).unwrap();
        let p = model.decision_probabilities(samples.features()).unwrap();
        let decided = model.classes(samples.features()).unwrap();
        let expected: f64 = p.iter().sum();
        let spread: f64 = p.iter().map(|p| p * (1.0 - p)).sum::<f64>().sqrt();
        let found: f64 = decided.iter().map(|d| f64::from(*d)).sum();
        assert!(
            (found - expected).abs() <= 5.0 * spread + 1e-6,
            "{found} and {expected} ± {spread}"
        );
    }
}

#[test]
fn a_weight_is_worth_the_sample_so_often() {
    let data = biased(600, 2);
    let weights: Vec<f64> = (0..600).map(|row| (row % 3) as f64).collect();
    let weighted = GroupedSamples::new(
        data.samples().clone().with_weights(weights).unwrap(),
        data.attributes().to_vec(),
    )
    .unwrap();
    let rows: Vec<u32> =
        (0..600u32).flat_map(|row| std::iter::repeat_n(row, row as usize % 3)).collect();
    let repeated = data.select(&rows);
    let repeated = repeated.downcast_ref::<GroupedSamples>().unwrap();
    for constraint in [RateConstraint::DemographicParity, RateConstraint::EqualizedOdds] {
        let fit = |data: &GroupedSamples| {
            let found = FairThresholds::new().constraint(constraint).regularization(0.01).fit(data);
            let (accuracy, _, _) = reached(&found.as_ref().unwrap().model, repeated);
            (accuracy, found.unwrap().report.objective)
        };
        let (a, b) = (fit(&weighted), fit(repeated));
        assert!(
            (a.0 - b.0).abs() < 1e-6 && (a.1 - b.1).abs() < 1e-6,
            "{constraint:?}: {a:?} {b:?}"
        );
        let fit = |data: &GroupedSamples| {
            FairReduction::new().constraint(constraint).fit(data).unwrap().report.objective
        };
        assert!((fit(&weighted) - fit(repeated)).abs() < 5e-3);
    }
}

#[test]
fn thresholds_make_rates_equal_and_need_the_group() {
    let data = biased(4000, 3);
    for constraint in [RateConstraint::DemographicParity, RateConstraint::EqualizedOdds] {
        let fitted = FairThresholds::new().constraint(constraint).fit(&data).unwrap();
        let model = again(&fitted);
        assert_eq!(model, fitted.model);
        let (accuracy, parity, odds) = reached(&model, &data);
        let gap = if constraint == RateConstraint::DemographicParity { parity } else { odds };
        assert!(gap < 1e-9, "{constraint:?}: {gap}");
        assert!((1.0 - accuracy - fitted.report.objective).abs() < 1e-9);
        let names = model.inputs().feature_names();
        assert_eq!(names, ["x1", "x2", "x3", "group=major", "group=minor"]);
        // Without the group, and with a group that training did not have.
        let other = SensitiveGroups::from_words("race", &["x", "y"].repeat(2000)).unwrap();
        let without = GroupedSamples::new(data.samples().clone(), vec![other]).unwrap();
        let error = model.samples(&without).unwrap_err().to_string();
        assert!(error.contains("no groups of `group`"), "{error}");
        let neither = gradus_data::Matrix::from(Dense::from_rows(&[[0.0, 0.0, 0.0, 0.5, 0.5]]));
        let error = model.classes(&neither).unwrap_err().to_string();
        assert!(error.contains("row 1") && error.contains("major, minor"), "{error}");
        let odd = SensitiveGroups::from_words("group", &["minor", "third"].repeat(2000)).unwrap();
        let odd = GroupedSamples::new(data.samples().clone(), vec![odd]).unwrap();
        assert!(model.samples(&odd).unwrap_err().to_string().contains("`third`"));
    }
}

#[test]
fn features_without_the_group_have_equal_mean_scores() {
    let data = biased(3000, 4);
    let fitted = FairFeatures::new().fit(&data).unwrap();
    let model = again(&fitted);
    assert_eq!(model, fitted.model);
    let samples = model.samples(&data).unwrap();
    let scores = model.scores(samples.features()).unwrap();
    let by_group = MeasureByGroup::new(
        GroupMeasure::MeanPrediction,
        scores.values(),
        scores.values(),
        data.groups(),
        None,
    )
    .unwrap();
    assert!(by_group.difference(Against::BetweenGroups) < 1e-9, "{by_group:?}");
    let p = model.probabilities(samples.features()).unwrap().unwrap();
    assert!(p.rows().all(|row| (row[0] + row[1] - 1.0).abs() < 1e-12));
    let reweighed = FairFeatures::new().decorrelate(false).reweigh(true).fit(&data).unwrap();
    let (_, unfair, _) =
        reached(&FairReduction::new().difference_bound(1.0).fit(&data).unwrap(), &data);
    // Weights leave the proxy among the features, and do less.
    for (model, share) in [(&fitted.model, 0.5), (&reweighed.model, 0.8)] {
        let (_, parity, _) = reached(model, &data);
        assert!(parity < share * unfair, "{parity} of {unfair}");
    }
    let neither = FairFeatures::new().decorrelate(false).fit(&data).unwrap_err().to_string();
    assert!(neither.contains("decorrelate") && neither.contains("reweigh"), "{neither}");
}

#[test]
fn groups_that_are_too_small_are_refused_by_name() {
    let data = biased(200, 5);
    let mut words = vec!["many"; 200];
    words[7] = "one";
    let groups = SensitiveGroups::from_words("sex", &words).unwrap();
    let small = GroupedSamples::new(data.samples().clone(), vec![groups]).unwrap();
    let texts = [
        FairReduction::new().fit(&small).unwrap_err().to_string(),
        FairThresholds::new().fit(&small).unwrap_err().to_string(),
        FairFeatures::new().fit(&small).unwrap_err().to_string(),
    ];
    for text in texts {
        assert!(text.contains("group `one` of `sex` has 1 sample"), "{text}");
    }
}

#[test]
fn intersections_of_attributes_are_groups() {
    let data = biased(3000, 6);
    let ages: Vec<&str> = (0..3000).map(|row| ["old", "young"][row / 7 % 2]).collect();
    let ages = SensitiveGroups::from_words("age", &ages).unwrap();
    let both =
        GroupedSamples::new(data.samples().clone(), vec![data.attributes()[0].clone(), ages])
            .unwrap();
    assert_eq!(both.groups().n_groups(), 4);
    let fitted =
        FairThresholds::new().constraint(RateConstraint::DemographicParity).fit(&both).unwrap();
    let model = again(&fitted);
    let (_, parity, _) = reached(&model, &both);
    assert!(parity < 1e-9, "{parity}");
    assert_eq!(model.inputs().n_features(), 7);
}

#[test]
fn thresholds_go_around_any_model_and_its_file_holds_both() {
    let (train, valid, test) = (biased(2000, 8), biased(3000, 9), biased(3000, 10));
    let registry = gradus_core::registry::Registry::new()
        .with::<gradus_linear::Logistic>()
        .with::<gradus_linear::Svm>()
        .with::<FairThresholds>();
    let logistic = gradus_linear::Logistic::new().fit(train.samples()).unwrap().into_any();
    let kernel = gradus_linear::Svm::new().kernel(gradus_linear::Kernel::Rbf);
    let machine = kernel.fit(train.samples()).unwrap().into_any();
    for inner in [logistic, machine] {
        let kind = inner.kind;
        for constraint in [RateConstraint::DemographicParity, RateConstraint::EqualizedOdds] {
            let base = registry.from_bytes(inner.to_bytes().unwrap()).unwrap();
            let fair = FairThresholds::new().constraint(constraint);
            let fitted = fair.fit_around(base, &valid).unwrap();
            let (_, parity, odds) = reached(&fitted.model, &valid);
            let gap = if constraint == RateConstraint::EqualizedOdds { odds } else { parity };
            assert!(gap < 1e-9, "{kind} {constraint:?}: {gap}");
            let (accuracy, parity, odds) = reached(&fitted.model, &test);
            let gap = if constraint == RateConstraint::EqualizedOdds { odds } else { parity };
            assert!(accuracy > 0.65 && gap < 0.08, "{kind} {constraint:?}: {accuracy} {gap}");
            let loaded = registry.from_bytes(fitted.to_bytes().unwrap()).unwrap();
            let samples = fitted.samples(&test).unwrap();
            let decided = fitted.classes(samples.features()).unwrap();
            let of_file = loaded.predictor().unwrap().classes(samples.features()).unwrap();
            assert_eq!(decided, of_file);
            assert_eq!(loaded.to_bytes().unwrap(), fitted.to_bytes().unwrap());
            // Without a registry nobody can read the model inside: an error that says so, and no decision.
            let error = again(&fitted).classes(samples.features()).unwrap_err().to_string();
            assert!(error.contains("gradus::load"), "{error}");
            // A model inside a model holds no further one.
            let twice = FairThresholds::new().fit_around(loaded, &wide(&fitted.model, &valid));
            let error = twice.and_then(|twice| registry.from_bytes(twice.to_bytes()?).map(|_| ()));
            assert!(error.unwrap_err().to_string().contains("no further one"));
        }
    }
}

/// The samples as a model with groups among its inputs takes them.
fn wide(model: &FairModel, data: &GroupedSamples) -> GroupedSamples {
    let samples = model.samples(data).unwrap().into_owned();
    GroupedSamples::new(samples, data.attributes().to_vec()).unwrap()
}
