"""bpf(2) under the modelled Linux and in Debian's 6.12: the same answers, verdicts, results and records.

Programs in perf_calls/ print them; beside each lies what it printed in that kernel, on the board (`make kernels` asks
again). Of x86-64 nobody is asked: its answers are AArch64's.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from c_programs import build
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import ISAS
from on_a_board import Board
from perfemu.initramfs import program

PROGRAMS = Path(__file__).with_name("perf_calls")
NAMES = ("bpf_arithmetic", "bpf_maps", "bpf_verdicts", "bpf_events", "bpf_tracing", "bpf_pins", "bpf_links")
BY_ISA = "bpf_kprobe_multi"  # Linux 6.12 has no such links on AArch64
BOARDS = {"aarch64": "virt", "x86_64": "pc"}
DIFFERENCES = {  # of x86-64: which address is the kernel's, it knows without trying
    ("x86_64", "nothing to be read: 0"): "nothing to be read: -34",
}


def recorded(name: str) -> list[str]:
    return (PROGRAMS / f"{name}.txt").read_text().splitlines()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("isa", ISAS)
def test_answers_are_a_real_kernels(isa: str, name: str, tmp_path: Path) -> None:
    guest = build(PROGRAMS / f"{name}.c", isa, tmp_path / name, "-w")
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", guest],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.splitlines() == [DIFFERENCES.get((isa, line), line) for line in recorded(name)]


@pytest.mark.parametrize("isa", ISAS)
def test_answers_are_those_of_a_real_kernel_of_the_isa(isa: str, tmp_path: Path) -> None:
    guest = build(PROGRAMS / f"{BY_ISA}.c", isa, tmp_path / BY_ISA, "-w")
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", guest],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.splitlines() == recorded(f"{BY_ISA}.{isa}")


@pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="`make kernels` boots Debian's")
def test_that_kernel_says_so(tmp_path: Path) -> None:
    guests = {name: build(PROGRAMS / f"{name}.c", "aarch64", tmp_path / name, "-w") for name in NAMES}
    files = [program(name, guest.read_bytes()) for name, guest in guests.items()]
    lines = Board(release=TRIXIE).run("".join(f"/{name}\n" for name in guests), tmp_path, files)
    assert lines == [line for name in NAMES for line in recorded(name)]


@pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="`make kernels` boots Debian's")
@pytest.mark.parametrize("isa", ISAS)
def test_that_kernel_of_each_isa_says_so(isa: str, tmp_path: Path) -> None:
    guest = build(PROGRAMS / f"{BY_ISA}.c", isa, tmp_path / BY_ISA, "-w")
    files = [program(BY_ISA, guest.read_bytes())]
    lines = Board(BOARDS[isa], release=TRIXIE).run(f"/{BY_ISA}\n", tmp_path, files)
    assert lines == recorded(f"{BY_ISA}.{isa}")
