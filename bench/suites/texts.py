"""Transformers for texts: classes beside word counts with a linear model, and texts from texts.

Classes of 20 Newsgroups and IMDB, the words cut beforehand as for `fasttext`: `textclassifier` and `fasttext` with their
defaults, and `tfidf` features (words and pairs of words) with `logistic` and `svm`. None of them knows other texts.

`seq2seq` with its defaults learns to reverse and to sort words of up to 10 letters and to add numbers of up to 3 and 4 digits;
2,000 pairs that are not among the 20,000 of training are translated token by token, and count only if all of the target is right.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

START = """
import json, resource, sys, time
import gradus
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
gradus.set_threads(int(sys.argv[1]))
def answer(fit, score):
    begun, before = time.perf_counter(), cpu()
    fit()
    found = {"seconds": time.perf_counter() - begun, "cpu": cpu() - before}
    print(json.dumps({**found, "score": score()}))
"""

CLASSES = (
    START
    + """
side, train, test = sys.argv[2:]
import numpy as np
def read(path):
    labels, texts = [], []
    for line in open(path, encoding="utf-8"):
        label, _, text = line.rstrip("\\n").partition(" ")
        labels.append(label.removeprefix("__label__"))
        texts.append(text)
    return texts, np.array(labels)
from gradus.linear import Logistic, Svm
from gradus.nn import TextClassifier
from gradus.text import FastText, Tfidf
(known, classes), (texts, truth) = read(train), read(test)
if side in ("textclassifier", "fasttext"):
    model = {"textclassifier": TextClassifier, "fasttext": FastText}[side](random_state=0)
    answer(lambda: model.fit(known, classes), lambda: float(np.mean(np.asarray(model.predict(texts)).astype(str) == truth)))
else:
    words = Tfidf(sublinear_tf=True, min_df=2, max_ngram=2)
    model = {"tfidf + logistic": Logistic, "tfidf + svm": Svm}[side]()
    answer(lambda: model.fit(words.fit_transform(known), classes), lambda: float(np.mean(model.predict(words.transform(texts)) == truth)))
"""
)

PAIRS = (
    START
    + """
import random
task, digits, seed = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
draw = random.Random(seed)
def number():
    n = draw.randint(1, digits)
    return draw.randint(10 ** (n - 1) if n > 1 else 0, 10**n - 1)
pairs = {}
while len(pairs) < 22_000:
    if task == "addition":
        a, b = number(), number()
        pairs[f"{a}+{b}"] = str(a + b)
    else:
        word = "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(1, 10)))
        pairs[word] = word[::-1] if task == "reverse" else "".join(sorted(word))
sources, targets = list(pairs), list(pairs.values())
from gradus.nn import Seq2Seq
model = Seq2Seq(random_state=seed)
answer(lambda: model.fit(sources[2_000:], targets[2_000:]), lambda: float(model.score(sources[:2_000], targets[:2_000])))
"""
)

SIDES = ["textclassifier", "fasttext", "tfidf + logistic", "tfidf + svm"]
TASKS = {
    "reverse words of up to 10 letters": ("reverse", 0),
    "sort words of up to 10 letters": ("sort", 0),
    "add numbers of up to 3 digits": ("addition", 3),
    "add numbers of up to 4 digits": ("addition", 4),
}


def run(options):
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, median, number, wanted
    from suites import fasttext

    processes.run(["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    FOLDER.mkdir(exist_ok=True)
    environment = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def one(code, *arguments):
        command = [sys.executable, "-c", code, str(options.threads), *map(str, arguments)]
        return json.loads(processes.run(command, environment, options.timeout).stdout.splitlines()[-1])

    table = Section("Classes of texts", ["data", "model", "accuracy", "fit, s", "fit, processor s"])
    for name in fasttext.SETS:
        asked = [side for side in SIDES if wanted(options, table.title, f"{name}, {side}")]
        paths = fasttext.documents(Path(DATA), FOLDER, name) if asked else None
        if asked and paths is None:
            say(f"texts: {name} is not in {DATA}")
            continue
        for side in asked:
            say(f"texts: {name}, {side}")
            found = one(CLASSES, side, *paths)
            table.rows.append([name, side, f"{found['score']:.4f}", number(found["seconds"]), number(found["cpu"])])
    table.notes = [
        "the test part, predicted once; `tfidf` of words and pairs of words with `sublinear_tf`, `min_df=2`; everything else as it comes; "
        f"{options.threads} threads",
    ]
    if table.rows:
        yield table

    table = Section("Texts from texts", ["task", "exact match", "fit, s", "fit, processor s"])
    for name, (task, digits) in TASKS.items():
        if not wanted(options, table.title, name):
            continue
        runs = []
        for seed in range(options.repeat):
            say(f"texts: {name}, seed {seed}")
            runs.append(one(PAIRS, task, digits, seed))
        scores = ", ".join(f"{run['score']:.4f}" for run in runs)
        times = [number(median([run[clock] for run in runs])) for clock in ("seconds", "cpu")]
        table.rows.append([name, scores, *times])
    table.notes = [
        f"`Seq2Seq()` as it comes, 20,000 pairs, seeds 0 to {options.repeat - 1} of pairs and fit; share of 2,000 further pairs whose target is found "
        f"exactly, token by token; {options.threads} threads",
    ]
    if table.rows:
        yield table
