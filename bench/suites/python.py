"""What a call from Python costs: predictions of one row and of a million, beside scikit-learn's own."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORK = """
import json, sys, time
import numpy as np

side, repeat = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(5_000, 20))
y = X @ rng.normal(size=20)
if side == "gradus":
    from gradus.linear import Logistic, Ridge
    models = {"ridge": Ridge(regularization=1e-3).fit(X, y), "logistic": Logistic().fit(X, y > 0)}
else:
    from sklearn.linear_model import LogisticRegression, Ridge
    models = {"ridge": Ridge().fit(X, y), "logistic": LogisticRegression().fit(X, y > 0)}

big = rng.normal(size=(1_000_000, 20))
calls = {
    "ridge.predict": models["ridge"].predict,
    "logistic.predict": models["logistic"].predict,
    "logistic.predict_proba": models["logistic"].predict_proba,
}
found = {}
for name, call in calls.items():
    for rows, number in ((1, 2000), (1_000, 200), (1_000_000, 1)):
        x = np.ascontiguousarray(big[:rows])
        call(x)
        best = float("inf")
        for _ in range(repeat):
            started = time.perf_counter()
            for _ in range(number):
                call(x)
            best = min(best, (time.perf_counter() - started) / number)
        found[f"{name} {rows:,}"] = best
print(json.dumps(found))
"""


def run(options):
    import processes
    from report import Section, ratio

    build = ["cargo", "build", "--release", "--workspace", "--lib", "--examples"]
    processes.run([*build, "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    best = {}
    for _ in range(options.repeat):
        for side in ("gradus", "sklearn"):
            for call, seconds in once(side).items():
                key = (call, side)
                best[key] = min(best.get(key, float("inf")), seconds)
    section = Section(
        "A call from Python, 20 features", ["call", "rows", "gradus", "scikit-learn", "scikit-learn ÷ gradus"]
    )
    for call in dict.fromkeys(call for call, _ in best):
        ours, theirs = best[call, "gradus"], best[call, "sklearn"]
        method, rows = call.split(" ")
        section.rows.append([method, rows, shown(ours), shown(theirs), ratio(theirs, ours)])
    section.notes = [
        f"the best of {options.repeat} alternating processes of five rounds each; arrays of float64 by rows; both check "
        "their input",
    ]
    yield section


def shown(seconds):
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def once(side):
    import os

    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", WORK, side, "5"], capture_output=True, text=True, check=True, env=env
    )
    return json.loads(done.stdout)
