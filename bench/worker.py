"""The child process of a measurement: `worker.py TASK ARGUMENTS ANSWER` (JSON in, JSON file out)."""

import json
import math
import sys
import time
from pathlib import Path


def peak_memory():
    """Peak resident bytes of this process image alone (`getrusage` would include the parent's)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


def fit(peer, job):
    import peers
    from peers.base import Job

    peer, job = peers.by_key(peer), Job(**job)
    import numpy

    peer.load_library()
    imported = peak_memory()
    prepared = peer.prepare(_ratings(job, "train"), job)
    started = time.perf_counter()
    clock = peer.fit(prepared, job)
    seconds = time.perf_counter() - started
    peak = peak_memory()
    rmse = None
    if job.score and peer.explicit:
        test, meta = _ratings(job, "test"), job.meta
        predicted = numpy.asarray(peer.predict(test.users, test.items), dtype=numpy.float64)
        predicted = numpy.nan_to_num(predicted, nan=meta["mean"])
        predicted = predicted.clip(meta["low"], meta["high"])
        rmse = math.sqrt(numpy.mean((predicted - test.values) ** 2))
    return {"seconds": seconds, "clock": clock, "rmse": rmse, "imported": imported, "peak": peak}


def load(reader, path, threads):
    from peers import frames

    read = frames.reader(reader, threads)
    imported = peak_memory()
    started = time.perf_counter()
    rows = read(path)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "rows": rows, "imported": imported, "peak": peak_memory()}


def top(model, lists, n, threads):
    """implicit's lists from the factors in a gradus model, and how they compare with those in a CSV file."""
    import numpy
    import polars
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    imported = peak_memory()
    parts = _tensors(model)
    users, items = parts["user_factors"], parts["item_factors"]
    history = (numpy.ones(len(parts["history.indices"]), numpy.float32), parts["history.indices"].astype(numpy.int32))
    seen = csr_matrix((*history, parts["history.indptr"].astype(numpy.int64)), shape=(len(users), len(items)))
    peer = AlternatingLeastSquares(factors=users.shape[1], num_threads=threads)
    peer.user_factors, peer.item_factors = users, items
    started = time.perf_counter()
    found, _ = peer.recommend(numpy.arange(len(users)), seen, N=n, filter_already_liked_items=True)
    seconds = time.perf_counter() - started
    peak = peak_memory()

    frame = polars.read_csv(lists, columns=["user", "rank", "item"])
    ours = numpy.full((len(users), n), -1)
    at = numpy.searchsorted(parts["users.int"], frame["user"].to_numpy()), frame["rank"].to_numpy() - 1
    ours[at] = numpy.searchsorted(parts["items.int"], frame["item"].to_numpy())
    found = numpy.where(found < 0, -1, found)
    equal, rounding, wrong = 0, 0, 0
    for user, (a, b) in enumerate(zip(ours, found)):
        if (a == b).all():
            equal += 1
            continue
        # Sums of single precision in another order can swap what is nearly equal, and nothing else.
        scores = [numpy.sort(items[part[part >= 0]].astype(float) @ users[user].astype(float)) for part in (a, b)]
        close = len(scores[0]) == len(scores[1]) and numpy.allclose(*scores, rtol=1e-5, atol=1e-5)
        rounding, wrong = rounding + close, wrong + (not close)
    counts = {"users": len(users), "equal": equal, "rounding": rounding, "wrong": wrong}
    return {"seconds": seconds, "memory": peak - imported, **counts}


def _tensors(path):
    """The tensors of a model file (safetensors: a length, a JSON header, then the bytes)."""
    import numpy

    names = {"F32": numpy.float32, "U32": numpy.uint32, "U64": numpy.uint64, "I64": numpy.int64}
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") in names:
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(data[start:end], names[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def prepare(**arguments):
    import preparation

    return preparation.prepare(**arguments)


def make(**arguments):
    import preparation

    return preparation.make(**arguments)


def evaluate(**arguments):
    import evaluators

    return evaluators.evaluate(**arguments)


def ranking(task):
    """A task of `ranking.py`."""

    def run(**arguments):
        import ranking

        return getattr(ranking, task)(**arguments)

    return run


def linear(task):
    """A task of `linear.py`."""

    def run(**arguments):
        import linear

        return getattr(linear, task)(**arguments)

    return run


def cold(task):
    """A task of `cold.py`."""

    def run(**arguments):
        import cold

        return getattr(cold, task)(**arguments)

    return run


def _ratings(job, part):
    import preparation

    return preparation.Ratings.open(Path(job.data) / f"{part}.npz")


if __name__ == "__main__":
    task, arguments, answer = sys.argv[1:]
    tasks = {"fit": fit, "load": load, "prepare": prepare, "make": make, "evaluate": evaluate, "top": top}
    rankings = ("prepare_lists", "prepare_left_out", "prepare_liked")
    rankings += ("popularity", "ease", "lists", "implicit", "implicit_race", "gradus")
    rankings += ("implicit_tuned", "irspack_tuned", "irspack_rp3beta_tuned")
    tasks |= {name: ranking(name) for name in rankings}
    tasks |= {name: linear(name) for name in ("make_linear", "fit_linear", "judge_linear")}
    colds = ("prepare_cold", "gradus_ranked", "popular_ranked", "cmfrec_explicit", "cmfrec_ranked", "lightfm_ranked")
    tasks |= {name: cold(name) for name in (*colds, "make_features")}
    value = tasks[task](**json.loads(arguments))
    Path(answer).write_text(json.dumps(value))
