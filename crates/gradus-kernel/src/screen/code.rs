//! Rows rounded to a few bits, with bounds on the rounding errors.

use super::super::rows::padded;
use super::{PANEL, TILE, WIDE};

/// Largest code of an item: with seven bits the sum of two products fits the 16-bit step of AVX2.
const ITEM: f64 = 63.0;
/// The offset that makes an item's code unsigned.
pub(super) const OFFSET: i32 = 64;
/// Largest code of a query.
const QUERY: f64 = 127.0;
/// The smallest scale: rows of nothing but tiny values must not make the reciprocal overflow.
const LEAST: f64 = 1e-18;
/// Relative room for the additions around the dot product.
const ROOM: f64 = 1.0 / (1 << 20) as f64;

/// Dimensions to a 32-bit lane.
const GROUP: usize = 4;

/// Sixteen items by four dimensions.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u8; PANEL * GROUP]);

/// Items, rounded and laid out to be multiplied with [`Queries`].
///
/// # Shapes
/// Items in panels of [`PANEL`], in the order in which they were given, padded to whole panels.
#[derive(Clone, Debug)]
pub struct Screen {
    k: usize,
    n: usize,
    /// Panel by panel, group of dimensions by group.
    pub(super) lines: Vec<Line>,
    /// For each item, 1 / scale,
    pub(super) inverse: Vec<f32>,
    /// bias / scale,
    pub(super) bias: Vec<f32>,
    /// the norm of the codes,
    pub(super) size: Vec<f32>,
    /// and the norm of what rounding lost / scale.
    pub(super) error: Vec<f32>,
    largest_bias: f64,
}

impl Screen {
    /// Rounds items given by their rows and biases.
    ///
    /// # Shapes
    /// Rows of `padded(k)` values. Panics on other lengths.
    pub fn new<'a>(k: usize, items: impl ExactSizeIterator<Item = (&'a [f32], f32)>) -> Screen {
        let n = items.len();
        let slots = n.next_multiple_of(PANEL * WIDE);
        let groups = padded(k) / GROUP;
        let mut screen = Screen {
            k,
            n,
            lines: vec![Line([OFFSET as u8; PANEL * GROUP]); slots / PANEL * groups],
            inverse: vec![1.0; slots],
            bias: vec![0.0; slots],
            size: vec![0.0; slots],
            error: vec![0.0; slots],
            largest_bias: 0.0,
        };
        // Twice the number of additions, and then some: see the module's notes on rounding.
        let delta = (2 * padded(k) + 64) as f64 * f64::from(f32::EPSILON);
        for (item, (row, bias)) in items.enumerate() {
            assert_eq!(row.len(), padded(k), "a row of padded length");
            let scale = scale(row, ITEM);
            let (mut size, mut lost, mut whole) = (0.0, 0.0, 0.0);
            let (panel, lane) = (item / PANEL, item % PANEL);
            for (d, &value) in row.iter().enumerate() {
                let code = (f64::from(value) / scale).round();
                size += code * code;
                lost += (f64::from(value) - scale * code).powi(2);
                whole += f64::from(value).powi(2);
                let line = &mut screen.lines[panel * groups + d / GROUP];
                line.0[lane * GROUP + d % GROUP] = (code as i32 + OFFSET) as u8;
            }
            screen.inverse[item] = (1.0 / scale) as f32;
            screen.bias[item] = (f64::from(bias) / scale) as f32;
            screen.size[item] = up(size.sqrt());
            screen.error[item] = up((lost.sqrt() + delta * whole.sqrt()) / scale);
            screen.largest_bias = screen.largest_bias.max(f64::from(bias).abs());
        }
        screen
    }

    /// The number of items.
    pub fn n_items(&self) -> usize {
        self.n
    }

    /// The number of panels, a multiple of [`Screen::STEP`].
    pub fn n_panels(&self) -> usize {
        self.inverse.len() / PANEL
    }

    /// Panels are asked for in multiples of this.
    pub const STEP: usize = WIDE;

    pub(super) fn groups(&self) -> usize {
        padded(self.k) / GROUP
    }
}

/// Queries, rounded, with the limit that each has at the moment.
#[derive(Clone, Debug)]
pub struct Queries {
    k: usize,
    n: usize,
    /// Tile by tile, group of dimensions by group, the four codes of each query of the tile.
    pub(super) codes: Vec<[i32; TILE]>,
    pub(super) tiles: Vec<Tile>,
    scales: Vec<f64>,
}

/// The values of a tile of queries beside the codes, all in units of the query's scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    /// The contribution of the offset of the items' codes, negative.
    pub(super) start: [i32; TILE],
    /// The limit, less the constant.
    pub(super) limit: [f32; TILE],
    /// 1 / scale.
    pub(super) inverse: [f32; TILE],
    /// The norm of what rounding lost.
    pub(super) error: [f32; TILE],
    /// The norm.
    pub(super) size: [f32; TILE],
}

impl Queries {
    /// Rounds queries given by their rows; until a limit is set, nothing passes.
    ///
    /// # Shapes
    /// Rows of `padded(k)` values. Panics on other lengths.
    pub fn new<'a>(k: usize, rows: impl ExactSizeIterator<Item = &'a [f32]>) -> Queries {
        let n = rows.len();
        let (n_tiles, groups) = (n.div_ceil(TILE), padded(k) / GROUP);
        let empty = Tile {
            start: [0; TILE],
            limit: [f32::INFINITY; TILE],
            inverse: [1.0; TILE],
            error: [0.0; TILE],
            size: [0.0; TILE],
        };
        let mut queries = Queries {
            k,
            n,
            codes: vec![[0; TILE]; n_tiles * groups],
            tiles: vec![empty; n_tiles],
            scales: Vec::with_capacity(n),
        };
        for (query, row) in rows.enumerate() {
            assert_eq!(row.len(), padded(k), "a row of padded length");
            let scale = scale(row, QUERY);
            let (tile, lane) = (query / TILE, query % TILE);
            let (mut sum, mut lost, mut whole) = (0, 0.0, 0.0);
            for (g, values) in row.chunks_exact(GROUP).enumerate() {
                let mut bytes = [0u8; GROUP];
                for (byte, &value) in bytes.iter_mut().zip(values) {
                    let code = (f64::from(value) / scale).round();
                    lost += (f64::from(value) - scale * code).powi(2);
                    whole += f64::from(value).powi(2);
                    sum += code as i32;
                    *byte = code as i8 as u8;
                }
                queries.codes[tile * groups + g][lane] = i32::from_le_bytes(bytes);
            }
            let tile = &mut queries.tiles[tile];
            tile.start[lane] = -OFFSET * sum;
            tile.inverse[lane] = (1.0 / scale) as f32;
            tile.error[lane] = up(lost.sqrt() / scale);
            tile.size[lane] = up(whole.sqrt() / scale);
            queries.scales.push(scale);
        }
        queries
    }

    /// The number of queries.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The number of tiles.
    pub fn n_tiles(&self) -> usize {
        self.tiles.len()
    }

    /// Raises the limit: from now on, only items of `screen` pass whose score `constant + bias + x·y` may reach
    /// `limit`.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn set_limit(&mut self, screen: &Screen, query: usize, constant: f32, limit: f32) {
        let (constant, limit) = (f64::from(constant), f64::from(limit));
        let room = ROOM * (constant.abs() + limit.abs() + screen.largest_bias);
        // Not the difference of infinities, where the limit is that anything goes.
        let least = if limit == f64::NEG_INFINITY { limit } else { limit - constant - room };
        self.tiles[query / TILE].limit[query % TILE] = (least / self.scales[query]) as f32;
    }

    pub(super) fn groups(&self) -> usize {
        padded(self.k) / GROUP
    }
}

/// Returns the value of one step of a code, so that the largest value gets the largest code.
fn scale(row: &[f32], largest: f64) -> f64 {
    let most = row.iter().fold(0f32, |most, value| most.max(value.abs()));
    if most == 0.0 { 1.0 } else { (f64::from(most) / largest).max(LEAST) }
}

/// Rounds to single precision, never down.
fn up(value: f64) -> f32 {
    (value * (1.0 + 4.0 * f64::from(f32::EPSILON))) as f32
}
