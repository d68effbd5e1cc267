"""Estimators of features without a target: transformers and clusterings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, _check_sample_weight, check_array

from gradus import _gradus
from gradus._features import _FeatureEstimator, _aligned


class _Unsupervised(_FeatureEstimator):
    """Shared parts of transformers and clusterings."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _fit(self, X: Any, sample_weight: Any) -> Any:
        """Fits the model; gives the features it was fitted to."""
        features, _, _ = self._features(X, reset=True)
        weights = None
        if sample_weight is not None:
            rows = np.empty((features.shape[0], 1))
            weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        self._fit_by(
            _gradus.fit,
            self._kind,
            json.dumps(self._record()),
            features,
            weights=weights,
            warm=self._warm(),
        )
        return features

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
            Columns of words in a data frame become a feature for each word.
        y : ignored
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.

        Returns
        -------
        self
        """
        self._fitted_to(self._fit(X, sample_weight))
        return self

    def _fitted_to(self, features: Any) -> None:
        """Sets the attributes of a fit to these features."""
        self._read_coefficients()

    def _of_features(self, X: Any, method: str) -> Any:
        """Applies a method of the model to samples."""
        model = self._fitted
        frame, X = X, self._numbers_of(X)
        if frame is not X or self._plain(X):
            features, single = _gradus.Features.dense(_aligned(X)), X.dtype == np.float32
        else:
            features, _, single = self._features(X, reset=False)
        found = getattr(model, method)(features)
        if single and self._single and found is not None and found.dtype == np.float64:
            return found.astype(np.float32)
        return found

    def _read_coefficients(self) -> None:
        """There are none."""


class Transformer(TransformerMixin, _Unsupervised):
    """A model that turns features into others.

    `fit_transform` and `set_output` are those of scikit-learn.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> np.ndarray:
        """Transforms samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array, samples × transformed features
        """
        return self._of_features(X, "transform")

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The features that are transformed into these, or the nearest to that.

        Parameters
        ----------
        X : array, samples × transformed features

        Returns
        -------
        array, samples × features
        """
        model = self._fitted
        array = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        found = model.inverse_transform(_gradus.Features.dense(_aligned(array)))
        if found is None:
            raise NotImplementedError(f"{type(self).__name__} transforms in one direction only")
        return found.astype(np.float32) if array.dtype == np.float32 and self._single else found

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the transformed features.

        Parameters
        ----------
        input_features : array of str, optional
            Not used but checked against ``feature_names_in_``, as scikit-learn does.
        """
        model = self._fitted
        _check_feature_names_in(self, input_features)
        return np.asarray(model.output_names, dtype=object)


class WithDensity:
    """The methods of models that know the density of samples."""

    def score_samples(self, X: Any) -> np.ndarray:
        """The natural logarithm of the density of each sample.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array of samples
        """
        return self._of_features(X, "log_density")

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
        y : ignored
        """
        return float(np.mean(self.score_samples(X), dtype=np.float64))


class Clusterer(ClusterMixin, _Unsupervised):
    """A model that groups samples into clusters, numbered from 0. `fit` sets ``labels_``.

    `fit_predict` is that of scikit-learn.
    """

    def _fitted_to(self, features: Any) -> None:
        labels = self._fitted.training_labels()
        self.labels_ = self._fitted.labels(features) if labels is None else labels
        super()._fitted_to(features)

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each sample; −1 of one that belongs to none.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array of samples
        """
        return self._of_features(X, "labels")

    def distances(self, X: Any) -> np.ndarray:
        """The distance of each sample to each cluster, samples × clusters, of a model that has distances."""
        return self._known(X, "distances", "has no distances to clusters")

    def memberships(self, X: Any) -> np.ndarray:
        """The probability that each sample belongs to each cluster, samples × clusters, of a model that knows it."""
        return self._known(X, "memberships", "does not know the probability of a cluster")

    def _known(self, X: Any, method: str, lacks: str) -> np.ndarray:
        found = self._of_features(X, method)
        if found is None:
            raise NotImplementedError(f"{type(self).__name__} {lacks}")
        return found

    @property
    def n_clusters_(self) -> int:
        """The number of clusters that were found."""
        return self._learned("n_clusters", "n_clusters_")

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """The number of training samples in each cluster."""
        return self._learned("cluster_sizes", "cluster_sizes_")

    def _learned(self, name: str, attribute: str) -> Any:
        if "model_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")
        return getattr(self.model_, name)
