//! Parallel loops that run small work on the caller's thread.
//!
//! To hand a piece to another thread and wait for it costs some microseconds, and tens where the caller
//! is no thread of the pool: as much as a fit of a hundred rows. The pieces and the order of their
//! results are the same either way, and so are the bits.

use gradus_base::parallel;

/// Up to this many operations stay on the caller's thread.
const SMALL: usize = 1 << 16;

/// The results of `work` for each item, in order; `operations` estimates the total work.
pub(crate) fn map<T: Send, R: Send>(
    items: Vec<T>,
    operations: usize,
    work: impl Fn(T) -> R + Sync + Send,
) -> Vec<R> {
    if items.len() <= 1 || operations <= SMALL {
        items.into_iter().map(work).collect()
    } else {
        parallel::map(items, work)
    }
}

/// Does `work` for each item.
pub(crate) fn each<T: Send>(items: Vec<T>, operations: usize, work: impl Fn(T) + Sync + Send) {
    if items.len() <= 1 || operations <= SMALL {
        items.into_iter().for_each(work);
    } else {
        parallel::each(items, work);
    }
}

/// Does `work` for each row of a matrix whose rows have `width` values.
pub(crate) fn each_row<T: Send>(
    values: &mut [T],
    width: usize,
    operations: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if operations <= SMALL {
        let rows = values.chunks_exact_mut(width.max(1)).enumerate();
        rows.for_each(|(row, values)| work(row, values));
    } else {
        parallel::each_row(values, width, work);
    }
}

/// The results of `work` for each number below `n`.
pub(crate) fn map_below<R: Send>(
    n: usize,
    operations: usize,
    work: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    if operations <= SMALL {
        return (0..n).map(work).collect();
    }
    // Pieces of some thousand operations.
    parallel::map_below(n, (n * 4096 / operations).max(1), work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_on_any_thread() {
        let expected: Vec<usize> = (0..100).map(|x| x * x).collect();
        for operations in [0, SMALL + 1] {
            assert_eq!(map((0..100).collect(), operations, |x: usize| x * x), expected);
            assert_eq!(map_below(100, operations, |x| x * x), expected);
        }
        let caller = std::thread::current().id();
        each((0..100).collect(), 10, |_: usize| assert_eq!(std::thread::current().id(), caller));
    }
}
