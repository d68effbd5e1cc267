"""Side information and cold start: MovieLens with its own tables, beside cmfrec and LightFM.

Warm, cold users and cold items, five folds of ML-100K and one of ML-1M (five with `--slow`; no cold items where the items of ML-1M are numbered anew and have no table): RMSE of `als` and `bayes`, NDCG@10 of `ials` (4 stars or more is a sign of
interest; all trained items are ranked, of cold items only these). Everyone gets the same encoded features. The
metrics are computed by one program for all (`cold.py`), but the RMSE of gradus, which is its own.
"""

import statistics
import tempfile
from pathlib import Path

import datasets
import peers
import processes
from progress import say
from report import Section, number, ratio, rmse

PARTS = ("ratings", "rankings", "large")
FOLDS = 5
MODES = ("warm", "cold-user", "cold-item")
TABLES = {
    "ml-100k": ("ML-100K", "100k", "ml-100k/u.data.gz", "ml-100k/u.user", "ml-100k/u.item"),
    "ml-1m": ("ML-1M", "1m", "ml-1m/ratings.csv.gz", "ml-1m/users.dat", "ml-1m/movies.dat"),
}
# What was best for cmfrec on MovieLens without side information, and its defaults.
CMFREC = [("defaults", {}), ("k = 15, λ = 12", {"k": 15, "lambda_": 12.0})]
CMFREC_RANKED = [("defaults", {}), ("k = 32, λ = 5", {"k": 32, "lambda_": 5.0})]
LIGHTFM = {"no_components": 32, "loss": "warp", "learning_rate": 0.05}
EPOCHS = 30
# gradus chooses its parameters by trials; peers are given theirs, and so these. cmfrec takes 10 iterations by default.
GIVEN = ["--rank", 16, "--regularization", 1.5, "--max-iter", 10]
GIVEN_RANKED = ["--rank", 32, "--regularization", 0.012]
# Ratings, users, items and features a side of the row on time.
LARGE = (20_000_000, 138_493, 26_744, 100)


def run(options):
    for name in options.data:
        if name not in TABLES:
            continue
        title, style, *paths = TABLES[name]
        try:
            paths = [str(datasets._real(path)) for path in paths]
        except datasets.Absent as absent:
            say(f"cold: {name} is skipped: {absent}")
            continue
        # A fold of ML-1M takes the peers minutes.
        count = FOLDS if name == "ml-100k" or options.slow else 1
        folds = {mode: [prepared(name, style, paths, mode, fold) for fold in range(count)] for mode in MODES}
        over = f"over {count} of {FOLDS} folds"
        if not (folds["warm"][0] / "items.csv").exists():
            say(f"cold: the items of {title} are numbered anew and cannot be joined with their table: features of users alone")
            del folds["cold-item"]
            title += ", features of users alone"
        if "ratings" in options.tables:
            yield table(f"Ratings with features, {title}, RMSE {over}", ratings(options), folds, options, rmse, min)
        if "rankings" in options.tables:
            yield table(f"Rankings with features, {title}, NDCG@10 {over}", rankings(options), folds, options, rmse, max)
    if options.gradus and "synthetic-20m" in options.data and "large" in options.tables:
        yield large(options)


def prepared(name, style, paths, mode, fold):
    folder = datasets.WORK / f"cold-{name}-{mode}-{fold + 1}-of-{FOLDS}"
    if not (folder / "meta.json").exists():
        source, users, items = paths
        arguments = {"source": source, "users": users, "items": items, "style": style, "mode": mode, "fold": fold}
        arguments |= {"folds": FOLDS, "seed": datasets.SPLIT_SEED, "folder": str(folder)}
        task("prepare_cold", arguments)
    return folder


def task(name, arguments, threads=1, timeout=None):
    environment = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    return processes.worker(datasets.BENCH / "worker.py", name, arguments, environment, timeout)[0]


def gradus(model, words, both=True, ranked=False):
    def fit(folder, mode, options):
        peer = peers.by_key("gradus")
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "m.gradus"
            data = folder / ("liked.csv" if ranked else "train.csv")
            tables = ["--user-features", folder / "users.csv"] if both else []
            if both and (folder / "items.csv").exists():
                tables += ["--item-features", folder / "items.csv"]
            command = ["fit", model, data, "-o", path, "--threads", options.threads, "--quiet", *tables, *words]
            seconds = peer._json(command, options.timeout)[0]["report"]["seconds"]
            if ranked:
                answer = task("gradus_ranked", {"folder": str(folder), "mode": mode, "model": str(path)})
                return answer["ndcg"], seconds
            return peer._json(["evaluate", path, folder / "test.csv"])[0]["rmse"], seconds

    return fit


def peer(name, ranked, **arguments):
    def fit(folder, mode, options):
        given = {"folder": str(folder), "threads": options.threads, **arguments}
        if ranked:
            given["mode"] = mode
        if name == "popular_ranked":
            given.pop("threads")
        answer = task(name, given, options.threads, options.timeout)
        return answer["ndcg" if ranked else "rmse"], answer["seconds"]

    return fit


def ratings(options):
    """Who takes part: title, whether it is of gradus, whether it learns from features, how it is fitted."""
    if options.gradus:
        yield "gradus bias", True, False, gradus("bias", [], False)
        for model in ("als", "bayes"):
            yield f"gradus {model}, without features", True, False, gradus(model, [], False)
            yield f"gradus {model}", True, True, gradus(model, [])
        given = "gradus als, rank 16, λ = 1.5, 10 iterations"
        yield f"{given}, without features", True, False, gradus("als", GIVEN, False)
        yield given, True, True, gradus("als", GIVEN)
    for words, settings in CMFREC:
        for features in (False, True):
            title = f"cmfrec, {words}" + ("" if features else ", without features")
            yield title, False, features, peer("cmfrec_explicit", False, settings=settings, features=features)


def rankings(options):
    yield "most popular", False, False, peer("popular_ranked", True)
    if options.gradus:
        yield "gradus ials, without features", True, False, gradus("ials", [], False, True)
        yield "gradus ials", True, True, gradus("ials", [], True, True)
        yield "gradus ials, rank 32, λ = .012, without features", True, False, gradus("ials", GIVEN_RANKED, False, True)
        yield "gradus ials, rank 32, λ = .012", True, True, gradus("ials", GIVEN_RANKED, True, True)
    for words, settings in CMFREC_RANKED:
        for features in (False, True):
            title = f"cmfrec implicit, {words}" + ("" if features else ", without features")
            yield title, False, features, peer("cmfrec_ranked", True, settings=settings, features=features)
    for features in (False, True):
        title = f"LightFM, WARP, 32 factors, {EPOCHS} epochs" + ("" if features else ", without features")
        arguments = {"settings": LIGHTFM, "epochs": EPOCHS, "features": features}
        yield title, False, features, peer("lightfm_ranked", True, **arguments)


def table(title, contestants, folds, options, shown, best):
    section = Section(title, ["setting", *folds, "fit s (mean)", "÷ gradus"])
    rows = []
    for name, own, features, fit in contestants:
        say(f"cold: {title}: {name}")
        scores, seconds = [], []
        for mode in folds:
            try:
                results = [fit(folder, mode, options) for folder in folds[mode]]
            except processes.Failed as failure:
                section.notes.append(f"{name}, {mode} failed: {failure}")
                scores.append(None)
                continue
            scores.append(statistics.mean(result[0] for result in results))
            seconds += [result[1] for result in results]
        rows.append((name, own, features, scores, statistics.mean(seconds) if seconds else None))
    base = min((row[4] for row in rows if row[1] and row[2] and row[4]), default=None)
    for name, _, _, scores, seconds in rows:
        shown_scores = [shown(score) if score is not None else "–" for score in scores]
        section.rows.append([name, *shown_scores, number(seconds) if seconds else "–", ratio(seconds, base) if seconds else "–"])
    for at, mode in enumerate(folds):
        valid = [(row[3][at], row[0]) for row in rows if row[3][at] is not None]
        if valid:
            section.notes.append(f"best, {mode}: {best(valid)[1]}")
    section.notes.append(f"{options.threads} threads; ÷ gradus: against the fastest model of gradus with features")
    return section


def large(options):
    """The time of a fit with many features against one without."""
    count, users, items, columns = LARGE
    source = datasets.synthetic_file(count, users, items)
    task("make_features", {"users": users, "items": items, "columns": columns, "seed": 1, "folder": str(datasets.WORK)})
    section = Section(
        f"{count / 1e6:g} M ratings, {columns} features a side, rank 32, 10 iterations",
        ["setting", "fit s (median)", "÷ without features"],
    )
    words = ["--rank", 32, "--regularization", 1.5, "--max-iter", 10, "--tol", 0]
    tables = ["--user-features", datasets.WORK / f"users-{columns}.csv"]
    tables += ["--item-features", datasets.WORK / f"items-{columns}.csv"]
    settings = {
        "gradus als, without features": [],
        "gradus als, columns chosen": tables,
        "gradus als, all columns (feature-regularization = 30)": [*tables, "--feature-regularization", 30],
    }
    times = {name: [] for name in settings}
    rounds = options.repeat if options.slow else 1
    for turn in range(rounds):
        for name, extra in settings.items():
            say(f"cold: round {turn + 1}, {name}")
            with tempfile.TemporaryDirectory() as scratch:
                command = ["fit", "als", source, "-o", Path(scratch) / "m.gradus", "--threads", options.threads, "--quiet"]
                answer = peers.by_key("gradus")._json([*command, *words, *extra], options.timeout)[0]
            times[name].append(answer["report"]["seconds"])
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = medians["gradus als, without features"]
    section.rows = [[name, number(seconds), ratio(seconds, base)] for name, seconds in medians.items()]
    section.notes = [f"{rounds} alternating rounds, {options.threads} threads; reading the files is not counted"]
    return section
