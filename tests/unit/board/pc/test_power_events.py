"""Where a CPU of the board pc is in HLT, its guest's Intel PT tells so: libipt finds it, and what has retired."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator._native import RetirementRecorder
from emulator.board.observers import Observers
from emulator.probes import Probe
from libipt import build_decoder, instructions
from pmu.intel.pt_registers import IA32_RTIT_CTL
from tests.unit.board.carried_over import carried_over
from tests.unit.board.pc.images import assembled
from tests.unit.board.pc.test_branch_records import Made
from tests.unit.board.pc.test_intel_pt import ON, OS, RAM, TABLE, TIMED, TRACE, USER

POWER = IA32_RTIT_CTL.PWR_EVT_EN.mask
SLEEPS = 5
LABELS = "enables", "sleeps", "disables"
# Each time a timer of 1,000,000 cycles or more wakes it, and some branches come before the next.
PROGRAM = f"""
main:   handle  0x50, tick
        call    apic_on
        apic_write 0x3E0, $0xB                  # divided by 1
        apic_write 0x320, $0x50
        mov     ${TABLE}, %ebx
        movq    ${TRACE} | 6 << 6, (%rbx)
        movq    ${TABLE} | 1, 8(%rbx)           # END
        put     0x560, {TABLE}
        put     0x561, 0
        mov     ${SLEEPS}, %r15d
        put     0x570, CONTROL
        .set    enables, . - 2
1:      apic_write 0x380, $1000000
        sti
sleeps: hlt
        cli
        mov     $7, %ecx
2:      loop    2b
        dec     %r15d
        jnz     1b
        put     0x570, 0
        .set    disables, . - 2
        .irp    label, {", ".join(LABELS)}
        mov     $\\label, %eax
        call    puthex
        .endr
        mov     $0x561, %ecx
        rdmsr
        value   %rdx
        call    newline
        xor     %edi, %edi
        jmp     exit
tick:   jmp     end_of_interrupt
"""


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_decoder(tmp_path_factory.mktemp("libipt"))


@pytest.mark.parametrize("untimed", [True, False])
@pytest.mark.parametrize("levels", [USER | OS, USER])
def test_libipt_finds_where_it_sleeps(decoder: Path, tmp_path: Path, levels: int, untimed: bool) -> None:
    """At HLT, if the kernel is traced; what wakes it is always an interrupt."""
    made = Made(
        "redwood-cove", assembled(f"        .set CONTROL, {ON | TIMED | POWER | levels}\n{PROGRAM}"), untimed=untimed
    )
    recorder = RetirementRecorder(keep=True)
    made.hardware.cpus[0].core.select(recorder, 1 << Probe.INST_RETIRED, 1)
    ((enables, sleeps, disables, size),) = made.lines()
    addresses = [op[0] for op in recorder.take_selected()]
    retired = addresses[addresses.index(enables) + 1 : addresses.index(disables)]
    ram = bytes(made.hardware.memory.view(0, RAM >> 12))
    (tmp_path / "ram").write_bytes(ram)
    trace = ram[TRACE : TRACE + size]
    found, told = instructions(decoder, trace, [tmp_path / "ram", "0", str(RAM), "0"], tmp_path)
    assert found == (retired if levels & OS else [])
    stops = f"stops at {sleeps:#x}" if levels & OS else "stops"
    wakes = "wakes: last 0, deepest 0, interrupt 1, store 0, autonomous 0"
    assert told == ["sleeps: 0.0, by hardware: 0", stops, wakes] * SLEEPS


def test_a_board_that_is_saved_between_two_sleeps_goes_on(tmp_path: Path) -> None:
    """Where it is to be saved in one it is behind it: its only CPU has to go on."""
    file = assembled(f"        .set CONTROL, {ON | TIMED | POWER | OS}\n{PROGRAM}")

    def trace_of(made: Made) -> bytes:
        ((*_, size),) = made.lines()
        return bytes(made.hardware.memory.view(0, RAM >> 12))[TRACE : TRACE + size]

    whole = trace_of(made := Made("redwood-cove", file))
    end = made.hardware.cpus[0].core.cycles
    for cycle in range(end // 20, end * 9 // 10, end // 10):
        observers = Observers(1)
        made, other = Made("redwood-cove", file, observers), Made("redwood-cove", None)
        with carried_over(made, observers, cycle, other, tmp_path):
            other.output += made.output
            assert [trace_of(each) for each in (made, other)] == [whole] * 2
