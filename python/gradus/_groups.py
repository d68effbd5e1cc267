"""The groups of sensitive attributes, as the compiled part takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from gradus import _gradus
from gradus._frames import is_frame, typed


def _attribute(name: str, values: Any) -> tuple[str, list[str], np.ndarray]:
    """An attribute as the compiled part takes it: its name, the names of its groups, the group of each row."""
    array = np.asarray(values, dtype=object if not isinstance(values, np.ndarray) else None)
    array = column_or_1d(array)
    missing = [value is None or type(value).__name__ == "NAType" or value != value for value in array.tolist()]
    if any(missing):
        raise ValueError(f"sensitive_features: `{name}`, row {missing.index(True) + 1}: missing value; every row needs a group")
    kinds = {type(value) for value in array.tolist()}
    if kinds and all(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds):
        numbers = array.astype(np.float64)
        different, codes = np.unique(numbers, return_inverse=True)
        if different.size > 1:
            _gradus.check_groups(name, numbers)
        words = [repr(int(value)) if float(value).is_integer() else repr(float(value)) for value in different.tolist()]
        return name, words, codes.astype(np.uint32)
    words, codes = np.unique([_word(value) for value in array.tolist()], return_inverse=True)
    if words.size > 50:
        raise ValueError(
            f"sensitive_features: `{name}` has {words.size} different words, and groups are at most 50; merge some of them"
        )
    return name, words.tolist(), codes.astype(np.uint32)


def _word(value: Any) -> str:
    # As the command line writes truth values.
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


def _attributes(sensitive_features: Any) -> list[tuple[str, list[str], np.ndarray]]:
    """Every attribute of a vector, a table, a mapping or a frame."""
    if sensitive_features is None:
        raise ValueError("sensitive_features: the group of each sample is needed, a column or several")
    if isinstance(sensitive_features, dict):
        return [_attribute(str(name), values) for name, values in sensitive_features.items()]
    if is_frame(sensitive_features):
        names = [name for name, _ in typed(sensitive_features, "sensitive_features")]
        columns = np.asarray(sensitive_features, dtype=object)
        return [_attribute(name, columns[:, at]) for at, name in enumerate(names)]
    name = getattr(sensitive_features, "name", None)
    array = np.asarray(sensitive_features)
    if array.ndim == 2 and array.shape[1] > 1:
        return [_attribute(f"group{at}", array[:, at]) for at in range(array.shape[1])]
    return [_attribute(str(name) if name is not None else "group", array)]


def _vector(values: Any, what: str) -> np.ndarray:
    array = column_or_1d(np.asarray(values))
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: must be numbers, and {array.dtype} is none") from None


def _weights(sample_weight: Any) -> np.ndarray | None:
    return None if sample_weight is None else _vector(sample_weight, "sample_weight")
