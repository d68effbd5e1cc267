"""Texts as features, and vectors of words.

Written by python/generate.py from the definitions in crates/gradus-text: change those.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gradus._classify import FastTextClassifier
from gradus._sentences import DocumentTransformer, SentenceTransformer
from gradus._text import TextTransformer
from gradus._words import WordModel

__all__ = [
    "Cbow",
    "Counts",
    "Doc2Vec",
    "FastText",
    "Glove",
    "Ppmi",
    "Sif",
    "Skipgram",
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
        Terms have at least this many words. Must be an integer from 1 to 20.
    max_ngram : int, default 1
        Terms have at most this many words: 2 for words and pairs of words. Must be an integer from
        1 to 20.
    min_df : float, default 1.0
        Leave out terms in fewer documents: a share of the documents if it is below 1, else a number
        of documents. Must be a finite number at least 0.
    max_df : float, default 1.0
        Leave out terms in more documents: a share of the documents if it is at most 1, else a
        number of documents. Must be a finite number at least 0.
    max_features : int or None, default None
        Keep this many terms, those that occur most often. Must be an integer of at least 1, or left
        out.
    n_hashed : int or None, default None
        Keep no terms, but hash them to this many features. Nothing is learned from the documents
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
        Terms have at least this many words. Must be an integer from 1 to 20.
    max_ngram : int, default 1
        Terms have at most this many words: 2 for words and pairs of words. Must be an integer from
        1 to 20.
    min_df : float, default 1.0
        Leave out terms in fewer documents: a share of the documents if it is below 1, else a number
        of documents. Must be a finite number at least 0.
    max_df : float, default 1.0
        Leave out terms in more documents: a share of the documents if it is at most 1, else a
        number of documents. Must be a finite number at least 0.
    max_features : int or None, default None
        Keep this many terms, those that occur most often. Must be an integer of at least 1, or left
        out.
    n_hashed : int or None, default None
        Keep no terms, but hash them to this many features: the model stays small, and terms may
        share a feature. Must be an integer from 1 to 16777216, or left out.
    sublinear_tf : bool, default False
        Whether a count `n` is taken as `1 + ln n`, so that a word that is repeated counts less each
        time.
    smooth_idf : bool, default True
        Whether document frequencies are counted as if one more document had every term: a term of
        all documents then weighs 1, and no division is by 0.
    norm : {"l2", "l1", None}, default 'l2'
        The norm to which the features of a document are scaled.
        - "l2": Sum of squares 1
        - "l1": Sum of absolute values 1
        - None: No scaling
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


class Ppmi(WordModel):
    """PPMI-SVD: vectors of words by the singular value decomposition of their mutual information.

    With counts of how often the word `j` is in the context of the word `i`, the matrix

    `M(i, j) = max(0, ln( p(i, j) / (p(i) p_α(j)) ) − ln k)` with `p_α(j) ∝ n(j)^α`

    (positive pointwise mutual information, smoothed by α and shifted by `ln k`) is decomposed into `U Σ Vᵀ`, and the
    vectors are the rows of `U Σ^p`. There is nothing random. On six million words of Wikipedia its vectors
    scored higher than those of `glove` on WS-353 and analogies. The objective in the report is the share of the sum of
    squares of `M` that the vectors leave out.

    Counting takes time in proportion to words × window, the decomposition to different pairs × `dimension`. Words outside
    the vocabulary are left out of the text before it is counted, and windows end with the document. The result does
    not depend on the number of threads.

    Reference: Levy, Goldberg, Dagan: Improving distributional similarity with lessons learned from word embeddings, 2015.

    Parameters
    ----------
    dimension : int or None, default None
        Number of coordinates of a vector, at most the number of words. Left out, 100, or the number
        of words if there are fewer. Must be an integer from 1 to 10000, or left out.
    window : int, default 5
        The largest distance at which a word still is context of another. Must be an integer from 1
        to 1000.
    context : {"symmetric", "left", "right"}, default 'symmetric'
        The side of a word on which its context is.
        - "symmetric": The words before and after
        - "left": The words before
        - "right": The words after
    distance_weights : {"harmonic", "flat", "dynamic"}, default 'dynamic'
        The weight of a word of the context by its distance.
        - "harmonic": 1 / distance, as GloVe does
        - "flat": 1 at every distance
        - "dynamic": Falls evenly from 1 to 1 / window: the mean of windows of random size, as
          word2vec draws them
    smoothing : float, default 0.75
        The exponent α of the context distribution: below 1 it takes from rare contexts their
        advantage. Must be a number at least 0 and at most 1.
    shift : float, default 1.0
        The number k of the shift `ln k`: that of negative samples of `skipgram` with the same
        optimum. More keeps fewer pairs. Must be a number at least 0.001 and at most 1000.
    power : float, default 0.5
        The power p of the singular values. 1 would be the best approximation of the matrix, and
        makes worse vectors. Must be a number at least 0 and at most 1.
    min_count : int, default 5
        Leave out words that occur less often. Must be an integer of at least 1.
    max_words : int or None, default None
        Keep this many words at most, the most frequent ones. Must be an integer of at least 1, or
        left out.
    tokens : {"words", "blanks"}, default 'words'
        The rule that cuts text into words.
        - "words": A run of letters, numbers and underscores; everything else stands between words
        - "blanks": A run of characters without blanks, tabs and line ends: for text that was cut
          into words before
    lowercase : bool, default True
        Whether text is put in lower case first.
    memory_limit : int or None, default None
        Memory for counting in megabytes, beside the text and the matrix of counts: with less than
        all at once needs, parts of the text are counted one by one and merged from temporary files,
        to the same result. By default without limit. Must be an integer from 1 to 100000000, or
        left out.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    vocabulary_
        The row of each word: dict, the most frequent words first.
    vectors_
        The vectors, words × coordinates, in the order of `vocabulary_`.
    counts_
        How often each word was there in training.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Ppmi
    >>> texts = ["the cat sat", "the dog sat", "a bird sang"] * 20
    >>> model = Ppmi(dimension=3).fit(texts)
    >>> model.vectors_.shape
    (7, 3)
    >>> len(model.most_similar("cat", topn=3))
    3
    """

    _kind = "ppmi"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        window: int = 5,
        context: Literal["symmetric", "left", "right"] = 'symmetric',
        distance_weights: Literal["harmonic", "flat", "dynamic"] = 'dynamic',
        smoothing: float = 0.75,
        shift: float = 1.0,
        power: float = 0.5,
        min_count: int = 5,
        max_words: int | None = None,
        tokens: Literal["words", "blanks"] = 'words',
        lowercase: bool = True,
        memory_limit: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.dimension = dimension
        self.window = window
        self.context = context
        self.distance_weights = distance_weights
        self.smoothing = smoothing
        self.shift = shift
        self.power = power
        self.min_count = min_count
        self.max_words = max_words
        self.tokens = tokens
        self.lowercase = lowercase
        self.memory_limit = memory_limit
        self.verbose = verbose


class Glove(WordModel):
    """GloVe: vectors of words whose products are the logarithms of how often words occur near each other.

    `n(i, j)` counts how often the word `j` is in the context of the word `i`. The fit minimises

    `½ mean f(n(i, j)) (w_i·c_j + b_i + b_j − ln n(i, j))²` with `f(n) = min(1, (n / n_max)^α)`

    over the pairs that occur. The vector of a word is the sum of both sides, `w_i + c_i`. The objective in the report is
    this cost: of `adagrad` as it was met during the epoch, just before each step; of `als` after the
    iteration, with the penalty `λ (‖w‖² + ‖c‖²)`, and it never rises.

    `adagrad` keeps one sum of squared gradients for each row (the original one for each number), and its steps are
    implicit to first order, so that no learning rate makes it diverge. Rows are dealt into a grid whose blocks share none
    of them: the same bits on any number of threads.

    Counting takes time in proportion to words × window, an epoch of `adagrad` in proportion to the different pairs ×
    `dimension`, an iteration of `als` to the different pairs × `dimension`². Words outside the vocabulary are left
    out of the text before it is counted, and windows end with the document.

    Reference: Pennington, Socher, Manning: GloVe: global vectors for word representation, 2014.

    Parameters
    ----------
    dimension : int, default 100
        Number of coordinates of a vector. Must be an integer from 1 to 10000.
    window : int, default 10
        The largest distance at which a word still is context of another. Must be an integer from 1
        to 1000.
    context : {"symmetric", "left", "right"}, default 'symmetric'
        The side of a word on which its context is.
        - "symmetric": The words before and after
        - "left": The words before
        - "right": The words after
    distance_weights : {"harmonic", "flat", "dynamic"}, default 'harmonic'
        The weight of a word of the context by its distance.
        - "harmonic": 1 / distance, as GloVe does
        - "flat": 1 at every distance
        - "dynamic": Falls evenly from 1 to 1 / window: the mean of windows of random size, as
          word2vec draws them
    n_max : float, default 10.0
        The count `n_max` from which on pairs weigh fully. 10 suits some ten million words of text,
        100 billions. Must be a number at least 1 and at most 1000000000.
    alpha : float, default 0.75
        The exponent α of the weight of pairs that occur less often than `n_max`. Must be a number
        at least 0 and at most 1.
    solver : {"adagrad", "als"}, default 'adagrad'
        How the factorisation is computed.
        - "adagrad": Stochastic gradient descent whose steps shrink with the gradients that a row
          has seen
        - "als": Alternating least squares: fewer iterations, of which each costs about `dimension`
          / 10 times as much
    learning_rate : float, default 0.2
        Length of the first steps of `adagrad`. Must be a number at least 0.000001 and at most 10.
    regularization : float, default 3.0
        Penalty λ on the vectors, of `als`: without one, words with fewer pairs than coordinates
        would have no unique vector. Must be a number at least 0.000001 and at most 1000000.
    max_iter : int or None, default None
        Largest number of epochs of `adagrad`, or of iterations of `als`. Left out, 25 or 10. Must
        be an integer from 1 to 1000000, or left out.
    tol : float, default 0.0
        The fit ends when the objective falls by less than this share of itself; 0 turns this off.
        Must be a number at least 0 and at most 1.
    min_count : int, default 5
        Leave out words that occur less often. Must be an integer of at least 1.
    max_words : int or None, default None
        Keep this many words at most, the most frequent ones. Must be an integer of at least 1, or
        left out.
    tokens : {"words", "blanks"}, default 'words'
        The rule that cuts text into words.
        - "words": A run of letters, numbers and underscores; everything else stands between words
        - "blanks": A run of characters without blanks, tabs and line ends: for text that was cut
          into words before
    lowercase : bool, default True
        Whether text is put in lower case first.
    memory_limit : int or None, default None
        Memory for counting in megabytes, beside the text and the matrix of counts: with less than
        all at once needs, parts of the text are counted one by one and merged from temporary files,
        to the same result. By default without limit. Must be an integer from 1 to 100000000, or
        left out.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    vocabulary_
        The row of each word: dict, the most frequent words first.
    vectors_
        The vectors, words × coordinates, in the order of `vocabulary_`.
    counts_
        How often each word was there in training.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Glove
    >>> texts = ["the cat sat", "the dog sat", "a bird sang"] * 20
    >>> model = Glove(dimension=3).fit(texts)
    >>> model.vectors_.shape
    (7, 3)
    >>> len(model.most_similar("cat", topn=3))
    3
    """

    _kind = "glove"

    def __init__(
        self,
        *,
        dimension: int = 100,
        window: int = 10,
        context: Literal["symmetric", "left", "right"] = 'symmetric',
        distance_weights: Literal["harmonic", "flat", "dynamic"] = 'harmonic',
        n_max: float = 10.0,
        alpha: float = 0.75,
        solver: Literal["adagrad", "als"] = 'adagrad',
        learning_rate: float = 0.2,
        regularization: float = 3.0,
        max_iter: int | None = None,
        tol: float = 0.0,
        min_count: int = 5,
        max_words: int | None = None,
        tokens: Literal["words", "blanks"] = 'words',
        lowercase: bool = True,
        memory_limit: int | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.dimension = dimension
        self.window = window
        self.context = context
        self.distance_weights = distance_weights
        self.n_max = n_max
        self.alpha = alpha
        self.solver = solver
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.min_count = min_count
        self.max_words = max_words
        self.tokens = tokens
        self.lowercase = lowercase
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose


class Sif(SentenceTransformer):
    """SIF: vectors of sentences and documents from the vectors of their words.

    The vector of a document is the mean of the vectors of its words, each with the weight `a / (a + p(w))`, where `p(w)`
    is the share of the word in the documents of training: frequent words count little. (All weights are divided by their mean
    over the words of training, so that vectors of documents are as long as those of words; no cosine changes.) Then the projection on the first
    `n_removed` right singular vectors of the matrix of the documents of training is removed: what all documents have in
    common. `weights = mean` with `n_removed = 0` is the plain mean. The mean is over the words that have a vector; a
    document without such words gets zeros.

    The vectors of words come from a file (`vectors`: of word2vec, GloVe or fastText, or a model of words that gradus
    saved), or are learned from the documents by `ppmi`. Words are those of `counts`: at least two letters, numbers
    or underscores. The file is needed for the fit only; the model holds the vectors of all words.

    The result serves as features for any model, and to find documents like another. The objective in the report is the share
    of the sum of squares of the document vectors that is left. Takes time in proportion to words × dimension.

    Reference: Arora, Liang, Ma: A simple but tough-to-beat baseline for sentence embeddings, 2017.

    Parameters
    ----------
    vectors : str or None, default None
        File of the vectors of words: a model of words that gradus saved, or a file of word2vec,
        GloVe or fastText (.vec). Left out, they are learned from the documents by `ppmi`. Must be
        text, or left out.
    weights : {"sif", "mean"}, default 'sif'
        How much each word of a document counts.
        - "sif": Smooth inverse frequency: `a / (a + p(w))`
        - "mean": Every word the same
    a : float, default 0.001
        The constant of the weights `a / (a + p(w))`, of `sif`: words that are rarer than this share
        count about the same. Must be a number at least 0.000000001 and at most 1000.
    n_removed : int, default 1
        How many common components are removed from the vectors of documents. Must be an integer
        from 0 to 1000.
    dimension : int or None, default None
        Number of coordinates of the vectors that are learned. Left out, 100, or the number of words
        if there are fewer. Must be an integer from 1 to 10000, or left out.
    window : int, default 5
        The largest distance at which a word is context of another, of vectors that are learned.
        Must be an integer from 1 to 1000.
    min_count : int, default 2
        Leave out words that occur less often, of vectors that are learned. Must be an integer of at
        least 1.
    lowercase : bool, default True
        Whether text is put in lower case first.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    word_weights_
        The weight of each word.
    components_
        The directions that are removed, by rows.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Sif
    >>> texts = ["the cat sat on the mat", "the dog sat on the mat", "stocks fell on the market"]
    >>> model = Sif(dimension=3, min_count=1)
    >>> model.fit_transform(texts).shape
    (3, 3)
    """

    _kind = "sif"

    def __init__(
        self,
        *,
        vectors: str | None = None,
        weights: Literal["sif", "mean"] = 'sif',
        a: float = 0.001,
        n_removed: int = 1,
        dimension: int | None = None,
        window: int = 5,
        min_count: int = 2,
        lowercase: bool = True,
        verbose: int = 0,
    ) -> None:
        self.vectors = vectors
        self.weights = weights
        self.a = a
        self.n_removed = n_removed
        self.dimension = dimension
        self.window = window
        self.min_count = min_count
        self.lowercase = lowercase
        self.verbose = verbose


class Doc2Vec(DocumentTransformer):
    """PV-DBOW (paragraph vectors, distributed bag of words): vectors of documents, trained to predict their words.

    Every document has a vector `x`, and every word a vector `y`. The fit maximises, for each word `w` of a document and
    `negatives` words `n` drawn at random,

    `Σ_(document, w) [ln σ(x·y_w) + Σ_n ln σ(−x·y_n)]`

    Documents with the same words have similar vectors. The model keeps the vectors `y`; the vector of a document, of
    training or not, is found by the same steps with these held fixed, `max_iter` times over its words, with random
    numbers that depend on the seed and the words of the document alone. So a document always has the same vector,
    whatever stands beside it. A document without known words has a vector of zeros.

    The result serves as features for any model, and to find documents like another. `sif` is faster: it takes means of
    word vectors. The fit does not depend on the number of threads. Cost of an epoch: about `4 negatives dimension`
    multiplications a word, of a transformation half of it.

    Words are those of `counts`: at least two letters, numbers or underscores.

    Reference: Le, Mikolov: Distributed representations of sentences and documents, 2014.

    Parameters
    ----------
    dimension : int, default 100
        Number of coordinates of a vector. Must be an integer from 1 to 4096.
    negatives : int, default 5
        Negative examples: words drawn at random for each word of a document. Must be an integer
        from 1 to 1000.
    negative_power : float, default 0.75
        Negatives are drawn by the frequency of words to this power: 1 by frequency, 0 all words
        alike. Must be a number at least 0 and at most 1.
    subsample : float, default 0.001
        Frequent words are left out at random: of a word that makes up the share f of the text,
        √(t/f) + t/f of the occurrences are kept, with this t. 0 keeps all. Must be a number at
        least 0 and at most 1.
    min_count : int, default 5
        Words that are there fewer times are left out. Must be an integer of at least 1.
    max_words : int or None, default None
        Keep this many words at most, the most frequent ones. Must be an integer from 2 to
        4000000000, or left out.
    lowercase : bool, default True
        Whether text is put in lower case first.
    learning_rate : float, default 0.025
        Length of a step at the beginning; it falls in a straight line to nearly 0. Must be a number
        at least 0.000001 and at most 1.
    max_iter : int, default 20
        Number of times the documents are gone through, and a document whose vector is looked for.
        Must be an integer from 1 to 100000.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    word_vectors_
        The output vectors of the words, in the ascending order of the words.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Doc2Vec
    >>> texts = ["the cat sat on the mat", "the dog sat on the mat", "stocks fell on the market"] * 5
    >>> model = Doc2Vec(dimension=4)
    >>> model.fit_transform(texts).shape
    (15, 4)
    """

    _kind = "doc2vec"

    def __init__(
        self,
        *,
        dimension: int = 100,
        negatives: int = 5,
        negative_power: float = 0.75,
        subsample: float = 0.001,
        min_count: int = 5,
        max_words: int | None = None,
        lowercase: bool = True,
        learning_rate: float = 0.025,
        max_iter: int = 20,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.dimension = dimension
        self.negatives = negatives
        self.negative_power = negative_power
        self.subsample = subsample
        self.min_count = min_count
        self.max_words = max_words
        self.lowercase = lowercase
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose


class Skipgram(WordModel):
    """Skip-gram: vectors of words that predict the words near them.

    Every word `w` of the text is predicted from the input vector `x_c` of each of its neighbours `c`. The fit maximises
    `Σ_(w, c) ℓ(w, x_c)` by stochastic gradient steps; `y_w` is the output vector of the word, and `loss` chooses `ℓ`:

    - `negative`: `ln σ(x·y_w) + Σ_n ln σ(−x·y_n)` over `negatives` words drawn at random,
    - `softmax`: `ln exp(x·y_w) − ln Σ_v exp(x·y_v)` over all words, the exact log-likelihood; a step costs as many
      products as there are words, so it is for vocabularies of some thousand words,
    - `hierarchical`: `Σ_v ln σ(±x·y_v)` over the inner nodes `v` on the way to the word in Huffman's tree, with the
      sign of the turn.

    Words with the same neighbours have similar vectors `x`, which are the model. The neighbours of a word share its
    negatives, so that a step is a small product of matrices.

    The text is cut into blocks that are trained in parallel, and their changes are added up in a fixed order: the result does
    not depend on the number of threads. Cost of an epoch: about `3 window negatives dimension` multiplications a word. The
    objective in the report is the mean loss of a pair of neighbours over the epoch, measured on every sixteenth word.

    With `max_n` the vector `x` of a word is the mean of one of its own and those of its n-grams of characters, as in fastText:
    words that are not in the vocabulary have vectors, too.

    Words are found as text spells them (lower case by default). Use `cbow` where it must be fast and the text is large,
    `tfidf` where documents are to be compared by their words.

    References: Mikolov, Sutskever, Chen, Corrado, Dean: Distributed representations of words and phrases and their
    compositionality, 2013; Ji, Satish, Li, Dubey: Parallelizing word2vec in shared and distributed memory, 2016 (shared
    negatives); Bojanowski, Grave, Joulin, Mikolov: Enriching word vectors with subword information, 2017.

    Parameters
    ----------
    dimension : int, default 100
        Number of coordinates of a vector. 100 suits some million words of text, 300 some hundred
        million. Must be an integer from 1 to 4096.
    window : int, default 5
        Largest distance of a neighbour, in words. For each word a distance up to it is drawn, so
        that near neighbours count more. Large windows group words by subject, small ones by
        grammar. Must be an integer from 1 to 1000.
    loss : {"negative", "softmax", "hierarchical"}, default 'negative'
        The loss of predicting a word.
        - "negative": Words drawn at random (negative sampling)
        - "softmax": All other words: exact, and slow for more than some thousand words
        - "hierarchical": The turns on the way to the word in Huffman's tree of all words
          (hierarchical softmax)
    negatives : int, default 5
        Words drawn at random for each word of the text, as negative examples, of `negative`. 5 to
        20 suit small texts, 2 to 5 large ones. Must be an integer from 1 to 1000.
    negative_power : float, default 0.75
        Negatives are drawn by the frequency of words to this power: 1 by frequency, 0 all words
        alike. Must be a number at least 0 and at most 1.
    subsample : float, default 0.001
        Frequent words are left out at random: of a word that makes up the share f of the text,
        √(t/f) + t/f of the occurrences are kept, with this t. 0 keeps all. Must be a number at
        least 0 and at most 1.
    min_count : int, default 5
        Words that are there fewer times are left out: their vectors would be of little use. Must be
        an integer of at least 1.
    max_words : int or None, default None
        Keep this many words at most, the most frequent ones. Must be an integer from 2 to
        4000000000, or left out.
    lowercase : bool, default True
        Whether text is put in lower case first.
    tokens : {"words", "blanks"}, default 'words'
        The rule that cuts text into words.
        - "words": A run of letters, numbers and underscores; everything else stands between words
        - "blanks": A run of characters without blanks, tabs and line ends: for text that was cut
          into words before
    phrases : {"off", "word2phrase", "npmi"}, default 'off'
        Whether pairs of words that stand together more often than by chance become one word, as
        `new_york`, and by which score.
        - "off": Words stay alone
        - "word2phrase": `(n(a b) − min_count) N / (n(a) n(b))` in a text of `N` words, as
          word2vec's program for phrases
        - "npmi": Normalised mutual information `ln(p(a b) / (p(a) p(b))) / −ln p(a b)`, from −1 to
          1
    phrase_threshold : float or None, default None
        The score from which on a pair is a phrase. Left out, 100 of `word2phrase`, 0.5 of `npmi`.
        Must be a number at least -1 and at most 1000000000000, or left out.
    phrase_passes : int, default 1
        How often pairs are looked for: phrases are joined with words and phrases the second time,
        as in `new_york_times`. Must be an integer from 1 to 10.
    learning_rate : float, default 0.025
        Length of a step at the beginning; it falls in a straight line to nearly 0. Must be a number
        at least 0.000001 and at most 1.
    max_iter : int or None, default None
        Number of times the text is gone through. Left out, 5 times for a long text, and more often
        for one of fewer than ten (of `cbow` twenty) million words. Must be an integer from 1 to
        100000, or left out.
    max_n : int, default 0
        Characters of the longest n-grams that words are made of, besides a vector of their own, as
        in fastText: 6 is usual, and 0 is for whole words. Rare words then learn from words of
        similar spelling, and unknown words have vectors. Must be an integer from 0 to 64.
    min_n : int, default 3
        Characters of the shortest n-grams; `<` and `>`, which stand around a word, count. Must be
        an integer from 1 to 64.
    n_buckets : int, default 2000000
        Buckets that n-grams are hashed to. Those of no word take no memory. Must be an integer from
        1 to 2000000000.
    keep_context : bool, default False
        Whether the model keeps the output vectors as well, those of words as centres
        (`hierarchical` has none).
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    vocabulary_
        The row of each word: dict, the most frequent words first.
    vectors_
        The vectors, words × coordinates, in the order of `vocabulary_`.
    counts_
        How often each word was there in training.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Skipgram
    >>> texts = ["the cat sat", "the dog sat", "a bird sang"] * 20
    >>> model = Skipgram(dimension=3).fit(texts)
    >>> model.vectors_.shape
    (7, 3)
    >>> len(model.most_similar("cat", topn=3))
    3
    """

    _kind = "skipgram"

    def __init__(
        self,
        *,
        dimension: int = 100,
        window: int = 5,
        loss: Literal["negative", "softmax", "hierarchical"] = 'negative',
        negatives: int = 5,
        negative_power: float = 0.75,
        subsample: float = 0.001,
        min_count: int = 5,
        max_words: int | None = None,
        lowercase: bool = True,
        tokens: Literal["words", "blanks"] = 'words',
        phrases: Literal["off", "word2phrase", "npmi"] = 'off',
        phrase_threshold: float | None = None,
        phrase_passes: int = 1,
        learning_rate: float = 0.025,
        max_iter: int | None = None,
        max_n: int = 0,
        min_n: int = 3,
        n_buckets: int = 2000000,
        keep_context: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.dimension = dimension
        self.window = window
        self.loss = loss
        self.negatives = negatives
        self.negative_power = negative_power
        self.subsample = subsample
        self.min_count = min_count
        self.max_words = max_words
        self.lowercase = lowercase
        self.tokens = tokens
        self.phrases = phrases
        self.phrase_threshold = phrase_threshold
        self.phrase_passes = phrase_passes
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_n = max_n
        self.min_n = min_n
        self.n_buckets = n_buckets
        self.keep_context = keep_context
        self.random_state = random_state
        self.verbose = verbose


class Cbow(WordModel):
    """CBOW (continuous bag of words): vectors of words, each predicted from the mean of its neighbours.

    Every word `w` of the text is predicted from the mean `h` of the input vectors of its neighbours. The fit maximises
    `Σ_w ℓ(w, h)` with the losses of `skipgram`; each neighbour moves by the whole gradient of `h`, as in word2vec. Several times as fast as `skipgram`, and less exact on rare words and small texts.

    The result does not depend on the number of threads; blocks, objective and words are those of `skipgram`.

    Reference: Mikolov, Chen, Corrado, Dean: Efficient estimation of word representations in vector space, 2013.

    Parameters
    ----------
    dimension : int, default 100
        Number of coordinates of a vector. 100 suits some million words of text, 300 some hundred
        million. Must be an integer from 1 to 4096.
    window : int, default 5
        Largest distance of a neighbour, in words. For each word a distance up to it is drawn, so
        that near neighbours count more. Large windows group words by subject, small ones by
        grammar. Must be an integer from 1 to 1000.
    loss : {"negative", "softmax", "hierarchical"}, default 'negative'
        The loss of predicting a word.
        - "negative": Words drawn at random (negative sampling)
        - "softmax": All other words: exact, and slow for more than some thousand words
        - "hierarchical": The turns on the way to the word in Huffman's tree of all words
          (hierarchical softmax)
    negatives : int, default 5
        Words drawn at random for each word of the text, as negative examples, of `negative`. 5 to
        20 suit small texts, 2 to 5 large ones. Must be an integer from 1 to 1000.
    negative_power : float, default 0.75
        Negatives are drawn by the frequency of words to this power: 1 by frequency, 0 all words
        alike. Must be a number at least 0 and at most 1.
    subsample : float, default 0.001
        Frequent words are left out at random: of a word that makes up the share f of the text,
        √(t/f) + t/f of the occurrences are kept, with this t. 0 keeps all. Must be a number at
        least 0 and at most 1.
    min_count : int, default 5
        Words that are there fewer times are left out: their vectors would be of little use. Must be
        an integer of at least 1.
    max_words : int or None, default None
        Keep this many words at most, the most frequent ones. Must be an integer from 2 to
        4000000000, or left out.
    lowercase : bool, default True
        Whether text is put in lower case first.
    tokens : {"words", "blanks"}, default 'words'
        The rule that cuts text into words.
        - "words": A run of letters, numbers and underscores; everything else stands between words
        - "blanks": A run of characters without blanks, tabs and line ends: for text that was cut
          into words before
    phrases : {"off", "word2phrase", "npmi"}, default 'off'
        Whether pairs of words that stand together more often than by chance become one word, as
        `new_york`, and by which score.
        - "off": Words stay alone
        - "word2phrase": `(n(a b) − min_count) N / (n(a) n(b))` in a text of `N` words, as
          word2vec's program for phrases
        - "npmi": Normalised mutual information `ln(p(a b) / (p(a) p(b))) / −ln p(a b)`, from −1 to
          1
    phrase_threshold : float or None, default None
        The score from which on a pair is a phrase. Left out, 100 of `word2phrase`, 0.5 of `npmi`.
        Must be a number at least -1 and at most 1000000000000, or left out.
    phrase_passes : int, default 1
        How often pairs are looked for: phrases are joined with words and phrases the second time,
        as in `new_york_times`. Must be an integer from 1 to 10.
    learning_rate : float, default 0.05
        Length of a step at the beginning; it falls in a straight line to nearly 0. Must be a number
        at least 0.000001 and at most 1.
    max_iter : int or None, default None
        Number of times the text is gone through. Left out, 5 times for a long text, and more often
        for one of fewer than ten (of `cbow` twenty) million words. Must be an integer from 1 to
        100000, or left out.
    max_n : int, default 0
        Characters of the longest n-grams that words are made of, besides a vector of their own, as
        in fastText: 6 is usual, and 0 is for whole words. Rare words then learn from words of
        similar spelling, and unknown words have vectors. Must be an integer from 0 to 64.
    min_n : int, default 3
        Characters of the shortest n-grams; `<` and `>`, which stand around a word, count. Must be
        an integer from 1 to 64.
    n_buckets : int, default 2000000
        Buckets that n-grams are hashed to. Those of no word take no memory. Must be an integer from
        1 to 2000000000.
    keep_context : bool, default False
        Whether the model keeps the output vectors as well, those of words as centres
        (`hierarchical` has none).
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    vocabulary_
        The row of each word: dict, the most frequent words first.
    vectors_
        The vectors, words × coordinates, in the order of `vocabulary_`.
    counts_
        How often each word was there in training.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import Cbow
    >>> texts = ["the cat sat", "the dog sat", "a bird sang"] * 20
    >>> model = Cbow(dimension=3).fit(texts)
    >>> model.vectors_.shape
    (7, 3)
    >>> len(model.most_similar("cat", topn=3))
    3
    """

    _kind = "cbow"

    def __init__(
        self,
        *,
        dimension: int = 100,
        window: int = 5,
        loss: Literal["negative", "softmax", "hierarchical"] = 'negative',
        negatives: int = 5,
        negative_power: float = 0.75,
        subsample: float = 0.001,
        min_count: int = 5,
        max_words: int | None = None,
        lowercase: bool = True,
        tokens: Literal["words", "blanks"] = 'words',
        phrases: Literal["off", "word2phrase", "npmi"] = 'off',
        phrase_threshold: float | None = None,
        phrase_passes: int = 1,
        learning_rate: float = 0.05,
        max_iter: int | None = None,
        max_n: int = 0,
        min_n: int = 3,
        n_buckets: int = 2000000,
        keep_context: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.dimension = dimension
        self.window = window
        self.loss = loss
        self.negatives = negatives
        self.negative_power = negative_power
        self.subsample = subsample
        self.min_count = min_count
        self.max_words = max_words
        self.lowercase = lowercase
        self.tokens = tokens
        self.phrases = phrases
        self.phrase_threshold = phrase_threshold
        self.phrase_passes = phrase_passes
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_n = max_n
        self.min_n = min_n
        self.n_buckets = n_buckets
        self.keep_context = keep_context
        self.random_state = random_state
        self.verbose = verbose


class FastText(FastTextClassifier):
    """fastText: a classifier of documents that is quick to fit, also on much text, and to apply.

    A document is the mean `h` of the vectors of its words and, if asked for, of its n-grams of words and of characters, which
    are hashed to buckets. A linear model with a row for each class predicts the class from `h`. The fit takes gradient steps on the
    loss in both, document by document in a random order, at a rate that falls linearly to 0.

    Words, n-grams, hashes and files are those of fastText: `gradus export m.gradus m.bin` writes a model that opens there, and
    `gradus predict m.bin mail.csv` takes one from there. The result does not depend on the number of threads: documents are taken
    in small batches, whose means are computed at once.

    Cost of an epoch: about `4 dimension` operations for each word and n-gram. The objective in the report is the mean loss of the
    documents in the epoch. `tfidf` features with `logistic` or `svm` are often as good or better where documents are few (some ten
    thousand) and long: compare them.

    Reference: Joulin, Grave, Bojanowski, Mikolov: Bag of tricks for efficient text classification, 2017; quantisation: Joulin,
    Grave, Bojanowski, Douze, Jégou, Mikolov: FastText.zip, 2016.

    Parameters
    ----------
    dimension : int, default 100
        Number of coordinates of a vector. Must be an integer from 1 to 4096.
    loss : {"softmax", "ova", "hs"}, default 'softmax'
        The loss over the classes.
        - "softmax": One class of all, by a softmax: the log loss
        - "ova": Each class against all others, by a logistic function of its own: for documents of
          several classes
        - "hs": One class, by decisions along a binary tree of the classes, the frequent ones near
          its root: for very many classes
    word_ngrams : int, default 2
        Words of the longest n-grams: 2 for words and pairs of words in a row, which distinguish
        `not good` from `good`. Must be an integer from 1 to 20.
    max_n : int, default 0
        Characters of the longest n-grams of characters; 0 for none. They help with short texts,
        names, and languages of many word forms. Must be an integer from 0 to 64.
    min_n : int, default 3
        Characters of the shortest n-grams; `<` and `>`, which stand around a word, count. Must be
        an integer from 1 to 64.
    n_buckets : int, default 2000000
        Buckets that n-grams are hashed to. Those without any take no memory. Must be an integer
        from 1 to 2000000000.
    min_count : int, default 1
        Words that are there fewer times are left out. Must be an integer of at least 1.
    max_words : int or None, default None
        Keep this many words at most, the most frequent ones. Must be an integer from 2 to
        4000000000, or left out.
    lowercase : bool, default True
        Whether text is put in lower case first.
    tokens : {"words", "blanks"}, default 'words'
        The rule that cuts text into words.
        - "words": A run of letters, numbers and underscores; everything else stands between words
        - "blanks": A run of characters without blanks, tabs and line ends: for text that was cut
          into words before
    learning_rate : float, default 0.5
        Length of a step at the beginning; it falls in a straight line to 0. Must be a number at
        least 0.000001 and at most 10.
    max_iter : int or None, default None
        Number of times the documents are gone through. Left out, as often as makes 500,000
        documents, from 5 to 50 times. Must be an integer from 1 to 100000, or left out.
    vectors : str or None, default None
        File of vectors of words to start from, with as many coordinates: a model of words that
        gradus saved, or a file of word2vec, GloVe or fastText. Must be text, or left out.
    cutoff : int or None, default None
        Keep this many words and n-grams at most, those with the longest vectors. They are chosen in
        the course of the fit, and the rest of it is theirs. Must be an integer from 1 to
        4000000000, or left out.
    quantize : bool, default False
        Whether vectors are quantised: a byte for every `subvector` coordinates and one for the
        length.
    subvector : int, default 2
        Coordinates that share a byte, of quantised vectors. Must be an integer from 1 to 64.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    classes_
        The classes.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.text import FastText
    >>> texts = ["cheap pills now", "meeting at ten", "cheap watches", "minutes of the meeting"] * 10
    >>> model = FastText(dimension=8).fit(texts, ["spam", "ham", "spam", "ham"] * 10)
    >>> model.predict(["the next meeting", "cheap cheap"]).tolist()
    ['ham', 'spam']
    >>> model.predict_proba(["cheap"]).shape
    (1, 2)
    """

    _kind = "fasttext"

    def __init__(
        self,
        *,
        dimension: int = 100,
        loss: Literal["softmax", "ova", "hs"] = 'softmax',
        word_ngrams: int = 2,
        max_n: int = 0,
        min_n: int = 3,
        n_buckets: int = 2000000,
        min_count: int = 1,
        max_words: int | None = None,
        lowercase: bool = True,
        tokens: Literal["words", "blanks"] = 'words',
        learning_rate: float = 0.5,
        max_iter: int | None = None,
        vectors: str | None = None,
        cutoff: int | None = None,
        quantize: bool = False,
        subvector: int = 2,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.dimension = dimension
        self.loss = loss
        self.word_ngrams = word_ngrams
        self.max_n = max_n
        self.min_n = min_n
        self.n_buckets = n_buckets
        self.min_count = min_count
        self.max_words = max_words
        self.lowercase = lowercase
        self.tokens = tokens
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.vectors = vectors
        self.cutoff = cutoff
        self.quantize = quantize
        self.subvector = subvector
        self.random_state = random_state
        self.verbose = verbose
