"""This build of gradus beside another one: the same commands, in alternating rounds."""

import json
import os
import tempfile
from pathlib import Path

import datasets
import peers
import processes
from progress import say
from report import Section, best, number, ratio

#: Penalties are given, so that no build spends time on choosing them. What is run: a title, a file of data and the words of the command; `@` stands for the file, `+` for a file to write.
FITS = [
    ("load 20 M ratings", "ratings", "info @"),
    ("als, K = 64, 5 iterations", "ratings", "fit als @ -o + --rank 64 --regularization 0.1 --max-iter 5 --tol 0"),
    ("ials, K = 64, 3 iterations", "ratings", "fit ials @ -o + --rank 64 --regularization 0.003 --unobserved 0.1 --max-iter 3 --tol 0"),
    ("sgd, K = 32, 5 epochs", "ratings", "fit sgd @ -o + --rank 32 --regularization 0.05 --max-iter 5 --tol 0"),
    ("linear 200,000 × 50", "table", "fit linear @ -o + --target y"),
    ("ridge 200,000 × 50", "table", "fit ridge @ -o + --target y"),
    ("lasso 200,000 × 50", "table", "fit lasso @ -o + --target y --regularization 0.01"),
    ("elastic net 200,000 × 50", "table", "fit elasticnet @ -o + --target y --regularization 0.01"),
    ("svr 200,000 × 50", "table", "fit svr @ -o + --target y"),
    ("logistic 200,000 × 50", "classes", "fit logistic @ -o + --target y"),
    ("svm 200,000 × 50", "classes", "fit svm @ -o + --target y"),
    ("svm, RBF, 4,000 × 50", "few", "fit svm @ -o + --target y --kernel rbf"),
]


def run(options):
    before = os.environ.get("GRADUS_BEFORE")
    if not before or not options.gradus:
        say("versions: skipped: GRADUS_BEFORE must name the program of another build")
        return
    yield table([Path(before), peers.by_key("gradus").binary], options)


def table(programs, options):
    section = Section(
        "This build beside another",
        ["command", "fit before, s", "fit now, s", "now ÷ before", "whole command before, s", "now, s", "now ÷ before"],
    )
    with tempfile.TemporaryDirectory() as folder:
        files = _files(programs[1], Path(folder))
        for title, data, words in FITS:
            rounds = [[], []]
            for turn in range(options.repeat + 1):
                # The first round warms the caches and does not count; the order changes from round to round.
                for which in (0, 1) if turn % 2 else (1, 0):
                    say(f"versions: {title}: round {turn} of {options.repeat}")
                    outcome = _timed(programs[which], words, files[data], Path(folder), options.threads)
                    if turn:
                        rounds[which].append(outcome)
            fits = [best(fit for fit, _ in runs) for runs in rounds]
            walls = [best(wall for _, wall in runs) for runs in rounds]
            section.rows.append(
                [title, number(fits[0]), number(fits[1]), ratio(fits[1], fits[0])]
                + [number(walls[0]), number(walls[1]), ratio(walls[1], walls[0])]
            )
    section.notes.append(f"the best of {options.repeat} rounds each, in turns; of loading, the time of the reader")
    return section


def _files(program, folder):
    """Data as it is made by the program."""
    files = {"ratings": datasets.synthetic_file()}
    for name, kind, size in [("table", "regression", 200_000), ("classes", "blobs", 200_000), ("few", "blobs", 4_000)]:
        files[name] = folder / f"{name}.csv"
        words = ["make", kind, "--samples", size, "--features", 50, "--seed", 1, "-o", files[name]]
        if kind == "blobs":
            words += ["--centers", 2, "--separation", 0.3]
        processes.run([program, *words])
    return files


def _timed(program, words, data, folder, threads):
    """Seconds of the fit (or of the reader), and of the whole command."""
    places = {"@": data, "+": folder / "m.gradus"}
    words = [places.get(word, word) for word in words.split()]
    child = processes.run([program, *words, "--json", "--threads", threads])
    answer = json.loads(child.stdout)
    return answer.get("load_seconds") or answer["report"]["seconds"], child.wall
