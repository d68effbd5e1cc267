use super::*;
use gradus_base::random::Stream;
use gradus_core::cluster::Cluster as _;
use gradus_core::estimator::Model as _;
use gradus_data::Csr;

fn normal(n: usize, d: usize, seed: u64) -> Dense<f64> {
    let mut stream = Stream::new(seed, "kmeans.tests", 0);
    Dense::from_fn(n, d, |_, _| stream.normal())
}

/// Samples about `k` places.
fn blobs(n: usize, d: usize, k: usize, spread: f64, seed: u64) -> Dense<f64> {
    let places = normal(k, d, seed + 1000);
    let noise = normal(n, d, seed);
    Dense::from_fn(n, d, |row, at| 3.0 * places[(row % k, at)] + spread * noise[(row, at)])
}

fn sparse(x: &Dense<f64>) -> Csr<f64> {
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (at, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(at as u32);
            values.push(x);
        }
        indptr.push(indices.len());
    }
    Csr::new(x.n_cols(), indptr, indices, values).unwrap()
}

fn unlabelled(x: &Dense<f64>) -> Samples {
    Samples::unlabelled(x.clone()).unwrap()
}

fn labels(model: &KMeansModel, x: &Dense<f64>) -> Vec<u32> {
    model.labels(&x.clone().into()).unwrap().into_iter().flatten().collect()
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn nearest(centres: &Dense<f64>, x: &[f64]) -> usize {
    let order = |a: &usize, b: &usize| {
        squared(centres.row(*a), x).total_cmp(&squared(centres.row(*b), x)).then(a.cmp(b))
    };
    (0..centres.n_rows()).min_by(order).unwrap()
}

/// Lloyd's algorithm by plain loops: labels, centres, inertia.
fn plain(
    x: &Dense<f64>,
    weights: Option<&[f64]>,
    mut centres: Dense<f64>,
    iterations: usize,
) -> (Vec<u32>, Dense<f64>, f64) {
    let (k, d) = centres.shape();
    let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
    for _ in 0..iterations {
        let (mut sums, mut totals) = (Dense::full(k, d, 0.0), vec![0.0; k]);
        for (row, x) in x.rows().enumerate() {
            let at = nearest(&centres, x);
            totals[at] += weight(row);
            sums.row_mut(at).iter_mut().zip(x).for_each(|(sum, x)| *sum += weight(row) * x);
        }
        assert!(totals.iter().all(|total| *total > 0.0), "this oracle fills no empty clusters");
        centres = Dense::from_fn(k, d, |at, column| sums[(at, column)] / totals[at]);
    }
    let labels: Vec<u32> = x.rows().map(|x| nearest(&centres, x) as u32).collect();
    let inertia = x.rows().enumerate();
    let inertia: f64 =
        inertia.map(|(row, x)| weight(row) * squared(centres.row(labels[row] as usize), x)).sum();
    (labels, centres, inertia)
}

fn near(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    let size = a.iter().fold(1e-300f64, |most, x| most.max(x.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * size, "{a} {b}");
    }
}

/// By hand: two pairs, whose means are the centres.
#[test]
fn the_centres_are_the_means_of_their_samples() {
    let x = Dense::from_rows(&[[0.0, 0.0], [0.0, 2.0], [10.0, 0.0], [10.0, 4.0]]);
    let fitted = KMeans::new().n_clusters(2).standardize(false).fit(&unlabelled(&x)).unwrap();
    let mut centres: Vec<&[f64]> = fitted.centres().rows().collect();
    centres.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert_eq!(centres, [[0.0, 1.0], [10.0, 2.0]]);
    assert_eq!((fitted.inertia(), fitted.sizes()), (10.0, vec![2, 2]));
    assert_eq!(fitted.report.objective, 10.0);
}

/// The oracle, for shapes that fill no tile, with and without weights, dense and sparse, over many iterations, so that
/// bounds and sums that are carried along are tested too.
#[test]
fn it_is_plain_lloyd() {
    for (n, d, k, spread) in [
        (50, 2, 3, 1.0),
        (700, 5, 30, 2.0),
        (3000, 17, 60, 1.0),
        (4000, 6, 200, 0.5),
        (400, 90, 7, 3.0),
        // Wide enough that samples are compared with the centres that moved far alone.
        (2500, 48, 240, 1.5),
    ] {
        let x = blobs(n, d, k, spread, n as u64);
        let x =
            Dense::from_fn(n, d, |row, at| if (row + at) % 3 == 0 { 0.0 } else { x[(row, at)] });
        let start = Dense::from_fn(k, d, |at, column| x[(at, column)]);
        let mut stream = Stream::new(1, "weights", 0);
        let weights: Vec<f64> = (0..n).map(|_| 0.1 + stream.uniform()).collect();
        for iterations in [1, 2, 5, 25] {
            for weights in [None, Some(weights.as_slice())] {
                let (expected, centres, inertia) = plain(&x, weights, start.clone(), iterations);
                for features in [Matrix::from(x.clone()), Matrix::from(sparse(&x))] {
                    let samples = Samples::unlabelled(features).unwrap();
                    let samples = match weights {
                        Some(weights) => samples.with_weights(weights.to_vec()).unwrap(),
                        None => samples,
                    };
                    let params = KMeans::new()
                        .n_clusters(k)
                        .max_iter(iterations)
                        .tol(0.0)
                        .standardize(false);
                    let fitted = params.fit_from(&samples, &start, &Job::default()).unwrap();
                    assert_eq!(labels(&fitted, &x), expected, "{n} × {d}, {iterations}");
                    near(fitted.centres().values(), centres.values(), 1e-12);
                    near(&[fitted.inertia()], &[inertia], 1e-12);
                }
            }
        }
    }
}

/// Many centres in many dimensions: samples are compared with the centres that moved far alone. Without clusters, and with
/// clusters that no start is in, whose samples go from centre to centre for many iterations.
#[test]
fn the_centres_that_moved_far_give_what_all_centres_give() {
    for (x, k) in [(normal(2500, 90, 3), 100), (blobs(2500, 60, 300, 1.5, 4), 140)] {
        let start = Dense::from_fn(k, x.n_cols(), |at, column| x[(at, column)]);
        let samples = unlabelled(&x);
        let params = KMeans::new().n_clusters(k).tol(0.0).standardize(false);
        for iterations in [2, 4, 9, 20] {
            let (expected, centres, inertia) = plain(&x, None, start.clone(), iterations);
            let fit = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let params = params.clone().max_iter(iterations);
                pool.install(|| params.fit_from(&samples, &start, &Job::default()).unwrap())
            };
            let fitted = fit(1);
            let training: Vec<u32> =
                fitted.training_labels().unwrap().into_iter().flatten().collect();
            assert_eq!(training, expected, "{k} clusters, {iterations} iterations");
            near(fitted.centres().values(), centres.values(), 1e-12);
            near(&[fitted.inertia()], &[inertia], 1e-12);
            assert_eq!(fit(2).to_bytes().unwrap(), fitted.to_bytes().unwrap());
        }
    }
}

#[test]
fn the_inertia_never_rises_and_is_that_of_the_labels() {
    for metric in [KMeansMetric::Euclidean, KMeansMetric::Cosine] {
        let x = normal(900, 6, 3);
        let params = KMeans::new().n_clusters(20).n_init(1).tol(0.0).metric(metric);
        let fitted = params.fit(&unlabelled(&x)).unwrap();
        let trace = &fitted.report.trace;
        assert!(
            trace.windows(2).all(|pair| pair[1].objective <= pair[0].objective * (1.0 + 1e-12))
        );
        assert!(trace.len() > 5 && trace[0].objective > 1.02 * fitted.report.objective);
        near(&[fitted.inertia()], &[fitted.report.objective], 1e-10);
        near(&[fitted.cost(&x.clone().into(), None).unwrap()], &[fitted.inertia()], 1e-12);
        let distances = fitted.distances(&x.clone().into()).unwrap().unwrap();
        let labels = labels(&fitted, &x);
        let own = labels.iter().enumerate().map(|(row, &at)| distances[(row, at as usize)]);
        let sum: f64 = match metric {
            KMeansMetric::Euclidean => own.map(|d| d * d).sum(),
            KMeansMetric::Cosine => own.sum(),
        };
        near(&[sum], &[fitted.inertia()], 1e-12);
    }
}

#[test]
fn clusters_far_from_zero_and_from_each_other_keep_their_digits() {
    let (x, near_zero) = {
        let x = blobs(300, 3, 3, 0.1, 9);
        (Dense::from_fn(300, 3, |row, at| x[(row, at)] + 1e8), x)
    };
    let params = KMeans::new().n_clusters(3).standardize(false);
    let (a, b) =
        (params.fit(&unlabelled(&x)).unwrap(), params.fit(&unlabelled(&near_zero)).unwrap());
    near(&[a.inertia()], &[b.inertia()], 1e-5);
    // One cluster at 1e8, two that differ by 1 near 0: single precision cannot tell these apart.
    let x = Dense::from_fn(300, 2, |row, at| match row % 3 {
        0 => 1e8 + near_zero[(row, at)],
        which => which as f64 + 0.01 * near_zero[(row, at)],
    });
    let fitted = params.fit(&unlabelled(&x)).unwrap();
    let labels = labels(&fitted, &x);
    assert!((0..300).all(|row| labels[row] == labels[row % 3]));
    assert!(fitted.inertia() < 5000.0 && fitted.inertia() > 0.0, "{}", fitted.inertia());
}

#[test]
fn equal_samples_one_sample_and_constant_features_are_no_trouble() {
    let equal = Dense::full(20, 3, 7.5);
    let fitted = KMeans::new().n_clusters(4).fit(&unlabelled(&equal)).unwrap();
    assert_eq!(fitted.inertia(), 0.0);
    assert_eq!(fitted.sizes().iter().sum::<u64>(), 20);
    assert!(fitted.report.notes.iter().any(|note| note.contains("fewer different samples")));
    let one = KMeans::new().fit(&unlabelled(&Dense::from_rows(&[[1.0, 2.0]]))).unwrap();
    assert_eq!((one.centres().row(0), one.n_clusters()), (&[1.0, 2.0][..], 1));
    let x = Dense::from_fn(60, 3, |row, at| if at == 1 { 4.0 } else { (row % 2 * 10 + at) as f64 });
    let fitted = KMeans::new().n_clusters(2).standardize(true).fit(&unlabelled(&x)).unwrap();
    assert!(fitted.inertia() < 1e-20 && fitted.centres().column(1).all(|c| c == 4.0));
    // Few different samples, many of each.
    let x = Dense::from_fn(1000, 1, |row, _| (row % 5) as f64);
    let fitted = KMeans::new().n_clusters(5).fit(&unlabelled(&x)).unwrap();
    assert_eq!((fitted.inertia(), fitted.sizes()), (0.0, vec![200; 5]));
    assert!(fitted.centres().values().is_sorted(), "clusters of one size by their centres");
    let x = Dense::from_fn(100, 1, |row, _| if row < 20 { 0.0 } else { 9.0 });
    let fitted = KMeans::new().n_clusters(2).fit(&unlabelled(&x)).unwrap();
    assert_eq!((fitted.sizes(), fitted.centres().values()), (vec![80, 20], &[9.0, 0.0][..]));
}

#[test]
fn what_cannot_be_clustered_is_refused_by_name() {
    let x = normal(5, 2, 1);
    let text = |result: Result<Fitted<KMeans>>| result.unwrap_err().to_string();
    let error = text(KMeans::new().n_clusters(6).fit(&unlabelled(&x)));
    assert!(
        error.contains("`n_clusters`") && error.contains('6') && error.contains('5'),
        "{error}"
    );
    let weighted = unlabelled(&x).with_weights(vec![1.0, 1.0, 0.0, 0.0, 0.0]).unwrap();
    let error = text(KMeans::new().n_clusters(3).fit(&weighted));
    assert!(error.contains("at most 2"), "{error}");
    let huge = Dense::from_rows(&[[1e200], [-1e200]]);
    let error = text(KMeans::new().n_clusters(1).fit(&unlabelled(&huge)));
    assert!(error.contains("overflow"), "{error}");
    let wide = Dense::full(2, 3, 1.0);
    let params = KMeans::new();
    let error = text(params.fit_from(&unlabelled(&x), &wide, &Job::default()));
    assert!(error.contains("2 × 3"), "{error}");
    let fitted = params.fit(&unlabelled(&x)).unwrap();
    let nan = Matrix::from(Dense::from_rows(&[[1.0, f64::NAN]]));
    assert!(fitted.labels(&nan).unwrap_err().to_string().contains("NaN"));
}

#[test]
fn an_empty_cluster_takes_the_farthest_sample() {
    // The third centre is nearest to nothing; the farthest sample from its own centre is 100.
    let x = Dense::from_rows(&[[0.0], [1.0], [10.0], [11.0], [100.0]]);
    let start = Dense::from_rows(&[[0.5], [10.5], [-1000.0]]);
    let params = KMeans::new().n_clusters(3).max_iter(1);
    let fitted = params.fit_from(&unlabelled(&x), &start, &Job::default()).unwrap();
    assert_eq!(fitted.centres().values(), [0.5, 10.5, 100.0]);
}

#[test]
fn weights_equal_repetition() {
    let x = normal(120, 3, 5);
    let counts: Vec<usize> = (0..120).map(|row| row % 4).collect();
    let rows: Vec<u32> =
        (0..120u32).flat_map(|row| std::iter::repeat_n(row, counts[row as usize])).collect();
    let samples = unlabelled(&x);
    let weights = counts.iter().map(|&count| count as f64).collect();
    let weighted = samples.clone().with_weights(weights).unwrap();
    let params = KMeans::new().n_clusters(6).n_init(3);
    let (a, b) = (params.fit(&weighted).unwrap(), params.fit(&samples.select_rows(&rows)).unwrap());
    near(a.centres().values(), b.centres().values(), 1e-9);
    near(&[a.inertia()], &[b.inertia()], 1e-9);
}

#[test]
fn mini_batches_come_close() {
    let x = blobs(5000, 4, 10, 1.0, 4);
    let params = KMeans::new().n_clusters(10).n_init(3);
    let whole = params.fit(&unlabelled(&x)).unwrap();
    let params = params.algorithm(KMeansAlgorithm::MiniBatch).batch_size(256).max_iter(20);
    let batches = params.fit(&unlabelled(&x)).unwrap();
    let ratio = batches.inertia() / whole.inertia();
    assert!((0.999..1.1).contains(&ratio), "{ratio}");
}

/// Spherical: directions count, lengths do not.
#[test]
fn the_cosine_metric_looks_at_directions() {
    let mut stream = Stream::new(2, "directions", 0);
    let x = Dense::from_fn(400, 3, |row, at| {
        let length = 10f64.powi(row as i32 % 5 - 2);
        length * (f64::from(u8::from(row % 3 == at)) + 0.1 * stream.normal())
    });
    let params = KMeans::new().n_clusters(3).metric(KMeansMetric::Cosine);
    let fitted = params.fit(&unlabelled(&x)).unwrap();
    let found = labels(&fitted, &x);
    assert!((0..400).all(|row| found[row] == found[row % 3]));
    assert!(fitted.centres().rows().all(|c| (squared(c, &[0.0; 3]) - 1.0).abs() < 1e-12));
    let other = params.fit(&Samples::unlabelled(sparse(&x)).unwrap()).unwrap();
    near(&[other.inertia()], &[fitted.inertia()], 1e-9);
    // A sample without features is as far from every centre.
    let zero = Matrix::from(Dense::full(1, 3, 0.0));
    assert_eq!(fitted.distances(&zero).unwrap().unwrap().values(), [1.0; 3]);
    assert_eq!(fitted.labels(&zero).unwrap(), [Some(0)]);
}

#[test]
fn features_in_unlike_units_are_standardised_where_one_outweighs_the_rest() {
    let x = blobs(300, 4, 3, 0.3, 8);
    let unlike = Dense::from_fn(300, 4, |row, at| {
        if at == 3 { 1e4 * normal(300, 1, 77)[(row, 0)] } else { x[(row, at)] }
    });
    let fitted = KMeans::new().n_clusters(3).fit(&unlabelled(&unlike)).unwrap();
    assert!(fitted.report.chosen.iter().any(|choice| choice.parameter == "standardize"));
    assert!(fitted.scale().is_some());
    let found = labels(&fitted, &unlike);
    assert!((0..300).all(|row| found[row] == found[row % 3]), "the clusters of three features");
    // Two of ten features, neither of which has most of the variance.
    let wide = blobs(300, 10, 3, 0.3, 18);
    let two = Dense::from_fn(300, 10, |row, at| {
        if at > 7 { 1e3 * normal(300, 2, 78)[(row, at - 8)] } else { wide[(row, at)] }
    });
    let fitted_two = KMeans::new().n_clusters(3).fit(&unlabelled(&two)).unwrap();
    let reason = &fitted_two.report.chosen[0].reason;
    assert!(["2 of 10", "`x9`", "`x10`"].iter().all(|part| reason.contains(part)), "{reason}");
    let found = labels(&fitted_two, &two);
    assert!((0..300).all(|row| found[row] == found[row % 3]), "the clusters of eight features");
    let as_is = KMeans::new().n_clusters(3).standardize(false).fit(&unlabelled(&unlike)).unwrap();
    assert!(as_is.report.notes.iter().any(|note| note.contains("standardize = true")));
    let alike = KMeans::new().n_clusters(3).fit(&unlabelled(&x)).unwrap();
    assert!(alike.scale().is_none() && alike.report.notes.is_empty());
    // Saved and loaded, the scale comes along.
    let bytes = fitted.to_bytes().unwrap();
    let mut file = gradus_file::Reader::from_bytes(bytes).unwrap();
    let mut model = Fitted::<KMeans>::read(&mut file).unwrap().model;
    model.training = labels(&fitted, &unlike);
    assert_eq!(model, fitted.model, "also the labels that were remembered");
    assert!(fitted.summary().iter().any(|(_, value)| value.contains("standardised")));
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let x = blobs(20_000, 8, 30, 1.5, 6);
    let samples = unlabelled(&x);
    for algorithm in [KMeansAlgorithm::Lloyd, KMeansAlgorithm::MiniBatch] {
        let params = KMeans::new().n_clusters(30).n_init(2).max_iter(12).algorithm(algorithm);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| params.fit(&samples).unwrap().to_bytes().unwrap())
        };
        let one = with(1);
        assert!(one == with(2) && one == with(7));
    }
}

#[test]
fn clusters_for_other_models() {
    let x = blobs(500, 3, 4, 0.2, 11);
    let found = cluster(&x.clone().into(), None, 4, 1, 5).unwrap();
    assert_eq!((found.centres.shape(), found.labels.len()), ((4, 3), 500));
    assert!((0..500).all(|row| found.labels[row] == found.labels[row % 4]));
    assert!(cluster(&x.into(), None, 501, 1, 1).is_err());
}

/// rows that are not kept in memory, in blocks.
struct Blocks {
    x: Dense<f64>,
    block: usize,
    done: usize,
}

impl RowBlocks for Blocks {
    fn n_cols(&self) -> usize {
        self.x.n_cols()
    }

    fn n_rows(&self) -> usize {
        self.x.n_rows()
    }

    fn next_block(&mut self, rows: &mut Vec<f64>) -> Result<()> {
        rows.clear();
        let end = self.x.n_rows().min(self.done + self.block);
        (self.done..end).for_each(|row| rows.extend_from_slice(self.x.row(row)));
        self.done = end;
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.done = 0;
        Ok(())
    }
}

#[test]
fn a_file_read_row_by_row_gives_the_same_clusters() {
    for (metric, offset) in [(KMeansMetric::Euclidean, 1e6), (KMeansMetric::Cosine, 0.0)] {
        let x = blobs(3000, 5, 4, 0.3, 21);
        let x = Dense::from_fn(3000, 5, |row, at| x[(row, at)] + offset);
        let params = KMeans::new().n_clusters(4).metric(metric).tol(0.0).standardize(false);
        let in_memory = params.fit(&unlabelled(&x)).unwrap();
        let mut blocks = Blocks { x: x.clone(), block: 700, done: 0 };
        let read = params.fit_rows(&mut blocks, &Job::default()).unwrap().unwrap();
        near(&[read.inertia()], &[in_memory.inertia()], 1e-6);
        assert_eq!(read.sizes().iter().sum::<u64>(), 3000);
        let (a, b) = (labels(&in_memory, &x), labels(&read, &x));
        assert!((0..3000).all(|row| (a[row] == a[row % 4]) && (b[row] == b[row % 4])));
        let mut counted = vec![0; 4];
        b.iter().for_each(|&label| counted[label as usize] += 1);
        assert_eq!(read.sizes(), counted);
    }
    let mut bad = Blocks { x: Dense::full(10, 1, f64::NAN), block: 4, done: 0 };
    let error = KMeans::new().fit_rows(&mut bad, &Job::default()).unwrap().unwrap_err();
    assert!(error.to_string().contains("row 1, column 1: NaN"), "{error}");
}

/// Where Lloyd's algorithm stops, one sample may still lower the inertia by moving.
#[test]
fn moves_of_single_samples_never_make_it_worse() {
    let mut better = 0;
    for seed in 0..8 {
        let x = normal(150, 3, 100 + seed);
        let plain = KMeans::new().n_clusters(12).n_init(20).fit(&unlabelled(&x)).unwrap();
        let fitted = KMeans::new().n_clusters(12).fit(&unlabelled(&x)).unwrap();
        assert!(fitted.inertia() <= plain.inertia() * (1.0 + 1e-12));
        better += usize::from(fitted.inertia() < plain.inertia() * (1.0 - 1e-6));
        // The labels are still those of the nearest centres.
        let found = labels(&fitted, &x);
        assert!(x.rows().zip(&found).all(|(x, &at)| nearest(fitted.centres(), x) == at as usize));
        let mut counted = vec![0; 12];
        found.iter().for_each(|&at| counted[at as usize] += 1);
        assert_eq!(fitted.sizes(), counted);
    }
    assert!(better > 0);
}

/// A weight of 3 is three samples: not draw by draw, since batches differ, but in the mean over seeds.
#[test]
fn mini_batches_take_weights_as_repetitions_in_law() {
    let (n, d, k) = (600, 3, 4);
    let x = blobs(n, d, k, 2.5, 77);
    let weights: Vec<f64> = (0..n).map(|row| [0.0, 1.0, 3.0][row % 3]).collect();
    let rows: Vec<usize> = (0..n).flat_map(|row| vec![row; weights[row] as usize]).collect();
    let repeated = Dense::from_fn(rows.len(), d, |at, column| x[(rows[at], column)]);
    let start = Dense::from_fn(k, d, |at, column| x[(3 * at + 1, column)]);
    let (plain, weighted) =
        (unlabelled(&repeated), unlabelled(&x).with_weights(weights.clone()).unwrap());
    let mean = |samples: &Samples, batch: usize| {
        let costs = (0..24).map(|seed| {
            let params = KMeans::new().n_clusters(k).standardize(false).seed(seed).max_iter(3usize);
            let params = params.algorithm(KMeansAlgorithm::MiniBatch).batch_size(batch).tol(0.0);
            let fitted = params.fit_from(samples, &start, &Job::default()).unwrap();
            // Both are measured on the same data.
            fitted.cost(&repeated.clone().into(), None).unwrap()
        });
        costs.sum::<f64>() / 24.0
    };
    // Batches of the same weight: a sample weighs 4/3 on average.
    let (a, b) = (mean(&plain, 80), mean(&weighted, 60));
    assert!((a / b - 1.0).abs() < 0.03, "{a} {b}");
    let unweighted = mean(&unlabelled(&x), 60);
    assert!(unweighted >= b * 0.99, "weights must count: {unweighted} {b}");
}

/// The clusters of `x` and their number, where that is left out.
fn chosen(x: &Dense<f64>) -> Fitted<KMeans> {
    let fitted = KMeans::new().fit(&unlabelled(x)).unwrap();
    let choice = fitted.report.chosen.iter().find(|choice| choice.parameter == "n_clusters");
    assert_eq!(choice.unwrap().value as usize, fitted.centres().n_rows());
    fitted
}

#[test]
fn the_number_of_clusters_is_chosen_where_it_is_left_out() {
    for (k, d) in [(2, 2), (3, 2), (5, 3), (13, 6), (30, 10), (55, 10)] {
        let x = blobs(60 * k, d, k, 0.15, k as u64);
        let fitted = chosen(&x);
        assert_eq!(fitted.centres().n_rows(), k, "{:?}", fitted.report.chosen);
        let found = labels(&fitted, &x);
        assert!((0..x.n_rows()).all(|row| found[row] == found[row % k]));
    }
    // Unlike sizes, and one feature in another unit.
    let places = [[0.0, 0.0, 0.0], [6.0, 0.0, 6.0], [0.0, 6.0, 3.0]];
    let noise = normal(500, 3, 5);
    let x = Dense::from_fn(500, 3, |row, at| {
        let place = places[usize::from(row >= 300) + usize::from(row >= 460)];
        (place[at] + 0.5 * noise[(row, at)]) * if at == 2 { 1e4 } else { 1.0 }
    });
    assert_eq!(chosen(&x).centres().n_rows(), 3);
    // More samples than are tried, by weights, sparse, by directions, and in batches.
    let x = blobs(5000, 4, 4, 0.2, 3);
    let weights = (0..5000).map(|row| f64::from(u8::from(row % 4 != 3))).collect();
    let weighted = KMeans::new().fit(&unlabelled(&x).with_weights(weights).unwrap()).unwrap();
    assert_eq!((chosen(&x).centres().n_rows(), weighted.centres().n_rows()), (4, 3));
    let params = KMeans::new().metric(KMeansMetric::Cosine).algorithm(KMeansAlgorithm::MiniBatch);
    let directions = params.fit(&Samples::unlabelled(sparse(&x)).unwrap()).unwrap();
    assert_eq!(directions.centres().n_rows(), 4);
}

#[test]
fn where_nothing_can_be_chosen_there_is_one_cluster() {
    for x in [Dense::full(50, 2, 3.0), Dense::full(1, 2, 3.0)] {
        assert_eq!(chosen(&x).centres().n_rows(), 1);
    }
    let two = Dense::from_rows(&[[0.0], [1.0]]);
    assert_eq!(chosen(&two).centres().n_rows(), 1);
    // What has no groups is cut up, and the reason says so.
    let mut stream = Stream::new(4, "uniform", 0);
    let fitted = chosen(&Dense::from_fn(400, 8, |_, _| stream.uniform()));
    assert!(fitted.report.chosen[0].reason.contains("clear groups"), "{:?}", fitted.report.chosen);
}
