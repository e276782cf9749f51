"""Policies: who goes before whom on a CPU, and for how long. sched(7).

Tasks without real-time priority share a CPU by *virtual time* (vruntime): the cycles that each has executed, divided by
its weight. The one with the least goes next."""

from __future__ import annotations

from typing import Protocol

SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE, SCHED_DEADLINE = 0, 1, 2, 3, 5, 6
POLICIES = (SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE, SCHED_DEADLINE)
REAL_TIME = (SCHED_FIFO, SCHED_RR)
MOST_REAL_TIME_PRIORITY = 99  # 1 is the least

SLICE_NS = 3_000_000  # of a task with nice 0 while others wait (sched_base_slice_ns on a small machine)
# A sleeper's virtual time stays behind that of its CPU, but by no more than this: half of what CFS calls its latency.
SLEEPER_CREDIT_NS = 3_000_000
# A task that wakes takes the CPU at once from one that is this far ahead of it (CFS's wakeup_granularity).
WAKEUP_GRANULARITY_NS = 1_000_000
ROUND_ROBIN_NS = 100_000_000  # of SCHED_RR (RR_TIMESLICE)
# kernel/sched/core.c, sched_prio_to_weight: the share of a task by its nice value, -20 to 19
WEIGHTS = (
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
)  # fmt: skip
NORMAL_WEIGHT = WEIGHTS[20]
IDLE_WEIGHT = 3  # of SCHED_IDLE (WEIGHT_IDLEPRIO)


class Scheduled(Protocol):
    """What of a task decides (a ``Task``)."""

    @property
    def policy(self) -> int: ...
    @property
    def priority(self) -> int:
        """Whoever has a higher one goes first, and takes the CPU from a lower one: 1 to 99 in real time, else 0."""

    @property
    def nice(self) -> int: ...


def slice_cycles(task: Scheduled, normal: int, round_robin: int) -> int | None:
    """How long it goes on while its equals wait, of `normal` cycles for nice 0; None: until it gives way."""
    if task.policy == SCHED_FIFO:
        return None
    if task.policy == SCHED_RR:
        return round_robin
    return max(normal * weight(task) // NORMAL_WEIGHT, 1)


def weight(task: Scheduled) -> int:
    """Its share, where one of nice 0 has ``NORMAL_WEIGHT``."""
    return IDLE_WEIGHT if task.policy == SCHED_IDLE else WEIGHTS[task.nice + 20]


def virtual(task: Scheduled, cycles: int) -> int:
    """By how much its virtual time goes on while it executes `cycles`."""
    return cycles if task.nice == 0 and task.policy != SCHED_IDLE else cycles * NORMAL_WEIGHT // weight(task)


def may_preempt(woken: Scheduled, current: Scheduled) -> bool:
    """Whether a task that wakes may take the CPU from another because it has had less."""
    if woken.policy == SCHED_OTHER:
        return current.policy not in REAL_TIME
    return woken.policy == SCHED_BATCH and current.policy == SCHED_IDLE
