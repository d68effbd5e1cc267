"""Models of words, and of sentences made of them."""

from __future__ import annotations

import json
from typing import Any, Iterable

import numpy as np
from sklearn.base import TransformerMixin

from gradus import _gradus
from gradus._base import Estimator
from gradus._text import _texts


class _OfTexts(Estimator):
    """What learns from texts as they are."""

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
            The texts: windows of words do not reach beyond one.
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


class WordModel(_OfTexts):
    """A model that has a vector for each word."""

    def _read_coefficients(self) -> None:
        text, offsets = self._tensor("words.text"), self._tensor("words.offsets")
        assert text is not None and offsets is not None
        data = text.tobytes()
        words = [data[start:end].decode() for start, end in zip(offsets[:-1], offsets[1:])]
        self.words_ = np.asarray(words, dtype=object)
        self.vectors_ = self._tensor("vectors")
        self.counts_ = self._tensor("counts")
        self._places = {word: at for at, word in enumerate(words)}

    def vector(self, word: str) -> np.ndarray:
        """The vector of a word.

        Parameters
        ----------
        word : str

        Returns
        -------
        array of coordinates
        """
        self._fitted
        if word not in self._places:
            raise KeyError(f"unknown word {word!r}: it is not in the training data, or too rare there")
        return self.vectors_[self._places[word]]

    def most_similar(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The words whose vectors have the largest cosine with that of a word.

        Parameters
        ----------
        word : str
        n : int, default 10

        Returns
        -------
        list of (word, cosine), most alike first
        """
        vector = self.vector(word).astype(np.float64)
        norms = np.linalg.norm(self.vectors_, axis=1) * np.linalg.norm(vector)
        cosines = np.divide(self.vectors_ @ vector, norms, out=np.zeros(len(norms)), where=norms > 0)
        order = np.argsort(-cosines, kind="stable")
        found = [(self.words_[at], float(cosines[at])) for at in order if self.words_[at] != word]
        return found[:n]


class SentenceTransformer(TransformerMixin, _OfTexts):
    """A model that turns texts into vectors."""

    def _read_coefficients(self) -> None:
        self.word_weights_ = self._tensor("weights")
        self.components_ = self._tensor("removed")

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
        """The names of the coordinates: ``sif0``, ``sif1``, ….

        Parameters
        ----------
        input_features : ignored
        """
        vectors = self._tensor("vectors")
        assert vectors is not None
        return np.asarray([f"{self._kind}{at}" for at in range(vectors.shape[1])], dtype=object)
