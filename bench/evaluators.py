"""Rankings evaluated by other libraries, from the tensors of a gradus model. Runs in the worker."""

import json
from pathlib import Path

import numpy as np


def evaluate(model, folder, at, threshold):
    """The measures of a latent factor model on `folder`/test.csv, by each evaluator: {evaluator: {measure@k: value}}."""
    ranking = Ranking(model, folder, threshold)
    return {
        "pytrec_eval": pytrec_eval(ranking, at),
        "implicit": implicit(ranking, at),
        "numpy": numpy(ranking, at),
    }


class Ranking:
    """Scores, training and relevant items of every user who can be evaluated; nothing here comes from gradus' own code."""

    def __init__(self, model, folder, threshold):
        from scipy.sparse import csr_matrix

        tensors, header = read(model)
        users, items = tensors["users.int"], tensors["items.int"]
        train, test = (_columns(Path(folder) / f"{part}.csv") for part in ("train", "test"))
        shape = (len(users), len(items))

        def matrix(rows):
            user, item, value = rows
            known = np.isin(user, users) & np.isin(item, items)
            places = np.searchsorted(users, user[known]), np.searchsorted(items, item[known])
            return csr_matrix((value[known], places), shape=shape)

        self.train = matrix(train)
        relevant = test[2] >= threshold
        self.relevant = matrix([column[relevant] for column in test])
        self.evaluated = np.flatnonzero(np.diff(self.relevant.indptr))
        single = {name: tensors[name].astype(np.float64) for name in ("user_bias", "item_bias")}
        self.user_factors = tensors["user_factors"].astype(np.float64)
        self.item_factors = tensors["item_factors"].astype(np.float64)
        self.constant = header["model"]["mean"] + single["user_bias"][:, None]
        self.item_bias = single["item_bias"]
        self.longest = 100

    def scores(self, user):
        """All items; what the user has in training is minus infinity."""
        scores = self.constant[user] + self.item_bias + self.item_factors @ self.user_factors[user]
        scores[self.train[user].indices] = -np.inf
        return scores

    def lists(self):
        """For each evaluated user the best items, best first, and the relevant ones."""
        for user in self.evaluated:
            scores = self.scores(user)
            yield user, np.argsort(-scores, kind="stable")[: self.longest], self.relevant[user].indices


def pytrec_eval(ranking, at):
    import pytrec_eval as library

    cuts = ",".join(map(str, at))
    wanted = {f"P.{cuts}", f"recall.{cuts}", f"ndcg_cut.{cuts}", f"map_cut.{cuts}", f"success.{cuts}", "recip_rank"}
    found, relevant = {}, {}
    for user, best, good in ranking.lists():
        # Places instead of scores: trec_eval would round those to single precision and reorder.
        found[str(user)] = {str(item): float(-place) for place, item in enumerate(best)}
        relevant[str(user)] = {str(item): 1 for item in good}
    answers = library.RelevanceEvaluator(relevant, wanted).evaluate(found)
    values = {}
    for k in at:
        for ours, theirs in (("precision", "P"), ("recall", "recall"), ("ndcg", "ndcg_cut"), ("hit_rate", "success")):
            values[f"{ours}@{k}"] = _mean(answer[f"{theirs}_{k}"] for answer in answers.values())
        # trec_eval divides by all relevant items; gradus by those that a list of k can hold.
        counts = {user: len(items) for user, items in relevant.items()}
        values[f"map@{k}"] = _mean(
            answer[f"map_cut_{k}"] * counts[user] / min(k, counts[user]) for user, answer in answers.items()
        )
        # It knows no cut for the reciprocal rank: a first hit behind place k counts nothing.
        first = (answer["recip_rank"] for answer in answers.values())
        values[f"mrr@{k}"] = _mean(value if value > 1 / (k + 0.5) else 0.0 for value in first)
    return values


def implicit(ranking, at):
    from implicit.evaluation import ranking_metrics_at_k

    lists = {user: best for user, best, _ in ranking.lists()}

    class Model:
        def recommend(self, users, user_items, N, **_):  # noqa: N803
            ids = np.array([lists[user][:N] for user in users], dtype=np.int32)
            return ids, np.zeros(ids.shape, dtype=np.float32)

    values = {}
    for k in at:
        answer = ranking_metrics_at_k(
            Model(), ranking.train, ranking.relevant, K=k, show_progress=False, num_threads=1
        )
        # Its `precision` divides by min(k, relevant), and its `auc` guesses what is behind place k.
        values |= {f"map@{k}": answer["map"], f"ndcg@{k}": answer["ndcg"]}
    return values


def numpy(ranking, at):
    """What the libraries do not measure: the full area, by ranks with ties shared, coverage and novelty."""
    from scipy.stats import rankdata

    users = (np.diff(ranking.train.indptr) > 0).sum()
    known = np.bincount(ranking.train.indices, minlength=ranking.train.shape[1])
    bits = -np.log2(np.maximum(known, 1) / users)
    areas, shown = [], {k: [] for k in at}
    for user, best, good in ranking.lists():
        scores = ranking.scores(user)
        candidates = np.isfinite(scores)
        ranks = rankdata(scores[candidates])
        is_good = np.isin(np.flatnonzero(candidates), good)
        n = is_good.sum()
        others = len(ranks) - n
        if others:
            areas.append((ranks[is_good].sum() - n * (n + 1) / 2) / (n * others))
        for k in at:
            shown[k].append(best[:k])
    values = {"auc": _mean(areas)}
    for k in at:
        values[f"coverage@{k}"] = len(np.unique(np.concatenate(shown[k]))) / len(bits)
        values[f"novelty@{k}"] = _mean(bits[best].mean() for best in shown[k])
    return values


def read(path):
    """Tensors and header of a model file (safetensors: length of the JSON, the JSON, the data)."""
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    described = json.loads(data[8 : 8 + length])
    header = json.loads(described.pop("__metadata__")["gradus"])
    types = {"F32": np.float32, "I64": np.int64, "U32": np.uint32, "U64": np.uint64, "U8": np.uint8}
    tensors = {}
    for name, about in described.items():
        start, end = about["data_offsets"]
        raw = np.frombuffer(data[8 + length + start : 8 + length + end], dtype=types[about["dtype"]])
        tensors[name] = raw.reshape(about["shape"])
    return tensors, header


def _columns(path):
    import polars

    frame = polars.read_csv(path)
    return [frame[name].to_numpy() for name in ("user", "item", "rating")]


def _mean(values):
    return float(np.mean(np.fromiter(values, dtype=np.float64)))
