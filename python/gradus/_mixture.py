"""Gaussian mixtures: densities, probabilities of components, draws, imputation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import DensityMixin

from gradus._base import _seed
from gradus._frames import has_words, is_frame
from gradus._transform import Clusterer, WithDensity


def _has_nan(values: Any) -> bool:
    """Whether a number is missing."""
    try:
        return bool(np.isnan(np.asarray(values, dtype=np.float64)).any())
    except (TypeError, ValueError):
        return False  # What are no numbers is refused elsewhere.


class MixtureClusterer(WithDensity, DensityMixin, Clusterer):
    """A clustering that knows the density of samples, over the features that they have."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fits the mixture, and sets ``labels_``.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
            NaN is a missing entry. Columns of words in a data frame become a feature for each word.
        y : ignored
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.

        Returns
        -------
        self
        """
        if self.missing == "refuse" and not (is_frame(X) and has_words(X)):
            values = X.data if scipy.sparse.issparse(X) else X
            if _has_nan(values):
                raise ValueError("X has missing values (NaN), and missing = 'refuse'; missing = 'keep' takes them as missing")
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each component for each sample, samples × components."""
        return self.memberships(X)

    def bic(self, X: Any) -> float:
        """The Bayesian information criterion on these samples: lower is better."""
        logs = np.asarray(self.score_samples(X), dtype=np.float64)
        return float(-2.0 * logs.sum() + self._n_parameters() * np.log(len(logs)))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion on these samples: lower is better."""
        logs = np.asarray(self.score_samples(X), dtype=np.float64)
        return float(-2.0 * logs.sum() + 2.0 * self._n_parameters())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """New samples from the mixture, and the component that is most probable for each.

        scikit-learn's `sample` orders samples by component and gives the component that each was drawn from; here their
        order is that of the draws.

        Parameters
        ----------
        n_samples : int, default 1
        random_state : int, numpy generator or None

        Returns
        -------
        (array, samples × features; array of samples)
        """
        drawn = self._fitted.generate(n_samples, _seed(random_state))
        return drawn, self._labels_of(drawn)

    def _labels_of(self, drawn: np.ndarray) -> np.ndarray:
        from gradus import _gradus
        from gradus._features import _aligned

        return self._fitted.labels(_gradus.Features.dense(_aligned(drawn)))

    def impute(self, X: Any) -> np.ndarray:
        """The features, with what is missing (NaN) replaced by its mean given the others.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array, samples × features
        """
        return self._of_features(X, "impute")

    def _n_parameters(self) -> float:
        k, d = self.means_.shape
        kind = self.covariance_type
        of = {"full": k * d * (d + 1) / 2, "tied": d * (d + 1) / 2, "diag": k * d, "spherical": k, "unit": 0}
        return of[kind] + k * d + k - 1

    def _read_coefficients(self) -> None:
        dtype = np.float32 if self._single else np.float64
        for name in ("weights", "means", "covariances", "precisions_cholesky"):
            setattr(self, f"{name}_", self._tensor(name).astype(dtype, copy=False))
        self.n_components_ = len(self.weights_)
        self.lower_bound_ = float(self._tensor("lower_bound")[0])
        self.converged_ = bool(self._tensor("converged")[0])
