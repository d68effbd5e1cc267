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
    /// Heap memory, where mapping is refused or does not exist. Words of 8 bytes, because the chunk holds times too.
    Heap(Vec<u64>),
}

/// The optional columns of rows beside user, item and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extras {
    pub weights: bool,
    pub times: bool,
}

/// A fixed number of rows: time, if they have one, user, item, value and, if they have one, weight.
pub(super) struct Chunk {
    pages: Pages,
    rows: usize,
    len: usize,
    extras: Extras,
}

/// The free rest of a chunk.
pub(super) struct FreeRows<'a> {
    pub users: &'a mut [u32],
    pub items: &'a mut [u32],
    pub values: &'a mut [f32],
    pub weights: Option<&'a mut [f32]>,
    pub times: Option<&'a mut [i64]>,
}

/// The rows of a chunk.
pub(super) struct Rows<'a> {
    pub users: &'a [u32],
    pub items: &'a [u32],
    pub values: &'a [f32],
    pub weights: Option<&'a [f32]>,
    pub times: Option<&'a [i64]>,
}

impl Chunk {
    pub(super) fn new(rows: usize, extras: Extras) -> Self {
        let words = rows * (3 + usize::from(extras.weights) + 2 * usize::from(extras.times));
        let pages = match MmapMut::map_anon(words * 4) {
            Ok(map) => Pages::Mapped(map),
            Err(_) => Pages::Heap(vec![0; words.div_ceil(2)]),
        };
        Self { pages, rows, len: 0, extras }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.rows
    }

    pub(super) fn extras(&self) -> Extras {
        self.extras
    }

    /// The next `n` free rows, or as many as there are; [`grow`](Self::grow) makes them count.
    pub(super) fn free_rows(&mut self, n: usize) -> FreeRows<'_> {
        let (len, rows, extras) = (self.len, self.rows, self.extras);
        let end = rows.min(len + n);
        let words: &mut [u32] = match &mut self.pages {
            Pages::Mapped(map) => bytemuck::cast_slice_mut(map),
            Pages::Heap(words) => bytemuck::cast_slice_mut(words),
        };
        // Times come first, where they are aligned.
        let (times, words) = words.split_at_mut(if extras.times { 2 * rows } else { 0 });
        let (users, words) = words.split_at_mut(rows);
        let (items, words) = words.split_at_mut(rows);
        let (values, weights) = words.split_at_mut(rows);
        FreeRows {
            users: &mut users[len..end],
            items: &mut items[len..end],
            values: &mut bytemuck::cast_slice_mut(values)[len..end],
            weights: extras.weights.then(|| &mut bytemuck::cast_slice_mut(weights)[len..end]),
            times: extras.times.then(|| &mut bytemuck::cast_slice_mut(times)[len..end]),
        }
    }

    /// Counts `n` rows of the [`free_rows`](Self::free_rows) as written.
    pub(super) fn grow(&mut self, n: usize) {
        assert!(self.len + n <= self.rows);
        self.len += n;
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        let (len, rows) = (self.len, self.rows);
        let words: &[u32] = match &self.pages {
            Pages::Mapped(map) => bytemuck::cast_slice(map),
            Pages::Heap(words) => bytemuck::cast_slice(words),
        };
        let (times, words) = words.split_at(if self.extras.times { 2 * rows } else { 0 });
        let (users, words) = words.split_at(rows);
        let (items, words) = words.split_at(rows);
        let (values, weights) = words.split_at(rows);
        Rows {
            users: &users[..len],
            items: &items[..len],
            values: &bytemuck::cast_slice(values)[..len],
            weights: self.extras.weights.then(|| &bytemuck::cast_slice(weights)[..len]),
            times: self.extras.times.then(|| &bytemuck::cast_slice(times)[..len]),
        }
    }
}
