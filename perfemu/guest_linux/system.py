"""GuestLinux: what is known from outside of a Linux that executes: who runs, and what is mapped where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from perfemu.booted_image import BootedImage
from perfemu.errors import PerfemuError
from perfemu.guest_linux.aarch64 import Aarch64
from perfemu.guest_linux.btf import BtfProblem
from perfemu.guest_linux.elf_headers import build_id_in_memory
from perfemu.guest_linux.kernel import Architecture, GuestCpu, GuestKernel
from perfemu.guest_linux.mappings import GuestMapping, Mappings
from perfemu.guest_linux.memory import PageTables, Ram, Unreadable
from perfemu.guest_linux.modules import GuestModule, Modules
from perfemu.guest_linux.tasks import IDLE, GuestTask, Tasks
from perfemu.guest_linux.x86_64 import X8664
from perfemu.symbols.kallsyms import KernelSymbol

Found = TypeVar("Found")
ARCHITECTURES: Mapping[str, type[Aarch64] | type[X8664]] = {"aarch64": Aarch64, "x86_64": X8664}  # by ISA


class GuestLinux:
    """Only reads. `tell` gets what cannot be read, a line for the user."""

    def __init__(self, isa: str, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self._architecture: Architecture = ARCHITECTURES[isa]()
        self._booted: BootedImage | None = None
        self._kernel: GuestKernel | None = None
        self._tasks: Tasks
        self._mappings: Mappings
        self._modules: Modules

    def booted(self, image: BootedImage, path: str) -> None:
        """Before it begins. Raises PerfemuError."""
        if not image.is_linux:
            raise PerfemuError(f"--guest-linux: {path} is no image of Linux")
        self._booted = image

    def kernel(self, cpu: GuestCpu) -> GuestKernel | None:
        """As `cpu` sees it now; None while it has yet to map itself. Raises PerfemuError."""
        if self._kernel is None:
            self._kernel = self._found(cpu)
        try:
            if self._kernel is not None:
                self._kernel.look(cpu)
        except Unreadable:
            return None
        return self._kernel

    def _found(self, cpu: GuestCpu) -> GuestKernel | None:
        booted = self._booted
        assert booted is not None, "it executes"
        try:
            located = self._architecture.locate(booted, cpu)
            if located is None:
                return None
            kernel = GuestKernel(Ram(booted.ram, booted.ram_base), located, self._architecture, cpu)
            self._tasks, self._mappings, self._modules = Tasks(kernel), Mappings(kernel), Modules(kernel)
        except (BtfProblem, Unreadable) as problem:
            raise PerfemuError(f"--guest-linux: this kernel cannot be understood: {problem}") from None
        return kernel

    def task(self, cpu: GuestCpu) -> GuestTask | None:
        """That `cpu` executes; None if that cannot be read. A kernel that begins is its idle task."""
        kernel = self.kernel(cpu)
        if kernel is None:
            return IDLE
        return self._read(lambda: self._tasks.current(cpu), "the task that executes")

    def executable_pages(self, task: GuestTask) -> int | None:
        return self._read(lambda: self._mappings.executable_pages(task.mm), "a process's size")

    def mapping(self, task: GuestTask, address: int) -> GuestMapping | None:
        return self._read(lambda: self._mappings.at(task.mm, address, self._root(task)), "a mapping")

    def mappings(self, task: GuestTask) -> list[GuestMapping]:
        """By their addresses."""
        found = self._read(lambda: list(self._mappings.all(task.mm, self._root(task))), "a process's mappings")
        return found or []

    def module(self, address: int) -> GuestModule | None:
        """Of the kernel's, whose code that is; None for what is no module's."""
        kernel = self._kernel
        if kernel is None or not kernel.tables.root or address in kernel.image:
            return None
        return self._read(lambda: self._modules.at(address), "the kernel's modules")

    def symbols_of(self, module: GuestModule) -> list[KernelSymbol]:
        return self._read(lambda: self._modules.symbols(module), "a module's symbols") or []

    def build_id(self, task: GuestTask, mapping: GuestMapping) -> bytes | None:
        """Of the ELF file that is mapped from its first byte on; empty if it has none, None if it is not in memory."""

        def read(offset: int, size: int) -> bytes:
            if offset + size > mapping.end - mapping.start:
                raise Unreadable("a part that is not mapped")
            return self.memory(task, mapping.start + offset, size)

        try:
            return build_id_in_memory(read)
        except Unreadable:
            return None

    def memory(self, task: GuestTask, address: int, size: int) -> bytes:
        """Of its process. Raises Unreadable."""
        kernel = self._known
        tables = kernel.tables.physical(kernel.value(task.mm, "mm_struct", "pgd"))
        return PageTables(kernel.ram, tables, kernel.user_regime).read(address, size)

    def contents(self, task: GuestTask, address: int, size: int) -> bytes | None:
        """The same; None where it is not there."""
        try:
            return self.memory(task, address, size)
        except Unreadable:
            return None

    @property
    def symbols(self) -> Mapping[str, int]:
        """Of the kernel: name -> address."""
        return self._known.symbols

    def value(self, task: GuestTask, member: str) -> int | None:
        """Of its struct task_struct."""
        return self._read(lambda: self._known.value(task.address, "task_struct", member), "a task")

    def kernel_word(self, address: int) -> int:
        """Raises Unreadable."""
        return self._known.word(address)

    def blocked_signals(self, task: GuestTask) -> int:
        return self.value(task, "blocked") or 0

    def _root(self, task: GuestTask) -> int:
        """Its struct path of what it calls /."""
        kernel = self._known
        return kernel.value(task.address, "task_struct", "fs") + kernel.member("fs_struct", "root").offset

    @property
    def _known(self) -> GuestKernel:
        assert self._kernel is not None, "a task of it is known"
        return self._kernel

    def _read(self, look: Callable[[], Found], what: str) -> Found | None:
        try:
            return look()
        except Unreadable as problem:
            self.tell(f"--guest-linux: {what} cannot be read, and is left out: {problem}")
        except BtfProblem as problem:
            raise PerfemuError(f"--guest-linux: this kernel cannot be understood: {problem}") from None
        return None
