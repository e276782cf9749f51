"""What lines of system calls need of who calls: a task of the modelled Linux, or one of a board's."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from emulator.clock import Clock
from emulator.linux.syscalls.table import Syscall


class HasIsa(Protocol):
    @property
    def isa(self) -> str: ...


class Memory(Protocol):
    def peek(self, address: int, size: int, /) -> bytes | None:
        """Undisturbed; None where it is not there. Raises LinuxError where it may not be read."""


class OpenFile(Protocol):
    @property
    def path(self) -> str: ...


class Files(Protocol):
    def descriptors(self) -> Collection[int]: ...
    def get(self, number: int, /) -> OpenFile: ...


class Directories(Protocol):
    @property
    def cwd(self) -> str: ...


class Signals(Protocol):
    @property
    def blocked(self) -> int: ...


class CallingCore(Protocol):
    def syscall_arguments(self) -> tuple[int, ...]: ...


class CallingCpu(Protocol):
    @property
    def core(self) -> CallingCore: ...


class Caller(Protocol):
    """A task."""

    @property
    def tid(self) -> int: ...
    @property
    def comm(self) -> str: ...
    @property
    def architecture(self) -> HasIsa: ...
    @property
    def mm(self) -> Memory: ...
    @property
    def files(self) -> Files: ...
    @property
    def fs(self) -> Directories: ...
    @property
    def signals(self) -> Signals: ...
    @property
    def cpu(self) -> CallingCpu: ...
    @property
    def exit_code(self) -> int | None: ...


class Rows(Protocol):
    def row(self, number: int, /) -> Syscall | None: ...


class CallingKernel(Protocol):
    """Whose system calls they are."""

    @property
    def clock(self) -> Clock: ...
    @property
    def architecture(self) -> HasIsa: ...
    @property
    def syscalls(self) -> Rows: ...
