"""What people are told of a pc's exceptions: as they come, by --trace; and the last ones, when a guest dies."""

from __future__ import annotations

import re

import pytest

from emulator.board.board import Ended
from emulator.board.pc.taken_exceptions import described
from emulator.board.trace import Trace, Traced
from tests.unit.board.pc.images import GATES
from tests.unit.board.pc.test_pc import boot

NMI = 2
LINE = re.compile(r"\d+ CPU 0 (kernel|user) 0x[0-9a-f]+: exception: (.*)")
# Vectors by name, as tests/unit/board/pc/gates.S makes them, and GATES has them of QEMU
NAMES = {"#DE": 0, "#DB": 1, "#BP": 3, "#UD": 6, "INT": 0x40, "#GP": 13, "#PF": 14}


def traced(name: str, core: str = "ideal") -> list[tuple[str, str]]:
    """Level and exception of each line."""
    lines: list[str] = []
    boot(name, core, trace=Trace([Traced.EXCEPTIONS], lines.append))
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    return [(match[1], match[2]) for match in found if match is not None]


@pytest.mark.parametrize("core", ["ideal", "skylake"])
def test_a_trace_has_each_exception_that_the_guest_has_seen(core: str) -> None:
    """Of a single step's line three; interrupts, as NMIs are, are not among them."""
    vectors: list[int] = []
    for line in GATES.splitlines():
        if re.match(r" [0-9a-f]+ ", line):
            vector = int(line.split()[0], 16)
            vectors += [vector] * (3 if vector == NAMES["#DB"] else vector != NMI)
    found = traced("gates", core)
    names = ["INT" if what == "INT 0x3" else what.split()[0] for _, what in found]
    assert [3 if what == "INT 0x3" else NAMES[name] for name, (_, what) in zip(names, found, strict=True)] == vectors
    assert {level for level, _ in found} == {"kernel"}
    assert "#PF (page fault), error 0x2 (kernel write, not present), CR2 0x4000020" in [what for _, what in found]


def test_privilege_3_is_the_users() -> None:
    assert ("user", "#PF (page fault), error 0x5 (user read, not allowed), CR2 0x4000123") in traced("user")


def test_tracing_changes_nothing() -> None:
    plain, watched = boot("gates"), boot("gates", trace=Trace([Traced.EXCEPTIONS], lambda line: None))
    assert plain.cpus[0].core.cycles == watched.cpus[0].core.cycles


def test_a_triple_fault_says_what_led_there() -> None:
    """No gate for a page fault is a double fault, for which there is no gate either: SDM vol. 3, table 6-5. QEMU
    7.2 has the same (-d int): v=03, v=0e, v=08 and a triple fault, at the same addresses."""
    booted = boot("triple")
    assert booted.board.ended is Ended.RESET
    place = f"0x{booted.output.strip().lower()}"
    told = [re.sub(r"cycle \d+ ", "", line) for line in booted.board.last_exceptions()]
    assert re.fullmatch(r"exception: CPU 0 CPL 0 0x[0-9a-f]+: INT 0x3", told.pop(0))
    assert told == [
        f"exception: CPU 0 CPL 0 {place}: #PF (page fault), error 0x0 (kernel read, not present), CR2 0x4000010",
        f"exception: CPU 0 CPL 0 {place}: #DF (double fault), error 0x0",
    ]
    assert f"shut down at {place} (triple fault): the last exception was #DF (double fault)" in booted.messages[-1]


def test_a_guest_that_ends_as_it_should_has_nothing_to_tell() -> None:
    assert boot("gates").board.last_exceptions() == []


@pytest.mark.parametrize(
    ("vector", "error", "address", "says"),
    [
        (14, 0x15, 0x1000, "#PF (page fault), error 0x15 (user fetch, not allowed), CR2 0x1000"),
        (14, 0xB, 8, "#PF (page fault), error 0xb (kernel write, a reserved bit), CR2 0x8"),
        (13, 0x1234, None, "#GP (general protection), error 0x1234 (selector 0x1230 of the LDT)"),
        (13, 0x33, None, "#GP (general protection), error 0x33 (of the IDT's entry 0x6, by another event)"),
        (13, 0, None, "#GP (general protection), error 0x0"),
        (6, None, None, "#UD (undefined instruction)"),
        (21, None, None, "vector 0x15"),
    ],
)
def test_error_codes_are_decoded(vector: int, error: int | None, address: int | None, says: str) -> None:
    assert described(vector, error, address, software=False) == says
