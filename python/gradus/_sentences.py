"""Vectors of sentences and documents."""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np
from sklearn.base import TransformerMixin

from gradus import _gradus
from gradus._text import TextEstimator, _texts


class TextEmbedding(TransformerMixin, TextEstimator):
    """A model that turns texts into vectors."""

    def transform(self, X: Iterable[str]) -> np.ndarray:
        """The vectors of texts.

        Parameters
        ----------
        X : iterable of str

        Returns
        -------
        array, texts × coordinates
        """
        return _gradus.transform_documents(self._fitted, _gradus.Corpus.texts(_texts(X)))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the coordinates: that of the model and a number.

        Parameters
        ----------
        input_features : ignored
        """
        vectors = self._tensor("vectors")
        assert vectors is not None
        return np.asarray([f"{self._kind}{at}" for at in range(vectors.shape[1])], dtype=object)


class SentenceTransformer(TextEmbedding):
    """A model of weighted means of word vectors."""

    def _read_coefficients(self) -> None:
        self.word_weights_ = self._tensor("weights")
        self.components_ = self._tensor("removed")


class DocumentTransformer(TextEmbedding):
    """A model of vectors that predict the words of documents."""

    def _read_coefficients(self) -> None:
        self.word_vectors_ = self._tensor("vectors")
