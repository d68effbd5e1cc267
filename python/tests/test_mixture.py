"""Gaussian mixtures beside scikit-learn's: figures, the same start, missing entries."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as Theirs

import gradus
from gradus.latent import GaussianMixture

KINDS = ["full", "tied", "diag", "spherical"]


def data(n=600, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    centres, shapes = 4 * rng.normal(size=(k, d)), rng.normal(size=(k, d, d))
    labels = rng.integers(k, size=n)
    return np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d))) + centres[labels]


def theirs_at(model, kind, **options):
    """scikit-learn's mixture with the parameters of ours."""
    k = len(model.weights_)
    other = Theirs(k, covariance_type=kind, reg_covar=0, **options)
    other.weights_, other.means_, other.covariances_ = model.weights_, model.means_, model.covariances_
    other.precisions_cholesky_ = model.precisions_cholesky_
    return other


@pytest.mark.parametrize("kind", KINDS)
def test_figures_are_those_of_sklearn_at_the_same_parameters(kind):
    X = data()
    model = GaussianMixture(n_components=3, covariance_type=kind).fit(X)
    other = theirs_at(model, kind)
    np.testing.assert_allclose(model.score_samples(X), other.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert model.bic(X) == pytest.approx(other.bic(X), rel=1e-10)
    assert model.aic(X) == pytest.approx(other.aic(X), rel=1e-10)
    assert model.lower_bound_ == pytest.approx(other.score(X), rel=1e-10)
    assert model.converged_


@pytest.mark.parametrize("kind", KINDS)
def test_from_the_same_start_the_same_iterations(kind):
    X = data(seed=1)
    options = {"n_components": 3, "covariance_type": kind, "reg_covar": 0.0, "tol": 0.0}
    one = GaussianMixture(max_iter=1, **options).fit(X)
    many = GaussianMixture(max_iter=16, **options).fit(X)
    precisions = {
        "full": lambda c: np.linalg.inv(c),
        "tied": lambda c: np.linalg.inv(c),
        "diag": lambda c: 1 / c,
        "spherical": lambda c: 1 / c,
    }[kind](one.covariances_)
    other = Theirs(
        3, covariance_type=kind, reg_covar=0, tol=0, max_iter=15,
        weights_init=one.weights_, means_init=one.means_, precisions_init=precisions,
    )
    with pytest.warns():
        other.fit(X)
    np.testing.assert_allclose(many.means_, other.means_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(many.covariances_, other.covariances_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(many.weights_, other.weights_, rtol=1e-6)
    assert many.lower_bound_ == pytest.approx(other.score(X), rel=1e-9)


def test_iris_is_as_likely_as_sklearns_best_and_the_number_is_chosen():
    X = load_iris().data
    ours = GaussianMixture(n_components=2).fit(X)
    theirs = Theirs(2, n_init=5, random_state=0, tol=1e-6, max_iter=500).fit(X)
    assert ours.lower_bound_ >= theirs.lower_bound_ - 1e-3
    chosen = GaussianMixture().fit(X)
    assert chosen.n_components_ == 2
    assert chosen.report_.chosen[0]["parameter"] == "n_components"


def test_missing_entries_are_marginalised():
    X = data(seed=2)
    model = GaussianMixture(n_components=3).fit(X)
    holes = X.copy()
    holes[np.arange(len(X)), np.random.default_rng(0).integers(4, size=len(X))] = np.nan
    # The density of what is there is that of scikit-learn's mixture of these features.
    row = np.isnan(holes[:, 0])
    part = Theirs(3, covariance_type="full")
    part.weights_, part.means_ = model.weights_, model.means_[:, 1:]
    part.covariances_ = model.covariances_[:, 1:, 1:]
    part.precisions_cholesky_ = np.stack([np.linalg.cholesky(np.linalg.inv(c)) for c in part.covariances_])
    np.testing.assert_allclose(model.score_samples(holes[row]), part.score_samples(X[row, 1:]), rtol=1e-8)
    fitted = GaussianMixture(n_components=3).fit(holes)
    assert fitted.score(X) > model.score(X) - 0.2
    filled = fitted.impute(holes)
    assert np.array_equal(filled[~np.isnan(holes)], X[~np.isnan(holes)])
    gone = np.isnan(holes)
    mean = np.broadcast_to(np.nanmean(holes, axis=0), X.shape)
    assert ((filled - X)[gone] ** 2).mean() < 0.6 * ((mean - X)[gone] ** 2).mean()
    frame = pd.DataFrame(holes, columns=list("abcd"))
    by_frame = GaussianMixture(n_components=3).fit(frame)
    np.testing.assert_allclose(by_frame.means_, fitted.means_)
    np.testing.assert_allclose(by_frame.impute(frame), filled)
    with pytest.raises(ValueError, match="missing"):
        GaussianMixture(n_components=3, missing="refuse").fit(frame)


def test_weights_draws_pickles_and_single_precision():
    X = data(seed=3)
    model = GaussianMixture(n_components=3).fit(X)
    drawn, labels = model.sample(500, random_state=1)
    assert drawn.shape == (500, 4) and labels.shape == (500,)
    np.testing.assert_array_equal(drawn, model.sample(500, random_state=1)[0])
    assert abs(model.score(drawn) - model.score(X)) < 0.5
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    weighted = GaussianMixture(n_components=3).fit(X, sample_weight=np.full(len(X), 2.0))
    assert weighted.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-6)
    single = GaussianMixture(n_components=3).fit(X.astype(np.float32))
    assert single.means_.dtype == np.float32 and single.predict_proba(X.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="n_components"):
        GaussianMixture(n_components=1000).fit(X)


def test_threads_change_nothing():
    X = data(n=3000, seed=4)
    before = gradus.get_threads() if hasattr(gradus, "get_threads") else None
    found = []
    for threads in (1, 2):
        gradus.set_threads(threads)
        found.append(GaussianMixture(n_components=4).fit(X).means_)
    if before:
        gradus.set_threads(before)
    np.testing.assert_array_equal(*found)
