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
