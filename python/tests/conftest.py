"""Counts scikit-learn's checks, and says at the end how many there were."""

import collections

_outcomes = collections.Counter()
_estimators = set()


def pytest_runtest_logreport(report):
    if report.when == "call" and "test_sklearn_checks.py" in report.nodeid:
        _estimators.add(report.nodeid.split("[")[1].split("(")[0])
        _outcomes["expected failures" if hasattr(report, "wasxfail") else report.outcome] += 1


def pytest_terminal_summary(terminalreporter):
    if _outcomes:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(_outcomes.items()))
        terminalreporter.write_line(
            f"scikit-learn's estimator checks: {len(_estimators)} estimators, "
            f"{sum(_outcomes.values())} checks: {counts}"
        )
