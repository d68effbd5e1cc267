"""Texts as features, beside scikit-learn's vectorizers."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

import gradus
from gradus.linear import Logistic
from gradus.text import Counts, Tfidf


def made(n, seed):
    rng = np.random.default_rng(seed)
    words = ["the", "of", "Cat", "dog", "ÉTÉ", "straße", "東京", "naïve", "x_1", "42", "i", "Σας", "ΟΔΟΣ", "İzmir", "cafe\u0301"]
    marks = [" ", ", ", ".\n", "-", "'", " — "]
    texts = []
    for _ in range(n):
        k = rng.integers(0, 40)
        texts.append("".join(words[min(rng.integers(15), rng.integers(15))] + marks[rng.integers(6)] for _ in range(k)))
    return texts


def same(ours, theirs, tolerance=0):
    assert sp.issparse(ours) and ours.shape == theirs.shape
    assert ours.has_canonical_format
    difference = abs(ours - theirs.astype(float))
    assert difference.max() <= tolerance


TEXTS, OTHERS = made(300, 0), made(50, 1)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"lowercase": False}, {"lowercase": False}),
        ({"max_ngram": 2}, {"ngram_range": (1, 2)}),
        ({"min_ngram": 2, "max_ngram": 3, "min_df": 2}, {"ngram_range": (2, 3), "min_df": 2}),
        ({"min_df": 0.2, "max_df": 0.8}, {"min_df": 0.2, "max_df": 0.8}),
        ({"max_df": 100}, {"max_df": 100}),
        ({"stop_words": ["the", "cat"], "max_ngram": 2}, {"stop_words": ["the", "cat"], "ngram_range": (1, 2)}),
        ({"binary": True}, {"binary": True}),
    ],
)
def test_counts_are_those_of_scikit_learn(ours, theirs):
    a, b = Counts(**ours), CountVectorizer(**theirs)
    same(a.fit_transform(TEXTS), b.fit_transform(TEXTS))
    same(a.transform(OTHERS), b.transform(OTHERS))
    assert list(a.get_feature_names_out()) == list(b.get_feature_names_out())
    assert a.vocabulary_ == b.vocabulary_


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"sublinear_tf": True}, {"sublinear_tf": True}),
        ({"norm": "l1", "smooth_idf": False}, {"norm": "l1", "smooth_idf": False}),
        ({"norm": None, "max_ngram": 2}, {"norm": None, "ngram_range": (1, 2)}),
    ],
)
def test_tfidf_is_that_of_scikit_learn(ours, theirs):
    a, b = Tfidf(**ours), TfidfVectorizer(**theirs)
    same(a.fit_transform(TEXTS), b.fit_transform(TEXTS), 1e-12)
    same(a.transform(OTHERS), b.transform(OTHERS), 1e-12)
    np.testing.assert_allclose(a.idf_, b.idf_, rtol=1e-14)


def test_hashes_are_those_of_scikit_learn():
    for n in [1, 7, 1 << 18]:
        theirs = HashingVectorizer(n_features=n, norm=None).transform(TEXTS)
        theirs.eliminate_zeros()
        ours = Counts(n_hashed=n)
        same(ours.fit_transform(TEXTS), theirs)
        assert not hasattr(ours, "vocabulary_")


def test_every_character_is_where_scikit_learn_has_it():
    # Two of each character, between letters and alone: whether it makes words, and its lower case.
    points = [c for c in range(0x80, 0x30000) if not 0xD800 <= c < 0xE000]
    texts = [f"a{chr(c)}b {chr(c)}{chr(c)}" for c in points]
    ours, theirs = Counts(max_ngram=1), CountVectorizer()
    a, b = ours.fit_transform(texts), theirs.fit_transform(texts)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    same(a, b)


def test_it_is_an_estimator():
    model = Tfidf(max_ngram=2)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(Exception, match="not fitted"):
        model.transform(TEXTS)
    for X in [np.array(TEXTS, dtype=object), (text for text in TEXTS), tuple(TEXTS)]:
        same(model.fit_transform(X), Tfidf(max_ngram=2).fit_transform(TEXTS))
    again = pickle.loads(pickle.dumps(model))
    same(again.transform(OTHERS), model.transform(OTHERS))
    y = np.array(["cat" in text.lower() for text in TEXTS])
    pipeline = make_pipeline(Tfidf(), Logistic(regularization=1e-4)).fit(TEXTS, y)
    assert pipeline.score(TEXTS, y) > 0.9


def test_a_file_keeps_it(tmp_path):
    model = Counts().fit(TEXTS)
    model.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert type(loaded) is Counts
    same(loaded.transform(OTHERS), model.transform(OTHERS))
    assert not hasattr(loaded, "idf_")


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="string object received"):
        Counts().fit("one text")
    with pytest.raises(ValueError, match=r"X\[1\] is a missing value"):
        Counts().fit(["a text", None])
    with pytest.raises(ValueError, match=r"X\[0\] is a int"):
        Counts().fit([1])
    with pytest.raises(ValueError, match="no documents"):
        Counts().fit([])
    with pytest.raises(ValueError, match="no word"):
        Counts().fit(["a", ""])
    with pytest.raises(ValueError, match="min_df"):
        Counts(min_df=99).fit(["some words"])
    with pytest.raises(ValueError, match="max_ngram"):
        Counts(min_ngram=2).fit(TEXTS)


def test_stop_words_may_be_given_in_several_ways(tmp_path):
    plain = Counts(stop_words=["cat", "the"]).fit(TEXTS)
    (tmp_path / "stop.txt").write_text("the\ncat\n")
    for words in [("cat", "the"), {"the", "cat"}, f"@{tmp_path / 'stop.txt'}"]:
        assert Counts(stop_words=words).fit(TEXTS).vocabulary_ == plain.vocabulary_
    assert Counts(stop_words=None).fit(TEXTS).vocabulary_ == Counts().fit(TEXTS).vocabulary_
    assert "the" not in Counts(stop_words="english").fit(TEXTS).vocabulary_
    with pytest.raises(TypeError, match="stop_words"):
        Counts(stop_words=[1]).fit(TEXTS)


def test_threads_do_not_matter():
    texts = TEXTS * 400
    before = gradus.get_threads()
    try:
        gradus.set_threads(1)
        one = Tfidf().fit_transform(texts)
        gradus.set_threads(3)
        three = Tfidf().fit_transform(texts)
    finally:
        gradus.set_threads(before)
    assert (one.data == three.data).all() and (one.indices == three.indices).all()
