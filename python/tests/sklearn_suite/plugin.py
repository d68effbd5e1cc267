"""Runs scikit-learn's test files with the adapters in place, and counts the tests that reach gradus."""

from __future__ import annotations

import json
import os
import re

import adapters
import pytest
from expected import DIFFERENT

adapters.install()

_outcomes: dict[str, list[str]] = {"passed": [], "failed": [], "different": [], "unsupported": [], "elsewhere": []}


def _reason(nodeid: str) -> str | None:
    return next((reason for pattern, reason in DIFFERENT.items() if re.search(pattern, nodeid)), None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    adapters.calls["fits"] = 0
    adapters.calls["unsupported"] = []
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and report.outcome != "skipped":
        name = item.nodeid.split("site-packages/")[-1]
        if adapters.calls["unsupported"] and report.outcome == "failed":
            kind = "unsupported"
        elif not adapters.calls["fits"]:
            kind = "elsewhere"
        elif report.outcome == "passed":
            kind = "passed"
        else:
            kind = "different" if _reason(name) else "failed"
        report.gradus = (kind, name, adapters.calls["unsupported"][-1:])
    return report


def pytest_runtest_logreport(report):
    kind, name, _ = getattr(report, "gradus", (None, None, None))
    if kind:
        _outcomes[kind].append(name)


def pytest_report_to_serializable(config, report):
    return None


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    counts = {kind: len(names) for kind, names in _outcomes.items()}
    reached = counts["passed"] + counts["failed"] + counts["different"]
    terminalreporter.write_line(
        f"scikit-learn's tests that reach gradus: {reached}; passed {counts['passed']} "
        f"({100 * counts['passed'] / max(1, reached):.1f} %), different by design {counts['different']}, "
        f"failed {counts['failed']}; parameters gradus does not have: {counts['unsupported']} more tests"
    )
    if "GRADUS_SUITE" in os.environ:
        with open(os.environ["GRADUS_SUITE"], "w") as file:
            json.dump(_outcomes, file, indent=1)
