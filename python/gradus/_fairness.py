"""Audits of fairness: the criteria between groups, each with an interval and a test."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import column_or_1d

from gradus import _gradus
from gradus._base import warn
from gradus._groups import _attribute, _attributes, _vector, _weights


class Fairness:
    """What an audit found; print it for tables.

    Attributes
    ----------
    criteria : list of dict
        Each criterion with its ``name``, ``family``, ``gap`` (the difference and ratio between groups, with intervals),
        ``test`` (with its ``p_value``), ``rejected`` and ``within_tolerance``.
    groups : list of dict
        The rates of each group, with intervals.
    overall : dict
        The rates over all rows.
    warnings : list of str
        What to be careful about.
    record : dict
        All of it.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.criteria: list[dict[str, Any]] = record["criteria"]
        self.groups: list[dict[str, Any]] = record["groups"]
        self.overall: dict[str, Any] | None = record.get("overall")
        self.warnings: list[str] = record.get("warnings", [])

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The criterion of this name."""
        for one in self.criteria:
            if one["name"] == name:
                return one
        raise KeyError(f"no criterion {name!r}; there are {', '.join(one['name'] for one in self.criteria)}")

    def __repr__(self) -> str:
        violated = [one["name"] for one in self.criteria if one["rejected"]]
        return f"Fairness(by {self.record['attribute']}; violated: {', '.join(violated) or 'none'})"

    def __str__(self) -> str:
        def number(value: Any) -> str:
            return "–" if value is None else f"{value:.4g}"

        lines = [["criterion", "difference", "interval", "ratio", "p", ""]]
        for one in self.criteria:
            gap, test = one["gap"], one["test"]
            verdict = {True: "violated", False: "no violation shown", None: "cannot be told"}[one["rejected"]]
            if one["within_tolerance"]:
                verdict += ", within the tolerance"
            interval = "–" if gap is None else " to ".join(number(end) for end in gap["interval"])
            lines.append([
                one["name"],
                number(gap and gap["difference"]),
                interval,
                number(gap and gap["ratio"]),
                number(test and test["p_value"]),
                verdict,
            ])
        tables = [lines]
        rates = [name for name, value in self.groups[0].items() if isinstance(value, dict) and "low" in value]
        table = [[self.record["attribute"], "rows", *(name.replace("_", " ") for name in rates)]]
        for group in self.groups:
            table.append([group["group"], str(group["count"]), *(number(group[name]["value"]) for name in rates)])
        tables.append(table)
        text = "\n\n".join(_aligned(table) for table in tables)
        return "\n".join([text, *self.warnings])


def _aligned(table: list[list[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*table)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table)


def _options(level: float, tolerance: float, min_group: int) -> str:
    return json.dumps({"level": level, "tolerance": tolerance, "min_group": min_group})


def _audited(record: str) -> Fairness:
    found = Fairness(json.loads(record))
    for text in found.warnings:
        warn(text)
    return found


def fairness_of_predictions(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    probability: Any = None,
    scores: Any = None,
    favourable: Any = None,
    conditional: Any = None,
    sample_weight: Any = None,
    regression: bool = False,
    level: float = 0.95,
    tolerance: float = 0.05,
    min_group: int = 20,
) -> Fairness:
    """Audits predictions: the criteria of fairness, each with an interval and a test, and rates by group.

    Parameters
    ----------
    y_true, y_pred : array of samples
        The truth and the predictions: classes, or numbers with ``regression=True``.
    sensitive_features : array, mapping or data frame
        The group of each sample; of several columns the intersections are the groups.
    probability : array of samples, optional
        The probability of the favourable class, for calibration by group.
    scores : array of samples, optional
        Scores in favour of it, for the area below the ROC curve; by default the probability.
    favourable : class, optional
        The class that is the favourable decision; by default the second of two.
    conditional : array of samples, optional
        An attribute to hold fixed: conditional criteria compare only samples of like value.
    sample_weight : array of samples, optional
        How much each sample counts: a weight of 3 is three samples.
    regression : bool
        Whether predictions are numbers: mean predictions, residuals and absolute errors are then compared.
    level : float
        The level of intervals; a criterion is rejected where its test is rarer than ``1 - level``.
    tolerance : float
        Differences up to this hold for practical purposes.
    min_group : int
        Groups of fewer members are left out of the criteria.

    Returns
    -------
    Fairness
    """
    options = _options(level, tolerance, min_group)
    attributes, weights = _attributes(sensitive_features), _weights(sample_weight)
    if regression:
        found = _gradus.fairness_of_values(options, _vector(y_true, "y_true"), _vector(y_pred, "y_pred"), attributes, weights)
        return _audited(found)
    y_true, y_pred = column_or_1d(np.asarray(y_true)), column_or_1d(np.asarray(y_pred))
    classes = np.unique(np.concatenate([np.unique(y_true), np.unique(y_pred)]))
    if favourable is None:
        if classes.size > 2:
            raise ValueError(
                f"favourable: which of {classes.tolist()} is the favourable decision? There are more than two classes; "
                "for numbers say regression=True"
            )
        favourable = classes[-1]
    elif favourable not in classes:
        raise ValueError(f"favourable: {favourable!r} is none of the classes, {classes.tolist()}")
    given = {name: _vector(values, name) for name, values in (("probability", probability), ("scores", scores)) if values is not None}
    held = None if conditional is None else _attribute(str(getattr(conditional, "name", None) or "conditional"), conditional)
    return _audited(
        _gradus.fairness_of_decisions(
            options, y_true == favourable, y_pred == favourable, attributes, conditional=held, weights=weights, **given
        )
    )


def fairness(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    favourable: Any = None,
    conditional: Any = None,
    sample_weight: Any = None,
    level: float = 0.95,
    tolerance: float = 0.05,
    min_group: int = 20,
) -> Fairness:
    """Audits a fitted classifier or regressor, of gradus or any that follows scikit-learn's conventions, on data it has
    not seen. See `fairness_of_predictions` for the other parameters.

    Parameters
    ----------
    estimator : estimator
        It has ``predict``, and may have ``predict_proba`` or ``decision_function``. One that needs the groups to predict
        (`FairThresholds`, `GroupThresholds`) is given them.
    X : array or data frame, samples × features
        The group need not be among the features.
    y : array of samples
        The truth.

    Returns
    -------
    Fairness
    """
    given = {"sensitive_features": sensitive_features} if getattr(estimator, "needs_groups_", False) else {}
    predicted = estimator.predict(X, **given)
    further: dict[str, Any] = {"regression": not is_classifier(estimator)}
    if is_classifier(estimator):
        classes = np.asarray(getattr(estimator, "classes_", np.unique(y)))
        if favourable is None and classes.size == 2:
            favourable = classes[1]
        at = np.flatnonzero(classes == favourable)
        if at.size == 1 and not given:
            if hasattr(estimator, "predict_proba"):
                found = estimator.predict_proba(X)
                if found is not None:
                    further["probability"] = np.clip(np.asarray(found)[:, at[0]], 0, 1)
            if hasattr(estimator, "decision_function"):
                scores = np.asarray(estimator.decision_function(X))
                further["scores"] = (scores if at[0] == 1 else -scores) if scores.ndim == 1 else scores[:, at[0]]
        further |= {"favourable": favourable, "conditional": conditional}
    elif conditional is not None:
        raise ValueError("conditional: is about decisions, and the estimator predicts numbers")
    return fairness_of_predictions(
        y,
        predicted,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        level=level,
        tolerance=tolerance,
        min_group=min_group,
        **further,
    )


def exposure(
    lists: Any, *, sensitive_features: Any, reference: Any = None, level: float = 0.95, tolerance: float = 0.05
) -> dict[str, Any]:
    """Audits recommended lists by groups of items: whether each group has a share of the exposure equal to its share of the
    reference. Places of lists count ``1 / log2(1 + place)``; users are the independent units of intervals and the test.

    Parameters
    ----------
    lists : array of int, users × places
        Items by number, best first; below 0 where a list ends early.
    sensitive_features : array, mapping or data frame of items
        The group of each item.
    reference : array of items, optional
        How much attention each item is due; by default all the same.

    Returns
    -------
    dict
        With ``groups`` and the ``criterion``.
    """
    array = np.ascontiguousarray(np.atleast_2d(np.asarray(lists)), dtype=np.int64)
    given = None if reference is None else _vector(reference, "reference")
    return json.loads(_gradus.fairness_of_exposure(_options(level, tolerance, 20), array, _attributes(sensitive_features), given))


def quality(
    values: Any, *, sensitive_features: Any, level: float = 0.95, tolerance: float = 0.05, min_group: int = 20
) -> dict[str, Any]:
    """Audits a figure of quality that each user has, an NDCG for instance, by groups of users: whether all are served equally
    well.

    Parameters
    ----------
    values : array of users
    sensitive_features : array, mapping or data frame of users
        The group of each user.

    Returns
    -------
    dict
        With ``groups``, the ``criterion`` and ``warnings``.
    """
    options = _options(level, tolerance, min_group)
    return json.loads(_gradus.fairness_of_quality(options, _vector(values, "values"), _attributes(sensitive_features)))
