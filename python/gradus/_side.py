"""Side information: features of users and items as columns with ids."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from gradus import _gradus
from gradus._frames import is_frame, labels, typed
from gradus._ids import id_column


def columns_of(X: Any, what: str) -> list[tuple[str, Any]]:
    """The columns of a frame or an array by name; `x1`, `x2`, … of an array."""
    if is_frame(X):
        return typed(X, what)
    if scipy.sparse.issparse(X):
        X = X.toarray()
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{what}: expected a data frame, or an array of numbers with a row for each id; got "
            f"{array.dtype} of shape {array.shape}"
        )
    array = array.astype(np.float64)
    return [(f"x{at + 1}", np.ascontiguousarray(array[:, at])) for at in range(array.shape[1])]


def side_table(X: Any, of: str, what: str) -> tuple[Any, list[tuple[str, Any]]]:
    """The ids and the columns of features.

    A data frame holds its ids in a column that is called as the ids of ratings are, or `id`, or in its first
    column; a tuple holds ids and features.
    """
    if isinstance(X, tuple) and len(X) == 2:
        return id_column(X[0], f"{what}, ids"), columns_of(X[1], what)
    if not is_frame(X):
        raise ValueError(f"{what}: expected a data frame with a column of ids, or a tuple (ids, features)")
    names = [str(label) for label in labels(X)]
    place = _gradus.rating_columns(names)[0 if of == "user" else 1]
    if place is None:
        lower = [name.lower() for name in names]
        place = lower.index("id") if "id" in lower else 0
    ids = X.iloc[:, place].to_numpy() if hasattr(X, "iloc") else X[names[place]].to_numpy()
    if hasattr(X, "iloc"):
        rest = X.drop(columns=[X.columns[place]])
    elif hasattr(X, "drop_columns"):
        rest = X.drop_columns([names[place]])
    else:
        rest = X.drop(names[place])
    if len(names) < 2:
        raise ValueError(f"{what}: there are no columns of features beside the ids, `{names[place]}`")
    return id_column(ids, f"{what}, column `{names[place]}`"), typed(rest, what)


def with_side(ratings: Any, user_features: Any, item_features: Any, model: Any = None) -> Any:
    """The ratings with what is given of both."""
    for of, X in (("user", user_features), ("item", item_features)):
        if X is None:
            continue
        what = f"{of}_features"
        ids, columns = side_table(X, of, what)
        ratings, remarks = _gradus.with_features(ratings, of, ids, columns, model)
        for remark in remarks:
            warnings.warn(f"{what}: {remark}", UserWarning, stacklevel=3)
    return ratings
