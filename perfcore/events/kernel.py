"""What perf_event needs of the Linux around it. `emulator.linux.kernel.Kernel` is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.process.task import Task
from emulator.linux.tracepoints import Tracepoints


class Timer(Protocol):
    """Something that will happen at a cycle."""

    def cancel(self) -> None: ...


class Linux(Protocol):
    """The kernel's other half."""

    @property
    def clock(self) -> Clock: ...
    @property
    def cpus(self) -> Sequence[Cpu]: ...
    @property
    def architecture(self) -> Architecture: ...
    @property
    def tracepoints(self) -> Tracepoints: ...

    @property
    def executing_cpu(self) -> Cpu:
        """For which the machine works at the moment."""

    @property
    def executes(self) -> bool:
        """Whether the kernel's own code is executed, not modelled: samples of it have addresses then."""

    @property
    def keeps_frame_pointers(self) -> bool:
        """Of one that is executed: whether its callers can be found so."""

    def current(self, cpu: Cpu) -> Task | None:
        """The task that runs on `cpu`."""

    def cgroup(self, cpu: Cpu) -> Cgroup:
        """The control group of what runs on `cpu`; the idle task is the root's."""

    def thread(self, cpu: Cpu) -> tuple[int, int]:
        """pid and tid of what runs on `cpu`; 0, 0 is the idle task."""

    def add_timer(self, cycle: int, callback: Callable[[], None], cpu: Cpu | None = None) -> Timer:
        """Call `callback` at exactly that cycle of `cpu` (None: of the one that executes)."""
