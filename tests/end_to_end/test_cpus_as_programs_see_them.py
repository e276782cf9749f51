"""What programs find in /proc and by system calls about several CPUs."""

from __future__ import annotations

import require
from emulator.linux.proc.process_texts import allowed_list
from end_to_end.command import perfemu


def run(script: str, cpus: int) -> list[str]:
    require.command("taskset", "util-linux")
    done = perfemu("run", "--cpus", str(cpus), "--", "/bin/sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_affinity_is_what_taskset_makes_it() -> None:
    script = "nproc; taskset -c 1,3 nproc; taskset -c 0,2-3 grep Cpus_allowed /proc/self/status"
    assert run(script, 4) == ["4", "2", "Cpus_allowed:\td", "Cpus_allowed_list:\t0,2-3"]
    assert run("nproc", 1) == ["1"]


def test_every_cpu_has_times_of_its_own() -> None:
    """A loop of some hundredths of a second on CPU 1 alone."""
    script = "taskset -c 1 sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; cat /proc/stat"
    times = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in run(script, 2) if line[:3] == "cpu"}
    assert list(times) == ["cpu", "cpu0", "cpu1"]
    assert [sum(row) for row in zip(times["cpu0"], times["cpu1"], strict=True)] == times["cpu"]
    assert times["cpu1"][0] > times["cpu0"][0] + 1


def test_lists_of_cpus_are_the_kernels() -> None:
    assert [allowed_list(mask) for mask in (1, 0b1111, 0b1101, 0b10)] == ["0", "0-3", "0,2-3", "1"]
