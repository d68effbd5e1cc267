"""Ids of users and items: whole numbers or text, none of them missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Whole numbers above this are not all there in double precision.
_EXACT = 2**53


def id_column(column: Any, what: str) -> Any:
    """Ids as the compiled part takes them: an array of `int64`, or a list of text.

    The rules are those of the file readers: a missing id is refused and never named; a whole number of
    2⁶³ and more becomes text, digit by digit; so do fractions.
    """
    array = np.asarray(column)
    if array.ndim != 1:
        raise ValueError(f"{what}: expected one dimension, got shape {array.shape}")
    kind = array.dtype.kind
    if kind == "i":
        return np.ascontiguousarray(array, dtype=np.int64)
    if kind == "u":
        if array.size == 0 or int(array.max()) < 2**63:
            return array.astype(np.int64)
        return [str(number) for number in array.tolist()]
    if kind == "f":
        return _of_floats(array, what)
    if kind == "S":
        array = np.char.decode(array, "utf-8")
    elif kind not in "OUT":
        raise ValueError(f"{what}: ids must be whole numbers or text, got an array of {array.dtype}")
    # NumPy makes text of NaN beside text.
    return _of_objects(array.tolist() if isinstance(column, np.ndarray) or kind == "S" else list(column), what)


def _of_floats(array: np.ndarray, what: str) -> Any:
    wrong = ~np.isfinite(array)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{what}: row {row + 1}: {_shown(array[row])} is no id")
    wrong = np.abs(array) > _EXACT
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{what}: row {row + 1}: {array[row]} is too large to be exact in floating point; "
            "give ids as integers or text"
        )
    if np.any(array != np.trunc(array)):
        # Text, as the readers of text files take it.
        return [_spelled(number) for number in array.tolist()]
    return array.astype(np.int64)


def _spelled(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _of_objects(ids: list[Any], what: str) -> Any:
    if ids and all(type(one) is int for one in ids) and -(2**63) <= min(ids) and max(ids) < 2**63:
        return np.asarray(ids, dtype=np.int64)
    return [one if type(one) is str and one and "\0" not in one else _as_text(one, row, what) for row, one in enumerate(ids)]


def _as_text(one: Any, row: int, what: str) -> str:
    fault = None
    if is_missing(one):
        fault = f"{_shown(one)} is no id"
    elif isinstance(one, (bool, np.bool_)):
        fault = f"{one} is no id; ids must be whole numbers or text"
    elif isinstance(one, (float, np.floating)):
        if not math.isfinite(one):
            fault = f"{one} is no id"
        elif abs(one) > _EXACT:
            fault = f"{one} is too large to be exact in floating point; give ids as integers or text"
        else:
            return _spelled(float(one))
    else:
        text = one.decode("utf-8") if isinstance(one, bytes) else str(one)
        if text and "\0" not in text:
            return text
        fault = f"the id {text!r} contains a NUL byte" if text else "the id is empty"
    raise ValueError(f"{what}: row {row + 1}: {fault}")


def is_missing(one: Any) -> bool:
    """Whether this stands for a missing value: None, NaN, and pandas' NA and NaT."""
    if one is None:
        return True
    if isinstance(one, (float, np.floating)):
        return bool(np.isnan(one))
    return type(one).__name__ in ("NAType", "NaTType")


def _shown(one: Any) -> str:
    return f"a missing value ({one})" if is_missing(one) else str(one)
