"""Non-negative matrix factorisation: of samples beside scikit-learn's, the time to the objective at which scikit-learn ends; of
ratings beside LIBMF's and Surprise's, the held-out error.

scikit-learn's `NMF` is fitted with its own stopping rule (coordinate descent for the squared error, multiplicative
updates for the divergence, 200 iterations at most). gradus is then fitted with as many iterations as it needs to come
as low, to 0.01 % (the problem is not convex, and minima that are reached differ by that), and the whole `fit` is timed. Both begin at NNDSVDa; both sides run in processes of their own.
"""

import gzip
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORK = """
import json, sys, time, warnings
import numpy as np, scipy.sparse as sp
warnings.simplefilter("ignore")
side, path, loss, k, goal, steps, threads = sys.argv[1:8]
k = int(k)
# One thread does not wait for others: its own seconds hold on a busy machine as well.
clock = time.process_time if threads == "1" else time.perf_counter
X = sp.load_npz(path) if "sparse" in path else np.load(path)
if side == "sklearn":
    from sklearn.decomposition import NMF
    from threadpoolctl import threadpool_limits
    beta, solver = ("frobenius", "cd") if loss == "frobenius" else ("kullback-leibler", "mu")
    model = NMF(k, init="nndsvda", solver=solver, beta_loss=beta, random_state=0)
    with threadpool_limits(int(threads)):
        started = clock()
        model.fit(X)
        seconds = clock() - started
    print(json.dumps({"seconds": seconds, "objective": 0.5 * model.reconstruction_err_**2, "iterations": int(model.n_iter_)}))
else:
    import gradus
    gradus.set_threads(int(threads))
    from gradus.latent import Nmf
    steps, goal = int(steps), float(goal)
    model = Nmf(n_components=k, loss=loss, init="nndsvda", max_iter=steps, tol=0.0)
    started = clock()
    model.fit(X)
    seconds = clock() - started
    trace = [point["objective"] for point in json.loads(model.model_.report)["trace"]]
    needed = next((at + 1 for at, value in enumerate(trace) if value <= 1.0001 * goal), None)
    print(json.dumps({"seconds": seconds, "objective": trace[-1], "iterations": len(trace), "needed": needed}))
"""


def run(options):
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, median, number, ratio, wanted

    build = ["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"]
    processes.run(build)
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    threads = str(options.threads)
    environment = {"PYTHONPATH": str(ROOT / "python"), "RAYON_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    section = Section(
        "Non-negative matrix factorisation",
        ["data", "loss", "gradus, s", "scikit-learn, s", "scikit-learn ÷ gradus", "iterations", "objective", "scikit-learn's"],
    )
    # scikit-learn's multiplicative updates take minutes on text.
    rounds = options.repeat if options.slow else 1
    FOLDER.mkdir(exist_ok=True)
    for title, path in matrices(DATA, FOLDER):
        if path is None:
            say(f"nmf: {title} skipped: not in {DATA}")
            continue
        for loss in ("frobenius", "kl"):
            if not wanted(options, section.title, f"{title}, {loss}"):
                continue

            def one(side, goal=0.0, steps=1):
                command = [sys.executable, "-c", WORK, side, path, loss, "20", repr(goal), str(steps), threads]
                return json.loads(processes.run(command, environment, options.timeout).stdout)

            say(f"nmf: {title}: {loss}: how many iterations")
            theirs = one("sklearn")
            steps, needed = 25, None
            while needed is None and steps <= 1600:
                steps *= 2
                needed = one("gradus", theirs["objective"], steps)["needed"]
            ours, peers = [], [theirs]
            for turn in range(rounds):
                say(f"nmf: {title}: {loss}: round {turn + 1} of {rounds}")
                ours.append(one("gradus", theirs["objective"], needed or steps))
                peers.append(one("sklearn"))
            a, b = (median([run["seconds"] for run in runs]) for runs in (ours, peers))
            reached = f"{ours[0]['objective']:.6g}" + ("" if needed else " (not reached)")
            counts = f"{ours[0]['iterations']} and {theirs['iterations']}"
            row = [title, loss, number(a), number(b), ratio(b, a), counts, reached, f"{theirs['objective']:.6g}"]
            section.rows.append(row)
    section.notes = [
        f"20 components, NNDSVDa, {threads} threads, the median of {rounds} alternating processes; scikit-learn with "
        "its default tolerance and 200 iterations at most; gradus with the number of iterations after which its objective is "
        "at most 1.0001 times scikit-learn's; the time is that of the whole `fit`" + (", in CPU seconds" if threads == "1" else ""),
    ]
    if section.rows:
        yield section
    yield from ratings(options)


def ratings(options):
    """Folds of MovieLens: gradus by default and without biases, LIBMF's and Surprise's as they come, LIBMF's tuned."""
    import datasets
    from progress import say
    from report import wanted
    from suites.quality import Setting

    tuned = {"rank": 20, "regularization": 0.05, "iterations": 30}
    settings = [
        Setting("gradus nmfratings, defaults", "gradus-nmf", {"defaults": True}),
        Setting("gradus nmfratings without biases, rank 15", "gradus-nmf", {"rank": 15, "iterations": 60}),
        Setting("gradus als, defaults", "gradus", {"defaults": True}),
        Setting("LIBMF NMF (k = 20, λ = 0.05, 30 epochs)", "libmf-nmf", tuned),
        Setting("Surprise NMF, defaults", "surprise-nmf", {"defaults": True}),
    ]
    settings = [setting for setting in settings if options.gradus or not setting.peer.startswith("gradus")]
    for name, title, make in (
        ("ml-100k", "ML-100K, published splits u1–u5", lambda fold: datasets.ml_100k(fold + 1)),
        ("ml-1m", "ML-1M, five random folds", lambda fold: datasets.ml_1m(fold, folds=5)),
    ):
        if name not in options.data or not wanted(options, "Non-negative factors of ratings", title):
            continue
        try:
            # Of ML-1M one fold, all of them with --slow.
            folds = [make(fold) for fold in range(5 if "100K" in title or options.slow else 1)]
        except datasets.Absent as absent:
            say(f"nmf: {title} is skipped: {absent}")
            continue
        yield errors(title, folds, settings, options)


def errors(title, folds, settings, options):
    """The held-out error of each setting on each fold."""
    import statistics

    import peers
    import processes
    from peers.base import Job
    from progress import say
    from report import Section, number, rmse

    columns = ["setting", "mean RMSE", *(f"fold {at + 1}" for at in range(len(folds))), "fit s (mean)"]
    section = Section(f"Non-negative factors of ratings, held-out error, {title}", columns)
    section.notes = ["peers' predictions are clipped to the range of the training ratings"]
    for setting in settings:
        try:
            fits = []
            for at, fold in enumerate(folds):
                say(f"nmf: {title}: fold {at + 1}, {setting.title}")
                job = Job(str(fold.folder), threads=options.threads, **setting.job)
                fits.append(peers.by_key(setting.peer).run(job, options.timeout))
        except processes.Failed as failure:
            section.notes.append(f"{setting.title} failed: {failure}")
            continue
        scores = [fit.rmse for fit in fits]
        seconds = statistics.mean(fit.seconds for fit in fits)
        section.rows.append([setting.title, rmse(statistics.mean(scores)), *map(rmse, scores), number(seconds)])
    return section


def matrices(data, folder):
    """Titles and files of matrices; None where the data is absent."""
    import numpy as np
    import scipy.sparse as sp

    source = data / "olivetti" / "olivetti_400x64x64.u8.gz"
    path = None
    if source.exists():
        path = folder / "nmf-dense.npy"
        np.save(path, np.frombuffer(gzip.open(source).read(), np.uint8).reshape(400, -1) / 255.0)
    yield "olivetti, 400 × 4,096", path and str(path)
    source, path, title = data / "20newsgroups" / "20newsgroups-train.tab.gz", None, "20 Newsgroups, tf-idf"
    if source.exists():
        from sklearn.feature_extraction.text import TfidfVectorizer

        lines = gzip.open(source, "rt", encoding="utf-8", errors="replace").read().splitlines()[3:]
        texts = [line.split("\t", 1)[1] for line in lines if "\t" in line]
        x = TfidfVectorizer(min_df=2, max_df=0.5, stop_words="english").fit_transform(texts)
        path = folder / "nmf-sparse.npz"
        sp.save_npz(path, x)
        title = f"20 Newsgroups, tf-idf, {x.shape[0]:,} × {x.shape[1]:,}, {x.nnz:,} entries"
    yield title, path and str(path)
