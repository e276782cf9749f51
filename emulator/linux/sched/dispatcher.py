"""Dispatcher: which task is on which CPU: who comes and leaves, sleeps and wakes, and where it goes then.

Each CPU has a queue (``RunQueue``): higher real-time priorities first, then who has had least of the CPU. A task that
wakes comes to the queue of the CPU that it ran on last, or to the lowest idle one that it may run on, and takes the CPU
at once from one that has had a millisecond more; a CPU that becomes idle takes from the longest queue. Nothing happens
before its cause: a task made ready by a CPU that is ahead waits until its own CPU has come so far. With a seed, slices
and idle CPUs are drawn (``Choices``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from emulator._native import Core
from emulator.clock import Clock
from emulator.cpu import Cpu, Waking
from emulator.linux.process.task import Task, TaskState
from emulator.linux.sched.choices import Choices
from emulator.linux.sched.event_queue import EventQueue
from emulator.linux.sched.policies import ROUND_ROBIN_NS, SLICE_NS, slice_cycles
from emulator.linux.sched.run_queue import RunQueue
from emulator.linux.sched.timers import FOREVER, Timers
from emulator.linux.sched.waiting import Sleep, Wake
from emulator.linux.tracepoint import Tracepoint
from emulator.linux.tracepoints import Tracepoints


class Switching(Protocol):
    """The kernel, as the dispatcher calls it."""

    def work_switch(self, task: Task) -> None:
        """The kernel takes the time of a switch, for `task`."""


class Dispatcher:
    """The run queues of all CPUs. What decides on turns is told to `events`, which the ``Scheduler`` looks at."""

    def __init__(
        self, host: Switching, cpus: Sequence[Cpu], clock: Clock, tracepoints: Tracepoints, choices: Choices
    ) -> None:
        self._host = host
        self._tracepoints = tracepoints
        self._choices = choices
        self._clock = clock
        self.slice_cycles = max(clock.reference_in(SLICE_NS), 1)  # reference cycles, as all lengths here
        self._round_robin_cycles = clock.reference_in(ROUND_ROBIN_NS)
        self.events = EventQueue()
        self.queues = [RunQueue(cpu, clock, self.events) for cpu in cpus]
        for queue in self.queues:
            self.events.add(queue)
        self.executing = self.queues[0]  # for which the machine works at the moment

    def current(self, cpu: Cpu) -> Task | None:
        """The task of that CPU; None while it idles."""
        return self.queues[cpu.number].current

    def timers_of(self, cpu: Cpu) -> Timers:
        return self.queues[cpu.number].timers

    # ---- switches

    def switch(self, queue: RunQueue, task: Task) -> None:
        """The current task leaves its CPU, and the next one comes."""
        self._host.work_switch(task)
        now = queue.cpu.core.cycles
        if task.ready_at >= FOREVER:  # it is already in a queue
            task.ready_at = max(task.ready_at - FOREVER, now)
        else:
            queue.charge(task)
        queue.keep_time()
        following = self._pick(queue)
        if not queue.departing:
            task.ready_at = now
            queue.insert(task, first=now < queue.slice_end)  # who is driven away comes again before its equals
        self._leave(queue, task, following, preempted=not queue.departing)
        if following is not None:
            self.come(queue, following)

    def _pick(self, queue: RunQueue) -> Task | None:
        """Who comes next: the first of the queue, if it is ready, or for an empty one the first of the longest."""
        if queue.waiting:
            return queue.take_first() if queue.waiting[0].ready_at <= queue.cpu.core.cycles else None
        for other in sorted(self.queues, key=lambda other: -len(other.waiting)):
            for task in other.waiting:
                if other is not queue and other.current is not task and task.affinity >> queue.cpu.number & 1:
                    other.withdraw(task)
                    if task.ready_at <= queue.cpu.core.cycles:
                        return task
                    queue.arrive(task)
                    return None
        return None

    def _leave(self, queue: RunQueue, task: Task, following: Task | None, *, preempted: bool = False) -> None:
        assert task.running_since is not None, "a task that leaves a CPU has been on one"
        now = queue.cpu.core.cycles
        had = self._clock.passed(task.running_since, now)
        task.cycles_used += had
        task.running_since = None
        task.asleep_since = now if task.sleep is not None else None
        for timer in task.process.cpu_timers:
            timer.suspend(task)
        tracepoints = self._tracepoints
        if tracepoints.sched_stat_runtime:
            tracepoints.sched_stat_runtime.fire(task, queue.cpu, had)
        if tracepoints.sched_switch:
            tracepoints.sched_switch.fire(queue.cpu, task, following, preempted)
        tracepoints.sched_out.fire(task, queue.cpu, following)
        queue.occupy(None)
        queue.departing = False
        if following is None and tracepoints.sched_idle:
            tracepoints.sched_idle.fire(queue.cpu)

    def come(self, queue: RunQueue, task: Task) -> None:
        cpu = queue.cpu
        last = self.queues[task.cpu.number]
        if last.current is task:  # sent here by its affinity before its CPU has come to let it go
            self._leave(last, task, None)
        before, task.cpu = task.cpu, cpu
        if queue.loaded is not task:
            self._load(queue, task)
        queue.occupy(task)
        if task.rseq is not None:
            task.rseq.stale = True
        task.running_since = task.charged_at = cpu.core.cycles
        for timer in task.process.cpu_timers:
            timer.resume(task, queue.timers)
        queue.slice_end = self._clock.after(task.running_since, self.slice_of(task))
        tracepoints = self._tracepoints
        tracepoints.sched_in.fire(task, cpu)
        if before is not cpu:
            tracepoints.sched_migrate_task.fire(task, before, cpu)
        if tracepoints.sched_stat_wait:
            tracepoints.sched_stat_wait.fire(task, cpu, max(self._clock.passed(task.ready_at, cpu.core.cycles), 0))

    def _load(self, queue: RunQueue, task: Task) -> None:
        """Bring the registers of `task` into the core; they may be in another one."""
        for other in self.queues:
            if other is queue or other.loaded is task:
                self._unload(other)
        cpu = queue.cpu
        if cpu.space is not task.mm.space:
            cpu.set_address_space(task.mm.space)
        assert task.registers is not None, f"task {task.tid} has no registers"
        cpu.core.restore_state(task.registers)
        queue.loaded = task

    def _unload(self, queue: RunQueue) -> None:
        task = queue.loaded
        if task is None:
            return
        if task.registers is None:
            task.registers = queue.cpu.core.save_state()
        else:
            queue.cpu.core.save_state_into(task.registers)
        queue.loaded = None

    @contextmanager
    def registers_of(self, task: Task) -> Iterator[Core]:
        """A core that holds the registers of a task which does not execute, to read and write them."""
        for queue in self.queues:
            if queue.loaded is task:
                yield queue.cpu.core
                return
        assert task.registers is not None, f"task {task.tid} has no registers"
        core = self.executing.cpu.core
        own = core.save_state()
        core.restore_state(task.registers)
        try:
            yield core
        finally:
            core.save_state_into(task.registers)
            core.restore_state(own)

    def slice_of(self, task: Task) -> int:
        cycles = slice_cycles(task, self.slice_cycles, self._round_robin_cycles)
        return FOREVER if cycles is None else self._choices.length(cycles)

    # ---- tasks

    def begin(self, task: Task) -> None:
        """The machine's first task is on the first CPU from the beginning; `start` tells that it runs."""
        queue = self.queues[0]
        queue.occupy(task)
        queue.loaded = task
        task.running_since = task.charged_at = queue.cpu.core.cycles
        self.events.version += 1

    def start(self, task: Task) -> None:
        queue = self.queues[task.cpu.number]
        queue.slice_end = self._clock.after(queue.cpu.core.cycles, self.slice_of(task))
        self._tracepoints.sched_in.fire(task, task.cpu)

    def add(self, task: Task) -> None:
        """A new task, whose registers are in `task.registers`."""
        task.state = TaskState.RUNNABLE
        queue = self._place(task)
        task.cpu = queue.cpu
        queue.welcome(task)
        self._tracepoints.sched_wakeup_new.fire(task, queue.cpu)
        self._append(queue, task)

    def remove(self, task: Task) -> None:
        """A task has ended, wherever it was."""
        for queue in self.queues:
            if queue.current is task:
                queue.keep_time()
                self._leave(queue, task, None)
            queue.withdraw(task)
            if queue.loaded is task:
                queue.loaded = None
        self._end_sleep(task)
        task.state = TaskState.ZOMBIE
        task.registers = None
        self.events.version += 1

    def sleep(self, task: Task, sleep: Sleep) -> None:
        """The current task of its CPU begins to sleep; before the next turn it leaves."""
        queue = self.queues[task.cpu.number]
        assert queue.current is task, f"task {task.tid} is on no CPU, and cannot begin to sleep"
        queue.departing = True
        self.events.version += 1
        task.state = TaskState.TRACED if sleep.traced else TaskState.SLEEPING
        task.sleep = sleep
        for waited in sleep.queues:
            waited.add(task)
        if sleep.until_ns is not None:
            time_out: Callable[[], object] = partial(task.wake, Wake.TIMEOUT)
            if sleep.timer is not None:
                sleep.timer.start(sleep.until_ns)
                time_out = partial(sleep.timer.expire, time_out)
            task.sleep_timer = queue.timers.at_time(sleep.until_ns, time_out)
        if sleep.interruptible and task.signals.deliverable():
            self.wake(task, Wake.SIGNAL)

    def _end_sleep(self, task: Task) -> None:
        if task.sleep is not None:
            for waited in task.sleep.queues:
                waited.remove(task)
            task.sleep = None
        if task.sleep_timer is not None:
            task.sleep_timer.cancel()
            task.sleep_timer = None

    def wake(self, task: Task, reason: Wake) -> bool:
        """Whether it slept until now. The first reason counts."""
        sleep = task.sleep
        if sleep is None:
            return False
        self._end_sleep(task)  # before anybody is told: who waits for that news may be this very task
        task.woken_by = reason
        self._tracepoints.sched_waking.fire(task, task.cpu)
        slept = self._tracepoints.sched_stat_sleep if sleep.interruptible else self._tracepoints.sched_stat_blocked
        if task.process.stopped and task.tracee is None:
            task.state = TaskState.STOPPED
            return True
        self._make_ready(task, slept)
        return True

    def _make_ready(self, task: Task, slept: Tracepoint[[Task, Cpu, int]] | None = None) -> None:
        """`slept` hears for how long it has (update_stats_enqueue_sleeper), if it has left its CPU at all."""
        task.state = TaskState.RUNNABLE
        queue = self._place(task)
        tracepoints = self._tracepoints
        if slept and task.asleep_since is not None:
            now = self.executing.cpu.core.cycles
            slept.fire(task, queue.cpu, max(self._clock.passed(task.asleep_since, now), 0))
        if tracepoints.sched_wakeup:
            tracepoints.sched_wakeup.fire(task, queue.cpu)
        self._append(queue, task)
        if queue.preempts(task):
            queue.slice_end = min(queue.slice_end, task.ready_at)

    def _append(self, queue: RunQueue, task: Task) -> None:
        task.ready_at = self.executing.cpu.core.cycles
        if task.running_since is not None:  # on a CPU that it has yet to leave: until then it comes onto no other
            task.ready_at += FOREVER
            self.queues[task.cpu.number].charge(task)
        if not queue.waiting:
            queue.waking = Waking.INTERRUPT if queue is self.executing else Waking.STORE
        queue.arrive(task)
        self.events.version += 1

    def _place(self, task: Task) -> RunQueue:
        """The last CPU if that is idle, else the lowest idle one, else the last; of those that are allowed."""
        last = self.queues[task.cpu.number]
        if len(self.queues) == 1:
            return last
        allowed = [queue for queue in self.queues if task.affinity >> queue.cpu.number & 1]
        if last in allowed and (last.is_idle or last.current is task):
            return last
        idle = [queue for queue in allowed if queue.is_idle]
        if idle:
            return self._choices.one(idle)
        return last if last in allowed else allowed[0]

    def interrupt(self, task: Task) -> None:
        """A signal has come: it ends a sleep, or is delivered before the task executes on."""
        sleep = task.sleep
        if sleep is not None and sleep.interruptible and task.signals.deliverable():
            self.wake(task, Wake.SIGNAL)
        self.events.version += 1

    def yield_(self, task: Task) -> None:
        """The current task lets the others of its CPU go first."""
        queue = self.queues[task.cpu.number]
        queue.give_way()
        queue.slice_end = 0
        self.events.version += 1

    def reclassify(self, task: Task) -> None:
        """Its policy, priority or nice value have changed."""
        for queue in self.queues:
            if queue.withdraw(task):
                queue.insert(task)
            if queue.current is task:
                queue.charge(task)
                queue.slice_end = self._clock.after(queue.cpu.core.cycles, self.slice_of(task))
        self.events.version += 1

    def set_affinity(self, task: Task, mask: int) -> None:
        """`mask` has at least one CPU. A task on another one leaves that."""
        task.affinity = mask
        queue = self.queues[task.cpu.number]
        if mask >> queue.cpu.number & 1:
            return
        if queue.current is task and not queue.departing:
            queue.departing = True
            self._append(self._place(task), task)
        for other in self.queues:
            if not mask >> other.cpu.number & 1 and other.withdraw(task):
                self._append(self._place(task), task)

    def stop(self, task: Task) -> None:
        """Its process is stopped: it leaves its CPU; asleep, it goes on sleeping, and stops when it wakes."""
        if task.state is not TaskState.RUNNABLE:
            return
        task.state = TaskState.STOPPED
        for queue in self.queues:
            if queue.current is task:
                queue.departing = True
            queue.withdraw(task)
        self.events.version += 1

    def go_on(self, task: Task) -> None:
        """Its process is no longer stopped."""
        if task.state is TaskState.STOPPED:
            self._make_ready(task)
