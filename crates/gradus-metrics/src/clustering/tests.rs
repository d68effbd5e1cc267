use super::*;
use gradus_base::random::Stream;
use gradus_data::{Csr, Dense, Matrix};

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} {b}");
}

/// The figures of scikit-learn 1.9 for these labels.
#[test]
fn agreement_is_that_of_scikit_learn() {
    let classes = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2];
    let clusters = [0, 0, 1, 1, 1, 2, 2, 2, 2, 0];
    let found = Agreement::new(&classes, &clusters).unwrap();
    near(found.adjusted_rand, 0.204_545_454_545_454_56);
    near(found.normalized_mutual_info, 0.442_701_283_346_05);
    near(found.adjusted_mutual_info, 0.237_288_777_701_335_58);
    near(found.homogeneity, 0.442_701_283_346_05);
    near(found.completeness, 0.442_701_283_346_05);
    near(found.v_measure, 0.442_701_283_346_05);
}

#[test]
fn the_same_groups_by_other_numbers_agree() {
    for labels in [&[0u32, 0, 1, 1, 5][..], &[3, 3, 3], &[0, 1, 2, 3], &[]] {
        let other: Vec<u32> = labels.iter().map(|label| 9 - label).collect();
        let found = Agreement::new(labels, &other).unwrap();
        for value in [
            found.adjusted_rand,
            found.normalized_mutual_info,
            found.adjusted_mutual_info,
            found.homogeneity,
            found.completeness,
            found.v_measure,
        ] {
            near(value, 1.0);
        }
    }
    // One cluster says nothing of two classes.
    let found = Agreement::new(&[0, 0, 1, 1], &[0, 0, 0, 0]).unwrap();
    assert_eq!((found.homogeneity, found.completeness, found.v_measure), (0.0, 1.0, 0.0));
    assert_eq!((found.adjusted_rand, found.normalized_mutual_info), (0.0, 0.0));
    near(found.adjusted_mutual_info, 0.0);
    assert!(Agreement::new(&[0], &[0, 1]).is_err());
}

#[test]
fn agreement_of_random_labels_is_about_0() {
    let mut stream = Stream::new(1, "agreement", 0);
    let mut labels = || -> Vec<u32> { (0..2000).map(|_| stream.index(20) as u32).collect() };
    let found = Agreement::new(&labels(), &labels()).unwrap();
    assert!(found.adjusted_rand.abs() < 0.01 && found.adjusted_mutual_info.abs() < 0.01);
    assert!(found.normalized_mutual_info > 0.02, "which is not corrected for chance");
}

fn plain_silhouettes(x: &Dense<f64>, labels: &[u32]) -> Vec<f64> {
    let distance = |a: usize, b: usize| -> f64 {
        x.row(a).iter().zip(x.row(b)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    };
    let n = x.n_rows();
    let k = *labels.iter().max().unwrap();
    (0..n)
        .map(|i| {
            let mean = |label: u32| {
                let others: Vec<usize> = (0..n).filter(|&j| j != i && labels[j] == label).collect();
                let sum: f64 = others.iter().map(|&j| distance(i, j)).sum();
                (!others.is_empty()).then(|| sum / others.len() as f64)
            };
            let Some(a) = mean(labels[i]) else { return 0.0 };
            let others = (0..=k).filter(|&label| label != labels[i]).filter_map(mean);
            let b = others.fold(f64::INFINITY, f64::min);
            (b - a) / a.max(b)
        })
        .collect()
}

#[test]
fn silhouettes_are_those_of_plain_loops() {
    let mut stream = Stream::new(2, "silhouettes", 0);
    for offset in [0.0, 1e8] {
        let x = Dense::from_fn(700, 3, |row, _| stream.normal() + (row % 4) as f64 + offset);
        // A label that no sample has, and a sample that is alone.
        let labels: Vec<u32> = (0..700).map(|row| if row == 5 { 9 } else { row % 4 }).collect();
        let expected = plain_silhouettes(&x, &labels);
        let found = silhouettes(&x.clone().into(), &labels).unwrap();
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        assert_eq!(found[5], 0.0);
        let distances = Distances::new(&x.clone().into()).unwrap();
        for (a, b) in distances.silhouettes(&labels).unwrap().iter().zip(&found) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
        assert!(distances.silhouettes(&labels[1..]).is_err());
        let mean = Silhouette::new(&x.clone().into(), &labels, 1000, 0).unwrap();
        assert!((mean.mean - expected.iter().sum::<f64>() / 700.0).abs() < 1e-6);
        assert_eq!((mean.samples, mean.clusters.len(), mean.clusters[7]), (700, 10, None));
        let some = Silhouette::new(&x.into(), &labels, 300, 0).unwrap();
        assert_eq!((some.samples, some.of), (300, 700));
        assert!((some.mean - mean.mean).abs() < 0.1);
    }
}

#[test]
fn sparse_and_dense_features_have_the_same_measures() {
    let mut stream = Stream::new(3, "sparse", 0);
    let x = Dense::from_fn(90, 6, |row, at| {
        if (row + at) % 2 == 0 { 0.0 } else { stream.normal() + (row % 3) as f64 }
    });
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (at, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(at as u32);
            values.push(x);
        }
        indptr.push(indices.len());
    }
    let sparse = Matrix::from(Csr::new(6, indptr, indices, values).unwrap());
    let labels: Vec<u32> = (0..90).map(|row| row % 3).collect();
    let dense = Matrix::from(x);
    let (a, b) = (Shape::new(&dense, &labels).unwrap(), Shape::new(&sparse, &labels).unwrap());
    near(a.davies_bouldin, b.davies_bouldin);
    near(a.calinski_harabasz, b.calinski_harabasz);
    let (a, b) = (silhouettes(&dense, &labels).unwrap(), silhouettes(&sparse, &labels).unwrap());
    a.iter().zip(&b).for_each(|(a, b)| near(*a, *b));
}

#[test]
fn what_has_no_measure_is_refused() {
    let x = Matrix::from(Dense::from_rows(&[[1.0], [2.0], [3.0]]));
    for labels in [&[0u32, 0, 0][..], &[0, 1, 2], &[0, 1]] {
        assert!(silhouettes(&x, labels).is_err() && Shape::new(&x, labels).is_err());
    }
    let nan = Matrix::from(Dense::from_rows(&[[1.0], [f64::NAN], [3.0]]));
    assert!(Shape::new(&nan, &[0, 0, 1]).is_err());
}
