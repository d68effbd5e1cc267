"""Word vectors of texts larger than memory: time and peak memory against the length of the text.

The text of enwiki-2015 is repeated up to 1 GB, so that the different words stay the same and only the length grows; it is
read part by part (`--stream`). One epoch of `cbow`, and the counting and factorisation of `ppmi`; beside them `cbow` with the text held.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def repeated(source, target, size):
    """Writes the text again and again until the file has this size; gives its number of words."""
    written = n = 0
    with target.open("w", encoding="utf-8") as out:
        while written < size:
            # A line at a time: a heavy parent would hide its children's peak memory.
            with source.open(encoding="utf-8") as lines:
                for line in lines:
                    out.write(line)
                    written, n = written + len(line.encode()), n + len(line.split())
                    if written >= size:
                        break
    return n


def run(options, tiny=False):
    import processes
    from datasets import DATA, WORK as FOLDER
    from progress import say
    from report import Section, mebibytes, number
    from suites import words

    processes.run(["cargo", "build", "--release", "-p", "gradus-cli", "--manifest-path", ROOT / "Cargo.toml"])
    gradus = ROOT / "target" / "release" / "gradus"
    FOLDER.mkdir(exist_ok=True)
    source = words.text(Path(DATA), FOLDER, 12_000_000)
    if source is None:
        say(f"stream: skipped: enwiki-2015 is not in {DATA}")
        return
    section = Section("Long texts", ["model", "text, MB", "million words", "seconds", "k words/s", "peak memory, MiB"])
    text = FOLDER / "stream.txt"
    for size in (2, 4) if tiny else (125, 250, 500, 1000):
        n = repeated(source, text, size * 1_000_000)
        kinds = [("cbow, streamed", ["cbow", "--stream", "--max-iter", 1]), ("ppmi, streamed", ["ppmi", "--stream", "--memory-limit", 512])]
        if size <= 250:
            kinds.append(("cbow, held", ["cbow", "--max-iter", 1]))
        for title, command in kinds:
            say(f"stream: {title}, {size} MB")
            fit = [gradus, "fit", command[0], text, "--lines", "--tokens", "blanks", "--dimension", 50, *command[1:]]
            child = processes.run([*fit, "--threads", options.threads, "--quiet", "--force", "-o", FOLDER / "stream.gradus"], {}, options.timeout)
            section.rows.append([title, str(size), f"{n / 1e6:.1f}", number(child.wall), number(n / child.wall / 1e3), mebibytes(child.peak)])
    text.unlink()
    section.notes = [f"{options.threads} threads; reading, numbering and one epoch (`cbow`), counting and decomposition (`ppmi`); 50 coordinates"]
    yield section


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "bench"))
    from types import SimpleNamespace

    for section in run(SimpleNamespace(threads=2, timeout=3600), tiny="tiny" in sys.argv[1:]):
        print(section.markdown())
