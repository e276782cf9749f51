"""stat says on a terminal, once, where nothing that it counts depends on the time that it models."""

from __future__ import annotations

import io
import sys

import pytest

from guests import guest
from perfemu.cli import stat as command
from perfemu.cli.main import main
from perfemu.guest import Guest
from perfemu.session import Session
from perfemu.untimed import needs_no_timing

LOOP = {isa: str(guest("loop_1k", isa).path) for isa in ("aarch64", "x86_64")}
HINT = "none of these events depends on time"


@pytest.mark.parametrize(
    ("isa", "core", "events", "in_vain"),
    [
        ("x86_64", "zen5", "instructions,branches,page-faults,context-switches", True),
        ("x86_64", "skylake", "L1-dcache-loads,br_inst_retired.near_taken,r00c0", True),
        ("aarch64", "neoverse-n1", "instructions,armv8_pmuv3_0/inst_retired/", True),
        ("x86_64", "zen5", "instructions,cycles", False),
        ("x86_64", "zen5", "branch-misses", False),
        ("x86_64", "zen5", "instructions,task-clock", False),
        ("x86_64", "skylake", "L1-dcache-load-misses", False),
        ("aarch64", "neoverse-n1", "r11", False),  # CPU_CYCLES
        ("aarch64", "ideal", "instructions", False),  # nothing is modelled
    ],
)
def test_events_that_any_model_of_time_counts_alike(isa: str, core: str, events: str, in_vain: bool) -> None:
    session = Session(Guest((LOOP[isa],), core=core))
    assert needs_no_timing(session, session.parse([events])) is in_vain


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "patience_s", "events", "said"),
    [
        (True, 0, "instructions", 1),
        (True, 3600, "instructions", 0),
        (True, 0, "cycles", 0),
        (False, 0, "instructions", 0),
    ],
)
def test_it_is_said_once_where_somebody_has_waited(
    terminal: bool, patience_s: float, events: str, said: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    stream = (Terminal if terminal else io.TextIOWrapper)(raw, encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(command, "PATIENCE_S", patience_s)
    assert main(["stat", "-r", "2", "-e", events, "--core", "zen5", LOOP["x86_64"]]) == 0
    assert raw.getvalue().decode().count(HINT) == said
