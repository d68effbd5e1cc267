"""Matrix completion with the nuclear norm: soft-impute beside fancyimpute's, its error beside plain factorisation, and its
cost on large data.

fancyimpute's `SoftImpute` minimises `½ Σ (r − x)² + τ ‖X‖_*` over dense matrices. gradus has a mean beside `X`, so the ratings
of both are residuals of means of users and items, less the mean that gradus found: then both have one problem with one least
value. fancyimpute runs with its own stopping rule; gradus stops where its objective is as low, and the time is that of its
clock at that iteration. The objective of fancyimpute's solution is computed by numpy.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, busy, mebibytes, median, number, ratio, rmse

# τ in units of the standard deviation of the noise about the biases: about what gradus chooses on ML-100K.
STRENGTH = 15.0
# The same on the large matrix, whose rows have ten times as many ratings.
LARGE = 60.0

FANCY = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import fancyimpute.soft_impute as soft
import fancyimpute.solver
# fancyimpute 0.7.0 passes an argument that scikit-learn has renamed since.
soft.check_array = fancyimpute.solver.check_array = lambda x, force_all_finite=False: x
source, tau, rank = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
known = np.load(source)
n, m = int(known["n"]), int(known["m"])
x = np.full((n, m), np.nan)
x[known["users"], known["items"]] = known["values"]
model = soft.SoftImpute(shrinkage_value=tau, max_rank=rank or None, verbose=False)
started, cpu = time.perf_counter(), time.process_time()
filled = model.fit_transform(x)
seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
u, s, v = np.linalg.svd(filled, full_matrices=False)
s = np.maximum(s - tau, 0)
z = (u * s) @ v
errors = known["values"] - z[known["users"], known["items"]]
print(json.dumps({"seconds": seconds, "cpu": cpu, "objective": 0.5 * float(errors @ errors) + tau * float(s.sum()), "rank": int((s > 0).sum())}))
"""

RESIDUALS = """
import json, sys
import numpy as np
train, folder, mean = sys.argv[1], sys.argv[2], float(sys.argv[3])
data = np.load(train)
users, items, values = data["users"].astype(int), data["items"].astype(int), data["values"].astype(float)
r = values - values.mean()
for _ in range(10):
    for side in (users, items):
        count = np.bincount(side, minlength=side.max() + 1)
        r = r - (np.bincount(side, r, minlength=len(count)) / (count + 5.0))[side]
r = np.round(r, 6) - mean
np.savez(folder + "/residuals.npz", users=users, items=items, values=r, n=users.max() + 1, m=items.max() + 1)
rows = "\\n".join(f"{u},{i},{x!r}" for u, i, x in zip(users.tolist(), items.tolist(), r.tolist()))
open(folder + "/residuals.csv", "w").write("user,item,rating\\n" + rows + "\\n")
"""


def run(options):
    if not options.gradus:
        say("completion: gradus does not build")
        return
    gradus = peers.by_key("gradus")
    if "ml-100k" in options.data:
        try:
            yield race("ML-100K u1", datasets.ml_100k(1), gradus, options)
        except datasets.Absent as absent:
            say(f"completion: ml-100k is skipped: {absent}")
        except processes.Failed as failure:
            say(f"completion: ML-100K u1: fancyimpute is left out: {failure}")
    yield from quality(gradus, options)
    if any(name.startswith("synthetic") for name in options.data):
        yield large(gradus, options)


def fit(gradus, data, settings, threads, timeout):
    """The report of a fit, its wall seconds and its peak memory."""
    with tempfile.TemporaryDirectory() as scratch:
        words = [str(word) for pair in settings for word in pair if word is not None]
        command = [gradus.binary, "fit", "softimpute", data, "-o", Path(scratch) / "m.gradus", "--threads", threads]
        child = processes.run([*command, "--quiet", "--json", *words], timeout=timeout)
    answer = json.loads(child.stdout)
    return answer["report"], child.wall, child.peak or answer["peak_rss_bytes"]


def race(title, dataset, gradus, options):
    with tempfile.TemporaryDirectory() as folder:
        residuals(dataset, folder, 0.0)
        plain = [("--no-biases", None), ("--no-clip", None), ("--regularization", STRENGTH)]
        exact = [*plain, ("--tol", 1e-9), ("--max-iter", 500)]
        report, *_ = fit(gradus, f"{folder}/residuals.csv", exact, options.threads, options.timeout)
        rank, tau = notes(report)
        # The mean that gradus found, taken off: the problem in X alone has the same least value.
        residuals(dataset, folder, mean_of(gradus, folder, exact, options))
        say(f"completion: {title}: τ = {tau:.3f}, rank {rank}")
        theirs, ours = {}, []
        ranks = {"full SVD": 0, f"randomised SVD of rank {2 * rank}": 2 * rank}
        for turn in range(options.repeat):
            say(f"completion: {title}: round {turn + 1} of {options.repeat}")
            for how, limit in ranks.items():
                env = {"OMP_NUM_THREADS": str(options.threads), "OPENBLAS_NUM_THREADS": str(options.threads)}
                command = [sys.executable, "-c", FANCY, f"{folder}/residuals.npz", repr(tau), str(limit)]
                found = json.loads(processes.run(command, env, options.timeout).stdout)
                theirs.setdefault(how, []).append(found)
            fine = [*plain, ("--tol", 1e-7), ("--max-iter", 500)]
            ours.append(fit(gradus, f"{folder}/residuals.csv", fine, options.threads, options.timeout)[0])
    section = Section(
        f"Nuclear norm completion of {title} to one objective",
        ["fancyimpute", "s", "objective", "rank", "gradus to that objective, s", "fancyimpute ÷ gradus"],
    )
    for how, runs in theirs.items():
        goal = runs[0]["objective"]
        times = [first(report, goal) for report in ours]
        seconds, own = median([run["seconds"] for run in runs]), median(times)
        row = [how, number(seconds), f"{goal:.1f}", str(runs[0]["rank"]), number(own), ratio(seconds, own)]
        section.rows.append(row)
    last = ours[0]
    section.notes = [
        f"τ = {tau:.3f}; {dataset.describe()}; {options.threads} threads, medians of {options.repeat} alternating rounds, load "
        f"average {busy():.1f}",
        f"the least objective that gradus reached is {last['objective']:.1f} with rank {rank} ({last['certificate']['name']}: "
        f"{last['certificate']['value']:.1e}) after {number(last['seconds'])} s",
        "fancyimpute 0.7.0, 100 iterations at most and a tolerance of 0.001, its defaults; gradus by its clock, all it does "
        "before the first iteration included",
    ]
    return section


def residuals(dataset, folder, mean):
    processes.run([sys.executable, "-c", RESIDUALS, dataset.folder / "train.npz", folder, repr(mean)])


def mean_of(gradus, folder, settings, options):
    """The mean of a model without biases: what it predicts where nothing is known."""
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "m.gradus"
        words = [str(word) for pair in settings for word in pair if word is not None]
        command = [gradus.binary, "fit", "softimpute", f"{folder}/residuals.csv", "-o", model, "--quiet", *words]
        processes.run([*command, "--threads", options.threads], timeout=options.timeout)
        data = model.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return float(json.loads(header["__metadata__"]["gradus"])["model"]["mean"])


def notes(report):
    """The rank and τ of a solution, as its notes tell them."""
    text = next(note for note in report["notes"] if "τ" in note)
    words = text.replace(";", " ").replace(":", " ").split()
    return int(words[words.index("rank") + 1]), float(words[words.index("=") + 1])


def first(report, goal):
    """The seconds after which the objective is at most `goal`."""
    return next((step["seconds"] for step in report["trace"] if step["objective"] <= goal), None)


def quality(gradus, options):
    for name, title, make in (
        ("ml-100k", "ML-100K, published splits u1–u5", lambda fold: datasets.ml_100k(fold + 1)),
        ("ml-1m", "ML-1M, five random folds", lambda fold: datasets.ml_1m(fold, folds=5)),
    ):
        if name not in options.data:
            continue
        try:
            # Of ML-1M one fold, all of them with --slow.
            folds = [make(fold) for fold in range(5 if "100K" in title or options.slow else 1)]
        except datasets.Absent as absent:
            say(f"completion: {title} is skipped: {absent}")
            continue
        section = Section(f"Held-out error, {title}, {len(folds)} of them", ["model", "mean RMSE", "fit s (mean)", "one solution, s"])
        for model in ("softimpute", "als", "ccd", "sgd", "bias"):
            scores, seconds, single = [], [], None
            for at, fold in enumerate(folds):
                say(f"completion: {title}: fold {at + 1}, {model}")
                score, time = gradus.score(model, fold.folder, {}, options.threads, options.timeout)
                scores.append(score)
                seconds.append(time)
            if model == "softimpute":
                given = [("--regularization", STRENGTH)]
                single = fit(gradus, folds[0].folder / "train.csv", given, options.threads, options.timeout)[1]
            row = [f"{model}, defaults", rmse(statistics.mean(scores)), number(statistics.mean(seconds)), number(single)]
            section.rows.append(row)
        tuned = {"rank": 15 if "1M" in title else 10, "regularization": 12.0, "scaling": "none"}
        try:
            jobs = [Job(str(fold.folder), threads=options.threads, **tuned) for fold in folds]
            fits = [peers.by_key("cmfrec-cg").run(job, options.timeout) for job in jobs]
            mean, time = (statistics.mean(getattr(fit, what) for fit in fits) for what in ("rmse", "seconds"))
            section.rows.append([f"cmfrec, tuned (k = {tuned['rank']}, λ = 12)", rmse(mean), number(time), "–"])
        except processes.Failed as failure:
            section.notes.append(f"cmfrec failed: {failure}")
        section.notes.append(f"one solution: the whole process with λ = {STRENGTH:g} given, reading the file included")
        yield section


def large(gradus, options):
    """Time and peak memory at a limited rank; with `--slow` also at another, and by default."""
    source = datasets.synthetic_file(10_000_000, 100_000, 50_000)
    section = Section(
        "Nuclear norm completion of 100,000 × 50,000 with 10 M observations",
        ["λ", "largest rank", "rank", "iterations", "fit s", "process s", "peak MiB", "duality gap"],
    )
    settings = [(16, [("--regularization", LARGE), ("--max-rank", 16), ("--max-iter", 20)])]
    if options.slow:
        settings.append((32, [("--regularization", LARGE), ("--max-rank", 32), ("--max-iter", 20)]))
        settings.append(("by default", []))
    for limit, given in settings:
        say(f"completion: large, largest rank {limit}")
        report, wall, peak = fit(gradus, source, given, options.threads, options.timeout)
        rank, _ = notes(report)
        row = [f"{LARGE:g}" if given else "chosen", str(limit), str(rank), str(report["iterations"]), number(report["seconds"]), number(wall)]
        gap = report.get("certificate")
        section.rows.append([*row, mebibytes(peak), f"{gap['value']:.1e}" if gap else "–"])
    section.notes = [
        f"{options.threads} threads, 20 iterations at most where λ is given, load average {busy():.1f}; a dense matrix of this size would be 37 GiB"
    ]
    return section
