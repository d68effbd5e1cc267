"""Classifiers that meet a criterion of fairness, or come near one."""

from __future__ import annotations

import json
from typing import Any, Callable

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from gradus import _gradus
from gradus._features import Classifier
from gradus._frames import typed
from gradus._groups import _attributes, _vector, _weights


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


class FairPenalty(_Grouped):
    """Logistic regression with a penalty on the differences between the mean scores of groups.

    A single logistic regression with probabilities, without coins: the group is needed to fit and not to predict. Equal mean
    scores are not equal shares above a threshold: where a bound on rates has to hold, see `FairReduction` and `FairThresholds`.

    Parameters
    ----------
    constraint : {"demographic_parity", "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity"}
        Whose mean scores are to be equal: of all samples, of each class for itself, of the favourable class, of the other.
    strength : float
        Strength of the penalty: half of it times the variance of scores between groups.
    regularization : float
        Strength of the penalty on the coefficients.
    tol : float
        The fit ends when the gradient is below this share of the gradient at 0.
    max_iter : int
        Newton steps at most.
    verbose : int
        1 shows the steps of a fit as they are made.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.audit import FairPenalty
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = np.c_[rng.normal(size=2000) + group, rng.normal(size=2000)]
    >>> y = (X[:, 0] + X[:, 1] > 0.5).astype(int)
    >>> fair = FairPenalty(strength=1000).fit(X, y, sensitive_features=group)
    >>> scores = fair.decision_function(X)
    >>> bool(abs(scores[group == 1].mean() - scores[group == 0].mean()) < 0.1)
    True
    """

    _kind = "fairpenalty"
    probability = True

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The score of the second class; groups are not needed."""
        return Classifier.decision_function(self, X)

    def __init__(
        self,
        constraint: str = "demographic_parity",
        *,
        strength: float = 10.0,
        regularization: float = 1e-5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        verbose: int = 0,
    ) -> None:
        self.constraint = constraint
        self.strength = strength
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter
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
