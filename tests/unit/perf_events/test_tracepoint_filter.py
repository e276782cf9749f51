"""Filters of tracepoints: the kernel's grammar, and which occurrences are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfemu
from c_programs import build
from emulator.linux.errors import EEXIST, EINVAL, ENOENT, EPERM, ESRCH, LinuxError
from guests import ISAS
from perfcore.abi.kernel_tracepoints import SCHED_SWITCH, SYS_ENTER
from perfcore.events.tracepoint_filter import parse_filter

SOURCE = Path(__file__).with_name("filters.c")
SWITCH = SCHED_SWITCH.filtered(7, "cat", 1, ("cat", 7, 120, 1, "dog", -1, 98))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("prev_pid == 7", True),
        ("prev_pid==0x7", True),
        ("prev_pid == 07", True),
        ("prev_pid != 7", False),
        ("next_pid < 0", True),  # signed
        ("next_pid == 0xffffffff", True),  # as its C type holds it
        ("next_prio >= 98 && next_prio <= 98", True),
        ("prev_state & 3", True),
        ("prev_state & 2", False),
        ('next_comm == "dog"', True),
        ("next_comm == 'do*'", False),
        ("next_comm ~ 'do*'", True),
        ('next_comm ~ "[cd]?g"', True),
        ('next_comm != "dog"', False),
        ("!(prev_pid == 8)", True),
        ("!!prev_pid == 7", True),
        ("prev_pid == 8 || prev_pid == 7 && prev_prio == 120", True),
        ("(prev_pid == 7 || prev_pid == 8) && prev_prio == 0", False),
        ("prev_pid == 7 || prev_pid == 8 && prev_prio == 0", True),  # && binds closer
        ("common_pid == 7 && CPU == 1 && COMM == 'cat'", True),
        ("  prev_pid   >  6  ", True),
    ],
)
def test_what_is_wanted(text: str, wanted: bool) -> None:
    assert parse_filter(text, SCHED_SWITCH)(SWITCH) is wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prev_pid",
        "prev_pid ==",
        "prev_pid = 7",
        "nothing == 7",
        "prev_pid == seven",
        "prev_pid == '7'",
        "prev_pid ~ 7",
        "next_comm == 7",
        "next_comm > 'a'",
        "next_comm == dog",
        "prev_pid == 7 &&",
        "prev_pid == 7x",
        "prev_pid == 99999999999999999999",
        "(" * 5000 + "prev_pid == 7" + ")" * 5000,
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(LinuxError) as error:
        parse_filter(text, SCHED_SWITCH)
    assert error.value.code == EINVAL


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('next_comm == "dog', ESRCH),
        ("(prev_pid == 7", ENOENT),
        ("prev_pid == 7)", EPERM),
        ("prev_pid == 7 prev_prio == 120", EPERM),
        ("|| prev_pid == 7", EPERM),
    ],
)
def test_where_the_kernel_counts_signs_its_error_is_another(text: str, code: int) -> None:
    """calc_stack() says -3, -2 or -1, and that reaches the caller: as Linux 6.12 answers (perf_calls/uprobes.c)."""
    with pytest.raises(LinuxError) as error:
        parse_filter(text, SCHED_SWITCH)
    assert error.value.code == code


def test_an_array_is_not_compared() -> None:
    with pytest.raises(LinuxError):
        parse_filter("args == 1", SYS_ENTER)


@pytest.mark.parametrize("isa", ISAS)
def test_a_guests_event_counts_what_its_filter_wants(isa: str, tmp_path: Path) -> None:
    """filters.c makes five calls of close, each of a number that is no descriptor, and three of getppid."""
    program = build(SOURCE, isa, tmp_path / "filters")
    ours = perfemu.run(perfemu.Guest([program], core="ideal"), capture=True)
    assert ours.stdout is not None
    assert ours.stdout.decode().splitlines() == [
        "failed calls: 5",
        f"again: {EEXIST}",
        f"wrong: {EINVAL}",
        f"software: {EINVAL}",
        "nowhere: 14",
    ]
