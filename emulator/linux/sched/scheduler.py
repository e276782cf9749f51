"""Scheduler: which task executes on which CPU, and for how long. The machine as a simulation of discrete events.

Time is cycles, which every CPU counts from the machine's beginning, also while it idles. Next is the CPU whose time is
lowest: a busy one's own, an idle one's first timer; the lowest number where they are equal. It executes a *turn*: to
its next timer, to the end of its task's slice where others wait, and no more than a quantum where another CPU is busy,
so that no two are further apart than that, and less where they fight for memory (``Turns``). With one busy CPU there
are no turns but what timers make.

Who is on that CPU then, and who waits for it, is the ``Dispatcher``'s part. With a seed, lengths of turns and ties are
drawn (``Choices``).

What only observes, as a PMU's interrupt or a timer of perf's, interrupts a turn, which then goes on to the same cycle:
who executes where and when does not depend on what is measured. Only if it has changed anything that decides on turns,
a new one begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from emulator.linux.sched.choices import Choices
from emulator.linux.sched.dispatcher import Dispatcher, Switching
from emulator.linux.sched.run_queue import RunQueue
from emulator.linux.sched.timers import FOREVER
from emulator.linux.sched.turns import DECIDED_ANEW, Caches, Turn, Turns
from emulator.linux.sched.waiting import Wake
from emulator.linux.tracepoints import Tracepoints

FAR_CYCLES = 1 << 34  # some seconds: idle CPUs need not live through as much,
NEAR_CYCLES = 1 << 33  # but through so much: what memory and caches have begun is over then, as after any long sleep
MOST_EXTENDED_CYCLES = 64  # of a turn that ends between an exclusive load and its store


class Host(Switching, Protocol):
    """The kernel, as the scheduler calls it."""

    @property
    def ended(self) -> bool:
        """Whether the machine's first process has."""

    def resume(self, task: Task) -> None:
        """The call in which `task` slept goes on; `task.woken_by` says why."""

    def return_to_user(self, task: Task) -> None:
        """Signals may be pending."""

    def nothing_left(self) -> None:
        """All sleep, and there is nothing that could wake one of them: ends the machine's first process."""


class Scheduler:
    """Who executes next, and until when."""

    def __init__(
        self,
        host: Host,
        dispatcher: Dispatcher,
        clock: Clock,
        tracepoints: Tracepoints,
        quantum_cycles: int,
        choices: Choices,
        caches: Caches | None = None,
    ) -> None:
        self._host = host
        self._dispatcher = dispatcher
        self._events = dispatcher.events
        self._queues = dispatcher.queues
        self._clock = clock
        self._tracepoints = tracepoints
        self._choices = choices
        self._turns = Turns(quantum_cycles, caches)
        clock.cycles = dispatcher.executing.cycles
        self._turn = Turn(dispatcher.executing, 0)
        self._before = 0  # version of the event queue before an interruption
        self._calls: deque[Callable[[], None]] = deque()  # from outside, for between two turns
        self._extended_cycles = 0  # by which the present turn has been extended

    # ---- turns

    def next_turn(self) -> tuple[Cpu, int] | None:
        """Who executes next, and until when; None when the machine's first process has ended."""
        turn, events = self._turn, self._events
        if turn.version == events.version and turn.observations == events.observations:
            return turn.queue.cpu, turn.pause
        return self._decide(turn)

    def _decide(self, turn: Turn) -> tuple[Cpu, int] | None:
        """The present turn goes on, or another begins."""
        queue = self._dispatcher.executing
        core = queue.cpu.core
        if core.owes_exit:  # the exit on which an interrupt fell comes first
            turn.goes_on = False
            return queue.cpu, core.cycles
        if turn.over and core.cycles < turn.until:
            turn.over = False
            self.begin_interruption()
            self._let_observe(queue)
            self.end_interruption()
        if turn.goes_on or turn.version == self._events.version:
            turn.goes_on = False
            return self._execute(turn)
        if turn.over:
            turn.over = False
            if queue.timers.next_cycle() <= core.cycles:
                queue.timers.fire_due()
            if self._ends_within_exclusive(queue):
                return queue.cpu, core.cycles + 1
        return self._begin_turn()

    def _begin_turn(self) -> tuple[Cpu, int] | None:
        """Let happen what is due, until there is a task that can execute."""
        events = self._events
        while not self._host.ended:
            version = events.version
            if self._calls:
                self.make_calls()
            queue = self._next_queue()
            if queue is None:
                self._host.nothing_left()
                continue
            self._execute_for(queue)
            until = self._advance(queue)
            if until is not None:
                self._turn = Turn(queue, until, events.version != version)
                if not self._let_observe(queue):
                    return self._execute(self._turn)
        return None

    def _execute(self, turn: Turn) -> tuple[Cpu, int]:
        """The turn, until it ends or somebody observes."""
        events = self._events
        turn.observations = events.observations
        turn.version = DECIDED_ANEW if turn.at_any_exit else events.version
        until = min(turn.until, turn.queue.observers.next_cycle())
        for other in events.observed:
            if other is not turn.queue:
                until = min(until, other.observed_idle_at())
        turn.pause = until
        return turn.queue.cpu, until

    def end_turn(self) -> None:
        """The CPU that executes has come to the cycle that was given to it."""
        self._turn.over = True
        self._turn.version = DECIDED_ANEW

    # ---- interruptions

    def begin_interruption(self) -> None:
        """Something is about to happen that should only observe."""
        self._before = self._events.version

    def end_interruption(self) -> None:
        """It has happened. The turn goes on, unless that has changed anything."""
        turn, version = self._turn, self._events.version
        if version != self._before or self._calls:
            turn.version = DECIDED_ANEW
        else:
            turn.goes_on = turn.version != version

    def _let_observe(self, queue: RunQueue) -> bool:
        """Who wants to observe by now: this CPU, which is busy, or those that idle. Whether it has changed anything."""
        now = queue.cpu.core.cycles
        changed = False
        for other in self._events.observed:
            if other is not queue and other.observed_idle_at() <= now:
                changed |= self._idle_until(other, now)
        self._execute_for(queue)
        if queue.observers.next_cycle() <= now:
            changed |= self._observed(queue)
        return changed

    def _observed(self, queue: RunQueue) -> bool:
        """Let those observe whose time has come on this CPU. Whether it has changed anything."""
        version = self._events.version
        self._execute_for(queue)
        queue.observers.fire_due()
        return self._events.version != version

    def _idle_until(self, queue: RunQueue, until: int) -> bool:
        """Time passes on an idle CPU, and is observed. Whether that has changed anything: then there it stops."""
        while (at := queue.observed_idle_at()) <= until and at < FOREVER:
            queue.idle_until(at)
            if self._observed(queue):
                return True
        event = queue.next_event()
        queue.idle_until(until if event is None else min(until, event))
        return False

    def come_to_the_end(self) -> None:
        """Idle CPUs know of no time after their last task: let it pass until the machine's end, for who observes it."""
        latest = max(queue.cpu.core.cycles for queue in self._queues)
        executing = self._dispatcher.executing
        for queue in self._queues:
            self._idle_until(queue, latest)
        self._execute_for(executing)

    def come_to_now(self, cpu: Cpu) -> None:
        """... and somebody on another CPU asks for what happens on that one: if it idles, let it pass until now."""
        executing, queue = self._dispatcher.executing, self._dispatcher.queues[cpu.number]
        if queue is not executing:
            self._idle_until(queue, executing.cpu.core.cycles)
            self._execute_for(executing)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Make it between two turns, the present one within some million instructions. Any moment is good to ask."""
        self._calls.append(call)
        self._events.version += 1
        for queue in self._queues:
            queue.cpu.core.request_return()

    def make_calls(self) -> None:
        """Make those that were asked for."""
        while self._calls:
            self._calls.popleft()()

    def _ends_within_exclusive(self, queue: RunQueue) -> bool:
        """Whether its task would lose the CPU to others between an exclusive load and its store.

        It goes on to the store then, so that no exclusive pair fails, or succeeds, because a turn ended inside it: what
        programs without data races execute does not depend on where turns end. A monitor that is left open is closed.
        """
        task = queue.current
        alone = len(self._queues) == 1 and not queue.waiting
        if task is None or alone or queue.departing or not queue.cpu.core.exclusive_open or task.signals.deliverable():
            self._extended_cycles = 0
            return False
        self._extended_cycles += 1
        if self._extended_cycles <= MOST_EXTENDED_CYCLES:
            return True
        self._extended_cycles = 0
        queue.cpu.core.close_exclusive()
        return False

    def _next_queue(self) -> RunQueue | None:
        executing = self._dispatcher.executing
        if len(self._queues) == 1 and executing.current is not None:
            return executing
        first = self._events.first()
        found = self._choices.one(first) if first else None
        if found is not None and found.current is None and not found.waiting and not self._can_go_on():
            return None
        return found

    def _can_go_on(self) -> bool:
        """Whether any task can, now or when a timer has woken it."""
        return any(queue.current is not None or queue.waiting or queue.timers.will_wake() for queue in self._queues)

    def _execute_for(self, queue: RunQueue) -> None:
        if queue is not self._dispatcher.executing:
            self._dispatcher.executing = queue
            self._clock.cycles = queue.cycles

    def _advance(self, queue: RunQueue) -> int | None:
        """One thing that this CPU has to do; if that is to execute, until which cycle."""
        core = queue.cpu.core
        now = core.cycles
        timers = queue.timers
        if timers.next_cycle() <= now:
            timers.fire_due()
            return None
        task = queue.current
        if task is None:
            self._idle(queue, now)
            return None
        if queue.departing or self._slice_is_over(queue, now):
            self._dispatcher.switch(queue, task)
            return None
        if task.call is not None:
            if task.woken_by is Wake.CONTINUE and queue.observers.next_cycle() <= now:
                self._observed(queue)
            else:
                self._host.resume(task)
            return None
        if task.signals.due or (task.rseq is not None and task.rseq.stale):
            self._host.return_to_user(task)
            if queue.current is not task or queue.departing or core.cycles != now:
                return None
        return self._turn_end(queue, now)

    def _idle(self, queue: RunQueue, now: int) -> None:
        """To the next timer or ready task; a task that is ready comes onto the CPU."""
        until = queue.timers.next_cycle()
        if queue.waiting:
            if queue.waiting[0].ready_at <= now:
                task = queue.take_first()
                if queue.idles:
                    queue.idles = False
                    queue.cpu.wake(queue.waking)
                    self._tracepoints.cpu_idle.fire(queue.cpu, False)
                if self._tracepoints.sched_switch:
                    self._tracepoints.sched_switch.fire(queue.cpu, None, task, False)
                self._dispatcher.come(queue, task)
                return
            until = min(until, queue.waiting[0].ready_at)
        else:
            self._skip(until)
        if not queue.idles:
            queue.idles = True
            self._tracepoints.cpu_idle.fire(queue.cpu, True)
            queue.cpu.sleep()
        self._idle_until(queue, until)

    def _skip(self, until: int) -> None:
        """If all CPUs idle, and for long, time jumps to shortly before `until`, the first event, or who observes."""
        if until - self._dispatcher.executing.cpu.core.cycles < FAR_CYCLES:
            return
        if any(queue.current is not None or queue.waiting for queue in self._queues):
            return
        first = min(until, *(queue.observers.next_cycle() for queue in self._queues))
        distance = first - max(queue.cpu.core.cycles for queue in self._queues)
        if distance >= FAR_CYCLES:
            for queue in self._queues:
                queue.cpu.skip(distance - NEAR_CYCLES)

    def _turn_end(self, queue: RunQueue, now: int) -> int:
        until = queue.timers.next_cycle()
        if queue.waiting:
            until = min(until, self._gives_way_at(queue))
        if len(self._queues) == 1:
            return until
        quantum = self._turns.next_cycles()
        busy = self._events.busy_besides_one()
        if busy:
            until = min(until, now + self._choices.shortest(quantum, busy))
            self._events.version += 1  # the next turn may be another's
        return min(until, self._events.idle_until(now, quantum))

    def _slice_is_over(self, queue: RunQueue, now: int) -> bool:
        """Whether the current task has to give way now."""
        if not queue.waiting or now < self._gives_way_at(queue):
            return False
        if queue.goes_on():
            assert queue.current is not None, "that is who goes on"
            queue.slice_end = now + self._dispatcher.slice_of(queue.current)
            return False
        return True

    def _gives_way_at(self, queue: RunQueue) -> int:
        """The cycle at which the first of those who wait takes the CPU from the current task."""
        first, current = queue.waiting[0], queue.current
        assert current is not None, "nobody waits for an idle CPU longer than until it looks"
        above = first.priority - current.priority
        if above < 0:
            return FOREVER
        return first.ready_at if above else max(queue.slice_end, first.ready_at)
