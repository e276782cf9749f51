"""Timers: exact cycles, times, and periods."""

from __future__ import annotations

from emulator.clock import Clock
from emulator.linux.clock_ids import CLOCK_MONOTONIC
from emulator.linux.sched.hrtimers import HrTimerMode, HrTimers, HrTimerTracepoints
from emulator.linux.sched.interval_timers import IntervalTimer
from emulator.linux.sched.timers import FOREVER, Timers


class Hand:
    """A clock that the test moves: 2 GHz, so a cycle is half a nanosecond."""

    def __init__(self) -> None:
        self.cycles = 0
        self.clock = Clock(lambda: self.cycles, 2_000_000_000)
        self.timers = Timers(self.clock, lambda: self.cycles)
        self.fired: list[object] = []

    def fires(self, name: str) -> None:
        self.fired.append(name)

    def ticks(self, goes_on: bool = False) -> bool:
        self.fires("tick")
        return goes_on


def test_nothing_is_due_without_timers() -> None:
    assert Hand().timers.next_cycle() == FOREVER


def test_timers_fire_in_order_and_once() -> None:
    hand = Hand()
    hand.timers.at_cycle(30, lambda: hand.fires("c"))
    hand.timers.at_cycle(10, lambda: hand.fires("a"))
    hand.timers.at_cycle(10, lambda: hand.fires("b"))
    assert hand.timers.next_cycle() == 10
    hand.cycles = 9
    hand.timers.fire_due()
    assert hand.fired == []
    hand.cycles = 30
    hand.timers.fire_due()
    hand.timers.fire_due()
    assert hand.fired == ["a", "b", "c"]


def test_a_cancelled_timer_is_as_if_it_had_never_been() -> None:
    hand = Hand()
    timer = hand.timers.at_cycle(10, lambda: hand.fires("a"))
    hand.timers.at_cycle(20, lambda: hand.fires("b"))
    timer.cancel()
    timer.cancel()
    assert hand.timers.next_cycle() == 20


def test_times_are_cycles() -> None:
    hand = Hand()
    hand.timers.at_time(100, lambda: hand.fires("time"))
    hand.timers.at_cycle(150, lambda: hand.fires("cycle"))
    assert hand.timers.next_cycle() == 150
    hand.cycles = 199  # 100 ns are 200 cycles
    hand.timers.fire_due()
    assert hand.fired == ["cycle"]
    hand.cycles = 200
    hand.timers.fire_due()
    assert hand.fired == ["cycle", "time"]


def test_who_merely_observes_wakes_nobody() -> None:
    hand = Hand()
    hand.timers.at_cycle(10, lambda: hand.fires("observer"))
    assert not hand.timers.will_wake()
    timer = hand.timers.at_time(100, lambda: hand.fires("waker"))
    assert hand.timers.will_wake()
    timer.cancel()
    assert not hand.timers.will_wake()


def test_a_callback_may_set_the_next_timer() -> None:
    hand = Hand()

    def again() -> None:
        hand.fires("x")
        if len(hand.fired) < 3:
            hand.timers.at_cycle(hand.cycles, again)

    hand.timers.at_cycle(5, again)
    hand.cycles = 5
    hand.timers.fire_due()
    assert hand.fired == ["x", "x", "x"]


def test_an_interval_timer_keeps_its_rhythm() -> None:
    hand = Hand()
    timer = IntervalTimer(hand.timers, hand.clock, lambda: hand.ticks(goes_on=True))
    timer.set(100, 40)
    assert timer.remaining_ns() == 100
    hand.cycles = 200  # 100 ns
    hand.timers.fire_due()
    assert (hand.fired, timer.remaining_ns()) == (["tick"], 40)
    hand.cycles = 200 + 2 * 90  # 90 ns later: of two ticks that were due (40, 80) one is told, the next is at 120
    hand.timers.fire_due()
    assert (hand.fired, timer.remaining_ns()) == (["tick", "tick"], 30)
    timer.cancel()
    assert timer.remaining_ns() == 0
    assert hand.timers.next_cycle() == FOREVER


def test_an_interval_timer_rests_until_it_goes_on() -> None:
    """As from a signal to its delivery. It is due at 100 ns; at 190 ns 140 and 180 have passed, 220 is next."""
    hand = Hand()
    timer = IntervalTimer(hand.timers, hand.clock, hand.ticks)
    timer.set(100, 40)
    hand.cycles = 2 * 190
    hand.timers.fire_due()
    assert (hand.fired, timer.rests, hand.timers.next_cycle()) == (["tick"], True, FOREVER)
    assert (timer.remaining_ns(), timer.until_next_ns()) == (0, 30)
    timer.go_on()
    assert (timer.rests, timer.missed, timer.remaining_ns()) == (False, 2, 30)
    assert hand.timers.next_cycle() == 2 * 220
    timer.go_on()
    assert timer.remaining_ns() == 30


def test_an_hrtimer_tells_of_an_interval_timer() -> None:
    """On its clock: CLOCK_MONOTONIC is 100 s ahead of the machine's."""
    hand, tracepoints = Hand(), HrTimerTracepoints()
    told = hand.fired
    start = 100_000_000_000
    hrtimer = HrTimers(tracepoints, hand.clock).real_timer(7)
    timer = IntervalTimer(hand.timers, hand.clock, hand.ticks, hrtimer=hrtimer)
    timer.set(100, 40)  # nobody hears
    tracepoints.start.subscribe(lambda timer, expires, soft, mode: told.append((timer.function, expires, soft, mode)))
    tracepoints.expire_entry.subscribe(lambda timer, now: told.append(("entry", now)))
    tracepoints.expire_exit.subscribe(lambda timer: told.append("exit"))
    tracepoints.cancel.subscribe(lambda timer: told.append("cancel"))
    hand.cycles = 2 * 101
    hand.timers.fire_due()
    timer.cancel()  # it is not armed
    assert told == [("entry", start + 101), "tick", "exit"]
    told.clear()
    timer.set(20, 0)
    timer.cancel()
    timer.cancel()
    assert told == [("it_real_fn", start + 121, start + 121, HrTimerMode.REL), "cancel"]


def test_an_hrtimer_is_told_no_later_than_time_ends() -> None:
    """KTIME_MAX is the last nanosecond of a signed 64-bit number; a task's slack is unsigned."""
    hand, tracepoints = Hand(), HrTimerTracepoints()
    tracepoints.start.subscribe(lambda timer, expires, soft, mode: hand.fired.append((expires, soft)))
    timers = HrTimers(tracepoints, hand.clock)
    timers.sleeper(7, CLOCK_MONOTONIC, HrTimerMode.REL, 50_000).start((1 << 63) - 1)
    timers.sleeper(7, CLOCK_MONOTONIC, HrTimerMode.REL, (1 << 64) - 1).start(0)
    assert hand.fired == [((1 << 63) - 1, (1 << 63) - 1), ((1 << 63) - 1, 100_000_000_000)]


def test_a_cpu_time_timer_rests_while_its_task_is_on_no_cpu() -> None:
    hand = Hand()
    away = 0
    timer = IntervalTimer(hand.timers, hand.clock, hand.ticks, lambda: hand.clock.at(hand.cycles - away))
    timer.resume("thread", hand.timers)
    timer.set(50, 0)
    hand.cycles = 40
    timer.suspend("thread")
    assert hand.timers.next_cycle() == FOREVER
    assert timer.remaining_ns() == 30
    hand.cycles, away = 1_000_040, 1_000_000
    timer.resume("thread", hand.timers)
    assert hand.timers.next_cycle() == 1_000_100


def test_two_threads_use_up_a_cpu_time_twice_as_fast() -> None:
    """100 ns are 200 cycles of one thread, or 100 of two; a timer of one thread does not hear of the other."""
    hand = Hand()
    for of, cycle in ((None, 100), ("first", 200)):
        timer = IntervalTimer(hand.timers, hand.clock, hand.ticks, lambda: 0, of)
        for thread in ("first", "second"):
            timer.resume(thread, hand.timers)
        timer.set(100, 0)
        assert hand.timers.next_cycle() == cycle
        timer.suspend("second")
        assert hand.timers.next_cycle() == 200
        timer.cancel()


def test_a_user_time_timer_waits_while_the_kernel_works() -> None:
    """50 ns of user time are 100 cycles; the kernel takes 60 of those that pass, so that they end at cycle 160."""
    hand = Hand()
    kernel_cycles = 0
    timer = IntervalTimer(hand.timers, hand.clock, hand.ticks, lambda: hand.clock.at(hand.cycles - kernel_cycles))
    timer.resume("thread", hand.timers)
    timer.set(50, 0)
    hand.cycles, kernel_cycles = 100, 60
    hand.timers.fire_due()
    assert hand.fired == []
    assert timer.remaining_ns() == 30  # 60 of the 100 cycles are to come
    assert hand.timers.next_cycle() == 160
    hand.cycles = 160
    hand.timers.fire_due()
    assert hand.fired == ["tick"]
