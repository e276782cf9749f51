"""What happens at exact cycles of a board's CPUs for who watches from outside."""

from __future__ import annotations

from emulator.board.observers import Observers


def test_what_is_due_happens_in_the_order_of_cycles_then_of_asking() -> None:
    happened: list[str] = []
    observers = Observers(1)
    for name, cycle in (("late", 30), ("first", 10), ("second", 10)):
        observers.at_cycle(0, cycle, lambda name=name: happened.append(name))
    assert observers.look(0, 9) == 10
    assert happened == []
    assert observers.look(0, 10) == 30
    assert happened == ["first", "second"]
    assert observers.look(0, 50) is None
    assert happened == ["first", "second", "late"]


def test_a_cancelled_one_is_not_due() -> None:
    observers = Observers(1)
    observers.at_cycle(0, 10, lambda: None).cancel()
    assert observers.due_cycle(0) is None


def test_one_may_ask_again_as_it_happens() -> None:
    observers = Observers(1)
    seen: list[int] = []

    def again() -> None:
        seen.append(len(seen))
        if len(seen) < 3:
            observers.at_cycle(0, 10, again)

    observers.at_cycle(0, 10, again)
    assert observers.look(0, 10) is None
    assert seen == [0, 1, 2]


def test_cpus_have_their_own() -> None:
    observers = Observers(2)
    observers.at_cycle(1, 10, lambda: None)
    assert (observers.due_cycle(0), observers.due_cycle(1)) == (None, 10)
