"""Top 10 for every user, gradus beside implicit on the same factors; the lists are compared."""

import tempfile
from pathlib import Path

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, best, mebibytes, median, number, ratio

from suites import als

N = 10


def run(options):
    if not options.gradus:
        say("top: skipped: its factors are fitted by gradus")
        return
    for name in options.data:
        try:
            dataset = als.DATA[name]()
        except datasets.Absent as absent:
            say(f"top: {name} is skipped: {absent}")
            continue
        yield table(dataset, options)


def table(dataset, options):
    gradus, implicit = peers.by_key("gradus"), peers.by_key("implicit-cholesky")
    job = Job(str(dataset.folder), rank=options.rank, threads=options.threads, iterations=options.iterations)
    ours, theirs, agreement = [], [], None
    with tempfile.TemporaryDirectory() as folder:
        model, lists = Path(folder) / "m.gradus", Path(folder) / "lists.csv"
        say(f"top: {dataset.title}: fitting the factors, without biases")
        gradus.fit_without_biases(job, model, options.timeout)
        for turn in range(options.repeat):
            say(f"top: {dataset.title}: round {turn + 1} of {options.repeat}")
            ours.append(gradus.top(model, lists, N, options.threads, options.timeout))
            arguments = {"model": str(model), "lists": str(lists), "n": N, "threads": options.threads}
            answer, child = processes.worker(
                datasets.BENCH / "worker.py", "top", arguments, implicit.environment(options.threads), options.timeout
            )
            theirs.append({**answer, "wall": child.wall})
            agreement = answer
    section = Section(
        f"Top {N} for every user, rank {options.rank}, {dataset.describe()}",
        ["peer", "s (median)", "best", "÷ gradus", "µs/user", "process s", "MiB above import"],
    )
    base = median(run["seconds"] for run in ours)
    for name, runs in (("gradus", ours), ("implicit recommend", theirs)):
        seconds = median(run["seconds"] for run in runs)
        section.rows.append(
            [
                name,
                number(seconds),
                number(best(run["seconds"] for run in runs)),
                ratio(seconds, base),
                number(1e6 * seconds / agreement["users"]),
                number(median(run["wall"] for run in runs)),
                mebibytes(median(run["memory"] for run in runs)),
            ]
        )
    section.notes = [
        f"{options.threads} threads, {options.repeat} alternating rounds; what a user has rated is left out; the "
        "factors are those of gradus als without biases, given to both; loading is not in the first columns, and for "
        "gradus the process includes reading the model and writing the lists",
        f"{agreement['equal']:,} of {agreement['users']:,} lists hold the same items in the same order, "
        f"{agreement['rounding']:,} differ where scores are equal to 1e-5, {agreement['wrong']:,} otherwise",
    ]
    return section
