//! Clusters as a user meets them: fitted, predicted, measured, drawn.

mod support;

use gradus_data::{Dense, NpyArray};
use support::Folder;

impl Folder {
    /// With a table of three groups far apart.
    fn new() -> Self {
        let folder = Self::empty();
        let mut text = String::from("kind,a,b,c\n");
        for row in 0..150 {
            let kind = row % 3;
            let noise = |k: i32| f64::from((row * k) % 7 - 3) * 0.05;
            let [a, b] = [f64::from(kind) * 4.0 + noise(3), f64::from(kind % 2) * 3.0 + noise(5)];
            text += &format!("{},{a},{b},{}\n", ["x", "y", "z"][kind as usize], noise(11));
        }
        std::fs::write(folder.0.path().join("t.csv"), text).unwrap();
        folder
    }
}

#[test]
fn fitted_predicted_transformed_measured_drawn() {
    let folder = Folder::new();
    folder.out("fit kmeans t.csv --ignore kind --n-clusters 3 -o m.gradus");
    let info = folder.out("info m.gradus");
    assert!(info.contains("inertia") && info.contains("50, 50, 50"), "{info}");
    let labels = folder.out("predict m.gradus t.csv --only-predictions");
    let labels: Vec<&str> = labels.lines().skip(1).collect();
    assert_eq!(labels.len(), 150);
    assert!((0..150).all(|row| labels[row] == labels[row % 3]));
    let distances = folder.out("transform m.gradus t.csv");
    assert_eq!(distances.lines().next().unwrap().split(',').count(), 3);
    let found = folder.json("evaluate m.gradus t.csv --target kind");
    let clusters = &found["clusters"];
    assert_eq!(clusters["adjusted_rand"], 1.0, "{found}");
    assert_eq!(clusters["v_measure"], 1.0);
    assert!(clusters["silhouette"]["mean"].as_f64().unwrap() > 0.9);
    assert!(clusters["davies_bouldin"].as_f64().unwrap() < 0.2);
    assert_eq!(clusters["silhouette"]["clusters"].as_array().unwrap().len(), 3);
    let shown = folder.out("evaluate m.gradus t.csv --target kind");
    for word in [
        "silhouette",
        "Davies–Bouldin",
        "Calinski–Harabasz",
        "adjusted Rand index",
        "beside `kind`",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let without = folder.json("evaluate m.gradus t.csv");
    assert!(without["clusters"].get("adjusted_rand").is_none(), "{without}");
    folder.out("report m.gradus --data t.csv --target kind -o page.html");
    let page = std::fs::read_to_string(folder.0.path().join("page.html")).unwrap();
    for word in [
        "principal components",
        "Silhouettes",
        "cluster 2",
        "Clusters and kind",
        "What sets clusters apart",
    ] {
        assert!(page.contains(word), "{word}");
    }
    folder.out("report m.gradus -o plain.html");
}

#[test]
fn what_cannot_be_clustered_is_said() {
    let folder = Folder::new();
    let error = folder.err("fit kmeans t.csv --ignore kind --n-clusters 151 -o m.gradus");
    assert!(error.contains("`n_clusters` = 151") && error.contains("150"), "{error}");
    folder.out("fit kmeans t.csv --ignore kind --n-clusters 1 -o m.gradus");
    let shown = folder.out("evaluate m.gradus t.csv");
    assert!(shown.contains("no measure"), "{shown}");
    let error = folder.err("evaluate m.gradus t.csv --target nothing");
    assert!(error.contains("nothing"), "{error}");
}

#[test]
fn an_array_is_read_row_by_row() {
    let folder = Folder::new();
    let x =
        Dense::from_fn(5000, 2, |row, at| ((row % 4) * 10 + at) as f32 + (row % 7) as f32 * 0.1);
    NpyArray::from(x).write(folder.0.path().join("x.npy")).unwrap();
    let fit = folder.json("fit kmeans x.npy --n-clusters 4 -o m.gradus");
    assert!(fit.to_string().contains("row by row"), "{fit}");
    let labels = folder.out("predict m.gradus x.npy");
    let labels: Vec<&str> = labels.lines().skip(1).collect();
    assert!((0..5000).all(|row| labels[row] == labels[row % 4]));
}

/// `--against` was passed over without a word.
#[test]
fn only_models_that_predict_are_compared_with_another() {
    let folder = Folder::new();
    folder.out("fit kmeans t.csv --ignore kind --n-clusters 3 -o m.gradus");
    let message = folder.err("evaluate m.gradus t.csv --against m.gradus");
    let rule = "--against compares models that predict: model `kmeans` cannot predict";
    assert!(message.contains(rule), "{message}");
}
