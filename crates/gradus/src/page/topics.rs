//! The page of a topic model: its topics by their most relevant words, a map of them, and how they change over time.

use super::{close, held_out, objective, stats};
use gradus_base::Result;
use gradus_core::estimator::AnyFitted;
use gradus_core::topics::Topics;
use gradus_data::Dense;
use gradus_report::{Cell, Marks, Page, PageTable, Stack, TableColumn, number};
use gradus_text::Documents;

/// How much the probability of a word counts beside how much more frequent it is in the topic than elsewhere.
const LAMBDA: f64 = 0.6;
/// Words of a topic that are named.
const WORDS: usize = 12;
/// Topics that are listed, and those that have a layer of their own.
const LISTED: usize = 100;
const LAYERS: usize = 6;
/// Places along time at most.
const PLACES: usize = 40;

/// The words of each topic by their relevance `λ ln p(w | k) + (1 − λ) ln p(w | k) / p(w)` (Sievert, Shirley: LDAvis,
/// 2014); by their probability alone, where the shares of words are not known.
fn relevant(model: &dyn Topics, n: usize) -> Vec<Vec<String>> {
    let Some(shares) = model.word_shares() else {
        let top = model.top_words(n);
        return top
            .iter()
            .map(|top| top.iter().map(|(word, _)| (*word).to_owned()).collect())
            .collect();
    };
    let probabilities = model.word_probabilities();
    let of_topic = |row: &[f64]| {
        let relevance = |word: usize| {
            let p = row[word].max(f64::MIN_POSITIVE);
            p.ln() - (1.0 - LAMBDA) * shares[word].max(f64::MIN_POSITIVE).ln()
        };
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| relevance(b).total_cmp(&relevance(a)).then(a.cmp(&b)));
        order.into_iter().take(n).map(|word| model.words()[word].clone()).collect()
    };
    probabilities.rows().map(of_topic).collect()
}

/// The Jensen–Shannon distance of two distributions, from 0 to 1.
fn distance(p: &[f64], q: &[f64]) -> f64 {
    let term = |a: f64, m: f64| if a > 0.0 { a * (a / m).ln() } else { 0.0 };
    let sum: f64 = p
        .iter()
        .zip(q)
        .map(|(&a, &b)| {
            let m = 0.5 * (a + b);
            term(a, m) + term(b, m)
        })
        .sum();
    (0.5 * sum / std::f64::consts::LN_2).max(0.0).sqrt()
}

/// Places in a plane whose distances are near those of the topics: classical scaling, the two largest eigenvectors of
/// the centred squares.
fn places(topics: &Dense<f64>) -> Vec<(f64, f64)> {
    let k = topics.n_rows();
    let mut b = Dense::full(k, k, 0.0);
    for i in 0..k {
        for j in 0..i {
            let square = distance(topics.row(i), topics.row(j)).powi(2);
            b.row_mut(i)[j] = square;
            b.row_mut(j)[i] = square;
        }
    }
    let means: Vec<f64> = b.rows().map(|row| row.iter().sum::<f64>() / k as f64).collect();
    let mean = means.iter().sum::<f64>() / k as f64;
    for i in 0..k {
        let of_row = means[i];
        b.row_mut(i).iter_mut().zip(&means).for_each(|(x, m)| *x = -0.5 * (*x - of_row - m + mean));
    }
    let mut axes: Vec<Vec<f64>> = Vec::new();
    for axis in 0..2 {
        // Power iteration from a fixed start, away from the axis before.
        let start = |i: usize| (12.9898 * (i + 1) as f64 * (axis + 1) as f64).sin();
        let mut v: Vec<f64> = (0..k).map(start).collect();
        let mut value = 0.0;
        for _ in 0..300 {
            let mut next: Vec<f64> =
                b.rows().map(|row| row.iter().zip(&v).map(|(a, b)| a * b).sum()).collect();
            for other in &axes {
                let length: f64 = other.iter().map(|x| x * x).sum();
                let along: f64 = next.iter().zip(other).map(|(a, b)| a * b).sum();
                if length > 0.0 {
                    next.iter_mut().zip(other).for_each(|(x, o)| *x -= along / length * o);
                }
            }
            value = next.iter().map(|x| x * x).sum::<f64>().sqrt();
            if value.is_nan() || value <= 1e-12 {
                break;
            }
            v = next.iter().map(|x| x / value).collect();
        }
        let scale = if value > 1e-12 { value.sqrt() } else { 0.0 };
        axes.push(v.iter().map(|x| x * scale).collect());
    }
    (0..k).map(|at| (axes[0][at], axes[1][at])).collect()
}

/// The mean mixture of the documents of each stretch of time.
fn over_time(mixtures: &Dense<f64>, times: &[u32]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let last = times.iter().copied().max().unwrap_or(0) as usize;
    let n_places = (last + 1).min(PLACES);
    let mut sums = vec![vec![0.0; mixtures.n_cols()]; n_places];
    let mut counts = vec![0.0f64; n_places];
    for (row, &time) in mixtures.rows().zip(times) {
        let place = time as usize * n_places / (last + 1);
        sums[place].iter_mut().zip(row).for_each(|(sum, share)| *sum += share);
        counts[place] += 1.0;
    }
    let (mut x, mut shares) = (Vec::new(), Vec::new());
    for (place, (sum, n)) in sums.into_iter().zip(counts).enumerate() {
        if n > 0.0 {
            x.push((place * (last + 1)) as f64 / n_places as f64);
            shares.push(sum.into_iter().map(|sum| sum / n).collect());
        }
    }
    (x, shares)
}

/// The page: topics, their map, topics over time if documents with times are given, how the fit went.
///
/// # Errors
/// If the documents are of another kind than training.
pub fn topics_page(
    fitted: &AnyFitted,
    model: &dyn Topics,
    title: &str,
    documents: Option<(&str, &Documents)>,
) -> Result<Page> {
    let (k, report) = (model.n_topics(), &fitted.report);
    let subtitle = format!(
        "{k} topics over {} words: {} iterations, {}.",
        number(model.words().len() as f64),
        report.iterations,
        report.stop_reason
    );
    let mut headline: Vec<(String, String, String)> = Vec::new();
    if let Some(score) = report.validation {
        headline.push((format!("held-out {}", report.metric), number(score), String::new()));
    }
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    let words = relevant(model, WORDS);
    let name = |topic: usize| -> String {
        let first: Vec<&str> = words[topic].iter().take(2).map(String::as_str).collect();
        format!("{topic} {}", first.join(" "))
    };
    page = page.section("Topics", |section| {
        let mut table = PageTable::new([
            TableColumn::number("topic"),
            TableColumn::number("share, %").decimals(1).bar(),
            TableColumn::number("coherence").decimals(3),
            TableColumn::text("most relevant words"),
        ]);
        let (shares, coherence) = (model.shares(), model.coherence());
        for (topic, words) in words.iter().enumerate().take(LISTED) {
            let share = shares.as_ref().map_or(f64::NAN, |shares| 100.0 * shares[topic]);
            let npmi = coherence.map_or(f64::NAN, |coherence| coherence[topic]);
            let cells: [Cell; 4] =
                [(topic as f64).into(), share.into(), npmi.into(), words.join(", ").into()];
            table = table.row(cells);
        }
        let section = section
            .text(format!(
                "Words by relevance: {LAMBDA} · ln p(word | topic) + {:.1} · ln p(word | topic) / p(word). The share is that \
                 of the words of training; coherence is the NPMI of the ten most probable words.",
                1.0 - LAMBDA
            ))
            .table(&table);
        match k > LISTED {
            true => section.note(format!("The {LISTED} largest of {k}.")),
            false => section,
        }
    });
    if k > 2 {
        page = page.section("Map of topics", |section| {
            let points = places(&model.word_probabilities());
            let marks = Marks::new(
                points.iter().enumerate().map(|(at, &(x, y))| (name(at), x, y, (y, y))),
            );
            section
                .text("Topics that use the same words lie near each other: classical scaling of the Jensen–Shannon distances.")
                .chart(marks.title("Topics in the plane").x_label("axis 1").y_label("axis 2"))
        });
    }
    if let Some((source, documents)) = documents {
        let mixtures = model.mixtures(documents)?;
        let n = mixtures.n_rows().max(1) as f64;
        let means: Vec<f64> = (0..k).map(|at| mixtures.column(at).sum::<f64>() / n).collect();
        let mut order: Vec<usize> = (0..k).collect();
        order.sort_by(|&a, &b| means[b].total_cmp(&means[a]).then(a.cmp(&b)));
        if let Some(completion) = model.completion(documents) {
            let perplexity = completion?.perplexity();
            page = page.section(&format!("{} documents of {source}", number(n)), |section| {
                section.text(format!(
                    "Perplexity of the second half of each document given the first: {}.",
                    number(perplexity)
                ))
            });
        }
        if let Some(times) = documents.times() {
            let (x, shares) = over_time(&mixtures, times);
            page = page.section("Topics over time", |section| {
                let mut stack = Stack::new(x);
                for &topic in order.iter().take(LAYERS) {
                    stack = stack.layer(name(topic), shares.iter().map(|row| 100.0 * row[topic]));
                }
                let stack = stack
                    .title("Shares of the most frequent topics")
                    .x_label("time, in the order of the documents' times")
                    .y_label("per cent");
                section.chart(stack)
            });
        }
    }
    if report.trace.len() > 1 {
        page =
            page.section("How the chain went", |section| match held_out(fitted, &report.metric) {
                Some(scores) => section
                    .columns(|left| left.chart(objective(fitted)), |right| right.chart(scores)),
                None => section.chart(objective(fitted)),
            });
    }
    Ok(close(page, fitted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_computed_by_hand() {
        assert_eq!(distance(&[0.5, 0.5], &[0.5, 0.5]), 0.0);
        assert!((distance(&[1.0, 0.0], &[0.0, 1.0]) - 1.0).abs() < 1e-12);
        let m = [0.75, 0.25];
        let kl = |p: [f64; 2]| -> f64 {
            p.iter().zip(&m).filter(|(p, _)| **p > 0.0).map(|(p, m)| p * (p / m).log2()).sum()
        };
        let expected = (0.5 * (kl([1.0, 0.0]) + kl([0.5, 0.5]))).sqrt();
        assert!((distance(&[1.0, 0.0], &[0.5, 0.5]) - expected).abs() < 1e-12);
    }

    /// Three topics without common words are corners of a triangle with equal sides.
    #[test]
    fn the_map_keeps_distances_that_a_plane_can_have() {
        let topics = Dense::from_rows(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        let at = places(&topics);
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let apart = (at[i].0 - at[j].0).hypot(at[i].1 - at[j].1);
            assert!((apart - 1.0).abs() < 1e-6, "{at:?}");
        }
    }

    #[test]
    fn time_is_cut_into_places() {
        let mixtures = Dense::from_rows(&[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]);
        let (x, shares) = over_time(&mixtures, &[0, 1, 1]);
        assert_eq!((x, shares), (vec![0.0, 1.0], vec![vec![1.0, 0.0], vec![0.25, 0.75]]));
    }
}
