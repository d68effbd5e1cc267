"""K-means beside scikit-learn's and faiss's: the same start, the same number of iterations, the same inertia.

Every side begins at the same samples and makes the same number of Lloyd's iterations on data in single precision, each
in a process of its own; the whole `fit` is timed, labels included. Then what each gives by default, on digits and MNIST,
and curves against the number of samples, of clusters and of features.
"""

import gzip
import importlib.util
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORK = """
import json, sys, time, warnings
import numpy as np, scipy.sparse as sp
warnings.simplefilter("ignore")
side, path, k, steps, threads = sys.argv[1:6]
k, steps = int(k), int(steps)
X = sp.load_npz(path).tocsr() if path.endswith("npz") else np.load(path)
start = None
if steps:
    rows = np.sort(np.random.default_rng(0).choice(X.shape[0], k, replace=False))
    start = X[rows].toarray() if sp.issparse(X) else X[rows].copy()

def timed(fit):
    started, cpu = time.perf_counter(), time.process_time()
    found = fit()
    return found, time.perf_counter() - started, time.process_time() - cpu

if side == "sklearn":
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits
    model = KMeans(k, init=start, n_init=1, max_iter=steps, tol=0) if steps else KMeans(k, n_init=10, random_state=0)
    with threadpool_limits(int(threads)):
        _, wall, cpu = timed(lambda: model.fit(X))
    inertia, iterations = float(model.inertia_), int(model.n_iter_)
elif side == "faiss":
    import faiss
    faiss.omp_set_num_threads(int(threads))
    model = faiss.Kmeans(X.shape[1], k, niter=steps, max_points_per_centroid=X.shape[0], min_points_per_centroid=1)
    def fit():
        model.train(X, init_centroids=start)
        return model.index.search(X, 1)[0]
    distances, wall, cpu = timed(fit)
    inertia, iterations = float(distances.sum(dtype=np.float64)), steps
else:
    import gradus
    gradus.set_threads(int(threads))
    from gradus.latent import KMeans
    if steps:
        model = KMeans(n_clusters=k, init=start, max_iter=steps, tol=0.0, standardize=False)
    else:
        model = KMeans(n_clusters=k, standardize=False, random_state=0)
    _, wall, cpu = timed(lambda: model.fit(X))
    inertia, iterations = float(model.inertia_), int(model.n_iter_)
print(json.dumps({"seconds": wall, "cpu": cpu, "inertia": inertia, "iterations": iterations}))
"""

#: Samples, features, clusters, iterations, and the peers.
RACES = [
    (200_000, 32, 100, 20, ["sklearn", "faiss"]),
    (1_000_000, 128, 1000, 15, ["sklearn", "faiss"]),
]
CURVES = [
    *[(n, 32, 50, 10) for n in (25_000, 50_000, 100_000, 200_000, 400_000)],
    *[(100_000, 32, k, 10) for k in (10, 30, 100, 300, 1000)],
    *[(100_000, d, 50, 10) for d in (4, 16, 64, 256)],
]
TINY = ([(5_000, 16, 20, 5, ["sklearn", "faiss"])], [(2_000, 8, 5, 3), (4_000, 8, 5, 3)])


def made(folder, n, d, k):
    """Overlapping clusters in single precision."""
    import numpy as np

    path = folder / f"kmeans-{n}x{d}-{k}.npy"
    if not path.exists():
        rng = np.random.default_rng(1)
        centres = 2.0 * rng.normal(size=(k, d)).astype(np.float32)
        x = centres[rng.integers(0, k, n)] + rng.normal(size=(n, d)).astype(np.float32)
        np.save(path, x)
    return str(path)


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
    environment = {
        "PYTHONPATH": str(ROOT / "python"),
        "RAYON_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
    }
    FOLDER.mkdir(exist_ok=True)
    tiny = getattr(options, "tiny", False)
    races, curves = TINY if tiny else (RACES, CURVES)

    def one(side, path, k, steps):
        command = [sys.executable, "-c", WORK, side, path, str(k), str(steps), threads]
        return json.loads(processes.run(command, environment, options.timeout).stdout)

    def race(title, path, k, steps, peers, repeat):
        if "faiss" in peers and importlib.util.find_spec("faiss") is None:
            say(f"kmeans: {title}: faiss is left out: not installed")
            peers = [peer for peer in peers if peer != "faiss"]
        found = {side: [] for side in ["gradus", *peers]}
        for turn in range(repeat):
            for side in found:
                say(f"kmeans: {title}: {side}: round {turn + 1} of {repeat}")
                found[side].append(one(side, path, k, steps))
        ours = median([run["seconds"] for run in found["gradus"]])
        for side, runs in found.items():
            seconds = median([run["seconds"] for run in runs])
            cpu = median([run["cpu"] for run in runs])
            yield [
                title,
                side,
                number(seconds),
                number(cpu),
                ratio(seconds, ours),
                str(runs[0]["iterations"]),
                f"{runs[0]['inertia']:.8g}",
            ]

    columns = ["data", "program", "wall, s", "CPU, s", "÷ gradus", "iterations", "inertia"]
    section = Section("K-means from the same start", columns)
    for n, d, k, steps, peers in races:
        title = f"{n:,} × {d}, k = {k}"
        if not wanted(options, section.title, title):
            continue
        repeat = options.repeat if n < 500_000 else 1
        section.rows += race(title, made(FOLDER, n, d, k), k, steps, peers, repeat)
    title, path = news(DATA, FOLDER) if wanted(options, section.title, "20 Newsgroups") else ("", None)
    if path is None:
        say(f"kmeans: {title} skipped: not in {DATA}" if title else "kmeans: not asked for 20 Newsgroups")
    else:
        section.rows += race(title, path, 20, 100, ["sklearn"], options.repeat)
    section.notes = [
        f"{threads} threads; data in single precision; the median of {options.repeat} alternating processes (one of the largest); "
        "the start is the same samples for all; the time is that of the whole fit, labels included; faiss is answer to use all samples"
    ]
    if section.rows:
        yield section

    section = Section("K-means by default", ["data", "program", "wall, s", "CPU, s", "inertia"])
    for title, path, k in known(DATA, FOLDER):
        if path is None:
            say(f"kmeans: {title} skipped: not in {DATA}")
            continue
        if not wanted(options, section.title, title):
            continue
        for side in ("gradus", "sklearn"):
            say(f"kmeans: {title}: {side}")
            found = one(side, path, k, 0)
            section.rows.append([title, side, number(found["seconds"]), number(found["cpu"]), f"{found['inertia']:.8g}"])
    section.notes = ["gradus with no parameter but the number of clusters and `standardize=False`; scikit-learn with `n_init=10`"]
    if section.rows:
        yield section

    section = Section("K-means against size", ["samples", "features", "clusters", "gradus, s", "scikit-learn, s", "ratio", "same inertia"])
    for n, d, k, steps in curves:
        if not wanted(options, section.title, f"{n:,} × {d}, k = {k}"):
            continue
        path = made(FOLDER, n, d, k)
        say(f"kmeans: {n:,} × {d}, k = {k}")
        a, b = one("gradus", path, k, steps), one("sklearn", path, k, steps)
        same = abs(a["inertia"] - b["inertia"]) <= 1e-4 * b["inertia"]
        row = [f"{n:,}", str(d), str(k), number(a["seconds"]), number(b["seconds"]), ratio(b["seconds"], a["seconds"])]
        section.rows.append([*row, "yes" if same else f"{a['inertia']:.7g} and {b['inertia']:.7g}"])
    section.notes = [f"10 iterations from the same start, {threads} threads, one process each"]
    if section.rows:
        yield section


def news(data, folder):
    """The tf-idf of 20 Newsgroups; no path where the data is absent."""
    import scipy.sparse as sp

    source = data / "20newsgroups" / "20newsgroups-train.tab.gz"
    if not source.exists():
        return "20 Newsgroups, tf-idf", None
    from sklearn.feature_extraction.text import TfidfVectorizer

    lines = gzip.open(source, "rt", encoding="utf-8", errors="replace").read().splitlines()[3:]
    texts = [line.split("\t", 1)[1] for line in lines if "\t" in line]
    x = TfidfVectorizer(min_df=2, max_df=0.5, stop_words="english").fit_transform(texts)
    path = folder / "kmeans-news.npz"
    sp.save_npz(path, x)
    return f"20 Newsgroups, tf-idf, {x.shape[0]:,} × {x.shape[1]:,}, k = 20", str(path)


def known(data, folder):
    """Data whose inertia is known: titles, files and numbers of clusters."""
    import numpy as np
    from sklearn.datasets import load_digits

    path = folder / "kmeans-digits.npy"
    np.save(path, load_digits().data)
    yield "digits, 1,797 × 64, k = 10", str(path), 10
    images = sorted((data / "mnist").glob("*images-idx3-ubyte*"))
    path = None
    if images:
        parts = []
        for file in sorted(images, reverse=True):
            raw = gzip.open(file).read() if file.suffix == ".gz" else file.read_bytes()
            parts.append(np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784))
        path = folder / "kmeans-mnist.npy"
        np.save(path, np.concatenate(parts).astype(np.float32))
    yield "MNIST, 70,000 × 784, k = 10", path and str(path), 10
