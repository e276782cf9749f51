"""Where exceptions and fetch faults come, how many instructions have retired then, and that nothing adds up."""

import pytest

from emulator.cpu import ExceptionKind, ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, PC, Bare

PAGE = 4096
NOP = b"\x90"


def test_code_that_runs_into_a_page_that_is_not_there() -> None:
    """The engine looks ahead when it translates; the fault comes when the first instruction there is due."""
    bare = Bare.load("x86_64", NOP * PAGE)
    assert bare.run() == ExitReason.FAULT
    assert (bare.core.pc, bare.core.fault_address, bare.core.fault_access) == (CODE + PAGE, CODE + PAGE, 4)
    assert bare.total(Probe.INST_RETIRED) == PAGE


def test_an_instruction_that_crosses_into_a_page_that_is_not_there() -> None:
    bare = Bare.load("x86_64", NOP * (PAGE - 2) + b"\xb8\x01")  # mov eax, imm32, of which three bytes are missing
    assert bare.run() == ExitReason.FAULT
    assert (bare.core.pc, bare.core.fault_access) == (CODE + PAGE - 2, 4)
    assert bare.total(Probe.INST_RETIRED) == PAGE - 2


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("31c0f7f0", ExceptionKind.DIVIDE),  # xor eax, eax; div eax
        ("90f4", ExceptionKind.PRIVILEGED),  # hlt
        ("90cd80", ExceptionKind.PRIVILEGED),  # int 0x80
        ("900f0b", ExceptionKind.UNDEFINED),  # ud2
        ("900f34", ExceptionKind.UNDEFINED),  # sysenter
    ],
)
def test_the_same_exception_again_and_again(code: str, kind: ExceptionKind) -> None:
    bare = Bare.load("x86_64", bytes.fromhex(code))
    for number in range(1, 6):
        bare.core.write_register(PC["x86_64"], CODE)
        assert bare.run() == ExitReason.EXCEPTION
        assert bare.core.exception == kind
        assert bare.core.pc == CODE + (2 if kind is ExceptionKind.DIVIDE else 1)
        assert bare.total(Probe.INST_RETIRED) == number  # the one before it


@pytest.mark.parametrize("code", ["90cc", "90cd03", "90f1"])
@pytest.mark.parametrize("stepped", [False, True])
def test_breakpoints_retire(code: str, stepped: bool) -> None:
    """INT3, INT 3 and INT1 are traps: PC is after them. So it is when every instruction is sampled."""
    bare = Bare.load("x86_64", bytes.fromhex(code))
    if stepped:
        bank = bare.core.add_bank(1)
        bank.set_width(0, 48)
        bank.connect(0, 1 << Probe.INST_RETIRED)
        for _ in range(2):  # of the NOP, and of the breakpoint itself
            bank.write(0, 2**48 - 1)
            bank.arm(1)
            assert bare.run() == ExitReason.OVERFLOW
            bank.clear_overflowed(1)
    assert bare.run() == ExitReason.EXCEPTION
    assert bare.core.exception == ExceptionKind.BREAKPOINT
    assert bare.core.pc == CODE + len(bytes.fromhex(code))
    assert bare.total(Probe.INST_RETIRED) == 2


# BR with a bit too many, ERET, BRAA, B.cond with a bit too many
@pytest.mark.parametrize("word", [0xD61F8020, 0xD69F03E0, 0xD61F0821, 0x54000010])
@pytest.mark.parametrize("stepped", [False, True])
def test_words_that_only_look_like_branches(word: int, stepped: bool) -> None:
    bare = Bare.load("aarch64", word.to_bytes(4, "little"))
    if stepped:
        bank = bare.core.add_bank(1)
        bank.set_width(0, 48)
        bank.connect(0, 1 << Probe.INST_RETIRED)
        bank.write(0, 2**48 - 1)
        bank.arm(1)
    assert bare.run(until=1000) == ExitReason.EXCEPTION
    assert bare.core.exception == ExceptionKind.UNDEFINED
    assert bare.total(Probe.INST_RETIRED) == 0
