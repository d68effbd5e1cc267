"""Measures in each group of a sensitive attribute, with the names and arguments of ``fairlearn.metrics``."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from gradus import _gradus
from gradus._groups import _attributes, _vector, _weights


class MeasureByGroup:
    """A measure over all rows and in each group.

    Attributes
    ----------
    overall : float
        The value over all rows.
    by_group : dict of str to float
        The value in each group; NaN where it is not defined.
    """

    def __init__(self, overall: float, by_group: dict[str, float]) -> None:
        self.overall = overall
        self.by_group = by_group

    def __repr__(self) -> str:
        return f"MeasureByGroup(overall={self.overall!r}, by_group={self.by_group!r})"

    def _values(self) -> np.ndarray:
        values = np.array(list(self.by_group.values()))
        return values[~np.isnan(values)]

    def group_min(self) -> float:
        """The smallest value of a group."""
        values = self._values()
        return float(values.min()) if values.size else float("nan")

    def group_max(self) -> float:
        """The largest value of a group."""
        values = self._values()
        return float(values.max()) if values.size else float("nan")

    def difference(self, method: str = "between_groups") -> float:
        """The largest difference: between two groups, or (``to_overall``) of a group from all rows."""
        if _method(method):
            return self.group_max() - self.group_min()
        values = self._values()
        return float(np.abs(values - self.overall).max()) if values.size else float("nan")

    def ratio(self, method: str = "between_groups") -> float:
        """The smallest ratio, of the smaller to the larger: between two groups, or (``to_overall``) of a group and all rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if _method(method):
                return float(np.divide(self.group_min(), self.group_max()))
            ratios = self._values() / self.overall
            ratios = np.where(ratios > 1, 1 / ratios, ratios)
        ratios = ratios[~np.isnan(ratios)]
        return float(ratios.min()) if ratios.size else float("nan")


def _method(method: str) -> bool:
    if method not in ("between_groups", "to_overall"):
        raise ValueError(f"method: must be between_groups or to_overall, got {method!r}")
    return method == "between_groups"


def measure_by_group(measure: str, y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> MeasureByGroup:
    """A measure in each group.

    Parameters
    ----------
    measure : str
        ``selection_rate``, ``true_positive_rate``, ``false_positive_rate``, ``true_negative_rate``, ``false_negative_rate``,
        ``accuracy_score``, ``balanced_accuracy_score``, ``zero_one_loss``, ``precision_score``,
        ``negative_predictive_value``, ``recall_score``, ``f1_score``, ``roc_auc_score`` (of scores), ``log_loss`` (of
        probabilities), ``mean_absolute_error``, ``mean_squared_error``, ``r2_score``, ``mean_prediction``,
        ``mean_residual`` or ``count``.
    y_true, y_pred : array of samples
        The truth and the predictions; classes and decisions are 0 and 1.
    sensitive_features : array, mapping or data frame
        The group of each sample; of several columns the intersections are the groups.
    sample_weight : array of samples, optional
        How much each sample counts: a weight of 3 is three samples.

    Returns
    -------
    MeasureByGroup

    Examples
    --------
    >>> from gradus.audit import measure_by_group
    >>> measure_by_group("selection_rate", [0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=["f", "f", "m", "m"]).by_group
    {'f': 0.5, 'm': 1.0}
    """
    overall, names, values = _gradus.measure_by_group(
        measure,
        _vector(y_true, "y_true"),
        _vector(y_pred, "y_pred"),
        _attributes(sensitive_features),
        _weights(sample_weight),
    )
    return MeasureByGroup(overall, dict(zip(names, values)))


def demographic_parity_difference(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, method: str = "between_groups", sample_weight: Any = None
) -> float:
    """The largest difference of selection rates. See `measure_by_group` for the parameters."""
    found = measure_by_group("selection_rate", y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
    return found.difference(method)


def demographic_parity_ratio(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, method: str = "between_groups", sample_weight: Any = None
) -> float:
    """The smallest ratio of selection rates. See `measure_by_group` for the parameters."""
    found = measure_by_group("selection_rate", y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
    return found.ratio(method)


def equal_opportunity_difference(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, method: str = "between_groups", sample_weight: Any = None
) -> float:
    """The largest difference of true positive rates. See `measure_by_group` for the parameters."""
    found = measure_by_group("true_positive_rate", y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
    return found.difference(method)


def equal_opportunity_ratio(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, method: str = "between_groups", sample_weight: Any = None
) -> float:
    """The smallest ratio of true positive rates. See `measure_by_group` for the parameters."""
    found = measure_by_group("true_positive_rate", y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
    return found.ratio(method)


def _odds(y_true: Any, y_pred: Any, sensitive_features: Any, sample_weight: Any) -> list[MeasureByGroup]:
    given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    return [measure_by_group(name, y_true, y_pred, **given) for name in ("true_positive_rate", "false_positive_rate")]


def _aggregated(values: list[float], agg: str, worst: Callable[[list[float]], float]) -> float:
    if agg not in ("worst_case", "mean"):
        raise ValueError(f"agg: must be worst_case or mean, got {agg!r}")
    return worst(values) if agg == "worst_case" else sum(values) / len(values)


def equalized_odds_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: str = "between_groups",
    sample_weight: Any = None,
    agg: str = "worst_case",
) -> float:
    """The largest differences of true and of false positive rates: the larger of the two, or (``agg="mean"``) their mean."""
    found = _odds(y_true, y_pred, sensitive_features, sample_weight)
    return _aggregated([one.difference(method) for one in found], agg, max)


def equalized_odds_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: str = "between_groups",
    sample_weight: Any = None,
    agg: str = "worst_case",
) -> float:
    """The smallest ratios of true and of false positive rates: the smaller of the two, or (``agg="mean"``) their mean."""
    found = _odds(y_true, y_pred, sensitive_features, sample_weight)
    return _aggregated([one.ratio(method) for one in found], agg, min)


def _derived(measure: str, transform: str) -> Callable[..., float]:
    about = {
        "difference": "The largest difference between groups in",
        "ratio": "The smallest ratio between groups in",
        "group_min": "The smallest value of a group in",
        "group_max": "The largest value of a group in",
    }[transform]
    compared = transform in ("difference", "ratio")

    def derived(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None, method: str = "between_groups") -> float:
        found = measure_by_group(measure, y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return getattr(found, transform)(*([method] if compared else []))

    derived.__name__ = derived.__qualname__ = f"{measure}_{transform}"
    derived.__doc__ = f"{about} ``{measure}``. See `measure_by_group` for the parameters."
    return derived


#: Names of the differences, ratios and extremes of each measure.
DERIVED: list[str] = []

for _name in (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "true_negative_rate",
    "false_negative_rate",
    "accuracy_score",
    "balanced_accuracy_score",
    "zero_one_loss",
    "precision_score",
    "negative_predictive_value",
    "recall_score",
    "f1_score",
    "roc_auc_score",
    "log_loss",
    "mean_absolute_error",
    "mean_squared_error",
    "r2_score",
    "mean_prediction",
):
    for _transform in ("difference", "ratio", "group_min", "group_max"):
        globals()[f"{_name}_{_transform}"] = _derived(_name, _transform)
        DERIVED.append(f"{_name}_{_transform}")
del _name, _transform
