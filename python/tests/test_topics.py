"""Topic models from Python: texts and counts, scikit-learn's conventions, gensim's measures."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gradus
from gradus.latent import Lda, Plsa

RNG = np.random.default_rng(0)
TOPICS = [["goal", "keeper", "league", "match"], ["budget", "report", "meeting", "agenda"]]
TEXTS = [" ".join(RNG.choice(TOPICS[at % 2], 12)) for at in range(80)]
WORDS = sorted(sum(TOPICS, []))
COUNTS = sp.csr_matrix([[text.split().count(word) for word in WORDS] for text in TEXTS], dtype=float)


@pytest.mark.parametrize("model", [Lda(n_topics=2, max_iter=50), Plsa(n_topics=2)])
def test_texts_and_counts_give_the_same_topics(model):
    of_texts, of_counts = clone(model).fit(TEXTS), clone(model).fit(COUNTS)
    assert np.array_equal(of_texts.topics_, of_counts.topics_)
    assert np.array_equal(of_texts.transform(TEXTS), of_counts.transform(COUNTS))
    assert np.array_equal(of_counts.transform(COUNTS), of_counts.transform(COUNTS.toarray()))
    found = sorted(sorted(words) for words in of_texts.top_words(4))
    assert found == sorted(sorted(words) for words in TOPICS)
    assert all(word.isdigit() for word in of_counts.top_words(1)[0])
    mixtures = of_texts.fit_transform(TEXTS)
    assert mixtures.shape == (80, 2) and np.allclose(mixtures.sum(axis=1), 1)
    assert (mixtures.max(axis=1) > 0.8).all()
    assert np.allclose(of_texts.topics_.sum(axis=1), 1)
    assert np.allclose(of_texts.components_ / of_texts.components_.sum(axis=1, keepdims=True), of_texts.topics_)
    # Two topics of four words each: about four equally probable words.
    assert 3.5 < of_texts.perplexity(TEXTS) < 5.0
    assert of_texts.perplexity(TEXTS, completion=False) <= of_texts.perplexity(TEXTS) + 0.2
    assert of_texts.score(TEXTS) < 0
    assert list(of_texts.get_feature_names_out()) == [f"{model._kind}0", f"{model._kind}1"]


def test_models_are_saved_pickled_and_loaded(tmp_path):
    for data in (TEXTS, COUNTS):
        model = Lda(n_topics=2, max_iter=20).fit(data)
        model.save(tmp_path / "m.gradus")
        for again in (gradus.load(tmp_path / "m.gradus"), pickle.loads(pickle.dumps(model))):
            assert np.array_equal(again.transform(data), model.transform(data))
            assert again.top_words(3) == model.top_words(3)


def test_batches_are_learned_from():
    model = Lda(n_topics=2)
    for _ in range(30):
        model.partial_fit(TEXTS, total_samples=2400)
    found = sorted(sorted(words) for words in model.top_words(4))
    assert found == sorted(sorted(words) for words in TOPICS)
    assert model.transform(TEXTS).shape == (80, 2)
    by_counts = Lda(n_topics=2).partial_fit(COUNTS).partial_fit(COUNTS)
    assert by_counts.transform(COUNTS).shape == (80, 2)


def test_wrong_input_is_reported():
    with pytest.raises(NotFittedError):
        Lda().transform(TEXTS)
    with pytest.raises(ValueError, match="Negative values"):
        Lda().fit(-COUNTS)
    with pytest.raises(ValueError, match="string object"):
        Lda().fit("one text")
    with pytest.raises(ValueError, match="not a text"):
        Lda().fit(["a text", None])
    with pytest.raises(ValueError, match="whole"):
        Lda().fit(COUNTS * 0.5)
    with pytest.raises(ValueError, match="features"):
        Lda(n_topics=2, max_iter=5).fit(COUNTS).transform(COUNTS[:, :3])
    with pytest.raises(ValueError, match="takes no texts"):
        Lda(n_topics=2, max_iter=5).fit(COUNTS).transform(TEXTS)
    with pytest.raises(ValueError, match="takes no counts"):
        Lda(n_topics=2, max_iter=5).fit(TEXTS).transform(COUNTS)
    with pytest.raises(ValueError, match="n_topics"):
        Lda(n_topics=0).fit(TEXTS)


def test_the_coherence_is_that_of_gensim():
    gensim = pytest.importorskip("gensim")
    from gensim.models import CoherenceModel

    rng = np.random.default_rng(1)
    texts = [list(rng.choice(TOPICS[at % 2] + ["other"], rng.integers(3, 30))) for at in range(60)]
    model = Lda(n_topics=2, max_iter=30, stop_words=()).fit([" ".join(text) for text in texts])
    dictionary = gensim.corpora.Dictionary(texts)
    peer = CoherenceModel(
        topics=model.top_words(10), texts=texts, dictionary=dictionary, coherence="c_npmi", window_size=10_000, topn=10, processes=1
    )
    # The windows are whole documents then.
    assert np.allclose(peer.get_coherence_per_topic(), model.coherence_, atol=1e-6)
