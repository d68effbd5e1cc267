//! Principal component analysis as a user meets it: tables, arrays larger than memory, the page.

mod support;

use gradus_data::{Dense, NpyArray};
use support::{Folder, numbers};

impl Folder {
    /// With a table of a class, and of numbers near a plane.
    fn new() -> Self {
        let folder = Self::empty();
        let mut text = String::from("kind,a,b,c,d\n");
        for row in 0..200 {
            let (s, t) = (f64::from(row % 17) - 8.0, f64::from(row % 5) - 2.0);
            let noise = |k: i32| f64::from((row * k) % 7 - 3) * 0.05;
            let kind = ["x", "y", "z"][row as usize % 3];
            let [a, b] = [3.0 * s + noise(3), s - t + noise(5)];
            let [c, d] = [2.0 * t + noise(11), s + t + noise(13)];
            text += &format!("{kind},{a},{b},{c},{d}\n");
        }
        std::fs::write(folder.0.path().join("t.csv"), text).unwrap();
        folder
    }
}

#[test]
fn fitted_transformed_back_evaluated_drawn() {
    let folder = Folder::new();
    let fit = folder.json("fit pca t.csv --ignore kind -o m.gradus");
    // Left out, the number is chosen, and the report says why.
    let chosen = &fit["report"]["chosen"][0];
    assert_eq!(chosen["parameter"], "n_components");
    assert!(chosen["reason"].as_str().unwrap().contains("held-out"), "{fit}");
    folder.out("fit pca t.csv --ignore kind -o m.gradus --n-components 2");
    let info = folder.out("info m.gradus");
    assert!(info.contains("explained variance") && info.contains("99."), "{info}");
    let z = folder.out("transform m.gradus t.csv");
    assert!(z.starts_with("pc1,pc2\n") && z.lines().count() == 201, "{z}");
    std::fs::write(folder.0.path().join("z.csv"), &z).unwrap();
    let back = numbers(&folder.out("transform m.gradus z.csv --inverse"));
    let table = std::fs::read_to_string(folder.0.path().join("t.csv")).unwrap();
    for (row, back) in table.lines().skip(1).zip(&back) {
        let cells: Vec<f64> = row.split(',').skip(1).map(|cell| cell.parse().unwrap()).collect();
        assert!(cells.iter().zip(back).all(|(a, b)| (a - b).abs() < 0.4), "{row} {back:?}");
    }
    let evaluated = folder.json("evaluate m.gradus t.csv");
    assert_eq!(evaluated["metric"], "negative log density");
    assert_eq!(evaluated["further"][0]["metric"], "reconstruction RMSE");
    assert!(evaluated["further"][0]["value"].as_f64().unwrap() < 0.2, "{evaluated}");
    assert!(folder.out("evaluate m.gradus t.csv").contains("reconstruction RMSE"));
    let drawn = folder.out("generate m.gradus -n 5 --seed 1");
    assert!(drawn.starts_with("a,b,c,d\n") && numbers(&drawn).len() == 5, "{drawn}");
    folder.out("report m.gradus --data t.csv --target kind -o page.html");
    let page = std::fs::read_to_string(folder.0.path().join("page.html")).unwrap();
    for part in ["Variance of each component", "The first two components", "kind x", "kind z"] {
        assert!(page.contains(part), "{part}");
    }
    folder.out("report m.gradus -o alone.html");
    let refused = folder.err("fit pca t.csv --ignore kind -o n.gradus --n-components 9");
    assert!(refused.contains("at most 4"), "{refused}");
}

#[test]
fn an_array_is_read_while_it_is_fitted() {
    let folder = Folder::new();
    let x =
        Dense::from_fn(3000, 40, |r, c| (((r * 31 + c * 17) % 101) as f64).sin() * (c + 1) as f64);
    NpyArray::from(x.clone()).write(folder.0.path().join("x.npy")).unwrap();
    let fit = folder.json("fit pca x.npy -o m.gradus --n-components 3");
    assert_eq!((&fit["data"]["samples"], &fit["data"]["features"]), (&3000.into(), &40.into()));
    // The same as with a part held out, which needs all of it in memory.
    folder.out("fit pca x.npy -o n.gradus --n-components 3 --solver covariance --holdout 0.1");
    assert_eq!(numbers(&folder.out("transform m.gradus x.npy")).len(), 3000);
    assert!(folder.out("info m.gradus").contains("3000"));
    let refused = folder.err("fit pca x.npy -o o.gradus --ignore a");
    assert!(refused.contains("no named columns"), "{refused}");
    let refused = folder.err("fit ridge x.npy -o o.gradus --target a");
    assert!(refused.contains("no named columns"), "{refused}");
    let bytes = std::fs::read(folder.0.path().join("x.npy")).unwrap();
    std::fs::write(folder.0.path().join("cut.npy"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(folder.err("fit pca cut.npy -o o.gradus --n-components 3").contains("ends within"));
    assert!(!folder.0.path().join("o.gradus").exists());
}

#[test]
fn images_in_an_array_are_drawn_as_pictures() {
    let folder = Folder::new();
    // 12 pictures of 3 × 4 bytes, as NumPy writes them.
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (12, 3, 4), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let padded = format!("{header:<117}\n");
    bytes.extend_from_slice(&(padded.len() as u16).to_le_bytes());
    bytes.extend_from_slice(padded.as_bytes());
    bytes.extend((0..144u32).map(|at| (at * at % 251) as u8));
    std::fs::write(folder.0.path().join("faces.npy"), bytes).unwrap();
    folder.out("fit pca faces.npy -o m.gradus --n-components 2");
    folder.out("report m.gradus -o page.html");
    let page = std::fs::read_to_string(folder.0.path().join("page.html")).unwrap();
    assert!(page.contains("as pictures") && page.contains("component 2"), "no pictures");
}

#[test]
fn the_page_of_an_autoencoder_draws_angles() {
    let folder = Folder::new();
    let x =
        Dense::from_fn(200, 5, |r, c| (((r * 31 + c * 17) % 101) as f64).sin() * (c + 1) as f64);
    NpyArray::from(x).write(folder.0.path().join("x.npy")).unwrap();
    let fit = folder.json("fit linearautoencoder x.npy -o m.gradus --n-components 2");
    let first = &fit["report"]["trace"][0]["measures"][0];
    assert_eq!(first["name"], "angle 1");
    assert_eq!(numbers(&folder.out("transform m.gradus x.npy")).len(), 200);
    folder.out("report m.gradus --data x.npy -o page.html");
    let page = std::fs::read_to_string(folder.0.path().join("page.html")).unwrap();
    assert!(page.contains("Angles to the principal components") && page.contains("code 1"));
    assert!(folder.out("info m.gradus").contains("angle to the principal components"));
    assert!(folder.out("evaluate m.gradus x.npy").contains("reconstruction"));
    let refused = folder.err("fit linearautoencoder x.npy -o n.gradus --learning-rate 0.1");
    assert!(refused.contains("newton"), "{refused}");
}
