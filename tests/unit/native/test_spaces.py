"""Several address spaces on one core, and several cores on one memory: each executes and counts what it has mapped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from emulator._native import PAGE_SIZE, AddressSpace, Core, PhysicalMemory, RegisterState
from emulator.core_file.core_file import load_core
from emulator.cpu import ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, EXECUTE, FOREVER, PC, READ, SP, STACK_TOP, WRITE, assemble

ISAS = ("aarch64", "x86_64")
CORES = {"aarch64": ("ideal", "cortex-a55", "neoverse-n1"), "x86_64": ("ideal", "skylake")}
EACH_CORE = [(isa, core) for isa in ISAS for core in CORES[isa]]
SYSCALL = {"aarch64": "svc #0", "x86_64": "syscall"}
NOP = {"aarch64": "nop", "x86_64": "nopl (%rax)"}  # as long as the load
LOAD = {"aarch64": "ldr x1, [x9]", "x86_64": "mov (%rdi), %rbx"}
POINTER = {"aarch64": 9, "x86_64": 5}  # the number of the register by which those go
RESULT = {"aarch64": 0, "x86_64": 0}  # X0, RAX


def core_of(name: str, isa: str, memory: PhysicalMemory) -> Core:
    core = Core(isa, memory, model=load_core(name).model)
    core.follow_branches()
    return core


def space_of(memory: PhysicalMemory, code: bytes, protection: int = READ | EXECUTE) -> AddressSpace:
    space = AddressSpace(memory)
    space.map(CODE, frame_of(memory, code), 1, protection)
    space.map(DATA, memory.allocate(), 1, READ | WRITE)
    return space


def frame_of(memory: PhysicalMemory, code: bytes, offset: int = 0) -> int:
    frame = memory.allocate()
    memory.view(frame)[offset : offset + len(code)] = code
    return frame


def run(core: Core, isa: str, space: AddressSpace, start: int = CODE) -> None:
    """From `start` to the system call."""
    core.set_address_space(space)
    core.write_register(POINTER[isa], DATA)
    core.write_register(PC[isa], start)
    assert core.run(FOREVER) == ExitReason.SYSCALL


def loads(core: Core, isa: str, space: AddressSpace) -> int:
    before = core.total(Probe.LOAD)
    run(core, isa, space)
    return core.total(Probe.LOAD) - before


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_other_code_at_the_same_address_counts_for_itself(isa: str, name: str, tmp_path: Path) -> None:
    memory = PhysicalMemory(64 << 20)
    core = core_of(name, isa, memory)
    sources = (f"{what}\n{SYSCALL[isa]}" for what in (LOAD[isa], NOP[isa]))
    spaces = [space_of(memory, assemble(isa, source, tmp_path)) for source in sources]
    assert [loads(core, isa, spaces[number % 2]) for number in range(6)] == [1, 0] * 3


def lookup_frame(space: AddressSpace, address: int = CODE) -> int:
    page = space.lookup(address)
    assert page is not None
    return page[0]


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_processes_of_one_program_share_what_was_decoded(isa: str, name: str, tmp_path: Path) -> None:
    memory = PhysicalMemory(64 << 20)
    core = core_of(name, isa, memory)
    frame = frame_of(memory, assemble(isa, f"{LOAD[isa]}\n{NOP[isa]}\n{SYSCALL[isa]}", tmp_path))
    decoded = []
    for _ in range(40):  # more than a table keeps slots for
        space = AddressSpace(memory)
        space.map(CODE, frame, 1, READ | EXECUTE)
        space.map(DATA, memory.allocate(), 1, READ | WRITE)
        assert loads(core, isa, space) == 1
        decoded.append(core.decoded_blocks)
        child = space.fork()
        assert loads(core, isa, child) == 1
        assert loads(core, isa, space) == 1
        space.unmap(CODE, 1)
    assert set(decoded) == {decoded[0]}
    assert core.decoded_blocks == decoded[0]


def test_an_instruction_that_crosses_pages_is_the_one_of_both_pages(tmp_path: Path) -> None:
    memory = PhysicalMemory(64 << 20)
    core = Core("x86_64", memory)
    # at the page's end: mov $..., %eax, whose immediate has its last three bytes on the next page
    first = frame_of(memory, b"\xeb\x0c", 0xFF0)
    memory.view(first)[0xFFE:] = b"\xb8\x01"
    spaces = []
    for value in (0x11, 0x22):
        space = AddressSpace(memory)
        space.map(CODE, first, 1, READ | EXECUTE)
        second = frame_of(memory, bytes([value, 0, 0]) + assemble("x86_64", "syscall", tmp_path))
        space.map(CODE + PAGE_SIZE, second, 1, READ | EXECUTE)
        spaces.append(space)
    results = []
    for number in range(6):
        run(core, "x86_64", spaces[number % 2], CODE + 0xFF0)
        results.append(core.read_register(RESULT["x86_64"]))
    assert results == [0x1101, 0x2201] * 3


@pytest.mark.parametrize(("isa", "name"), EACH_CORE)
def test_code_that_replaces_other_code_is_counted(isa: str, name: str, tmp_path: Path) -> None:
    memory = PhysicalMemory(64 << 20)
    core = core_of(name, isa, memory)
    codes = [assemble(isa, f"{loaded}\n{SYSCALL[isa]}", tmp_path) for loaded in (LOAD[isa], NOP[isa])]
    space = space_of(memory, codes[0])
    assert loads(core, isa, space) == 1
    space.map(CODE, frame_of(memory, codes[1]), 1, READ | EXECUTE)
    assert loads(core, isa, space) == 0
    memory.write(lookup_frame(space), 0, codes[0])  # as write(2) into a file that is executed
    assert loads(core, isa, space) == 1
    space.write(CODE, codes[1])
    assert loads(core, isa, space) == 0
    assert core.total(Probe.LOAD) == 2


def test_a_write_beyond_its_frame_is_refused() -> None:
    memory = PhysicalMemory(64 << 20)
    frame = memory.allocate(2)
    with pytest.raises(IndexError):
        memory.write(frame, PAGE_SIZE - 1, b"ab")
    assert bytes(memory.view(frame, 2)) == bytes(2 * PAGE_SIZE)


# Loops with blocks of several segments: what an address depends on comes out of a floating-point register.
TWO_PROGRAMS: Mapping[str, tuple[str, str]] = {
    "aarch64": (
        """
    1:  ldr x2, [x9, #16]
        fmov d0, x2
        fmov x3, d0
        ldr x4, [x9, x3]
        str x4, [x9, #24]
        add x2, x2, #8
        and x2, x2, #0x1f8
        str x2, [x9, #16]
        cbnz x2, 1b
        svc #0
    """,
        """
    1:  ldr x2, [x9, #16]
        fmov d0, x2
        fmov x3, d0
        nop
        str x3, [x9, x3]
        add x2, x2, #16
        and x2, x2, #0x1f8
        str x2, [x9, #16]
        cbnz x2, 1b
        svc #0
    """,
    ),
    "x86_64": (
        """
    1:  mov 16(%rdi), %rdx
        movq %rdx, %xmm0
        movq %xmm0, %rcx
        mov (%rdi,%rcx), %rsi
        mov %rsi, 24(%rdi)
        add $8, %rdx
        and $0x1f8, %edx
        mov %rdx, 16(%rdi)
        jne 1b
        syscall
    """,
        """
    1:  mov 16(%rdi), %rdx
        movq %rdx, %xmm0
        movq %xmm0, %rcx
        mov %rcx, (%rdi,%rcx)
        nopl 0(%rax)
        add $16, %rdx
        and $0x1f8, %edx
        mov %rdx, 16(%rdi)
        jne 1b
        syscall
    """,
    ),
}


@pytest.mark.parametrize(("isa", "name"), [(isa, name) for isa, name in EACH_CORE if name != "ideal"])
@pytest.mark.parametrize("stretch", [1, 7, 40])
def test_programs_that_take_turns_are_told_to_the_models_as_alone(
    isa: str, name: str, stretch: int, tmp_path: Path
) -> None:
    codes = [assemble(isa, source, tmp_path) for source in TWO_PROGRAMS[isa]]
    alone = []
    for code in codes:
        memory = PhysicalMemory(64 << 20)
        core = core_of(name, isa, memory)
        core.start_trace()
        run(core, isa, space_of(memory, code))
        alone.append(core.take_trace())

    memory = PhysicalMemory(64 << 20)
    core = core_of(name, isa, memory)
    core.start_trace()
    spaces = [space_of(memory, code) for code in codes]
    registers: list[RegisterState | None] = []
    for space in spaces:
        core.set_address_space(space)
        core.write_register(POINTER[isa], DATA)
        core.write_register(SP[isa], STACK_TOP)
        core.write_register(PC[isa], CODE)
        registers.append(core.save_state())
    traces: list[list[tuple[int, int, int, int, bool]]] = [[], []]
    turn = 0
    while any(registers):
        if (state := registers[turn]) is not None:
            core.set_address_space(spaces[turn])
            core.restore_state(state)
            ended = core.run(core.cycles + stretch) == ExitReason.SYSCALL
            traces[turn] += core.take_trace()
            registers[turn] = None if ended else core.save_state()
        turn = 1 - turn
    assert traces == alone


JIT = {
    "aarch64": ("mov x0, #1\nret", "mov x0, #2\nret"),
    "x86_64": ("mov $1, %eax\nret", "mov $2, %eax\nret"),
}
CALL = {"aarch64": "bl . + 0x100", "x86_64": "call . + 0x100"}
STORE = {"aarch64": "str w1, [x9]\nsvc #0", "x86_64": "mov %ebx, (%rdi)\nsyscall"}
VALUE = {"aarch64": 1, "x86_64": 1}  # X1, RBX


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("aliased", [False, True])
def test_a_core_executes_what_another_core_has_stored(isa: str, aliased: bool, tmp_path: Path) -> None:
    memory = PhysicalMemory(64 << 20)
    codes = [assemble(isa, source, tmp_path) for source in JIT[isa]]
    caller = assemble(isa, f"{CALL[isa]}\n{SYSCALL[isa]}", tmp_path)
    frame = frame_of(memory, caller)
    memory.view(frame)[0x100 : 0x100 + len(codes[0])] = codes[0]
    reader = AddressSpace(memory)
    reader.map(CODE, frame, 1, READ | EXECUTE if aliased else READ | WRITE | EXECUTE)
    reader.map(DATA, memory.allocate(), 1, READ | WRITE)
    writer = AddressSpace(memory) if aliased else reader
    stores = CODE + 16 * PAGE_SIZE
    writer.map(stores, frame_of(memory, assemble(isa, STORE[isa], tmp_path)), 1, READ | EXECUTE)
    if aliased:
        writer.map(CODE, frame, 1, READ | WRITE)
    cores = [Core(isa, memory) for _ in range(2)]
    for core, space in zip(cores, (reader, writer), strict=True):
        core.set_address_space(space)

    def call() -> int:
        cores[0].write_register(SP[isa], DATA + 0x800)
        cores[0].write_register(PC[isa], CODE)
        assert cores[0].run(FOREVER) == ExitReason.SYSCALL
        return cores[0].read_register(RESULT[isa])

    def store(code: bytes, offset: int) -> None:
        cores[1].write_register(POINTER[isa], CODE + 0x100 + offset)
        cores[1].write_register(VALUE[isa], int.from_bytes(code[offset : offset + 4], "little"))
        cores[1].write_register(PC[isa], stores)
        assert cores[1].run(FOREVER) == ExitReason.SYSCALL

    where = 0 if isa == "aarch64" else 1  # of the instruction, or of its immediate
    instructions = cores[0].cycles
    results = []
    for number in range(6):
        store(codes[number % 2], where)
        results.append(call())
    assert results == [1, 2] * 3
    assert cores[0].cycles - instructions == 6 * 4  # call, mov, ret, and the system call


def test_saved_registers_have_no_open_monitor(tmp_path: Path) -> None:
    memory = PhysicalMemory(64 << 20)
    core = Core("aarch64", memory)
    space = space_of(memory, assemble("aarch64", "ldxr x0, [x9]\nadd x0, x0, #1\nstxr w1, x0, [x9]\nsvc #0", tmp_path))
    core.set_address_space(space)

    def begin() -> None:
        core.write_register(POINTER["aarch64"], DATA)
        core.write_register(PC["aarch64"], CODE)

    begin()
    assert not core.exclusive_open
    assert core.run(core.cycles + 1) == ExitReason.DEADLINE
    assert core.exclusive_open
    assert core.run(FOREVER) == ExitReason.SYSCALL
    assert (core.exclusive_open, core.read_register(1), space.read_u64(DATA)) == (False, 0, 1)

    begin()
    assert core.run(core.cycles + 2) == ExitReason.DEADLINE
    core.restore_state(core.save_state())
    assert core.run(FOREVER) == ExitReason.SYSCALL
    assert (core.read_register(1), space.read_u64(DATA)) == (1, 1)

    begin()
    assert core.run(core.cycles + 2) == ExitReason.DEADLINE
    core.close_exclusive()
    assert not core.exclusive_open
    assert core.run(FOREVER) == ExitReason.SYSCALL
    assert (core.read_register(1), space.read_u64(DATA)) == (1, 1)


def test_x86_has_no_monitor() -> None:
    core = Core("x86_64", PhysicalMemory(64 << 20))
    core.close_exclusive()
    assert not core.exclusive_open
