use super::*;

fn moments(n: usize, mut draw: impl FnMut() -> f64) -> (f64, f64, f64) {
    let values: Vec<f64> = (0..n).map(|_| draw()).collect();
    let mean = values.iter().sum::<f64>() / n as f64;
    let centred = |power: i32| values.iter().map(|v| (v - mean).powi(power)).sum::<f64>();
    let variance = centred(2) / n as f64;
    (mean, variance, centred(4) / n as f64 / (variance * variance))
}

/// Pearson's statistic of counts against probabilities, and its degrees of freedom.
fn chi_square(counts: &[u64], probabilities: &[f64]) -> (f64, f64) {
    let n = counts.iter().sum::<u64>() as f64;
    let statistic = counts
        .iter()
        .zip(probabilities)
        .map(|(&count, &p)| (count as f64 - n * p).powi(2) / (n * p))
        .sum();
    (statistic, counts.len() as f64 - 1.0)
}

fn assert_fits(counts: &[u64], probabilities: &[f64]) {
    let (statistic, freedom) = chi_square(counts, probabilities);
    // Mean k and variance 2k: six standard deviations.
    assert!(statistic <= freedom + 6.0 * (2.0 * freedom).sqrt(), "{statistic} on {freedom}");
}

#[test]
fn golden_values_hold_on_every_platform() {
    let mut stream = Stream::new(42, "golden", 3);
    assert_eq!(stream.next_u64(), 0x99eb_e365_1444_1b0e);
    assert_eq!(stream.uniform(), 0.5735269218262133);
    assert_eq!(stream.normal(), -0.600545834574416);
    assert_eq!(stream.exponential(), 1.298591371316241);
    assert_eq!(stream.below(1_000_000), 29_944);
    assert_eq!(stream.permutation(8), [1, 5, 6, 7, 2, 3, 0, 4]);
    assert_eq!(stream.sample(1000, 4).unwrap(), [142, 200, 827, 940]);
    assert_eq!(Zipf::new(1 << 40, 1.1).unwrap().sample(&mut stream), 667);
}

#[test]
fn streams_differ_by_seed_purpose_and_index() {
    let first = |seed, purpose: &str, index| Stream::new(seed, purpose, index).next_u64();
    let mut seen = HashSet::new();
    for seed in [0, 1, u64::MAX] {
        for purpose in ["", "a", "b", "noise"] {
            for index in 0..1000 {
                assert!(seen.insert(first(seed, purpose, index)));
            }
        }
    }
}

#[test]
fn neighbouring_streams_are_uncorrelated() {
    let mut sum = 0.0;
    for index in 0..20_000 {
        let x = Stream::new(7, "rows", index).normal();
        let y = Stream::new(7, "rows", index + 1).normal();
        sum += x * y;
    }
    assert!((sum / 20_000.0).abs() < 4.0 / 20_000f64.sqrt());
}

#[test]
fn moments_are_those_of_the_distributions() {
    let mut stream = Stream::new(1, "moments", 0);
    let n = 400_000;
    let (mean, variance, kurtosis) = moments(n, || stream.uniform());
    assert!((mean - 0.5).abs() < 0.003 && (variance - 1.0 / 12.0).abs() < 0.001);
    assert!((kurtosis - 1.8).abs() < 0.02);
    let (mean, variance, kurtosis) = moments(n, || stream.normal());
    assert!(mean.abs() < 0.008 && (variance - 1.0).abs() < 0.012 && (kurtosis - 3.0).abs() < 0.06);
    let (mean, variance, _) = moments(n, || stream.exponential());
    assert!((mean - 1.0).abs() < 0.008 && (variance - 1.0).abs() < 0.03);
    let (mean, ..) = moments(n, || stream.uniform_in(-3.0, 5.0));
    assert!((mean - 1.0).abs() < 0.02);
    let hits = (0..n).filter(|_| stream.chance(0.3)).count();
    assert!((hits as f64 / n as f64 - 0.3).abs() < 0.004);
}

#[test]
fn integers_below_n_are_uniform() {
    let mut stream = Stream::new(2, "below", 0);
    let mut counts = [0; 7];
    (0..70_000).for_each(|_| counts[stream.index(7)] += 1);
    assert_fits(&counts, &[1.0 / 7.0; 7]);
    // Where rejection is frequent: two thirds of the words.
    let n = 3 << 62;
    let low = (0..30_000).filter(|_| stream.below(n) < n / 3).count();
    assert!((low as f64 / 30_000.0 - 1.0 / 3.0).abs() < 0.012);
    assert_eq!(stream.below(1), 0);
    assert_eq!(stream.below(0), 0);
}

#[test]
fn every_order_is_equally_likely() {
    let mut stream = Stream::new(3, "orders", 0);
    let mut counts = [0; 27];
    for _ in 0..60_000 {
        let order = stream.permutation(3);
        counts[order[0] * 9 + order[1] * 3 + order[2]] += 1;
    }
    let seen: Vec<u64> = counts.into_iter().filter(|&count| count > 0).collect();
    assert_eq!(seen.len(), 6);
    assert_fits(&seen, &[1.0 / 6.0; 6]);
}

#[test]
fn samples_are_sets_and_every_element_is_equally_likely() {
    let mut stream = Stream::new(4, "samples", 0);
    for (n, k) in [(40, 2), (40, 20), (5, 5), (3, 0), (0, 0)] {
        let mut counts = vec![0; n];
        for _ in 0..20_000 {
            let sample = stream.sample(n, k).unwrap();
            assert_eq!(sample.len(), k);
            assert!(sample.is_sorted_by(|a, b| a < b));
            sample.iter().for_each(|&index| counts[index] += 1);
        }
        if 0 < k && k < n {
            assert_fits(&counts, &vec![1.0 / n as f64; n]);
        }
    }
    assert!(stream.sample(3, 4).unwrap_err().to_string().contains("the 3 there are"));
}

#[test]
fn alias_tables_draw_by_weight() {
    let mut stream = Stream::new(5, "alias", 0);
    for weights in [vec![1.0, 0.0, 3.0, 6.0, 1e-3], vec![2.0], vec![0.1; 10]] {
        let table = Alias::new(&weights).unwrap();
        let mut counts = vec![0; weights.len()];
        (0..200_000).for_each(|_| counts[table.sample(&mut stream)] += 1);
        let total: f64 = weights.iter().sum();
        let (mut kept, mut p) = (Vec::new(), Vec::new());
        for (&weight, &count) in weights.iter().zip(&counts) {
            if weight == 0.0 {
                assert_eq!(count, 0);
            } else {
                kept.push(count);
                p.push(weight / total);
            }
        }
        assert_fits(&kept, &p);
    }
    for weights in [vec![], vec![0.0], vec![1.0, -1.0], vec![f64::NAN], vec![f64::MAX, f64::MAX]] {
        assert!(Alias::new(&weights).is_err(), "{weights:?}");
    }
}

#[test]
fn zipf_matches_the_weights_it_stands_for() {
    let mut stream = Stream::new(6, "zipf", 0);
    for exponent in [0.0, 0.7, 1.0, 2.5] {
        let zipf = Zipf::new(12, exponent).unwrap();
        let mut counts = [0; 12];
        (0..100_000).for_each(|_| counts[zipf.sample(&mut stream) as usize - 1] += 1);
        assert_fits(&counts, &power_law_weights(12, exponent, 0.0));
    }
    assert_eq!(Zipf::new(1, 1.0).unwrap().sample(&mut stream), 1);
    assert!(Zipf::new(0, 1.0).is_err() && Zipf::new(1, f64::NAN).is_err());
    let flat = power_law_weights(100, 1.0, 10.0);
    assert!((flat.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((flat[0] / flat[99] - 10.0).abs() < 1e-9);
}

#[test]
fn gamma_deviates_have_their_moments() {
    for shape in [0.3, 1.0, 2.5, 40.0, 5e5] {
        let mut stream = Stream::new(3, "gamma", 0);
        let n = 200_000;
        let (mean, variance, _) = moments(n, || stream.gamma(shape));
        // Mean and variance are both the shape; five standard errors.
        let error = 5.0 / (n as f64).sqrt();
        assert!((mean / shape - 1.0).abs() < error / shape.sqrt(), "{shape}: mean {mean}");
        let kurtosis = 3.0 + 6.0 / shape;
        let spread = (kurtosis - 1.0f64).sqrt();
        assert!((variance / shape - 1.0).abs() < error * spread, "{shape}: variance {variance}");
    }
}

#[test]
fn normal_quantiles_are_those_of_the_tables() {
    for (p, want) in [(0.5, 0.0), (0.975, 1.959963984540054), (0.05, -1.6448536269514729)] {
        assert!((normal_quantile(p) - want).abs() < 1e-12, "{p}");
    }
    assert_eq!(normal_quantile(1.0), f64::INFINITY);
    assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
}
