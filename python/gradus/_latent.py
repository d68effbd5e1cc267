"""Principal component analysis: components, variances, batches, the density of samples."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from gradus import _gradus
from gradus._base import _seed
from gradus._transform import Transformer, WithDensity


class PrincipalComponents(WithDensity, Transformer):
    """A transformer that projects samples on their principal components.

    Densities and draws are those of probabilistic PCA.
    """

    #: The batches of `partial_fit`, and what is left of them in a copy or a pickle.
    _batches: Any = None
    _state: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fits the model. Batches of `partial_fit` are forgotten.

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
        self._batches = self._state = None
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Adds a batch of samples to those of earlier calls, and fits the model to all of them.

        The result is that of a fit to all batches at once, but for rounding; no sample is kept. Memory is a
        matrix of features × features.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
        y : ignored
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.

        Returns
        -------
        self
        """
        first = self._batches is None and self._state is None
        features, _, _ = self._features(X, reset=first)
        weights = None
        if sample_weight is not None:
            rows = np.empty((features.shape[0], 1))
            weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        if self._batches is None:
            self._batches = _gradus.Batches(json.dumps(self._record()), features, self._state)
            self._state = None
        try:
            self._batches.push(features, weights)
            self._take(self._batches.finish())
        except ValueError:
            if first:
                self._batches = None
            raise
        self._read_coefficients()
        self.n_samples_seen_ = self.n_samples_
        return self

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """New samples from the distribution of probabilistic PCA.

        Parameters
        ----------
        n_samples : int, default 1
        random_state : int, numpy generator or None

        Returns
        -------
        array, samples × features
        """
        return self._fitted.generate(n_samples, _seed(random_state))

    def get_covariance(self) -> np.ndarray:
        """The covariance matrix of the model, features × features."""
        components = self._fitted and self.components_
        beyond = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        covariance = (components.T * beyond) @ components
        covariance[np.diag_indices_from(covariance)] += self.noise_variance_
        return covariance

    def _read_coefficients(self) -> None:
        variances, weight = self._tensor("spectrum"), self._tensor("weight")[0]
        total, noise = self._tensor("total_variance")[0], self._tensor("noise_variance")[0]
        dtype = np.float32 if self._single else np.float64
        self.components_ = self._tensor("components").astype(dtype, copy=False)
        self.n_components_ = k = len(self.components_)
        self.n_samples_ = int(self._fitted.summary["samples"])
        self.mean_ = self._tensor("mean").astype(dtype, copy=False)
        variances = variances[:k]
        self.explained_variance_ = variances.astype(dtype)
        self.explained_variance_ratio_ = (variances / total if total > 0 else np.zeros(k)).astype(dtype)
        self.singular_values_ = np.sqrt(variances * max(weight - 1.0, 0.5 * weight)).astype(dtype)
        self.noise_variance_ = float(noise)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        batches = state.pop("_batches", None)
        if batches is not None:
            state["_state"] = batches.state()
        return state
