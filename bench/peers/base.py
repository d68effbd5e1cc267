"""What a peer is: one library with one solver, run in a process of its own."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import processes

WORKER = Path(__file__).resolve().parent.parent / "worker.py"

# Every pool that a library might start by itself is held to one thread; the peer's own threads are asked for by name.
ONE_THREAD = {
    name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
}


@dataclass(frozen=True)
class Job:
    """One fit. The data set is a folder made by `datasets.py`."""

    data: str
    iterations: int = 10
    rank: int = 64
    regularization: float = 0.05
    scaling: str = "count"  # "count": λ·(ratings of the row); "none": λ
    threads: int = 1
    seed: int = 1
    score: bool = True  # also predict the held-out ratings
    implicit: bool = False  # bayes, myFM: the lists of what was rated count as well
    defaults: bool = False  # the library's own hyper-parameters; only data and threads are given

    @property
    def meta(self):
        return json.loads((Path(self.data) / "meta.json").read_text())


@dataclass(frozen=True)
class Result:
    """What one fit gave. `trace` is cumulative: (iteration, seconds of fitting, held-out RMSE or None)."""

    seconds: float
    trace: list
    rmse: float | None
    memory: int  # peak bytes above the imported library
    wall: float

    def seconds_at(self, iteration):
        return next((seconds for at, seconds, _ in self.trace if at == iteration), None)


class Peer:
    """Base of all peers. A subclass imports its library inside `load_library`, never at the top:
    the harness stays small, so that the kernel's peak of a child is the child's own."""

    key = ""
    name = ""
    solver = ""
    iteration = "iteration"
    explicit = True  # minimises the squared error of the ratings, so has an RMSE
    has_clock = False  # says when each iteration ended; others are fitted with two counts and differenced
    comparable = True  # one iteration is the same amount of work as one of gradus
    largest = None  # more ratings than this would take hours
    note = ""

    def environment(self, threads):
        # OpenMP's threads spin while they wait. When anything else wants the core that hurts only the peers that use
        # it (up to 50 times on small data), so they sleep instead; set the variable yourself to measure otherwise.
        wait = os.environ.get("OMP_WAIT_POLICY", "passive")
        return {**ONE_THREAD, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": wait}

    # In the worker process.

    def load_library(self):
        raise NotImplementedError

    def prepare(self, ratings, job):
        """Brings the ratings into the form that the library takes; not timed."""
        return ratings

    def fit(self, prepared, job):
        """Fits, and returns the clock of each iteration [(iteration, seconds)] or [] without one."""
        raise NotImplementedError

    def predict(self, users, items):
        raise NotImplementedError

    # In the harness.

    def run(self, job, timeout=None):
        """One fit in a fresh process."""
        answer, child = processes.worker(
            WORKER, "fit", {"peer": self.key, "job": asdict(job)}, self.environment(job.threads), timeout
        )
        trace = [(at, seconds, None) for at, seconds in answer["clock"]]
        trace = trace or [(job.iterations, answer["seconds"], answer["rmse"])]
        return Result(answer["seconds"], trace, answer["rmse"], answer["peak"] - answer["imported"], child.wall)
