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
# What is tried on a part of the training ratings of the first fold, never on its test ratings.
RANKS = (16, 32, 64)
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


def chosen(fold, implicit, options):
    """The rank that does best on a tenth of the training ratings, and the errors of all."""
    answer = peers.by_key("gradus-bayes").select(
        f"{fold.folder}/train.csv",
        {"rank": ",".join(map(str, RANKS)), "implicit-side": "both" if implicit else "none"},
        options.threads,
        options.timeout,
    )
    errors = {candidate["params"]["rank"]: candidate["score"] for candidate in answer["candidates"]}
    best = min(errors, key=errors.get)
    return best, ", ".join(f"rank {rank} {rmse(errors[rank])}" for rank in RANKS)


def job(fold, implicit, threads, iterations, score, rank=RANK):
    return Job(
        str(fold.folder),
        rank=rank,
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
            section.rows.append(row(setting, fits))
        if options.gradus and draws == DRAWS:
            say(f"bayes: {title}: choosing a rank, lists {implicit}")
            rank, errors = chosen(folds[0], implicit, options)
            lists = ", lists of both sides" if implicit else ""
            section.notes.append(
                f"gradus bayes{lists}: on a tenth held out of the training ratings of fold 1: {errors}; rank {rank} chosen"
            )
            if rank != RANK:
                fits = [
                    peers.by_key("gradus-bayes").run(
                        job(fold, implicit, options.threads, draws, True, rank), options.timeout
                    )
                    for fold in folds
                ]
                section.rows.append(row(f"gradus bayes{lists}, rank {rank} (chosen)", fits))
    return section


def row(setting, fits):
    errors = [fit.rmse for fit in fits]
    seconds = statistics.mean(fit.seconds for fit in fits)
    return [setting, rmse(statistics.mean(errors)), *map(rmse, errors), number(seconds)]


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
