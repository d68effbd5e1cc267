"""Every linear model and its predictions beside scikit-learn, through the Python package, over a grid of shapes.

Shapes go from a hundred rows to two million, wide ones and sparse text among them; arrays come by rows, by columns,
in single precision, as a data frame, and as CSR with columns in any order. Both sides get the same array, the same
problem and the same tolerance, and the objective of the training data is computed by one evaluator.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

MODELS = ("linear", "ridge", "lasso", "elasticnet", "logistic", "svm", "svr")

# Name, samples, features, entries (of sparse ones), layouts, and models that are left out: LinearSVC and LinearSVR
# take minutes there, or have no solution to compare.
SHAPES = [
    ("100 × 5", 100, 5, None, ("rows", "columns", "single", "frame"), ()),
    ("1,000 × 20", 1_000, 20, None, ("rows", "columns", "single", "frame"), ()),
    ("20,000 × 50", 20_000, 50, None, ("rows", "columns", "single", "frame"), ()),
    ("200,000 × 100", 200_000, 100, None, ("rows", "columns", "single", "frame"), ("svm", "svr")),
    ("100 × 20,000", 100, 20_000, None, ("rows", "columns"), ()),
    ("2,000 × 5,000", 2_000, 5_000, None, ("rows", "columns"), ("svr",)),
    ("20,000 × 50,000 text", 20_000, 50_000, 1_000_000, ("csr", "unsorted"), ("linear", "svr")),
]
FULL = [("2,000,000 × 10", 2_000_000, 10, None, ("rows", "columns", "single", "frame"), ("svm", "svr"))]


def run(options):
    import processes
    from progress import say
    from report import Section, ratio

    build = ["cargo", "build", "--release", "--package", "gradus-python"]
    processes.run([*build, "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    for shape in [*SHAPES, *(FULL if options.full else [])]:
        section = Section(
            f"Linear models, {shape[0]}",
            ["model", "layout", "fit, gradus", "scikit-learn", "÷", "objective, gradus", "scikit-learn"]
            + ["predict, gradus", "scikit-learn", "÷"],
        )
        for layout in shape[4]:
            best, quality = {}, {}
            for turn in range(options.repeat):
                for side in ("gradus", "sklearn"):
                    say(f"grid: {shape[0]}, {layout}: round {turn + 1} of {options.repeat}, {side}")
                    for row in once(side, shape, layout, options):
                        for what in ("fit", "predict"):
                            key = (row["model"], side, what)
                            best[key] = min(best.get(key, float("inf")), row[what])
                        quality[row["model"], side] = row["objective"]
            for model in dict.fromkeys(model for model, _, _ in best):
                fit = [best[model, side, "fit"] for side in ("gradus", "sklearn")]
                predict = [best[model, side, "predict"] for side in ("gradus", "sklearn")]
                objectives = [f"{quality[model, side]:.6g}" for side in ("gradus", "sklearn")]
                section.rows.append(
                    [model, layout, shown(fit[0]), shown(fit[1]), ratio(fit[1], fit[0]), *objectives]
                    + [shown(predict[0]), shown(predict[1]), ratio(predict[1], predict[0])]
                )
        section.notes = [
            f"the best of {options.repeat} alternating processes, {options.threads} threads; ÷ is scikit-learn ÷ gradus: "
            "above 1 gradus is faster",
            "objectives of the training data by one evaluator, at scikit-learn's default tolerances; logistic by lbfgs with "
            "C = 1 at tol = 1e-4, and by gradus to the same largest entry of the gradient",
        ]
        yield section


def shown(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def once(side, shape, layout, options):
    threads = str(options.threads)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "RAYON_NUM_THREADS": threads}
    env |= {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, "-W", "ignore", __file__, side, json.dumps(shape), layout]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=options.timeout)
    return json.loads(done.stdout)


def made(n, d, entries, layout):
    """Features in a layout, a target of numbers and one of classes."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(n + d)
    if entries is None:
        x = rng.standard_normal((n, d))
        x[:, 1:] = 0.5 * x[:, :-1] + np.sqrt(0.75) * x[:, 1:]
        x += rng.uniform(-2, 2, d)
        w = np.where(rng.random(d) < 0.2, rng.standard_normal(d), 0) + 1e-3
        score = x @ w
    else:
        p = 1 / (np.arange(d) + 10.0)
        columns = rng.choice(d, entries, p=p / p.sum())
        x = sp.coo_matrix((np.ones(entries), (rng.integers(0, n, entries), columns)), (n, d)).tocsr()
        x.sum_duplicates()
        x.data = (1 + np.log(x.data)) * (np.log(n / (1 + np.bincount(x.indices, minlength=d))) + 1)[x.indices]
        x = (sp.diags(1 / np.maximum(np.sqrt(np.asarray(x.multiply(x).sum(1)).ravel()), 1e-300)) @ x).tocsr()
        w = np.where(rng.random(d) < 0.1, 5 * rng.standard_normal(d), 0)
        score = x @ w
    score = (score - score.mean()) / score.std()
    y = 3 + score + 0.5 * rng.standard_normal(n)
    classes = score + 0.7 * rng.standard_normal(n) > 0
    if layout == "columns":
        x = np.asfortranarray(x)
    elif layout == "single":
        x, y = x.astype(np.float32), y.astype(np.float32)
    elif layout == "frame":
        import pandas as pd

        x = pd.DataFrame(x, columns=[f"x{j}" for j in range(d)])
    elif layout == "unsorted":
        for row in range(n):
            part = slice(x.indptr[row], x.indptr[row + 1])
            order = rng.permutation(x.indptr[row + 1] - x.indptr[row])
            x.indices[part], x.data[part] = x.indices[part][order], x.data[part][order]
        x.has_sorted_indices = False
    return x, y, classes


def contestants(side, x, y, classes):
    """Pairs of an unfitted model and its target, by name; both sides solve the same problem to the same tolerance."""
    import numpy as np

    n = len(y)
    centred = np.asarray(y, dtype=float) - np.mean(y)
    values = np.asarray(x) if not hasattr(x, "nnz") else x
    product = np.asarray(values.T @ centred).ravel()
    alpha = 0.05 * float(abs(product - np.asarray(values.mean(0)).ravel() * centred.sum()).max()) / n
    # The largest entry of the gradient of the logistic loss at 0, which gradus's tolerance is a share of.
    sign = np.where(classes, 0.5, -0.5)
    gradient = np.asarray(values.T @ sign).ravel() / n
    if not hasattr(x, "nnz"):
        gradient = gradient - np.asarray(values.mean(0)).ravel() * sign.mean()
    steep = max(float(abs(gradient).max()), abs(sign.mean()))
    if side == "gradus":
        from gradus.linear import ElasticNet, Lasso, Linear, Logistic, Ridge, Svm, Svr

        return {
            "linear": (Linear(), y),
            # scikit-learn solves sparse ones by iterations to its default tolerance, dense ones exactly, as gradus does.
            "ridge": (Ridge(regularization=1 / (2 * n), **({"tol": 1e-4} if hasattr(x, "nnz") else {})), y),
            "lasso": (Lasso(regularization=alpha, tol=2e-4), y),
            "elasticnet": (ElasticNet(regularization=2 * alpha, l1_ratio=0.5, tol=2e-4), y),
            "logistic": (Logistic(regularization=1 / n, tol=min(1e-4 / steep, 1.0)), classes),
            "svm": (Svm(c=1 / n, loss="squared_hinge", penalize_intercept=True), classes),
            "svr": (Svr(c=1 / n, epsilon=0.1, loss="squared_insensitive", penalize_intercept=True), y),
        }
    from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
    from sklearn.svm import LinearSVC, LinearSVR

    return {
        "linear": (LinearRegression(), y),
        "ridge": (Ridge(alpha=1.0), y),
        "lasso": (Lasso(alpha=alpha), y),
        "elasticnet": (ElasticNet(alpha=2 * alpha, l1_ratio=0.5), y),
        "logistic": (LogisticRegression(max_iter=1000), classes),
        "svm": (LinearSVC(C=1 / n), classes),
        "svr": (LinearSVR(C=1 / n, epsilon=0.1, loss="squared_epsilon_insensitive"), y),
    }


def objective(name, model, x, y, alpha):
    """What a model minimises, at its coefficients."""
    import numpy as np

    w, b = np.asarray(model.coef_, dtype=float).ravel(), float(np.ravel(model.intercept_)[0])
    values = np.asarray(x, dtype=float) if not hasattr(x, "nnz") else x
    scores, n = values @ w + b, len(y)
    if name in ("logistic", "svm"):
        margins = np.where(y, 1, -1) * scores
        if name == "svm":
            return float(0.5 * (w @ w + b * b) + np.square(np.maximum(0, 1 - margins)).mean())
        return float(np.logaddexp(0, -margins).mean() + 0.5 * (w @ w) / n)
    residuals = np.asarray(y, dtype=float) - scores
    if name == "svr":
        return float(0.5 * (w @ w + b * b) + np.square(np.maximum(0, abs(residuals) - 0.1)).mean())
    half = 0.5 * float(residuals @ residuals) / n
    penalty = {
        "linear": 0.0,
        "ridge": 0.5 * (w @ w) / n,
        "lasso": alpha * abs(w).sum(),
        "elasticnet": alpha * abs(w).sum() + 0.5 * alpha * (w @ w),
    }
    return half + float(penalty[name])


def timed(call, least=0.2):
    """The shortest of several calls: enough of them for `least` seconds, ten at most of what takes longer."""
    import time

    found, spent, calls = float("inf"), 0.0, 0
    while calls < 1 or (spent < least and calls < 2000):
        started = time.perf_counter()
        call()
        took = time.perf_counter() - started
        found, spent, calls = min(found, took), spent + took, calls + 1
    return found


def work(side, shape, layout):
    _, n, d, entries, _, left_out = shape
    x, y, classes = made(n, d, entries, layout)
    rows = []
    for name, (model, target) in contestants(side, x, y, classes).items():
        if name in left_out:
            continue
        # The first call loads and compiles.
        if n * d <= 10_000_000:
            model.fit(x, target)
        fit = timed(lambda: model.fit(x, target))
        model.predict(x)
        predict = timed(lambda: model.predict(x), 0.1)
        alpha = getattr(model, "alpha", None) or getattr(model, "regularization", 0.0)
        alpha = float(alpha or 0.0) * (0.5 if name == "elasticnet" else 1.0)
        found = objective(name, model, x, target, alpha)
        rows.append({"model": name, "fit": fit, "predict": predict, "objective": found})
    return rows


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])))
