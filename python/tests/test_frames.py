"""Data frames: the index is no feature, types are kept, and what is neither number nor word is refused."""

import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import train_test_split

import gradus
from gradus.linear import Linear, Logistic, Ridge

RNG = np.random.default_rng(3)
N = 200
FRAME = pd.DataFrame({"noise": RNG.normal(size=N), "colour": RNG.choice(["red", "blue", "green"], N)})
Y = np.sort(RNG.normal(size=N))


def ridge(**params):
    return Ridge(regularization=0.01, **params)


def names(model):
    return model.get_feature_names_out().tolist()


WORDS = ["noise", "colour=blue", "colour=green", "colour=red"]


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: train_test_split(frame, random_state=0)[0],
        lambda frame: frame[frame["noise"] > -1],
        lambda frame: frame.sample(frac=0.7, random_state=1),
        lambda frame: frame.set_index(pd.Index(range(1000, 1000 + len(frame)), name="id")),
        lambda frame: frame.set_index(pd.MultiIndex.from_arrays([range(len(frame)), ["k"] * len(frame)])),
        lambda frame: frame.set_index(pd.date_range("2020", periods=len(frame))),
    ],
)
def test_the_index_is_no_feature(change):
    """It was one as soon as a column held words: in a table sorted by its target noise then scored .94."""
    part = change(FRAME)
    y = np.sort(RNG.normal(size=len(part)))
    model = ridge().fit(part, y)
    assert names(model) == WORDS
    plain = ridge().fit(part.reset_index(drop=True), y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(FRAME), model.predict(FRAME.set_index(FRAME.index + 5000)))


def test_noise_stays_noise_after_a_split():
    X_train, X_test, y_train, y_test = train_test_split(FRAME, pd.Series(Y, index=FRAME.index), random_state=0)
    assert ridge().fit(X_train, y_train).score(X_test, y_test) < 0.3


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (pd.Series([1, 2, 3, 1], dtype="category"), ["1", "2", "3"]),
        (pd.Series(["1", "2", "10", "1"], dtype="category"), ["1", "10", "2"]),
        (pd.Series(["01234", "1234", "01234", "5"]), ["01234", "1234", "5"]),
        (pd.Series(["NA", "", "?", "null"]), ["", "?", "NA", "null"]),
        (pd.Series([" q", "q", "q ", "q"]), [" q", "q", "q "]),
        (pd.Series([True, False, True, True], dtype="category"), ["False", "True"]),
        (pd.Series(["a", "b", "b", "a"], dtype="string"), ["a", "b"]),
        (pd.Series(["a", "b", "b", "a"], dtype=object), ["a", "b"]),
        (pd.Series(["a", "b", "b", "a"], dtype=pd.ArrowDtype(pa.string())), ["a", "b"]),
        (pd.Series(["a", "b", "b", "a"], dtype=pd.CategoricalDtype(["b", "unused", "a"], ordered=True)), ["a", "b"]),
        (pl.Series(["1", "2", "10", "1"], dtype=pl.Categorical), ["1", "10", "2"]),
        (pl.Series(["1", "2", "10", "1"], dtype=pl.Enum(["10", "2", "1", "3"])), ["1", "10", "2"]),
        (pl.Series(["NA", "", "01", "01"]), ["", "01", "NA"]),
        (pa.array(["NA", "", "01", "01"]), ["", "01", "NA"]),
        (pa.array(["b", "a", "b", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([3, 1, 3, 3]).dictionary_encode(), ["1", "3"]),
        (pa.array(["b", "a", "b", "b"], type=pa.large_string()), ["a", "b"]),
    ],
)
def test_words_stay_words(column, levels):
    numbers = [1.0, 2.0, 3.0, 4.0]
    if isinstance(column, pd.Series):
        frame = pd.DataFrame({"x": numbers, "w": column})
    elif isinstance(column, pl.Series):
        frame = pl.DataFrame({"x": numbers, "w": column})
    else:
        frame = pa.table({"x": numbers, "w": column})
    model = ridge().fit(frame, [1.0, 2.0, 4.0, 3.0])
    assert names(model) == ["x", *(f"w={level}" for level in levels)]
    assert model.predict(frame).shape == (4,)
    assert model.coef_.shape == (len(levels) + 1,)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series([1.5, 2, 3], dtype="Float64"),
        pd.Series([True, False, True]),
        pd.Series([True, False, True], dtype="boolean"),
        pd.Series([1, 2.5, 3], dtype=object),
        pd.Series([decimal.Decimal("1.5"), decimal.Decimal(2), decimal.Decimal(3)], dtype=object),
        pd.Series([True, False, True], dtype=object),
        pd.Series([1, 2, 3], dtype=pd.ArrowDtype(pa.int64())),
        pd.Series([1.0, 0.0, 0.0], dtype=pd.SparseDtype(float)),
        pl.Series([True, False, True]),
        pl.Series([1, 2, 3], dtype=pl.Int8),
        pa.array([True, False, True]),
        pa.array([1, 2, 3]),
    ],
)
def test_numbers_stay_numbers(column):
    words = ["a", "b", "a"]
    if isinstance(column, pd.Series):
        frame = pd.DataFrame({"x": column, "w": words})
        expected = column.astype(float).to_numpy()
    elif isinstance(column, pl.Series):
        frame, expected = pl.DataFrame({"x": column, "w": words}), column.cast(pl.Float64).to_numpy()
    else:
        frame, expected = pa.table({"x": column, "w": words}), np.asarray(column.to_pylist(), dtype=float)
    model = Linear().fit(frame, expected)
    assert names(model) == ["x", "w=a", "w=b"]
    np.testing.assert_allclose(model.predict(frame), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pd.Series(pd.date_range("2020", periods=3)), "column `t` holds times .*make numbers of it"),
        (pd.Series(pd.date_range("2020", periods=3, tz="UTC")), "column `t` holds times .*UTC"),
        (pd.Series(pd.to_timedelta([1, 2, 3], unit="D")), "column `t` holds times"),
        (pd.Series(pd.period_range("2020", periods=3, freq="M")), "column `t` holds period"),
        (pd.Series([[1], [2], [3]]), "column `t` holds objects .list."),
        (pd.Series(["a", 1, "b"], dtype=object), "column `t` holds text mixed"),
        (pd.Series([1j, 2, 3]), "column `t` holds complex"),
        (pl.Series([[1], [2], [3]]), "column `t` holds List"),
        (pl.Series(pd.date_range("2020", periods=3, tz="UTC")), "column `t` holds times"),
        (pa.array([[1], [2], [3]]), "column `t` holds list"),
        (pa.array(pd.date_range("2020", periods=3, tz="UTC")), "column `t` holds times"),
        (pa.array([b"a", b"b", b"c"]), "column `t` holds binary"),
    ],
)
def test_what_is_neither_is_refused_by_name(column, text):
    frame = pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame if isinstance(column, pl.Series) else pa.table
    with pytest.raises(ValueError, match=text) as raised:
        ridge().fit(frame({"x": [1.0, 2.0, 3.0], "t": column}), [1.0, 2.0, 3.0])
    assert "--" not in str(raised.value) and "feature" not in str(raised.value)


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1.0, "a", "b"], [2.0, "b", "a"]], columns=["x", "w", "w"])
    with pytest.raises(ValueError, match="two columns `w`"):
        ridge().fit(frame, [1.0, 2.0])


def test_frames_of_pandas_need_no_pyarrow():
    program = """
import sys
sys.modules["pyarrow"] = None
import pandas as pd
from gradus.linear import Ridge
frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "w": ["a", "b", "a"], "c": pd.Categorical([1, 2, 1])})
assert Ridge(regularization=0.1).fit(frame, [1.0, 2.0, 3.0]).predict(frame).shape == (3,)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


MISSING = pd.DataFrame({"x": [1.0, np.nan, 3.0, 4.0], "w": ["a", "b", None, "b"]})


def test_a_missing_value_is_refused_or_stands_for_something():
    y = [1.0, 2.0, 3.0, 4.0]
    for frame in (MISSING, MISSING[["x"]], MISSING[["w"]]):
        with pytest.raises(ValueError, match="missing|NaN") as raised:
            ridge().fit(frame, y)
        assert "--" not in str(raised.value)
    with pytest.raises(ValueError, match="parameter `missing` = .*must be one of refuse, mean"):
        ridge(missing="ignore").fit(MISSING, y)
    filled = MISSING.assign(x=[1.0, 8 / 3, 3.0, 4.0], w=["a", "b", "b", "b"])
    model = ridge(missing="mean").fit(MISSING, y)
    np.testing.assert_allclose(model.coef_, ridge().fit(filled, y).coef_)
    np.testing.assert_allclose(model.predict(MISSING), model.predict(filled))
    own = ridge(missing="category").fit(MISSING, y)
    assert names(own) == ["x", "x is missing", "w=a", "w=b", "w is missing"]


@pytest.mark.parametrize("missing", ["mean", "median", "category"])
def test_missing_values_in_arrays(missing, tmp_path):
    x = RNG.normal(size=(60, 3))
    y = x @ [1.0, -1.0, 0.5]
    x[RNG.random(x.shape) < 0.1] = np.nan
    model = ridge(missing=missing).fit(x, y)
    assert model.n_features_in_ == 3 and not hasattr(model, "feature_names_in_")
    assert len(names(model)) == len(model.coef_)
    predicted = model.predict(x)
    assert np.isfinite(predicted).all()
    if missing == "mean":
        from sklearn.impute import SimpleImputer

        np.testing.assert_allclose(predicted, ridge().fit(f := SimpleImputer().fit_transform(x), y).predict(f))
    model.save(tmp_path / "m")
    loaded = gradus.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(x), predicted)
    assert loaded.n_features_in_ == 3


def test_names_match_the_coefficients():
    model = Logistic().fit(FRAME, np.where(FRAME["noise"] > 0, "up", "down"))
    assert len(names(model)) == model.coef_.shape[1]
    assert Ridge().fit(FRAME[["noise"]], Y).get_feature_names_out().tolist() == ["noise"]
    assert Ridge().fit(FRAME[["noise"]].to_numpy(), Y).get_feature_names_out().tolist() == ["x0"]


def test_a_model_of_words_wants_a_frame():
    model = ridge().fit(FRAME, Y)
    with pytest.raises(ValueError, match="data frame with the columns `noise`, `colour`"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="colour"):
        model.predict(FRAME[["noise"]])
    np.testing.assert_array_equal(model.predict(FRAME[["colour", "noise"]]), model.predict(FRAME))
