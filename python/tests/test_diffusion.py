"""Diffusion models and adversarial networks."""

import numpy as np
import pytest

import gradus
from gradus.nn import Diffusion, Gan

RNG = np.random.default_rng(0)
#: Two clouds, far from each other.
CLASSES = np.where(np.arange(400) % 2 == 0, "right", "left")
CLOUDS = RNG.normal(size=(400, 2)) + np.where(CLASSES == "right", 10, -10)[:, None]
IMAGES = (np.arange(64).reshape(8, 8)[None] % 8 == np.arange(120)[:, None, None] % 8).astype(np.uint8) * 255


def test_samples_of_a_class(tmp_path):
    model = Diffusion(hidden=(32, 32), max_iter=150, random_state=0).fit(CLOUDS, CLASSES)
    assert list(model.classes_) == ["left", "right"]
    drawn = model.sample(200, random_state=1, steps=20)
    assert drawn.shape == (200, 2)
    assert 60 < (drawn[:, 0] > 0).sum() < 140
    right = model.sample(50, random_state=1, label="right", guidance=0.5, steps=20)
    assert (right > 0).all()
    assert np.array_equal(right, model.sample(50, random_state=1, label="right", guidance=0.5, steps=20))
    bounds = model.score_samples(CLOUDS)
    # What lies between the clouds is improbable.
    assert bounds.mean() > model.score_samples(np.zeros((5, 2))).mean() + 5
    model.save(tmp_path / "m.gradus")
    again = gradus.load(tmp_path / "m.gradus")
    assert np.array_equal(again.sample(5, random_state=2), model.sample(5, random_state=2))
    with pytest.raises(ValueError, match="left, right"):
        model.sample(1, label="up")
    with pytest.raises(ValueError, match="1000"):
        model.sample(1, steps=1001)
    with pytest.raises(ValueError, match="temperature"):
        model.sample(1, temperature=0.5)


def test_classes_are_left_aside_on_request():
    plain = Diffusion(hidden=(8,), max_iter=2, random_state=0)
    drawn = plain.fit(CLOUDS).sample(5, random_state=0)
    asked = Diffusion(hidden=(8,), max_iter=2, conditional=False, random_state=0).fit(CLOUDS, CLASSES)
    assert np.array_equal(drawn, asked.sample(5, random_state=0))
    with pytest.raises(ValueError, match="class"):
        asked.sample(1, label="left")


def test_images_are_drawn_as_images():
    labels = np.arange(120) % 8
    model = Diffusion(channels=(4, 8), max_iter=2, random_state=0).fit(IMAGES, labels)
    drawn = model.sample(3, label="7", steps=4, random_state=0)
    assert drawn.shape == (3, 8, 8) and drawn.min() >= 0 and drawn.max() <= 1 + 1e-6
    assert model.score_samples(IMAGES[:4]).shape == (4,)
    gan = Gan(channels=(4, 8), max_iter=2, random_state=0).fit(IMAGES)
    assert gan.sample(3, random_state=0).shape == (3, 8, 8)
    assert gan.interpolate(n_paths=2, n_steps=5, random_state=0).shape == (10, 8, 8)


def test_an_adversarial_network_learns_both_clouds(tmp_path):
    model = Gan(hidden=(32, 32), max_iter=500, random_state=0).fit(CLOUDS)
    drawn = model.sample(400, random_state=1)
    assert 100 < (drawn[:, 0] > 0).sum() < 300
    assert np.median(np.abs(np.abs(drawn) - 10)) < 3
    assert model.n_iter_ == 500
    model.save(tmp_path / "m.gradus")
    assert np.array_equal(gradus.load(tmp_path / "m.gradus").sample(4, random_state=0), model.sample(4, random_state=0))
    with pytest.raises(ValueError, match="steps"):
        model.sample(1, steps=3)
