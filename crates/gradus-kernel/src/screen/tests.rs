use super::super::testing::{Random, SIZES};
use super::super::{Level, Rows, dot, padded};
use super::*;

/// The items that pass for each query.
fn passed(level: Level, screen: &Screen, queries: &Queries) -> Vec<Vec<usize>> {
    let n_panels = screen.n_panels();
    let mut bits = vec![0; TILE * n_panels];
    let mut found = Vec::new();
    for query in 0..queries.len() {
        screen.pass(level, queries, query / TILE, 0..n_panels, &mut bits);
        let row = &bits[query % TILE * n_panels..][..n_panels];
        found.push(
            (0..screen.n_items()).filter(|i| row[i / PANEL] >> (i % PANEL) & 1 == 1).collect(),
        );
    }
    found
}

fn screen(items: &Rows, biases: &[f32]) -> Screen {
    Screen::new(items.k(), (0..items.n_rows()).map(|i| (items.row(i), biases[i])))
}

fn queries(users: &Rows) -> Queries {
    Queries::new(users.k(), (0..users.n_rows()).map(|u| users.row(u)))
}

#[test]
fn nothing_that_reaches_the_limit_is_lost_and_little_else_passes() {
    for k in SIZES {
        let mut random = Random(k as u64);
        let (n_users, n_items) = (11, 500);
        let (mut users, mut items) = (random.rows(n_users, k, 1.0), random.rows(n_items, k, 1.0));
        let biases: Vec<f32> = random.values(n_items);
        // Some rows of zeros, some tiny, some huge, some with one large value.
        users.row_mut(1).fill(0.0);
        items.row_mut(2).fill(0.0);
        items.row_mut(3).iter_mut().for_each(|x| *x *= 1e-30);
        users.row_mut(4).iter_mut().for_each(|x| *x *= 1e-25);
        items.row_mut(5).iter_mut().for_each(|x| *x *= 1e6);
        if k > 0 {
            items.row_mut(6)[0] = 1e4;
            users.row_mut(6)[k - 1] = 1e3;
        }
        let screen = screen(&items, &biases);
        for level in Level::available() {
            let mut queries = queries(&users);
            assert!(passed(level, &screen, &queries).iter().all(Vec::is_empty), "no limit yet");
            let mut vain = 0;
            for constant in [0.0f32, 3.6, -1e5] {
                let score = |u: usize, i: usize| {
                    constant + biases[i] + dot(level, users.row(u), items.row(i))
                };
                let scores: Vec<Vec<f32>> =
                    (0..n_users).map(|u| (0..n_items).map(|i| score(u, i)).collect()).collect();
                for (u, scores) in scores.iter().enumerate() {
                    let mut sorted = scores.clone();
                    sorted.sort_by(|a, b| b.total_cmp(a));
                    queries.set_limit(&screen, u, constant, sorted[9]);
                }
                for (u, found) in passed(level, &screen, &queries).iter().enumerate() {
                    let mut sorted = scores[u].clone();
                    sorted.sort_by(|a, b| b.total_cmp(a));
                    for (i, &score) in scores[u].iter().enumerate() {
                        assert!(score < sorted[9] || found.contains(&i), "{level} k={k} {u} {i}");
                    }
                    if constant == 0.0 && ![4, 6].contains(&u) {
                        vain += found.len() - 10;
                    }
                }
            }
            assert!(vain < 200, "{level} k={k}: {vain} of {} passed in vain", n_users * n_items);
        }
    }
}

#[test]
fn without_a_limit_everything_passes_and_nan_does() {
    let mut random = Random(3);
    let (users, items) = (random.rows(3, 20, 1.0), random.rows(50, 20, 1.0));
    let (screen, mut queries) = (screen(&items, &[0.5; 50]), queries(&users));
    queries.set_limit(&screen, 0, 1.0, f32::NEG_INFINITY);
    queries.set_limit(&screen, 1, f32::INFINITY, f32::INFINITY);
    for level in Level::available() {
        let found = passed(level, &screen, &queries);
        assert_eq!(found[0].len(), 50, "{level}");
        assert_eq!(found[1].len(), 50, "{level}");
        assert!(found[2].is_empty(), "{level}");
    }
}

#[test]
fn panels_are_asked_for_in_steps() {
    let items = Random(1).rows(100, 16, 1.0);
    let (all, mut queries) = (screen(&items, &[0.0; 100]), queries(&items));
    assert_eq!((all.n_items(), all.n_panels()), (100, 9));
    queries.set_limit(&all, 9, 0.0, 0.5);
    let level = Level::best();
    let mut whole = vec![0; TILE * 9];
    all.pass(level, &queries, 1, 0..9, &mut whole);
    let mut part = vec![0; TILE * Screen::STEP];
    for first in (0..9).step_by(Screen::STEP) {
        all.pass(level, &queries, 1, first..first + Screen::STEP, &mut part);
        for q in 0..TILE {
            let range = q * 9 + first..q * 9 + first + Screen::STEP;
            assert_eq!(part[q * Screen::STEP..][..Screen::STEP], whole[range]);
        }
    }
    assert_eq!(padded(16), 16);
}
