"""Process 1 is init, as init_checks.c finds it: root's, asleep, heedless of signals, and parent of orphans."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import build
from unit.linux_process.test_process_checks import run

ROOT = """\
is it there: 0
SIGTERM: 0
SIGKILL: 0
SIGSTOP: 0
traced: Operation not permitted
to its group: 0
"""
USER = """\
is it there: Operation not permitted
SIGTERM: Operation not permitted
SIGKILL: Operation not permitted
SIGSTOP: Operation not permitted
traced: Operation not permitted
to its group: 0
its parent: Operation not permitted
all others: 0
"""


@pytest.mark.parametrize("isa", ["x86_64", "aarch64"])
def test_process_1_is_init(isa: str, tmp_path: Path) -> None:
    """Of a kill(-1) by a user others' processes are no error (kill(2)); where there is nobody else, ESRCH."""
    source = Path(__file__).with_name("init_checks.c")
    status, output = run(build(source, isa, tmp_path / "init_checks", "-w"), isa, None, tmp_path)
    lines = output.splitlines(keepends=True)
    begins, ends = lines[1].split(), lines[-1].split()
    assert begins[:6] == ["1", "(init)", "S", "0", "1", "1"]  # asleep; nobody's child; its own group and session
    assert ends == begins  # it has used nothing, and is still there
    told = "".join(line for line in lines if line not in (lines[1], lines[-1]))
    first = "init\n/proc/1/exe: 10\nowner: 0\nall others: No such process\n"  # /sbin/init
    assert told == first + ROOT + "adopted by 1\n" + USER
    assert status == 0
