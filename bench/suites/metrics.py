"""The ranking measures of `gradus evaluate` beside the same by other libraries."""

import tempfile
from pathlib import Path

import datasets
import peers
import processes
from progress import say
from report import Section

BENCH = Path(__file__).resolve().parent.parent
AT, THRESHOLD = (5, 10, 20), 4
# Scores are recomputed from the factors in double precision: two items nearer than that may change places.
AGREE = 1e-6


def run(options):
    if not options.gradus:
        say("metrics: skipped: gradus does not build")
        return
    try:
        yield table(datasets.ml_1m(), options)
    except datasets.Absent as absent:
        say(f"metrics: skipped: {absent}")


def table(dataset, options, threshold=THRESHOLD):
    gradus = peers.by_key("gradus")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "m.gradus"
        say(f"metrics: {dataset.title}: fitting and evaluating")
        ours, seconds = gradus.rank(dataset.folder, model, AT, threshold, options.threads, options.timeout)
        arguments = {"model": str(model), "folder": str(dataset.folder), "at": AT, "threshold": threshold}
        found, _ = processes.worker(BENCH / "worker.py", "evaluate", arguments, timeout=options.timeout)
    names = list(found)
    section = Section(f"Ranking measures, {dataset.title}", ["measure", "gradus", *names, "largest difference"])
    worst = 0.0
    for measure, value in ours.items():
        others = [found[name].get(measure) for name in names]
        difference = max(abs(value - other) for other in others if other is not None)
        worst = max(worst, difference)
        shown = ["–" if other is None else f"{other:.7f}" for other in others]
        section.rows.append([measure, f"{value:.7f}", *shown, f"{difference:.1e}"])
    verdict = "agrees" if worst <= AGREE else "DISAGREES"
    section.notes = [
        f"{verdict}: the largest difference is {worst:.1e}, {AGREE:.0e} is allowed",
        f"als, defaults; all items ranked without those in training; ratings of at least {threshold} are relevant",
        "pytrec_eval's MAP is scaled from all relevant items to min(k, relevant), its reciprocal rank cut at k",
        f"`gradus evaluate --ranking --auc` took {seconds:.2f} s with {options.threads} threads, the start included",
    ]
    return section
