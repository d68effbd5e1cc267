"""Classifiers of texts."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable

import numpy as np
from sklearn.base import ClassifierMixin

from gradus import _gradus
from gradus._base import Estimator
from gradus._networks import WithWeights
from gradus._text import _texts


class DocumentClassifier(ClassifierMixin, Estimator):
    """A model that predicts classes of texts."""

    #: Whether a text may have several classes.
    _several = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> Any:
        """Learns the classes of texts.

        Parameters
        ----------
        X : iterable of str
            The texts.
        y : array, or iterable of lists
            The class of each text; of `FastText` also a list of its classes.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: {type(self).__name__} learns from it")
        texts = _texts(X)
        lists = [list(one) if isinstance(one, (list, tuple, set, frozenset)) else [one] for one in y]
        if len(lists) != len(texts):
            raise ValueError(f"X has {len(texts)} texts and y {len(lists)} classes")
        if not self._several and any(len(classes) != 1 for classes in lists):
            raise ValueError(f"y: a text must have one class; {type(self).__name__} predicts one")
        lists = [[one.item() if isinstance(one, np.generic) else one for one in classes] for classes in lists]
        by_name = {str(one): one for classes in lists for one in classes}
        corpus = _gradus.labelled_corpus(texts, [[str(one) for one in classes] for classes in lists])
        progress = self._progress()
        model = _gradus.fit_documents(self._kind, json.dumps(self._record()), corpus, progress=progress)
        if progress is not None:
            progress.done()
        self._take(model)
        self._read_classes(by_name)
        return self

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        self._read_classes(None)

    def _read_classes(self, by_name: dict[str, Any] | None) -> None:
        names = _gradus.document_labels(self.model_)
        if by_name is None:
            whole = all(name.lstrip("-").isdigit() for name in names)
            by_name = {name: int(name) if whole else name for name in names}
        classes = np.array([by_name[name] for name in names])
        #: The place of each class among those of the model.
        self._order = np.argsort(classes, kind="stable")
        self.classes_ = classes[self._order]

    def predict_proba(self, X: Iterable[str]) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``; of `FastText` with ``loss="ova"`` each class by itself.

        Parameters
        ----------
        X : iterable of str

        Returns
        -------
        array, texts × classes
        """
        model = self._fitted
        return _gradus.document_probabilities(model, _texts(X))[:, self._order]

    def predict(self, X: Iterable[str]) -> np.ndarray:
        """The most probable class of each text.

        Parameters
        ----------
        X : iterable of str
        """
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def predict_top(self, X: Iterable[str], n: int = 5, threshold: float = 0.0) -> list[list[tuple[Any, float]]]:
        """The most probable classes of each text with their probabilities, best first.

        Parameters
        ----------
        X : iterable of str
        n : int, default 5
            How many at most.
        threshold : float, default 0
            Classes of smaller probability are left out.
        """
        found = self.predict_proba(X)
        order = np.argsort(-found, axis=1, kind="stable")[:, :n]
        classes = self.classes_.tolist()
        return [
            [(classes[at], float(row[at])) for at in best if row[at] >= threshold] for row, best in zip(found, order)
        ]


class NetworkTextClassifier(WithWeights, DocumentClassifier):
    """A network that predicts classes of texts."""


class FastTextClassifier(DocumentClassifier):
    """A classifier of texts by the vectors of their words."""

    _several = True

    def word_vector(self, word: str) -> np.ndarray:
        """The vector of a word, from its own and those of its n-grams of characters."""
        found = _gradus.word_vector(self._fitted, word)
        if found is None:
            raise KeyError(f"unknown word {word!r}: it is not in the vocabulary")
        return found

    def save_fasttext(self, path: str | os.PathLike[str]) -> None:
        """Writes a binary model of fastText (``.bin``; quantised ``.ftz``), which its own tools open; ``gradus.load`` opens one."""
        _gradus.save_fasttext(self._fitted, os.fspath(path))
