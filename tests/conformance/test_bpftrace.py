"""Debian's bpftrace as a guest, 0.17 and 0.23: a profile, probes of a program and of the kernel, BEGIN and END."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import require
from c_programs import build
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU

WORK = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((noinline)) void busier(void) { __asm__ volatile(""); }
__attribute__((noinline)) void busy(long turns) { for (volatile long turn = 0; turn < turns; turn++) continue; }
int main(void) {
    for (int turn = 0; turn < 3; turn++) {
        close(open("/etc/debian_version", O_RDONLY));
        busy(1000000);
    }
    busier();
    getppid();
}
"""
SCRIPT = """
BEGIN { @begun = 1; }
profile:hz:999 /pid == cpid/ { @samples[ustack(1)] = count(); }
kprobe:do_sys_openat2 /pid == cpid/ { printf("opens %s\\n", str(uptr(arg1))); }
uprobe:/w/work:busy { @turns = sum(arg0); }
uretprobe:/w/work:busy { @returns = count(); }
END { printf("ended\\n"); }
"""
TIMEOUT_S = 120


TYPED = """
tracepoint:syscalls:sys_enter_openat /pid == cpid/ { printf("enters %s %d\\n", str(args->filename), args->flags); }
tracepoint:sched:sched_process_exit /args->pid == cpid/ { printf("exits %s\\n", args->comm); }
kfunc:do_sys_openat2 /pid == cpid/ { printf("from %d, flags %o\\n", (int32)args->dfd, args->how->flags); }
kretfunc:do_sys_openat2 /pid == cpid/ { @returns[curtask->comm] = count(); }
"""
WILD = """
uprobe:/w/work:bus* { @entered[probe] = count(); }
uretprobe:/w/work:bus* { @left = count(); }
kprobe:__x64_sys_get*pid /pid == cpid/ { @calls[probe] = count(); }
kretprobe:__x64_sys_get*pid /pid == cpid/ { @results = count(); }
"""
RELEASES = pytest.mark.parametrize("release", ["", TRIXIE], ids=["0.17", "0.23"])


def bpftrace(tree: Path, tmp_path: Path, script: str) -> list[str]:
    """Its lines, of WORK."""
    source = tmp_path / "work.c"
    source.write_text(WORK, encoding="utf-8")
    build(source, "x86_64", tmp_path / "work", "-O1")
    binds = ["--bind", f"{tree}:/", "--bind", f"{tmp_path}:/w"]
    command = [PERFEMU, "run", "--core", "ideal", *binds, "--", "/usr/bin/bpftrace", "-c", "/w/work", "-e", script]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=ENVIRONMENT,
        check=True,
    )
    return done.stdout.splitlines()


@RELEASES
def test_a_program_is_traced(release: str, tmp_path: Path) -> None:
    """busy() is called three times with a million, and has over 4 instructions a turn: 12 ms of `ideal`'s 1 GHz."""
    lines = bpftrace(require.debian_tree("amd64", "bpftrace", release=release), tmp_path, SCRIPT)
    assert lines.count("opens /etc/debian_version") == 3
    assert "ended" in lines
    assert "@begun: 1" in lines
    assert "@turns: 3000000" in lines
    assert "@returns: 3" in lines
    assert sum(int(line.partition("]: ")[2]) for line in lines if line.startswith("]: ")) >= 11


@RELEASES
def test_arguments_have_the_types_of_the_kernel(release: str, tmp_path: Path) -> None:
    """Without headers: by its BTF. bpftrace asks sh for a compiler first. WORK opens a file three times, from AT_FDCWD,
    with O_RDONLY, to which the kernel of 64 bits adds O_LARGEFILE (0100000)."""
    lines = bpftrace(require.debian_tree("amd64", "bpftrace", "dash", release=release), tmp_path, TYPED)
    assert lines.count("enters /etc/debian_version 0") == 3
    assert lines.count("from -100, flags 100000") == 3
    assert lines.count("exits work") == 1
    assert "@returns[work]: 3" in lines


@RELEASES
def test_probes_by_wildcards(release: str, tmp_path: Path) -> None:
    """Links to many probes at once, in 0.23. WORK calls busy() three times, busier() and getppid() once."""
    lines = bpftrace(require.debian_tree("amd64", "bpftrace", release=release), tmp_path, WILD)
    expected = {
        "@entered[uprobe:/w/work:busy]: 3",
        "@entered[uprobe:/w/work:busier]: 1",
        "@left: 4",
        "@calls[kprobe:__x64_sys_getppid]: 1",
        "@results: 1",
    }
    assert expected <= set(lines)
