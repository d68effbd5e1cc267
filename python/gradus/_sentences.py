"""Vectors of sentences and documents."""

from __future__ import annotations

import json
from typing import Any, Iterable

import numpy as np
from sklearn.base import TransformerMixin

from gradus import _gradus
from gradus._base import Estimator
from gradus._text import _texts


class TextEmbedding(TransformerMixin, Estimator):
    """A model that turns texts into vectors."""

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
        corpus = _gradus.Corpus.texts(_texts(X))
        progress = self._progress()
        model = _gradus.fit_documents(self._kind, json.dumps(self._record()), corpus, progress=progress)
        if progress is not None:
            progress.done()
        self._take(model)
        self._read_coefficients()
        return self

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        self._read_coefficients()

    def _read_coefficients(self) -> None:
        """Sets the attributes of what was learned."""

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
    """A model of vectors by which the words of documents are told."""

    def _read_coefficients(self) -> None:
        self.word_vectors_ = self._tensor("vectors")
