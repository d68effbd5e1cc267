"""gradus.audit.robustness on estimators of gradus and of scikit-learn."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import gradus.audit
from gradus.linear import Logistic, Ridge


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(400, n_features=3, centers=3, cluster_std=2.0, random_state=0)
    names = np.array(["b", "c", "a"])
    return X[:300], names[y[:300]], X[300:], names[y[300:]]


def test_a_linear_model_is_exact_and_the_attacks_agree(blobs):
    X, y, X_test, y_test = blobs
    model = Logistic().fit(X, y)
    for norm in ("linf", "l2", "l1"):
        exact = gradus.audit.robustness(model, X_test, y_test, eps=0.5, norm=norm)
        assert exact.exact
        assert exact.accuracy == pytest.approx(model.score(X_test, y_test))
        low, high = exact.robust_accuracy_interval
        assert low < exact.robust_accuracy < high
        attacked = gradus.audit.robustness(model, X_test, y_test, eps=0.5, norm=norm, attacks=["apgd-t", "fab-t"])
        assert not attacked.exact
        assert attacked.robust_accuracy == exact.robust_accuracy
        # No attack is shorter than the exact distance.
        known = np.isfinite(attacked.distances)
        assert np.all(attacked.distances[known] >= exact.distances[known] - 1e-9)
        assert "exact" in str(exact)


def test_examples_change_the_decision_within_their_distance(blobs):
    X, y, X_test, y_test = blobs
    model = Logistic().fit(X, y)
    found = gradus.audit.robustness(model, X_test, y_test, eps=1.0, norm="l2", attacks=["fab-t"])
    assert len(found.fallen) > 0
    for row in found.fallen:
        assert model.predict(found.examples[row][None])[0] != y_test[row]
        assert np.linalg.norm(found.examples[row] - X_test[row]) == pytest.approx(found.distances[row])


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        SVC(),
        SVC(decision_function_shape="ovo"),
        RandomForestClassifier(10, random_state=0),
        KNeighborsClassifier(),
    ],
    ids=lambda estimator: str(estimator),
)
def test_classifiers_of_scikit_learn_are_attacked(blobs, estimator):
    X, y, X_test, y_test = blobs
    model = estimator.fit(X, y)
    found = gradus.audit.robustness(model, X_test[:30], y_test[:30], eps=3.0, norm="l2", queries=200)
    assert found.accuracy == pytest.approx(model.score(X_test[:30], y_test[:30]))
    assert found.robust_accuracy < found.accuracy
    for row in found.fallen:
        assert model.predict(found.examples[row][None])[0] != y_test[row]
    again = gradus.audit.robustness(model, X_test[:30], y_test[:30], eps=3.0, norm="l2", queries=200)
    assert np.array_equal(found.distances, again.distances)


def test_black_box_attacks_come_near_the_exact_distance_of_a_linear_model(blobs):
    X, y, X_test, y_test = blobs
    theirs = LogisticRegression().fit(X, y)
    scores = theirs.decision_function(X_test)
    w = theirs.coef_
    own = np.argmax(scores, axis=1)
    truth = np.min(
        [
            np.where(own == k, np.inf, (scores[np.arange(100), own] - scores[:, k]) / np.maximum(np.linalg.norm(w[own] - w[k], axis=1), 1e-12))
            for k in range(3)
        ],
        axis=0,
    )
    found = gradus.audit.robustness(
        theirs, X_test[:20], y_test[:20], eps=1e-6, curve=[100.0], norm="l2", attacks=["hopskipjump"], queries=3000
    )
    right = found.distances > 0
    ratio = found.distances[right] / truth[:20][right]
    assert np.all(ratio > 1 - 1e-6) and np.median(ratio) < 1.1


def test_budgets_bounds_and_whole_numbers_are_kept():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 5, 200), rng.normal(size=200), np.eye(2)[rng.integers(0, 2, 200)]])
    y = (X[:, 0] + X[:, 1] - 2 + X[:, 3] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    found = gradus.audit.robustness(
        model, X, y, eps=1.5, budget=[1, 1, 0, 1, 1], integer=[1], categories=[[3, 4]], bounds=(-5, 5), queries=300
    )
    assert len(found.fallen) > 0
    for row, example in found.examples.items():
        assert example[2] == X[row, 2]
        assert example[1] == round(example[1])
        assert sorted(example[3:]) == [0, 1]


def test_certificates(blobs):
    X, y, X_test, y_test = blobs
    model = Logistic().fit(X, y)
    found = gradus.audit.robustness(model, X_test, y_test, eps=0.1, norm="l2", smoothing=1.0)
    radii = np.array([row["radius"] for row in found.certified["rows"]])
    right = found.distances > 0
    # A softmax of several classes is smoothed to other borders; certificates stay near the distances all the same.
    assert np.all(radii[right] <= 1.3 * found.distances[right] + 0.2)


def test_bad_input_is_named(blobs):
    X, y, X_test, y_test = blobs
    model = Logistic().fit(X, y)
    forest = RandomForestClassifier(5).fit(X, y)
    cases = [
        (model, {"eps": -0.1}, "`eps` = -0.1"),
        (model, {"eps": float("nan")}, "`eps` = nan"),
        (model, {"norm": "l3"}, "known: linf, l2, l1"),
        (model, {"attacks": ["magic"]}, "unknown attack `magic`"),
        (model, {"budget": [1.0]}, "expected 3, got 1"),
        (model, {"bounds": (2, 1)}, "the lower one must not be above"),
        (model, {"queries": 0}, "`queries` = 0"),
        (model, {"integer": [7]}, "`integer` = 7"),
        (forest, {"attacks": ["pgd"]}, "these would work: square"),
    ]
    for which, options, message in cases:
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            gradus.audit.robustness(which, X_test, y_test, **options)
    holes = X_test.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="(?i)nan"):
        gradus.audit.robustness(model, holes, y_test)
    with pytest.raises(ValueError, match="classes"):
        gradus.audit.robustness(Ridge().fit(X, X[:, 0]), X_test, y_test)
    with pytest.raises(TypeError, match="predict"):
        gradus.audit.robustness(object(), X_test, y_test)


def test_an_exception_of_the_classifier_is_passed_on(blobs):
    X, y, X_test, y_test = blobs

    class Broken:
        classes_ = np.array(["a", "b", "c"])
        calls = 0

        def predict(self, X):
            self.calls += 1
            if self.calls > 2:
                raise RuntimeError("out of order")
            return np.full(len(X), "a")

    with pytest.raises(RuntimeError, match="out of order"):
        gradus.audit.robustness(Broken(), X_test, y_test)


def test_ctrl_c_stops_an_audit():
    # An audit once went on to its end, minutes after the signal.
    text = textwrap.dedent(
        """
        import time
        import numpy as np
        import gradus.audit
        from gradus.nn import Mlp

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(2000, 30)), rng.integers(3, size=2000)
        own = Mlp(hidden=[64], max_iter=2).fit(X, y)

        class Other:
            classes_ = np.arange(3)

            def predict(self, X):
                return self.decision_function(X).argmax(1)

            def decision_function(self, X):
                return X[:, :3]

        for model, given in [(own, {}), (own, {"attacks": ["fgsm"], "smoothing": 0.5}), (Other(), {"queries": 100000})]:
            print("ready", flush=True)
            try:
                gradus.audit.robustness(model, X, y, eps=0.01, iterations=100000, **given)
                print("finished", 0, flush=True)
            except KeyboardInterrupt:
                print("interrupted", time.time(), flush=True)
        """
    )
    program = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(3):
        assert program.stdout.readline() == "ready\n", program.stderr.read()
        time.sleep(1.0)
        sent = time.time()
        program.send_signal(signal.SIGINT)
        words = program.stdout.readline().split()
        assert words[:1] == ["interrupted"], words
        assert float(words[1]) - sent < 3.0, words
    _, err = program.communicate(timeout=60)
    assert program.returncode == 0, err[-2000:]
