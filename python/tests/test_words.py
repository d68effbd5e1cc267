"""Vectors of words."""

import pickle

import numpy as np
import pytest

import gradus
from gradus.text import Cbow, Skipgram

SUBJECTS = [
    ["goal", "keeper", "league", "match", "season", "referee", "striker", "stadium", "trophy", "whistle"],
    ["budget", "report", "meeting", "agenda", "minutes", "memo", "deadline", "invoice", "ledger", "audit"],
]
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(SUBJECTS[at % 2], 12)) for at in range(2000)]


@pytest.mark.parametrize("kind", [Skipgram, Cbow])
def test_words_of_one_subject_are_alike(kind, tmp_path):
    model = kind(dimension=10, subsample=0.0, max_iter=20, random_state=0).fit(TEXTS)
    assert model.vectors_.shape == (20, 10)
    assert len(model.vocabulary_) == 20 and model.counts_.sum() == 24_000
    names = [word for word, _ in model.most_similar("goal", topn=5)]
    assert set(names) <= set(SUBJECTS[0])
    assert model.most_similar(positive=["goal", "report"], negative=["match"], topn=50)[0][0] not in ("goal", "report", "match")
    assert model.doesnt_match(["goal", "match", "agenda", "league"]) == "agenda"
    assert "Goal" in model and "zebra" not in model
    assert np.array_equal(model["Goal"], model["goal"])
    assert model.similarity("goal", "goal") == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(KeyError, match="keepr.*keeper"):
        model["keepr"]
    model.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert type(loaded) is kind and np.array_equal(loaded.vectors_, model.vectors_)
    assert pickle.loads(pickle.dumps(model)).most_similar("goal") == model.most_similar("goal")


def test_bad_texts_are_named():
    with pytest.raises(ValueError, match="min_count"):
        Skipgram().fit(["one two three"])
    with pytest.raises(ValueError, match="is a int, not a text"):
        Skipgram().fit([1, 2])
    with pytest.raises(ValueError, match="needs a word"):
        Skipgram(dimension=4).fit(TEXTS).most_similar()
