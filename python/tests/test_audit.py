"""Fairness: measures beside counts by hand, audits of any classifier, models that meet a criterion."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.svm import LinearSVC

import gradus
from gradus import audit
from gradus.audit import FairFeatures, FairPenalty, FairReduction, FairThresholds, GroupThresholds
from gradus.linear import Logistic, Ridge


def made(n=3000, seed=0):
    """Features, a class, and a group of unlike base rate that one of the features tells."""
    rng = np.random.default_rng(seed)
    minor = rng.random(n) < 0.3
    merit = rng.normal(size=n)
    X = np.c_[merit, np.where(minor, -1.0, 1.0) + 0.5 * rng.normal(size=n)]
    y = (1.5 * merit + np.where(minor, -1.0, 0.5) + 0.7 * rng.normal(size=n) > 0).astype(int)
    return X, y, np.where(minor, "minor", "major")


X, Y, GROUP = made()


def rates(values, rows):
    return {group: values[rows & (GROUP == group)].mean() for group in ("major", "minor")}


def test_measures_are_those_counted_by_hand():
    decisions = LogisticRegression().fit(X, Y).predict(X)
    given = {"sensitive_features": GROUP}
    every = np.ones(Y.size, dtype=bool)
    selected, tpr, fpr = (rates(decisions, rows) for rows in (every, Y == 1, Y == 0))
    gap = lambda found: max(found.values()) - min(found.values())
    ratio = lambda found: min(found.values()) / max(found.values())
    assert audit.demographic_parity_difference(Y, decisions, **given) == pytest.approx(gap(selected), abs=1e-12)
    assert audit.demographic_parity_ratio(Y, decisions, **given) == pytest.approx(ratio(selected), abs=1e-12)
    assert audit.equal_opportunity_difference(Y, decisions, **given) == pytest.approx(gap(tpr), abs=1e-12)
    assert audit.equalized_odds_difference(Y, decisions, **given) == pytest.approx(max(gap(tpr), gap(fpr)), abs=1e-12)
    assert audit.equalized_odds_ratio(Y, decisions, agg="mean", **given) == pytest.approx((ratio(tpr) + ratio(fpr)) / 2, abs=1e-12)
    overall = max(abs(rate - decisions.mean()) for rate in selected.values())
    assert audit.demographic_parity_difference(Y, decisions, method="to_overall", **given) == pytest.approx(overall, abs=1e-12)
    for name, measure in (("accuracy_score", accuracy_score), ("f1_score", f1_score), ("roc_auc_score", roc_auc_score)):
        found = audit.measure_by_group(name, Y, decisions, **given)
        for group, value in found.by_group.items():
            assert value == pytest.approx(measure(Y[GROUP == group], decisions[GROUP == group]), abs=1e-12)
        assert found.overall == pytest.approx(measure(Y, decisions), abs=1e-12)
        assert getattr(audit, f"{name}_group_min")(Y, decisions, **given) == min(found.by_group.values())


def test_a_weight_is_worth_the_row_so_often():
    decisions = LogisticRegression().fit(X, Y).predict(X)
    weights = np.arange(Y.size) % 3
    times = np.repeat(np.arange(Y.size), weights)
    weighted = audit.equalized_odds_ratio(Y, decisions, sensitive_features=GROUP, sample_weight=weights)
    repeated = audit.equalized_odds_ratio(Y[times], decisions[times], sensitive_features=GROUP[times])
    assert weighted == pytest.approx(repeated, abs=1e-12)


def test_several_attributes_are_intersected():
    old = np.arange(Y.size) % 2 == 0
    found = audit.measure_by_group("count", Y, Y, sensitive_features={"group": GROUP, "old": old})
    assert list(found.by_group) == ["major, false", "major, true", "minor, false", "minor, true"]
    assert sum(found.by_group.values()) == Y.size
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"group": GROUP, "old": old})
    assert audit.measure_by_group("count", Y, Y, sensitive_features=frame).by_group == found.by_group


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(), Logistic()], ids=lambda one: type(one).__module__ + type(one).__name__)
def test_any_classifier_is_audited(estimator):
    fitted = clone(estimator).fit(X, Y)
    found = audit.fairness(fitted, X, Y, sensitive_features=GROUP)
    parity = found["demographic parity"]
    expected = audit.demographic_parity_difference(Y, fitted.predict(X), sensitive_features=GROUP)
    assert parity["gap"]["difference"] == pytest.approx(expected, abs=1e-12)
    assert parity["rejected"] and parity["gap"]["interval"][0] <= expected <= parity["gap"]["interval"][1]
    assert all(0.7 < group["auc"] < 1 for group in found.groups)
    named = {one["name"] for one in found.criteria}
    assert ("calibration by group" in named) == hasattr(fitted, "predict_proba")
    assert "demographic parity" in str(found) and "violated" in str(found)
    with pytest.raises(KeyError, match="demographic parity"):
        found["parity"]


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge()], ids=["sklearn", "gradus"])
def test_any_regressor_is_audited(estimator):
    y = X[:, 0] + (GROUP == "minor")
    found = audit.fairness(clone(estimator).fit(X[:, :1], y), X[:, :1], y, sensitive_features=GROUP)
    assert found["equal mean residual"]["rejected"]
    minor = next(group for group in found.groups if group["group"] == "minor")
    assert minor["mean_residual"]["low"] > 0.5


def test_conditional_criteria_hold_an_attribute_fixed():
    department = np.where(X[:, 0] > 0, "easy", "hard")
    found = audit.fairness(LogisticRegression().fit(X, Y), X, Y, sensitive_features=GROUP, conditional=department)
    assert found["conditional demographic parity"]["test"]["degrees"] == 1


def test_recommenders_are_audited():
    rng = np.random.default_rng(0)
    kind = np.array(["a", "b"] * 20)
    fair = audit.exposure(rng.integers(40, size=(200, 5)), sensitive_features=kind)
    assert not fair["criterion"]["rejected"]
    lists = np.sort(rng.integers(20, size=(200, 5)) * 2, axis=1)
    unfair = audit.exposure(np.c_[lists, np.full(200, -1)], sensitive_features=kind)
    assert unfair["criterion"]["rejected"] and unfair["groups"][0]["exposure"]["value"] == 1
    served = audit.quality(rng.random(400) + np.tile([0, 0.3], 200), sensitive_features=np.tile(["a", "b"], 200))
    assert served["criterion"]["rejected"]


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("kind", [FairReduction, FairThresholds])
def test_constraints_hold_on_the_training_data(kind, constraint, tmp_path):
    fitted = kind(constraint).fit(X, Y, sensitive_features=GROUP)
    given = {"sensitive_features": GROUP} if fitted.needs_groups_ else {}
    expected = fitted.decision_probability(X, **given)
    classes = (np.ones(Y.size, dtype=bool),) if constraint == "demographic_parity" else (Y == 1, Y == 0)
    for rows in classes:
        found = rates(expected, rows)
        assert abs(found["major"] - found["minor"]) <= (1e-9 if kind is FairThresholds else 0.02 + 1e-9)
    decided = fitted.predict(X, **given)
    assert np.array_equal(decided, fitted.predict(X, **given))
    assert abs(decided.mean() - expected.mean()) < 0.05
    assert (decided == Y).mean() > 0.7
    fitted.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert isinstance(loaded, kind) and loaded.needs_groups_ == fitted.needs_groups_
    assert np.array_equal(loaded.predict(X, **given), decided)
    found = audit.fairness(loaded, X, Y, sensitive_features=GROUP)
    assert found["demographic parity"]["gap"]["difference"] < 0.4


def test_the_group_is_asked_for_where_it_is_needed():
    fitted = FairThresholds().fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(ValueError, match="FairThresholds decides by the group"):
        fitted.predict(X)
    with pytest.raises(ValueError, match="`other`"):
        fitted.predict(X[:2], sensitive_features=["other", "minor"])
    with pytest.raises(ValueError, match="sensitive_features"):
        FairThresholds().fit(X, Y)
    assert not FairFeatures(decorrelate=False, reweigh=True).fit(X, Y, sensitive_features=GROUP).needs_groups_


def test_frames_with_words():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"merit": X[:, 0], "town": np.where(X[:, 1] > 0, "north", "south")})
    sex = pandas.Series(GROUP, name="sex")
    for kind in (FairReduction, FairThresholds):
        fitted = kind().fit(frame, np.where(Y == 1, "yes", "no"), sensitive_features=sex)
        decided = fitted.predict(frame, **({"sensitive_features": sex} if fitted.needs_groups_ else {}))
        assert set(decided) == {"yes", "no"}
        assert audit.demographic_parity_difference(Y, decided == "yes", sensitive_features=sex) < 0.08


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds", "true_positive_rate_parity"])
def test_thresholds_on_any_classifier(constraint):
    fitted = GroupThresholds(LogisticRegression().fit(X, Y), constraint).fit(X, Y, sensitive_features=GROUP)
    expected = fitted.decision_probability(X, sensitive_features=GROUP)
    rows = {"demographic_parity": Y >= 0, "equalized_odds": Y == 0, "true_positive_rate_parity": Y == 1}[constraint]
    found = rates(expected, rows)
    assert abs(found["major"] - found["minor"]) < 1e-9
    accuracy = (Y * expected + (1 - Y) * (1 - expected)).mean()
    assert accuracy == pytest.approx(fitted.expected_["accuracy"], abs=1e-9)
    assert set(fitted.predict(X, sensitive_features=GROUP)) == {0, 1}
    with pytest.raises(ValueError, match="no group `other`"):
        fitted.predict(X[:1], sensitive_features=["other"])


def test_bad_input_is_named():
    decisions = Y
    with pytest.raises(ValueError, match="continuous: it has 3,000 different numbers"):
        audit.demographic_parity_difference(Y, decisions, sensitive_features=X[:, 0])
    with pytest.raises(ValueError, match="row 2: missing value"):
        audit.demographic_parity_difference([0, 1], [0, 1], sensitive_features=["a", None])
    with pytest.raises(ValueError, match="all rows are `a`"):
        audit.demographic_parity_difference([0, 1], [0, 1], sensitive_features=["a", "a"])
    with pytest.raises(ValueError, match="expected 3"):
        audit.demographic_parity_difference([0, 1, 1], [0, 1, 1], sensitive_features=["a", "b"])
    with pytest.raises(ValueError, match="truth, row 2: 2 must be 0 or 1"):
        audit.equalized_odds_difference([0, 2], [0, 1], sensitive_features=["a", "b"])
    with pytest.raises(ValueError, match="between_groups"):
        audit.demographic_parity_difference([0, 1], [0, 1], sensitive_features=["a", "b"], method="worst")
    with pytest.raises(ValueError, match="more than two classes"):
        audit.fairness_of_predictions([0, 1, 2] * 20, [0, 1, 2] * 20, sensitive_features=["a", "b"] * 30)
    with pytest.raises(ValueError, match="group `one` of `group` has 1 sample"):
        FairReduction().fit(X, Y, sensitive_features=np.where(np.arange(Y.size) == 5, "one", "many"))
    words = np.where(np.arange(Y.size) == 5, "one", GROUP)
    with pytest.warns(UserWarning, match="group `one` of `group` has 1 member"):
        audit.fairness_of_predictions(Y, decisions, sensitive_features=words)
    with pytest.raises(ValueError, match="constraint"):
        FairReduction("parity").fit(X, Y, sensitive_features=GROUP)


def test_the_record_is_json():
    found = audit.fairness(LogisticRegression().fit(X, Y), X, Y, sensitive_features=GROUP)
    assert json.loads(json.dumps(found.record))["attribute"] == "group"


def test_a_penalty_brings_mean_scores_together():
    def gap(strength):
        fair = FairPenalty(strength=strength).fit(X, Y, sensitive_features=GROUP)
        assert not fair.needs_groups_
        scores = fair.decision_function(X)
        means = [scores[GROUP == group].mean() for group in np.unique(GROUP)]
        return max(means) - min(means)

    plain, some, strong = gap(0.0), gap(1.0), gap(1e5)
    assert plain > some > strong and strong < 0.01 * plain


def test_names_are_those_of_one_module():
    for name in audit.__all__:
        assert getattr(audit, name).__module__ == "gradus.audit", name
    assert "accuracy_score_difference" in audit.__all__
