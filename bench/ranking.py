"""How well items are ranked, computed here from factors alone, whoever fitted them. Runs in the worker."""

import json
import time
from pathlib import Path

import numpy as np

# More users than this are not all judged.
MOST = 50_000
PLACES = {"all": 20, "sampled": 10}


def prepare_lists(folder, train, valid, test):
    """One line a user, the user first: train and valid are learned from, test is ranked.

    Train and valid alone are kept as well, to choose settings by.
    """
    parts = {name: _lists(path) for name, path in (("fit", train), ("valid", valid), ("test", test))}
    parts["train"] = np.unique(np.concatenate([parts["fit"], parts["valid"]]), axis=0)
    return _write(folder, parts, "all")


def prepare_left_out(folder, source, negatives, seed):
    """One item of each user, drawn at random, is to be ranked among `negatives` that the user has not rated."""
    import polars

    pairs = polars.read_csv(source).select("user", "item").to_numpy()
    users, items = np.unique(pairs[:, 0], return_inverse=True)[1], np.unique(pairs[:, 1], return_inverse=True)[1]
    order = np.lexsort((items, users))
    users, items = users[order], items[order]
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    ends = np.append(starts[1:], len(users))
    random = np.random.default_rng(seed)
    n_items = items.max() + 1
    left_out = random.integers(starts, ends)
    others = [
        random.choice(np.setdiff1d(np.arange(n_items), items[start:end]), negatives, replace=False)
        for start, end in zip(starts, ends)
    ]
    kept = np.ones(len(users), bool)
    kept[left_out] = False
    pairs = np.stack([users, items], 1)
    # A second item of each user is left out to choose settings by.
    second = _other(starts, ends, left_out, random)
    fit = kept.copy()
    fit[second] = False
    parts = {"train": pairs[kept], "test": pairs[left_out], "fit": pairs[fit], "valid": pairs[second]}
    return _write(folder, parts, "sampled", np.stack(others))


def prepare_liked(folder, source, separator, names, least, seed):
    """Ratings of at least `least` as signs of interest; a fifth of those of each user, drawn at random, is ranked.

    A tenth of what is left is held out once more, to choose settings by.
    """
    import polars

    columns = {"separator": separator, "has_header": names is None, "new_columns": names}
    table = polars.read_csv(source, **columns).filter(polars.col("rating") >= least)
    pairs = table.select("user", "item").to_numpy()
    users, items = np.unique(pairs[:, 0], return_inverse=True)[1], np.unique(pairs[:, 1], return_inverse=True)[1]
    random = np.random.default_rng(seed)
    train, test = _share(np.stack([users, items], 1), 0.2, random)
    fit, valid = _share(train, 0.1, random)
    return _write(folder, {"train": train, "test": test, "fit": fit, "valid": valid}, "all")


def _share(pairs, share, random):
    """A share of the items of each user with more than one, at least one of them, is held out."""
    pairs = pairs[np.lexsort((random.random(len(pairs)), pairs[:, 0]))]
    starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1))
    counts = np.diff(np.append(starts, len(pairs)))
    place = np.arange(len(pairs)) - np.repeat(starts, counts)
    held = np.where(counts > 1, np.maximum(1, np.round(counts * share)), 0)
    out = place < np.repeat(held, counts)
    return pairs[~out], pairs[out]


def _other(starts, ends, taken, random):
    place = random.integers(starts, ends - 1)
    return place + (place >= taken)


def popularity(data):
    """Everyone gets the items with the most observations."""
    train, meta = _pairs(data, "train"), _meta(data)
    counts = np.bincount(train[:, 1], minlength=meta["items"]).astype(np.float32)
    users = np.ones((meta["users"], 1), np.float32)
    return {"seconds": 0.0, **evaluate(data, users, counts[:, None], np.zeros(meta["items"], np.float32))}


def ease(data, regularization):
    """EASE as in the paper, in numpy: double precision, one inverse."""
    from scipy.sparse import csr_matrix

    train, meta = _pairs(data, "train"), _meta(data)
    matrix = csr_matrix((np.ones(len(train)), (train[:, 0], train[:, 1])), shape=(meta["users"], meta["items"]))
    started = time.perf_counter()
    gram = (matrix.T @ matrix).toarray()
    gram[np.diag_indices_from(gram)] += regularization
    inverse = np.linalg.inv(gram)
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0)
    seconds = time.perf_counter() - started
    # Items without training data have weights of 0 and come last.
    unknown = np.where(np.bincount(train[:, 1], minlength=meta["items"]) > 0, 0, -np.inf)
    return {"seconds": seconds, **_all_scored(data, lambda block: matrix[block] @ weights + unknown, PLACES["all"])}


def lists(data, path):
    """Lists that a program wrote: rows of user, rank, item and more, with names of the columns."""
    import polars

    test = _by_user(data, "test")
    rows = polars.read_csv(path).sort("user", "rank").select("user", "item").to_numpy()
    bounds = np.searchsorted(rows[:, 0], np.arange(len(test) + 1))
    judge = _Judge(PLACES["all"])
    for user in _judged(test):
        judge.add(rows[bounds[user] : bounds[user + 1], 1][: judge.places], test[user])
    return judge.means()


def implicit(data, threads, settings):
    """implicit's ALS."""
    from implicit.cpu.als import AlternatingLeastSquares

    matrix, meta = _interest(data, "train"), _meta(data)
    model = AlternatingLeastSquares(num_threads=threads, random_state=1, **settings)
    started = time.perf_counter()
    model.fit(matrix, show_progress=False)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, **evaluate(data, model.user_factors, model.item_factors, np.zeros(meta["items"]))}


# What is tried on the valid part, first with 64 factors; then other numbers of factors at the best of it.
FACTORS = (32, 128, 256)
# implicit: the weight α of an observation, and λ as a multiple of it.
IMPLICIT_GRID = [(alpha, ratio * alpha) for alpha in (1, 5, 20, 100) for ratio in (0.1, 0.5, 1.5, 4, 10)]
# irspack: the weight α₀ of what is not observed, and λ; and the exponents of RP3β.
IRSPACK_ALPHA0, IRSPACK_REG = (0.01, 0.03, 0.1, 0.3, 1, 3, 10), (0.0003, 0.001, 0.003, 0.01, 0.03)
IRSPACK_GRID = [(alpha0, reg) for alpha0 in IRSPACK_ALPHA0 for reg in IRSPACK_REG]
RP3_GRID = [(alpha, beta) for alpha in (0.6, 1.0, 1.4) for beta in (0.2, 0.4, 0.6, 0.8)]


def implicit_tuned(data, threads):
    """implicit's ALS at the best of a grid on the valid part."""
    from implicit.cpu.als import AlternatingLeastSquares

    def learn(matrix, factors, alpha, reg):
        settings = {"factors": factors, "alpha": alpha, "regularization": reg, "iterations": 15}
        model = AlternatingLeastSquares(num_threads=threads, random_state=1, **settings)
        model.fit(matrix, show_progress=False)
        return lambda block: model.user_factors[block] @ model.item_factors.T

    candidates = [(64, *pair) for pair in IMPLICIT_GRID]
    return _tuned(data, learn, candidates, "K = {}, α = {:g}, λ = {:g}")


def irspack_tuned(data, threads):
    """irspack's iALS likewise."""
    from irspack import IALSRecommender

    def learn(matrix, factors, alpha0, reg):
        settings = {"n_components": factors, "alpha0": alpha0, "reg": reg, "n_threads": threads}
        model = IALSRecommender(matrix, **settings).learn()
        return lambda block: np.asarray(model.get_score(np.asarray(block)), np.float32)

    candidates = [(64, *pair) for pair in IRSPACK_GRID]
    return _tuned(data, learn, candidates, "K = {}, α₀ = {:g}, λ = {:g}")


def irspack_rp3beta_tuned(data, threads):
    """irspack's RP3β likewise."""
    from irspack import RP3betaRecommender

    def learn(matrix, alpha, beta):
        model = RP3betaRecommender(matrix, alpha=alpha, beta=beta, n_threads=threads).learn()
        return lambda block: np.asarray(model.get_score(np.asarray(block)), np.float32)

    return _tuned(data, learn, RP3_GRID, "α = {:g}, β = {:g}", factors=())


def _tuned(data, learn, candidates, words, factors=FACTORS):
    """Fits the best candidate by the NDCG on the valid part to all training data. The time is that of this fit."""
    fit, tried = _interest(data, "fit"), []

    def judge(candidate):
        scores = learn(fit, *candidate)
        tried.append((_all_scored(data, scores, PLACES["all"], "fit", "valid")["ndcg"], candidate))

    for candidate in candidates:
        judge(candidate)
    best = max(tried)[1]
    for count in factors:
        judge((count, *best[1:]))
    best = max(tried)[1]
    train = _interest(data, "train")
    started = time.perf_counter()
    scores = learn(train, *best)
    seconds = time.perf_counter() - started
    answer = _all_scored(data, scores, PLACES["all"])
    return {"seconds": seconds, "settings": words.format(*best), **answer}


def _interest(data, part):
    """The pairs of a part as a matrix of ones, users × items."""
    from scipy.sparse import csr_matrix

    pairs, meta = _pairs(data, part), _meta(data)
    ones = np.ones(len(pairs), np.float32)
    return csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(meta["users"], meta["items"]))


def implicit_race(data, threads, iterations, rank):
    """implicit's ALS by conjugate gradients: seconds and NDCG after each iteration; the judging does not count."""
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    train, meta = _pairs(data, "train"), _meta(data)
    values = np.load(Path(data) / "train.npz")["values"].astype(np.float32)
    matrix = csr_matrix((values, (train[:, 0], train[:, 1])), shape=(meta["users"], meta["items"]))
    model = AlternatingLeastSquares(factors=rank, num_threads=threads, random_state=1, iterations=iterations)
    seconds, scores, bias = [], [], np.zeros(meta["items"])
    clock = {"total": 0.0, "since": time.perf_counter()}

    def after(*_):
        clock["total"] += time.perf_counter() - clock["since"]
        seconds.append(clock["total"])
        scores.append(evaluate(data, model.user_factors, model.item_factors, bias)["ndcg"])
        clock["since"] = time.perf_counter()

    model.fit(matrix, show_progress=False, callback=after)
    return {"seconds": seconds, "ndcg": scores}


def gradus(data, model):
    """A model file of gradus."""
    meta, tensors = _meta(data), _tensors(model)
    rank = tensors["item_factors"].shape[1]
    users = np.zeros((meta["users"], rank), np.float32)
    items = np.zeros((meta["items"], rank), np.float32)
    # Items that were not in training are never recommended.
    bias = np.full(meta["items"], -np.inf, np.float32)
    # The ids of a data set of ratings count from 1.
    first = 0 if "protocol" in meta else 1
    users[tensors["users.int"] - first] = tensors["user_factors"]
    items[tensors["items.int"] - first] = tensors["item_factors"]
    bias[tensors["items.int"] - first] = tensors["item_bias"]
    return evaluate(data, users, items, bias)


def evaluate(data, users, items, bias):
    """The mean over the users that have something held out."""
    if _meta(data).get("protocol") == "sampled":
        return _sampled(data, users, items, bias)
    return _all(data, users, items, bias, PLACES["all"])


def _all(data, users, items, bias, places):
    """All items but those of training are ranked: recall (hits by held-out items) and NDCG."""
    return _all_scored(data, lambda block: users[block] @ items.T + bias, places)


def _all_scored(data, scores_of, places, learned="train", judged="test"):
    """The same by the scores of all items for a block of users."""
    train, test = _by_user(data, learned), _by_user(data, judged)
    judge, judged = _Judge(places), _judged(test)
    for at in range(0, len(judged), 256):
        block = judged[at : at + 256]
        scores = scores_of(block)
        for row, user in enumerate(block):
            scores[row, train[user]] = -np.inf
        best = np.argpartition(-scores, places, axis=1)[:, :places]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
        best = np.take_along_axis(best, order, 1)
        for row, user in enumerate(block):
            judge.add(best[row], test[user])
    return judge.means()


def _judged(test):
    judged = [user for user in range(len(test)) if len(test[user])]
    return judged[::7] if len(judged) > MOST else judged


class _Judge:
    """Adds up the measures of lists."""

    def __init__(self, places):
        self.places, self.discount = places, 1 / np.log2(np.arange(2, places + 2))
        self.recalls, self.gains = [], []

    def add(self, best, held_out):
        hits = np.isin(best, held_out)
        self.recalls.append(hits.sum() / len(held_out))
        self.gains.append((hits * self.discount[: len(hits)]).sum() / self.discount[: len(held_out)].sum())

    def means(self):
        return {"recall": float(np.mean(self.recalls)), "ndcg": float(np.mean(self.gains))}


def _sampled(data, users, items, bias):
    """The one held-out item is ranked among the drawn ones; ties count against it."""
    test, others = _pairs(data, "test"), np.load(Path(data) / "negatives.npy")
    rows = users[test[:, 0]]
    score = np.einsum("uk,uk->u", rows, items[test[:, 1]]) + bias[test[:, 1]]
    rivals = np.einsum("uk,unk->un", rows, items[others]) + bias[others]
    place = (rivals >= score[:, None]).sum(1)
    hit = place < PLACES["sampled"]
    return {"recall": float(hit.mean()), "ndcg": float((hit / np.log2(place + 2)).mean())}


def _lists(path):
    import gzip

    rows = []
    with gzip.open(path, "rt") as file:
        for line in file:
            user, *items = line.split()
            rows += [(int(user), int(item)) for item in items]
    return np.unique(np.array(rows, np.int64), axis=0)


def _write(folder, parts, protocol, negatives=None):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in parts.items():
        np.save(folder / f"{name}.npy", pairs.astype(np.int32))
        with open(folder / f"{name}.csv", "w") as file:
            file.write("user,item,rating\n")
            file.writelines(f"{user},{item},1\n" for user, item in pairs.tolist())
    if negatives is not None:
        np.save(folder / "negatives.npy", negatives.astype(np.int32))
    pairs = np.concatenate([parts["train"], parts["test"]])
    users, items = (pairs.max(0) + 1).tolist()
    meta = {"users": users, "items": items, "train": len(parts["train"]), "test": len(parts["test"])}
    # Last: a folder with this file is complete.
    (folder / "meta.json").write_text(json.dumps({**meta, "protocol": protocol}, indent=1))
    return meta


def _meta(data):
    return json.loads((Path(data) / "meta.json").read_text())


def _pairs(data, part):
    """Users and items, by user."""
    path = Path(data) / f"{part}.npy"
    if path.exists():
        return np.load(path)
    columns = np.load(path.with_suffix(".npz"))
    return np.stack([columns["users"], columns["items"]], axis=1)


def _by_user(data, part):
    pairs = _pairs(data, part)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    bounds = np.searchsorted(pairs[:, 0], np.arange(_meta(data)["users"] + 1))
    return [pairs[start:end, 1] for start, end in zip(bounds, bounds[1:])]


def _tensors(path):
    """The tensors of a safetensors file."""
    types = {"F32": np.float32, "I64": np.int64, "U32": np.uint32, "U64": np.uint64, "U8": np.uint8}
    raw = Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, info in header.items():
        start, end = info["data_offsets"]
        values = np.frombuffer(raw[8 + size + start : 8 + size + end], types[info["dtype"]])
        tensors[name] = values.reshape(info["shape"])
    return tensors
