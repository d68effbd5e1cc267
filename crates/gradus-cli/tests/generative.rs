//! Generative models as a user meets them: samples in every form, completion, likelihoods, the page.

mod support;

use gradus_data::{Dense, NpyArray};
use support::{Folder, numbers};

/// Images of 6 × 5 with a bright bar in one column, and a table of points near a circle.
fn with_data() -> Folder {
    let folder = Folder::empty();
    let bars: Vec<f32> =
        (0..200 * 30).map(|at| f32::from(u8::from(at % 5 == at / 30 % 5))).collect();
    let images = NpyArray::new(vec![200, 6, 5], bars).unwrap();
    images.write(folder.0.path().join("bars.npy")).unwrap();
    let mut text = String::from("a,b\n");
    for row in 0..300 {
        let angle = f64::from(row) * 0.7;
        text += &format!("{},{}\n", angle.cos() + 0.01 * f64::from(row % 9), 3.0 * angle.sin());
    }
    folder.write("t.csv", text);
    folder
}

fn array(folder: &Folder, name: &str) -> NpyArray<f32> {
    NpyArray::read(folder.0.path().join(name)).unwrap()
}

#[test]
fn images_are_learned_scored_drawn_and_completed() {
    let folder = with_data();
    let small = "--channels 8 --depth 2 --max-iter 80 --learning-rate 0.01";
    folder.out(&format!("fit pixelcnn bars.npy {small} -o p.gradus"));
    let found = folder.json("evaluate p.gradus bars.npy");
    let nats = found["value"].as_f64().unwrap();
    // The entropy of five equal bars is log 5.
    assert!(nats > 1.5 && nats < 3.0, "{found}");
    assert!(found["metric"].as_str().unwrap().starts_with("nats (negative log"), "{found}");
    let shown = folder.out("evaluate p.gradus bars.npy");
    assert!(shown.contains("bits per dimension"), "{shown}");

    folder.out("sample p.gradus -n 9 --seed 3 -o grid.png");
    let picture = std::fs::read(folder.0.path().join("grid.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    folder.out("sample p.gradus -n 9 --seed 3 -o grid.npy");
    let drawn = array(&folder, "grid.npy");
    assert_eq!(drawn.shape(), [9, 6, 5]);
    // The same seed, as a table on standard output.
    let table = numbers(&folder.out("sample p.gradus -n 9 --seed 3"));
    let same = table.concat().iter().zip(drawn.values()).all(|(a, b)| *a == f64::from(*b));
    assert!(same && table.len() == 9);

    folder.out("sample p.gradus --complete bars.npy --keep 0.5 -n 12 -o c.npy");
    let (completed, given) = (array(&folder, "c.npy"), array(&folder, "bars.npy"));
    for image in 0..12 {
        let of = |array: &NpyArray<f32>| array.values()[image * 30..][..15].to_vec();
        assert_eq!(of(&completed), of(&given));
    }
    for (words, said) in [
        ("sample p.gradus --steps 5", "steps"),
        ("sample p.gradus --class 3", "class"),
        ("sample p.gradus --keep 0.5", "--complete"),
        ("sample p.gradus --complete bars.npy --keep 1.5", "keep"),
        ("sample p.gradus --complete t.csv", "expected 30"),
        ("sample p.gradus --temperature -1", "temperature"),
        ("sample p.gradus -o s.svg", ".png"),
        ("sample p.gradus -n 0 -o s.png", "no images"),
        ("sample p.gradus -o t.csv.png/x.png", "t.csv.png"),
    ] {
        let shown = folder.err(words);
        assert!(shown.contains(said), "{words}: {shown}");
    }
    // A picture replaces a picture, not a model.
    folder.out("sample p.gradus -n 4 -o grid.png");
    assert!(folder.err("sample p.gradus -n 4 -o p.gradus").contains("an input"));
    std::fs::copy(folder.0.path().join("p.gradus"), folder.0.path().join("q.gradus")).unwrap();
    assert!(folder.err("sample p.gradus -n 4 -o q.gradus").contains("gradus model"));

    folder.out("report p.gradus --data bars.npy -o p.html");
    let page = folder.read("p.html");
    for part in ["Epoch 16", "Drawn by the model", "The nearest images of bars.npy"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn codes_are_learned_and_bounds_are_named_as_bounds() {
    let folder = with_data();
    let small = "--hidden 32 --n-components 2 --max-iter 20 --learning-rate 0.01 --test-samples 20";
    folder.out(&format!("fit vae bars.npy {small} -o v.gradus"));
    let found = folder.json("evaluate v.gradus bars.npy");
    assert!(found["metric"].as_str().unwrap().contains("upper bound"), "{found}");
    let shown = folder.out("evaluate v.gradus bars.npy");
    assert!(shown.contains("bits per dimension (upper bound)"), "{shown}");
    let codes = numbers(&folder.out("transform v.gradus bars.npy"));
    assert_eq!((codes.len(), codes[0].len()), (200, 2));
    folder.out("sample v.gradus -n 5 -o s.npy");
    assert_eq!(array(&folder, "s.npy").shape(), [5, 6, 5]);
    folder.out("report v.gradus --data bars.npy -o v.html");
    let page = folder.read("v.html");
    for part in ["KL divergence", "reconstruction", "Between two codes", "Map of the codes"] {
        assert!(page.contains(part), "{part}");
    }
    let grey = Dense::from_fn(20, 4, |row, at| (row + at) as f64);
    let images: Vec<f32> = grey.values().iter().map(|x| *x as f32).collect();
    let bright = NpyArray::new(vec![20, 2, 2], images).unwrap();
    bright.write(folder.0.path().join("bright.npy")).unwrap();
    let said = folder.err("fit pixelcnn bright.npy -o x.gradus");
    assert!(said.contains("from 0 (black) to 1 (white)"), "{said}");
}

#[test]
fn tables_are_drawn_as_points() {
    let folder = with_data();
    folder.out("fit pixelcnn t.csv --hidden 16 --max-iter 5 -o p.gradus");
    folder.out("fit gmm t.csv --n-components 3 -o g.gradus");
    for model in ["p", "g"] {
        for form in ["png", "svg", "html", "csv"] {
            folder.out(&format!("sample {model}.gradus -n 50 -o {model}.{form}"));
        }
        let table = numbers(&folder.read(&format!("{model}.csv")));
        assert_eq!((table.len(), table[0].len()), (50, 2));
        assert!(folder.read(&format!("{model}.svg")).contains("<svg"));
    }
    let found = folder.json("evaluate p.gradus t.csv");
    assert_eq!(found["metric"], "negative log density");
    folder.out("report p.gradus --data t.csv -o p.html");
    assert!(folder.read("p.html").contains("Epoch 4"));
}

#[test]
fn classes_are_learned_drawn_and_compared_by_a_classifier() {
    let folder = with_data();
    folder.out("make mixture --samples 600 --parts 3 -o m.csv");
    folder.out("make mixture --samples 300 --parts 3 --seed 1 -o test.csv");
    let small = "--hidden 32,32 --max-iter 60";
    folder.out(&format!("fit diffusion m.csv --target y {small} -o d.gradus"));
    folder.out("sample d.gradus -n 40 --class 2 --steps 10 -o c.csv");
    let drawn = folder.read("c.csv");
    assert!(drawn.starts_with("x1,x2,y\n"), "{drawn}");
    assert!(drawn.lines().skip(1).all(|line| line.ends_with(",2")), "{drawn}");
    assert!(folder.err("sample d.gradus --class 7").contains("0, 1, 2"));
    assert!(folder.err("sample d.gradus --steps 1001").contains("1000"));
    assert!(folder.err("sample d.gradus --device abacus").contains("cpu or gpu"));
    // Without a classifier over the columns, with one over what it found.
    let found = folder.json("evaluate d.gradus test.csv --steps 10");
    assert!(found["metric"].as_str().unwrap().contains("upper bound"), "{found}");
    assert_eq!(found["distances"]["features"], "standardised columns");
    assert!(found["distances"]["frechet"].as_f64().unwrap() < 1.0, "{found}");
    folder.out("fit mlp m.csv --target y --hidden 16 --max-iter 30 -o k.gradus");
    let found = folder.json("evaluate d.gradus test.csv --classifier k.gradus --samples 200");
    let distances = &found;
    assert_eq!(distances["features"], "features of k.gradus");
    assert_eq!(
        (distances["samples"].as_u64(), distances["n_features"].as_u64()),
        (Some(200), Some(16))
    );
    assert_eq!(distances["classes"].as_array().unwrap().len(), 3);
    let shown = folder.out("evaluate d.gradus test.csv --classifier k.gradus --samples 200");
    for part in [
        "Fréchet distance over features of k.gradus",
        "precision",
        "confidence",
        "share of samples",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let said = folder.err("evaluate k.gradus test.csv --classifier k.gradus");
    assert!(said.contains("generate"), "{said}");
    let linear = "fit logistic m.csv --target y -o l.gradus";
    folder.out(linear);
    let said = folder.err("evaluate d.gradus test.csv --classifier l.gradus");
    assert!(said.contains("no hidden layers"), "{said}");
}

#[test]
fn an_adversarial_network_is_judged_by_distances_alone() {
    let folder = with_data();
    folder.out("fit gan t.csv --hidden 16 --max-iter 20 -o g.gradus");
    let found = folder.json("evaluate g.gradus t.csv");
    assert_eq!((found["model"].as_str(), found["data"].as_u64()), (Some("gan"), Some(300)));
    assert!(
        found["recall"].as_f64().unwrap() >= 0.0 && found["frechet_of_data"].is_number(),
        "{found}"
    );
    folder.out("fit gan bars.npy --channels 4,4 --max-iter 2 -o i.gradus");
    assert!(folder.err("evaluate i.gradus bars.npy").contains("classifier"));
    folder.out("sample i.gradus -n 4 --temperature 0.5 -o i.png");
    folder.out("report i.gradus -o i.html");
    let page = folder.read("i.html");
    for part in ["discriminator accuracy", "diversity of samples", "Between two codes"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(folder.err("fit gan t.csv --schedule range").contains("schedule"));
}
