"""What estimators take, and what they give back."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from gradus.linear import Lasso, Linear, Logistic, Ridge, Svm, Svr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X @ [1.0, -2.0, 0.5] + 3 + 0.1 * RNG.normal(size=80)


def ridge():
    return Ridge(regularization=0.01)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x.tolist(),
        sp.csr_matrix,
        sp.csc_matrix,
        sp.coo_matrix,
        sp.csr_array,
        lambda x: pd.DataFrame(x, columns=["a", "b", "c"]),
        lambda x: pl.DataFrame(x, schema=["a", "b", "c"]),
        lambda x: pa.table({name: x[:, at] for at, name in enumerate("abc")}),
    ],
)
def test_every_form_gives_the_same_model(form):
    plain = ridge().fit(X, Y)
    other = ridge().fit(form(X), Y)
    np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-10)
    np.testing.assert_allclose(other.predict(form(X)), plain.predict(X), rtol=1e-10)


def test_single_precision_is_taken():
    model = ridge().fit(X.astype(np.float32), Y.astype(np.float32))
    np.testing.assert_allclose(model.coef_, ridge().fit(X, Y).coef_, rtol=1e-5)


def test_a_matrix_by_rows_is_not_copied():
    """The compiled part sees a change made after the features were handed over."""
    from gradus import _gradus

    x = X.copy()
    features = _gradus.Features.dense(x)
    model = ridge().fit(X, Y).model_
    before = model.scores(features).copy()
    x[0] = 0.0
    assert model.scores(features)[0, 0] != before[0, 0]
    csr = sp.csr_matrix(X)
    features = _gradus.Features.sparse(csr.data, csr.indices, csr.indptr, 3)
    csr.data[:] = 0.0
    np.testing.assert_allclose(model.scores(features)[:, 0], ridge().fit(X, Y).intercept_)


def test_columns_of_words_become_features(tmp_path):
    frame = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    model = ridge().fit(frame, Y)
    assert model.get_feature_names_out().tolist() == ["size", "colour=blue", "colour=red"]
    assert list(model.feature_names_in_) == ["size", "colour"]
    for same in (pl.from_pandas(frame), pa.Table.from_pandas(frame), frame[["colour", "size"]]):
        np.testing.assert_allclose(model.predict(same), model.predict(frame))
    strange = frame.assign(colour="green")
    with pytest.warns(UserWarning, match="training did not see"):
        model.predict(strange)
    with pytest.raises(ValueError, match="colour"):
        model.predict(frame[["size"]].assign(shape="round"))


def test_names_of_columns_are_kept_and_checked():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ridge().fit(frame, pd.Series(Y, name="price"))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.model_.feature_names == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])


def test_several_targets():
    both = np.column_stack([Y, -Y])
    for model in (Linear(), ridge(), Lasso(regularization=0.01), Svr()):
        fitted = model.fit(X, both)
        assert fitted.predict(X).shape == (80, 2)
        assert fitted.coef_.shape == (2, 3)
        np.testing.assert_allclose(fitted.predict(X)[:, 0], -fitted.predict(X)[:, 1], atol=1e-3)


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [False, True], [-1.0, 1.0], ["a", "b", "c"]])
def test_classes_of_any_type(labels):
    y = np.asarray(labels)[np.clip(np.digitize(X[:, 0], [-0.5, 0.5]), 0, len(labels) - 1)]
    model = Logistic().fit(X, y)
    assert model.classes_.dtype == np.asarray(labels).dtype
    assert set(model.predict(X)) <= set(labels)
    assert model.predict_proba(X).shape == (80, len(labels))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_weights_of_classes():
    y = (X[:, 0] + RNG.normal(size=80) > 0.8).astype(int)
    heavy = Logistic(class_weight={0: 1.0, 1: 7.0}).fit(X, y)
    same = Logistic().fit(X, y, sample_weight=np.where(y == 1, 7.0, 1.0))
    np.testing.assert_allclose(heavy.coef_, same.coef_, rtol=1e-8)
    balanced = Logistic(class_weight="balanced").fit(X, y)
    assert (balanced.predict(X) == 1).sum() > (Logistic().fit(X, y).predict(X) == 1).sum()
    with pytest.warns(UserWarning, match="not one of the classes"):
        Logistic(class_weight={5: 1.0}).fit(X, y)


def test_probabilities_only_where_there_are_some():
    y = X[:, 0] > 0
    assert not hasattr(Svm(), "predict_proba")
    model = Svm(probability=True).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"regularization": -1}, ValueError, "parameter `regularization` = -1.0: must be a finite number at least 0"),
        ({"regularization": float("nan")}, ValueError, "parameter `regularization` = nan"),
        ({"regularization": "much"}, TypeError, "parameter `regularization` = 'much': must be a finite number"),
        ({"max_iter": 0}, ValueError, "parameter `max_iter` = 0: must be an integer from 1"),
        ({"max_iter": 1.5}, TypeError, "parameter `max_iter` = 1.5"),
        ({"fit_intercept": "yes"}, TypeError, "parameter `fit_intercept` = 'yes': must be true or false"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_rule(params, error, text):
    model = Ridge(**params)
    with pytest.raises(error) as raised:
        model.fit(X, Y)
    assert text in str(raised.value)


def test_a_wrong_value_is_named_by_row_and_column():
    bad = X.copy()
    bad[6, 1] = np.nan
    with pytest.raises(ValueError, match="row 7, column 2: NaN"):
        ridge().fit(bad, Y)
    with pytest.raises(ValueError, match="row 7, column 2: NaN"):
        ridge().fit(X, Y).predict(bad)


def test_a_fit_that_does_not_converge_warns():
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        Lasso(regularization=1e-4, max_iter=1, tol=1e-14).fit(RNG.normal(size=(60, 100)), RNG.normal(size=60))


def test_parameters_of_numpy_are_taken():
    model = Ridge(regularization=np.float32(0.5), max_iter=np.int64(7), fit_intercept=np.bool_(True))
    assert model.fit(X, Y).report_.model == "ridge"


def test_a_result_that_may_not_be_what_was_wanted_warns():
    y = X[:, 0] > 0
    with pytest.warns(UserWarning, match="perfectly separable"):
        Logistic(regularization=0.0).fit(X, y)
    with pytest.warns(UserWarning, match="rank 3"):
        Linear().fit(np.column_stack([X, X[:, 0]]), Y)
