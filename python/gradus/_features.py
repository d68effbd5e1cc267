"""Estimators of features: regressors and classifiers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from gradus import _gradus
from gradus._base import Estimator, warn
from gradus._frames import has_words, is_frame, typed
from gradus._path import RegularizationPath


_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)


class _FeatureEstimator(Estimator):
    """Shared parts of regressors and classifiers."""

    #: The substitute for a missing value: see the constructors of the estimators.
    missing: str

    #: Whether the fit was given `float32`, which coefficients and predictions then are, too.
    _single = False

    #: Whether the model is a baseline, which learns nothing from the features.
    _is_baseline = False

    #: The data that the model encodes itself: the columns of a "frame", or those of an "array"
    #: with missing values.
    _encodes: str | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    @property
    def _keeps_single(self) -> bool:
        """Whether results are `float32` where the data were; support vector machines give `float64`."""
        return self._kind not in ("svm", "svr")

    def _features(self, X: Any, *, reset: bool, y: Any = None, **checks: Any) -> tuple[Any, Any, bool]:
        """Features as the compiled part takes them, the target as an array, and whether X is `float32`."""
        if reset:
            self._encodes = None
            self._single = False
            at_once = self._ready(X, y)
            if at_once is not None:
                return at_once
        if is_frame(X) and (has_words(X) or self._from_frame(reset)):
            if y is not None:
                y = _check_y(y, multi_output=checks.get("multi_output", False), y_numeric=checks.get("y_numeric", False), estimator=self)
                check_consistent_length(X, y)
            return self._columns(X, reset), y, False
        if not reset and self._plain_sparse(X):
            features = _gradus.Features.sparse(X.data, X.indices, X.indptr, X.shape[1], "coef_" not in self.__dict__)
            return features, y, X.dtype == _SINGLE
        if self._encodes == "frame":
            raise ValueError(
                f"X: {type(self).__name__} was fitted to a data frame with columns of words; give a data "
                f"frame with the columns {', '.join(f'`{name}`' for name in self.feature_names_in_)}"
            )
        options = {
            "accept_sparse": "csr",
            "dtype": [np.float64, np.float32],
            # The compiled part looks, and names row and column.
            "ensure_all_finite": False,
            "reset": reset,
        }
        if y is None:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options, **checks)
        single = X.dtype == np.float32
        if reset:
            self._single = self._keeps_single and single
        if scipy.sparse.issparse(X):
            # Where scores are sums over the features of a row, their order does not matter.
            canonical = reset or "coef_" not in self.__dict__
            features = _gradus.Features.sparse(X.data, X.indices, X.indptr, X.shape[1], canonical)
        elif self._encodes == "array" or (reset and self.missing not in ("refuse", "keep")):
            columns = [(f"x{at}", np.asarray(X[:, at], dtype=np.float64)) for at in range(X.shape[1])]
            features = _gradus.Features.table(columns, None if reset else self._fitted, self.missing)
            self._encodes = "array"
        else:
            features = _gradus.Features.dense(_aligned(X))
        if reset and self._encodes is None and hasattr(self, "feature_names_in_"):
            features = features.named([str(name) for name in self.feature_names_in_], self.missing == "keep")
        return features, y, single

    def _ready(self, X: Any, y: Any) -> tuple[Any, Any, bool] | None:
        """Returns what `_features` returns, for arrays that need no more than the checks of the compiled part, and for
        pandas frames of one type of numbers: scikit-learn's checks take longer than a fit of a few hundred samples."""
        y = _numbers_behind(y)
        if self.missing != "refuse" or type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "fiub":
            return None
        names = None
        if _of_pandas(X):
            names = np.asarray(X.columns, dtype=object)
            if not all(isinstance(name, str) for name in names):
                return None
            X = _numbers_behind(X)
        if not _is_matrix(X) or X.shape[0] != y.shape[0] or not np.isfinite(y.sum(dtype=np.float64)):
            return None
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        features = _gradus.Features.dense(_aligned(X))
        if names is not None:
            self.feature_names_in_ = names
            features = features.named(names.tolist())
        single = X.dtype is _SINGLE
        self._single = self._keeps_single and single
        return features, y, single

    def _from_frame(self, reset: bool) -> bool:
        """Whether the columns of a frame go to the model one by one even if all are numbers."""
        return self.missing not in ("refuse", "keep") if reset else self._encodes == "frame"

    def _columns(self, X: Any, reset: bool) -> Any:
        columns = typed(X)
        if not columns or len(X) == 0:
            raise ValueError(
                f"Found array with {len(X)} sample(s) and {len(columns)} feature(s) while a minimum of 1 is required"
            )
        features = _gradus.Features.table(columns, None if reset else self._fitted, self.missing)
        if reset:
            self._encodes = "frame"
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.asarray([name for name, _ in columns], dtype=object)
        elif features.unknown_words:
            warn(f"{features.unknown_words} words that training did not see count as the mean of those it saw")
        return features

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The name of every feature the model works with, in the order of the columns of ``coef_``.

        A column of words gives several, ``colour=red``. Without names of columns they are x0, x1, …

        Parameters
        ----------
        input_features : array of str, optional
            Not used but checked against ``feature_names_in_``, as scikit-learn does.
        """
        model = self._fitted
        if self._encodes is not None:
            _check_feature_names_in(self, input_features)
            return np.asarray(model.feature_names, dtype=object)
        return _check_feature_names_in(self, input_features)

    def _plain(self, X: Any) -> bool:
        """Whether these are features as the compiled part takes them, which checks width and values."""
        return (
            _is_matrix(X)
            and X.shape[1] == self.n_features_in_
            and X.flags.aligned
            and self._encodes is None
            and "feature_names_in_" not in self.__dict__
        )

    def _plain_sparse(self, X: Any) -> bool:
        """The same of a sparse matrix by rows."""
        return (
            type(X) in (scipy.sparse.csr_matrix, scipy.sparse.csr_array)
            and (X.dtype == _DOUBLE or X.dtype == _SINGLE)
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.__dict__.get("n_features_in_")
            and "feature_names_in_" not in self.__dict__
        )

    def _numbers_of(self, X: Any) -> Any:
        """The array behind a pandas frame with the columns of training, all of one type of numbers; else ``X``."""
        if (
            not _of_pandas(X)
            or self._encodes is not None
            or getattr(X, "ndim", 0) != 2
            or len(X) == 0
            or not np.array_equal(X.columns, self.__dict__.get("feature_names_in_", ()))
        ):
            return X
        array = _numbers_behind(X)
        return array if _is_matrix(array) and array.flags.aligned else X

    def _predicted(self, X: Any, of_array: str, of_features: str) -> Any:
        """Applies a method of the model to the features."""
        model = self._fitted
        frame, X = X, self._numbers_of(X)
        if frame is not X or self._plain(X):
            single = X.dtype == _SINGLE
            if single and self._single and of_array == "scores_of":
                found = model.single_scores_of(X)
                if found is not None:
                    return found
            found = getattr(model, of_array)(X)
        else:
            features, _, single = self._features(X, reset=False)
            found = getattr(model, of_features)(features)
        return found.astype(np.float32) if single and self._single and found is not None else found

    def _scores(self, X: Any) -> np.ndarray:
        return self._predicted(X, "scores_of", "scores")

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        columns = model.columns
        if model.encodes:
            unnamed = [f"x{at}" for at in range(len(columns))]
            self._encodes = "array" if columns == unnamed else "frame"
        if columns is None or self._encodes == "array":
            self.n_features_in_ = model.n_features if columns is None else len(columns)
        else:
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.asarray(columns, dtype=object)
        self._read_coefficients()

    def _read_coefficients(self) -> None:
        """Sets ``coef_`` and ``intercept_`` in scikit-learn's shapes, where the model has them."""
        for name in ("coef_", "intercept_"):
            self.__dict__.pop(name, None)
        if self._fitted.tensor("center") is not None:
            return  # A kernel machine: its coefficients are of support vectors.
        coefficients, intercepts = self._tensor("coefficients"), self._tensor("intercepts")
        if coefficients is None or intercepts is None:
            return
        if self._single:
            coefficients, intercepts = coefficients.astype(np.float32), intercepts.astype(np.float32)
        self.coef_, self.intercept_ = self._shaped(coefficients, intercepts)


def _is_matrix(X: Any) -> bool:
    """Whether this is an array of samples × features as the compiled part takes it, with at least one of each."""
    return (
        type(X) is np.ndarray
        and (X.dtype is _DOUBLE or X.dtype is _SINGLE)
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] > 0
    )


def _of_pandas(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas"


def _numbers_behind(X: Any) -> Any:
    """The array behind a frame or a series of pandas whose columns are all of one type of NumPy's; else ``X``."""
    if not _of_pandas(X):
        return X
    dtypes = getattr(X, "dtypes", None)
    kinds = {dtypes} if isinstance(dtypes, np.dtype) else set(dtypes) if dtypes is not None else set()
    if len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype):
        return X.to_numpy()
    return X


def _aligned(X: np.ndarray) -> np.ndarray:
    """The array with elements at their natural addresses: views of records may have others."""
    size = X.dtype.itemsize
    if X.flags.aligned and all(step % size == 0 for step in X.strides):
        return X
    return np.ascontiguousarray(X)


class Regressor(RegressorMixin, _FeatureEstimator):
    """A model that predicts numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.regressor_tags.poor_score = self._is_baseline
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
            Columns of words in a data frame become a feature for each word.
        y : array
            The numbers to predict; samples × targets for several.
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} learns from it"
            )
        names = _target_names(y)
        features, target, _ = self._features(X, reset=True, y=y, multi_output=True, y_numeric=True)
        target = np.asarray(target, dtype=np.float64)
        self._target = ("vector", "column", "table")[target.ndim - 1 + (target.ndim > 1 and target.shape[1] > 1)]
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, target, dtype=np.float64, ensure_non_negative=True)
        record = self._record()
        folds = None
        if not isinstance(getattr(self, "folds", 0), (int, np.integer)):
            folds = _fold_of_each(self.folds, X, target)
            record["folds"] = int(folds.max()) + 1
        self._fit_by(
            _gradus.fit,
            self._kind,
            json.dumps(record),
            features,
            y=target.reshape(target.shape[0], -1),
            weights=weights,
            target=names,
            warm=self._warm(),
            folds=folds,
        )
        self._read_coefficients()
        return self

    def _given(self, name: str) -> Any:
        value = super()._given(name)
        # Folds of one's own go to the compiled part beside the parameters.
        return 2 if name == "folds" and not isinstance(value, (int, float, np.generic)) else value

    def predict(self, X: Any) -> np.ndarray:
        """Predicts the numbers of samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array, samples (× targets, if ``y`` had several)
        """
        scores = self._scores(X)
        return scores if self._keeps_columns else scores[:, 0]

    @property
    def path_(self) -> Any:
        """The penalties that the model chose from, as a `gradus.RegularizationPath`; a list of them, if
        ``y`` has several columns."""
        found = self._fitted.paths() if "model_" in self.__dict__ else []
        if not found:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'path_'")
        paths = [RegularizationPath._of(path, self._fitted.n_features) for path in found]
        return paths if self._target == "table" else paths[0]

    @property
    def regularization_(self) -> Any:
        """The penalty that was chosen; an array of them, if ``y`` has several columns."""
        paths = self.path_
        if isinstance(paths, list):
            return np.array([path.regularization for path in paths])
        return paths.regularization

    @property
    def _keeps_columns(self) -> bool:
        """Whether results have a column for each target: as in scikit-learn one column of ``y`` is kept
        by least squares alone."""
        if self._target == "column":
            return self._kind == "linear" and self.loss == "squared"
        return self._target == "table"

    def _adopt(self, model: Any) -> None:
        self._target = "vector" if len(model.tensor("intercepts")[2]) == 8 else "table"
        super()._adopt(model)

    def _shaped(self, coefficients: np.ndarray, intercepts: np.ndarray) -> tuple[Any, Any]:
        if self._target == "vector":
            return coefficients[0], intercepts[0]
        return (coefficients if self._keeps_columns else coefficients[0]), intercepts


class Classifier(ClassifierMixin, _FeatureEstimator):
    """A model that predicts classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self._is_baseline
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
            Columns of words in a data frame become a feature for each word.
        y : array
            The class of each sample: numbers or words.
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} learns from it"
            )
        names = _target_names(y)
        features, y, _ = self._features(X, reset=True, y=y)
        # scikit-learn's checks refuse no truth values and whole numbers, and are a large part of a small fit.
        plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "bi"
        if not plain:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        classes, codes = _classes(y)
        if plain and 2 * classes.size > y.size:
            check_classification_targets(y)  # Warns of so many classes.
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, codes, dtype=np.float64, ensure_non_negative=True)
            if np.unique(codes[weights > 0]).size < 2:
                raise ValueError(
                    f"{type(self).__name__} needs samples of at least 2 classes, and those of a weight "
                    "above 0 are of one class"
                )
        if classes.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, "
                f"but the data contains only one class: {classes[0]!r}"
            )
        record = self._record_for(classes)
        weights = self._weighted(classes, codes, weights)
        names_of_classes, order = _labels(classes)
        if order is not None:
            codes = np.argsort(order)[codes]
        self._order = order
        self.classes_ = classes
        self._fit_by(
            _gradus.fit,
            self._kind,
            json.dumps(record),
            features,
            codes=codes.astype(np.uint32),
            classes=names_of_classes,
            weights=weights,
            target=names,
            warm=self._warm(),
        )
        self._read_coefficients()
        return self

    class_weight: Any

    #: The class at each place of the model, where it has them in another order than ``classes_``.
    _order: np.ndarray | None = None

    def _record_for(self, classes: np.ndarray) -> dict[str, Any]:
        """The parameters, but for weights of classes by name: those are weights of samples."""
        given = getattr(self, "class_weight", None)
        if not isinstance(given, dict):
            return self._record()
        known = set(classes.tolist())
        unknown = [name for name in given if name not in known]
        if unknown and any(name not in given for name in known):
            # Not an error: a fold may lack the class.
            warn(
                f"parameter `class_weight`: {unknown[0]!r} is not one of the classes, {classes.tolist()}, "
                "and its weight has no effect"
            )
        self.class_weight = None
        try:
            return self._record()
        finally:
            self.class_weight = given

    def _weighted(self, classes: np.ndarray, codes: np.ndarray, weights: Any) -> Any:
        given = getattr(self, "class_weight", None)
        if not isinstance(given, dict):
            return weights
        of_class = np.array([float(given.get(name, 1.0)) for name in classes.tolist()])
        return of_class[codes] if weights is None else of_class[codes] * weights

    def _scores(self, X: Any) -> np.ndarray:
        return self._ordered(super()._scores(X))

    def _ordered(self, scores: np.ndarray) -> np.ndarray:
        """Scores of the model's classes, last axis, as those of ``classes_``."""
        if self._order is None:
            return scores
        return -scores if scores.shape[-1] == 1 else scores[..., np.argsort(self._order)]

    def predict(self, X: Any) -> np.ndarray:
        """Predicts the class of samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array of samples
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Returns the decision score of each class.

        Returns
        -------
        array of samples, in favour of ``classes_[1]`` where positive; samples × classes for more than
        two classes
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _knows_probabilities(self) -> bool:
        return getattr(self, "probability", True)

    @available_if(_knows_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, samples × classes, in the order of ``classes_``."""
        found = self._predicted(X, "probabilities_of", "probabilities")
        if found is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False: set it before `fit`"
            )
        return found if self._order is None else found[:, np.argsort(self._order)]

    @available_if(_knows_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def _adopt(self, model: Any) -> None:
        classes = model.classes
        self.classes_ = classes if isinstance(classes, np.ndarray) else np.asarray(classes)
        super()._adopt(model)

    def _shaped(self, coefficients: np.ndarray, intercepts: np.ndarray) -> tuple[Any, Any]:
        return self._ordered(coefficients.T).T, self._ordered(intercepts)


def _fold_of_each(folds: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """The fold of every sample, by a splitter of scikit-learn or pairs of indices."""
    try:
        pairs = list(check_cv(folds).split(X, y))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"parameter `folds` = {folds!r}: must be a number, a splitter of scikit-learn or pairs of "
            f"training and test indices: {error}"
        ) from error
    n = y.shape[0]
    fold_of = np.full(n, len(pairs), dtype=np.uint32)
    left_out = np.zeros(n, dtype=np.intp)
    for fold, (train, test) in enumerate(pairs):
        fold_of[test] = fold
        left_out[test] += 1
        if np.unique(train).size != n - np.unique(test).size or np.isin(train, test).any():
            left_out[:] = 0
            break
    if not np.all(left_out == 1):
        raise ValueError(
            "parameter `folds`: every sample must be in the test set of exactly one fold, and in the "
            "training sets of all others"
        )
    return fold_of


def _target_names(y: Any) -> list[str] | None:
    name = getattr(y, "name", None)
    if isinstance(name, str):
        return [name]
    if hasattr(y, "columns"):
        return [str(column) for column in y.columns]
    return None


def _classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, ascending, and the place of each sample's among them; without sorting the samples where classes are
    truth values or whole numbers close to one another."""
    if y.dtype.kind not in "bi" or y.size == 0:
        return np.unique(y, return_inverse=True)
    least, most = int(y.min()), int(y.max())
    if most - least >= 1024:
        return np.unique(y, return_inverse=True)
    places = y.astype(np.int64) - least
    present = np.bincount(places) > 0
    classes = (np.flatnonzero(present) + least).astype(y.dtype)
    return classes, places if present.all() else (np.cumsum(present) - 1)[places]


def _labels(classes: np.ndarray) -> tuple[Any, np.ndarray | None]:
    """Classes as the model file holds them, ascending: whole numbers, or words; and the order of the words
    among the classes, where it is another."""
    kind = classes.dtype.kind
    if kind in "bi" or (kind == "u" and classes[-1] < 2**63):
        return classes.astype(np.int64), None
    if kind == "f" and np.all(classes == np.trunc(classes)) and np.all(np.abs(classes) < 2**63):
        return classes.astype(np.int64), None
    words = [str(name) for name in classes.tolist()]
    order = np.array(sorted(range(len(words)), key=lambda at: words[at].encode("utf-8", "surrogatepass")))
    words = [words[at] for at in order]
    doubled = next((word for word, after in zip(words, words[1:]) if word == after), None)
    if doubled is not None:
        raise ValueError(f"y: two classes are written `{doubled}`")
    return words, None if np.array_equal(order, np.arange(len(order))) else order
