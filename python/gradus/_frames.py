"""Data frames of pandas, polars and pyarrow as columns of numbers and words.

A column of numbers or truth values becomes an array of `float64`, NaN where it is missing. A column of
text or categories becomes codes and levels, −1 where it is missing: a category stays one even if its
levels are numbers, and text stays text even if it spells numbers or is empty. Anything else is refused
by name. The index of a pandas frame is no column.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from gradus._ids import is_missing

#: A column: numbers, or codes with levels.
Column = "np.ndarray | tuple[np.ndarray, list[str]]"


def is_frame(X: Any) -> bool:
    """Whether this is a data frame: a table with named columns."""
    return _library(X) is not None


def _library(X: Any) -> str | None:
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns"):
        return "pandas"
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        return "pyarrow"
    module = type(X).__module__.split(".")[0]
    if module == "polars" and hasattr(X, "to_series") and hasattr(X, "columns"):
        return "polars"
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "columns"):
        return "arrow"
    return None


def labels(X: Any) -> list[Any]:
    """The labels of the columns."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def has_words(X: Any) -> bool:
    """Whether a column of the frame is not of plain numbers or truth values."""
    library = _library(X)
    if library == "pandas":
        return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in X.dtypes)
    if library == "polars":
        return any(not (dtype.is_numeric() or _polars_name(dtype) == "Boolean") for dtype in X.dtypes)
    if library == "pyarrow":
        import pyarrow.types as types

        plain = (types.is_integer, types.is_floating, types.is_boolean)
        return any(not any(test(field.type) for test in plain) for field in X.schema)
    return library is not None


def typed(X: Any, what: str = "X") -> list[tuple[str, Any]]:
    """The columns of a frame by name."""
    library = _library(X)
    if library == "arrow":
        import pyarrow

        X, library = pyarrow.table(X), "pyarrow"
    names = [str(label) for label in labels(X)]
    doubled = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if doubled is not None:
        raise ValueError(f"{what}: there are two columns `{doubled}`; every column needs a name of its own")
    read = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}[library or "pandas"]
    return [(name, read(X, at, f"{what}: column `{name}`")) for at, name in enumerate(names)]


def _refused(what: str, holds: str, advice: str) -> ValueError:
    return ValueError(f"{what} holds {holds}, which is neither numbers nor words: {advice}")


_DATES = "make numbers of it first (the year, the hour, the days since some date), or leave it out"
_NESTED = "make columns of numbers or words of it first, or leave it out"


def _pandas(X: Any, at: int, what: str) -> Any:
    import pandas as pd
    from pandas.api import types

    series = X.iloc[:, at]
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _coded(series.cat.codes.to_numpy(), series.cat.categories.tolist(), what)
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        raise _refused(what, f"times ({dtype})", _DATES)
    if isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        raise _refused(what, str(dtype), _DATES if isinstance(dtype, pd.PeriodDtype) else _NESTED)
    if types.is_complex_dtype(dtype):
        raise _refused(what, "complex numbers", _NESTED)
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if types.is_string_dtype(dtype) and not types.is_object_dtype(dtype):
        codes, found = pd.factorize(series, use_na_sentinel=True)
        return _coded(codes, [str(word) for word in found], what)
    if not types.is_object_dtype(dtype):
        raise _refused(what, str(dtype), _NESTED)
    return _objects(series.to_numpy(), what)


def _polars_name(dtype: Any) -> str:
    return dtype.base_type().__name__


def _polars(X: Any, at: int, what: str) -> Any:
    import polars as pl

    series = X.to_series(at)
    name = _polars_name(series.dtype)
    if series.dtype.is_numeric() or name == "Boolean":
        return series.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64, copy=False)
    if name in ("Categorical", "Enum", "String", "Utf8"):
        words = series.cast(pl.String)
        found = words.drop_nulls().unique(maintain_order=True)
        places = {word: place for place, word in enumerate(found.to_list())}
        codes = np.fromiter((places.get(word, -1) for word in words.to_list()), dtype=np.int64, count=len(words))
        return _coded(codes, list(places), what)
    if name == "Null":
        return np.full(len(series), np.nan)
    if name in ("Date", "Datetime", "Duration", "Time"):
        raise _refused(what, f"times ({series.dtype})", _DATES)
    if name == "Object":
        return _objects(np.asarray(series.to_list(), dtype=object), what)
    raise _refused(what, str(series.dtype), _NESTED)


def _pyarrow(X: Any, at: int, what: str) -> Any:
    import pyarrow as pa
    import pyarrow.types as types

    column = X.column(at)
    kind = column.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
        return column.to_numpy(**({} if isinstance(column, pa.ChunkedArray) else {"zero_copy_only": False})).astype(
            np.float64, copy=False
        )
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_temporal(kind):
        raise _refused(what, f"times ({kind})", _DATES)
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner):
        words = column.cast(pa.large_string())
    elif types.is_dictionary(kind) and (types.is_integer(inner) or types.is_boolean(inner)):
        words = column.cast(inner).cast(pa.large_string())
    else:
        raise _refused(what, str(kind), _NESTED)
    coded = words.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
        if isinstance(coded, pa.ChunkedArray):
            if coded.num_chunks == 0:
                return np.zeros(0, dtype=np.int64), []
            coded = coded.chunk(0)
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return _coded(codes, coded.dictionary.to_pylist(), what)


def _objects(values: np.ndarray, what: str) -> Any:
    """A column of Python objects: all text, or all numbers, but for missing ones."""
    kinds = {type(value) for value in values.tolist() if not is_missing(value)}
    if all(issubclass(kind, str) for kind in kinds) and kinds:
        places: dict[str, int] = {}
        codes = np.empty(len(values), dtype=np.int64)
        for row, value in enumerate(values.tolist()):
            codes[row] = -1 if is_missing(value) else places.setdefault(str(value), len(places))
        return codes, list(places)
    if all(issubclass(kind, (numbers.Real, np.bool_)) or kind.__name__ == "Decimal" for kind in kinds):
        return np.array([np.nan if is_missing(value) else float(value) for value in values.tolist()])
    words = [kind for kind in kinds if issubclass(kind, str)]
    names = " and ".join(sorted(kind.__name__ for kind in kinds))
    if words:
        raise _refused(what, f"text mixed with other things ({names})", "make text of all of it (`.astype(str)`)")
    raise _refused(what, f"objects ({names})", _DATES if {"date", "datetime", "Timestamp"} & {k.__name__ for k in kinds} else _NESTED)


def _coded(codes: np.ndarray, levels: list[Any], what: str) -> tuple[np.ndarray, list[str]]:
    """Codes and the text of their levels; levels that no row has are left out."""
    codes = np.asarray(codes).astype(np.int64)
    used = np.unique(codes[codes >= 0])
    text = [str(levels[at]) for at in used]
    if len(set(text)) < len(text):
        doubled = next(word for at, word in enumerate(text) if word in text[:at])
        raise ValueError(f"{what}: two of its categories are written `{doubled}`")
    places = np.full(len(levels) + 1, -1, dtype=np.int64)
    places[used] = np.arange(len(used))
    return places[codes], text
