"""Models that write texts: language models, and models that make texts of texts."""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable

import numpy as np

from gradus import _gradus
from gradus._base import _seed
from gradus._networks import WithWeights
from gradus._text import TextEstimator, _texts


class LanguageModel(WithWeights, TextEstimator):
    """A model that tells how probable texts are, and goes on with them."""

    def fit(self, X: str | Iterable[str], y: Any = None) -> Any:
        """Learns from texts.

        Parameters
        ----------
        X : str, or iterable of str
            A text, or several. The end of each is learned as well.
        y : ignored

        Returns
        -------
        self
        """
        corpus = _gradus.Corpus.texts(_documents(X))
        self._fit_by(_gradus.fit_documents, self._kind, json.dumps(self._record()), corpus)
        return self

    def generate(
        self,
        prompt: str = "",
        n_tokens: int = 200,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        random_state: Any = 0,
        callback: Callable[[str], Any] | None = None,
    ) -> str:
        """Goes on with a text, until there are ``n_tokens`` tokens or the document ends.

        Parameters
        ----------
        prompt : str
            The text before; it is not part of what is returned.
        n_tokens : int, default 200
            Tokens that are written at most.
        temperature : float, default 1.0
            Logits are divided by it: less prefers what is likely, 0 always takes the most probable token.
        top_k : int, default 0
            Only the so many most probable tokens are drawn; 0 for all.
        top_p : float, default 1.0
            Only the most probable tokens that together have this probability are drawn.
        random_state : int, numpy generator or None, default 0
            Seed; None draws one. The same seed writes the same text.
        callback : function of str, optional
            Called with what is written as soon as it is.

        Returns
        -------
        str
        """
        if not isinstance(prompt, str):
            raise TypeError(f"prompt = {prompt!r}: must be a text (str)")
        n_tokens, top_k = _count("n_tokens", n_tokens), _count("top_k", top_k)
        return _gradus.continue_text(
            self._fitted, prompt, n_tokens, float(temperature), top_k, float(top_p), _seed(random_state), callback
        )

    def sample(self, n_samples: int = 1, random_state: Any = 0) -> list[str]:
        """Documents with the probabilities of the model, written from nothing, each of at most ``context`` tokens.

        Parameters
        ----------
        n_samples : int, default 1
        random_state : int, numpy generator or None, default 0
            Seed; None draws one.
        """
        return _gradus.generate_documents(self._fitted, _count("n_samples", n_samples), _seed(random_state))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, as numbers."""
        if not isinstance(text, str):
            raise TypeError(f"text = {text!r}: must be a text (str)")
        return _gradus.encode_tokens(self._fitted, text)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens."""
        return _gradus.decode_tokens(self._fitted, [_count("tokens", token) for token in tokens])

    def logits(self, tokens: Iterable[int]) -> np.ndarray:
        """The logits of the token that comes after each of these tokens, given those before it.

        Parameters
        ----------
        tokens : iterable of int
            At most ``context``, as `encode` gives them.

        Returns
        -------
        array, tokens × number of tokens there are
        """
        return _gradus.token_logits(self._fitted, [_count("tokens", token) for token in tokens])

    def score_samples(self, X: str | Iterable[str]) -> np.ndarray:
        """The log probability of each text with its end, in nats.

        Parameters
        ----------
        X : str, or iterable of str
        """
        return _gradus.score_documents(self._fitted, _gradus.Corpus.texts(_documents(X)))[0]

    def score(self, X: str | Iterable[str], y: Any = None) -> float:
        """The mean log probability of a token, in nats: the larger, the better; its negative is the loss.

        Parameters
        ----------
        X : str, or iterable of str
        y : ignored
        """
        logs, tokens = _gradus.score_documents(self._fitted, _gradus.Corpus.texts(_documents(X)))
        return float(np.sum(logs) / np.sum(tokens))

    def perplexity(self, X: str | Iterable[str], y: Any = None) -> float:
        """The exponential of the loss: the smaller, the better; the number of tokens where all are equally probable.

        Parameters
        ----------
        X : str, or iterable of str
        y : ignored
        """
        return float(np.exp(-self.score(X)))


class Translator(WithWeights):
    """A model that makes texts of texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def fit(self, X: Iterable[str], y: Iterable[str]) -> Any:
        """Learns to make a target of each source.

        Parameters
        ----------
        X : iterable of str
            The sources.
        y : iterable of str
            The target of each.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: {type(self).__name__} learns from it")
        self._fit_by(_gradus.fit_pairs, self._kind, json.dumps(self._record()), _texts(X), _texts(y, "y"))
        return self

    def translate(self, X: Iterable[str], beams: int = 1) -> list[str]:
        """The target of each source.

        Parameters
        ----------
        X : iterable of str
        beams : int, default 1
            Unfinished targets that are looked at side by side: 1 always takes the most probable next token, more find more
            probable targets and take as many times as long.
        """
        return _gradus.translate(self._fitted, _texts(X), _count("beams", beams))

    def predict(self, X: Iterable[str]) -> np.ndarray:
        """The target of each source, as an array of objects; `translate` also searches with several beams.

        Parameters
        ----------
        X : iterable of str
        """
        return np.asarray(self.translate(X), dtype=object)

    def score(self, X: Iterable[str], y: Iterable[str]) -> float:
        """The share of the sources whose target is found exactly.

        Parameters
        ----------
        X : iterable of str
        y : iterable of str
        """
        found, truth = self.translate(X), _texts(y, "y")
        if len(found) != len(truth):
            raise ValueError(f"X has {len(found)} texts and y {len(truth)}")
        return float(np.mean([a == b for a, b in zip(found, truth)]))

    def score_samples(self, X: Iterable[str], y: Iterable[str]) -> np.ndarray:
        """The log probability of each target with its end, given its source, in nats.

        Parameters
        ----------
        X : iterable of str
        y : iterable of str
        """
        return _gradus.score_pairs(self._fitted, _texts(X), _texts(y, "y"))[0]

    def perplexity(self, X: Iterable[str], y: Iterable[str]) -> float:
        """The exponential of the loss of a token of the targets: the smaller, the better.

        Parameters
        ----------
        X : iterable of str
        y : iterable of str
        """
        logs, tokens = _gradus.score_pairs(self._fitted, _texts(X), _texts(y, "y"))
        return float(np.exp(-np.sum(logs) / np.sum(tokens)))


def _documents(X: Any) -> list[str]:
    """Texts as a list; a single one is one document."""
    return [X] if isinstance(X, str) else _texts(X)


def _count(name: str, value: Any) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0:
        return int(value)
    raise ValueError(f"{name} = {value!r}: must be a whole number of at least 0")
