"""perfemu stat --board: what a machine's CPUs do, counted from outside by the levels at which they do it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from end_to_end.command import perfemu
from unit.board.booted import OFF, START
from unit.native.bare import assemble

# At EL1: MOVZ of START; ADR, MSR, ADR, MSR, MSR, ERET; behind the SVC: B, then MOVZ and MOVK before the HVC, which is
# the firmware's to count. At EL0: MOV, three times SUBS and B.NE, SVC.
AT_EL1, AT_EL0, BRANCHES = 1 + 6 + 1 + 2, 1 + 2 * 3 + 1, 3 + 1
SOURCE = """
        adr     x0, vectors
        msr     vbar_el1, x0
        adr     x0, user
        msr     elr_el1, x0
        msr     spsr_el1, xzr
        eret
user:   mov     x1, #3
1:      subs    x1, x1, #1
        b.ne    1b
        svc     #0
        .balign 0x800
vectors: .org   vectors + 0x400
        b       off
        .org    vectors + 0x800
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("image")
    path = folder / "flat.bin"
    path.write_bytes(assemble("aarch64", START + SOURCE + OFF, folder))
    return path


def counted(image: Path, *options: str) -> dict[str, str]:
    done = perfemu("stat", "-x", ",", "--board", "virt", *options, image)
    assert (done.returncode, done.stdout) == (0, b"")
    rows = [line.split(",") for line in done.stderr.decode().splitlines()]
    return {row[2]: row[0] for row in rows}


def test_a_measuring_pmu_may_have_as_many_counters_as_a_part(image: Path) -> None:
    counts = counted(image, "--counters", "1", "-e", "instructions:u,cycles:u,br_retired")
    assert counts == {
        "instructions:u": str(AT_EL0),
        "cycles:u": str(AT_EL0),  # which have a counter of their own; on the ideal core one an instruction
        "br_retired": "<not counted>",
    }


@pytest.mark.parametrize("pmu", ["pmuv3p0", "pmuv3p9", "loongarch"])
@pytest.mark.parametrize("core", ["ideal", "neoverse-n1"])
def test_all_pmus_count_a_board_equally(image: Path, core: str, pmu: str) -> None:
    """LoongArch's by PLV3 and PLV0; the guest has none then."""
    names = ("instructions", "cycles", "branches")
    events = ",".join(f"{name}:{level}" for name in names for level in "uk")
    counts = counted(image, "--core", core, "--pmu", pmu, "-e", events)
    assert counts == counted(image, "--core", core, "-e", events)
    assert counts["instructions:u"] == str(AT_EL0)
    assert counts["instructions:k"] == str(AT_EL1)


def test_levels_are_counted_apart(image: Path) -> None:
    counts = counted(image, "-e", "instructions,instructions:u,instructions:k,br_retired,r21:k")
    assert counts == {
        "instructions": str(AT_EL1 + AT_EL0),
        "instructions:u": str(AT_EL0),
        "instructions:k": str(AT_EL1),
        "br_retired": str(BRANCHES),  # B.NE, and B; an exception return is none
        "r21:k": "1",
    }


def test_what_nobody_knows_of_a_board_is_not_supported(image: Path) -> None:
    assert counted(image, "-e", "page-faults,context-switches,instructions:h") == dict.fromkeys(
        ("page-faults", "context-switches", "instructions:h"), "<not supported>"
    )


def test_counting_changes_nothing(image: Path) -> None:
    """Not even the time: the same console, and as many instructions on one CPU as on several that are off."""
    one, four = (counted(image, "--cpus", cpus, "-e", "instructions,cycles") for cpus in ("1", "4"))
    assert one == four


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--per-thread",), "a board's CPUs are counted as a whole"),
        (("--functions",), "a board's CPUs are counted as a whole"),
        (("--from-symbol", "main"), "regions are of the program's threads"),
        (("-C", "3"), "there is no CPU 3"),
    ],
)
def test_what_a_board_has_not(options: tuple[str, ...], says: str, image: Path) -> None:
    done = perfemu("stat", "--board", "virt", *options, image)
    assert done.returncode != 0
    assert says in done.stderr.decode()


def test_options_of_boards_want_one(image: Path) -> None:
    done = perfemu("stat", "--initrd", image, image)
    assert "--initrd: is a board's" in done.stderr.decode()


def test_metrics_are_of_one_level(image: Path) -> None:
    """User mode's instructions are not divided by the kernel's cycles."""
    events = "instructions:u,cycles:k,instructions:k,instructions,cycles"
    done = perfemu("stat", "--core", "ideal", "-e", events, "--board", "virt", image)
    rows = [line.split() for line in done.stderr.decode().splitlines() if re.search("cycles|instructions", line)]
    ratios = {row[1]: row[-3:] == ["insn", "per", "cycle"] for row in rows}
    assert ratios == {
        "instructions:u": False,
        "cycles:k": False,
        "instructions:k": True,
        "instructions": True,
        "cycles": False,
    }


def test_why_an_event_is_not_there(image: Path, tmp_path: Path) -> None:
    done = perfemu("record", "-o", tmp_path / "perf.data", "-e", "page-faults", "--board", "virt", image)
    assert (
        b"the page-faults event is not supported: Linux counts it itself, and a board's is its guest's" in done.stderr
    )
