"""Ids and columns of ratings: found by the names the file readers know, and never changed."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gradus
from gradus.factor import Als, Ials, Mean, Popular


def fit(X, y=None, kind=Mean):
    return kind().fit(X, y)


def test_columns_are_found_by_name_alone():
    model = fit(pd.DataFrame({"title": ["a", "b"], "user_id": [1, 2], "rating": [1.0, 2.0], "movieId": [7, 8]}))
    assert model.users_.tolist() == [1, 2] and model.items_.tolist() == [7, 8]
    # Names of the file reader that the package did not know.
    model = fit(pd.DataFrame({"stars": [1.0, 5.0], "asin": ["x", "y"], "reviewerID": ["ann", "bob"]}))
    assert model.users_.tolist() == ["ann", "bob"] and model.items_.tolist() == ["x", "y"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_is_not_taken_for_another(make):
    with pytest.raises(ValueError, match="no item column among `title`, `user_id`, `rating`: rename"):
        fit(make({"title": ["a", "b"], "user_id": [1, 2], "rating": [1.0, 2.0]}))
    clicks = make({"user_id": [1, 2], "item_id": [3, 4], "timestamp": [978300760, 978302109]})
    with pytest.raises(ValueError, match="no rating column"):
        fit(clicks)
    model = Popular().fit(clicks) if gradus._base.DESCRIBED["popular"]["implicit"] else Ials(rank=1).fit(clicks)
    assert model.users_.tolist() == [1, 2]
    with pytest.raises(ValueError, match="several columns `user`"):
        fit(pd.DataFrame([[1, 2, 3, 4.0]], columns=["user", "user", "item", "rating"]))


def test_columns_without_names_are_in_order():
    model = fit(pd.DataFrame([[5, 6, 1.0], [7, 8, 2.0]]))
    assert model.users_.tolist() == [5, 7] and model.items_.tolist() == [6, 8]


def test_a_column_of_weights_is_one():
    columns = {"user": [1, 1, 2], "item": [1, 2, 1], "rating": [1.0, 2.0, 4.0]}
    weighted = fit(pd.DataFrame({**columns, "weight": [1.0, 1.0, 8.0]}))
    assert weighted.predict([[1, 1]])[0] == pytest.approx(3.5)
    assert fit(pd.DataFrame(columns)).predict([[1, 1]])[0] == pytest.approx(7 / 3)


def test_large_ids_are_kept_digit_by_digit():
    large = np.array([2**63 + 1, 2**64 - 1, 5], dtype=np.uint64)
    model = fit((large, [1, 2, 3], [1.0, 2.0, 3.0]))
    assert sorted(model.users_.tolist()) == sorted(str(one) for one in large.tolist())
    assert model.predict((large, [1, 2, 3])).shape == (3,)
    assert model._places(large, "user").min() >= 0
    model = fit(([2**70, 1], [1, 2], [1.0, 2.0]))
    assert str(2**70) in model.users_.tolist()
    model = fit((np.array([2**63 - 1, 4], dtype=np.uint64), [1, 2], [1.0, 2.0]))
    assert model.users_.tolist() == [4, 2**63 - 1]


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([1.0, np.nan], "row 2: a missing value"),
        ([1.0, np.inf], "row 2: inf is no id"),
        ([1.0, 1e17], "row 2: 1e\\+17 is too large to be exact"),
        ([1, None], "row 2: a missing value"),
        (["a", None], "row 2: a missing value"),
        (["a", np.nan], "row 2: a missing value"),
        (pd.array([1, None], dtype="Int64"), "row 2: a missing value"),
        (pd.Series(["a", None]), "row 2: a missing value"),
        (["a", ""], "row 2: the id is empty"),
        (["a", "b\0c"], "row 2: .*NUL"),
        ([True, False], "whole numbers or text"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"), "whole numbers or text"),
    ],
)
def test_what_is_no_id_is_refused(ids, text):
    with pytest.raises(ValueError, match=text):
        fit((ids, [1, 2], [1.0, 2.0]))
    with pytest.raises(ValueError, match=f"items: .*{text}"):
        fit(([1, 2], ids, [1.0, 2.0]))


def test_whole_numbers_in_floats_and_objects_are_ids():
    for ids in ([1.0, 2.0], np.array([1, 2.0], dtype=object), pd.array([1, 2], dtype="Int64"), np.array([b"1", b"2"])):
        assert fit((ids, [1, 2], [1.0, 2.0])).users_.tolist() == [1, 2]
    assert fit((["1", "x"], [1, 2], [1.0, 2.0])).users_.tolist() == ["1", "x"]
    assert fit(([1.0, 2.5], [1, 2], [1.0, 2.0])).users_.tolist() == ["1", "2.5"]


def test_a_copy_goes_its_own_way():
    import copy
    import pickle

    pairs = np.array([(u, i) for u in range(8) for i in range(6) if (u + i) % 3])
    model = Als(rank=2, max_iter=3).fit(pairs, 1.0 + pairs.sum(axis=1) % 5)
    before = model.predict(pairs)
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.partial_fit([[99, 0], [99, 50]], [5, 4])
        assert 99 in twin.users_ and 50 in twin.items_
        assert 99 not in model.users_
        assert np.array_equal(model.predict(pairs), before)
        assert model.recommend(n=2)[0].shape == (8, 2)
    twin = copy.copy(model)
    model.partial_fit([[99, 0]], [5])
    assert 99 in model.users_ and 99 not in twin.users_
    assert np.array_equal(twin.predict(pairs), before)


def test_a_model_of_interactions_is_chosen_by_its_ranking():
    from sklearn.model_selection import GridSearchCV, cross_val_score

    rng = np.random.default_rng(0)
    taste = rng.integers(0, 2, 60)
    pairs = np.array([(u, i) for u in range(60) for i in range(40) if i % 2 == taste[u] and rng.random() < 0.5])
    search = GridSearchCV(Ials(rank=2, max_iter=5), {"rank": [1, 4]}, cv=3).fit(pairs)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    by_recall = cross_val_score(Ials(rank=4), pairs, scoring=gradus.ranking_scorer("recall", at=5), cv=3)
    assert (by_recall > 0).all()
    model = Ials(rank=2).fit(pairs[::2])
    measures = model.ranking(pairs[1::2], at=5)
    assert set(measures) == {"precision", "recall", "ndcg", "map", "mrr", "hit_rate"}
    assert model.score(pairs[1::2]) == model.ranking(pairs[1::2], at=10)["ndcg"]
    with pytest.raises(ValueError, match="measure = 'luck': must be one of"):
        gradus.ranking_scorer("luck")


def test_a_fit_can_start_from_the_last_one():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 40, (800, 2))
    values = 1.0 + pairs.sum(axis=1) % 5
    model = Als(rank=4, regularization=1.0, max_iter=30, tol=0.0, warm_start=True).fit(pairs, values)
    end = model.report_.trace[-1]["objective"]
    model.set_params(max_iter=1).fit(pairs, values)
    cold = Als(rank=4, regularization=1.0, max_iter=1, tol=0.0).fit(pairs, values)
    assert model.report_.objective <= end * (1 + 1e-4)
    assert cold.report_.objective > end * 1.01
