"""Held-out error with the settings that a user starts from: five folds each."""

import statistics
from dataclasses import dataclass

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, number, rmse

DATA = {
    "ml-100k": ("ML-100K, published splits u1–u5", lambda fold: datasets.ml_100k(fold + 1), 10),
    "ml-1m": ("ML-1M, five random folds", lambda fold: datasets.ml_1m(fold, folds=5), 15),
}


@dataclass(eq=False)
class Setting:
    title: str
    peer: str
    job: dict


def settings(tuned_rank):
    tuned = {"rank": tuned_rank, "regularization": 12.0, "scaling": "none"}
    return [
        Setting("gradus als, defaults", "gradus", {"defaults": True}),
        Setting("gradus sgd, defaults", "gradus-sgd", {"defaults": True}),
        Setting("cmfrec, defaults", "cmfrec-cg", {"defaults": True}),
        Setting(f"cmfrec, tuned (k = {tuned_rank}, λ = 12 unscaled)", "cmfrec-cg", tuned),
        Setting("Surprise BaselineOnly, defaults", "surprise-baseline", {"defaults": True}),
    ]


def run(options):
    for name in options.data:
        if name not in DATA:
            continue
        title, make, tuned_rank = DATA[name]
        try:
            folds = [make(fold) for fold in range(5)]
        except datasets.Absent as absent:
            say(f"quality: {name} is skipped: {absent}")
            continue
        yield table(title, folds, tuned_rank, options)


def table(title, folds, tuned_rank, options):
    chosen = [setting for setting in settings(tuned_rank) if options.gradus or not setting.peer.startswith("gradus")]
    section = Section(
        f"Held-out error, {title}",
        ["setting", "mean RMSE", *(f"fold {number + 1}" for number in range(len(folds))), "fit s (mean)"],
    )
    results = {setting: [] for setting in chosen}
    failures = {}
    for at, fold in enumerate(folds):
        for setting in chosen:
            if setting in failures:
                continue
            say(f"quality: {title}: fold {at + 1}, {setting.title}")
            job = Job(str(fold.folder), threads=options.threads, **setting.job)
            try:
                results[setting].append(peers.by_key(setting.peer).run(job, options.timeout))
            except processes.Failed as failure:
                failures[setting] = str(failure)
    for setting, fits in results.items():
        if setting not in failures:
            errors = [fit.rmse for fit in fits]
            mean, seconds = statistics.mean(errors), statistics.mean(fit.seconds for fit in fits)
            section.rows.append([setting.title, rmse(mean), *map(rmse, errors), number(seconds)])
    section.notes = [
        "peers' predictions are clipped to the range of the training ratings",
        *(f"{setting.title} failed: {message}" for setting, message in failures.items()),
    ]
    if not options.gradus:
        section.notes.append("gradus: does not build")
    return section
