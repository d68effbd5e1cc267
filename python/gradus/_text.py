"""Estimators of texts: transformers into sparse features."""

from __future__ import annotations

import json
from typing import Any, Iterable

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin

from gradus import _gradus
from gradus._base import Estimator


class TextEstimator(Estimator):
    """A model that learns from texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags

    def fit(self, X: Iterable[str], y: Any = None) -> Any:
        """Learns from texts.

        Parameters
        ----------
        X : iterable of str
            The texts.
        y : ignored

        Returns
        -------
        self
        """
        self._fit_by(_gradus.fit_documents, self._kind, json.dumps(self._record()), _gradus.Corpus.texts(_texts(X)))
        self._read_coefficients()
        return self

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        self._read_coefficients()

    def _read_coefficients(self) -> None:
        """Sets attributes from the tensors of the model; there are none."""


class TextTransformer(TransformerMixin, TextEstimator):
    """A model that turns texts into features, a feature for each word.

    What scikit-learn's vectorizers have by these names behaves the same here.
    """

    def fit(self, X: Iterable[str], y: Any = None) -> Any:
        """Learns the words of texts.

        Parameters
        ----------
        X : iterable of str
            The texts.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Iterable[str], y: Any = None) -> sp.csr_matrix:
        """Learns the words of texts, and gives the features of these texts; faster than `fit` and then `transform`.

        Parameters
        ----------
        X : iterable of str
            The texts.
        y : ignored

        Returns
        -------
        sparse matrix, texts × features
        """
        model, features = _gradus.fit_texts(self._kind, json.dumps(self._record()), _texts(X))
        self._take(model)
        return _matrix(features)

    def transform(self, X: Iterable[str]) -> sp.csr_matrix:
        """The features of texts; words that `fit` did not see are left out.

        Parameters
        ----------
        X : iterable of str
            The texts.

        Returns
        -------
        sparse matrix, texts × features
        """
        return _matrix(_gradus.transform_texts(self._fitted, _texts(X)))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the features: the words, ascending; of hashed features ``hash_0``, ``hash_1``, ….

        Parameters
        ----------
        input_features : ignored
        """
        return np.asarray(self._fitted.output_names, dtype=object)

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each word; not of hashed features, which have no words."""
        if "model_" not in self.__dict__ or self.n_hashed is not None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'vocabulary_'")
        return {word: column for column, word in enumerate(self.model_.output_names)}

    @property
    def idf_(self) -> np.ndarray:
        """The weight of each feature, of `Tfidf`."""
        found = self._tensor("inputs.0.idf") if "model_" in self.__dict__ else None
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'idf_'")
        return found


def _texts(X: Any, name: str = "X") -> list[str]:
    """Texts as a list, checked."""
    if isinstance(X, (str, bytes)):
        raise ValueError("Iterable over raw text documents expected, string object received.")
    texts = X.tolist() if isinstance(X, np.ndarray) and X.ndim == 1 else list(X)
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            what = "a missing value" if text is None or (isinstance(text, float) and np.isnan(text)) else f"a {type(text).__name__}"
            raise ValueError(f"{name}[{at}] is {what}, not a text (str)")
    return texts


def _matrix(features: Any) -> sp.csr_matrix:
    data, indices, indptr, n_features = features
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    matrix.has_sorted_indices = True
    return matrix
