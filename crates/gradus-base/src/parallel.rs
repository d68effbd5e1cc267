//! Work in pieces, on the threads of the pool.
//!
//! Parallel iterators are compiled anew for every use of them, some three thousand lines of intermediate code each: they
//! were a third of the code that the compiler saw of the crate of recommenders. Here they are compiled once, for a function of the number
//! of a piece, and what is left for each use is a short loop. A piece should be worth some microseconds: cut long vectors
//! into chunks, and rows into blocks of rows.
//!
//! Results come in the order of the pieces, so that they do not depend on the number of threads.
//!
//! ```
//! use gradus_base::parallel;
//! let mut values = vec![1.0; 10_000];
//! parallel::each(values.chunks_mut(4096), |chunk| chunk.iter_mut().for_each(|x| *x *= 2.0));
//! let sums = parallel::map(values.chunks(4096), |chunk| chunk.iter().sum::<f64>());
//! assert_eq!(sums.iter().sum::<f64>(), 20_000.0);
//! ```

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows of a matrix that make a piece.
const ROWS: usize = 32;

/// The numbers below `n`, this many in a block; the last block may be shorter.
pub fn blocks(n: usize, block: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(block).map(move |first| first..n.min(first + block))
}

/// Does `work` for every piece.
pub fn each<T: Send>(pieces: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let pieces = Pieces::new(pieces);
    run(pieces.len(), &|at| work(pieces.take(at)));
}

/// Does `work` for every piece; `state` makes what a thread uses from one piece to the next.
pub fn each_with<S: Send, T: Send>(
    pieces: impl IntoIterator<Item = T>,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) + Sync,
) {
    let (pieces, states) = (Pieces::new(pieces), States::new(state));
    run(pieces.len(), &|at| states.lend(|state| work(state, pieces.take(at))));
}

/// Does `work` for every row of a matrix whose rows have `width` values; it gets the number of the row.
pub fn each_row<T: Send>(values: &mut [T], width: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    map_rows(values, width, work);
}

/// Does two things at once, and gives the results of both.
pub fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    let (mut of_a, mut of_b) = (None, None);
    both([Box::new(|| of_a = Some(a())), Box::new(|| of_b = Some(b()))]);
    (of_a.expect("both are done"), of_b.expect("both are done"))
}

/// Does something on a thread of the pool, so that the parallel loops in it start without waking another: that takes some ten
/// microseconds for each. Worth it for work of many short loops.
pub fn inside<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_some() { work() } else { rayon::scope(|_| work()) }
}

fn both(tasks: [Box<dyn FnOnce() + Send + '_>; 2]) {
    each(tasks, |task| task());
}

/// Cuts a slice into consecutive pieces of these lengths, to hand them to threads.
///
/// # Panics
/// If the slice is shorter than the lengths together.
pub fn cut<T>(
    values: &mut [T],
    lengths: impl IntoIterator<Item = usize>,
) -> impl Iterator<Item = &mut [T]> {
    let mut rest = values;
    lengths.into_iter().map(move |length| {
        let (piece, after) = std::mem::take(&mut rest).split_at_mut(length);
        rest = after;
        piece
    })
}

/// Applies `work` to every piece and returns the results in order.
pub fn map<T: Send, R: Send>(
    pieces: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let pieces = Pieces::new(pieces);
    let results = Results::new(pieces.len());
    run(pieces.len(), &|at| results.put(at, work(pieces.take(at))));
    results.into_vec()
}

/// Applies `work` to every number below `n` and returns the results in order; a piece has `block` numbers.
pub fn map_below<R: Send>(n: usize, block: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let parts = map(blocks(n, block), |numbers| numbers.map(&work).collect::<Vec<R>>());
    parts.into_iter().flatten().collect()
}

/// Applies `work` to every row of a matrix whose rows have `width` values, with the number of the row, and returns the
/// results in order.
pub fn map_rows<T: Send, R: Send>(
    values: &mut [T],
    width: usize,
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let blocks = values.chunks_mut((ROWS * width).max(1)).enumerate();
    let parts = map(blocks, |(block, rows)| {
        let rows = (block * ROWS..).zip(rows.chunks_exact_mut(width));
        rows.map(|(row, values)| work(row, values)).collect::<Vec<R>>()
    });
    parts.into_iter().flatten().collect()
}

/// Applies `work` to every piece and returns the results in order; `state` makes the scratch memory that a thread keeps
/// between pieces.
pub fn map_with<S: Send, T: Send, R: Send>(
    pieces: impl IntoIterator<Item = T>,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> R + Sync,
) -> Vec<R> {
    let (pieces, states) = (Pieces::new(pieces), States::new(state));
    let results = Results::new(pieces.len());
    run(pieces.len(), &|at| states.lend(|state| results.put(at, work(state, pieces.take(at)))));
    results.into_vec()
}

/// Applies `work` to every piece and returns the results in order, or the first error in that order.
///
/// # Errors
/// That of the first piece whose work failed. Pieces after it may be left undone.
pub fn try_map<T: Send, R: Send, E: Send>(
    pieces: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let failed = AtomicUsize::new(usize::MAX);
    let results = map(pieces.into_iter().enumerate(), |(at, piece)| {
        if at > failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = work(piece);
        if result.is_err() {
            failed.fetch_min(at, Ordering::Relaxed);
        }
        Some(result)
    });
    // All pieces before the first error were worked on.
    results.into_iter().flatten().collect()
}

/// The one parallel loop. Pieces differ in size: a thread takes few at a time, so that none is left alone with many at
/// the end.
fn run(n: usize, work: &(dyn Fn(usize) + Sync)) {
    match n {
        0 => {}
        1 => work(0),
        _ => {
            let at_once = n / (64 * rayon::current_num_threads());
            (0..n).into_par_iter().with_max_len(at_once.max(1)).for_each(work);
        }
    }
}

/// Pieces that are taken once each.
struct Pieces<T>(Vec<Mutex<Option<T>>>);

impl<T> Pieces<T> {
    fn new(pieces: impl IntoIterator<Item = T>) -> Self {
        Self(pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect())
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn take(&self, at: usize) -> T {
        let piece = self.0[at].lock().unwrap_or_else(PoisonError::into_inner).take();
        piece.expect("the loop comes to every piece once")
    }
}

/// Results that are put once each.
struct Results<R>(Vec<Mutex<Option<R>>>);

impl<R> Results<R> {
    fn new(n: usize) -> Self {
        Self((0..n).map(|_| Mutex::new(None)).collect())
    }

    fn put(&self, at: usize, result: R) {
        *self.0[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    fn into_vec(self) -> Vec<R> {
        let result = |slot: Mutex<Option<R>>| {
            let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.expect("the loop came to every piece")
        };
        self.0.into_iter().map(result).collect()
    }
}

/// States that are not in use, made when there are none.
struct States<S, F> {
    idle: Mutex<Vec<S>>,
    make: F,
}

impl<S, F: Fn() -> S> States<S, F> {
    fn new(make: F) -> Self {
        Self { idle: Mutex::new(Vec::new()), make }
    }

    fn lend(&self, work: impl FnOnce(&mut S)) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut state = idle.unwrap_or_else(&self.make);
        work(&mut state);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_cut_into_pieces_of_the_lengths_given() {
        let mut values = [1, 2, 3, 4, 5, 6];
        for piece in cut(&mut values, [2, 0, 3]) {
            let length = piece.len();
            piece.iter_mut().for_each(|x| *x *= 10 * length);
        }
        assert_eq!(values, [20, 40, 90, 120, 150, 6]);
    }

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        for n in [0, 1, 2, 1000] {
            let expected: Vec<usize> = (0..n).map(|x| x * x).collect();
            assert_eq!(map(0..n, |x| x * x), expected);
            assert_eq!(map_below(n, 7, |x| x * x), expected);
            let made = AtomicUsize::new(0);
            let state = || made.fetch_add(1, Ordering::Relaxed);
            assert_eq!(map_with(0..n, state, |_, x| x * x), expected);
            assert!(made.into_inner() <= n.min(rayon::current_num_threads()));
        }
    }

    #[test]
    fn every_piece_is_worked_on_once() {
        let mut values = vec![0u32; 10_007];
        each(values.chunks_mut(64).enumerate(), |(at, chunk)| {
            chunk.iter_mut().for_each(|x| *x += at as u32);
        });
        assert!(values.iter().enumerate().all(|(at, x)| *x == at as u32 / 64));
        each_row(&mut values[..10_005], 3, |row, values| {
            values.iter_mut().for_each(|x| *x = row as u32);
        });
        assert!(values[..10_005].iter().enumerate().all(|(at, x)| *x == at as u32 / 3));
        let sums = map_rows(&mut values[..9], 3, |row, values| (row, values.iter().sum::<u32>()));
        assert_eq!(sums, [(0, 0), (1, 3), (2, 6)]);
        each_with(values.chunks_mut(100), Vec::new, |seen: &mut Vec<u32>, chunk| {
            seen.clear();
            seen.extend_from_slice(chunk);
            chunk.iter_mut().zip(seen.iter()).for_each(|(x, seen)| *x -= seen);
        });
        assert!(values.iter().all(|x| *x == 0));
    }

    #[test]
    fn two_things_are_done_at_once() {
        let mut sum = 0;
        let (a, b) = join(|| (0..10).for_each(|x| sum += x), || "b".to_owned());
        assert_eq!((a, b, sum), ((), "b".to_owned(), 45));
    }

    #[test]
    fn the_first_error_in_order_is_reported() {
        let failing = |x: usize| if x % 100 == 99 { Err(x) } else { Ok(x) };
        assert_eq!(try_map(0..1000, failing), Err(99));
        assert_eq!(try_map([9, 199, 8, 99], failing), Err(199));
        assert_eq!(try_map(0..99, failing).map(|all| all.len()), Ok(99));
    }

    #[test]
    #[should_panic(expected = "a piece that panics")]
    fn a_panic_reaches_the_caller() {
        each(0..100, |x| assert!(x != 50, "a piece that panics"));
    }
}
