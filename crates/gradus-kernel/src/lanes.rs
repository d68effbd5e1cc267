//! One vector register's worth of `f32`, whatever its width.

#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

/// The vector of a level: what the kernels are written over.
///
/// `load` and `store` take the first `N` values of a slice, at any alignment, and check its length.
pub(crate) trait Lanes: Copy {
    /// A vector of `N` values.
    type V: Copy;
    /// A vector of `N / 2` values in double precision, of the same width.
    type D: Copy;
    /// Lanes eight wide, for the pieces of a matrix that end on a multiple of 8.
    type Eight: Lanes;
    /// Values in a vector: 4, 8 or 16.
    const N: usize;
    /// Rows of a register tile three vectors wide.
    const TILE_ROWS: usize;

    fn eight(self) -> Self::Eight;
    fn splat(self, value: f32) -> Self::V;
    fn load(self, from: &[f32]) -> Self::V;
    fn store(self, to: &mut [f32], v: Self::V);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `c - a * b`.
    fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger of two values, lane by lane; none may be NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller of two values, lane by lane; none may be NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lane by lane `x` where `a > b`, else `y`.
    fn where_greater(self, a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V;
    /// The sum over the lanes, in an order fixed by the level.
    fn sum(self, v: Self::V) -> f32;
    fn lane(self, v: Self::V, i: usize) -> f32;

    #[inline(always)]
    fn zero(self) -> Self::V {
        self.splat(0.0)
    }

    /// `a * b + c` in double precision, fused where the level has that: a loop of these over an
    /// array becomes vector code.
    fn fma64(self, a: f64, b: f64, c: f64) -> f64;

    fn splat64(self, value: f64) -> Self::D;
    fn load64(self, from: &[f64]) -> Self::D;
    fn store64(self, to: &mut [f64], v: Self::D);
    fn add64s(self, a: Self::D, b: Self::D) -> Self::D;
    /// `a * b + c`.
    fn fma64s(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D;
}

#[cfg(target_arch = "x86_64")]
macro_rules! pulp_lanes {
    ($simd:ty, $n:literal, $half:literal, $rows:literal, |$this:ident| $eight:expr) => {
        impl Lanes for $simd {
            type V = <$simd as pulp::Simd>::f32s;
            type D = <$simd as pulp::Simd>::f64s;
            type Eight = V3;
            const N: usize = $n;
            const TILE_ROWS: usize = $rows;

            #[inline(always)]
            fn eight(self) -> V3 {
                let $this = self;
                $eight
            }
            #[inline(always)]
            fn splat(self, value: f32) -> Self::V {
                pulp::Simd::splat_f32s(self, value)
            }
            #[inline(always)]
            fn load(self, from: &[f32]) -> Self::V {
                let values: &[f32; $n] = from.first_chunk().expect("a slice of a vector or more");
                pulp::cast(*values)
            }
            #[inline(always)]
            fn store(self, to: &mut [f32], v: Self::V) {
                let to: &mut [f32; $n] = to.first_chunk_mut().expect("a slice of a vector or more");
                *to = pulp::cast(v);
            }
            #[inline(always)]
            fn add(self, a: Self::V, b: Self::V) -> Self::V {
                pulp::Simd::add_f32s(self, a, b)
            }
            #[inline(always)]
            fn sub(self, a: Self::V, b: Self::V) -> Self::V {
                pulp::Simd::sub_f32s(self, a, b)
            }
            #[inline(always)]
            fn mul(self, a: Self::V, b: Self::V) -> Self::V {
                pulp::Simd::mul_f32s(self, a, b)
            }
            #[inline(always)]
            fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                pulp::Simd::mul_add_e_f32s(self, a, b, c)
            }
            #[inline(always)]
            fn fma64(self, a: f64, b: f64, c: f64) -> f64 {
                a.mul_add(b, c)
            }
            #[inline(always)]
            fn splat64(self, value: f64) -> Self::D {
                pulp::Simd::splat_f64s(self, value)
            }
            #[inline(always)]
            fn load64(self, from: &[f64]) -> Self::D {
                let values: &[f64; $half] =
                    from.first_chunk().expect("a slice of a vector or more");
                pulp::cast(*values)
            }
            #[inline(always)]
            fn store64(self, to: &mut [f64], v: Self::D) {
                let to: &mut [f64; $half] =
                    to.first_chunk_mut().expect("a slice of a vector or more");
                *to = pulp::cast(v);
            }
            #[inline(always)]
            fn add64s(self, a: Self::D, b: Self::D) -> Self::D {
                pulp::Simd::add_f64s(self, a, b)
            }
            #[inline(always)]
            fn fma64s(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D {
                pulp::Simd::mul_add_e_f64s(self, a, b, c)
            }
            #[inline(always)]
            fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                pulp::Simd::negate_mul_add_e_f32s(self, a, b, c)
            }
            #[inline(always)]
            fn max(self, a: Self::V, b: Self::V) -> Self::V {
                pulp::Simd::max_f32s(self, a, b)
            }
            #[inline(always)]
            fn min(self, a: Self::V, b: Self::V) -> Self::V {
                pulp::Simd::min_f32s(self, a, b)
            }
            #[inline(always)]
            fn where_greater(self, a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V {
                pulp::Simd::select_f32s(self, pulp::Simd::greater_than_f32s(self, a, b), x, y)
            }
            #[inline(always)]
            fn sum(self, v: Self::V) -> f32 {
                pulp::Simd::reduce_sum_f32s(self, v)
            }
            #[inline(always)]
            fn lane(self, v: Self::V, i: usize) -> f32 {
                let values: [f32; $n] = pulp::cast(v);
                values[i]
            }
        }
    };
}

// Sixteen registers hold 4 × 3 accumulators beside one row of operands; thirty-two hold 8 × 3.
#[cfg(target_arch = "x86_64")]
pulp_lanes!(V3, 8, 4, 4, |simd| simd);
#[cfg(target_arch = "x86_64")]
pulp_lanes!(V4, 16, 8, 8, |simd| *simd);

macro_rules! portable_lanes {
    ($name:ident, $n:literal, $half:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl Lanes for $name {
            type V = [f32; $n];
            type D = [f64; $half];
            type Eight = Eight;
            const N: usize = $n;
            const TILE_ROWS: usize = 4;

            #[inline(always)]
            fn eight(self) -> Eight {
                Eight
            }
            #[inline(always)]
            fn splat(self, value: f32) -> Self::V {
                [value; $n]
            }
            #[inline(always)]
            fn load(self, from: &[f32]) -> Self::V {
                *from.first_chunk().expect("a slice of a vector or more")
            }
            #[inline(always)]
            fn store(self, to: &mut [f32], v: Self::V) {
                *to.first_chunk_mut().expect("a slice of a vector or more") = v;
            }
            #[inline(always)]
            fn add(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] + b[i])
            }
            #[inline(always)]
            fn sub(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] - b[i])
            }
            #[inline(always)]
            fn mul(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i])
            }
            #[inline(always)]
            fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i] + c[i])
            }
            #[inline(always)]
            fn fnma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|i| c[i] - a[i] * b[i])
            }
            #[inline(always)]
            fn fma64(self, a: f64, b: f64, c: f64) -> f64 {
                a * b + c
            }
            #[inline(always)]
            fn splat64(self, value: f64) -> Self::D {
                [value; $half]
            }
            #[inline(always)]
            fn load64(self, from: &[f64]) -> Self::D {
                *from.first_chunk().expect("a slice of a vector or more")
            }
            #[inline(always)]
            fn store64(self, to: &mut [f64], v: Self::D) {
                *to.first_chunk_mut().expect("a slice of a vector or more") = v;
            }
            #[inline(always)]
            fn add64s(self, a: Self::D, b: Self::D) -> Self::D {
                std::array::from_fn(|i| a[i] + b[i])
            }
            #[inline(always)]
            fn fma64s(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D {
                std::array::from_fn(|i| a[i] * b[i] + c[i])
            }
            #[inline(always)]
            fn max(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
            }
            #[inline(always)]
            fn min(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
            }
            #[inline(always)]
            fn where_greater(self, a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V {
                std::array::from_fn(|i| if a[i] > b[i] { x[i] } else { y[i] })
            }
            #[inline(always)]
            fn sum(self, mut v: Self::V) -> f32 {
                let mut half = $n / 2;
                while half > 0 {
                    for i in 0..half {
                        v[i] += v[i + half];
                    }
                    half /= 2;
                }
                v[0]
            }
            #[inline(always)]
            fn lane(self, v: Self::V, i: usize) -> f32 {
                v[i]
            }
        }
    };
}

portable_lanes!(Four, 4, 2, "Four lanes in plain Rust: the width of the baseline registers.");
portable_lanes!(Eight, 8, 4, "Eight lanes in plain Rust.");
