"""Counts and tf-idf of documents beside scikit-learn's vectorizers, and whether the matrices are the same.

Both get the same list of strings in a process of their own; the time is that of `fit_transform`.
"""

import gzip
import json
import lzma
import pickle
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Title, options of gradus, class and options of scikit-learn.
PROBLEMS = [
    ("counts", ("Counts", {}), ("CountVectorizer", {})),
    ("counts of words and pairs", ("Counts", {"max_ngram": 2, "min_df": 2}), ("CountVectorizer", {"ngram_range": [1, 2], "min_df": 2})),
    ("tf-idf", ("Tfidf", {}), ("TfidfVectorizer", {})),
    ("hashed to 2^20", ("Counts", {"n_hashed": 1 << 20}), ("HashingVectorizer", {"n_features": 1 << 20, "norm": None})),
]

WORK = """
import json, pickle, sys, time
import numpy as np

side, path, name, options, out = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]), sys.argv[5]
texts = pickle.load(open(path, "rb"))
if side == "gradus":
    import gradus.text as module
else:
    import sklearn.feature_extraction.text as module
    if "ngram_range" in options:
        options["ngram_range"] = tuple(options["ngram_range"])
model = getattr(module, name)(**options)
started = time.perf_counter()
x = model.fit_transform(texts)
seconds = time.perf_counter() - started
x.eliminate_zeros()
x.sort_indices()
np.savez(out, data=x.data.astype(float), indices=x.indices, indptr=x.indptr, shape=x.shape)
print(json.dumps({"seconds": seconds, "shape": x.shape, "entries": int(x.nnz)}))
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
        "Documents as features",
        ["data", "features", "gradus, s", "scikit-learn, s", "scikit-learn ÷ gradus", "shape", "largest difference"],
    )
    for title, texts in documents(DATA):
        if not any(wanted(options, title, what) for what, _, _ in PROBLEMS):
            continue
        if texts is None:
            say(f"text: {title} skipped: not in {DATA}")
            continue
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"text-{title.split()[0].lower()}.pickle"
        path.write_bytes(pickle.dumps(texts))
        size = sum(len(text) for text in texts) / 1e6
        label = f"{title}, {len(texts):,} documents, {size:.0f} M characters"
        for what, ours, theirs in PROBLEMS:
            if not wanted(options, title, what):
                continue
            took = {"gradus": [], "sklearn": []}
            outs = {side: FOLDER / f"text-{side}.npz" for side in took}
            for turn in range(options.repeat):
                say(f"text: {title}: {what}: round {turn + 1} of {options.repeat}")
                for side, (name, settings) in (("gradus", ours), ("sklearn", theirs)):
                    command = [sys.executable, "-W", "ignore", "-c", WORK, side, path, name, json.dumps(settings), outs[side]]
                    found = json.loads(processes.run(command, environment, options.timeout).stdout)
                    took[side].append(found["seconds"])
            a, b = median(took["gradus"]), median(took["sklearn"])
            shape = " × ".join(f"{n:,}" for n in found["shape"])
            row = [label, what, number(a), number(b), ratio(b, a), shape, difference(outs["gradus"], outs["sklearn"])]
            section.rows.append(row)
    section.notes = [
        f"the median of {options.repeat} alternating processes, {threads} threads (scikit-learn's vectorizers use one); the "
        "texts are strings in memory; the time is that of `fit_transform`",
    ]
    if section.rows:
        yield section


def documents(data):
    """Titles and lists of texts; None where the data is absent."""
    path = data / "20newsgroups" / "20newsgroups-train.tab.gz"
    texts = None
    if path.exists():
        lines = gzip.open(path, "rt", encoding="utf-8", errors="replace").read().splitlines()[3:]
        texts = [line.split("\t", 1)[1] for line in lines if "\t" in line]
    yield "20-newsgroups, training part", texts
    path = data / "imdb" / "imdb_train.tsv.gz"
    texts = None
    if path.exists():
        lines = gzip.open(path, "rt", encoding="utf-8", errors="replace").read().split("\n")
        texts = [line.rsplit("\t", 1)[1] for line in lines if "\t" in line]
    yield "IMDB reviews, training part", texts
    paths = sorted((data / "enwiki-2015").glob("*.txt.xz"))
    texts = None
    if paths:
        texts = [line for line in lzma.open(paths[0], "rt", encoding="utf-8").read().split("\n") if line]
    yield "enwiki-2015, a paragraph a document", texts


def difference(ours, theirs):
    """The largest difference of two matrices, or that they differ in shape."""
    import numpy as np
    import scipy.sparse as sp

    def load(path):
        parts = np.load(path)
        return sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))

    a, b = load(ours), load(theirs)
    if a.shape != b.shape:
        return f"{a.shape} and {b.shape}"
    return f"{abs(a - b).max():.1e}"
