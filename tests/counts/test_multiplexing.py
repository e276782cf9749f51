"""Twenty events on six counters: over a stationary program each scales to within 1 % of what was exactly counted.

The clock is slow, so that a turn of 4 ms is TURN instructions, and all have had one after 20 of them. The program's
loop of at most 9 instructions has the same events each time, so a turn cuts one of 444: what an event counts in it is
within 9 / TURN = 0.2 % of its rate. In which order they take turns is a real kernel's: conformance/test_perf_calls.py.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from corpus.debian_machine import machine
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import DIRECTORY, ISAS, guest

PROGRAM = "branches_testcode"
SLOW_HZ = 1_000_000
TURN = SLOW_HZ // 250
COUNTERS = 6
ERROR = 0.01
ENOUGH = 100_000  # that happen all the time, as the loop's do
PINNED = {"aarch64": "br_retired", "x86_64": "ex_ret_brn"}
EVENTS = {
    "aarch64": (
        "ld_retired st_retired inst_retired pc_write_retired br_immed_retired br_return_retired mem_access inst_spec "
        "br_retired mem_access_rd mem_access_wr ld_spec st_spec ldst_spec dp_spec pc_write_spec br_indirect_spec "
        "br_immed_spec br_return_spec vfp_spec"
    ),
    "x86_64": (  # AMD's PMU: six counters, all of which count everything
        "ex_ret_instr ex_ret_brn ex_ret_brn_tkn ex_ret_cond ex_ret_near_ret ex_ret_ind_brch_instr "
        "ex_ret_uncond_brnch_instr ls_dispatch.ld_dispatch ls_dispatch.store_dispatch ls_dispatch.all "
    )
    * 2,
}
PMU = {"aarch64": ("armv8_pmuv3_0", ()), "x86_64": ("cpu", ("--pmu", "zen5"))}


def rows(text: str) -> list[list[str]]:
    """Of -x; some events have commas."""
    return [line.split(";") for line in text.splitlines() if ";" in line]


def stat(isa: str, *options: str, hz: int = SLOW_HZ, cwd: Path | None = None) -> list[list[str]]:
    machine_options = ("--core", "ideal", "--set", f"frequency_hz={hz}", *PMU[isa][1])
    done = subprocess.run(
        [PERFEMU, "stat", "-x;", *machine_options, *options], cwd=cwd,
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT,
    )  # fmt: skip
    return rows(done.stderr)


def check(scaled: list[list[str]], exact: list[list[str]], enough: int) -> None:
    """Each of those that happen all the time, and that there are some."""
    errors = {
        row[2]: int(row[0]) / int(truth[0]) - 1
        for row, truth in zip(scaled, exact, strict=True)
        if int(truth[0]) >= enough
    }
    assert len(errors) >= 5
    assert {name: error for name, error in errors.items() if abs(error) > ERROR} == {}


@pytest.mark.parametrize("isa", ISAS)
def test_what_is_scaled_is_near_and_what_is_pinned_is_exact(isa: str) -> None:
    """The tool's own counters: six, one of which is taken for good."""
    path = str(DIRECTORY / PROGRAM / f"{isa}.elf")
    events = EVENTS[isa].split()
    assert len(events) == 20
    exact = stat(isa, "-e", ",".join(events), "--", path)
    options = ("--counters", str(COUNTERS), "-e", ",".join(events), "-e", f"{PINNED[isa]}:D")
    *scaled, pinned = stat(isa, *options, "--", path)
    check(scaled, exact, ENOUGH)
    assert (pinned[0], pinned[4]) == (exact[events.index(PINNED[isa])][0], "100.00")
    turns = guest(PROGRAM, isa).counts["INST_RETIRED"] / TURN
    for row in scaled:  # five of twenty at a time, each as often but for a turn at either end
        assert abs(float(row[4]) - 25) <= 100 * 5 / turns


@pytest.mark.parametrize("isa", ISAS)
def test_a_scaled_count_is_made_of_what_happened_in_its_turns(isa: str) -> None:
    """To the digit: what was counted exactly in each 4 ms says what twenty events on six counters come to. In turn k
    those are on whose number is k to k + 5, modulo 20."""
    path = str(DIRECTORY / PROGRAM / f"{isa}.elf")
    events = EVENTS[isa].split()
    series = stat(isa, "-I", "4", "-e", ",".join(events), "--", path)
    scaled = stat(isa, "--counters", str(COUNTERS), "-e", ",".join(events), "--", path)
    turns = [series[first : first + len(events)] for first in range(0, len(series), len(events))]
    enabled_ns = round(float(turns[-1][0][0]) * 1e9)
    assert len(turns) > 20
    for number, row in enumerate(scaled):
        counted = sum(int(turn[number][1]) for k, turn in enumerate(turns) if (number - k) % len(events) < COUNTERS)
        assert int(row[0]) == round(counted * enabled_ns / int(row[3])), row


@pytest.mark.parametrize("isa", ISAS)
def test_so_does_a_guests_own_perf(isa: str, tmp_path: Path) -> None:
    """On the guest's PMU, which has six counters, as Debian's perf opens them; in the same run the tool counts exactly
    what perf's child does, from its fork on: some thousand instructions more."""
    root = machine(isa, ("linux-perf",))
    pmu = PMU[isa][0]
    inside = [f"{pmu}/{code_of(isa, event)}/u" for event in EVENTS[isa].split()]
    path = str(DIRECTORY / PROGRAM / f"{isa}.elf")
    perf = ("perf", "stat", "-x;", "-o", "scaled", "-e", ",".join(inside), "--", path)
    options = ("--sysroot", str(root), "-p", "1001", "-e", ",".join(EVENTS[isa].split()))
    exact = stat(isa, *options, "--", *perf, cwd=tmp_path)
    scaled = rows((tmp_path / "scaled").read_text())
    check(scaled, exact, ENOUGH)
    assert all(float(row[4]) in (29, 30, 31) for row in scaled)  # 6 of 20; perf 6.1 prints whole ones


def code_of(isa: str, event: str) -> str:
    """As a term: sysfs has Arm's names."""
    return event if isa == "aarch64" else AMD[event]


AMD = {
    "ex_ret_instr": "event=0xc0",
    "ex_ret_brn": "event=0xc2",
    "ex_ret_brn_tkn": "event=0xc4",
    "ex_ret_near_ret": "event=0xc8",
    "ex_ret_ind_brch_instr": "event=0xcc",
    "ex_ret_cond": "event=0xd1",
    "ex_ret_uncond_brnch_instr": "event=0x1c9",
    "ls_dispatch.ld_dispatch": "event=0x29,umask=0x01",
    "ls_dispatch.store_dispatch": "event=0x29,umask=0x02",
    "ls_dispatch.all": "event=0x29,umask=0x07",
}


# A program that nobody here wrote, and that does the same all the time but for its start: 20 turns are 8 million
# instructions, of which its loop takes hundreds.
STEADY = "with recursive c(x) as (select 1 union all select x+1 from c where x<200000) select sum(x*x%7) from c"
STEADY_HZ = 100_000_000


@pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="takes a minute: make kernels")
@pytest.mark.parametrize("isa", ISAS)
def test_so_does_debians_sqlite3(isa: str) -> None:
    """Of events that are at least 1 % of the instructions."""
    events = EVENTS[isa].split()
    options = ("--sysroot", str(machine(isa, ("sqlite3",))), "-e", ",".join(events))
    command = ("--", "sqlite3", ":memory:", STEADY)
    exact = stat(isa, *options, *command, hz=STEADY_HZ)
    scaled = stat(isa, *options, "--counters", "6", *command, hz=STEADY_HZ)
    check(scaled, exact, int(exact[events.index("inst_retired" if isa == "aarch64" else "ex_ret_instr")][0]) // 100)
