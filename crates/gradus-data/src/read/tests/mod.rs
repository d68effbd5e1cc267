mod dirty;
mod interactions;
mod layouts;
mod mutations;
mod round_trip;
mod times;

use super::*;

/// The rows as (user, item, value), spelled out.
fn rows(ratings: &Ratings) -> Vec<(String, String, f32)> {
    ratings
        .iter()
        .map(|rating| {
            let user = ratings.users().get(rating.user as usize).to_string();
            (user, ratings.items().get(rating.item as usize).to_string(), rating.value)
        })
        .collect()
}

fn row(user: &str, item: &str, value: f32) -> (String, String, f32) {
    (user.to_owned(), item.to_owned(), value)
}

fn read_text(text: impl AsRef<[u8]>, name: &str) -> Result<(Ratings, ReadSummary)> {
    read_with(text, name, &ReadOptions::new())
}

/// Reads with blocks of several sizes, which must not make a difference.
fn read_with(
    text: impl AsRef<[u8]>,
    name: &str,
    options: &ReadOptions,
) -> Result<(Ratings, ReadSummary)> {
    let read = |block| {
        let options = options.clone().block_bytes(block);
        let mut result = read_ratings_from(text.as_ref(), name, &options);
        if let Ok((_, summary)) = &mut result {
            (summary.seconds, summary.build_seconds) = (0.0, 0.0);
        }
        result
    };
    let result = read(4 << 20);
    for block in [1, 2, 7, 64] {
        let other = read(block);
        match (&result, &other) {
            (Ok(a), Ok(b)) => assert_eq!(a, b, "blocks of {block}"),
            (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string(), "blocks of {block}"),
            _ => panic!("blocks of {block}: {result:?} or {other:?}"),
        }
    }
    result
}

fn fault(text: impl AsRef<[u8]>, name: &str) -> String {
    read_text(text, name).unwrap_err().to_string()
}

fn skip() -> ReadOptions {
    ReadOptions::new().on_error(OnError::Skip)
}
