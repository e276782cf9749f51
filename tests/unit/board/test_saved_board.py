"""A board that is saved in the middle of its run goes on in another machine to the same end: cycles, counts, registers,
RAM, and what it says."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from emulator._native import PAGE_SIZE
from emulator.board.board import Boot, Ended, Outside
from emulator.board.image import read_image
from emulator.board.kept import NotKept, WrongState, restore, state_of
from emulator.board.observers import Observers
from emulator.board.saved_board import SavedBoard, resume, saved
from emulator.board.virt import Virt
from emulator.board.virt_tree import RAM_BASE
from emulator.core_file.core_file import load_core
from emulator.machine import Hardware, Machine, MachineConfig
from emulator.probes import Probe
from perfemu.checkpoint_file import HEAD, MAGIC, Broken, read_checkpoint, write_checkpoint
from pmu.arm.pmuv3 import PmuV3
from pmu.model import model
from tests.unit.board.booted import OFF, START, private_interrupt_on
from tests.unit.native.bare import assemble

KEY, MEMORY_BYTES = "key", 4 << 20
ENGINE = 8  # where the engine's registers lie in a core's state, behind their length
HOST_TIME = ENGINE + 2064
PSTATE, DERIVED, DAIF, MDCR_EL3 = ENGINE + 328, ENGINE + 336, ENGINE + 560, ENGINE + 2048
# CPU 0 is interrupted by its PMU every 700 instructions, and by its timer every 37 ticks, while it and CPU 1 add to a
# word exclusively, load and store all over 64 KiB, branch as chance has it, compute with vectors, and CPU 0 sends.
PROGRAM = (
    """
        b       begin
        .balign 0x800
vectors: .org   vectors + 0x280         // IRQ, from EL1
        mrs     x13, s3_0_c12_c12_0     // ICC_IAR1_EL1
        cmp     x13, #23
        b.ne    1f
        mov     x14, #1
        msr     pmovsclr_el0, x14
        mov     w14, #-700
        msr     pmevcntr0_el0, x14
        b       2f
1:      mov     x14, #37
        msr     cntv_tval_el0, x14
2:      msr     s3_0_c12_c12_1, x13     // ICC_EOIR1_EL1
        add     x15, x15, #1
        eret
        .org    vectors + 0x800
begin:  adr     x0, vectors
        msr     vbar_el1, x0
        mov     x0, #3 << 20
        msr     cpacr_el1, x0
        isb
"""
    + private_interrupt_on(23)
    + private_interrupt_on(27)
    + """
        mov     x0, #8                  // INST_RETIRED
        msr     pmevtyper0_el0, x0
        mov     x0, #1
        msr     pmcntenset_el0, x0
        msr     pmintenset_el1, x0
        mov     w1, #-700
        msr     pmevcntr0_el0, x1
        msr     pmcr_el0, x0
        mov     x1, #37
        msr     cntv_tval_el0, x1
        msr     cntv_ctl_el0, x0
        movz    w0, #0xc400, lsl #16    // CPU_ON, of 64 bits
        movk    w0, #3
        mov     x1, #1
        adr     x2, second
        hvc     #0
        mov     x21, #TIMES
        cmp     x0, #0                  // it is there
        cinc    x22, xzr, eq
        lsl     x21, x21, x22
        mov     x9, #1
        msr     daifclr, #2
        bl      work
        msr     daifset, #2
3:      ldar    w7, [x5]
        cmp     w7, w21
        b.ne    3b
        b       off
second: mov     x9, #2
        mov     x0, #3 << 20
        msr     cpacr_el1, x0
        isb
        mov     x20, #0
        bl      work
4:      wfi
        b       4b
work:   adr     x5, word
        movz    x10, #0x4020, lsl #16   // RAM + 2 MiB
        mov     x6, #TIMES
        fmov    d1, #1.0
5:      movz    x11, #0x4c95, lsl #16
        movk    x11, #0x7f2d
        madd    x9, x9, x11, x11
        ubfx    x12, x9, #40, #13
        ldr     x11, [x10, x12, lsl #3]
        add     x11, x11, x9
        str     x11, [x10, x12, lsl #3]
        tbz     x9, #33, 6f
        fadd    d1, d1, d1
        eor     x12, x12, x11
6:      ldaxr   w7, [x5]
        add     w7, w7, #1
        stlxr   w8, w7, [x5]
        cbnz    w8, 6b
        cbz     x20, 7f
        tst     x6, #63
        b.ne    7f
        strb    w6, [x20]
7:      subs    x6, x6, #1
        b.ne    5b
        ret
        .balign 8
word:   .word   0
"""
)
TIMES = 900


@dataclass(frozen=True)
class End:
    """All that can be seen of a machine."""

    output: bytes
    cycles: list[int]
    counts: list[list[int]]
    registers: list[list[int]]
    vectors: list[list[bytes]]
    ram: bytes
    state: SavedBoard  # caches and predictors, too


@dataclass
class Made:
    hardware: Hardware
    board: Virt
    output: bytearray

    def end(self) -> End:
        assert self.board.ended is Ended.OFF
        cores, memory = [cpu.core for cpu in self.hardware.cpus], self.hardware.memory
        return End(
            bytes(self.output),
            [core.cycles for core in cores],
            [[core.total(probe, level) for probe in Probe if _counted(probe) for level in (0, 1)] for core in cores],
            [core.registers() for core in cores],
            [[core.read_vector(number) for number in range(32)] for core in cores],
            bytes(memory.view(0, memory.size_bytes >> 12)),
            _without_host_time(saved(self.board, self.hardware)),
        )


def _without_host_time(state: SavedBoard) -> SavedBoard:
    """The engine keeps a time of the host's among the registers, which no instruction reads."""

    def without(core: bytes) -> bytes:
        return core[:HOST_TIME] + core[HOST_TIME + 8 :]

    return SavedBoard(state.parts, state.memory, tuple(map(without, state.cores)))


def _counted(probe: Probe) -> bool:
    return probe not in (Probe.BR_COND_TAKEN, Probe.BR_TAKEN)  # which nobody has asked for from the start


def make(
    code: bytes | None,
    core: str,
    cpus: int,
    observers: Observers | None = None,
    changes: Sequence[str] = (),
    **offered: Any,
) -> Made:
    """`code`: None to be restored."""
    config = MachineConfig(
        "aarch64", load_core(core, changes), MEMORY_BYTES, cpus=cpus, quantum=97, most_instructions=200_000
    )
    hardware = Hardware(config)
    pmu = model("armv8_pmuv3")
    output = bytearray()
    outside = Outside(output.extend, pytest.fail, observers=observers, **offered)
    boot = None if code is None else Boot(read_image(code, RAM_BASE))
    pmus = [PmuV3(cpu.core.add_bank(pmu.bank_size(6)), pmu, 6) for cpu in hardware.cpus]
    return Made(hardware, Virt(hardware, boot, outside, pmus), output)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    source = PROGRAM.replace("TIMES", str(TIMES))
    return assemble("aarch64", START + source + OFF, tmp_path_factory.mktemp("code"))


@contextmanager
def checkpoint(made: Made, folder: Path) -> Iterator[int]:
    """Of its present state: a descriptor of the file."""
    descriptor = os.open(folder / "checkpoint", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        write_checkpoint(descriptor, KEY, saved(made.board, made.hardware), [], made.hardware.memory)
        yield descriptor
    finally:
        os.close(descriptor)


def paused(code: bytes, core: str, cpus: int, cycle: int, changes: Sequence[str] = (), **offered: Any) -> Made:
    observers = Observers(cpus)
    made = make(code, core, cpus, observers, changes, **offered)
    machine = Machine(made.hardware, made.board)
    observers.at_cycle(0, cycle, machine.pause)
    machine.run_to_the_end()
    assert machine.paused
    return made


def go_on(made: Made) -> End:
    made.board.go_on(None)
    Machine(made.hardware, made.board).run_to_the_end()
    return made.end()


# In the first instructions, and wherever what one CPU does is: between exclusives, in a handler, while it sends.
@pytest.mark.parametrize("cycle", [3, 1_717, 4_999, 9_001])
@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("core", ["ideal", "cortex-a55", "neoverse-n1"])
def test_it_goes_on_as_it_would_have(core: str, cpus: int, cycle: int, code: bytes, tmp_path: Path) -> None:
    expected = goes_on(core, cpus, cycle, code, tmp_path)
    if core == "ideal" and cpus == 1:  # what is forgotten at a checkpoint makes no difference there
        whole = make(code, core, cpus)
        Machine(whole.hardware, whole.board).run_to_the_end()
        assert replace(whole.end(), state=expected.state) == expected


@pytest.mark.parametrize(
    "changes",
    [
        "l1d.replacement=plru l1i.replacement=rrip l2.replacement=drrip branch.direction=bimodal",
        "l1d.replacement=ship l1i.replacement=brrip l2.replacement=ship branch.direction=gshare branch.indirect=ittage",
        "l1d.replacement=lru l2.inclusion=exclusive branch.direction=always_taken branch.indirect=perfect",
        "l1d.write_policy=write_through l2.inclusion=inclusive branch.direction=perfect pipeline.model=ideal",
    ],
)
def test_whatever_its_caches_and_predictors_are(changes: str, code: bytes, tmp_path: Path) -> None:
    goes_on("cortex-a55", 2, 9_001, code, tmp_path, "l1d.size=4KiB", "l1i.size=4KiB", "l2.size=16KiB", *changes.split())


def goes_on(core: str, cpus: int, cycle: int, code: bytes, tmp_path: Path, *changes: str) -> End:
    """A machine that has paused, and another that has been made from its file, to their ends, which are equal."""
    made = paused(code, core, cpus, cycle, changes)
    said = bytes(made.output)
    with checkpoint(made, tmp_path) as descriptor:
        other = make(None, core, cpus, changes=changes)
        found = read_checkpoint(descriptor, KEY)
        found.map_ram(other.hardware.memory)
        resume(other.board, other.hardware, found.board)
        other.output += said
        expected = go_on(made)
        assert go_on(other) == expected
    return expected


def test_a_file_that_is_not_whole_or_anothers_is_refused(code: bytes, tmp_path: Path) -> None:
    made = paused(code, "ideal", 2, 5_000)
    with checkpoint(made, tmp_path) as descriptor:
        data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        read_checkpoint(descriptor, KEY)
        with pytest.raises(Broken, match="of another machine"):
            read_checkpoint(descriptor, "another")
        at = data.index(b'"version"')
        for broken, why in (
            (b"", "no checkpoint"),
            (b"#" + data[1:], "no checkpoint"),
            (data[:100], "description is not whole"),
            (data[:at] + b"X" + data[at + 1 :], "description is not whole"),
            (data[:-1], "RAM is not whole"),
            (data + b"\0", "RAM is not whole"),
        ):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, broken, 0)
            with pytest.raises(Broken, match=why):
                read_checkpoint(descriptor, KEY)


@pytest.mark.parametrize(
    "says",
    [
        b"[" * 100_000,
        b"[]",
        b"null",
        b"\xff",
        b"{}",
        b'{"key":"key","parts":{},"told":[],"native":[],"stretches":[]}',
        b'{"key":"key","parts":{},"told":5,"native":[0],"stretches":[]}',
        b'{"key":"key","parts":{},"told":[],"native":[0],"stretches":[[0,-1]]}',
        b'{"key":"key","parts":{},"told":[],"native":[0],"stretches":[[0,1e999]]}',
    ],
)
def test_a_description_of_something_else_is_refused_though_its_digest_is_right(says: bytes, tmp_path: Path) -> None:
    description = says + b"\n"
    file = tmp_path / "file"
    file.write_bytes(MAGIC + HEAD.pack(len(description), hashlib.sha256(description).digest()) + description)
    os.truncate(file, PAGE_SIZE)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        with pytest.raises(Broken):
            read_checkpoint(descriptor, KEY)
    finally:
        os.close(descriptor)


def test_a_state_of_another_machine_is_refused(code: bytes) -> None:
    made = paused(code, "ideal", 2, 5_000)
    state = saved(made.board, made.hardware)
    wrong_parts = copy.deepcopy(state.parts)
    del wrong_parts["uart"]["_polls"]
    for wrong in (
        SavedBoard(state.parts, state.memory, state.cores[:1]),
        SavedBoard(state.parts, state.memory[:-1], state.cores),
        SavedBoard(state.parts, state.memory, (state.cores[0], state.cores[1][:-1])),
        SavedBoard(state.parts, state.memory, (state.cores[0], state.cores[1] + b"\0")),
        SavedBoard(wrong_parts, state.memory, state.cores),
    ):
        other = make(None, "ideal", 2)
        with pytest.raises(WrongState):
            resume(other.board, other.hardware, wrong)


def changed(state: SavedBoard, at: int, data: bytes) -> SavedBoard:
    """CPU 0's, there."""
    core = state.cores[0]
    return SavedBoard(state.parts, state.memory, (core[:at] + data + core[at + len(data) :], *state.cores[1:]))


@pytest.mark.parametrize("at", [PSTATE, DAIF, MDCR_EL3])
def test_registers_with_which_the_engine_would_step_for_ever_are_refused(at: int, code: bytes) -> None:
    made = paused(code, "ideal", 1, 5_000)
    other = make(None, "ideal", 1)
    with pytest.raises(WrongState):
        resume(other.board, other.hardware, changed(saved(made.board, made.hardware), at, b"\xff" * 8))


@pytest.mark.parametrize("at", [DERIVED - 4, DERIVED])
def test_what_the_engine_has_derived_is_not_believed(at: int, code: bytes) -> None:
    """With another's it executes what there is not, and our process ended."""
    made = paused(code, "ideal", 1, 5_000)
    state = saved(made.board, made.hardware)
    ends = []
    for its in (state, changed(state, at, b"\xff" * 4)):
        other = make(None, "ideal", 1)
        other.hardware.memory.view(0, MEMORY_BYTES >> 12)[:] = made.hardware.memory.view(0, MEMORY_BYTES >> 12)
        resume(other.board, other.hardware, its)
        ends.append(go_on(other))
    assert ends[0] == ends[1]


def test_what_has_no_state_to_be_kept_is_named(code: bytes) -> None:
    made = paused(code, "ideal", 1, 3, gic=2)
    with pytest.raises(NotKept, match="Senders"):
        saved(made.board, made.hardware)


class Part:
    kept = "number", "items", "words", "place", "parts", "none"

    def __init__(self, number: int) -> None:
        self.number = number
        self.items = [number, [number]]
        self.words = {"a": number, 3: b"b"}
        self.place: tuple[int, ...] = (number, number)
        self.parts = [Inner(number), Inner(number)]
        self.none: int | None = None


class Inner:
    kept = ("data",)

    def __init__(self, number: int) -> None:
        self.data = bytearray((number,))


def test_fields_are_restored_in_place() -> None:
    one, other = Part(1), Part(2)
    lists = other.items, other.words, other.parts[0].data
    restore(other, state_of(one))
    assert state_of(other) == state_of(one)
    assert (other.number, other.items, other.words, other.place) == (1, [1, [1]], {"a": 1, 3: b"b"}, (1, 1))
    assert lists[0] is other.items
    assert lists[1] is other.words
    assert lists[2] is other.parts[0].data


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", ["list"]),
        ("number", "1"),
        ("number", True),
        ("number", None),
        ("number", -1),
        ("number", 1 << 64),
        ("items", ["list", 1]),
        ("items", ["list", 1, ["list", "1"]]),
        ("words", ["dict", ["list", "a"], ["list", 1]]),
        ("place", ["tuple", 1]),
        ("data", ["bytearray", "0000"]),
        ("items", 3),
        ("words", ["list"]),
        ("parts", ["list"]),
        ("place", ["other", 1]),
        ("none", {}),
    ],
)
def test_a_field_of_another_kind_is_refused(name: str, value: object) -> None:
    kind = Inner if name in Inner.kept else Part
    with pytest.raises(WrongState):
        restore(kind(1), {**state_of(kind(2)), name: value})
