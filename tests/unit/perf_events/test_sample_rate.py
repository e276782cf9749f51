"""SampleRate: how many samples a tick may have, and how a frequency moves the period."""

from __future__ import annotations

from types import SimpleNamespace

from emulator.linux.structures import TICK_NS
from perfcore.abi.attr import PerfEventAttr
from perfcore.events.hardware_state import HardwareState
from perfcore.events.sample_rate import SampleRate
from perfcore.events.settings import Settings


class Sampled:
    """An event that writes down what is asked of it."""

    def __init__(self, attr: PerfEventAttr, settings: Settings) -> None:
        self.attr = attr
        self.settings = settings
        self.hw = HardwareState(attr.sample_period)
        self.now_ns = 0
        self.kernel = SimpleNamespace(clock=SimpleNamespace(monotonic_ns=lambda: self.now_ns))
        self.counted = 0
        self.asked: list[str] = []

    def start(self, reload: bool = False) -> None:
        self.asked.append(f"start {reload}")

    def stop(self) -> None:
        self.asked.append("stop")

    def tell_throttled(self, throttled: bool) -> None:
        self.asked.append("throttled" if throttled else "unthrottled")


def test_more_than_a_ticks_samples_throttle_until_the_next_tick() -> None:
    event = Sampled(PerfEventAttr(sample_period=100), Settings())
    rate = SampleRate(event)
    waiting: list[Sampled] = []
    rate.on_throttled = waiting.append
    most = event.settings.max_samples_per_tick
    assert rate.matters
    assert not rate.wants_tick
    assert [rate.account_interrupt(100, True) for _ in range(most + 1)] == [False] * most + [True]
    assert (event.asked, waiting, rate.throttled) == (["throttled"], [event], True)
    rate.tick()
    assert (event.asked[1:], rate.throttled) == (["unthrottled", "start False"], False)
    event.now_ns += TICK_NS
    assert not rate.account_interrupt(100, True)


def test_a_measuring_subsystem_accounts_nothing_but_frequencies() -> None:
    assert not SampleRate(Sampled(PerfEventAttr(sample_period=100), Settings.measuring())).matters
    assert SampleRate(Sampled(PerfEventAttr(sample_period=4000, freq=1), Settings.measuring())).matters


def test_a_tick_moves_the_period_an_eighth_of_the_way_to_the_frequency() -> None:
    """4,000,000 events in a tick of 4 ms are 10^9 in a second: 4,000 samples want a period of 250,000."""
    event = Sampled(PerfEventAttr(sample_period=4000, freq=1), Settings.measuring())
    event.hw.sample_period = event.hw.period_left = 90_000
    rate = SampleRate(event)
    event.counted = TICK_NS
    rate.tick()
    assert event.hw.sample_period == 90_000 + (250_000 - 90_000) // 8
    assert event.asked == ["stop", "start True"]
    rate.tick()  # nothing was counted
    assert event.asked[2:] == ["stop", "start False"]
    rate.fix()
    assert (rate.wants_tick, rate.matters) == (False, False)
