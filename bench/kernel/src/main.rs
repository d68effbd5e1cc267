//! How near the least-squares kernel comes to the matrix-multiply rate of this machine.
//!
//! Measures single-precision matrix multiplication (1024³), then whole iterations of alternating
//! least squares with a bias, over a synthetic 138,493 × 26,744 matrix of 20 M ratings with
//! power-law popularity. Run it with
//!
//! ```text
//! cargo run --release --manifest-path bench/kernel/Cargo.toml [-- K ...]
//! ```
//!
//! Useful operations are counted, whatever the kernel really does: for each rating and side
//! `k(k+1) + 4k`, for each row `k³/3 + 4k²`. Rates are given by wall clock and by processor time;
//! where other work shares the machine, only the second is fair.

use std::time::Instant;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use gradus_kernel::{Level, RowProblem, RowSolver, Rows};
use rayon::prelude::*;

const N_USERS: usize = 138_493;
const N_ITEMS: usize = 26_744;
const N_RATINGS: usize = 20_000_000;
const ITERATIONS: usize = 4;

fn main() {
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|k| k.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![16, 32, 64, 128] } else { asked };
    let level = Level::best();
    let threads = rayon::current_num_threads();
    println!("level {level}, {threads} threads");

    let one = gemm_rate(1);
    let all = gemm_rate(threads);
    println!("gemm 1024³: {:.1} GF/s on 1 thread (wall)", one.0);
    println!("gemm 1024³: {:.1} GF/s on {threads} threads (wall), {:.1} (cpu)", all.0, all.1);

    let users = ratings();
    let items = users.transposed(N_ITEMS);
    println!("{} ratings", users.indices.len());
    println!("   k   s/iter   users   items    GF/s   wall%    cpu%  rmse    fallbacks");
    for k in sizes {
        measure(k, level, threads, all, &users, &items);
    }
}

fn measure(k: usize, level: Level, threads: usize, peak: (f64, f64), users: &Csr, items: &Csr) {
    let mut user_rows = Rows::zeros(N_USERS, k);
    let mut item_rows = Rows::zeros(N_ITEMS, k);
    let mut random = Random(7);
    for i in 0..N_ITEMS {
        item_rows.row_mut(i)[..k].fill_with(|| 0.3 * random.normal() as f32);
    }
    let kf = k as f64;
    let per_half = |n: usize, rows: usize| {
        n as f64 * (kf * (kf + 1.0) + 4.0 * kf) + rows as f64 * (kf.powi(3) / 3.0 + 4.0 * kf * kf)
    };
    let flops = per_half(users.indices.len(), N_USERS) + per_half(items.indices.len(), N_ITEMS);
    let mut best = (f64::INFINITY, 0.0, 0.0);
    let mut best_cpu = f64::INFINITY;
    let mut seen = Seen::default();
    for _ in 0..ITERATIONS {
        let (cpu, wall) = (cpu_seconds(), Instant::now());
        seen = half(level, users, &item_rows, &mut user_rows, true);
        let middle = wall.elapsed().as_secs_f64();
        half(level, items, &user_rows, &mut item_rows, false);
        let total = wall.elapsed().as_secs_f64();
        if total < best.0 {
            best = (total, middle, total - middle);
        }
        best_cpu = best_cpu.min(cpu_seconds() - cpu);
    }
    let rate = flops / best.0 / 1e9;
    let cpu_rate = flops / best_cpu * threads as f64 / 1e9;
    println!(
        "{k:4} {:8.3} {:7.3} {:7.3} {rate:7.1} {:6.1}% {:6.1}%  {:.4}  {}",
        best.0,
        best.1,
        best.2,
        100.0 * rate / peak.0,
        100.0 * cpu_rate / peak.1,
        (seen.squares / users.indices.len() as f64).sqrt(),
        seen.fallbacks,
    );
}

#[derive(Clone, Copy, Default)]
struct Seen {
    squares: f64,
    fallbacks: usize,
}

/// Solves every row of one side, in chunks spread over the threads.
fn half(level: Level, ratings: &Csr, fixed: &Rows, solved: &mut Rows, residuals: bool) -> Seen {
    const CHUNK: usize = 64;
    let (k, stride) = (solved.k(), solved.stride());
    let chunks: Vec<Seen> = solved
        .as_mut_slice()
        .par_chunks_mut(CHUNK * stride)
        .enumerate()
        .map_init(
            || RowSolver::new(k, level),
            |solver, (c, chunk)| {
                let mut seen = Seen::default();
                for (i, out) in chunk.chunks_mut(stride).enumerate() {
                    let range = ratings.range(c * CHUNK + i);
                    let problem = RowProblem {
                        factors: fixed.as_slice(),
                        indices: &ratings.indices[range.clone()],
                        targets: &ratings.values[range.clone()],
                        weights: None,
                        lambda: 0.05 * range.len().max(1) as f32,
                        bias: Some(0.05 * range.len().max(1) as f32),
                        base: None,
                        linear: None,
                        residuals,
                        upcoming: &ratings.indices[range.end..],
                    };
                    let found = solver.solve(&problem, out);
                    seen.squares += found.squares;
                    seen.fallbacks += usize::from(found.fallback);
                }
                seen
            },
        )
        .collect();
    chunks.iter().fold(Seen::default(), |a, b| Seen {
        squares: a.squares + b.squares,
        fallbacks: a.fallbacks + b.fallbacks,
    })
}

struct Csr {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Csr {
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    fn transposed(&self, n_rows: usize) -> Csr {
        let mut starts = vec![0; n_rows + 1];
        self.indices.iter().for_each(|&i| starts[i as usize + 1] += 1);
        (0..n_rows).for_each(|i| starts[i + 1] += starts[i]);
        let mut next = starts.clone();
        let mut indices = vec![0; self.indices.len()];
        let mut values = vec![0.0; self.indices.len()];
        for row in 0..self.starts.len() - 1 {
            for at in self.range(row) {
                let to = &mut next[self.indices[at] as usize];
                (indices[*to], values[*to]) = (row as u32, self.values[at]);
                *to += 1;
            }
        }
        Csr { starts, indices, values }
    }
}

/// Lognormal activity (20 ratings at least), power-law popularity, item numbers shuffled.
fn ratings() -> Csr {
    let mut random = Random(42);
    let mut degrees: Vec<f64> = (0..N_USERS).map(|_| (1.25 * random.normal()).exp()).collect();
    let scale = (N_RATINGS - 20 * N_USERS) as f64 / degrees.iter().sum::<f64>();
    degrees.iter_mut().for_each(|d| *d = (20.0 + *d * scale).min(9000.0));
    let mut names: Vec<u32> = (0..N_ITEMS as u32).collect();
    for i in (1..N_ITEMS).rev() {
        names.swap(i, (random.uniform() * (i + 1) as f64) as usize);
    }
    let mut starts = vec![0];
    let mut indices = Vec::with_capacity(N_RATINGS);
    let mut values = Vec::with_capacity(N_RATINGS);
    for degree in degrees {
        let start = indices.len();
        for _ in 0..degree.round() as usize {
            let rank = (random.uniform().powi(4) * N_ITEMS as f64) as usize;
            indices.push(names[rank]);
            values.push((random.uniform() * 5.0 - 2.5) as f32);
        }
        indices[start..].sort_unstable();
        starts.push(indices.len());
    }
    Csr { starts, indices, values }
}

/// GF/s of independent single-threaded products, one a thread: by wall clock and by processor time.
fn gemm_rate(threads: usize) -> (f64, f64) {
    const N: usize = 1024;
    const PRODUCTS: usize = 12;
    let flops = 2.0 * (N as f64).powi(3) * (PRODUCTS * threads) as f64 / 1e9;
    let mut best = (0.0f64, 0.0f64);
    for _ in 0..4 {
        let (cpu, wall) = (cpu_seconds(), Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let a = Mat::<f32>::from_fn(N, N, |i, j| ((i + j) % 7) as f32);
                    let mut c = Mat::<f32>::zeros(N, N);
                    for _ in 0..PRODUCTS {
                        matmul(&mut c, Accum::Replace, &a, &a, 1.0, Par::Seq);
                    }
                    std::hint::black_box(&c);
                });
            }
        });
        best.0 = best.0.max(flops / wall.elapsed().as_secs_f64());
        best.1 = best.1.max(flops * threads as f64 / (cpu_seconds() - cpu));
    }
    best
}

/// Processor time this process has used, all threads together.
fn cpu_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for one `rusage`, of which all-zero bytes are a value.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// A small generator: the data need only look random.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
