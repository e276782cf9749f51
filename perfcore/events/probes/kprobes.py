"""Kprobes: who hears of a function of the kernel: where the modelled one does what that does. As kernel/kprobes.c."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from emulator.linux.fs.file import O_CLOEXEC, O_PATH
from emulator.linux.process.task import Task
from emulator.linux.syscalls.table import load
from emulator.linux.tracepoint import Tracepoint
from emulator.linux.tracepoints import Tracepoints
from perfcore.abi.pt_regs import ARGUMENTS, PT_REGS
from perfcore.events.kernel import Linux
from perfcore.events.probes.kernel_functions import KernelFunction
from perfcore.events.probes.kprobe_definition import KprobeDefinition
from perfcore.events.probes.probe_event import ProbeEvent, TraceProbe

_PT_REGS_AT = 0xFFFF_C900_0000_3F58  # where pt_regs are said to be; struct open_how is below
_OPEN_HOW_AT = _PT_REGS_AT - 0x100
_KERNEL = 1 << 63
_MASK = (1 << 64) - 1
_ENOSYS = 38
_PASSED = ("di", "si", "dx", "r10", "r8", "r9")  # to system calls of x86-64
AT_FDCWD = -100
_CREAT = 0o1101  # creat(2): O_CREAT, O_WRONLY, O_TRUNC
_MAKES = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE: there is a mode


class KernelMoment:
    """Moment: as a function begins, or has returned. What it gets is known, and what its objects hold."""

    file_base = 0
    stack_pointer = 0

    def __init__(
        self,
        task: Task,
        arguments: tuple[int, ...] = (),
        objects: Mapping[int, Callable[[], bytes]] | None = None,
        returned: int = 0,
    ) -> None:
        self._task, self._objects = task, objects or {}
        self.arguments = arguments
        self.returned = returned & _MASK
        isa, names = task.architecture.isa, task.architecture.register_names
        natives = {register.name: register.native for register in PT_REGS[isa]}
        self._registers = {
            names.index(natives[name]): value & _MASK for name, value in zip(ARGUMENTS[isa], arguments, strict=False)
        }

    def register(self, number: int) -> int:
        return self._registers.get(number, self.returned)

    @property
    def comm(self) -> str:
        return self._task.comm

    def read(self, address: int, size: int) -> bytes | None:
        if address < _KERNEL:
            return self._task.mm.peek(address, size)
        for start, content in self._objects.items():
            if start <= address < start + 512:
                data = content()[address - start : address - start + size]
                return data if len(data) == size else None
        return None


def _pt_regs(task: Task, number: int, arguments: tuple[int, ...]) -> bytes:
    """Of the system call that the task makes."""
    architecture, core = task.architecture, task.cpu.core
    if architecture.isa == "aarch64":
        given = dict(zip(ARGUMENTS["aarch64"], arguments, strict=False))
    else:
        given = dict(zip(_PASSED, arguments, strict=True)) | {"ax": -_ENOSYS, "orig_ax": number}
    values = [
        given[register.name] if register.name in given
        else core.read_register(architecture.register_names.index(register.native)) if register.native
        else register.user
        for register in PT_REGS[architecture.isa]
    ]  # fmt: skip
    data = struct.pack(f"<{len(values)}Q", *(value & _MASK for value in values))
    if architecture.isa == "aarch64":
        data += struct.pack("<QiIQQQQ", arguments[0] & _MASK, number, *[0] * 5)  # orig_x0, syscallno ...
    return data


class _Source(NamedTuple):
    """Where a function is heard: what the tracepoint tells, to the CPU, the task and the moment, or None."""

    tracepoint: Callable[[Tracepoints], Tracepoint[Any]]
    moment: Callable[..., tuple[Cpu, Task, KernelMoment] | None]


def _sys_enter(points: Tracepoints) -> Tracepoint[Any]:
    return points.sys_enter


def _sys_exit(points: Tracepoints) -> Tracepoint[Any]:
    return points.sys_exit


def _of_call(function: KernelFunction, returns: bool) -> _Source:
    def entered(task: Task, number: int, arguments: tuple[int, ...]) -> tuple[Cpu, Task, KernelMoment] | None:
        if number != function.call:
            return None
        objects = {_PT_REGS_AT: lambda: _pt_regs(task, number, arguments)}
        return task.cpu, task, KernelMoment(task, (_PT_REGS_AT,), objects)

    def left(task: Task, number: int, result: int) -> tuple[Cpu, Task, KernelMoment] | None:
        return (task.cpu, task, KernelMoment(task, returned=result)) if number == function.call else None

    return _Source(_sys_exit, left) if returns else _Source(_sys_enter, entered)


def _of_transfer(architecture: Architecture, name: str, returns: bool) -> _Source:
    """ksys_read(), ksys_write(), with the arguments of the system call."""
    number = next(row.number(architecture.isa) for row in load() if row.name == name)

    def entered(task: Task, made: int, arguments: tuple[int, ...]) -> tuple[Cpu, Task, KernelMoment] | None:
        fd, buf, count = arguments[:3]
        return (task.cpu, task, KernelMoment(task, (fd & 0xFFFF_FFFF, buf, count))) if made == number else None

    def left(task: Task, made: int, result: int) -> tuple[Cpu, Task, KernelMoment] | None:
        return (task.cpu, task, KernelMoment(task, returned=result)) if made == number else None

    return _Source(_sys_exit, left) if returns else _Source(_sys_enter, entered)


def _of_open(architecture: Architecture, returns: bool) -> _Source:
    """do_sys_openat2(), which open, creat, openat and openat2 call."""
    calls = {row.number(architecture.isa): row.name for row in load() if row.name in _OPENED}

    def entered(task: Task, number: int, arguments: tuple[int, ...]) -> tuple[Cpu, Task, KernelMoment] | None:
        name = calls.get(number)
        if name is None:
            return None
        opened = _OPENED[name](*arguments)
        if name == "openat2":
            largefile = architecture.open_flags.largefile
            objects = {_OPEN_HOW_AT: lambda: _open_how(task.mm.peek(opened.flags, 24) or bytes(24), largefile)}
        else:
            flags = opened.flags & 0xFFFF_FFFF | architecture.open_flags.largefile
            if flags & O_PATH:
                flags &= O_PATH | O_CLOEXEC | architecture.open_flags.directory | architecture.open_flags.nofollow
            mode = opened.mode & 0o7777 if flags & _MAKES else 0
            objects = {_OPEN_HOW_AT: lambda: struct.pack("<3Q", flags, mode, 0)}
        return task.cpu, task, KernelMoment(task, (opened.dfd & 0xFFFF_FFFF, opened.filename, _OPEN_HOW_AT), objects)

    def left(task: Task, number: int, result: int) -> tuple[Cpu, Task, KernelMoment] | None:
        return (task.cpu, task, KernelMoment(task, returned=result)) if number in calls else None

    return _Source(_sys_exit, left) if returns else _Source(_sys_enter, entered)


def _open_how(given: bytes, largefile: int) -> bytes:
    """Of openat2."""
    flags, mode, resolve = struct.unpack("<3Q", given)
    return struct.pack("<3Q", flags | largefile, mode, resolve)


class _Opened(NamedTuple):
    """What is opened, and how; of openat2 `flags` is where that stands."""

    dfd: int
    filename: int
    flags: int
    mode: int


_OPENED: dict[str, Callable[..., _Opened]] = {
    "open": lambda filename, flags, mode, *_: _Opened(AT_FDCWD, filename, flags, mode),
    "creat": lambda filename, mode, *_: _Opened(AT_FDCWD, filename, _CREAT, mode),
    "openat": lambda dfd, filename, flags, mode, *_: _Opened(dfd, filename, flags, mode),
    "openat2": lambda dfd, filename, how, *_: _Opened(dfd, filename, how, 0),
}


def _on_switch(cpu: Cpu, previous: Task | None, following: Task | None, preempted: bool) -> Any:
    """The idle task's end of a switch is nobody's here."""
    return None if following is None else (cpu, following, KernelMoment(following))


def _of_task(task: Task, *_: object) -> tuple[Cpu, Task, KernelMoment]:
    return task.cpu, task, KernelMoment(task)


def _forks(parent: Task, child: Task, flags: int) -> tuple[Cpu, Task, KernelMoment]:
    return parent.cpu, parent, KernelMoment(parent, (flags,))


class Kprobes:
    """All of one kernel. It hears of a function as long as somebody is registered."""

    def __init__(self, kernel: Linux) -> None:
        self._kernel = kernel

    def listen(
        self, function: KernelFunction, returns: bool, hit: Callable[[Cpu, Task, KernelMoment], None]
    ) -> Callable[[], None]:
        """Call `hit` each time. What it gives back ends that."""
        source = self._source(function, returns)
        tracepoint = source.tracepoint(self._kernel.tracepoints)

        def hear(*told: object) -> None:
            found = source.moment(*told)
            if found is not None:
                hit(*found)

        tracepoint.subscribe(hear)
        return lambda: tracepoint.unsubscribe(hear)

    def _source(self, function: KernelFunction, returns: bool) -> _Source:
        if function.call is not None:
            return _of_call(function, returns)
        if function.name == "do_sys_openat2":
            return _of_open(self._kernel.architecture, returns)
        if function.name in ("ksys_read", "ksys_write"):
            return _of_transfer(self._kernel.architecture, function.name.removeprefix("ksys_"), returns)
        return {
            "do_exit": _Source(lambda points: points.task_exit, self._exits),
            "finish_task_switch": _Source(lambda points: points.sched_switch, _on_switch),
            "handle_mm_fault": _Source(lambda points: points.page_fault, self._faults),
            "sched_fork": _Source(lambda points: points.task_newtask, _forks),
            "try_to_wake_up": _Source(lambda points: points.sched_wakeup, self._wakes),
            "wake_up_new_task": _Source(lambda points: points.task_fork, _of_task),
        }[function.name]

    def _exits(self, task: Task) -> tuple[Cpu, Task, KernelMoment]:
        return task.cpu, task, KernelMoment(task, (task.exit_code or 0,))

    def _faults(self, task: Task, address: int, major: bool | None, user: bool) -> Any:
        """Those that found a mapping, and the right to it."""
        return None if major is None else (task.cpu, task, KernelMoment(task, (0, address)))

    def _wakes(self, task: Task, cpu: Cpu) -> Any:
        """By who executes; an interrupt's on an idle CPU is nobody's."""
        executing = self._kernel.executing_cpu
        waker = self._kernel.current(executing)
        return None if waker is None else (executing, waker, KernelMoment(waker))


class TraceKprobe(TraceProbe[KprobeDefinition]):
    """struct trace_kprobe"""

    def __init__(self, definition: KprobeDefinition, event: ProbeEvent, kprobes: Kprobes) -> None:
        super().__init__(definition, event)
        self._kprobes = kprobes
        self._end: Callable[[], None] | None = None

    def register(self) -> None:
        self._end = self._kprobes.listen(self.definition.function, self.definition.returns, self._hit)

    def unregister(self) -> None:
        assert self._end is not None, "it is registered"
        self._end()

    def _hit(self, cpu: Cpu, task: Task, moment: KernelMoment) -> None:
        self.hits += 1
        address = self.definition.address
        self.occurred(cpu, task, (address, 0) if self.definition.returns else (address,), moment)
