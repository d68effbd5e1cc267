"""Fairness on Adult beside fairlearn: every measure, exponentiated gradient and thresholds for each group."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

#: Both sides get the same standardised features; one evaluator, on the expectation over the coins of each model.
WORK = r"""
import json, sys, time, warnings
from pathlib import Path
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
side, task, folder = sys.argv[1:4]
NAMES = "age workclass fnlwgt education education_num marital occupation relationship race sex capital_gain capital_loss hours country income".split()


def read(part, skip):
    table = pd.read_csv(Path(folder) / f"adult.{part}.gz", names=NAMES, skiprows=skip, skipinitialspace=True, keep_default_na=False)
    return table.drop(columns="fnlwgt").assign(income=table.income.str.startswith(">50K").astype(int))


train, test = read("data", 0), read("test", 1)
y, y_test = train.income.to_numpy(), test.income.to_numpy()
sex, sex_test = train.sex.to_numpy(), test.sex.to_numpy()
both = pd.get_dummies(pd.concat([train, test]).drop(columns=["income", "sex"])).to_numpy(dtype=float)
X, X_test = both[: len(train)], both[len(train) :]
mean, deviation = X.mean(axis=0), X.std(axis=0)
deviation[deviation == 0] = 1
X, X_test = (X - mean) / deviation, (X_test - mean) / deviation


def evaluated(p, truth, group):
    gap = lambda rows: abs(p[rows & (group == "Male")].mean() - p[rows & (group == "Female")].mean())
    every = np.ones(truth.size, dtype=bool)
    return {
        "accuracy": float((truth * p + (1 - truth) * (1 - p)).mean()),
        "parity": float(gap(every)),
        "odds": float(max(gap(truth == 1), gap(truth == 0))),
    }


def fairlearn_model():
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    base = LogisticRegression(max_iter=1000)
    if task == "parity":
        return ExponentiatedGradient(base, DemographicParity(difference_bound=0.01), eps=0.01)
    if task == "odds":
        return ExponentiatedGradient(base, EqualizedOdds(difference_bound=0.01), eps=0.01)
    return ThresholdOptimizer(estimator=base, constraints="equalized_odds", predict_method="predict_proba")


def gradus_model():
    from gradus.audit import FairReduction, FairThresholds

    if task == "thresholds":
        return FairThresholds("equalized_odds")
    return FairReduction({"parity": "demographic_parity", "odds": "equalized_odds"}[task])


if task == "measures":
    rng = np.random.default_rng(0)
    from sklearn.linear_model import LogisticRegression

    scores = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X_test)[:, 1]
    decisions = (scores > 0.5).astype(int)
    weights = rng.integers(1, 4, size=y_test.size).astype(float)
    groups = {"sex": test[["sex"]], "race": test[["race"]], "sex and race": test[["sex", "race"]]}
    if side == "gradus":
        import gradus.audit as library
    else:
        import fairlearn.metrics as library
    names = [name for name in sorted(json.loads(sys.argv[4])) if hasattr(library, name)]
    found, seconds = {}, 0.0
    for of, sensitive in groups.items():
        for name in names:
            predicted = scores if name.startswith(("roc_auc", "log_loss", "mean_", "r2")) else decisions
            for weighed in (None, weights):
                started = time.perf_counter()
                value = getattr(library, name)(y_test, predicted, sensitive_features=sensitive, sample_weight=weighed)
                seconds += time.perf_counter() - started
                found[f"{name} by {of}, {'weights' if weighed is not None else 'no weights'}"] = float(value)
    print(json.dumps({"seconds": seconds, "found": found}))
else:
    model = gradus_model() if side == "gradus" else fairlearn_model()
    started = time.perf_counter()
    model.fit(X, y, sensitive_features=sex)
    seconds = time.perf_counter() - started
    if side == "gradus":
        expected = lambda X, sex: model.decision_probability(X, sensitive_features=sex)
    elif task == "thresholds":
        expected = lambda X, sex: model._pmf_predict(X, sensitive_features=sex)[:, 1]
    else:
        expected = lambda X, sex: np.asarray(model._pmf_predict(X))[:, 1]
    print(json.dumps({
        "seconds": seconds,
        "train": evaluated(np.asarray(expected(X, sex)), y, sex),
        "test": evaluated(np.asarray(expected(X_test, sex_test)), y_test, sex_test),
    }))
"""

TASKS = {
    "parity": "exponentiated gradient, demographic parity, bound 0.01",
    "odds": "exponentiated gradient, equalised odds, bound 0.01",
    "thresholds": "thresholds for each group, equalised odds",
}
AGREE = 1e-12


def run(options):
    import datasets
    import processes
    from progress import say
    from report import Section, ratio

    folder = datasets.DATA / "adult"
    if not folder.is_dir():
        say(f"fairness: skipped: {folder} is absent")
        return
    try:
        import fairlearn.metrics as theirs
    except ImportError:
        say("fairness: skipped: fairlearn is not installed")
        return
    processes.run(["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())

    names = [name for name in theirs.__all__ if name.endswith(("_difference", "_ratio", "_group_min", "_group_max"))]
    ours, others = (once(side, "measures", folder, json.dumps(names)) for side in ("gradus", "fairlearn"))
    worst = max(others["found"], key=lambda name: abs(others["found"][name] - ours["found"].get(name, float("nan"))))
    missing = sorted(set(others["found"]) - set(ours["found"]))
    largest = abs(others["found"][worst] - ours["found"].get(worst, float("nan")))
    verdict = "agrees" if not missing and largest <= AGREE else "DISAGREES"
    yield Section(
        "Measures of fairness, Adult (test part)",
        ["measures", "values", "largest difference", "gradus", "fairlearn", "fairlearn ÷ gradus"],
        [[
            str(len(names)),
            str(len(others["found"])),
            f"{largest:.1e}",
            f"{ours['seconds']:.2f} s",
            f"{others['seconds']:.2f} s",
            ratio(others["seconds"], ours["seconds"]),
        ]],
        [
            f"{verdict}: {AGREE:.0e} is allowed; every difference, ratio, minimum and maximum that `fairlearn.metrics` exports, by "
            "sex, by race and by their intersections, without weights and with",
            f"the largest difference is of {worst}; missing: {', '.join(missing) or 'none'}",
        ],
    )

    section = Section(
        "Fair classifiers, Adult, groups by sex",
        ["model", "side", "seconds", "accuracy", "parity gap", "odds gap", "test accuracy", "test parity gap", "test odds gap"],
    )
    best = {}
    for _ in range(options.repeat):
        for task in TASKS:
            for side in ("gradus", "fairlearn"):
                found = once(side, task, folder)
                known = best.setdefault((task, side), found)
                known["seconds"] = min(known["seconds"], found["seconds"])
    for (task, side), found in best.items():
        figures = [f"{found[part][figure]:.4f}" for part in ("train", "test") for figure in ("accuracy", "parity", "odds")]
        section.rows.append([TASKS[task], side, f"{found['seconds']:.2f}", *figures])
    ratios = [
        f"{TASKS[task]}: fairlearn ÷ gradus {ratio(best[task, 'fairlearn']['seconds'], best[task, 'gradus']['seconds'])}" for task in TASKS
    ]
    section.notes = [
        *ratios,
        f"the best time of {options.repeat} alternating processes; all threads; 105 standardised features without the sex and without "
        "fnlwgt; fairlearn over scikit-learn's LogisticRegression(max_iter=1000)",
        "rates are expectations over the coins of each model, by one evaluator",
    ]
    yield section


def once(side, task, folder, *further):
    """One process of one side."""
    done = subprocess.run(
        [sys.executable, "-c", WORK, side, task, str(folder), *further],
        capture_output=True,
        text=True,
        cwd=ROOT / "python",
        timeout=1800,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise SystemExit(f"fairness: {side}, {task}: {lines[-1][:300]}")
    return json.loads(done.stdout)
