"""Non-negative matrix factorisation: components and reconstruction error."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradus._transform import Transformer


class NonNegativeFactors(Transformer):
    """A transformer that says how much of each component a sample has."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
            Entries of 0 or more. Columns of words in a data frame become a feature for each word.
        y : ignored
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.

        Returns
        -------
        self
        """
        try:
            self._fit(X, sample_weight)
        except ValueError as error:
            if "is negative" not in str(error):
                raise
            # The words of scikit-learn, which its users look for.
            raise ValueError(f"Negative values in data: {error}") from None
        self._read_coefficients()
        return self

    def _read_coefficients(self) -> None:
        components = self._tensor("components")
        self.components_ = components.astype(np.float32) if self._single else components
        self.n_components_ = len(components)
        self.reconstruction_err_ = float(self._tensor("reconstruction_error")[0])
