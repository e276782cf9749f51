"""SignalState: what becomes pending, what is delivered first, what execve leaves."""

from __future__ import annotations

import pytest

from emulator.linux.signals.signal import (
    NAMES,
    SEGV_MAPERR,
    SI_TIMER,
    SI_USER,
    SIG_IGN,
    SIGCHLD,
    SIGKILL,
    SIGSEGV,
    SIGTERM,
    SIGUSR1,
    SIGUSR2,
    AlternateStack,
    Default,
    PendingSignals,
    SignalAction,
    SignalInfo,
    SignalState,
    bit,
    default_action,
)


def test_numbers_are_linux() -> None:
    # uapi/asm-generic/signal.h
    assert (SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2, SIGTERM, SIGCHLD) == (9, 10, 11, 12, 15, 17)
    assert NAMES[31] == "SIGSYS"
    assert len(NAMES) == 31


@pytest.mark.parametrize(
    ("signal", "action"),
    [(SIGSEGV, Default.CORE), (SIGTERM, Default.TERMINATE), (SIGCHLD, Default.IGNORE), (40, Default.TERMINATE)],
)
def test_default_actions(signal: int, action: Default) -> None:
    assert default_action(signal) is action


def test_a_standard_signal_is_pending_once_and_a_real_time_one_queues() -> None:
    state = SignalState(blocked=bit(SIGUSR1) | bit(40))
    for _ in range(2):
        state.post(SignalInfo(SIGUSR1))
        state.post(SignalInfo(40))
    assert [info.signal for info in state.pending] == [SIGUSR1, 40, 40]
    assert not state.deliverable()


def test_faults_come_first_then_the_lowest_number() -> None:
    state = SignalState()
    for signal in (SIGTERM, SIGUSR1, SIGSEGV):
        state.post(SignalInfo(signal))
    taken = [state.take() for _ in range(4)]
    assert [info.signal if info else None for info in taken] == [SIGSEGV, SIGUSR1, SIGTERM, None]


def test_what_is_ignored_is_dropped_unless_it_is_blocked() -> None:
    state = SignalState(actions={SIGUSR1: SignalAction(SIG_IGN)})
    state.post(SignalInfo(SIGUSR1))
    state.post(SignalInfo(SIGCHLD))
    assert not state.pending
    state.blocked = bit(SIGUSR1)
    state.post(SignalInfo(SIGUSR1))
    assert len(state.pending) == 1


def test_sigtimedwait_takes_blocked_signals_of_its_set() -> None:
    state = SignalState(blocked=bit(SIGUSR1) | bit(SIGUSR2))
    state.post(SignalInfo(SIGUSR1))
    state.post(SignalInfo(SIGUSR2))
    taken = state.take(bit(SIGUSR2))
    assert taken is not None
    assert taken.signal == SIGUSR2
    assert state.pending_mask() == bit(SIGUSR1)


def test_execve_keeps_what_is_ignored_and_blocked() -> None:
    state = SignalState(
        blocked=bit(SIGTERM),
        actions={SIGUSR1: SignalAction(0x1234), SIGUSR2: SignalAction(SIG_IGN)},
        stack=AlternateStack(0x1000, 0, 0x2000),
    )
    state.reset_for_exec()
    assert state.blocked == bit(SIGTERM)
    assert state.action(SIGUSR1).handler == 0
    assert state.action(SIGUSR2).handler == SIG_IGN
    assert state.stack == AlternateStack()


def test_siginfo_is_laid_out_as_linux_does() -> None:
    # si_signo, si_errno, si_code, padding; then si_addr, or si_pid and si_uid, or si_tid, si_overrun and si_value
    fault = SignalInfo(SIGSEGV, SEGV_MAPERR, 0x1234).pack()
    assert len(fault) == 128
    assert fault[:24] == bytes.fromhex("0b000000 00000000 01000000 00000000 3412000000000000")
    sent = SignalInfo(SIGUSR1, SI_USER, pid=1000, uid=5).pack()
    assert sent[:24] == bytes.fromhex("0a000000 00000000 00000000 00000000 e8030000 05000000")
    timer = SignalInfo(SIGUSR1, SI_TIMER, timer_id=3, value=77, overrun=2).pack()
    assert timer[:32] == bytes.fromhex("0a000000 00000000 feffffff 00000000 03000000 02000000 4d00000000000000")


def test_pending_signals_are_taken_by_number_and_dropped_by_set() -> None:
    pending = PendingSignals()
    for number in (40, SIGUSR1, 40, SIGSEGV):
        pending.append(SignalInfo(number, value=len(pending)))
    assert (len(pending), pending.mask) == (4, bit(40) | bit(SIGUSR1) | bit(SIGSEGV))
    first = pending.take(bit(40))
    assert (first, pending.mask) == (SignalInfo(40, value=0), bit(40) | bit(SIGUSR1) | bit(SIGSEGV))
    old = next(info for info in pending if info.signal == 40)
    pending.replace(old, SignalInfo(40, value=9))
    assert [pending.take(-1) for _ in range(4)] == [
        SignalInfo(SIGSEGV, value=3), SignalInfo(SIGUSR1, value=1), SignalInfo(40, value=9), None,
    ]  # fmt: skip
    assert (len(pending), pending.mask) == (0, 0)
    for _ in range(3):
        pending.append(SignalInfo(40))
    pending.drop(bit(SIGUSR1))
    assert len(pending) == 3
    pending.drop(bit(40))
    assert not pending
