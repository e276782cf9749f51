"""Architecture: what Linux and its users must know about an ISA. One instance per ISA, data and a few methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from emulator._native import AddressSpace, Core
from emulator.arch.processor import Processor
from emulator.clock import Clock
from emulator.cpu import Cpu

Read = Callable[[int, int], bytes]  # (address, size): guest memory; raises LinuxError(EFAULT)


@dataclass(frozen=True, slots=True)
class OpenFlags:
    """The O_* flags whose value differs between ISAs (asm/fcntl.h)."""

    directory: int
    nofollow: int
    direct: int
    largefile: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a process, as Linux without address randomisation puts them."""

    stack_top: int  # first address above the stack
    mmap_top: int  # first address above the mmap area, which grows down
    pie_base: int  # where a position-independent program goes
    task_size: int  # first address that is not the user's
    mmap_bottom: int = 0x10000  # vm.mmap_min_addr


@dataclass(slots=True)  # not frozen: that takes longer to make, at each stat
class Stat:
    """struct stat in Linux's own terms; each ISA lays it out its own way. Times in nanoseconds."""

    device: int
    inode: int
    mode: int
    links: int
    uid: int
    gid: int
    special_device: int
    size: int
    block_size: int
    blocks: int  # of 512 bytes
    access_ns: int
    modify_ns: int
    change_ns: int


@dataclass(frozen=True, slots=True)
class SignalDelivery:
    """What the kernel hands over to enter a handler."""

    signal: int
    info: bytes  # siginfo_t, 128 bytes
    handler: int
    flags: int  # SA_*
    restorer: int
    blocked: int  # mask to bring back at rt_sigreturn
    stack: tuple[int, int, int]  # stack_t: address, flags, size
    stack_pointer: int  # where the frame's stack begins: the task's own, or the top of the alternate one
    trampoline: int = 0  # address of the kernel's own code that calls rt_sigreturn
    fault_address: int = 0
    trap_number: int = 0
    error_code: int = 0
    resumes: bool = False  # x86: the frame's RFLAGS.RF


@dataclass(frozen=True, slots=True)
class SignalReturn:
    """What rt_sigreturn found in the frame, besides the registers."""

    blocked: int
    stack: tuple[int, int, int]


class Architecture(Protocol):
    """One ISA. Registers are named by their number in ``Core.read_register``."""

    isa: str
    uname_machine: str
    platform: str  # AT_PLATFORM
    hwcap2: int
    minimum_signal_stack: int  # AT_MINSIGSTKSZ, bytes
    minimum_alternate_stack: int  # MINSIGSTKSZ: what sigaltstack takes at least, bytes
    signal_trampoline: bytes  # code that calls rt_sigreturn, where the kernel must provide it
    layout: Layout
    open_flags: OpenFlags
    register_names: tuple[str, ...]  # by native number
    perf_registers: tuple[int, ...]  # native numbers in the order of enum perf_event_*_regs
    perf_constants: Mapping[int, int]  # of those: index -> value, where it is always the same in user mode
    perf_vectors: int  # bits of a mask of those that are known besides, and that no PMU here samples
    counter_bits: int  # of CNTVCT_EL0, which may wrap; 0: user mode reads a counter that never does, the TSC
    dwarf_registers: tuple[int, ...]  # native numbers in the order of the psABI's DWARF numbers
    pc: int
    sp: int
    fp: int
    thread_pointer: int
    result: int  # register of a syscall's result, and of a function's
    syscall_length: int  # bytes of the instruction that enters the kernel
    instruction_alignment: int  # bytes
    epoll_event_packed: bool
    clone_tls_first: bool  # clone's last two arguments: thread pointer, child's tid (CONFIG_CLONE_BACKWARDS)

    def set_syscall_result(self, core: Core, value: int) -> None:
        """The result, or a negative errno; and what else the kernel's return changes (x86: RCX, R11)."""

    def start_program(self, core: Core, entry: int, stack_pointer: int) -> None:
        """All registers as execve leaves them."""

    def caller(self, core: Core, space: AddressSpace) -> tuple[int | None, int]:
        """Of the function whose first instruction comes next: where it returns to, and the stack pointer then."""

    def fault_syndrome(self, access: int, present: bool) -> tuple[int, int]:
        """(trap number, error code) that a page fault's signal frame shows. `access`: 1 read, 2 write, 4 fetch."""

    def misaligned_syndrome(self, access: int) -> tuple[int, int]:
        """The same of an access at an address that is no multiple of its size. `access`: 1 read, 2 write."""

    def is_address(self, address: int) -> bool:
        """Whether a load from it is a page fault at worst."""

    def floating_point_exceptions(self, core: Core, vector: int) -> int:
        """What is raised and not masked where the CPU takes that trap, as bits of MXCSR. None on aarch64."""

    def pack_stat(self, stat: Stat) -> bytes: ...

    def hwcap(self, processor: Processor) -> int:
        """AT_HWCAP"""

    def cpu_features(self, processor: Processor) -> tuple[str, ...]:
        """As /proc/cpuinfo names them."""

    def offers(self, processor: Processor) -> str:
        """Which of the ISA's extensions, for people."""

    def counter_hz(self, clock: Clock) -> int:
        """Of the counter that user mode reads the time from, CNTVCT_EL0 or the TSC: CLOCK_MONOTONIC in its ticks."""

    def claim_registers(self, cpu: Cpu, clock: Clock, processor: Processor) -> None:
        """Answer user mode's reads of ID registers and counters of time."""

    def complete_register_access(self, cpu: Cpu) -> None:
        """Carry out the trapped instruction of a REGISTER exit. Raises UndefinedRegister."""

    def push_signal_frame(self, core: Core, delivery: SignalDelivery, write: Callable[[int, bytes], None]) -> None:
        """Write the frame and enter the handler. `write` raises LinuxError(EFAULT)."""

    def pop_signal_frame(self, core: Core, read: Read) -> SignalReturn:
        """Registers back from the frame that rt_sigreturn finds."""

    def rewind_syscall(self, core: Core, number: int, first_argument: int) -> None:
        """Let the syscall that was just entered be executed again (SA_RESTART)."""
