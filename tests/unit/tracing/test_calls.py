"""How arguments are shown: by rows of the syscall table, and by what is known besides."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from emulator.linux.signals.signal import (
    CLD_KILLED,
    SEGV_MAPERR,
    SI_USER,
    SIGCHLD,
    SIGKILL,
    SIGSEGV,
    SIGUSR1,
    SignalInfo,
)
from emulator.linux.syscalls.names import syscall_names
from emulator.linux.syscalls.table import Parameter, Shown, load
from perfemu.tracing.calls import ARGUMENTS, CallShape
from perfemu.tracing.constants import CLONE, MAP, MAP_KINDS, OPEN, OPEN_ACCESS, PROTECTION
from perfemu.tracing.results import RESULTS
from perfemu.tracing.selection import CLASSES, parse
from perfemu.tracing.structures import signal_info, stat_text, wait_status
from perfemu.tracing.values import View, file_mode, flags, quoted, signal_set
from perfemu.tracing.variants import VARIANTS

ROWS = {row.name: row for row in load()}


def test_every_row_has_a_shape() -> None:
    for row in ROWS.values():
        shape = CallShape.of(row)
        shown = [index for index, parameter in enumerate(row.parameters()) if parameter.shown is not Shown.UNUSED]
        assert [argument.register for argument in shape.usual] == shown


def test_what_is_known_of_calls_is_of_arguments_that_they_have() -> None:
    for call, arguments in ARGUMENTS.items():
        if call in ROWS:
            assert set(arguments) <= {parameter.name for parameter in ROWS[call].parameters()}, call


def test_calls_that_are_known_exist() -> None:
    names = {name for isa in ("aarch64", "x86_64") for name in syscall_names(isa).values()}
    for table in (ARGUMENTS, VARIANTS, RESULTS, *(text.split() for text in CLASSES.values())):
        assert set(table) <= names


def test_parameters_say_what_the_annotations_say() -> None:
    assert ROWS["openat"].parameters() == (
        Parameter("dfd", Shown.INT),
        Parameter("filename", Shown.STRING),
        Parameter("flags", Shown.INT),
        Parameter("mode", Shown.UNSIGNED_INT),
    )
    assert [parameter.shown for parameter in ROWS["nanosleep"].parameters()] == [Shown.STRUCTURE, Shown.RESULT]
    assert ROWS["read"].parameters()[1:] == (
        Parameter("buf", Shown.ADDRESS),
        Parameter("count", Shown.UNSIGNED_LONG),
    )


def test_flags_by_name() -> None:
    assert flags(OPEN["x86_64"], 0o2000000, OPEN_ACCESS) == "O_RDONLY|O_CLOEXEC"
    assert flags(OPEN["x86_64"], 0o200000, OPEN_ACCESS) == "O_RDONLY|O_DIRECTORY"
    assert flags(OPEN["aarch64"], 0o40000, OPEN_ACCESS) == "O_RDONLY|O_DIRECTORY"
    assert flags(OPEN["aarch64"], 0o20040002, OPEN_ACCESS) == "O_RDWR|O_TMPFILE"
    assert flags(PROTECTION, 0, nothing="PROT_NONE") == "PROT_NONE"
    assert flags(MAP, 0x22, MAP_KINDS) == "MAP_PRIVATE|MAP_ANONYMOUS"
    assert flags(CLONE, 0x01200000) == "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID"
    assert flags(PROTECTION, 0x83) == "PROT_READ|PROT_WRITE|0x80"


def test_strings_as_c_writes_them() -> None:
    assert quoted(b'a"b\\\n\t') == r'"a\"b\\\n\t"'
    assert quoted(b"\x7fELF\x02\x01\x001") == r'"\177ELF\2\1\0001"'  # three digits where one follows
    assert quoted(b"\xff", cut=True) == r'"\377"...'


def test_sets_of_signals() -> None:
    assert signal_set(0) == "[]"
    assert signal_set(1 << 1 | 1 << 16) == "[INT CHLD]"
    assert signal_set((1 << 64) - 1) == "~[]"
    assert signal_set((1 << 64) - 1 & ~(1 << 31 | 1 << 32)) == "~[RTMIN RT_1]"


def test_modes_and_files() -> None:
    assert file_mode(0o41777) == "S_IFDIR|S_ISVTX|0777"
    assert stat_text(0o100644, 12, 0) == "{st_mode=S_IFREG|0644, st_size=12, ...}"
    assert stat_text(0o020666, 0, 0x103) == "{st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}"


@dataclass
class NoTask:
    """Where a shape needs no guest."""

    arguments: tuple[int, ...] = field(default=())


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0x0300, "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]"),
        (0x0009, "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL}]"),
        (0x137F, "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]"),
        (0xFFFF, "[{WIFCONTINUED(s)}]"),
    ],
)
def test_wait_status_words(status: int, text: str) -> None:
    view = View(NoTask(), (), 1)  # type: ignore[arg-type]
    assert wait_status(view, status.to_bytes(4, "little")) == text


def test_signals_with_their_information() -> None:
    assert signal_info(SignalInfo(SIGUSR1, SI_USER, pid=7)) == (
        "{si_signo=SIGUSR1, si_code=SI_USER, si_pid=7, si_uid=0}"
    )
    assert signal_info(SignalInfo(SIGSEGV, SEGV_MAPERR, 0x10)) == (
        "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10}"
    )
    assert "si_status=SIGKILL, " in signal_info(SignalInfo(SIGCHLD, CLD_KILLED, pid=7, value=SIGKILL))


def test_selections() -> None:
    everything = parse(())
    assert everything.shows("read")
    assert everything.shows_signal(SIGUSR1)
    chosen = parse(("trace=!%file,read",))
    assert not chosen.shows("openat")
    assert not chosen.shows("read")
    assert chosen.shows("write")
    assert parse(("?nothing,read",)).calls == {"read"}
    assert parse(("none",)).calls == frozenset()
    assert not parse(("signal=!SIGUSR1",)).shows_signal(SIGUSR1)
