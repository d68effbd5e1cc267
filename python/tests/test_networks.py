"""Networks of images and of texts."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import gradus
from gradus.nn import Autoencoder, Cnn, Lm, Mlp, MlpRegressor, Seq2Seq, TextClassifier, Vit

RNG = np.random.default_rng(0)
#: Images of 8 × 8 with a bright left or a bright right half.
SIDES = np.where(np.arange(120) % 2 == 0, "left", "right")
IMAGES = RNG.integers(0, 128, (120, 8, 8), dtype=np.uint8)
IMAGES[0::2, :, :4] += 127
IMAGES[1::2, :, 4:] += 127

SMALL = [Cnn(channels=(8, 16), max_iter=8, random_state=0), Vit(features=32, depth=2, max_iter=60, augment=None, random_state=0)]


@pytest.fixture(scope="module", params=SMALL, ids=lambda model: type(model).__name__)
def images(request):
    return clone(request.param).fit(IMAGES, SIDES)


def test_images_are_classified(images, tmp_path):
    assert images.classes_.tolist() == ["left", "right"] and images.image_shape_ == (8, 8, 1)
    assert images.score(IMAGES, SIDES) == 1.0
    p = images.predict_proba(IMAGES)
    assert p.shape == (120, 2) and np.allclose(p.sum(axis=1), 1)
    scores = images.decision_function(IMAGES)
    assert np.array_equal(images.classes_[(scores > 0).astype(int)], images.predict(IMAGES))
    assert np.allclose(1 / (1 + np.exp(-scores)), p[:, 1], atol=1e-6)
    images.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert type(loaded) is type(images) and np.array_equal(loaded.predict_proba(IMAGES), p)
    assert np.array_equal(pickle.loads(pickle.dumps(images)).predict_proba(IMAGES), p)


def test_images_come_in_several_forms(images):
    p = images.predict_proba(IMAGES)
    for same in (IMAGES[..., None], IMAGES.reshape(120, 64), IMAGES / 255.0, IMAGES.astype(np.float32) / 255):
        assert np.allclose(images.predict_proba(same), p, atol=1e-5)
    # Numbers from 0 to 255 were once taken for numbers from 0 to 1 that are very bright.
    with pytest.raises(ValueError, match="pixels from 0 to 1"):
        images.predict(IMAGES.astype(float))
    # Fitted to other units the model is one of those.
    other = clone(images).fit(IMAGES.astype(float), SIDES)
    assert np.array_equal(other.predict_proba(IMAGES), other.predict_proba(IMAGES.astype(float)))


def test_wrong_images_are_refused(images):
    for wrong, message in [
        (IMAGES[:, :7], "7 × 8 × 1, but .* was fitted to images of 8 × 8 × 1"),
        (IMAGES.reshape(120, 64)[:, :60], "X has 60 features, but"),
        (IMAGES[0, 0], "Reshape your data"),
        (IMAGES[:0], "0 sample"),
        (np.full((1, 8, 8), "a"), "images are numbers"),
        (np.full((1, 8, 8), np.nan), "not a finite number"),
    ]:
        with pytest.raises(ValueError, match=message):
            images.predict(wrong)
    new = clone(images)
    with pytest.raises(NotFittedError):
        new.predict(IMAGES)
    for X, y, message in [
        (IMAGES, None, "y is None"),
        (IMAGES, SIDES[:5], "120 images and y 5"),
        (IMAGES, ["one"] * 120, "only one class"),
        (IMAGES.reshape(120, 64)[:, :60], SIDES, "image_shape"),
        (np.full((120, 8, 8), np.inf), SIDES, "not a finite number"),
        (np.zeros((120, 8, 8, 5)), SIDES, "5 channels"),
    ]:
        with pytest.raises(ValueError, match=message):
            new.fit(X, y)


def test_rows_have_the_shape_that_is_named():
    rows = IMAGES[:, :6].reshape(120, 48)
    model = Cnn(channels=(8,), max_iter=4, image_shape=(6, 8)).fit(rows, np.where(SIDES == "left", 3, 1))
    assert model.image_shape_ == (6, 8, 1) and model.classes_.tolist() == [1, 3]
    assert model.predict(rows).dtype == model.classes_.dtype
    with pytest.raises(ValueError, match="image_shape"):
        Cnn(image_shape=(6,)).fit(rows, SIDES)


def test_colours_are_channels():
    X = RNG.random((90, 6, 6, 3)) * 0.5
    y = np.arange(90) % 3
    X[np.arange(90), :, :, y] += 0.5
    model = Cnn(channels=(8, 8), max_iter=15, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95 and model.predict_proba(X).shape == (90, 3)
    assert model.decision_function(X).shape == (90, 3)
    assert np.array_equal(model.decision_function(X).argmax(axis=1), model.predict(X))


def test_scikit_learn_searches_over_images():
    scores = cross_val_score(Cnn(channels=(8,), max_iter=6), IMAGES, SIDES, cv=3)
    assert scores.shape == (3,) and scores.min() > 0.8


def test_attention_shows_where_a_vision_transformer_looks():
    model = Vit(features=16, depth=2, heads=2, max_iter=5).fit(IMAGES, SIDES)
    found = model.attention(IMAGES[:5])
    assert found.shape == (5, 2, 2, 4, 4)
    assert (found >= 0).all() and (found.sum(axis=(3, 4)) < 1).all()


SUBJECTS = [["goal", "keeper", "league", "match"], ["budget", "report", "meeting", "memo"]]
LABELS = ["sport", "office"] * 100
TEXTS = [" ".join(RNG.choice(SUBJECTS[at % 2], 6)) for at in range(200)]


def test_texts_are_classified(tmp_path):
    model = TextClassifier(layers=1, dimension=32, vocabulary_size=300, context=32, max_iter=4, random_state=0)
    model.fit(TEXTS, LABELS)
    assert model.classes_.tolist() == ["office", "sport"] and model.score(TEXTS, LABELS) == 1.0
    p = model.predict_proba(["the match", "a memo"])
    assert p.shape == (2, 2) and np.allclose(p.sum(axis=1), 1)
    assert model.predict_top(["match league goal"], 1)[0][0][0] == "sport"
    model.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert type(loaded) is TextClassifier and np.array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert not hasattr(model, "word_vector")
    with pytest.raises(ValueError, match="must have one class"):
        clone(model).fit(["a", "b"], [["x", "y"], ["x"]])
    with pytest.raises(ValueError, match="X\\[1\\] is a missing value"):
        model.predict(["a", None])


TEXT = "the cat sat on the mat. " * 40


@pytest.fixture(scope="module")
def writer():
    return Lm(layers=1, dimension=32, context=16, max_iter=250, learning_rate=0.01, random_state=0).fit(TEXT)


def test_a_language_model_writes(writer, tmp_path):
    assert writer.generate("the cat sat", 10, temperature=0) == " on the ma"
    parts = []
    text = writer.generate("the", 30, callback=parts.append)
    assert "".join(parts) == text and len(text) <= 30
    assert text == writer.generate("the", 30) and len(writer.sample(3)) == 3
    assert any(writer.generate("t", 20, temperature=3.0, random_state=seed) != text[:20] for seed in range(5))
    writer.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert type(loaded) is Lm and loaded.generate("the", 30) == text


def test_a_language_model_scores(writer):
    known, unknown = writer.score_samples(["the cat sat on the mat.", "mat the on sat cat the."])
    assert known > unknown
    assert writer.perplexity(TEXT) < 1.5
    assert writer.perplexity(TEXT) == pytest.approx(np.exp(-writer.score(TEXT)))
    n = len(TEXT) + 1
    assert writer.score_samples(TEXT)[0] == pytest.approx(n * writer.score(TEXT))


def test_wrong_requests_to_a_language_model_are_refused(writer):
    with pytest.raises(ValueError, match="temperature"):
        writer.generate("a", 5, temperature=-1)
    with pytest.raises(ValueError, match="n_tokens"):
        writer.generate("a", -1)
    with pytest.raises(ValueError, match="top_p"):
        writer.generate("a", 5, top_p=0)
    with pytest.raises(TypeError, match="prompt"):
        writer.generate(None)
    with pytest.raises(ValueError, match="no text"):
        Lm().fit([""])
    with pytest.raises(NotFittedError):
        Lm().generate("a")
    with pytest.raises(ZeroDivisionError):
        writer.generate("the", 30, callback=lambda text: 1 / 0)


def test_a_translator_translates(tmp_path):
    sources = ["".join(RNG.choice(list("abc"), RNG.integers(1, 4))) for _ in range(300)]
    targets = [text.upper() for text in sources]
    model = Seq2Seq(layers=1, dimension=32, max_iter=400, learning_rate=0.005, random_state=0).fit(sources, targets)
    assert model.score(sources, targets) > 0.95
    assert model.predict(["ab"]).tolist() == model.translate(["ab"]) == model.translate(["ab"], beams=3) == ["AB"]
    right, wrong = model.score_samples(["ab", "ab"], ["AB", "CC"])
    assert right > wrong and model.perplexity(sources, targets) < 1.5
    model.save(tmp_path / "m.gradus")
    assert gradus.load(tmp_path / "m.gradus").translate(["ab"]) == ["AB"]
    for call, message in [
        (lambda: model.translate(["ab"], beams=0), "beams"),
        (lambda: model.translate("ab"), "string object"),
        (lambda: Seq2Seq().fit(["a"], None), "y is None"),
        (lambda: Seq2Seq().fit(["a"], ["b", "c"]), "targets of pairs"),
        (lambda: Seq2Seq().fit(["a"], [1]), "y\\[0\\] is a int"),
        (lambda: model.score(["a"], []), "1 texts and y 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_an_autoencoder_reconstructs(tmp_path):
    t = np.linspace(-3, 3, 400)
    X = np.column_stack([t, t**2, np.sin(t), np.cos(t)]) * 10 + 100
    model = Autoencoder(n_components=1, hidden=(32, 16), max_iter=60, learning_rate=0.01, random_state=0).fit(X)
    codes = model.transform(X)
    assert codes.shape == (400, 1) and list(model.get_feature_names_out()) == ["code1"]
    assert model.inverse_transform(codes).shape == X.shape
    assert np.allclose(model.reconstruct(X), model.inverse_transform(codes))
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    again = (model.reconstruct(X) - X.mean(axis=0)) / X.std(axis=0)
    assert np.allclose(model.reconstruction_errors(X), ((scaled - again) ** 2).mean(axis=1), rtol=0.02, atol=1e-3)
    assert model.score(X) > -0.3
    # What is unlike the samples of training comes back worse.
    assert model.reconstruction_errors([[100, 100, 130, 60]])[0] > 10 * model.reconstruction_errors(X).mean()
    model.save(tmp_path / "m.gradus")
    assert np.array_equal(gradus.load(tmp_path / "m.gradus").transform(X), codes)


def test_an_autoencoder_takes_images():
    model = Autoencoder(architecture="convolutional", image_shape=(8, 8), channels=(8,), n_components=4, max_iter=5)
    X = IMAGES / 255
    model.fit(X)
    assert model.transform(X).shape == (120, 4)
    assert np.array_equal(model.transform(X), model.transform(X.reshape(120, 64)))
    with pytest.raises(ValueError, match="images of 7 × 8 × 1"):
        model.transform(X[:, :7])
    with pytest.raises(ValueError, match="image_shape"):
        Autoencoder(image_shape=8).fit(X)
    with pytest.raises(ValueError, match="no pixels of images"):
        Autoencoder(architecture="convolutional").fit(X.reshape(120, 64))


@pytest.mark.parametrize(
    "model",
    [
        Mlp(hidden=(8, 4), max_iter=2),
        MlpRegressor(hidden=(8, 4), norm="batch", max_iter=2),
        Autoencoder(hidden=(8,), max_iter=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_weights_are_given_and_taken_by_name(model):
    X, y = RNG.normal(size=(120, 3)), np.arange(120) % 2
    first, second = clone(model).set_params(random_state=0).fit(X, y), clone(model).set_params(random_state=1).fit(X, y)
    apply = "transform" if isinstance(model, Autoencoder) else "predict"
    weights = first.state_dict()
    assert all(isinstance(one, np.ndarray) and one.dtype == np.float32 for one in weights.values())
    assert not any(name.startswith(("scaler", "target")) for name in weights)
    # Scalers learn from the samples that are not held out, which do not depend on the seed.
    assert np.array_equal(getattr(second.load_state_dict(weights), apply)(X), getattr(first, apply)(X))
    name, value = next(iter(weights.items()))
    changed = second.load_state_dict({name: 2 * value, "norm.0.num_batches_tracked": np.array(3)}).state_dict()
    assert np.array_equal(changed[name], 2 * value)
    for wrong, message in [
        ({"nothing": value}, "unknown tensor"),
        ({name: value[:1]}, "expected \\["),
        ({name: np.full_like(value, np.nan)}, "not finite"),
        ({}, "no weights"),
    ]:
        with pytest.raises(ValueError, match=message):
            second.load_state_dict(wrong)
    assert np.array_equal(second.state_dict()[name], 2 * value)
