"""Gaussian mixtures beside scikit-learn's: seconds to a likelihood, and how the cost grows."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORK = """
import json, sys, time, warnings
import numpy as np

warnings.simplefilter("ignore")
side, kind, n, k, d, iterations, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
rng = np.random.default_rng(0)
centres = 3 * rng.normal(size=(k, d))
shapes = rng.normal(size=(k, d, d)) / np.sqrt(d) + 0.3 * np.eye(d)
labels = rng.integers(k, size=n)
X = np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d))) + centres[labels]
# A fixed number of iterations, or (0) until an iteration gains less than 1e-3 for each sample.
stop = {"max_iter": iterations, "tol": 0.0} if iterations else {"max_iter": 1000, "tol": 1e-3}
if side == "gradus":
    import gradus
    from gradus.latent import GaussianMixture

    gradus.set_threads(threads)
    model = GaussianMixture(n_components=k, covariance_type=kind, random_state=0, **stop)
else:
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(k, covariance_type=kind, random_state=0, **stop)
started, cpu = time.perf_counter(), time.process_time()
model.fit(X)
seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
print(json.dumps({"seconds": seconds, "cpu": cpu, "loglik": float(np.mean(model.score_samples(X))), "iterations": int(model.n_iter_)}))
"""

SIDES = ["gradus", "sklearn"]
# The goal first: k = 16 full on 100,000 × 16.
GOAL = [("full", 100_000, 16, 16, 0), ("full", 100_000, 16, 16, 20)]
KINDS = [(kind, 100_000, 16, 16, 20) for kind in ("tied", "diag", "spherical")]
CURVES = {
    "samples": [("full", n, 16, 16, 20) for n in (10_000, 30_000, 100_000, 300_000)],
    "components": [("full", 100_000, k, 16, 20) for k in (4, 8, 16, 32, 64)],
    "features": [("full", 50_000, 16, d, 20) for d in (4, 8, 16, 32, 64)],
}


def run(options):
    import processes
    from report import Section, busy, number, wanted

    build = ["cargo", "build", "--release", "-p", "gradus-python"]
    processes.run([*build, "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    tables = {
        "Gaussian mixtures, 16 components of 100,000 × 16": GOAL + KINDS,
        **{f"Gaussian mixtures, cost against the number of {name}": rows for name, rows in CURVES.items()},
    }
    for title, rows in tables.items():
        head = ["covariances", "samples", "k", "features", "iterations", "side", "s", "CPU s", "log-likelihood", "times faster"]
        section = Section(title, head)
        # One round of each point of a curve: the suite should take minutes.
        repeat = 1 if "against" in title else options.repeat
        for case in rows:
            kind, n, k, d, iterations = case
            if not wanted(options, title, f"{kind}, {n:,} × {d}, k = {k}, {iterations or 'all'} iterations"):
                continue
            found = alternating(case, repeat, options.threads)
            for side in SIDES:
                one, peer = found[side], found["sklearn"]
                ratio = f"{peer['seconds'] / one['seconds']:.1f}" if side == "gradus" else ""
                cells = [kind, f"{n:,}", str(k), str(d), str(one["iterations"]), side]
                section.rows.append([*cells, number(one["seconds"]), number(one["cpu"]), f"{one['loglik']:.5f}", ratio])
        section.notes = [
            f"the best of {repeat} alternating rounds, {options.threads} threads, each fit in its own process, its k-means "
            f"start included; load average {busy():.1f}",
            "mean log-likelihood of a sample; fits of 20 iterations go on for as many, others until an iteration gains less than "
            "1e-3 for each sample",
        ]
        if section.rows:
            yield section


def alternating(case, repeat, threads):
    best = {}
    for _ in range(repeat):
        for side in SIDES:
            found = once(side, case, threads)
            before = best.setdefault(side, found)
            for key in ("seconds", "cpu"):
                before[key] = min(before[key], found[key])
    return best


def once(side, case, threads):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    env |= {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRADUS_THREADS")}
    command = [sys.executable, "-c", WORK, side, *map(str, case), str(threads)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout)
