"""How long CPUs execute before it is another's turn."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.linux.sched.turns import Turns


@dataclass
class Caches:
    returns: int = 0
    coherence_latency: int = 44


def test_without_caches_every_turn_is_a_quantum() -> None:
    turns = Turns(1000, None)
    assert [turns.next_cycles() for _ in range(3)] == [1000, 1000, 1000]


def test_turns_are_halved_while_lines_come_back_and_doubled_when_none_does() -> None:
    caches = Caches()
    turns = Turns(1000, caches)
    lengths = [turns.next_cycles()]
    for _ in range(6):
        caches.returns += 3
        lengths.append(turns.next_cycles())
    assert lengths == [1000, 500, 250, 125, 62, 44, 44]
    assert [turns.next_cycles() for _ in range(6)] == [88, 176, 352, 704, 1000, 1000]


def test_a_quantum_is_never_exceeded() -> None:
    turns = Turns(10, caches := Caches())
    caches.returns = 1
    assert [turns.next_cycles() for _ in range(2)] == [10, 10]
