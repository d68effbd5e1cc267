"""Topic models: documents as lists of texts, or as counts of words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import validate_data

from gradus import _gradus
from gradus._base import Estimator
from gradus._text import _texts


class TopicModel(TransformerMixin, Estimator):
    """A model of documents as mixtures of topics.

    Documents are texts, or rows of counts (array or sparse matrix, documents × words), as scikit-learn's
    `LatentDirichletAllocation` takes them. A model that was fitted to counts takes counts of the same columns.
    """

    #: Whether it was fitted to counts, not to texts.
    _of_counts: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learns topics.

        Parameters
        ----------
        X : iterable of str, or array or sparse matrix, documents × words
            Texts, or how often each word is in each document.
        y : ignored

        Returns
        -------
        self
        """
        corpus = self._corpus(X, reset=True)
        self._fit_by(_gradus.fit_documents, self._kind, json.dumps(self._record()), corpus)
        self._read_coefficients()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The mixture of topics of each document; rows add up to 1.

        Parameters
        ----------
        X : iterable of str, or array or sparse matrix, documents × words

        Returns
        -------
        array, documents × topics
        """
        model = self._fitted
        return _gradus.topic_mixtures(model, self._corpus(X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """The log likelihood of documents, each given its own mixture of topics.

        Parameters
        ----------
        X : iterable of str, or array or sparse matrix, documents × words
        y : ignored
        """
        return float(sum(log for log, _ in self._scores(X, False)))

    def perplexity(self, X: Any, completion: bool = True) -> float:
        """The perplexity of documents.

        Parameters
        ----------
        X : iterable of str, or array or sparse matrix, documents × words
        completion : bool, default True
            Of the second half of the words of each document given the first; else of all words given the mixture that
            all of them have, which is lower and no estimate for new documents.
        """
        scores = self._scores(X, completion)
        words = sum(n for _, n in scores)
        return float(np.exp(-sum(log for log, _ in scores) / max(words, 1e-300)))

    def top_words(self, n: int = 10) -> list[list[str]]:
        """The `n` most probable words of each topic; numbers of columns, if the model was fitted to counts.

        Parameters
        ----------
        n : int, default 10
        """
        order = np.argsort(-self.topics_, axis=1, kind="stable")[:, :n]
        return [[self._words[at] for at in row] for row in order]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the topics: ``lda0``, ``lda1``, ….

        Parameters
        ----------
        input_features : ignored
        """
        self._fitted
        return np.asarray([f"{self._kind}{at}" for at in range(len(self.shares_))], dtype=object)

    def _scores(self, X: Any, completion: bool) -> list[tuple[float, float]]:
        return _gradus.topic_scores(self._fitted, self._corpus(X, reset=False), completion)

    def _corpus(self, X: Any, reset: bool) -> Any:
        """Documents as the compiled part takes them."""
        if hasattr(X, "__array__") and not isinstance(X, np.ndarray) and not hasattr(X, "iloc") and not sp.issparse(X):
            X = np.asarray(X)
        # Numbers in one dimension are no texts, but counts of which the check below says what is wrong.
        is_numbers = isinstance(X, np.ndarray) and (X.ndim != 1 or X.dtype.kind in "biufc")
        is_matrix = sp.issparse(X) or hasattr(X, "iloc") or is_numbers
        if not is_matrix and isinstance(X, (list, tuple)) and len(X) and not isinstance(X[0], (str, bytes)):
            is_matrix = np.ndim(X[0]) > 0
        if not is_matrix or (hasattr(X, "iloc") and X.ndim == 1):
            texts = _texts(X)
            if not reset and self._of_counts:
                raise ValueError("X: this model was fitted to counts of words, and takes no texts")
            return _gradus.Corpus.texts(texts)
        if not reset and not self._of_counts:
            raise ValueError("X: this model was fitted to texts, and takes no counts")
        checked = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        data = checked.data if sp.issparse(checked) else checked
        if (data < 0).any():
            raise ValueError(f"Negative values in data passed to {type(self).__name__}: counts must be at least 0")
        if sp.issparse(checked):
            features = _gradus.Features.sparse(checked.data, checked.indices, checked.indptr, checked.shape[1])
        else:
            features = _gradus.Features.dense(np.ascontiguousarray(checked))
        return _gradus.Corpus.counts(features, _columns(checked.shape[1]))

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        self._read_coefficients()

    def _read_coefficients(self) -> None:
        counts = self._tensor("word_topics").astype(np.float64).T
        self.alpha_ = self._tensor("alpha")
        self.coherence_ = self._tensor("coherence")
        self.beta_ = float(self._tensor("beta")[0])
        self.components_ = counts + self.beta_
        sums = self.components_.sum(axis=1, keepdims=True)
        even = 1.0 / self.components_.shape[1]
        self.topics_ = np.divide(self.components_, sums, out=np.full_like(counts, even), where=sums > 0)
        self.shares_ = counts.sum(axis=1) / max(counts.sum(), 1e-300)
        self.n_features_in_ = counts.shape[1]
        self._of_counts = self._fitted.words == _columns(counts.shape[1])

    @property
    def _words(self) -> list[str]:
        if self._of_counts:
            return [str(at) for at in range(self.n_features_in_)]
        return self._fitted.words


def _columns(n: int) -> list[str]:
    """Names of columns of counts, whose order is that of the columns."""
    width = len(str(n))
    return [f"{at:0{width}d}" for at in range(n)]


class OnlineTopics(TopicModel):
    """A topic model that also learns from batches of documents."""

    _batches: Any = None

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learns topics. Batches of `partial_fit` are forgotten.

        Parameters
        ----------
        X : iterable of str, or array or sparse matrix, documents × words
            Texts, or how often each word is in each document.
        y : ignored

        Returns
        -------
        self
        """
        self._batches = None
        return super().fit(X)

    def partial_fit(self, X: Any, y: Any = None, total_samples: int = 1_000_000) -> Any:
        """Learns from a batch of documents, by online variational Bayes whatever `algorithm` says; no document is kept.

        The words are those of the first batch, or its columns. Memory is that of a batch and of the topics.

        Parameters
        ----------
        X : iterable of str, or array or sparse matrix, documents × words
        y : ignored
        total_samples : int, default 1,000,000
            How many documents there will be, about; of the first batch.

        Returns
        -------
        self
        """
        corpus = self._corpus(X, reset=self._batches is None)
        if self._batches is None:
            self._batches = _gradus.TopicBatches(json.dumps(self._record()), total_samples)
        self._batches.push(corpus)
        self._take(self._batches.finish())
        self._read_coefficients()
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        # What was learned stays; another batch after a copy starts anew.
        state.pop("_batches", None)
        return state
