"""Perceptrons for tables beside scikit-learn's: both as they come, over several random splits of real tables."""

import gzip
import io
import json
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent

#: Tables with classes, and tables with numbers to predict.
CLASSES = ["wine", "breast cancer", "digits", "satimage", "penbased", "adult"]
VALUES = ["diabetes", "wine quality", "california", "casp"]
#: Random splits of a table, and the share that is tested on.
SPLITS = 5
TESTED = 0.3


def run(options):
    import processes
    from datasets import DATA
    from progress import say
    from report import Section, ratio, wanted

    build = ["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"]
    processes.run(build)
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    threads = str(options.threads)
    environment = {"PYTHONPATH": str(ROOT / "python"), "GRADUS_THREADS": threads, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    section = Section(
        "Perceptrons for tables",
        ["table", "training rows × features", "measure", "gradus", "scikit-learn", "better splits"]
        + ["gradus, processor s", "scikit-learn, processor s", "scikit-learn ÷ gradus"],
    )
    for name in CLASSES + VALUES:
        if not wanted(options, "mlp", name):
            continue
        found = {"gradus": [], "sklearn": []}
        try:
            for split in range(SPLITS):
                for side in found if split % 2 else reversed(found):
                    say(f"mlp: {name}: {side}, split {split + 1} of {SPLITS}")
                    child = processes.run([sys.executable, __file__, DATA, name, side, split], environment, options.timeout)
                    found[side].append(json.loads(child.stdout.splitlines()[-1]))
        except processes.Failed as failed:
            if "FileNotFoundError" not in str(failed):
                raise
            say(f"mlp: {name}: skipped: its file is absent")
            continue
        ours, theirs = found["gradus"], found["sklearn"]
        better = sum(a["score"] > b["score"] for a, b in zip(ours, theirs))
        equal = sum(a["score"] == b["score"] for a, b in zip(ours, theirs))
        row = [name, ours[0]["shape"], "accuracy" if name in CLASSES else "R²"]
        row += [shown([one["score"] for one in side]) for side in (ours, theirs)]
        row.append(f"{better} of {SPLITS}" + (f", {equal} equal" if equal else ""))
        cpu = [sum(one["processor"] for one in side) / SPLITS for side in (ours, theirs)]
        section.rows.append([*row, *(f"{seconds:.1f}" for seconds in cpu), ratio(cpu[1], cpu[0])])
    section.notes = [
        f"means and standard deviations over {SPLITS} random splits, {TESTED:.0%} of the rows tested on (classes in their shares); "
        "`Mlp()` and `MlpRegressor()` beside `MLPClassifier()` and `MLPRegressor()` behind a `StandardScaler`, all with their "
        "default parameters; scikit-learn's regressor gets standardised targets, as gradus makes them by itself; words of `adult` are "
        f"one feature each; processor time of all threads of a fit, {options.threads} threads allowed",
    ]
    yield section


def shown(scores):
    mean = sum(scores) / len(scores)
    deviation = (sum((score - mean) ** 2 for score in scores) / max(len(scores) - 1, 1)) ** 0.5
    return f"{mean:.4f} ± {deviation:.4f}"


def table(data, name):
    """Features and target of a table."""
    import numpy as np

    def text(path):
        path = data / path
        return gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()

    def numbers(path, delimiter=",", skip=0):
        return np.loadtxt(io.StringIO(text(path)), delimiter=delimiter, skiprows=skip)

    if name in ("wine", "breast cancer", "digits"):
        path = {"wine": "sklearn/wine_data.csv", "breast cancer": "sklearn/breast_cancer.csv", "digits": "sklearn/digits.csv.gz"}[name]
        found = numbers(path, skip=0 if name == "digits" else 1)
    elif name in ("satimage", "penbased"):
        found = numbers(f"tables/{name}.dat.gz")
    elif name == "adult":
        rows = [line.split(", ") for line in text("adult/adult.data.gz").splitlines() if line.strip()]
        columns = list(zip(*rows))
        parts = []
        for column in columns[:-1]:
            try:
                parts.append(np.array(column, dtype=float)[:, None])
            except ValueError:
                words, codes = np.unique(column, return_inverse=True)
                parts.append(np.eye(len(words))[codes])
        return np.hstack(parts), np.array([label.startswith(">") for label in columns[-1]]).astype(int)
    elif name == "diabetes":
        return numbers("sklearn/diabetes_data_raw.csv.gz", delimiter=None), numbers("sklearn/diabetes_target.csv.gz", delimiter=None)
    elif name == "wine quality":
        found = np.vstack([numbers(f"wine-quality/winequality-{colour}.csv") for colour in ("red", "white")])
    elif name == "california":
        found = numbers("california-housing/california_housing.csv.gz", skip=1)
    else:
        found = numbers("tables/CASP.csv.gz", skip=1)
        return found[:, 1:], found[:, 0]
    y = found[:, -1]
    return found[:, :-1], y.astype(int) if name in CLASSES else y


def estimator(side, classes, split, settings):
    if side == "gradus":
        from gradus.nn import Mlp, MlpRegressor

        return (Mlp if classes else MlpRegressor)(random_state=split, **settings)
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if classes:
        return make_pipeline(StandardScaler(), MLPClassifier(random_state=split, **settings))
    model = make_pipeline(StandardScaler(), MLPRegressor(random_state=split, **settings))
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def fit(data, name, side, split, settings):
    """Fits one model to one split."""
    import warnings

    from sklearn.model_selection import train_test_split

    warnings.simplefilter("ignore")
    X, y = table(data, name)
    classes = name in CLASSES
    X, X_test, y, y_test = train_test_split(X, y, test_size=TESTED, random_state=split, stratify=y if classes else None)
    model = estimator(side, classes, split, settings)
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(X, y)
    found = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}
    return {**found, "score": model.score(X_test, y_test), "shape": f"{X.shape[0]:,} × {X.shape[1]}"}


if __name__ == "__main__":
    settings = json.loads(sys.argv[5]) if len(sys.argv) > 5 else {}
    print(json.dumps(fit(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), settings)))
