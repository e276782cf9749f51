"""Bare-metal guest programs as guests of a hypervisor: each does and counts what it does alone; the host sees all.

Their own checks say whether a guest has noticed the others: interrupts right behind the instruction that makes a
counter overflow, values of counters to the digit, faults, code that changes. The counts are those of expected.toml.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from guests import BoardGuest, board_guests
from perfcore.events.event import PerfEvent
from perfemu.virtual_machines import VirtualMachines

GUESTS = [guest for guest in board_guests() if guest.cpus == 1 and not guest.changes]
LEVELS = {"user": "u", "kernel": "k"}
SLICES_US = (50, 0.5, 0.041)  # at 1 GHz and one instruction a cycle, the last is in the midst of everything
# They want all counters that there are
WANT_ALL = ("board_pmu_edges", "board_pmu_el0", "board_pmu_filters", "board_pmu_software", "board_pmu_thresholds")


@dataclass(frozen=True)
class Kind:
    """A board's PMU, and who shares it."""

    neighbours: tuple[str, ...]
    core: str  # with models
    events: dict[str, str]
    counters: int
    of_guests: int = 4


VIRT = Kind(
    ("board_interrupts", "board_paging"), "neoverse-n1", {"INST_RETIRED": "inst_retired", "BR_RETIRED": "br_retired"}, 6
)
INTELS = {"INST_RETIRED": "inst_retired.any", "BR_RETIRED": "br_inst_retired.all_branches"}
INTEL = Kind(("board_pmu_interrupts", "board_pmu_freeze"), "skylake", INTELS, 4, 2)
AMD = Kind(("board_pmu_amd", "board_pmu_amd"), "zen5", {"INST_RETIRED": "ex_ret_instr", "BR_RETIRED": "ex_ret_brn"}, 6)


def kind_of(guest: BoardGuest) -> Kind:
    if guest.board == "virt":
        return VIRT
    return AMD if guest.name == "board_pmu_amd" else INTEL


def neighbours_of(guest: BoardGuest) -> list[BoardGuest]:
    by_name = {other.name: other for other in GUESTS if other.board == guest.board}
    return [by_name[name] for name in kind_of(guest).neighbours]


def together(guests: list[BoardGuest], core: str, slice_us: float, guest_counters: int) -> VirtualMachines:
    pmu = next((guest.pmu for guest in guests if guest.pmu), None)
    return VirtualMachines(
        [guest.path for guest in guests], board=guests[0].board, core=core, pmu=pmu, slice_us=slice_us,
        guest_counters=guest_counters, most_instructions=10_000_000,
    )  # fmt: skip


def check(machines: VirtualMachines, guests: list[BoardGuest]) -> None:
    for machine, guest in zip(machines.guests, guests, strict=True):
        assert (machine.exit_status, machine.console.decode()) == (guest.exit_status, guest.stdout), guest


RUNS = [
    (guest, core, slice_us)
    for guest in GUESTS
    for core, slice_us in [*product(["ideal"], SLICES_US), (kind_of(guest).core, 0.3)]
]


@pytest.mark.parametrize(("guest", "core", "slice_us"), RUNS, ids=str)
def test_each_counts_as_it_does_alone(guest: BoardGuest, core: str, slice_us: float) -> None:
    kind = kind_of(guest)
    guests = [guest, *neighbours_of(guest)]
    machines = together(guests, core, slice_us, kind.counters if guest.name in WANT_ALL else kind.of_guests)
    if guest.name in WANT_ALL:  # and none is left for the host
        machines.run()
        check(machines, guests)
        return
    counted: dict[tuple[int, str], PerfEvent] = {
        (number, level): machines.count(f"{kind.events['INST_RETIRED']}:{letter}G", guest=number)
        for number in range(len(guests))
        for level, letter in LEVELS.items()
    }
    machines.run()
    check(machines, guests)
    for (number, level), event in counted.items():
        values = event.read_values()
        assert (values.value, values.enabled) == (guests[number].counts[level]["INST_RETIRED"], values.running)


@pytest.mark.parametrize("guest", ["board_paging", "board_pmu_interrupts", "board_pmu_amd"])
def test_the_host_counts_guests_together_and_apart_and_itself(guest: str) -> None:
    first = next(each for each in GUESTS if each.name == guest)
    kind, neighbours = kind_of(first), neighbours_of(first)
    machines = together(neighbours, "ideal", 0.5, kind.of_guests)
    counted = {
        (event, modifier): machines.count(f"{event}:{modifier}") for event in kind.events.values() for modifier in "GH"
    }
    machines.run()
    check(machines, neighbours)
    for probe, event in kind.events.items():
        assert counted[event, "H"].count() == 0  # it executes nothing there
        assert counted[event, "G"].count() == sum(
            guest.counts[level][probe] for guest in neighbours for level in LEVELS
        )
