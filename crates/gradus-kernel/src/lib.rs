//! SIMD kernels, chosen at run time for the processor at hand, and dense factorisations.
//!
//! Factor models spend their time in three places: building the small normal equations of one row,
//! solving them, and taking dot products of factor rows. Each has a file here, and each takes a
//! [`Level`], so that one binary runs on every processor and a test can compare the levels.
//!
//! | file | what it holds |
//! |---|---|
//! | `rows.rs` | [`Rows`], an aligned matrix of factor rows, and [`padded`], its row stride |
//! | `gram.rs` | [`gram::Gram`], which gathers the rows a problem touches and sums `Σ w v vᵀ` |
//! | `cholesky.rs` | [`cholesky`], factor and triangular solves of a small system |
//! | `row_solve.rs` | [`RowSolver`], one regularised least-squares row from end to end |
//! | `row_cg.rs` | [`RowCg`], the same row improved by conjugate gradient steps |
//! | `coordinate.rs` | [`RowCoordinates`], the same row improved one coordinate at a time |
//! | `block.rs` | [`block`], products with a few columns in double precision |
//! | `dense.rs` | [`dense`], products with the rows of a dense matrix in double precision |
//! | `eight.rs` | [`eight`], products of rows with eight vectors at once |
//! | `digamma.rs` | [`exp_digamma_all`], exponentials of the digamma function of many numbers at once |
//! | `exp.rs` | [`exp_all`], exponentials of many numbers at once |
//! | `gaussian.rs` | [`gaussian`], the passes of Gaussian mixtures |
//! | `gemm.rs` | [`gemm`], products of matrices in single precision |
//! | `nearest.rs` | [`nearest`], the nearest of many centres, for many samples at once |
//! | `network.rs` | [`network`], the passes of neural networks |
//! | `nonnegative.rs` | [`nonnegative`], the passes of non-negative matrix factorisation |
//! | `panels.rs` | [`panels`], products of the columns of tall matrices in double precision |
//! | `pairs.rs` | [`pairs`], the passes of sequential minimal optimisation |
//! | `sgd/` | [`sgd`], steps of stochastic gradient descent on factor rows |
//! | `row_draw.rs` | [`RowSolver::draw`], a draw from the posterior of such a row |
//! | `half.rs` | [`Bf16`], half-precision storage |
//! | `totals.rs` | [`Totals`], sums over all rows of a side, for the pairs that were not observed |
//! | `dot.rs` | [`dot`], [`scores`] and [`dots_at`], dot products of factor rows |
//! | `gather.rs` | [`sum_rows`] and [`dots`], over the rows a sparse row names; [`sparse_product`] |
//! | `inverse.rs` | [`invert_positive`], the inverse of a large positive definite matrix on all threads |
//! | `linalg.rs` | [`linalg`], dense factorisations in double precision |
//! | `bags.rs` | [`bags`], means of rows and changes of shared rows |
//! | `words/` | [`words`], steps of word vectors by logistic losses |
//! | `softmax.rs` | [`softmax_steps`], the same by the whole softmax |
//! | `screen/` | [`screen::Screen`], which dot products can be large, by integers and a bound |
//!
//! # Determinism
//! Every result is a function of the input and the level alone: never of the number of threads, of
//! the alignment of a slice, or of what a workspace was used for before. Different levels round
//! differently, in the last digits.

// Several arrays share the index of a register tile, and constant bounds are what unrolls it.
#![allow(clippy::needless_range_loop)]

pub mod bags;
pub mod block;
pub mod cholesky;
mod coordinate;
pub mod dense;
mod digamma;
mod dot;
pub mod eight;
mod exp;
mod gather;
pub mod gaussian;
pub mod gemm;
pub mod gram;
mod half;
mod inverse;
mod lanes;
pub mod linalg;
pub mod nearest;
pub mod network;
pub mod nonnegative;
pub mod pairs;
pub mod panels;
mod row_cg;
mod row_draw;
mod row_solve;
mod rows;
pub mod screen;
pub mod sgd;
mod softmax;
#[cfg(test)]
mod testing;
mod totals;
pub mod words;

use std::fmt;
use std::sync::OnceLock;

pub use coordinate::{RowCoordinates, fit_scalar};
pub use digamma::exp_digamma_all;
pub use dot::{dot, dots_at, scores};
pub use exp::exp_all;
pub use gather::{SparseRows, dots, sparse_product, sum_rows};
pub use half::Bf16;
pub use inverse::{NotInverted, invert_positive};
pub use row_cg::RowCg;
pub use row_draw::RowPrior;
pub use row_solve::{RowProblem, RowSolution, RowSolver, solve_semidefinite};
pub use rows::{Rows, padded};
pub use softmax::softmax_steps;
pub use totals::Totals;

use lanes::{Four, Lanes};

/// The instruction set a kernel is compiled for.
///
/// Levels are ordered: a later one is faster where the processor has it. A kernel asked for a level
/// that the processor lacks runs at the highest one it has, so any value is safe to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The instructions that the compilation target guarantees; no fused multiply-add is assumed.
    Portable,
    /// AVX2 with fused multiply-add: 8 lanes.
    Avx2,
    /// AVX-512 (F, BW, CD, DQ, VL): 16 lanes.
    Avx512,
}

impl Level {
    /// The level to use: the highest this processor has, found once per process.
    ///
    /// The environment variable `GRADUS_SIMD` (`portable`, `avx2` or `avx512`) can lower it, never
    /// raise it. Any other value is ignored, as is a change after the first call.
    pub fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| {
            let asked = std::env::var("GRADUS_SIMD").ok().and_then(|name| Level::named(&name));
            asked.map_or(detected().level, |level| level.min(detected().level))
        })
    }

    /// Every level this processor has, lowest first.
    pub fn available() -> Vec<Level> {
        [Level::Portable, Level::Avx2, Level::Avx512]
            .into_iter()
            .filter(|&level| level <= detected().level)
            .collect()
    }

    fn named(name: &str) -> Option<Level> {
        match name {
            "portable" => Some(Level::Portable),
            "avx2" => Some(Level::Avx2),
            "avx512" => Some(Level::Avx512),
            _ => None,
        }
    }

    /// Runs `op` compiled for this level, or for the highest one below it that the processor has.
    #[inline]
    pub(crate) fn dispatch<Op: Kernel>(self, op: Op) -> Op::Output {
        #[cfg(target_arch = "x86_64")]
        {
            let detected = detected();
            if self == Level::Avx512
                && let Some(simd) = detected.v4
            {
                return simd.vectorize(Bound { lanes: simd, op });
            }
            if self >= Level::Avx2
                && let Some(simd) = detected.v3
            {
                return simd.vectorize(Bound { lanes: simd, op });
            }
        }
        op.run(Four)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        })
    }
}

/// A piece of work written once over the lanes of any level.
///
/// `run` and all it calls must be `#[inline(always)]`: only code inlined into the dispatching
/// function is compiled for its instruction set. So vector code must not stand in a closure that is
/// handed to the standard library (`map`, `for_each`, `from_fn`), either.
pub(crate) trait Kernel {
    type Output;
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
struct Bound<L, Op> {
    lanes: L,
    op: Op,
}

#[cfg(target_arch = "x86_64")]
impl<L: Lanes, Op: Kernel> pulp::NullaryFnOnce for Bound<L, Op> {
    type Output = Op::Output;

    #[inline(always)]
    fn call(self) -> Op::Output {
        self.op.run(self.lanes)
    }
}

struct Detected {
    level: Level,
    #[cfg(target_arch = "x86_64")]
    v3: Option<pulp::x86::V3>,
    #[cfg(target_arch = "x86_64")]
    v4: Option<pulp::x86::V4>,
}

fn detected() -> &'static Detected {
    static DETECTED: OnceLock<Detected> = OnceLock::new();
    DETECTED.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        {
            let (v3, v4) = (pulp::x86::V3::try_new(), pulp::x86::V4::try_new());
            let level = match (v3, v4) {
                (_, Some(_)) => Level::Avx512,
                (Some(_), None) => Level::Avx2,
                (None, None) => Level::Portable,
            };
            Detected { level, v3, v4 }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Detected { level: Level::Portable }
    })
}

/// Asks the nearest cache for the row that starts at `offset`, `len` values long.
#[inline(always)]
pub fn prefetch<T>(data: &[T], offset: usize, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..len).step_by((64 / size_of::<T>().max(1)).max(1)) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = data.as_ptr().wrapping_add(offset).wrapping_add(line);
        // SAFETY: a prefetch is a hint; it reads nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, offset, len);
}

/// Asks the second cache for the line at `offset`, which is not needed at once.
#[inline(always)]
pub(crate) fn prefetch_far(data: &[f32], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let at = data.as_ptr().wrapping_add(offset);
        // SAFETY: a prefetch is a hint; it reads nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, offset);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_that_read_back() {
        for level in [Level::Portable, Level::Avx2, Level::Avx512] {
            assert_eq!(Level::named(&level.to_string()), Some(level));
        }
        assert_eq!(Level::named("AVX2"), None);
        assert_eq!(Level::named(""), None);
    }

    #[test]
    fn available_levels_end_at_the_detected_one() {
        let levels = Level::available();
        assert_eq!(levels[0], Level::Portable);
        assert_eq!(levels.last(), Some(&detected().level));
        assert!(levels.contains(&Level::best()));
    }

    #[test]
    fn dispatch_runs_the_lanes_of_the_level() {
        struct Width;
        impl Kernel for Width {
            type Output = usize;
            #[inline(always)]
            fn run<L: Lanes>(self, _: L) -> usize {
                L::N
            }
        }
        for level in Level::available() {
            let expected = match level {
                Level::Portable => 4,
                Level::Avx2 => 8,
                Level::Avx512 => 16,
            };
            assert_eq!(level.dispatch(Width), expected);
        }
    }
}
