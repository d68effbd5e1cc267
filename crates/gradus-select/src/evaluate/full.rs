//! Ranks the whole catalogue for each user.

use super::cases::{Case, Cases};
use super::report::{Evaluated, Totals};
use gradus_base::{Error, Result, parallel};
use gradus_core::recommend::Scored;
use gradus_metrics::ranking::{AtK, auc, hits, pessimistic_order};

/// The number of scores in memory at a time, 8 bytes each.
const SCORES: usize = 1 << 22;

/// Evaluates every case in turn.
pub(super) fn rank(cases: &Cases<'_>, with_auc: bool, totals: &mut Totals) -> Result<()> {
    let lengths = totals.lengths.clone();
    each(cases, &lengths, with_auc, |case, evaluated, shown| {
        totals.add(&case.relevant, &evaluated, Some(shown));
    })
}

/// Evaluates every case, a block of them at a time, and hands each over in turn with the list that the
/// user is shown.
pub(super) fn each(
    cases: &Cases<'_>,
    lengths: &[usize],
    with_auc: bool,
    mut take: impl FnMut(&Case, Evaluated, &[u32]),
) -> Result<()> {
    let n_items = cases.model.items().len();
    let longest = lengths.last().copied().unwrap_or(0).min(n_items);
    // One more than is evaluated tells whether the last place is tied with what comes behind.
    let n = if with_auc { n_items } else { (longest + 1).min(n_items) };
    let block = (SCORES / n.max(1)).clamp(8, 1024);
    for block in cases.all.chunks(block) {
        let lists = cases.top(block, n)?;
        let evaluated = parallel::try_map(block.iter().zip(lists), |(case, list)| {
            let list = whole_ties(cases, case, list, longest)?;
            let order = pessimistic_order(first(&list, longest), &case.relevant);
            let hits = hits(&order, &case.relevant, longest);
            let at = lengths.iter().map(|&k| AtK::of(&hits, case.relevant.len(), k)).collect();
            let auc = if with_auc { auc(&list, &case.relevant) } else { None };
            // What a user is shown, in the order of the model.
            let shown: Vec<u32> = list.iter().take(longest).map(|scored| scored.item).collect();
            Ok::<_, Error>((Evaluated { at, auc }, shown))
        })?;
        for (case, (evaluated, shown)) in block.iter().zip(evaluated) {
            take(case, evaluated, &shown);
        }
    }
    Ok(())
}

/// The first `n` of a list, and those behind them with the score of the last.
fn first(list: &[Scored], n: usize) -> &[Scored] {
    let Some(last) = n.checked_sub(1).and_then(|at| list.get(at)) else { return list };
    let tied = list[n..].iter().take_while(|scored| scored.score == last.score).count();
    &list[..n + tied]
}

/// The list, made longer until the group of equal scores at place `longest` is whole.
fn whole_ties(
    cases: &Cases<'_>,
    case: &Case,
    mut list: Vec<Scored>,
    longest: usize,
) -> Result<Vec<Scored>> {
    let n_items = cases.model.items().len();
    loop {
        if let Some(bad) = list.iter().find(|scored| scored.score.is_nan()) {
            let item = cases.model.items().get(bad.item as usize);
            return Err(Error::data(format!("the model's score of item `{item}` is not a number")));
        }
        let (Some(at), Some(last)) = (list.get(longest.saturating_sub(1)), list.last()) else {
            return Ok(list);
        };
        let is_cut = list.len() > longest && at.score == last.score && list.len() < n_items;
        if !is_cut {
            return Ok(list);
        }
        let n = list.len();
        let mut longer = cases.top(std::slice::from_ref(case), n.saturating_mul(4))?;
        list = longer.pop().unwrap_or_default();
        if list.len() <= n {
            return Ok(list);
        }
    }
}
