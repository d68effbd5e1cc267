"""`gradus.compare`: which model for this data."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

import gradus


def ratings(seed=0, users=120, items=50, n=3000):
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, (users, items), (n, 2)), axis=0)
    p, q = rng.normal(size=(users, 2)), rng.normal(size=(items, 2))
    values = 3 + 0.8 * rng.normal(size=items)[pairs[:, 1]] + (p[pairs[:, 0]] * q[pairs[:, 1]]).sum(1) + 0.3 * rng.normal(size=len(pairs))
    return pairs[:, 0], pairs[:, 1], values


def test_planted_factors_win_over_the_baselines():
    data = ratings()
    found = gradus.compare(data, models=["als"], budget=None)
    assert found.winner == "als" and found.not_distinguished == ["als"]
    assert [row["model"] for row in found.rows] == ["als", "bias", "mean"]
    assert found.rows[0]["low"] <= found.rows[0]["score"] <= found.rows[0]["high"]
    assert found.rows[1]["difference_low"] > 0 and found.rows[1]["distinguished"]
    assert found.best_on_all_data and type(found.best_estimator_) is gradus.factor.Als
    # Fitted on all the data, with the defaults.
    direct = gradus.factor.Als(random_state=0).fit(data)
    pairs = np.stack(data[:2], axis=1)[:20]
    assert np.array_equal(found.best_estimator_.predict(pairs), direct.predict(pairs))
    frame = pd.DataFrame(found.rows)
    assert list(frame.model) == ["als", "bias", "mean"]


def test_the_result_reads_as_a_table():
    found = gradus.compare(ratings(), models=["als"], budget="10m")
    text = repr(found)
    assert "RMSE" in text and "all within, 95 %" in text and "best" in text.splitlines()[1]
    assert found.rows[0]["model"] in text.splitlines()[1]
    assert "<table>" in found._repr_html_()
    page = found.to_html()
    assert page.startswith("<!doctype html>") and "Time against quality" in page


def test_signs_of_interest_are_ranked():
    users, items, _ = ratings()
    found = gradus.compare((users, items), implicit=True, models=["ials", "ease"], budget=None)
    assert found.metric == "NDCG@20" and found.higher_is_better
    assert {row["model"] for row in found.rows} == {"ials", "ease", "popular"}
    with pytest.raises(ValueError, match="implicit"):
        gradus.compare((users, items, np.ones(len(users))))


def test_tables_of_numbers_and_of_classes():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.choice(["x", "y"], 400)})
    y = X.a + (X.b == "x") + 0.1 * rng.normal(size=400)
    found = gradus.compare(X, y, models=["ridge", "linear"], budget=None)
    assert found.metric == "RMSE" and found.rows[0]["score"] < 0.2
    assert found.best_estimator_.predict(X[:3]).shape == (3,)
    words = np.where(y > 0.5, "yes", "no")
    found = gradus.compare(X, words, budget=None, without=["svm"])
    assert found.metric == "accuracy" and found.winner == "logistic"
    assert set(found.best_estimator_.predict(X)) <= {"yes", "no"}
    assert (found.best_estimator_.predict(X) == words).mean() > 0.9
    # Whole numbers, few of them, are classes; the caller may say otherwise.
    codes = (y > 0.5).astype(int)
    assert gradus.compare(X, codes, models=["logistic"], budget=None).metric == "accuracy"
    assert gradus.compare(X, codes, task="regression", models=["ridge"], budget=None).metric == "RMSE"


def test_groups_are_held_out_together():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    groups = np.repeat(np.arange(40), 5)
    found = gradus.compare(X, X[:, 0] + rng.normal(size=200), groups=groups, models=["ridge"], budget=None)
    assert found.units == "groups" and found.n_units == 8


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"models": ["nonsense"]}, ValueError, "nonsense"),
        ({"models": [3]}, TypeError, "names of models"),
        ({"budget": 0}, ValueError, "greater than 0"),
        ({"budget": "soon"}, ValueError, "budget"),
        ({"budget": [1]}, TypeError, "budget"),
        ({"metric": "accuracy"}, ValueError, "rmse, mae"),
        ({"holdout": 2.0}, ValueError, "holdout"),
        ({"task": "regression"}, ValueError, "task"),
        ({"split": "nonsense"}, ValueError, "nonsense"),
    ],
)
def test_what_is_wrong_is_said(arguments, error, words):
    with pytest.raises(error, match=words):
        gradus.compare(ratings(), **{"budget": None, "models": ["als"], **arguments})


def test_the_same_seed_gives_the_same_result_on_any_number_of_threads():
    data = ratings()
    try:
        found = []
        for threads in (1, 2):
            gradus.set_threads(threads)
            found.append(gradus.compare(data, models=["als", "sgd"], budget=None))
    finally:
        gradus.set_threads(None)
    same = ["model", "score", "low", "high", "difference_low", "difference_high"]
    a, b = ([[row[name] for name in same] for row in one.rows] for one in found)
    assert a == b


def test_an_interruption_gives_what_is_complete():
    data = ratings(users=3000, items=1500, n=400_000)
    timer = threading.Timer(4.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.warns(UserWarning, match="interrupted"):
            found = gradus.compare(data, budget=None)
    finally:
        timer.cancel()
    assert found.interrupted and found.best_estimator_ is not None
    assert any(one["reason"] == "interrupted" for one in found.others)
