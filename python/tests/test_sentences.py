"""Vectors of words from counts, and of sentences, from Python."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import gradus
from gradus.linear import Logistic
from gradus.text import Glove, Ppmi, Sif

PAIRS = [(("cat", "dog"), ("fish", "meat")), (("car", "bus"), ("road", "street"))]
TEXTS = [
    f"my {PAIRS[0][0][at % 2]} eats {PAIRS[0][1][at // 2 % 2]} daily"
    if at % 3
    else f"one {PAIRS[1][0][at % 2]} drives down this {PAIRS[1][1][at // 2 % 2]} slowly"
    for at in range(240)
]


@pytest.mark.parametrize("model", [Ppmi(dimension=6), Glove(dimension=6, max_iter=50), Glove(dimension=6, solver="als", regularization=0.1)])
def test_words_have_vectors(model, tmp_path):
    fitted = clone(model).fit(TEXTS)
    assert fitted.vectors_.shape == (len(fitted.vocabulary_), 6)
    assert fitted.counts_[fitted.vocabulary_["daily"]] == sum("daily" in text for text in TEXTS)
    near = dict(fitted.most_similar("cat", topn=20))
    assert near["dog"] > max(near["road"], near["street"], near["bus"])
    assert "cat" not in near
    with pytest.raises(KeyError, match="zebra"):
        fitted["zebra"]
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.vectors_, fitted.vectors_)
    fitted.save(tmp_path / "words.gradus")
    loaded = gradus.load(tmp_path / "words.gradus")
    assert np.array_equal(loaded.vectors_, fitted.vectors_)
    sif = Sif(vectors=str(tmp_path / "words.gradus")).fit(TEXTS)
    assert sif.transform(["my cat", "zebra"]).shape == (2, 6)
    assert not sif.transform(["zebra"]).any()


def test_sentences_are_features():
    labels = ["animal" if text.startswith("my") else "traffic" for text in TEXTS]
    pipeline = make_pipeline(Sif(dimension=5), Logistic()).fit(TEXTS, labels)
    assert pipeline.score(TEXTS, labels) == 1.0
    model = Sif(dimension=5).fit(TEXTS)
    assert list(model.get_feature_names_out()) == [f"sif{at}" for at in range(5)]
    assert model.components_.shape == (1, 5)
    assert (model.word_weights_ > 0).all()
    # What is removed is gone.
    assert np.abs(model.transform(TEXTS) @ model.components_[0]).max() < 1e-6


def test_errors_are_those_of_scikit_learn():
    with pytest.raises(NotFittedError):
        Ppmi().most_similar("cat")
    with pytest.raises(NotFittedError):
        Sif().transform(["cat"])
    with pytest.raises(ValueError, match="vocabulary is empty"):
        Glove().fit(["every word is here once"])
    with pytest.raises(ValueError, match="nothing to learn from"):
        Ppmi(min_count=1).fit(["word"])
    with pytest.raises(ValueError, match="window"):
        Glove(window=0).fit(TEXTS)
