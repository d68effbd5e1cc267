"""gradus: everything this benchmark knows of its command line is in this file."""

import json
import os
import tempfile
from pathlib import Path

import processes
from peers.base import WORKER, Peer, Result

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "target" / "release" / "gradus"


class Gradus(Peer):
    name = "gradus"
    has_clock = True

    def __init__(self, key="gradus", model="als", solver="ALS, Cholesky", iteration="iteration"):
        self.key, self.model, self.solver, self.iteration = key, model, solver, iteration
        self.comparable = model == "als"

    def environment(self, threads):
        return {}

    def build(self):
        """Builds the program, or takes the one that GRADUS_BIN names. Raises `processes.Failed`."""
        if "GRADUS_BIN" not in os.environ:
            processes.run(["cargo", "build", "--release", "--manifest-path", ROOT / "Cargo.toml", "-p", "gradus-cli"])
        if not self.binary.exists():
            raise processes.Failed(f"there is no {self.binary.name} program to run")

    @property
    def binary(self):
        return Path(os.environ.get("GRADUS_BIN", BINARY))

    def make(self, path, users, items, count, seed):
        """Writes synthetic ratings with power-law popularity and planted factors."""
        self._call(
            ["make", "ratings", "--users", users, "--items", items, "--count", count]
            + ["--seed", seed, "--ids", "integer", "-o", path]
        )

    def info(self, path, threads, timeout=None):
        """Loads a file into CSR and CSC: (answer, wall seconds, peak bytes)."""
        answer, child = self._json(["info", path, "--threads", threads], timeout)
        return answer, child.wall, child.peak or answer.get("peak_rss_bytes")

    def run(self, job, timeout=None):
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "m.gradus"
            answer, child = self._json(self._fit(job, model), timeout)
            rmse = self._json(["evaluate", model, f"{job.data}/test.csv"])[0]["rmse"] if job.score else None
        report = answer["report"]
        trace = [(step["iteration"], step["seconds"], step.get("validation")) for step in report["trace"]]
        # Nothing is taken off for the empty program: a few MB, which count against gradus.
        memory = child.peak or answer["peak_rss_bytes"]
        return Result(report["seconds"], trace, rmse, memory, child.wall)

    def score(self, model, folder, settings, threads, timeout=None):
        """Fits a model of ratings, and gives its held-out RMSE and the seconds of the fit."""
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "m.gradus"
            words = [word for name, value in settings.items() for word in (f"--{name}", value)]
            command = ["fit", model, f"{folder}/train.csv", "-o", path, "--threads", threads, "--quiet", *words]
            seconds = self._json(command, timeout)[0]["report"]["seconds"]
            return self._json(["evaluate", path, f"{folder}/test.csv"])[0]["rmse"], seconds

    def select(self, path, settings, threads, timeout=None, model=None):
        """Tries settings on a tenth held out of a file, and gives the answer of the program."""
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return self._json(
            ["select", model or self.model, path, *words, "--holdout", 0.1, "--threads", threads], timeout
        )[0]

    def rank(self, folder, model, at, threshold, threads, timeout=None):
        """Fits with the defaults and judges the ranking: ({measure@k: mean}, seconds of the judging)."""
        self._call(["fit", "als", f"{folder}/train.csv", "-o", model, "--threads", threads, "--quiet"], timeout)
        lengths = ",".join(map(str, at))
        command = ["evaluate", model, f"{folder}/test.csv", "--ranking", "--auc", "--at", lengths]
        answer, child = self._json([*command, "--threshold", threshold, "--threads", threads], timeout)
        means = {"auc": answer["ranking"]["auc"]["mean"]}
        for row in answer["ranking"]["at"]:
            for name in ("precision", "recall", "ndcg", "map", "mrr", "hit_rate", "novelty"):
                means[f"{name}@{row['k']}"] = row[name]["mean"]
            means[f"coverage@{row['k']}"] = row["coverage"]
        return means, child.wall

    def trace(self, job, timeout=None):
        """A fit that scores the held-out ratings after each iteration; its clock is not used."""
        with tempfile.TemporaryDirectory() as folder:
            command = [*self._fit(job, Path(folder) / "m.gradus"), "--validation", f"{job.data}/test.csv"]
            answer, _ = self._json(command, timeout)
        return [(step["iteration"], step["validation"]) for step in answer["report"]["trace"]]

    def rank_interest(self, folder, settings, threads, timeout=None):
        """Fits signs of interest, and has the model's ranking judged by `ranking.py`."""
        with tempfile.TemporaryDirectory() as scratch:
            model = Path(scratch) / "m.gradus"
            seconds = self._fit_interest(folder, model, settings, threads, timeout)["seconds"]
            arguments = {"data": str(folder), "model": str(model)}
            judged, _ = processes.worker(WORKER, "gradus", arguments, super().environment(threads), timeout)
            return {"seconds": seconds, **judged}

    def rank_lists(self, name, folder, settings, threads, timeout=None):
        """Fits a model of any kind to signs of interest; its lists for all users are judged by `ranking.py`."""
        with tempfile.TemporaryDirectory() as scratch:
            model, lists = Path(scratch) / "m.gradus", Path(scratch) / "lists.csv"
            seconds = self._fit_interest(folder, model, settings, threads, timeout, name)["seconds"]
            command = ["recommend", model, "--all", "-n", 20, "-o", lists, "--threads", threads, "--quiet"]
            wall = self._call(command, timeout).wall
            arguments = {"data": str(folder), "path": str(lists)}
            judged, _ = processes.worker(WORKER, "lists", arguments, super().environment(threads), timeout)
            return {"seconds": seconds, "lists": wall, **judged}

    def interest_seconds(self, folder, settings, threads, timeout=None):
        """Seconds of a fit of signs of interest, by its own clock."""
        with tempfile.TemporaryDirectory() as scratch:
            return self._fit_interest(folder, Path(scratch) / "m.gradus", settings, threads, timeout)["seconds"]

    def interest_trace(self, folder, settings, threads, timeout=None):
        """(objective, seconds) after each iteration."""
        with tempfile.TemporaryDirectory() as scratch:
            report = self._fit_interest(folder, Path(scratch) / "m.gradus", settings, threads, timeout)
        return [(step["objective"], step["seconds"]) for step in report["trace"]]

    def _fit_interest(self, folder, model, settings, threads, timeout, name="ials"):
        command = ["fit", name, f"{folder}/train.csv", "-o", model, "--threads", threads, "--quiet"]
        for name, value in settings.items():
            flag = f"--{name.replace('_', '-')}"
            command += [flag] if value is True else [flag, value]
        return self._json(command, timeout)[0]["report"]

    def fit_without_biases(self, job, model, timeout=None):
        """Factors that a plain product of matrices can serve, too."""
        self._call([*self._fit(job, model), "--no-biases"], timeout)

    def top(self, model, lists, n, threads, timeout=None):
        """The best `n` items of every user, written to a CSV file."""
        answer, child = self._json(["recommend", model, "--all", "-n", n, "-o", lists, "--threads", threads], timeout)
        return {"seconds": answer["choosing_seconds"], "wall": child.wall, "memory": child.peak}

    def _fit(self, job, model):
        command = ["fit", self.model, f"{job.data}/train.csv", "-o", model, "--threads", job.threads, "--quiet"]
        if self.model == "bayes":
            command += ["--implicit-side", "both" if job.implicit else "none"]
            if not job.defaults:
                command += ["--rank", job.rank, "--max-iter", job.iterations, "--seed", job.seed]
        elif self.model == "nmfratings" and not job.defaults:
            command += ["--no-biases", "--rank", job.rank, "--max-iter", job.iterations, "--seed", job.seed]
        elif not job.defaults:
            if self.model == "sgd":
                command += ["--schedule", "adaptive", "--learning-rate", 0.1]
            command += ["--rank", job.rank, "--regularization", job.regularization, "--scaling", job.scaling]
            command += ["--max-iter", job.iterations, "--tol", 0, "--seed", job.seed]
        return command

    def _json(self, arguments, timeout=None):
        child = self._call([*arguments, "--json"], timeout)
        return json.loads(child.stdout), child

    def _call(self, arguments, timeout=None):
        return processes.run([self.binary, *arguments], timeout=timeout)
