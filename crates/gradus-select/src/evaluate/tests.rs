use super::*;
use gradus_core::recommend::{Explanation, Filter, Recipient, Scored};
use gradus_data::{Csr, Duplicates, Id, Ids, RatingsBuilder};
use gradus_metrics::ranking;
use proptest::prelude::*;

/// A model that is a table of scores. Someone folded in is scored by the items near theirs.
struct Toy {
    users: Ids,
    items: Ids,
    history: Option<Csr>,
    scores: Vec<Vec<f32>>,
}

impl Toy {
    fn score(&self, target: &Recipient<'_>, item: u32) -> f32 {
        match target {
            Recipient::User(user) => self.scores[*user as usize][item as usize],
            Recipient::Profile(profile) => profile
                .items
                .iter()
                .zip(&profile.values)
                .map(|(&near, &value)| if near.abs_diff(item) < 3 { value } else { 0.0 })
                .sum(),
            Recipient::Described { .. } => unreachable!("it learned from no features"),
        }
    }
}

impl Recommend for Toy {
    fn users(&self) -> &Ids {
        &self.users
    }

    fn items(&self) -> &Ids {
        &self.items
    }

    fn history(&self) -> Option<&Csr> {
        self.history.as_ref()
    }

    fn predict(&self, _: &[(Option<u32>, Option<u32>)]) -> Vec<f32> {
        panic!("rankings are not evaluated by clipped predictions")
    }

    fn top(&self, target: &Recipient<'_>, n: usize, filter: &Filter) -> Result<Vec<Scored>> {
        let seen: Vec<u32> = match (target, &self.history) {
            _ if filter.include_seen => Vec::new(),
            (Recipient::Profile(profile), _) => profile.items.clone(),
            (Recipient::User(user), Some(history)) => history.row(*user as usize).0.to_vec(),
            (Recipient::User(_), None) => return Err(Error::data("no history")),
            (Recipient::Described { .. }, _) => return Err(Error::data("no features")),
        };
        let allowed = |item: &u32| {
            let listed = filter.allow.as_ref().is_none_or(|allow| allow.contains(item));
            listed && !filter.deny.contains(item)
        };
        let items = (0..self.items.len() as u32).filter(|item| !seen.contains(item));
        let mut all: Vec<Scored> = items
            .filter(allowed)
            .map(|item| Scored { item, score: self.score(target, item) })
            .collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
        all.truncate(n);
        Ok(all)
    }

    fn similar_items(&self, _: u32, _: usize) -> Result<Vec<Scored>> {
        Ok(Vec::new())
    }

    fn explain(&self, _: &Recipient<'_>, _: u32) -> Result<Explanation> {
        Err(Error::data("no"))
    }
}

const USERS: i64 = 6;
const ITEMS: i64 = 15;

fn ratings(rows: impl IntoIterator<Item = (i64, i64, f32)>) -> Ratings {
    let mut builder = RatingsBuilder::new();
    for (user, item, value) in rows {
        builder.push(Id::Int(user), Id::Int(item), value).unwrap();
    }
    builder.finish(Duplicates::Error).unwrap()
}

type Rows = std::collections::BTreeMap<(i64, i64), i32>;

/// Training and test ratings of users 0–5 and items 0–14 of the model; the test also has users and
/// items that the model does not know. Scores are few, so that most are tied.
fn problem() -> impl Strategy<Value = (Rows, Rows, Vec<Vec<f32>>)> {
    let rows = |users, items, n| prop::collection::btree_map((0..users, 0..items), 1..=5i32, 1..n);
    let scores = prop::collection::vec(
        prop::collection::vec((0..5i32).prop_map(|x| x as f32), ITEMS as usize),
        USERS as usize,
    );
    (rows(USERS, ITEMS, 40), rows(USERS + 2, ITEMS + 3, 40), scores)
}

fn toy(train: &Rows, scores: &[Vec<f32>], keep: bool) -> Toy {
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for user in 0..USERS {
        for (&(_, item), &value) in train.range((user, 0)..(user + 1, 0)) {
            indices.push(item as u32);
            values.push(value as f32);
        }
        indptr.push(indices.len());
    }
    let history = Csr::new(ITEMS as usize, indptr, indices, values).unwrap();
    Toy {
        users: Ids::Int((0..USERS).collect()),
        items: Ids::Int((0..ITEMS).collect()),
        history: keep.then_some(history),
        scores: scores.to_vec(),
    }
}

fn all(rows: &Rows) -> Ratings {
    ratings(rows.iter().map(|(&(user, item), &value)| (user, item, value as f32)))
}

/// What the report should say of one measure, the slow way: for each user the candidates, ordered
/// by score and then with the irrelevant first.
struct Expected {
    values: Vec<f64>,
}

impl Expected {
    fn agrees(&self, got: Estimate) -> bool {
        let n = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / n;
        let spread = self.values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (spread / n).sqrt();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9 || (a.is_nan() && b.is_nan());
        close(got.mean, mean) && close(got.standard_error, error)
    }
}

/// The items with a rating in training.
fn trained(train: &Rows) -> std::collections::BTreeSet<i64> {
    train.keys().map(|key| key.1).collect()
}

/// The evaluated users of a problem: relevant items and all candidates, both by item. Users and items
/// without a rating in training are left out.
fn evaluated(
    train: &Rows,
    test: &Rows,
    least: i32,
    seen_too: bool,
) -> Vec<(i64, Vec<u32>, Vec<u32>)> {
    let trained = trained(train);
    (0..USERS)
        .filter(|&user| train.keys().any(|key| key.0 == user))
        .filter_map(|user| {
            let can = |item: &i64| {
                trained.contains(item) && (seen_too || !train.contains_key(&(user, *item)))
            };
            let relevant: Vec<u32> = (0..ITEMS)
                .filter(|&item| test.get(&(user, item)).is_some_and(|&value| value >= least))
                .filter(can)
                .map(|item| item as u32)
                .collect();
            let candidates = (0..ITEMS).filter(can).map(|item| item as u32).collect();
            (!relevant.is_empty()).then_some((user, relevant, candidates))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_report_agrees_with_ranking_by_hand(
        (train, test, scores) in problem(),
        least in 1..5i32,
        seen_too in any::<bool>(),
        given in any::<bool>(),
    ) {
        let model = toy(&train, &scores, !given);
        let training = all(&train);
        let options = RankingOptions {
            at: vec![7, 1, 3, 3, 40],
            threshold: Some(least as f32),
            training: given.then_some(&training),
            include_seen: seen_too,
            auc: true,
            ..RankingOptions::default()
        };
        let cases = evaluated(&train, &test, least, seen_too);
        let report = match evaluate_ranking(&model, &all(&test), &options) {
            Ok(report) => report,
            Err(error) => {
                prop_assert!(cases.is_empty(), "{}", error);
                return Ok(());
            }
        };
        prop_assert_eq!(report.users, cases.len());
        prop_assert_eq!(report.relevant, cases.iter().map(|case| case.1.len()).sum::<usize>());
        let users: std::collections::BTreeSet<i64> = test.keys().map(|key| key.0).collect();
        prop_assert_eq!(report.users + report.skipped.total(), users.len());
        let lengths: Vec<usize> = report.at.iter().map(|at| at.k).collect();
        prop_assert_eq!(lengths, [1, 3, 7, 40]);
        for at in &report.at {
            let k = at.k;
            let mut expected: Vec<Expected> = (0..8).map(|_| Expected { values: Vec::new() }).collect();
            let mut shown_items = std::collections::BTreeSet::new();
            let active = (0..USERS).filter(|&u| train.range((u, 0)..(u + 1, 0)).next().is_some()).count();
            for (user, relevant, candidates) in &cases {
                let score = |item: u32| scores[*user as usize][item as usize];
                let mut order = candidates.clone();
                order.sort_by(|&a, &b| {
                    let good = |item: u32| relevant.contains(&item);
                    score(b).total_cmp(&score(a)).then(good(a).cmp(&good(b)))
                });
                let mut shown = candidates.clone();
                shown.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
                shown.truncate(k);
                let (mut bits, mut popular) = (0.0, 0.0);
                for &item in &shown {
                    let known = train.keys().filter(|key| key.1 == i64::from(item)).count();
                    bits += (active as f64 / known as f64).log2();
                    popular += known as f64 / active as f64;
                }
                shown_items.extend(shown.iter().copied());
                for (expected, value) in expected.iter_mut().zip([
                    ranking::precision(&order, relevant, k),
                    ranking::recall(&order, relevant, k),
                    ranking::ndcg(&order, relevant, k),
                    ranking::average_precision(&order, relevant, k),
                    ranking::reciprocal_rank(&order, relevant, k),
                    ranking::hit(&order, relevant, k),
                    bits / shown.len() as f64,
                    popular / shown.len() as f64,
                ]) {
                    expected.values.push(value);
                }
            }
            for (expected, got) in expected.iter().zip([
                at.precision, at.recall, at.ndcg, at.map, at.mrr, at.hit_rate, at.novelty.unwrap(),
                at.popularity.unwrap(),
            ]) {
                prop_assert!(expected.agrees(got), "@{}: {:?}, {:?}", k, expected.values, got);
            }
            let share = shown_items.len() as f64 / trained(&train).len() as f64;
            prop_assert!((at.coverage.unwrap() - share).abs() < 1e-12);
        }
        let mut areas = Expected { values: Vec::new() };
        for (user, relevant, candidates) in &cases {
            let score = |item: u32| scores[*user as usize][item as usize];
            let (mut won, mut pairs) = (0.0, 0.0);
            for &good in relevant {
                for &bad in candidates.iter().filter(|item| !relevant.contains(item)) {
                    pairs += 1.0;
                    won += if score(good) > score(bad) { 1.0 } else if score(good) == score(bad) { 0.5 } else { 0.0 };
                }
            }
            if pairs > 0.0 {
                areas.values.push(won / pairs);
            }
        }
        match report.auc {
            Some(auc) => prop_assert!(areas.agrees(auc), "{:?}, {:?}", areas.values, auc),
            None => prop_assert!(areas.values.is_empty()),
        }
        // The longer lists of the area change nothing else.
        let short = evaluate_ranking(&model, &all(&test), &RankingOptions { auc: false, ..options }).unwrap();
        prop_assert!(short.auc.is_none());
        for (a, b) in short.at.iter().zip(&report.at) {
            prop_assert_eq!(format!("{a:?}"), format!("{b:?}"));
        }
    }

    #[test]
    fn sampling_every_item_is_ranking_each_test_item_alone(
        (train, test, scores) in problem(), n in 1..30usize, seed in 0..5u64
    ) {
        let model = toy(&train, &scores, true);
        let options = RankingOptions { at: vec![1, 4], sampled: Some(n), seed, auc: true, ..Default::default() };
        let cases = evaluated(&train, &test, 1, false);
        let has_others = |case: &(i64, Vec<u32>, Vec<u32>)| {
            case.2.iter().any(|&item| !test.contains_key(&(case.0, i64::from(item))))
        };
        let (cases, alone): (Vec<_>, Vec<_>) = cases.into_iter().partition(has_others);
        let Ok(report) = evaluate_ranking(&model, &all(&test), &options) else {
            prop_assert!(cases.is_empty());
            return Ok(());
        };
        prop_assert_eq!((report.users, report.skipped.no_others), (cases.len(), alone.len()));
        prop_assert_eq!(report.relevant, cases.iter().map(|case| case.1.len()).sum::<usize>());
        prop_assert_eq!((report.protocol, report.sampled), ("sampled", Some(n)));
        prop_assert!(report.at.iter().all(|at| at.coverage.is_none() && at.novelty.is_none()));
        let (mut rates, mut areas) = (Expected { values: Vec::new() }, Expected { values: Vec::new() });
        for (user, relevant, candidates) in &cases {
            let score = |item: u32| scores[*user as usize][item as usize];
            let tested = |item: u32| test.contains_key(&(*user, i64::from(item)));
            let others: Vec<u32> = candidates.iter().copied().filter(|&item| !tested(item)).collect();
            let (mut rate, mut area) = (0.0, 0.0);
            for &item in relevant {
                let above = others.iter().filter(|&&other| score(other) > score(item)).count() as f64;
                let tied = others.iter().filter(|&&other| score(other) == score(item)).count() as f64;
                rate += f64::from(above + tied < 4.0) / relevant.len() as f64;
                area += (1.0 - (above + tied / 2.0) / others.len() as f64) / relevant.len() as f64;
            }
            rates.values.push(rate);
            areas.values.push(area);
        }
        // Where all there are get drawn the outcome is known; elsewhere only that it is a mean.
        if n >= ITEMS as usize {
            prop_assert!(rates.agrees(report.at[1].hit_rate), "{:?} {:?}", rates.values, report.at[1]);
            prop_assert!(areas.agrees(report.auc.unwrap()));
        }
        prop_assert!((0.0..=1.0 + 1e-12).contains(&report.at[1].hit_rate.mean));
        let again = evaluate_ranking(&model, &all(&test), &options).unwrap();
        prop_assert_eq!(format!("{again:?}"), format!("{report:?}"));
    }
}

/// Many users, many ties.
fn large() -> (Toy, Ratings) {
    let n_items = 300u32;
    let noise = |a: u32, b: u32| (a.wrapping_mul(2_654_435_761) ^ b.wrapping_mul(40_503)) >> 7;
    let scores: Vec<Vec<f32>> = (0..2500)
        .map(|user| (0..n_items).map(|item| (noise(user, item) % 11) as f32).collect())
        .collect();
    let users = Ids::Int((0..2500).collect());
    let items = Ids::Int((0..i64::from(n_items)).collect());
    let indptr = (0..=2500).map(|user| user * 2).collect();
    let indices = (0..2500u32).flat_map(|user| [user % 100, 100 + user % 200]).collect();
    let history = Csr::new(300, indptr, indices, vec![1.0; 5000]).unwrap();
    let test = ratings(
        (0..2500).flat_map(|user| (0..4).map(move |k| (user, (user * 7 + k * 61) % 300, 1.0))),
    );
    (Toy { users, items, history: Some(history), scores }, test)
}

#[test]
fn the_number_of_threads_makes_no_difference() {
    let (model, test) = large();
    let fold_in = ratings((0..2500).step_by(3).map(|user| (user, user % 300, 2.0)));
    for sampled in [None, Some(20)] {
        let options = RankingOptions {
            at: vec![5, 50],
            auc: true,
            sampled,
            fold_in: Some(&fold_in),
            ..RankingOptions::default()
        };
        let reports = [1, 2, 7].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| evaluate_ranking(&model, &test, &options).unwrap())
        });
        assert!(reports[0] == reports[1] && reports[1] == reports[2]);
        assert!(reports[0].folded_in > 800, "{}", reports[0].folded_in);
        let se = reports[0].at[0].recall.standard_error;
        assert!(se > 0.0 && se < 0.02, "{se}");
    }
}

#[test]
fn sampling_is_on_average_what_chance_would_give() {
    // Scores that know nothing of the test: among n others a place below k has chance k / (n + 1),
    // less what ties cost.
    let (mut model, test) = large();
    for (user, scores) in (0u32..).zip(&mut model.scores) {
        let mut stream = gradus_base::random::Stream::new(5, "scores", u64::from(user));
        scores.iter_mut().for_each(|score| *score = stream.uniform() as f32);
    }
    let options =
        RankingOptions { at: vec![5], sampled: Some(49), auc: true, ..RankingOptions::default() };
    let report = evaluate_ranking(&model, &test, &options).unwrap();
    let (rate, area) = (report.at[0].hit_rate, report.auc.unwrap());
    assert!((rate.mean - 0.1).abs() < 4.0 * rate.standard_error, "{rate:?}");
    assert!((area.mean - 0.5).abs() < 4.0 * area.standard_error, "{area:?}");
}

#[test]
fn new_users_are_folded_in_by_their_ratings() {
    let train: Rows = (1..ITEMS).map(|item| ((1, item), 5)).chain([((0, 0), 5)]).collect();
    let model = toy(&train, &vec![vec![0.0; ITEMS as usize]; USERS as usize], true);
    // User 77 likes item 4; items near it come first, nearest or not, and item 5 is the test.
    let fold_in = ratings([(77, 4, 5.0), (77, 99, 1.0), (78, 99, 5.0)]);
    let test = ratings([(77, 5, 5.0), (78, 5, 5.0), (79, 5, 5.0), (0, 3, 5.0)]);
    let options = RankingOptions { at: vec![4], fold_in: Some(&fold_in), ..Default::default() };
    let report = evaluate_ranking(&model, &test, &options).unwrap();
    // 78 has nothing known to fold in by, 79 nothing at all; 0 is a user of the model.
    assert_eq!((report.users, report.folded_in, report.skipped.unknown_users), (2, 1, 2));
    // 2, 3, 5 and 6 are tied for 77, so 5 is placed last of the four; all are tied for 0.
    assert_eq!(report.at[0].hit_rate.mean, 0.5);
    assert_eq!(report.at[0].mrr.mean, 0.125);
}

#[test]
fn what_cannot_be_evaluated_is_named() {
    let train = Rows::from([((0, 0), 5), ((1, 1), 5), ((1, 5), 4), ((2, 7), 4)]);
    let scores = vec![vec![1.0; ITEMS as usize]; USERS as usize];
    let model = toy(&train, &scores, true);
    let said = |model: &Toy, test: &Ratings, options: &RankingOptions<'_>| {
        evaluate_ranking(model, test, options).unwrap_err().to_string()
    };
    let plain = RankingOptions::default();
    let test = ratings([(0, 5, 3.0)]);
    for (options, words) in [
        (RankingOptions { at: vec![], ..plain.clone() }, "`at` = nothing"),
        (RankingOptions { at: vec![5, 0], ..plain.clone() }, "at least one place"),
        (RankingOptions { threshold: Some(f32::NAN), ..plain.clone() }, "`threshold` = NaN"),
        (RankingOptions { threshold: Some(4.0), ..plain.clone() }, "the highest is 3"),
        (RankingOptions { sampled: Some(0), ..plain.clone() }, "`sampled` = 0"),
    ] {
        let said = said(&model, &test, &options);
        assert!(said.contains(words), "{said}");
    }
    assert!(said(&model, &test.filter(|_| false), &plain).contains("holds no ratings"));
    assert!(said(&model, &ratings([(88, 1, 1.0)]), &plain).contains("none of the 1 users"));
    assert!(said(&model, &ratings([(0, 0, 1.0)]), &plain).contains("trained on the test data"));
    assert!(said(&model, &ratings([(88, 1, 0.0)]), &plain).contains("no test rating is above 0"));
    // Neither an item that the model has no id of, nor one that it has an id of and nothing else.
    for item in [99, 3] {
        let said = said(&model, &ratings([(0, item, 1.0)]), &plain);
        assert!(said.contains("1 ratings are of items without a rating in training"), "{said}");
    }
    // A user of whom the model knows the id and nothing else.
    assert!(said(&model, &ratings([(4, 1, 1.0)]), &plain).contains("none of the 1 users"));
    assert!(said(&toy(&train, &scores, false), &test, &plain).contains("option `training`"));
    let mut broken = toy(&train, &scores, true);
    broken.scores[0][7] = f32::NAN;
    assert!(said(&broken, &test, &plain).contains("item `7` is not a number"));
    let all_seen: Rows =
        (0..ITEMS - 1).map(|item| ((0, item), 1)).chain([((1, ITEMS - 1), 1)]).collect();
    let full = toy(&all_seen, &scores, true);
    let options = RankingOptions { sampled: Some(5), ..plain };
    assert!(said(&full, &ratings([(0, 14, 1.0)]), &options).contains("rated every item"));
}
