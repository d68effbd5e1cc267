//! The best items for many users: exact, by looking at few products in full.
//!
//! Three things spare the work, each safe under rounding:
//!
//! - **Order and early exit.** With `x̄` the mean of the users' factors, the score of item `i` is at
//!   most `α + β_u + (β_i + x̄·y_i) + ‖x_u − x̄‖ ‖y_i‖`. Items are visited in the order of this bound
//!   for a usual user: the good ones come first, so each user's limit (the score of the worst on
//!   their list) is high early, and once the bound of all that is still to come is below it, a user
//!   is done. Users are visited by their distance from the mean, so that neighbours are done
//!   together.
//! - **Eight bits.** What remains is multiplied in rounded form, see
//!   [`screen`](gradus_kernel::screen): four times as many products to an instruction as in
//!   single precision, from a quarter of the memory.
//! - **Few in full.** What passes is scored by the very kernel of a single list, so lists are the
//!   same to the last bit.
//!
//! Measured at rank 64, lists of ten: of 26,744 items of the 20 M synthetic ratings the exit leaves
//! 1 % where the model has biases and 41 % where it has none, of MovieLens 1M 56 %; the rounded
//! products let 31 to 43 items pass where 30 must; and in this order 48 to 76 items are scored in
//! full for a user (396 by norms alone, without biases).
//!
//! A rotation that puts most of the product into few dimensions was measured, too: of panels of
//! sixteen items the first 16 of 64 dimensions leave 2 % (synthetic) to 28 % (MovieLens 1M). It would
//! spare about half of the rest at the price of a second rounding, and is left out.

use super::LatentFactors;
use super::top::Query;
use gradus_base::{Result, parallel};
use gradus_core::recommend::{Filter, Recommend as _, Scored, Shortlist};
use gradus_kernel::screen::{PANEL, Queries, Screen, TILE};
use std::ops::Range;

/// Users that share a pass over the items, so that these come from the nearer caches.
const USERS: usize = 128;
/// Users that share a pass when every product is taken in full.
const FULL: usize = 8;
/// Panels of items between two looks at the limits, at most.
const PANELS: usize = 48;
/// Distances from the mean for which the bound of what is still to come is known.
const RADII: usize = 32;
/// Slack for rounding in that bound, as a share of the sizes of its terms: single-precision sums of
/// thousands of terms lose less.
const SLACK: f64 = 1e-4;

/// The items that may be recommended, made ready for a screening pass.
struct ScreenedItems {
    /// The indices of the items; those that can have the largest scores come first.
    order: Vec<u32>,
    screen: Screen,
    steps: Vec<Step>,
}

/// Consecutive panels of the screened items.
struct Step {
    panels: Range<usize>,
    /// The largest that bias and product can be from here to the end, by distance from the mean.
    reach: [f64; RADII],
}

/// The distances of the users from their mean.
struct UserRadii {
    centre: Vec<f64>,
    /// The distance of each user from the centre.
    radii: Vec<f64>,
    mean_radius: f64,
    max_radius: f64,
}

impl UserRadii {
    /// The distance that the `at`-th column of [`Step::reach`] is for.
    fn radius(&self, at: usize) -> f64 {
        self.max_radius * (at + 1) as f64 / RADII as f64
    }

    /// The column for a distance: that of the next larger.
    fn column(&self, radius: f64) -> usize {
        (0..RADII).find(|&at| radius <= self.radius(at)).unwrap_or(RADII - 1)
    }
}

impl LatentFactors {
    pub(super) fn top_items_of_many(
        &self,
        users: &[u32],
        n: usize,
        filter: &Filter,
    ) -> Result<Vec<Vec<Scored>>> {
        let allowed = filter.allowed(self.items.len(), self.history())?;
        let queries: Vec<Query<'_>> =
            users.iter().map(|&user| self.query(user, filter)).collect::<Result<_>>()?;
        let n_items = allowed
            .as_ref()
            .map_or(self.items.len(), |allowed| allowed.iter().filter(|&&allowed| allowed).count());
        // A long list wants so many products in full that the first look would be in vain. Nor
        // does the bound know of scales that differ by item.
        if self.normal.is_some()
            || n == 0
            || n.saturating_mul(8) > n_items
            || !Screen::pays(self.level)
        {
            let blocks = users.chunks(FULL).zip(queries.chunks(FULL));
            let lists = parallel::map(blocks, |(users, queries)| {
                let rows = users.iter().map(|&user| self.user_factors.row(user as usize));
                let factors: Vec<f32> = rows.flatten().copied().collect();
                self.top_block(&factors, queries, n, filter, allowed.as_deref())
            });
            return Ok(lists.into_iter().flatten().collect());
        }
        let user_radii = self.user_radii(users);
        let screened = self.screened(&user_radii, allowed.as_deref());
        let mut turns: Vec<usize> = (0..users.len()).collect();
        turns.sort_unstable_by(|&a, &b| {
            user_radii.radii[a].total_cmp(&user_radii.radii[b]).then(a.cmp(&b))
        });
        let found = parallel::map(turns.chunks(USERS), |turns| {
            let members: Vec<Member<'_>> = turns
                .iter()
                .map(|&at| Member {
                    row: self.user_factors.row(users[at] as usize),
                    query: &queries[at],
                    column: user_radii.column(user_radii.radii[at]),
                })
                .collect();
            self.top_group(&screened, &members, n, filter)
        });
        let mut lists = vec![Vec::new(); users.len()];
        for (at, list) in turns.into_iter().zip(found.into_iter().flatten()) {
            lists[at] = list;
        }
        Ok(lists)
    }

    fn query(&self, user: u32, filter: &Filter) -> Result<Query<'_>> {
        let row = self.user_row(user)?;
        let seen = self.history.as_ref().map(|history| history.ratings.row(row).0);
        let constant = self.mean as f32 + self.user_bias[row];
        Ok(Query { constant, normal: self.user_normal(user), seen: filter.unseen(seen)? })
    }

    fn user_radii(&self, users: &[u32]) -> UserRadii {
        let row = |user: u32| &self.user_factors.row(user as usize)[..self.rank()];
        let some = users.iter().step_by(users.len().div_ceil(1000).max(1));
        let share = 1.0 / some.len().max(1) as f64;
        let mut centre = vec![0.0; self.rank()];
        for &user in some {
            centre.iter_mut().zip(row(user)).for_each(|(sum, &x)| *sum += share * f64::from(x));
        }
        let distance = |&user: &u32| -> f64 {
            let gaps = row(user).iter().zip(&centre).map(|(&x, mean)| f64::from(x) - mean);
            gaps.map(|gap| gap * gap).sum::<f64>().sqrt()
        };
        let radii: Vec<f64> = users.iter().map(distance).collect();
        let mean_radius = radii.iter().sum::<f64>() / radii.len().max(1) as f64;
        let max_radius = radii.iter().copied().fold(0.0, f64::max);
        UserRadii { centre, radii, mean_radius, max_radius }
    }

    fn screened(&self, user_radii: &UserRadii, allowed: Option<&[bool]>) -> ScreenedItems {
        // For each item what it is worth to the mean, and its norm.
        let sizes: Vec<(f64, f64)> = (0..self.items.len())
            .map(|item| {
                let (mut worth, mut norm) = (f64::from(self.item_bias[item]), 0.0);
                for (&y, mean) in self.item_factors(item).iter().zip(&user_radii.centre) {
                    worth += f64::from(y) * mean;
                    norm += f64::from(y) * f64::from(y);
                }
                (worth, norm.sqrt())
            })
            .collect();
        let mut items: Vec<(f64, u32)> = (0..self.items.len())
            .filter(|&item| allowed.is_none_or(|allowed| allowed[item]))
            .map(|item| (sizes[item].0 + user_radii.mean_radius * sizes[item].1, item as u32))
            .collect();
        items.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let order: Vec<u32> = items.into_iter().map(|(_, item)| item).collect();
        let rows = order
            .iter()
            .map(|&item| (self.item_factors.row(item as usize), self.item_bias[item as usize]));
        let screen = Screen::new(self.rank(), rows);
        // Short steps first: the limits rise fastest there.
        let (mut steps, mut start, mut len) = (Vec::new(), 0, Screen::STEP);
        while start < screen.n_panels() {
            let end = (start + len).min(screen.n_panels());
            steps.push(Step { panels: start..end, reach: [f64::NEG_INFINITY; RADII] });
            (start, len) = (end, (2 * len).min(PANELS));
        }
        let mut reach = [f64::NEG_INFINITY; RADII];
        for step in steps.iter_mut().rev() {
            let items = step.panels.start * PANEL..(step.panels.end * PANEL).min(order.len());
            for &item in &order[items] {
                let (worth, norm) = sizes[item as usize];
                for (at, reach) in reach.iter_mut().enumerate() {
                    let product = user_radii.radius(at) * norm;
                    *reach = reach.max(worth + product + SLACK * (worth.abs() + product));
                }
            }
            step.reach = reach;
        }
        ScreenedItems { order, screen, steps }
    }

    /// The best items of a group of users.
    fn top_group(
        &self,
        screened: &ScreenedItems,
        members: &[Member<'_>],
        n: usize,
        filter: &Filter,
    ) -> Vec<Vec<Scored>> {
        let ScreenedItems { order, screen, steps } = screened;
        let mut queries = Queries::new(self.rank(), members.iter().map(|member| member.row));
        let limits = filter.categories.as_ref();
        let mut lists: Vec<_> = members.iter().map(|_| Shortlist::new(n, limits)).collect();
        for (query, member) in members.iter().enumerate() {
            queries.set_limit(screen, query, member.query.constant, f32::NEG_INFINITY);
        }
        let mut open: Vec<usize> = (0..queries.n_tiles()).collect();
        let mut bits = vec![0; TILE * PANELS];
        for step in steps {
            let n_panels = step.panels.len();
            let bits = &mut bits[..TILE * n_panels];
            open.retain(|&tile| {
                let of_tile = tile * TILE..((tile + 1) * TILE).min(members.len());
                let goes_on =
                    |query: usize| members[query].may_gain(step, lists[query].threshold());
                if !of_tile.clone().any(goes_on) {
                    return false;
                }
                screen.pass(self.level, &queries, tile, step.panels.clone(), bits);
                for query in of_tile {
                    let row = &bits[query % TILE * n_panels..][..n_panels];
                    let (member, list) = (&members[query], &mut lists[query]);
                    let before = list.threshold();
                    for (panel, &passed) in step.panels.clone().zip(row) {
                        // The last panels are padded.
                        if passed != 0
                            && let Some(items) = order.get(panel * PANEL..)
                        {
                            self.look_at(items, passed, member, list);
                        }
                    }
                    let after = list.threshold();
                    if after != before {
                        let least = after.unwrap_or(f32::NEG_INFINITY);
                        queries.set_limit(screen, query, member.query.constant, least);
                    }
                }
                true
            });
        }
        lists.into_iter().map(|list| self.finished(list)).collect()
    }

    /// Scores in full those of the first items whose bits are set.
    fn look_at(&self, items: &[u32], passed: u16, member: &Member<'_>, list: &mut Shortlist<'_>) {
        let mut passed = passed;
        while passed != 0 {
            let at = passed.trailing_zeros() as usize;
            passed &= passed - 1;
            let Some(&item) = items.get(at) else { return };
            if member.query.seen.binary_search(&item).is_ok() {
                continue;
            }
            let product =
                gradus_kernel::dot(self.level, member.row, self.item_factors.row(item as usize));
            // The same order of additions as in `score`.
            let score = member.query.constant + self.item_bias[item as usize] + product;
            if list.wants(score) {
                list.push(Scored { item, score });
            }
        }
    }
}

/// One of a group of users.
struct Member<'a> {
    row: &'a [f32],
    query: &'a Query<'a>,
    /// The column of [`Step::reach`] for this user.
    column: usize,
}

impl Member<'_> {
    /// Whether an item that is still to come can be good enough for this user.
    fn may_gain(&self, step: &Step, limit: Option<f32>) -> bool {
        limit.is_none_or(|limit| {
            let (constant, limit) = (f64::from(self.query.constant), f64::from(limit));
            let most = constant + step.reach[self.column];
            most + SLACK * (constant.abs() + limit.abs()) >= limit
        })
    }
}
