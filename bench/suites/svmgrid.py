"""Linear and kernel machines over a grid of shapes, beside scikit-learn's.

For each problem: gradus with its default solver and with each solver named, and scikit-learn; seconds of the fit and
the excess of the objective over the best of all. The choice of the default solver (`svm/auto.rs`) rests on this table.
`python bench/suites/svmgrid.py [part of a title] …` prints the rows of the problems whose title holds one of the parts.
"""

import json
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
EXAMPLE = ROOT / "target" / "release" / "examples" / "fit_time"
# A fit that takes longer than this is given up.
LIMIT = 100

# Title, rows, columns, density (1 is dense, `news` the texts of 20 Newsgroups).
SHAPES = [
    ("100×5", 100, 5, 1),
    ("1,000×20", 1000, 20, 1),
    ("1,000×500", 1000, 500, 1),
    ("10,000×50", 10_000, 50, 1),
    ("200,000×10", 200_000, 10, 1),
    ("20,000×500", 20_000, 500, 1),
    ("100×20,000", 100, 20_000, 1),
    ("500×5,000", 500, 5000, 1),
    ("2,000×5,000", 2000, 5000, 1),
    ("5,000×2,000", 5000, 2000, 1),
    ("2,000×20,000 sparse", 2000, 20_000, 0.005),
    ("20,000×2,000 sparse", 20_000, 2000, 0.01),
    ("20,000×100 sparse", 20_000, 100, 0.1),
    ("20 Newsgroups", 0, 0, "news"),
]
KINDS = {
    "squared hinge": ("svm", ["penalize_intercept=true"], "LinearSVC", {"dual": "auto"}),
    "hinge": ("svm", ["penalize_intercept=true", "loss=hinge"], "LinearSVC", {"loss": "hinge", "dual": True}),
    "tube": ("svr", ["penalize_intercept=true", "c=1", "epsilon=0.1"], "LinearSVR", {"epsilon": 0.1, "dual": "auto"}),
    "squared tube": (
        "svr",
        ["penalize_intercept=true", "c=1", "epsilon=0.1", "loss=squared_insensitive"],
        "LinearSVR",
        {"epsilon": 0.1, "loss": "squared_epsilon_insensitive", "dual": "auto"},
    ),
}
KERNELS = [
    ("rbf 200×5", 200, 5, "svm"),
    ("rbf 2,000×20", 2000, 20, "svm"),
    ("rbf 10,000×50", 10_000, 50, "svm"),
    ("rbf 2,000×500", 2000, 500, "svm"),
    ("rbf tube 2,000×20", 2000, 20, "svr"),
]


def make(folder, n, d, density, classes):
    """Writes the arrays of a shape, if they are not there."""
    import numpy as np
    import scipy.sparse as sp

    if (folder / "y.npy").exists():
        return
    rng = np.random.default_rng(n + d)
    if density == "news":
        x, y = newsgroups()
        if not classes:
            y = np.log1p(np.asarray(x.sum(1)).ravel())
    else:
        x = sp.random(n, d, density, "csr", random_state=rng, data_rvs=rng.standard_normal) if density < 1 else rng.standard_normal((n, d))
        s = x @ (rng.standard_normal(d) / np.sqrt(d * density))
        s = s + 0.3 * rng.standard_normal(n)
        y = np.where(s > 0.1, 1, -1) if classes else s
    folder.mkdir(parents=True, exist_ok=True)
    if sp.issparse(x):
        x.sort_indices()
        np.save(folder / "data.npy", x.data)
        np.save(folder / "indices.npy", x.indices.astype(np.int64))
        np.save(folder / "indptr.npy", x.indptr.astype(np.int64))
        np.save(folder / "shape.npy", np.array(x.shape, dtype=np.int64))
    else:
        np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.asarray(y, dtype=np.float64))


def newsgroups():
    """tf-idf of the training texts of 20 Newsgroups, and the number of the group of each."""
    import gzip
    import os

    from sklearn.feature_extraction.text import TfidfVectorizer

    data = Path(os.environ.get("GRADUS_DATA", ROOT.parent / "shared" / "data"))
    path = data / "20newsgroups" / "20newsgroups-train.tab.gz"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [line.split("\t", 1) for line in file.read().splitlines()[3:]]
    groups, texts = zip(*rows)
    names = sorted(set(groups))
    return TfidfVectorizer(sublinear_tf=True).fit_transform(texts), [names.index(group) for group in groups]


def load(folder):
    import numpy as np
    import scipy.sparse as sp

    y = np.load(folder / "y.npy")
    if (folder / "x.npy").exists():
        return np.load(folder / "x.npy"), y
    data, indices, indptr, shape = (np.load(folder / f"{name}.npy") for name in ["data", "indices", "indptr", "shape"])
    return sp.csr_matrix((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=tuple(shape)), y


def objective(x, y, loss, w, b, epsilon=0.1):
    """The objective with C = 1 and a penalised intercept, of one machine or of one for each class."""
    import numpy as np

    w, b = np.atleast_2d(w), np.atleast_1d(b)
    scores = x @ w.T + b
    if "tube" in loss:
        slack = np.maximum(0, abs(y[:, None] - scores) - epsilon)
    elif len(b) == 1:
        slack = np.maximum(0, 1 - np.where(y == y.max(), 1, -1)[:, None] * scores)
    else:
        slack = np.maximum(0, 1 - np.where(y[:, None] == np.unique(y)[None, :], 1, -1) * scores)
    return 0.5 * ((w**2).sum() + (b**2).sum()) + ((slack**2).sum() if "squared" in loss else slack.sum())


def ours(folder, kind, settings, threads):
    """Seconds, and what gradus printed; None if it took too long."""
    import os
    import subprocess

    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    command = [str(EXAMPLE), str(folder), kind, *settings, "coefficients=true"]
    best = None
    for _ in range(3):
        try:
            child = subprocess.run(command, env=environment, capture_output=True, timeout=LIMIT, check=True)
        except subprocess.TimeoutExpired:
            return None
        found = json.loads(child.stdout)
        if best is None or found["seconds"] < best["seconds"]:
            best = found
        if found["seconds"] > 1:
            break
    return best


def theirs(x, y, name, arguments):
    """Seconds and the model of scikit-learn."""
    import warnings

    from sklearn import svm

    best, model = None, None
    for _ in range(3):
        model = getattr(svm, name)(**arguments)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, y)
        seconds = time.perf_counter() - started
        best = seconds if best is None else min(best, seconds)
        if seconds > 1:
            break
    return best, model


def linear_rows(work, threads, wanted=()):
    """A row for each problem: title, seconds of every contestant, excess of the objective of every one."""
    import numpy as np

    for loss, (kind, settings, name, arguments) in KINDS.items():
        for title, n, d, density in SHAPES:
            full = f"{title}, {loss}"
            if wanted and not any(part in full for part in wanted):
                continue
            folder = work / f"svmgrid-{kind}-{title.replace(',', '').replace('×', 'x').replace(' ', '-')}"
            try:
                make(folder, n, d, density, kind == "svm")
            except FileNotFoundError as absent:
                yield full, None, str(absent)
                continue
            x, y = load(folder)
            seconds, objectives = {}, {}
            for solver in ["auto", "primal", "dual"]:
                found = ours(folder, kind, [*settings, f"solver={solver}"], threads)
                if found is not None:
                    seconds[solver] = found["seconds"]
                    k = len(found["intercepts"])
                    w = np.array(found["coefficients"]).reshape(k, -1)
                    objectives[solver] = objective(x, y, loss, w, found["intercepts"])
            for tol in [1e-4, 1e-6]:
                peer, model = theirs(x, y, name, {**arguments, "tol": tol, "max_iter": 20_000})
                seconds[f"{name} {tol:g}"] = peer
                objectives[f"{name} {tol:g}"] = objective(x, y, loss, model.coef_, model.intercept_)
            least = min(objectives.values())
            yield full, seconds, {key: value / least - 1 for key, value in objectives.items()}


def kernel_rows(work, threads, wanted=()):
    """A row for each kernel problem: title, seconds of gradus and of scikit-learn."""
    for title, n, d, kind in KERNELS:
        if wanted and not any(part in title for part in wanted):
            continue
        folder = work / f"svmgrid-{title.replace(',', '').replace('×', 'x').replace(' ', '-')}"
        make(folder, n, d, 1, kind == "svm")
        x, y = load(folder)
        settings = ["kernel=rbf", "tol=0.001"] + ([] if kind == "svm" else ["c=1", "epsilon=0.1"])
        found = ours(folder, kind, settings, threads)
        peer, _ = theirs(x, y, "SVC" if kind == "svm" else "SVR", {"tol": 1e-3})
        yield title, {"gradus": found and found["seconds"], "scikit-learn": peer}, {}


def run(options):
    import datasets
    import processes
    from progress import say
    from report import Section, number

    processes.run(
        ["cargo", "build", "--release", "--manifest-path", ROOT / "Cargo.toml", "-p", "gradus-linear", "--examples"]
    )
    section = Section("Machines over shapes", ["problem", "seconds", "objective above the best"])
    rows = [*linear_rows(datasets.WORK, options.threads), *kernel_rows(datasets.WORK, options.threads)]
    for title, seconds, excess in rows:
        if seconds is None:
            say(f"svmgrid: {title}: skipped: {excess}")
            continue
        shown = ", ".join(f"{key} {number(value)}" for key, value in seconds.items())
        section.rows.append([title, shown, ", ".join(f"{key} {value:.0e}" for key, value in excess.items())])
    yield section


if __name__ == "__main__":
    work = BENCH / "work"
    for rows in (linear_rows, kernel_rows):
        for title, seconds, excess in rows(work, 2, sys.argv[1:]):
            if seconds is None:
                print(f"{title}: skipped: {excess}")
                continue
            shown = "  ".join(f"{key} {value:.4f}" for key, value in seconds.items())
            print(f"{title:32} {shown}  | " + "  ".join(f"{key} {value:.0e}" for key, value in excess.items()), flush=True)
