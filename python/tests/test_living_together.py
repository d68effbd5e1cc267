"""Files, pickles, processes, threads, Ctrl-C, progress: estimators among other things."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gradus
from gradus.factor import Als
from gradus.linear import Lasso, Logistic, Ridge, Svm, Svr

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(2)
X = RNG.normal(size=(120, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 3
CLASSES = np.where(Y > 3, "high", "low")


def fitted():
    return [
        Ridge(regularization=0.1).fit(X, Y),
        Logistic().fit(X, CLASSES),
        Svm(kernel="rbf").fit(X, CLASSES),
        Svr(kernel="polynomial").fit(X, Y),
    ]


def test_pickle_copy_and_clone():
    for model in fitted():
        for same in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
            assert np.array_equal(same.predict(X), model.predict(X))
            assert same.get_params() == model.get_params()
            assert same.report_.model == model._kind
        with pytest.raises(NotFittedError):
            clone(model).predict(X)


def test_files_open_again(tmp_path):
    for model in fitted():
        model.save(tmp_path / "m.gradus")
        loaded = gradus.load(tmp_path / "m.gradus")
        assert type(loaded) is type(model)
        assert np.array_equal(loaded.predict(X), model.predict(X))
        params = {key: value for key, value in model.get_params().items() if key != "verbose"}
        assert {key: loaded.get_params()[key] for key in params} == params
        if hasattr(model, "coef_"):
            assert np.array_equal(loaded.coef_, model.coef_)
        assert type(model).load(tmp_path / "m.gradus").n_features_in_ == 4
    with pytest.raises(ValueError, match="holds a model `svr`, not `ridge`"):
        Ridge.load(tmp_path / "m.gradus")
    with pytest.raises(FileNotFoundError):
        gradus.load(tmp_path / "absent.gradus")
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(ValueError, match="junk"):
        gradus.load(tmp_path / "junk")


def command():
    folder = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    found = Path(os.environ.get("GRADUS", Path(folder) / "release" / "gradus"))
    if not found.exists():
        pytest.skip(f"{found} was not built")
    return str(found)


def test_the_command_line_opens_what_python_wrote_and_the_other_way_round(tmp_path):
    rows = "\n".join(",".join(f"{v:.17g}" for v in [*x, y]) for x, y in zip(X, Y))
    (tmp_path / "data.csv").write_text("a,b,c,d,y\n" + rows + "\n")
    run = lambda *words: subprocess.run([command(), *words], check=True, capture_output=True, cwd=tmp_path, text=True)
    run("fit", "ridge", "data.csv", "--target", "y", "--regularization", "0.1", "-o", "cli.gradus")
    from_cli = gradus.load(tmp_path / "cli.gradus")
    import pandas as pd

    frame = pd.read_csv(tmp_path / "data.csv")
    python = Ridge(regularization=0.1).fit(frame[["a", "b", "c", "d"]], frame["y"])
    # To the bit. The files differ in what only one side knows: the layout of the file that was read, its hashes.
    np.testing.assert_array_equal(from_cli.coef_, python.coef_)
    python.save(tmp_path / "python.gradus")
    assert gradus.load(tmp_path / "python.gradus").get_params() == from_cli.get_params()
    run("predict", "python.gradus", "data.csv", "-o", "out.csv")
    out = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(out.iloc[:, -1], python.predict(frame[["a", "b", "c", "d"]]), rtol=1e-5)


def test_pipelines_searches_and_processes():
    pipe = make_pipeline(StandardScaler(), Logistic())
    assert cross_val_score(pipe, X, CLASSES, cv=3).mean() > 0.9
    search = GridSearchCV(Ridge(), {"regularization": [1e-3, 1.0]}, cv=3, n_jobs=2).fit(X, Y)
    assert search.best_params_ == {"regularization": 1e-3}
    results = joblib.Parallel(n_jobs=2)(joblib.delayed(Ridge(regularization=l).fit)(X, Y) for l in (0.1, 1.0))
    assert np.array_equal(results[0].coef_, Ridge(regularization=0.1).fit(X, Y).coef_)


def test_one_setting_for_threads_and_the_same_bits():
    coefficients = []
    for n in (1, 2, 7):
        gradus.set_threads(n)
        assert gradus.get_threads() == n
        coefficients.append(Lasso(regularization=0.01).fit(X, Y).coef_.tobytes())
    gradus.set_threads(None)
    assert len(set(coefficients)) == 1
    with pytest.raises(ValueError, match="n_threads = 0: must be an integer of at least 1"):
        gradus.set_threads(0)
    program = "import gradus; print(gradus.get_threads())"
    for name in ("GRADUS_THREADS", "OMP_NUM_THREADS"):
        env = {key: value for key, value in os.environ.items() if "THREADS" not in key} | {name: "3"}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
        assert done.stdout.strip() == "3"


def long_fit():
    pairs = RNG.integers(0, 3000, (400_000, 2))
    return Als(rank=64, regularization=1.0, max_iter=10_000, tol=0.0), pairs, 1.0 + pairs.sum(axis=1) % 5


def test_other_python_threads_run_during_a_fit():
    model, pairs, values = long_fit()
    model.set_params(max_iter=4)
    worker = threading.Thread(target=lambda: model.fit(pairs, values))
    ticks = 0
    worker.start()
    while worker.is_alive():
        time.sleep(0.005)
        ticks += 1
    assert ticks > 3


PROGRAM = """
import sys, time, numpy as np
from gradus.factor import Als
from gradus.linear import Lasso, Logistic, Svm, Ridge
rng = np.random.default_rng(0)
for fit in {fits}:
    fit = compile(fit, "fit", "exec")
    print("ready", flush=True)
    try:
        exec(fit)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", time.time(), flush=True)
    one = Ridge(regularization=1.0).fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    assert one.predict([[0.0, 0.0]]).shape == (1,)
"""

LONG = {
    "als": "p = rng.integers(0, 3000, (400_000, 2)); Als(rank=64, regularization=1.0, max_iter=10_000, tol=0.0).fit(p, 1.0 + p.sum(1) % 5)",
    "lasso": "Lasso(regularization=1e-9, tol=0.0, max_iter=10**9).fit(rng.normal(size=(2000, 3000)), rng.normal(size=2000))",
    "svm": "Svm(kernel='rbf', c=1e4, tol=1e-12, max_iter=10**9).fit(rng.normal(size=(6000, 20)), rng.integers(0, 2, 6000))",
    "logistic": "Logistic(regularization=1e-9, l1_ratio=0.5, tol=0.0, max_iter=10**6).fit(rng.normal(size=(4000, 2000)), rng.integers(0, 2, 4000))",
    "ridge": "Ridge().fit(rng.normal(size=(4000, 3000)), rng.normal(size=4000))",
}


def test_ctrl_c_stops_a_fit_within_a_second():
    program = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(fits=list(LONG.values()))],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.PIPE,
    )
    for kind in LONG:
        assert program.stdout.readline() == "ready\n", kind + program.stderr.read()
        time.sleep(1.0)
        sent = time.time()
        program.send_signal(signal.SIGINT)
        words = program.stdout.readline().split()
        assert words[:1] == ["interrupted"], kind
        assert float(words[1]) - sent < 1.0, kind
    _, err = program.communicate(timeout=30)
    assert program.returncode == 0, err


def test_progress_is_shown_and_the_report_can_be_looked_at(capsys):
    pairs = RNG.integers(0, 30, (400, 2))
    model = Als(rank=2, max_iter=3, verbose=1).fit(pairs, 1.0 + pairs.sum(axis=1) % 5)
    assert "Als 3/3  objective" in capsys.readouterr().err
    report = model.report_
    assert report.iterations == 3 and len(report.trace) == 3 and report.seconds > 0
    assert "<table>" in report._repr_html_() and "<svg" in report._repr_html_()
    assert report.to_html("a page").startswith("<!doctype html>") or "<html" in report.to_html()
    import matplotlib

    matplotlib.use("Agg")
    axes = report.plot()
    assert axes.lines[0].get_ydata().tolist() == [point["objective"] for point in report.trace]


def test_the_seed_is_random_state():
    pairs = RNG.integers(0, 30, (400, 2))
    values = 1.0 + pairs.sum(axis=1) % 5
    fit = lambda state: Als(rank=2, max_iter=2, random_state=state).fit(pairs, values).predict(pairs).tobytes()
    assert fit(1) == fit(1) != fit(2)
    assert fit(np.random.RandomState(0)) == fit(np.random.RandomState(0))
    assert fit(None)
    with pytest.raises(TypeError, match="random_state"):
        fit("chance")


def test_params_are_json_of_the_registry():
    described = json.loads(gradus._gradus.describe())
    without = {"fairreduction", "fairpenalty", "fairthresholds", "fairfeatures"}
    assert {model["name"] for model in described} - without == set(gradus.models())
