"""The scheduler on CPUs whose cycles the test moves: who executes where, when, and how long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from emulator.clock import Clock
from emulator.cpu import Waking
from emulator.linux.process.task import TaskState
from emulator.linux.sched.choices import Choices
from emulator.linux.sched.dispatcher import Dispatcher
from emulator.linux.sched.policies import SCHED_BATCH, SCHED_FIFO, SCHED_IDLE, SCHED_RR
from emulator.linux.sched.scheduler import Scheduler
from emulator.linux.sched.timers import FOREVER
from emulator.linux.sched.waiting import Sleep, WaitQueue, Wake
from emulator.linux.signals.signal import SIGUSR1, SignalInfo, SignalState
from emulator.linux.tracepoints import Tracepoints


class Core:
    """Cycles, and registers that are the number of who put them there."""

    def __init__(self) -> None:
        self.cycles = 0
        self.owes_exit = False
        self.exclusive_open = False
        self.registers = 0
        self.returns_requested = 0

    def request_return(self) -> None:
        self.returns_requested += 1

    def elapse(self, cycles: int) -> None:
        self.cycles += cycles

    def save_state(self):
        return SimpleNamespace(value=self.registers)

    def save_state_into(self, state) -> None:
        state.value = self.registers

    def restore_state(self, state) -> None:
        self.registers = state.value


class Cpu:
    def __init__(self, number: int) -> None:
        self.number = number
        self.core = Core()
        self.space = None
        self.idle_cycles = 0
        self.slept: list[tuple[int, Waking | None]] = []  # cycle, and what it has woken for

    def set_address_space(self, space) -> None:
        self.space = space

    def idle(self, cycles: int) -> None:
        self.core.elapse(cycles)
        self.idle_cycles += cycles

    def sleep(self) -> None:
        self.slept.append((self.core.cycles, None))

    def wake(self, waking: Waking) -> None:
        self.slept.append((self.core.cycles, waking))


class Machine:
    """The kernel, too: a call that sleeps is over when it has been woken."""

    def __init__(self, cpus: int, tasks: int, seed: int | None = None) -> None:
        self.cpus = [Cpu(number) for number in range(cpus)]
        self.tracepoints = Tracepoints()
        self.ended = False
        self.resumed: list[tuple[int, Wake, int]] = []
        clock = Clock(lambda: 0, 1_000_000_000)
        choices = Choices(seed)
        self.dispatcher = Dispatcher(self, self.cpus, clock, self.tracepoints, choices)  # type: ignore[arg-type]
        self.scheduler = Scheduler(self, self.dispatcher, clock, self.tracepoints, 1000, choices)
        self.dispatcher.slice_cycles = 10_000
        self.tasks = [self.task(number) for number in range(tasks)]
        self.dispatcher.begin(self.tasks[0])
        self.dispatcher.start(self.tasks[0])
        self.cpus[0].core.registers = 0
        for task in self.tasks[1:]:
            task.registers = SimpleNamespace(value=task.tid)
            self.dispatcher.add(task)

    def task(self, number: int) -> SimpleNamespace:
        task = Task(
            tid=number,
            cpu=self.cpus[0],
            affinity=(1 << len(self.cpus)) - 1,
            nice=0,
            policy=0,
            priority=0,
            mm=SimpleNamespace(space=object()),
            process=SimpleNamespace(cpu_timers=[], stopped=False),
            signals=SignalState(),
            state=TaskState.RUNNABLE,
            registers=None,
            cycles_used=0,
            running_since=None,
            virtual_cycles=0,
            charged_at=0,
            ready_at=0,
            call=None,
            sleep=None,
            sleep_timer=None,
            tracee=None,
            woken_by=None,
        )
        task.wake = lambda reason: self.dispatcher.wake(task, reason)
        return task

    # what the scheduler asks

    def work_switch(self, task) -> None:
        self.dispatcher.executing.cpu.core.elapse(100)

    def resume(self, task) -> None:
        self.resumed.append((task.tid, task.woken_by, task.cpu.core.cycles))
        task.call = task.woken_by = None

    def return_to_user(self, task) -> None:
        task.signals.pending.clear()

    def nothing_left(self) -> None:
        self.ended = True

    # what the test does

    def turn(self) -> tuple[int, int, int]:
        """(CPU, task, cycles that it may execute); it does execute them."""
        turn = self.scheduler.next_turn()
        assert turn is not None
        cpu, until = turn
        task = self.dispatcher.current(cpu)
        assert task is not None
        assert cpu.core.registers == task.tid
        assert cpu.space is None or cpu.space is task.mm.space
        length = until - cpu.core.cycles
        if until < FOREVER:
            cpu.core.cycles = until
            self.scheduler.end_turn()  # a DEADLINE
        return cpu.number, task.tid, length

    def sleep(self, task, *queues: WaitQueue, until_ns: int | None = None) -> None:
        task.call = object()
        self.dispatcher.sleep(task, Sleep(queues, until_ns, "a test"))


class Task(SimpleNamespace):
    rseq = None

    def __hash__(self) -> int:
        return int(self.tid)


def test_one_task_executes_without_turns() -> None:
    machine = Machine(1, 1)
    assert machine.turn() == (0, 0, FOREVER)
    version = machine.dispatcher.events.version
    assert machine.turn() == (0, 0, FOREVER)
    assert machine.dispatcher.events.version == version


def test_tasks_of_one_cpu_take_turns_in_slices() -> None:
    machine = Machine(1, 3)
    turns = [machine.turn() for _ in range(4)]
    assert turns == [(0, 0, 10_000), (0, 1, 10_000), (0, 2, 10_000), (0, 0, 10_000)]
    assert machine.cpus[0].core.cycles == 4 * 10_000 + 3 * 100  # of the switches
    assert machine.tasks[0].cycles_used == 10_000 + 100  # who leaves pays


def test_programs_that_a_shell_starts_one_after_the_other_leave_others_their_share() -> None:
    """Task 0 computes, task 1 starts programs of a slice each and sleeps meanwhile: a third of the slices is task 0's.

    Each program begins where the least of the others is, and may come twice before task 0 is the least.
    """
    machine = Machine(1, 2)
    computing, shell = machine.tasks
    core = machine.cpus[0].core
    ended = WaitQueue()
    slices = []
    for number in range(2, 102):
        cpu, until = machine.scheduler.next_turn() or (machine.cpus[0], FOREVER)
        task = machine.dispatcher.current(cpu)
        if task is shell:
            core.elapse(10)
            program = machine.task(number)
            program.registers = SimpleNamespace(value=number)
            machine.dispatcher.add(program)
            machine.sleep(shell, ended)
            continue
        slices.append(task)
        core.cycles = until
        if task is computing:
            machine.scheduler.end_turn()
        else:
            machine.dispatcher.remove(task)
            ended.wake()
    assert len(slices) >= 50
    assert slices.count(computing) >= len(slices) // 3


def test_a_slice_is_as_long_as_nice_says() -> None:
    machine = Machine(1, 2)
    machine.tasks[1].nice = 5
    machine.turn()
    assert machine.turn() == (0, 1, 10_000 * 335 // 1024)


def test_busy_cpus_are_never_further_apart_than_a_quantum() -> None:
    machine = Machine(3, 3)
    for _ in range(50):
        assert machine.turn()[2] <= 1000
        cycles = [cpu.core.cycles for cpu in machine.cpus]
        assert max(cycles) - min(cycles) <= 1000
    assert [task.cpu.number for task in machine.tasks] == [0, 1, 2]


def test_sleepers_wake_in_their_order_and_not_before_their_time() -> None:
    machine = Machine(1, 3)
    queue = WaitQueue()
    machine.sleep(machine.tasks[0], queue, until_ns=5000)
    assert machine.turn()[1] == 1
    machine.sleep(machine.tasks[1], queue)
    assert machine.turn()[1] == 2
    assert len(queue) == 1  # the first one's time has come
    assert queue.wake() == 1
    machine.sleep(machine.tasks[2], queue, until_ns=1_000_000)
    assert [machine.turn()[1] for _ in range(2)] == [0, 1]
    assert [(tid, reason) for tid, reason, _ in machine.resumed] == [(0, Wake.TIMEOUT), (1, Wake.READY)]


def test_idle_time_passes_without_being_executed() -> None:
    machine = Machine(1, 1)
    machine.sleep(machine.tasks[0], until_ns=70_000)
    assert machine.turn()[1] == 0
    assert machine.resumed == [(0, Wake.TIMEOUT, 70_000)]
    assert machine.cpus[0].idle_cycles == 70_000 - 100
    assert machine.tasks[0].cycles_used == 100
    assert machine.cpus[0].slept == [(100, None), (70_000, Waking.INTERRUPT)]


def test_what_all_sleep_for_and_nobody_can_bring_ends_the_machine() -> None:
    machine = Machine(2, 2)
    machine.dispatcher.queues[1].timers.at_cycle(10**6, lambda: None)  # who merely observes brings nothing
    machine.sleep(machine.tasks[0], WaitQueue())
    assert machine.turn()[1] == 1
    machine.sleep(machine.tasks[1], WaitQueue())
    assert machine.scheduler.next_turn() is None
    assert machine.ended


def test_nothing_happens_before_its_cause() -> None:
    """CPU 1 has been idle from cycle 0; at 7,000 CPU 0 wakes the task there, which does not go on before."""
    machine = Machine(2, 2)
    queue = WaitQueue()
    machine.turn()
    machine.turn()
    machine.sleep(machine.tasks[1], queue)
    cpu, _ = machine.scheduler.next_turn() or (None, 0)
    assert cpu is machine.cpus[0]
    cpu.core.cycles = 7000
    queue.wake()
    machine.scheduler.next_turn()
    machine.cpus[0].core.cycles = 8000
    machine.scheduler.end_turn()
    assert machine.turn()[:2] == (1, 1)
    assert machine.resumed == [(1, Wake.READY, 7000)]
    assert machine.cpus[1].slept[-1] == (7000, Waking.STORE)


def test_who_has_a_higher_real_time_priority_takes_the_cpu_at_once() -> None:
    """Of the others goes on who has had less: task 0 has had nothing but a switch, when task 1 has to give way."""
    machine = Machine(1, 3)
    queue = WaitQueue()
    machine.tasks[2].policy, machine.tasks[2].priority = SCHED_FIFO, 10
    machine.dispatcher.reclassify(machine.tasks[2])
    assert machine.turn()[1] == 2
    machine.sleep(machine.tasks[2], queue)
    assert machine.turn()[1] == 1
    machine.dispatcher.executing.slice_end = machine.cpus[0].core.cycles + 5000
    queue.wake()
    assert [machine.turn()[1:] for _ in range(2)] == [(2, FOREVER - machine.cpus[0].core.cycles)] * 2
    machine.sleep(machine.tasks[2], queue)
    assert machine.turn()[1] == 0


def test_equal_priorities_wait_for_each_other_and_round_robin_gives_way() -> None:
    machine = Machine(1, 3)
    for task in machine.tasks:
        task.policy, task.priority = SCHED_FIFO, 1
        machine.dispatcher.reclassify(task)
    assert machine.turn()[1:] == (0, FOREVER)
    machine.tasks[0].policy = SCHED_RR
    machine.dispatcher.reclassify(machine.tasks[0])
    assert machine.turn()[1:] == (0, 100_000_000)
    assert machine.turn()[1] == 1


def _history(seed: int | None) -> list[tuple[int, int, int]]:
    machine = Machine(2, 3, seed)
    return [machine.turn() for _ in range(100)]


def test_a_seed_is_another_interleaving_that_can_be_had_again() -> None:
    histories = [_history(seed) for seed in (None, 1, 2)]
    assert histories == [_history(seed) for seed in (None, 1, 2)]
    assert histories[0] != histories[1] != histories[2] != histories[0]
    assert all(length <= 1000 for history in histories for _, _, length in history)
    assert all(length >= 500 for _, _, length in histories[1][:9])


def test_an_idle_cpu_takes_from_the_longest_queue_and_registers_come_along() -> None:
    """Task 1 found CPU 1 idle; all others are on CPU 0, as they were made there."""
    machine = Machine(2, 4)
    told: list[tuple[int, int]] = []
    machine.tracepoints.sched_migrate_task.subscribe(lambda task, old, new: told.append((task.tid, new.number)))
    assert [machine.turn()[:2] for _ in range(2)] == [(0, 0), (1, 1)]
    machine.sleep(machine.tasks[1], WaitQueue())
    for _ in range(60):
        machine.turn()
    assert told == [(2, 1)]
    assert all(machine.tasks[number].cycles_used for number in (0, 3))  # they take turns on CPU 0


def test_affinity_moves_a_task_at_once() -> None:
    machine = Machine(2, 1)
    machine.turn()
    machine.dispatcher.set_affinity(machine.tasks[0], 0b10)
    assert machine.turn()[:2] == (1, 0)


def test_who_is_moved_leaves_before_it_comes_to_another_cpu() -> None:
    """CPU 0 is ahead: CPU 1 would have had time for the task before that has left."""
    machine = Machine(2, 2)
    machine.turn()
    machine.turn()
    machine.sleep(machine.tasks[1], WaitQueue())
    cpu, _ = machine.scheduler.next_turn() or (None, 0)
    assert cpu is machine.cpus[0]
    cpu.core.cycles = 5000
    machine.dispatcher.set_affinity(machine.tasks[0], 0b10)
    assert machine.turn()[:2] == (1, 0)
    assert machine.tasks[0].running_since == 5000 + 100  # of the switch
    assert machine.tasks[0].cycles_used == 5000 + 100


def test_who_yields_goes_to_the_end_of_the_queue() -> None:
    machine = Machine(1, 2)
    machine.scheduler.next_turn()
    machine.dispatcher.yield_(machine.tasks[0])
    assert machine.turn()[1] == 1


def test_a_signal_ends_a_sleep_unless_it_is_blocked() -> None:
    machine = Machine(1, 2)
    task = machine.tasks[0]
    machine.sleep(task, WaitQueue())
    machine.scheduler.next_turn()
    task.signals.blocked = 1 << (SIGUSR1 - 1)
    task.signals.pending.append(SignalInfo(SIGUSR1))
    machine.dispatcher.interrupt(task)
    assert task.state is TaskState.SLEEPING
    task.signals.blocked = 0
    machine.dispatcher.interrupt(task)
    assert (task.state, task.woken_by) == (TaskState.RUNNABLE, Wake.SIGNAL)


def test_a_stopped_task_neither_executes_nor_forgets_that_it_was_woken() -> None:
    machine = Machine(1, 2)
    queue = WaitQueue()
    machine.sleep(machine.tasks[0], queue)
    assert machine.turn()[1] == 1
    machine.tasks[0].process.stopped = True
    queue.wake()
    assert machine.turn()[1] == 1
    machine.tasks[0].process.stopped = False
    machine.dispatcher.go_on(machine.tasks[0])
    machine.dispatcher.yield_(machine.tasks[1])
    assert machine.turn()[1] == 0
    assert machine.resumed[0][:2] == (0, Wake.READY)


@pytest.mark.parametrize("busy", [False, True])
def test_an_owed_exit_comes_before_everything(busy: bool) -> None:
    machine = Machine(1, 2 if busy else 1)
    machine.scheduler.next_turn()
    core = machine.cpus[0].core
    core.owes_exit = True
    core.cycles = 50_000  # the slice is over
    machine.scheduler.end_turn()
    assert machine.scheduler.next_turn() == (machine.cpus[0], 50_000)
    assert machine.dispatcher.current(machine.cpus[0]) is machine.tasks[0]


def _woken_after(machine: Machine, slept: int) -> list[int]:
    """Task 0 sleeps while task 1 executes for `slept` cycles and then wakes it: who executes, from then on."""
    queue = WaitQueue()
    machine.turn()
    machine.sleep(machine.tasks[0], queue)
    cpu, _ = machine.scheduler.next_turn() or (None, 0)
    assert cpu is not None
    cpu.core.cycles += slept
    machine.dispatcher.executing.slice_end = cpu.core.cycles + machine.dispatcher.slice_cycles
    queue.wake()
    return [machine.turn()[1] for _ in range(3)]


def _with_slices_of(cycles: int, tasks: int) -> Machine:
    machine = Machine(1, tasks)
    machine.dispatcher.slice_cycles = machine.dispatcher.executing.slice_end = cycles
    return machine


def test_who_wakes_takes_the_cpu_from_one_that_has_had_a_millisecond_more() -> None:
    """At 1 GHz. Task 0 has had a slice of 3 ms and a switch of 100 cycles before it slept."""
    assert _woken_after(_with_slices_of(3_000_000, 2), 2_900_000) == [1, 0, 1]
    assert _woken_after(_with_slices_of(10_000, 2), 1_009_000) == [1, 0, 1]
    assert _woken_after(_with_slices_of(10_000, 2), 1_010_200) == [0, 1, 0]


def test_who_has_had_much_less_goes_on_after_its_slice() -> None:
    """Task 0 wakes 2 ms behind task 1, executes slices until it is 1 ms behind, and then they alternate."""
    machine = _with_slices_of(10_000, 2)
    assert _woken_after(machine, 2_010_000)[0] == 0
    turns = [machine.turn()[1] for _ in range(120)]
    first = turns.index(1)
    assert 90 < first < 105
    assert turns[first : first + 6] == [1, 0] * 3


def test_a_long_sleep_gives_no_more_than_three_milliseconds() -> None:
    machine = _with_slices_of(10_000, 2)
    _woken_after(machine, 10**9)
    executed = machine.tasks[0].cycles_used
    while machine.turn()[1] != 1:
        pass
    assert machine.tasks[0].cycles_used - executed < 3_000_000 - 900_000


def test_batch_and_idle_tasks_do_not_preempt_and_idle_ones_are_preempted() -> None:
    machine = _with_slices_of(10_000, 2)
    machine.tasks[0].policy = SCHED_BATCH
    assert _woken_after(machine, 2_010_000)[0] == 1
    machine = _with_slices_of(10_000, 2)
    machine.tasks[1].policy = SCHED_IDLE
    assert _woken_after(machine, 5)[0] == 0


def test_who_yields_goes_behind_all_others() -> None:
    machine = Machine(1, 3)
    order = []
    for _ in range(6):
        cpu, _ = machine.scheduler.next_turn() or (None, 0)
        assert cpu is not None
        task = machine.dispatcher.current(cpu)
        assert task is not None
        order.append(task.tid)
        cpu.core.cycles += 10
        machine.dispatcher.yield_(task)
    assert order == [0, 1, 2] * 2


def test_virtual_times_of_different_cpus_are_not_compared() -> None:
    """Task 0 has executed for a second alone. On CPU 1 it does not wait that long for task 1, which has had nothing."""
    machine = Machine(2, 2)
    machine.turn()
    machine.turn()
    machine.tasks[0].virtual_cycles = 10**9
    machine.tasks[1].affinity = 2
    machine.dispatcher.set_affinity(machine.tasks[0], 2)
    cycles = machine.cpus[1].core.cycles
    while machine.turn()[1] != 0:
        pass
    assert machine.cpus[1].core.cycles - cycles < 4_000_000


def test_calls_from_outside_are_made_between_two_turns():
    machine = Machine(cpus=1, tasks=1)
    machine.turn()
    calls = []
    machine.scheduler.call_soon(lambda: calls.append(machine.dispatcher.executing.cpu.number))
    assert calls == []
    assert machine.cpus[0].core.returns_requested == 1  # the turn would have no end otherwise
    machine.turn()
    assert calls == [0]
    machine.turn()
    assert calls == [0]
