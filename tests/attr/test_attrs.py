"""Does this command open these events? As perf's own attr tests: each command is run, and what it opens is compared.

Only fields that are not zero are listed. The bases are perf 6.1's for a user who may not count the kernel.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from guests import DIRECTORY, ISAS
from perfcore.abi.attr import PerfEventAttr
from perfcore.events.event import PerfEvent
from perfcore.events.subsystem import PerfEvents
from perfemu.cli.main import main

Fields = dict[str, int]

# enum perf_event_sample_format
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, RAW_DATA, IDENTIFIER = (
    1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x400, 0x10000,
)  # fmt: skip
REGS_USER, STACK_USER, DATA_SRC, REGS_INTR, PHYS_ADDR = 0x1000, 0x2000, 0x8000, 0x40000, 0x80000
DATA_PAGE_SIZE, CODE_PAGE_SIZE = 0x400000, 0x800000
# enum perf_event_read_format
ENABLED, RUNNING, READ_ID, GROUP, LOST = 1, 2, 4, 8, 16
HARDWARE, SOFTWARE, CACHE, RAW, ARM_PMU = 0, 1, 3, 4, 8
LEADER = {"disabled": 1, "enable_on_exec": 1}
USER = {"exclude_kernel": 1, "exclude_hv": 1}

STAT: Fields = {
    "size": 128,
    "sample_type": IDENTIFIER,
    "read_format": ENABLED | RUNNING,
    "inherit": 1,
    "exclude_guest": 1,
    **LEADER,
}
RECORD: Fields = {
    "size": 128,
    "sample_period": 4000,
    "freq": 1,
    "sample_type": IP | TID | TIME | PERIOD,
    "read_format": READ_ID | LOST,
    "inherit": 1,
    "sample_id_all": 1,
    "exclude_guest": 1,
    **LEADER,
}
TRACKING: Fields = dict.fromkeys(("mmap", "comm", "task", "mmap2", "comm_exec", "ksymbol", "bpf_event"), 1)
FIRST = RECORD | TRACKING
SEVERAL = {"sample_type": IP | TID | TIME | PERIOD | ID}
BY_COUNT = {"freq": 0, "sample_type": IP | TID | TIME}


def stat(type_: int, config: int, **others: int) -> Fields:
    return STAT | ({} if type_ == SOFTWARE else USER) | {"type": type_, "config": config} | others


# command -> attrs, on both ISAs
COMMANDS: dict[str, list[Fields]] = {
    "stat": [
        stat(SOFTWARE, 1),
        stat(SOFTWARE, 3),
        stat(SOFTWARE, 4),
        stat(SOFTWARE, 2),
        *(stat(HARDWARE, config) for config in (0, 1, 4, 5)),
    ],
    "stat -e instructions:u": [stat(HARDWARE, 1)],
    "stat -e cycles:uk": [STAT | USER],
    "stat -e cycles:k": [stat(HARDWARE, 0, exclude_kernel=0, exclude_user=1, exclude_hv=1)],  # and is not supported
    "stat -e cycles:h": [],
    "stat -e cycles:G": [STAT | USER | {"exclude_guest": 0, "exclude_host": 1}],
    "stat -e cycles:upp": [STAT | USER | {"precise_ip": 2}],
    "stat -e cycles:D": [STAT | USER | {"pinned": 1}],
    "stat -e page-faults:k": [stat(SOFTWARE, 2, exclude_user=1, exclude_hv=1)],
    "stat -i -e instructions": [stat(HARDWARE, 1, inherit=0)],
    "stat -e L1-dcache-load-misses": [stat(CACHE, 0x10000)],
    "stat -e {cycles,instructions}": [
        stat(HARDWARE, 0, read_format=ENABLED | RUNNING | READ_ID | GROUP),
        stat(HARDWARE, 1, read_format=ENABLED | RUNNING | READ_ID | GROUP, disabled=0, enable_on_exec=0),
    ],
    "stat -e {cycles}:D": [stat(HARDWARE, 0, pinned=1)],
    "record": [FIRST | USER],
    "record -F 100": [FIRST | USER | {"sample_period": 100}],
    "record -c 1000 -e instructions": [FIRST | USER | BY_COUNT | {"config": 1, "sample_period": 1000}],
    "record -g": [FIRST | USER | {"sample_type": IP | TID | TIME | PERIOD | CALLCHAIN}],
    "record --call-graph fp -c 7": [
        FIRST | USER | BY_COUNT | {"sample_period": 7, "sample_type": IP | TID | TIME | CALLCHAIN}
    ],
    "record -e task-clock": [FIRST | USER | {"type": SOFTWARE, "config": 1}],
    "record -e context-switches": [FIRST | {"type": SOFTWARE, "config": 3}],  # happens in the kernel
    "record -i": [FIRST | USER | {"inherit": 0}],
    "record -e cycles,instructions": [FIRST | USER | SEVERAL, RECORD | USER | SEVERAL | {"config": 1}],
    "record -e {cycles,instructions}": [
        FIRST | USER | SEVERAL,
        RECORD | USER | SEVERAL | {"config": 1, "disabled": 0, "enable_on_exec": 0},
    ],
    "record -e {cycles,instructions}:S": [
        FIRST
        | USER
        | {"sample_type": IP | TID | TIME | PERIOD | ID | READ, "read_format": READ_ID | LOST | GROUP, "inherit": 0},
        RECORD
        | USER
        | {"sample_type": IP | TID | TIME | PERIOD | ID | READ, "read_format": READ_ID | LOST | GROUP, "inherit": 0}
        | {"config": 1, "disabled": 0, "enable_on_exec": 0, "sample_period": 0, "freq": 0},
    ],
    "record -e cycles/period=1000/": [FIRST | USER | BY_COUNT | {"sample_period": 1000}],
    "record -e cycles/period=1000/,instructions": [
        FIRST | USER | {"freq": 0, "sample_period": 1000, "sample_type": IP | TID | TIME | IDENTIFIER},
        RECORD | USER | {"config": 1, "sample_type": IP | TID | TIME | PERIOD | IDENTIFIER},
    ],
}

SAMPLED = IP | TID | TIME | PERIOD
DWARF = {
    "sample_type": SAMPLED | CALLCHAIN | ADDR | DATA_SRC | REGS_USER | STACK_USER,
    "mmap_data": 1,
    "exclude_callchain_user": 1,
}
# An event of its own tells of tasks and mappings where the others do not count all the time.
APART = {"sample_type": SAMPLED | IDENTIFIER}
DUMMY = RECORD | TRACKING | USER | {"type": SOFTWARE, "config": 9, "freq": 0, "sample_period": 1}
DUMMY |= {"sample_type": IP | TID | TIME | IDENTIFIER}

# record's options, held against perf 6.1's -vv with task-clock:u, which it could open where these were written
OPTIONS: dict[str, list[Fields]] = {
    "record -d": [FIRST | USER | {"sample_type": SAMPLED | ADDR | DATA_SRC, "mmap_data": 1}],
    "record --phys-data --data-page-size --code-page-size": [
        FIRST | USER | {"sample_type": SAMPLED | PHYS_ADDR | DATA_PAGE_SIZE | CODE_PAGE_SIZE}
    ],
    "record -P -c 1000": [FIRST | USER | {"freq": 0, "sample_period": 1000}],
    "record --no-timestamp": [FIRST | USER | {"sample_type": IP | TID | PERIOD}],
    "record --per-thread": [FIRST | USER | {"sample_type": IP | TID | PERIOD, "inherit": 0}],
    "record --per-thread -T": [FIRST | USER | {"inherit": 0}],
    "record --sample-cpu --sample-identifier": [FIRST | USER | {"sample_type": SAMPLED | CPU | IDENTIFIER}],
    "record -R": [FIRST | USER | {"sample_type": SAMPLED | CPU | RAW_DATA}],
    "record -n": [FIRST | USER | {"sample_period": 0}],
    "record -s": [FIRST | USER | {"read_format": READ_ID | LOST | ENABLED | RUNNING, "inherit_stat": 1}],
    "record --running-time": [FIRST | USER | {"read_format": READ_ID | LOST | ENABLED | RUNNING}],
    "record --switch-events": [FIRST | USER | {"context_switch": 1}],
    "record --all-cgroups": [FIRST | USER | {"sample_type": SAMPLED | 1 << 21, "cgroup": 1}],
    "record --no-bpf-event": [FIRST | USER | {"bpf_event": 0}],
    "record -k raw": [FIRST | USER | {"use_clockid": 1, "clockid": 4}],
    "record -g --user-callchains": [FIRST | USER | {"sample_type": SAMPLED | CALLCHAIN, "exclude_callchain_kernel": 1}],
    "record -e task-clock --all-kernel": [FIRST | {"type": SOFTWARE, "config": 1, "exclude_user": 1, "exclude_hv": 1}],
    "record -D 1": [RECORD | USER | APART | {"enable_on_exec": 0}, DUMMY],
    "record --overwrite": [RECORD | USER | APART | {"write_backward": 1}, DUMMY],
    "stat -D 1 -e cycles": [stat(HARDWARE, 0, enable_on_exec=0)],
    "stat -I 1 -e cycles": [stat(HARDWARE, 0)],
    "stat -e cycles --all-user": [stat(HARDWARE, 0)],
}

AARCH64: dict[str, list[Fields]] = {
    "record -W": [FIRST | USER | {"sample_type": SAMPLED | 0x4000}],
    "record --call-graph dwarf,4096": [
        FIRST | USER | DWARF | {"sample_regs_user": (1 << 33) - 1, "sample_stack_user": 4096}
    ],
    "record --user-regs=sp,pc": [FIRST | USER | {"sample_type": SAMPLED | REGS_USER, "sample_regs_user": 3 << 31}],
    "stat -e r21": [stat(RAW, 0x21)],
    "stat -e inst_retired": [stat(ARM_PMU, 0x8)],
    "stat -e armv8_pmuv3_0/br_retired/": [stat(ARM_PMU, 0x21)],
    "stat -e armv8_pmuv3_0/event=8,long/": [stat(ARM_PMU, 0x8, config1=1)],
}
X86_64: dict[str, list[Fields]] = {
    "record -W": [FIRST | USER | {"sample_type": SAMPLED | 1 << 24}],
    "record --call-graph dwarf": [FIRST | USER | DWARF | {"sample_regs_user": 0xFF0FFF, "sample_stack_user": 8192}],
    "record -I": [FIRST | USER | {"sample_type": SAMPLED | REGS_INTR, "sample_regs_intr": 0xFF0FFF}],
    "record --user-regs=ip,sp": [FIRST | USER | {"sample_type": SAMPLED | REGS_USER, "sample_regs_user": 0x180}],
    "stat -e r1c4": [stat(RAW, 0x1C4)],
    "stat -e ref-cycles": [stat(HARDWARE, 9)],
    "stat -e inst_retired.any": [stat(RAW, 0xC0)],
    "stat -e cpu/event=0xc4,umask=0x20/": [stat(RAW, 0x20C4)],
}
CASES = [
    *((command, isa, attrs) for isa in ISAS for command, attrs in (COMMANDS | OPTIONS).items()),
    *((command, "aarch64", attrs) for command, attrs in AARCH64.items()),
    *((command, "x86_64", attrs) for command, attrs in X86_64.items()),
]


def nonzero(attr: PerfEventAttr) -> Fields:
    named = {field.name: int(getattr(attr, field.name)) for field in fields(attr)}
    return {name: value for name, value in named.items() if value}


@pytest.mark.parametrize(("command", "isa", "expected"), CASES)
def test_command_opens(
    command: str, isa: str, expected: list[Fields], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Fields] = []
    open_event = PerfEvents.open

    def spy(self: PerfEvents, attr: PerfEventAttr, *arguments: object, **others: object) -> PerfEvent:
        opened.append(nonzero(attr))
        return open_event(self, attr, *arguments, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(PerfEvents, "open", spy)
    monkeypatch.chdir(tmp_path)
    name, *options = command.split()
    assert main([name, "--core", "ideal", *options, str(DIRECTORY / "loop_1k" / f"{isa}.elf")]) == 0
    assert opened == [{name: value for name, value in attr.items() if value} for attr in expected]
