"""Every suite and peer on tiny planted data: does the harness work? Its numbers mean nothing."""

import argparse
import math
import time

import datasets
import peers
import report
from peers.base import Job, Peer, Result
from progress import say
from suites import als, bayes, curve, implicit, load, metrics, quality, svdpp, top


def run(options):
    started = time.perf_counter()
    search()
    dataset = datasets.tiny()
    spread = dataset.meta["spread"]
    # A target that one iteration reaches: the search for the number of iterations has a test of its own.
    tiny = {"repeat": 1, "rank": 4, "iterations": 4, "epochs": 4, "span": (1, 3), "least": 0, "target": 10 * spread}
    tiny |= {"slow": True, "timeout": 60, "threads": min(2, options.threads)}
    options = argparse.Namespace(**{**vars(options), **tiny})
    options.peers = [peer.key for peer in peers.PEERS]

    sections = [als.table(dataset, options)]
    rows = {(row[0], row[1]): row for row in sections[-1].rows}
    for peer in peers.PEERS:
        if peer.key == "gradus" and not options.gradus:
            continue
        row = rows[peer.name, peer.solver]
        if peer.explicit:
            error = float(row[6].split()[0])
            check(math.isfinite(error) and error < spread, f"{peer.key}: RMSE {error} below the spread {spread:.3f}")
        else:
            check(row[6] == "n/a", f"{peer.key}: no RMSE")

    sections.append(load.table(datasets.tiny_file(), options))
    check(len(sections[-1].rows) == 6 + options.gradus, "load: every reader has a row")

    sections.append(quality.table("tiny", [datasets.tiny(fold, 2) for fold in range(2)], 4, options))
    check(len(sections[-1].rows) == 3 + 2 * options.gradus, "quality: every setting has a row")
    check(all(float(row[1]) < spread for row in sections[-1].rows), "quality: better than the mean")

    sections.append(svdpp.quality("tiny", [datasets.tiny(fold, 2) for fold in range(2)], 4, options))
    check(len(sections[-1].rows) == 2 + 2 * options.gradus, "svdpp: every setting has a row")
    check(all(float(row[1]) < spread for row in sections[-1].rows), "svdpp: better than the mean")
    sections.append(svdpp.speed(dataset, options))
    check(len(sections[-1].rows) == 1 + options.gradus, "svdpp: both have a row")
    sections.append(bayes.quality("tiny", [datasets.tiny(fold, 2) for fold in range(2)], options, draws=20))
    check(len(sections[-1].rows) == 2 * (1 + options.gradus), "bayes: every setting has a row")
    check(all(float(row[1]) < spread for row in sections[-1].rows), "bayes: better than the mean")
    sections.append(bayes.speed("tiny", dataset, options))
    check(len(sections[-1].rows) == 2 * (1 + options.gradus), "bayes: every setting has a time")
    settings = [("popular", "popularity", {}), ("peer", "implicit", {"factors": 4}), ("ours", "gradus", {"rank": 4})]
    sections.append(implicit.table(datasets.tiny_left_out(), settings, ("HR@10", "NDCG@10"), options))
    check(len(sections[-1].rows) == 2 + options.gradus, "implicit: every setting has a row")
    check(all(0 < float(row[1]) <= 1 for row in sections[-1].rows), "implicit: hit rates are shares")
    settings = [("EASE", "ease", {"regularization": 20}), ("ours", "gradus ease", {"regularization": 20})]
    sections.append(implicit.table(datasets.tiny_liked(), settings, ("recall@20", "NDCG@20"), options))
    check(len({tuple(row[1:3]) for row in sections[-1].rows}) == 1, "implicit: EASE is EASE, whoever computes it")

    shapes = [{"count": count, "users": count // 20, "items": 120} for count in (2_000, 6_000)]
    sections.append(curve.table(shapes, datasets.tiny, options))
    check(len(sections[-1].rows) == 2 * (1 + options.gradus), "curve: every size has a row")
    check(abs(curve.exponent([(1, 2), (10, 200)], 1) - 2) < 1e-12, "curve: exponent of a square law")

    if options.gradus:
        sections.append(metrics.table(dataset, options, threshold=3.5))
        check(sections[-1].notes[0].startswith("agrees"), f"metrics: {sections[-1].notes[0]}")
        sections.append(top.table(dataset, options))
        check(len(sections[-1].rows) == 2 and " 0 otherwise" in sections[-1].notes[-1], "top: both give the same lists")

    for section in sections:
        print(section.markdown())
    check(len(report.machine()) == 3, "the machine can be described")
    say(f"selftest passed in {time.perf_counter() - started:.0f} s" + ("" if options.gradus else ", without gradus"))
    return 0


def search():
    """Restarts and bisection find the first count whose error is at the target."""

    class Falling(Peer):
        key = "falling"

        def run(self, job, timeout=None):
            return Result(job.iterations, [], 1 / job.iterations, 0, 0)

    options = argparse.Namespace(iterations=10, epochs=20, span=(1, 4), timeout=None)
    for wanted in range(1, 11):
        entry = als.Entry(Falling(), Job("nowhere"), options)
        entry.find(1 / wanted)
        check(entry.reached == wanted, f"search: {entry.reached} found, {wanted} wanted")
    entry = als.Entry(Falling(), Job("nowhere"), options)
    entry.find(1 / 11)
    check(entry.reached is None, "search: a target out of reach")


def check(holds, what):
    if not holds:
        raise SystemExit(f"bench selftest failed: {what}")
