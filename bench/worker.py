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


def prepare(**arguments):
    import preparation

    return preparation.prepare(**arguments)


def make(**arguments):
    import preparation

    return preparation.make(**arguments)


def judge(**arguments):
    import judges

    return judges.judge(**arguments)


def ranking(task):
    """A task of `ranking.py`."""

    def run(**arguments):
        import ranking

        return getattr(ranking, task)(**arguments)

    return run


def _ratings(job, part):
    import preparation

    return preparation.Ratings.open(Path(job.data) / f"{part}.npz")


if __name__ == "__main__":
    task, arguments, answer = sys.argv[1:]
    tasks = {"fit": fit, "load": load, "prepare": prepare, "make": make, "judge": judge}
    tasks |= {name: ranking(name) for name in ("prepare_lists", "prepare_left_out", "popularity", "implicit", "gradus")}
    value = tasks[task](**json.loads(arguments))
    Path(answer).write_text(json.dumps(value))
