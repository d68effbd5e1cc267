//! Assembly of both matrices from chunks of rows, by counting sorts.
//!
//! Rows go to their user in order of arrival, each user's rows are sorted by item (most files have
//! them so already), and the matrix by item is the transpose of the one by user. Every step is a
//! stable sort, so the outcome depends neither on the number of threads nor on the chunks.

use super::chunk::{Chunk, Extras};
use crate::{Csr, Duplicates, Ids, Ratings};
use gradus_base::{Error, Result, parallel};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Builds the ratings from rows whose users and items are numbers; `places` leads from a number to
/// the index in the ids.
pub(super) fn assemble(
    users: Ids,
    items: Ids,
    chunks: Vec<Chunk>,
    user_places: &[u32],
    item_places: &[u32],
    duplicates: Duplicates,
) -> Result<Ratings> {
    let (mut indptr, mut entries, mut beside) =
        scatter(chunks, users.len(), user_places, item_places);
    let (mut indices, mut values, n_repeats) = sort_rows(&indptr, &mut entries, &mut beside);
    drop(entries);
    if n_repeats > 0 {
        settle((&users, &items), &mut indptr, &mut indices, &mut values, &mut beside, duplicates)?;
    }
    let Beside { weights, times } = beside;
    let by_user = Csr::from_trusted(items.len(), indptr, indices, values);
    let (by_item, weights_by_item) = transpose(&by_user, weights.as_deref());
    Ok(Ratings::from_parts(
        users.into(),
        items.into(),
        by_user,
        by_item,
        weights.zip(weights_by_item),
        times,
    ))
}

/// The optional parts of a rating beside its value.
struct Beside {
    weights: Option<Vec<f32>>,
    times: Option<Vec<i64>>,
}

/// A part of it.
struct BesidePart<'a> {
    weights: Option<&'a mut [f32]>,
    times: Option<&'a mut [i64]>,
}

/// The ratings by user, in order of arrival: row starts, entries (item in the high half, the bits of
/// the value in the low one: one place to write instead of two) and what is beside them.
fn scatter(
    chunks: Vec<Chunk>,
    n_users: usize,
    user_places: &[u32],
    item_places: &[u32],
) -> (Vec<usize>, Vec<u64>, Beside) {
    let n: usize = chunks.iter().map(Chunk::len).sum();
    let has = |extra: fn(Extras) -> bool| chunks.iter().any(|chunk| extra(chunk.extras()));
    let (weighted, timed) = (has(|extras| extras.weights), has(|extras| extras.times));
    let mut groups = split_chunks(chunks, n_groups(n, n_users));
    let mut counts = parallel::map(&groups, |chunks| {
        let mut counts = vec![0; n_users];
        for chunk in chunks {
            for &user in chunk.rows().users {
                counts[user_places[user as usize] as usize] += 1;
            }
        }
        counts
    });
    let indptr = starts(&mut counts, n_users);

    let mut entries = zeros::<u64>(n);
    let mut weights = weighted.then(|| zeros::<f32>(n));
    let mut times = timed.then(|| zeros::<i64>(n));
    let places = atomic_u64(&mut entries);
    let weight_places =
        weights.as_mut().map(|weights| atomic_u32(bytemuck::cast_slice_mut(weights)));
    let time_places = times.as_mut().map(|times| atomic_u64(bytemuck::cast_slice_mut(times)));
    parallel::each(groups.iter_mut().zip(&mut counts), |(chunks, next)| {
        for chunk in chunks.drain(..) {
            let rows = chunk.rows();
            for (k, &user) in rows.users.iter().enumerate() {
                let next = &mut next[user_places[user as usize] as usize];
                let item = item_places[rows.items[k] as usize];
                let entry = u64::from(item) << 32 | u64::from(rows.values[k].to_bits());
                places[*next].store(entry, Relaxed);
                if let Some(places) = weight_places {
                    let weight = rows.weights.map_or(1.0, |weights| weights[k]);
                    places[*next].store(weight.to_bits(), Relaxed);
                }
                if let (Some(places), Some(times)) = (time_places, rows.times) {
                    places[*next].store(times[k].cast_unsigned(), Relaxed);
                }
                *next += 1;
            }
        }
    });
    (indptr, entries, Beside { weights, times })
}

/// Sorts each row by item, keeping the order of arrival among equals, and takes the entries apart.
/// Also counts the entries that repeat the one before.
fn sort_rows(
    indptr: &[usize],
    entries: &mut [u64],
    beside: &mut Beside,
) -> (Vec<u32>, Vec<f32>, usize) {
    let mut indices = vec![0u32; entries.len()];
    let mut values = vec![0f32; entries.len()];
    let ranges = split_rows(indptr, 4 * rayon::current_num_threads());
    let lengths: Vec<usize> =
        ranges.iter().map(|rows| indptr[rows.end] - indptr[rows.start]).collect();
    let beside: Vec<BesidePart<'_>> = split_maybe(beside.weights.as_deref_mut(), &lengths)
        .into_iter()
        .zip(split_maybe(beside.times.as_deref_mut(), &lengths))
        .map(|(weights, times)| BesidePart { weights, times })
        .collect();
    let places =
        split_mut(&mut indices, &lengths).into_iter().zip(split_mut(&mut values, &lengths));
    let parts = ranges.into_iter().zip(split_mut(entries, &lengths)).zip(beside).zip(places);
    let n_repeats = parallel::map(parts, |(((rows, entries), mut beside), (indices, values))| {
        let base = indptr[rows.start];
        let mut n_repeats = 0;
        for row in rows {
            let at = indptr[row] - base..indptr[row + 1] - base;
            let entries = &mut entries[at.clone()];
            if !entries.is_sorted_by(|a, b| a >> 32 < b >> 32) {
                if beside.is_empty() {
                    entries.sort_by_key(|entry| entry >> 32);
                } else {
                    beside.sort_with(entries, at.clone());
                }
                let same = |pair: &&[u64]| pair[0] >> 32 == pair[1] >> 32;
                n_repeats += entries.windows(2).filter(same).count();
            }
            let places = indices[at.clone()].iter_mut().zip(&mut values[at]);
            for (&entry, (index, value)) in entries.iter().zip(places) {
                (*index, *value) = ((entry >> 32) as u32, f32::from_bits(entry as u32));
            }
        }
        n_repeats
    });
    (indices, values, n_repeats.into_iter().sum())
}

impl BesidePart<'_> {
    fn is_empty(&self) -> bool {
        self.weights.is_none() && self.times.is_none()
    }

    /// Sorts the entries of a row by item, and what stands beside them at `at` along with them.
    fn sort_with(&mut self, entries: &mut [u64], at: Range<usize>) {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&k| entries[k] >> 32);
        permute(entries, &order);
        if let Some(weights) = &mut self.weights {
            permute(&mut weights[at.clone()], &order);
        }
        if let Some(times) = &mut self.times {
            permute(&mut times[at], &order);
        }
    }
}

fn permute<T: Copy>(slice: &mut [T], order: &[usize]) {
    let before = slice.to_vec();
    for (place, &from) in slice.iter_mut().zip(order) {
        *place = before[from];
    }
}

/// Makes one entry of each run of equal items, in place, and moves the row starts accordingly.
fn settle(
    (users, items): (&Ids, &Ids),
    indptr: &mut [usize],
    indices: &mut Vec<u32>,
    values: &mut Vec<f32>,
    Beside { weights, times }: &mut Beside,
    duplicates: Duplicates,
) -> Result<()> {
    let (mut kept, mut start) = (0, 0);
    for user in 0..indptr.len() - 1 {
        let end = indptr[user + 1];
        while start < end {
            let item = indices[start];
            let repeats = indices[start..end].iter().take_while(|&&next| next == item).count();
            let run = start..start + repeats;
            let (value, weight) = match duplicates {
                _ if repeats == 1 => (values[start], weights.as_ref().map(|w| w[start])),
                Duplicates::Last => (values[run.end - 1], weights.as_ref().map(|w| w[run.end - 1])),
                Duplicates::Mean => {
                    mean(&values[run.clone()], weights.as_ref().map(|w| &w[run.clone()]))
                }
                Duplicates::Sum => {
                    let values = &values[run.clone()];
                    let weights = weights.as_ref().map(|w| sum(&w[run.clone()]));
                    let value = sum(values);
                    if value.is_infinite() {
                        let (user, item) = (users.get(user), items.get(item as usize));
                        return Err(Error::data(format!(
                            "user `{user}`, item `{item}`: the values add up to infinity"
                        )));
                    }
                    (value, weights)
                }
                Duplicates::Error => {
                    let (user, item) = (users.get(user), items.get(item as usize));
                    return Err(Error::data(format!(
                        "user `{user}` rated item `{item}` {repeats} times: give a policy for \
                         duplicates (`last`, `mean` or `sum`)"
                    )));
                }
            };
            (indices[kept], values[kept]) = (item, value);
            if let Some(times) = times.as_mut() {
                times[kept] = match duplicates {
                    // The mean or sum of several ratings is as recent as the last of them.
                    Duplicates::Mean | Duplicates::Sum => {
                        times[run.clone()].iter().copied().fold(i64::MIN, i64::max)
                    }
                    _ => times[run.end - 1],
                };
            }
            if let (Some(weights), Some(weight)) = (weights.as_mut(), weight) {
                if weight.is_infinite() {
                    let (user, item) = (users.get(user), items.get(item as usize));
                    return Err(Error::data(format!(
                        "user `{user}`, item `{item}`: the weights add up to infinity"
                    )));
                }
                weights[kept] = weight;
            }
            (kept, start) = (kept + 1, run.end);
        }
        indptr[user + 1] = kept;
    }
    indices.truncate(kept);
    indices.shrink_to_fit();
    values.truncate(kept);
    values.shrink_to_fit();
    if let Some(weights) = weights {
        weights.truncate(kept);
        weights.shrink_to_fit();
    }
    if let Some(times) = times {
        times.truncate(kept);
        times.shrink_to_fit();
    }
    Ok(())
}

/// The mean of a pair's values and the sum of its weights. Where all weights are 0 the values count
/// alike.
pub(crate) fn sum(values: &[f32]) -> f32 {
    values.iter().map(|&value| f64::from(value)).sum::<f64>() as f32
}

pub(crate) fn mean(values: &[f32], weights: Option<&[f32]>) -> (f32, Option<f32>) {
    let plain = || values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64;
    let Some(weights) = weights else { return (plain() as f32, None) };
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    if total == 0.0 {
        return (plain() as f32, Some(0.0));
    }
    let weighted = values.iter().zip(weights).map(|(&v, &w)| f64::from(v) * f64::from(w));
    ((weighted.sum::<f64>() / total) as f32, Some(total as f32))
}

/// The transpose, with the weights in its order. Rows come out sorted by column.
pub(crate) fn transpose(matrix: &Csr, weights: Option<&[f32]>) -> (Csr, Option<Vec<f32>>) {
    let (n, n_cols) = (matrix.nnz(), matrix.n_cols());
    let groups = split_rows(matrix.indptr(), n_groups(n, n_cols));
    let mut counts = parallel::map(&groups, |rows| {
        let mut counts = vec![0; n_cols];
        let entries = matrix.indptr()[rows.start]..matrix.indptr()[rows.end];
        matrix.indices()[entries].iter().for_each(|&column| counts[column as usize] += 1);
        counts
    });
    let indptr = starts(&mut counts, n_cols);

    let mut indices = zeros::<u32>(n);
    let mut values = zeros::<f32>(n);
    let mut transposed = weights.map(|_| zeros::<f32>(n));
    {
        let indices = atomic_u32(&mut indices);
        let values = atomic_u32(bytemuck::cast_slice_mut(&mut values));
        let places = transposed.as_mut().map(|w| atomic_u32(bytemuck::cast_slice_mut(w)));
        parallel::each(groups.into_iter().zip(counts), |(rows, mut next)| {
            for row in rows {
                for at in matrix.range(row) {
                    let next = &mut next[matrix.indices()[at] as usize];
                    indices[*next].store(row as u32, Relaxed);
                    values[*next].store(matrix.values()[at].to_bits(), Relaxed);
                    if let (Some(places), Some(weights)) = (places, weights) {
                        places[*next].store(weights[at].to_bits(), Relaxed);
                    }
                    *next += 1;
                }
            }
        });
    }
    (Csr::from_trusted(matrix.n_rows(), indptr, indices, values), transposed)
}

/// How many groups a counting sort of `n` entries over `n_keys` keys may run in: each needs counters
/// of its own, and these must stay small beside the entries.
fn n_groups(n: usize, n_keys: usize) -> usize {
    (n / (8 * n_keys.max(1))).clamp(1, rayon::current_num_threads())
}

/// Turns the counts of each group into the place of its first entry of each key; returns where each
/// key starts.
fn starts(counts: &mut [Vec<usize>], n_keys: usize) -> Vec<usize> {
    let mut indptr = Vec::with_capacity(n_keys + 1);
    let mut total = 0;
    for key in 0..n_keys {
        indptr.push(total);
        for counts in counts.iter_mut() {
            total += std::mem::replace(&mut counts[key], total);
        }
    }
    indptr.push(total);
    indptr
}

/// The chunks in `n` groups, in order.
fn split_chunks(chunks: Vec<Chunk>, n: usize) -> Vec<Vec<Chunk>> {
    let each = chunks.len().div_ceil(n).max(1);
    let mut groups = Vec::with_capacity(n);
    let mut chunks = chunks.into_iter().peekable();
    while chunks.peek().is_some() {
        groups.push(chunks.by_ref().take(each).collect());
    }
    groups
}

/// The rows in at most `n` ranges of about equally many entries.
fn split_rows(indptr: &[usize], n: usize) -> Vec<Range<usize>> {
    let n_rows = indptr.len() - 1;
    let total = indptr[n_rows];
    let mut ranges = Vec::with_capacity(n);
    let mut start = 0;
    for part in 1..=n {
        let goal = (total as u128 * part as u128 / n as u128) as usize;
        let end =
            if part == n { n_rows } else { indptr.partition_point(|&at| at < goal).min(n_rows) };
        if end > start {
            ranges.push(start..end);
            start = end;
        }
    }
    ranges
}

fn split_maybe<'a, T>(slice: Option<&'a mut [T]>, lengths: &[usize]) -> Vec<Option<&'a mut [T]>> {
    match slice {
        Some(slice) => split_mut(slice, lengths).into_iter().map(Some).collect(),
        None => lengths.iter().map(|_| None).collect(),
    }
}

fn split_mut<'a, T>(mut slice: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (part, rest) = slice.split_at_mut(length);
        parts.push(part);
        slice = rest;
    }
    parts
}

/// Zeros to scatter to, on large pages where the system has them: on small ones nearly every write
/// misses the address cache (20 M ratings in no order took 2.8 s to build, and 2.4 s so; in order
/// 1.4 s and 0.9 s). They take no memory until they are written to.
fn zeros<T: bytemuck::Zeroable + Clone>(n: usize) -> Vec<T> {
    let mut zeros = vec![T::zeroed(); n];
    gradus_base::memory::ask_for_large_pages(&mut zeros);
    zeros
}

/// Lets several threads write to one slice. A relaxed store costs what a plain one does.
fn atomic_u32(slice: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: `AtomicU32` has the layout of `u32`, its alignment is that of `u32` wherever it is
    // 4 (asserted below), and the exclusive borrow leaves no other access for its lifetime.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU32]) }
}

/// Views a slice as atomics, like [`atomic_u32`].
fn atomic_u64(slice: &mut [u64]) -> &[AtomicU64] {
    // SAFETY: as in `atomic_u32`.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU64]) }
}

const _: () = assert!(align_of::<AtomicU32>() == align_of::<u32>());
const _: () = assert!(align_of::<AtomicU64>() == align_of::<u64>());
