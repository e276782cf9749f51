"""What `perfemu list` shows is what -e takes, and what stat then counts."""

import re

import pytest

import perfemu
from emulator.core_file.layers import names
from guests import DIRECTORY, ISAS
from perfemu.cli.main import main
from perfemu.events.parser import parse_events
from perfemu.listing import events_of, software_events, system_call_events
from perfemu.statistics.counts import Absence
from pmu.model import model

MODELS = {"aarch64": "armv8_pmuv3", "x86_64": "intel_arch_perfmon"}


@pytest.mark.parametrize("isa", ISAS)
def test_every_listed_name_is_an_event(isa: str) -> None:
    listed = [*software_events([isa]), *system_call_events([isa]), *events_of(model(MODELS[isa]))]
    for event in listed:
        configs = {parse_events([name], model(MODELS[isa]))[0].config for name in event.names}
        assert len(configs) == 1, event.names


@pytest.mark.parametrize("isa", ISAS)
def test_every_supported_event_is_counted_and_no_other(isa: str) -> None:
    """One by one: AArch64 has more events than counters, and x86's reference cycles have one counter for two names."""
    for event in (*software_events([isa]), *events_of(model(MODELS[isa]))):
        result = perfemu.stat(perfemu.Guest([DIRECTORY / "loop_1k" / f"{isa}.elf"], core="ideal"), [event.names[0]])
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


def test_cores_are_listed_in_brief_and_in_detail(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "cores"]) == 0
    brief = capsys.readouterr().out
    for name in names():
        assert re.search(rf"^  {name} +\[.*GHz.*\]$", brief, re.MULTILINE)
    assert "       validated: exact by definition\n" in brief
    assert "       PMU armv8_pmuv3: PMUv3 for Armv8.1" in brief
    assert "l1d" not in brief
    assert main(["list", "cores", "neoverse-n1", "--set", "l1d.size=32KiB"]) == 0
    detailed = capsys.readouterr().out
    assert "  neoverse-n1, l1d.size=32KiB " in detailed
    assert re.search(r"^       l1d +size 32 KiB, ways 4, latency 4,", detailed, re.MULTILINE)
    assert re.search(r"^       ops\.ALU +latency 1, ports ", detailed, re.MULTILINE)
    assert re.search(r"^       source +Arm Neoverse N1 Software Optimization Guide", detailed, re.MULTILINE)
    assert "not validated: neoverse-n1 with changes" in detailed


def test_a_core_that_is_not_there_or_of_another_isa_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "cores", "neoverse-n3"]) == 129
    assert "--core neoverse-n3: no such core; there is " in capsys.readouterr().err
    assert main(["list", "--core", "neoverse-n1", "--isa", "x86_64"]) == 129
    assert capsys.readouterr().err == "perfemu: --core neoverse-n1: executes aarch64, not x86_64\n"
    program = str(DIRECTORY / "loop_1k" / "x86_64.elf")
    assert main(["stat", "--core", "neoverse-n1", program]) == 129
    assert capsys.readouterr().err == "perfemu: --core neoverse-n1: executes aarch64, not x86_64\n"
    assert (
        main(["run", "--core", "ideal", "--set", "branch.direction=gshare", "--set", "pmu.x86_64=none", program]) == 129
    )
    assert "pmu.x86_64 = none: no PMU model 'none'; there are armv8_pmuv3" in capsys.readouterr().err


def test_the_list_begins_with_hardware_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert lines[0].startswith("  cycles OR cpu-cycles ")
    kinds = [line.rpartition("[")[2] for line in lines if line.endswith("]")]
    assert kinds[0].startswith("Hardware event")
    assert kinds[-1].startswith("Tracepoint event")
