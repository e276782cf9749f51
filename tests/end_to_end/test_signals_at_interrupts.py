"""A signal that comes with a PMU interrupt which falls on a system call: the call is answered first."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.linux.signals.signal import SA_RESTORER, SIGUSR1, SignalAction, SignalInfo
from end_to_end.assembled import program
from end_to_end.random_guests import BASE, CODE_OFFSET
from guests import ISAS
from perfemu.events.attributes import stat_attr
from perfemu.guest import Guest
from perfemu.session import Session

# A hundred times getppid, then exit(77). The handler, at the end, exits with the signal's number.
CALLS = {
    "aarch64": "940c80d2a81580d2010000d4940600f1a1ffff54a80b80d2a00980d2010000d4a80b80d2010000d4",
    "x86_64": "bb64000000b86e0000000f05ffcb75f5bf4d000000b83c0000000f05b83c0000000f05",
}
HANDLER = {"aarch64": BASE + CODE_OFFSET + 32, "x86_64": BASE + CODE_OFFSET + 28}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("period", [1, 2, 3, 4, 5, 6])
def test_the_handler_runs_with_registers_of_its_own(isa: str, period: int, tmp_path: Path) -> None:
    """The period chooses the instruction on which the overflow falls: with 3 it is the first system call."""
    path = str(program(tmp_path / "calls", isa, CALLS[isa]))
    session = Session(Guest((path,), core="ideal", stdin=-1, stdout=-1, stderr=-1))
    attr = stat_attr(session.parse(["instructions:u"])[0], inherit=False)
    attr.sample_period = period
    attr.wakeup_events = 1
    event = session.open(attr)
    kernel = session.machine.kernel
    task = kernel.tasks[1000]
    sent: list[int] = []

    def send(reason: int) -> None:
        if not sent:
            sent.append(reason)
            task.signals.actions[SIGUSR1] = SignalAction(HANDLER[isa], SA_RESTORER)
            kernel.send_signal(task, SignalInfo(SIGUSR1))

    event.on_signal = send
    event.event_limit = 0
    ending = session.run()
    assert (len(sent), ending.exit_status) == (1, SIGUSR1)
