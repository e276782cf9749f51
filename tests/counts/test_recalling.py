"""Guest programs on cores that recall: what the pipeline recalls is what it would work out, and so is every count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emulator.core_file.core_file import CoreFile, load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest

BENCH = str(Path(__file__).resolve().parents[1] / "bench" / "cores" / "in_order.toml")
CORES = {"aarch64": ("cortex-a55", "neoverse-n1", BENCH), "x86_64": (BENCH, "redwood-cove", "zen5")}
# Loops that come to few states; REP and page faults; changing code; calls through tables
PROGRAMS = {"embedded_mix": "2", "string_instructions": "", "self_modifying": "", "page_crossing": "", "recursion": ""}


def cases() -> list[tuple[str, str, str]]:
    found = []
    for isa, cores in CORES.items():
        for program in PROGRAMS:
            try:
                guest(program, isa)
            except StopIteration:
                continue
            found += [(program, isa, core) for core in cores]
    return found


def totals(program: str, isa: str, core_file: CoreFile) -> dict[str, int]:
    machine = LinuxMachine(MachineConfig(isa, core=core_file))
    core = machine.cpus[0].core
    core.follow_branches()
    path = str(guest(program, isa).path)
    machine.start(Program(path, (path, PROGRAMS[program]) if PROGRAMS[program] else (path,), stdout=-1))
    status = machine.run()
    return {probe.name: core.total(probe) for probe in Probe} | {"cycles": core.cycles, "status": status}


@pytest.mark.parametrize(("program", "isa", "core"), cases())
def test_a_program_takes_as_long_whether_recalled_or_not(program: str, isa: str, core: str) -> None:
    core_file = load_core(core)
    pipeline = core_file.tables["pipeline"]
    assert isinstance(pipeline, dict)
    worked, checked = (
        totals(program, isa, replace(core_file, tables={**core_file.tables, "pipeline": {**pipeline, "recall": mode}}))
        for mode in ("never", "check")
    )
    assert checked == worked
    assert totals(program, isa, core_file) == worked
