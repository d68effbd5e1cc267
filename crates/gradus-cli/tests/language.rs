//! Models of texts from the command line: language models, classifiers and translation.

mod support;

use support::Folder;

const TEXT: &str =
    "Now is the winter of our discontent\nMade glorious summer by this sun of York;\n";
const LM: &str = "--layers 1 --dimension 32 --heads 2 --context 16 --batch-size 8 --max-iter 250 --learning-rate 0.01";

fn with_model() -> Folder {
    let folder = Folder::empty();
    folder.write("text.txt", TEXT.repeat(30));
    folder.out(&format!("fit lm text.txt -o m.gradus {LM}"));
    folder
}

#[test]
fn a_text_goes_on_from_its_prompt() {
    let folder = with_model();
    let greedy = "generate m.gradus --prompt Made --temperature 0 -n 12";
    let text = folder.out(greedy);
    assert_eq!(text, "Made glorious su\n");
    assert_eq!(folder.json(greedy)["text"], " glorious su");
    folder.out(&format!("{greedy} -o out.txt"));
    assert_eq!(folder.read("out.txt"), text);
    let drawn = |seed: u32| {
        folder.out(&format!("generate m.gradus --prompt M -n 60 --temperature 1.5 --top-k 9 --top-p 0.99 --seed {seed}"))
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    // Without a prompt: documents, as JSON lines.
    let documents = folder.out("generate m.gradus -n 3");
    assert_eq!(documents.lines().count(), 3);
    assert!(documents.lines().all(|line| line.starts_with("{\"text\":")), "{documents}");
    // Line ends in the text stay, a prompt may be empty.
    assert!(folder.out("generate m.gradus --prompt= -n 1").ends_with('\n'));
}

#[test]
fn perplexity_of_other_texts_is_told() {
    let folder = with_model();
    folder.write("same.txt", TEXT);
    folder.write("other.txt", "qqq zzz 123 qqq zzz 123");
    let loss = |file: &str| {
        let found = folder.json(&format!("evaluate m.gradus {file}"));
        assert_eq!(found["metric"], "nats per token");
        let value = found["value"].as_f64().unwrap();
        let perplexity = found["point_estimates"][0][1].as_f64().unwrap();
        assert!((perplexity - value.exp()).abs() < 1e-9 * perplexity, "{found}");
        value
    };
    assert!(loss("same.txt") < 1.5);
    assert!(loss("other.txt") > 3.0);
    let info = folder.out("info m.gradus");
    assert!(info.contains("characters") && info.contains("nats per token"), "{info}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let folder = with_model();
    let fails = |line: &str| {
        let (code, _, message) = folder.run(line);
        assert_ne!(code, Some(0), "{line}");
        message
    };
    assert!(fails("generate m.gradus --top-k 3").contains("--prompt"));
    assert!(fails("generate m.gradus --prompt a --temperature -1").contains("temperature"));
    assert!(fails("generate m.gradus --prompt a --top-p 0").contains("top_p"));
    assert!(fails("translate m.gradus abc").contains("translate texts"));
    folder.write("empty.txt", "");
    folder.write("blank.txt", " \n\n");
    folder.write("short.txt", "too short");
    assert!(fails(&format!("fit lm empty.txt -o e.gradus {LM}")).contains("empty.txt"));
    assert!(fails(&format!("fit lm blank.txt -o e.gradus {LM}")).contains("blank.txt"));
    let short = fails(&format!("fit lm short.txt -o e.gradus {LM}"));
    assert!(short.contains("context") && short.contains("16"), "{short}");
    assert!(fails("fit lm text.txt -o e.gradus --dimension 30 --heads 4").contains("heads"));
    folder.write("t.csv", "x,y\n1,2\n2,3\n3,4\n");
    folder.out("fit ridge t.csv --target y -o r.gradus");
    assert!(fails("generate r.gradus --prompt a").contains("generate data"));
}

#[test]
fn documents_are_classified_by_what_stands_where() {
    let folder = Folder::empty();
    let line = |at: usize| {
        let (class, text) = [("good", "not bad at all"), ("bad", "not at all good")][at % 2];
        format!("{class},{} {text}\n", ["film", "play", "book"][at % 3])
    };
    let rows: String = (0..200).map(line).collect();
    folder.write("train.csv", format!("label,text\n{rows}"));
    let params =
        "--layers 1 --dimension 32 --heads 2 --vocabulary-size 300 --context 24 --max-iter 8";
    folder.out(&format!("fit textclassifier train.csv --label-column label -o m.gradus {params}"));
    folder.write("new.csv", "text\nplay not bad at all\nbook not at all good\n");
    let found = folder.out("predict m.gradus new.csv");
    let rows: Vec<&str> = found.lines().skip(1).collect();
    assert!(rows[0].contains(",good") && rows[1].contains(",bad"), "{found}");
    let score = folder.json("evaluate m.gradus train.csv");
    assert!(score.to_string().contains("accuracy"), "{score}");
}

#[test]
fn texts_are_translated() {
    let folder = Folder::empty();
    let pairs: String = (0..64).map(|n| format!("{n}\t{n:b}\n")).collect();
    folder.write("pairs.txt", pairs);
    let params =
        "--layers 1 --dimension 64 --max-iter 500 --learning-rate 0.003 --validation-fraction 0";
    folder.out(&format!("fit seq2seq pairs.txt -o m.gradus {params}"));
    assert_eq!(folder.out("translate m.gradus 9 42"), "1001\n101010\n");
    folder.write("new.txt", "9\n42\n");
    assert_eq!(folder.out("translate m.gradus --data new.txt --beams 3"), "1001\n101010\n");
    let found = folder.json("translate m.gradus 9");
    assert_eq!((&found[0]["source"], &found[0]["target"]), (&"9".into(), &"1001".into()));
    let found = folder.json("evaluate m.gradus pairs.txt");
    assert!(found["value"].as_f64().unwrap() < 0.1, "{found}");
    let exact = &found["further"][0];
    assert_eq!((&exact["metric"], &exact["value"]), (&"exact match".into(), &1.0.into()));
    assert!(exact["interval"]["low"].as_f64().unwrap() > 0.9 && exact["interval"]["high"] == 1.0);
    folder.write("half.txt", "9\t1001\n42\tno\n");
    let half = folder.out("evaluate m.gradus half.txt");
    assert!(half.contains("exact match") && half.contains("0.5"), "{half}");
    let (code, _, message) = folder.run("translate m.gradus");
    assert!(code != Some(0) && message.contains("--data"), "{message}");
    folder.write("bad.txt", "1\t2\nno tab\n");
    let (code, _, message) = folder.run("fit seq2seq bad.txt -o b.gradus");
    assert!(code != Some(0) && message.contains("line 2"), "{message}");
}

#[test]
fn pairs_are_made_to_learn_from() {
    let folder = Folder::empty();
    let made = folder.out("make sequences --task addition --count 30 --length 2 --seed 4");
    assert!(made.starts_with("source,target\n") && made.lines().count() == 31, "{made}");
    for line in made.lines().skip(1) {
        let (source, target) = line.split_once(',').unwrap();
        let sum: u32 = source.split('+').map(|part| part.parse::<u32>().unwrap()).sum();
        assert_eq!(sum.to_string(), target);
    }
    folder.out("make sequences --task sort --count 40 -o s.csv");
    let small = "--layers 1 --dimension 16 --heads 2 --max-iter 3";
    folder.out(&format!("fit seq2seq s.csv -o m.gradus {small}"));
    assert!(folder.out("evaluate m.gradus s.csv").contains("exact match"));
    let refused = folder.err("make sequences --task sort --length 1 --count 14");
    assert!(refused.contains("count") && refused.contains("13"), "{refused}");
}

/// With its defaults a translator learns to reverse and to sort words and to add numbers.
#[test]
#[ignore = "takes minutes: ./check long"]
fn defaults_learn_to_reverse_sort_and_add() {
    for task in ["reverse", "sort", "addition"] {
        let folder = Folder::empty();
        folder.out(&format!("make sequences --task {task} --count 22000 --seed 1 -o all.csv"));
        folder.out("split all.csv --rows --holdout 0.1 -o train.csv --test test.csv");
        folder.out("fit seq2seq train.csv -o m.gradus -q");
        let found = folder.json("evaluate m.gradus test.csv");
        let exact = found["further"][0]["value"].as_f64().unwrap();
        assert!(found["further"][0]["metric"] == "exact match" && exact > 0.99, "{task}: {found}");
    }
}
