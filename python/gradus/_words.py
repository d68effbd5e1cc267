"""Vectors of words, with what gensim calls its `KeyedVectors`."""

from __future__ import annotations

import difflib
import os
from typing import Any, Iterable

import numpy as np

from gradus import _gradus
from gradus._text import TextEstimator


class WordModel(TextEstimator):
    """A model that has a vector for each word of the texts it learned from. Neighbours of a word are those in its own text."""

    def _read_coefficients(self) -> None:
        text = self._tensor("words.text").tobytes()
        offsets = self._tensor("words.offsets")
        order = self._tensor("ranking")
        words = [text[offsets[at] : offsets[at + 1]].decode() for at in order]
        self.vocabulary_ = {word: at for at, word in enumerate(words)}
        self.vectors_ = self._tensor("vectors")[order]
        counts = self._tensor("counts")
        self.counts_ = None if counts is None else counts[order]
        lengths = np.linalg.norm(self.vectors_, axis=1, keepdims=True)
        self._unit = self.vectors_ / np.where(lengths > 0, lengths, 1.0)
        self._is_lowercase = not any(c.isupper() for word in words for c in word)

    def __contains__(self, word: str) -> bool:
        return self._find(word) is not None

    def __getitem__(self, word: str) -> np.ndarray:
        """The vector of a word; with n-grams of characters (`max_n`) also of one that is not in the vocabulary."""
        return self._vector(word)

    def _find(self, word: str) -> int | None:
        self._fitted  # raises if there is no model
        for spelling in (word, "_".join(word.split())):
            found = self.vocabulary_.get(spelling)
            if found is None and self._is_lowercase:
                found = self.vocabulary_.get(spelling.lower())
            if found is not None:
                return found
        return None

    def _place(self, word: str) -> int:
        found = self._find(word)
        if found is None:
            near = difflib.get_close_matches(word.lower(), self.vocabulary_, n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else ": it is not in the vocabulary"
            raise KeyError(f"unknown word {word!r}{hint}")
        return found

    def _vector(self, word: str) -> np.ndarray:
        at = self._find(word)
        found = self.vectors_[at] if at is not None else _gradus.word_vector(self._fitted, word)
        return self.vectors_[self._place(word)] if found is None else found

    def _direction(self, word: str) -> np.ndarray:
        vector = self._vector(word)
        length = np.linalg.norm(vector)
        return vector / length if length > 0 else vector

    def similarity(self, a: str, b: str) -> float:
        """The cosine of the vectors of two words."""
        return float(self._direction(a) @ self._direction(b))

    def save_fasttext(self, path: str | os.PathLike[str]) -> None:
        """Writes a binary model of fastText (``.bin``), which its own tools and gensim open; ``gradus.load`` opens one."""
        _gradus.save_fasttext(self._fitted, os.fspath(path))

    def most_similar(
        self, positive: str | Iterable[str] = (), negative: str | Iterable[str] = (), topn: int = 10
    ) -> list[tuple[str, float]]:
        """The words most like those of `positive` and least like those of `negative`, which are left out.

        Parameters
        ----------
        positive, negative : str or iterable of str
            `positive=["king", "woman"], negative=["man"]` completes an analogy.
        topn : int, default 10
            How many.

        Returns
        -------
        list of (word, cosine), best first
        """
        plus = [positive] if isinstance(positive, str) else list(positive)
        minus = [negative] if isinstance(negative, str) else list(negative)
        if not plus and not minus:
            raise ValueError("most_similar needs a word in positive or negative")
        signs = np.array([1.0] * len(plus) + [-1.0] * len(minus))
        query = signs @ np.array([self._direction(word) for word in plus + minus])
        places = [at for at in map(self._find, plus + minus) if at is not None]
        length = np.linalg.norm(query)
        cosines = self._unit @ (query / length if length > 0 else query)
        cosines[places] = -np.inf
        n = max(0, min(topn, len(cosines) - len(set(places))))
        best = np.argsort(-cosines, kind="stable")[:n]
        words = list(self.vocabulary_)
        return [(words[at], float(cosines[at])) for at in best]

    def doesnt_match(self, words: Iterable[str]) -> str:
        """The word that is least like the others."""
        words = list(words)
        if len(words) < 3:
            raise ValueError(f"doesnt_match needs at least 3 words, and {len(words)} are given")
        units = np.array([self._direction(word) for word in words])
        return words[int(np.argmin(units @ units.sum(axis=0)))]
