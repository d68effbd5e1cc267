//! Operations on long vectors: in parallel above some length, in blocks that depend on the length
//! alone, so that results do not depend on the number of threads.

use gradus_base::parallel;

/// Numbers in a block.
const BLOCK: usize = 1 << 14;
/// Shorter vectors are not worth the threads.
const PARALLEL: usize = 1 << 17;
/// Sums of a block are kept in this many parts, which a compiler can put into vector registers.
const LANES: usize = 8;

#[inline]
fn block_dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (mut x, mut y) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (x, y) in (&mut x).zip(&mut y) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let mut tail = 0.0;
    for (x, y) in x.remainder().iter().zip(y.remainder()) {
        tail += x * y;
    }
    sums.iter().sum::<f64>() + tail
}

#[inline]
fn block_axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[inline]
fn block_move(x: &[f64], t: f64, d: &[f64], out: &mut [f64]) {
    for ((out, x), d) in out.iter_mut().zip(x).zip(d) {
        *out = x + t * d;
    }
}

#[inline]
fn block_follow(z: &[f64], b: f64, d: &mut [f64]) {
    for (d, z) in d.iter_mut().zip(z) {
        *d = z + b * *d;
    }
}

#[inline]
fn block_negate(x: &[f64], out: &mut [f64]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = -x;
    }
}

#[inline]
fn block_subtract(a: &[f64], b: &[f64], out: &mut [f64]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a - b;
    }
}

/// The dot product.
///
/// # Shapes
/// Two vectors of one length; so of all functions here.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "two vectors of one length");
    if a.len() <= BLOCK {
        return block_dot(a, b);
    }
    if a.len() < PARALLEL {
        return a.chunks(BLOCK).zip(b.chunks(BLOCK)).map(|(a, b)| block_dot(a, b)).sum();
    }
    let parts = parallel::map(a.chunks(BLOCK).zip(b.chunks(BLOCK)), |(a, b)| block_dot(a, b));
    parts.into_iter().sum()
}

/// The Euclidean norm; right also where the squares would leave the range of a double.
pub fn norm(x: &[f64]) -> f64 {
    let square = dot(x, x);
    if square.is_normal() && square < 1e300 && square > 1e-280 {
        return square.sqrt();
    }
    let largest = largest(x);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * x.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

/// The largest absolute value; NaN if there is one.
pub(crate) fn largest(x: &[f64]) -> f64 {
    x.iter()
        .fold(0.0, |m: f64, &x| if x.is_nan() || m.is_nan() { f64::NAN } else { m.max(x.abs()) })
}

/// `y ← y + a x`.
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len(), "two vectors of one length");
    if y.len() < PARALLEL {
        return block_axpy(a, x, y);
    }
    parallel::each(y.chunks_mut(BLOCK).zip(x.chunks(BLOCK)), |(y, x)| block_axpy(a, x, y));
}

/// `y ← y + a x`, and the dot product of the new `y` with `z`, in one pass.
pub(crate) fn axpy_dot(a: f64, x: &[f64], y: &mut [f64], z: &[f64]) -> f64 {
    assert!(x.len() == y.len() && z.len() == y.len(), "three vectors of one length");
    let step = |((y, x), z): ((&mut [f64], &[f64]), &[f64])| {
        block_axpy(a, x, y);
        block_dot(y, z)
    };
    let blocks = y.chunks_mut(BLOCK).zip(x.chunks(BLOCK)).zip(z.chunks(BLOCK));
    if x.len() < PARALLEL {
        return blocks.map(step).sum();
    }
    parallel::map(blocks, step).into_iter().sum()
}

/// `x ← a x`.
pub fn scale(a: f64, x: &mut [f64]) {
    let block = |x: &mut [f64]| x.iter_mut().for_each(|x| *x *= a);
    if x.len() < PARALLEL {
        return block(x);
    }
    parallel::each(x.chunks_mut(BLOCK), block);
}

/// `out ← x + t d`.
pub(crate) fn move_along(x: &[f64], t: f64, d: &[f64], out: &mut [f64]) {
    assert!(x.len() == out.len() && d.len() == out.len(), "three vectors of one length");
    if x.len() < PARALLEL {
        return block_move(x, t, d, out);
    }
    let blocks = out.chunks_mut(BLOCK).zip(x.chunks(BLOCK)).zip(d.chunks(BLOCK));
    parallel::each(blocks, |((out, x), d)| block_move(x, t, d, out));
}

/// `d ← z + b d`.
pub(crate) fn follow(z: &[f64], b: f64, d: &mut [f64]) {
    assert_eq!(z.len(), d.len(), "two vectors of one length");
    if d.len() < PARALLEL {
        return block_follow(z, b, d);
    }
    parallel::each(d.chunks_mut(BLOCK).zip(z.chunks(BLOCK)), |(d, z)| block_follow(z, b, d));
}

/// `out ← −x`.
pub fn negate(x: &[f64], out: &mut [f64]) {
    assert_eq!(x.len(), out.len(), "two vectors of one length");
    if x.len() < PARALLEL {
        return block_negate(x, out);
    }
    parallel::each(out.chunks_mut(BLOCK).zip(x.chunks(BLOCK)), |(out, x)| block_negate(x, out));
}

/// `out ← a / b`, coordinate by coordinate, and the dot product of `a` with it.
pub(crate) fn divide_dot(a: &[f64], b: &[f64], out: &mut [f64]) -> f64 {
    assert!(a.len() == out.len() && b.len() == out.len(), "three vectors of one length");
    let step = |((out, a), b): ((&mut [f64], &[f64]), &[f64])| {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = a / b;
        }
        block_dot(a, out)
    };
    let blocks = out.chunks_mut(BLOCK).zip(a.chunks(BLOCK)).zip(b.chunks(BLOCK));
    if a.len() < PARALLEL {
        return blocks.map(step).sum();
    }
    parallel::map(blocks, step).into_iter().sum()
}

/// `out ← a − b`.
pub(crate) fn subtract(a: &[f64], b: &[f64], out: &mut [f64]) {
    assert!(a.len() == out.len() && b.len() == out.len(), "three vectors of one length");
    if a.len() < PARALLEL {
        return block_subtract(a, b, out);
    }
    let blocks = out.chunks_mut(BLOCK).zip(a.chunks(BLOCK)).zip(b.chunks(BLOCK));
    parallel::each(blocks, |((out, a), b)| block_subtract(a, b, out));
}

/// The distance of two points.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    let block =
        |(a, b): (&[f64], &[f64])| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum() };
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    if a.len() < PARALLEL {
        return blocks.map(block).sum::<f64>().sqrt();
    }
    parallel::map(blocks, block).into_iter().sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Stream;

    fn random(n: usize, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(3, "optim.vector", index);
        (0..n).map(|_| stream.normal()).collect()
    }

    #[test]
    fn every_length_agrees_with_the_plain_loop_and_every_pool_with_every_other() {
        for n in [0, 1, 7, 8, 9, BLOCK, BLOCK + 1, PARALLEL - 1, PARALLEL + 5] {
            let (a, b) = (random(n, 1), random(n, 2));
            let plain: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            let work = || {
                let mut y = b.clone();
                let fused = axpy_dot(0.5, &a, &mut y, &a);
                let mut moved = vec![0.0; n];
                move_along(&b, 0.5, &a, &mut moved);
                (dot(&a, &b), fused, y, moved, distance(&a, &b))
            };
            let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            let one = pool(1).install(work);
            assert_eq!(one, pool(3).install(work));
            assert!((one.0 - plain).abs() <= 1e-9 * (n as f64).max(1.0), "{n}");
            assert_eq!(one.2, one.3);
            assert!((one.1 - dot(&one.2, &a)).abs() <= 1e-9 * (n as f64).max(1.0), "{n}");
            let mut d = b.clone();
            follow(&a, 2.0, &mut d);
            assert!((0..n).all(|j| d[j] == a[j] + 2.0 * b[j]));
            negate(&a, &mut d);
            assert!((0..n).all(|j| d[j] == -a[j]));
            let sum = divide_dot(&a, &b, &mut d);
            assert!((0..n).all(|j| d[j] == a[j] / b[j]));
            let expected: f64 = (0..n).map(|j| a[j] * a[j] / b[j]).sum();
            let size: f64 = (0..n).map(|j| a[j] * a[j] / b[j].abs()).sum();
            assert!((sum - expected).abs() <= 1e-12 * size.max(1.0), "{n}");
            let mut apart = vec![0.0; n];
            subtract(&a, &b, &mut apart);
            assert!((one.4 - norm(&apart)).abs() <= 1e-9 * (n as f64).max(1.0), "{n}");
        }
    }

    #[test]
    fn norms_of_extreme_vectors_are_right() {
        assert!((norm(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert_eq!(norm(&[]), 0.0);
        assert_eq!(norm(&[0.0, 0.0]), 0.0);
        assert!(norm(&[1.0, f64::NAN]).is_nan());
        assert_eq!(norm(&[f64::INFINITY]), f64::INFINITY);
    }
}
