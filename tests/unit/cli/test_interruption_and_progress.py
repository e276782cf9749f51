"""Signals that end a run, and the line that shows that one goes on."""

import io
import os
import signal

import pytest

from emulator.linux.tty.console import Console
from perfemu.ending import Ending
from perfemu.interruption import Interrupted, Interruption
from perfemu.progress import Limit, Progress, short_count


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts(number: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as raised, Interruption():
        os.kill(os.getpid(), number)
    assert raised.value.number == number
    assert signal.getsignal(number) is before


def test_a_signal_waits_while_held() -> None:
    with Interruption() as interruption:
        interruption.hold()
        os.kill(os.getpid(), signal.SIGTERM)  # would raise here
        with pytest.raises(Interrupted):
            interruption.release()


def test_one_signal_is_enough() -> None:
    with Interruption():
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # while the file is being completed: changes nothing


def test_progress_shows_count_and_speed() -> None:
    counts = iter([1_000_000, 61_000_000])
    progress = Progress(io.StringIO(), lambda: next(counts), Console())
    progress.line(10.0)
    # 60 million more in 2 s: 30 MIPS
    assert progress.line(12.0) == "[ perfemu: 61.0 M instructions, 30 MIPS, 12 s ]"


def test_with_a_limit_the_time_that_is_left_is_told() -> None:
    counts = iter((1_000_000, 61_000_000))
    times_ns = iter((0, 500))
    reached = iter((1_000_000, 61_000_000))
    limits = (Limit(lambda: next(reached), 361_000_000), Limit(lambda: next(times_ns), 2000))
    progress = Progress(io.StringIO(), lambda: next(counts), Console(), limits)
    progress.line(10.0)
    # 300 million more at 30 in a second: 10 s; 1,500 ns more at 250 in a second: 6 s
    assert progress.line(12.0) == "[ perfemu: 61.0 M instructions, 30 MIPS, 12 s, 6 s left at most ]"


def test_a_limit_that_nothing_comes_nearer_to_tells_no_time() -> None:
    progress = Progress(io.StringIO(), lambda: 5, Console(), [Limit(lambda: 7, 8)])
    progress.line(10.0)
    assert progress.line(12.0) == "[ perfemu: 5 instructions, 0 MIPS, 12 s ]"


def test_no_terminal_no_progress() -> None:
    stream = io.StringIO()
    with Progress(stream, lambda: 0, Console()):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (1500, "1.5 k"), (2_340_000_000, "2.3 G")])
def test_short_counts(count: int, text: str) -> None:
    assert short_count(count) == text


def test_endings_are_the_shells() -> None:
    assert (Ending(7 << 8).exit_status, Ending(7 << 8).message) == (7, None)
    assert (Ending(11).exit_status, Ending(11).signal, Ending(11).message) == (139, 11, "Segmentation fault")
    assert (Ending(13).exit_status, Ending(13).message) == (141, None)  # SIGPIPE: shells say nothing
    assert Ending(9 | 0x80).exit_status == 137  # with a core dump


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_goes_before_the_guest_writes_and_stays_away_from_dialogues() -> None:
    console, stream = Console(), Terminal()
    with Progress(stream, lambda: 5, console):
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.kill(os.getpid(), signal.SIGALRM)
        assert stream.getvalue().startswith("\r\x1b[K[ perfemu: 5 instructions")
        console.note_output(b"a prompt: ")
        shown = stream.getvalue()
        assert shown.endswith("]\r\r\x1b[K")
        os.kill(os.getpid(), signal.SIGALRM)  # the guest's line is not at its end
        assert stream.getvalue() == shown
        console.note_output(b"\n")
        os.kill(os.getpid(), signal.SIGALRM)
        assert len(stream.getvalue()) > len(shown)
        console.in_dialogue = True
        console.note_output(b"")
        shown = stream.getvalue()
        os.kill(os.getpid(), signal.SIGALRM)
    assert stream.getvalue() == shown
