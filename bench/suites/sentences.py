"""Vectors of documents as features: `doc2vec` and `sif` beside gensim's Doc2Vec (PV-DBOW), judged by one logistic regression.

20 Newsgroups (its published split by date) and IMDB. All sides read the same words: lower case, two letters or more. d = 100, 5
negatives, subsampling 1e-3, words from 5 times on, 20 epochs, and as many to find the vector of a document. Every document, of
training too, gets the vector that the fitted model finds for it. scikit-learn's logistic regression on standardised
coordinates is the judge; tf-idf with the same judge stands below.
"""

import gzip
import json
import pickle
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORK = """
import json, pickle, sys, time, warnings
warnings.filterwarnings("ignore")
import numpy as np
side, path, seed, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
(texts, y), (held, y_held) = pickle.load(open(path, "rb"))
begun = time.perf_counter()
if side == "gensim":
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument
    tagged = [TaggedDocument(text.split(), [at]) for at, text in enumerate(texts)]
    model = Doc2Vec(tagged, dm=0, dbow_words=0, vector_size=100, negative=5, sample=1e-3, min_count=5, epochs=20, seed=seed, workers=threads)
    fitted = time.perf_counter()
    x, x_held = (np.array([model.infer_vector(text.split()) for text in part]) for part in (texts, held))
elif side == "tfidf":
    from sklearn.feature_extraction.text import TfidfVectorizer
    model = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(texts)
    fitted = time.perf_counter()
    x, x_held = model.transform(texts), model.transform(held)
else:
    import gradus
    from gradus.text import Doc2Vec, Sif
    gradus.set_threads(threads)
    model = Doc2Vec(random_state=seed) if side == "doc2vec" else Sif(min_count=5)
    model.fit(texts)
    fitted = time.perf_counter()
    x, x_held = model.transform(texts), model.transform(held)
done = time.perf_counter()
from sklearn.linear_model import LogisticRegression
if side != "tfidf":
    middle, scale = x.mean(axis=0), x.std(axis=0)
    x, x_held = (x - middle) / scale, (x_held - middle) / scale
judge = LogisticRegression(C=10.0 if side == "tfidf" else 0.1, max_iter=300).fit(x, y)
print(json.dumps({"fit": fitted - begun, "transform": done - fitted, "accuracy": judge.score(x_held, y_held)}))
"""


def words(text):
    return " ".join(re.findall(r"\w\w+", text.lower()))


def newsgroups(data):
    """The parts of 20 Newsgroups, as texts and classes."""
    parts = []
    for part in ("train", "test"):
        path = data / "20newsgroups" / f"20newsgroups-{part}.tab.gz"
        rows = [line.rstrip("\n").split("\t") for line in gzip.open(path, "rt", encoding="utf-8")][3:]
        rows = [row for row in rows if len(row) == 2]
        parts.append(([words(row[1]) for row in rows], [row[0] for row in rows]))
    return parts


def imdb(data):
    """The parts of IMDB, as texts and classes."""
    parts = []
    for part in ("train", "test"):
        rows = [line.rstrip("\n").split("\t") for line in gzip.open(data / "imdb" / f"imdb_{part}.tsv.gz", "rt", encoding="utf-8")]
        rows = [row for row in rows if len(row) == 4]
        parts.append(([words(row[3]) for row in rows], [row[0] for row in rows]))
    return parts


def run(options, tiny=False):
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, median, number, wanted

    processes.run(["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    FOLDER.mkdir(exist_ok=True)
    threads = str(options.threads)
    environment = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for title, read in (("20 Newsgroups", newsgroups), ("IMDB", imdb)):
        if not (Path(DATA) / title.lower().replace(" ", "")).exists():
            say(f"sentences: {title} is left out: it is not in {DATA}")
            continue
        if not wanted(options, "Vectors of documents", title):
            continue
        section = Section(f"Vectors of documents: {title}", ["features", "fit, s", "vectors of all documents, s", "accuracy"])
        path = FOLDER / f"sentences-{title.split()[-1].lower()}.pickle"
        parts = [(texts[:1500], y[:1500]) if tiny else (texts, y) for texts, y in read(Path(DATA))]
        path.write_bytes(pickle.dumps(parts))
        for side, name in (("gensim", "gensim Doc2Vec"), ("doc2vec", "gradus `doc2vec`"), ("sif", "gradus `sif`"), ("tfidf", "tf-idf (scikit-learn)")):
            runs = []
            for turn in range(1 if side in ("tfidf", "sif") else options.repeat):
                say(f"sentences: {title}, {side}, round {turn + 1}")
                command = [sys.executable, "-c", WORK, side, path, turn + 1, threads]
                runs.append(json.loads(processes.run(command, environment, options.timeout).stdout))
            middle = {key: median([run[key] for run in runs]) for key in runs[0]}
            section.rows.append([name, number(middle["fit"]), number(middle["transform"]), f"{100 * middle['accuracy']:.1f} %"])
        section.notes = [f"{threads} threads; medians over {options.repeat} seeds; the judge is scikit-learn's logistic regression"]
        yield section


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    from types import SimpleNamespace

    for section in run(SimpleNamespace(repeat=1, threads=2, timeout=3600), tiny="tiny" in sys.argv[1:]):
        print(section.markdown())
