"""What tracepoints tell, as bytes, and how tracefs describes that."""

from __future__ import annotations

import re
import struct
from itertools import pairwise

import pytest

from emulator.linux.syscalls.table import load
from guests import ISAS
from perfcore.abi.kernel_tracepoints import PRINT, SCHED_PROCESS_EXEC, SCHED_SWITCH, SYS_ENTER
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.abi.tracepoints import TracepointEvent

FIELD = re.compile(r"^\tfield:(.+);\toffset:(\d+);\tsize:(\d+);\tsigned:([01]);$", re.MULTILINE)


def places(event: TracepointEvent) -> dict[str, tuple[int, int]]:
    """Field -> offset and size."""
    found = FIELD.findall(event.text)
    return {declared.split()[-1].split("[")[0]: (int(offset), int(size)) for declared, offset, size, _ in found}


def test_fields_lie_as_c_lays_a_structure_out() -> None:
    """char[16] behind 8 bytes of trace_entry; a long of 8 bytes behind two ints, at 24 and 28."""
    assert list(places(SCHED_SWITCH).values()) == [
        *((0, 2), (2, 1), (3, 1), (4, 4)),
        *((8, 16), (24, 4), (28, 4), (32, 8), (40, 16), (56, 4), (60, 4)),
    ]
    raw = SCHED_SWITCH.pack(1001, ("first", 1001, 120, 0x100, "second", 1002, 98))
    assert struct.unpack("<HBBi16siiq16sii", raw) == (
        *(SCHED_SWITCH.id, 0, 0, 1001),
        *(b"first".ljust(16, b"\0"), 1001, 120, 0x100, b"second".ljust(16, b"\0"), 1002, 98),
    )


def test_times_of_the_scheduler_are_told_as_linux_tells_them() -> None:
    """DECLARE_EVENT_CLASS(sched_stat_template) and sched_stat_runtime: a u64 at a multiple of 8."""
    for name in ("wait", "sleep", "iowait", "blocked"):
        event = tracepoints_of("x86_64")[f"sched:sched_stat_{name}"]
        assert list(places(event).items())[4:] == [("comm", (8, 16)), ("pid", (24, 4)), ("delay", (32, 8))]
    runtime = tracepoints_of("x86_64")["sched:sched_stat_runtime"]
    assert list(places(runtime))[4:] == ["comm", "pid", "runtime"]
    assert runtime.text.endswith(
        'print fmt: "comm=%s pid=%d runtime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime\n'
    )


def test_what_tracers_write_is_described() -> None:
    """As Debian's 6.12 for arm64 describes it; perf 6.1 takes an empty ftrace/ for an error (-e '*:*')."""
    assert PRINT.text.endswith(
        "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
        "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n"
        '\nprint fmt: "%ps: %s", (void *)REC->ip, REC->buf\n'
    )


def test_a_string_stands_behind_the_fields() -> None:
    raw = SCHED_PROCESS_EXEC.pack(7, ("/bin/true", 7, 7))
    location = struct.unpack_from("<I", raw, 8)[0]
    assert raw[location & 0xFFFF :][: location >> 16] == b"/bin/true\0"


def test_an_array_is_as_long_as_its_numbers() -> None:
    assert SYS_ENTER.pack(7, (64, (1, 2, 3, 4, 5, 6)))[8:] == struct.pack("<7q", 64, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("isa", ISAS)
def test_every_tracepoint_is_described_and_has_an_id_of_its_own(isa: str) -> None:
    events = tracepoints_of(isa)
    ids = [event.id for event in events.values()]
    assert len(set(ids)) == len(ids)
    assert max(ids) < 1 << 16  # common_type
    for event in events.values():
        where = list(places(event).values())
        assert all(offset + size <= following for (offset, size), (following, _) in pairwise(where)), event.text
        assert f"ID: {event.id}\n" in event.text
        assert len(set(re.findall(r"REC->(\w+)", event.text)) - set(places(event))) == 0


@pytest.mark.parametrize("isa", ISAS)
def test_each_system_call_has_two(isa: str) -> None:
    events = tracepoints_of(isa)
    calls = [row for row in load() if row.number(isa) is not None]
    assert sum(event.system == "syscalls" for event in events.values()) == 2 * len(calls)
    write = events["syscalls:sys_enter_write"]
    assert list(places(write))[4:] == ["__syscall_nr", "fd", "buf", "count"]
    number = next(row.number(isa) for row in calls if row.name == "write")
    assert number is not None
    raw = write.pack(9, (number, 1, 0x1000, 4))
    assert struct.unpack("<HBBiixxxxQQQ", raw) == (write.id, 0, 0, 9, number, 1, 0x1000, 4)
