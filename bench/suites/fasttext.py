"""Subword vectors and classification of texts, beside Meta's fastText and gensim.

Subword skip-gram on enwiki-2015, in lower case and cut into words beforehand (lines of at most 10,000 words; Meta's own cut
is at 1,024 words): d = 100, window 5, 5 negatives, subsampling 1e-4, words from 5 times on, n-grams of 3 to 6 characters in 2 M
buckets, rate 0.05, 5 epochs. Rates are words of the text × epochs over the time of training alone, without reading and
counting; of Meta's fastText, which does not tell, over the time of the whole call less that of a call without epochs. The CPU time of gradus
has reading and counting in it.
gensim judges all vectors; words that are out of the vocabulary take the vectors of their n-grams.

Classification of 20 Newsgroups and IMDB, the words of both sides cut beforehand: the same settings for gradus and Meta's
fastText, the time of the whole fit from a file, and beside it `tfidf` features with `logistic` and `svm`, and the quantised files.
"""

import csv
import gzip
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

WORDS = """
import gzip, json, os, resource, sys, tempfile, time
side, path, seed, threads, evals = sys.argv[1:6]
seed, threads = int(seed), int(threads)
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
import numpy as np
from gensim.models import KeyedVectors
from gensim.models.fasttext import FastText as Gensim, load_facebook_vectors
n = sum(len(line.split()) for line in open(path, encoding="utf-8"))
epochs = 5
if side == "gensim":
    sentences = [line.split() for line in open(path, encoding="utf-8")]
    model = Gensim(vector_size=100, window=5, negative=5, sample=1e-4, min_count=5, sg=1, min_n=3, max_n=6, bucket=2_000_000, alpha=0.05, workers=threads, seed=seed, epochs=epochs)
    model.build_vocab(sentences)
    begun, used = time.perf_counter(), cpu()
    model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    seconds, used = time.perf_counter() - begun, cpu() - used
    wv = model.wv
elif side == "meta":
    import fasttext
    same = dict(model="skipgram", dim=100, ws=5, neg=5, t=1e-4, minCount=5, minn=3, maxn=6, bucket=2_000_000, lr=0.05, thread=threads, verbose=0)
    # Reading, counting and the first rows, which a fit to the last line alone would not spare.
    begun, before = time.perf_counter(), cpu()
    fasttext.train_unsupervised(path, epoch=0, **same)
    setup, setup_cpu = time.perf_counter() - begun, cpu() - before
    begun, before = time.perf_counter(), cpu()
    model = fasttext.train_unsupervised(path, epoch=epochs, **same)
    seconds, used = time.perf_counter() - begun - setup, cpu() - before - setup_cpu
    with tempfile.TemporaryDirectory() as folder:
        model.save_model(folder + "/m.bin")
        wv = load_facebook_vectors(folder + "/m.bin")
else:
    import gradus
    from gradus.text import Skipgram
    gradus.set_threads(threads)
    model = Skipgram(dimension=100, subsample=1e-4, max_n=6, learning_rate=0.05, tokens="blanks", lowercase=False, max_iter=epochs, random_state=seed)
    before = cpu()
    model.fit(open(path, encoding="utf-8").read().splitlines())
    used = cpu() - before
    clock = [point["seconds"] for point in json.loads(model.model_.report)["trace"]]
    seconds = (clock[-1] - clock[0]) * epochs / (epochs - 1)
    with tempfile.TemporaryDirectory() as folder:
        model.save_fasttext(folder + "/m.bin")
        wv = load_facebook_vectors(folder + "/m.bin")
    # Files open there with the same vectors, of known and of unknown words.
    for word in [*list(model.vocabulary_)[:200], "unknownish", "wordlike"]:
        assert np.allclose(wv[word], model[word], atol=2e-5), word
scores = {}
for name in ("EN-WS-353-ALL", "EN-SIMLEX-999", "EN-RW-STANFORD"):
    scores[name] = wv.evaluate_word_pairs(f"{evals}/{name}.txt")[1][0]
# All pairs of rare words, by their n-grams where they are unknown.
from scipy.stats import spearmanr
pairs = [line.split() for line in open(f"{evals}/EN-RW-STANFORD.txt", encoding="utf-8")]
cosine = lambda a, b: float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-12))
scores["RW, all"] = spearmanr([cosine(wv[a.lower()], wv[b.lower()]) for a, b, *_ in pairs], [float(s) for _, _, s, *_ in pairs])[0]
with tempfile.NamedTemporaryFile("wb") as plain:
    plain.write(gzip.open(f"{evals}/questions-words.txt.gz").read())
    plain.flush()
    scores["analogies"] = wv.evaluate_word_analogies(plain.name)[0]
print(json.dumps({"seconds": seconds, "cpu": used, "rate": n * epochs / seconds, "cpu rate": n * epochs / used, "scores": scores}))
"""

CLASSES = """
import json, os, resource, sys, tempfile, time
side, train, test, threads, settings = sys.argv[1:6]
threads, settings = int(threads), json.loads(settings)
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def read(path):
    labels, texts = [], []
    for line in open(path, encoding="utf-8"):
        label, _, text = line.rstrip("\\n").partition(" ")
        labels.append(label.removeprefix("__label__"))
        texts.append(text)
    return texts, labels
import numpy as np
texts, labels = read(test)
found = {}
folder = tempfile.mkdtemp()
if side.startswith("meta"):
    import fasttext
    fasttext.FastText.eprint = lambda *_: None
    begun, before = time.perf_counter(), cpu()
    model = fasttext.train_supervised(train, dim=settings["dim"], lr=settings["lr"], epoch=settings["epoch"], wordNgrams=settings["ngrams"], loss=settings["loss"], bucket=2_000_000, minn=0, maxn=0, thread=threads, verbose=0)
    seconds, used = time.perf_counter() - begun, cpu() - before
    if side == "meta, quantised":
        model.quantize(train, qnorm=True, retrain=True, cutoff=settings["cutoff"], epoch=settings["epoch"], lr=settings["lr"], thread=threads)
        seconds, used = time.perf_counter() - begun, cpu() - before
    name = folder + ("/m.ftz" if "quant" in side else "/m.bin")
    model.save_model(name)
    found["bytes"] = os.path.getsize(name)
    guesses = [one[0].removeprefix("__label__") for one in model.predict(texts)[0]]
elif side.startswith("gradus"):
    import gradus
    from gradus.text import FastText
    gradus.set_threads(threads)
    more = dict(cutoff=settings["cutoff"], quantize=True) if "quant" in side else {}
    if side == "gradus, defaults":
        same = {}
    else:
        same = dict(dimension=settings["dim"], learning_rate=settings["lr"], max_iter=settings["epoch"], word_ngrams=settings["ngrams"], loss=settings["loss"])
    begun, before = time.perf_counter(), cpu()
    model = FastText(tokens="blanks", lowercase=False, random_state=0, **same, **more)
    model.fit(*read(train))
    seconds, used = time.perf_counter() - begun, cpu() - before
    guesses = [str(one) for one in model.predict(texts)]
    name = folder + ("/m.ftz" if more else "/m.bin")
    model.save_fasttext(name)
    found["bytes"] = os.path.getsize(name)
    try:
        import fasttext
        fasttext.FastText.eprint = lambda *_: None
        theirs = [one[0].removeprefix("__label__") for one in fasttext.load_model(name).predict(texts)[0]]
        found["same"] = float(np.mean([a == b for a, b in zip(theirs, guesses)]))
    except ImportError:
        pass
else:
    import gradus
    from gradus.linear import Logistic, Svm
    from gradus.text import Tfidf
    gradus.set_threads(threads)
    begun, before = time.perf_counter(), cpu()
    words = Tfidf(sublinear_tf=True, min_df=2, max_ngram=2)
    model = {"tfidf + logistic": lambda: Logistic(), "tfidf + svm": lambda: Svm()}[side]()
    known, classes = read(train)
    model.fit(words.fit_transform(known), np.array(classes))
    seconds, used = time.perf_counter() - begun, cpu() - before
    guesses = model.predict(words.transform(texts))
found.update(seconds=seconds, cpu=used, accuracy=float(np.mean([a == b for a, b in zip(guesses, labels)])))
print(json.dumps(found))
"""

#: Bytes of text: with them, gensim takes a minute on one thread.
TEXT = 10_000_000

#: Documents by data set: files, the columns of class and text, lines before the data.
SETS = {
    "20 Newsgroups": ("20newsgroups", "20newsgroups-{}.tab.gz", 0, 1, 3, {"dim": 100, "lr": 0.5, "epoch": 25, "ngrams": 2, "loss": "softmax", "cutoff": 100_000}),
    "IMDB": ("imdb", "imdb_{}.tsv.gz", 0, 3, 0, {"dim": 100, "lr": 0.5, "epoch": 10, "ngrams": 2, "loss": "softmax", "cutoff": 100_000}),
}


def documents(data, folder, name):
    """Files of fastText's form: shuffled, in lower case, cut into words."""
    import random

    source, pattern, label, text, skip, _ = SETS[name]
    paths = []
    for part in ("train", "test"):
        path = folder / f"{source}-{part}.txt"
        if not path.exists():
            found = data / source / pattern.format(part)
            if not found.exists():
                return None
            lines = []
            with gzip.open(found, "rt", encoding="utf-8") as rows:
                for row in list(csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))[skip:]:
                    if len(row) <= text:
                        continue
                    words = " ".join(re.findall(r"\w+", row[text].lower()))
                    lines.append(f"__label__{row[label].replace(' ', '-')} {words}\n")
            random.Random(0).shuffle(lines)
            path.write_text("".join(lines), encoding="utf-8")
        paths.append(str(path))
    return paths


#: Pinned apart from the other peers, without what they ask for: Meta's package would have an older NumPy.
PEERS = ["fasttext-wheel==0.9.2", "gensim==4.4.0", "smart_open==7.3.1", "wrapt"]


def peers(folder):
    """The folder of Meta's package and gensim, which are installed on the first use."""
    import subprocess

    path = folder / "fasttext-peers"
    if not path.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--target", str(path), *PEERS], check=True)
    return path


def run(options, tiny=False):
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, median, number, ratio, wanted
    from suites import words

    processes.run(["cargo", "build", "--release", "-p", "gradus-python", "--manifest-path", ROOT / "Cargo.toml"])
    library = ROOT / "python" / "gradus" / "_gradus.abi3.so"
    library.unlink(missing_ok=True)
    library.write_bytes((ROOT / "target" / "release" / "lib_gradus.so").read_bytes())
    FOLDER.mkdir(exist_ok=True)
    data = Path(DATA)
    search = f"{ROOT / 'python'}:{peers(FOLDER)}"
    environment = {"PYTHONPATH": search, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def one(code, *arguments):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return json.loads(processes.run(command, environment, options.timeout).stdout.splitlines()[-1])

    threads = sorted({1, min(2, options.threads)})
    table = Section("fastText: classification", ["data", "model", "accuracy", *(f"s, {n} thread{'s' * (n > 1)}" for n in threads), "CPU s", "file, MB", "same answers there"])
    sides = ["gradus", "meta", "gradus, defaults", "gradus, quantised", "meta, quantised", "tfidf + logistic", "tfidf + svm"]
    for name, (*_, settings) in SETS.items():
        asked = [side for side in sides if wanted(options, table.title, f"{name}, {side}")]
        if not asked:
            continue
        paths = documents(data, FOLDER, name)
        if paths is None:
            say(f"fasttext: {name} is not in {DATA}")
            continue
        for side in asked:
            settings = {**settings, "epoch": 2} if tiny else settings
            runs = {}
            for n in threads if side in ("gradus", "meta") else threads[-1:]:
                say(f"fasttext: {name}, {side}, {n} threads")
                rounds = options.repeat if side in ("gradus", "meta") else 1
                runs[n] = [one(CLASSES, side, *paths, n, json.dumps(settings)) for _ in range(rounds)]
            last = runs[threads[-1]]
            seconds = [number(median([run["seconds"] for run in runs[n]])) if n in runs else "–" for n in threads]
            size = f"{last[0]['bytes'] / 1e6:,.1f}" if "bytes" in last[0] else "–"
            same = f"{100 * last[0]['same']:.2f} %" if "same" in last[0] else "–"
            accuracy = f"{median([run['accuracy'] for run in last]):.4f}"
            table.rows.append([name, side, accuracy, *seconds, number(median([run["cpu"] for run in last])), size, same])
    table.notes = [f"the same settings for gradus and Meta's: {', '.join(f'{name}: {json.dumps(of[-1])}' for name, of in SETS.items())}; whole fits, reading included"]
    if table.rows:
        yield table

    asked = [n for n in threads if wanted(options, "fastText: subword skip-gram", f"{n} thread{'s' * (n > 1)}")]
    if not asked:
        return
    path = words.text(data, FOLDER, 2_000_000 if tiny else TEXT)
    if path is None:
        say(f"fasttext: enwiki-2015 is not in {DATA}")
        return
    rates = Section("fastText: subword skip-gram, speed", ["threads", "clock", "gradus, k words/s", "Meta, k words/s", "gensim, k words/s", "gradus ÷ Meta", "gradus ÷ gensim"])
    names = ["EN-WS-353-ALL", "EN-SIMLEX-999", "EN-RW-STANFORD", "RW, all", "analogies"]
    scores = Section("fastText: subword skip-gram, scores", ["side", "WS-353 ρ", "SimLex ρ", "RW ρ", "RW ρ, all pairs", "analogies"])
    found = {"gradus": [], "meta": [], "gensim": []}
    for n in asked:
        measured = {side: [] for side in found}
        for turn in range(options.repeat):
            for side in found:
                say(f"fasttext: skip-gram, {side}, {n} threads, round {turn + 1} of {options.repeat}")
                measured[side].append(one(WORDS, side, path, 1 + len(found[side]), n, data / "word-eval"))
                found[side].append(measured[side][-1]["scores"])
        for clock, rate in (("wall", "rate"), ("CPU", "cpu rate")):
            a, b, c = (median([run[rate] for run in measured[side]]) / 1e3 for side in found)
            rates.rows.append([str(n), clock, number(a), number(b), number(c), ratio(a, b), ratio(a, c)])
    for side, runs in found.items():
        cells = []
        for name in names:
            values = [run[name] for run in runs]
            mean = sum(values) / len(values)
            spread = (sum((x - mean) ** 2 for x in values) / max(len(values) - 1, 1)) ** 0.5
            cells.append(f"{mean:.4f} ± {spread:.4f}")
        scores.rows.append([side, *cells])
    rates.notes = [f"{path.name}, {path.stat().st_size / 1e6:,.0f} MB; medians of {options.repeat} alternating processes; training alone"]
    scores.notes = ["mean and standard deviation over runs; gensim judges all, gradus and Meta from their .bin files"]
    yield rates
    yield scores


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    from types import SimpleNamespace

    for section in run(SimpleNamespace(repeat=1, threads=2, timeout=3600), tiny="tiny" in sys.argv[1:]):
        print(section.markdown())
