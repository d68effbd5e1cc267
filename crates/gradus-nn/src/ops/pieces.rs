//! How work is cut: by the sizes of the data alone, so that sums do not depend on the number of threads.

use gradus_base::parallel;
use gradus_kernel::network as kernel;

/// Numbers that a thread takes at a time in a pass over all of them.
pub(super) const CHUNK: usize = 1 << 14;

/// Rows of one piece of a product with `n` rows: pieces of 64 rows cost a tenth more than one of all of them.
pub(super) fn rows(n: usize) -> usize {
    let pieces = (n / 64).clamp(1, 4).max(n.div_ceil(256));
    n.div_ceil(pieces).max(1)
}

/// Multiplications that make a piece of a product worth a thread: some fifty microseconds.
const WORK: usize = 2_000_000;

/// Rows of one piece of a product with `n` rows, each of which takes so many multiplications: up to eight pieces, or as many as make
/// pieces of 256 rows, where there is work for as many threads, and one where there is little. A piece has 32 rows at least.
pub(super) fn rows_of_product(n: usize, each: usize) -> usize {
    let by_work = n.saturating_mul(each) / WORK;
    let pieces = by_work.min(n / 32).clamp(1, (n / 256).max(8));
    n.div_ceil(pieces).max(1)
}

/// Rows of one piece of a pass over rows of `width` numbers.
pub(super) fn rows_of(width: usize) -> usize {
    (CHUNK / width.max(1)).max(1)
}

/// The sum of vectors, in their order.
pub(super) fn total(parts: Vec<Vec<f32>>, len: usize) -> Vec<f32> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_else(|| vec![0.0; len]);
    parts.for_each(|part| kernel::add(&part, &mut sum));
    sum
}

/// Numbers made chunk by chunk; `make` gets where a chunk begins, and its place.
pub(super) fn fill(n: usize, make: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let mut values = vec![0.0; n];
    let chunks = values.chunks_mut(CHUNK).enumerate();
    parallel::each(chunks, |(at, chunk)| make(at * CHUNK, chunk));
    values
}
