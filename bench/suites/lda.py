"""Latent Dirichlet allocation beside tomotopy (Gibbs sampling) and scikit-learn (online variational Bayes).

Both sides learn from the same counts: 20 Newsgroups (English stop words, words in 5 documents and more, in half of them at
most) and Associated Press as it comes; a tenth of the documents is held out. One evaluator scores the topics of all sides: it takes
`p(word | topic)` and the prior of the topics, folds in the first half of the words of each held-out document by
expectation maximisation, and computes the perplexity of the second half; and the NPMI of the ten top words of each topic in
the documents of training. `python bench/suites/lda.py tiny` runs everything on a small made corpus.
"""

import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOPICS = 100
SWEEPS = 200

WORK = """
import json, resource, sys, time
import numpy as np, scipy.sparse as sp
side, path, k, sweeps, threads, seed, out = sys.argv[1:8]
k, sweeps, threads, seed = int(k), int(sweeps), int(threads), int(seed)
X = sp.load_npz(path).tocsr()
tokens = float(X.sum())
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
if side == "tomotopy":
    import tomotopy as tp
    model = tp.LDAModel(k=k, alpha=0.1, eta=0.01, seed=seed)
    for row in range(X.shape[0]):
        at = slice(X.indptr[row], X.indptr[row + 1])
        words = np.repeat(X.indices[at], X.data[at].astype(int))
        if len(words):
            model.add_doc([str(word) for word in words])
    model.train(0, workers=threads)
    started, used = time.perf_counter(), cpu()
    model.train(sweeps, workers=threads)
    seconds, used = time.perf_counter() - started, cpu() - used
    topics = np.zeros((k, X.shape[1]))
    columns = np.array([int(word) for word in model.used_vocabs])
    for topic in range(k):
        topics[topic, columns] = model.get_topic_word_dist(topic)
    alpha = np.asarray(model.alpha, float)
elif side in ("gibbs", "variational", "online"):
    import gradus
    gradus.set_threads(threads)
    from gradus.latent import Lda
    model = Lda(n_topics=k, algorithm=side, max_iter=sweeps, random_state=seed)
    used = cpu()
    model.fit(X)
    used = cpu() - used
    clock = [point["seconds"] for point in json.loads(model.model_.report)["trace"]]
    # Without what comes before the first sweep: tomotopy's documents are added before its clock starts.
    seconds = (clock[-1] - clock[0]) * len(clock) / max(len(clock) - 1, 1) if len(clock) > 1 else clock[-1]
    topics, alpha = model.topics_, model.alpha_
else:
    from sklearn.decomposition import LatentDirichletAllocation
    model = LatentDirichletAllocation(k, learning_method="online", batch_size=1024, max_iter=sweeps, random_state=seed, n_jobs=threads)
    started, used = time.perf_counter(), cpu()
    model.fit(X)
    seconds, used = time.perf_counter() - started, cpu() - used
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    alpha = np.full(k, model.doc_topic_prior_)
np.savez(out, topics=topics, alpha=alpha)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "cpu": used, "rate": tokens * sweeps / seconds, "peak": peak}))
"""

STREAM = """
import json, resource, sys, time
import numpy as np, scipy.sparse as sp
import gradus
from gradus.latent import Lda
documents, threads = int(sys.argv[1]), int(sys.argv[2])
gradus.set_threads(threads)
words, planted, batch = 10_000, 100, 4096
rng = np.random.default_rng(0)
truth = rng.dirichlet(np.full(words, 0.02), planted).astype(np.float32)
sums = np.cumsum(truth, axis=1)
model, done, seconds = Lda(n_topics=100, random_state=0), 0, 0.0
while done < documents:
    n = min(batch, documents - done)
    # Two topics a document, sixty words.
    of = rng.integers(0, planted, (n, 2))[np.arange(n)[:, None], (rng.random((n, 60)) < 0.3).astype(int)]
    draws = rng.random((n, 60)).astype(np.float32)
    columns = np.empty((n, 60), np.int32)
    for topic in range(planted):
        at = of == topic
        columns[at] = np.minimum(np.searchsorted(sums[topic], draws[at]), words - 1)
    X = sp.csr_matrix((np.ones(n * 60), columns.ravel(), np.arange(0, n * 60 + 1, 60)), shape=(n, words))
    X.sum_duplicates()
    started = time.perf_counter()
    model.partial_fit(X, total_samples=documents)
    seconds += time.perf_counter() - started
    done += n
found = model.topics_
best = [float(np.minimum(row, found).sum(axis=1).max()) for row in truth]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "peak": peak, "overlap": float(np.median(best))}))
"""


def judge(path, train, held):
    """Perplexity of the second halves of held-out documents, and the mean NPMI of the ten top words of each topic."""
    import numpy as np

    found = np.load(path)
    topics, alpha = found["topics"].astype(float), found["alpha"].astype(float)
    log, n = 0.0, 0.0
    for row in range(held.shape[0]):
        at = slice(held.indptr[row], held.indptr[row + 1])
        words, counts = held.indices[at], held.data[at]
        if counts.sum() < 2:
            continue
        turn = np.concatenate([[0], np.cumsum(counts)[:-1]]) % 2
        first = np.floor((counts + 1 - turn) / 2)
        second = counts - first
        phi = topics[:, words]
        theta = alpha / alpha.sum()
        for _ in range(50):
            joint = theta[:, None] * phi
            theta = alpha + (joint / np.maximum(joint.sum(axis=0), 1e-300)) @ first
            theta /= theta.sum()
        log += second @ np.log(np.maximum(theta @ phi, 1e-300))
        n += second.sum()
    by_word = (train > 0).astype(float).tocsc()
    total, scores = train.shape[0], []
    for row in topics:
        top = np.argsort(-row, kind="stable")[:10]
        together = (by_word[:, top].T @ by_word[:, top]).toarray() / total
        alone = np.diag(together)
        for i in range(10):
            for j in range(i):
                joint = together[i, j] + 1e-12
                scores.append(np.log(joint / (alone[i] * alone[j])) / -np.log(joint))
    return float(np.exp(-log / n)), float(np.mean(scores))


def spread(values, digits):
    """Mean and standard deviation, as text."""
    import statistics

    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def corpora(data, folder, tiny=False):
    """Titles, and files of training and held-out counts; None where the data is absent."""
    import gzip

    import numpy as np
    import scipy.sparse as sp

    def parts(name, X):
        X = X[np.asarray(X.sum(axis=1)).ravel() > 0]
        held = np.arange(X.shape[0]) % 10 == 0
        # Words that training does not have: no side knows them.
        X = sp.csr_matrix(X)[:, np.asarray(X[~held].sum(axis=0)).ravel() > 0]
        paths = folder / f"lda-{name}-train.npz", folder / f"lda-{name}-held.npz"
        for path, part in zip(paths, (X[~held], X[held])):
            part = sp.csr_matrix(part, dtype=float)
            part.sort_indices()
            sp.save_npz(path, part)
        return paths, f"{X.shape[0]:,} documents, {X.shape[1]:,} words, {int(X.sum()):,} tokens"

    if tiny:
        rng = np.random.default_rng(0)
        topics = rng.dirichlet(np.full(200, 0.05), 5)
        X = np.stack([rng.multinomial(40, topics[rng.integers(5)]) for _ in range(200)])
        paths, shape = parts("tiny", sp.csr_matrix(X))
        yield f"made, {shape}", paths
        return
    source = data / "20newsgroups" / "20newsgroups-train.tab.gz"
    if source.exists():
        from sklearn.feature_extraction.text import CountVectorizer

        lines = gzip.open(source, "rt", encoding="utf-8", errors="replace").read().split("\n")[3:]
        texts = [line.split("\t", 1)[1] for line in lines if "\t" in line]
        X = CountVectorizer(stop_words="english", min_df=5, max_df=0.5).fit_transform(texts)
        paths, shape = parts("20newsgroups", X)
        yield f"20 Newsgroups, {shape}", paths
    else:
        yield "20 Newsgroups", None
    source = data / "associated-press" / "ap.ldac.gz"
    if source.exists():
        indptr, indices, values = [0], [], []
        for line in gzip.open(source, "rt"):
            for pair in line.split()[1:]:
                word, count = pair.split(":")
                indices.append(int(word))
                values.append(float(count))
            indptr.append(len(indices))
        paths, shape = parts("ap", sp.csr_matrix((values, indices, indptr)))
        yield f"Associated Press, {shape}", paths
    else:
        yield "Associated Press", None


def run(options, tiny=False):
    import processes
    import scipy.sparse as sp
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, median, number, ratio, wanted

    processes.run(["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    FOLDER.mkdir(exist_ok=True)
    k, sweeps = (5, 20) if tiny else (TOPICS, SWEEPS)
    # Two rounds at most: the suite should take minutes.
    rounds = min(options.repeat, 2)

    def one(side, path, k, sweeps, threads, seed=1):
        out = str(FOLDER / f"lda-{side}.npz")
        environment = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", WORK, side, str(path), str(k), str(sweeps), str(threads), str(seed), out]
        return json.loads(processes.run(command, environment, options.timeout).stdout), out

    gibbs = Section(
        f"LDA by Gibbs sampling, {k} topics, {sweeps} sweeps",
        ["data", "threads", "gradus, M tokens/s", "tomotopy, M tokens/s", "gradus ÷ tomotopy"],
    )
    scores = Section(f"LDA by Gibbs sampling, {k} topics, {sweeps} sweeps: scores", ["data", "side", "perplexity", "NPMI"])
    online = Section(
        f"Online LDA, {k} topics, 5 passes",
        ["data", "threads", "gradus, s a pass", "scikit-learn, s a pass", "scikit-learn ÷ gradus", "perplexity", "scikit-learn's", "NPMI", "scikit-learn's"],
    )
    growth = Section("LDA by Gibbs sampling: cost against topics and tokens", ["data", "topics", "tokens", "gradus, M tokens/s", "tomotopy, M tokens/s"])
    first = None
    for title, paths in corpora(DATA, FOLDER, tiny):
        if paths is None:
            say(f"lda: {title} skipped: not in {DATA}")
            continue
        train, held = (sp.load_npz(path).tocsr() for path in paths)
        first = first or (title, paths[0], train)
        for threads in sorted({1, min(2, options.threads), options.threads}):
            if not wanted(options, gibbs.title, f"{title}, {threads} threads"):
                continue
            ours, theirs = [], []
            for turn in range(rounds):
                say(f"lda: {title}: {threads} threads, round {turn + 1} of {rounds}")
                ours.append(one("gibbs", paths[0], k, sweeps, threads))
                theirs.append(one("tomotopy", paths[0], k, sweeps, threads))
            a, b = (median([found["rate"] for found, _ in runs]) / 1e6 for runs in (ours, theirs))
            gibbs.rows.append([title, str(threads), number(a), number(b), ratio(a, b)])
        threads = options.threads
        if wanted(options, scores.title, title):
            for side, name in (("gibbs", "gradus"), ("tomotopy", "tomotopy")):
                found = []
                for seed in range(1, 1 + (1 if tiny else options.seeds)):
                    say(f"lda: {title}: {name}, seed {seed} of {options.seeds}")
                    # tomotopy repeats itself on one thread alone.
                    found.append(judge(one(side, paths[0], k, sweeps, threads if side == "gibbs" else 1, seed)[1], train, held))
                perplexities, coherences = zip(*found)
                scores.rows.append([title, name, spread(perplexities, 1), spread(coherences, 4)])
        if not wanted(options, online.title, title):
            continue
        say(f"lda: {title}: online")
        ours = [one("online", paths[0], k, 5, threads)]
        # More processes are not always faster.
        theirs = [min((one("sklearn", paths[0], k, 5, n) for n in sorted({1, threads})), key=lambda found: found[0]["seconds"])]
        a, b = (median([found["seconds"] for found, _ in runs]) / 5 for runs in (ours, theirs))
        (pa, na), (pb, nb) = (judge(runs[-1][1], train, held) for runs in (ours, theirs))
        online.rows.append([title, str(threads), number(a), number(b), ratio(b, a), f"{pa:.1f}", f"{pb:.1f}", f"{na:.4f}", f"{nb:.4f}"])
    if first is not None:
        title, path, train = first
        grid = [(topics, 1.0) for topics in ((5, 10) if tiny else (10, 30, 100, 300, 1000))]
        grid += [(k, share) for share in (0.25, 0.5)]
        for topics, share in grid:
            if not wanted(options, growth.title, f"{topics} topics, {share} of the documents"):
                continue
            say(f"lda: {topics} topics, {share} of the documents")
            part = path
            if share < 1:
                part = FOLDER / "lda-part.npz"
                sp.save_npz(part, train[: int(train.shape[0] * share)])
            tokens = int(sp.load_npz(part).sum())
            rates = [one(side, part, topics, 20, 1)[0]["rate"] / 1e6 for side in ("gibbs", "tomotopy")]
            growth.rows.append([title.split(",")[0], str(topics), f"{tokens:,}", *map(number, rates)])
    stream = Section("LDA over a stream", ["documents", "threads", "seconds in the fit", "documents/s", "peak memory, MiB", "overlap with the planted topics"])
    for documents in (2000, 4000) if tiny else (100_000, 1_000_000):
        if not wanted(options, stream.title, f"{documents:,} documents"):
            continue
        say(f"lda: a stream of {documents:,} documents")
        environment = {"PYTHONPATH": str(ROOT / "python")}
        command = [sys.executable, "-c", STREAM, str(documents), str(options.threads)]
        found = json.loads(processes.run(command, environment, options.timeout).stdout)
        rate = documents / found["seconds"]
        stream.rows.append([f"{documents:,}", str(options.threads), number(found["seconds"]), number(rate), number(found["peak"]), f"{found['overlap']:.2f}"])
    gibbs.notes = [
        "the same counts for both; gradus optimises both priors, tomotopy its α (every 10 sweeps, its default); rates are tokens × "
        f"sweeps over the time of the sweeps; medians of {rounds} alternating processes",
    ]
    scores.notes = [
        f"mean and standard deviation over {options.seeds} seeds; perplexity (a tenth of the documents held out, second half given "
        "the first) and NPMI (ten words, documents) by one evaluator"
    ]
    online.notes = ["one process each; batches of 1,024 documents; scikit-learn with its default rate and priors, with 1 and with as many processes as threads, the faster of both"]
    growth.notes = ["one thread, 20 sweeps: early ones, in which documents have most topics"]
    stream.notes = ["documents of 60 words from two of 100 planted topics over 10,000 words, made batch by batch (4,096); the overlap is the median over planted topics of Σ min(p, q) with the nearest topic found"]
    for section in (gibbs, scores, online, growth, stream):
        if section.rows:
            yield section


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    from types import SimpleNamespace

    started = time.time()
    for section in run(SimpleNamespace(repeat=1, threads=2, timeout=600, seeds=1), tiny="tiny" in sys.argv[1:]):
        print(section.title, section.columns, *section.rows, sep="\n")
    print(f"{time.time() - started:.0f} s")
