//! Gaussian mixtures as a user meets them: fit, use, missing values, the number of components.

mod support;

use gradus_base::random::Stream;
use support::{Folder, numbers};

impl Folder {
    /// With three clusters, complete (`t.csv`) and with holes (`holes.csv`).
    fn new() -> Self {
        let folder = Self::empty();
        let mut stream = Stream::new(1, "mixtures", 0);
        let (mut whole, mut holes) = (String::from("a,b,c\n"), String::from("a,b,c\n"));
        for row in 0..300 {
            let centre = [[0.0, 0.0, 5.0], [8.0, 1.0, 0.0], [-3.0, 9.0, 2.0]][row % 3];
            let s = stream.normal();
            let values = centre.map(|c| c + s + 0.5 * stream.normal());
            let cells = values.map(|x| format!("{x:.4}"));
            whole += &format!("{}\n", cells.join(","));
            let gone = stream.index(6);
            let cells: Vec<&str> =
                (0..3).map(|j| if j == gone { "" } else { cells[j].as_str() }).collect();
            holes += &format!("{}\n", cells.join(","));
        }
        std::fs::write(folder.0.path().join("t.csv"), whole).unwrap();
        std::fs::write(folder.0.path().join("holes.csv"), holes).unwrap();
        folder
    }
}

#[test]
fn fitted_predicted_transformed_evaluated_drawn() {
    let folder = Folder::new();
    folder.out("fit gmm t.csv -o m.gradus");
    let info = folder.out("info m.gradus");
    assert!(info.contains("n_components = 3") && info.contains("BIC"), "{info}");
    let labels = numbers(&folder.out("predict m.gradus t.csv --only-predictions"));
    for row in 0..300 {
        assert_eq!(labels[row] == labels[0], row % 3 == 0, "row {row}");
    }
    let shares = numbers(&folder.out("transform m.gradus t.csv"));
    assert!(shares.iter().all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-9));
    let found = folder.json("evaluate m.gradus t.csv");
    assert_eq!(found["metric"], "negative log density");
    let drawn = numbers(&folder.out("generate m.gradus -n 50"));
    assert_eq!((drawn.len(), drawn[0].len()), (50, 3));
    let again = folder.0.path().join("n.gradus");
    folder.out("fit gmm t.csv -o n.gradus --threads 1");
    assert_eq!(
        std::fs::read(again).unwrap(),
        std::fs::read(folder.0.path().join("m.gradus")).unwrap()
    );
    let many = folder.err("fit gmm t.csv --n-components 301 -o x.gradus");
    assert!(many.contains("n-components") || many.contains("n_components"), "{many}");
    assert!(many.contains("300"), "{many}");
}

#[test]
fn missing_values_are_taken_and_filled_in() {
    let folder = Folder::new();
    folder.out("fit gmm holes.csv --n-components 3 -o m.gradus");
    let labels = numbers(&folder.out("predict m.gradus holes.csv --only-predictions"));
    let right = (0..300).filter(|&row| labels[row] == labels[row % 3]).count();
    assert!(right >= 285, "{right}");
    let filled = numbers(&folder.out("transform m.gradus holes.csv --impute"));
    let whole = numbers(&std::fs::read_to_string(folder.0.path().join("t.csv")).unwrap());
    let mut errors: Vec<f64> = Vec::new();
    for (filled, whole) in filled.iter().zip(&whole) {
        errors.extend(filled.iter().zip(whole).map(|(a, b)| (a - b).abs()));
    }
    assert!(errors.iter().all(|error| error.is_finite()));
    let known = errors.iter().filter(|error| **error < 1e-9).count();
    assert!((700..900).contains(&known), "{known}");
    assert!(errors.iter().sum::<f64>() / (900 - known) as f64 <= 1.5);
    // Others refuse them, and say what to do.
    let refused = folder.err("fit pca holes.csv -o x.gradus");
    assert!(refused.contains("missing"), "{refused}");
    let refused = folder.err("fit pca holes.csv --missing keep -o x.gradus");
    assert!(refused.contains("takes no missing values"), "{refused}");
    let refused = folder.err("transform m.gradus holes.csv --impute --inverse");
    assert!(refused.contains("--inverse"), "{refused}");
}

#[test]
fn the_number_of_components_is_chosen_by_every_criterion() {
    let folder = Folder::new();
    let line = "select gmm t.csv --n-components 1..5 -o best.gradus --report page.html";
    let found = folder.json(line);
    assert_eq!(found["criterion"], "bic");
    for criterion in ["bic", "silhouette", "gap", "stability"] {
        assert_eq!(found["choices"][criterion]["n_components"], 3, "{criterion}: {found}");
    }
    assert_eq!(found["candidates"].as_array().unwrap().len(), 5);
    assert!(folder.out("info best.gradus").contains("3"));
    let page = std::fs::read_to_string(folder.0.path().join("page.html")).unwrap();
    for criterion in ["silhouette", "BIC", "AIC", "gap", "stability"] {
        assert!(page.contains(criterion), "{criterion}");
    }
    // Whatever the number of threads.
    let text = folder.out("select gmm t.csv --n-components 1..5 --threads 1");
    assert!(text.contains("chosen by BIC: n_components = 3"), "{text}");
    assert_eq!(text, folder.out("select gmm t.csv --n-components 1..5 --threads 2"));
    let refused = folder.err("select gmm t.csv --n-components 1..3 --criterion no");
    assert!(refused.contains("silhouette"), "{refused}");
    let held_out = folder.json("select gmm t.csv --n-components 2..4 --cv 3");
    assert_eq!(held_out["metric"], "negative log density");
}
