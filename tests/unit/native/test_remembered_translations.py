"""What is remembered of a guest's own page tables and code is forgotten when it must be, and executed as it is now."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu, ExitReason
from emulator.machine import Hardware, MachineConfig
from emulator.probes import Probe
from emulator.sysregs import SysReg
from tests.unit.native.bare import FOREVER, PC, assemble
from tests.unit.native.own_x86 import (
    PRESENT,
    PTES,
    RAX,
    RBP,
    RBX,
    RCX,
    RDI,
    RDX,
    RSI,
    RSP,
    WRITABLE,
    Pc,
)
from tests.unit.native.test_own_kernel import (
    LAST_TABLE,
    LOADED_AT,
    MEMORY_BYTES,
    PAGE,
    PXN,
    READ_ONLY,
    SCTLR_EL1,
    TCR_EL1,
    TTBR0_EL1,
    USER,
    UXN,
    Board,
)

CORES = ["ideal", "cortex-a55"]
TTBR1_EL1 = SysReg(3, 0, 2, 0, 1)
TABLE, ROUNDS = 3, 20
UPPER = 0xFFFF_FF80_0000_0000  # the lowest of 39 bits
# Three levels of tables each: of the kernel's upper half, and of two processes; and one that is empty.
KERNEL, FIRST, SECOND, NOTHING = 0x2_4000, 0x2_8000, 0x2_C000, 0x3_0000
FIRST_CODE, SECOND_CODE, FIRST_DATA, SECOND_DATA = 0x5_0000, 0x5_1000, 0x5_2000, 0x5_3000
CODE, DATA, OWN_CODE, OWN_DATA = 0x6_0000, 0x6_1000, 0x7_0000, 0x7_1000  # virtual, in both processes
CODE_OF_USER, DATA_OF_USER = PAGE | READ_ONLY | USER | PXN, PAGE | USER | UXN | PXN
CODE_OF_KERNEL, DATA_OF_KERNEL = PAGE | READ_ONLY | UXN, PAGE | UXN | PXN


def make_tables(board: Board, at: int, pages: dict[int, int]) -> None:
    """Below 2 MiB of a half of 39 bits."""
    board.store(at, at + 0x1000 | TABLE)
    board.store(at + 0x1000, at + 0x2000 | TABLE)
    for address, entry in pages.items():
        board.store(at + 0x2000 + (address >> 9), entry)


def make_processes(board: Board) -> None:
    make_tables(board, FIRST, {CODE: FIRST_CODE | CODE_OF_USER, DATA: FIRST_DATA | DATA_OF_USER})
    make_tables(board, SECOND, {CODE: SECOND_CODE | CODE_OF_USER, DATA: SECOND_DATA | DATA_OF_USER})
    for data, value in ((FIRST_DATA, 1), (SECOND_DATA, 2)):
        board.store(data, value)


def switch_on(board: Board, control: int, **registers: int) -> None:
    core = board.cpu.core
    for register, value in (
        (TTBR0_EL1, registers.get("lower", 0)),
        (TTBR1_EL1, registers.get("upper", 0)),
        (TCR_EL1, control),
        (SCTLR_EL1, core.read_kernel_register(SCTLR_EL1.encoding) | 1),
    ):
        core.write_kernel_register(register.encoding, value)


# A kernel in the upper half and two processes, which take turns. By empty tables it keeps itself from theirs, as
# Linux does on cores without PAN. No TLBI. Beside each line: how often it executes in a turn.
PROCESSES = """
        adr     x4, vectors             // 1 in all, as the next
        msr     vbar_el1, x4
turn:   msr     ttbr0_el1, x20          // 1
        isb                             // 1
        ldtr    x5, [x21]               // 1    1 or 2
        add     x26, x26, x5            // 1
        msr     elr_el1, x22            // 1
        msr     spsr_el1, x24           // 1
        eret                            // 1
        .balign 0x800
vectors: .org   vectors + 0x200
        mrs     x13, elr_el1            // 1    the abort below
        add     x13, x13, #4            // 1
        add     x28, x28, #1            // 1
        msr     elr_el1, x13            // 1
        eret                            // 1
        .org    vectors + 0x400
        msr     ttbr0_el1, x19          // 1
        isb                             // 1
        ldtr    x5, [x21]               //      aborts
        add     x26, x26, x0            // 1
        eor     x20, x20, x23           // 1
        subs    x27, x27, #1            // 1
        b.ne    turn                    // 1
        wfi                             // 1 in all
"""
PROCESS = """
        ldr     x0, [x21]               // 1 or 2
        add     x0, x0, #{}
        svc     #0
"""


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("asid", [0, 5])
def test_processes_take_turns_without_a_word_of_it(asid: int, core: str, tmp_path: Path) -> None:
    board = Board.load(assemble("aarch64", PROCESSES, tmp_path), core)
    make_processes(board)
    make_tables(board, KERNEL, {at: at | CODE_OF_KERNEL for at in (LOADED_AT, LOADED_AT + 0x1000)})
    for frame, addend in ((FIRST_CODE, 10), (SECOND_CODE, 20)):
        code = assemble("aarch64", PROCESS.format(addend), tmp_path)
        board.machine.memory.view(frame >> 12)[: len(code)] = code
    switch_on(board, 25 | 25 << 16 | 0b10 << 30, lower=NOTHING, upper=KERNEL)
    native = board.cpu.core
    second = SECOND | asid << 48
    start = {PC["aarch64"]: UPPER + LOADED_AT, 19: NOTHING, 21: DATA, 22: CODE, 24: 0x3C0, 27: 2 * ROUNDS}
    for register, value in {**start, 20: FIRST, 23: FIRST ^ second}.items():
        native.write_register(register, value)
    board.machine.run_to_the_end()
    # The kernel reads 1 and 2; the processes add 10 and 20 to what they read.
    assert native.read_register(26) == ROUNDS * (1 + 11 + 2 + 22)
    assert native.read_register(28) == 2 * ROUNDS  # aborts
    assert board.by_level(Probe.INST_RETIRED) == (3 * 2 * ROUNDS, 2 + (7 + 5 + 6) * 2 * ROUNDS + 1)


# A kernel in the lower half, with code and data that are others in the other address space.
LOCAL = """
turn:   msr     ttbr0_el1, x20          // 1 a turn
        isb                             // 1
        ldr     x5, [x21]               // 1    1 or 2
        add     x26, x26, x5            // 1
        blr     x22                     // 3    10 or 20
        add     x26, x26, x0            // 1
        eor     x20, x20, x23           // 1
        subs    x27, x27, #1            // 1
        b.ne    turn                    // 1
        wfi                             // 1
"""


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("asid", [0, 5])
def test_a_kernel_whose_own_code_is_of_one_address_space(asid: int, core: str, tmp_path: Path) -> None:
    board = Board.load(assemble("aarch64", LOCAL, tmp_path), core)
    for at, code, data, value in ((FIRST, FIRST_CODE, FIRST_DATA, 1), (SECOND, SECOND_CODE, SECOND_DATA, 2)):
        pages = {
            LOADED_AT: LOADED_AT | CODE_OF_KERNEL,
            OWN_CODE: code | CODE_OF_KERNEL,
            OWN_DATA: data | DATA_OF_KERNEL,
        }
        make_tables(board, at, pages)
        board.store(data, value)
        returns = assemble("aarch64", f"mov x0, #{10 * value}; ret", tmp_path)
        board.machine.memory.view(code >> 12)[: len(returns)] = returns
    switch_on(board, 25 | 1 << 23, lower=FIRST)
    native = board.cpu.core
    start = {20: FIRST, 21: OWN_DATA, 22: OWN_CODE, 23: FIRST ^ (SECOND | asid << 48), 27: 2 * ROUNDS}
    for register, value in start.items():
        native.write_register(register, value)
    board.machine.run_to_the_end()
    assert native.read_register(26) == ROUNDS * (1 + 10 + 2 + 20)
    assert board.by_level(Probe.INST_RETIRED) == (0, 11 * 2 * ROUNDS + 1)


BLOCK, ELSEWHERE = 0x20_0000, 0x40_0000  # of 2 MiB each
# TLBI of an address in a block is for the block: Arm ARM DDI 0487, "TLB maintenance instructions".
REMAPS_A_BLOCK = f"""
        ldr     x3, [x1, #0x1000]       // 1    1
        ldr     x4, [x1, #0x3000]       // 1    2
        ldr     x5, [x2, #8]            // 1
        eor     x5, x5, #{ELSEWHERE ^ BLOCK} // 1
        str     x5, [x2, #8]            // 1
        dsb     ish                     // 1
        lsr     x6, x1, #12             // 1
        tlbi    vae1, x6                // 1
        dsb     ish                     // 1
        isb                             // 1
        ldr     x7, [x1, #0x1000]       // 1    3
        ldr     x8, [x1, #0x3000]       // 1    4
        wfi                             // 1
"""
BLOCK_OF_DATA = PAGE & ~2 | UXN | PXN


@pytest.mark.parametrize("core", CORES)
def test_a_block_is_remapped_as_a_whole(core: str, tmp_path: Path) -> None:
    board = Board.load(assemble("aarch64", REMAPS_A_BLOCK, tmp_path), core)
    level2 = LAST_TABLE - 0x1000
    board.store(level2 + 8, BLOCK | BLOCK_OF_DATA)
    for value, address in enumerate((BLOCK + 0x1000, BLOCK + 0x3000, ELSEWHERE + 0x1000, ELSEWHERE + 0x3000), 1):
        board.store(address, value)
    board.map({LOADED_AT: LOADED_AT | CODE_OF_KERNEL, level2: level2 | DATA_OF_KERNEL})
    board.cpu.core.write_register(1, BLOCK)
    board.cpu.core.write_register(2, level2)
    board.machine.run_to_the_end()
    assert [board.cpu.core.read_register(number) for number in (3, 4, 7, 8)] == [1, 2, 3, 4]
    assert board.by_level(Probe.INST_RETIRED) == (0, 13)


CALLS, CALLED, STORES = LOADED_AT, 0x5_0000, LOADED_AT + 0x1000
CALLING = f"mov x20, #{CALLED}; blr x20; wfi"  # and two in what is called
STORING = f"mov x20, #{CALLED}; str w1, [x20]; wfi"
MOVE, RETURN = 0xD280_0000, 0xD65F_03C0  # MOV X0, #0; RET


def returns(value: int) -> int:
    return MOVE | value << 5


@pytest.mark.parametrize("core", CORES)
def test_devices_write_code_that_has_run(core: str, tmp_path: Path) -> None:
    board = Board.load(assemble("aarch64", CALLING, tmp_path), core)
    for value in range(1, 6):
        board.machine.memory.write(CALLED >> 12, 0, struct.pack("<II", returns(value), RETURN))
        board.monitor.ended = False
        board.cpu.core.write_register(PC["aarch64"], CALLS)
        board.machine.run_to_the_end()
        assert board.cpu.core.read_register(0) == value
    assert board.by_level(Probe.INST_RETIRED) == (0, 5 * 5)


@pytest.mark.parametrize("core", CORES)
def test_another_cpu_stores_into_code_that_has_run(core: str, tmp_path: Path) -> None:
    hardware = Hardware(MachineConfig("aarch64", load_core(core), MEMORY_BYTES, cpus=2))
    hardware.memory.allocate(MEMORY_BYTES >> 12)
    for at, text in ((CALLS, CALLING), (STORES, STORING)):
        code = assemble("aarch64", text, tmp_path)
        hardware.memory.view(at >> 12)[: len(code)] = code
    hardware.memory.view(CALLED >> 12)[4:8] = struct.pack("<I", RETURN)
    for cpu in hardware.cpus:
        cpu.enter_kernel_mode()

    def run(cpu: Cpu, at: int) -> int:
        cpu.core.write_register(PC["aarch64"], at)
        assert cpu.core.run(FOREVER) == ExitReason.IDLE
        return cpu.core.read_register(0)

    for value in range(1, 9):
        writer, other = hardware.cpus[value % 2], hardware.cpus[1 - value % 2]
        writer.core.write_register(1, returns(value))
        run(writer, STORES)
        assert [run(cpu, CALLS) for cpu in (other, writer, other)] == [value] * 3
    # Of eight rounds each has stored in four (3), called once then (5), and twice in the four others.
    assert [cpu.core.total(Probe.INST_RETIRED) for cpu in hardware.cpus] == [4 * (3 + 5) + 4 * 2 * 5] * 2


# The page is another from the store on, and nothing says so before TLBI. In between the core has the engine forget all:
# code executes where none has.
REMAPS_A_PAGE = """
        ldr     x3, [x1]                // 1    1
        str     x5, [x2]                // 1
        blr     x10                     // 2    RET
        ldr     x4, [x1]                // 1    1
        lsr     x6, x1, #12             // 1
        tlbi    vae1, x6                // 1
        dsb     ish                     // 1
        isb                             // 1
        ldr     x7, [x1]                // 1    2
        wfi                             // 1
"""


@pytest.mark.parametrize("core", CORES)
def test_a_page_is_what_it_was_until_tlbi(core: str, tmp_path: Path) -> None:
    """Whoever watches: the architecture allows either."""
    board = Board.load(assemble("aarch64", REMAPS_A_PAGE, tmp_path), core)
    board.store(CALLED, RETURN)
    board.map(
        {
            LOADED_AT: LOADED_AT | CODE_OF_KERNEL,
            CALLED: CALLED | CODE_OF_KERNEL,
            DATA: FIRST_DATA | DATA_OF_KERNEL,
            LAST_TABLE: LAST_TABLE | DATA_OF_KERNEL,
        }
    )
    for data, value in ((FIRST_DATA, 1), (SECOND_DATA, 2)):
        board.store(data, value)
    start = {1: DATA, 2: LAST_TABLE + (DATA >> 9), 5: SECOND_DATA | DATA_OF_KERNEL, 10: CALLED}
    for register, value in start.items():
        board.cpu.core.write_register(register, value)
    board.machine.run_to_the_end()
    assert [board.cpu.core.read_register(number) for number in (3, 4, 7)] == [1, 1, 2]
    assert board.by_level(Probe.INST_RETIRED) == (0, 11)


INVALIDATES_A_PAGE = """
        mov     (%rdi), %eax            # 1     1
        mov     %rcx, (%rdx)            # 1
        call    *%rsi                   # 2     RET
        mov     (%rdi), %ebx            # 1     1
        invlpg  (%rdi)                  # 1
        mov     (%rdi), %ebp            # 1     2
        hlt                             # 1
"""


@pytest.mark.parametrize("core", ["ideal", "skylake"])
def test_a_page_is_what_it_was_until_invlpg(core: str, tmp_path: Path) -> None:
    pc = Pc.load(assemble("x86_64", INVALIDATES_A_PAGE, tmp_path), core)
    data = PRESENT | WRITABLE
    pages = {LOADED_AT: LOADED_AT, CALLED: CALLED, DATA: FIRST_DATA, PTES: PTES, OWN_DATA: OWN_DATA}
    pc.start_64({address: frame | data for address, frame in pages.items()})
    pc.write(CALLED, b"\xc3")
    for frame, value in ((FIRST_DATA, 1), (SECOND_DATA, 2)):
        pc.store(frame, value)
    start = {RDI: DATA, RDX: PTES + (DATA >> 9), RCX: SECOND_DATA | data, RSI: CALLED, RSP: OWN_DATA + 0x800}
    for register, value in start.items():
        pc.cpu.core.write_register(register, value)
    pc.run()
    assert [pc.cpu.core.read_register(number) for number in (RAX, RBX, RBP)] == [1, 1, 2]
    assert pc.by_level(Probe.INST_RETIRED) == (0, 8)
