"""Ridge with its path and logistic regression beside scikit-learn, to one objective.

Both read the same arrays from one folder; the objective of both is computed here, from the coefficients.
"""

import json
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
EXAMPLE = ROOT / "target" / "release" / "examples" / "fit_time"

# Title, data, model and settings of gradus, the classes of scikit-learn and their settings. λ is that of gradus.
PROBLEMS = [
    ("ridge, λ = 0.01", "linear-dense", "ridge", {"regularization": 0.01}, [("Ridge", {})]),
    ("ridge, 100 penalties, leave-one-out", "linear-dense", "ridge", {"n_lambdas": 100}, [("RidgeCV", {})]),
    (
        "logistic, L2, λ = 1e-4",
        "svm-dense",
        "logistic",
        {"regularization": 1e-4, "tol": 1e-5},
        [
            ("LogisticRegression", {"solver": "lbfgs", "tol": 1e-5, "max_iter": 1000}),
            ("LogisticRegression", {"solver": "newton-cholesky", "tol": 1e-5}),
        ],
    ),
    (
        "logistic, L2, λ = 1e-5",
        "svm-sparse",
        "logistic",
        {"regularization": 1e-5, "tol": 1e-5},
        [
            ("LogisticRegression", {"solver": "lbfgs", "tol": 1e-5, "max_iter": 1000}),
            ("LogisticRegression", {"solver": "newton-cg", "tol": 1e-5}),
            ("LogisticRegression", {"solver": "liblinear", "tol": 1e-4}),
        ],
    ),
    (
        "logistic, L1, λ = 1e-3",
        "svm-dense",
        "logistic",
        {"regularization": 1e-3, "l1_ratio": 1.0, "tol": 1e-5},
        [("LogisticRegression", {"solver": "liblinear", "l1_ratio": 1, "tol": 1e-5})],
    ),
    (
        "logistic, L1, λ = 1e-4",
        "svm-sparse",
        "logistic",
        {"regularization": 1e-4, "l1_ratio": 1.0, "tol": 1e-5},
        [("LogisticRegression", {"solver": "liblinear", "l1_ratio": 1, "tol": 1e-5})],
    ),
]


def run(options):
    import datasets
    import processes
    from progress import say
    from report import Section, median, number, ratio
    from suites import linear, svm

    processes.run(
        ["cargo", "build", "--release", "--manifest-path", ROOT / "Cargo.toml"]
        + ["--workspace", "--examples"]
    )
    environment = {"RAYON_NUM_THREADS": str(options.threads), "OMP_NUM_THREADS": str(options.threads)}
    environment["OPENBLAS_NUM_THREADS"] = str(options.threads)
    section = Section("Ridge and logistic regression", ["problem", "solver", "s (median)", "÷ gradus", "objective"])
    for title, data, model, settings, peers in PROBLEMS:
        name = data.split("-")[1]
        if data.startswith("svm"):
            folder = datasets.WORK / data
            svm.prepare(folder, name, datasets.DATA)
        else:
            folder = linear.made(name, linear.DATA[name])
        shape = "200k × 100 dense" if name == "dense" else "50k × 100k sparse, 3 M entries"
        title = f"{title}, {shape}"
        answer = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        ours, theirs = [], [[] for _ in peers]
        for turn in range(options.repeat):
            say(f"glm: {title}: round {turn + 1} of {options.repeat}")
            command = [EXAMPLE, folder, model, *answer]
            ours.append(json.loads(processes.run(command, environment, options.timeout).stdout))
            for times, (kind, arguments) in zip(theirs, peers):
                command = [sys.executable, "-W", "ignore", __file__, folder, kind]
                command += [json.dumps(arguments), json.dumps(settings)]
                times.append(json.loads(processes.run(command, environment, options.timeout).stdout))
        base = median([one["seconds"] for one in ours])
        section.rows.append([title, "gradus", number(base), "1.00×", f"{ours[0]['objective']:.9f}"])
        section.notes.append(f"{title}: gradus ends with {ours[0]['certificate']}")
        for found, (kind, arguments) in zip(theirs, peers):
            shown = ", ".join(f"{key}={value}" for key, value in arguments.items())
            took = median([one["seconds"] for one in found])
            row = [title, f"{kind}({shown})", number(took), ratio(took, base), f"{found[0]['objective']:.9f}"]
            section.rows.append(row)
    section.notes.append(
        f"{options.repeat} alternating rounds, {options.threads} threads, each fit in its own process, loading not counted"
    )
    section.notes.append("liblinear penalises the intercept, so its objective is a little higher; one thread only")
    yield section


def peer(folder, kind, arguments, settings):
    """Fits a model of scikit-learn to prepared arrays; the objective is that of gradus."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn import linear_model

    y = np.load(folder / "y.npy")
    if (folder / "x.npy").exists():
        x = np.load(folder / "x.npy")
    else:
        data, indices, indptr, shape = (np.load(folder / f"{name}.npy") for name in ["data", "indices", "indptr", "shape"])
        x = sp.csr_matrix((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=tuple(shape))
    n, lam = len(y), settings.get("regularization")
    if kind == "Ridge":
        arguments["alpha"] = 2 * n * lam
    elif kind == "RidgeCV":
        centred = x - x.mean(0)
        top = 10 * np.linalg.eigvalsh(centred.T @ centred)[-1]
        arguments["alphas"] = top * 10.0 ** (-8 * np.arange(settings["n_lambdas"]) / (settings["n_lambdas"] - 1))
    else:
        arguments["C"] = 1 / (n * lam)
    model = getattr(linear_model, kind)(**arguments)
    started = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - started
    w, b = model.coef_.ravel(), model.intercept_
    if kind.startswith("Ridge"):
        lam = lam or model.alpha_ / (2 * n)
        residual = y - x @ w - b
        return {"seconds": seconds, "objective": float(residual @ residual / (2 * n) + lam * w @ w)}
    loss = np.logaddexp(0, -y * (x @ w + b)).mean()
    l1 = settings.get("l1_ratio", 0.0)
    return {"seconds": seconds, "objective": float(loss + lam * (l1 * abs(w).sum() + (1 - l1) / 2 * w @ w))}


if __name__ == "__main__":
    print(json.dumps(peer(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4]))))
