"""A core with models can be told to model less. What it decodes is counted all the same, with equal runs."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from emulator._native import CounterBank
from emulator.cpu import Cpu, Gear, Level
from emulator.probes import Probe, Source
from perfemu.guest import Guest
from perfemu.session import Session

PROGRAMS = Path(__file__).parents[3] / "guest_programs"
MODELLED = [probe for probe in Probe if probe.source is not Source.INSTRUCTION]
DECODED = [probe for probe in Probe if probe.source is Source.INSTRUCTION]
CORES = [("aarch64", "cortex-a55"), ("aarch64", "neoverse-n1"), ("x86_64", "zen5")]
# Their requests depend on when others are answered.
PLAIN = ("l1d.prefetchers=", "l2.prefetchers=", "l1i.prefetchers=")


@dataclass
class Changes:
    """Changes a CPU's gear whenever so many instructions have retired."""

    cpu: Cpu
    plan: list[tuple[int, Gear]]
    seen: list[list[int]] = field(default_factory=list)  # all totals, when each change has been made
    cycles: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bank: CounterBank = self.cpu.core.add_bank(1)
        self.bank.connect(0, 1 << Probe.INST_RETIRED)
        self.bank.set_width(0, 64)
        self.cpu.connect_interrupt(self, self.change)
        self.next()

    def next(self) -> None:
        while self.plan and self.plan[0][0] == self.cpu.core.total(Probe.INST_RETIRED):
            self.change()
        self.bank.arm(bool(self.plan))
        if self.plan:
            left = self.plan[0][0] - self.cpu.core.total(Probe.INST_RETIRED)
            self.bank.write(0, (1 << 64) - left)

    def change(self) -> None:
        _, gear = self.plan.pop(0)
        self.cpu.set_gear(gear)
        self.seen.append(totals(self.cpu))
        self.cycles.append(self.cpu.core.cycles)
        if not self.plan or self.plan[0][0] > self.seen[-1][Probe.INST_RETIRED]:
            self.next()

    def interrupt_asserted(self) -> bool:
        return bool(self.bank.overflowed())

    def take_interrupt(self) -> None:
        self.bank.clear_overflowed(1)


def totals(cpu: Cpu) -> list[int]:
    return [cpu.core.total(probe, Level.USER) for probe in Probe]


@dataclass
class Run:
    totals: list[int]  # in user mode
    kernel_cycles: int
    cycles: int
    changes: Changes
    status: int

    def after(self, number: int) -> list[int]:
        """What was counted from that change on."""
        return [total - before for total, before in zip(self.totals, self.changes.seen[number], strict=True)]


def run(isa: str, core: str, *plan: tuple[int, Gear], changes: tuple[str, ...] = (), name: str = "sort") -> Run:
    null = os.open(os.devnull, os.O_WRONLY)
    program = str(PROGRAMS / name / f"{isa}.elf")
    try:
        session = Session(Guest((program,), core=core, core_changes=changes, stdout=null))
        (cpu,) = session.machine.cpus
        cpu.core.follow_branches()
        made = Changes(cpu, list(plan))
        status = session.run().exit_status
        assert not made.plan
    finally:
        os.close(null)
    return Run(totals(cpu), cpu.core.total(Probe.CYCLES, Level.KERNEL), cpu.core.cycles, made, status)


def of(probes: list[Probe], totals: list[int]) -> dict[str, int]:
    return {probe.name: totals[probe] for probe in probes}


@pytest.mark.parametrize(("isa", "core"), CORES)
def test_what_is_decoded_is_counted_in_every_gear_and_the_run_is_the_same_twice(isa: str, core: str) -> None:
    plan = [
        (0, Gear.FUNCTIONAL),
        (1, Gear.DETAILED),
        (12_345, Gear.WARMING),
        (12_346, Gear.FUNCTIONAL),
        (77_777, Gear.WARMING),
        (300_000, Gear.DETAILED),
        (400_001, Gear.FUNCTIONAL),
        (400_003, Gear.DETAILED),
    ]
    first, second, detailed = run(isa, core, *plan), run(isa, core, *plan), run(isa, core)
    assert of(DECODED, first.totals) == of(DECODED, detailed.totals)
    assert (first.totals, first.cycles, first.changes.seen) == (second.totals, second.cycles, second.changes.seen)
    assert [seen[Probe.INST_RETIRED] for seen in first.changes.seen] == [at for at, _ in plan]


@pytest.mark.parametrize(
    "name", ["self_modifying", "string_instructions", "page_crossing", "memory_access", "recursion"]
)
@pytest.mark.parametrize(("isa", "core"), CORES)
def test_changes_anywhere_leave_what_is_decoded_alone(isa: str, core: str, name: str) -> None:
    """Amid REPs, code that changes itself, accesses that cross pages, and calls."""
    if not (PROGRAMS / name / f"{isa}.elf").exists():
        pytest.skip(f"{name} is of the other ISA")
    detailed = run(isa, core, name=name)
    drawn = random.Random(name)
    for _ in range(3):
        instructions = detailed.totals[Probe.INST_RETIRED]
        points = sorted(drawn.sample(range(1, instructions), min(8, instructions - 1)))
        plan = [(at, drawn.choice(list(Gear))) for at in (0, *points)]
        changed = run(isa, core, *plan, name=name)
        assert of(DECODED, changed.totals) == of(DECODED, detailed.totals), plan
        assert changed.status == detailed.status


@pytest.mark.parametrize(("isa", "core"), CORES)
def test_the_functional_gear_takes_a_cycle_for_each_instruction_and_models_count_nothing(isa: str, core: str) -> None:
    functional = run(isa, core, (0, Gear.FUNCTIONAL))
    assert not any(of(MODELLED, functional.totals).values())
    kernel = functional.kernel_cycles
    assert functional.cycles == functional.totals[Probe.INST_RETIRED] + kernel + functional.changes.cycles[0]


@pytest.mark.parametrize(("isa", "core"), CORES)
def test_a_change_to_the_gear_that_it_has_is_none(isa: str, core: str) -> None:
    plain, told = run(isa, core), run(isa, core, (0, Gear.DETAILED), (5_000, Gear.DETAILED))
    assert (plain.totals, plain.cycles) == (told.totals, told.cycles)


@pytest.mark.parametrize(("isa", "core"), CORES)
def test_predictors_and_caches_are_as_warm_as_after_a_detailed_run(isa: str, core: str) -> None:
    """Mispredicts and refills behind the change are the same, to one: prefetchers, which look at time, are off."""
    detailed = run(isa, core, (1_000_000, Gear.DETAILED), changes=PLAIN)
    warm = run(isa, core, (0, Gear.WARMING), (1_000_000, Gear.DETAILED), changes=PLAIN)
    assert not any(of(MODELLED, warm.changes.seen[1]).values())
    probes = [Probe.BR_MISPREDICTED, Probe.BTB_MISS, Probe.L1D_REFILL_LOAD, Probe.L1D_REFILL_STORE, Probe.L1I_REFILL]
    assert of(probes, warm.after(1)) == of(probes, detailed.after(0))
    assert warm.after(1)[Probe.CYCLES] == pytest.approx(detailed.after(0)[Probe.CYCLES], rel=1e-3)


def test_a_cold_start_costs_what_warming_saves() -> None:
    """Else the test above would show nothing."""
    isa, core = "aarch64", "neoverse-n1"
    at = 1_000_000
    cold = run(isa, core, (0, Gear.FUNCTIONAL), (at, Gear.DETAILED)).after(1)
    warm = run(isa, core, (0, Gear.WARMING), (at, Gear.DETAILED)).after(1)
    assert cold[Probe.BR_MISPREDICTED] != warm[Probe.BR_MISPREDICTED]
    assert cold[Probe.L1D_REFILL_LOAD] + cold[Probe.L1D_REFILL_STORE] > warm[Probe.L1D_REFILL_LOAD]


def test_a_core_without_models_has_one_gear() -> None:
    with pytest.raises(ValueError, match="a core without models has but one gear"):
        run("aarch64", "ideal", (0, Gear.FUNCTIONAL))
