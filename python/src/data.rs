//! Data that Python hands over: matrices without a copy where their layout allows.

use crate::error::raise;
use crate::threads::inside;
use gradus_base::parallel;
use gradus_core::dataset::{RatingsFile, SamplesFile};
use gradus_core::params::{ParamKind, Params, specs};
use gradus_data::{
    Buffer, Column, Csr, Dense, Duplicates, EncodeOptions, Fill, Id, IdVec, ImageShape, Input,
    InputKind, Inputs, MISSING_WORD, Matrix, RatingsBuilder, Table, TextIds,
};
use gradus_kernel::{Level, dense};
use numpy::ndarray::Dimension;
use numpy::{
    Element, PyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

/// A NumPy array that lends its numbers.
struct Lender<T, A> {
    /// Keeps the memory alive.
    _array: Py<A>,
    first: *const T,
    len: usize,
}

// SAFETY: the memory belongs to an array that is kept alive, and is only read. NumPy's contract holds
// here as everywhere: who writes to an array while another thread computes with it is at fault.
unsafe impl<T: Sync, A> Send for Lender<T, A> {}
// SAFETY: as above.
unsafe impl<T: Sync, A> Sync for Lender<T, A> {}

impl<T, A> AsRef<[T]> for Lender<T, A> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: `lend` made it of a contiguous, aligned array of so many elements.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

/// The elements of an array, if they lie in a row in memory. `U` is `T` or has the same layout.
pub fn lend<T, U, D>(array: &Bound<'_, PyArray<T, D>>) -> Option<Buffer<U>>
where
    T: Element + 'static,
    U: Send + Sync + 'static,
    D: Dimension + 'static,
{
    const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
    let (first, len) = (array.data().cast_const().cast::<U>(), array.len());
    if !array.is_c_contiguous() || len == 0 || !first.is_aligned() {
        return None;
    }
    Some(Buffer::lent(Arc::new(Lender { _array: array.clone().unbind(), first, len })))
}

/// A matrix in the memory of a NumPy array, in any order and of either precision.
#[derive(Clone, Copy)]
pub struct Strided<T> {
    first: *const T,
    n_rows: usize,
    n_cols: usize,
    /// Elements from a row to the next, and from a column to the next.
    steps: [isize; 2],
}

// SAFETY: as `Lender`; whoever holds one keeps the array alive.
unsafe impl<T: Sync> Send for Strided<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Strided<T> {}

/// Rows that are copied together where a column lies in a row in memory: what is written of them
/// stays in the nearest cache.
const TILE: usize = 64;

/// Columns that are copied together: a line of memory of those that are written.
const LINE: usize = 8;

impl<T: Element + Copy + Into<f64>> Strided<T> {
    /// The matrix, unless elements do not lie at their natural addresses.
    fn new(array: &Bound<'_, PyArray2<T>>) -> Option<Self> {
        let size = size_of::<T>() as isize;
        let first = array.data().cast_const();
        let [by_row, by_column] = [array.strides()[0], array.strides()[1]];
        let whole = first.is_aligned() && by_row % size == 0 && by_column % size == 0;
        let [n_rows, n_cols] = [array.shape()[0], array.shape()[1]];
        whole.then(|| Self { first, n_rows, n_cols, steps: [by_row / size, by_column / size] })
    }

    /// A row whose elements lie side by side.
    fn row(&self, row: usize) -> &[T] {
        assert!(self.steps[1] == 1 && row < self.n_rows, "a row of the array");
        // SAFETY: the row lies within the array, which is kept alive by whoever holds it, by the assertion.
        unsafe {
            let start = self.first.offset(row as isize * self.steps[0]);
            std::slice::from_raw_parts(start, self.n_cols)
        }
    }

    /// Copies rows, one after another, in double precision.
    fn copy(&self, first: usize, out: &mut [f64]) {
        let d = self.n_cols;
        if d == 0 {
            return;
        }
        assert!(first * d + out.len() <= self.n_rows * d, "rows of the matrix");
        if self.steps[1] == 1 {
            for (row, out) in out.chunks_exact_mut(d).enumerate() {
                out.iter_mut().zip(self.row(first + row)).for_each(|(out, &x)| *out = x.into());
            }
            return;
        }
        // Columns by their bounds: a tile of few columns is written to whole lines of memory.
        let [by_row, by_column] = self.steps;
        for (tile, out) in out.chunks_mut(TILE * d).enumerate() {
            let (first, rows) = (first + tile * TILE, out.len() / d);
            for columns in (0..d).step_by(LINE).map(|start| start..(start + LINE).min(d)) {
                for row in 0..rows {
                    let out = &mut out[row * d..][columns.clone()];
                    for (out, column) in out.iter_mut().zip(columns.clone()) {
                        let at = (first + row) as isize * by_row + column as isize * by_column;
                        // SAFETY: row and column lie within the array, by the assertion above.
                        *out = unsafe { *self.first.offset(at) }.into();
                    }
                }
            }
        }
    }

    /// The whole matrix, row after row.
    fn to_dense(self) -> gradus::Result<Dense<f64>> {
        let (n, d) = (self.n_rows, self.n_cols);
        let mut values = vec![0.0; n * d];
        if values.len() <= SMALL {
            self.copy(0, &mut values);
        } else {
            let rows = block_rows(d);
            let blocks = values.par_chunks_mut(rows * d).enumerate();
            blocks.for_each(|(block, out)| self.copy(block * rows, out));
        }
        // Shared: what is made of the features keeps them without a copy.
        Dense::from_buffer(n, d, Buffer::lent(Arc::new(values)))
    }

    /// The rows of `work` on blocks of the matrix: each is copied into a cache and worked on there.
    fn by_blocks(
        self,
        work: impl Fn(&Matrix) -> gradus::Result<Dense<f64>> + Sync,
    ) -> gradus::Result<Dense<f64>> {
        let (n, d) = (self.n_rows, self.n_cols);
        let rows = block_rows(d);
        let block = |block: usize| {
            let first = block * rows;
            let count = rows.min(n - first);
            let mut values = vec![0.0; count * d];
            self.copy(first, &mut values);
            work(&Dense::new(count, d, values)?.into())
        };
        let parts: gradus::Result<Vec<Dense<f64>>> = if n <= rows {
            (0..n.div_ceil(rows)).map(block).collect()
        } else {
            (0..n.div_ceil(rows)).into_par_iter().map(block).collect()
        };
        let parts = parts?;
        let k = parts.first().map_or(0, Dense::n_cols);
        Dense::new(n, k, parts.into_iter().flat_map(Dense::into_values).collect())
    }
}

/// The element type that a matrix of either precision is multiplied to.
pub trait Score: Element + Copy + Send + Sync {
    fn of(x: f64) -> Self;
}

impl Score for f64 {
    fn of(x: f64) -> Self {
        x
    }
}

impl Score for f32 {
    fn of(x: f64) -> Self {
        x as f32
    }
}

impl Strided<f32> {
    /// Whether its rows lie in a row in memory, and can be multiplied with these coefficients.
    fn takes(&self, w: &Dense<f64>, b: &[f64]) -> bool {
        let (d, k) = (self.n_cols, w.n_rows());
        self.steps[1] == 1 && (w.n_cols(), b.len()) == (d, k)
    }

    /// `out = X wᵀ + b`, without a copy of the rows in double precision; gives whether all of it is finite (a caller
    /// that looks at the values says why it is not).
    fn affine<T: Score>(self, w: &Dense<f64>, b: &[f64], out: &mut [T]) -> bool {
        let (n, d, k) = (self.n_rows, self.n_cols, w.n_rows());
        let (rows, level) = (block_rows(d), Level::best());
        let packed = self.steps[0] == d as isize;
        let finite = |(block, out): (usize, &mut [T])| {
            let (first, count) = (block * rows, out.len() / k);
            let mut sums = vec![0.0; count];
            let mut finite = true;
            for (target, (w, b)) in w.rows().zip(b).enumerate() {
                if packed {
                    dense::dots_of_single(level, self.rows(first, count), w, &mut sums);
                } else {
                    for (at, sum) in sums.iter_mut().enumerate() {
                        let row = self.row(first + at);
                        dense::dots_of_single(level, row, w, std::slice::from_mut(sum));
                    }
                }
                for (out, sum) in out.chunks_exact_mut(k).zip(&sums) {
                    let score = sum + b;
                    finite &= score.is_finite();
                    out[target] = T::of(score);
                }
            }
            finite
        };
        if n <= rows {
            return finite((0, out));
        }
        // All blocks, so that the same work is done on any number of threads.
        let finite = parallel::map(out.chunks_mut(rows * k).enumerate(), finite);
        finite.into_iter().all(|finite| finite)
    }

    /// The same in the pool, or here where it would take no other thread anyway.
    fn fill<T: Score>(
        self,
        py: Python<'_>,
        w: &Dense<f64>,
        b: &[f64],
        out: &mut [T],
    ) -> PyResult<bool> {
        if self.n_rows <= block_rows(self.n_cols) {
            return Ok(self.affine(w, b, out));
        }
        inside(py, || self.affine(w, b, out))
    }

    /// Rows that lie one after another.
    fn rows(&self, first: usize, count: usize) -> &[f32] {
        let d = self.n_cols;
        assert!(
            self.steps == [d as isize, 1] && first + count <= self.n_rows,
            "rows of the array, one after another"
        );
        // SAFETY: the rows lie within the array, which is kept alive by whoever holds it, by the assertion.
        unsafe { std::slice::from_raw_parts(self.first.add(first * d), count * d) }
    }
}

impl Strided<f64> {
    /// Elements that lie in a row in memory, from a place in the first `n_rows + (n_cols − 1) × steps[1]` on.
    fn part_of_column(&self, start: usize, count: usize) -> &[f64] {
        let end = self.steps[1].unsigned_abs() * (self.n_cols - 1) + self.n_rows;
        assert!(
            self.steps[0] == 1 && self.steps[1] > 0 && start + count <= end,
            "within the array"
        );
        // SAFETY: the array is kept alive by whoever holds it, and has so many elements by the assertion.
        unsafe { std::slice::from_raw_parts(self.first.add(start), count) }
    }

    /// `X wᵀ + b` of columns that lie one after another in memory, without putting them into rows; `None` if they do
    /// not, or if a result is not finite (a caller that looks at the values says why).
    fn affine(self, w: &Dense<f64>, b: &[f64]) -> Option<Dense<f64>> {
        let (n, d, k) = (self.n_rows, self.n_cols, w.n_rows());
        let by_column = usize::try_from(self.steps[1]).ok()?;
        if self.steps[0] != 1 || by_column < n || (w.n_cols(), b.len()) != (d, k) {
            return None;
        }
        let mut out = vec![0.0; n * k];
        // Fewer rows make fewer blocks, and every thread is to have one; but short parts of columns are read slowly.
        let rows = ROWS_OF_COLUMNS.min(n.div_ceil(4).max(256));
        let finite = |(block, out): (usize, &mut [f64])| {
            let (first, count) = (block * rows, out.len() / k);
            let mut sums = vec![0.0; count];
            for (target, &b) in b.iter().enumerate() {
                sums.fill(b);
                let part = |column: usize| self.part_of_column(column * by_column + first, count);
                // Four columns to a look at the sums.
                let (fours, rest) = w.row(target).as_chunks::<4>();
                for (at, [w0, w1, w2, w3]) in fours.iter().enumerate() {
                    let [x0, x1] = [part(4 * at), part(4 * at + 1)];
                    let [x2, x3] = [part(4 * at + 2), part(4 * at + 3)];
                    let pairs = x0.iter().zip(x1).zip(x2.iter().zip(x3));
                    for (sum, ((x0, x1), (x2, x3))) in sums.iter_mut().zip(pairs) {
                        *sum = (((*sum + w0 * x0) + w1 * x1) + w2 * x2) + w3 * x3;
                    }
                }
                for (at, w) in rest.iter().enumerate() {
                    let x = part(4 * fours.len() + at);
                    sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += w * x);
                }
                for (out, sum) in out.chunks_exact_mut(k).zip(&sums) {
                    out[target] = *sum;
                }
            }
            out.iter().all(|x| x.is_finite())
        };
        let blocks = out.par_chunks_mut(rows * k).enumerate();
        // All blocks, so that the same work is done on any number of threads.
        let finite: Vec<bool> = blocks.map(finite).collect();
        if finite.into_iter().all(|finite| finite) { Dense::new(n, k, out).ok() } else { None }
    }
}

/// Rows of columns that are worked on together: their sums stay in the nearest cache.
const ROWS_OF_COLUMNS: usize = 2048;

/// The number of values that are worked on together; no other thread is woken for fewer.
pub const SMALL: usize = 1 << 15;

fn block_rows(n_cols: usize) -> usize {
    (SMALL / n_cols.max(1)).max(TILE)
}

/// A NumPy matrix of features.
pub enum Array<'a, 'py> {
    /// Double precision, row after row: read where it lies.
    Plain(&'a Bound<'py, PyArray2<f64>>),
    /// Double precision in another order.
    Double(Strided<f64>),
    /// Single precision in any order.
    Single(Strided<f32>),
}

impl<'a, 'py> Array<'a, 'py> {
    /// The matrix in this object.
    pub fn new(array: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        let odd = || PyValueError::new_err("features: an array whose elements are not aligned");
        if let Ok(array) = array.cast::<PyArray2<f64>>() {
            if array.is_c_contiguous() && array.len() > 0 && array.data().is_aligned() {
                return Ok(Self::Plain(array));
            }
            return Strided::new(array).map(Self::Double).ok_or_else(odd);
        }
        Strided::new(array.cast::<PyArray2<f32>>()?).map(Self::Single).ok_or_else(odd)
    }

    /// `(rows, columns)`.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::Plain(array) => (array.shape()[0], array.shape()[1]),
            Self::Double(array) => (array.n_rows, array.n_cols),
            Self::Single(array) => (array.n_rows, array.n_cols),
        }
    }

    /// The whole matrix: lent by an array that lies row after row, else a copy.
    fn to_dense(&self, py: Python<'_>) -> PyResult<Dense<f64>> {
        let (n, d) = self.shape();
        let small = n * d <= SMALL;
        let dense = match *self {
            Self::Plain(array) => {
                let values = lend(array).unwrap_or_default();
                Dense::from_buffer(n, d, values)
            }
            Self::Double(array) if small => array.to_dense(),
            Self::Single(array) if small => array.to_dense(),
            Self::Double(array) => inside(py, || array.to_dense())?,
            Self::Single(array) => inside(py, || array.to_dense())?,
        };
        dense.map_err(raise)
    }

    /// `X wᵀ + b`, if the columns (of single precision the rows) lie one after another in memory and all is finite.
    pub fn affine(
        &self,
        py: Python<'_>,
        w: &Dense<f64>,
        b: &[f64],
    ) -> PyResult<Option<Dense<f64>>> {
        match *self {
            _ if w.n_rows() == 0 => Ok(None),
            Self::Double(array) if array.n_rows * array.n_cols > SMALL => {
                inside(py, || array.affine(w, b))
            }
            Self::Single(array) if array.takes(w, b) => {
                let mut out = vec![0.0; array.n_rows * w.n_rows()];
                let finite = array.fill(py, w, b, &mut out)?;
                Ok(if finite { Dense::new(array.n_rows, w.n_rows(), out).ok() } else { None })
            }
            _ => Ok(None),
        }
    }

    /// `X wᵀ + b` in single precision, if the array is of single precision, its rows lie in a row in memory, and all is
    /// finite.
    pub fn single_affine(
        &self,
        py: Python<'py>,
        w: &Dense<f64>,
        b: &[f64],
    ) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        let Self::Single(array) = *self else { return Ok(None) };
        if w.n_rows() == 0 || !array.takes(w, b) {
            return Ok(None);
        }
        let mut out = vec![0.0; array.n_rows * w.n_rows()];
        let finite = array.fill(py, w, b, &mut out)?;
        let shaped = || PyArray1::from_vec(py, out).reshape([array.n_rows, w.n_rows()]);
        if finite { shaped().map(Some) } else { Ok(None) }
    }

    /// `work` on all rows, or on blocks of them where the array is not as `work` takes it.
    ///
    /// An error in a block would name rows of the block: then all rows are taken at once.
    pub fn work(
        &self,
        py: Python<'_>,
        work: impl Fn(&Matrix) -> gradus::Result<Dense<f64>> + Sync + Send,
    ) -> PyResult<Dense<f64>> {
        let (n, d) = self.shape();
        let small = n <= 4096 && n * d <= SMALL;
        let by_blocks = match *self {
            Self::Plain(_) => None,
            Self::Double(array) if small => array.by_blocks(&work).ok(),
            Self::Single(array) if small => array.by_blocks(&work).ok(),
            Self::Double(array) => inside(py, || array.by_blocks(&work))?.ok(),
            Self::Single(array) => inside(py, || array.by_blocks(&work))?.ok(),
        };
        if let Some(done) = by_blocks {
            return Ok(done);
        }
        let matrix = self.to_dense(py)?.into();
        let done = if small { work(&matrix) } else { inside(py, || work(&matrix))? };
        done.map_err(raise)
    }
}

/// Features of samples.
#[pyclass(frozen)]
pub struct Features {
    pub matrix: Matrix,
    pub inputs: Option<Inputs>,
    /// How many words of a table the model had not seen.
    #[pyo3(get)]
    unknown_words: usize,
}

impl Features {
    fn plain(matrix: Matrix) -> Self {
        Self { matrix, inputs: None, unknown_words: 0 }
    }
}

#[pymethods]
impl Features {
    /// A dense matrix of either precision; `float64` row after row in memory is not copied.
    #[staticmethod]
    pub fn dense(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::plain(Array::new(array)?.to_dense(array.py())?.into()))
    }

    /// The same as the pixels of images of this size.
    fn of_images(&self, height: usize, width: usize, channels: usize) -> PyResult<Self> {
        let inputs = Inputs::Images(ImageShape { height, width, channels });
        inputs.check_width(self.matrix.n_cols()).map_err(raise)?;
        Ok(Self { matrix: self.matrix.clone(), inputs: Some(inputs), unknown_words: 0 })
    }

    /// A sparse matrix by rows; `float64` values and `int32` indices are not copied. `canonical` sorts
    /// the columns of each row and adds up those that are there twice, if there are any; without it the
    /// rows are taken as they are.
    #[staticmethod]
    #[pyo3(signature = (data, indices, indptr, n_cols, canonical=true))]
    pub fn sparse(
        data: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        indptr: &Bound<'_, PyAny>,
        n_cols: usize,
        canonical: bool,
    ) -> PyResult<Self> {
        let starts: Vec<usize> = match indptr.cast::<PyArray1<i32>>() {
            Ok(array) => array.try_readonly()?.as_array().iter().map(|&at| at as usize).collect(),
            Err(_) => {
                let array = indptr.cast::<PyArray1<i64>>()?.try_readonly()?;
                array.as_array().iter().map(|&at| at as usize).collect()
            }
        };
        let columns: Buffer<u32> = match indices.cast::<PyArray1<i32>>() {
            // Those that are negative come out so large that they are refused.
            Ok(array) => match lend(array) {
                Some(lent) => lent,
                None => {
                    let array = array.try_readonly()?;
                    array.as_array().iter().map(|&at| at as u32).collect::<Vec<_>>().into()
                }
            },
            Err(_) => {
                let array = indices.cast::<PyArray1<i64>>()?.try_readonly()?;
                let narrow = |&at: &i64| {
                    u32::try_from(at).map_err(|_| {
                        PyValueError::new_err(format!("column index {at} is not below 2³²"))
                    })
                };
                let columns =
                    array.as_array().iter().map(narrow).collect::<PyResult<Vec<u32>>>()?;
                Buffer::lent(Arc::new(columns))
            }
        };
        let values: Buffer<f64> = match data.cast::<PyArray1<f64>>() {
            Ok(array) => match lend(array) {
                Some(lent) => lent,
                None => array.try_readonly()?.as_array().to_vec().into(),
            },
            Err(_) => {
                let array = data.cast::<PyArray1<f32>>()?.try_readonly()?;
                let values: Vec<f64> = array.as_array().iter().map(|&x| x.into()).collect();
                Buffer::lent(Arc::new(values))
            }
        };
        let mut matrix = Csr::from_buffers(n_cols, starts, columns, values).map_err(raise)?;
        if canonical && let Some(sorted) = inside(data.py(), || sorted(&matrix))?.map_err(raise)? {
            matrix = sorted;
        }
        Ok(Self::plain(matrix.into()))
    }

    /// The columns of a table: each a name with `float64` numbers (NaN is missing), or with codes and
    /// levels of words (−1 is missing). Words become features, one each. `like` is a model whose inputs
    /// they are to become; otherwise the inputs are learned.
    #[staticmethod]
    #[pyo3(signature = (columns, like=None, missing="refuse"))]
    pub fn table(
        py: Python<'_>,
        columns: Vec<(String, Bound<'_, PyAny>)>,
        like: Option<&crate::model::Model>,
        missing: &str,
    ) -> PyResult<Self> {
        let columns: PyResult<Vec<(String, Column)>> = columns
            .into_iter()
            .map(|(name, values)| column(&values).map(|values| (name, values)))
            .collect();
        let columns = columns?;
        let known = match like {
            Some(model) => Some(model.inputs()?.clone()),
            None => None,
        };
        let options = EncodeOptions { fill: fill(missing)?, ..EncodeOptions::default() };
        let done = inside(py, || -> gradus::Result<_> {
            let table = Table::from_columns(columns)?;
            let inputs = match known {
                Some(inputs) => inputs,
                None => Inputs::learn(&table, &options)?,
            };
            let (matrix, encoded) = inputs.encode(&table)?;
            Ok((matrix, inputs, encoded))
        })?;
        let (matrix, inputs, encoded) = done.map_err(raise)?;
        let matrix = match matrix {
            // Shared: a fit keeps the features without a copy.
            Matrix::Dense(dense) => {
                let (n, d) = dense.shape();
                let values = Buffer::lent(Arc::new(dense.into_values()));
                Dense::from_buffer(n, d, values).map_err(raise)?.into()
            }
            sparse => sparse,
        };
        Ok(Self { matrix, inputs: Some(inputs), unknown_words: encoded.unknown })
    }

    /// The same features under names.
    #[pyo3(signature = (names, keeps_missing=false))]
    pub fn named(&self, names: Vec<String>, keeps_missing: bool) -> Self {
        let kind = InputKind::Number { fill: None, indicator: false, keep: keeps_missing };
        let input = |name: String| Input { name, kind: kind.clone() };
        let inputs = Inputs::Columns(names.into_iter().map(input).collect());
        Self { matrix: self.matrix.clone(), inputs: Some(inputs), unknown_words: 0 }
    }

    /// `(samples, features)`.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }
}

/// An option of reading a file of `P` that has this name, from its word.
pub fn option<P: Params, T: DeserializeOwned>(name: &str, word: &str) -> PyResult<T> {
    let value = Value::from(word);
    serde_json::from_value(value.clone()).map_err(|error| {
        // The definition says what there is; to look it up takes longer than to read the word.
        let spec = specs::<P>().into_iter().find(|spec| spec.name == name);
        let refused = spec.and_then(|spec| spec.check(&value).err());
        refused.map_or_else(|| PyValueError::new_err(format!("{name} = {word}: {error}")), raise)
    })
}

/// Parses the substitute for a missing value in an array or a frame: rows cannot be dropped there.
fn fill(missing: &str) -> PyResult<Fill> {
    match option::<SamplesFile, Fill>("missing", missing) {
        Ok(fill) if fill != Fill::Drop => Ok(fill),
        _ => {
            let words: Vec<String> = missing_choices().into_iter().map(|(word, _)| word).collect();
            let words = words.join(", ");
            let message = format!("parameter `missing` = {missing:?}: must be one of {words}");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Returns the substitutes for a missing value, each with its meaning.
#[pyfunction]
pub fn missing_choices() -> Vec<(String, String)> {
    let spec = specs::<SamplesFile>().into_iter().find(|spec| spec.name == "missing");
    let choices = match spec.map(|spec| spec.kind) {
        Some(ParamKind::Choice(choices)) => choices,
        _ => Vec::new(),
    };
    choices.into_iter().filter(|(word, _)| word != "drop").collect()
}

/// A column from numbers, or from codes and levels.
pub fn column(values: &Bound<'_, PyAny>) -> PyResult<Column> {
    if let Ok(numbers) = values.cast::<PyArray1<f64>>() {
        let numbers = numbers.try_readonly()?;
        return Ok(Column::Numbers(numbers.as_array().iter().copied().collect()));
    }
    let (codes, levels): (PyReadonlyArray1<'_, i64>, Vec<String>) = values.extract()?;
    let code = |&code: &i64| u32::try_from(code).unwrap_or(MISSING_WORD);
    Ok(Column::Words { codes: codes.as_array().iter().map(code).collect(), levels })
}

/// The matrix with the columns of each row ascending and each there once; `None` if it is so already.
fn sorted(matrix: &Csr<f64>) -> gradus::Result<Option<Csr<f64>>> {
    /// Rows that are sorted together.
    const ROWS: usize = 256;
    let n = matrix.n_rows();
    let fine = |rows: Range<usize>| {
        rows.into_iter().all(|row| matrix.row(row).0.is_sorted_by(|a, b| a < b))
    };
    if parallel::map(parallel::blocks(n, ROWS), fine).into_iter().all(|fine| fine) {
        return Ok(None);
    }
    let (mut columns, mut values) = (vec![0; matrix.nnz()], vec![0.0; matrix.nnz()]);
    let (mut columns_left, mut values_left) = (columns.as_mut_slice(), values.as_mut_slice());
    let mut pieces: Vec<(Range<usize>, &mut [u32], &mut [f64])> = Vec::new();
    for rows in parallel::blocks(n, ROWS) {
        let count = matrix.indptr()[rows.end] - matrix.indptr()[rows.start];
        let (of_columns, of_values);
        (of_columns, columns_left) = columns_left.split_at_mut(count);
        (of_values, values_left) = values_left.split_at_mut(count);
        pieces.push((rows, of_columns, of_values));
    }
    // Sorts the rows of a block to the front of its places, and gives how many entries each has left.
    let lengths = parallel::map(pieces, |(rows, columns, values)| {
        let (mut lengths, mut keys, mut end) = (Vec::with_capacity(rows.len()), Vec::new(), 0);
        for row in rows {
            let (from, with) = matrix.row(row);
            // By place where columns are the same: what is added up is added in the order it came.
            keys.clear();
            keys.extend(from.iter().zip(0u64..).map(|(&column, at)| u64::from(column) << 32 | at));
            keys.sort_unstable();
            let first = end;
            for key in &keys {
                let (column, value) = ((key >> 32) as u32, with[*key as u32 as usize]);
                if end > first && columns[end - 1] == column {
                    values[end - 1] += value;
                } else {
                    (columns[end], values[end]) = (column, value);
                    end += 1;
                }
            }
            lengths.push(end - first);
        }
        lengths
    });
    // Blocks with fewer entries than before leave gaps.
    let mut starts = Vec::with_capacity(n + 1);
    starts.push(0);
    let mut end = 0;
    for (block, lengths) in lengths.iter().enumerate() {
        let (from, count) = (matrix.indptr()[block * ROWS], lengths.iter().sum::<usize>());
        if from != end {
            columns.copy_within(from..from + count, end);
            values.copy_within(from..from + count, end);
        }
        for length in lengths {
            end += length;
            starts.push(end);
        }
    }
    columns.truncate(end);
    values.truncate(end);
    let (columns, values) = (Buffer::lent(Arc::new(columns)), Buffer::lent(Arc::new(values)));
    Csr::from_buffers(matrix.n_cols(), starts, columns, values).map(Some)
}

/// Ratings of items by users.
#[pyclass(frozen)]
pub struct Ratings {
    /// Shared with the fits that learn from them.
    pub data: Arc<gradus_data::Ratings>,
}

impl Ratings {
    /// The ratings themselves.
    pub fn ratings(&self) -> &gradus_data::Ratings {
        &self.data
    }
}

#[pymethods]
impl Ratings {
    /// Ratings from columns of equal length; ids are `int64` arrays or lists of text.
    #[new]
    #[pyo3(signature = (users, items, values, weights=None, duplicates="last"))]
    fn new(
        py: Python<'_>,
        users: &Bound<'_, PyAny>,
        items: &Bound<'_, PyAny>,
        values: PyReadonlyArray1<'_, f32>,
        weights: Option<PyReadonlyArray1<'_, f32>>,
        duplicates: &str,
    ) -> PyResult<Self> {
        let duplicates = which(duplicates)?;
        let (users, items) = (ids(users)?, ids(items)?);
        let values = values.as_array().to_vec();
        let weights = weights.map(|weights| weights.as_array().to_vec());
        let ratings = inside(py, || {
            let mut builder = RatingsBuilder::new();
            builder.push_columns(
                users.as_slice(),
                items.as_slice(),
                &values,
                weights.as_deref(),
            )?;
            builder.finish(duplicates)
        });
        let ratings = ratings?.map_err(raise)?;
        Ok(Self { data: Arc::new(ratings) })
    }

    /// How many there are.
    fn __len__(&self) -> usize {
        self.data.len()
    }
}

/// Parses the treatment of a pair that is there twice.
pub fn which(duplicates: &str) -> PyResult<Duplicates> {
    option::<RatingsFile, _>("duplicates", duplicates)
}

/// Ids: an `int64` array, or a list of text.
pub fn ids(column: &Bound<'_, PyAny>) -> PyResult<IdVec> {
    let mut ids = IdVec::new();
    if let Ok(array) = column.cast::<PyArray1<i64>>() {
        array.try_readonly()?.as_array().iter().for_each(|&id| ids.push(Id::Int(id)));
        return Ok(ids);
    }
    for word in column.cast::<PyList>()? {
        let word = word.cast_into::<PyString>().map_err(|error| {
            PyTypeError::new_err(format!("ids must be whole numbers or text: {error}"))
        })?;
        ids.push(Id::Text(word.to_cow()?.as_ref()));
    }
    Ok(ids)
}

/// Ids for Python: an `int64` array, or a list of text.
pub fn ids_to_python<'py>(py: Python<'py>, ids: &gradus_data::Ids) -> PyResult<Bound<'py, PyAny>> {
    match ids {
        gradus_data::Ids::Int(values) => Ok(PyArray1::from_slice(py, values).into_any()),
        gradus_data::Ids::Text(words) => Ok(PyList::new(py, words.iter())?.into_any()),
    }
}

/// Labels of classes in ascending order.
pub fn labels(column: &Bound<'_, PyAny>) -> PyResult<gradus_data::Ids> {
    if let Ok(array) = column.cast::<PyArray1<i64>>() {
        return Ok(gradus_data::Ids::Int(array.try_readonly()?.as_array().to_vec()));
    }
    let words: Vec<String> = column.extract()?;
    Ok(gradus_data::Ids::Text(words.iter().map(String::as_str).collect::<TextIds>()))
}

/// The positions of the columns of users, items, ratings, weights and times, by their names.
#[pyfunction]
pub fn rating_columns(names: Vec<String>) -> [Option<usize>; 5] {
    gradus_data::rating_columns(&names)
}
