"""Non-negative matrix factorisation: components, missing entries and weights of entries."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_sample_weight, check_array

from gradus import _gradus
from gradus._features import _aligned
from gradus._transform import Transformer


class NonNegativeFactors(Transformer):
    """A transformer that says how much of each component a sample has."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = self.absent == "missing"
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, entry_weight: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
            Entries of 0 or more. Columns of words in a data frame become a feature for each word. With
            ``absent="missing"`` NaN is a missing entry, and so is what a sparse matrix does not store.
        y : ignored
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.
        entry_weight : array or sparse matrix, samples × features, optional
            How much each entry counts; one of weight 0 is missing.

        Returns
        -------
        self
        """
        try:
            X = self._known(X)
            if entry_weight is None:
                self._fit(X, sample_weight)
            else:
                self._fit_entries(X, sample_weight, entry_weight)
        except ValueError as error:
            if "is negative" not in str(error):
                raise
            # The words of scikit-learn, which its users look for.
            raise ValueError(f"Negative values in data: {error}") from None
        self._read_coefficients()
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, entry_weight: Any = None) -> np.ndarray:
        """Fits the model and transforms the same samples.

        Parameters
        ----------
        X, y, sample_weight, entry_weight
            As of `fit`. Weights of entries are those of the fit; the samples are transformed without them.

        Returns
        -------
        array, samples × components
        """
        return self.fit(X, y, sample_weight=sample_weight, entry_weight=entry_weight).transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Returns the weights of the components in each sample, fitted to the entries that the sample has.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array, samples × components
        """
        return super().transform(self._known(X))

    def _known(self, X: Any) -> Any:
        """A sparse matrix of the entries that are not NaN, zeros included; X itself where nothing is missing."""
        if self.absent != "missing" or scipy.sparse.issparse(X):
            return X
        try:
            array = np.asarray(X)
            numbers = array.ndim == 2 and array.dtype.kind == "f"
        except (TypeError, ValueError):
            return X
        if not numbers or not np.isnan(array).any():
            return X
        known = ~np.isnan(array)
        rows, columns = np.nonzero(known)
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return scipy.sparse.csr_matrix((array[rows, columns], columns, indptr), shape=array.shape)

    def _fit_entries(self, X: Any, sample_weight: Any, entry_weight: Any) -> None:
        features, _, _ = self._features(X, reset=True)
        weights = None
        if sample_weight is not None:
            rows = np.empty((features.shape[0], 1))
            weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        given = check_array(entry_weight, accept_sparse="csr", dtype=np.float64, input_name="entry_weight")
        if scipy.sparse.issparse(given):
            of_entries = _gradus.Features.sparse(given.data, given.indices, given.indptr, given.shape[1], True)
        else:
            of_entries = _gradus.Features.dense(_aligned(given))
        self._fit_by(_gradus.fit_entries, json.dumps(self._record()), features, of_entries, weights=weights)

    def _read_coefficients(self) -> None:
        components = self._tensor("components")
        self.components_ = components.astype(np.float32) if self._single else components
        self.n_components_ = len(components)
        self.reconstruction_err_ = float(self._tensor("reconstruction_error")[0])
