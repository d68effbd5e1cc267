"""Support vector machines beside scikit-learn's, which are LIBLINEAR and LIBSVM.

Both read the same arrays from one folder; the objective of both is printed beside the time of the fit.
"""

import json
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
EXAMPLE = ROOT / "target" / "release" / "examples" / "fit_time"

# Title, data, settings of gradus, the class of scikit-learn and its settings. The intercept is penalised, as
# LIBLINEAR does; its tolerance is as loose as gives the same objective to 1e-6.
PROBLEMS = [
    (
        "200k × 100 dense, squared hinge",
        "dense",
        ["penalize_intercept=true"],
        [("LinearSVC", {"dual": "auto", "tol": 1e-4}), ("LinearSVC", {"dual": False, "tol": 1e-6})],
    ),
    (
        "50k × 100k sparse, 3 M entries, squared hinge",
        "sparse",
        ["penalize_intercept=true"],
        [("LinearSVC", {"dual": "auto", "tol": 1e-4}), ("LinearSVC", {"dual": True, "tol": 1e-6})],
    ),
    (
        "50k × 100k sparse, 3 M entries, hinge",
        "sparse",
        ["penalize_intercept=true", "loss=hinge"],
        [("LinearSVC", {"dual": True, "loss": "hinge", "tol": 1e-4, "max_iter": 100_000})],
    ),
    (
        "a9a, RBF",
        "a9a",
        ["kernel=rbf", f"gamma={1 / 123!r}", "cache=200", "tol=0.001"],
        [("SVC", {"gamma": 1 / 123, "cache_size": 200, "tol": 1e-3})],
    ),
]


def run(options):
    import datasets
    import processes
    from progress import say
    from report import Section, number

    processes.run(
        ["cargo", "build", "--release", "--manifest-path", ROOT / "Cargo.toml"]
        + ["--workspace", "--examples"]
    )
    environment = {"RAYON_NUM_THREADS": str(options.threads), "OMP_NUM_THREADS": str(options.threads)}
    section = Section("Support vector machines", ["problem", "solver", "seconds", "objective", "slower than gradus"])
    for title, name, settings, peers in PROBLEMS:
        folder = datasets.WORK / f"svm-{name}"
        try:
            prepare(folder, name, datasets.DATA)
        except FileNotFoundError as absent:
            say(f"svm: {title}: skipped: {absent}")
            continue
        say(f"svm: {title}")
        child = processes.run([EXAMPLE, folder, "svm", *settings], environment, options.timeout)
        ours = json.loads(child.stdout)
        section.rows.append([title, "gradus", number(ours["seconds"]), f"{ours['objective']:.6f}", "1"])
        section.notes.append(f"{title}: gradus ends with {ours['certificate']}")
        for kind, arguments in peers:
            command = [sys.executable, __file__, folder, kind, json.dumps(arguments)]
            theirs = json.loads(processes.run(command, environment, options.timeout).stdout)
            shown = ", ".join(f"{key}={value}" for key, value in arguments.items())
            times = f"{theirs['seconds'] / ours['seconds']:.1f}×"
            objective = f"{theirs['objective']:.6f}" if theirs["objective"] is not None else "–"
            section.rows.append([title, f"{kind}({shown})", number(theirs["seconds"]), objective, times])
    yield section


def prepare(folder, name, data):
    """Writes the arrays of a problem, if they are not there."""
    import numpy as np
    import scipy.sparse as sp

    if (folder / "y.npy").exists():
        return
    rng = np.random.default_rng(1)
    if name == "dense":
        x = rng.standard_normal((200_000, 100))
        w = rng.standard_normal(100) / 10
        y = np.where(x @ w + 0.5 * rng.standard_normal(len(x)) + 0.2 > 0, 1, -1)
    elif name == "sparse":
        n, d, each = 50_000, 100_000, 60
        # Columns by a power law, as words are; rows of length 1.
        columns = np.minimum((d * rng.random((n, each)) ** 3).astype(np.int64), d - 1)
        rows = np.repeat(np.arange(n), each)
        x = sp.csr_matrix(((rng.random((n, each)) + 0.1).ravel(), (rows, columns.ravel())), shape=(n, d))
        x = (sp.diags(1 / np.sqrt(np.asarray(x.multiply(x).sum(1)).ravel())) @ x).tocsr()
        s = x @ rng.standard_normal(d)
        y = np.where(s + 0.3 * s.std() * rng.standard_normal(n) > 0, 1, -1)
    else:
        from sklearn.datasets import load_svmlight_file

        x, y = load_svmlight_file(str(data / "a9a" / "a9a.gz"), n_features=123)
    folder.mkdir(parents=True, exist_ok=True)
    if sp.issparse(x):
        x.sort_indices()
        np.save(folder / "data.npy", x.data)
        np.save(folder / "indices.npy", x.indices.astype(np.int64))
        np.save(folder / "indptr.npy", x.indptr.astype(np.int64))
        np.save(folder / "shape.npy", np.array(x.shape, dtype=np.int64))
    else:
        np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y.astype(np.float64))


def peer(folder, kind, arguments):
    """Fits a machine of scikit-learn to prepared arrays."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn import svm

    y = np.load(folder / "y.npy")
    if (folder / "x.npy").exists():
        x = np.load(folder / "x.npy")
    else:
        data, indices, indptr, shape = (np.load(folder / f"{name}.npy") for name in ["data", "indices", "indptr", "shape"])
        x = sp.csr_matrix((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=tuple(shape))
    model = getattr(svm, kind)(**arguments)
    started = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - started
    slack = np.maximum(0, 1 - y * model.decision_function(x))
    if kind == "LinearSVC":
        w = np.append(model.coef_.ravel(), model.intercept_)
        loss = slack @ slack if model.loss == "squared_hinge" else slack.sum()
        return {"seconds": seconds, "objective": 0.5 * w @ w + loss}
    # ½ β K β is half the sum of β (f − b) over the support vectors.
    beta = model.dual_coef_.toarray().ravel() if sp.issparse(model.dual_coef_) else model.dual_coef_.ravel()
    f = model.decision_function(x[model.support_]) - model.intercept_
    return {"seconds": seconds, "objective": 0.5 * float(beta @ f) + float(slack.sum())}


if __name__ == "__main__":
    print(json.dumps(peer(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))))
