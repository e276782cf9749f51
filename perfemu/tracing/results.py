"""Results: what stands behind the equals sign."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from emulator.linux import errors
from perfemu.tracing import constants, structures
from perfemu.tracing.values import LARGEST_ERRNO, View, descriptor_text, flags, hexadecimal, octal, open_flags, signed


def _polled(view: View, result: int) -> str:
    """How many are ready, and what they are ready for."""
    if result == 0:
        return "0 (Timeout)"
    ready = []
    for index in range(min(view.arguments[1] & 0xFFFFFFFF, 1024)):
        data = view.peek(view.arguments[0] + 8 * index, 8)
        if data is not None and any(data[6:]):
            happened = flags(constants.POLL, int.from_bytes(data[6:], "little"))
            ready.append(f"{{fd={int.from_bytes(data[:4], 'little', signed=True)}, revents={happened}}}")
    return f"{result} ([{', '.join(ready)}])"


def _selected(view: View, result: int) -> str:
    if result == 0:
        return "0 (Timeout)"
    sets = [
        f"{name} {structures.fd_set(view, raw)}"
        for name, raw in zip(("in", "out", "exc"), view.arguments[1:4], strict=True)
        if raw and structures.fd_set(view, raw) != "[]"
    ]
    return f"{result} ({', '.join(sets)})"


def _error(code: int) -> str:
    return f"-1 {errors.NAMES.get(code, f'(errno {code})')} ({os.strerror(code)})"


def _fcntl_result(view: View, result: int) -> str:
    command = constants.FCNTL.get(view.arguments[1] & 0xFFFFFFFF, "")
    if command == "F_GETFL":
        return f"{hexadecimal(result)} (flags {open_flags(view.isa, result)})"
    if command == "F_GETFD":
        return f"{hexadecimal(result)} (flags FD_CLOEXEC)" if result & 1 else "0"
    return descriptor_text(view, result) if command in ("F_DUPFD", "F_DUPFD_CLOEXEC") else str(result)


def _descriptor(view: View, result: int) -> str:
    return descriptor_text(view, result)


def _returned(view: View, result: int) -> str:
    """rt_sigreturn: what the interrupted code has in the register of results, now that it goes on."""
    registers = view.task.cpu.core.syscall_arguments()
    value = signed(registers[0 if view.isa == "x86_64" else 1], 64)
    return _error(-value) if -LARGEST_ERRNO <= value < 0 else str(value)


def _address(view: View, result: int) -> str:
    return hexadecimal(result & (1 << 64) - 1)


_MAKE_DESCRIPTORS = (
    "open openat openat2 creat dup dup2 dup3 socket accept accept4 memfd_create eventfd eventfd2 epoll_create "
    "epoll_create1 timerfd_create signalfd signalfd4 pidfd_open pidfd_getfd inotify_init inotify_init1 perf_event_open"
)
RESULTS: Mapping[str, Callable[[View, int], str]] = {
    **dict.fromkeys(_MAKE_DESCRIPTORS.split(), _descriptor),
    **dict.fromkeys(("mmap", "mremap", "brk", "shmat", "personality"), _address),
    "rt_sigreturn": _returned,
    "umask": lambda view, result: octal(result),
    "fcntl": _fcntl_result,
    "poll": _polled,
    "ppoll": _polled,
    "select": _selected,
    "pselect6": _selected,
}
_RESTARTS = {
    errors.ERESTARTSYS: "ERESTARTSYS (To be restarted if SA_RESTART is set)",
    errors.ERESTARTNOHAND: "ERESTARTNOHAND (To be restarted if no handler)",
}


def result_text(name: str, view: View) -> str:
    """What stands behind the equals sign; `view` is of a call that is over."""
    result = view.result
    if result is None:
        return "?"
    if not view.failed:
        return RESULTS[name](view, result) if name in RESULTS else str(result)
    restart = _RESTARTS.get(-result)
    return _error(-result) if restart is None else f"? {restart}"
