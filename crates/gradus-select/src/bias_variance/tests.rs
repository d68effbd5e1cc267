use super::*;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + a.abs().max(b.abs()))
}

/// A nearest-neighbour learner of a sine with noise: little bias, much variance.
fn nearest(k: usize, n_test: usize, seed: u64) -> (Vec<f64>, BiasVariance) {
    let mut stream = Stream::new(seed, "test.sine", 0);
    let x: Vec<f64> = (0..120).map(|_| stream.uniform()).collect();
    let y: Vec<f64> = x.iter().map(|x| (6.0 * x).sin() + 0.3 * stream.normal()).collect();
    let at: Vec<f64> = (0..n_test).map(|i| (i as f64 + 0.5) / n_test as f64).collect();
    let truth: Vec<f64> = at.iter().map(|x| (6.0 * x).sin()).collect();
    let found = bias_variance(80, seed, x.len(), &truth, 0.09, |rows| {
        let predict = |&at: &f64| {
            let mut near: Vec<(f64, f64)> =
                rows.iter().map(|&r| ((x[r as usize] - at).abs(), y[r as usize])).collect();
            near.sort_by(|a, b| a.0.total_cmp(&b.0));
            near[..k].iter().map(|p| p.1).sum::<f64>() / k as f64
        };
        Ok(at.iter().map(predict).collect())
    })
    .unwrap();
    (truth, found)
}

#[test]
fn the_parts_add_up_to_the_whole() {
    for k in [1, 10, 80] {
        let (truth, found) = nearest(k, 25, 3);
        for (point, truth) in found.points.iter().zip(&truth) {
            assert!(close(point.total, point.bias_squared + point.variance + found.noise));
            assert!(close(point.bias_squared, (point.main - truth).powi(2)));
        }
        assert!(close(found.total, found.bias_squared + found.variance + found.noise));
        assert_eq!(found.noise, 0.09);
    }
}

#[test]
fn smoothing_trades_variance_for_bias() {
    let [rough, smooth] = [1, 80].map(|k| nearest(k, 25, 3).1);
    assert!(rough.variance > 4.0 * smooth.variance, "{} {}", rough.variance, smooth.variance);
    // All rounds share one draw of the noise, which the rough learner repeats: its bias is not 0.
    let bias = [&rough, &smooth].map(|found| found.bias_squared);
    assert!(bias[1] > 2.5 * bias[0], "{bias:?}");
}

#[test]
fn by_hand() {
    // The learner ignores its one row, and predicts each of four values once.
    let count = std::sync::atomic::AtomicUsize::new(0);
    let found = bias_variance(4, 0, 1, &[1.0], 0.0, |rows| {
        assert_eq!(rows, [0]);
        let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(vec![[0.0, 2.0, 4.0, 6.0][n]])
    })
    .unwrap();
    assert_eq!((found.bias_squared, found.variance, found.total), (4.0, 5.0, 9.0));
    assert_eq!(found.points[0].main, 3.0);
}

#[test]
fn large_values_of_small_spread_keep_their_digits() {
    let found =
        bias_variance(50, 1, 30, &[1e9], 0.0, |rows| Ok(vec![1e9 + f64::from(rows[7] % 4) * 1e-3]))
            .unwrap();
    assert!(found.variance > 0.0 && found.variance < 1e-5);
    assert!((found.total - found.bias_squared - found.variance).abs() < 1e-18);
}

#[test]
fn errors_of_classes_add_up_too() {
    let mut stream = Stream::new(5, "test.classes", 0);
    let x: Vec<f64> = (0..60).map(|_| stream.uniform()).collect();
    let class = |x: f64| (x * 3.0) as u32;
    let y: Vec<u32> = x
        .iter()
        .map(|&x| if stream.chance(0.3) { stream.below(3) as u32 } else { class(x) })
        .collect();
    let at: Vec<f64> = (0..40).map(|i| (f64::from(i) + 0.5) / 40.0).collect();
    let truth: Vec<u32> = at.iter().map(|&x| class(x)).collect();
    let learn = |rows: &[u32]| {
        let nearest = |&at: &f64| {
            let far = |&&r: &&u32| (x[r as usize] - at).abs();
            y[*rows.iter().min_by(|a, b| far(a).total_cmp(&far(b))).unwrap() as usize]
        };
        Ok(at.iter().map(nearest).collect::<Vec<u32>>())
    };
    let found = class_bias_variance(100, 2, x.len(), &truth, learn).unwrap();
    assert!(close(found.total, found.bias + found.unbiased_variance - found.helpful_variance));
    assert!(found.bias > 0.0 && found.unbiased_variance > 0.0 && found.helpful_variance > 0.0);
    // The slow way: predict again, and count.
    let all = rounds(100, 2, x.len(), at.len(), learn).unwrap();
    for (at, point) in found.points.iter().enumerate() {
        let votes = |class: u32| all.iter().filter(|p| p[at] == class).count();
        let main = (0..3).rev().max_by_key(|&class| votes(class)).unwrap();
        assert_eq!(point.main, main);
        assert!(close(point.variance, 1.0 - votes(main) as f64 / 100.0));
        assert!(close(point.total, 1.0 - votes(truth[at]) as f64 / 100.0));
        assert_eq!(point.biased, main != truth[at]);
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| nearest(3, 10, 1).1)
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn what_cannot_be_taken_apart_is_named() {
    let fit = |n: usize| move |_: &[u32]| Ok(vec![0.0; n]);
    for (error, part) in [
        (bias_variance(1, 0, 5, &[0.0], 0.0, fit(1)).unwrap_err(), "rounds"),
        (bias_variance(5, 0, 0, &[0.0], 0.0, fit(1)).unwrap_err(), "rows"),
        (bias_variance(5, 0, 5, &[], 0.0, fit(0)).unwrap_err(), "no test rows"),
        (bias_variance(5, 0, 5, &[0.0], -1.0, fit(1)).unwrap_err(), "noise"),
        (bias_variance(5, 0, 5, &[f64::NAN], 0.0, fit(1)).unwrap_err(), "truth, row 1"),
        (bias_variance(5, 0, 5, &[0.0], 0.0, fit(2)).unwrap_err(), "expected 1"),
        (bias_variance(5, 0, 5, &[0.0], 0.0, |_| Ok(vec![f64::NAN])).unwrap_err(), "finite"),
        (
            bias_variance(5, 0, 5, &[0.0], 0.0, |_| Err(Error::data("did not converge")))
                .unwrap_err(),
            "did not converge",
        ),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
