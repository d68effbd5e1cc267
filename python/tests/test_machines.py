"""Support vectors, decisions between pairs, kernels in Python, infinite costs."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gradus
from gradus.linear import Svm, Svr

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 3))
Y = X @ [2.0, -1.0, 0.5] + np.sin(3 * X[:, 0])
OF_TWO = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
OF_FOUR = np.digitize(Y, np.quantile(Y, [0.25, 0.5, 0.75]))


def rbf(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return np.exp(-0.3 * ((a[:, None] - b[None]) ** 2).sum(-1))


@pytest.mark.parametrize("classes", [OF_TWO, OF_FOUR], ids=["two classes", "four classes"])
@pytest.mark.parametrize("sparse", [False, True])
def test_support_vectors_are_those_of_scikit_learn(classes, sparse):
    x = scipy.sparse.csr_matrix(np.where(np.abs(X) < 0.3, 0.0, X)) if sparse else X
    theirs = svm.SVC(C=2.0, gamma=0.3, tol=1e-10).fit(x, classes)
    ours = Svm(c=2.0, kernel="rbf", gamma=0.3, tol=1e-10).fit(x, classes)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    dense = lambda matrix: matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
    assert scipy.sparse.issparse(ours.support_vectors_) == sparse
    np.testing.assert_allclose(dense(ours.support_vectors_), dense(theirs.support_vectors_), rtol=1e-14)
    np.testing.assert_allclose(ours.dual_coef_, dense(theirs.dual_coef_), atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)


def test_support_vectors_of_regression():
    theirs = svm.SVR(C=2.0, gamma=0.3, epsilon=0.2, tol=1e-10).fit(X, Y)
    ours = Svr(c=2.0, kernel="rbf", gamma=0.3, epsilon=0.2, tol=1e-10).fit(X, Y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    assert ours.n_support_ == [ours.support_.size]


def test_support_vectors_are_in_the_units_of_the_features():
    units = [1e-6, 1.0, 1e6]
    far = X * units + [1.0, 1e3, 1e9]
    model = Svm(kernel="rbf", standardize=True).fit(far, OF_TWO)
    np.testing.assert_allclose(model.support_vectors_, far[model.support_], rtol=1e-12)


def test_scores_follow_from_support_vectors():
    model = Svm(c=2.0, kernel="rbf", gamma=0.3).fit(X, OF_TWO)
    scores = model.dual_coef_ @ rbf(model.support_vectors_, X) + model.intercept_
    np.testing.assert_allclose(scores[0], model.decision_function(X), atol=1e-12)


def test_classes_whose_order_as_text_is_another():
    # Whole numbers from 2**63 on are text in the model file: "1844…" comes before "2".
    labels = np.array([95, 2**63, 2**64 - 1, 2], dtype=np.uint64)
    for classes in ((OF_TWO == "yes") * 1, OF_FOUR):
        named = labels[classes]
        theirs = svm.SVC(C=2.0, gamma=0.3, tol=1e-10, decision_function_shape="ovo").fit(X, named)
        ours = Svm(c=2.0, kernel="rbf", gamma=0.3, tol=1e-10, decision_function_shape="ovo").fit(X, named)
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=2e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


def test_linear_machines_have_no_support_vectors():
    model = Svm().fit(X, OF_TWO)
    for name in ("support_", "support_vectors_", "dual_coef_", "n_support_"):
        with pytest.raises(AttributeError, match="linear machine"):
            getattr(model, name)
        with pytest.raises(NotFittedError):
            getattr(Svm(kernel="rbf"), name)
    assert not hasattr(Svr().fit(X, Y), "support_")


def test_decisions_between_pairs():
    theirs = svm.SVC(gamma=0.3, tol=1e-10, decision_function_shape="ovo").fit(X, OF_FOUR)
    ours = Svm(kernel="rbf", gamma=0.3, tol=1e-10, decision_function_shape="ovo").fit(X, OF_FOUR)
    assert ours.decision_function(X).shape == (90, 6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert ours.set_params(decision_function_shape="ovr").decision_function(X).shape == (90, 4)
    assert clone(ours).set_params(decision_function_shape="ovo").fit(X, OF_TWO).decision_function(X).shape == (90,)
    with pytest.raises(ValueError, match="decision_function_shape"):
        ours.set_params(decision_function_shape="all").decision_function(X)
    with pytest.raises(ValueError, match="linear machine"):
        Svm(decision_function_shape="ovo").fit(X, OF_FOUR).decision_function(X)


@pytest.mark.parametrize("machine, target", [(Svm(tol=1e-9), OF_FOUR), (Svr(tol=1e-9), Y)])
def test_a_kernel_may_be_a_function(machine, target, tmp_path):
    known = clone(machine).set_params(kernel="rbf", gamma=0.3).fit(X, target)
    ours = clone(machine).set_params(kernel=rbf).fit(X, target)
    np.testing.assert_allclose(ours.predict(X[:20] + 0.1), known.predict(X[:20] + 0.1), rtol=1e-4)
    np.testing.assert_array_equal(ours.support_, known.support_)
    np.testing.assert_array_equal(ours.support_vectors_, known.support_vectors_)
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.predict(X), ours.predict(X))
    frame = pd.DataFrame(X, columns=list("abc"))
    framed = clone(ours).fit(frame, target)
    np.testing.assert_array_equal(framed.predict(frame), ours.predict(X))
    # The file is of a machine that gets kernel values.
    ours.save(tmp_path / "model")
    answer = gradus.load(tmp_path / "model")
    np.testing.assert_array_equal(answer.predict(rbf(X[:5], X)), ours.predict(X[:5]))
    # A fit with another kernel forgets the samples.
    np.testing.assert_array_equal(ours.set_params(kernel="rbf", gamma=0.3).fit(X, target).predict(X), known.predict(X))


def test_a_kernel_of_anything():
    words = ["aaa", "aab", "aba", "zzz", "zzy", "zyz"]
    alike = lambda a, b: np.array([[float(sum(x == y for x, y in zip(one, two))) for two in b] for one in a])
    model = Svm(kernel=alike).fit(words, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.predict(["abb", "yzz"]), [0, 1])
    assert set(model.support_vectors_) <= set(words)


def test_a_kernel_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="90 × 1"):
        Svm(kernel=lambda a, b: np.ones((len(a), 1))).fit(X, OF_TWO)
    with pytest.raises(TypeError, match="kernel"):
        Svm(kernel=3).fit(X, OF_TWO)


def test_an_infinite_cost():
    apart = X[:, 0] > 0
    wide = X + 0.5 * np.where(apart, 1, -1)[:, None] * [1.0, 0.0, 0.0]
    for kernel in ("linear", "rbf"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hard = Svm(c=np.inf, kernel=kernel).fit(wide, apart)
            large = Svm(c=1e10, kernel=kernel).fit(wide, apart)
        np.testing.assert_allclose(hard.decision_function(wide), large.decision_function(wide), rtol=1e-2, atol=1e-3)
        assert hard.score(wide, apart) == 1.0
    assert clone(hard).get_params()["c"] == np.inf
    with pytest.raises(ValueError, match="`c` = -inf"):
        Svm(c=-np.inf).fit(wide, apart)


def test_probabilities_must_be_asked_for_before_the_fit():
    model = Svm(kernel="rbf").fit(X, OF_TWO).set_params(probability=True)
    with pytest.raises(NotFittedError, match="probability=False"):
        model.predict_proba(X)
