//! Ranks each relevant item among a few others.

use super::cases::{Case, Cases, Who};
use super::report::{Evaluated, Totals};
use gradus_base::random::Stream;
use gradus_base::{Error, Result, parallel};
use gradus_core::recommend::{Filter, Recipient};
use gradus_metrics::ranking::AtK;

/// Users evaluated at a time.
const BLOCK: usize = 1024;

/// Evaluates every case by each of its relevant items among `n` others drawn at random (all there are,
/// where these are fewer); a user's measures are the means over these lists.
pub(super) fn rank(cases: &Cases<'_>, n: usize, seed: u64, totals: &mut Totals) -> Result<()> {
    if n == 0 {
        return Err(Error::parameter("sampled", n, "must be at least 1"));
    }
    for block in cases.all.chunks(BLOCK) {
        let lengths = &totals.lengths;
        let evaluated = parallel::try_map(block, |case| one(cases, case, n, seed, lengths))?;
        for (case, evaluated) in block.iter().zip(&evaluated) {
            match evaluated {
                Some(evaluated) => totals.add(&case.relevant, evaluated, None),
                None => totals.no_others += 1,
            }
        }
    }
    if totals.no_others == cases.all.len() {
        let reason =
            "nobody to rank for: every user has rated every item, so there is none to draw";
        return Err(Error::data(reason));
    }
    Ok(())
}

/// Evaluates one user; `None` where the user has rated every item.
fn one(
    cases: &Cases<'_>,
    case: &Case,
    n: usize,
    seed: u64,
    lengths: &[usize],
) -> Result<Option<Evaluated>> {
    let free = free(cases, case);
    if free.is_empty() {
        return Ok(None);
    }
    let mut stream = Stream::new(seed, "evaluate.sampled", case.number);
    let drawn: Vec<Vec<u32>> = case
        .relevant
        .iter()
        .map(|_| {
            let places = stream.sample(free.len(), n.min(free.len()))?;
            Ok(places.into_iter().map(|place| free[place]).collect())
        })
        .collect::<Result<_>>()?;
    let scores = scores(cases, case, &drawn)?;
    let score = |item: u32| -> Result<f32> {
        let found = scores.binary_search_by_key(&item, |&(item, _)| item);
        found.ok().map(|at| scores[at].1).filter(|score| !score.is_nan()).ok_or_else(|| {
            let item = cases.model.items().get(item as usize);
            Error::data(format!("the model gives item `{item}` no score"))
        })
    };
    let mut at = vec![AtK::default(); lengths.len()];
    let mut area = 0.0;
    let share = 1.0 / case.relevant.len() as f64;
    for (&item, others) in case.relevant.iter().zip(&drawn) {
        let own = score(item)?;
        let (mut above, mut tied) = (0, 0);
        for &other in others {
            let other = score(other)?;
            above += usize::from(other > own);
            tied += usize::from(other == own);
        }
        let n = others.len() as f64;
        area += share * (n - above as f64 - 0.5 * tied as f64) / n;
        for (sum, &k) in at.iter_mut().zip(lengths) {
            // Behind those it is tied with.
            let list = AtK::of(&[above + tied], 1, k);
            sum.precision += share * list.precision;
            sum.recall += share * list.recall;
            sum.ndcg += share * list.ndcg;
            sum.map += share * list.map;
            sum.mrr += share * list.mrr;
            sum.hit_rate += share * list.hit_rate;
        }
    }
    Ok(Some(Evaluated { at, auc: Some(area) }))
}

/// The items a user has neither in training nor in the test, ascending.
fn free(cases: &Cases<'_>, case: &Case) -> Vec<u32> {
    let mut taken = cases.seen(&case.who);
    taken.extend(&case.tested);
    taken.sort_unstable();
    taken.dedup();
    let mut taken = taken.into_iter().peekable();
    let all = 0..cases.model.items().len() as u32;
    all.filter(|item| taken.next_if_eq(item).is_none() && cases.is_ranked(*item)).collect()
}

/// The scores of all items that take part, by item.
fn scores(cases: &Cases<'_>, case: &Case, drawn: &[Vec<u32>]) -> Result<Vec<(u32, f32)>> {
    let mut allow: Vec<u32> = drawn.iter().flatten().chain(&case.relevant).copied().collect();
    allow.sort_unstable();
    allow.dedup();
    let n = allow.len();
    let filter = Filter { allow: Some(allow), include_seen: true, ..Filter::default() };
    let target = match &case.who {
        Who::User(user) => Recipient::User(*user),
        Who::Profile(profile) => Recipient::Profile(profile),
    };
    let found = cases.model.top(&target, n, &filter)?;
    let mut scores: Vec<(u32, f32)> =
        found.into_iter().map(|scored| (scored.item, scored.score)).collect();
    scores.sort_unstable_by_key(|&(item, _)| item);
    Ok(scores)
}
