"""What Python shares with the command line: evaluation, pages, what a file holds, words for options."""

import json

import numpy as np
import pytest

import gradus
from gradus.factor import Als, Ials
from gradus.linear import Ridge


def ratings(seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, 25, (400, 2)), axis=0)
    return pairs[:, 0], pairs[:, 1], rng.integers(1, 6, len(pairs)).astype(float)


def test_ranking_takes_the_upper_quarter_of_ratings_as_the_command_does():
    users, items, values = ratings()
    held_out = np.arange(len(users)) % 4 == 0
    model = Als(rank=3, random_state=0).fit((users[~held_out], items[~held_out], values[~held_out]))
    part = (users[held_out], items[held_out], values[held_out])
    assert model.ranking(part, at=5) == model.ranking(part, at=5, threshold=4.0)
    assert model.ranking(part, at=5) != model.ranking(part, at=5, threshold=0.5)
    # Pairs without values have no better and worse ones.
    assert model.ranking(part[:2], at=5) == model.ranking((*part[:2], np.full(held_out.sum(), 5.0)), at=5)
    clicks = Ials(rank=3, random_state=0).fit((users[~held_out], items[~held_out]))
    assert clicks.ranking(part, at=5) == clicks.ranking(part, at=5, threshold=0.5)


def test_counts_that_contradict_each_other_are_refused():
    model = Als(rank=2, random_state=0).fit(ratings())
    with pytest.raises(ValueError, match="max_count` = 1: must be at least option `min_count` = 3"):
        model.recommend(1, min_count=3, max_count=1)
    with pytest.raises(TypeError, match="recommend_for.. got an unexpected keyword argument 'cheap'"):
        model.recommend_for([1], cheap=True)


def test_info_tells_what_a_file_holds(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = Ridge(regularization=0.5).fit(X, X @ [1.0, 0.0, -2.0] + 1.0)
    model.save(tmp_path / "m.gradus")
    found = gradus.info(tmp_path / "m.gradus")
    assert found["model"] == "ridge" and found["params"]["regularization"] == 0.5
    assert found["capabilities"] == ["predict_values", "gradient"]
    assert found["coefficients"][0]["intercept"] == model.intercept_
    assert list(found["coefficients"][0]["coefficients"].values())[0] == model.coef_[2]
    in_memory = json.loads(model.model_.info())
    assert in_memory.pop("file") is None and found.pop("file").endswith("m.gradus")
    assert in_memory == found
    assert gradus.info(tmp_path / "m.gradus", verify=True)["verified"] is True
    (tmp_path / "r.csv").write_text("user,item,rating\n1,2,3\n1,3,5\n")
    assert gradus.info(tmp_path / "r.csv")["mean"] == 4.0
    assert [column["type"] for column in gradus.info(tmp_path / "r.csv", table=True)["columns"]] == ["integer"] * 3
    with pytest.raises(FileNotFoundError):
        gradus.info(tmp_path / "none.csv")


def test_words_for_options_are_those_of_the_definitions(tmp_path):
    with pytest.raises(ValueError, match="`duplicates` = .*must be one of last, mean, sum, error"):
        Als(rank=2).fit(ratings(), duplicates="first")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="`on_error` = .*must be one of fail, skip"):
        gradus.read_table(tmp_path / "t.csv", on_error="ignore")
    words = [word for word, _ in gradus._gradus.missing_choices()]
    assert words == ["refuse", "mean", "median", "category", "keep"]
