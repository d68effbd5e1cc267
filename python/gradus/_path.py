"""The penalties a model tried, and what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse


@dataclass(frozen=True)
class RegularizationPath:
    """The penalties that one was chosen from, strongest first.

    Attributes
    ----------
    regularizations : array of penalties
    coef : sparse array, penalties × features
    intercept : array of penalties
    cv_error : array of penalties or None
        The mean error over the folds of the cross-validation.
    cv_standard_error : array of penalties or None
        Its standard error.
    chosen : int or None
        Which penalty was chosen.
    """

    regularizations: np.ndarray
    coef: Any
    intercept: np.ndarray
    cv_error: np.ndarray | None = None
    cv_standard_error: np.ndarray | None = None
    chosen: int | None = None

    @classmethod
    def _of(cls, found: dict[str, Any], n_features: int) -> RegularizationPath:
        shape = (len(found["regularizations"]), n_features)
        return cls(
            regularizations=found["regularizations"],
            coef=scipy.sparse.csr_array(found["coefficients"], shape=shape),
            intercept=found["intercepts"],
            cv_error=found.get("cv_error"),
            cv_standard_error=found.get("cv_standard_error"),
            chosen=found.get("chosen"),
        )

    @property
    def regularization(self) -> float | None:
        """The penalty that was chosen."""
        return None if self.chosen is None else float(self.regularizations[self.chosen])
