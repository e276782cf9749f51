"""What `perfemu list` shows is what -e takes, and what stat then counts."""

import re

import pytest

import perfemu
from guests import DIRECTORY, ISAS
from perfemu.cli.main import main
from perfemu.events.parser import parse_events
from perfemu.listing import events_of, software_events
from perfemu.statistics.counts import Absence
from pmu.model import model

MODELS = {"aarch64": "armv8_pmuv3", "x86_64": "intel_arch_perfmon"}


@pytest.mark.parametrize("isa", ISAS)
def test_every_listed_name_is_an_event(isa: str) -> None:
    listed = [*software_events(), *events_of(model(MODELS[isa]))]
    for event in listed:
        configs = {parse_events([name], model(MODELS[isa]))[0].config for name in event.names}
        assert len(configs) == 1, event.names


@pytest.mark.parametrize("isa", ISAS)
def test_every_supported_event_is_counted_and_no_other(isa: str) -> None:
    """One by one: AArch64 has more events than counters, and x86's reference cycles have one counter for two names."""
    for event in (*software_events(), *events_of(model(MODELS[isa]))):
        result = perfemu.stat([DIRECTORY / "loop_1k" / f"{isa}.elf"], [event.names[0]], core="ideal")
        (count,) = result.counts
        assert count.absence is (Absence.NOT_SUPPORTED if event.support is None else None), event.names


def test_lines_look_like_perfs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "hw", "--core", "ideal", "--isa", "aarch64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  branches OR branch-instructions                    [Hardware event, exact]" in lines
    assert any(line.startswith("  not supported on this core: ") and "branch-misses" in line for line in lines)
    assert main(["list", "software", "cache", "pmu", "--core", "ideal"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^  page-faults OR faults {30}\[Software event, exact\]$", text, re.MULTILINE)
    assert "  inst_retired OR armv8_pmuv3_0/inst_retired/" in text
    assert "  br_inst_retired.conditional " in text


def test_patterns_and_details(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", "*_retired", "--core", "ideal", "--isa", "aarch64", "--details"])
    text = capsys.readouterr().out
    assert "br_retired" in text
    assert "instructions" not in text
    assert "BR_RETIRED, armv8_pmuv3_0/event=0x0021/" in text
    assert main(["list", "cores"]) == 0
    assert "  ideal " in capsys.readouterr().out
