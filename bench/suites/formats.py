"""Files of word vectors between gensim and gradus, in both directions: are vectors and neighbours the same?

Not a measurement of speed: a check beside the peer, which the tests of the repository cannot make without it. gensim trains
on a slice of enwiki-2015 and writes word2vec's text and binary formats; gradus reads them and answers for the neighbours of the
200 most frequent words. Then the other way round, GloVe's text included.
"""

import json
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ASKED, NEAR = 200, 10

GENSIM = """
import json, sys
import numpy as np
from gensim.models import KeyedVectors, Word2Vec
task, folder, asked, near = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def answers(vectors):
    words = vectors.index_to_key
    np.save(f"{folder}/vectors.npy", vectors.vectors)
    return {"words": words, "near": {word: vectors.most_similar(word, topn=near) for word in words[:asked]}}

if task == "train":
    sentences = [line.split() for line in open(f"{folder}/text.txt", encoding="utf-8")]
    vectors = Word2Vec(sentences, vector_size=50, min_count=5, sg=1, epochs=1, seed=1).wv
    vectors.save_word2vec_format(f"{folder}/gensim.txt")
    vectors.save_word2vec_format(f"{folder}/gensim.bin", binary=True)
else:
    vectors = KeyedVectors.load_word2vec_format(task, binary=task.endswith(".bin"), no_header=task.endswith("glove.txt"))
print(json.dumps(answers(vectors)))
"""


PHRASES = """
import json, sys
from collections import Counter
from gensim.models.phrases import Phrases
lines = [line.split() for line in open(f"{sys.argv[1]}/text.txt", encoding="utf-8")]
phrases = Phrases(lines, min_count=5, threshold=0.5, scoring="npmi", delimiter="_")
found = Counter(word for line in lines for word in phrases[line] if "_" in word)
alone = {word for line in lines for word in line if "_" in word}
print(json.dumps({word: n for word, n in found.items() if n >= 5 and word not in alone}))
"""


def phrases_of(path):
    """The phrases of a model of words, and how often each is in the text."""
    import numpy as np

    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])

    def tensor(name, dtype):
        start, end = header[name]["data_offsets"]
        return np.frombuffer(data[8 + size + start : 8 + size + end], dtype=dtype)

    text, offsets, counts = tensor("words.text", np.uint8).tobytes(), tensor("words.offsets", np.uint64).astype(int), tensor("counts", np.uint64)
    return {text[offsets[at] : offsets[at + 1]].decode(): int(counts[at]) for at in tensor("phrases", np.uint32)}


def vectors_of(path):
    """The words and vectors of a file in word2vec's text format."""
    import numpy as np

    lines = Path(path).read_text(encoding="utf-8").split("\n")[1:-1]
    fields = [line.split(" ") for line in lines]
    return [field[0] for field in fields], np.array([field[1:] for field in fields], dtype=np.float32)


def run(options):
    import numpy as np
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section
    from suites import words

    processes.run(["cargo", "build", "--release", "-p", "gradus-cli", "--manifest-path", ROOT / "Cargo.toml"])
    gradus = ROOT / "target" / "release" / "gradus"
    folder = FOLDER / "formats"
    folder.mkdir(parents=True, exist_ok=True)
    text = words.text(Path(DATA), FOLDER, 4_000_000)
    if text is None:
        say(f"formats: skipped: enwiki-2015 is not in {DATA}")
        return
    (folder / "text.txt").write_bytes(text.read_bytes())

    def peer(task):
        command = [sys.executable, "-c", GENSIM, task, folder, ASKED, NEAR]
        return json.loads(processes.run(command, {}, options.timeout).stdout), np.load(folder / "vectors.npy")

    def same(found, model):
        """How many of the words have the same neighbours; those with equal cosines may change places."""
        right = 0
        for word, near in found["near"].items():
            command = [gradus, "similar", model, "--word", word, "-n", NEAR, "--json"]
            ours = json.loads(processes.run(command, {}, options.timeout).stdout)["similar"]
            close = np.allclose([x["similarity"] for x in ours], [x for _, x in near], atol=2e-6)
            right += close and {x["name"] for x in ours[:-1]} <= {name for name, _ in near}
        return f"{right} of {len(found['near'])}"

    section = Section("Files of word vectors", ["file", "written by", "read by", "words", "largest difference", "words with the same neighbours"])

    def row(path, writer, reader, found, theirs, ours, model):
        say(f"formats: {path.name}, {writer} to {reader}")
        names, values = ours
        differ = float(np.abs(values - theirs).max()) if names == found["words"] else None
        cell = "other words" if differ is None else f"{differ:.1e}" if differ else "0"
        section.rows.append([path.name, writer, reader, f"{len(found['words']):,}", cell, same(found, model)])

    found, theirs = peer("train")
    for name in ("gensim.txt", "gensim.bin"):
        again = folder / "again.txt"
        processes.run([gradus, "export", folder / name, again, "--format", "text", "--force"])
        row(folder / name, "gensim", "gradus", found, theirs, vectors_of(again), folder / name)
    model = folder / "model.gradus"
    processes.run([gradus, "fit", "skipgram", folder / "text.txt", "--lines", "--tokens", "blanks", "--dimension", 50, "--max-iter", 1, "--quiet", "--force", "-o", model])
    plain = folder / "gradus.txt"
    processes.run([gradus, "export", model, plain, "--format", "text", "--force"])
    for name, form in (("gradus.txt", "text"), ("gradus.bin", "binary"), ("gradus-glove.txt", "glove")):
        processes.run([gradus, "export", model, folder / name, "--format", form, "--force"])
        found, theirs = peer(str(folder / name))
        row(folder / name, "gradus", "gensim", found, theirs, vectors_of(plain), model)
    section.notes = [f"neighbours: the {NEAR} nearest of the {ASKED} most frequent words, cosines equal to 2·10⁻⁶"]
    yield section
    say("formats: phrases")
    fit = [gradus, "fit", "cbow", folder / "text.txt", "--lines", "--tokens", "blanks", "--dimension", 4, "--max-iter", 1, "--phrases", "npmi"]
    processes.run([*fit, "--quiet", "--force", "-o", model])
    theirs = json.loads(processes.run([sys.executable, "-c", PHRASES, folder], {}, options.timeout).stdout)
    ours = phrases_of(model)
    both = set(ours) & set(theirs)
    section = Section("Phrases by normalised mutual information", ["gradus", "gensim", "the same", "of these, as often"])
    section.rows.append([f"{len(ours):,}", f"{len(theirs):,}", f"{len(both):,}", f"{sum(ours[phrase] == theirs[phrase] for phrase in both):,}"])
    section.notes = ["threshold 0.5, 5 times or more; without phrases that the text itself has as one word"]
    yield section


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    from types import SimpleNamespace

    for section in run(SimpleNamespace(repeat=1, threads=2, timeout=600)):
        print(section.markdown())
