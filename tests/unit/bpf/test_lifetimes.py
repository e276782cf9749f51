"""BPF objects end when nobody has them any more, also if their making fails; and all of them count as memory."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.linux.errors import EMFILE, ENOMEM, LinuxError
from emulator.linux.fs.file import FileTable
from perfcore.abi.bpf import LAYOUTS, Cmd, MapType
from perfcore.bpf.link_commands import raw_tracepoint_open
from perfcore.bpf.loading import prog_load
from perfcore.bpf.map_commands import map_create
from perfcore.bpf.object_commands import btf_load, map_get_fd_by_id
from perfcore.bpf.request import Request
from unit.bpf.programs import Workbench

EXIT_0 = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)  # r0 = 0; exit
BTF = struct.pack("<HBBIIIII4sB", 0xEB9F, 1, 0, 24, 0, 0, 0, 5, b"\0int", 0)
MAP = {"map_type": MapType.ARRAY, "key_size": 4, "value_size": 8, "max_entries": 1}
PROGRAM = {"prog_type": 17, "insn_cnt": 2, "insns": 0x1000, "license": 0x2000}
TYPES = {"btf": 0x3000, "btf_size": len(BTF)}
MEMORY = {0x1000: EXIT_0, 0x2000: b"GPL", 0x3000: BTF, 0x4000: b"sys_enter"}


class Process:
    """Who asks: its memory has these few places, and whatever it may do, it may."""

    def __init__(self, descriptors: int) -> None:
        self.files = FileTable(descriptors)
        self.credentials = SimpleNamespace(has=lambda capability: True, uid=0)
        self.mm = SimpleNamespace(
            read=lambda address, size: MEMORY.get(address, b"").ljust(size, b"\0")[:size],
            read_string=lambda address, most: MEMORY[address],
            write=lambda address, data: None,
        )


def ask(bench: Workbench, process: Process, command: Any, cmd: Cmd, **fields: int) -> int:
    data = bytearray(152)
    for name, value in fields.items():
        offset, code = LAYOUTS[cmd].fields[name]
        struct.pack_into("<" + code, data, offset, value)
    made: int = command(bench.bpf, Request(process, 0, 152, bytes(data)))  # type: ignore[arg-type]
    return made


def counts(bench: Workbench) -> list[int]:
    bpf = bench.bpf
    return [len(bpf.maps), len(bpf.programs), len(bpf.types), len(bpf.links), bench.bpf.kernel.memory.used_bytes]


def test_what_finds_no_descriptor_is_not_there() -> None:
    bench = Workbench()
    full, able = Process(0), Process(8)
    before = counts(bench)
    for command, cmd, fields in (
        (map_create, Cmd.MAP_CREATE, MAP),
        (prog_load, Cmd.PROG_LOAD, PROGRAM),
        (btf_load, Cmd.BTF_LOAD, TYPES),
    ):
        with pytest.raises(LinuxError) as refused:
            ask(bench, full, command, cmd, **fields)
        assert refused.value.code == EMFILE
        assert counts(bench) == before
    descriptor = ask(bench, able, map_create, Cmd.MAP_CREATE, **MAP)
    with pytest.raises(LinuxError):
        ask(bench, full, map_get_fd_by_id, Cmd.MAP_GET_FD_BY_ID, id=4)
    with pytest.raises(LinuxError):
        ask(bench, full, map_get_fd_by_id, Cmd.MAP_GET_FD_BY_ID, id=bench.bpf.maps.after(0))
    able.files.close(descriptor)
    assert counts(bench) == before


def test_what_is_closed_is_gone_and_its_memory_is_free() -> None:
    bench = Workbench()
    process = Process(8)
    before = counts(bench)
    ask(bench, process, map_create, Cmd.MAP_CREATE, **MAP)
    types = ask(bench, process, btf_load, Cmd.BTF_LOAD, **TYPES)
    program = ask(bench, process, prog_load, Cmd.PROG_LOAD, **PROGRAM, prog_btf_fd=types)
    process.files.close(types)
    after = counts(bench)
    assert after[:3] == [1, 1, 2]  # the program keeps its types; the others are the kernel's
    assert after[4] > before[4]
    process.files.close(program)
    assert counts(bench)[:3] == [1, 0, 1]
    process.files.close_all()
    assert counts(bench) == before


def test_programs_and_types_count_as_memory() -> None:
    """16 MiB of BTF each: 64 MiB of RAM hold four."""
    bench = Workbench()
    process = Process(8)
    whole = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, 0, 0, (16 << 20) - 24).ljust(16 << 20, b"\0")
    process.mm.read = lambda address, size: whole
    bench.executed = 1 << 20  # looking at it is paid, too
    for _ in range(4):
        ask(bench, process, btf_load, Cmd.BTF_LOAD, btf=0x3000, btf_size=16 << 20)
    with pytest.raises(LinuxError) as refused:
        ask(bench, process, btf_load, Cmd.BTF_LOAD, btf=0x3000, btf_size=16 << 20)
    assert refused.value.code == ENOMEM


def test_a_link_that_finds_no_descriptor_is_not_attached() -> None:
    bench = Workbench()
    process = Process(1)
    program = ask(bench, process, prog_load, Cmd.PROG_LOAD, **PROGRAM)
    with pytest.raises(LinuxError):
        ask(bench, process, raw_tracepoint_open, Cmd.RAW_TRACEPOINT_OPEN, name=0x4000, prog_fd=program)
    assert not bench.bpf.kernel.tracepoints.sys_enter
    process.files.close(program)
    assert counts(bench)[1:4] == [0, 1, 0]
