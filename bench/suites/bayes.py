"""Bayesian matrix factorisation beside myFM: held-out error over five folds, and the time of a draw."""

import statistics

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, number, ratio, rmse
from suites.quality import DATA

# The defaults of gradus; myFM gets the same.
DRAWS, RANK = 500, 32
# Draws to difference for the time of one. myFM takes a second for one of a million ratings.
SPAN = {"gradus-bayes": (5, 45), "myfm": (2, 8)}


def run(options):
    for name in options.data:
        if name not in DATA:
            continue
        title, make, _ = DATA[name]
        try:
            folds = [make(fold) for fold in range(5)]
        except datasets.Absent as absent:
            say(f"bayes: {name} is skipped: {absent}")
            continue
        yield quality(title, folds, options)
        yield speed(title, folds[0], options)


def contestants(options):
    return [("gradus-bayes", "gradus bayes")] * options.gradus + [("myfm", "myFM")]


def job(fold, implicit, threads, iterations, score):
    return Job(
        str(fold.folder),
        rank=RANK,
        iterations=iterations,
        implicit=implicit,
        threads=threads,
        score=score,
    )


def quality(title, folds, options, draws=DRAWS):
    section = Section(
        f"Bayesian factorisation, held-out error, {title}",
        ["setting", "mean RMSE", *(f"fold {at + 1}" for at in range(len(folds))), "fit s (mean)"],
    )
    section.notes = [f"rank {RANK}, {draws} draws each, other settings by default; gradus {options.threads} threads, myFM one (it has no more)"]
    for implicit in (False, True):
        for key, name in contestants(options):
            setting = name + (", lists of both sides" if implicit else "")
            if key == "myfm" and draws == DRAWS and not options.slow:
                section.notes.append(f"{setting}: minutes to half an hour a fold (`--slow` runs it)")
                continue
            try:
                fits = []
                for at, fold in enumerate(folds):
                    say(f"bayes: {title}: fold {at + 1}, {setting}")
                    fits.append(peers.by_key(key).run(job(fold, implicit, options.threads, draws, True), options.timeout))
            except processes.Failed as failure:
                section.notes.append(f"{setting} failed: {failure}")
                continue
            errors = [fit.rmse for fit in fits]
            seconds = statistics.mean(fit.seconds for fit in fits)
            section.rows.append([setting, rmse(statistics.mean(errors)), *map(rmse, errors), number(seconds)])
    return section


def speed(title, fold, options):
    """Both with one thread, by the difference of two fits, in alternating rounds."""
    section = Section(f"Time of a draw, rank {RANK}, one thread, {title}", ["setting", "s/draw (median)", "÷ gradus"])
    for implicit in (False, True):
        times = {key: [] for key, _ in contestants(options)}
        for turn in range(options.repeat):
            for key, name in contestants(options):
                say(f"bayes: {title}: round {turn + 1}, {name}, lists {implicit}")
                low, high = SPAN[key]
                runs = [
                    peers.by_key(key).run(job(fold, implicit, 1, count, False), options.timeout).seconds
                    for count in (low, high)
                ]
                times[key].append((runs[1] - runs[0]) / (high - low))
        medians = {key: statistics.median(values) for key, values in times.items()}
        for key, name in contestants(options):
            setting = name + (", lists of both sides" if implicit else "")
            section.rows.append([setting, number(medians[key]), ratio(medians[key], medians.get("gradus-bayes"))])
    section.notes = [f"{options.repeat} alternating rounds, the difference of two fits each"]
    return section
