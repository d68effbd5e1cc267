//! Data that Python hands over: matrices without a copy where their layout allows.

use crate::error::raise;
use crate::threads::inside;
use arrow_array::RecordBatchReader as _;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use gradus::data::{
    Buffer, Csr, Dense, Duplicates, EncodeOptions, Fill, Id, IdVec, Input, Inputs, Matrix,
    RatingsBuilder, Table, TextIds,
};
use numpy::ndarray::Dimension;
use numpy::{
    Element, PyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyList, PyString};
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
fn lend<T, U, D>(array: &Bound<'_, PyArray<T, D>>) -> Option<Buffer<U>>
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
    /// A dense matrix; one that lies row after row in memory is not copied.
    #[staticmethod]
    pub fn dense(array: &Bound<'_, PyArray2<f64>>) -> PyResult<Self> {
        let (n, d) = (array.shape()[0], array.shape()[1]);
        let values = match lend(array) {
            Some(lent) => lent,
            None => array.try_readonly()?.as_array().iter().copied().collect::<Vec<f64>>().into(),
        };
        Ok(Self::plain(Dense::from_buffer(n, d, values).map_err(raise)?.into()))
    }

    /// A sparse matrix by rows; values and `int32` indices are not copied.
    #[staticmethod]
    pub fn sparse(
        data: &Bound<'_, PyArray1<f64>>,
        indices: &Bound<'_, PyAny>,
        indptr: &Bound<'_, PyAny>,
        n_cols: usize,
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
                array.as_array().iter().map(narrow).collect::<PyResult<Vec<u32>>>()?.into()
            }
        };
        let values = match lend(data) {
            Some(lent) => lent,
            None => data.try_readonly()?.as_array().to_vec().into(),
        };
        let matrix = Csr::from_buffers(n_cols, starts, columns, values).map_err(raise)?;
        Ok(Self::plain(matrix.into()))
    }

    /// The columns of a table (an object with `__arrow_c_stream__`): words become features, one each.
    /// `like` is a model whose inputs they are to become; otherwise the inputs are learned.
    #[staticmethod]
    #[pyo3(signature = (frame, like=None, missing="refuse"))]
    pub fn table(
        frame: &Bound<'_, PyAny>,
        like: Option<&crate::model::Model>,
        missing: &str,
    ) -> PyResult<Self> {
        let table = read_table(frame)?;
        let inputs = match like {
            Some(model) => model.fitted.predictor().map_err(raise)?.inputs().clone(),
            None => {
                let fill = match missing {
                    "refuse" => Fill::Refuse,
                    "mean" => Fill::Mean,
                    "median" => Fill::Median,
                    "category" => Fill::Category,
                    other => {
                        let rule = "must be one of refuse, mean, median, category";
                        return Err(PyValueError::new_err(format!("missing = {other}: {rule}")));
                    }
                };
                let options = EncodeOptions { fill, ..EncodeOptions::default() };
                inside(frame.py(), || Inputs::learn(&table, &options))?.map_err(raise)?
            }
        };
        let (matrix, encoded) = inside(frame.py(), || inputs.encode(&table))?.map_err(raise)?;
        Ok(Self { matrix, inputs: Some(inputs), unknown_words: encoded.unknown })
    }

    /// The same features under names.
    pub fn named(&self, names: Vec<String>) -> Self {
        let inputs = Inputs::Columns(names.into_iter().map(Input::number).collect());
        Self { matrix: self.matrix.clone(), inputs: Some(inputs), unknown_words: 0 }
    }

    /// `(samples, features)`.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }
}

fn read_table(frame: &Bound<'_, PyAny>) -> PyResult<Table> {
    let capsule = frame.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: the protocol says that a capsule of this name holds an ArrowArrayStream, which the one
    // who takes it leaves empty.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr().cast()) };
    let broken = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("table: {error}"));
    let reader = RecordBatchStreamReader::try_new(stream).map_err(|e| broken(&e))?;
    let schema = reader.schema();
    let batches =
        reader.map(|batch| batch.map_err(|error| gradus::Error::data(format!("table: {error}"))));
    Table::from_record_batches(&schema, batches).map_err(raise)
}

/// Who rated what how much.
#[pyclass(frozen)]
pub struct Ratings {
    pub ratings: gradus::data::Ratings,
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
        Ok(Self { ratings: ratings?.map_err(raise)? })
    }

    /// How many there are.
    fn __len__(&self) -> usize {
        self.ratings.by_user().nnz()
    }
}

/// What counts for a pair that is there twice, by its name.
pub fn which(duplicates: &str) -> PyResult<Duplicates> {
    match duplicates {
        "last" => Ok(Duplicates::Last),
        "mean" => Ok(Duplicates::Mean),
        "sum" => Ok(Duplicates::Sum),
        "error" => Ok(Duplicates::Error),
        other => {
            let message = format!("duplicates = {other}: must be one of last, mean, sum, error");
            Err(PyValueError::new_err(message))
        }
    }
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
pub fn ids_to_python<'py>(py: Python<'py>, ids: &gradus::data::Ids) -> PyResult<Bound<'py, PyAny>> {
    match ids {
        gradus::data::Ids::Int(values) => Ok(PyArray1::from_slice(py, values).into_any()),
        gradus::data::Ids::Text(words) => Ok(PyList::new(py, words.iter())?.into_any()),
    }
}

/// Labels of classes in ascending order.
pub fn labels(column: &Bound<'_, PyAny>) -> PyResult<gradus::data::Ids> {
    if let Ok(array) = column.cast::<PyArray1<i64>>() {
        return Ok(gradus::data::Ids::Int(array.try_readonly()?.as_array().to_vec()));
    }
    let words: Vec<String> = column.extract()?;
    Ok(gradus::data::Ids::Text(words.iter().map(String::as_str).collect::<TextIds>()))
}
