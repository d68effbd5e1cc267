//! Makes a set of ratings, in passing and in memory, and says how long each took.
//!
//! `cargo run --release --example make_ratings -- 138493 26744 20000000`

use gradus_data::make::RatingsSpec;
use std::time::Instant;

fn main() -> gradus_base::Result<()> {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [users, items, count] = sizes[..] else {
        return Err(gradus_base::Error::data("give users, items and count"));
    };
    let spec = RatingsSpec::new(users, items, count);
    let start = Instant::now();
    let maker = spec.plan(42)?;
    println!("planned in {:.2?}", start.elapsed());

    let start = Instant::now();
    let (mut n, mut sum) = (0usize, 0.0);
    maker.for_each_block(|block| {
        n += block.len();
        sum += block.iter().map(|rating| f64::from(rating.value)).sum::<f64>();
        Ok(())
    })?;
    println!("{n} ratings of mean {:.3} streamed in {:.2?}", sum / n as f64, start.elapsed());

    let start = Instant::now();
    let made = spec.make(42)?;
    println!("planned, made and held by user and by item in {:.2?}", start.elapsed());
    for (what, matrix) in [("user", made.ratings.by_user()), ("item", made.ratings.by_item())] {
        let mut counts: Vec<usize> = matrix.indptr().windows(2).map(|w| w[1] - w[0]).collect();
        counts.sort_unstable();
        let at = |q: f64| counts[((counts.len() - 1) as f64 * q) as usize];
        println!(
            "ratings per {what}: min {}, median {}, 99 % {}, max {}",
            at(0.0),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    let mut popular: Vec<usize> = (0..items).collect();
    popular.sort_by_key(|&item| std::cmp::Reverse(made.ratings.by_item().range(item).len()));
    for &item in popular.iter().take(8) {
        println!("  {}", made.ratings.items().get(item));
    }
    Ok(())
}
