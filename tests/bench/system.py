"""What Linux costs on the ideal core: system calls, switches, forks. Microseconds of CPU for each, both ISAs.

Of every row the program (system.c) does none, and then many; the difference is what they cost.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from workloads import ISAS, cpu_seconds

import c_programs
from perfemu.events.attributes import stat_attr
from perfemu.guest import Guest
from perfemu.session import Session


@dataclass(frozen=True, slots=True)
class Row:
    """`each` so many of what is measured are in one of the program's times. `events`: so many count meanwhile, in
    contexts that differ (stat --per-thread), so that each switch takes them off and puts others on."""

    name: str
    times: int
    each: int
    goal_us: float
    what: str
    events: int = 0

    @property
    def label(self) -> str:
        return f"{self.name}/{self.events}" if self.events else self.name


ROWS = (
    Row("getppid", 100_000, 1, 8, "getppid in a tight loop"),
    Row("write", 50_000, 1, 20, "a write of one byte to /dev/null"),
    Row("futex", 10_000, 2, 25, "a hand-off between two threads by futex"),
    Row("pipe", 10_000, 2, 45, "a byte through a pipe to another process: a write, a switch, a read"),
    Row("switch", 10_000, 2, 25, "a switch of processes by sched_yield"),
    Row("switch", 10_000, 2, 50, "the same with eight events", events=8),
    Row("fork", 50, 1, 5000, "fork, exit and wait4 of a process of 100 MB"),
    Row("mappings", 5, 2000, 25, "mmap or munmap, 1,000 mappings at once"),
)


def build(isa: str, directory: Path) -> Path:
    return c_programs.build(Path(__file__).with_name("system.c"), isa, directory / f"system.{isa}", "-w")


EIGHT = {  # that each take a counter
    "aarch64": "inst_retired,br_retired,ld_retired,st_retired,br_immed_retired,br_return_retired,dp_spec,mem_access",
    "x86_64": (
        "inst_retired.any_p,br_inst_retired.all_branches,br_inst_retired.conditional,br_inst_retired.near_call,"
        "br_inst_retired.near_return,br_inst_retired.near_taken,mem_inst_retired.all_loads,mem_inst_retired.all_stores"
    ),
}


def execute(program: Path, row: Row, times: int) -> None:
    with open(os.devnull, "r+b") as nowhere:
        number = nowhere.fileno()
        settings = Guest((str(program), row.name, str(times)), core="ideal", stdin=number, stdout=number)
        session = Session(settings)
        if row.events:
            assert session.machine, "events are opened on one"
            for spec in session.parse([EIGHT[session.isa]])[: row.events]:
                session.open(stat_attr(spec, per_thread=True))
        ending = session.run()
    if ending.exit_status != 0:
        raise SystemExit(f"{program} {row.name} ended with status {ending.exit_status}")


def cost_us(program: Path, row: Row, repeats: int) -> float:
    """Of one, median."""
    costs = []
    for _ in range(repeats):
        none = cpu_seconds(partial(execute, program, row, 0))
        many = cpu_seconds(partial(execute, program, row, row.times))
        costs.append((many - none) / (row.times * row.each) * 1e6)
    return median(costs)


def run(repeats: int, only: set[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for isa in ISAS:
            program = build(isa, Path(directory))
            for row in ROWS:
                if not only or row.name in only:
                    cost = cost_us(program, row, repeats)
                    print(f"system: {isa:7} {row.label:8} {cost:8.2f} us (goal: below {row.goal_us:g}): {row.what}")
