"""EventQueue: which CPU has something to do first, of those whose deadlines move without a word."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from emulator.clock import Clock
from emulator.linux.sched.event_queue import FEW_CPUS, EventQueue
from emulator.linux.sched.run_queue import RunQueue
from emulator.linux.sched.timers import FOREVER, Timer

TASK = SimpleNamespace(policy=0, priority=0, virtual_cycles=0, ready_at=0)


EXTRA = FEW_CPUS  # idle ones, with which there are so many that heaps are kept


def _queues(count: int) -> tuple[EventQueue, list[RunQueue]]:
    events = EventQueue()
    clock = Clock(lambda: 0, 1_000_000_000)
    queues = []
    for number in range(count):
        cpu = SimpleNamespace(number=number, core=SimpleNamespace(cycles=0))
        queues.append(RunQueue(cpu, clock, events))  # type: ignore[arg-type]
        events.add(queues[-1])
    return events, queues


def _numbers(queues: list[RunQueue]) -> list[int]:
    return [queue.cpu.number for queue in queues]


@pytest.mark.parametrize("extra", [0, EXTRA])
def test_nothing_is_first_where_nobody_has_anything_to_do(extra: int) -> None:
    events, _ = _queues(3 + extra)
    assert events.first() == []
    assert events.idle_until(0, 1000) == FOREVER


@pytest.mark.parametrize("extra", [0, EXTRA])
def test_equal_cpus_are_all_first_busy_or_idle(extra: int) -> None:
    events, queues = _queues(4 + extra)
    for number in (3, 1):
        queues[number].occupy(TASK)  # type: ignore[arg-type]
        queues[number].cpu.core.cycles = 70  # type: ignore[misc]
    queues[2].timers.at_cycle(70, lambda: None)
    queues[0].timers.at_cycle(71, lambda: None)
    assert _numbers(events.first()) == [1, 2, 3]
    assert events.busy_besides_one() == 1


@pytest.mark.parametrize("extra", [0, EXTRA])
def test_a_cancelled_timer_is_nobodys_deadline(extra: int) -> None:
    events, queues = _queues(2 + extra)
    timer = queues[0].timers.at_cycle(50, lambda: None)
    queues[1].timers.at_cycle(80, lambda: None)
    assert _numbers(events.first()) == [0]
    timer.cancel()
    assert _numbers(events.first()) == [1]
    assert events.idle_until(10, 1000) == 80


@pytest.mark.parametrize("extra", [0, EXTRA])
def test_an_idle_cpu_that_has_something_to_do_now_gets_a_quantum(extra: int) -> None:
    events, queues = _queues(3 + extra)
    queues[0].timers.at_cycle(500, lambda: None)
    queues[1].timers.at_cycle(900, lambda: None)
    assert events.idle_until(500, 1000) == 900
    assert events.idle_until(500, 100) == 600


@pytest.mark.parametrize("extra", [0, EXTRA])
def test_who_comes_from_another_cpu_is_seen_when_it_has_left_that_one(extra: int) -> None:
    """The other CPU says nothing to this queue: it only makes the task ready."""
    events, queues = _queues(2 + extra)
    task = SimpleNamespace(policy=0, priority=0, virtual_cycles=0, ready_at=FOREVER + 40)
    queues[1].insert(task)  # type: ignore[arg-type]
    assert events.first() == []
    task.ready_at -= FOREVER
    assert _numbers(events.first()) == [1]
    assert events.busy_besides_one() == 0


@pytest.mark.parametrize("extra", [0, EXTRA])
def test_only_what_may_change_the_turn_is_a_new_version(extra: int) -> None:
    events, queues = _queues(1 + extra)
    queues[0].observers.at_cycle(10, lambda: None)
    assert (events.version, events.observations) == (0, 1)
    queues[0].timers.at_cycle(10, lambda: None)
    assert (events.version, events.observations) == (1, 1)
    queues[0].timers.at_cycle(20, lambda: None)  # a later one moves nothing
    assert events.version == 1


@pytest.mark.parametrize("cpus", [6, 12])
@pytest.mark.parametrize("seed", range(3))
def test_it_knows_what_asking_every_cpu_would_say(seed: int, cpus: int) -> None:
    rng = random.Random(seed)
    events, queues = _queues(cpus)
    timers: list[Timer] = []
    for _ in range(2000):
        queue = rng.choice(queues)
        core = queue.cpu.core
        action = rng.randrange(5)
        if action == 0:
            timers.append(queue.timers.at_cycle(core.cycles + rng.randrange(50), lambda: None))
        elif action == 1 and timers:
            timers.pop(rng.randrange(len(timers))).cancel()
        elif action == 2:
            queue.occupy(None if queue.current else TASK)  # type: ignore[arg-type]
        elif action == 3:
            core.cycles += rng.randrange(30)  # type: ignore[misc]
        else:
            queue.timers.fire_due()
        known = {queue.cpu.number: at for queue in queues if (at := queue.next_event()) is not None}
        first = [number for number, at in known.items() if at == min(known.values())]
        assert _numbers(events.first()) == first
        now = rng.randrange(200)
        idle = [at for number, at in known.items() if queues[number].current is None]
        assert events.idle_until(now, 7) == min([at if at > now else now + 7 for at in idle], default=FOREVER)
        busy = sum(queue.current is not None for queue in queues)
        assert events.busy_besides_one() == busy - 1
