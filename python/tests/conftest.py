"""Lets every test be interrupted; counts scikit-learn's checks, and says at the end how many there were."""

import collections
import signal
import threading

# A shell that runs the tests in the background, as `./check` does, makes them and their children ignore Ctrl-C.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
