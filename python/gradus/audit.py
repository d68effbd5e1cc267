"""Audits of models: fairness between groups, and robustness against small changes of the features.

``fairness`` audits an estimator, of gradus or any that follows scikit-learn's conventions; ``fairness_of_predictions`` audits
plain arrays. The measures have the names and arguments of ``fairlearn.metrics``::

    from gradus import audit

    print(audit.fairness(model, X_test, y_test, sensitive_features=X_test[["sex", "race"]]))
    audit.demographic_parity_difference(y_test, model.predict(X_test), sensitive_features=sex)

``robustness`` attacks a classifier, of gradus or any with scikit-learn's methods.

``FairReduction``, ``FairThresholds`` and ``FairFeatures`` fit models that meet a criterion; ``GroupThresholds`` puts thresholds
for each group on any classifier that is fitted already.
"""

from __future__ import annotations

import json
from typing import Any, Callable

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.utils.validation import check_is_fitted, column_or_1d

from gradus import _gradus
from gradus._base import warn
from gradus._features import Classifier, _labels
from gradus._frames import is_frame, typed
from gradus._robustness import Robustness, robustness

__all__ = [
    "FairFeatures",
    "FairReduction",
    "FairThresholds",
    "Fairness",
    "GroupThresholds",
    "MeasureByGroup",
    "Robustness",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "exposure",
    "fairness",
    "fairness_of_predictions",
    "measure_by_group",
    "quality",
    "robustness",
]


# Groups.


def _attribute(name: str, values: Any) -> tuple[str, list[str], np.ndarray]:
    """An attribute as the compiled part takes it: its name, the names of its groups, the group of each row."""
    array = np.asarray(values, dtype=object if not isinstance(values, np.ndarray) else None)
    array = column_or_1d(array)
    missing = [value is None or type(value).__name__ == "NAType" or value != value for value in array.tolist()]
    if any(missing):
        raise ValueError(f"sensitive_features: `{name}`, row {missing.index(True) + 1}: missing value; every row needs a group")
    kinds = {type(value) for value in array.tolist()}
    if kinds and all(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds):
        numbers = array.astype(np.float64)
        different, codes = np.unique(numbers, return_inverse=True)
        if different.size > 1:
            _gradus.check_groups(name, numbers)
        words = [repr(int(value)) if float(value).is_integer() else repr(float(value)) for value in different.tolist()]
        return name, words, codes.astype(np.uint32)
    words, codes = np.unique([_word(value) for value in array.tolist()], return_inverse=True)
    if words.size > 50:
        raise ValueError(
            f"sensitive_features: `{name}` has {words.size} different words, and groups are at most 50; merge some of them"
        )
    return name, words.tolist(), codes.astype(np.uint32)


def _word(value: Any) -> str:
    # As the command line writes truth values.
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


def _attributes(sensitive_features: Any) -> list[tuple[str, list[str], np.ndarray]]:
    """Every attribute of a vector, a table, a mapping or a frame."""
    if sensitive_features is None:
        raise ValueError("sensitive_features: the group of each sample is needed, a column or several")
    if isinstance(sensitive_features, dict):
        return [_attribute(str(name), values) for name, values in sensitive_features.items()]
    if is_frame(sensitive_features):
        names = [name for name, _ in typed(sensitive_features, "sensitive_features")]
        columns = np.asarray(sensitive_features, dtype=object)
        return [_attribute(name, columns[:, at]) for at, name in enumerate(names)]
    name = getattr(sensitive_features, "name", None)
    array = np.asarray(sensitive_features)
    if array.ndim == 2 and array.shape[1] > 1:
        return [_attribute(f"group{at}", array[:, at]) for at in range(array.shape[1])]
    return [_attribute(str(name) if name is not None else "group", array)]


def _vector(values: Any, what: str) -> np.ndarray:
    array = column_or_1d(np.asarray(values))
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: must be numbers, and {array.dtype} is none") from None


def _weights(sample_weight: Any) -> np.ndarray | None:
    return None if sample_weight is None else _vector(sample_weight, "sample_weight")


# Measures.


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


# Audits.


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


# Mitigation.


class _Grouped(Classifier):
    """A classifier that learns from samples with groups."""

    missing = "refuse"
    #: Whether `predict` needs the groups.
    needs_groups_ = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
            Columns of words in a data frame become a feature for each word. The groups need not be among them.
        y : array
            The class of each sample, of two: the second in ascending order is the favourable one.
        sample_weight : array, optional
            How much each sample counts: a weight of 3 is three samples.
        sensitive_features : array, mapping or data frame
            The group of each sample; of several columns the intersections are the groups.

        Returns
        -------
        self
        """
        self._attributes = _attributes(sensitive_features)
        try:
            super().fit(X, y, sample_weight)
        finally:
            del self._attributes
        self.needs_groups_ = bool(_gradus.group_columns(self._fitted))
        return self

    def _fit_by(self, fit: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        given = {name: options[name] for name in ("codes", "classes", "weights", "target")}
        super()._fit_by(_gradus.fit_grouped, *arguments, attributes=self._attributes, **given)

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        groups = _gradus.group_columns(model)
        self.needs_groups_ = bool(groups)
        if groups and hasattr(self, "feature_names_in_"):
            kept = [name for name in self.feature_names_in_ if name not in groups]
            self.n_features_in_ = len(kept)
            if kept == [f"x{at + 1}" for at in range(len(kept))]:
                # Features of an array have no names of their own.
                del self.feature_names_in_
                self._encodes = None
            else:
                self.feature_names_in_ = np.asarray(kept, dtype=object)

    def _read_coefficients(self) -> None:
        """Coefficients are of several classifiers, or of scores before a rule: they are no ``coef_``."""

    def _decided(self, X: Any, sensitive_features: Any, probabilities: bool) -> np.ndarray:
        attributes = None
        if self.needs_groups_:
            if sensitive_features is None:
                names = ", ".join(_gradus.group_columns(self._fitted))
                raise ValueError(
                    f"sensitive_features: {type(self).__name__} decides by the group, so that `predict` needs the groups "
                    f"({names}) as `fit` did"
                )
            attributes = _attributes(sensitive_features)
        if self._encodes == "frame" and attributes is not None:
            features = self._with_groups(X, attributes)
        else:
            features, _, _ = self._features(X, reset=False)
        found = _gradus.decide_grouped(self._fitted, features, attributes, probabilities)
        return np.asarray(found)

    def _with_groups(self, X: Any, attributes: list[tuple[str, list[str], np.ndarray]]) -> Any:
        columns = [(name, values) for name, values in typed(X) if name not in {name for name, _, _ in attributes}]
        columns += [(name, (codes.astype(np.int64), names)) for name, names, codes in attributes]
        return _gradus.Features.table(columns, self._fitted, "refuse")

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Decides; the same sample gets the same decision every time.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
        sensitive_features : array, mapping or data frame
            The group of each sample, where the model decides by it (``needs_groups_``).

        Returns
        -------
        array of samples
        """
        codes = self._decided(X, sensitive_features, False).astype(np.intp)
        return self.classes_[codes if self._order is None else self._order[codes]]

    def decision_probability(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The probability that each sample gets the favourable decision: 0 or 1 where no coin is thrown."""
        return self._decided(X, sensitive_features, True)

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The probability of the favourable decision less one half."""
        return self.decision_probability(X, sensitive_features=sensitive_features) - 0.5

    #: The probability of a decision says nothing of how probable a class is: there is no `predict_proba`.
    probability = False


class FairReduction(_Grouped):
    """Logistic regression under a constraint of fairness, by reduction to weighted fits (exponentiated gradient).

    A random mixture of a few linear classifiers of least error, whose rates in the groups are at most
    ``difference_bound`` from the common rate. The group is needed to fit and not to predict. fairlearn's name is
    ``ExponentiatedGradient``.

    Parameters
    ----------
    constraint : {"demographic_parity", "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity"}
        The rate that has to be equal in all groups.
    difference_bound : float
        How far the rate of a group may be from the common rate; fairlearn's ``eps``.
    regularization : float
        Strength of the penalty of the logistic regressions.
    tol : float
        The fit ends when the objective is this near its lower bound.
    max_iter : int
        Iterations at most, each of two fits.
    random_state : int, numpy generator or None
        Seed of the coins that choose a classifier for a sample.
    verbose : int
        1 shows the steps of a fit as they are made.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.audit import FairReduction, demographic_parity_difference
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = np.c_[rng.normal(size=2000) + group, rng.normal(size=2000)]
    >>> y = (X[:, 0] + X[:, 1] > 0.5).astype(int)
    >>> fair = FairReduction().fit(X, y, sensitive_features=group)
    >>> demographic_parity_difference(y, fair.predict(X), sensitive_features=group) < 0.05
    True
    """

    _kind = "fairreduction"

    def __init__(
        self,
        constraint: str = "demographic_parity",
        *,
        difference_bound: float = 0.01,
        regularization: float = 1e-5,
        tol: float = 1e-4,
        max_iter: int = 50,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.constraint = constraint
        self.difference_bound = difference_bound
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose


class FairThresholds(_Grouped):
    """Logistic regression whose thresholds differ by group, so that a criterion of fairness holds.

    For each group a threshold, or two and a coin, so that the rates of the constraint are equal and the accuracy is
    greatest. The group is needed to fit and to predict. fairlearn's name is ``ThresholdOptimizer``; `GroupThresholds` does
    the same for any classifier.

    Parameters
    ----------
    constraint : {"demographic_parity", "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity"}
        The rate that has to be equal in all groups.
    regularization : float
        Strength of the penalty of the logistic regression.
    random_state : int, numpy generator or None
        Seed of the coins that decide between two thresholds.
    verbose : int
        1 shows the steps of a fit as they are made.
    """

    _kind = "fairthresholds"

    def __init__(
        self,
        constraint: str = "demographic_parity",
        *,
        regularization: float = 1e-5,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.constraint = constraint
        self.regularization = regularization
        self.random_state = random_state
        self.verbose = verbose


class FairFeatures(_Grouped):
    """Logistic regression on features that do not tell the group, or on samples weighed so that class and group are
    independent.

    Parameters
    ----------
    decorrelate : bool
        Whether features lose what they tell of the group; predictions then need the group. fairlearn's name is
        ``CorrelationRemover``.
    reweigh : bool
        Whether samples are weighed so that class and group are independent.
    regularization : float
        Strength of the penalty of the logistic regression.
    verbose : int
        1 shows the steps of a fit as they are made.
    """

    _kind = "fairfeatures"

    def __init__(
        self, *, decorrelate: bool = True, reweigh: bool = False, regularization: float = 1e-5, verbose: int = 0
    ) -> None:
        self.decorrelate = decorrelate
        self.reweigh = reweigh
        self.regularization = regularization
        self.verbose = verbose


class GroupThresholds(ClassifierMixin, BaseEstimator):
    """Thresholds for each group on the scores of any classifier that is fitted already.

    Parameters
    ----------
    estimator : classifier of two classes
        It has ``predict_proba`` or ``decision_function``, and is fitted.
    constraint : {"demographic_parity", "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity"}
        The rate that has to be equal in all groups.
    random_state : int
        Seed of the coins that decide between two thresholds.

    Attributes
    ----------
    rules_ : dict of str to dict
        The rule of each group: two thresholds ``first`` and ``second``, the probability ``use_second`` of the second, and the
        probability ``ignore_score`` of deciding with probability ``constant`` whatever the score.
    """

    needs_groups_ = True

    def __init__(self, estimator: Any, constraint: str = "demographic_parity", *, random_state: int = 0) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.random_state = random_state

    def _scores(self, X: Any) -> np.ndarray:
        if hasattr(self.estimator, "predict_proba"):
            return _vector(np.asarray(self.estimator.predict_proba(X))[:, 1], "probabilities")
        return _vector(self.estimator.decision_function(X), "scores")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> Any:
        """Finds the rules of the groups; the estimator stays as it is."""
        check_is_fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator.classes_)
        if self.classes_.size != 2:
            raise ValueError(f"estimator: has {self.classes_.size} classes, and a fair decision is between two")
        attributes = _attributes(sensitive_features)
        truth = np.asarray(column_or_1d(y)) == self.classes_[1]
        found = json.loads(
            _gradus.group_thresholds(self.constraint, self._scores(X), truth, attributes, _weights(sample_weight))
        )
        # The compiled part numbers intersections by the first attribute, then the second, and so on.
        places = dict(zip(_crossed_names(attributes), zip(*(codes.tolist() for _, _, codes in attributes))))
        self.rules_ = dict(zip(sorted(places, key=places.__getitem__), found["rules"]))
        self.expected_ = {name: value for name, value in found.items() if name != "rules"}
        return self

    def decision_probability(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The probability that each sample gets the favourable decision: 0 or 1 where no coin is thrown."""
        check_is_fitted(self, "rules_")
        scores = self._scores(X)
        names = _crossed_names(_attributes(sensitive_features))
        if len(names) != scores.size:
            raise ValueError(f"sensitive_features: expected {scores.size} (one for each sample), got {len(names)}")
        unknown = sorted(set(names) - set(self.rules_))
        if unknown:
            raise ValueError(f"sensitive_features: `fit` had no group `{unknown[0]}`, so that there is no rule for it")
        found = np.empty(scores.size)
        array = np.asarray(names, dtype=object)
        for name, rule in self.rules_.items():
            own = array == name
            above = [(scores[own] > rule[end]).astype(np.float64) for end in ("first", "second")]
            by_score = (1 - rule["use_second"]) * above[0] + rule["use_second"] * above[1]
            found[own] = rule["ignore_score"] * rule["constant"] + (1 - rule["ignore_score"]) * by_score
        return found

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Decides: by thresholds of the groups, and coins where two of them disagree."""
        found = self.decision_probability(X, sensitive_features=sensitive_features)
        coins = np.random.default_rng(self.random_state).random(found.size)
        return self.classes_[(coins < found).astype(np.intp)]


def _crossed_names(attributes: list[tuple[str, list[str], np.ndarray]]) -> list[str]:
    """The name of the group of each row, as the compiled part calls intersections."""
    words = [[names[code] for code in codes] for _, names, codes in attributes]
    return [", ".join(row) for row in zip(*words)]


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
        __all__.append(f"{_name}_{_transform}")
__all__.sort()
del _name, _transform
