"""Features of users and items."""

import pickle

import numpy as np
import pandas
import pytest

from gradus.factor import Als, Bayes, Bias, Ials


@pytest.fixture(scope="module")
def planted():
    """Users of job `a` like items of genre `x`, the others do not; the last ten users and five items have no rating."""
    r = np.random.default_rng(0)
    n_users, n_items, n = 200, 100, 4000
    jobs = np.array(["a", "b", "c"])[np.arange(n_users) % 3]
    users = pandas.DataFrame({"user": np.arange(n_users), "age": r.normal(40, 10, n_users), "job": jobs})
    genres = ["x|y" if item % 2 else "y|z" for item in range(n_items)]
    items = pandas.DataFrame({"item": np.arange(n_items), "genres": genres})
    u, i = r.integers(0, n_users - 10, n), r.integers(0, n_items - 5, n)
    likes = (jobs[u] == "a") == (i % 2 == 1)
    y = np.where(likes, 4.0, 2.0) + 0.2 * r.normal(size=n)
    return users, items, (u, i, y)


@pytest.fixture(scope="module")
def fitted(planted):
    users, items, ratings = planted
    return Als(rank=4, regularization=1.0).fit(ratings, user_features=users, item_features=items)


def test_users_and_items_without_ratings_are_known(planted, fitted):
    assert len(fitted.users_) == 200 and len(fitted.items_) == 100
    for user in (192, 193):
        items, scores = fitted.recommend(user, 20)
        odd = np.mean(items % 2)
        assert odd == (1 if user % 3 == 0 else 0)
    # Item 99 is new and of genre x.
    pairs = ([192, 193], [99, 99])
    liked, not_liked = fitted.predict(pairs)
    assert liked > not_liked + 1
    assert len(fitted.similar_items(99, 3)[0]) == 3


def test_someone_new_by_features_and_ratings(fitted):
    new = pandas.DataFrame({"job": ["a", "b"], "age": [30.0, 50.0]})
    items, scores = fitted.recommend_for(user_features=new, n=10)
    assert items.shape == (2, 10)
    assert (items[0] % 2 == 1).all() and (items[1] % 2 == 0).all()
    one, _ = fitted.recommend_for([1], [5.0], n=10, user_features=new.iloc[:1])
    assert one.shape == (1, 10) and 1 not in one
    # A missing number and an unseen word are taken as average.
    odd = pandas.DataFrame({"job": ["pilot"], "age": [np.nan]})
    assert fitted.recommend_for(user_features=odd, n=3)[0].shape == (1, 3)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.recommend_for(user_features=new, n=10)[1] == scores).all()


def test_an_explanation_names_features(fitted):
    why = fitted.explain(192, 99)
    assert why["contributions"] == []
    assert "job=a" in dict(why["user_features"]) and "genres=x" in dict(why["item_features"])
    total = why["base"] + sum(part for _, part in why["user_features"])
    assert abs(total - why["score"]) < 1e-3


def test_new_ratings_come_with_features(planted):
    users, items, ratings = planted
    model = Als(rank=2, regularization=1.0).fit(ratings, user_features=users)
    new = pandas.DataFrame({"user": [300], "age": [33.0], "job": ["a"]})
    model.partial_fit(([300], [3], [4.0]), user_features=new)
    assert "job=a" in dict(model.explain(300, 5)["user_features"])
    with pytest.raises(ValueError, match="without features of items"):
        model.partial_fit(([300], [4], [4.0]), item_features=items)


def test_arrays_with_ids(planted):
    _, _, (u, i, y) = planted
    features = np.stack([np.arange(200) % 3 == 0, np.arange(200) % 5], axis=1).astype(float)
    model = Als(rank=3, regularization=1.0).fit((u, i, y), user_features=(np.arange(200), features))
    assert model.recommend_for(user_features=features[:2], n=3)[0].shape == (2, 3)


def test_what_cannot_be_used_is_refused(planted, fitted):
    users, _, ratings = planted
    for features, message in [
        (pandas.concat([users, users]), "there twice"),
        (users.assign(user=users.user + 1000), "none of the 200 ids"),
        (users[["user"]], "no columns of features"),
        ([1, 2], "expected a data frame"),
    ]:
        with pytest.raises(ValueError, match=message):
            Als(rank=2).fit(ratings, user_features=features)
    with pytest.raises(ValueError, match="ratings alone"):
        Bias().fit(ratings, user_features=users)
    with pytest.raises(ValueError, match="job"):
        fitted.recommend_for(user_features=pandas.DataFrame({"age": [1.0]}))
    with pytest.raises(ValueError, match="give items that were rated"):
        fitted.recommend_for()
    with pytest.raises(ValueError, match="without features of users"):
        Als(rank=2, regularization=1.0).fit(ratings).recommend_for(user_features=users)
    titled = users.assign(title=[f"title {n}" for n in range(200)])
    with pytest.warns(UserWarning, match="`title` has 200 different words"):
        Als(rank=2, regularization=1.0).fit(ratings, user_features=titled)


# Besides Als.
MODELS = [Ials(rank=4, regularization=0.01, unobserved=0.1), Bayes(rank=4, max_iter=80, burn_in=30)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_other_models_learn_from_features(planted, model):
    users, items, (u, i, y) = planted
    # Signs of interest are what was liked.
    liked = y > 3
    ratings = (u[liked], i[liked], np.ones(liked.sum())) if isinstance(model, Ials) else (u, i, y)
    model = model.fit(ratings, user_features=users, item_features=items)
    assert len(model.users_) == 200 and len(model.items_) == 100
    for user in (192, 193):
        found, _ = model.recommend(user, 20)
        assert np.mean(found % 2) == (1 if user % 3 == 0 else 0)
    new = pandas.DataFrame({"job": ["a", "b"], "age": [30.0, 50.0]})
    found, scores = model.recommend_for(user_features=new, n=10)
    assert (found[0] % 2 == 1).all() and (found[1] % 2 == 0).all()
    one, _ = model.recommend_for([1], [5.0], n=10, user_features=new.iloc[:1])
    assert one.shape == (1, 10) and 1 not in one
    again = pickle.loads(pickle.dumps(model))
    assert (again.recommend_for(user_features=new, n=10)[1] == scores).all()
    why = model.explain(192, 99)
    assert "job=a" in dict(why["user_features"]) and "genres=x" in dict(why["item_features"])
    total = why["base"] + sum(part for _, part in why["user_features"])
    assert abs(total - why["score"]) < 1e-3
    assert len(model.similar_items(99, 3)[0]) == 3
    for features, message in [
        (pandas.concat([users, users]), "there twice"),
        (users.assign(user=users.user + 1000), "none of the 200 ids"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(ratings, user_features=features)
    model = model.fit(ratings, user_features=users, item_features=items)
    with pytest.raises(ValueError, match="job"):
        model.recommend_for(user_features=pandas.DataFrame({"age": [1.0]}))
