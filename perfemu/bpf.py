"""bpf(2) for a machine's guests. What answers it is imported when the first of them asks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from emulator.linux.fs.file import Caller, File
from emulator.linux.kernel import Kernel
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.syscalls.table import Address, Support, Syscall, UInt
from perfcore.events.settings import Settings

if TYPE_CHECKING:
    from perfcore.bpf.syscall import BpfCalls

_NOTE = "maps, BTF, links; programs that observe (KPROBE, TRACEPOINT, PERF_EVENT, RAW_TRACEPOINT, TRACING): docs/bpf.md"
_TRACE_PIPE = "/sys/kernel/tracing/trace_pipe"
_BTF = "/sys/kernel/btf/vmlinux"
_SYSCTLS = {  # of /proc/sys/kernel: nobody without CAP_BPF makes maps and programs, and that is not changed
    "unprivileged_bpf_disabled": "2\n",
    "bpf_stats_enabled": "0\n",
}


class LateBpf:
    """The system call and its files."""

    def __init__(self, kernel: Kernel, settings: Settings) -> None:
        self._kernel, self._settings = kernel, settings

    @cached_property
    def _calls(self) -> BpfCalls:
        from perfcore.bpf.syscall import BpfCalls

        return BpfCalls(self._kernel, self._settings)

    def bpf(self, task: Task, cmd: int, uattr: Address, size: UInt) -> int | Sleeping[int]:
        """bpf(2)"""
        return self._calls.call(task, cmd, uattr, size)

    def kernel_types(self) -> bytes:
        """The BTF of the kernel."""
        from perfcore.bpf.types.vmlinux import kernel_types

        return kernel_types(self._kernel.architecture.isa).data

    def open_trace_pipe(self, task: Caller, flags: int) -> File:
        return self._calls.open_trace_pipe(flags)


def install_bpf(kernel: Kernel, settings: Settings) -> None:
    """Give the guests of `kernel` bpf(2). `settings`: their perf_event's."""
    late = LateBpf(kernel, settings)
    kernel.syscalls.install(Syscall("bpf", late.bpf, 280, 321, Support.PARTIAL, _NOTE))
    kernel.register_files(_TRACE_PIPE, late.open_trace_pipe)
    kernel.file_tree.register_bytes(_BTF, late.kernel_types)
    for name, text in _SYSCTLS.items():
        kernel.file_tree.register_text(f"/proc/sys/kernel/{name}", text)
