"""Counters of a task that has left its CPU are saved as they are, and its events hear of it only when somebody looks.

Nobody can tell: a machine whose driver saves nothing, so that each event comes and goes by itself, has the same counts,
times and samples after the same orders.
"""

from __future__ import annotations

from random import Random

import pytest

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.events.settings import Settings
from unit.perf_events.fake_machine import FakeMachine, FakeTask

ISAS = ("aarch64", "x86_64")
RETIRED = {"aarch64": 0x08, "x86_64": 0xC0}  # INST_RETIRED, INST_RETIRED.ANY_P
CYCLES = {"aarch64": 0x11, "x86_64": 0x3C}


def counting(isa: str, **fields: int) -> PerfEventAttr:
    """Instructions, if no config is among the fields."""
    return PerfEventAttr(**{"type": PerfType.RAW, "config": RETIRED[isa], "exclude_kernel": 1, **fields})


class Overflows:
    """When a sampling event has overflowed."""

    def __init__(self, machine: FakeMachine, period: int, task: FakeTask) -> None:
        self.at: list[int] = []
        self.event = machine.open(counting(machine.isa, sample_period=period), task=task)
        self.event.overflow_handler = lambda cpu: self.at.append(cpu.core.cycles)


@pytest.mark.parametrize("isa", ISAS)
def test_a_task_that_is_off_has_counted_until_it_left(isa: str) -> None:
    machine = FakeMachine(isa)
    other = FakeTask(2000, machine.cpu)
    event, others = machine.open(counting(isa)), machine.open(counting(isa), task=other)
    machine.run(70)
    machine.switch_to(other)
    machine.run(500)
    assert event.state is EventState.ACTIVE  # for all it knows
    assert event.read_values()[:3] == (70, 70, 70)
    assert event.state is EventState.INACTIVE
    assert others.read_values()[:3] == (500, 500, 500)
    machine.switch_to(machine.task)
    machine.run(30)
    assert event.read_values()[:3] == (100, 100, 100)


@pytest.mark.parametrize("isa", ISAS)
def test_a_period_goes_on_where_it_was(isa: str) -> None:
    machine = FakeMachine(isa)
    other = FakeTask(2000, machine.cpu)
    overflows = Overflows(machine, 100, machine.task)
    machine.open(counting(isa), task=other)
    for _ in range(5):
        machine.run(60)
        machine.switch_to(other)
        machine.run(1000)
        machine.switch_to(machine.task)
    # the task's instructions 100, 200, 300: of its turns 2, 4 and 5 after 40, 20 and 60
    assert overflows.at == [1060 + 40, 3 * 1060 + 20, 4 * 1060 + 60]


@pytest.mark.parametrize("isa", ISAS)
def test_an_overflow_that_nobody_has_heard_of_ends_its_period(isa: str) -> None:
    machine = FakeMachine(isa)
    overflows = Overflows(machine, 100, machine.task)
    machine.bank.retire(100)  # and the task leaves before the interrupt comes
    machine.switch_to(None)
    machine.idle(1000)
    machine.switch_to(machine.task)
    machine.run(100)
    assert overflows.at == [1100]
    assert overflows.event.count() == 200


@pytest.mark.parametrize("isa", ISAS)
def test_who_has_been_throttled_counts_again_when_its_task_comes_back(isa: str) -> None:
    machine = FakeMachine(isa, settings=Settings(sample_rate_hz=1000))
    overflows = Overflows(machine, 100, machine.task)
    machine.run(10_000)
    assert overflows.event.hw.stopped
    throttled = len(overflows.at)
    machine.switch_to(None)
    machine.switch_to(machine.task)
    machine.run(250)
    assert overflows.at[throttled:] == [10_100]  # and too often again


@pytest.mark.parametrize("isa", ISAS)
def test_who_finds_its_counters_taken_goes_elsewhere(isa: str) -> None:
    machine = FakeMachine(isa, counters=4)
    attr = counting(isa, config={"aarch64": 0x21, "x86_64": 0xC4}[isa])  # branches, which no fixed counter has
    events = [machine.open(attr) for _ in range(2)]
    machine.switch_to(None)
    of_cpu = machine.open(attr, task=None, cpu=0)
    machine.switch_to(machine.task)
    machine.run(10)
    assert of_cpu.hw.idx == 0
    assert [event.hw.idx for event in events] == [1, 2]


class Run:
    """A machine with three tasks, and what is asked of it."""

    def __init__(self, isa: str) -> None:
        self.machine = FakeMachine(isa, counters=4, settings=Settings(throttle=False))
        self.tasks = [self.machine.task, *(FakeTask(tid, self.machine.cpu) for tid in (2000, 3000)), None]
        self.driver = self.machine.drivers[0]
        self.events: list[PerfEvent] = []
        self.seen: list[object] = []  # what events said, and when they overflowed

    def open(self, attr: PerfEventAttr, task: int) -> None:
        """Task 3 is nobody: all that the CPU does."""
        event = self.machine.open(attr, task=self.tasks[task], cpu=-1 if task < 3 else 0)
        event.overflow_handler = lambda cpu: self.seen.append((len(self.events), cpu.core.cycles))
        self.events.append(event)

    def look(self, event: PerfEvent) -> None:
        self.seen.append((event.read_values()[:3], event.state, event.hw.period_left))

    def obey(self, random: Random) -> None:
        """Do something; of equal runs the same, if `random` is equal."""
        kind = random.choices(("open", "switch", "run", "idle", "event"), (1, 5, 5, 1, 4))[0]
        amount, task = random.randrange(1, 400), random.randrange(4)
        if kind == "open" and len(self.events) < 12:
            config = random.choice((RETIRED, CYCLES))[self.machine.isa]
            disabled, pinned = int(random.random() < 0.3), int(random.random() < 0.2)
            period = random.choice((0, 0, 100, 1000))
            fields = {"sample_period": period, "disabled": disabled, "pinned": pinned, "config": config}
            self.open(counting(self.machine.isa, **fields), task)
        elif kind == "switch":
            self.machine.switch_to(self.tasks[task])
        elif kind == "idle":
            self.machine.idle(amount)
        elif kind == "run" or not self.events:
            self.machine.run(amount)
        else:
            event = random.choice(self.events)
            order = random.choice(("look", "look", "enable", "disable", "reset", "period"))
            if order == "look":
                self.look(event)
            elif order != "period":
                getattr(event, order)()
            elif event.is_sampling:
                event.set_period(amount)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seed", range(10))
def test_nobody_can_tell(isa: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    saving, telling = Run(isa), Run(isa)
    saved = []
    save = saving.driver.save
    monkeypatch.setattr(saving.driver, "save", lambda *those: saved.append(save(*those)) or saved[-1])
    monkeypatch.setattr(telling.driver, "save", lambda *those: None)
    for run in (saving, telling):
        random = Random(seed)
        for _ in range(600):
            run.obey(random)
        for event in run.events:
            run.look(event)
    assert saving.seen == telling.seen
    assert len(saving.seen) > 50
    assert sum(one is not None for one in saved) > 20
