"""perf_event's calls under the modelled Linux and in a real kernel on the board: the same answers, but for some named.

Programs in perf_calls/ print what each call answers, and no counts or times. The kernel is Debian's 6.12: the modelled
one has its ABI. What it has said is in perf_calls/recorded/; `make kernels` asks it again, and with REWRITE_GOLDEN=1
writes that anew.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from c_programs import build
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU
from on_a_board import Board
from perfemu.initramfs import Entry, program

PROGRAMS = Path(__file__).with_name("perf_calls")
EVERYTHING = os.environ.get("KERNELS") == "all"
REWRITE = os.environ.get("REWRITE_GOLDEN") == "1"
EVENTS = 1000 if EVERYTHING else 300
EXCLUDE_USER, EXCLUDE_KERNEL = 1 << 4, 1 << 5
SAMPLE_AUX = 1 << 20
HARDWARE = ("hardware", "cache", "raw")

# What the modelled Linux refuses by name, and a real one does not: why -> whether an event is such a one
DIFFERENCES: dict[str, Callable[[str, int, int], bool]] = {
    "kernel mode is modelled, and executes nothing": lambda kind, bits, sample: (
        kind in HARDWARE and bits & (EXCLUDE_USER | EXCLUDE_KERNEL) == EXCLUDE_USER
    ),
}


def real_kernels(
    name: str, script: str, folder: Path, files: Sequence[Entry], warns_in: tuple[str, ...] = ()
) -> list[str]:
    """The lines that Debian's kernel prints, or has printed when it was asked."""
    recorded = PROGRAMS / "recorded" / f"{name}.txt"
    if EVERYTHING:
        lines = Board(release=TRIXIE, warns_in=warns_in).run(script, folder, files)
        if REWRITE:
            recorded.write_text("\n".join([*lines, ""]), encoding="utf-8")
        assert always(lines) == always(recorded.read_text(encoding="utf-8").splitlines())
        return lines
    return recorded.read_text(encoding="utf-8").splitlines()


def always(lines: Sequence[str]) -> list[str]:
    """What it says whenever it is asked: all but whose turn it is."""
    return [line for line in lines if " turn " not in line]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """In the real kernel, and here."""
    folder = tmp_path_factory.mktemp("perf_calls")
    attributes = build(PROGRAMS / "attributes.c", "aarch64", folder / "attributes", "-w")
    script = f"/attributes 1 {EVENTS}\n"
    real = real_kernels("attributes", script, folder, [program("attributes", attributes.read_bytes())])[: 2 * EVENTS]
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


BREAKPOINTS = {"breakpoints": 291, "breakpoint_signals": 11}  # and lines that they print; x86-64's one more
PROBES = {"uprobes": 493, "uprobe_pmu": 40, "kprobes": 142, "probe_limits": 199}
ERRORS = {"error_log": 484}
TRACED = {"aarch64_breakpoints": 163}  # of tracers, by the register sets of AArch64
EXACT = {"aarch64": BREAKPOINTS | PROBES | TRACED, "x86_64": BREAKPOINTS | PROBES}


def test_breakpoints_and_probes_are_a_real_kernels(tmp_path: Path) -> None:
    """Counts are exact there, too: the kernel's, by the board's debug registers, and by breakpoints in the code."""
    guests = {
        name: build(PROGRAMS / f"{name}.c", "aarch64", tmp_path / name, "-w") for name in EXACT["aarch64"] | ERRORS
    }
    files = [program(name, guest.read_bytes()) for name, guest in guests.items()]
    # Of records that are longer than perf's buffer, and than that of the uprobes.
    warns_in = "perf_trace_buf_alloc", "prepare_uprobe_buffer"
    real = real_kernels("probes", "".join(f"/{name}\n" for name in guests), tmp_path, files, warns_in)
    ours = [line for guest in guests.values() for line in modelled("ideal", guest)]
    assert len(real) == sum((EXACT["aarch64"] | ERRORS).values())
    assert ours == real


@pytest.mark.parametrize("name", BREAKPOINTS)
def test_breakpoints_are_the_hosts(name: str, tmp_path: Path) -> None:
    """Of x86-64 the host's kernel is asked, where it has debug registers for us."""
    guest = build(PROGRAMS / f"{name}.c", "x86_64", tmp_path / name, "-w")
    real = subprocess.run([guest], capture_output=True, text=True, check=False).stdout.splitlines()
    if len(real) != BREAKPOINTS[name] + (name == "breakpoints"):
        pytest.skip(f"the host has no breakpoints for us: {real[:1]}")
    assert modelled("ideal", guest) == real


@pytest.mark.parametrize(
    ("isa", "core"), [("aarch64", "cortex-a55"), ("aarch64", "neoverse-n1"), ("x86_64", "skylake")]
)
def test_breakpoints_and_probes_do_not_depend_on_the_core(isa: str, core: str, tmp_path: Path) -> None:
    """Of every program; but for `make kernels` on one core, and on the others of those with breakpoints."""
    names = EXACT[isa] if EVERYTHING or core == "neoverse-n1" else BREAKPOINTS
    for name in names:
        guest = build(PROGRAMS / f"{name}.c", isa, tmp_path / name, "-w")
        assert modelled(core, guest) == modelled("ideal", guest)


X86_REGISTERS = {"%x0": "%di", "%x1": "%si", "%x2": "%dx"}  # of the first arguments
OF_ONE_ISA = re.compile(r"p:a/k(8|9|1\d) |p:k/one|^(pc|ip|cs|ss): |^removed|p_uprobes_0x|odd offset|offset -1")
"""Registers; where a function is."""


@pytest.mark.parametrize("name", ["uprobes", "uprobe_pmu", "probe_limits", "error_log"])
def test_probes_of_x86_64_are_those_of_aarch64(name: str, tmp_path: Path) -> None:
    """Of these the board's kernel says that they are right. The host's is not asked: its probes are others', too."""
    lines = {}
    for isa in ("aarch64", "x86_64"):
        (tmp_path / isa).mkdir()
        said = modelled("ideal", build(PROGRAMS / f"{name}.c", isa, tmp_path / isa / name, "-w"))
        lines[isa] = [line for line in said if not OF_ONE_ISA.search(line)]
    for aarch64, x86 in X86_REGISTERS.items():
        lines["aarch64"] = [line.replace(aarch64, x86) for line in lines["aarch64"]]
    assert len(lines["x86_64"]) > (PROBES | ERRORS)[name] * 2 // 3
    assert lines["x86_64"] == lines["aarch64"]


def test_registers_of_the_kernels_code_are_an_x86_64_kernels(tmp_path: Path) -> None:
    """Debian's on the board pc says the same: its stop is an instruction of one byte."""
    lines = modelled("ideal", build(PROGRAMS / "probe_limits.c", "x86_64", tmp_path / "probe_limits", "-w"))
    told = [line for line in lines if re.match("(ip|cs|ss): ", line)]
    assert told == ["ip: the probe's address and 1", "cs: 10", "ss: 18"]


def test_kprobes_of_x86_64_are_those_of_aarch64(tmp_path: Path) -> None:
    """But for open(2) and creat(2), which that ISA has besides."""
    said = {isa: modelled("ideal", build(PROGRAMS / "kprobes.c", isa, tmp_path / isa, "-w")) for isa in X86_CALLS}
    definitions, counted = {}, {}
    for isa, lines in said.items():
        values = next(number for number, line in enumerate(lines) if line.startswith("p:o/call "))
        definitions[isa] = [line.replace("__arm64_", "__x64_") for line in lines[:values]]
        counted[isa] = [line for line in lines[values:] if line[0] != " " and "written" not in line]
    for aarch64, x86 in X86_REGISTERS.items():
        definitions["aarch64"] = [line.replace(aarch64, x86) for line in definitions["aarch64"]]
    assert definitions["x86_64"] == definitions["aarch64"]
    expected = {"call": 7, "back": 4, "getppid": 7, "close": 4, "new": 1}
    for isa, calls in X86_CALLS.items():
        counts = expected | {"open": 7 + calls, "opened": 6 + calls}
        assert {f"{name}: {count}" for name, count in counts.items()} <= set(counted[isa])
    pmu = slice(counted["x86_64"].index("new: 1"), None)
    assert counted["x86_64"][pmu] == counted["aarch64"][pmu]


X86_CALLS = {"aarch64": 0, "x86_64": 2}


def modelled(core: str, guest: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [PERFEMU, "run", "--core", core, guest, *arguments],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    return done.stdout.splitlines()


MOUNT_CGROUPS = """mkdir /groups
mount -t cgroup2 none /groups
echo +pids > /groups/cgroup.subtree_control
echo -pids > /groups/cgroup.subtree_control
"""
"""perf's controller is there when first any other has been enabled."""


def test_control_groups_and_aux_areas_are_a_real_kernels(tmp_path: Path) -> None:
    """Files and events of groups: errors, and counts of user instructions to the digit. AUX areas of who has none."""
    groups, areas = (
        build(PROGRAMS / f"{name}.c", "aarch64", tmp_path / name, "-w") for name in ("cgroups", "aux_areas")
    )
    files = [program(guest.name, guest.read_bytes()) for guest in (groups, areas)]
    real = real_kernels("cgroups", f"{MOUNT_CGROUPS}/cgroups /groups\n/aux_areas\n", tmp_path, files)
    assert len(real) > 130 + 100
    assert modelled("ideal", groups, "/sys/fs/cgroup") + modelled("ideal", areas) == real


SEEDS = 12 if EVERYTHING else 3
LOOK = 10  # turns that are compared; the real kernel is at another place in them when it is asked


def test_events_take_turns_as_in_a_real_kernel(tmp_path: Path) -> None:
    """Groups of more events than counters, some pinned, exclusive or led by software: who counts, and who is next."""
    guest = build(PROGRAMS / "turns.c", "aarch64", tmp_path / "turns")
    interval = "/sys/bus/event_source/devices/{}/perf_event_mux_interval_ms"
    script = "".join(f"/turns {interval.format('armv8_pmuv3')} {kind} {SEEDS}\n" for kind in ("turns", "orders"))
    told = real_kernels("turns", script, tmp_path, [program("turns", guest.read_bytes())])
    real = [line for line in told if int(re.findall(r"\d+", line)[0]) <= SEEDS]
    ours: list[str] = []
    for kind in ("turns", "orders"):
        done = subprocess.run(
            [PERFEMU, "run", "--core", "ideal", guest, interval.format("armv8_pmuv3_0"), kind, str(SEEDS)],
            capture_output=True, text=True, check=True, env=ENVIRONMENT,
        )  # fmt: skip
        ours += done.stdout.splitlines()
    assert len(ours) > 12 * SEEDS
    assert [line for line in ours if " turn " not in line] == [line for line in real if " turn " not in line]
    for seed in range(1, SEEDS + 1):
        here, there = ([line for line in lines if line.startswith(f"{seed} turn ")] for lines in (ours, real))
        assert (len(here) > 1) == (len(there) > 1), seed  # whether anybody has to wait
        look = here[: min(LOOK, len(here), len(there))]
        assert any(
            there[place : place + len(look)] == here[shift : shift + len(look)]
            for place in range(len(there) - len(look) + 1)
            for shift in range(min(LOOK, len(here) - len(look) + 1))
        ), (here, there)
