"""pytest_plugin: the fixture `perfemu`; and a failing assertion about counts prints them as a short table.

pytest loads this wherever perfemu is installed, so it imports nothing of ours before a test asks for the fixture, and
there is no result before a test has imported `perfemu.api` itself.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from typing import Any

import pytest

_API = "perfemu.api"
_BASELINE = "perfemu-baseline.json"
_STATE = pytest.StashKey[Any]()  # of a session: its Baselines, once a test has asked for the fixture
_OF_WORKER = "perfemu_baselines"  # in what a process of pytest-xdist hands to the one that started it


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("perfemu", "counts of programs")
    group.addoption("--perfemu-update", action="store_true", help="keep what perfemu.check is given as the baseline")
    group.addoption("--perfemu-baseline", metavar="FILE", help=f"the baseline [{_BASELINE} in the root directory]")
    parser.addini("perfemu_baseline", "the file with the baselines of the fixture perfemu")


@pytest.fixture
def perfemu(request: pytest.FixtureRequest) -> Any:
    """Counts programs, exactly, and holds the counts against the baseline under this test's name.

    See PerfemuFixture: stat, check, run, record, report.
    """
    config = request.config
    state = config.stash.get(_STATE, None)
    if state is None:
        state = config.stash[_STATE] = importlib.import_module("perfemu.checking.session").Baselines(
            _baseline_path(config), config.getoption("perfemu_update")
        )
    return state.fixture(request.node.nodeid)


def _baseline_path(config: pytest.Config) -> str:
    given = config.getoption("perfemu_baseline")
    return str(given or config.rootpath / (config.getini("perfemu_baseline") or _BASELINE))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What is to be kept is written once, by the process that began."""
    config = session.config
    state = config.stash.get(_STATE, None)
    if state is None:
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput[_OF_WORKER] = state.rows()
    else:
        state.write()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """pytest-xdist: a process has ended."""
    rows = getattr(node, "workeroutput", {}).get(_OF_WORKER)
    if rows:
        config = node.config
        state = config.stash.get(_STATE, None)
        if state is None:
            state = config.stash[_STATE] = importlib.import_module("perfemu.checking.session").Baselines(
                _baseline_path(config), True
            )
        state.add_rows(rows)


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
