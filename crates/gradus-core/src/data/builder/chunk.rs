//! Ratings as they arrive: chunks of a fixed number of rows.
//!
//! A growing `Vec` needs up to three times its size while it doubles. Chunks do not, and each can go
//! as soon as it is drained. They are mapped rather than allocated because an allocator may keep
//! freed memory: with glibc's, 240 MB of drained chunks stayed resident beside the finished matrix.

use memmap2::MmapMut;

/// Rows in a chunk: 3 MiB of them.
pub(super) const CHUNK_ROWS: usize = 1 << 18;

enum Pages {
    Mapped(MmapMut),
    /// Where mapping is refused or there is none.
    Heap(Vec<u32>),
}

/// A fixed number of rows: user, item, value and, in a weighted chunk, weight.
pub(super) struct Chunk {
    pages: Pages,
    rows: usize,
    len: usize,
    weighted: bool,
}

/// The free rest of a chunk.
pub(super) struct Room<'a> {
    pub users: &'a mut [u32],
    pub items: &'a mut [u32],
    pub values: &'a mut [f32],
    pub weights: Option<&'a mut [f32]>,
}

/// The rows of a chunk.
pub(super) struct Rows<'a> {
    pub users: &'a [u32],
    pub items: &'a [u32],
    pub values: &'a [f32],
    pub weights: Option<&'a [f32]>,
}

impl Chunk {
    pub(super) fn new(rows: usize, weighted: bool) -> Self {
        let words = rows * if weighted { 4 } else { 3 };
        let pages = match MmapMut::map_anon(words * 4) {
            Ok(map) => Pages::Mapped(map),
            Err(_) => Pages::Heap(vec![0; words]),
        };
        Self { pages, rows, len: 0, weighted }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.rows
    }

    pub(super) fn is_weighted(&self) -> bool {
        self.weighted
    }

    /// Room for up to `n` more rows; [`grow`](Self::grow) makes them count.
    pub(super) fn room(&mut self, n: usize) -> Room<'_> {
        let (len, rows, weighted) = (self.len, self.rows, self.weighted);
        let end = rows.min(len + n);
        let words: &mut [u32] = match &mut self.pages {
            Pages::Mapped(map) => bytemuck::cast_slice_mut(map),
            Pages::Heap(words) => words,
        };
        let (users, words) = words.split_at_mut(rows);
        let (items, words) = words.split_at_mut(rows);
        let (values, weights) = words.split_at_mut(rows);
        Room {
            users: &mut users[len..end],
            items: &mut items[len..end],
            values: &mut bytemuck::cast_slice_mut(values)[len..end],
            weights: weighted.then(|| &mut bytemuck::cast_slice_mut(weights)[len..end]),
        }
    }

    /// Counts `n` rows of the [`room`](Self::room) as written.
    pub(super) fn grow(&mut self, n: usize) {
        assert!(self.len + n <= self.rows);
        self.len += n;
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        let (len, rows) = (self.len, self.rows);
        let words: &[u32] = match &self.pages {
            Pages::Mapped(map) => bytemuck::cast_slice(map),
            Pages::Heap(words) => words,
        };
        let (users, words) = words.split_at(rows);
        let (items, words) = words.split_at(rows);
        let (values, weights) = words.split_at(rows);
        Rows {
            users: &users[..len],
            items: &items[..len],
            values: &bytemuck::cast_slice(values)[..len],
            weights: self.weighted.then(|| &bytemuck::cast_slice(weights)[..len]),
        }
    }
}
