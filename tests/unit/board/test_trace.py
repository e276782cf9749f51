"""--trace: a line each time that the guest asks its board for something; and nothing else is different."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.trace import Trace, Traced, register_name
from emulator.sysregs import SysReg
from unit.board.booted import Booted, boot, private_interrupt_on
from unit.board.test_virt import WITH_VECTORS

# The interrupt stays masked: it is acknowledged by asking.
SOURCE = f"""
{WITH_VECTORS}
{private_interrupt_on(5)}
        msr     daifset, #2
        mov     x0, #5 << 24
        orr     x0, x0, #1
        msr     s3_0_c12_c11_5, x0      // ICC_SGI1R_EL1
        mrs     x3, s3_0_c12_c12_0      // ICC_IAR1_EL1
        msr     s3_0_c12_c12_1, x3      // ICC_EOIR1_EL1
        mov     w4, #'t'
        strb    w4, [x20]
        b       off
"""


def traced(what: list[Traced], folder: Path) -> tuple[Booted, list[str]]:
    """Of each line what is said, without who and where."""
    lines: list[str] = []
    booted = boot(SOURCE, folder, trace=Trace(what, lines.append) if what else None)
    return booted, [line.split(": ", 1)[1] for line in lines]


def test_interrupts(tmp_path: Path) -> None:
    assert traced([Traced.INTERRUPTS], tmp_path)[1] == [
        "interrupt: sends 5 to CPU 0",
        "interrupt: acknowledges 5",
        "interrupt: ends 5",
    ]


def test_system_registers(tmp_path: Path) -> None:
    assert traced([Traced.SYSREGS], tmp_path)[1][-3:] == [
        "MSR ICC_SGI1R_EL1, 0x5000001",
        "MRS ICC_IAR1_EL1 is 0x5",
        "MSR ICC_EOIR1_EL1, 0x5",
    ]


def test_accesses_to_devices(tmp_path: Path) -> None:
    assert traced([Traced.MMIO], tmp_path)[1][-1] == "PL011 + 0x0: store of 1 bytes: 0x74"


def test_exceptions_and_calls(tmp_path: Path) -> None:
    assert traced([Traced.EXCEPTIONS], tmp_path)[1] == ["HVC: function 0x84000008 is answered with 0x0"]


def test_a_line_says_who_and_when(tmp_path: Path) -> None:
    lines: list[str] = []
    booted = boot("b off", tmp_path, trace=Trace([Traced.EXCEPTIONS], lines.append))
    (line,) = lines
    assert line.startswith(f"{booted.cpus[0].core.cycles} CPU 0 EL1 0x")


def test_watching_changes_nothing(tmp_path: Path) -> None:
    runs = [traced(what, tmp_path)[0] for what in ([], list(Traced))]
    plain, watched = ((run.output, run.cpus[0].core.cycles, run.cpus[0].core.registers()) for run in runs)
    assert plain == watched
    assert plain[0] == b"t"


@pytest.mark.parametrize(
    ("register", "name"),
    [
        (SysReg(3, 3, 14, 15, 7), "PMCCFILTR_EL0"),
        (SysReg(3, 3, 14, 8, 3), "PMEVCNTR3_EL0"),
        (SysReg(3, 3, 14, 13, 2), "PMEVTYPER10_EL0"),
        (SysReg(3, 3, 14, 3, 1), "CNTV_CTL_EL0"),
        (SysReg(2, 0, 0, 2, 2), "S2_0_C0_C2_2"),
    ],
)
def test_names(register: SysReg, name: str) -> None:
    assert register_name(register) == name


# Two CPUs read the counter until it has gone on by 200 ticks, x15 times, and add up what they have read in x14.
WAITING = """
        movz    x0, #0x8400, lsl #16
        movk    x0, #3
        movk    x0, #0xc400, lsl #16    // PSCI CPU_ON
        mov     x1, #1
        adr     x2, second
        hvc     #0
        bl      wait
        b       off
second: bl      wait
        movz    w0, #0x8400, lsl #16
        movk    w0, #2                  // CPU_OFF
        hvc     #0
wait:   mrs     x16, cntvct_el0
1:      mrs     x17, cntpct_el0
        add     x14, x14, x17
        add     x15, x15, #1
        sub     x17, x17, x16
        cmp     x17, #200
        b.lo    1b
        ret
"""


@pytest.mark.parametrize("core", ["ideal", "cortex-a55"])
def test_the_counter_reads_the_same_and_ends_no_turn_whoever_answers(core: str, tmp_path: Path) -> None:
    """The core itself does where nobody wants to see each read. 200 ticks of 16 ns are 3,200 cycles of `ideal`'s, in
    turns of 6 instructions: the loop ends in the 534th, or a turn of it later. What a CPU is shown, first and last, may
    be ahead of its own time by another's turn, 1,000 cycles or 167 turns of the loop."""
    runs = []
    for trace in (None, Trace([Traced.SYSREGS], lambda line: None)):
        booted = boot(WAITING, tmp_path, core=core, cpus=2, trace=trace)
        runs.append([(cpu.core.cycles, cpu.core.registers()) for cpu in booted.cpus])
        turns = [booted.register(15, cpu) for cpu in range(2)]
        assert all(turns)
        if core == "ideal":
            assert all(533 - 167 <= count <= 537 + 167 for count in turns)
    assert runs[0] == runs[1]
