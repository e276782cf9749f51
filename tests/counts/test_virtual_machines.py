"""Bare-metal guest programs as guests of a hypervisor: each does and counts what it does alone; the host sees all.

Their own checks say whether a guest has noticed the others: interrupts right behind the instruction that makes a
counter overflow, values of counters to the digit, faults, code that changes. The counts are those of expected.toml.
"""

from __future__ import annotations

from itertools import product

import pytest

from guests import BoardGuest, board_guests
from perfcore.events.event import PerfEvent
from perfemu.virtual_machines import VirtualMachines

GUESTS = [guest for guest in board_guests() if guest.board == "virt" and guest.cpus == 1 and not guest.changes]
NEIGHBOURS = [guest for guest in GUESTS if guest.name in ("board_interrupts", "board_paging")]
LEVELS = {"user": "u", "kernel": "k"}
EVENTS = {"INST_RETIRED": "inst_retired", "BR_RETIRED": "br_retired"}
WANT_ALL = ("board_pmu_edges", "board_pmu_el0", "board_pmu_software", "board_pmu_thresholds")  # they want six counters
ALL_COUNTERS = 6
SLICES_US = (50, 0.5, 0.041)  # at 1 GHz and one instruction a cycle, the last is in the midst of everything


def together(guests: list[BoardGuest], core: str, slice_us: float, guest_counters: int) -> VirtualMachines:
    pmu = next((guest.pmu for guest in guests if guest.pmu), None)
    return VirtualMachines(
        [guest.path for guest in guests], core=core, pmu=pmu, slice_us=slice_us, guest_counters=guest_counters,
        most_instructions=10_000_000,
    )  # fmt: skip


def check(machines: VirtualMachines, guests: list[BoardGuest]) -> None:
    for machine, guest in zip(machines.guests, guests, strict=True):
        assert (machine.exit_status, machine.console.decode()) == (0, guest.stdout), guest


@pytest.mark.parametrize(("core", "slice_us"), [*product(["ideal"], SLICES_US), ("neoverse-n1", 0.3)])
@pytest.mark.parametrize("guest", GUESTS, ids=str)
def test_each_counts_as_it_does_alone(guest: BoardGuest, core: str, slice_us: float) -> None:
    guests = [guest, *NEIGHBOURS]
    machines = together(guests, core, slice_us, ALL_COUNTERS if guest.name in WANT_ALL else 4)
    if guest.name in WANT_ALL:  # and none is left for the host
        machines.run()
        check(machines, guests)
        return
    counted: dict[tuple[int, str], PerfEvent] = {
        (number, level): machines.count(f"inst_retired:{letter}G", guest=number)
        for number in range(len(guests))
        for level, letter in LEVELS.items()
    }
    machines.run()
    check(machines, guests)
    for (number, level), event in counted.items():
        values = event.read_values()
        assert (values.value, values.enabled) == (guests[number].counts[level]["INST_RETIRED"], values.running)


def test_the_host_counts_guests_together_and_apart_and_itself() -> None:
    machines = together(NEIGHBOURS, "ideal", 0.5, guest_counters=2)
    counted = {
        (event, modifier): machines.count(f"{event}:{modifier}") for event in EVENTS.values() for modifier in "GH"
    }
    machines.run()
    check(machines, NEIGHBOURS)
    for probe, event in EVENTS.items():
        assert counted[event, "H"].count() == 0  # it executes nothing there
        assert counted[event, "G"].count() == sum(
            guest.counts[level][probe] for guest in NEIGHBOURS for level in LEVELS
        )
