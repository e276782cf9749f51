"""EventQueue: which CPU has something to do first, and whether anything has happened that decides on turns.

CPUs stand in heaps by the cycle at which each has something to do: busy ones, which execute or have who waits, and idle
ones with a timer. A ``RunQueue`` tells when it has become another (``changed``), and is asked before the next answer;
all others are not asked. A cycle may prove too early, as a timer is cancelled without a word: who comes to the front
is asked again. Up to ``FEW_CPUS`` are all asked each time, which is sooner done.

``version`` grows with whatever may change who executes next: who has decided keeps it, and decides again when it is
another. ``observations`` grows when somebody wants to observe earlier than was known.
"""

from __future__ import annotations

import heapq
from bisect import insort

from emulator.linux.sched.run_queue import RunQueue
from emulator.linux.sched.timers import FOREVER

FEW_CPUS = 8  # all of which are asked sooner than heaps are kept
FEW = 64  # entries that are not worth a clean-up

Entry = tuple[int, int, int]  # cycle, CPU, which of its entries
NEVER: Entry = FOREVER, 0, 0


class Deadlines:
    """A cycle each of some CPUs, the lowest first. What no longer holds leaves the heap when it comes to the front."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._valid: dict[int, Entry] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._valid)

    def drop(self, number: int) -> None:
        self._valid.pop(number, None)

    def set(self, number: int, cycle: int) -> None:
        known = self._valid.get(number)
        if known is not None and known[0] == cycle:
            return
        self._serial += 1
        entry = cycle, number, self._serial
        self._valid[number] = entry
        heapq.heappush(self._heap, entry)

        if len(self._heap) > FEW + 2 * len(self._valid):
            self._heap = sorted(self._valid.values())

    def first_cycle(self) -> int:
        """FOREVER if there is none."""
        heap = self._heap
        while heap:
            if self._valid.get(heap[0][1]) is heap[0]:
                return heap[0][0]
            heapq.heappop(heap)
        return FOREVER

    def at(self, cycle: int) -> list[int]:
        """The CPUs whose cycle is that, which is the lowest."""
        heap = self._heap
        if self.first_cycle() == cycle and min(heap[1:3], default=NEVER)[0] > cycle:
            return [heap[0][1]]  # as mostly
        found = []
        while self.first_cycle() == cycle:
            found.append(heapq.heappop(heap))
            if not heap or heap[0][0] > cycle:
                break
        for entry in found:
            heapq.heappush(heap, entry)
        return [number for _, number, _ in found]

    def sorted(self) -> list[Entry]:
        return sorted(self._valid.values())


class EventQueue:
    """The CPUs' deadlines."""

    def __init__(self) -> None:
        self.version = 0
        self.observations = 0
        self.observed: list[RunQueue] = []  # that somebody has ever wanted to observe, by number
        self._queues: list[RunQueue] = []
        self._heaped = False
        self._changed: set[int] = set()
        self._busy = Deadlines()
        self._idle = Deadlines()

    def add(self, queue: RunQueue) -> None:
        """The next CPU's."""
        self._queues.append(queue)
        self._heaped = len(self._queues) > FEW_CPUS
        self._changed.add(queue.cpu.number)

    # ---- what queues tell

    def changed(self, queue: RunQueue) -> None:
        if self._heaped:
            self._changed.add(queue.cpu.number)

    def earlier_timer(self, queue: RunQueue) -> None:
        self._changed.add(queue.cpu.number)
        self.version += 1

    def earlier_observer(self, queue: RunQueue) -> None:
        self.observations += 1
        if queue not in self.observed:
            insort(self.observed, queue, key=lambda queue: queue.cpu.number)

    # ---- who is first

    def first(self) -> list[RunQueue]:
        """The CPUs that have something to do before all others, by number."""
        if not self._heaped:
            return self._first_of_all()
        self._ask_changed()
        while True:
            busy, idle = self._busy.first_cycle(), self._idle.first_cycle()
            cycle = busy if busy < idle else idle
            if cycle == FOREVER:
                return []
            numbers = self._busy.at(cycle)
            if idle == cycle:
                numbers = sorted(numbers + self._idle.at(cycle))
            found = [queue for number in numbers if self._ask(queue := self._queues[number]) == cycle]
            if found:
                return found

    def busy_besides_one(self) -> int:
        """How many CPUs are busy besides one that is."""
        if not self._heaped:
            busy = -1
            for queue in self._queues:
                busy += queue.current is not None or (bool(queue.waiting) and queue.next_event() is not None)
            return busy
        self._ask_changed()
        return len(self._busy) - 1

    def idle_until(self, now: int, quantum: int) -> int:
        """The first cycle after `now` at which an idle CPU has something to do; one that has now gets a quantum."""
        until = FOREVER
        if not self._heaped:
            for queue in self._queues:
                if queue.current is None and not queue.waiting and (at := queue.next_event()) is not None:
                    until = min(until, at if at > now else now + quantum)
            return until
        self._ask_changed()
        if not len(self._idle):
            return until
        for cycle, number, _ in self._idle.sorted():
            if cycle >= until:
                break
            at = self._ask(self._queues[number])
            if at is not None:
                until = min(until, at if at > now else now + quantum)
        return until

    def _first_of_all(self) -> list[RunQueue]:
        first: list[RunQueue] = []
        earliest = FOREVER
        for queue in self._queues:
            at = queue.next_event()
            if at is None or at > earliest:
                continue
            if at == earliest:
                first.append(queue)
            else:
                first, earliest = [queue], at
        return first

    def _ask_changed(self) -> None:
        if not self._changed:
            return
        changed, self._changed = self._changed, set()
        for number in changed:
            queue = self._queues[number]
            self._ask(queue)
            if queue.waits_for_another:
                self._changed.add(number)

    def _ask(self, queue: RunQueue) -> int | None:
        """When it has something to do, which is noted."""
        at = queue.next_event()
        number = queue.cpu.number
        has, other = self._busy, self._idle
        if queue.current is None and not queue.waiting:
            has, other = other, has
        other.drop(number)
        if at is None:
            has.drop(number)
        else:
            has.set(number, at)
        return at
