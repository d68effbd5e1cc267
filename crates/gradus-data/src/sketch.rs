//! A few hashes of rows, by which data is recognised.

use super::{Id, Ids, Matrix, Ratings, Samples, Target};
use gradus_base::{Result, parallel};
use gradus_file::{Reader, Writer, checksum};

/// How many hashes are kept: of a test set a tenth as large as the training data some 25 rows fall
/// below the largest of them.
const KEPT: usize = 256;

/// The name of the tensor.
const NAME: &str = "training.sketch";

/// The smallest hashes of the rows of a data set, which tell how much of another data set is
/// contained in it.
///
/// Which rows those are depends on the rows alone, so the same row of another file, in any order and
/// among any others, is recognised. The hashes do not tell what the rows hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// Number of rows.
    rows: u64,
    /// The smallest hashes in ascending order, each once.
    smallest: Vec<u64>,
}

/// The smallest of the hashes that were put in.
struct Smallest {
    hashes: Vec<u64>,
    /// Larger ones are not among them any more.
    limit: u64,
}

impl Smallest {
    fn new() -> Self {
        Self { hashes: Vec::new(), limit: u64::MAX }
    }

    fn push(&mut self, hash: u64) {
        if hash <= self.limit {
            self.hashes.push(hash);
            if self.hashes.len() >= 8 * KEPT {
                self.tidy();
            }
        }
    }

    fn tidy(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes.truncate(KEPT);
        if let Some(&last) = self.hashes.get(KEPT - 1) {
            self.limit = last;
        }
    }
}

impl Sketch {
    /// The sketch of units that are distinguished by their text.
    pub fn of_text<T: AsRef<[u8]>>(units: impl IntoIterator<Item = T>) -> Self {
        let mut found = Smallest::new();
        let mut rows = 0;
        for unit in units {
            found.push(mix(4, checksum(unit.as_ref())));
            rows += 1;
        }
        found.tidy();
        Self { rows, smallest: found.hashes }
    }

    /// The sketch of the rows that are cut into this many blocks; `hashes` gives those of a block.
    fn of_blocks<I: Iterator<Item = u64>>(
        rows: usize,
        blocks: usize,
        hashes: impl Fn(usize) -> I + Sync,
    ) -> Self {
        let of_block = |block| {
            let mut found = Smallest::new();
            hashes(block).for_each(|hash| found.push(hash));
            found.tidy();
            found.hashes
        };
        let mut smallest = parallel::map(0..blocks, of_block).concat();
        smallest.sort_unstable();
        smallest.dedup();
        smallest.truncate(KEPT);
        Self { rows: rows as u64, smallest }
    }

    /// The share of rows with these hashes that are among those of the sketch, as far as it can
    /// tell; `None` if it cannot.
    pub fn share(&self, hashes: impl Iterator<Item = u64>) -> Option<f64> {
        let last = match self.smallest.len() {
            KEPT => self.smallest[KEPT - 1],
            0 => return None,
            _ => u64::MAX,
        };
        let (mut seen, mut known) = (0usize, 0usize);
        for hash in hashes.filter(|&hash| hash <= last) {
            seen += 1;
            known += usize::from(self.smallest.binary_search(&hash).is_ok());
        }
        (seen > 0).then(|| known as f64 / seen as f64)
    }

    /// Adds the rows of another data set.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.smallest.extend(&other.smallest);
        self.smallest.sort_unstable();
        self.smallest.dedup();
        // Below the largest of a sketch that is full, and only there, all rows are known.
        self.smallest.truncate(KEPT);
    }

    /// A number that other sketches have only by chance.
    pub fn fingerprint(&self) -> u64 {
        self.smallest.iter().fold(mix(7, self.rows), |sum, &hash| mix(sum, hash))
    }

    /// Adds it to a model file.
    pub fn write(&self, file: &mut Writer<'_>) {
        let all: Vec<u64> =
            std::iter::once(self.rows).chain(self.smallest.iter().copied()).collect();
        file.tensor_owned(NAME, &[all.len()], all);
    }

    /// Reads it from a model file, if the file has one.
    ///
    /// # Errors
    /// If what the file has is no sketch.
    pub fn read(file: &mut Reader) -> Result<Option<Self>> {
        if !file.has(NAME) {
            return Ok(None);
        }
        let all: Vec<u64> = file.vector(NAME)?;
        match all.split_first() {
            Some((&rows, smallest))
                if smallest.len() <= KEPT && smallest.windows(2).all(|pair| pair[0] < pair[1]) =>
            {
                Ok(Some(Self { rows, smallest: smallest.to_vec() }))
            }
            _ => Err(file.broken(format!("tensor `{NAME}` is no sketch"))),
        }
    }
}

/// Mixes a word into a hash so that every bit of it matters (the finaliser of SplitMix64).
fn mix(hash: u64, word: u64) -> u64 {
    let mut x = hash.rotate_left(31) ^ word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The hash of an id, the same whether it is stored as a number or as text.
fn of_id(id: Id<'_>) -> u64 {
    match id {
        Id::Int(number) => mix(1, number as u64),
        Id::Text(text) => match Id::parse(text) {
            Id::Int(number) => mix(1, number as u64),
            Id::Text(text) => mix(2, checksum(text.as_bytes())),
        },
    }
}

fn of_ids(ids: &Ids) -> Vec<u64> {
    ids.iter().map(of_id).collect()
}

/// The hash of a rating.
pub fn rating_hash(user: Id<'_>, item: Id<'_>, value: f32) -> u64 {
    of_rating(of_id(user), of_id(item), value)
}

fn of_rating(user: u64, item: u64, value: f32) -> u64 {
    // Adding 0 makes one zero of both.
    mix(mix(user, item), u64::from((value + 0.0).to_bits()))
}

impl Ratings {
    /// Returns the sketch of these ratings; see [`Sketch`].
    pub fn sketch(&self) -> Sketch {
        let (users, items) = (of_ids(self.users()), of_ids(self.items()));
        let by_user = self.by_user();
        let of_user = |user: usize| {
            let (indices, values) = by_user.row(user);
            let (user, items) = (users[user], &items);
            let ratings = indices.iter().zip(values);
            ratings.map(move |(&item, &value)| of_rating(user, items[item as usize], value))
        };
        let (n, size) = (self.n_users(), 4096);
        Sketch::of_blocks(self.len(), n.div_ceil(size), |block| {
            (block * size..((block + 1) * size).min(n)).flat_map(of_user)
        })
    }

    /// The share of these ratings that are among those of a sketch; `None` if it cannot tell.
    pub fn share_in(&self, sketch: &Sketch) -> Option<f64> {
        let (users, items) = (of_ids(self.users()), of_ids(self.items()));
        sketch.share(self.iter().map(|rating| {
            of_rating(users[rating.user as usize], items[rating.item as usize], rating.value)
        }))
    }
}

impl Samples {
    /// Returns the sketch of these samples; see [`Sketch`].
    pub fn sketch(&self) -> Sketch {
        let (hash, n, size) = (self.row_hash(), self.len(), 8192);
        Sketch::of_blocks(n, n.div_ceil(size), |block| {
            (block * size..((block + 1) * size).min(n)).map(&hash)
        })
    }

    /// The share of these samples that are among those of a sketch; `None` if it cannot tell.
    pub fn share_in(&self, sketch: &Sketch) -> Option<f64> {
        sketch.share((0..self.len()).map(self.row_hash()))
    }

    /// The hash of a sample: its features, whether stored dense or sparse, and its target.
    fn row_hash(&self) -> impl Fn(usize) -> u64 + Sync + '_ {
        let feature = |sum: u64, column: usize, x: f64| match x {
            0.0 => sum,
            _ => sum.wrapping_add(mix(column as u64, x.to_bits())),
        };
        let features = move |row: usize| match self.features() {
            Matrix::Dense(x) => {
                x.row(row).iter().enumerate().fold(0, |sum, (at, &x)| feature(sum, at, x))
            }
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                let pairs = columns.iter().zip(values);
                pairs.fold(0, |sum, (&at, &x)| feature(sum, at as usize, x))
            }
        };
        let labels = match self.target() {
            Target::Classes { labels, .. } => of_ids(labels),
            Target::Values(_) => Vec::new(),
        };
        let target = move |row: usize| match self.target() {
            Target::Classes { codes, .. } => labels[codes[row] as usize],
            Target::Values(y) => y.row(row).iter().fold(3, |sum, y| mix(sum, (y + 0.0).to_bits())),
        };
        move |row| mix(features(row), target(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dense;
    use crate::make::RatingsSpec;

    #[test]
    fn what_was_trained_on_is_recognised_whole_and_in_part() {
        let ratings = RatingsSpec::new(300, 200, 8000).make(1).unwrap().ratings;
        let (train, test) = ratings.partition(|at| at % 5 != 0);
        let sketch = train.sketch();
        assert_eq!(train.share_in(&sketch), Some(1.0));
        assert_eq!(test.share_in(&sketch), Some(0.0));
        let all = ratings.share_in(&sketch).unwrap();
        assert!((all - 0.8).abs() < 0.1, "{all}");
        let (part, _) = train.partition(|at| at % 4 == 0);
        assert_eq!(part.share_in(&sketch), Some(1.0));
        let hashes = train.iter().map(|r| {
            let (user, item) = (r.user as usize, r.item as usize);
            rating_hash(train.users().get(user), train.items().get(item), r.value)
        });
        assert_eq!(sketch.share(hashes), Some(1.0));
        let mut merged = sketch.clone();
        merged.merge(&test.sketch());
        assert_eq!(merged, ratings.sketch());
        let none = Sketch { rows: 0, smallest: Vec::new() };
        assert_eq!(train.share_in(&none), None);
    }

    #[test]
    fn a_sample_is_the_same_dense_or_sparse_and_under_other_codes() {
        let x = Dense::from_rows(&[[1.0, 0.0], [0.0, -2.5], [3.0, 4.0]]);
        let (columns, values) = (vec![0, 1, 0, 1], vec![1.0, -2.5, 3.0, 4.0]);
        let csr = crate::Csr::new(2, vec![0, 1, 2, 4], columns, values).unwrap();
        let classes = ["b", "a", "c"].map(Id::Text);
        let dense = Samples::classification(x.clone(), classes).unwrap();
        let sparse = Samples::classification(csr, classes).unwrap();
        assert_eq!(dense.sketch(), sparse.sketch());
        assert_eq!(dense.select_rows(&[2]).share_in(&dense.sketch()), Some(1.0));
        let values = Samples::regression(x, vec![1.0, 2.0, 3.0]).unwrap();
        assert_eq!(values.share_in(&dense.sketch()), Some(0.0));
    }
}
