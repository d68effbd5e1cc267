"""Recommenders: ratings in every form, lists, new ratings."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score

import gradus
from gradus.factor import Als, Bayes, Ease, Ials, Mean, Popular, Slim, Spectral

RNG = np.random.default_rng(1)
U, R = RNG.normal(size=(40, 2)), RNG.normal(size=(25, 2))
GRID = np.array([(u, i) for u in range(40) for i in range(25)])
SEEN = GRID[RNG.random(len(GRID)) < 0.5]
VALUES = np.clip(np.round(3 + (U[SEEN[:, 0]] * R[SEEN[:, 1]]).sum(axis=1)), 1, 5)


def als():
    return Als(rank=4, max_iter=5)


@pytest.mark.parametrize(
    "form",
    [
        lambda u, i, v: (u, i, v),
        lambda u, i, v: np.column_stack([u, i, v]),
        lambda u, i, v: pd.DataFrame({"user": u, "item": i, "rating": v}),
        lambda u, i, v: pd.DataFrame({"rating": v, "item_id": i, "user_id": u}),
        lambda u, i, v: pl.DataFrame({"user": u, "item": i, "rating": v}),
        lambda u, i, v: pa.table({"user": u, "item": i, "rating": v}),
        lambda u, i, v: sp.csr_matrix((v, (u, i))),
    ],
)
def test_every_form_gives_the_same_model(form):
    users, items = SEEN[:, 0], SEEN[:, 1]
    plain = als().fit(SEEN, VALUES)
    other = als().fit(form(users, items, VALUES))
    assert np.array_equal(other.predict(SEEN), plain.predict(SEEN))


def test_ids_of_any_type():
    names = np.array([f"user {u}" for u in SEEN[:, 0]])
    model = als().fit((names, SEEN[:, 1], VALUES))
    assert model.users_[0] == "user 0"
    items, scores = model.recommend("user 7", n=5)
    assert items.shape == (5,) and np.all(np.diff(scores) <= 0)
    assert not set(items) & set(SEEN[SEEN[:, 0] == 7, 1])
    with pytest.raises(ValueError, match="unknown user 'nobody'.*recommend_for"):
        model.recommend("nobody")


def test_lists_hold_what_they_may():
    model = als().fit(SEEN, VALUES)
    items, scores = model.recommend(n=4)
    assert items.shape == scores.shape == (40, 4)
    one, _ = model.recommend(3, n=4)
    assert np.array_equal(items[3], one)
    allowed, _ = model.recommend(3, n=10, allow=[1, 2, 3], include_seen=True)
    assert set(allowed) == {1, 2, 3}
    denied, _ = model.recommend(3, n=25, deny=[1, 2, 3], include_seen=True)
    assert not set(denied) & {1, 2, 3}
    few, _ = model.recommend(3, n=4, categories=dict.fromkeys(range(25), "all"), max_per_category=2)
    assert (few >= 0).sum() == 2
    alike, _ = model.similar_items([0, 1], n=3)
    assert alike.shape == (2, 3) and 0 not in alike[0]
    assert model.similar_users(0, n=3)[0].shape == (3,)
    new, _ = model.recommend_for([0, 1, 2], [5, 1, 3], n=5)
    assert not set(new) & {0, 1, 2}
    why = model.explain(3, int(one[0]))
    total = why["base"] + sum(part for _, _, part in why["contributions"])
    assert total == pytest.approx(why["score"], abs=1e-4)


def test_frames_are_given_where_asked_for():
    model = als().fit(SEEN, VALUES)
    frame = model.set_output(transform="pandas").recommend([0, 1], n=3)
    assert list(frame.columns) == ["user", "item", "score"] and len(frame) == 6
    assert list(model.similar_items([0, 1], n=3).columns) == ["item", "similar_item", "score"]
    assert list(model.similar_users(0, n=3).columns) == ["user", "similar_user", "score"]
    assert list(model.recommend_for([0], n=3).columns) == ["item", "score"]
    assert isinstance(model.set_output(transform="polars").recommend([0, 1], n=3), pl.DataFrame)
    assert isinstance(model.set_output(transform="pyarrow").recommend(0, n=3), pa.Table)
    with pytest.raises(ValueError, match="must be one of"):
        model.set_output(transform="excel")


def test_new_ratings_without_a_new_fit():
    model = als().fit(SEEN, VALUES)
    before = model.predict([[0, 0]])
    model.partial_fit([[99, 0], [99, 1], [0, 24]], [5, 1, 5])
    assert 99 in model.users_
    assert model.recommend(99, n=3)[0].shape == (3,)
    assert before.shape == (1,)
    assert not hasattr(Popular(), "partial_fit")
    assert als().partial_fit(SEEN, VALUES).users_.shape == (40,)


@pytest.mark.parametrize(
    "model",
    [
        Ease(regularization=5),
        Slim(regularization=1, sparsity=0.1),
        Spectral(rank=3, low_pass=0.3, sharpening=1),
    ],
)
def test_rankers_from_items_take_in_new_interactions(model):
    model.fit(SEEN)
    before = model.predict(GRID[GRID[:, 0] > 1])
    model.partial_fit([[99, 0], [99, 1], [0, 77], [1, 77]])
    assert 99 in model.users_ and 77 in model.items_
    items, scores = model.recommend(99, n=3)
    assert items.shape == (3,) and scores[0] > scores[-1]
    assert model.predict([[2, 77]])[0] != 0
    # Who has nothing new is scored as before.
    np.testing.assert_array_equal(model.predict(GRID[GRID[:, 0] > 1]), before)


def test_held_out_ratings_stop_a_fit():
    train, held_out = SEEN[:-60], SEEN[-60:]
    model = als().fit(train, VALUES[:-60], validation=(held_out[:, 0], held_out[:, 1], VALUES[-60:]))
    assert model.report_.validation > 0
    assert model.report_.metric == "rmse"
    assert model.report_.baselines


def test_model_selection_over_ratings():
    scores = cross_val_score(als(), SEEN, VALUES, cv=3)
    assert scores.mean() > cross_val_score(Mean(), SEEN, VALUES, cv=3).mean()
    found = GridSearchCV(als(), {"rank": [1, 2]}, cv=3).fit(SEEN, VALUES)
    assert found.best_params_["rank"] in (1, 2)


def test_intervals_where_the_model_knows_them():
    model = Bayes(rank=2, max_iter=30, burn_in=5).fit(SEEN, VALUES)
    low, high = model.predict_interval(SEEN[:5], level=0.8).T
    assert np.all(low < high)
    with pytest.raises(NotImplementedError, match="does not know how sure"):
        als().fit(SEEN, VALUES).predict_interval(SEEN[:5])


def test_signs_of_interest_need_no_values():
    model = Ials(rank=4, max_iter=3).fit((SEEN[:, 0], SEEN[:, 1]))
    assert model.recommend(0, n=3)[0].shape == (3,)
    with pytest.raises(ValueError, match="training"):
        model.score(SEEN)


def test_wrong_ratings_are_explained():
    with pytest.raises(ValueError, match="needs the value of each pair"):
        als().fit(SEEN)
    with pytest.raises(ValueError, match="differ in length"):
        als().fit(([1, 2], [1], [1.0, 2.0]))
    assert als().fit([[1, 2], [2, 1], [1, 1]], [1, 2, 3]).users_.tolist() == [1, 2]
    with pytest.raises(ValueError, match="no ratings"):
        als().fit(([], [], []))
    with pytest.raises(ValueError, match="pairs of user and item"):
        als().fit(np.zeros((3, 7)))
    with pytest.raises(ValueError, match="must be one of last, mean, sum, error"):
        als().fit(SEEN, VALUES, duplicates="first")


def test_what_was_learned_can_be_looked_at():
    model = als().fit(SEEN, VALUES)
    assert model.user_factors_.shape == (40, 4)
    assert model.item_factors_.shape == (25, 4)
    assert model.item_biases_.shape == (25,)
    assert not hasattr(Popular().fit(SEEN, VALUES), "user_factors_")


def test_every_recommender_is_fitted_saved_and_opened(tmp_path):
    for name, kind in gradus.models().items():
        if "recommend" not in gradus._base.DESCRIBED[name]["capabilities"]:
            continue
        params = {"rank": 3} if "rank" in kind().get_params() else {}
        if "max_iter" in kind().get_params():
            params["max_iter"] = 12
        if "burn_in" in kind().get_params():
            params["burn_in"] = 2
        model = kind(**params).fit(SEEN, VALUES)
        model.save(tmp_path / name)
        loaded = gradus.load(tmp_path / name)
        assert type(loaded) is kind and loaded.get_params()["verbose"] == 0
        assert np.array_equal(loaded.predict(SEEN), model.predict(SEEN)), name
        assert np.array_equal(loaded.recommend(n=3)[0], model.recommend(n=3)[0]), name


def test_a_fit_says_what_it_took_for_what_was_left_out():
    model = Als(max_iter=3).fit(SEEN, VALUES)
    chosen = {choice["parameter"]: choice for choice in model.report_.chosen}
    assert set(chosen) == {"regularization", "rank"}
    assert chosen["regularization"]["value"] > 0 and "trials" in chosen["regularization"]["reason"]
    assert "rank (chosen)" in model.report_._repr_html_()
    given = Als(rank=2, regularization=1.0, max_iter=3).fit(SEEN, VALUES)
    assert given.report_.chosen == []
