"""-e uprobe:PATH:FUNCTION: how often a function is entered and returns, and with what; nothing changes by that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import perfemu
from c_programs import build
from end_to_end.command import perfemu as command
from end_to_end.watching import NOTHING, Watch, observe
from guests import DIRECTORY, ISAS, guest

FIRST = {"aarch64": "%x0", "x86_64": "%di"}
CORES = {"aarch64": "neoverse-n1", "x86_64": "skylake"}
CALLS = 101  # of descend, with 100 to 0: guest_programs/recursion
THREADS = """
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static long work(long n, const char *text) { return n * 2 + strlen(text); }
static void *thread(void *n) { return (void *)work((long)n, "thread"); }
int main(void) {
    pthread_t threads[4];
    for (long n = 0; n < 4; n++) pthread_create(threads + n, 0, thread, (void *)n);
    for (long n = 0; n < 4; n++) pthread_join(threads[n], 0);
    if (!fork()) _exit(work(10, "child") != 25);
    wait(0);
    return work(20, "parent") != 46;
}
"""


def program(isa: str) -> Path:
    return DIRECTORY / "recursion" / f"{isa}.elf"


@pytest.mark.parametrize("isa", ISAS)
def test_entries_and_returns_are_counted(isa: str) -> None:
    """And instructions as without them."""
    derived = guest("recursion", isa).counts
    path = program(isa)
    events = [f"uprobe:{path}:descend,uretprobe:descend,uprobe:leaf,instructions", f"uprobe:descend {FIRST[isa]}"]
    measured = perfemu.stat(perfemu.Guest([path], core="ideal"), events)
    group = f"probe_{isa.partition('_')[0]}"  # as perf calls a program's: up to a dot, a dash or an underscore
    assert {row.name: measured[row.name] for row in measured.counts} == {
        f"{group}:descend": CALLS,
        f"{group}:descend__return": CALLS,  # Linux would hear of 64
        f"{group}:leaf": 1,
        "instructions:u": derived["INST_RETIRED"],
        f"{group}:descend_1": CALLS,
    }


@pytest.mark.parametrize("isa", ISAS)
def test_nothing_changes(isa: str) -> None:
    watch = Watch("probes", sample=f"uprobe:descend n={FIRST[isa]},uretprobe:descend,uprobe:leaf")
    for core in ("ideal", CORES[isa]):
        argv = (str(program(isa)),)
        alone, watched = (observe(argv, each, core=core) for each in (NOTHING, watch))
        assert watched.watched > 0
        assert alone.same_as(watched), alone.difference(watched)


@pytest.mark.parametrize("isa", ISAS)
def test_samples_tell_arguments_and_results(isa: str, tmp_path: Path) -> None:
    """Of all threads and children; strlen of thread is 6, of child 5, of parent 6."""
    source = tmp_path / "tasks.c"
    source.write_text(THREADS)
    built = build(source, isa, tmp_path / "tasks")
    second = {"aarch64": "%x1", "x86_64": "%si"}[isa]
    events = f"uprobe:work n={FIRST[isa]}:s64 text=+0({second}):string,uretprobe:work result=$retval:s32"
    recorded = command("record", "--cpus", "2", "-e", events, "-o", "data", built, cwd=tmp_path)
    assert recorded.returncode == 0, recorded.stderr
    said = command("script", "-F", "event,trace", "-i", "data", cwd=tmp_path).stdout.decode()
    told = re.findall(r'n=(\d+) text="(\w+)"', said)
    assert sorted(told) == sorted([*((str(n), "thread") for n in range(4)), ("10", "child"), ("20", "parent")])
    assert sorted(map(int, re.findall(r"result=(\d+)", said))) == [6, 8, 10, 12, 25, 46]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("uprobe:descent", "has no function descent; near: descend"),
        ("uprobe:/nowhere:main", "/nowhere: No such file or directory"),
        ("uprobe:descend n=%nothing", "aarch64 has no register %nothing"),
        ("uprobe:descend %x0:string", "a string is in memory: +0(VALUE)"),
        ("uretprobe:descend+4", "a return is of a whole function, not of +4"),
        ("uprobe:", "a probe is written uprobe:PATH:FUNCTION[+OFFSET] [ARGUMENTS]"),
        ("uprobe:descend+2", "instructions are 4 bytes apart: +2 is none"),
        ("uprobe:leaf+8", "leaf has 8 bytes"),
    ],
)
def test_what_is_refused(event: str, says: str) -> None:
    done = command("stat", "-e", event, program("aarch64"))
    assert done.returncode == 129
    (line,) = done.stderr.decode().splitlines()
    assert says in line
