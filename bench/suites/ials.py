"""ials: time to implicit's ranking quality on a large data set, and its block solver beside its exact one."""

import datasets
import peers
import processes
from progress import say
from report import Section, median, number, ratio

# implicit's objective, to tell the solver from the objective.
SAME = {
    "confidence": "linear",
    "alpha": 1.0,
    "unobserved": 1.0,
    "unobserved_on": "rest",
    "exponent": 0.0,
    "regularization": 0.01,
}
RANK = 64
ITERATIONS = 5
BLOCKS = {"rank": 512, "regularization": 0.008, "unobserved": 0.01}


def run(options):
    if not options.gradus:
        say("ials: skipped, gradus does not build")
        return
    yield race(datasets.synthetic(), options)
    try:
        yield blocks(datasets.gowalla(), options)
    except datasets.Absent as absent:
        say(f"ials: gowalla is skipped: {absent}")


def race(dataset, options):
    """Seconds to the best NDCG that implicit reaches in a few iterations."""
    say(f"ials: {dataset.title}: implicit, {ITERATIONS} iterations")
    arguments = {"data": str(dataset.folder), "threads": options.threads, "iterations": ITERATIONS, "rank": RANK}
    environment = peers.by_key("implicit-cg").environment(options.threads)
    curves = [
        processes.worker(datasets.BENCH / "worker.py", "implicit_race", arguments, environment, options.timeout)[0]
        for _ in range(options.repeat)
    ]
    target = max(curves[0]["ndcg"])
    at = curves[0]["ndcg"].index(target)
    theirs = median([curve["seconds"][at] for curve in curves])
    section = Section(
        f"ials, rank {RANK}, to implicit's best held-out NDCG@20, {dataset.describe()}",
        ["peer", "objective", "solver", "iterations", "NDCG@20", "s (median)", "÷ gradus' best"],
    )
    rows = [["implicit", "its own, defaults", "CG (3 steps)", str(at + 1), f"{target:.5f}", theirs]]
    for title, chosen in [("defaults", {}), ("implicit's", SAME)]:
        for solver in ("cg", "cholesky"):
            found = _iterations(dataset, {**chosen, "solver": solver, "rank": RANK}, target, options)
            rows.append(["gradus", title, solver, *found])
    best = min(row[-1] for row in rows if row[0] == "gradus" and row[-1] is not None)
    section.rows = [[*row[:-1], number(row[-1]), ratio(row[-1], best)] for row in rows]
    course = ", ".join(f"{value:.5f}" for value in curves[0]["ndcg"])
    section.notes = [
        f"implicit's NDCG after each of its iterations: {course}; it falls from there on",
        f"{options.threads} threads, {options.repeat} rounds; all preparations of a fit count, the judging does not; "
        "every 7th user that has something held out is judged, all items but those of training are ranked",
        "gradus: the first iteration that is at least as good, or the best of five",
    ]
    return section


def _iterations(dataset, settings, target, options):
    """(iterations, NDCG, seconds) of the shortest fit that reaches the target."""
    gradus, best = peers.by_key("gradus"), (None, 0.0)
    for iterations in range(1, ITERATIONS + 1):
        say(f"ials: {dataset.title}: gradus, {settings['solver']}, {iterations} iterations")
        asked = {**settings, "max_iter": iterations, "tol": 0.0}
        answer = gradus.rank_interest(dataset.folder, asked, options.threads, options.timeout)
        if answer["ndcg"] > best[1]:
            best = (asked, answer["ndcg"])
        if answer["ndcg"] >= target:
            break
    asked, ndcg = best
    seconds = [gradus.interest_seconds(dataset.folder, asked, options.threads, options.timeout) for _ in range(options.repeat)]
    reached = str(asked["max_iter"]) if ndcg >= target else f"{asked['max_iter']} (not reached)"
    return [reached, f"{ndcg:.5f}", median(seconds)]


def blocks(dataset, options):
    """Seconds of both solvers to the same objective."""
    gradus = peers.by_key("gradus")
    traces = {}
    for solver, iterations in [("cholesky", 4), ("blocks", 12)]:
        say(f"ials: {dataset.title}: rank {BLOCKS['rank']}, {solver}")
        asked = {**BLOCKS, "solver": solver, "max_iter": iterations, "tol": 0.0}
        traces[solver] = gradus.interest_trace(dataset.folder, asked, options.threads, options.timeout)
    section = Section(
        f"ials, rank {BLOCKS['rank']}: blocks beside Cholesky to the same objective, {dataset.describe()}",
        ["objective", "Cholesky: iterations", "s", "blocks: iterations", "s", "Cholesky ÷ blocks"],
    )
    for at, (objective, seconds) in enumerate(traces["cholesky"], 1):
        reached = [(n, s) for n, (o, s) in enumerate(traces["blocks"], 1) if o <= objective * (1 + 1e-4)]
        n, s = reached[0] if reached else (None, None)
        row = [f"{objective:,.0f}", str(at), number(seconds), str(n or "not in 12"), number(s)]
        section.rows.append([*row, ratio(seconds, s)])
    section.notes = ["to within 1e-4 of it; one fit each, by its own clock, preparations included"]
    return section
