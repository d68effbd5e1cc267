"""Word vectors from counts: co-occurrences, GloVe and PPMI-SVD, beside GloVe's own program and the PyPI package `glove`.

Counting is compared with Stanford's `cooccur`, which is on no package index: `STANFORD_GLOVE` names a folder with its built
programs, and without it gradus is measured alone. Training is compared with the compiled loop of the package `glove`
1.0.2, which is that of Stanford's program, on the same counts. It builds with setuptools below 70 only, and once its
`setup.py` names `glove/glove_inner.pyx` without the folders above, so it is not among the pins: `GLOVE_PACKAGE` names a folder that it was installed into (`pip install --target`, with
`CFLAGS="-O3 -march=native -ffast-math"`: a peer is measured at its best). Vectors are scored by one evaluator: Spearman's ρ on WS-353 and
SimLex-999, the share of Google's analogies that are solved. All times are seconds of CPU (user and system), of one thread.
`python bench/suites/glove.py tiny` runs everything on a megabyte of text.
"""

import json
import lzma
import os
import re
import resource
import struct
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WINDOW, DIMENSION, LEAST = 10, 100, 5

TRAIN = """
import json, sys, time
import numpy as np
from glove import Glove
from glove.glove_inner import train_glove
path, dimension, epochs, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
pairs = np.fromfile(path, dtype=[("i", "<i4"), ("j", "<i4"), ("n", "<f8")])
pairs = pairs[np.random.default_rng(0).permutation(len(pairs))]
words = open(path + ".words", encoding="utf-8").read().split()
model = Glove({}, len(words), d=dimension, x_max=10.0, alpha=0.75)
job = tuple(np.ascontiguousarray(part) for part in ((pairs["i"] - 1).astype(np.uint32), (pairs["j"] - 1).astype(np.uint32), pairs["n"]))
costs, started = [], time.process_time()
for _ in range(epochs):
    error = np.zeros(1)
    train_glove(model, job, 0.05, error)
    costs.append(error[0] / len(pairs))
used = time.process_time() - started
np.savez(out, words=np.array(words), vectors=(model.W + model.ContextW).astype(np.float32))
print(json.dumps({"cpu": used, "costs": costs}))
"""


def used():
    """Seconds of CPU of all children so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def model(path):
    """The words, vectors and trace of a model file of words."""
    import numpy as np

    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])

    def tensor(name, dtype):
        start, end = header[name]["data_offsets"]
        return np.frombuffer(data[8 + size + start : 8 + size + end], dtype=dtype).reshape(header[name]["shape"])

    text, offsets = tensor("words.text", np.uint8).tobytes(), tensor("words.offsets", np.uint64).astype(int)
    words = [text[start:end].decode() for start, end in zip(offsets[:-1], offsets[1:])]
    order = tensor("ranking", np.uint32)
    trace = json.loads(header["__metadata__"]["gradus"])["report"]["trace"]
    costs = [point["objective"] for point in trace]
    return [words[at] for at in order], tensor("vectors", np.float32)[order], costs


def score(folder, words, vectors):
    """Spearman's ρ on WS-353 and SimLex-999, and the share of analogies solved (of the 30,000 most frequent words)."""
    import gzip

    import numpy as np
    from scipy.stats import spearmanr

    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    place = {word: at for at, word in enumerate(words)}
    found = []
    for name in ("EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt"):
        ours, theirs = [], []
        for line in (folder / name).read_text().splitlines():
            a, b, judged = line.lower().split()[:3]
            if a in place and b in place:
                ours.append(float(vectors[place[a]] @ vectors[place[b]]))
                theirs.append(float(judged))
        found.append(float(spearmanr(ours, theirs)[0]) if len(ours) > 2 else None)
    vectors = vectors[:30_000]
    questions = []
    for line in gzip.open(folder / "questions-words.txt.gz", "rt"):
        four = [place.get(word, len(vectors)) for word in line.lower().split()]
        if not line.startswith(":") and len(four) == 4 and max(four) < len(vectors):
            questions.append(four)
    solved = 0
    for first in range(0, len(questions), 512):
        a, b, c, d = np.array(questions[first : first + 512]).T
        cosines = (vectors[b] - vectors[a] + vectors[c]) @ vectors.T
        for column in (a, b, c):
            cosines[np.arange(len(a)), column] = -np.inf
        solved += int((cosines.argmax(axis=1) == d).sum())
    found.append(solved / len(questions) if questions else None)
    return found


def run(options, tiny=False):
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, mebibytes, median, number, ratio

    paths = sorted((DATA / "enwiki-2015").glob("*.txt.xz"))
    if not paths or not (DATA / "word-eval").exists():
        say(f"glove: skipped: enwiki-2015 or word-eval is not in {DATA}")
        return
    FOLDER.mkdir(exist_ok=True)
    with lzma.open(paths[0], "rt", encoding="utf-8") as file:
        most = 1.0 if tiny else options.megabytes
        text = file.read(1 << 40 if most is None else int(most * 1e6)).lower()
    # All sides get the same words: what is no letter or digit of ASCII stands between them.
    text = re.sub(r"[^a-z0-9_\n]+", " ", text)
    corpus, counts = FOLDER / "glove.txt", FOLDER / "glove.counts"
    corpus.write_text(text)
    if "GRADUS_BIN" not in os.environ:
        processes.run(["cargo", "build", "--release", "-p", "gradus-cli", "--manifest-path", ROOT / "Cargo.toml"])
    processes.run(["cargo", "build", "--release", "-p", "gradus-text", "--example", "cooccurrence_time", "--manifest-path", ROOT / "Cargo.toml"])
    gradus = os.environ.get("GRADUS_BIN", ROOT / "target" / "release" / "gradus")
    counter = ROOT / "target" / "release" / "examples" / "cooccurrence_time"
    one = {"RAYON_NUM_THREADS": "1"}

    def measured(command):
        before = used()
        child = processes.run(command, one, options.timeout)
        return child, used() - before

    # Counting.
    counting = Section("Counting co-occurrences", ["program", "CPU, s", "÷ gradus", "pairs", "peak memory, MiB"])
    child, _ = measured([counter, corpus, WINDOW, LEAST, 0, counts])
    facts = json.loads(child.stdout)
    vocabulary = FOLDER / "glove.vocabulary"
    vocabulary.write_text("".join(f"{word} 1\n" for word in Path(f"{counts}.words").read_text().split()))
    sides = [("gradus, vocabulary and counts", [counter, corpus, WINDOW, LEAST])]
    sides.append(("the same within 64 MB: runs on disk", [counter, corpus, WINDOW, LEAST, 64]))
    stanford = os.environ.get("STANFORD_GLOVE")
    if stanford:
        program = [Path(stanford) / "cooccur", "-verbose", 0, "-symmetric", 1, "-window-size", WINDOW, "-vocab-file", vocabulary]
        program += ["-memory", 4, "-overflow-file", FOLDER / "glove-overflow"]
        shell = " ".join(map(str, program)) + f" < {corpus} > {FOLDER / 'glove-stanford.bin'}"
        sides.append(("Stanford's cooccur, counts alone", ["sh", "-c", shell]))
    else:
        say("glove: Stanford's programs are left out: STANFORD_GLOVE names no folder")
    took = {title: [] for title, _ in sides}
    peaks = {}
    for turn in range(options.repeat):
        for title, command in sides:
            say(f"glove: {title}: round {turn + 1} of {options.repeat}")
            child, cpu = measured(command)
            took[title].append(cpu)
            peaks[title] = child.peak
    base = median(took[sides[0][0]])
    for title, _ in sides:
        pairs = f"{facts['pairs']:,}"
        if "Stanford" in title:
            pairs = f"{(FOLDER / 'glove-stanford.bin').stat().st_size // 16:,}"
        counting.rows.append([title, number(median(took[title])), ratio(median(took[title]), base), pairs, mebibytes(peaks[title])])
    counting.notes = [f"enwiki-2015 in lower case, {facts['tokens']:,} words of {facts['words']:,} different ones ({LEAST} times or more), window {WINDOW}, symmetric, 1 / distance; one thread, medians of {options.repeat}"]

    # Training, and how good the vectors are.
    training = Section(
        "Vectors of words from counts",
        ["model", "iterations", "CPU of an iteration, s", "CPU of all, s", "cost at the end", "WS-353", "SimLex-999", "analogies"],
    )
    epochs = 2 if tiny else 15

    def row(title, iterations, each, whole, cost, scores):
        scores = ["–" if value is None else f"{value:.3f}" for value in scores]
        training.rows.append([title, str(iterations), number(each), number(whole), "–" if cost is None else f"{cost:.4f}", *scores])

    def fit(title, name, iterations, *flags):
        out = FOLDER / f"glove-{name}.gradus"
        spent = []
        for limit in [1, iterations] if iterations else [None]:
            say(f"glove: {title}")
            extra = ["--max-iter", limit] if limit else []
            command = [gradus, "fit", name, corpus, "--lines", "--tokens", "blanks", "--min-count", LEAST, "--quiet", "--force", "-o", out]
            spent.append(measured([*command, *flags, *extra])[1])
        words, vectors, costs = model(out)
        each = (spent[-1] - spent[0]) / (iterations - 1) if iterations else None
        row(title, iterations or "–", each, spent[-1], costs[-1] if iterations else None, score(DATA / "word-eval", words, vectors))

    same = ["--dimension", DIMENSION, "--window", WINDOW]
    fit("gradus `glove`, AdaGrad", "glove", epochs, *same)
    fit("gradus `glove`, ALS", "glove", 2 if tiny else 8, *same, "--solver", "als")
    fit("gradus `ppmi`", "ppmi", 0, "--dimension", DIMENSION)
    try:
        say("glove: package glove")
        out = FOLDER / "glove-peer.npz"
        command = [sys.executable, "-W", "ignore", "-c", TRAIN, counts, DIMENSION, epochs, out]
        found = json.loads(processes.run(command, {"PYTHONPATH": os.environ.get("GLOVE_PACKAGE", "")}, options.timeout).stdout)
        import numpy as np

        saved = np.load(out)
        scores = score(DATA / "word-eval", list(saved["words"]), saved["vectors"])
        row("package glove 1.0.2 (Cython), training alone", epochs, found["cpu"] / epochs, found["cpu"], found["costs"][-1], scores)
    except processes.Failed as error:
        say(f"glove: package glove is left out: {error}")
    training.notes = [
        f"{DIMENSION} coordinates, n_max 10, α 0.75, the text and counts of the table above; gradus with its default rate of steps (0.2 "
        "by row), the package with its own (0.05 by number); all: reading, counting and training; the cost of ALS includes its penalty",
        "one evaluator: Spearman's ρ of cosines; analogies by 3CosAdd among the 30,000 most frequent words",
    ]
    yield counting
    yield training


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    from types import SimpleNamespace

    started = time.time()
    for section in run(SimpleNamespace(repeat=1, threads=1, timeout=3600, megabytes=None), tiny="tiny" in sys.argv[1:]):
        print(section.markdown())
    print(f"{time.time() - started:.0f} s")
