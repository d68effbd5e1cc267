//! One sweep of collapsed Gibbs sampling over a block of tokens.
//!
//! The topic of a token of word `w` in document `d` is drawn with probability proportional to
//! `(n_dk + α_k) φ_k`, `φ_k = (n_wk + β) / (n_k + Vβ)`, where the counts leave the token out. It is cut into three parts:
//!
//! - `n_dk φ_k` over the topics of the document, most of the mass;
//! - `α_k n_wk / (n_k + Vβ)` over the topics of the word, whose sum is kept up to date;
//! - `α_k β / (n_k + Vβ)` over all topics, whose sum is kept up to date.
//!
//! So the cost of a token is the number of topics in its document, whatever the number of topics. Words are taken
//! one after the other, so that `φ` stands in a vector that only the topics of a word are written into.
//! (The cut is that of Yao, Mimno, McCallum: Efficient methods for topic model inference on streaming document
//! collections, 2009, with documents and words in each other's place, as in Yu et al.: A scalable asynchronous
//! distributed algorithm for topic modeling, 2015.)

use super::grid::{Block, Lists};
use gradus_base::random::Stream;

/// The priors in single precision.
pub(super) struct Priors {
    pub(super) alpha: Vec<f32>,
    pub(super) beta: f32,
    /// `Vβ`.
    pub(super) beta_sum: f32,
}

/// The scratch memory of a thread.
pub(super) struct Scratch {
    /// `n_k`, as this block sees it.
    totals: Vec<i64>,
    /// `1 / (n_k + Vβ)`.
    inverse: Vec<f32>,
    /// `φ` of the current word.
    phi: Vec<f32>,
    /// `n_wk` of the current word.
    counts: Vec<u32>,
    /// The topics in which the current word was, in any order.
    seen: Vec<u32>,
    is_seen: Vec<bool>,
    /// The cumulative weights of the topics of a document.
    sums: Vec<f32>,
}

impl Scratch {
    pub(super) fn new(n_topics: usize) -> Self {
        Self {
            totals: vec![0; n_topics],
            inverse: vec![0.0; n_topics],
            phi: vec![0.0; n_topics],
            counts: vec![0; n_topics],
            seen: Vec::with_capacity(n_topics),
            is_seen: vec![false; n_topics],
            sums: vec![0.0; n_topics],
        }
    }
}

/// Draws the topic of every token of a block anew; gives the change of the totals.
pub(super) fn sweep(
    block: &Block,
    topics: &mut [u16],
    (docs, words): (&mut Lists, &mut Lists),
    (totals, priors): (&[i64], &Priors),
    mut stream: Stream,
    scratch: &mut Scratch,
) -> Vec<i64> {
    let Priors { alpha, beta, beta_sum } = priors;
    let (beta, beta_sum) = (*beta, *beta_sum);
    let n_topics = totals.len();
    let Scratch { totals: n, inverse, phi, counts, seen, is_seen, sums } = scratch;
    n.copy_from_slice(totals);
    let mut smooth = 0.0f64;
    for topic in 0..n_topics {
        inverse[topic] = 1.0 / (n[topic] as f32 + beta_sum);
        phi[topic] = beta * inverse[topic];
        smooth += f64::from(alpha[topic] * phi[topic]);
    }
    let mut start = 0;
    for &(word, end) in &block.words {
        let end = end as usize;
        let mut of_word = 0.0f64;
        seen.clear();
        for &(topic, count) in words.get(word as usize) {
            let k = topic as usize;
            counts[k] = count;
            is_seen[k] = true;
            seen.push(topic);
            phi[k] = (count as f32 + beta) * inverse[k];
            of_word += f64::from(alpha[k] * count as f32 * inverse[k]);
        }
        // A token enters or leaves topic `k`: its counts, and all that depends on them.
        macro_rules! change {
            ($k:expr, $by:tt) => {{
                let k = $k;
                let weight = alpha[k] * inverse[k];
                of_word -= f64::from(weight * counts[k] as f32);
                smooth -= f64::from(weight * beta);
                counts[k] $by 1;
                n[k] $by 1;
                inverse[k] = 1.0 / (n[k] as f32 + beta_sum);
                phi[k] = (counts[k] as f32 + beta) * inverse[k];
                let weight = alpha[k] * inverse[k];
                of_word += f64::from(weight * counts[k] as f32);
                smooth += f64::from(weight * beta);
            }};
        }
        for (&doc, topic) in block.docs[start..end].iter().zip(&mut topics[start..end]) {
            let old = u32::from(*topic);
            change!(old as usize, -=);
            let (entries, length) = docs.row_mut(doc as usize);
            let len = *length as usize;
            let (mut sum, mut at_old) = (0.0f32, 0);
            for (at, (&(k, count), slot)) in entries[..len].iter().zip(&mut sums[..len]).enumerate()
            {
                let is_old = k == old;
                at_old = if is_old { at } else { at_old };
                let count = count - u32::from(is_old);
                sum += count as f32 * phi[k as usize];
                *slot = sum;
            }
            let of_doc = f64::from(sum);
            let total = of_doc + of_word.max(0.0) + smooth.max(0.0);
            let mut left = stream.uniform() * total;
            let drawn = if left < of_doc {
                let bound = left as f32;
                let at: usize = sums[..len].iter().map(|&sum| usize::from(sum <= bound)).sum();
                // Rounding may put the bound on the last sum.
                entries[at.min(len - 1)].0
            } else {
                left -= of_doc;
                draw_from_rest(left, of_word, alpha, (beta, inverse), counts, seen)
            };
            if drawn != old {
                *topic = drawn as u16;
                entries[at_old].1 -= 1;
                if entries[at_old].1 == 0 {
                    entries[at_old] = entries[len - 1];
                    *length -= 1;
                }
                let len = *length as usize;
                match entries[..len].iter_mut().find(|entry| entry.0 == drawn) {
                    Some(entry) => entry.1 += 1,
                    None => {
                        entries[len] = (drawn, 1);
                        *length += 1;
                    }
                }
                if !is_seen[drawn as usize] {
                    is_seen[drawn as usize] = true;
                    seen.push(drawn);
                }
            }
            change!(drawn as usize, +=);
        }
        let (entries, length) = words.row_mut(word as usize);
        *length = 0;
        for &topic in seen.iter() {
            let k = topic as usize;
            if counts[k] > 0 {
                entries[*length as usize] = (topic, counts[k]);
                *length += 1;
            }
            counts[k] = 0;
            is_seen[k] = false;
            phi[k] = beta * inverse[k];
        }
        start = end;
    }
    n.iter().zip(totals).map(|(after, before)| after - before).collect()
}

/// A topic by the parts of the weight that do not depend on the document.
fn draw_from_rest(
    mut left: f64,
    of_word: f64,
    alpha: &[f32],
    (beta, inverse): (f32, &[f32]),
    counts: &[u32],
    seen: &[u32],
) -> u32 {
    if left < of_word {
        let mut last = None;
        for &topic in seen {
            let k = topic as usize;
            if counts[k] > 0 {
                left -= f64::from(alpha[k] * counts[k] as f32 * inverse[k]);
                last = Some(topic);
                if left < 0.0 {
                    break;
                }
            }
        }
        // Rounding may leave a little after the last topic.
        if let Some(topic) = last {
            return topic;
        }
    } else {
        left -= of_word;
    }
    for (k, (alpha, inverse)) in (0u32..).zip(alpha.iter().zip(inverse)) {
        left -= f64::from(alpha * beta * inverse);
        if left < 0.0 {
            return k;
        }
    }
    alpha.len() as u32 - 1
}
