use super::*;
use crate::{Format, Ratings};

fn table(text: &str) -> Table {
    Table::from_bytes(text.as_bytes(), Format::Csv).unwrap()
}

fn learn(text: &str) -> Result<(SideTable, Vec<String>)> {
    let table = table(text);
    let mut remarks = Vec::new();
    let id = Entity::Item.id_column(&table)?;
    let side = SideTable::learn(&table, &id, &mut remarks)?;
    Ok((side, remarks))
}

const ITEMS: &str =
    "item,year,genres,colour,seen\n9,1990,A|B,true,0\n2,2000,B,false,0\n5,2010,A|C,true,3\n";

#[test]
fn columns_become_features_by_ascending_id() {
    let (side, remarks) = learn(ITEMS).unwrap();
    assert_eq!(side.ids(), &Ids::Int(vec![2, 5, 9]));
    let names = ["year", "genres=A", "genres=B", "genres=C", "colour", "seen"];
    assert_eq!(side.encoder().names(), names);
    assert!(remarks.is_empty(), "{remarks:?}");
    // Numbers and truth values about their means; `seen` is mostly 0 and stays so.
    let (columns, values) = side.features().row(0);
    assert_eq!((columns, values[0]), (&[2, 4][..], 1.0));
    assert!((values[1] + 2_f32.sqrt()).abs() < 1e-6, "{values:?}");
    let (columns, values) = side.features().row(2);
    assert_eq!(columns, [0, 1, 2, 4]);
    assert!((values[0] + 1.5_f32.sqrt()).abs() < 1e-6, "{values:?}");
    let mean = side.encoder().mean();
    assert!(mean[0].abs() < 1e-6 && (mean[1] - 2.0 / 3.0).abs() < 1e-6, "{mean:?}");
    let columns = side.encoder().columns();
    assert_eq!(columns[1], ("genres", 1..4));
}

#[test]
fn what_is_no_feature_is_left_out_with_a_remark() {
    let mut text = String::from("id,title,empty,kind\n");
    (0..200).for_each(|n| text.push_str(&format!("{n},Title {n},,k{}\n", n % 3)));
    let (side, remarks) = learn(&text).unwrap();
    assert_eq!(side.encoder().names(), ["kind=k0", "kind=k1", "kind=k2"]);
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(remarks[0].contains("`title` has 200 different words"), "{remarks:?}");
    assert!(remarks[1].contains("`empty` has no value: it is left out"), "{remarks:?}");
    for (text, part) in [
        ("item\n1\n2\n", "no columns of features"),
        ("item,x\n1,\n2,\n", "no column is left"),
        ("item,x\n1,2\n1,3\n", "id `1` is there twice"),
        ("item,x\n1,2\n,3\n", "line 3"),
    ] {
        let said = learn(text).unwrap_err().to_string();
        assert!(said.contains(part), "{text}: {said}");
    }
    let said = learn("item,x\na,2\nb,3\na,4\n").unwrap_err().to_string();
    assert!(said.contains("line 2") && said.contains("line 4"), "{said}");
}

#[test]
fn later_tables_are_encoded_alike() {
    let (side, _) = learn(ITEMS).unwrap();
    let encode = |text: &str| SideTable::encode(&table(text), "item", side.encoder());
    let (again, _) = encode(ITEMS).unwrap();
    assert_eq!(again, side);
    // Columns in another order, an unseen word, a missing number: the means.
    let (new, encoded) = encode("genres,item,colour,year,seen,extra\nZ,7,true,,0,1\n").unwrap();
    assert_eq!((encoded.unknown, encoded.filled), (1, 1));
    let (columns, values) = new.features().row(0);
    assert_eq!(columns[..3], [1, 2, 3]);
    assert!((f64::from(values[0]) - side.encoder().mean()[1]).abs() < 1e-6);
    for (text, part) in [
        ("item,year,genres,seen\n7,1990,A,0\n", "colour"),
        ("item,year,genres,colour,seen\n7,old,A,true,0\n", "`old` is not a number"),
    ] {
        let said = encode(text).unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
    let mut file = Writer::new("x");
    side.encoder().write("items", &mut file);
    let mut file = Reader::from_bytes(file.to_bytes().unwrap()).unwrap();
    assert_eq!(FeatureEncoder::read("items", &mut file).unwrap(), **side.encoder());
}

#[test]
fn ratings_take_the_ids_of_the_table_and_keep_the_features() {
    let ratings = [(1, 5, 3.0), (1, 7, 4.0), (3, 9, 5.0)];
    let ratings = ratings.map(|(user, item, value)| (Id::Int(user), Id::Int(item), value));
    let ratings = Ratings::from_triplets(ratings).unwrap().with_times(vec![1, 2, 3]).unwrap();
    let (side, _) = learn(ITEMS).unwrap();
    let with = ratings.clone().with_features(Entity::Item, &side).unwrap();
    assert_eq!(with.items(), &Ids::Int(vec![2, 5, 7, 9]));
    assert_eq!(with.by_user().row(0), (&[1, 2][..], &[3.0, 4.0][..]));
    assert_eq!((with.by_item().row(3), with.by_item().row(0).0.len()), ((&[1][..], &[5.0][..]), 0));
    let features = with.features(Entity::Item).unwrap();
    assert_eq!(features.known(), [true, true, false, true]);
    assert_eq!(features.matrix().row(3), side.features().row(2));
    assert!(with.features(Entity::User).is_none());
    assert_ne!(with.fingerprint(), with.without_features().fingerprint());
    let (train, test) = with.partition(|at| at > 0);
    assert_eq!((train.features(Entity::Item), train.len()), (Some(features), 2));
    assert!(test.map_values(|r| r.value).has_features());
    // An id that is no number makes text of all of them.
    let (words, _) = learn("item,x\n10,1\nnew,2\n9,4\n").unwrap();
    let text = ratings.clone().with_features(Entity::Item, &words).unwrap();
    let names: Vec<String> = text.items().iter().map(|id| id.to_string()).collect();
    assert_eq!(names, ["10", "5", "7", "9", "new"]);
    assert_eq!(
        (text.by_user().row(1), text.times()),
        ((&[3][..], &[5.0][..]), Some(&[1, 2, 3][..]))
    );
    let (far, _) = learn("item,x\n100,1\n200,2\n").unwrap();
    let said = ratings.with_features(Entity::Item, &far).unwrap_err().to_string();
    assert!(said.contains("none of the 2 ids of the table (`100`, `200`) is an item"), "{said}");
}

#[test]
fn merging_takes_the_newer_features() {
    let (side, _) = learn(ITEMS).unwrap();
    let all = |known: Vec<bool>| {
        Features::new(side.features().clone(), known, Arc::clone(side.encoder())).unwrap()
    };
    let old = all(vec![true, false, true]);
    let merged = old.merged(5, &[0, 1, 4], Some((&all(vec![true; 3]), &[0, 2, 3])));
    assert_eq!(merged.known(), [true, false, true, true, true]);
    assert_eq!(merged.matrix().row(2), side.features().row(1));
    assert_eq!(merged.matrix().row(4), side.features().row(2));
    assert_eq!(merged.select_rows(&[4, 1]).known(), [true, false]);
}
