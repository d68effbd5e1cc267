"""Cold start: parts with users or items that training never saw, and the peers that learn from features.

Every contestant gets the same ratings and the same encoded features: numbers at variance 1, a feature for each word and
for each word of a list. gradus reads the tables themselves and encodes them so.
"""

import json
import time
from pathlib import Path

import numpy as np

LEAST = 4  # stars that are a sign of interest


def prepare_cold(source, users, items, style, mode, fold, folds, seed, folder):
    """Writes a fold: `mode` is warm, cold-user or cold-item."""
    import pandas as pd

    if style == "100k":
        ratings = pd.read_csv(source, sep="\t", names=["user", "item", "rating", "time"])
        people = pd.read_csv(users, sep="|", names=["user", "age", "gender", "occupation", "zip"])
        genres = [line.split("|")[0] for line in (Path(items).parent / "u.genre").read_text().split("\n") if "|" in line]
        names = ["item", "title", "date", "video", "url", *genres]
        films = pd.read_csv(items, sep="|", names=names, encoding="latin-1")
        films["genres"] = [_joined(genres, row) for row in films[genres].to_numpy()]
        films["year"] = pd.to_numeric(films["date"].str[-4:], errors="coerce")
    else:
        ratings = pd.read_csv(source)
        ratings.columns = ["user", "item", "rating", *ratings.columns[3:]]
        people = pd.read_csv(users, sep="::", names=["user", "gender", "age", "occupation", "zip"], engine="python")
        people["occupation"] = "o" + people["occupation"].astype(str)
        films = pd.read_csv(items, sep="::", names=["item", "title", "genres"], engine="python", encoding="latin-1")
        films["year"] = pd.to_numeric(films["title"].str.extract(r"\((\d{4})\)\s*$")[0], errors="coerce")
    # A list of one word is told from a word by the bar.
    films["genres"] = films["genres"] + "|"
    ratings = ratings[["user", "item", "rating"]]
    random = np.random.default_rng(seed)
    column = {"cold-user": "user", "cold-item": "item"}.get(mode)
    if column is None:
        part = random.permutation(len(ratings)) % folds
    else:
        ids, places = np.unique(ratings[column], return_inverse=True)
        part = (random.permutation(len(ids)) % folds)[places]
    train, test = ratings[part != fold], ratings[part == fold]
    # The other side of a cold row is known.
    other = {"user": "item", "item": "user"}.get(column)
    keep = {"user", "item"} if column is None else {other}
    for name in keep:
        test = test[test[name].isin(train[name].unique())]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    people = people[["user", "age", "gender", "occupation"]]
    films = films[["item", "year", "genres"]]
    # A table of other numbers is no table: the ratings of ML-1M may be numbered anew.
    joined = bool(ratings.item.isin(films.item).all())
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    train[train.rating >= LEAST].to_csv(folder / "liked.csv", index=False)
    people.to_csv(folder / "users.csv", index=False)
    if joined:
        films.to_csv(folder / "items.csv", index=False)
    # Written last: the fold is there.
    meta = {"train": len(train), "test": len(test), "items": joined}
    (folder / "meta.json").write_text(json.dumps(meta))
    return meta


def _joined(names, row):
    return "|".join(name for name, has in zip(names, row) if has)


def _encoded(table, key):
    """Ids and a sparse matrix of features, with their names."""
    import pandas as pd
    import scipy.sparse as sparse

    parts, names = [], []
    for name in table.columns.drop(key):
        column = table[name]
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(float)
            centred = np.nan_to_num((values - np.nanmean(values)) / (np.nanstd(values) or 1.0))
            parts.append(centred[:, None])
            names.append(name)
            if np.isnan(values).any():
                parts.append(np.isnan(values).astype(float)[:, None])
                names.append(f"{name} missing")
        else:
            dummies = column.fillna("").str.strip("|").str.get_dummies("|")
            parts.append(dummies.to_numpy(float))
            names += [f"{name}={word}" for word in dummies.columns]
    return table[key].to_numpy(), sparse.csr_matrix(np.hstack(parts)), names


class _Fold:
    def __init__(self, folder):
        import pandas as pd
        import scipy.sparse as sparse

        folder = Path(folder)
        self.train, self.test = pd.read_csv(folder / "train.csv"), pd.read_csv(folder / "test.csv")
        self.user_ids, self.user_features, self.user_names = _encoded(pd.read_csv(folder / "users.csv"), "user")
        self.has_items = (folder / "items.csv").exists()
        if self.has_items:
            self.item_ids, self.item_features, self.item_names = _encoded(pd.read_csv(folder / "items.csv"), "item")
        else:
            self.item_ids = np.unique(np.concatenate([self.train.item, self.test.item]))
            self.item_features, self.item_names = sparse.csr_matrix((len(self.item_ids), 0)), []

    def frame(self, of):
        import pandas as pd

        ids, features, names = {
            "UserId": (self.user_ids, self.user_features, self.user_names),
            "ItemId": (self.item_ids, self.item_features, self.item_names),
        }[of]
        frame = pd.DataFrame(features.toarray(), columns=names)
        frame.insert(0, of, ids)
        return frame


def cmfrec_explicit(folder, settings, threads, features=True):
    """RMSE of cmfrec's collective factorisation."""
    from cmfrec import CMF

    fold = _Fold(folder)
    train = fold.train.rename(columns={"user": "UserId", "item": "ItemId", "rating": "Rating"})
    users, items = fold.frame("UserId"), fold.frame("ItemId")
    known_users, known_items = set(train.UserId), set(train.ItemId)
    model = CMF(nthreads=threads, verbose=False, **settings)
    started = time.perf_counter()
    if features:
        films = items[items.ItemId.isin(known_items)] if fold.has_items else None
        model.fit(X=train, U=users[users.UserId.isin(known_users)], I=films)
    else:
        model.fit(X=train)
    seconds = time.perf_counter() - started
    test = fold.test
    predicted = np.full(len(test), float(model.glob_mean_))
    new_user = ~test.user.isin(known_users).to_numpy()
    new_item = ~test.item.isin(known_items).to_numpy()
    warm = ~new_user & ~new_item
    if warm.any():
        predicted[warm] = model.predict(test.user[warm].to_numpy(), test.item[warm].to_numpy())
    people, films = users.set_index("UserId"), items.set_index("ItemId")
    if features and (new_user & ~new_item).any():
        at = new_user & ~new_item
        predicted[at] = model.predict_cold_multiple(test.item[at].to_numpy(), U=people.loc[test.user[at]].to_numpy())
    if features and fold.has_items and (new_item & ~new_user).any():
        at = new_item & ~new_user
        predicted[at] = model.predict_new(test.user[at].to_numpy(), I=films.loc[test.item[at]].to_numpy())
    low, high = train.Rating.min(), train.Rating.max()
    error = np.clip(predicted, low, high) - test.rating.to_numpy()
    return {"rmse": float(np.sqrt(np.mean(error**2))), "seconds": seconds}


def _liked(fold):
    return fold.train[fold.train.rating >= LEAST], fold.test[fold.test.rating >= LEAST]


def _ndcg(fold, mode, scores_of, at=10):
    """The mean NDCG. `scores_of(user, items)` scores items by id; of cold items only these are ranked."""
    liked, relevant = _liked(fold)
    trained = np.unique(liked.item)
    if mode == "cold-item":
        candidates = np.setdiff1d(np.unique(fold.test.item), np.unique(fold.train.item))
    else:
        candidates = trained
    seen = liked.groupby("user").item.apply(set).to_dict()
    discounts = 1 / np.log2(np.arange(at) + 2)
    found = []
    for user, wanted in relevant.groupby("user").item:
        own = seen.get(user, set())
        if mode != "cold-user" and not own:
            continue
        items = candidates[~np.isin(candidates, list(own))] if own else candidates
        wanted = set(wanted) & set(items)
        if not wanted:
            continue
        order = np.argsort(-scores_of(user, items), kind="stable")[:at]
        hits = np.array([items[place] in wanted for place in order], float)
        found.append((hits * discounts[: len(hits)]).sum() / discounts[: len(wanted)].sum())
    return float(np.mean(found))


def _by_factors(fold, mode, users, items):
    """NDCG from dictionaries of factors by id."""
    zero = np.zeros(len(next(iter(items.values()))))
    ids = np.array(sorted(items))
    matrix = np.array([items[item] for item in ids])
    missing = len(ids)
    matrix = np.vstack([matrix, zero])

    def scores(user, wanted):
        places = np.searchsorted(ids, wanted)
        places[places == missing] = 0
        places = np.where(ids[places] == wanted, places, missing)
        return matrix[places] @ users.get(user, zero)

    return _ndcg(fold, mode, scores)


def gradus_ranked(folder, mode, model):
    """NDCG of the factors in a model file."""
    from worker import _tensors

    tensors = _tensors(model)
    fold = _Fold(folder)
    sides = []
    for name in ("user", "item"):
        ids = np.asarray(tensors[f"{name}s.int"])
        sides.append(dict(zip(ids.tolist(), np.asarray(tensors[f"{name}_factors"]))))
    return {"ndcg": _by_factors(fold, mode, *sides)}


def popular_ranked(folder, mode):
    """NDCG of the most popular items; of cold items none is known to be popular."""
    fold = _Fold(folder)
    counts = _liked(fold)[0].item.value_counts()
    return {"ndcg": _ndcg(fold, mode, lambda user, items: counts.reindex(items).fillna(0).to_numpy()), "seconds": 0.0}


def cmfrec_ranked(folder, mode, settings, threads, features=True):
    from cmfrec import CMF_implicit

    fold = _Fold(folder)
    liked = _liked(fold)[0].rename(columns={"user": "UserId", "item": "ItemId"})[["UserId", "ItemId"]]
    liked["Value"] = 1.0
    users, items = fold.frame("UserId"), fold.frame("ItemId")
    known_users, known_items = np.unique(liked.UserId), np.unique(liked.ItemId)
    model = CMF_implicit(nthreads=threads, verbose=False, **settings)
    started = time.perf_counter()
    if features:
        films = items[items.ItemId.isin(known_items)] if fold.has_items else None
        model.fit(X=liked, U=users[users.UserId.isin(known_users)], I=films)
    else:
        model.fit(X=liked)
    seconds = time.perf_counter() - started
    skip = model.k_user, model.k_item
    of_users = dict(zip(np.asarray(model.user_mapping_).tolist(), model.A_[:, skip[0] :]))
    of_items = dict(zip(np.asarray(model.item_mapping_).tolist(), model.B_[:, skip[1] :]))
    if features and mode == "cold-user":
        people = users.set_index("UserId")
        for user in np.setdiff1d(np.unique(fold.test.user), known_users):
            of_users[user] = model.factors_cold(U=people.loc[user].to_numpy())[skip[0] :]
    if features and fold.has_items and mode == "cold-item":
        films = items.set_index("ItemId")
        for item in np.setdiff1d(np.unique(fold.test.item), known_items):
            of_items[item] = model.item_factors_cold(I=films.loc[item].to_numpy())[skip[1] :]
    return {"ndcg": _by_factors(fold, mode, of_users, of_items), "seconds": seconds}


def lightfm_ranked(folder, mode, settings, epochs, threads, features=True):
    import scipy.sparse as sparse
    from lightfm import LightFM

    fold = _Fold(folder)
    liked = _liked(fold)[0]
    rows, columns = np.searchsorted(fold.user_ids, liked.user), np.searchsorted(fold.item_ids, liked.item)
    shape = (len(fold.user_ids), len(fold.item_ids))
    matrix = sparse.coo_matrix((np.ones(len(liked), np.float32), (rows, columns)), shape=shape)

    def with_identity(encoded, known):
        # What was never trained has no row of its own: it would be a random one.
        own = sparse.diags(known.astype(np.float32))
        return sparse.hstack([own, encoded.astype(np.float32)]).tocsr() if features else sparse.csr_matrix(own)

    known_users, known_items = np.zeros(shape[0]), np.zeros(shape[1])
    known_users[np.unique(rows)] = 1
    known_items[np.unique(columns)] = 1
    of_users = with_identity(fold.user_features, known_users)
    of_items = with_identity(fold.item_features, known_items)
    model = LightFM(random_state=0, **settings)
    started = time.perf_counter()
    model.fit(matrix, user_features=of_users, item_features=of_items, epochs=epochs, num_threads=threads)
    seconds = time.perf_counter() - started
    user_bias, user_factors = model.get_user_representations(of_users)
    item_bias, item_factors = model.get_item_representations(of_items)
    users = dict(zip(fold.user_ids.tolist(), np.hstack([user_factors, np.ones((shape[0], 1))])))
    items = dict(zip(fold.item_ids.tolist(), np.hstack([item_factors, item_bias[:, None]])))
    return {"ndcg": _by_factors(fold, mode, users, items), "seconds": seconds}


def make_features(users, items, columns, seed, folder):
    """Side tables of normal numbers for synthetic ratings."""
    folder = Path(folder)
    for name, count, at in (("user", users, 0), ("item", items, 1)):
        path = folder / f"{name}s-{columns}.csv"
        if path.exists():
            continue
        values = np.random.default_rng([seed, at]).standard_normal((count, columns))
        with open(path, "w") as out:
            out.write(",".join([name, *(f"x{column}" for column in range(columns))]) + "\n")
            for row, numbers in enumerate(values):
                out.write(f"{row}," + ",".join(f"{x:.3f}" for x in numbers) + "\n")
    return {}
