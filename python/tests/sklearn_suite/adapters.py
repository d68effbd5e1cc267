"""scikit-learn's linear models and support vector machines, fitted by gradus.

Each class is scikit-learn's own but for `fit` and what predicts: parameters are checked by scikit-learn,
translated, and handed to gradus; what was learned is put under scikit-learn's names. A parameter that
gradus does not have raises `Unsupported`, and the test that needs it is not counted.
"""

from __future__ import annotations

import numpy as np
from sklearn import linear_model, svm
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from gradus import linear

#: Fits that reached gradus in the test that runs, and what could not be asked of it.
calls = {"fits": 0, "unsupported": []}


class Unsupported(NotImplementedError):
    """gradus does not have this parameter, or this value of it."""


def only(estimator, **allowed):
    """Refuses parameters that are none of these."""
    for name, values in allowed.items():
        value = getattr(estimator, name)
        if not any(value is one or (type(value) is type(one) and value == one) for one in values):
            calls["unsupported"].append(f"{type(estimator).__name__}({name}={value!r})")
            raise Unsupported(calls["unsupported"][-1])


class Adapter:
    """What the adapters share."""

    def _learn(self, inner, X, y, sample_weight=None):
        calls["fits"] += 1
        inner.fit(X, y, sample_weight=sample_weight)
        self.inner_ = inner
        self.n_features_in_ = inner.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(inner, "feature_names_in_"):
            self.feature_names_in_ = inner.feature_names_in_
        for name in ("coef_", "intercept_", "classes_"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))
        self.n_iter_ = inner.n_iter_
        return self

    def _total(self, X, sample_weight):
        """The sum of the weights, by which gradus divides the loss."""
        if sample_weight is None:
            return float(X.shape[0] if hasattr(X, "shape") else len(X))
        return float(np.sum(_check_sample_weight(sample_weight, X)))

    def _inner(self):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "inner_")
        return self.inner_

    def predict(self, X):
        return self._inner().predict(X)


class Probabilities(Adapter):
    def decision_function(self, X):
        return self._inner().decision_function(X)

    def predict_proba(self, X):
        return self._inner().predict_proba(X)

    def predict_log_proba(self, X):
        return self._inner().predict_log_proba(X)


class LinearRegression(Adapter, linear_model.LinearRegression):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, positive=[False])
        return self._learn(linear.Linear(fit_intercept=self.fit_intercept), X, y, sample_weight)


class Ridge(Adapter, linear_model.Ridge):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, positive=[False])
        if np.ndim(self.alpha):
            calls["unsupported"].append("Ridge(alpha=array)")
            raise Unsupported("Ridge(alpha=array)")
        total = self._total(X, sample_weight)
        inner = linear.Ridge(
            regularization=float(self.alpha) / (2 * total), fit_intercept=self.fit_intercept, tol=1e-12, max_iter=10**6
        )
        self._learn(inner, X, y, sample_weight)
        self.solver_ = self.solver
        return self


class _Sparse(Adapter):
    def _fit(self, X, y, sample_weight, l1_ratio):
        self._validate_params()
        inner = linear.ElasticNet(
            regularization=float(self.alpha),
            l1_ratio=float(l1_ratio),
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            tol=min(self.tol, 1e-4) * 1e-4,
            max_iter=max(10_000, 10 * self.max_iter) if self.max_iter > 100 else self.max_iter,
        )
        self._learn(inner, X, y, sample_weight)
        self.dual_gap_ = (inner.report_.certificate or {"value": 0.0})["value"]
        return self


class Lasso(_Sparse, linear_model.Lasso):
    def fit(self, X, y, sample_weight=None, check_input=True):
        return self._fit(X, y, sample_weight, 1.0)


class ElasticNet(_Sparse, linear_model.ElasticNet):
    def fit(self, X, y, sample_weight=None, check_input=True):
        return self._fit(X, y, sample_weight, self.l1_ratio)


class _Weights(Probabilities):
    """Classifiers: weights of classes as weights of samples, as scikit-learn computes them."""

    def _weights(self, y, sample_weight):
        if self.class_weight is None:
            return sample_weight
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        of_class = compute_class_weight(self.class_weight, classes=classes, y=np.asarray(y), sample_weight=weights)
        return of_class[codes] * (1.0 if weights is None else weights)


class LogisticRegression(_Weights, linear_model.LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, dual=[False], intercept_scaling=[1, 1.0], penalty=["deprecated"])
        if self.solver == "liblinear" and self.fit_intercept:
            calls["unsupported"].append("LogisticRegression(solver='liblinear'): a penalty on the intercept")
            raise Unsupported(calls["unsupported"][-1])
        weights = self._weights(y, sample_weight)
        c = np.inf if self.C is None else self.C
        inner = linear.Logistic(
            regularization=0.0 if np.isinf(c) else 1.0 / (c * self._total(X, weights)),
            l1_ratio=float(self.l1_ratio or 0.0),
            fit_intercept=self.fit_intercept,
            tol=min(self.tol * 1e-2, 1e-8),
            max_iter=max(self.max_iter, 1000) if self.max_iter > 10 else self.max_iter,
        )
        self._learn(inner, X, y, weights)
        self.n_iter_ = np.array([inner.n_iter_], dtype=np.int32)
        return self


class LinearSVC(_Weights, svm.LinearSVC):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, penalty=["l2"], intercept_scaling=[1, 1.0])
        inner = linear.Svm(
            c=float(self.C),
            loss=self.loss,
            multi_class="one_vs_rest" if self.multi_class == "ovr" else "crammer_singer",
            fit_intercept=self.fit_intercept,
            penalize_intercept=self.fit_intercept,
            tol=min(self.tol * 1e-2, 1e-8),
            max_iter=max(10_000, self.max_iter) if self.max_iter > 100 else self.max_iter,
        )
        self._learn(inner, X, y, self._weights(y, sample_weight))
        return self


class LinearSVR(Adapter, svm.LinearSVR):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, intercept_scaling=[1, 1.0])
        inner = linear.Svr(
            c=float(self.C),
            epsilon=float(self.epsilon),
            loss={"epsilon_insensitive": "insensitive", "squared_epsilon_insensitive": "squared_insensitive"}[self.loss],
            fit_intercept=self.fit_intercept,
            penalize_intercept=self.fit_intercept,
            tol=1e-8,
        )
        return self._learn(inner, X, y, sample_weight)


KERNELS = {"linear": ("polynomial", 1), "rbf": ("rbf", 3), "poly": ("polynomial", None)}


class _Kernel:
    def _kernel(self, X):
        if self.kernel not in KERNELS:
            calls["unsupported"].append(f"{type(self).__name__}(kernel={self.kernel!r})")
            raise Unsupported(calls["unsupported"][-1])
        kernel, degree = KERNELS[self.kernel]
        x = X if hasattr(X, "shape") else np.asarray(X, dtype=float)
        if self.kernel == "linear":
            gamma = 1.0
        elif self.gamma == "scale":
            mean = x.mean()
            variance = x.multiply(x).mean() - mean**2 if hasattr(x, "multiply") else np.var(x)
            gamma = 1.0 / (x.shape[1] * variance) if variance else 1.0
        else:
            gamma = 1.0 / x.shape[1] if self.gamma == "auto" else float(self.gamma)
        self._gamma = gamma
        return {
            "kernel": kernel,
            "degree": self.degree if degree is None else degree,
            "gamma": gamma,
            "coef0": 0.0 if self.kernel == "linear" else float(self.coef0),
            "c": float(self.C),
            "tol": min(self.tol * 1e-3, 1e-6),
            "max_iter": 10_000 if self.max_iter < 0 else self.max_iter,
        }


class SVC(_Kernel, _Weights, svm.SVC):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, probability=[False, "deprecated"], break_ties=[False])
        self._learn(linear.Svm(**self._kernel(X)), X, y, self._weights(y, sample_weight))
        self.fit_status_ = 0
        return self


class SVR(_Kernel, Adapter, svm.SVR):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        self._learn(linear.Svr(epsilon=float(self.epsilon), **self._kernel(X)), X, y, sample_weight)
        self.fit_status_ = 0
        return self


class QuantileRegressor(Adapter, linear_model.QuantileRegressor):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, alpha=[0, 0.0])
        inner = linear.Linear(loss="quantile", quantile=float(self.quantile), fit_intercept=self.fit_intercept, tol=1e-10)
        return self._learn(inner, X, y, sample_weight)


def install():
    """Puts the adapters in place of scikit-learn's classes, where its tests find them."""
    for kind in (LinearRegression, Ridge, Lasso, ElasticNet, LogisticRegression, QuantileRegressor):
        setattr(linear_model, kind.__name__, kind)
    for kind in (LinearSVC, LinearSVR, SVC, SVR):
        setattr(svm, kind.__name__, kind)
