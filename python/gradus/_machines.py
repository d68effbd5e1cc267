"""Support vector machines: support vectors, decisions between pairs of classes, kernels in Python."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_array, check_consistent_length

from gradus._features import Classifier, Regressor


class _Machine:
    """Shared parts of both machines.

    A kernel that is a function is called on all samples of training, and the machine is fitted to the
    matrix it gives: kernel `precomputed`.
    """

    #: The samples of training, which a function needs to be called with; `None` of other kernels.
    _samples: Any = None

    def _given(self, name: str) -> Any:
        value = super()._given(name)
        if name == "kernel" and callable(value):
            return "precomputed"
        if name == "c" and isinstance(value, (float, np.floating)) and value == np.inf:
            return sys.float_info.max
        return value

    def _features(self, X: Any, *, reset: bool, y: Any = None, **checks: Any) -> tuple[Any, Any, bool]:
        if reset:
            self._samples = X if callable(self.kernel) else None
            if self._samples is not None and y is not None:
                check_consistent_length(X, y)
        if self._samples is not None:
            X = self._kernel_values(X, reset)
        return super()._features(X, reset=reset, y=y, **checks)

    def _kernel_values(self, X: Any, reset: bool) -> np.ndarray:
        """Returns the values of the kernel function for these samples and those of training."""
        values = self.kernel(X, self._samples)
        values = values.toarray() if scipy.sparse.issparse(values) else np.asarray(values)
        values = check_array(values, dtype=np.float64, ensure_all_finite=False, input_name="kernel values")
        if reset and values.shape[0] != values.shape[1]:
            raise ValueError(
                f"parameter `kernel`: X.shape[0] should be equal to X.shape[1] of the values of training, "
                f"and they are {values.shape[0]} × {values.shape[1]}"
            )
        return values

    def _plain(self, X: Any) -> bool:
        return self._samples is None and super()._plain(X)

    def _numbers_of(self, X: Any) -> Any:
        return X if self._samples is not None else super()._numbers_of(X)

    def _read_coefficients(self) -> None:
        super()._read_coefficients()
        if self._fitted.tensor("center") is not None:
            self.intercept_ = self._signs(self._tensor("intercepts"))

    def _signs(self, of_machines: np.ndarray) -> np.ndarray:
        """Returns values of machines (last axis) in the order and with the signs of scikit-learn."""
        return of_machines

    def _learned(self, attribute: str, tensor: str) -> np.ndarray:
        if self._fitted.tensor("center") is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {attribute!r}: a linear machine has "
                "coefficients instead; those of a kernel keep their support vectors"
            )
        found = self._tensor(tensor)
        if found is None or (tensor.startswith("support") and found.size < self._tensor("coefficients").shape[1]):
            raise AttributeError(f"the model file is of an earlier version and does not hold {attribute!r}")
        return found

    def _places(self) -> np.ndarray:
        """The order of the support vectors."""
        return np.arange(self._learned("support_", "support").size)

    @property
    def support_(self) -> np.ndarray:
        """The indices of the support vectors in the training data; of a classifier, class after class."""
        return self._learned("support_", "support")[self._places()].astype(np.int32)

    @property
    def support_vectors_(self) -> Any:
        """The support vectors, in the order of ``support_`` and the units of the features; sparse if the
        features were."""
        center, scale = self._learned("support_vectors_", "center"), self._tensor("scale")
        if self._samples is not None:
            rows = self.support_
            if hasattr(self._samples, "iloc"):
                return self._samples.iloc[rows]
            return self._samples[rows] if hasattr(self._samples, "shape") else [self._samples[at] for at in rows]
        if self.kernel == "precomputed":
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'support_vectors_': the kernel is "
                "precomputed; `support_` says which samples they are"
            )
        vectors = self._tensor("vectors")
        if vectors is None:
            parts = (self._tensor("vectors.values"), self._tensor("vectors.indices"), self._tensor("vectors.indptr"))
            indices, indptr = (part.astype(np.int32) for part in parts[1:])
            shape = (self._tensor("coefficients").shape[1], scale.size)
            found = scipy.sparse.csr_matrix((parts[0] * scale[indices], indices, indptr), shape=shape)
            return found[self._places()]
        return (vectors * scale + center)[self._places()]


class SupportVectorRegressor(_Machine, Regressor):
    """A support vector machine that predicts numbers."""

    @property
    def dual_coef_(self) -> np.ndarray:
        """The coefficient of each support vector, targets × support vectors; positive of one that pulls
        predictions up."""
        return self._learned("dual_coef_", "coefficients")

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors."""
        return np.array([self._learned("n_support_", "coefficients").shape[1]], dtype=np.int32)


class SupportVectorClassifier(_Machine, Classifier):
    """A support vector machine that predicts classes."""

    decision_function_shape: str

    def decision_function(self, X: Any) -> np.ndarray:
        """Returns the decision score of each class.

        Returns
        -------
        array of samples, in favour of ``classes_[1]`` where positive; samples × classes for more than
        two classes; with ``decision_function_shape="ovo"`` samples × pairs of classes, the first with
        each later one, then the second and so on, in favour of the first of the pair where positive
        """
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise ValueError(
                f"parameter `decision_function_shape` = {self.decision_function_shape!r}: must be 'ovr' or 'ovo'"
            )
        model = self._fitted
        if self.decision_function_shape == "ovr" or self.classes_.size == 2:
            return super().decision_function(X)
        features, _, _ = self._features(X, reset=False)
        found = model.pair_decisions(features)
        if found is None:
            raise ValueError(
                "parameter `decision_function_shape` = 'ovo': a linear machine tells each class from the "
                "rest, not pairs; those of a kernel do (`kernel=\"polynomial\", degree=1` is linear)"
            )
        return self._signs(found)

    def _machine_of(self, first: int, second: int) -> tuple[int, float]:
        """The machine of two of ``classes_``, and 1, or −1 where its sign is to be turned."""
        k = self.classes_.size
        place = np.arange(k) if self._order is None else np.argsort(self._order)
        if k == 2:
            return 0, 1.0 if place[0] < place[1] else -1.0
        a, b = sorted((place[first], place[second]))
        return int(a * k - a * (a + 1) // 2 + b - a - 1), 1.0 if place[first] < place[second] else -1.0

    def _signs(self, of_machines: np.ndarray) -> np.ndarray:
        k = self.classes_.size
        found = [self._machine_of(a, b) for a in range(k) for b in range(a + 1, k)]
        return of_machines[..., [at for at, _ in found]] * np.array([sign for _, sign in found])

    def _support_classes(self) -> np.ndarray:
        codes = self._learned("n_support_", "support.classes")
        return codes if self._order is None else self._order[codes]

    def _places(self) -> np.ndarray:
        return np.argsort(self._support_classes(), kind="stable")

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors of each class."""
        return np.bincount(self._support_classes(), minlength=self.classes_.size).astype(np.int32)

    @property
    def dual_coef_(self) -> np.ndarray:
        """The coefficients of the support vectors in the machines that know them, in scikit-learn's order:
        (classes − 1) × support vectors, a row for each of the other classes."""
        coefficients, places = self._learned("dual_coef_", "coefficients"), self._places()
        classes = self._support_classes()[places]
        k = self.classes_.size
        out = np.empty((k - 1, places.size))
        for one in range(k):
            of_one = classes == one
            for row, other in enumerate(other for other in range(k) if other != one):
                machine, sign = self._machine_of(min(one, other), max(one, other))
                out[row, of_one] = sign * coefficients[machine, places[of_one]]
        return out
