"""Watching changes nothing: output, syscalls with their times and results, and all counts, whatever events are open."""

from __future__ import annotations

from pathlib import Path

import pytest

import require
from c_programs import build
from end_to_end.watching import NOTHING, WATCHES, Watch, observe
from guests import DIRECTORY, ISAS

SHELL = (
    "trap 'echo caught' USR1; kill -USR1 $$; i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo $i; done; "
    "read up < /proc/uptime; echo $up; while read line; do echo $line; done < /proc/self/stat; ulimit -a; umask; set"
)
SQL = (
    "create table t(a, b); with recursive c(x) as (select 1 union all select x+1 from c where x<200) "
    "insert into t select x, hex(randomblob(4)) from c; select count(*), sum(a), max(b) from t; select datetime('now');"
)


def check(argv: tuple[str, ...], **options: str | bytes | None) -> None:
    alone = observe(argv, NOTHING, **options)  # type: ignore[arg-type]
    assert alone.totals["INST_RETIRED"] > 0
    for watch in WATCHES:
        watched = observe(argv, watch, **options)  # type: ignore[arg-type]
        assert watched.watched > 0, f"{watch.name} saw nothing"
        assert alone.same_as(watched), f"{watch.name}: {alone.difference(watched)}"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["fresh_pages", "self_monitoring", "page_crossing", "user_counter", "integer_mix"])
def test_guest_programs(name: str, isa: str) -> None:
    check((str(DIRECTORY / name / f"{isa}.elf"),))


def test_busybox() -> None:
    busybox = require.command("busybox", package="busybox-static")
    check((busybox, "sh", "-c", SHELL))
    check((busybox, "usleep", "7200000000"))
    check((busybox, "sort"), stdin=b"".join(b"%d\n" % (number * 7919 % 500) for number in range(500)))


def test_sqlite() -> None:
    check((require.command("sqlite3", package="sqlite3"), ":memory:", SQL))


def test_arm_programs() -> None:
    tree = require.debian_arm64("busybox-static")
    check((str(tree / "bin" / "busybox"), "sh", "-c", SHELL))


CLOCKS = """
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
static volatile int ticks;
static void tick(int number) { (void)number; ticks++; }
int main(void) {
  struct sigaction action = {.sa_handler = tick};
  sigaction(SIGALRM, &action, 0);
  struct itimerval every = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &every, 0);
  volatile unsigned long spins = 0;
  while (ticks < 20) spins++;
  struct timespec now, nap = {3600, 5};
  every = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every, 0);
  nanosleep(&nap, 0);
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%d %lu %ld.%09ld\\n", ticks, spins, (long)now.tv_sec, now.tv_nsec);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  printf("%ld.%09ld\\n", (long)now.tv_sec, now.tv_nsec);
}
"""


@pytest.mark.parametrize("isa", ISAS)
def test_signals_timers_and_sleep(isa: str, tmp_path: Path) -> None:
    """A timer's signal comes after the same number of turns of a loop."""
    source = tmp_path / "clocks.c"
    source.write_text(CLOCKS)
    check((str(build(source, isa, tmp_path / "clocks")),))


def test_a_sample_at_every_instruction() -> None:
    program = (str(DIRECTORY / "self_modifying" / "x86_64.elf"),)
    alone = observe(program)
    watched = observe(program, Watch("all", sample="instructions", period=1))
    assert alone.same_as(watched), alone.difference(watched)
