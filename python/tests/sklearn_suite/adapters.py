"""scikit-learn's linear models and support vector machines, fitted by gradus.

Each class is scikit-learn's own but for `fit` and what predicts: parameters are checked by scikit-learn,
translated, and handed to gradus; what was learned is put under scikit-learn's names. A parameter that
gradus does not have raises `Unsupported`, and the test that needs it is not counted.
"""

from __future__ import annotations

import numbers

import numpy as np
import scipy.sparse
from sklearn import linear_model, svm
from sklearn.linear_model._coordinate_descent import _alpha_grid
from sklearn.linear_model._logistic import _check_solver
from sklearn.model_selection import check_cv
from sklearn.svm._base import _get_liblinear_solver_type
from sklearn.utils import check_scalar
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metadata_routing import _raise_for_params
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight

from gradus import linear

#: Fits that reached gradus in the test that runs, and what could not be asked of it.
calls = {"fits": 0, "unsupported": []}


class Unsupported(NotImplementedError):
    """gradus does not have this parameter, or this value of it."""


def unsupported(what):
    calls["unsupported"].append(what)
    raise Unsupported(what)


def only(estimator, **allowed):
    """Refuses parameters that are none of these."""
    for name, values in allowed.items():
        value = getattr(estimator, name)
        if not any(value is one or (type(value) is type(one) and value == one) for one in values):
            unsupported(f"{type(estimator).__name__}({name}={value!r})")


class Adapter:
    """What the adapters share."""

    def _learn(self, inner, X, y, sample_weight=None):
        calls["fits"] += 1
        if getattr(self, "warm_start", False) and hasattr(self, "inner_"):
            # The estimator that holds the last model.
            inner = self.inner_.set_params(**inner.get_params(deep=False))
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
        tol = {"tol": 1e-14, "max_iter": 10**5} if self.positive else {}
        inner = linear.Linear(fit_intercept=self.fit_intercept, positive=self.positive, **tol)
        return self._learn(inner, X, y, sample_weight)


class Ridge(Adapter, linear_model.Ridge):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        if np.ndim(self.alpha):
            unsupported("Ridge(alpha=array)")
        total = self._total(X, sample_weight)
        inner = linear.Ridge(
            regularization=float(self.alpha) / (2 * total),
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            tol=1e-14 if self.positive else 1e-12,
            max_iter=10**6,
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
            warm_start=self.warm_start,
        )
        self._learn(inner, X, y, sample_weight)
        report = self.inner_.report_
        self.n_iter_ = report.iterations
        gap = (report.certificate or {"value": 0.0})["value"]
        # Of several targets gradus tells the largest.
        self.dual_gap_ = gap if np.ndim(y) < 2 or np.shape(y)[1] < 2 else np.full(np.shape(y)[1], gap)
        return self


class Lasso(_Sparse, linear_model.Lasso):
    def fit(self, X, y, sample_weight=None, check_input=True):
        return self._fit(X, y, sample_weight, 1.0)


class ElasticNet(_Sparse, linear_model.ElasticNet):
    def fit(self, X, y, sample_weight=None, check_input=True):
        return self._fit(X, y, sample_weight, self.l1_ratio)


class RidgeCV(Adapter, linear_model.RidgeCV):
    """The choice by the leave-one-out error, one for all targets."""

    def fit(self, X, y, sample_weight=None, **params):
        self._validate_params()
        _raise_for_params(params, self, "fit")
        only(self, cv=[None], scoring=[None], store_cv_results=[False])
        if sample_weight is not None:
            unsupported("RidgeCV(): weights that are not counts in the leave-one-out error")
        if self.alpha_per_target and np.ndim(y) == 2 and np.shape(y)[1] > 1:
            unsupported("RidgeCV(alpha_per_target=True)")
        alphas = np.atleast_1d(self.alphas)
        for at, alpha in enumerate(alphas):
            name = f"alphas[{at}]" if len(alphas) > 1 else "alphas"
            check_scalar(alpha, name, target_type=numbers.Real, min_val=0.0, include_boundaries="neither")
        unit = 2 * self._total(X, None)
        inner = linear.Ridge(
            lambdas=alphas.astype(float) / unit, fit_intercept=self.fit_intercept, standardize=False, tol=1e-12
        )
        self._learn(inner, X, y)
        # The penalty that was given, not one that was divided and multiplied again.
        at = int(np.argmin(np.abs(alphas / unit - np.ravel(inner.regularization_)[0])))
        paths = inner.path_ if isinstance(inner.path_, list) else [inner.path_]
        self.alpha_ = alphas[at]
        self.best_score_ = -float(np.mean([np.min(path.cv_error) for path in paths]))
        return self


class _Chosen(Adapter):
    """The choice by cross-validation along scikit-learn's path of penalties."""

    def _fit(self, X, y, sample_weight, l1_ratio, params):
        self._validate_params()
        _raise_for_params(params, self, "fit")
        if sample_weight is not None:
            sample_weight = None if np.ndim(sample_weight) == 0 else _check_sample_weight(sample_weight, X)
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(f"For multi-task outputs, use MultiTask{type(self).__name__}")
        if isinstance(self.alphas, numbers.Integral):
            x, target = X, np.ravel(np.asarray(y, dtype=float))
            x = x if scipy.sparse.issparse(x) else np.asarray(x, dtype=float)
            alphas = _alpha_grid(
                x,
                target,
                l1_ratio=l1_ratio,
                fit_intercept=self.fit_intercept,
                positive=self.positive,
                eps=self.eps,
                n_alphas=self.alphas,
                sample_weight=sample_weight,
            )
        else:
            for at, alpha in enumerate(self.alphas):
                check_scalar(alpha, f"alphas[{at}]", target_type=numbers.Real, min_val=0.0, include_boundaries="left")
            alphas = np.sort(np.asarray(self.alphas, dtype=float))[::-1]
        inner = linear.ElasticNet(
            lambdas=alphas,
            l1_ratio=float(l1_ratio),
            folds=check_cv(self.cv),
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            standardize=False,
            tol=min(self.tol, 1e-4) * 1e-4,
            max_iter=max(10_000, 10 * self.max_iter),
        )
        try:
            self._learn(inner, X, y, sample_weight)
        except ValueError as error:
            if "exactly one fold" in str(error):
                unsupported(f"{type(self).__name__}(cv={self.cv!r})")
            raise
        self.alphas_ = np.asarray(alphas)
        self.alpha_ = inner.regularization_
        self.dual_gap_ = (inner.report_.certificate or {"value": 0.0})["value"]
        return self

    @property
    def mse_path_(self):
        # gradus keeps the mean over the folds.
        unsupported(f"{type(self).__name__}.mse_path_")


class LassoCV(_Chosen, linear_model.LassoCV):
    def fit(self, X, y, sample_weight=None, **params):
        return self._fit(X, y, sample_weight, 1.0, params)


class ElasticNetCV(_Chosen, linear_model.ElasticNetCV):
    def fit(self, X, y, sample_weight=None, **params):
        if np.size(self.l1_ratio) > 1:
            unsupported("ElasticNetCV(l1_ratio=list)")
        self.l1_ratio_ = float(np.ravel(self.l1_ratio)[0])
        return self._fit(X, y, sample_weight, self.l1_ratio_, params)


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
        c, l1_ratio = np.inf if self.C is None else self.C, float(self.l1_ratio or 0.0)
        if self.penalty is None:
            c = np.inf
        elif self.penalty in ("l1", "l2"):
            l1_ratio = float(self.penalty == "l1")
        penalty = None if np.isinf(c) else {0.0: "l2", 1.0: "l1"}.get(l1_ratio, "elasticnet")
        _check_solver(self.solver, penalty, self.dual)
        if self.solver == "liblinear" and self.fit_intercept:
            unsupported("LogisticRegression(solver='liblinear'): a penalty on the intercept")
        weights = self._weights(y, sample_weight)
        inner = linear.Logistic(
            regularization=0.0 if np.isinf(c) else 1.0 / (c * self._total(X, weights)),
            l1_ratio=l1_ratio,
            fit_intercept=self.fit_intercept,
            tol=min(self.tol * 1e-2, 1e-8),
            max_iter=max(self.max_iter, 1000) if self.max_iter > 10 else self.max_iter,
            warm_start=self.warm_start,
        )
        self._learn(inner, X, y, weights)
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)
        return self


class LinearSVC(_Weights, svm.LinearSVC):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, intercept_scaling=[1, 1.0])
        if self.dual != "auto":
            _get_liblinear_solver_type(self.multi_class, self.penalty, self.loss, self.dual)
        at_once = self.multi_class == "crammer_singer"
        inner = linear.Svm(
            c=float(self.C),
            # LIBLINEAR takes neither into account then.
            loss="auto" if at_once else self.loss,
            penalty="l2" if at_once else self.penalty,
            multi_class="crammer_singer" if at_once else "one_vs_rest",
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


class _Kernel:
    """Kernel machines. scikit-learn's linear kernel is a polynomial of degree 1: gradus' `linear` is another
    problem, that of `LinearSVC`."""

    def _kernel(self, X, sample_weight):
        name = self.kernel if isinstance(self.kernel, str) else "function"
        return {
            "kernel": {"linear": "polynomial", "poly": "polynomial"}.get(self.kernel, self.kernel),
            "degree": 1 if name == "linear" else self.degree if name == "poly" else 3,
            "gamma": self._gamma_of(name, X, sample_weight),
            "coef0": float(self.coef0) if name in ("poly", "sigmoid") else 0.0,
            "c": float(self.C),
            "tol": min(self.tol * 1e-3, 1e-6),
            "max_iter": 10_000 if self.max_iter < 0 else self.max_iter,
        }

    def _gamma_of(self, name, X, sample_weight):
        if name in ("linear", "precomputed", "function"):
            return 1.0
        if self.gamma == "auto":
            return 1.0 / np.shape(X)[1]
        if self.gamma != "scale":
            return float(self.gamma)
        if sample_weight is None:
            return None
        # gradus' default sees the weights of samples.
        x = X if hasattr(X, "multiply") else np.asarray(X, dtype=float)
        variance = x.multiply(x).mean() - x.mean() ** 2 if hasattr(x, "multiply") else np.var(x)
        return 1.0 / (x.shape[1] * variance) if variance else 1.0

    def _take_support(self, X):
        """What the kernel machine learned, under scikit-learn's names; libsvm's own signs where it has them."""
        inner = self.inner_
        self._sparse = scipy.sparse.issparse(X) and not callable(self.kernel)
        self.support_, self.fit_status_, self.shape_fit_ = inner.support_, 0, np.shape(X)
        plain = isinstance(self.kernel, str) and self.kernel != "precomputed"
        self.support_vectors_ = inner.support_vectors_ if plain else np.empty((0, 0))
        dual = inner.dual_coef_
        self._n_support = inner.n_support_
        self.dual_coef_ = scipy.sparse.csr_matrix(dual) if self._sparse else dual
        two = hasattr(inner, "classes_") and inner.classes_.size == 2
        self._dual_coef_ = -self.dual_coef_ if two else self.dual_coef_
        self._intercept_ = -inner.intercept_ if two else inner.intercept_
        # scikit-learn has a function of one target return an array, too.
        self.intercept_ = np.atleast_1d(inner.intercept_)
        self._gamma = float(inner.model_.summary["gamma"])
        self._probA = self._probB = np.empty(0)


def _tells_probabilities(self):
    if self.probability not in (True,):
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class SVC(_Kernel, _Weights, svm.SVC):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        if self.break_ties and self.decision_function_shape == "ovo":
            unsupported("SVC(break_ties=True, decision_function_shape='ovo')")
        inner = linear.Svm(
            probability=self.probability is True,
            decision_function_shape=self.decision_function_shape,
            **self._kernel(X, sample_weight),
        )
        self._learn(inner, X, y, self._weights(y, sample_weight))
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=np.asarray(y))
        self._take_support(X)
        return self

    def decision_function(self, X):
        # A parameter of prediction, which may be set after the fit.
        self._inner().set_params(decision_function_shape=self.decision_function_shape)
        return super().decision_function(X)

    @available_if(_tells_probabilities)
    def predict_proba(self, X):
        return self._inner().set_params(probability=True).predict_proba(X)

    @available_if(_tells_probabilities)
    def predict_log_proba(self, X):
        return self._inner().set_params(probability=True).predict_log_proba(X)


class SVR(_Kernel, Adapter, svm.SVR):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        inner = linear.Svr(epsilon=float(self.epsilon), **self._kernel(X, sample_weight))
        self._learn(inner, X, y, sample_weight)
        self._take_support(X)
        return self


class QuantileRegressor(Adapter, linear_model.QuantileRegressor):
    def fit(self, X, y, sample_weight=None):
        self._validate_params()
        only(self, alpha=[0, 0.0])
        inner = linear.Linear(loss="quantile", quantile=float(self.quantile), fit_intercept=self.fit_intercept, tol=1e-10)
        return self._learn(inner, X, y, sample_weight)


def install():
    """Puts the adapters in place of scikit-learn's classes, where its tests find them."""
    of_linear_models = (
        LinearRegression, Ridge, RidgeCV, Lasso, LassoCV, ElasticNet, ElasticNetCV, LogisticRegression, QuantileRegressor
    )
    for kind in of_linear_models:
        setattr(linear_model, kind.__name__, kind)
    for kind in (LinearSVC, LinearSVR, SVC, SVR):
        setattr(svm, kind.__name__, kind)
