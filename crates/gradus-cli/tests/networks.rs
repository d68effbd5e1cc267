//! Networks as a user meets them: the range test of learning rates, weights of other programs, autoencoders.

mod support;

use gradus_data::{Dense, NpyArray};
use support::{Folder, numbers};

/// Two clouds of points that a line does not part.
fn with_table() -> Folder {
    let folder = Folder::empty();
    let mut text = String::from("a,b,kind\n");
    for row in 0..400 {
        let angle = f64::from(row) * 0.7;
        let radius = if row % 2 == 0 { 1.0 } else { 2.0 } + f64::from(row % 7) * 0.05;
        let kind = ["inner", "outer"][row as usize % 2];
        text += &format!("{},{},{kind}\n", radius * angle.cos(), radius * angle.sin());
    }
    folder.write("t.csv", text);
    folder
}

#[test]
fn the_range_test_suggests_a_learning_rate() {
    let folder = with_table();
    let words = "lab lr mlp t.csv --target kind --hidden 32 --batch-size 64";
    let answer = folder.json(&format!("{words} -o lr.svg"));
    assert_eq!(answer["model"], "mlp");
    let of = |name: &str| answer[name].as_f64().unwrap();
    assert!(of("suggestion") < of("least") && of("suggestion") > 1e-4, "{answer}");
    assert!(of("steepest") <= of("least"));
    let steps = answer["steps"].as_array().unwrap();
    assert!((steps[0]["rate"].as_f64().unwrap() - 1e-6).abs() < 1e-12 && steps.len() <= 300);
    let svg = folder.read("lr.svg");
    assert!(svg.contains("suggestion") && svg.contains("learning rate"));
    let shown = folder.out(&format!("{words} -o lr.html --to 0.01 --steps 40"));
    assert!(shown.contains("suggestion: --learning-rate"), "{shown}");
    assert!(folder.read("lr.html").contains("Range test"));
    // The rate that was suggested learns the table.
    let rate = of("suggestion");
    folder.out(&format!(
        "fit mlp t.csv --target kind --hidden 32 --learning-rate {rate} -o m.gradus"
    ));
    let found = folder.out("predict m.gradus t.csv");
    let cells = found.lines().skip(1).map(|line| line.split(',').skip(2).collect::<Vec<_>>());
    let right = cells.filter(|cells| cells[0] == cells[1]);
    assert!(right.count() > 380, "{found}");
}

#[test]
fn the_range_test_takes_every_kind_of_data() {
    let folder = with_table();
    folder.write("text.txt", "to be or not to be, that is the question. ".repeat(40));
    let small = "--layers 1 --dimension 16 --heads 2 --context 16";
    let answer = folder.json(&format!("lab lr lm text.txt {small} --steps 60"));
    assert!(answer["least"].as_f64().unwrap() > 1e-4, "{answer}");
    let answer = folder.json("lab lr autoencoder t.csv --ignore kind --hidden 8 --steps 60");
    assert!(answer["suggestion"].is_number(), "{answer}");
    let refused = folder.err("lab lr ridge t.csv --target a");
    assert!(refused.contains("ridge"), "{refused}");
    let refused = folder.err("lab lr mlp t.csv --target kind --steps 5");
    assert!(refused.contains("at least 20"), "{refused}");
    let refused = folder.err("lab lr mlp t.csv --target kind --to -1");
    assert!(refused.contains("learning") || refused.contains("--to"), "{refused}");
}

#[test]
fn weights_of_a_safetensors_file_are_taken_by_name() {
    let folder = with_table();
    for (name, seed) in [("a", 0), ("b", 1)] {
        let words = "fit mlp t.csv --target kind --hidden 8,4 --max-iter 3";
        folder.out(&format!("{words} --seed {seed} -o {name}.gradus"));
    }
    let of = |name: &str| folder.out(&format!("predict {name}.gradus t.csv"));
    assert_ne!(of("a"), of("b"));
    // A model file is a safetensors file.
    let shown = folder.json("import a.gradus b.gradus -o c.gradus");
    assert!(shown["taken"].as_u64().unwrap() >= 6, "{shown}");
    assert_eq!(of("c"), of("b"));
    assert!(folder.out("info c.gradus").contains("were replaced"));
    folder.out("fit mlp t.csv --target kind --hidden 8,5 --max-iter 1 -o other.gradus");
    let refused = folder.err("import a.gradus other.gradus -o d.gradus");
    assert!(refused.contains("tensor `hidden.1") && refused.contains('5'), "{refused}");
    folder.out("fit mlp t.csv --target kind --hidden 8,4,3 --max-iter 1 -o deep.gradus");
    let refused = folder.err("import a.gradus deep.gradus -o d.gradus");
    assert!(refused.contains("hidden.2"), "{refused}");
    let refused = folder.err("import a.gradus t.csv -o d.gradus");
    assert!(refused.contains("no safetensors file"), "{refused}");
}

#[test]
fn an_autoencoder_transforms_and_draws_what_comes_back() {
    let folder = Folder::empty();
    // Images of 8 × 8 with a bright square somewhere.
    let mut values = Vec::new();
    for row in 0..150 {
        let (top, left) = (row % 6, row / 6 % 6);
        values.extend((0..64).map(|at| {
            let (y, x) = (at / 8, at % 8);
            f32::from(u8::from((top..top + 3).contains(&y) && (left..left + 3).contains(&x)))
        }));
    }
    let images = NpyArray::new(vec![150, 8, 8], values).unwrap();
    images.write(folder.file("x.npy")).unwrap();
    let words =
        "fit autoencoder x.npy --architecture convolutional --channels 8,8 --n-components 6";
    folder.out(&format!("{words} --max-iter 20 --learning-rate 0.01 -o m.gradus"));
    let codes = folder.out("transform m.gradus x.npy");
    assert!(codes.starts_with("code1,") && codes.lines().count() == 151, "{codes}");
    folder.write("z.csv", &codes);
    let back = numbers(&folder.out("transform m.gradus z.csv --inverse"));
    assert!(back.len() == 150 && back[0].len() == 64);
    let evaluated = folder.json("evaluate m.gradus x.npy");
    assert!(evaluated.to_string().contains("reconstruction RMSE"), "{evaluated}");
    folder.out("report m.gradus --data x.npy -o page.html");
    let page = folder.read("page.html");
    for part in ["back from their codes", "The first two numbers of the codes", "How the fit went"]
    {
        assert!(page.contains(part), "{part}");
    }
    folder.out("report m.gradus -o alone.html");
    // A table has no pictures, but numbers for each feature.
    let table = Dense::from_fn(120, 4, |row, at| (row as f64 * 0.05 * (at + 1) as f64).sin());
    let lines: Vec<String> = table
        .rows()
        .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
        .collect();
    folder.write("t.csv", format!("a,b,c,d\n{}\n", lines.join("\n")));
    folder.out("fit autoencoder t.csv --hidden 16 --max-iter 5 -o t.gradus");
    folder.out("report t.gradus --data t.csv -o t.html");
    assert!(folder.read("t.html").contains("error of the reconstruction"));
    let refused = folder.err("fit autoencoder t.csv --architecture convolutional -o n.gradus");
    assert!(refused.contains("no pixels"), "{refused}");
}

#[test]
fn images_and_labels_that_do_not_fit_are_refused_by_cause() {
    let folder = Folder::empty();
    let picture = |pixel: usize| format!("P2 4 4 255 {}", format!("{pixel} ").repeat(16));
    for name in ["dark", "light"] {
        std::fs::create_dir_all(folder.file(&format!("pictures/{name}"))).unwrap();
    }
    for at in 0..20 {
        folder.write(&format!("pictures/dark/{at}.pgm"), picture(at));
        folder.write(&format!("pictures/light/{at}.pgm"), picture(200 + at));
    }
    let fit = "fit cnn pictures --channels 4 --max-iter 4 -o m.gradus --force";
    folder.out(fit);
    // A label that training did not have counts as wrong, and is said.
    std::fs::create_dir_all(folder.file("new/grey")).unwrap();
    folder.write("new/grey/1.pgm", picture(128));
    let found = folder.json("evaluate m.gradus new");
    assert_eq!(found["unknown"], 1, "{found}");
    // Images of another size than those of training, and of two sizes.
    std::fs::create_dir_all(folder.file("large/dark")).unwrap();
    folder.write("large/dark/1.pgm", format!("P2 5 4 255 {}", "7 ".repeat(20)));
    let refused = folder.err("predict m.gradus large");
    assert!(refused.contains("4 × 4") && refused.contains("4 × 5"), "{refused}");
    folder.write("pictures/dark/99.pgm", format!("P2 5 4 255 {}", "7 ".repeat(20)));
    let refused = folder.err(fit);
    assert!(refused.contains("99.pgm") && refused.contains("one size"), "{refused}");
    // A picture that is none.
    std::fs::remove_file(folder.file("pictures/dark/99.pgm")).unwrap();
    folder.write("pictures/light/broken.jpg", [0xff, 0xd8, 0xff, 0xe0, 0, 16, 1]);
    let refused = folder.err(fit);
    assert!(refused.contains("broken.jpg"), "{refused}");
}

#[test]
fn a_fit_whose_loss_is_lost_keeps_its_last_good_checkpoint() {
    let folder = with_table();
    // The rate rises with every step until the loss is no number.
    let rising = "--optimizer sgd --learning-rate 10 --warm-up 0.9 --clip-norm 0 --max-iter 200";
    let words = format!("fit mlpregressor t.csv --target a --ignore kind {rising} --patience 0");
    let refused =
        folder.err(&format!("{words} --checkpoint c.checkpoint --checkpoint-every 0 -o m.gradus"));
    for part in ["batch", "epoch", "learning", "last good state"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!folder.file("m.gradus").exists());
    let kept = std::fs::read(folder.file("c.checkpoint")).unwrap();
    let mut file = gradus_file::Reader::from_bytes(kept).unwrap();
    let mut tensors = file.tensors().into_iter();
    let (name, ..) = tensors.find(|(name, ..)| name.ends_with("weights.output.bias")).unwrap();
    let bias: Vec<f32> = file.tensor(&name, &[1]).unwrap();
    assert!(bias[0].is_finite());
}
