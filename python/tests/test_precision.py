"""Types and shapes of results as scikit-learn has them, and messages that point at the caller."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score

import gradus
from gradus.linear import ElasticNet, Lasso, Linear, Logistic, Ridge, Svm, Svr

RNG = np.random.default_rng(4)
X = RNG.normal(size=(90, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 3 + 0.1 * RNG.normal(size=90)
C = np.digitize(Y, [2.0, 4.0])

KEEP = [Linear(), Ridge(regularization=0.1), Lasso(regularization=0.01), ElasticNet(regularization=0.01), Logistic()]


@pytest.mark.parametrize("model", KEEP, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_matrix, pd.DataFrame], ids=lambda f: f.__name__)
def test_single_precision_is_kept(model, form):
    y = C if model._kind == "logistic" else Y
    single, double = form(X.astype(np.float32)), form(X)
    fitted = copy.copy(model).fit(single, y.astype(np.float32))
    assert fitted.coef_.dtype == np.float32 and fitted.intercept_.dtype == np.float32
    scores = fitted.decision_function if model._kind == "logistic" else fitted.predict
    assert scores(single).dtype == np.float32
    assert scores(double).dtype == np.float64
    plain = copy.copy(model).fit(double, y)
    assert plain.coef_.dtype == np.float64
    np.testing.assert_allclose(fitted.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    if model._kind == "logistic":
        assert fitted.predict_proba(single).dtype == np.float32
    assert pickle.loads(pickle.dumps(fitted)).coef_.dtype == np.float32


@pytest.mark.parametrize("model", [Svm(), Svr()])
def test_support_vector_machines_give_double_precision(model):
    y = C if model._kind == "svm" else Y
    fitted = model.fit(X.astype(np.float32), y)
    assert fitted.coef_.dtype == np.float64


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Linear(), linear_model.LinearRegression()),
        (Ridge(regularization=0.1), linear_model.Ridge()),
        (Lasso(regularization=0.01), linear_model.Lasso(alpha=0.01)),
        (ElasticNet(regularization=0.01), linear_model.ElasticNet(alpha=0.01)),
    ],
    ids=["linear", "ridge", "lasso", "elasticnet"],
)
@pytest.mark.parametrize("targets", [None, 1, 2])
def test_shapes_of_targets(ours, theirs, targets):
    y = Y if targets is None else np.column_stack([Y] * targets)
    ours, theirs = ours.fit(X, y), theirs.fit(X, y)
    for name in ("coef_", "intercept_"):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name)), name
    assert ours.predict(X).shape == theirs.predict(X).shape


def views(x):
    padded = np.zeros((len(x), 9))
    padded[:, 1:9:2] = x
    records = np.zeros(len(x), dtype=[("skip", "i1"), ("x", "f8", 4)])
    records["x"] = x
    return {
        "rows": x,
        "columns": np.asfortranarray(x),
        "steps": padded[:, 1:9:2],
        "backwards": x[::-1, ::-1][::-1, ::-1],
        "backwards in memory": np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        "unaligned": records["x"],
        "other byte order": x.astype(">f8"),
        "read only": np.frombuffer(x.tobytes()).reshape(x.shape),
    }


@pytest.mark.parametrize("form", views(X))
@pytest.mark.parametrize("rows", [90, 40_000])
def test_every_layout_gives_the_same_model(form, rows):
    x = RNG.normal(size=(rows, 4))
    y = x @ [1.0, -2.0, 0.5, 0.0]
    plain, other = Ridge(regularization=0.1).fit(x, y), Ridge(regularization=0.1).fit(views(x)[form], y)
    np.testing.assert_array_equal(plain.coef_, other.coef_)
    # Large matrices that lie by columns are summed by columns: the same but for rounding.
    close = {"rtol": 1e-12, "atol": 1e-14} if form == "columns" else {"rtol": 0}
    np.testing.assert_allclose(plain.predict(x), plain.predict(views(x)[form]), **close)
    classes = Logistic().fit(x, y > 0)
    np.testing.assert_array_equal(classes.predict_proba(x), classes.predict_proba(views(x)[form]))
    bad = views(x)[form].copy(order="K")
    bad[rows - 2, 1] = np.nan
    with pytest.raises(ValueError, match=f"row {rows - 1}, column 2: NaN"):
        plain.predict(bad)


def shuffled(x):
    """The matrix with the columns of each row in any order, and entries that are there twice."""
    x = sp.csr_matrix(x)
    indices, data, indptr = [], [], [0]
    for row in range(x.shape[0]):
        part = slice(x.indptr[row], x.indptr[row + 1])
        columns = np.concatenate([x.indices[part], x.indices[part][:1]])
        values = np.concatenate([x.data[part], [0.0]])
        values[0], values[-1] = values[0] / 2, values[0] / 2
        order = RNG.permutation(len(columns))
        indices.append(columns[order])
        data.append(values[order])
        indptr.append(indptr[-1] + len(columns))
    return sp.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=x.shape)


@pytest.mark.parametrize(
    "model",
    [Ridge(regularization=0.1), Lasso(regularization=0.01), Logistic(), Svm(), Svm(kernel="rbf"), Svr(kernel="rbf")],
    ids=str,
)
def test_the_order_of_sparse_entries_does_not_matter(model):
    x = sp.random(300, 12, density=0.4, random_state=0, format="csr") + sp.csr_matrix(np.eye(300, 12))
    y = np.asarray(x.sum(axis=1)).ravel() + 0.1 * RNG.normal(size=300)
    y = y if is_regressor(model) else y > np.median(y)
    mixed = shuffled(x)
    before = mixed.indices.copy()
    fitted = model.fit(x, y)
    expected = fitted.predict(x)
    np.testing.assert_allclose(fitted.predict(mixed), expected, rtol=1e-9)
    np.testing.assert_allclose(model.fit(mixed, y).predict(x), expected, rtol=1e-9)
    assert np.array_equal(mixed.indices, before)


def test_text_as_the_vectorizer_gives_it():
    words = ["red green", "green blue", "blue red red", "green", "red", "blue blue"] * 5
    x = TfidfVectorizer().fit_transform(words)
    model = Logistic().fit(x, ["red" in text for text in words])
    np.testing.assert_allclose(model.decision_function(x), model.decision_function(x.toarray()), rtol=1e-12)


def test_warnings_point_at_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Lasso(regularization=1e-4, max_iter=1, tol=1e-14).fit(RNG.normal(size=(60, 100)), RNG.normal(size=60))
        Logistic(regularization=0.0).fit(X, X[:, 0] > 0)
        Logistic(class_weight={5: 1.0}).fit(X, C)
    assert {warning.category for warning in caught} == {ConvergenceWarning, UserWarning}
    assert {warning.filename for warning in caught} == {__file__}


def test_weights_of_classes_that_are_not_there():
    """A fold may lack a class that has a weight."""
    y = np.where(np.arange(90) == 7, 9, C)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        scores = cross_val_score(Logistic(class_weight={0: 1.0, 1: 2.0, 2: 1.0, 9: 3.0}), X, y, cv=3)
    assert np.isfinite(scores).all()
    with pytest.warns(UserWarning, match="5 is not one of the classes, .0, 1, 2., and its weight has no effect"):
        odd = Logistic(class_weight={5: 7.0}).fit(X, C)
    np.testing.assert_array_equal(odd.coef_, Logistic().fit(X, C).coef_)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [Logistic(), Svm(probability=True), Svm(kernel="rbf")], ids=str)
def test_labels_too_large_for_signed_numbers(model, classes, tmp_path):
    """As text they are in another order than as numbers: 9223372036854775809 before 10."""
    labels = np.array([10, 2**63 + 1, 2**64 - 1][:classes], dtype=np.uint64)
    places = np.clip(C, 0, classes - 1)
    plain, large = copy.deepcopy(model).fit(X, places), copy.deepcopy(model).fit(X, labels[places])
    assert large.classes_.tolist() == labels.tolist()
    assert (large.predict(X) == labels[plain.predict(X)]).mean() > 0.98
    same = pickle.loads(pickle.dumps(large))
    assert np.array_equal(same.predict(X), large.predict(X))
    assert same.decision_function(X).shape == plain.decision_function(X).shape
    if hasattr(large, "predict_proba"):
        assert (large.classes_[large.predict_proba(X).argmax(axis=1)] == large.predict(X)).mean() > 0.9
    if hasattr(large, "coef_"):
        np.testing.assert_allclose(
            np.squeeze(X @ large.coef_.T + large.intercept_), np.squeeze(large.decision_function(X)), rtol=1e-9
        )
    large.save(tmp_path / "m")
    loaded = gradus.load(tmp_path / "m")
    assert loaded.predict(X).tolist() == [str(label) for label in large.predict(X).tolist()]


@pytest.mark.parametrize("size", [1e160, 1.7e308])
@pytest.mark.parametrize("model", [Svm(), Svm(kernel="rbf"), Svr(), Lasso(regularization=0.1), Logistic(), Linear()], ids=str)
def test_what_overflows_is_said_in_words(model, size):
    y = Y > np.median(Y) if is_classifier(model) else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X / np.abs(X).max() * size, y)
        except ValueError as error:
            assert str(error)
