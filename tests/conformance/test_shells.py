"""Do shells run as on the host? Scripts of Debian's dash: processes, pipes, background jobs, on one CPU and on four."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import require
from debian import ARCHITECTURES
from emulator.linux.configuration import LinuxConfig
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import ISAS

SCRIPTS = {
    "true": "/bin/true; /bin/true; echo done",
    "status": "(exit 3); echo $?; /bin/false; echo $?; exit 7",
    "pipeline": "seq 300 | sed s/1/one/ | sort -r | head -3",
    "loop": "for i in 3 1 2; do echo $i | sed s/1/one/; done | sort",
    "substitution": 'x=$(seq 3 | wc -l); echo "$x lines"',
    "background": "sleep 0.2 & sleep 0.1 & wait; echo both",
    "end_of_pipe": "seq 100000 | head -1; echo $?",
    "fifo": "mkfifo p; seq 3 > p & cat p; wait; test -p p && echo fifo; rm p; test -e p || echo gone",
    "full_pipe": "seq 30000 | (sleep 0.01; wc -l)",
    "trap": "trap 'echo child' CHLD; /bin/true; trap - CHLD; echo end",
}


def run(tree: Path, isa: str, script: str, directory: Path, cpus: int) -> tuple[bytes, int, int]:
    """Output, exit status and how many instructions all processes executed."""
    with (directory / "out").open("w+b") as out:
        machine = LinuxMachine(MachineConfig(isa, cpus=cpus), LinuxConfig(sysroot=str(tree)))
        machine.kernel.messages = pytest.fail
        environment = (("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"))
        argv = ("sh", "-c", script)
        machine.start(Program("/bin/sh", argv, environment, str(directory), stdin=-1, stdout=out.fileno()))
        status = os.waitstatus_to_exitcode(machine.run())
        out.seek(0)
        return out.read(), status, sum(cpu.core.total(Probe.INST_RETIRED) for cpu in machine.cpus)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_does_what_it_does_on_the_host(name: str, isa: str, tmp_path: Path) -> None:
    tree = require.debian_tree(ARCHITECTURES[isa], "dash", "coreutils", "sed")
    shell = require.command("dash", package="dash")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    host = subprocess.run(
        [shell, "-c", SCRIPTS[name]], env=environment, cwd=tmp_path, capture_output=True, check=False, timeout=300
    )
    for cpus in (1, 4):
        first = run(tree, isa, SCRIPTS[name], tmp_path, cpus)
        assert first[:2] == (host.stdout, host.returncode)
        assert run(tree, isa, SCRIPTS[name], tmp_path, cpus) == first
