"""The data sets of the benchmarks, prepared once under `bench/work`. Standard library only."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import peers
import processes

BENCH = Path(__file__).resolve().parent
WORK = BENCH / "work"
DATA = Path(os.environ.get("GRADUS_DATA", BENCH.parent.parent / "shared" / "data"))
SPLIT_SEED = 20_250_101

# The shape of MovieLens 20M.
USERS, ITEMS, COUNT = 138_493, 26_744, 20_000_000


class Absent(Exception):
    """The data set is not there; the message says which."""


@dataclass(frozen=True)
class Dataset:
    title: str
    folder: Path

    @property
    def meta(self):
        return json.loads((self.folder / "meta.json").read_text())

    def describe(self):
        meta = self.meta
        return (
            f"{self.title}: {meta['users']:,} users × {meta['items']:,} items, "
            f"{meta['train']:,} training and {meta['test']:,} held-out ratings"
        )


def ml_100k(fold=1):
    """MovieLens 100K, published split u1 … u5."""
    base, test = (_real(f"ml-100k/u{fold}.{part}.gz") for part in ("base", "test"))
    return _prepared(f"ml-100k-u{fold}", f"ML-100K u{fold}", source=base, test=test, separator="\t", header=False)


def ml_1m(fold=0, folds=10):
    """MovieLens 1M, part `fold` of `folds` random parts held out."""
    source = _real("ml-1m/ratings.csv.gz")
    title = f"ML-1M, random part {fold + 1} of {folds} held out"
    return _prepared(f"ml-1m-{fold + 1}-of-{folds}", title, source=source, folds=folds, fold=fold)


def ml_1m_changed(change, share=1.0, scale=1.0, shift=0.0, folds=5):
    """A random share of MovieLens 1M, its ratings times `scale` plus `shift`; a part of `folds` held out."""
    source = _real("ml-1m/ratings.csv.gz")
    name = f"ml-1m-{share:g}-{scale:g}-{shift:g}-1-of-{folds}"
    arguments = {"source": source, "folds": folds, "share": share, "scale": scale, "shift": shift}
    return _prepared(name, f"ML-1M, {change}, random part 1 of {folds} held out", **arguments)


def jester(share=1.0, folds=5):
    """Jester's jokes, ratings from -10 to 10, or a random share of them; a part of `folds` held out."""
    source = _real("jester5k/jester5k.csv.gz")
    title = "Jester" if share == 1.0 else f"Jester, {share:.0%} of the ratings"
    arguments = {"source": source, "folds": folds, "share": share}
    return _prepared(f"jester-{share:g}-1-of-{folds}", f"{title}, random part 1 of {folds} held out", **arguments)


def gowalla():
    """Gowalla check-ins, the published split: train and valid to learn from, test to rank."""
    paths = {part: str(_real(f"gowalla/{part}.txt.gz")) for part in ("train", "valid", "test")}
    return _ranked("gowalla", "Gowalla, all items ranked", "prepare_lists", **paths)


def ml_1m_liked():
    """MovieLens 1M, at least 4 stars as signs of interest, a fifth of those of each user to rank."""
    source = str(_real("ml-1m/ratings.csv.gz"))
    return _liked("ml-1m-liked", "ML-1M, 4 stars or more, all items ranked", source=source, separator=",", names=None)


def ml_100k_liked():
    """MovieLens 100K, likewise."""
    source, names = str(_real("ml-100k/u.data.gz")), ["user", "item", "rating", "time"]
    return _liked("ml-100k-liked", "ML-100K, 4 stars or more, all items ranked", source=source, separator="\t", names=names)


def made_liked(title, users, items, count):
    """Ratings of `gradus make`, the upper ones as signs of interest; a fifth of those of each user to rank."""
    source = str(synthetic_file(count, users, items))
    name = f"made-liked-{users}x{items}-{count}"
    return _liked(name, f"made, {title}, all items ranked", source=source, separator=",", names=None)


def tiny_liked():
    """The self-test's ratings above 3 as signs of interest."""
    source = str(tiny_file())
    return _liked("tiny-liked", "tiny, 3 or more, all items ranked", 3, source=source, separator=",", names=None)


def _liked(name, title, least=4, **arguments):
    return _ranked(name, title, "prepare_liked", least=least, seed=SPLIT_SEED, **arguments)


def ml_1m_left_out(negatives=100):
    """MovieLens 1M, one item of each user to rank among drawn ones. The data at hand has no times: it is drawn too."""
    source = str(_real("ml-1m/ratings.csv.gz"))
    title = f"ML-1M, one random item of each user among {negatives} drawn ones"
    arguments = {"source": source, "negatives": negatives, "seed": SPLIT_SEED}
    return _ranked(f"ml-1m-left-out-{negatives}", title, "prepare_left_out", **arguments)


def synthetic(count=COUNT, users=USERS, items=ITEMS, folds=100):
    """Ratings of `gradus make`, one in `folds` held out."""
    source = synthetic_file(count, users, items)
    title = f"synthetic {count / 1e6:g} M, random 1 of {folds} held out"
    return _prepared(f"{source.stem}-1-of-{folds}", title, source=source, folds=folds)


def synthetic_file(count=COUNT, users=USERS, items=ITEMS):
    """The CSV of `gradus make`."""
    gradus = peers.by_key("gradus")
    return _made(f"synthetic-{users}x{items}-{count}", gradus.make, users, items, count)


def tiny(fold=0, folds=10, count=6_000, users=300, items=120):
    """The self-test's: a planted problem of the worker's own generator, so that it needs no gradus."""
    source = tiny_file(count, users, items)
    return _prepared(f"{source.stem}-{fold + 1}-of-{folds}", f"tiny, {count:,}", source=source, folds=folds, fold=fold)


def tiny_left_out(negatives=20):
    """The self-test's ratings as signs of interest."""
    arguments = {"source": str(tiny_file()), "negatives": negatives, "seed": SPLIT_SEED}
    return _ranked("tiny-left-out", "tiny, one of each user left out", "prepare_left_out", **arguments)


def tiny_file(count=6_000, users=300, items=120):
    def make(path, users, items, count, seed):
        arguments = {"path": str(path), "users": users, "items": items, "count": count, "seed": seed}
        processes.worker(BENCH / "worker.py", "make", arguments)

    return _made(f"tiny-{users}x{items}-{count}", make, users, items, count)


def _real(name):
    path = DATA / name
    if not path.exists():
        raise Absent(f"{name} is not in the data folder (set GRADUS_DATA)")
    return path


def _made(name, make, users, items, count):
    path = WORK / f"{name}.csv"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        make(partial, users, items, count, 1)
        partial.rename(path)
    return path


def _ranked(name, title, task, **arguments):
    folder = WORK / name
    if not (folder / "meta.json").exists():
        processes.worker(BENCH / "worker.py", task, {**arguments, "folder": str(folder)})
    return Dataset(title, folder)


def _prepared(name, title, **arguments):
    folder = WORK / name
    if not (folder / "meta.json").exists():
        paths = {key: str(value) for key, value in arguments.items() if isinstance(value, Path)}
        arguments = {**arguments, **paths, "folder": str(folder), "seed": SPLIT_SEED}
        processes.worker(BENCH / "worker.py", "prepare", arguments)
    return Dataset(title, folder)
