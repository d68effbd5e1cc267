"""Estimators of ratings: recommenders."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if

from gradus import _gradus
from gradus._base import DESCRIBED, Estimator

_USER = ("user", "user_id", "userid", "uid")
_ITEM = ("item", "item_id", "itemid", "iid", "movie", "movie_id", "movieid", "product", "product_id")
_VALUE = ("rating", "value", "score", "count", "plays", "stars")


def _id_column(column: Any) -> Any:
    """Ids as the compiled part takes them: an array of whole numbers, or a list of words."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise ValueError(f"ids: expected one dimension, got shape {array.shape}")
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.dtype.kind == "f" and np.all(array == np.trunc(array)):
        return array.astype(np.int64)
    words = array.tolist()
    if all(isinstance(word, int) and not isinstance(word, bool) for word in words):
        return np.asarray(words, dtype=np.int64)
    return [word if isinstance(word, str) else str(word) for word in words]


def _frame_columns(X: Any) -> list[str] | None:
    """The names of the columns, if this is a data frame."""
    if hasattr(X, "column_names"):
        return list(X.column_names)
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    return None


def _column(X: Any, names: list[str], at: int) -> np.ndarray:
    if hasattr(X, "iloc"):
        return X.iloc[:, at].to_numpy()
    column = X.column(names[at]) if hasattr(X, "column_names") else X[names[at]]
    return column.to_numpy(zero_copy_only=False) if hasattr(X, "column_names") else column.to_numpy()


def _parts(X: Any, y: Any, what: str, need_values: bool) -> tuple[Any, Any, Any]:
    """Users, items and values from any of the forms they come in."""
    if scipy.sparse.issparse(X):
        X = X.tocoo()
        return X.row.astype(np.int64), X.col.astype(np.int64), X.data
    names = _frame_columns(X)
    if names is not None:
        lower = [name.lower() for name in names]

        def find(known: tuple[str, ...], default: int) -> int | None:
            found = next((lower.index(name) for name in known if name in lower), default)
            return found if found < len(names) else None

        user, item, value = find(_USER, 0), find(_ITEM, 1), find(_VALUE, 2)
        columns = [None if at is None else _column(X, names, at) for at in (user, item, value)]
    elif isinstance(X, tuple) and len(X) in (2, 3):
        columns = [np.asarray(column) for column in X] + [None] * (3 - len(X))
        if len({len(column) for column in columns if column is not None}) > 1:
            lengths = [len(column) for column in columns if column is not None]
            raise ValueError(f"{what}: users, items and values differ in length: {lengths}")
    else:
        array = np.asarray(X)
        if array.ndim != 2 or array.shape[1] not in (2, 3):
            raise ValueError(
                f"{what}: expected pairs of user and item (n × 2, or n × 3 with the value), a data frame "
                f"of such columns, a tuple of arrays or a sparse matrix of users × items; got shape {array.shape}"
            )
        columns = [array[:, at] for at in range(array.shape[1])] + [None] * (3 - array.shape[1])
    users, items, values = columns
    if y is not None:
        values = np.asarray(y)
    if users is None or items is None:
        raise ValueError(f"{what}: needs a column of users and one of items")
    if values is None:
        if need_values:
            raise ValueError(f"{what}: needs the value of each pair: as y, or as a third column")
        values = np.ones(len(users))
    if len(values) != len(users):
        raise ValueError(f"{what}: {len(users)} pairs of user and item, but {len(values)} values")
    return users, items, values


def _ratings(X: Any, y: Any, weights: Any, what: str, duplicates: str, need_values: bool) -> Any:
    users, items, values = _parts(X, y, what, need_values)
    if len(users) == 0:
        raise ValueError(f"{what}: there are no ratings (0 samples)")
    values = np.ascontiguousarray(values, dtype=np.float32)
    if weights is not None:
        weights = np.ascontiguousarray(weights, dtype=np.float32)
    return _gradus.Ratings(_id_column(users), _id_column(items), values, weights, duplicates)


def _takes_new_ratings(self: Any) -> bool:
    return self._updates


class Recommender(Estimator):
    """A model of who rated what.

    Ratings come as ``(users, items, values)``, as a data frame with such columns, as an array of pairs
    with the values as ``y``, or as a sparse matrix of users × items. Ids are whole numbers or text.
    """

    #: Whether `partial_fit` can take new ratings in.
    _updates = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = True
        tags.target_tags.required = False
        return tags

    @property
    def _implicit(self) -> bool:
        return bool(DESCRIBED[self._kind]["implicit"])

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        validation: Any = None,
        duplicates: str = "last",
    ) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : tuple, data frame, array or sparse matrix
            ``(users, items, values)``, a data frame with such columns, an array of pairs (with the values
            as a third column, or as ``y``), or a sparse matrix of users × items.
        y : array, optional
            The value of each pair.
        sample_weight : array, optional
            How much each rating counts.
        validation : optional
            Held-out ratings in any of these forms: scored after every iteration, and reason to stop early.
        duplicates : {"last", "mean", "error"}
            What counts for a pair that is there twice.

        Returns
        -------
        self
        """
        explicit = not self._implicit
        ratings = _ratings(X, y, sample_weight, "X", duplicates, explicit)
        held = None
        if validation is not None:
            held = _ratings(validation, None, None, "validation", duplicates, explicit)
        told = self._told()
        model = _gradus.fit_ratings(self._kind, json.dumps(self._record()), ratings, held, told)
        if told is not None:
            told.done()
        self._take(model)
        self._name()
        return self

    @available_if(_takes_new_ratings)
    def partial_fit(self, X: Any, y: Any = None, *, duplicates: str = "last", items: bool = False) -> Any:
        """Adds new ratings (and new users, and new items) without fitting again.

        What they touch is solved anew, everything else stays as it is; an estimator that was not fitted
        yet is fitted.

        Parameters
        ----------
        X, y
            As in `fit`.
        duplicates : {"last", "mean", "error"}
            What counts for a pair that was rated before.
        items : bool
            Whether known items are solved again, too, and not only users.

        Returns
        -------
        self
        """
        if "model_" not in self.__dict__:
            return self.fit(X, y, duplicates=duplicates)
        ratings = _ratings(X, y, None, "X", duplicates, not self._implicit)
        self.model_.add(ratings, duplicates, items)
        self._adopt(self.model_)
        return self

    def _name(self) -> None:
        model = self.model_
        self.users_ = _as_ids(model.users)
        self.items_ = _as_ids(model.items)
        self.n_features_in_ = 2

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        self._name()

    # Predicting.

    def predict(self, X: Any) -> np.ndarray:
        """Predicts the rating of pairs of user and item.

        Parameters
        ----------
        X : tuple ``(users, items)``, data frame or array of pairs
            A user or an item that training did not see gets the best that can be said without it.

        Returns
        -------
        array of pairs
        """
        model = self._fitted
        users, items, _ = _parts(X, None, "X", False)
        return model.predict_pairs(_id_column(users), _id_column(items))

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Where the ratings will lie with probability ``level``, pairs × 2, of a model that knows it."""
        model = self._fitted
        users, items, _ = _parts(X, None, "X", False)
        found = model.intervals(_id_column(users), _id_column(items), float(level))
        if found is None:
            raise NotImplementedError(f"{type(self).__name__} does not know how sure it is; Bayes does")
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """R² of the predictions; larger is better.

        Parameters
        ----------
        X, y
            Ratings as in `fit`.
        """
        if self._implicit:
            raise NotImplementedError(
                f"{type(self).__name__} ranks and does not predict values: give GridSearchCV a `scoring`"
            )
        users, items, values = _parts(X, y, "X", True)
        return float(r2_score(values, self.predict((users, items))))

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        include_seen: bool = False,
        allow: Any = None,
        deny: Any = None,
        min_count: int = 0,
        max_count: int | None = None,
        categories: Any = None,
        max_per_category: int = 1,
    ) -> Any:
        """The best items for users, best first.

        Parameters
        ----------
        users : id, array of ids, or None for all
        n : int
            How many items.
        include_seen : bool
            Also what a user has rated already.
        allow, deny : arrays of items, optional
            Only these; never these.
        min_count, max_count : int, optional
            Only items with so many ratings in training.
        categories : dict of item to category, optional
            At most ``max_per_category`` items of one category in a list.

        Returns
        -------
        (items, scores)
            Arrays of n, or of users × n for several users; a list that is shorter ends in None (−1 where
            ids are whole numbers) and NaN. After ``set_output`` a data frame of user, item, score.
        """
        model = self._fitted
        one = np.ndim(users) == 0 and users is not None
        if users is None:
            places = np.arange(len(self.users_), dtype=np.int64)
        else:
            places = self._places([users] if one else users, "user")
        filters = self._filters(include_seen, allow, deny, min_count, max_count, categories, max_per_category)
        return self._lists(model.top(places, n, **filters), self.users_[places], one)

    def recommend_for(self, items: Any, values: Any = None, n: int = 10, **filters: Any) -> Any:
        """The best items for someone training did not see, from a handful of their ratings.

        Parameters
        ----------
        items : array of items
        values : array, optional
            Their ratings; 1 each if left out.
        n, **filters
            As in `recommend`.
        """
        model = self._fitted
        places = self._places(items, "item").tolist()
        values = [1.0] * len(places) if values is None else np.asarray(values, dtype=float).tolist()
        options = {
            "include_seen": False,
            "allow": None,
            "deny": None,
            "min_count": 0,
            "max_count": None,
            "categories": None,
            "max_per_category": 1,
        }
        unknown = set(filters) - set(options)
        if unknown:
            raise TypeError(f"recommend_for() got an unexpected keyword argument '{unknown.pop()}'")
        filters = self._filters(**{**options, **filters})
        return self._lists(model.top_for(places, values, n, **filters), None, True)

    def similar_items(self, items: Any, n: int = 10) -> Any:
        """The items most like these (cosine), without themselves: ``(items, scores)``."""
        model = self._fitted
        one = np.ndim(items) == 0
        places = self._places([items] if one else items, "item")
        return self._lists(model.similar_items(places.tolist(), n), self.items_[places], one)

    def similar_users(self, users: Any, n: int = 10) -> Any:
        """The users most like these (cosine), without themselves: ``(users, scores)``."""
        model = self._fitted
        one = np.ndim(users) == 0
        places = self._places([users] if one else users, "user")
        return self._lists(model.similar_users(places.tolist(), n), self.users_[places], one, self.users_)

    def explain(self, user: Any, item: Any) -> dict[str, Any]:
        """Why the score of an item for a user is what it is.

        Returns
        -------
        dict
            ``score``, ``base`` and ``contributions``: (item, rating, what it adds), largest first.
        """
        model = self._fitted
        (user,), (item,) = self._places([user], "user"), self._places([item], "item")
        score, base, parts = model.explain(int(user), int(item))
        return {
            "score": score,
            "base": base,
            "contributions": [(self.items_[at], value, part) for at, value, part in parts],
        }

    def set_output(self, *, transform: str | None = None) -> Any:
        """Which frame lists come as: ``"default"`` (arrays), ``"pandas"``, ``"polars"`` or ``"pyarrow"``."""
        if transform is None:
            return self
        if transform not in ("default", "pandas", "polars", "pyarrow"):
            raise ValueError(
                f"transform = {transform!r}: must be one of default, pandas, polars, pyarrow"
            )
        self._frames = transform
        return self

    # Attributes.

    @property
    def user_factors_(self) -> np.ndarray:
        """The vectors of the users, users × rank."""
        return self._learned("user_factors", "user_factors_")

    @property
    def item_factors_(self) -> np.ndarray:
        """The vectors of the items, items × rank."""
        return self._learned("item_factors", "item_factors_")

    @property
    def user_biases_(self) -> np.ndarray:
        """The biases of the users."""
        return self._learned("user_bias", "user_biases_")

    @property
    def item_biases_(self) -> np.ndarray:
        """The biases of the items."""
        return self._learned("item_bias", "item_biases_")

    def _learned(self, name: str, attribute: str) -> np.ndarray:
        if "model_" not in self.__dict__ or (found := self._tensor(name)) is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")
        return found

    # Help.

    def _places(self, ids: Any, what: str) -> np.ndarray:
        """The places of ids among those of training."""
        model = self._fitted
        column = _id_column(ids)
        places = model.find_users(column) if what == "user" else model.find_items(column)
        if (places < 0).any():
            unknown = list(column)[int(np.argmax(places < 0))]
            hint = (
                "someone training did not see gets recommendations by recommend_for"
                if what == "user"
                else "training did not see it"
            )
            raise ValueError(f"unknown {what} {unknown!r}: {hint}")
        return places

    def _filters(
        self,
        include_seen: bool,
        allow: Any,
        deny: Any,
        min_count: int,
        max_count: int | None,
        categories: Any,
        max_per_category: int,
    ) -> dict[str, Any]:
        grouped = None
        if categories is not None:
            numbers: dict[Any, int] = {}
            of_item = [
                None
                if (group := categories.get(item)) is None
                else numbers.setdefault(group, len(numbers))
                for item in self.items_.tolist()
            ]
            grouped = (of_item, max_per_category)
        return {
            "include_seen": include_seen,
            "allow": None if allow is None else self._places(allow, "item").tolist(),
            "deny": [] if deny is None else self._places(deny, "item").tolist(),
            "min_count": min_count,
            "max_count": max_count,
            "categories": grouped,
        }

    def _lists(self, lists: tuple[Any, Any], rows: Any, one: bool, ids: Any = None) -> Any:
        """Lists of places and scores as ids and scores, or as a frame."""
        places, scores = lists
        ids = self.items_ if ids is None else ids
        absent = places < 0
        found = ids[np.where(absent, 0, places)]
        if absent.any():
            found[absent] = -1 if found.dtype.kind == "i" else None
        frames = getattr(self, "_frames", "default")
        if frames == "default":
            return (found[0], scores[0]) if one else (found, scores)
        keep = ~absent
        columns: dict[str, Any] = {}
        if rows is not None:
            columns["for"] = np.repeat(rows, found.shape[1]).reshape(found.shape)[keep]
        columns["item" if ids is self.items_ else "user"] = found[keep]
        columns["score"] = scores[keep]
        return _frame(columns, frames)


def _frame(columns: dict[str, Any], kind: str) -> Any:
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if kind == "polars":
        import polars

        return polars.DataFrame({name: column.tolist() for name, column in columns.items()})
    import pyarrow

    return pyarrow.table({name: column.tolist() for name, column in columns.items()})


def _as_ids(ids: Any) -> np.ndarray:
    return ids if isinstance(ids, np.ndarray) else np.asarray(ids, dtype=object)
