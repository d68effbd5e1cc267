"""The comparison of all models that suit the data, within a time budget."""

from __future__ import annotations

import html
import json
import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from gradus import _gradus
from gradus._base import _classes as _estimators
from gradus._base import _seed, warn
from gradus._features import Classifier, Regressor, _classes, _labels, _target_names
from gradus._ratings import _ratings_and_kind


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison; printing it shows the leaderboard.

    Attributes
    ----------
    metric : str
        The metric of the score.
    higher_is_better : bool
        Whether a larger score is better.
    rows : list of dict
        The models that were tested, best first: ``model``, ``score``, ``error`` (its standard error), ``low`` and
        ``high`` (where the true score is, for all models at once), ``difference`` to the best with ``difference_low``
        and ``difference_high`` (for all differences at once), ``distinguished`` (whether the test part tells the
        model apart from the best), ``seconds`` of its fit, ``memory`` (by how many bytes the process grew at its peak
        during that fit, as far as a look every few milliseconds shows; None where the system does not tell), ``bytes``
        (of the arrays in its file) and ``baseline``. ``pandas.DataFrame(result.rows)`` makes a frame of them.
    others : list of dict
        The models that were not tested: ``model``, ``reason``, and ``score`` in the race on a ``share`` of the data.
    winner : str or None
        The best by name.
    best_estimator_ : estimator or None
        The best, fitted on all the data where ``best_on_all_data``, else on the training part.
    not_distinguished : list of str
        The models that the test part does not tell apart from the best; the best is the first.
    fastest, smallest : str or None
        Of these the one that was fitted in the shortest time, and the one whose model is smallest.
    fits : list of dict
        Every fit that was done.
    interrupted : bool
        Whether Ctrl-C ended it: then this is what was complete.
    """

    metric: str
    higher_is_better: bool
    level: float
    rows: list[dict[str, Any]]
    others: list[dict[str, Any]]
    winner: str | None
    best_estimator_: Any
    best_on_all_data: bool
    not_distinguished: list[str]
    fastest: str | None
    smallest: str | None
    interrupted: bool
    parts: dict[str, int]
    units: str
    n_units: int
    seconds: float
    budget: float | None
    fits: list[dict[str, Any]] = field(repr=False)
    notes: list[str] = field(repr=False)
    _page: str = field(default="", repr=False)

    def to_html(self) -> str:
        """The page that ``gradus compare --report`` writes: one HTML file that needs nothing else."""
        return self._page

    def __repr__(self) -> str:
        return "\n".join([_aligned(self._table()), *self._words()])

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        words = "".join(f"<p>{html.escape(line)}</p>" for line in self._words())
        return f"<table><tr>{cells}</tr>{body}</table>{words}"

    def _table(self) -> list[list[str]]:
        errors = [row["error"] for row in self.rows if row["error"]]
        digits = min(6, max(0, math.ceil(1 - math.log10(min(errors))))) if errors else 4
        table = [["model", self.metric, f"all within, {100 * self.level:.0f} %", "less the best", "", "fit"]]
        for at, row in enumerate(self.rows):
            less = "" if at == 0 else f"{row['difference']:+.{digits + 1}f}"
            distinguished = "baseline" if row["baseline"] else ""
            verdict = "best" if at == 0 else distinguished if row["distinguished"] else "not distinguished"
            within = f"{row['low']:.{digits}f} to {row['high']:.{digits}f}"
            table.append(
                [row["model"], f"{row['score']:.{digits}f}", within, less, verdict, f"{row['seconds']:.3g} s"]
            )
        return table

    def _words(self) -> list[str]:
        return [f"{one['model']}: {one['reason']}" for one in self.others] + list(self.notes)


def _aligned(table: list[list[str]]) -> str:
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table)


def compare(
    X: Any,
    y: Any = None,
    *,
    implicit: bool = False,
    task: str | None = None,
    models: Any = None,
    without: Any = (),
    budget: Any = "5m",
    metric: str | None = None,
    holdout: float = 0.2,
    split: str = "random",
    groups: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    refit: bool = True,
    duplicates: str = "last",
    missing: str = "refuse",
    verbose: bool = False,
) -> Comparison:
    """Compares models on your data within a time budget.

    Every model that fits the data takes part, with its defaults. They race on growing parts of the data; those that
    are left are fitted on everything but a test part, and tested on that once. Ctrl-C gives what is complete by then.

    Parameters
    ----------
    X : tuple, data frame, array or sparse matrix
        Without ``y`` ratings, in any form that recommenders take: ``(users, items, values)``, a data frame with such
        columns, or a sparse matrix of users × items. With ``y`` features, samples × features.
    y : array, optional
        What is to be predicted from the features: numbers or classes.
    implicit : bool
        Whether ratings are signs of interest, such as clicks: models are then compared by their rankings. Values, if
        there are any, are their strength.
    task : {"regression", "classification"}, optional
        The task of features; by default it follows from ``y``: words, truth values and at most 20 different whole
        numbers (of ten samples each) are classes.
    models : list of str, optional
        The models to compare, as in ``gradus.models()``; baselines take part in any case.
    without : list of str
        Models to leave out.
    budget : str, float or None
        The time budget: ``"90s"``, ``"10m"``, ``"1h"``, or a number of seconds. None for no limit and no race, so
        that the result does not depend on the clock.
    metric : str, optional
        ``rmse`` (default) or ``mae`` of ratings and regression; ``ndcg`` (default), ``recall``, ``precision`` or
        ``hit_rate`` of the first 20 places of rankings; ``accuracy`` (default) or ``log_loss`` of classes.
    holdout : float
        The share of the data that is the test part.
    split : {"random", "per-user", "cold"}
        The hold-out scheme of ratings.
    groups : array, optional
        Samples of the same group are held out together.
    sample_weight : array, optional
        The weight of each rating or sample.
    random_state : int, generator or None
        Seed of the split and of the fits.
    refit : bool
        Whether the best model is fitted on all the data in the end, if time allows.
    duplicates : {"last", "mean", "sum", "error"}
        The value of a pair of user and item that occurs twice.
    missing : str
        The substitute for a missing feature, as in the estimators.
    verbose : bool
        Whether to show on standard error what is being fitted.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import gradus, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> found = gradus.compare(X, X @ [1.0, 2.0, 0.0] + rng.normal(size=300), models=["ridge", "lasso"])
    >>> sorted(row["model"] for row in found.rows)
    ['constant', 'lasso', 'ridge']
    >>> found.best_estimator_.predict(X[:2]).shape
    (2,)
    """
    seed = _seed(random_state)
    options = {
        "models": _names("models", models),
        "without": _names("without", without),
        "budget": _budget(budget),
        "metric": metric,
        "holdout": float(holdout),
        "split": split,
        "seed": seed,
        "refit": bool(refit),
    }
    progress = _Progress() if verbose else None
    if y is None:
        if groups is not None or task is not None:
            name = "groups" if groups is not None else "task"
            raise ValueError(f"`{name}` is for tables of features, which have a target `y`")
        data, rated = _ratings_and_kind(X, None, sample_weight, "X", duplicates, not implicit)
        answer = _gradus.compare(json.dumps(options), ratings=data, implicit=implicit, progress=progress)
    else:
        if implicit:
            raise ValueError("`implicit` is for ratings, which have no target `y`")
        answer = _of_samples(X, y, task, options, groups, sample_weight, missing, progress)
    if progress is not None:
        progress.done()
    return _result(*answer)


def _of_samples(
    X: Any, y: Any, task: str | None, options: dict[str, Any], groups: Any, weights: Any, missing: str, progress: Any
) -> Any:
    names = _target_names(y)
    if task not in (None, "regression", "classification"):
        raise ValueError(f"task = {task!r}: must be one of regression, classification")
    classes = _looks_like_classes(np.asarray(y)) if task is None else task == "classification"
    base = Classifier if classes else Regressor
    # Any estimator of the family checks and converts features as all of them do.
    reader = next(found for found in _estimators().values() if issubclass(found, base))(missing=missing)
    given: dict[str, Any] = {"target": names, "progress": progress}
    if classes:
        features, target, _ = reader._features(X, reset=True, y=y)
        target = column_or_1d(target, warn=True)
        found, codes = _classes(target)
        labels, order = _labels(found)
        if order is not None:
            codes = np.argsort(order)[codes]
        given.update(codes=codes.astype(np.uint32), classes=labels)
    else:
        features, target, _ = reader._features(X, reset=True, y=y, multi_output=True, y_numeric=True)
        target = np.asarray(target, dtype=np.float64)
        given["y"] = target.reshape(target.shape[0], -1)
    if weights is not None:
        given["weights"] = _check_sample_weight(weights, target, dtype=np.float64, ensure_non_negative=True)
    if groups is not None:
        groups = column_or_1d(groups)
        if len(groups) != len(target):
            raise ValueError(f"groups: {len(groups)} of them for {len(target)} samples")
        given["groups"] = np.unique(groups, return_inverse=True)[1].astype(np.uint32)
    return _gradus.compare(json.dumps(options), features=features, **given)


def _looks_like_classes(y: np.ndarray) -> bool:
    if y.ndim > 1 and y.shape[1] > 1:
        return False
    if y.dtype.kind not in "iuf":
        return True
    return _gradus.looks_like_classes(np.asarray(y, dtype=np.float64).ravel())


def _names(what: str, names: Any) -> list[str]:
    if names is None:
        return []
    if isinstance(names, str):
        names = [names]
    names = list(names)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} = {names!r}: must be names of models, such as those of gradus.models()")
    return names


def _budget(budget: Any) -> Any:
    if budget is None:
        return None
    if isinstance(budget, (int, float, np.number)) and not isinstance(budget, bool):
        return f"{float(budget)!r}"
    if isinstance(budget, str):
        return budget
    raise TypeError(f"budget = {budget!r}: must be a length of time such as '10m', seconds, or None")


def _result(answer: str, model: Any, page: str, remarks: list[str]) -> Comparison:
    found = json.loads(answer)
    for remark in remarks:
        warn(remark)
    best = None
    if model is not None:
        best = _estimators()[model.kind]()
        best.set_params(**best._params_of(json.loads(model.params)))
        best._adopt(model)
    if found["interrupted"]:
        warn("interrupted: the comparison has what was complete by then")
    rows = []
    for row in found["rows"]:
        difference = row["difference"]
        rows.append(
            {
                "model": row["model"],
                "score": row["score"],
                "error": row["error"],
                "low": _end(row["interval"]["low"], -math.inf),
                "high": _end(row["interval"]["high"], math.inf),
                "difference": difference["value"],
                "difference_low": _end(difference["interval"]["low"], -math.inf),
                "difference_high": _end(difference["interval"]["high"], math.inf),
                **{name: row[name] for name in ("distinguished", "seconds", "memory", "bytes", "baseline")},
            }
        )
    same = (
        "higher_is_better",
        "level",
        "others",
        "winner",
        "best_on_all_data",
        "not_distinguished",
        "fastest",
        "smallest",
        "interrupted",
        "parts",
        "units",
        "n_units",
        "seconds",
        "budget",
        "fits",
        "notes",
    )
    return Comparison(
        metric=found["title"],
        rows=rows,
        best_estimator_=best,
        _page=page,
        **{name: found[name] for name in same},
    )


def _end(value: float | None, otherwise: float) -> float:
    """JSON has no word for what is infinite."""
    return otherwise if value is None else value


class _Progress:
    """Shows what is being fitted: one line, written over."""

    def __call__(self, model: str, stage: str, share: float, at: int, of: int) -> None:
        if stage == "race":
            line = f"race on {100 * share:.0f} %: {model} ({at} of {of})"
        elif stage == "test":
            line = f"test: {model} ({at} of {of})"
        else:
            line = f"{model} on all the data"
        print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        print(file=sys.stderr, flush=True)
