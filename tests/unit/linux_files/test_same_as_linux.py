"""Programs that make hundreds of file syscalls print the same under Linux (or qemu-user on it) and on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import require
from c_programs import build
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from guests import ISAS

HERE = Path(__file__).parent


def under_linux(isa: str, program: Path, directory: Path) -> list[str]:
    emulator = [] if os.uname().machine == isa else [require.command(f"qemu-{isa}", "qemu-user")]
    command = [*emulator, program, f"file-calls-{os.getpid()}"]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, umask=0o022
    )
    return done.stdout.splitlines()


def under_us(isa: str, program: Path, directory: Path) -> tuple[list[str], list[str]]:
    messages: list[str] = []
    output = directory.parent / "output"
    with output.open("wb") as out, open(os.devnull, "rb") as null:
        machine = LinuxMachine(MachineConfig(isa=isa, memory_bytes=256 << 20))
        machine.kernel.messages = messages.append
        machine.start(
            Program(
                str(program),
                ("file_calls", "file-calls"),
                (),
                str(directory),
                stdin=null.fileno(),
                stdout=out.fileno(),
                stderr=out.fileno(),
            )
        )
        assert machine.run() == 0
    return output.read_text().splitlines(), messages


@pytest.mark.parametrize("isa", ISAS)
def test_file_syscalls_answer_as_linux_does(isa, tmp_path):
    program = build(HERE / "file_calls.c", isa, tmp_path / "file_calls")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    expected = under_linux(isa, program, theirs)
    got, messages = under_us(isa, program, ours)
    assert len(expected) > 300
    assert got == expected
    assert messages == []
    assert not Path("/tmp/file-calls").exists()
    assert sorted(path.name for path in ours.rglob("*")) == sorted(path.name for path in theirs.rglob("*"))


@pytest.mark.parametrize("isa", ISAS)
def test_terminals_do_as_linux_s_do(isa, tmp_path):
    """Line editing, echo, modes, windows, packets, controlling terminals, job control, hanging up."""
    if not os.path.exists("/dev/ptmx"):
        require.missing("the host has no pseudo-terminals: /dev/ptmx")
    program = build(HERE / "terminal_calls.c", isa, tmp_path / "terminal_calls")
    directory = tmp_path / "here"
    directory.mkdir()
    expected = under_linux(isa, program, directory)
    got, messages = under_us(isa, program, directory)
    assert len(expected) > 300
    assert got == expected
    assert messages == []


@pytest.mark.parametrize("isa", ISAS)
def test_mappings_of_a_file_that_is_cut_and_punched_show_what_linux_s_do(isa, tmp_path):
    """Private copies of pages behind the new end are gone, too: what stress-ng --memfd looks for."""
    program = build(HERE / "mapping_calls.c", isa, tmp_path / "mapping_calls")
    directory = tmp_path / "here"
    directory.mkdir()
    got, messages = under_us(isa, program, directory)
    native = os.uname().machine  # qemu-user does nothing for MADV_REMOVE
    assert got == under_linux(native, build(HERE / "mapping_calls.c", native, tmp_path / "native"), directory)
    assert len(got) > 60
    assert messages == []


@pytest.mark.parametrize("isa", ISAS)
def test_the_loopback_interface_is_found_and_nothing_of_the_hosts_network(isa, tmp_path):
    program = build(HERE / "interfaces.c", isa, tmp_path / "interfaces")
    got, messages = under_us(isa, program, tmp_path)
    assert got == [  # AF_PACKET, AF_INET, AF_INET6: as any Linux with IPv6 tells of lo
        "lo 17 index 1 hardware 772 length 6  up, loopback",
        "lo 2 127.0.0.1 255.0.0.0 up, loopback",
        "lo 10 ::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff up, loopback",
    ]
    assert messages == []


@pytest.mark.parametrize("isa", ISAS)
def test_files_of_a_process_say_what_there_is_when_they_are_read(isa, tmp_path):
    """By these perf takes the user_time of an interval, and sees that its program is gone."""
    got, messages = under_us(isa, build(HERE / "process_files.c", isa, tmp_path / "process_files"), tmp_path)
    native = os.uname().machine  # qemu-user makes up some of /proc
    assert got == under_linux(native, build(HERE / "process_files.c", native, tmp_path / "native"), tmp_path)
    assert len(got) > 60
    assert messages == []
