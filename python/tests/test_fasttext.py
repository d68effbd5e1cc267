"""Classes of texts, words of n-grams, and files of fastText; beside the package itself where it is installed."""

import pickle

import numpy as np
import pytest

import gradus
from gradus.text import FastText, Skipgram

SUBJECTS = [
    ["goal", "keeper", "league", "match", "season", "referee"],
    ["budget", "report", "meeting", "agenda", "minutes", "memo"],
]
RNG = np.random.default_rng(0)
LABELS = ["sport", "office"] * 300
TEXTS = [" ".join(RNG.choice(SUBJECTS[at % 2], 8)) for at in range(600)]


@pytest.fixture(scope="module")
def model():
    return FastText(dimension=8, n_buckets=500, max_iter=5, random_state=0).fit(TEXTS, LABELS)


def test_classes_are_predicted(model, tmp_path):
    assert list(model.classes_) == ["office", "sport"]
    assert model.score(TEXTS, LABELS) == 1.0
    p = model.predict_proba(["goal of the league", "budget memo"])
    assert p.shape == (2, 2) and np.allclose(p.sum(axis=1), 1, atol=1e-5)
    assert list(model.predict(["goal of the league", "budget memo"])) == ["sport", "office"]
    assert model.predict_top(["goal"], 1)[0][0][0] == "sport"
    model.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert type(loaded) is FastText and np.array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_labels_keep_their_types():
    numbers = FastText(dimension=4, max_iter=5).fit(TEXTS, [10 if label == "sport" else 9 for label in LABELS])
    assert numbers.predict(["goal"])[0] == 10 and list(numbers.classes_) == [9, 10]
    several = FastText(dimension=6, loss="ova", max_iter=20).fit(TEXTS, [[label, "text"] for label in LABELS])
    assert {label for label, p in several.predict_top(["goal league"], 3, 0.5)[0]} == {"sport", "text"}


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="2 texts and y 1"):
        FastText().fit(["a", "b"], ["x"])
    with pytest.raises(ValueError, match="document 2 has no class"):
        FastText().fit(["a", "b"], [["x"], []])
    with pytest.raises(ValueError, match="class `x`"):
        FastText().fit(["a", "b"], ["x", "x"])
    with pytest.raises(ValueError, match="y is None"):
        FastText().fit(["a"], None)


def test_unknown_words_have_vectors_of_their_ngrams():
    words = Skipgram(dimension=6, max_n=4, n_buckets=300, subsample=0.0).fit(TEXTS)
    assert "goals" not in words and words["goals"].shape == (6,)
    assert words.similarity("goals", "goal") > words.similarity("goals", "memo") - 1
    assert words.most_similar("goals", topn=3)
    with pytest.raises(KeyError, match="zq"):
        Skipgram(dimension=6, subsample=0.0).fit(TEXTS)["zq"]


def probabilities(theirs, text):
    # Its own `predict` does not work with NumPy 2.
    return {label.removeprefix("__label__"): p for p, label in theirs.f.predict(text + "\n", 2, 0.0, "strict")}


def test_files_open_in_fasttext(model, tmp_path):
    fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed: its files are not compared")
    fasttext.FastText.eprint = lambda *_: None
    model.save_fasttext(tmp_path / "m.bin")
    theirs = fasttext.load_model(str(tmp_path / "m.bin"))
    texts = [*TEXTS[:20], "goal unknown words", ""]
    ours = model.predict_proba(texts)
    for row, text in zip(ours, texts):
        by_name = probabilities(theirs, text)
        assert np.allclose(row, [by_name["office"], by_name["sport"]], atol=1e-4)
    back = gradus.load(tmp_path / "m.bin")
    assert np.allclose(back.predict_proba(texts), ours, atol=1e-5)


def test_files_of_fasttext_open_here(tmp_path):
    fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed: its files are not compared")
    fasttext.FastText.eprint = lambda *_: None
    path = tmp_path / "train.txt"
    path.write_text("".join(f"__label__{label} {text}\n" for label, text in zip(LABELS, TEXTS)))
    for loss in ("softmax", "ova", "hs"):
        theirs = fasttext.train_supervised(str(path), dim=8, epoch=5, wordNgrams=2, bucket=1000, minn=2, maxn=4, loss=loss, thread=1, verbose=0)
        for name, quantised in (("m.bin", False), ("m.ftz", True)):
            if quantised:
                theirs.quantize(str(path), qnorm=True, cutoff=400, retrain=True, epoch=2)
            theirs.save_model(str(tmp_path / name))
            ours = gradus.load(tmp_path / name)
            texts = [*TEXTS[:20], "goal unknown words"]
            for row, text in zip(ours.predict_proba(texts), texts):
                by_name = probabilities(theirs, text)
                # Its logistic function is a table of 512 values, where classes are told one by one.
                close = 8e-3 if loss == "ova" else 1e-4
                assert np.allclose(row, [by_name["office"], by_name["sport"]], atol=close), (loss, name)
    words = fasttext.train_unsupervised(str(path), dim=6, minn=3, maxn=5, bucket=1000, epoch=1, thread=1, verbose=0)
    words.save_model(str(tmp_path / "w.bin"))
    ours = gradus.load(tmp_path / "w.bin")
    for word in ("goal", "budget", "goalkeepers", "é"):
        assert np.allclose(ours[word], words.get_word_vector(word), atol=1e-5), word


def test_files_open_in_gensim(tmp_path):
    gensim = pytest.importorskip("gensim.models.fasttext", reason="gensim is not installed: its vectors are not compared")
    words = Skipgram(dimension=6, max_n=4, n_buckets=300, subsample=0.0).fit(TEXTS)
    words.save_fasttext(tmp_path / "w.bin")
    theirs = gensim.load_facebook_vectors(str(tmp_path / "w.bin"))
    for word in ("goal", "budget", "goals", "keepers"):
        assert np.allclose(theirs[word], words[word], atol=1e-5), word
    names = [word for word, _ in theirs.most_similar("goal", topn=4)]
    assert names == [word for word, _ in words.most_similar("goal", topn=4)]
