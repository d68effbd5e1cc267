//! Every measure against a slow one written from its definition, rows repeated by their weights.

use super::*;
use proptest::prelude::*;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + a.abs().max(b.abs()))
}

/// Rows of a value and a whole weight, each as often as its weight says.
fn repeated<T: Copy>(values: &[T], weights: &[u8]) -> Vec<T> {
    let each = values.iter().zip(weights);
    each.flat_map(|(&value, &n)| std::iter::repeat_n(value, n.into())).collect()
}

fn as_f64(weights: &[u8]) -> Vec<f64> {
    weights.iter().map(|&w| f64::from(w)).collect()
}

/// Truth, prediction and weight of some rows of four classes, of which the last may not occur.
fn labelled() -> impl Strategy<Value = Vec<(u32, u32, u8)>> {
    prop::collection::vec((0..4u32, 0..4u32, 0..4u8), 1..40)
        .prop_filter("some weight", |rows| rows.iter().any(|row| row.2 > 0))
}

/// Yes or no, a score of few values (so that there are ties), a weight.
fn scored() -> impl Strategy<Value = Vec<(bool, u8, u8)>> {
    prop::collection::vec((any::<bool>(), 0..9u8, 0..4u8), 2..40).prop_filter("both", |rows| {
        [true, false].iter().all(|yes| rows.iter().any(|row| row.0 == *yes && row.2 > 0))
    })
}

fn count(pairs: &[(u32, u32)], holds: impl Fn(u32, u32) -> bool) -> f64 {
    pairs.iter().filter(|pair| holds(pair.0, pair.1)).count() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn classes_are_evaluated_by_definition(rows in labelled()) {
        let truth: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let predicted: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let weights: Vec<u8> = rows.iter().map(|row| row.2).collect();
        let found = Confusion::new(&truth, &predicted, 4, Some(&as_f64(&weights))).unwrap();
        let pairs: Vec<(u32, u32)> = repeated(&truth, &weights).into_iter()
            .zip(repeated(&predicted, &weights)).collect();
        let n = pairs.len() as f64;
        let over = |a: f64, b: f64| if b == 0.0 { 0.0 } else { a / b };
        prop_assert!(close(found.accuracy(), count(&pairs, |t, p| t == p) / n));

        let mut recalls = Vec::new();
        let mut averages = [[0.0; 3]; 2];
        let mut used = 0.0;
        for class in 0..4 {
            let right = count(&pairs, |t, p| t == class && p == class);
            let (of, called) = (count(&pairs, |t, _| t == class), count(&pairs, |_, p| p == class));
            let (precision, recall) = (over(right, called), over(right, of));
            let f1 = over(2.0 * precision * recall, precision + recall);
            let scores = found.classes()[class as usize];
            prop_assert!(close(scores.precision, precision));
            prop_assert!(close(scores.recall, recall));
            prop_assert!(close(scores.f1, f1));
            prop_assert_eq!((scores.support, scores.predicted), (of, called));
            for other in 0..4 {
                prop_assert_eq!(found.get(class, other), count(&pairs, |t, p| t == class && p == other));
            }
            if of > 0.0 {
                recalls.push(recall);
            }
            if of + called > 0.0 {
                used += 1.0;
                for (at, value) in [precision, recall, f1].into_iter().enumerate() {
                    averages[0][at] += value;
                    averages[1][at] += value * of / n;
                }
            }
        }
        let balanced = recalls.iter().sum::<f64>() / recalls.len() as f64;
        prop_assert!(close(found.balanced_accuracy(), balanced));
        for (how, [p, r, f]) in [(Average::Macro, averages[0].map(|v| v / used)), (Average::Weighted, averages[1])] {
            let average = found.average(how);
            prop_assert!(close(average.precision, p) && close(average.recall, r) && close(average.f1, f));
        }

        // Matthews: the correlation of the indicators, over all ordered pairs of rows.
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for class in 0..4 {
            let x: Vec<f64> = pairs.iter().map(|p| f64::from(u8::from(p.0 == class))).collect();
            let y: Vec<f64> = pairs.iter().map(|p| f64::from(u8::from(p.1 == class))).collect();
            let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
            for (x, y) in x.iter().zip(&y) {
                xy += (x - mx) * (y - my);
                xx += (x - mx).powi(2);
                yy += (y - my).powi(2);
            }
        }
        let matthews = if xx < 1e-9 || yy < 1e-9 { 0.0 } else { xy / (xx * yy).sqrt() };
        prop_assert!(close(found.matthews(), matthews), "{} for {matthews}", found.matthews());

        let chance: f64 = (0..4).map(|class| {
            count(&pairs, |t, _| t == class) / n * (count(&pairs, |_, p| p == class) / n)
        }).sum();
        let kappa = if chance > 1.0 - 1e-12 { 0.0 } else { (found.accuracy() - chance) / (1.0 - chance) };
        prop_assert!(close(found.kappa(), kappa), "{} for {kappa}", found.kappa());
    }

    #[test]
    fn curves_are_what_their_thresholds_say(rows in scored()) {
        let truth: Vec<bool> = rows.iter().map(|row| row.0).collect();
        let scores: Vec<f64> = rows.iter().map(|row| f64::from(row.1) / 4.0 - 1.0).collect();
        let weights: Vec<u8> = rows.iter().map(|row| row.2).collect();
        let weighted = as_f64(&weights);
        let all: Vec<(bool, f64)> = repeated(&truth, &weights).into_iter()
            .zip(repeated(&scores, &weights)).collect();
        let yes: Vec<f64> = all.iter().filter(|row| row.0).map(|row| row.1).collect();
        let no: Vec<f64> = all.iter().filter(|row| !row.0).map(|row| row.1).collect();
        let reach = |scores: &[f64], t: f64| scores.iter().filter(|&&s| s >= t).count() as f64;

        // The area: over all pairs of a yes and a no row.
        let mut won = 0.0;
        for a in &yes {
            for b in &no {
                won += if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 };
            }
        }
        let area = won / (yes.len() * no.len()) as f64;
        let roc = Roc::new(&truth, &scores, Some(&weighted)).unwrap();
        prop_assert!(close(roc.auc(), area));
        prop_assert!(close(roc_auc(&truth, &scores, Some(&weighted)).unwrap(), area));
        let mut thresholds: Vec<f64> = all.iter().map(|row| row.1).collect();
        thresholds.sort_by(|a, b| b.total_cmp(a));
        thresholds.dedup();
        prop_assert_eq!(roc.points().len(), thresholds.len() + 1);
        for point in roc.points() {
            prop_assert!(close(point.true_positive_rate, reach(&yes, point.threshold) / yes.len() as f64));
            prop_assert!(close(point.false_positive_rate, reach(&no, point.threshold) / no.len() as f64));
        }
        let trapezes = |points: &[RocPoint]| points.windows(2).map(|w| {
            (w[1].false_positive_rate - w[0].false_positive_rate)
                * (w[0].true_positive_rate + w[1].true_positive_rate) / 2.0
        }).sum::<f64>();
        prop_assert!(close(trapezes(roc.points()), area));
        prop_assert!(close(trapezes(roc.corners().points()), area));

        let curve = PrecisionRecall::new(&truth, &scores, Some(&weighted)).unwrap();
        prop_assert_eq!(curve.points().len(), thresholds.len());
        let (mut average, mut before) = (0.0, 0.0);
        for (point, threshold) in curve.points().iter().zip(thresholds) {
            prop_assert_eq!(point.threshold, threshold);
            let (good, bad) = (reach(&yes, threshold), reach(&no, threshold));
            prop_assert!(close(point.precision, good / (good + bad)));
            prop_assert!(close(point.recall, good / yes.len() as f64));
            average += (point.recall - before) * point.precision;
            before = point.recall;
        }
        prop_assert!(close(curve.average_precision(), average));
        prop_assert!(close(average_precision(&truth, &scores, Some(&weighted)).unwrap(), average));
        prop_assert!(close(curve.share(), yes.len() as f64 / all.len() as f64));
    }

    #[test]
    fn bins_hold_every_row_once(rows in scored(), n_bins in 1..12usize) {
        let truth: Vec<bool> = rows.iter().map(|row| row.0).collect();
        let probability: Vec<f64> = rows.iter().map(|row| f64::from(row.1) / 8.0).collect();
        let weights = as_f64(&rows.iter().map(|row| row.2).collect::<Vec<_>>());
        for bins in [Bins::Uniform, Bins::Quantile] {
            let found = Calibration::new(&truth, &probability, n_bins, bins, Some(&weights)).unwrap();
            prop_assert!(found.bins().len() <= n_bins);
            let (mut weight, mut error) = (0.0, 0.0);
            for (at, bin) in found.bins().iter().enumerate() {
                let inside = |row: &&(usize, f64)| {
                    let p = probability[row.0];
                    row.1 > 0.0 && p <= bin.high && (p > bin.low || (at == 0 && p == 0.0))
                };
                let rows: Vec<(usize, f64)> = weights.iter().copied().enumerate().collect();
                let rows: Vec<_> = rows.iter().filter(inside).collect();
                let sum: f64 = rows.iter().map(|row| row.1).sum();
                let yes: f64 = rows.iter().filter(|row| truth[row.0]).map(|row| row.1).sum();
                let mean: f64 = rows.iter().map(|row| row.1 * probability[row.0]).sum::<f64>() / sum;
                prop_assert_eq!((bin.count, bin.weight), (rows.len(), sum));
                prop_assert!(close(bin.observed, yes / sum) && close(bin.predicted, mean));
                weight += sum;
                error += sum * (mean - yes / sum).abs();
            }
            prop_assert_eq!(weight, weights.iter().sum::<f64>());
            prop_assert!(close(found.expected_error(), error / weight));
            prop_assert!(found.max_error() >= found.expected_error() - 1e-12);
        }
    }

    #[test]
    fn probabilities_are_scored_by_definition(rows in scored()) {
        let truth: Vec<bool> = rows.iter().map(|row| row.0).collect();
        let p: Vec<f64> = rows.iter().map(|row| f64::from(row.1) / 8.0).collect();
        let weights = as_f64(&rows.iter().map(|row| row.2).collect::<Vec<_>>());
        let (mut log, mut square) = (0.0, 0.0);
        for ((&yes, &p), &w) in truth.iter().zip(&p).zip(&weights) {
            let right = if yes { p } else { 1.0 - p };
            log -= w * right.clamp(f64::EPSILON, 1.0).ln();
            square += w * (1.0 - right).powi(2);
        }
        let total: f64 = weights.iter().sum();
        let weights = Some(weights.as_slice());
        prop_assert!(close(log_loss(&truth, &p, weights).unwrap(), log / total));
        prop_assert!(close(brier(&truth, &p, weights).unwrap(), square / total));
        // The same as two classes.
        let classes: Vec<u32> = truth.iter().map(|&yes| yes.into()).collect();
        let table: Vec<f64> = p.iter().flat_map(|&p| [1.0 - p, p]).collect();
        prop_assert!(close(log_loss_many(&classes, &table, 2, weights).unwrap(), log / total));
        prop_assert!(close(brier_many(&classes, &table, 2, weights).unwrap(), 2.0 * square / total));
        let both = macro_auc(&classes, &table, 2, weights).unwrap();
        prop_assert!(close(both, roc_auc(&truth, &p, weights).unwrap()));
    }
}

#[test]
fn a_small_class_beside_a_large_one_keeps_its_digits() {
    // Of 10⁹ rows one is yes and found, with one false alarm: 1/√2 but for 1e-9.
    let confusion =
        Confusion::new(&[0, 0, 1], &[0, 1, 1], 2, Some(&[1e9 - 2.0, 1.0, 1.0])).unwrap();
    let exact = {
        let (tp, tn, fp) = (1.0f64, 1e9 - 2.0, 1.0);
        tp * tn / ((tp + fp) * tp * (tn + fp) * tn).sqrt()
    };
    assert!(close(confusion.matthews(), exact), "{} {exact}", confusion.matthews());
}

#[test]
fn constant_answers_are_worth_nothing() {
    let one = Confusion::new(&[0, 1, 1], &[1, 1, 1], 3, None).unwrap();
    assert_eq!((one.matthews(), one.kappa(), one.balanced_accuracy()), (0.0, 0.0, 0.5));
    assert_eq!(one.average(Average::Macro).recall, 0.5);
    let same = Confusion::new(&[1, 1], &[1, 1], 2, None).unwrap();
    assert_eq!((same.accuracy(), same.kappa(), same.matthews()), (1.0, 0.0, 0.0));
    assert!(one.row(7).is_empty());
    assert_eq!(roc_auc(&[true, false, true], &[2.0; 3], None).unwrap(), 0.5);
    let certain = log_loss(&[true], &[0.0], None).unwrap();
    assert!((certain - 36.04).abs() < 0.01);
    assert_eq!(log_loss(&[true], &[1.0], None).unwrap(), 0.0);
}

#[test]
fn infinite_scores_and_signed_zeros_are_scores() {
    let scores = [f64::NEG_INFINITY, 0.0, -0.0, f64::INFINITY];
    assert_eq!(roc_auc(&[false, true, false, true], &scores, None).unwrap(), 0.875);
    assert_eq!(Roc::new(&[false, true, false, true], &scores, None).unwrap().points().len(), 4);
}

#[test]
fn the_order_of_the_rows_does_not_matter() {
    let n = 1000;
    let mut stream = gradus_base::random::Stream::new(5, "test.curves", 0);
    let truth: Vec<bool> = (0..n).map(|_| stream.chance(0.3)).collect();
    let scores: Vec<f64> = (0..n).map(|_| (stream.normal() * 4.0).round()).collect();
    let weights: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
    let order = stream.permutation(n);
    let pick = |values: &[f64]| order.iter().map(|&at| values[at]).collect::<Vec<_>>();
    let mixed: Vec<bool> = order.iter().map(|&at| truth[at]).collect();
    let a = Roc::new(&truth, &scores, Some(&weights)).unwrap();
    let b = Roc::new(&mixed, &pick(&scores), Some(&pick(&weights))).unwrap();
    assert_eq!(a, b);
}

#[test]
fn what_cannot_be_evaluated_is_named() {
    let said = |error: gradus_base::Error, part: &str| {
        assert!(error.to_string().contains(part), "{error}");
    };
    said(Confusion::new(&[0], &[2], 2, None).unwrap_err(), "class 2 must be below");
    said(Confusion::new(&[], &[], 2, None).unwrap_err(), "no rows");
    said(Confusion::new(&[0], &[0], 100_000, None).unwrap_err(), "n_classes");
    said(Roc::new(&[true], &[1.0], None).unwrap_err(), "every row is yes");
    said(Roc::new(&[true, false], &[1.0, f64::NAN], None).unwrap_err(), "scores, row 2");
    said(average_precision(&[false], &[1.0], None).unwrap_err(), "no row is yes");
    said(macro_auc(&[1, 1], &[0.5; 4], 2, None).unwrap_err(), "class 1");
    said(macro_auc(&[1, 1], &[0.5; 3], 2, None).unwrap_err(), "2 rows of 2 classes");
    said(log_loss(&[true], &[1.5], None).unwrap_err(), "from 0 to 1");
    said(log_loss(&[true, true], &[0.5, f64::NAN], None).unwrap_err(), "row 2");
    said(log_loss_many(&[0], &[0.5, 0.4], 2, None).unwrap_err(), "add up to 0.9");
    said(log_loss_many(&[], &[], 0, None).unwrap_err(), "no rows");
    said(Calibration::new(&[true], &[0.5], 0, Bins::Uniform, None).unwrap_err(), "n_bins");
    said(top_label(&[3], &[0.5, 0.5], 2).unwrap_err(), "class 3");
}

#[test]
fn quantile_bins_share_the_rows_evenly() {
    let probability: Vec<f64> = (0..100).map(|at| (f64::from(at) / 100.0).powi(3)).collect();
    let truth: Vec<bool> = (0..100).map(|at| at % 3 == 0).collect();
    let found = Calibration::new(&truth, &probability, 10, Bins::Quantile, None).unwrap();
    assert_eq!(found.bins().iter().map(|bin| bin.count).collect::<Vec<_>>(), [10; 10]);
}
