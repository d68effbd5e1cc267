"""SVD++: held-out error beside models without and with a say of who rated what, and the time of an epoch."""

import statistics

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, median, number, ratio, rmse
from suites.quality import DATA, Setting

# The default of Surprise.
RANK = 20


def run(options):
    for name in options.data:
        if name not in DATA:
            continue
        title, make, tuned_rank = DATA[name]
        try:
            folds = [make(fold) for fold in range(5)]
        except datasets.Absent as absent:
            say(f"svdpp: {name} is skipped: {absent}")
            continue
        yield quality(title, folds, tuned_rank, options)
        if name == "ml-1m":
            yield speed(folds[0], options)


def settings(tuned_rank):
    tuned = {"rank": tuned_rank, "regularization": 12.0, "scaling": "none"}
    return [
        Setting("gradus svdpp, defaults", "gradus-svdpp", {"defaults": True}),
        Setting("gradus als, defaults", "gradus", {"defaults": True}),
        Setting(f"cmfrec with implicit features (k = {tuned_rank}, λ = 12 unscaled)", "cmfrec-implicit", tuned),
        Setting("Surprise SVDpp, defaults", "surprise-svdpp", {"defaults": True}),
    ]


def quality(title, folds, tuned_rank, options):
    chosen = [s for s in settings(tuned_rank) if options.gradus or not s.peer.startswith("gradus")]
    section = Section(
        f"SVD++, held-out error, {title}",
        ["setting", "mean RMSE", *(f"fold {number + 1}" for number in range(len(folds))), "fit s (mean)"],
    )
    notes = ["peers' predictions are clipped to the range of the training ratings"]
    for setting in chosen:
        peer, fits = peers.by_key(setting.peer), []
        if peer.largest and folds[0].meta["train"] > peer.largest and not options.slow:
            notes.append(f"{setting.title}: far too slow for this size (`--slow` runs it)")
            continue
        try:
            for at, fold in enumerate(folds):
                say(f"svdpp: {title}: fold {at + 1}, {setting.title}")
                job = Job(str(fold.folder), threads=options.threads, **setting.job)
                fits.append(peer.run(job, options.timeout))
        except processes.Failed as failure:
            notes.append(f"{setting.title} failed: {failure}")
            continue
        errors = [fit.rmse for fit in fits]
        seconds = statistics.mean(fit.seconds for fit in fits)
        section.rows.append([setting.title, rmse(statistics.mean(errors)), *map(rmse, errors), number(seconds)])
    section.notes = notes
    return section


def speed(dataset, options):
    """Seconds of an epoch of Surprise and of an iteration of gradus at one rank, in alternating rounds."""
    section = Section(
        f"SVD++, rank {RANK}, {dataset.describe()}",
        ["peer", "solver", "threads", "s/iteration (median)", "÷ gradus"],
    )
    keys = ["gradus-svdpp", "surprise-svdpp"] if options.gradus else ["surprise-svdpp"]
    times = {key: [] for key in keys}
    for turn in range(options.repeat):
        for key in keys:
            say(f"svdpp: {dataset.title}: round {turn + 1} of {options.repeat}, {key}")
            times[key].append(_epoch(peers.by_key(key), dataset, options))
    base = median(times["gradus-svdpp"]) if options.gradus else None
    for key in keys:
        peer, seconds = peers.by_key(key), median(times[key])
        threads = options.threads if peer.has_clock else 1
        unit = "" if peer.iteration == "iteration" else f" / {peer.iteration}"
        row = [peer.name, peer.solver, str(threads), number(seconds) + unit, ratio(seconds, base)]
        section.rows.append(row)
    section.notes = [
        f"{options.repeat} alternating rounds; gradus by its own clock between iteration 1 and 5, Surprise as a fit of "
        "one epoch"
    ]
    return section


def _epoch(peer, dataset, options):
    iterations = 5 if peer.has_clock else 1
    job = Job(str(dataset.folder), iterations=iterations, rank=RANK, threads=options.threads, score=False)
    result = peer.run(job, options.timeout)
    if not peer.has_clock:
        return result.seconds
    return (result.seconds_at(iterations) - result.seconds_at(1)) / (iterations - 1)
