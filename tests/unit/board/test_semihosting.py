"""Semihosting, as bare-metal programs use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.board.ninep.share import Share
from emulator.board.semihosting import MOST_FILES
from perfemu.board_shares import shares
from tests.unit.board.booted import Booted, boot
from tests.unit.board.test_serial_input import Lines
from tests.unit.board.test_virt import WITH_VECTORS

# `call OP, BLOCK`: X0 is the answer
CALL = """
        .macro  call operation, block
        mov     w0, #\\operation
        adr     x1, \\block
        hlt     #0xf000
        .endm
        .macro  point field, at
        adr     x2, \\field
        adr     x3, \\at
        str     x3, [x2]
        .endm
"""


def bound(folder: Path, mode: str = ":rw") -> dict[str, Share]:
    folder.mkdir(exist_ok=True)
    return shares([f"{folder}:files{mode}"], 1 << 20)


def run(source: str, folder: Path, **options: object) -> Booted:
    return boot(CALL + source, folder, **{"semihosting": True, **options})  # type: ignore[arg-type]


def test_console(tmp_path: Path) -> None:
    source = """
        call    4, text
        call    3, text + 1
        mov     x19, x0
        call    7, 0
        mov     x20, x0
        call    7, 0
        mov     x21, x0
        b       off
text:   .asciz  "said"
        .balign 8
    """
    booted = run(source, tmp_path, source_of_input=Lines(b"x"))
    assert (booted.output, booted.register(20), booted.register(21)) == (b"saida", ord("x"), (1 << 64) - 1)
    assert booted.messages == []


@pytest.mark.parametrize("operation", [0x18, 0x20])
@pytest.mark.parametrize(("reason", "status", "ends"), [(0x20026, 0, 0), (0x20026, 42, 42), (0x20023, 0, 1)])
def test_exit(operation: int, reason: int, status: int, ends: int, tmp_path: Path) -> None:
    booted = run(f"call {operation}, 1f\nb off\n.balign 8\n1: .quad {reason}, {status}\n", tmp_path)
    assert (booted.board.ended, booted.board.exit_status) == (Ended.STATUS, ends)


FILES = """
        point   name, path
        point   data, text
        call    1, name             // opened to be written
        mov     x19, x0
        adr     x2, handle
        str     x0, [x2]
        call    5, handle
        mov     x21, x0
        call    0xc, handle
        mov     x22, x0
        call    2, handle
        adr     x2, name
        str     xzr, [x2, #8]       // to be read
        call    1, name
        point   data, buffer
        call    6, handle
        mov     x23, x0
        ldr     x24, buffer
        call    9, handle
        mov     x25, x0
        b       off
        .balign 8
name:   .quad   0, MODE, end - path
handle: .quad   0
data:   .quad   0, 8
buffer: .quad   0
text:   .ascii  "contents"
path:   .ascii  "PATH"
end:    .balign 8
"""


def test_files(tmp_path: Path) -> None:
    source = FILES.replace("PATH", "files/made").replace("MODE", "4")
    booted = run(source, tmp_path, shares=bound(tmp_path / "bound"))
    assert [booted.register(number) for number in (19, 21, 22, 23, 25)] == [1, 0, 8, 0, 0]
    assert booted.register(24) == int.from_bytes(b"contents", "little")
    assert (tmp_path / "bound/made").read_bytes() == b"contents"


@pytest.mark.parametrize("mode", [0, 2, 4, 8])
@pytest.mark.parametrize("path", ["/etc/passwd", "files/../secret", "files/link/secret", "secret", "files"])
def test_files_that_are_not_bound(path: str, mode: int, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    binds = bound(tmp_path / "bound")
    (tmp_path / "bound/link").symlink_to("..")
    booted = run(FILES.replace("PATH", path).replace("MODE", str(mode)), tmp_path, shares=binds)
    assert booted.register(19) == (1 << 64) - 1
    assert (tmp_path / "secret").read_bytes() == b"secret"
    if not path.startswith("files/"):
        assert (
            booted.messages
            == [f"semihosting: {path!r} is no file below what is bound; TAG/name is, with --bind HOST:TAG"] * 2
        )


def test_what_may_only_be_read(tmp_path: Path) -> None:
    binds = bound(tmp_path / "bound", ":ro")
    booted = run(FILES.replace("PATH", "files/made").replace("MODE", "4"), tmp_path, shares=binds)
    assert booted.register(19) == (1 << 64) - 1
    assert list((tmp_path / "bound").iterdir()) == []


def test_it_is_undefined_where_the_user_has_not_asked_for_it(tmp_path: Path) -> None:
    booted = run(WITH_VECTORS + "call 4, off\n", tmp_path, semihosting=False)
    assert booted.register(10) == 1 << 25  # unknown


@pytest.mark.parametrize("block", ["mov x1, #0", "mov x1, #-1", "adr x1, 2f"])
def test_whatever_is_asked(block: str, tmp_path: Path) -> None:
    source = f"""
1:      {block}
        mov     w0, w19
        hlt     #0xf000
        add     w19, w19, #1
        cmp     w19, #0x18              // SYS_EXIT
        csinc   w19, w19, w19, ne
        cmp     w19, #0x20              // SYS_EXIT_EXTENDED
        csinc   w19, w19, w19, ne
        cmp     w19, #0x40
        b.ne    1b
        b       off
        .balign 8
2:      .quad   -1, -1, -1, -1
    """
    booted = run(source, tmp_path, shares=bound(tmp_path / "bound"))
    assert (booted.board.ended, booted.register(19)) == (Ended.OFF, 0x40)


def test_handles_have_a_limit(tmp_path: Path) -> None:
    source = """
        point   name, 2f
1:      add     x19, x19, #1
        call    1, name
        tbz     x0, #63, 1b
        call    0x13, name
        b       off
        .balign 8
name:   .quad   0, 0, 3
2:      .ascii  ":tt"
        .balign 8
    """
    booted = run(source, tmp_path)
    assert booted.register(19) == MOST_FILES + 1
