"""Beside scikit-learn's counterparts, on real small data."""

import numpy as np
import pytest
from sklearn import datasets, linear_model, svm
from sklearn.preprocessing import StandardScaler

from gradus.linear import ElasticNet, Lasso, Linear, Logistic, Ridge, Svm, Svr

DIABETES = datasets.load_diabetes(return_X_y=True)
CANCER = datasets.load_breast_cancer(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
scaled = lambda data: (StandardScaler().fit_transform(data[0]), data[1])


def same(ours, theirs, rtol=1e-6):
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=rtol, atol=rtol * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(np.ravel(ours.intercept_), np.ravel(theirs.intercept_), rtol=rtol, atol=rtol)


def test_least_squares():
    x, y = DIABETES
    same(Linear().fit(x, y), linear_model.LinearRegression().fit(x, y))


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_ridge(alpha):
    x, y = DIABETES
    same(Ridge(regularization=alpha / (2 * len(y))).fit(x, y), linear_model.Ridge(alpha=alpha, tol=1e-12).fit(x, y))


@pytest.mark.parametrize("alpha", [0.01, 0.5])
def test_lasso(alpha):
    x, y = DIABETES
    theirs = linear_model.Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(x, y)
    same(Lasso(regularization=alpha, tol=1e-12).fit(x, y), theirs)


def test_elastic_net():
    x, y = scaled(DIABETES)
    theirs = linear_model.ElasticNet(alpha=0.3, l1_ratio=0.4, tol=1e-12, max_iter=100_000).fit(x, y)
    same(ElasticNet(regularization=0.3, l1_ratio=0.4, tol=1e-16).fit(x, y), theirs)


@pytest.mark.parametrize("c", [0.01, 1.0])
@pytest.mark.parametrize("data", [CANCER, WINE], ids=["two classes", "three classes"])
def test_logistic_regression(c, data):
    x, y = scaled(data)
    theirs = linear_model.LogisticRegression(C=c, solver="newton-cg", tol=1e-10, max_iter=10_000).fit(x, y)
    ours = Logistic(regularization=1 / (c * len(y)), tol=1e-10).fit(x, y)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-6)


def test_support_vector_machines():
    x, y = scaled(CANCER)
    theirs = svm.SVC(C=1.0, gamma=0.02, tol=1e-8).fit(x, y)
    ours = Svm(c=1.0, kernel="rbf", gamma=0.02, tol=1e-9).fit(x, y)
    np.testing.assert_allclose(ours.decision_function(x), theirs.decision_function(x), atol=1e-4)
    x, y = scaled(DIABETES)
    theirs = svm.SVR(C=10.0, gamma=0.1, epsilon=0.5, tol=1e-8).fit(x, y)
    ours = Svr(c=10.0, kernel="rbf", gamma=0.1, epsilon=0.5, tol=1e-9).fit(x, y)
    np.testing.assert_allclose(ours.predict(x), theirs.predict(x), rtol=1e-4)


RNG = np.random.default_rng(5)


def shaped(shape):
    """Features of a trying shape, with a target and classes."""
    n, d = (30, 60) if shape == "more features than samples" else (120, 8)
    x = RNG.normal(size=(n, d))
    y = x[:, :4] @ [1.5, -2.0, 0.7, 0.3] + 5 + 0.5 * RNG.normal(size=n)
    if shape == "collinear":
        x[:, 1] = x[:, 0]
    if shape == "a constant column":
        x[:, 5] = 3.0
    if shape == "scales from 1e-8 to 1e8":
        x *= np.logspace(-8, 8, d)
    weights = RNG.integers(1, 5, n).astype(float) if shape == "weights" else None
    return x, y, weights


SHAPES = ["plain", "more features than samples", "collinear", "a constant column", "scales from 1e-8 to 1e8", "weights"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["linear", "ridge", "lasso", "elastic net"])
def test_regression_of_every_shape(kind, shape):
    x, y, w = shaped(shape)
    total = len(y) if w is None else w.sum()
    theirs, ours = {
        "linear": (linear_model.LinearRegression(), Linear()),
        "ridge": (
            linear_model.Ridge(alpha=0.5, solver="svd"),
            Ridge(regularization=0.25 / total),
        ),
        "lasso": (
            linear_model.Lasso(alpha=0.1, tol=1e-14, max_iter=10**6),
            Lasso(regularization=0.1, tol=1e-15),
        ),
        "elastic net": (
            linear_model.ElasticNet(alpha=0.1, l1_ratio=0.5, tol=1e-14, max_iter=10**6),
            ElasticNet(regularization=0.1, l1_ratio=0.5, tol=1e-15),
        ),
    }[kind]
    if kind == "linear" and shape.startswith("scales"):
        # Theirs takes small columns for none at all; without a penalty the scale must not matter.
        scale = np.logspace(-8, 8, x.shape[1])
        expected = theirs.fit(x / scale, y).predict(x / scale)
        np.testing.assert_allclose(ours.fit(x, y).predict(x), expected, rtol=1e-6)
        return
    theirs.fit(x, y, sample_weight=w)
    ours.fit(x, y, sample_weight=w)
    size = np.abs(theirs.predict(x)).max()
    np.testing.assert_allclose(ours.predict(x), theirs.predict(x), atol=1e-6 * size)
    unique = shape != "collinear" or kind in ("ridge", "elastic net")
    # Many solutions: each takes one of its own.
    if unique and not (kind == "linear" and shape in ("more features than samples", "a constant column")):
        contribution = np.abs(x).max(axis=0)
        np.testing.assert_allclose(ours.coef_ * contribution, theirs.coef_ * contribution, atol=1e-6 * size)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("classes", [2, 3])
def test_classification_of_every_shape(classes, shape):
    x, y, w = shaped(shape)
    labels = np.digitize(y, np.quantile(y, [0.5] if classes == 2 else [0.3, 0.6]))
    total = len(y) if w is None else w.sum()
    if shape == "scales from 1e-8 to 1e8":
        x = x / np.logspace(-8, 8, x.shape[1]) * np.logspace(-2, 2, x.shape[1])  # no solver of theirs ends otherwise
    theirs = linear_model.LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=10_000)
    theirs.fit(x, labels, sample_weight=w)
    ours = Logistic(regularization=1 / total, tol=1e-11).fit(x, labels, sample_weight=w)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-6)
    size = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6 * size)


def test_a_class_that_a_fold_lacks():
    """A fold without one of three classes is fitted as the two that are there."""
    x, y, _ = shaped("plain")
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    rows = labels != 1
    theirs = linear_model.LogisticRegression(C=1.0, solver="newton-cg", tol=1e-10).fit(x[rows], labels[rows])
    ours = Logistic(regularization=1 / rows.sum(), tol=1e-10).fit(x[rows], labels[rows])
    assert ours.classes_.tolist() == [0, 2]
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-6)


def test_classes_that_a_plane_tells_apart():
    x, y, _ = shaped("plain")
    labels = x[:, 0] > 0
    theirs = linear_model.LogisticRegression(C=10.0, solver="newton-cg", tol=1e-12, max_iter=1000).fit(x, labels)
    ours = Logistic(regularization=1 / (10 * len(y)), tol=1e-12).fit(x, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)
    with pytest.warns(UserWarning, match="perfectly separable"):
        free = Logistic(regularization=0.0).fit(x, labels)
    assert (free.predict(x) == labels).all()
