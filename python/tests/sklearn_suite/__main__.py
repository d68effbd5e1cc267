"""scikit-learn's own tests of linear models and support vector machines, run over gradus.

    python python/tests/sklearn_suite [arguments of pytest]

Counts the tests that reach gradus and pass; fails if their share falls below what was reached before. Tests of
scikit-learn's own machinery (`expected.INTERNAL`) and of parameters that gradus does not have are counted apart.
`GRADUS_SUITE` names a file for the names of the tests by outcome.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

FILES = [
    "linear_model.tests.test_base",
    "linear_model.tests.test_ridge",
    "linear_model.tests.test_coordinate_descent",
    "linear_model.tests.test_sparse_coordinate_descent",
    "linear_model.tests.test_logistic",
    "linear_model.tests.test_quantile",
    "svm.tests.test_svm",
    "svm.tests.test_sparse",
    "svm.tests.test_bounds",
]


#: The share of the tests that reach gradus that must pass. Raise it with what passes.
FLOOR = 0.97


def main() -> int:
    here = Path(__file__).resolve().parent
    sys.path[:0] = [str(here), str(here.parents[1])]
    warnings.simplefilter("ignore")
    import plugin

    pytest.main(
        ["--pyargs", *(f"sklearn.{name}" for name in FILES), "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider",
         "-W", "ignore", "--rootdir", str(here), *sys.argv[1:]],
        plugins=[plugin],
    )
    passed = len(plugin._outcomes["passed"])
    reached = passed + len(plugin._outcomes["failed"]) + len(plugin._outcomes["different"])
    return 0 if passed >= FLOOR * reached > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
