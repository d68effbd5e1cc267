"""Runs scikit-learn's test files with the adapters in place, and counts the tests that reach gradus."""

from __future__ import annotations

import json
import os
import re

import adapters
import pytest
from expected import DIFFERENT, INTERNAL

adapters.install()

_outcomes: dict[str, list[str]] = {
    "passed": [], "failed": [], "different": [], "internal": [], "internal, passed": [], "unsupported": [], "elsewhere": []
}


def _listed(name: str, patterns: dict[str, str]) -> bool:
    return any(re.search(pattern, name) for pattern in patterns)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    adapters.calls["fits"] = 0
    adapters.calls["unsupported"] = []
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and report.outcome != "skipped":
        name = f"{item.path.name}::{item.name}"
        if adapters.calls["unsupported"] and report.outcome == "failed":
            kind = "unsupported"
        elif not adapters.calls["fits"]:
            kind = "elsewhere"
        elif _listed(name, INTERNAL):
            kind = "internal, passed" if report.outcome == "passed" else "internal"
        elif report.outcome == "passed":
            kind = "passed"
        else:
            kind = "different" if _listed(name, DIFFERENT) else "failed"
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
        f"failed {counts['failed']}. Not counted: {counts['internal'] + counts['internal, passed']} of scikit-learn's "
        f"own machinery ({counts['internal, passed']} of them pass), {counts['unsupported']} of parameters that gradus does not have"
    )
    if "GRADUS_SUITE" in os.environ:
        with open(os.environ["GRADUS_SUITE"], "w") as file:
            json.dump(_outcomes, file, indent=1)
