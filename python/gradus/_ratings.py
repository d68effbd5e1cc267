"""Estimators of ratings: recommenders."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if

from gradus import _gradus
from gradus._base import DESCRIBED, Estimator
from gradus._ids import id_column
from gradus._side import columns_of, with_side

_ROLES = ("user", "item", "rating")


def _frame_columns(X: Any) -> list[Any] | None:
    """The labels of the columns, if this is a data frame."""
    if hasattr(X, "column_names"):
        return list(X.column_names)
    if hasattr(X, "columns"):
        return list(X.columns)
    return None


def _column(X: Any, names: list[Any], at: int) -> np.ndarray:
    if hasattr(X, "iloc"):
        return X.iloc[:, at].to_numpy()
    if hasattr(X, "column_names"):
        return X.column(at).to_numpy(zero_copy_only=False)
    return X[names[at]].to_numpy()


def _frame_roles(X: Any, labels: list[Any], what: str) -> list[int | None]:
    """The places of the columns of users, items, values and weights.

    Columns with names are found by the names that the file readers know; columns without (numbers from
    0, as pandas makes them) are user, item and value in this order.
    """
    if not any(isinstance(label, str) for label in labels):
        return [at if at < len(labels) else None for at in range(3)] + [None]
    names = [str(label) for label in labels]
    user, item, value, weight, _ = _gradus.rating_columns(names)
    for role, at in zip((*_ROLES, "weight"), (user, item, value, weight)):
        if at is not None and names.count(names[at]) > 1:
            raise ValueError(f"{what}: there are several columns `{names[at]}`, which is to be the {role}")
    for role, at in zip(_ROLES[:2], (user, item)):
        if at is None:
            raise ValueError(f"{what}: {_absent(role, names)}")
    return [user, item, value, weight]


def _absent(role: str, names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:12]) + (", …" if len(names) > 12 else "")
    return (
        f"there is no {role} column among {shown}: rename the column to `{role}`, or give a tuple "
        "(users, items, values)"
    )


def _parts(X: Any, y: Any, what: str, need_values: bool) -> tuple[Any, Any, Any, Any]:
    """Users, items, values and weights from any of the forms they come in; None of values that are not there."""
    if scipy.sparse.issparse(X):
        X = X.tocoo()
        return X.row.astype(np.int64), X.col.astype(np.int64), X.data, None
    labels = _frame_columns(X)
    if labels is not None:
        roles = _frame_roles(X, labels, what)
        if need_values and y is None and roles[2] is None:
            raise ValueError(f"{what}: {_absent('rating', [str(label) for label in labels])}")
        columns = [None if at is None else _column(X, labels, at) for at in roles]
    elif isinstance(X, tuple) and len(X) in (2, 3):
        columns = list(X) + [None] * (4 - len(X))
        if len({len(column) for column in columns if column is not None}) > 1:
            lengths = [len(column) for column in columns if column is not None]
            raise ValueError(f"{what}: users, items and values differ in length: {lengths}")
    else:
        array = np.asarray(X)
        if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
            # NumPy would make text of NaN and None beside text.
            array = np.asarray(X, dtype=object)
        if array.ndim != 2 or array.shape[1] not in (2, 3):
            raise ValueError(
                f"{what}: expected pairs of user and item (n × 2, or n × 3 with the value), a data frame "
                f"of such columns, a tuple of arrays or a sparse matrix of users × items; got shape {array.shape}"
            )
        columns = [array[:, at] for at in range(array.shape[1])] + [None] * (4 - array.shape[1])
    users, items, values, weights = columns
    if y is not None:
        values = np.asarray(y)
    if users is None or items is None:
        raise ValueError(f"{what}: needs a column of users and one of items")
    if values is None and need_values:
        raise ValueError(f"{what}: needs the value of each pair: as y, or as a third column")
    if values is not None and len(values) != len(users):
        raise ValueError(f"{what}: {len(users)} pairs of user and item, but {len(values)} values")
    return users, items, values, weights


def _ratings(X: Any, y: Any, weights: Any, what: str, duplicates: str, need_values: bool) -> Any:
    return _ratings_and_kind(X, y, weights, what, duplicates, need_values)[0]


def _ratings_and_kind(
    X: Any, y: Any, weights: Any, what: str, duplicates: str, need_values: bool
) -> tuple[Any, bool]:
    """Ratings, and whether they have values; each pair counts as 1 otherwise."""
    users, items, values, own_weights = _parts(X, y, what, need_values)
    if len(users) == 0:
        raise ValueError(f"{what}: there are no ratings (0 samples)")
    rated = values is not None
    values = np.ascontiguousarray(values if rated else np.ones(len(users)), dtype=np.float32)
    weights = own_weights if weights is None else weights
    if weights is not None:
        weights = np.ascontiguousarray(weights, dtype=np.float32)
    users, items = id_column(users, f"{what}, users"), id_column(items, f"{what}, items")
    return _gradus.Ratings(users, items, values, weights, duplicates), rated


def _pairs(X: Any) -> tuple[Any, Any]:
    """The ids of users and items, without values."""
    users, items, _, _ = _parts(X, None, "X", False)
    return id_column(users, "X, users"), id_column(items, "X, items")


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
        user_features: Any = None,
        item_features: Any = None,
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
        user_features, item_features : data frame or tuple, optional
            Side information, for models that learn from it (`Als`): a data frame with a column of ids and any
            others (numbers, words, lists like ``"Action|Comedy"``), or a tuple ``(ids, features)``. Users and
            items that only these tables have can be recommended to, and be recommended.

        Returns
        -------
        self
        """
        explicit = not self._implicit
        ratings = _ratings(X, y, sample_weight, "X", duplicates, explicit)
        ratings = with_side(ratings, user_features, item_features)
        held_out = None
        if validation is not None:
            held_out = _ratings(validation, None, None, "validation", duplicates, explicit)
        self._fit_by(
            _gradus.fit_ratings, self._kind, json.dumps(self._record()), ratings, validation=held_out, warm=self._warm()
        )
        self._name()
        return self

    @available_if(_takes_new_ratings)
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        duplicates: str = "last",
        items: bool = False,
        user_features: Any = None,
        item_features: Any = None,
    ) -> Any:
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
        user_features, item_features
            As in `fit`: of new users and items, and newer ones of known ones.

        Returns
        -------
        self
        """
        if "model_" not in self.__dict__:
            return self.fit(
                X, y, duplicates=duplicates, user_features=user_features, item_features=item_features
            )
        ratings = _ratings(X, y, None, "X", duplicates, not self._implicit)
        ratings = with_side(ratings, user_features, item_features, self.model_)
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
        return model.predict_pairs(*_pairs(X))

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Returns intervals that contain the ratings with probability ``level``: pairs × 2."""
        model = self._fitted
        found = model.intervals(*_pairs(X), float(level))
        if found is None:
            raise NotImplementedError(f"{type(self).__name__} does not know how sure it is; Bayes does")
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the score on held-out ratings; larger is better.

        R² of the predicted values for a model of values; NDCG@10 of the lists for a model of
        interactions, which ranks. `gradus.ranking_scorer` makes scorers of other ranking measures.

        Parameters
        ----------
        X, y
            Ratings as in `fit`.
        """
        if self._implicit:
            return self.ranking(X, y)["ndcg"]
        users, items, values, _ = _parts(X, y, "X", True)
        return float(r2_score(values, self.predict((users, items))))

    def ranking(self, X: Any, y: Any = None, *, at: int = 10, threshold: float | None = None) -> dict[str, float]:
        """Evaluates the ranking of held-out items.

        Every item that a user does not have in training is ranked; the held-out items are the relevant
        ones. Users and items that training did not see are left out.

        Parameters
        ----------
        X, y
            Held-out ratings as in `fit`.
        at : int
            The length of the lists.
        threshold : float, optional
            Only ratings of at least this value are relevant; by default the upper quarter of the scale of a model of
            ratings (4 of 1–5), and all of a model of interactions, as in ``gradus evaluate --ranking``.

        Returns
        -------
        dict
            Means over users: ``precision``, ``recall``, ``ndcg``, ``map``, ``mrr``, ``hit_rate``.
        """
        model = self._fitted
        held_out, rated = _ratings_and_kind(X, y, None, "X", "last", False)
        threshold = None if threshold is None else float(threshold)
        return dict(model.ranking(held_out, int(at), threshold, rated))

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

    def recommend_for(
        self, items: Any = None, values: Any = None, n: int = 10, *, user_features: Any = None, **filters: Any
    ) -> Any:
        """The best items for someone training did not see, from a handful of their ratings or their features.

        Parameters
        ----------
        items : array of items
        values : array, optional
            Their ratings; 1 each if left out.
        n, **filters
            As in `recommend`.
        user_features : data frame or array, optional
            Features as in training, without ids: a row for each person, of a model that was fitted with
            features of users. Ratings, if there are any, are those of all of them.

        Returns
        -------
        (items, scores)
            Arrays of n; of rows × n with features.
        """
        model = self._fitted
        if items is None and user_features is None:
            raise ValueError("recommend_for: give items that were rated, features of the user, or both")
        places = [] if items is None else self._places(items, "item").tolist()
        values = [1.0] * len(places) if values is None else np.asarray(values, dtype=float).tolist()
        unknown = set(filters) - set(inspect.signature(self._filters).parameters)
        if unknown:
            raise TypeError(f"recommend_for() got an unexpected keyword argument '{unknown.pop()}'")
        filters = self._filters(**filters)
        if user_features is not None:
            columns = columns_of(user_features, "user_features")
            rated = (places, values) if places else None
            return self._lists(model.top_described(columns, rated, n, **filters), None, False)
        return self._lists(model.top_for(places, values, n, **filters), None, True)

    def similar_items(self, items: Any, n: int = 10) -> Any:
        """The items most like these (cosine), without themselves: ``(items, scores)``.

        After ``set_output`` a data frame of item, similar_item, score.
        """
        model = self._fitted
        one = np.ndim(items) == 0
        places = self._places([items] if one else items, "item")
        return self._lists(model.similar_items(places.tolist(), n), self.items_[places], one, "item", "similar_item")

    def similar_users(self, users: Any, n: int = 10) -> Any:
        """The users most like these (cosine), without themselves: ``(users, scores)``.

        After ``set_output`` a data frame of user, similar_user, score.
        """
        model = self._fitted
        one = np.ndim(users) == 0
        places = self._places([users] if one else users, "user")
        return self._lists(model.similar_users(places.tolist(), n), self.users_[places], one, "user", "similar_user")

    def explain(self, user: Any, item: Any) -> dict[str, Any]:
        """Why the score of an item for a user is what it is.

        Returns
        -------
        dict
            ``score``, ``base`` and ``contributions``: (item, rating, what it adds), largest first. Of a model with
            features also ``user_features``: (feature, what it adds), and ``item_features``, another account of the
            same score.
        """
        model = self._fitted
        (user,), (item,) = self._places([user], "user"), self._places([item], "item")
        score, base, parts, of_user, of_item = model.explain(int(user), int(item))
        found = {
            "score": score,
            "base": base,
            "contributions": [(self.items_[at], value, part) for at, value, part in parts],
        }
        if of_user:
            found["user_features"] = of_user
        if of_item:
            found["item_features"] = of_item
        return found

    def set_output(self, *, transform: str | None = None) -> Any:
        """Sets the type of the returned lists: ``"default"`` (arrays), ``"pandas"``, ``"polars"`` or ``"pyarrow"``."""
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
        column = id_column(ids, f"{what}s")
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
        include_seen: bool = False,
        allow: Any = None,
        deny: Any = None,
        min_count: int = 0,
        max_count: int | None = None,
        categories: Any = None,
        max_per_category: int = 1,
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

    def _lists(self, lists: tuple[Any, Any], rows: Any, one: bool, by: str = "user", of: str = "item") -> Any:
        """Lists of places and scores as ids and scores, or as a frame with columns `by`, `of` and score."""
        places, scores = lists
        ids = self.users_ if of == "similar_user" else self.items_
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
            columns[by] = np.repeat(rows, found.shape[1]).reshape(found.shape)[keep]
        columns[of] = found[keep]
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


_MEASURES = ("precision", "recall", "ndcg", "map", "mrr", "hit_rate")


class ranking_scorer:
    """A scorer for `GridSearchCV`, `cross_val_score` and the like: a ranking measure of held-out ratings.

    Parameters
    ----------
    measure : {"ndcg", "precision", "recall", "map", "mrr", "hit_rate"}
    at : int
        The length of the lists.
    threshold : float, optional
        Only held-out ratings of at least this value are right; by default as in `ranking` of the recommenders.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus import ranking_scorer
    >>> from gradus.factor import Ials
    >>> from sklearn.model_selection import cross_val_score
    >>> pairs = np.unique(np.random.default_rng(0).integers(0, 20, (200, 2)), axis=0)
    >>> cross_val_score(Ials(rank=2), pairs, scoring=ranking_scorer("recall", at=5), cv=3).shape
    (3,)
    """

    def __init__(self, measure: str = "ndcg", at: int = 10, threshold: float | None = None) -> None:
        if measure not in _MEASURES:
            raise ValueError(f"measure = {measure!r}: must be one of {', '.join(_MEASURES)}")
        self.measure, self.at, self.threshold = measure, at, threshold

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        return estimator.ranking(X, y, at=self.at, threshold=self.threshold)[self.measure]

    def __repr__(self) -> str:
        return f"ranking_scorer({self.measure!r}, at={self.at})"
