"""Texts as features.

Written by python/generate.py from the definitions in crates/gradus-text: change those.
"""

from __future__ import annotations

from typing import Literal

from gradus._text import TextTransformer

__all__ = [
    "Counts",
    "Tfidf",
]


class Counts(TextTransformer):
    """Counts of words: a feature for each word, how often it occurs in a document.

    A word is a run of at least two letters, numbers or underscores; a term is a word, or several in a row. The features
    are the terms of training in ascending order. Words that training did not have are left out. The matrix is that
    of scikit-learn's `CountVectorizer` with the same options (with `n_hashed`, of `HashingVectorizer` without norm),
    except that of equally frequent terms at the limit of `max_features` the first ones are kept.

    Takes time and memory in proportion to the text, on all threads; the result does not depend on their number. The
    objective in the report is the mean number of different terms in a document.

    Parameters
    ----------
    lowercase : bool, default True
        Whether text is put in lower case first.
    stop_words : list[str] or str, set or None, default ()
        Words to leave out. `english` alone stands for a built-in list of English function words,
        and `@FILE` for the words of a file. Must be a list of words.
    min_ngram : int, default 1
        Terms have at least so many words. Must be an integer from 1 to 20.
    max_ngram : int, default 1
        Terms have at most so many words: 2 for words and pairs of words. Must be an integer from 1
        to 20.
    min_df : float, default 1.0
        Leave out terms in fewer documents: a share of the documents if it is below 1, else a number
        of documents. Must be a finite number at least 0.
    max_df : float, default 1.0
        Leave out terms in more documents: a share of the documents if it is at most 1, else a
        number of documents. Must be a finite number at least 0.
    max_features : int or None, default None
        Keep so many terms, those that occur most often. Must be an integer of at least 1, or left
        out.
    n_hashed : int or None, default None
        Keep no terms, but hash them to so many features. Nothing is learned from the documents
        then, and the model stays small; terms may share a feature. A count is negative where the
        hash says so. Must be an integer from 1 to 16777216, or left out.
    binary : bool, default False
        Whether features are 1 where a term occurs, however often.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    vocabulary_
        The column of each word; not of hashed features.
    idf_
        The weight of each feature, of `Tfidf`.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Counts
    >>> model = Counts()
    >>> model.fit_transform(["the cat sat", "The cat, the dog"]).shape
    (2, 4)
    >>> list(model.get_feature_names_out())
    ['cat', 'dog', 'sat', 'the']
    """

    _kind = "counts"

    def __init__(
        self,
        *,
        lowercase: bool = True,
        stop_words: list[str] | tuple[str, ...] | str | set[str] | None = (),
        min_ngram: int = 1,
        max_ngram: int = 1,
        min_df: float = 1.0,
        max_df: float = 1.0,
        max_features: int | None = None,
        n_hashed: int | None = None,
        binary: bool = False,
        verbose: int = 0,
    ) -> None:
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.min_ngram = min_ngram
        self.max_ngram = max_ngram
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.n_hashed = n_hashed
        self.binary = binary
        self.verbose = verbose


class Tfidf(TextTransformer):
    """Tf-idf: counts of words, weighted by how rare a word is among the documents.

    The feature of a term `t` in a document `d` is `n(t, d) · idf(t)` with its count `n` and
    `idf(t) = ln((1 + N) / (1 + N(t))) + 1`, where `N(t)` of the `N` documents of training have the term; then each
    document is scaled to length 1. Words and terms are those of `counts`, and the matrix is that of scikit-learn's
    `TfidfVectorizer` with the same options.

    Takes time and memory in proportion to the text, on all threads; the result does not depend on their number. The
    objective in the report is the mean number of different terms in a document.

    Reference: Spärck Jones: A statistical interpretation of term specificity and its application in retrieval, 1972.

    Parameters
    ----------
    lowercase : bool, default True
        Whether text is put in lower case first.
    stop_words : list[str] or str, set or None, default ()
        Words to leave out. `english` alone stands for a built-in list of English function words,
        and `@FILE` for the words of a file. Must be a list of words.
    min_ngram : int, default 1
        Terms have at least so many words. Must be an integer from 1 to 20.
    max_ngram : int, default 1
        Terms have at most so many words: 2 for words and pairs of words. Must be an integer from 1
        to 20.
    min_df : float, default 1.0
        Leave out terms in fewer documents: a share of the documents if it is below 1, else a number
        of documents. Must be a finite number at least 0.
    max_df : float, default 1.0
        Leave out terms in more documents: a share of the documents if it is at most 1, else a
        number of documents. Must be a finite number at least 0.
    max_features : int or None, default None
        Keep so many terms, those that occur most often. Must be an integer of at least 1, or left
        out.
    n_hashed : int or None, default None
        Keep no terms, but hash them to so many features: the model stays small, and terms may share
        a feature. Must be an integer from 1 to 16777216, or left out.
    sublinear_tf : bool, default False
        Whether a count `n` is taken as `1 + ln n`, so that a word that is repeated counts less each
        time.
    smooth_idf : bool, default True
        Whether document frequencies are counted as if one more document had every term: a term of
        all documents then weighs 1, and no division is by 0.
    norm : {"l2", "l1", None}, default 'l2'
        To what length the features of a document are scaled.
        - "l2": Sum of squares 1
        - "l1": Sum of absolute values 1
        - None: As they are
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    vocabulary_
        The column of each word; not of hashed features.
    idf_
        The weight of each feature, of `Tfidf`.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Tfidf
    >>> model = Tfidf()
    >>> model.fit_transform(["the cat sat", "The cat, the dog"]).shape
    (2, 4)
    >>> list(model.get_feature_names_out())
    ['cat', 'dog', 'sat', 'the']
    """

    _kind = "tfidf"

    def __init__(
        self,
        *,
        lowercase: bool = True,
        stop_words: list[str] | tuple[str, ...] | str | set[str] | None = (),
        min_ngram: int = 1,
        max_ngram: int = 1,
        min_df: float = 1.0,
        max_df: float = 1.0,
        max_features: int | None = None,
        n_hashed: int | None = None,
        sublinear_tf: bool = False,
        smooth_idf: bool = True,
        norm: Literal["l2", "l1"] | None = 'l2',
        verbose: int = 0,
    ) -> None:
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.min_ngram = min_ngram
        self.max_ngram = max_ngram
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.n_hashed = n_hashed
        self.sublinear_tf = sublinear_tf
        self.smooth_idf = smooth_idf
        self.norm = norm
        self.verbose = verbose
