"""Every estimator through scikit-learn's own checks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import gradus
from gradus._base import DESCRIBED

#: What a recommender cannot be asked, and why: its input is not a matrix of features.
PAIRS = "the input is pairs of user and item, not a matrix of features, and the check fits features"


#: Checks that do hold for a model of ratings; all others fit features.
HOLD = {
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_estimators_unfitted",
    "check_param_validation",
}


def _checks():
    from sklearn.utils import estimator_checks

    return [name for name in dir(estimator_checks) if name.startswith("check_")]


def expected(estimator):
    """The checks that fail, and the reason."""
    if DESCRIBED[estimator._kind]["task"] != "recommend":
        return {}
    return {name: PAIRS for name in _checks() if name not in HOLD}


#: The checks compare two fits to seven digits; as with scikit-learn's own solvers they are asked for that.
PRECISE = {"logistic": {"tol": 1e-10}, "svr": {"tol": 1e-10}}


@parametrize_with_checks(
    [estimator(**PRECISE.get(name, {})) for name, estimator in gradus.models().items()],
    expected_failed_checks=expected,
)
def test_sklearn(estimator, check):
    check(estimator)
