"""Recommenders of ratings with no parameter given, on sets of other scales and densities; beside the same models tuned."""

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, number, rmse

DATA = {
    "ml-100k": datasets.ml_100k,
    "ml-1m": datasets.ml_1m,
    "ml-1m-scaled": lambda: datasets.ml_1m_changed("times 20 plus 7", scale=20.0, shift=7.0),
    "ml-1m-5": lambda: datasets.ml_1m_changed("5 % of the ratings", share=0.05),
    "ml-1m-1": lambda: datasets.ml_1m_changed("1 % of the ratings", share=0.01),
    "jester": datasets.jester,
    "jester-5": lambda: datasets.jester(share=0.05),
}

# What is tried on a tenth of the training ratings, never on the test ratings; bayes has its rank alone.
STRENGTHS, RANKS = "0.8,1,1.2,1.5,1.8,2.2,2.8,4", "8,16,32,64"
GRIDS = {
    "als": {"regularization": STRENGTHS, "rank": RANKS},
    "sgd": {"regularization": STRENGTHS, "rank": RANKS},
    "svdpp": {"regularization": STRENGTHS, "rank": "16,32"},
    "bayes": {"rank": "16,32,64"},
}
# Training ratings up to which a model is tuned without `--slow`.
TUNED = {"als": 400_000, "sgd": 400_000, "svdpp": 50_000, "bayes": 100_000}
# myFM has no default rank or number of draws: those of its examples.
PEERS = [
    ("cmfrec-cg", "cmfrec, defaults", {}),
    ("surprise-baseline", "Surprise BaselineOnly, defaults", {}),
    ("myfm", "myFM, rank 10, 100 draws", {"rank": 10, "iterations": 100}),
]


def run(options):
    for name in options.sets:
        make = DATA[name]
        try:
            dataset = make()
        except datasets.Absent as absent:
            say(f"defaults: {name} is skipped: {absent}")
            continue
        yield table(dataset, options)


def table(dataset, options):
    section = Section(
        f"Defaults, {dataset.describe()}",
        ["model", "RMSE", "÷ bias", "fit s", "tuned RMSE", "default ÷ tuned", "tuned to"],
    )
    gradus = peers.by_key("gradus")
    bias = None
    for model in ("bias", *GRIDS):
        say(f"defaults: {dataset.title}: {model}")
        error, seconds = gradus.score(model, dataset.folder, {}, options.threads, options.timeout)
        bias = bias or error
        row = [f"gradus {model}", rmse(error), f"{error / bias:.4f}", number(seconds), "", "", ""]
        if model in GRIDS and (options.slow or dataset.meta["train"] <= TUNED[model]):
            say(f"defaults: {dataset.title}: {model}, tuned")
            grid = GRIDS[model]
            path = f"{dataset.folder}/train.csv"
            answer = gradus.select(path, grid, options.threads, options.timeout, model)
            found = min(answer["candidates"], key=lambda candidate: candidate["score"])["params"]
            settings = {name: found[name] for name in grid}
            tuned, _ = gradus.score(model, dataset.folder, settings, options.threads, options.timeout)
            words = ", ".join(f"{name} {value:g}" for name, value in settings.items())
            row[4:] = [rmse(tuned), f"{error / tuned:.4f}", words]
        section.rows.append(row)
    for key, title, given in PEERS:
        say(f"defaults: {dataset.title}: {title}")
        try:
            job = Job(str(dataset.folder), threads=options.threads, defaults=True, **given)
            fit = peers.by_key(key).run(job, options.timeout)
        except processes.Failed as failure:
            section.notes.append(f"{title} failed: {failure}")
            continue
        section.rows.append([title, rmse(fit.rmse), f"{fit.rmse / bias:.4f}", number(fit.seconds), "", "", ""])
    section.notes.append("tuned: the best of a grid on a tenth held out of the training ratings, then fitted to all of them")
    return section
