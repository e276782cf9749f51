"""docs/syscalls.md lists every system call of both ISAs and how far it goes, as a machine's kernel answers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from emulator.linux.kernel import Kernel
from emulator.linux.syscalls.names import syscall_names
from emulator.linux.syscalls.table import Support, Syscall
from golden.pages import check_page
from guests import DIRECTORY, ISAS, guest
from perfemu.guest import Guest
from perfemu.session import Session

PAGE = DIRECTORY.parent / "docs" / "syscalls.md"
MARK = "<!-- made from the rows in emulator/linux/syscalls by `make golden` -->\n"
NONE = "none"


def kernels() -> dict[str, Kernel]:
    """One for each ISA, with what other rooms have put into it."""
    return {isa: Session(Guest((str(guest("loop_1k", isa).path),), core="ideal")).machine.kernel for isa in ISAS}


def numbers() -> dict[str, dict[str, int]]:
    """ISA -> name -> number."""
    return {isa: {name: number for number, name in syscall_names(isa).items()} for isa in ISAS}


def answers(kernels: Mapping[str, Kernel], numbers: Mapping[str, Mapping[str, int]]) -> dict[str, Syscall | None]:
    """Name -> the row; a call is the same on both ISAs."""
    found: dict[str, Syscall | None] = {}
    for name in sorted({name for names in numbers.values() for name in names}):
        rows = [kernels[isa].syscalls.row(numbers[isa][name]) for isa in ISAS if name in numbers[isa]]
        assert len({row and (row.support, row.note) for row in rows}) == 1, f"{name} differs between the ISAs"
        found[name] = rows[0]
    return found


def page() -> Iterator[str]:
    known = numbers()
    rows = answers(kernels(), known)
    yield "\n| | AArch64 | x86-64 |\n|---|---|---|\n"
    for level in (*(support.value for support in Support), NONE):
        counts = [sum(1 for name in known[isa] if level_of(rows[name]) == level) for isa in ISAS]
        yield f"| {level} | {counts[0]} | {counts[1]} |\n"
    yield "\n| call | AArch64 | x86-64 | | |\n|---|---|---|---|---|\n"
    for name, row in rows.items():
        own = [str(known[isa].get(name, "")) for isa in ISAS]
        note = "" if row is None else row.note.replace("|", "&#124;").replace("*", "&#42;")
        yield f"| `{name}` | {own[0]} | {own[1]} | {level_of(row)} | {note} |\n"


def level_of(row: Syscall | None) -> str:
    return NONE if row is None else row.support.value


def test_the_page_is_what_the_kernels_answer() -> None:
    check_page(PAGE, MARK, "".join(page()))


def test_every_call_of_each_isa_is_on_the_page() -> None:
    listed = {line.split("`")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")}
    for isa in ISAS:
        assert set(syscall_names(isa).values()) <= listed
    assert len(listed) > 350
