"""Intel PT on the board pc, as its guest programs it: of user mode, of the kernel, of both, of one address space or one
range. libipt finds in the trace what has retired, through system calls, exceptions, interrupts and their returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from emulator._native import RetirementRecorder
from emulator.board.observers import Observers
from emulator.probes import Probe
from libipt import build_decoder, instructions
from pmu.intel.pt import CAPABILITIES
from pmu.intel.pt_registers import IA32_RTIT_CTL, IA32_RTIT_STATUS, TOPA_ENTRY
from tests.unit.board.carried_over import carried_over
from tests.unit.board.pc.images import assembled
from tests.unit.board.pc.test_branch_records import Made
from tests.unit.board.pc.test_pmu_registers import PROGRAM as REGISTERS

TRACE, TABLE = 0x40_0000, 0x44_0000  # physical, and linear: two regions one behind the other, and what names them
OTHER_TABLES = 0x48_0000  # of pages: a copy of the first
RAM = 8 << 20  # as much of it is looked at
ON = IA32_RTIT_CTL.make(TRACE_EN=1, TOPA=1, BRANCH_EN=1)
USER, OS = IA32_RTIT_CTL.USER.mask, IA32_RTIT_CTL.OS.mask
TIMED = IA32_RTIT_CTL.make(TSC_EN=1, MTC_EN=1, MTC_FREQ=9, CYC_EN=1)
CR3_FILTER, IN_RANGE = IA32_RTIT_CTL.CR3_EN.mask, IA32_RTIT_CTL.make(ADDR0_CFG=1)
STOPS_IN_RANGE = IA32_RTIT_CTL.make(ADDR0_CFG=2)
INT, STOP = TOPA_ENTRY.INT.mask, TOPA_ENTRY.STOP.mask
ROUNDS = 200
USER_BYTES = 64
PIP = b"\x02\x43"
# Prints the addresses of LABELS, how often the PMU has interrupted, and what MSRs say at the end.
LABELS = "user", "enables", "disables", "changes_tables", "software_interrupt", "last_one"
PROGRAM = f"""
        .set    SIZE, REGION << 6

main:   handle  6, undefined
        handle  0x51, full
        handle  0x80, called
        handle  0x81, last
        handle  0x90, interrupted
        movb    $0xEE, gates + 16 * 0x80 + 5    # for ring 3
        movb    $0xEE, gates + 16 * 0x81 + 5
        call    apic_on
        apic_write 0x340, $0x51                 # LVT_PMC
        mov     %cr3, %rsi                      # other tables, which say the same
        mov     ${OTHER_TABLES}, %edi
        mov     $512, %ecx
        rep     movsq
        put     0xC0000081, 0x00130008 << 32    # STAR
        mov     $0xC0000082, %ecx               # LSTAR
        mov     $system_call, %eax
        xor     %edx, %edx
        wrmsr
        put     0xC0000084, 0x200
        mov     ${TABLE}, %ebx
        movq    ${TRACE} | SIZE | MARKS, (%rbx)
        movq    ${TRACE} + (4096 << REGION) | SIZE | SECOND_MARKS, 8(%rbx)
        movq    ${TABLE} | 1, 16(%rbx)          # END
        put     0x560, {TABLE}
        put     0x561, 0
        put     0x572, {OTHER_TABLES}
        mov     $0x580, %ecx
        mov     $user, %eax
        xor     %edx, %edx
        wrmsr
        mov     $0x581, %ecx
        mov     $user + {USER_BYTES - 1}, %eax
        wrmsr
        put     0x570, CONTROL
        .set    enables, . - 2
        mov     ${ROUNDS}, %r15d
        push    $USER_DATA
        push    $user_stack_top
        push    $0x202
        push    $USER_CODE
        push    $user
        iretq
        .balign 64
user:   mov     $5, %ecx
1:      call    f
        dec     %ecx
        jnz     1b
        syscall                                 # asks for an interrupt
        mov     $3, %ecx
2:      loop    2b
        ud2
software_interrupt:
        int     $0x80                           # changes the tables
        lea     f, %rax
        call    *%rax
        test    $1, %r15b
        jz      3f
        nop
3:      dec     %r15d
        jnz     user
last_one:
        int     $0x81
f:      ret
        .balign 64
user_end:
system_call:
        push    %rax
        push    %rcx
        push    %rdx
        apic_write 0x310, $0
        apic_write 0x300, $0x40090              # to itself
        pop     %rdx
        pop     %rcx
        pop     %rax
        sysretq

undefined:
        addq    $2, 16(%rbx)
        ret

interrupted:
        call    end_of_interrupt
        ret

full:   incl    interrupts
        put     0x390, 1 << 55
        apic_write 0x340, $0x51
        jmp     end_of_interrupt

called: mov     %cr3, %rax
        mov     ${OTHER_TABLES}, %edx
        cmp     %rdx, %rax
        jne     1f
        mov     first_tables, %rdx
1:      mov     %rax, first_tables
changes_tables:
        mov     %rdx, %cr3
        push    $CODE
        push    $2f
        lretq
2:      ret

last:   mov     $0x571, %ecx
        rdmsr
        mov     %rax, status
        put     0x570, 0
        .set    disables, . - 2
        .irp    label, user, enables, disables, changes_tables, software_interrupt, last_one
        mov     $\\label, %eax
        call    puthex
        .endr
        value   interrupts
        value   status
        mov     $0x561, %ecx
        call    show
        call    newline
        xor     %edi, %edi
        jmp     exit
show:   rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        call    puthex
        ret
        .bss
        .balign 16
interrupts: .skip 8
status: .skip   8
first_tables: .skip 8
        .skip   4096
user_stack_top:
        .text
"""


def image(control: int, region: int = 6, marks: int = 0, second_marks: int = 0) -> bytes:
    """`region`: 4 KiB << that, of two. `marks`: bits of their entries."""
    values = {"CONTROL": control, "REGION": region, "MARKS": marks, "SECOND_MARKS": second_marks}
    return assembled("".join(f"        .set {name}, {value}\n" for name, value in values.items()) + PROGRAM)


@dataclass(frozen=True)
class Run:
    """What the guest has said, and what is in its memory."""

    at: dict[str, int]
    interrupts: int
    status: IA32_RTIT_STATUS
    region: int  # in which the trace ends
    offset: int
    ram: bytes

    def trace(self, size: int) -> bytes:
        """With regions of so many bytes; not round again."""
        return self.ram[TRACE : TRACE + self.region * size + self.offset]

    def in_user(self, address: int) -> bool:
        return 0 <= address - self.at["user"] < USER_BYTES


def said(made: Made) -> Run:
    ((*places, interrupts, status, pointers),) = made.lines()
    assert made.told == []
    ram = bytes(made.hardware.memory.view(0, RAM >> 12))
    at = dict(zip(LABELS, places, strict=True))
    return Run(at, interrupts, IA32_RTIT_STATUS(status), pointers >> 7 & 1, pointers >> 32, ram)


def retired_of(made: Made) -> tuple[Run, list[int]]:
    """... and what has retired between the two WRMSRs, without software interrupts: a FUP says that execution is about
    to come to one, and a TIP where it goes on, so that decoders do not list it."""
    recorder = RetirementRecorder(keep=True)
    made.hardware.cpus[0].core.select(recorder, 1 << Probe.INST_RETIRED, 1)
    run = said(made)
    addresses = [op[0] for op in recorder.take_selected()]
    traced = addresses[addresses.index(run.at["enables"]) + 1 : addresses.index(run.at["disables"])]
    software = run.at["software_interrupt"], run.at["last_one"]
    return run, [address for address in traced if address not in software]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_decoder(tmp_path_factory.mktemp("libipt"))


def decoded(decoder: Path, run: Run, trace: bytes, folder: Path) -> list[int]:
    (folder / "ram").write_bytes(run.ram)
    found, complaints = instructions(decoder, trace, [folder / "ram", "0", str(RAM), "0"], folder)
    assert complaints == []
    return found


BIG = 4096 << 6


@pytest.mark.parametrize("untimed", [True, False])
@pytest.mark.parametrize("core", ["skylake", "redwood-cove"])
@pytest.mark.parametrize("levels", [USER | OS, USER, OS])
def test_libipt_finds_what_has_retired(decoder: Path, levels: int, core: str, untimed: bool, tmp_path: Path) -> None:
    run, retired = retired_of(Made(core, image(ON | TIMED | levels), untimed=untimed))
    trace = run.trace(BIG)
    wanted = [pc for pc in retired if levels & (USER if run.in_user(pc) else OS)]
    assert len(wanted) > ROUNDS * 20
    assert decoded(decoder, run, trace, tmp_path) == wanted
    assert (run.status.TRIGGER_EN, run.status.CONTEXT_EN) == (1, bool(levels & OS))
    assert (trace.count(PIP) >= ROUNDS) == bool(levels & OS)
    if not levels & OS:
        assert PIP not in trace  # which would show addresses of the kernel's


def test_only_one_address_space(decoder: Path, tmp_path: Path) -> None:
    """From behind the instruction that loads its CR3 to the one that loads another, with it."""
    run, retired = retired_of(Made("skylake", image(ON | USER | OS | CR3_FILTER)))
    wanted, other = [], False  # the guest begins with the first tables
    for address in retired:
        if other:
            wanted.append(address)
        other ^= address == run.at["changes_tables"]
    found = decoded(decoder, run, run.trace(BIG), tmp_path)
    assert found == wanted
    assert ROUNDS * 10 < len(found) < len(retired) - ROUNDS * 10


def test_only_one_range(decoder: Path, tmp_path: Path) -> None:
    """Into it and out of it far transfers lead alone."""
    run, retired = retired_of(Made("skylake", image(ON | USER | OS | IN_RANGE)))
    assert decoded(decoder, run, run.trace(BIG), tmp_path) == [pc for pc in retired if run.in_user(pc)]


def test_a_range_where_it_stops(decoder: Path, tmp_path: Path) -> None:
    """IRETQ leads there."""
    run, retired = retired_of(Made("skylake", image(ON | USER | OS | STOPS_IN_RANGE)))
    first = next(number for number, pc in enumerate(retired) if run.in_user(pc))
    assert decoded(decoder, run, run.trace(BIG), tmp_path) == retired[:first]
    assert (run.status.STOPPED, run.status.TRIGGER_EN) == (1, 0)


def test_a_region_that_stops(decoder: Path, tmp_path: Path) -> None:
    run, retired = retired_of(Made("skylake", image(ON | USER | OS, region=0, second_marks=STOP)))
    assert (run.status.STOPPED, run.region, run.offset) == (1, 1, 4096)
    found = decoded(decoder, run, run.trace(4096), tmp_path)
    assert len(found) > 1000
    assert found == retired[: len(found)]


def test_full_regions_interrupt_and_the_ring_goes_on(decoder: Path, tmp_path: Path) -> None:
    made = Made("skylake", image(ON | USER | OS, region=0, marks=INT, second_marks=INT))
    run, retired = retired_of(made)
    assert run.interrupts == made.board.cpus[0].pmu_interrupts >= 3
    assert run.region == run.interrupts % 2  # one for each that is full
    newest, oldest = run.ram[TRACE + 4096 * run.region :][:4096], run.ram[TRACE + 4096 * (1 - run.region) :][:4096]
    found = decoded(decoder, run, oldest + newest[: run.offset], tmp_path)  # from the first PSB on
    assert len(found) > 1000
    assert found == retired[-len(found) :]


def test_a_saved_board_goes_on_with_it(tmp_path: Path) -> None:
    """Wherever it is saved: before it traces, between two regions, in the middle of packets of conditional branches."""
    file = image(ON | TIMED | USER | OS, region=1, marks=INT, second_marks=STOP)
    whole = said(made := Made("skylake", file))
    end = made.hardware.cpus[0].core.cycles
    for cycle in range(0, end * 9 // 10, end // 16):
        observers = Observers(1)
        made, other = Made("skylake", file, observers), Made("skylake", None)
        with carried_over(made, observers, cycle, other, tmp_path):
            other.output += made.output
            for each in (made, other):
                found = said(each)
                assert (found.status, found.interrupts) == (whole.status, whole.interrupts)
                assert found.trace(8192) == whole.trace(8192)


def test_its_registers() -> None:
    """At reset, the bits that WRMSR takes, and those that RDMSR gives back, one at a time, while it does not trace."""
    word = (1 << 64) - 1
    canonical = (1 << 47) - 1
    control = replace(CAPABILITIES, cr3_filtering=True).control & ~IA32_RTIT_CTL.make(
        ADDR2_CFG=15, ADDR3_CFG=15, MTC_EN=1, MTC_FREQ=15
    )
    control &= ~IA32_RTIT_CTL.make(ADDR0_CFG=12, ADDR1_CFG=12, PSB_FREQ=8)  # kinds above 2, periods above 5
    table = {
        0x560: (0, 0xF_FFFF_FFFF_FF80, 0xF_FFFF_FFFF_FF80),
        0x561: (0x7F, word, 0),  # of which the lowest bits are always ones
        0x571: (0, 0x1_FFFF_0000_0037, 0x1_FFFF_0000_0030),
        0x572: (0, word & ~0x1F, word & ~0x1F),
        0x580: (0, canonical, canonical),
        0x583: (0, canonical, canonical),
        0x570: (0, control, control),
    }
    made = Made("skylake", assembled(REGISTERS.replace("NUMBERS", ", ".join(map(hex, table)))))
    *lines, _ = made.lines()
    assert {number: tuple(line[:3]) for number, line in zip(table, lines, strict=True)} == table


def test_processors_without_say_so() -> None:
    for core, there in (("skylake", 1), ("redwood-cove", 1), ("ideal", 0)):
        registers = Made(core, assembled("main: xor %eax, %eax\n ret\n")).hardware.cpus[0].system_registers
        assert registers.cpuid(7, 0)[1] >> 25 & 1 == there
        assert bool(registers.cpuid(0x14, 0)[2] & 1) == there
