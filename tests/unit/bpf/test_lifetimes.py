"""BPF objects end when nobody has them any more, also if their making fails; and all of them count as memory."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from emulator.linux.errors import E2BIG, EFAULT, EMFILE, ENOMEM, LinuxError
from emulator.linux.fs.file import FileTable
from perfcore.abi.bpf import AttachType, Cmd, MapType, ProgType
from perfcore.bpf.instructions import LOAD_IMM64, PSEUDO_MAP_IDX, encode
from perfcore.bpf.link_commands import raw_tracepoint_open
from perfcore.bpf.loading import prog_load
from perfcore.bpf.map_commands import map_create
from perfcore.bpf.object_commands import btf_load, map_get_fd_by_id
from unit.bpf.programs import Process, Workbench, insn

EXIT_0 = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)  # r0 = 0; exit
BTF = struct.pack("<HBBIIIII4sB", 0xEB9F, 1, 0, 24, 0, 0, 0, 5, b"\0int", 0)
MAP = {"map_type": MapType.ARRAY, "key_size": 4, "value_size": 8, "max_entries": 1}
PROGRAM = {"prog_type": ProgType.RAW_TRACEPOINT, "insn_cnt": 2, "insns": 0x1000, "license": 0x2000}
TYPES = {"btf": 0x3000, "btf_size": len(BTF)}
FUNCTION = {"func_info_cnt": 1, "func_info_rec_size": 8, "func_info": 0x7000}  # it begins at 0, of type 1
MEMORY = {0x1000: EXIT_0, 0x2000: b"GPL", 0x3000: BTF, 0x4000: b"sys_enter", 0x7000: struct.pack("<II", 0, 1)}


def process(descriptors: int) -> Process:
    return Process(MEMORY, FileTable(descriptors))


def ask(bench: Workbench, process: Process, command: Any, cmd: Cmd, **fields: int) -> int:
    made: int = command(bench.bpf, process.request(cmd, **fields))
    return made


def counts(bench: Workbench) -> list[int]:
    bpf = bench.bpf
    return [len(bpf.maps), len(bpf.programs), len(bpf.types), len(bpf.links), bench.bpf.kernel.memory.used_bytes]


def test_what_finds_no_descriptor_is_not_there() -> None:
    bench = Workbench()
    full, able = process(0), process(8)
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
    caller = process(8)
    before = counts(bench)
    ask(bench, caller, map_create, Cmd.MAP_CREATE, **MAP)
    types = ask(bench, caller, btf_load, Cmd.BTF_LOAD, **TYPES)
    program = ask(bench, caller, prog_load, Cmd.PROG_LOAD, **PROGRAM, **FUNCTION, prog_btf_fd=types)
    caller.files.close(types)
    after = counts(bench)
    assert after[:3] == [1, 1, 2]  # the program keeps its types; the others are the kernel's
    assert after[4] > before[4]
    caller.files.close(program)
    assert counts(bench)[:3] == [1, 0, 1]
    caller.files.close_all()
    assert counts(bench) == before


def test_programs_and_types_count_as_memory() -> None:
    """16 MiB of BTF each: 64 MiB of RAM hold four."""
    bench = Workbench()
    caller = process(8)
    whole = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, 0, 0, (16 << 20) - 24).ljust(16 << 20, b"\0")
    caller.memory[0x3000] = whole
    bench.executed = 1 << 20  # looking at it is paid, too
    for _ in range(4):
        ask(bench, caller, btf_load, Cmd.BTF_LOAD, btf=0x3000, btf_size=16 << 20)
    with pytest.raises(LinuxError) as refused:
        ask(bench, caller, btf_load, Cmd.BTF_LOAD, btf=0x3000, btf_size=16 << 20)
    assert refused.value.code == ENOMEM


def test_a_link_that_finds_no_descriptor_is_not_attached() -> None:
    bench = Workbench()
    caller = process(1)
    program = ask(bench, caller, prog_load, Cmd.PROG_LOAD, **PROGRAM)
    with pytest.raises(LinuxError):
        ask(bench, caller, raw_tracepoint_open, Cmd.RAW_TRACEPOINT_OPEN, name=0x4000, prog_fd=program)
    assert not bench.bpf.kernel.tracepoints.sys_enter
    caller.files.close(program)
    assert counts(bench)[1:4] == [0, 1, 0]


def test_a_raw_tracepoint_has_64_programs_of_either_type() -> None:
    """By its name, and as a program of type TRACING was loaded for it."""
    bench = Workbench()
    caller = process(100)
    targets = bench.bpf.kernel_types().targets
    (number,) = (number for number, target in targets.items() if target.name == "sys_enter")
    wanted = {"expected_attach_type": AttachType.TRACE_RAW_TP, "attach_btf_id": number}
    typed = ask(bench, caller, prog_load, Cmd.PROG_LOAD, **PROGRAM | wanted | {"prog_type": ProgType.TRACING})
    raw = ask(bench, caller, prog_load, Cmd.PROG_LOAD, **PROGRAM)
    for _ in range(32):
        ask(bench, caller, raw_tracepoint_open, Cmd.RAW_TRACEPOINT_OPEN, prog_fd=typed)
        ask(bench, caller, raw_tracepoint_open, Cmd.RAW_TRACEPOINT_OPEN, prog_fd=raw, name=0x4000)
    for one_more in ({"prog_fd": typed}, {"prog_fd": raw, "name": 0x4000}):
        with pytest.raises(LinuxError) as refused:
            ask(bench, caller, raw_tracepoint_open, Cmd.RAW_TRACEPOINT_OPEN, **one_more)
        assert refused.value.code == E2BIG


def test_a_program_whose_maps_cannot_be_found_leaves_no_memory() -> None:
    """It names a map by its place in an array of descriptors, which is nowhere."""
    bench = Workbench()
    caller = process(8)
    caller.memory[0x5000] = encode([insn(LOAD_IMM64, 1, PSEUDO_MAP_IDX), insn(0)]) + EXIT_0
    before = counts(bench)
    with pytest.raises(LinuxError) as refused:
        ask(bench, caller, prog_load, Cmd.PROG_LOAD, **PROGRAM | {"insns": 0x5000, "insn_cnt": 4, "fd_array": 0x6000})
    assert refused.value.code == EFAULT
    assert counts(bench) == before
