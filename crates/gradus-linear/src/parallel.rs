//! Work that is cut into pieces: on the threads of the pool if it pays, on the caller's thread if not.
//!
//! To hand a piece to another thread and wait for it costs some microseconds, and tens where the caller
//! is no thread of the pool: as much as a fit of a hundred rows. The pieces and the order of their
//! results are the same either way, and so are the bits.

use gradus_core::parallel;

/// Operations that are not worth another thread.
const SMALL: usize = 1 << 16;

/// What `work` gives for each item, in order; `operations` is about what all of it takes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_on_any_thread() {
        let expected: Vec<usize> = (0..100).map(|x| x * x).collect();
        for operations in [0, SMALL + 1] {
            assert_eq!(map((0..100).collect(), operations, |x: usize| x * x), expected);
        }
        let caller = std::thread::current().id();
        each((0..100).collect(), 10, |_: usize| assert_eq!(std::thread::current().id(), caller));
    }
}
