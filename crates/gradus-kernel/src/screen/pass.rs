//! The integer products, and the comparison with the limits.

use super::super::Level;
use super::code::{Line, Queries, Screen, Tile};
use super::{PANEL, TILE, WIDE};
use std::ops::Range;

impl Screen {
    /// Whether screening at this level is faster than taking every product in full: not in plain
    /// Rust, which has no instruction that adds products of bytes.
    pub fn pays(level: Level) -> bool {
        level > Level::Portable
    }

    /// Marks the items of these panels that may reach the limits of a tile of queries: bit `i` of `passed[q *
    /// panels.len() + p]` is for item `i` of the `p`-th of the panels and query `q` of the tile. Bits of items that pad
    /// the last panel mean nothing.
    ///
    /// # Shapes
    /// `panels` starts and ends on a multiple of [`Screen::STEP`]; `passed` has `TILE` rows of
    /// `panels.len()`. Panics on other lengths, on a tile or panel that is not there, and on queries
    /// of another length than the items.
    pub fn pass(
        &self,
        level: Level,
        queries: &Queries,
        tile: usize,
        panels: Range<usize>,
        passed: &mut [u16],
    ) {
        let groups = self.groups();
        assert_eq!(groups, queries.groups(), "queries and items of one length");
        assert!(
            panels.start.is_multiple_of(WIDE) && panels.end.is_multiple_of(WIDE),
            "whole steps"
        );
        assert_eq!(passed.len(), TILE * panels.len(), "one row of bits for each query");
        let items = panels.start * PANEL..panels.end * PANEL;
        let work = Work {
            groups,
            codes: &queries.codes[tile * groups..][..groups],
            tile: &queries.tiles[tile],
            lines: &self.lines[panels.start * groups..panels.end * groups],
            inverse: &self.inverse[items.clone()],
            bias: &self.bias[items.clone()],
            size: &self.size[items.clone()],
            error: &self.error[items],
            n_panels: panels.len(),
        };
        #[cfg(target_arch = "x86_64")]
        {
            if level == Level::Avx512 && x86::has_vnni() {
                // SAFETY: the processor has what the function is compiled for.
                unsafe { x86::vnni(&work, passed) };
                return;
            }
            if level >= Level::Avx2 && x86::has_avx2() {
                // SAFETY: the processor has what the function is compiled for.
                unsafe { x86::avx2(&work, passed) };
                return;
            }
        }
        let _ = level;
        portable(&work, passed);
    }
}

/// A tile of queries and some panels of items, cut to size.
struct Work<'a> {
    groups: usize,
    codes: &'a [[i32; TILE]],
    tile: &'a Tile,
    lines: &'a [Line],
    inverse: &'a [f32],
    bias: &'a [f32],
    size: &'a [f32],
    error: &'a [f32],
    n_panels: usize,
}

/// The pass in plain Rust, for any processor.
fn portable(work: &Work<'_>, passed: &mut [u16]) {
    let tile = work.tile;
    for panel in 0..work.n_panels {
        let lines = &work.lines[panel * work.groups..][..work.groups];
        for q in 0..TILE {
            let mut sums = [tile.start[q]; PANEL];
            for (line, codes) in lines.iter().zip(work.codes) {
                let codes = codes[q].to_le_bytes().map(|code| i32::from(code as i8));
                for (sum, item) in sums.iter_mut().zip(line.0.chunks_exact(codes.len())) {
                    for (&item, code) in item.iter().zip(codes) {
                        *sum += i32::from(item) * code;
                    }
                }
            }
            let mut bits = 0;
            for (lane, sum) in sums.into_iter().enumerate() {
                let at = panel * PANEL + lane;
                let over = sum as f32 - tile.limit[q] * work.inverse[at]
                    + tile.inverse[q] * work.bias[at]
                    + tile.error[q] * work.size[at]
                    + tile.size[q] * work.error[at];
                // What is not a number passes.
                let below = over < 0.0;
                bits |= u16::from(!below) << lane;
            }
            passed[q * work.n_panels + panel] = bits;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{PANEL, TILE, WIDE, Work};
    use core::arch::x86_64::*;
    use std::arch::is_x86_feature_detected;

    pub(super) fn has_vnni() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")
    }

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    /// Sixteen lanes, four products to each lane and instruction.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) fn vnni(work: &Work<'_>, passed: &mut [u16]) {
        let (tile, groups, n_panels) = (work.tile, work.groups, work.n_panels);
        assert_eq!(work.codes.len(), groups);
        assert_eq!(work.lines.len(), groups * n_panels);
        for first in (0..n_panels).step_by(WIDE) {
            let mut sums = [[_mm512_setzero_si512(); WIDE]; TILE];
            for q in 0..TILE {
                sums[q] = [_mm512_set1_epi32(tile.start[q]); WIDE];
            }
            let lines = &work.lines[first * groups..][..WIDE * groups];
            for (g, codes) in work.codes.iter().enumerate() {
                let mut items = [_mm512_setzero_si512(); WIDE];
                for w in 0..WIDE {
                    let line = &lines[w * groups + g].0;
                    // SAFETY: a line is 64 bytes and aligned to them.
                    items[w] = unsafe { _mm512_load_si512(line.as_ptr().cast()) };
                }
                for q in 0..TILE {
                    let query = _mm512_set1_epi32(codes[q]);
                    for w in 0..WIDE {
                        sums[q][w] = _mm512_dpbusd_epi32(sums[q][w], items[w], query);
                    }
                }
            }
            for w in 0..WIDE {
                let at = (first + w) * PANEL;
                let [inverse, bias, size, error] = [work.inverse, work.bias, work.size, work.error]
                    .map(|of| {
                        let of = &of[at..at + PANEL];
                        // SAFETY: the slice is sixteen values long.
                        unsafe { _mm512_loadu_ps(of.as_ptr()) }
                    });
                for q in 0..TILE {
                    let mut over = _mm512_cvtepi32_ps(sums[q][w]);
                    over = _mm512_fnmadd_ps(_mm512_set1_ps(tile.limit[q]), inverse, over);
                    over = _mm512_fmadd_ps(_mm512_set1_ps(tile.inverse[q]), bias, over);
                    over = _mm512_fmadd_ps(_mm512_set1_ps(tile.error[q]), size, over);
                    over = _mm512_fmadd_ps(_mm512_set1_ps(tile.size[q]), error, over);
                    // What is not a number passes.
                    passed[q * n_panels + first + w] =
                        _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(over, _mm512_setzero_ps());
                }
            }
        }
    }

    /// Eight lanes; the products are added in pairs at 16 bits, then at 32.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2(work: &Work<'_>, passed: &mut [u16]) {
        const QUERIES: usize = 4;
        let (tile, groups, n_panels) = (work.tile, work.groups, work.n_panels);
        assert_eq!(work.codes.len(), groups);
        let ones = _mm256_set1_epi16(1);
        for panel in 0..n_panels {
            let lines = &work.lines[panel * groups..][..groups];
            for first in (0..TILE).step_by(QUERIES) {
                let mut sums = [[_mm256_setzero_si256(); 2]; QUERIES];
                for q in 0..QUERIES {
                    sums[q] = [_mm256_set1_epi32(tile.start[first + q]); 2];
                }
                for (line, codes) in lines.iter().zip(work.codes) {
                    let halves = line.0.as_ptr().cast::<__m256i>();
                    // SAFETY: a line is 64 bytes, aligned to them: two vectors of 32.
                    let items =
                        unsafe { [_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))] };
                    for q in 0..QUERIES {
                        let query = _mm256_set1_epi32(codes[first + q]);
                        for half in 0..2 {
                            // 2 · 127 · 127 fits 16 bits, so nothing saturates.
                            let pairs = _mm256_maddubs_epi16(items[half], query);
                            let fours = _mm256_madd_epi16(pairs, ones);
                            sums[q][half] = _mm256_add_epi32(sums[q][half], fours);
                        }
                    }
                }
                for q in 0..QUERIES {
                    let mut bits = 0;
                    for half in 0..2 {
                        let at = panel * PANEL + 8 * half;
                        let [inverse, bias, size, error] =
                            [work.inverse, work.bias, work.size, work.error].map(|of| {
                                let of = &of[at..at + 8];
                                // SAFETY: the slice is eight values long.
                                unsafe { _mm256_loadu_ps(of.as_ptr()) }
                            });
                        let t = first + q;
                        let mut over = _mm256_cvtepi32_ps(sums[q][half]);
                        over = _mm256_fnmadd_ps(_mm256_set1_ps(tile.limit[t]), inverse, over);
                        over = _mm256_fmadd_ps(_mm256_set1_ps(tile.inverse[t]), bias, over);
                        over = _mm256_fmadd_ps(_mm256_set1_ps(tile.error[t]), size, over);
                        over = _mm256_fmadd_ps(_mm256_set1_ps(tile.size[t]), error, over);
                        let mask = _mm256_cmp_ps::<_CMP_NLT_UQ>(over, _mm256_setzero_ps());
                        bits |= (_mm256_movemask_ps(mask) as u16) << (8 * half);
                    }
                    passed[(first + q) * n_panels + panel] = bits;
                }
            }
        }
    }
}
