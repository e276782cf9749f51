"""Bare-metal guest programs: their own checks, their output and their counts by level, on the board and under QEMU.

QEMU, which nobody here wrote, is the judge of what such images see; expected.toml has the arithmetic of the counts.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from io import BytesIO

import pytest

import require
from emulator.cpu import Level
from emulator.probes import Probe
from guests import BoardGuest, board_guests
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.counters import enable_groups
from perfemu.events.attributes import Sampling, stat_attr
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.scope import Scope
from tests.counts.test_expected import AMD_EVENTS, EVENTS

LEVELS = {"user": Level.USER, "kernel": Level.KERNEL}
MODIFIERS = {"user": "u", "kernel": "k"}
PERIODS = (1, 7, 97)
CORES = {"virt": ("ideal", "cortex-a55", "neoverse-n1"), "pc": ("ideal", "skylake", "zen5")}
TIMEOUT_S = 300


def session_of(guest: BoardGuest, core: str, output: BytesIO) -> BoardSession:
    machine = Guest(
        (str(guest.path),), core=core, core_changes=guest.changes, pmu=guest.pmu, cpus=guest.cpus, memory="64M",
        stdin=-1,
    )  # fmt: skip
    # What it tries on purpose is told to the user: unmodelled registers and addresses.
    return BoardSession(
        machine, BoardRequest(guest.board, semihosting=guest.board == "virt"), output, lambda line: None
    )


def counts_of(session: BoardSession, guest: BoardGuest) -> dict[str, dict[str, int]]:
    """The cores' own."""
    cores = [cpu.core for cpu in session.hardware.cpus]
    return {
        name: {probe: sum(core.total(Probe[probe], level) for core in cores) for probe in guest.counts[name]}
        for name, level in LEVELS.items()
    }


@pytest.mark.parametrize(
    ("guest", "core"), [(guest, core) for guest in board_guests() for core in CORES[guest.board]], ids=str
)
def test_the_core_counts_as_derived(guest: BoardGuest, core: str) -> None:
    output = BytesIO()
    session = session_of(guest, core, output)
    ending = session.run()
    assert (ending.exit_status, output.getvalue().decode()) == (guest.exit_status, guest.stdout)
    assert counts_of(session, guest) == guest.counts


@pytest.mark.parametrize("guest", board_guests(), ids=str)
def test_events_count_as_derived(guest: BoardGuest) -> None:
    session = session_of(guest, "ideal", BytesIO())
    events = AMD_EVENTS if session.pmu_model.driver == "amd_core" else EVENTS[guest.isa]
    names = [(level, probe, events[probe]) for level in LEVELS for probe in guest.counts[level]]
    specs = session.parse([f"{event}:{MODIFIERS[level]}" for level, _, event in names])
    opened = [
        [session.open(stat_attr(spec, system_wide=True), cpu, system_wide=True) for spec in specs]
        for cpu in range(guest.cpus)
    ]
    for events in opened:
        enable_groups(events)
    assert session.run().exit_status == guest.exit_status
    for (level, probe, _), *counted in zip(names, *opened, strict=True):
        assert sum(event.read_values().value for event in counted) == guest.counts[level][probe], (level, probe)


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("guest", board_guests(), ids=str)
def test_who_samples_sees_all_and_changes_nothing(guest: BoardGuest, period: int) -> None:
    """Each instruction may be stepped by itself, or executed in its block: the counts, and the output, are the same."""
    output = BytesIO()
    session = session_of(guest, "ideal", output)
    scope = Scope(cpus=tuple(range(guest.cpus)))
    recorded = record(session, ["instructions"], Sampling(None, period), BytesIO(), scope=scope)
    assert (recorded.ending is not None and recorded.ending.exit_status, output.getvalue().decode()) == (
        guest.exit_status,
        guest.stdout,
    )
    assert counts_of(session, guest) == guest.counts
    retired = [cpu.core.total(Probe.INST_RETIRED) for cpu in session.hardware.cpus]
    assert recorded.samples == sum(count // period for count in retired)


def qemu(image: str, cpus: int, options: Sequence[str] = ()) -> tuple[int, str]:
    """Exit status and output of an image under QEMU: its own board, and processors of the kind that ours have."""
    command = require.command("qemu-system-aarch64", package="qemu-system-arm")
    done = subprocess.run(
        [command, "-M", "virt,gic-version=3", "-cpu", "cortex-a72", "-smp", str(cpus), "-m", "64", "-nic", "none"]
        + ["-display", "none", "-serial", "stdio", "-monitor", "none", "-semihosting", *options, "-kernel", image],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize("guest", [guest for guest in board_guests() if not guest.not_by_qemu], ids=str)
def test_qemu_sees_the_same(guest: BoardGuest) -> None:
    assert qemu(str(guest.path), guest.cpus) == (0, guest.stdout)
