"""Data sets in the form that each side reads: a CSV for gradus, dense ids in NPZ for the peers. Runs in the worker."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Ratings:
    users: np.ndarray
    items: np.ndarray
    values: np.ndarray

    @classmethod
    def open(cls, path):
        with np.load(path) as file:
            return cls(file["users"], file["items"], file["values"])

    def take(self, rows):
        return Ratings(self.users[rows], self.items[rows], self.values[rows])


def prepare(
    folder,
    source,
    separator=",",
    header=True,
    test=None,
    folds=None,
    fold=0,
    seed=1,
    share=1.0,
    scale=1.0,
    shift=0.0,
):
    """Writes train and test into `folder`.

    The held-out part is the file `test`, or part `fold` of `folds` equal random parts of `source`. Of the source
    a random share is taken, and its ratings become `scale` times themselves plus `shift`.
    """
    train = _read(source, separator, header)
    if share < 1.0:
        train = train.filter(np.random.default_rng(seed + 1).random(len(train)) < share)
    if (scale, shift) != (1.0, 0.0):
        train = train.with_columns(train["rating"] * scale + shift)
    if test is None:
        part = np.random.default_rng(seed).permutation(len(train)) % folds
        train, held_out = train.filter(part != fold), train.filter(part == fold)
    else:
        held_out = _read(test, separator, header)

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    train.write_csv(folder / "train.csv")
    held_out.write_csv(folder / "test.csv")

    users, user_ids = _dense(train["user"], held_out["user"])
    items, item_ids = _dense(train["item"], held_out["item"])
    values = train["rating"].to_numpy().astype(np.float32)
    test_values = held_out["rating"].to_numpy().astype(np.float32)
    np.savez(folder / "train.npz", users=users[0], items=items[0], values=values)
    np.savez(folder / "test.npz", users=users[1], items=items[1], values=test_values)
    meta = {
        "users": user_ids,
        "items": item_ids,
        "train": len(train),
        "test": len(held_out),
        "low": float(values.min()),
        "high": float(values.max()),
        "mean": float(values.mean(dtype=np.float64)),
        "spread": float(test_values.std(dtype=np.float64)),
    }
    # Last: a folder with this file is complete.
    (folder / "meta.json").write_text(json.dumps(meta, indent=1))
    return meta


def make(path, users, items, count, seed):
    """A small planted problem, for the self-test alone: real sizes come from `gradus make`."""
    import polars

    random = np.random.default_rng(seed)
    pairs = random.choice(users * items, count, replace=False)
    left, right = random.normal(size=(users, 3)), random.normal(size=(items, 3))
    u, i = pairs // items, pairs % items
    clean = 3.0 + random.normal(0, 0.4, users)[u] + random.normal(0, 0.4, items)[i] + 0.5 * (left[u] * right[i]).sum(1)
    rating = np.clip(np.round(2 * (clean + random.normal(0, 0.3, count))) / 2, 0.5, 5.0)
    polars.DataFrame({"user": u + 1, "item": i + 1, "rating": rating}).write_csv(path)
    return {"rows": count}


def _read(path, separator, header):
    import polars

    frame = polars.read_csv(path, separator=separator, has_header=header)
    frame = frame.select(frame.columns[:3])
    frame.columns = ["user", "item", "rating"]
    return frame


def _dense(train, test):
    """Ids 0, 1, … over both parts, as the peers want them."""
    train, test = train.to_numpy(), test.to_numpy()
    names, dense = np.unique(np.concatenate([train, test]), return_inverse=True)
    dense = dense.astype(np.int32)
    return (dense[: len(train)], dense[len(train) :]), len(names)
