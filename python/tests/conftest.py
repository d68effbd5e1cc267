"""Counts scikit-learn's checks, and says at the end how many there were."""

import collections

import pytest

_outcomes = collections.Counter()
_estimators = set()


def _is_check(item_id):
    return "test_sklearn_checks.py" in item_id


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and _is_check(item.nodeid):
        name = item.nodeid.split("[")[-1].split("(")[0]
        _estimators.add(name)
        expected = hasattr(report, "wasxfail")
        _outcomes["expected failures" if expected else report.outcome] += 1


def pytest_terminal_summary(terminalreporter):
    if not _outcomes:
        return
    counts = ", ".join(f"{count} {what}" for what, count in sorted(_outcomes.items()))
    terminalreporter.write_line(
        f"scikit-learn's estimator checks: {len(_estimators)} estimators, {sum(_outcomes.values())} checks: {counts}"
    )
