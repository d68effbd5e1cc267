"""Time and memory to load a ratings CSV."""

import datasets
import processes
from peers import by_key, frames
from progress import say
from report import Section, best, mebibytes, median, number, ratio

COLUMNS, MATRICES = "columns", "id map + CSR + CSC"


def run(options):
    if not options.gradus:
        say("load: skipped: its file is made by `gradus make`")
        return
    yield table(datasets.synthetic_file(), options)


def table(path, options):
    contestants = [(key + suffix, *frames.READERS[key]) for suffix in ("", "+csr") for key in frames.READERS]
    results = {key: [] for key, _, _ in contestants}
    if options.gradus:
        results["gradus"] = []
    _warm(path)
    failures = {}
    for turn in range(options.repeat):
        for key in results:
            if key in failures:
                continue
            say(f"load: round {turn + 1} of {options.repeat}, {key}")
            try:
                results[key].append(_gradus(path, options) if key == "gradus" else _frame(key, path, options))
            except processes.Failed as failure:
                failures[key] = str(failure)

    gradus = median(run["seconds"] for run in results.get("gradus", []))
    size = path.stat().st_size
    section = Section(
        f"Loading {path.stem}, {size / 1e6:,.0f} MB of CSV",
        ["reader", "gives", "s (median)", "best", "MB/s", "÷ gradus", "process s", "MiB above import"],
    )
    rows = [("gradus", "gradus", "info", MATRICES)] if options.gradus else []
    rows += [(key, name, how, MATRICES if key.endswith("+csr") else COLUMNS) for key, name, how in contestants]
    for key, name, how, gives in rows:
        runs = results[key]
        if not runs:
            continue
        seconds = median(run["seconds"] for run in runs)
        section.rows.append(
            [
                f"{name} {how}",
                gives,
                number(seconds),
                number(best(run["seconds"] for run in runs)),
                number(size / 1e6 / seconds),
                ratio(seconds, gradus),
                number(median(run["wall"] for run in runs)),
                mebibytes(median(run["memory"] for run in runs)),
            ]
        )
    section.notes = [
        f"{options.threads} threads (the C engine of pandas has one), {options.repeat} alternating rounds, file cached",
        f"“{COLUMNS}” parses only; “{MATRICES}” also numbers ids (pandas.factorize) and builds both matrices",
        *(f"{key} failed: {message}" for key, message in failures.items()),
    ]
    return section


def _gradus(path, options):
    answer, wall, peak = by_key("gradus").info(path, options.threads, options.timeout)
    return {"seconds": answer["load_seconds"], "wall": wall, "memory": peak}


def _frame(key, path, options):
    environment = {"POLARS_MAX_THREADS": str(options.threads), "OMP_NUM_THREADS": str(options.threads)}
    arguments = {"reader": key, "path": str(path), "threads": options.threads}
    answer, child = processes.worker(datasets.BENCH / "worker.py", "load", arguments, environment, options.timeout)
    return {"seconds": answer["seconds"], "wall": child.wall, "memory": answer["peak"] - answer["imported"]}


def _warm(path):
    """Reads the file once, so that the first contestant does not pay for the disk."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass
