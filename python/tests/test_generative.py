"""PixelCNN and variational autoencoders: likelihoods, samples, codes."""

import numpy as np
import pytest
from sklearn.base import clone

from gradus.nn import PixelCnn, Vae

RNG = np.random.default_rng(0)


def bars(n=200):
    """Images of 6 × 5 with a bright bar in one column."""
    images = np.zeros((n, 6, 5), dtype=np.uint8)
    images[np.arange(n), :, np.arange(n) % 5] = 255
    return images


def test_pixelcnn_of_images():
    images = bars()
    model = PixelCnn(channels=8, depth=2, max_iter=80, learning_rate=0.01, random_state=0).fit(images)
    logs = model.score_samples(images)
    # The entropy of five equal bars is log 5.
    assert logs.shape == (200,) and 1.5 < -logs.mean() < 3.0
    drawn = model.sample(20, random_state=1)
    assert drawn.shape == (20, 6, 5) and set(np.unique(drawn)) <= {0.0, 1.0}
    assert np.array_equal(drawn, model.sample(20, random_state=1))
    completed = model.sample(10, random_state=1, complete=images[:10], keep=0.5)
    assert np.array_equal(completed[:, :3], images[:10, :3] / 255.0)
    with pytest.raises(ValueError, match="steps"):
        model.sample(1, steps=3)
    with pytest.raises(ValueError, match="images of 5 × 6 × 1"):
        model.score_samples(images.transpose(0, 2, 1))


def test_pixelcnn_of_tables():
    angles = RNG.uniform(0, 2 * np.pi, 400)
    X = np.column_stack([np.cos(angles), 5 * np.sin(angles)]) + 0.05 * RNG.normal(size=(400, 2))
    model = PixelCnn(hidden=(32,), max_iter=40, random_state=0).fit(X)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    assert model.sample(30, random_state=0).shape == (30, 2)
    again = clone(model).fit(X)
    assert np.array_equal(again.score_samples(X), model.score_samples(X))


def test_vae_of_images():
    images = bars()
    model = Vae(hidden=(32,), n_components=2, max_iter=20, learning_rate=0.01, test_samples=20, random_state=0).fit(images)
    codes = model.transform(images)
    assert codes.shape == (200, 2)
    assert model.inverse_transform(codes).shape == (200, 30)
    assert model.score_samples(images).shape == (200,)
    assert model.sample(3, random_state=0).shape == (3, 6, 5)
    assert model.interpolate(2, 5, random_state=0).shape == (10, 6, 5)
    weights = model.state_dict()
    assert "encoder.hidden.0.weight" in weights and not any(name.startswith("progress") for name in weights)
