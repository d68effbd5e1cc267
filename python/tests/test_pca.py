"""Principal component analysis beside scikit-learn's, by batches, sparse, and as a distribution."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA, TruncatedSVD

import gradus
from gradus.latent import Pca

SOLVERS = ["auto", "covariance", "svd", "randomized"]


def same_components(ours, theirs, atol):
    signs = np.sign((ours * theirs).sum(axis=1))
    np.testing.assert_allclose(ours, signs[:, None] * theirs, atol=atol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", ["digits", "iris", "wide"])
def test_components_and_variances_are_those_of_sklearn(solver, data):
    X = {"digits": load_digits().data, "iris": load_iris().data, "wide": load_digits().data[:40]}[data]
    ours = Pca(n_components=3, solver=solver, tol=1e-9).fit(X)
    theirs = PCA(3, svd_solver="full").fit(X)
    same_components(ours.components_, theirs.components_, 1e-7)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-10)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=1e-12)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-6)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), theirs.inverse_transform(theirs.transform(X)), atol=1e-6)
    if X.shape[0] > X.shape[1]:
        # With fewer samples than features scikit-learn divides the noise among fewer directions than there are.
        assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-9)
        assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-9)
        np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-8)
    assert (ours.components_[np.arange(3), np.abs(ours.components_).argmax(axis=1)] > 0).all()


def test_the_share_of_the_variance_and_whitening_are_those_of_sklearn():
    X = load_digits().data
    for share in (0.5, 0.9, 0.99):
        assert Pca(n_components=share).fit(X).n_components_ == PCA(share).fit(X).n_components_
    z = Pca(n_components=10, whiten=True).fit_transform(X)
    np.testing.assert_allclose(np.cov(z.T), np.eye(10), atol=1e-9)


def test_left_out_the_number_of_components_is_chosen_and_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 15)) * 3 + rng.normal(size=(400, 15))
    model = Pca().fit(X)
    assert model.n_components_ == 3
    assert model.report_.chosen[0]["parameter"] == "n_components"


def test_sparse_features_are_those_of_a_dense_array_and_of_truncated_svd():
    X = scipy.sparse.random(300, 500, density=0.05, random_state=0, format="csr")
    dense = PCA(4, svd_solver="full").fit(X.toarray())
    model = Pca(n_components=4, tol=1e-9, random_state=0).fit(X)
    np.testing.assert_allclose(model.explained_variance_, dense.explained_variance_, rtol=1e-8)
    same_components(model.components_, dense.components_, 1e-5)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(dense.transform(X.toarray())), atol=1e-5)
    svd = TruncatedSVD(4, algorithm="arpack", random_state=0).fit(X)
    plain = Pca(n_components=4, center=False, tol=1e-9, random_state=0).fit(X)
    np.testing.assert_allclose(plain.singular_values_, svd.singular_values_, rtol=1e-8)
    assert not plain.mean_.any()


def test_batches_are_the_fit_to_all_of_them():
    X = load_digits().data
    model = Pca(n_components=5)
    for part in np.array_split(X, 7):
        model.partial_fit(part)
    whole = Pca(n_components=5).fit(X)
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, whole.explained_variance_, rtol=1e-10)
    assert model.n_samples_seen_ == len(X)
    # A copy goes on by itself.
    copy = pickle.loads(pickle.dumps(model))
    copy.partial_fit(X[:10])
    assert (copy.n_samples_seen_, model.n_samples_seen_) == (len(X) + 10, len(X))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5])
    with pytest.raises(ValueError, match="n_components"):
        Pca(n_components=5).partial_fit(X[:3])
    assert "n_components_" not in vars(clone(model))


def test_samples_are_drawn_from_the_distribution_of_the_model():
    X = load_iris().data
    model = Pca(n_components=2).fit(X)
    drawn = model.sample(20000, random_state=1)
    np.testing.assert_allclose(np.cov(drawn.T), model.get_covariance(), atol=0.15)
    np.testing.assert_array_equal(model.sample(5, random_state=1), drawn[:5])


def test_files_and_single_precision(tmp_path):
    X = load_iris().data.astype(np.float32)
    model = Pca(n_components=2).fit(X)
    assert model.components_.dtype == model.transform(X).dtype == np.float32
    model.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert isinstance(loaded, Pca)
    np.testing.assert_allclose(loaded.components_, model.components_, rtol=1e-6)
    np.testing.assert_array_equal(loaded.get_feature_names_out(), ["pc1", "pc2"])


def test_what_is_wrong_is_named():
    X = load_iris().data
    for value, rule in ((5, "at most 4"), (1.5, "whole number"), (0, "greater than 0"), (-1, "greater than 0")):
        with pytest.raises(ValueError, match=rule):
            Pca(n_components=value).fit(X)
    with pytest.raises(ValueError, match="solver"):
        Pca(n_components=2, solver="svd").fit(scipy.sparse.csr_matrix(X))
    with pytest.raises(ValueError, match="NaN"):
        Pca(n_components=2).fit(np.where(X > 6, np.nan, X))
