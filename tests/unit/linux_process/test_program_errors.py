"""What cannot be started: one clear line and the shell's exit status, never a traceback, whatever the file holds."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program, ProgramError, identify
from emulator.machine import MachineConfig
from unit.linux_process.elf_builder import BASE, EM_AARCH64, EXIT_7, PT_INTERP, R, W, elf, segment

HUGE = 1 << 62


def make(directory: Path, data: bytes, mode: int = 0o755, name: str = "program") -> str:
    path = directory / name
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


def start(path: str, *, memory_bytes: int = 64 << 20) -> LinuxMachine:
    machine = LinuxMachine(MachineConfig("x86_64", memory_bytes=memory_bytes))
    machine.kernel.messages = lambda message: None
    machine.start(Program(path, (path,), cwd=os.path.dirname(path)))
    return machine


def refused(path: str) -> ProgramError:
    with pytest.raises(ProgramError) as error:
        start(path)
    assert "\n" not in error.value.message
    assert path in error.value.message
    return error.value


def test_a_good_file_runs(tmp_path: Path) -> None:
    assert start(make(tmp_path, elf())).run() == 7 << 8


def test_a_segment_without_bytes_in_the_file_may_lie_behind_its_end(tmp_path: Path) -> None:
    zeros = segment(address=BASE + 0x10000, offset=0x10000, file_size=0, memory_size=0x1000, flags=R | W)
    assert start(make(tmp_path, elf(segment(), zeros))).run() == 7 << 8


def test_the_isa_is_read_from_the_header(tmp_path: Path) -> None:
    assert identify(make(tmp_path, elf())) == "x86_64"
    assert identify(make(tmp_path, elf(machine=EM_AARCH64))) == "aarch64"


def test_the_isa_of_a_script_is_that_of_its_interpreter(tmp_path: Path) -> None:
    program = make(tmp_path, elf(machine=EM_AARCH64))
    assert identify(make(tmp_path, f"#! {program} -x\n".encode(), name="script")) == "aarch64"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"", "an empty file", id="empty"),
        pytest.param(b"hello\n", "not an ELF executable", id="text"),
        pytest.param(elf()[:20], "truncated ELF file: 20 bytes", id="header cut"),
        pytest.param(elf(elf_class=1), "a 32-bit ELF file", id="32 bit"),
        pytest.param(elf(machine=243), "an ELF file for RISC-V", id="foreign"),
        pytest.param(elf(machine=0x1234), "an ELF file for machine 0x1234", id="unknown machine"),
        pytest.param(elf(kind=1), "a relocatable object", id="object file"),
        pytest.param(elf(kind=4), "a core dump", id="core"),
        pytest.param(elf(kind=0), "no type", id="no type"),
    ],
)
def test_what_the_header_tells_is_said(tmp_path: Path, data: bytes, says: str) -> None:
    path = make(tmp_path, data)
    with pytest.raises(ProgramError) as error:
        identify(path)
    assert says in error.value.message
    assert error.value.exit_status == 126
    assert says in refused(path).message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(elf(machine=EM_AARCH64), "in a machine that is x86_64", id="other ISA"),
        pytest.param(elf(header_count=0), "0 program headers", id="no headers"),
        pytest.param(elf(header_count=65535), "65535 program headers", id="too many headers"),
        pytest.param(elf(header_offset=HUGE), "truncated ELF file: its program headers", id="headers beyond the end"),
        pytest.param(elf(segment(kind=PT_INTERP)), "without a segment to load", id="nothing to load"),
        pytest.param(elf(segment(file_size=0x2000)), "ends at offset 0x2000, the file at 0x1000", id="truncated"),
        pytest.param(elf(segment(offset=HUGE, file_size=HUGE)), "truncated", id="huge offset"),
        pytest.param(elf(segment(file_size=0x1000, memory_size=0x10)), "more bytes in the file", id="shrinks"),
        pytest.param(elf(segment(address=BASE + 5)), "not aligned", id="not aligned"),
        pytest.param(elf(segment(memory_size=HUGE)), "does not fit the address space", id="huge memory"),
        pytest.param(elf(segment(address=(1 << 64) - 0x1000)), "does not fit", id="at the end"),
        pytest.param(elf(segment(memory_size=1 << 45, flags=R | W)), "the machine has", id="more than there is"),
        pytest.param(elf(segment(), segment(address=BASE)), "something is mapped", id="overlap"),
        pytest.param(elf(segment(address=0)), "mmap_min_addr", id="page zero"),
        pytest.param(elf(segment(), segment(kind=PT_INTERP, file_size=1)), "its dynamic loader", id="loader's name"),
        pytest.param(elf(segment(), segment(kind=PT_INTERP, offset=HUGE)), "its dynamic loader", id="loader's offset"),
        pytest.param(elf(segment(address=0x7FFF_FFFF_E000)), "something is mapped", id="over the stack"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    error = refused(make(tmp_path, data))
    assert says in error.message
    assert error.exit_status == 126


def test_what_is_not_there_is_127(tmp_path: Path) -> None:
    error = refused(str(tmp_path / "nothing"))
    assert error.message.endswith("no such file")
    assert error.exit_status == 127
    with pytest.raises(ProgramError) as identified:
        identify(str(tmp_path / "nothing"))
    assert identified.value.exit_status == 127


def test_a_directory_is_126(tmp_path: Path) -> None:
    error = refused(str(tmp_path))
    assert error.exit_status == 126
    with pytest.raises(ProgramError, match="is a directory"):
        identify(str(tmp_path))


def test_a_file_without_execute_permission_is_126(tmp_path: Path) -> None:
    error = refused(make(tmp_path, elf(), mode=0o644))
    assert "permission" in error.message
    assert error.exit_status == 126


def test_a_missing_dynamic_loader_is_named_with_a_hint(tmp_path: Path) -> None:
    name = b"/lib/no-such-loader.so.1\0"
    data = bytearray(elf(segment(), segment(kind=PT_INTERP, offset=0x400, file_size=len(name))))
    data[0x400 : 0x400 + len(name)] = name
    error = refused(make(tmp_path, bytes(data)))
    assert "/lib/no-such-loader.so.1: no such file; --sysroot DIR" in error.message
    assert error.exit_status == 127


def test_a_script_runs_its_interpreter_with_its_own_path(tmp_path: Path) -> None:
    make(tmp_path, elf(), name="interpreter")
    script = make(tmp_path, f"#!{tmp_path}/interpreter  one argument \nrest".encode(), name="script")
    machine = start(script)
    task = machine.kernel.tasks[1000]
    program = task.mm.program
    arguments = task.mm.read(program.argument_start, program.argument_end - program.argument_start)
    assert arguments.split(b"\0")[:-1] == [f"{tmp_path}/interpreter".encode(), b"one argument", script.encode()]
    assert task.comm == "script"


def test_a_missing_interpreter_of_a_script_is_named(tmp_path: Path) -> None:
    script = make(tmp_path, b"#!/no/such/interpreter\n")
    expected = f"{script}: its interpreter /no/such/interpreter: no such file"
    with pytest.raises(ProgramError) as identified:
        identify(script)
    assert [error.message for error in (identified.value, refused(script))] == [expected, expected]
    assert refused(script).exit_status == 127


def test_scripts_that_interpret_each_other_end(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(f"#!{path}\n")
    path.chmod(0o755)
    assert "interpret each other" in refused(str(path)).message


def test_a_program_larger_than_the_machine_is_refused(tmp_path: Path) -> None:
    data = elf(segment(), segment(flags=R | W, offset=0, address=BASE + 0x10000, file_size=0, memory_size=80 << 20))
    assert "the machine has" in refused(make(tmp_path, data)).message


def test_mutated_files_start_or_are_refused(tmp_path: Path) -> None:
    """Any byte of the headers may be anything. What starts may crash, and ends as a process does."""
    generator = random.Random(1)
    good = elf(segment(), segment(flags=R | W, address=BASE + 0x2000, file_size=0x800, memory_size=0x3000))
    started = 0
    refusals: list[ProgramError] = []
    for number in range(250):
        data = bytearray(good)
        for _ in range(generator.randrange(1, 4)):
            data[generator.randrange(16, 64 + 2 * 56)] = generator.choice(
                (0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256))
            )
        path = make(tmp_path, bytes(data), name=f"m{number}")
        try:
            start(path, memory_bytes=1 << 24)
        except ProgramError as error:
            refusals.append(error)
            continue
        started += 1
    assert 0 < started < 250
    assert all(error.exit_status in (126, 127) and "\n" not in error.message for error in refusals)


def test_code_is_at_its_address(tmp_path: Path) -> None:
    machine = start(make(tmp_path, elf()))
    assert machine.kernel.tasks[1000].mm.read(BASE + 0x800, len(EXIT_7)) == EXIT_7
