"""How time and memory grow with the number of ratings."""

import math

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, mebibytes, median, number

CMFREC_SIZES = 2  # cmfrec takes part in so many of the first sizes


def run(options):
    if not options.gradus:
        say("curve: skipped: its data is made by `gradus make`")
        return
    yield table([shape(size) for size in options.sizes], datasets.synthetic, options)


def shape(millions):
    """Users grow with the ratings and items with their root, through MovieLens 20M's shape."""
    count = round(millions * 1e6)
    share = count / datasets.COUNT
    return {
        "count": count,
        "users": round(datasets.USERS * share),
        "items": round(datasets.ITEMS * math.sqrt(share)),
    }


def table(shapes, make, options):
    section = Section(
        f"Cost against size, rank {options.rank}",
        ["peer", "ratings", "users", "items", "s/iteration", "load s", "MiB above import"],
    )
    points = {}
    for at, dimensions in enumerate(shapes):
        say(f"curve: data of {dimensions['count']:,} ratings")
        dataset = make(**dimensions)
        meta = dataset.meta
        for key in _contestants(at, options):
            job = Job(str(dataset.folder), rank=options.rank, regularization=options.regularization)
            job = Job(**{**vars(job), "threads": options.threads, "score": False})
            try:
                rounds = [_measure(key, job, options, turn) for turn in range(options.repeat)]
            except processes.Failed as failure:
                section.notes.append(f"{key} at {meta['train']:,} ratings failed: {failure}")
                continue
            seconds, load, memory = (median(values) for values in zip(*rounds))
            points.setdefault(key, []).append((meta["train"], seconds, load, memory))
            size = [f"{meta[name]:,}" for name in ("train", "users", "items")]
            section.rows.append([key, *size, number(seconds), number(load), mebibytes(memory)])
    for key, measured in points.items():
        exponents = [
            f"{name} {exponent(measured, column):.2f}"
            for name, column in (("s/iteration", 1), ("load", 2), ("memory", 3))
            if len(measured) > 1 and all(point[column] for point in measured)
        ]
        if exponents:
            section.notes.append(f"{key}: cost grows as ratings to the power: {', '.join(exponents)}")
    section.notes.append(f"{options.threads} threads, median of {options.repeat}; 1 is linear")
    return section


def exponent(points, column):
    """Least-squares slope of log cost against log ratings."""
    xs = [math.log(point[0]) for point in points]
    ys = [math.log(point[column]) for point in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def _contestants(at, options):
    gradus = ["gradus"] if options.gradus else []
    return gradus + (["cmfrec-cholesky"] if at < CMFREC_SIZES else [])


def _measure(key, job, options, turn):
    """(seconds an iteration, seconds to load or None, peak bytes)."""
    say(f"curve: round {turn + 1} of {options.repeat}, {key}")
    peer, (low, high) = peers.by_key(key), options.span

    def fit(iterations):
        return peer.run(Job(**{**vars(job), "iterations": iterations}), options.timeout)

    full = fit(high)
    if peer.has_clock:
        (first, at_first, _), (last, at_last, _) = full.trace[0], full.trace[-1]
        load = peer.info(f"{job.data}/train.csv", job.threads, options.timeout)[0]["load_seconds"]
        return (at_last - at_first) / (last - first), load, full.memory
    return (full.seconds - fit(low).seconds) / (high - low), None, full.memory
