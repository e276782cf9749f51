"""CONTRIBUTING.md's examples do what it says, each in one file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import perfemu
import perfemu.formats
from emulator.linux.syscalls import scheduling
from emulator.probes import Probe
from guests import guest
from perfemu.cli.main import main
from pmu.event import Event, Support
from pmu.model import model

TEXT = (Path(__file__).resolve().parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES: list[str] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
EVENTS, SYSCALL, PROC_FILE, FORMAT = EXAMPLES  # PROC_FILE is in test_additions.py


def test_the_events_are_rows_of_the_model() -> None:
    namespace = {"Event": Event, "Support": Support, "Probe": Probe}
    events = eval(f"[{EVENTS}]", namespace)
    assert [model("armv8_pmuv3").events.find(event.name).code for event in events] == [event.code for event in events]


def test_the_system_call_is_in_its_family() -> None:
    source = Path(scheduling.__file__).read_text(encoding="utf-8")
    code = [line for line in SYSCALL.splitlines() if '"""' not in line]
    assert "\n".join(code) in source


def test_a_new_format_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "totals.py").write_text(FORMAT, encoding="utf-8")
    monkeypatch.setattr(perfemu.formats, "__path__", [*perfemu.formats.__path__, str(tmp_path)])
    data = str(tmp_path / "perf.data")
    perfemu.record(
        perfemu.Guest([guest("loop_1k", "x86_64").path], core="ideal"), ["instructions"], period=100, output=data
    )
    assert main(["report", "-i", data, "--format", "totals"]) == 0
    assert capsys.readouterr().out == "2000 instructions:u\n"  # floor(2004 / 100) samples of 100
