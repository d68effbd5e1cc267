"""Audits of classifiers, those of gradus and any other with scikit-learn's methods."""

from gradus._robustness import Robustness, robustness

__all__ = ["Robustness", "robustness"]
