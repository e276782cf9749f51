"""The tally of a run, by function: what the comparison with qemu-user stands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from attribution import start_attribution, tally
from conformance.comparison import Mapped
from conformance.functions import NO_FILE, by_function
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from guests import guest

# guest_programs/recursion/expected.toml: what its three functions retire
RECURSION = {
    "aarch64": {"_start": 7, "descend": 807, "leaf": 2},
    "x86_64": {"_start": 6, "descend": 908, "leaf": 4},
}


@pytest.mark.parametrize("isa", RECURSION)
def test_a_run_falls_apart_into_its_functions(isa: str, tmp_path: Path) -> None:
    path = guest("recursion", isa).path
    machine = LinuxMachine(MachineConfig(isa))
    mapped = Mapped()
    machine.kernel.tracepoints.mmap.subscribe(mapped.note)
    machine.start(Program(str(path), (str(path),)))
    core = machine.cpus[0].core
    start_attribution(core)
    machine.run()
    expected = {f"{isa}.elf:{name}": count for name, count in RECURSION[isa].items()}
    assert by_function(tally(core), mapped.files, tmp_path) == expected


def test_code_outside_files_is_counted_together(tmp_path: Path) -> None:
    path = guest("recursion", "x86_64").path
    mapping = (0x40_0000, 0x40_1000, 0, str(path))
    assert by_function({0x3F_FFFF: 1, 0x40_1000: 2}, [mapping], tmp_path) == {NO_FILE: 3}
