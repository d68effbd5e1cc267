"""Spectra beside LAPACK (numpy, scipy): singular values, components and objectives to stated tolerances, on data of every kind."""

import json

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse

from gradus.factor import NmfRatings
from gradus.latent import LinearAutoencoder, Nmf, Pca


def matrices():
    rng = np.random.default_rng(0)
    tall, wide = rng.normal(size=(200, 12)), rng.normal(size=(12, 200))
    deficient = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 20))
    constant = tall.copy()
    constant[:, 3] = 7.0
    graded = rng.normal(size=(80, 10)) * 10.0 ** -np.arange(10)
    return {
        "tall": tall,
        "wide": wide,
        "square": rng.normal(size=(40, 40)),
        "rank deficient": deficient + 3,
        "a constant column": constant,
        "graded": graded,
        "tiny": tall * 1e-150,
        "huge": tall * 1e150,
        "far from 0": tall + 1e6,
    }


def lapack(X):
    size = np.abs(X).max()
    _, s, v = scipy.linalg.svd(X / size, full_matrices=False)
    return s * size, v


@pytest.mark.parametrize("solver", ["svd", "covariance", "randomized", "power", "batches"])
@pytest.mark.parametrize("name", matrices())
def test_singular_values_and_components_are_those_of_lapack(name, solver):
    X = matrices()[name]
    s, v = lapack(X - X.mean(axis=0))
    k = 3
    if solver == "batches":
        if name == "huge":
            pytest.skip("batches take values of at most 1e150")
        model = Pca(n_components=k)
        for part in np.array_split(X, 3):
            model.partial_fit(part)
    else:
        model = Pca(n_components=k, solver=solver, tol=1e-10, max_iter=100_000, random_state=0).fit(X)
    # Rounding of the data far from 0 costs digits of both.
    digits = 1e-8 if name == "far from 0" else 1e-11
    np.testing.assert_allclose(model.singular_values_, s[:k], rtol=digits)
    # Components up to their sign, as far as the gaps between values let them be told.
    for a in range(k):
        gap = min(abs(s[a] - s[b]) for b in range(len(s)) if b != a) / s[0]
        off = 1 - abs(model.components_[a] @ v[a])
        assert off <= (1e-7 / gap) ** 2 + 1e-12, f"component {a + 1}: {off}"
    gram = model.components_ @ model.components_.T
    np.testing.assert_allclose(gram, np.eye(k), atol=1e-12)


@pytest.mark.parametrize("solver", ["svd", "covariance", "randomized"])
def test_data_that_does_not_vary_has_no_variance(solver):
    model = Pca(n_components=2, solver=solver).fit(np.full((10, 4), 5.0))
    assert np.abs(model.singular_values_).max() < 1e-12
    assert np.isfinite(model.transform(np.zeros((2, 4)))).all()


@pytest.mark.parametrize("solver", ["svd", "covariance", "randomized", "power"])
@pytest.mark.parametrize("name", matrices())
def test_the_truncated_svd_is_that_of_lapack(name, solver):
    X = matrices()[name]
    s, v = lapack(X)
    for features in (X, scipy.sparse.csr_matrix(X)):
        if solver == "svd" and scipy.sparse.issparse(features):
            continue
        model = Pca(n_components=3, center=False, solver=solver, tol=1e-10, max_iter=100_000, random_state=0).fit(features)
        # Squares hold values to a share of the first one, and the power method stops at a share of its square.
        right = 1 if (name, solver) == ("far from 0", "power") else 3
        atol = 1e-8 * s[0] if name == "far from 0" else 0
        np.testing.assert_allclose(model.singular_values_[:right], s[:right], rtol=1e-11, atol=atol)
        assert abs(model.components_[0] @ v[0]) > 1 - 1e-12


def test_the_truncated_svd_of_sparse_data_is_that_of_lapack():
    for shape in [(300, 60), (60, 300)]:
        X = scipy.sparse.random(*shape, density=0.1, random_state=1, format="csr")
        s = scipy.linalg.svdvals(X.toarray())
        model = Pca(n_components=5, center=False, tol=1e-10).fit(X)
        np.testing.assert_allclose(model.singular_values_, s[:5], rtol=1e-11)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
def test_the_objective_of_nmf_is_that_of_its_factors_and_they_are_optimal(shape, scale):
    rng = np.random.default_rng(2)
    X = scale * (rng.gamma(1.0, size=(shape[0], 3)) @ rng.gamma(1.0, size=(3, shape[1])) + 0.1 * rng.random(shape))
    model = Nmf(n_components=3, max_iter=5000, tol=1e-12).fit(X)
    W = model.transform(X)
    norm = np.abs(X).max()
    error = np.linalg.norm((X - W @ model.components_) / norm) * norm
    np.testing.assert_allclose(model.reconstruction_err_, error, rtol=1e-6)
    # The rows are the non-negative least squares of scipy (Lawson and Hanson, on LAPACK).
    for row in range(0, shape[0], 7):
        best, _ = scipy.optimize.nnls((model.components_ / norm).T, X[row] / norm)
        np.testing.assert_allclose(W[row], best, atol=1e-9 * best.max())
    # No rank of 3 comes lower than the singular values left out.
    left = np.sqrt((scipy.linalg.svdvals(X / norm)[3:] ** 2).sum()) * norm
    assert error >= left * (1 - 1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
def test_the_divergence_of_nmf_is_that_of_its_factors_and_they_are_optimal(shape, scale):
    rng = np.random.default_rng(7)
    X = rng.poisson(rng.gamma(1.0, size=(shape[0], 3)) @ rng.gamma(1.0, size=(3, shape[1]))).astype(float)
    X[:, 2] = 1.0
    model = Nmf(n_components=3, loss="kl", max_iter=5000, tol=1e-12).fit(scale * X)
    W, H = model.transform(scale * X), model.components_ / scale
    Y = W @ H
    terms = np.where(X > 0, X * np.log(np.where(X > 0, X, 1) / np.where(X > 0, Y, 1)), 0) - X + Y
    report = json.loads(model.model_.report)
    np.testing.assert_allclose(report["objective"] / scale, terms.sum(), rtol=1e-6)
    # What the conditions of Karush, Kuhn and Tucker say of both factors.
    slack = 1 - X / np.where(Y > 0, Y, 1)
    for factor, gradient, size in ((W, slack @ H.T, H.sum(axis=1)), (H, W.T @ slack, W.sum(axis=0)[:, None])):
        assert (gradient > -1e-3 * size).all()
        assert (np.abs(gradient) < 1e-2 * size)[factor > 1e-3 * factor.max()].all()


def test_nmf_of_data_of_low_rank_or_without_variance_is_exact():
    rng = np.random.default_rng(8)
    deficient = rng.gamma(1.0, size=(40, 2)) @ rng.gamma(1.0, size=(2, 15))
    for X in (np.full((12, 5), 3.0), deficient, deficient * 1e-150, deficient * 1e140):
        for loss in ("frobenius", "kl"):
            model = Nmf(n_components=2, loss=loss, max_iter=5000, tol=1e-12).fit(X)
            back = model.inverse_transform(model.transform(X))
            assert np.abs(back - X).max() < 1e-3 * X.max(), loss


def test_rank_one_nmf_is_the_first_singular_pair():
    # A positive matrix has a positive first pair (Perron and Frobenius): the best of rank 1 is non-negative.
    X = np.random.default_rng(3).random((30, 9)) + 0.1
    model = Nmf(n_components=1, tol=1e-14, max_iter=2000).fit(X)
    left = np.sqrt((scipy.linalg.svdvals(X)[1:] ** 2).sum())
    np.testing.assert_allclose(model.reconstruction_err_, left, rtol=1e-9)


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_nmf_completes_missing_entries(loss):
    rng = np.random.default_rng(4)
    whole = rng.gamma(1.0, size=(80, 3)) @ rng.gamma(1.0, size=(3, 30))
    hidden = rng.random(whole.shape) < 0.3
    X = np.where(hidden, np.nan, whole)
    with pytest.raises(ValueError, match="NaN"):
        Nmf(n_components=3, loss=loss).fit(X)
    model = Nmf(n_components=3, loss=loss, absent="missing", max_iter=2000, tol=1e-9).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert np.linalg.norm((back - whole)[hidden]) < 0.02 * np.linalg.norm(whole[hidden])
    # A weight of 0 is a missing entry.
    weighted = Nmf(n_components=3, loss=loss, max_iter=2000, tol=1e-9).fit(whole, entry_weight=~hidden)
    np.testing.assert_allclose(weighted.components_, model.components_, rtol=1e-5, atol=1e-7)
    # A sparse matrix says the same by what it stores.
    rows, columns = np.nonzero(~hidden)
    sparse = scipy.sparse.csr_matrix((whole[rows, columns], (rows, columns)), shape=whole.shape)
    again = Nmf(n_components=3, loss=loss, absent="missing", max_iter=2000, tol=1e-9).fit(sparse)
    np.testing.assert_allclose(again.components_, model.components_, rtol=1e-9)
    with pytest.raises(ValueError, match="entry weights"):
        Nmf(n_components=3).fit(whole, entry_weight=np.ones((2, 2)))


@pytest.mark.parametrize("scale", [1.0, 1e-80, 1e80])
def test_the_linear_autoencoder_spans_the_principal_components(scale):
    rng = np.random.default_rng(5)
    X = scale * (rng.normal(size=(150, 8)) * [9, 7, 5, 1, 1, 1, 0.5, 0.1] @ scipy.linalg.qr(rng.normal(size=(8, 8)))[0] + 4)
    model = LinearAutoencoder(n_components=3).fit(X)
    assert model.angles_[0] < 1e-3
    _, _, v = scipy.linalg.svd((X - X.mean(axis=0)) / scale, full_matrices=False)
    angles = np.degrees(scipy.linalg.subspace_angles(model.decoder_, v[:3].T))
    assert angles.max() < 1e-3
    np.testing.assert_allclose(model.encoder_ @ model.decoder_, np.eye(3), atol=1e-10)
    centred = X - X.mean(axis=0)
    back = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(back - model.mean_, centred @ v[:3].T @ v[:3], atol=1e-4 * np.abs(centred).max())
    trace = json.loads(model.model_.report)["trace"]
    assert trace[0]["measures"][0]["name"] == "angle 1" and trace[-1]["measures"][0]["value"] == model.angles_[0]


def test_nmf_of_ratings_recommends_with_factors_of_0_or_more():
    rng = np.random.default_rng(6)
    users, items = rng.integers(0, 40, 600), rng.integers(0, 30, 600)
    pairs = np.unique(np.stack([users, items], axis=1), axis=0)
    tastes, kinds = rng.gamma(1.0, size=(40, 2)), rng.gamma(1.0, size=(30, 2))
    values = (tastes[pairs[:, 0]] * kinds[pairs[:, 1]]).sum(axis=1)
    model = NmfRatings(rank=2, regularization=0.01, biases=False, max_iter=300, tol=1e-8).fit(pairs, values)
    predicted = model.predict(pairs)
    assert np.sqrt(np.mean((predicted - values) ** 2)) < 0.25 * values.std()
    # Sums of products of factors of 0 or more.
    assert (predicted >= 0).all()
