"""Clusters with centres: what scikit-learn's KMeans has besides labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_array

from gradus import _gradus
from gradus._transform import Clusterer


class CentreClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """A clustering around centres, which also transforms samples into their distances to the centres."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _warm(self) -> Any:
        init = self.init
        if isinstance(init, str):
            if init != "k-means++":
                raise ValueError(f"parameter `init` = {init!r}: must be 'k-means++' or an array of clusters × features")
            return super()._warm()
        centres = check_array(init, dtype=np.float64, input_name="init", ensure_min_samples=1)
        if centres.shape[1] != self.n_features_in_:
            raise ValueError(
                f"parameter `init` has shape {centres.shape}: must have a column for each of {self.n_features_in_} features"
            )
        if self.n_clusters is not None and len(centres) != self.n_clusters:
            raise ValueError(
                f"parameter `init` has shape {centres.shape}: must have a row for each of {self.n_clusters} clusters"
            )
        return _gradus.centres_model(np.ascontiguousarray(centres))

    def _read_coefficients(self) -> None:
        centres = self._tensor("centres")
        self.cluster_centers_ = centres.astype(np.float32) if self._single else centres
        self.inertia_ = float(self._tensor("inertia")[0])

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        self._read_coefficients()

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each sample to each centre.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array, samples × clusters
        """
        return self.distances(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fits the model, and gives the distance of each sample to each centre."""
        return self.fit(X, y, sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The negative of the inertia of samples: the larger, the nearer they are to the centres.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
        y : ignored
        sample_weight : array, optional
        """
        nearest = np.asarray(self.distances(X), dtype=np.float64).min(axis=1)
        costs = nearest if self.metric == "cosine" else nearest**2
        if sample_weight is None:
            return -float(costs.sum())
        weights = _check_sample_weight(sample_weight, costs[:, None], dtype=np.float64)
        return -float(weights @ costs)
