//! Audits of data whose fairness is known.

use super::*;
use gradus_base::random::Stream;

/// Rows of three groups, with what the groups differ in.
struct Made {
    truth: Vec<bool>,
    decisions: Vec<bool>,
    probability: Vec<f64>,
    groups: SensitiveGroups,
    strata: SensitiveGroups,
}

fn sigmoid(s: f64) -> f64 {
    1.0 / (1.0 + (-s).exp())
}

/// Draws rows of groups `a`, `b` and `c`. `same_base` gives all the same distribution of probabilities, so that every
/// criterion holds; otherwise the probabilities are calibrated, and only sufficiency holds. `own` shifts the truth of
/// group `c` away from its probability.
fn made(n: usize, seed: u64, same_base: bool, own: f64) -> Made {
    let mut stream = Stream::new(seed, "test.fairness", 0);
    let names = ["a", "b", "c"];
    let mut made = Made {
        truth: Vec::new(),
        decisions: Vec::new(),
        probability: Vec::new(),
        groups: SensitiveGroups::from_words("g", &names).unwrap(),
        strata: SensitiveGroups::from_words("s", &["x", "y"]).unwrap(),
    };
    let (mut words, mut strata) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let u = stream.uniform();
        let group = if u < 0.6 {
            0
        } else if u < 0.9 {
            1
        } else {
            2
        };
        let shift = if same_base { 0.0 } else { 0.6 * group as f64 };
        let score = stream.normal() - 0.5 + shift;
        let p = sigmoid(score);
        let truth = stream.chance(sigmoid(score + if group == 2 { own } else { 0.0 }));
        words.push(names[group]);
        strata.push(["x", "y"][usize::from(stream.chance(0.4))]);
        made.truth.push(truth);
        made.probability.push(p);
        made.decisions.push(p > 0.5);
    }
    made.groups = SensitiveGroups::from_words("g", &words).unwrap();
    made.strata = SensitiveGroups::from_words("s", &strata).unwrap();
    made
}

impl Made {
    fn audit(&self) -> DecisionAudit {
        let data = Decisions {
            truth: &self.truth,
            decisions: &self.decisions,
            probability: Some(&self.probability),
            scores: None,
            weights: None,
        };
        audit_decisions(&data, &self.groups, Some(&self.strata), &AuditOptions::default()).unwrap()
    }
}

fn rejected(audit: &DecisionAudit, name: &str) -> bool {
    audit.criteria.iter().find(|one| one.name == name).unwrap().rejected.unwrap()
}

#[test]
fn fair_data_are_rejected_at_the_stated_rate() {
    const RUNS: usize = 1000;
    let audits: Vec<DecisionAudit> =
        gradus_base::parallel::map_below(RUNS, 1, |run| made(600, run as u64, true, 0.0).audit());
    let names: Vec<&str> = audits[0].criteria.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), 10, "{names:?}");
    for (at, name) in names.iter().enumerate() {
        let rejections = audits.iter().filter(|a| a.criteria[at].rejected == Some(true)).count();
        // Five standard errors about 5 %: 50 ± 34.5.
        assert!((16..=84).contains(&rejections), "{name}: {rejections} of {RUNS}");
        // The interval of the gap covers the true gap, 0, unless one of its two tails is missed.
        let missed =
            audits.iter().filter(|a| a.criteria[at].gap.is_some_and(|gap| gap.interval[0] > 0.0));
        assert!(missed.count() <= 70, "{name}");
    }
}

#[test]
fn unlike_base_rates_leave_sufficiency_alone() {
    let audit = made(20_000, 1, false, 0.0).audit();
    for (name, holds) in [
        ("demographic parity", false),
        ("conditional demographic parity", false),
        ("equal opportunity", false),
        ("equalised odds", false),
        ("calibration by group", true),
        ("sufficiency of probabilities", true),
    ] {
        assert_eq!(rejected(&audit, name), !holds, "{name}");
    }
}

#[test]
fn a_group_that_is_underrated_is_found() {
    let audit = made(20_000, 2, true, 0.8).audit();
    assert!(rejected(&audit, "calibration by group"));
    assert!(rejected(&audit, "sufficiency of probabilities"));
    assert!(!rejected(&audit, "demographic parity"));
    let of = |at: usize| audit.groups[at].calibration.as_ref().unwrap().residual;
    assert!(of(2).low > 0.1 && of(0).low < 0.0 && of(0).high > 0.0);
}

#[test]
fn the_audit_agrees_with_the_measures() {
    let made = made(3000, 3, false, 0.3);
    let audit = made.audit();
    let number =
        |values: &[bool]| values.iter().map(|&v| f64::from(u8::from(v))).collect::<Vec<_>>();
    let (truth, decisions) = (number(&made.truth), number(&made.decisions));
    let of =
        |measure| MeasureByGroup::new(measure, &truth, &decisions, &made.groups, None).unwrap();
    for (name, measure) in [
        ("demographic parity", GroupMeasure::SelectionRate),
        ("equal opportunity", GroupMeasure::TruePositiveRate),
        ("predictive parity", GroupMeasure::PrecisionScore),
    ] {
        let gap = audit.criteria.iter().find(|one| one.name == name).unwrap().gap.unwrap();
        let by_group = of(measure);
        assert!((gap.difference - by_group.difference(Against::BetweenGroups)).abs() < 1e-12);
        assert!((gap.ratio.unwrap() - by_group.ratio(Against::BetweenGroups)).abs() < 1e-12);
        assert!(gap.interval[0] <= gap.difference && gap.difference <= gap.interval[1]);
    }
    let odds = audit.criteria.iter().find(|one| one.name == "equalised odds").unwrap().gap.unwrap();
    let how = (Against::BetweenGroups, Aggregate::WorstCase);
    let difference =
        equalized_odds_difference(&truth, &decisions, &made.groups, None, how).unwrap();
    assert!((odds.difference - difference).abs() < 1e-12);
}

#[test]
fn a_group_of_one_is_warned_of_and_left_out() {
    let mut made = made(500, 4, true, 0.0);
    let mut words: Vec<String> =
        made.groups.codes().iter().map(|&c| made.groups.names()[c as usize].clone()).collect();
    words[0] = "alone".into();
    made.groups = SensitiveGroups::from_words("g", &words).unwrap();
    let audit = made.audit();
    assert!(
        audit.warnings[0].contains("group `alone` of `g` has 1 member"),
        "{:?}",
        audit.warnings
    );
    let alone = audit.groups.iter().find(|one| one.group == "alone").unwrap();
    assert!(alone.count == 1 && alone.selection_rate.high - alone.selection_rate.low > 0.7);
    let without = made.audit().criteria[0].gap.unwrap().difference;
    assert!(without < 0.3, "the group of one is not compared: {without}");
    // Two groups of one leave nothing to compare.
    let data = Decisions {
        truth: &[true, false],
        decisions: &[true, true],
        probability: None,
        scores: None,
        weights: None,
    };
    let two = SensitiveGroups::from_words("g", &["a", "b"]).unwrap();
    let error =
        audit_decisions(&data, &two, None, &AuditOptions::default()).unwrap_err().to_string();
    assert!(error.contains("nothing to compare") && error.contains("1 member"), "{error}");
}

#[test]
fn probabilities_of_few_values_are_tested_too() {
    let mut made = made(4000, 5, true, 0.0);
    made.probability.iter_mut().for_each(|p| *p = if *p > 0.5 { 0.7 } else { 0.25 });
    let audit = made.audit();
    let found = audit.criteria.iter().find(|c| c.name == "sufficiency of probabilities").unwrap();
    // An intercept and a slope for each of two groups.
    assert_eq!(found.test.unwrap().degrees, 4.0);
    made.probability.iter_mut().for_each(|p| *p = 1.0);
    let certain = made.audit();
    let found = certain.criteria.iter().find(|c| c.name == "calibration by group").unwrap();
    assert_eq!((found.test, found.verdict()), (None, "cannot be told"));
}

#[test]
fn equal_means_are_rejected_at_the_stated_rate() {
    let rejections = gradus_base::parallel::map_below(1000, 1, |run| {
        let mut stream = Stream::new(run as u64, "test.values", 0);
        // Unlike sizes and unlike spreads: the variance must not be pooled.
        let words: Vec<&str> = (0..200)
            .map(|at| {
                if at < 150 {
                    "a"
                } else if at < 180 {
                    "b"
                } else {
                    "c"
                }
            })
            .collect();
        let truth: Vec<f64> = words
            .iter()
            .map(|word| stream.normal() * if *word == "a" { 1.0 } else { 4.0 })
            .collect();
        let groups = SensitiveGroups::from_words("g", &words).unwrap();
        let audit =
            audit_values(&truth, &[0.0; 200], &groups, None, &AuditOptions::default()).unwrap();
        audit.criteria[1].rejected == Some(true)
    });
    let n = rejections.iter().filter(|r| **r).count();
    assert!((16..=84).contains(&n), "{n} of 1000");
}

#[test]
fn proportional_exposure_is_rejected_at_the_stated_rate() {
    let words: Vec<&str> = (0..40).map(|at| ["x", "y", "z", "z"][at % 4]).collect();
    let groups = SensitiveGroups::from_words("kind", &words).unwrap();
    let n = gradus_base::parallel::map_below(1000, 1, |run| {
        let mut stream = Stream::new(run as u64, "test.exposure", 0);
        let lists: Vec<Vec<u32>> =
            (0..120).map(|_| (0..5).map(|_| stream.below(40) as u32).collect()).collect();
        let audit = audit_exposure(&lists, &groups, None, &AuditOptions::default()).unwrap();
        audit.criterion.rejected == Some(true)
    });
    let n = n.iter().filter(|r| **r).count();
    assert!((16..=84).contains(&n), "{n} of 1000");
    let error = audit_exposure(&[vec![1u32, 99], vec![2]], &groups, None, &AuditOptions::default());
    assert!(error.unwrap_err().to_string().contains("item 99"));
    let error = audit_exposure(&[vec![1u32]], &groups, None, &AuditOptions::default());
    assert!(error.unwrap_err().to_string().contains("two lists"));
}

#[test]
fn users_served_unequally_are_found() {
    let words: Vec<&str> = (0..400).map(|at| ["a", "b"][at % 2]).collect();
    let groups = SensitiveGroups::from_words("sex", &words).unwrap();
    let mut stream = Stream::new(1, "test.quality", 0);
    let quality: Vec<f64> =
        (0..400).map(|at| stream.uniform() * if at % 2 == 0 { 0.5 } else { 0.7 }).collect();
    let audit = audit_quality(&quality, &groups, &AuditOptions::default()).unwrap();
    assert_eq!(audit.criterion.rejected, Some(true));
    let even = audit_quality(&vec![0.4; 400], &groups, &AuditOptions::default()).unwrap();
    assert_eq!((even.criterion.rejected, even.criterion.gap.unwrap().difference), (None, 0.0));
}
