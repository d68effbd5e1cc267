"""Fits that start from the last one, folds of one's own, and targets in any order of memory."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from gradus.linear import ElasticNet, Lasso, Linear, Logistic, Ridge, Svm, Svr

RNG = np.random.default_rng(8)
X = RNG.normal(size=(150, 30))
Y = X[:, :5] @ [3.0, -2.0, 1.0, 0.5, 0.2] + RNG.normal(size=150)
CLASSES = np.digitize(Y, [-2.0, 2.0])


@pytest.mark.parametrize(
    "model, target",
    [
        (Lasso(regularization=0.01, tol=1e-10), Y),
        (ElasticNet(regularization=0.01, tol=1e-10), Y),
        (Logistic(), CLASSES),
        (Logistic(), CLASSES > 0),
        (Logistic(solver="saga", regularization=0.1), CLASSES),
        (Logistic(solver="saga", regularization=0.1, l1_ratio=0.5), CLASSES > 0),
        (Logistic(solver="coordinate", l1_ratio=0.5), CLASSES > 0),
        (Logistic(solver="lbfgs"), CLASSES),
        (Svm(), CLASSES),
        (Svr(loss="squared_insensitive"), Y),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else f"{len(set(value))} values",
)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_warm_fit_takes_fewer_iterations_to_the_same_solution(model, target, sparse):
    x = scipy.sparse.csr_matrix(X) if sparse else X
    model.set_params(warm_start=False).fit(x, target)
    cold, coefficients = model.n_iter_, model.coef_.copy()
    model.fit(x, target)
    assert model.n_iter_ == cold
    model.set_params(warm_start=True).fit(x, target)
    assert model.n_iter_ < cold or cold == 1
    np.testing.assert_allclose(model.coef_, coefficients, atol=1e-4 * np.abs(coefficients).max())
    # Data of another shape are fitted from the beginning.
    model.fit(x[:, :7], target)
    assert model.coef_.shape[-1] == 7


def test_one_step_of_a_warm_fit_stays_near_the_solution():
    for solver in ("newton", "lbfgs", "saga"):
        model = Logistic(regularization=0.1, solver=solver, warm_start=True).fit(X, CLASSES)
        found = model.coef_
        with pytest.warns(UserWarning, match="converged"):
            moved = model.set_params(max_iter=1, tol=0.0).fit(X, CLASSES).coef_
        assert np.abs(moved - found).max() < 0.05 * np.abs(found).max()


def test_targets_by_columns():
    # A table of targets in Fortran order was read as if it were by rows.
    by_rows = np.column_stack([Y, Y[::-1]])
    for order in (np.asfortranarray(by_rows), by_rows[::-1][::-1], np.vstack([Y, Y[::-1]]).T):
        for model in (Linear(), Ridge(regularization=0.1), Lasso(regularization=0.1)):
            found = model.fit(X, order).coef_
            np.testing.assert_array_equal(found, model.fit(X, by_rows).coef_)
            one = type(model)(**model.get_params()).fit(X, Y).coef_
            np.testing.assert_allclose(found[0], one, rtol=1e-8, atol=1e-12)


def test_no_penalty_is_least_squares():
    y = X @ np.arange(30.0)
    model = ElasticNet(regularization=0.0, tol=1e-16).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.arange(30.0), atol=1e-12)


@pytest.mark.parametrize("folds", [KFold(4), KFold(3, shuffle=True, random_state=1), list(KFold(5).split(X))])
def test_folds_of_ones_own(folds):
    grid = np.geomspace(1.0, 0.01, 12)
    theirs = LassoCV(alphas=grid, cv=folds, tol=1e-10, max_iter=100_000).fit(X, Y)
    ours = Lasso(lambdas=grid, folds=folds, standardize=False, tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(ours.path_.cv_error, theirs.mse_path_.mean(axis=1), rtol=1e-6)
    assert ours.regularization_ == theirs.alpha_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_folds_that_are_not_folds_are_refused():
    with pytest.raises(ValueError, match="exactly one fold"):
        Lasso(folds=ShuffleSplit(3, random_state=0)).fit(X, Y)
    with pytest.raises(ValueError, match="exactly one fold"):
        Lasso(folds=[(np.arange(50), np.arange(50, 150))]).fit(X, Y)
    with pytest.raises(ValueError, match="`folds`"):
        Lasso(folds=GroupKFold(3)).fit(X, Y)
    with pytest.raises(ValueError, match="`folds`"):
        Lasso(folds="five").fit(X, Y)
    with pytest.raises(TypeError, match="`folds`"):
        Lasso(folds=2.5).fit(X, Y)


def test_penalties_of_ones_own():
    for kind in (Ridge, Lasso, ElasticNet):
        for grid in ([0.5, 0.1, 0.02], (0.5, 0.1, 0.02), np.array([0.02, 0.5, 0.1])):
            model = kind(lambdas=grid).fit(X, Y)
            assert sorted(model.path_.regularizations) == pytest.approx([0.02, 0.1, 0.5])
            assert min(abs(model.regularization_ - 0.02), abs(model.regularization_ - 0.1)) < 1e-12
    for grid in ("0.1", [0.1, "0.2"], [[0.1]], 0.1):
        with pytest.raises(TypeError, match="`lambdas`"):
            Ridge(lambdas=grid).fit(X, Y)
    for grid in ([], [-1.0], [np.inf]):
        with pytest.raises(ValueError, match="`lambdas`"):
            Ridge(lambdas=grid).fit(X, Y)
