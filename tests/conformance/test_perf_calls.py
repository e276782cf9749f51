"""perf_event's calls under the modelled Linux and in a real kernel on the board: the same answers, but for some named.

Programs in perf_calls/ print what each call answers, and no counts or times. The kernel is Debian's 6.12: the modelled
one has its ABI.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from c_programs import build
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU
from on_a_board import Board
from perfemu.initramfs import program

PROGRAMS = Path(__file__).with_name("perf_calls")
EVENTS = 1000
EXCLUDE_USER, EXCLUDE_KERNEL, INHERIT, WRITE_BACKWARD = 1 << 4, 1 << 5, 1 << 1, 1 << 27
SAMPLE_TID, SAMPLE_READ, SAMPLE_AUX = 1 << 1, 1 << 4, 1 << 20
HARDWARE = ("hardware", "cache", "raw")

# What the modelled Linux refuses by name, and a real one does not: why -> whether an event is such a one
DIFFERENCES: dict[str, Callable[[str, int, int], bool]] = {
    "guests have no breakpoints": lambda kind, bits, sample: kind == "breakpoint",
    "kernel mode is modelled, and executes nothing": lambda kind, bits, sample: (
        kind in HARDWARE and bits & (EXCLUDE_USER | EXCLUDE_KERNEL) == EXCLUDE_USER
    ),
    "buffers are written forward": lambda kind, bits, sample: bool(bits & WRITE_BACKWARD),
    "no PMU has an AUX buffer": lambda kind, bits, sample: bool(sample & SAMPLE_AUX),
    "PERF_SAMPLE_READ is not inherited": lambda kind, bits, sample: bool(
        bits & INHERIT and sample & SAMPLE_READ and sample & SAMPLE_TID
    ),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """In the real kernel, and here."""
    folder = tmp_path_factory.mktemp("perf_calls")
    attributes = build(PROGRAMS / "attributes.c", "aarch64", folder / "attributes", "-w")
    script = f"/attributes 1 {EVENTS}\n"
    real = Board(release=TRIXIE).run(script, folder, [program("attributes", attributes.read_bytes())])
    ours = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", attributes, "1", str(EVENTS)],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    return real, ours.stdout.splitlines()


def named(attributes: str, opened: str) -> str:
    """Why the answers of this event may differ; empty if they may not."""
    bits, sample = (int(re.findall(rf"{name} ([0-9a-f]+)", attributes)[0], 16) for name in ("bits", "sample"))
    kind = opened.split()[1]
    return next((why for why, applies in DIFFERENCES.items() if applies(kind, bits, sample)), "")


def test_the_answers_are_a_real_kernels(answers: tuple[list[str], list[str]]) -> None:
    real, ours = answers
    assert len(real) == len(ours) == 2 * EVENTS
    assert real[::2] == ours[::2]  # what was asked
    different = [
        (asked, theirs, here)
        for asked, theirs, here in zip(real[::2], real[1::2], ours[1::2], strict=True)
        if theirs != here and not named(asked, theirs)
    ]
    assert different == []
    same = sum(theirs == here for theirs, here in zip(real[1::2], ours[1::2], strict=True))
    assert same > EVENTS * 9 // 10


def test_each_difference_is_one(answers: tuple[list[str], list[str]]) -> None:
    real, ours = answers
    found = {
        named(asked, theirs)
        for asked, theirs, here in zip(real[::2], real[1::2], ours[1::2], strict=True)
        if theirs != here
    }
    assert found == set(DIFFERENCES)
