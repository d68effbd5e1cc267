"""How many decisions of a classifier small changes of the features can reverse."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Sequence

import numpy as np

from gradus import _gradus
from gradus._base import Estimator, _seed


@dataclass(frozen=True)
class Robustness:
    """The result of an audit of robustness; printing it shows the numbers.

    Attributes
    ----------
    norm, eps : str, float
        The norm and the radius of perturbations.
    accuracy, robust_accuracy : float
        The share of rows whose decision is right, and of those among all rows whose right decision no attack reversed.
    accuracy_interval, robust_accuracy_interval : tuple of float
        Their 95 % intervals.
    exact : bool
        Whether no perturbation could reverse more: then the model is linear.
    curve : list of dict
        ``eps``, ``robust_accuracy``, ``low`` and ``high`` at each radius.
    attacks : list of dict
        ``attack``, ``tried``, ``fell``, ``queries`` and ``seconds`` of each attack at ``eps``.
    distances : array of shape (n,)
        The length of the shortest perturbation known to reverse each right decision; infinite where none is known, 0 where
        the decision is wrong anyway.
    fallen : array
        The rows that fell within ``eps``.
    examples : dict of int to array
        The changed features of each row that a perturbation is known for.
    certified : dict or None
        Certificates by randomised smoothing, if asked for.
    notes : list of str
        Remarks on what to make of the numbers.
    """

    norm: str
    eps: float
    accuracy: float
    accuracy_interval: tuple[float, float]
    robust_accuracy: float
    robust_accuracy_interval: tuple[float, float]
    exact: bool
    curve: list[dict[str, float]]
    attacks: list[dict[str, Any]]
    distances: Any = field(repr=False)
    fallen: Any = field(repr=False)
    examples: dict[int, Any] = field(repr=False)
    certified: dict[str, Any] | None = field(repr=False)
    notes: list[str] = field(repr=False)

    def __str__(self) -> str:
        def percent(value: float, ends: tuple[float, float]) -> str:
            return f"{100 * value:.2f} %  ({100 * ends[0]:.2f} to {100 * ends[1]:.2f})"

        lines = [
            f"accuracy         {percent(self.accuracy, self.accuracy_interval)}",
            f"robust accuracy  {percent(self.robust_accuracy, self.robust_accuracy_interval)}",
            f"at {self.norm} <= {self.eps:g}; {'exact' if self.exact else 'an upper bound'}",
        ]
        for attack in self.attacks:
            lines.append(f"{attack['attack']:12} {attack['fell']} of {attack['tried']} rows fell")
        return "\n".join([*lines, *self.notes])


def robustness(
    model: Any,
    X: Any,
    y: Any,
    *,
    eps: float = 0.1,
    norm: str = "linf",
    curve: Sequence[float] = (),
    attacks: Sequence[str] = (),
    bounds: tuple[Any, Any] | None = None,
    budget: Any = None,
    standardize: bool = False,
    integer: Sequence[int] = (),
    categories: Sequence[Sequence[int]] = (),
    iterations: int = 100,
    restarts: int = 1,
    targets: int = 9,
    queries: int = 5000,
    smoothing: float | None = None,
    random_state: Any = 0,
) -> Robustness:
    """Attacks every row that a classifier predicts rightly, and counts the decisions that stand.

    Parameters
    ----------
    model : classifier
        A fitted classifier of gradus (attacked by its gradients where it has them; exactly where it is linear), or any
        classifier with scikit-learn's methods: attacked by ``decision_function`` or ``predict_proba`` where it has one of
        them, else by ``predict`` alone.
    X : array of shape (n, d)
        Rows that the model has not seen.
    y : array of shape (n,)
        Their classes.
    eps : float
        The radius of perturbations.
    norm : {"linf", "l2", "l1"}
        Their norm.
    curve : sequence of float
        Further radii; at these the first attack runs alone.
    attacks : sequence of str
        The attacks in order: "exact", "fgsm", "pgd", "apgd-ce", "apgd-dlr", "apgd-t", "fab-t", "square", "differences",
        "hopskipjump". By default those that suit the model.
    bounds : tuple of two
        The least and the largest value of features: numbers, or arrays with one for each.
    budget : array of shape (d,)
        A factor of the radius for each feature; 0 lets a feature stay as it is.
    standardize : bool
        Whether changes are measured in standard deviations of the features in ``X``.
    integer : sequence of int
        Features that change by whole numbers only.
    categories : sequence of sequences of int
        Groups of neighbouring columns that are one-hot: one of each group stays 1. A changed category counts as 1.
    iterations, restarts, targets : int
        Steps and starts of attacks by gradients, and classes that targeted ones try at most.
    queries : int
        Evaluations of a row by each attack without gradients at most.
    smoothing : float
        Certifies the classifier smoothed by normal noise of this standard deviation, too.
    random_state : int, RandomState or None
        The seed.

    Returns
    -------
    Robustness
    """
    native = model._fitted if isinstance(model, Estimator) else None
    if native is None and not hasattr(model, "predict"):
        raise TypeError(f"model: {type(model).__name__} has no method predict")
    classes = getattr(model, "classes_", None)
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, it has the shape {y.shape}")
    if native is not None:
        if classes is None:
            raise ValueError(
                f"model: {type(model).__name__} does not predict classes; attacks need classes (on the command line "
                "`gradus audit robustness` tells how far predicted numbers move)"
            )
        features, _, _ = model._features(X, reset=False)
        n, d = X.shape
    else:
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, it has the shape {X.shape}")
        n, d = X.shape
        features = _gradus.Features.dense(X)
    if len(y) != n:
        raise ValueError(f"X has {n} rows and y {len(y)} classes")
    decide = scores = None
    if native is None:
        if classes is None:
            classes = np.unique(np.concatenate([np.asarray(model.predict(X)), y]))
        decide, scores = _functions(model, np.asarray(classes))
        if scores is not None and scores(X[:1]).shape != (1, len(classes)):
            # One column for each pair of classes, say: no score of a class.
            scores = None
    classes = np.asarray(classes)
    places = {label: at for at, label in enumerate(classes.tolist())}
    codes = np.array([places.get(label, -1) for label in y.tolist()], dtype=np.int64)
    low, high = (None, None) if bounds is None else (_each(bound, d) for bound in bounds)
    asked = {
        "norm": norm,
        "low": low,
        "high": high,
        "unit": None if budget is None else np.asarray(budget, dtype=np.float64).tolist(),
        "standardize": bool(standardize),
        "integer": [int(at) for at in integer],
        "categories": [sorted(int(at) for at in group) for group in categories],
        "smoothing": smoothing,
        "options": {
            "eps": _number("eps", eps),
            "curve": [_number("curve", radius) for radius in curve],
            "attacks": [_attack(name) for name in attacks],
            "iterations": _count("iterations", iterations),
            "restarts": _count("restarts", restarts),
            "targets": _count("targets", targets),
            "queries": _count("queries", queries),
            "seed": _seed(random_state),
        },
    }
    text, certified, rows, values = _gradus.audit_robustness(
        json.dumps(asked), features, codes, len(classes), native, decide, scores
    )
    return _result(json.loads(text), certified, rows, values.reshape(len(rows), d))


def _functions(model: Any, classes: Any) -> tuple[Any, Any]:
    """The decisions of a classifier as numbers, and its scores as one column a class, if it has any."""
    order = np.argsort(classes, kind="stable")
    ordered = classes[order]

    def quietly(function: Any, X: Any) -> Any:
        with warnings.catch_warnings():
            # The names of the columns are not those of the perturbed rows.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return np.asarray(function(X))

    def decide(X: Any) -> Any:
        found = quietly(model.predict, X)
        places = np.clip(np.searchsorted(ordered, found), 0, len(ordered) - 1)
        if not np.array_equal(ordered[places], found):
            raise ValueError(f"model: {type(model).__name__}.predict gave a class that is not in classes_")
        return order[places].astype(np.uint32)

    name = next((name for name in ("decision_function", "predict_proba") if hasattr(model, name)), None)
    if name is None:
        return decide, None
    function = getattr(model, name)

    def scores(X: Any) -> Any:
        found = quietly(function, X)
        if found.dtype.kind not in "fiub":
            return np.empty((len(X), 0))
        found = found.astype(np.float64)
        if found.ndim == 1:
            found = np.column_stack([np.zeros(len(found)), found])
        return np.ascontiguousarray(found)

    return decide, scores


def _each(bound: Any, d: int) -> list[float]:
    array = np.asarray(bound, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(d, array)
    # JSON knows no infinity; no feature comes near the largest number there is.
    most = np.finfo(np.float64).max
    return np.clip(array, -most, most).tolist()


def _number(name: str, value: Any) -> float:
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"parameter `{name}` = {value}: a radius must be a number that is 0 or more")
    return value


def _count(name: str, value: Any) -> int:
    if int(value) != value or value < 1:
        raise ValueError(f"parameter `{name}` = {value}: must be an integer of at least 1")
    return int(value)


#: The attacks there are.
ATTACKS = (
    "exact", "fgsm", "pgd", "apgd-ce", "apgd-dlr", "apgd-t", "fab-t", "square", "differences", "hopskipjump",
)


def _attack(name: str) -> str:
    if name not in ATTACKS:
        raise ValueError(f"unknown attack `{name}`; known: {', '.join(ATTACKS)}")
    return name


def _result(found: dict[str, Any], certified: str | None, rows: list[int], values: Any) -> Robustness:
    def ends(share: dict[str, Any]) -> tuple[float, float]:
        return share["interval"]["low"], share["interval"]["high"]

    distances = np.array(
        [
            0.0 if row["truth"] != row["predicted"] else math.inf if row["distance"] is None else row["distance"]
            for row in found["rows"]
        ]
    )
    right = np.array([row["truth"] == row["predicted"] for row in found["rows"]])
    return Robustness(
        norm=found["norm"],
        eps=found["eps"],
        accuracy=found["accuracy"]["value"],
        accuracy_interval=ends(found["accuracy"]),
        robust_accuracy=found["robust"]["value"],
        robust_accuracy_interval=ends(found["robust"]),
        exact=found["exact"],
        curve=[
            {
                "eps": point["eps"],
                "robust_accuracy": point["robust"]["value"],
                "low": point["robust"]["interval"]["low"],
                "high": point["robust"]["interval"]["high"],
            }
            for point in found["curve"]
        ],
        attacks=found["attacks"],
        distances=distances,
        fallen=np.flatnonzero(right & (distances <= found["eps"] * (1 + 1e-6))),
        examples={row: values[at] for at, row in enumerate(rows)},
        certified=None if certified is None else json.loads(certified),
        notes=found["notes"],
    )
