"""Predictions do not depend on how the features lie in memory."""

import numpy as np
import pandas as pd
import pytest
from gradus.linear import Linear, Logistic, Ridge, Svm, Svr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5000, 12))
Y = X @ RNG.normal(size=12) + 3.0


def layouts():
    wide = RNG.normal(size=(5000, 24))
    wide[:, ::2] = X
    tall = np.asfortranarray(RNG.normal(size=(6000, 12)))
    tall[500:5500] = X
    return {
        "columns": np.asfortranarray(X),
        "every other column": wide[:, ::2],
        "rows of a larger matrix of columns": tall[500:5500],
        "backwards": X[::-1][::-1],
        "negative steps": np.asfortranarray(X[:, ::-1])[:, ::-1],
    }


@pytest.mark.parametrize("name", layouts())
def test_the_order_of_an_array_does_not_matter(name):
    array = layouts()[name]
    np.testing.assert_array_equal(array, X)
    ridge = Ridge(regularization=0.1).fit(X, Y)
    np.testing.assert_allclose(ridge.predict(array), ridge.predict(X), rtol=1e-12, atol=1e-13)
    classes = Logistic(regularization=0.01).fit(X, np.digitize(Y, [2.0, 4.0]))
    np.testing.assert_allclose(classes.decision_function(array), classes.decision_function(X), rtol=1e-10, atol=1e-12)
    array = array.copy(order="K")
    array[4321, 7] = np.nan
    with pytest.raises(ValueError, match="NaN|not finite|nan"):
        ridge.predict(array)


def test_a_frame_is_its_array_and_its_columns_are_checked():
    names = [f"c{at}" for at in range(12)]
    frame = pd.DataFrame(X, columns=names)
    ridge = Ridge(regularization=0.1).fit(frame, Y)
    np.testing.assert_allclose(ridge.predict(frame), ridge.predict(frame.copy()), rtol=1e-12)
    plain = Ridge(regularization=0.1).fit(X, Y)
    np.testing.assert_allclose(ridge.predict(frame), plain.predict(X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ridge.predict(frame.astype(np.float32)), plain.predict(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ridge.predict(frame.assign(c3=1)), plain.predict(np.c_[X[:, :3], np.ones(5000), X[:, 4:]]), atol=1e-13)
    with pytest.raises(ValueError, match="feature names"):
        ridge.predict(frame[names[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        ridge.predict(frame.rename(columns={"c3": "other"}))


@pytest.mark.parametrize("kind", [Linear, Svr, Logistic, Svm])
def test_a_fit_does_not_depend_on_what_holds_the_numbers(kind):
    x, y = X[:300], Y[:300]
    y = (y > 3.0).astype(int) if kind in (Logistic, Svm) else y
    # A list takes the way of all input, an array and a frame of one type the short one.
    expected = kind().fit(x.tolist(), y.tolist()).coef_
    frame = pd.DataFrame(x, columns=[f"c{at}" for at in range(12)])
    mixed = frame.assign(c0=frame.c0.round(2), c1=np.arange(300))
    for given in (x, np.asfortranarray(x), frame, frame.to_numpy()):
        for target in (y, pd.Series(y, name="t")):
            np.testing.assert_array_equal(kind().fit(given, target).coef_, expected)
    model = kind().fit(frame, y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert not hasattr(model.fit(x, y), "feature_names_in_")
    assert model.fit(mixed, y).n_features_in_ == 12
    assert not hasattr(kind().fit(frame.rename(columns=lambda name: int(name[1:])), y), "feature_names_in_")


def test_short_ways_refuse_what_all_ways_refuse():
    y = Y[:300].copy()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Ridge().fit(X[:200], y)
    with pytest.raises(ValueError, match="0 sample"):
        Ridge().fit(X[:0], y[:0])
    y[7] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        Ridge().fit(X[:300], y)
    x = X[:300].copy()
    x[3, 4] = np.nan
    with pytest.raises(ValueError, match="row 4, column 5"):
        Ridge().fit(x, Y[:300])
