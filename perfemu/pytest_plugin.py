"""pytest_plugin: a failing assertion about counts prints them as a short table.

pytest loads this wherever perfemu is installed, so it imports nothing of ours: there is no result before a test has
imported `perfemu.api` itself.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

_API = "perfemu.api"


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Two results that should be equal: where they differ."""
    if op != "==" or not (_is_result(left) and _is_result(right)):
        return None
    first: Any = left
    return ["Comparing two results:", *first.differences(right)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Whatever it says of a result (`result["cycles"] < 9`): all results that the functions under way have at hand."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(AssertionError):
        for name, result in _results_at_hand(call.excinfo):
            report.sections.append((f"perfemu: {name}", result.table()))
    return report


def _results_at_hand(failure: pytest.ExceptionInfo[BaseException]) -> list[tuple[str, Any]]:
    """(local name, result), each result once."""
    found: dict[int, tuple[str, Any]] = {}
    for entry in failure.traceback:
        for name, value in entry.frame.f_locals.items():
            if _is_result(value):
                found.setdefault(id(value), (name, value))
    return list(found.values())


def _is_result(value: object) -> bool:
    """By its type alone: a proxy may not want to be asked for its `__class__`."""
    api = sys.modules.get(_API)
    return api is not None and issubclass(type(value), api.NamedCounts)
