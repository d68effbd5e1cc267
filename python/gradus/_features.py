"""Estimators of features: regressors and classifiers."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from gradus import _gradus
from gradus._base import Estimator


def _is_frame_of_words(X: Any) -> bool:
    """Whether this is a table with a column that is not of numbers."""
    if not hasattr(X, "__arrow_c_stream__") or not hasattr(X, "columns"):
        return False
    if hasattr(X, "dtypes") and hasattr(X, "iloc"):  # pandas
        return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in X.dtypes)
    if hasattr(X, "column_names"):  # pyarrow
        import pyarrow.types as types

        numeric = (types.is_integer, types.is_floating, types.is_boolean)
        return any(not any(test(field.type) for test in numeric) for field in X.schema)
    if hasattr(X, "schema"):  # polars
        return any(not (dtype.is_numeric() or dtype.base_type().__name__ == "Boolean") for dtype in X.dtypes)
    return False


def _names(X: Any) -> list[str]:
    names = X.column_names if hasattr(X, "column_names") else X.columns
    return [str(name) for name in names]


class _FeatureEstimator(Estimator):
    """What regressors and classifiers share."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _features(self, X: Any, *, reset: bool, y: Any = None, **checks: Any) -> Any:
        """Features as the compiled part takes them, and the target as an array."""
        if _is_frame_of_words(X):
            features = _gradus.Features.table(X, None if reset else self._fitted)
            names = _names(X)
            if reset:
                self.n_features_in_ = len(names)
                self.feature_names_in_ = np.asarray(names, dtype=object)
            elif features.unknown_words:
                warnings.warn(
                    f"{features.unknown_words} words that training did not see count as none of "
                    "those it saw",
                    UserWarning,
                    stacklevel=3,
                )
            return features, y
        options = {
            "accept_sparse": "csr",
            "dtype": np.float64,
            "order": "C",
            # The compiled part looks, and names row and column.
            "ensure_all_finite": False,
            "reset": reset,
        }
        if y is None:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options, **checks)
        if scipy.sparse.issparse(X):
            if not X.has_canonical_format:
                # A copy: it may be the caller's own.
                X = X.copy()
                X.sum_duplicates()
            features = _gradus.Features.sparse(X.data, X.indices, X.indptr, X.shape[1])
        else:
            features = _gradus.Features.dense(X)
        if reset and hasattr(self, "feature_names_in_"):
            features = features.named([str(name) for name in self.feature_names_in_])
        return features, y

    def _plain(self, X: Any) -> bool:
        """Whether these are features as the compiled part takes them, which checks width and values."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and "feature_names_in_" not in self.__dict__
        )

    def _scores(self, X: Any) -> np.ndarray:
        model = self._fitted
        if self._plain(X):
            return model.scores_of(X)
        features, _ = self._features(X, reset=False)
        return model.scores(features)

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        columns = model.columns
        if columns is None:
            self.n_features_in_ = model.n_features
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
        self.coef_, self.intercept_ = self._shaped(coefficients, intercepts)


class Regressor(RegressorMixin, _FeatureEstimator):
    """A model that predicts numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
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
        features, target = self._features(X, reset=True, y=y, multi_output=True, y_numeric=True)
        target = np.asarray(target, dtype=np.float64)
        self._one_target = target.ndim == 1
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, target, dtype=np.float64, ensure_non_negative=True)
        told = self._told()
        model = _gradus.fit(
            self._kind,
            json.dumps(self._record()),
            features,
            y=target.reshape(target.shape[0], -1),
            weights=weights,
            target=names,
            told=told,
        )
        if told is not None:
            told.done()
        self._take(model)
        self._read_coefficients()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicts the numbers of samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array, samples (× targets, if ``y`` had columns)
        """
        scores = self._scores(X)
        return scores[:, 0] if self._one_target else scores

    def _adopt(self, model: Any) -> None:
        self._one_target = len(model.tensor("intercepts")[2]) == 8
        super()._adopt(model)

    def _shaped(self, coefficients: np.ndarray, intercepts: np.ndarray) -> tuple[Any, Any]:
        if self._one_target:
            return coefficients[0], float(intercepts[0])
        return coefficients, intercepts


class Classifier(ClassifierMixin, _FeatureEstimator):
    """A model that predicts classes."""

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
        features, y = self._features(X, reset=True, y=y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
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
        told = self._told()
        model = _gradus.fit(
            self._kind,
            json.dumps(record),
            features,
            codes=codes.astype(np.uint32),
            classes=_labels(classes),
            weights=weights,
            target=names,
            told=told,
        )
        if told is not None:
            told.done()
        self.classes_ = classes
        self._take(model)
        self._read_coefficients()
        return self

    class_weight: Any

    def _record_for(self, classes: np.ndarray) -> dict[str, Any]:
        """The parameters, but for weights of classes by name: those are weights of samples."""
        given = getattr(self, "class_weight", None)
        if not isinstance(given, dict):
            return self._record()
        unknown = [name for name in given if name not in classes]
        if unknown:
            raise ValueError(
                f"parameter `class_weight`: {unknown[0]!r} is not one of the classes, {classes.tolist()}"
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
        """How strongly each class is held to be the one.

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
        model = self._fitted
        if self._plain(X):
            found = model.probabilities_of(X)
        else:
            features, _ = self._features(X, reset=False)
            found = model.probabilities(features)
        if found is None:
            raise AttributeError(f"this {type(self).__name__} was fitted without probabilities")
        return found

    @available_if(_knows_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def _adopt(self, model: Any) -> None:
        classes = model.classes
        self.classes_ = classes if isinstance(classes, np.ndarray) else np.asarray(classes)
        super()._adopt(model)

    def _shaped(self, coefficients: np.ndarray, intercepts: np.ndarray) -> tuple[Any, Any]:
        return coefficients, intercepts


def _target_names(y: Any) -> list[str] | None:
    name = getattr(y, "name", None)
    if isinstance(name, str):
        return [name]
    if hasattr(y, "columns"):
        return [str(column) for column in y.columns]
    return None


def _labels(classes: np.ndarray) -> Any:
    """Classes as the model file holds them: whole numbers or words, ascending as they are."""
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f" and np.all(classes == np.trunc(classes)):
        return classes.astype(np.int64)
    return [str(name) for name in classes.tolist()]
