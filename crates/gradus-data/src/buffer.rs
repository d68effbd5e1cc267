//! The numbers of a matrix: its own, or lent by someone who keeps them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Numbers in a row in memory, its own or lent: a NumPy array, a mapped file. A clone of lent numbers
/// is lent by the same owner; numbers to change are copied first.
///
/// ```
/// use gradus_data::{Buffer, Dense};
/// use std::sync::Arc;
/// let lender = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
/// let mut x = Dense::from_buffer(2, 2, Buffer::lent(lender.clone()))?;
/// assert_eq!(x.values().as_ptr(), lender.as_ptr());
/// x.row_mut(0)[1] = 9.0;
/// assert_eq!((x[(0, 1)], lender[1]), (9.0, 2.0));
/// # Ok::<(), gradus_base::Error>(())
/// ```
pub struct Buffer<T>(Store<T>);

enum Store<T> {
    Own(Vec<T>),
    Lent(Lent<T>),
}

/// Lent numbers, and where they lie: hot loops ask for every row of a sparse matrix, and a call of the
/// owner for each cannot be inlined.
struct Lent<T> {
    owner: Arc<dyn AsRef<[T]> + Send + Sync>,
    first: *const T,
    len: usize,
}

// SAFETY: the numbers are only read, and belong to an owner that may be shared by threads.
unsafe impl<T: Send + Sync> Send for Lent<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Lent<T> {}

impl<T> Lent<T> {
    fn new(owner: Arc<dyn AsRef<[T]> + Send + Sync>) -> Self {
        let numbers = owner.as_ref().as_ref();
        let (first, len) = (numbers.as_ptr(), numbers.len());
        Self { owner, first, len }
    }

    #[inline]
    fn numbers(&self) -> &[T] {
        // SAFETY: the owner lent them for as long as it is borrowed; the `Arc` keeps it where it is, and while there
        // is the `Arc` nobody can borrow it to change it.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

impl<T> Buffer<T> {
    /// Numbers lent by `owner`, which must give the same ones whenever it is asked.
    pub fn lent(owner: Arc<dyn AsRef<[T]> + Send + Sync>) -> Self {
        Self(Store::Lent(Lent::new(owner)))
    }

    /// The numbers, to change.
    pub fn to_mut(&mut self) -> &mut Vec<T>
    where
        T: Clone,
    {
        if let Store::Lent(lent) = &self.0 {
            self.0 = Store::Own(lent.numbers().to_vec());
        }
        match &mut self.0 {
            Store::Own(values) => values,
            Store::Lent(_) => unreachable!("lent numbers were copied"),
        }
    }

    /// The numbers, copied if they are lent.
    pub fn into_vec(mut self) -> Vec<T>
    where
        T: Clone,
    {
        std::mem::take(self.to_mut())
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Store::Own(values) => values,
            Store::Lent(lent) => lent.numbers(),
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Store::Own(values))
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Clone> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Store::Own(values) => Store::Own(values.clone()),
            Store::Lent(lent) => Store::Lent(Lent::new(Arc::clone(&lent.owner))),
        })
    }
}

impl<T: fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
