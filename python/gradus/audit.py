"""Audits of models: fairness between groups, and robustness against small changes of the features.

``fairness`` audits an estimator, of gradus or any that follows scikit-learn's conventions; ``fairness_of_predictions`` audits
plain arrays. The measures have the names and arguments of ``fairlearn.metrics``::

    from gradus import audit

    print(audit.fairness(model, X_test, y_test, sensitive_features=X_test[["sex", "race"]]))
    audit.demographic_parity_difference(y_test, model.predict(X_test), sensitive_features=sex)

``robustness`` attacks a classifier, of gradus or any with scikit-learn's methods.

``FairReduction``, ``FairPenalty``, ``FairThresholds`` and ``FairFeatures`` fit models that meet a criterion, or come near one; ``GroupThresholds`` puts thresholds
for each group on any classifier that is fitted already.
"""

from __future__ import annotations

from gradus import _measures
from gradus._fairness import Fairness, exposure, fairness, fairness_of_predictions, quality
from gradus._measures import (
    MeasureByGroup,
    demographic_parity_difference,
    demographic_parity_ratio,
    equal_opportunity_difference,
    equal_opportunity_ratio,
    equalized_odds_difference,
    equalized_odds_ratio,
    measure_by_group,
)
from gradus._mitigation import FairFeatures, FairPenalty, FairReduction, FairThresholds, GroupThresholds
from gradus._robustness import Robustness, robustness

__all__ = [
    "FairFeatures",
    "FairPenalty",
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
__all__ += _measures.DERIVED
__all__.sort()

for _name in __all__:
    # The differences, ratios and extremes of each measure; and names of this module, so that pickles and docs know no other.
    globals()[_name] = _object = globals().get(_name) or getattr(_measures, _name)
    _object.__module__ = __name__
del _name, _object
