"""Skip-gram and CBOW beside gensim: words a second and scores, with the same settings on the same words.

The text of enwiki-2015 is put in lower case and cut into words (runs of letters, numbers and underscores) beforehand, so that
both sides read the same: lines of at most 10,000 words, which is as long as gensim's sentences may be. d = 100, window 5, 5
negatives, subsampling 1e-3, words from 5 times on, 5 epochs, rates of
steps from 0.025 (`cbow`: 0.05), as word2vec has them; with `--slow` hierarchical softmax as well. Rates are words of the text × epochs over the time of training alone,
without reading and counting. One judge scores the vectors of both: gensim's Spearman's ρ on WordSim-353, SimLex-999 and MEN, and the
share of Google's analogies that are completed.
"""

import json
import lzma
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORK = """
import gzip, json, resource, sys, time
import numpy as np
side, kind, path, seed, threads, evals = sys.argv[1:7]
seed, threads = int(seed), int(threads)
lines = open(path, encoding="utf-8").read().splitlines()
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
from gensim.models import KeyedVectors, Word2Vec
if side == "gensim":
    sentences = [line.split() for line in lines]
    n = sum(map(len, sentences))
    loss = {"hs": 1, "negative": 0} if "hierarchical" in kind else {"negative": 5}
    model = Word2Vec(vector_size=100, window=5, sample=1e-3, min_count=5, sg=int("skipgram" in kind), workers=threads, seed=seed, epochs=5, alpha=0.025 if "skipgram" in kind else 0.05, **loss)
    model.build_vocab(sentences)
    started, used = time.perf_counter(), cpu()
    model.train(sentences, total_examples=model.corpus_count, epochs=5)
    seconds, used = time.perf_counter() - started, cpu() - used
    vectors = model.wv
else:
    import gradus
    from gradus.text import Cbow, Skipgram
    gradus.set_threads(threads)
    n = sum(len(line.split()) for line in lines)
    loss = "hierarchical" if "hierarchical" in kind else "negative"
    model = (Skipgram if "skipgram" in kind else Cbow)(tokens="blanks", lowercase=False, loss=loss, max_iter=5, random_state=seed)
    used = cpu()
    model.fit(lines)
    used = cpu() - used
    clock = [point["seconds"] for point in json.loads(model.model_.report)["trace"]]
    # Without reading and counting, which come before the first epoch.
    seconds = (clock[-1] - clock[0]) * 5 / 4
    vectors = KeyedVectors(100)
    vectors.add_vectors(list(model.vocabulary_), model.vectors_)
scores = {}
for name in ("EN-WS-353-ALL", "EN-SIMLEX-999", "EN-MEN-TR-3k"):
    scores[name] = vectors.evaluate_word_pairs(f"{evals}/{name}.txt")[1][0]
# Analogies by 3CosAdd among the 30,000 most frequent words, many at a time.
order = vectors.index_to_key[:30_000]
place = {word: at for at, word in enumerate(order)}
unit = vectors.vectors[: len(order)] / np.maximum(np.linalg.norm(vectors.vectors[: len(order)], axis=1, keepdims=True), 1e-12)
lines = [line.lower().split() for line in gzip.open(f"{evals}/questions-words.txt.gz", "rt") if not line.startswith(":")]
four = np.array([[place[word] for word in line] for line in lines if all(word in place for word in line)])
right = 0
for part in np.array_split(four, max(1, len(four) // 512)):
    cosines = (unit[part[:, 1]] - unit[part[:, 0]] + unit[part[:, 2]]) @ unit.T
    for column in range(3):
        cosines[np.arange(len(part)), part[:, column]] = -np.inf
    right += int((cosines.argmax(axis=1) == part[:, 3]).sum())
scores["analogies"] = right / max(len(four), 1)
print(json.dumps({"seconds": seconds, "cpu": used, "rate": n * 5 / seconds, "scores": scores}))
"""


def text(data, folder, most=None):
    """The words of the text, a line for each paragraph."""
    source = data / "enwiki-2015" / "enwiki-2015-AA.txt.xz"
    if not source.exists():
        return None
    path = folder / f"words-{most or 'all'}.txt"
    if not path.exists():
        written = 0
        with lzma.open(source, "rt", encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
            for line in lines:
                words = re.findall(r"\w+", line.lower())
                for at in range(0, len(words), 10_000):
                    piece = " ".join(words[at : at + 10_000]) + "\n"
                    out.write(piece)
                    written += len(piece)
                if most is not None and written > most:
                    break
    return path


def slice_of(options, tiny):
    """How many letters of the text are taken; `None` for all."""
    most = 2.0 if tiny else options.megabytes
    return None if most is None else int(most * 1e6)


def run(options, tiny=False):
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, median, number, ratio, wanted

    processes.run(["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    FOLDER.mkdir(exist_ok=True)
    data = Path(DATA)
    path = text(data, FOLDER, slice_of(options, tiny))
    if path is None:
        say(f"words: skipped: enwiki-2015 is not in {DATA}")
        return
    evals = str(data / "word-eval")

    def one(side, kind, seed, threads):
        environment = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", WORK, side, kind, str(path), str(seed), str(threads), evals]
        return json.loads(processes.run(command, environment, options.timeout).stdout)

    names = ["EN-WS-353-ALL", "EN-SIMLEX-999", "EN-MEN-TR-3k", "analogies"]
    rates = Section("Vectors of words: speed", ["model", "threads", "gradus, k words/s", "gensim, k words/s", "gradus ÷ gensim", "gradus, CPU s", "gensim, CPU s", "ratio"])
    scores = Section("Vectors of words: scores", ["model", "side", "WS-353 ρ", "SimLex ρ", "MEN ρ", "analogies"])
    kinds = ["skipgram", "cbow", *(["skipgram hierarchical", "cbow hierarchical"] if options.slow else [])]
    for kind in kinds:
        if not wanted(options, rates.title, kind):
            continue
        found = {"gradus": [], "gensim": []}
        for threads in sorted({1, min(2, options.threads)}):
            measured = {"gradus": [], "gensim": []}
            for turn in range(options.repeat):
                for side in measured:
                    say(f"words: {kind}, {side}, {threads} threads, round {turn + 1} of {options.repeat}")
                    measured[side].append(one(side, kind, 1 + len(found[side]), threads))
                    found[side].append(measured[side][-1]["scores"])
            a, b = (median([run["rate"] for run in measured[side]]) / 1e3 for side in ("gradus", "gensim"))
            c, d = (median([run["cpu"] for run in measured[side]]) for side in ("gradus", "gensim"))
            rates.rows.append([kind, str(threads), number(a), number(b), ratio(a, b), number(c), number(d), ratio(d, c)])
        for side, runs in found.items():
            while len(runs) < (1 if tiny else options.seeds):
                say(f"words: {kind}, {side}, seed {1 + len(runs)}")
                runs.append(one(side, kind, 1 + len(runs), min(2, options.threads))["scores"])
            cells = []
            for name in names:
                values = [run[name] for run in runs]
                mean = sum(values) / len(values)
                spread = (sum((x - mean) ** 2 for x in values) / max(len(values) - 1, 1)) ** 0.5
                cells.append(f"{mean:.4f} ± {spread:.4f}")
            scores.rows.append([kind, side, *cells])
    rates.notes = [f"medians of {options.repeat} alternating processes; training alone, without reading and counting; CPU of a fit, of gradus with reading and counting"]
    size = sum(len(line.split()) for line in path.open(encoding="utf-8"))
    rates.notes.append(f"{size:,} words of text")
    scores.notes = ["mean and standard deviation over seeds; the same judge for both"]
    yield rates
    yield scores


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    from types import SimpleNamespace

    for section in run(SimpleNamespace(repeat=1, threads=2, timeout=3600, megabytes=None, seeds=5, slow=False), tiny="tiny" in sys.argv[1:]):
        print(section.title, section.columns, *section.rows, sep="\n")
