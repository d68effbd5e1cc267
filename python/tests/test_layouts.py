"""Predictions do not depend on how the features lie in memory."""

import numpy as np
import pandas as pd
import pytest
from gradus.linear import Logistic, Ridge

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
