"""A machine without Linux: a guest's own kernel keeps page tables, changes privilege, and is counted by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from emulator._native import PAGE_SIZE, CounterBank, GuestPageTables
from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu, ExitReason, Level, WalkFault
from emulator.machine import Hardware, Machine, MachineConfig, Turn
from emulator.probes import Probe
from emulator.sysregs import SysReg
from tests.unit.native.bare import FOREVER, PC, assemble

MEMORY_BYTES = 16 << 20
LOADED_AT = 0x1_0000
USER_CODE, KERNEL_DATA, OLD_DATA, NEW_DATA = LOADED_AT + 0x1000, 0x1_2000, 0x4_0000, 0x4_1000
USER_DATA = 0x3_0000  # virtual: OLD_DATA at first, then NEW_DATA
TABLES, LAST_TABLE = 0x2_0000, 0x2_2000
LOOPS = 1000
SCTLR_EL1, TTBR0_EL1, TCR_EL1 = SysReg(3, 0, 1, 0, 0), SysReg(3, 0, 2, 0, 0), SysReg(3, 0, 2, 0, 2)

# Armv8-A descriptors: a page, accessed, inner shareable; AP[2:1]; UXN and PXN.
PAGE, USER, READ_ONLY, PXN, UXN = 0x703, 1 << 6, 1 << 7, 1 << 53, 1 << 54
PAGES = {
    LOADED_AT: LOADED_AT | PAGE | READ_ONLY | UXN,
    USER_CODE: USER_CODE | PAGE | READ_ONLY | USER | PXN,
    KERNEL_DATA: KERNEL_DATA | PAGE | UXN | PXN,
    TABLES + 0x2000: TABLES + 0x2000 | PAGE | UXN | PXN,
    USER_DATA: OLD_DATA | PAGE | USER | UXN | PXN,
}

# Beside each line: how often it executes, at EL1 before the vectors and in them, and at EL0 behind `user`.
AARCH64 = f"""
        mov     x1, #{TABLES}           // 1   level 1, then 2, then 3
        add     x2, x1, #0x1000         // 1
        add     x3, x1, #0x2000         // 1
        orr     x4, x2, #3              // 1
        str     x4, [x1]                // 1
        orr     x4, x3, #3              // 1
        str     x4, [x2]                // 1
        adr     x5, pages               // 1
        mov     x6, #{len(PAGES)}       // 1
1:      ldp     x7, x8, [x5], #16       // 5
        str     x8, [x3, x7]            // 5
        subs    x6, x6, #1              // 5
        b.ne    1b                      // 5
        msr     ttbr0_el1, x1           // 1
        mov     x4, #25                 // 1   T0SZ: 39 bits of address, so that level 1 is the first
        movk    x4, #0x80, lsl #16      // 1   EPD1: no upper half
        msr     tcr_el1, x4             // 1
        adr     x4, vectors             // 1
        msr     vbar_el1, x4            // 1
        isb                             // 1
        mrs     x4, sctlr_el1           // 1
        orr     x4, x4, #1              // 1   M
        msr     sctlr_el1, x4           // 1
        isb                             // 1
        adr     x4, user                // 1
        msr     elr_el1, x4             // 1
        mov     x4, #0x3c0              // 1   EL0, all masked
        msr     spsr_el1, x4            // 1
        eret                            // 1
pages:  {"; ".join(f".quad {at >> 12 << 3}, {entry}" for at, entry in PAGES.items())}

        .balign 0x800
vectors: .org   vectors + 0x400         //     synchronous, from EL0
        mrs     x15, esr_el1            // 3
        lsr     x15, x15, #26           // 3   EC
        cmp     x15, #0x15              // 3   SVC
        b.ne    abort                   // 3
        cbnz    x0, end                 // 2
        mov     x9, #{TABLES}           // 1
        add     x9, x9, #0x2000         // 1
        ldr     x10, [x9, #{USER_DATA >> 9}] // 1
        add     x10, x10, #{NEW_DATA - OLD_DATA} // 1
        str     x10, [x9, #{USER_DATA >> 9}] // 1
        dsb     ishst                   // 1
        mov     x9, #{USER_DATA >> 12}  // 1
        tlbi    vae1, x9                // 1
        dsb     ish                     // 1
        isb                             // 1
        eret                            // 1
abort:  mrs     x14, far_el1            // 1
        mrs     x13, elr_el1            // 1
        add     x13, x13, #4            // 1
        msr     elr_el1, x13            // 1
        mrs     x13, daif               // 1
        eret                            // 1
end:    wfi                             // 1

        .org    {USER_CODE - LOADED_AT}
user:   mov     x1, #{USER_DATA}        // 1
        ldr     x2, [x1]                // 1   1
        mov     x3, #{LOOPS}            // 1
1:      subs    x3, x3, #1              // 1000
        b.ne    1b                      // 1000
        mov     x0, #0                  // 1
        svc     #0                      // 1
        ldr     x4, [x1]                // 1   2
        add     x5, x2, x4              // 1
        mov     x6, #{KERNEL_DATA & 0xFFFF} // 1
        movk    x6, #{KERNEL_DATA >> 16}, lsl #16 // 1
        str     x5, [x6]                //     faults, and is skipped
        mov     x0, #1                  // 1
        svc     #0                      // 1
"""
AT_KERNEL = 9 + 4 * len(PAGES) + 16 + (3 * 4 + 2 + 11 + 6 + 1)
AT_USER = 3 + 2 * LOOPS + 2 + 4 + 2

SVC, DATA_ABORT_FROM_EL0 = 0x15, 0x24
PERMISSION_FAULT, WRITE_NOT_READ = 0b001100, 1 << 6
FAULT_STATUS = {WalkFault.NONE: PERMISSION_FAULT, WalkFault.TRANSLATION: 0b000100, WalkFault.ACCESS_FLAG: 0b001000}


@dataclass
class Monitor:
    """The software of these machines: it delivers exceptions to the guest, and ends when that waits for interrupts."""

    cpu: Cpu
    tables: GuestPageTables
    on_overflow: Callable[[], None] = lambda: None
    slice_cycles: int = FOREVER
    turns: Callable[[], Turn | None] | None = None  # instead of slices
    ended: bool = False
    taken: list[tuple[int, int]] = field(default_factory=list)  # syndrome, address

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        return {
            ExitReason.SYSCALL: lambda cpu: self.take(SVC << 26 | 1 << 25),
            ExitReason.FAULT: lambda cpu: self.abort(),
            ExitReason.IDLE: lambda cpu: self.end(),
            ExitReason.OVERFLOW: lambda cpu: self.on_overflow(),
            ExitReason.DEADLINE: lambda cpu: None,
        }

    @property
    def next_turn(self) -> Callable[[], Turn | None]:
        return self.turns or self.slices

    def slices(self) -> Turn | None:
        return None if self.ended else (self.cpu, self.cpu.core.cycles + self.slice_cycles)

    def take(self, syndrome: int, address: int | None = None) -> None:
        self.cpu.core.take_exception(0, syndrome, address)
        self.taken.append((syndrome, address or 0))

    def abort(self) -> None:
        core = self.cpu.core
        _, fault, level, *_ = self.tables.walk(core.fault_address)
        status = FAULT_STATUS[WalkFault(fault)] | level | (WRITE_NOT_READ if core.fault_access == 2 else 0)
        self.take(DATA_ABORT_FROM_EL0 + self.cpu.level << 26 | 1 << 25 | status, core.fault_address)

    def end(self) -> None:
        self.ended = True


@dataclass
class Board:
    cpu: Cpu
    monitor: Monitor
    machine: Machine

    @classmethod
    def load(cls, code: bytes, core: str = "ideal") -> Board:
        hardware = Hardware(MachineConfig("aarch64", load_core(core), MEMORY_BYTES))
        frames = MEMORY_BYTES >> 12
        assert hardware.memory.allocate(frames) == 0
        memory = hardware.memory.view(0, frames)
        memory[LOADED_AT : LOADED_AT + len(code)] = code
        memory[OLD_DATA : OLD_DATA + 8] = (1).to_bytes(8, "little")
        memory[NEW_DATA : NEW_DATA + 8] = (2).to_bytes(8, "little")
        cpu = hardware.cpus[0]
        cpu.core.follow_branches()
        tables = cpu.enter_kernel_mode()
        cpu.core.write_register(PC["aarch64"], LOADED_AT)
        monitor = Monitor(cpu, tables)
        return cls(cpu, monitor, Machine(hardware, monitor))

    def store(self, address: int, value: int) -> None:
        offset = address % PAGE_SIZE
        self.machine.memory.view(address // PAGE_SIZE)[offset : offset + 8] = value.to_bytes(8, "little")

    def map(self, pages: Mapping[int, int]) -> None:
        """These descriptors by address, and the MMU on."""
        self.store(TABLES, TABLES + 0x1000 | 3)
        self.store(TABLES + 0x1000, LAST_TABLE | 3)
        for at, entry in pages.items():
            self.store(LAST_TABLE + (at >> 9), entry)
        core = self.cpu.core
        for register, value in ((TTBR0_EL1, TABLES), (TCR_EL1, 25 | 1 << 23), (SCTLR_EL1, 1)):
            core.write_kernel_register(register.encoding, core.read_kernel_register(register.encoding) | value)

    def by_level(self, probe: Probe) -> tuple[int, int]:
        return self.cpu.core.total(probe, Level.USER), self.cpu.core.total(probe, Level.KERNEL)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble("aarch64", AARCH64, tmp_path_factory.mktemp("own_kernel"))


CORES = ["ideal", "cortex-a55", "cortex-a72"]


@pytest.mark.parametrize("core", CORES)
def test_kernel_and_user_mode_are_counted_apart(core: str, code: bytes) -> None:
    board = Board.load(code, core)
    assert board.cpu.level is Level.KERNEL
    board.machine.run_to_the_end()
    assert board.by_level(Probe.INST_RETIRED) == (AT_USER, AT_KERNEL)
    # Loads and stores: at EL0 two; at EL1 two, two for each page, two for the descriptor that changes.
    loads, stores = board.by_level(Probe.LOAD), board.by_level(Probe.STORE)
    assert (loads[0] + stores[0], loads[1] + stores[1]) == (2, 2 + 2 * len(PAGES) + 2)
    assert board.by_level(Probe.BR_COND_TAKEN) == (LOOPS - 1, len(PAGES) - 1 + 2)


def test_what_is_mapped_otherwise_is_found_there(code: bytes) -> None:
    board = Board.load(code)
    board.machine.run_to_the_end()
    core = board.cpu.core
    assert [core.read_register(number) for number in (2, 4, 5)] == [1, 2, 3]
    assert board.monitor.tables.lookup(USER_DATA) == (NEW_DATA >> 12, 3)


def test_an_access_that_user_mode_may_not_make_is_told_to_the_kernel(code: bytes) -> None:
    board = Board.load(code)
    board.machine.run_to_the_end()
    syscall = (SVC << 26 | 1 << 25, 0)
    fault = (DATA_ABORT_FROM_EL0 << 26 | 1 << 25 | WRITE_NOT_READ | PERMISSION_FAULT | 3, KERNEL_DATA)
    assert board.monitor.taken == [syscall, fault, syscall]
    assert board.cpu.core.read_register(14) == KERNEL_DATA  # FAR_EL1, as the guest's handler has read it
    assert board.cpu.core.read_register(13) == 0x3C0  # DAIF


def sampled(board: Board, period: int, levels: int) -> list[tuple[int, int]]:
    """(pc, instructions retired) at each `period`-th instruction at those levels."""
    core = board.cpu.core
    bank: CounterBank = core.add_bank(1)
    bank.set_width(0, 32)
    bank.connect(0, 1 << Probe.INST_RETIRED)
    bank.filter(0, levels)
    samples: list[tuple[int, int]] = []

    def restart() -> None:
        bank.clear_overflowed(1)
        bank.write(0, (1 << 32) - period)
        bank.arm(1)

    def on_overflow() -> None:
        assert bank.overflowed() == 1
        samples.append((core.last_retired_pc, core.total(Probe.INST_RETIRED)))
        restart()

    restart()
    board.monitor.on_overflow = on_overflow
    board.machine.run_to_the_end()
    return samples


EITHER = 1 << Level.USER | 1 << Level.KERNEL


@pytest.mark.parametrize("core", ["ideal", "cortex-a55"])
def test_every_instruction_can_be_stopped_at(core: str, code: bytes) -> None:
    every = sampled(Board.load(code, core), 1, EITHER)
    assert [retired for _, retired in every] == list(range(1, AT_USER + AT_KERNEL + 1))
    in_user = [(pc, retired) for pc, retired in every if USER_CODE <= pc < KERNEL_DATA]
    assert len(in_user) == AT_USER
    for period in (2, 3, 7):
        assert sampled(Board.load(code, core), period, EITHER) == every[period - 1 :: period]
    for period in (1, 5):
        assert sampled(Board.load(code, core), period, 1 << Level.USER) == in_user[period - 1 :: period]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("slice_cycles", [1, 2, 17])
def test_slices_change_nothing(slice_cycles: int, core: str, code: bytes) -> None:
    whole, sliced = Board.load(code, core), Board.load(code, core)
    sliced.monitor.slice_cycles = slice_cycles
    whole.machine.run_to_the_end()
    sliced.machine.run_to_the_end()
    for probe in Probe:
        assert whole.by_level(probe) == sliced.by_level(probe), probe.name
    assert whole.cpu.core.registers() == sliced.cpu.core.registers()
    assert whole.monitor.taken == sliced.monitor.taken


CALLED, ALIAS, OTHER, ROUNDS = 0x4_0000, 0x5_0000, 0x6_0000, 50
ENTRY = LAST_TABLE + (CALLED >> 9)

# A function that is written anew through another mapping, and then mapped elsewhere, in each round.
REWRITES = f"""
        mov     x20, #{CALLED}          // 1
        mov     x21, #{ALIAS}           // 1
        movz    x22, #{ENTRY >> 16}, lsl #16 // 1
        movk    x22, #{ENTRY & 0xFFFF}  // 1
        ldr     x23, [x22]              // 1
        mov     x24, #{CALLED ^ OTHER}  // 1
        movz    w25, #0xd280, lsl #16   // 1   mov x0, #0
        mov     x26, #0                 // 1
        mov     x27, #{ROUNDS}          // 1
1:      add     w25, w25, #1 << 5       // 1 a round
        str     w25, [x21]              // 1
        dsb     ish                     // 1
        isb                             // 1
        blr     x20                     // 3   the round's number
        add     x26, x26, x0            // 1
        eor     x23, x23, x24           // 1
        str     x23, [x22]              // 1
        dsb     ish                     // 1
        tlbi    vmalle1                 // 1
        isb                             // 1
        blr     x20                     // 3   1000
        add     x26, x26, x0            // 1
        eor     x23, x23, x24           // 1
        str     x23, [x22]              // 1
        dsb     ish                     // 1
        tlbi    vmalle1                 // 1
        isb                             // 1
        subs    x27, x27, #1            // 1
        b.ne    1b                      // 1
        wfi                             // 1
"""
MOVE_1000, RETURN = 0xD280_7D00, 0xD65F_03C0


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("slice_cycles", [FOREVER, 29])
def test_code_that_changes_or_moves_is_executed_as_it_is_now(slice_cycles: int, core: str, tmp_path: Path) -> None:
    board = Board.load(assemble("aarch64", REWRITES, tmp_path), core)
    board.monitor.slice_cycles = slice_cycles
    board.store(CALLED, RETURN << 32)
    board.store(OTHER, RETURN << 32 | MOVE_1000)
    code, data = PAGE | READ_ONLY | UXN, PAGE | UXN | PXN
    board.map(
        {
            LOADED_AT: LOADED_AT | code,
            CALLED: CALLED | code,
            ALIAS: CALLED | data,
            LAST_TABLE: LAST_TABLE | data,
        }
    )
    board.machine.run_to_the_end()
    assert board.cpu.core.read_register(26) == sum(range(ROUNDS + 1)) + 1000 * ROUNDS
    assert board.by_level(Probe.INST_RETIRED) == (0, 9 + 24 * ROUNDS + 1)


# EL1: loads and stores that may do what user mode may, then a wait for an interrupt.
FOR_USER = f"""
        mov     x1, #{KERNEL_DATA & 0xFFFF} // 1
        movk    x1, #{KERNEL_DATA >> 16}, lsl #16 // 1
        mov     x6, #{USER_DATA}        // 1
        adr     x7, vectors             // 1
        msr     vbar_el1, x7            // 1
        ldr     x2, [x1]                // 1
        ldtr    x3, [x1]                //     faults, and is skipped: 4
        ldtr    x4, [x6]                // 1
        sttr    x4, [x1]                //     likewise
        msr     daifclr, #2             // 1
1:      cbz     x5, 1b                  //     until the interrupt
        wfi
        .balign 0x800
vectors: .org   vectors + 0x200
        mrs     x13, elr_el1
        add     x13, x13, #4
        msr     elr_el1, x13
        eret
        .org    vectors + 0x280
        mov     x5, #1
        eret
"""
IRQ, INTERRUPT_AT = 1, 100


@pytest.mark.parametrize("slice_cycles", [INTERRUPT_AT, 1])
def test_loads_for_user_mode_and_interrupts(slice_cycles: int, tmp_path: Path) -> None:
    board = Board.load(assemble("aarch64", FOR_USER, tmp_path))
    board.map(
        {
            LOADED_AT: LOADED_AT | PAGE | READ_ONLY | UXN,
            KERNEL_DATA: KERNEL_DATA | PAGE | UXN | PXN,
            USER_DATA: OLD_DATA | PAGE | USER | UXN | PXN,
        }
    )
    board.store(KERNEL_DATA, 5)
    core, monitor = board.cpu.core, board.monitor

    def next_turn() -> Turn | None:
        if core.cycles == INTERRUPT_AT:
            core.take_exception(IRQ)
        until = min(core.cycles + slice_cycles, INTERRUPT_AT) if core.cycles < INTERRUPT_AT else FOREVER
        return None if monitor.ended else (board.cpu, until)

    machine = board.machine
    monitor.turns = next_turn
    machine.run_to_the_end()
    aborts = [(syndrome >> 26, syndrome & 0x7F, address) for syndrome, address in monitor.taken]
    fault = PERMISSION_FAULT | 3
    assert aborts == [(0x25, fault, KERNEL_DATA), (0x25, WRITE_NOT_READ | fault, KERNEL_DATA)]
    assert [core.read_register(number) for number in (2, 3, 4, 5)] == [5, 0, 1, 1]
    # Behind the interrupt: its handler's two, one more look, and WFI.
    assert board.by_level(Probe.INST_RETIRED) == (0, INTERRUPT_AT + 4)
