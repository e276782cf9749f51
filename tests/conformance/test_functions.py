"""Which functions count otherwise than under qemu-user? Only those that functions.toml names, with the reason."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import require
from conformance.corpus import ARCHITECTURES, ENVIRONMENT, Case, cases, write_files
from conformance.stepped import by_function, run_stepped
from conformance.test_programs import run_reference, start_up_ends_with
from emulator.linux.program import Program
from emulator.machine import Machine, MachineConfig

TABLE = tomllib.loads(Path(__file__).with_name("functions.toml").read_text(encoding="utf-8"))
STEPPED = [case for case in cases() if str(case).removesuffix(f"-{case.isa}") in TABLE["stepped"]]


def reason(case: Case, function: str) -> str | None:
    """Why `function` may count otherwise in this run."""
    for row in TABLE["differences"]:
        if re.fullmatch(row.get("runs", ".*"), str(case)) and re.fullmatch("|".join(row["functions"]), function):
            return str(row["because"])
    return None


@pytest.mark.parametrize("case", STEPPED, ids=str)
def test_only_named_functions_count_otherwise(case: Case, tmp_path: Path) -> None:
    sysroot = require.debian_tree(ARCHITECTURES[case.isa], case.package)
    debug = require.debian_tree(ARCHITECTURES[case.isa], "libc6-dbg")
    executable = sysroot / case.file
    directory = tmp_path / "work"
    directory.mkdir()
    write_files(directory)
    reference = run_reference(case, executable, sysroot, directory)
    with (tmp_path / "out").open("wb") as output:
        program = Program(
            str(executable),
            (executable.name, *case.arguments),
            tuple(ENVIRONMENT.items()),
            str(directory),
            stdout=output.fileno(),
            stderr=output.fileno(),
        )
        machine = Machine(MachineConfig(case.isa, sysroot=str(sysroot)))
        stepped = run_stepped(machine, program, start_up_ends_with(case))
    ours = by_function(stepped.counts, stepped.mappings, debug)
    retired: Counter[int] = Counter()
    for instruction in reference.instructions:  # the same address may be there twice, decoded otherwise
        retired[instruction.address] += reference.retired(instruction)
    theirs = by_function(retired, reference.mappings, debug)
    different = {name: (ours[name], theirs[name]) for name in ours | theirs if ours[name] != theirs[name]}
    assert {name: counts for name, counts in different.items() if reason(case, name) is None} == {}
    assert len(different) < len(ours) / 4, "most functions count the same"
