"""Principal components and truncated SVD beside scikit-learn's: seconds to an accuracy."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORK = """
import json, sys, time
import numpy as np, scipy.sparse

what, method, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(0)
SHAPES = {"dense": (50_000, 500), "single": (50_000, 500), "columns": (50_000, 500), "long": (2_000_000, 16), "wide": (500, 50_000)}
k = 4 if what == "long" else 50
if what == "wide":
    X = rng.normal(size=(500, 500)) / np.arange(1, 501) @ rng.normal(size=(500, 50_000)) + 3
elif what != "sparse":
    n, d = SHAPES[what]
    X = rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) / np.arange(1, d + 1)[:, None]) + 3
    if what == "single":
        X = X.astype(np.float32)
    if what == "columns":
        X = np.asfortranarray(X)
else:
    X = scipy.sparse.random(20_000, 10_000, density=0.005, random_state=0, format="csr")
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    left, right = rng.gamma(0.3, size=(X.shape[0], 40)), rng.gamma(0.3, size=(X.shape[1], 40))
    X.data = np.log1p(3 * (left[rows] * right[X.indices]).sum(axis=1))
total = (X.data**2).sum() if what == "sparse" else X.var(axis=0, ddof=1, dtype=np.float64).sum()
side, name, *rest = method.split(" ")
if side == "gradus":
    import gradus
    from gradus.latent import Pca

    gradus.set_threads(threads)
    tol = {"tol": float(rest[0])} if rest else {}
    model = Pca(n_components=k, solver=name, center=what != "sparse", random_state=0, **tol)
else:
    from sklearn.decomposition import PCA, TruncatedSVD

    if what != "sparse":
        model = PCA(k, svd_solver=name, random_state=0)
    else:
        model = TruncatedSVD(k, algorithm=name, n_iter=int(rest[0]) if rest else 5, random_state=0)
started, cpu = time.perf_counter(), time.process_time()
model.fit(X)
seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
explained = (model.singular_values_.astype(np.float64) ** 2).sum() if what == "sparse" else model.explained_variance_.astype(np.float64).sum()
print(json.dumps({"seconds": seconds, "cpu": cpu, "share": explained / total}))
"""

# The fastest solvers of each, and of the first table all of them.
FAST = ["gradus auto", "sklearn covariance_eigh", "sklearn auto"]
TABLES = {
    "PCA, 50 components of 50,000 × 500": (
        "dense",
        ["gradus covariance", "gradus randomized", "sklearn covariance_eigh", "sklearn randomized", "sklearn full"],
    ),
    "PCA, 50 components of 50,000 × 500, single precision": ("single", FAST),
    "PCA, 50 components of 50,000 × 500, column after column": ("columns", FAST),
    "PCA, 4 components of 2,000,000 × 16": ("long", FAST),
    "PCA, 50 components of 500 × 50,000": ("wide", ["gradus auto", "sklearn auto", "sklearn full"]),
    "Truncated SVD, 50 values of 20,000 × 10,000, 1,000,000 entries": (
        "sparse",
        [
            "gradus randomized 1e-2",
            "gradus randomized 2e-3",
            "gradus randomized 1e-3",
            "gradus randomized 1e-6",
            "sklearn randomized 5",
            "sklearn randomized 15",
            "sklearn arpack",
        ],
    ),
}
# Shares that differ by less are alike: rounding, in single precision.
ALIKE = 1e-6


def run(options):
    import processes
    from report import Section, busy, number, ratio, wanted

    processes.run(["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    for title, (what, methods) in TABLES.items():
        methods = [method for method in methods if wanted(options, title, method)]
        if not methods:
            continue
        best = {}
        for _ in range(options.repeat):
            for method in methods:
                found = once(what, method, options.threads)
                before = best.setdefault(method, found)
                best[method] = {key: min(before[key], found[key]) for key in found}
        columns = ["method", "s", "CPU s", "share of the squares that is lost", "÷ the fastest of gradus that loses no more"]
        section = Section(title, columns)
        most = max(found["share"] for found in best.values())
        # One thread does not wait for others: its own seconds hold on a busy machine as well.
        clock = "cpu" if options.threads == 1 else "seconds"
        for method, found in best.items():
            lost = 1 - found["share"] / most
            row = [method, number(found["seconds"]), number(found["cpu"]), f"{max(lost, 0):.1e}", "–"]
            ours = [own for name, own in best.items() if name.startswith("gradus") and own["share"] >= found["share"] - ALIKE]
            if not method.startswith("gradus") and ours:
                row[-1] = ratio(found[clock], min(own[clock] for own in ours))
            section.rows.append(row)
        section.notes = [
            f"the best of {options.repeat} alternating rounds, {options.threads} threads, each fit in its own process; load "
            f"average {busy():.1f}",
            "the share is that of the best of the table; the number of a method is gradus's `tol`, scikit-learn's `n_iter`; the "
            + ("ratio is of CPU seconds" if options.threads == 1 else "ratio is of seconds"),
        ]
        yield section
    if options.gradus and wanted(options, "Incremental PCA", "a file of 4 GB"):
        yield large(options)


# Rows and columns of the file that is read once: 4 GB of double precision.
ROWS, COLUMNS = 1_000_000, 500


def large(options, rows=ROWS):
    """50 components of a file that is not held in memory, beside reading the file."""
    import resource
    import tempfile
    import time

    import peers
    import processes
    from datasets import WORK as FOLDER
    from progress import say
    from report import Section, busy, mebibytes, median, number, ratio

    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "pca-large.npy"
    times = {what: {"read": [], "fit": []} for what in ("from the disk", "from the page cache")}
    peak = 0
    try:
        say("pca: making a file of 4 GB")
        processes.run([sys.executable, "-c", MAKE, path, str(rows), str(COLUMNS)])
        size = path.stat().st_size
        for turn in range(options.repeat):
            for what, found in times.items():
                for step in ("read", "fit"):
                    say(f"pca: large, round {turn + 1} of {options.repeat}, {what}, {step}")
                    if what == "from the disk":
                        forget(path)
                    if step == "read":
                        started = time.perf_counter()
                        with open(path, "rb", buffering=0) as file:
                            block = bytearray(1 << 24)
                            while file.readinto(block):
                                pass
                        found[step].append(time.perf_counter() - started)
                        continue
                    with tempfile.TemporaryDirectory() as scratch:
                        command = [peers.by_key("gradus").binary, "fit", "pca", path, "--n-components", 50, "--quiet"]
                        child = processes.run([*command, "-o", Path(scratch) / "m.gradus", "--threads", options.threads])
                    found[step].append(child.wall)
                    # A peak below that of this process is not known.
                    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
                    peak = max(peak, child.peak or own)
    finally:
        path.unlink(missing_ok=True)
    section = Section(
        f"Incremental PCA, 50 components of {rows:,} × {COLUMNS} in a file of {size / 1e9:.1f} GB",
        ["the file comes", "reading it, s", "gradus fit pca, s", "fit ÷ reading"],
    )
    for what, found in times.items():
        read, fit = median(found["read"]), median(found["fit"])
        section.rows.append([what, number(read), number(fit), ratio(fit, read)])
    section.notes = [
        f"{options.threads} threads, medians of {options.repeat} rounds, load average {busy():.1f}; the fit is the whole process; "
        f"its peak memory is at most {mebibytes(peak)} MiB",
        "reading is one thread and one buffer of 16 MiB; before each reading from the disk the pages are dropped (posix_fadvise)",
    ]
    return section


MAKE = """
import sys
import numpy as np
path, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
mix = rng.normal(size=(60, columns)) / np.arange(1, 61)[:, None]
file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(rows, columns))
for at in range(0, rows, 20_000):
    part = min(20_000, rows - at)
    file[at : at + part] = rng.normal(size=(part, 60)) @ mix + 0.1 * rng.standard_normal((part, columns), dtype=np.float32) + 3
file.flush()
"""


def forget(path):
    """Drops the pages of a file from the cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def once(what, method, threads):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    env |= {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRADUS_THREADS")}
    command = [sys.executable, "-c", WORK, what, method, str(threads)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout)
