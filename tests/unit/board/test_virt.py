"""The board virt, by bare-metal programs whose counts and exceptions are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.board.board_cpu import PC
from emulator.board.generic_timer import VIRTUAL_INTERRUPT
from emulator.cpu import Cpu, Level
from emulator.probes import Probe
from tests.unit.board.booted import LOADED_AT, boot, private_interrupt_on

CORES = ("ideal", "cortex-a55", "cortex-a72")
KERNEL = Level.KERNEL


@pytest.mark.parametrize("core", CORES)
def test_a_program_says_something_and_turns_the_board_off(core: str, tmp_path: Path) -> None:
    source = """
        adr     x1, text            // 1
1:      ldrb    w2, [x1], #1        // 3
        cbz     w2, off             // 3
        strb    w2, [x20]           // 2
        b       1b                  // 2
text:   .asciz  "hi"
        .balign 4
    """
    booted = boot(source, tmp_path, core=core)
    assert (booted.output, booted.board.ended, booted.messages) == (b"hi", Ended.OFF, [])
    core_ = booted.cpus[0].core
    # with one instruction before, and two behind; HVC is firmware's to count
    assert core_.total(Probe.INST_RETIRED, KERNEL) == 1 + 1 + 3 + 3 + 2 + 2 + 2
    assert (core_.total(Probe.LOAD, KERNEL), core_.total(Probe.STORE, KERNEL)) == (3, 2)


@pytest.mark.parametrize(
    ("instruction", "stored", "sent"),
    [
        ("str w1, [x20]", 0x41, b"A"),
        ("strh w1, [x20, #0]!", 0x42, b"B"),
        ("strb w1, [x20], #4", 0x43, b"C"),
        ("str x1, [x20, xzr]", 0x44, b"D"),
        ("stlr w1, [x20]", 0x45, b"E"),
        ("sturb w1, [x20]", 0x46, b"F"),
        ("str wzr, [x20]", 0x47, b"\0"),
    ],
)
def test_devices_are_stored_to_by_all_simple_forms(instruction: str, stored: int, sent: bytes, tmp_path: Path) -> None:
    booted = boot(f"mov x1, #{stored}\n{instruction}\n", tmp_path)
    assert (booted.output, booted.messages) == (sent, [])
    assert booted.register(20) & 0xFFF == (4 if instruction.endswith("#4") else 0)


@pytest.mark.parametrize("core", CORES)
def test_an_access_to_a_device_may_begin_a_line_of_code(core: str, tmp_path: Path) -> None:
    booted = boot("mov w1, #65\nb 1f\n.balign 64\n1: strb w1, [x20]\n", tmp_path, core=core)
    assert (booted.output, booted.board.ended) == (b"A", Ended.OFF)


@pytest.mark.parametrize("core", ["cortex-a55", "cortex-a72"])
def test_accesses_to_devices_at_ever_new_places_do_not_fill_the_hosts_memory(core: str, tmp_path: Path) -> None:
    """What is kept of each for its time is dropped at some number, and nothing else follows from that."""
    source = "mov w1, #65\nmov w2, #3\n1:\n" + "strb w1, [x20]\n" * 40 + "subs w2, w2, #1\nb.ne 1b\n"

    def keep_few(cpus: Sequence[Cpu]) -> None:
        cpus[0].core.keep_blocks(7)

    many, few = (boot(source, tmp_path, core=core, watch=by) for by in (None, keep_few))
    assert many.output == few.output == b"A" * 120
    assert many.cpus[0].core.cycles == few.cpus[0].core.cycles


# The flag register of the UART reads 0x90: sent, and nothing received.
@pytest.mark.parametrize(
    ("instruction", "read"),
    [
        ("ldr w1, [x20, #0x18]", 0x90),
        ("ldrsb x1, [x20, #0x18]", 0xFFFF_FFFF_FFFF_FF90),
        ("ldrsb w1, [x20, #0x18]", 0xFFFF_FF90),
        ("ldrsh x1, [x20, #0x18]", 0x90),
        ("ldar w1, [x21]", 0x90),
    ],
)
def test_devices_are_loaded_from(instruction: str, read: int, tmp_path: Path) -> None:
    booted = boot(f"add x21, x20, #0x18\nmov x1, #-1\n{instruction}\n", tmp_path)
    assert (booted.register(1), booted.messages) == (read, [])


VECTORS = """
        .balign 0x800
vectors: .org   vectors + 0x200         // synchronous, from EL1
        mrs     x10, esr_el1
        mrs     x11, far_el1
        mrs     x12, elr_el1
        b       off
        .org    vectors + 0x280         // IRQ, from EL1
        mrs     x13, s3_0_c12_c12_0     // ICC_IAR1_EL1
        mrs     x14, elr_el1
        msr     s3_0_c12_c12_1, x13     // ICC_EOIR1_EL1
        mov     x15, #3
        msr     cntv_ctl_el0, x15       // masked
        eret
        .org    vectors + 0x800
"""
WITH_VECTORS = "adr x0, vectors\nmsr vbar_el1, x0\nisb\nb begin\n" + VECTORS + "begin:\n"
DATA_ABORT, BRK, UNKNOWN, IL, EXTERNAL = 0x25 << 26, 0x3C << 26, 0, 1 << 25, 0x10
WRITE = 1 << 6


FP_ACCESS = 0x1FE0_0000  # EC 7, IL, CV and COND 0b1110
NO_VECTORS = "msr cpacr_el1, xzr\nisb\n"
NOWHERE = "movz x1, #0x0b00, lsl #16\nfault: "


@pytest.mark.parametrize(
    ("source", "syndrome", "address", "says"),
    [
        (NOWHERE + "ldr w2, [x1, #8]", DATA_ABORT | IL | EXTERNAL, 0x0B00_0008, "a load"),
        (NOWHERE + "str w2, [x1]", DATA_ABORT | IL | EXTERNAL | WRITE, 0x0B00_0000, "a store"),
        ("fault: ldp w2, w3, [x20]", DATA_ABORT | IL | EXTERNAL, 0x0900_0000, "instruction 0x29400e82"),
        ("fault: brk #77", BRK | IL | 77, None, ""),
        ("fault: udf #0", UNKNOWN | IL, None, ""),
        (NO_VECTORS + "fault: fmov d0, x1", FP_ACCESS, None, ""),
        (NO_VECTORS + "fault: ldr q3, [x20]", FP_ACCESS, None, ""),
        (NO_VECTORS + "fault: mrs x1, fpsr", FP_ACCESS, None, ""),
        ("fault: mrs x1, s3_0_c15_c2_3", UNKNOWN | IL, None, "MRS of S3_0_C15_C2_3"),
    ],
)
def test_what_goes_wrong_is_told_to_the_guest_and_what_is_not_modelled_to_the_user(
    source: str, syndrome: int, address: int | None, says: str, tmp_path: Path
) -> None:
    booted = boot(WITH_VECTORS + f"adr x19, fault\n{source}\n", tmp_path)
    assert booted.board.ended is Ended.OFF
    assert (booted.register(10), booted.register(12)) == (syndrome, booted.register(19))
    if address is not None:
        assert booted.register(11) == address
    assert [says in message for message in booted.messages] == ([True] if says else [])


# x16 counts the turns of the loop, two instructions each.
TIMER = (
    private_interrupt_on(VIRTUAL_INTERRUPT)
    + """
        mov     x0, #TICKS
        msr     cntv_tval_el0, x0
        mov     x0, #1
        msr     cntv_ctl_el0, x0
armed:  mrs     x17, cntvct_el0
        msr     daifclr, #2
"""
)


@pytest.mark.parametrize("core", CORES)
def test_a_timer_interrupts_at_its_tick(core: str, tmp_path: Path) -> None:
    loop = "1: add x16, x16, #1\ncbz x13, 1b\nmrs x18, cntvct_el0\n"
    booted = boot(WITH_VECTORS + TIMER.replace("TICKS", "1000") + loop, tmp_path, core=core)
    assert booted.register(13) == VIRTUAL_INTERRUPT
    compare = booted.board.cpus[0].timer.virtual.compare
    late = 2 if core == "ideal" else 20  # what the handler takes that finds nothing in the caches
    assert booted.register(17) < compare <= booted.register(18) <= compare + late
    if core == "ideal":  # a tick is 16 ns, of as many instructions: the loop takes all of them
        assert abs(2 * booted.register(16) - 16 * (compare - booted.register(17))) <= 16 + 4


def test_a_cpu_that_waits_goes_on_when_the_timer_is_due(tmp_path: Path) -> None:
    booted = boot(WITH_VECTORS + TIMER.replace("TICKS", "50000") + "wfi\nmrs x18, cntvct_el0\n", tmp_path)
    assert booted.register(13) == VIRTUAL_INTERRUPT
    compare = booted.board.cpus[0].timer.virtual.compare
    assert booted.register(18) - compare <= 2
    core = booted.cpus[0].core
    assert core.cycles - core.total(Probe.INST_RETIRED) == pytest.approx(16 * 50_000, abs=64)


def test_an_interrupt_that_is_masked_comes_when_it_is_not(tmp_path: Path) -> None:
    source = TIMER.replace("TICKS", "10").replace("msr     daifclr, #2", "mov x16, #500")
    source += "1: subs x16, x16, #1\nb.ne 1b\nmsr daifclr, #2\nunmasked: mov x18, #1\nadr x19, unmasked\n"
    booted = boot(WITH_VECTORS + source, tmp_path)
    assert (booted.register(13), booted.register(16)) == (VIRTUAL_INTERRUPT, 0)
    assert booted.register(14) == booted.register(19)  # right behind the instruction that unmasks it


# Without vectors of its own a program's exceptions go to 0x200, where nothing is.
@pytest.mark.parametrize("core", CORES)
def test_a_vector_that_is_nowhere_ends_the_run_in_one_line(core: str, tmp_path: Path) -> None:
    booted = boot("udf #0\n", tmp_path, core=core)
    assert booted.board.ended is Ended.NONE_ON
    assert booted.messages == [
        "CPU 0 cannot fetch its exception vector at 0x200: instruction abort (external), ESR 0x86000010, FAR 0x200;"
        " it came there from 0x200"
    ]


def test_a_vector_that_is_not_mapped(tmp_path: Path) -> None:
    """With the MMU on and an empty table."""
    source = """
        adr     x0, table
        msr     ttbr0_el1, x0
        movz    x0, #25
        movk    x0, #0x8019, lsl #16
        msr     tcr_el1, x0
        mrs     x0, sctlr_el1
        orr     x0, x0, #1
        msr     sctlr_el1, x0
        isb
        .balign 4096
table:  .zero   4096
    """
    booted = boot(source, tmp_path)
    assert booted.board.ended is Ended.NONE_ON
    assert "cannot fetch its exception vector at 0x200: instruction abort (translation, level 1)" in booted.messages[0]


def test_the_last_cpu_turns_itself_off(tmp_path: Path) -> None:
    assert boot("movz w0, #0x8400, lsl #16\nmovk w0, #2\nhvc #0\n", tmp_path).board.ended is Ended.NONE_ON


def test_waiting_for_nothing_ends_the_run(tmp_path: Path) -> None:
    assert boot("wfi\n", tmp_path).board.ended is Ended.IDLE


@pytest.mark.parametrize("core", ["ideal", "cortex-a55"])
def test_a_limit_of_instructions(core: str, tmp_path: Path) -> None:
    booted = boot("b .\n", tmp_path, core=core, instructions=100_000)
    retired = booted.cpus[0].core.total(Probe.INST_RETIRED)
    assert booted.board.ended is Ended.LIMIT
    assert 0 <= retired - 100_000 <= (0 if core == "ideal" else 16)
    assert booted.register(PC) == LOADED_AT + 4


# The second CPU adds to a word 1000 times, exclusively, as the first does; then it interrupts the first.
TWO_CPUS = """
        movz    w0, #0xc400, lsl #16    // CPU_ON, of 64 bits
        movk    w0, #3
        mov     x1, #1
        adr     x2, second
        mov     x3, #7
        hvc     #0
        mov     x28, x0
        adr     x5, word
        bl      adds
        wfi                             // until it is pending, though it is masked
        msr     daifclr, #2
        b       off
adds:   mov     x6, #1000
1:      ldaxr   w7, [x5]
        add     w7, w7, #1
        stlxr   w8, w7, [x5]
        cbnz    w8, 1b
        subs    x6, x6, #1
        b.ne    1b
        ret
word:   .word   0
second: mov     x27, x0
        mrs     x26, mpidr_el1
        adr     x5, word
        bl      adds
2:      ldar    w7, [x5]
        cmp     w7, #2000
        b.ne    2b
        mov     x0, #5 << 24            // SGI 5 to CPU 0
        orr     x0, x0, #1
        msr     s3_0_c12_c11_5, x0
        wfi
"""


SGI = private_interrupt_on(5)


@pytest.mark.parametrize("quantum", [1, 7, 1000])
def test_two_cpus(quantum: int, tmp_path: Path) -> None:
    booted = boot(WITH_VECTORS + SGI + TWO_CPUS, tmp_path, cpus=2, quantum=quantum)
    assert booted.board.ended is Ended.OFF
    assert (booted.register(28), booted.register(27, 1), booted.register(26, 1)) == (0, 7, 1 << 31 | 1)
    assert booted.register(13) == 5
    assert booted.register(7, 1) == 2000


class EveryThirty:
    """Interrupts after each 30 instructions, for somebody outside."""

    def __init__(self, cpu: Cpu) -> None:
        self._bank = cpu.core.add_bank(1)
        self._bank.set_width(0, 32)
        self._bank.connect(0, 1 << Probe.INST_RETIRED)
        self._bank.arm(1)
        self.times = 0
        self._again()
        cpu.connect_interrupt(self, self._again)

    def _again(self) -> None:
        self.times += 1
        self._bank.clear_overflowed(1)
        self._bank.write(0, (1 << 32) - 30)

    def interrupt_asserted(self) -> bool:
        return bool(self._bank.overflowed())

    def take_interrupt(self) -> None:
        """The handler does it."""


@pytest.mark.parametrize("core", ["ideal", "cortex-a55"])
def test_who_counts_from_outside_changes_nothing(core: str, tmp_path: Path) -> None:
    """Not even which CPU's exclusive store comes first."""
    counters: list[EveryThirty] = []

    def watch(cpus: Sequence[Cpu]) -> None:
        counters.extend(map(EveryThirty, cpus))

    code = WITH_VECTORS + SGI + TWO_CPUS
    alone, watched = (boot(code, tmp_path, core=core, cpus=2, watch=by) for by in (None, watch))
    for one, other in zip(alone.cpus, watched.cpus, strict=True):
        assert one.core.cycles == other.core.cycles
        for probe in (Probe.INST_RETIRED, Probe.LOAD, Probe.STORE, Probe.BR_RETIRED):
            assert one.core.total(probe) == other.core.total(probe)
    retired = [cpu.core.total(Probe.INST_RETIRED) for cpu in watched.cpus]
    assert [counter.times for counter in counters] == [1 + count // 30 for count in retired]
