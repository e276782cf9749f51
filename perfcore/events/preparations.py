"""Where the parts of samples come from: the state of a CPU at an overflow, or whenever an event is written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from emulator.cpu import Cpu, Level
from emulator.linux.arch.architecture import Architecture
from emulator.linux.mm.mapping import PAGE_SIZE
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import Misc, PerfContext, SampleRegsAbi, SampleType
from perfcore.abi.read_format import ReadValues
from perfcore.abi.sample import Sample
from perfcore.events.aux_use import AuxUse
from perfcore.events.hardware_state import HardwareState
from perfcore.events.kernel import Linux
from perfcore.events.settings import Settings

Prepare = Callable[[Sample, Cpu], None]


class SampledEvent(Protocol):
    """What the records of an event say about it."""

    @property
    def id(self) -> int: ...
    @property
    def primary_id(self) -> int: ...
    @property
    def attr(self) -> PerfEventAttr: ...
    @property
    def cpu(self) -> int: ...

    @property
    def settings(self) -> Settings: ...
    @property
    def now_ns(self) -> Callable[[], int]: ...

    def counts_at(self, level: Level) -> bool: ...
    @property
    def on_cpu(self) -> Cpu | None: ...
    @property
    def aux(self) -> AuxUse[Any]: ...
    @property
    def hw(self) -> HardwareState: ...

    def read_group(self) -> list[ReadValues]: ...
    def read_own_group(self) -> list[ReadValues]: ...


def _prepare_tid(event: SampledEvent, kernel: Linux) -> Prepare:
    thread = kernel.thread

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.pid, sample.tid = thread(cpu)

    return prepare


def _prepare_time(event: SampledEvent, kernel: Linux) -> Prepare:
    now = event.now_ns

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.time = now()

    return prepare


def _prepare_cpu(event: SampledEvent, kernel: Linux) -> Prepare:
    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.cpu = cpu.number

    return prepare


def prepare_ip(event: SampledEvent, kernel: Linux) -> Prepare:
    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.ip = cpu.core.pc

    return prepare


def prepare_exact_ip(event: SampledEvent, kernel: Linux) -> Prepare:
    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.ip = cpu.core.last_retired_pc

    return prepare


def prepare_idle(event: SampledEvent, kernel: Linux) -> Prepare:
    """The idle task is the kernel's, whose code has no addresses here."""
    current = kernel.current

    def prepare(sample: Sample, cpu: Cpu) -> None:
        if current(cpu) is None:
            sample.misc = Misc.KERNEL
            sample.ip = 0
            sample.callchain = []
            sample.user_regs_abi = SampleRegsAbi.NONE
        else:
            sample.misc = Misc.USER

    return prepare


def prepare_kernel(event: SampledEvent, kernel: Linux, user_misc: int) -> Prepare:
    """For counters that count the kernel, too: it has no addresses here. The user's registers and stack are there."""

    def prepare(sample: Sample, cpu: Cpu) -> None:
        if cpu.in_kernel:
            sample.misc = Misc.KERNEL
            sample.ip = 0
        else:
            sample.misc = user_misc

    return prepare


def prepare_level(event: SampledEvent, kernel: Linux, exact: int) -> Prepare:
    """Where the kernel's code is executed: whose registers and frames these are. `exact`: EXACT_IP, or 0."""
    attr = event.attr
    unwanted = {Level.KERNEL: attr.exclude_callchain_kernel, Level.USER: attr.exclude_callchain_user}
    markers = {Level.KERNEL: int(PerfContext.KERNEL), Level.USER: int(PerfContext.USER)}
    mode = {Level.KERNEL: Misc.KERNEL | exact, Level.USER: Misc.USER | exact}
    abi = {Level.KERNEL: SampleRegsAbi.NONE, Level.USER: SampleRegsAbi.ABI_64}

    def prepare(sample: Sample, cpu: Cpu) -> None:
        level = cpu.level
        sample.misc = mode[level]
        sample.user_regs_abi = abi[level]
        if sample.callchain:
            if level == Level.KERNEL and not kernel.keeps_frame_pointers:
                del sample.callchain[2:]  # the marker, and where it is
            elif level == Level.KERNEL and not sample.callchain[-1]:
                sample.callchain.pop()  # of the frame record with which a kernel's stack begins
            sample.callchain = [] if unwanted[level] else [markers[level], *sample.callchain[1:]]

    return prepare


def _prepare_read(event: SampledEvent, kernel: Linux) -> Prepare:
    values = event.read_own_group if event.attr.inherit else event.read_group

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.read = values()

    return prepare


def has_callchain(event: SampledEvent, kernel: Linux) -> bool:
    return not event.attr.exclude_callchain_user or kernel.executes


def _prepare_callchain(event: SampledEvent, kernel: Linux) -> Prepare:
    """The marker, then PC, then the return addresses; at most sample_max_stack without the marker. And the address."""
    if not has_callchain(event, kernel):
        return lambda sample, cpu: None
    limit = event.attr.sample_max_stack - 1
    marker = int(PerfContext.USER)

    def walk(sample: Sample, cpu: Cpu) -> None:
        core = cpu.core
        pc = sample.ip = core.pc
        sample.callchain = [marker, pc, *core.frame_chain(limit)]

    def tell(sample: Sample, cpu: Cpu) -> None:
        core = cpu.core
        pc = sample.ip = core.pc
        sample.callchain = [marker, pc, *core.call_chain(limit)]

    return tell if event.settings.exact_callchains else walk


def sampled_registers(architecture: Architecture) -> dict[int, tuple[int, int]]:
    """Bit of sample_regs_user -> the register's native number, or -1 and what it always is."""
    constants = architecture.perf_constants
    return {
        bit: (native, constants.get(bit, 0))
        for bit, native in enumerate(architecture.perf_registers)
        if native >= 0 or bit in constants
    }


def _wanted_registers(kernel: Linux, mask: int) -> list[tuple[int, int]]:
    """Lowest bit first."""
    return [register for bit, register in sampled_registers(kernel.architecture).items() if mask >> bit & 1]


def _read_registers(cpu: Cpu, wanted: list[tuple[int, int]]) -> list[int]:
    values = cpu.core.registers()
    return [values[number] if number >= 0 else constant for number, constant in wanted]


def _prepare_user_regs(event: SampledEvent, kernel: Linux) -> Prepare:
    wanted = _wanted_registers(kernel, event.attr.sample_regs_user)

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.user_regs_abi = SampleRegsAbi.ABI_64
        sample.user_regs = _read_registers(cpu, wanted)

    return prepare


def _prepare_intr_regs(event: SampledEvent, kernel: Linux) -> Prepare:
    """The interrupted registers: the user's, since nothing else runs."""
    wanted = _wanted_registers(kernel, event.attr.sample_regs_intr)

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.intr_regs_abi = SampleRegsAbi.ABI_64
        sample.intr_regs = _read_registers(cpu, wanted)

    return prepare


def _prepare_nothing(sample: Sample, cpu: Cpu) -> None:
    """What the sample begins with is true."""


def _prepare_branches(event: SampledEvent, kernel: Linux) -> Prepare:
    branches = event.hw.branches
    if branches is None:  # of a PMU whose events never sample, and whose driver need not refuse it
        return _prepare_nothing
    read = branches.read

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.branch_hw_index, sample.branches = read(cpu)

    return prepare


def _prepare_cgroup(event: SampledEvent, kernel: Linux) -> Prepare:
    cgroup = kernel.cgroup

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.cgroup = cgroup(cpu).id

    return prepare


def _prepare_user_stack(event: SampledEvent, kernel: Linux) -> Prepare:
    """sample_stack_user bytes from the stack pointer; zeros where the stack ends, whose size is dyn_size."""
    size = event.attr.sample_stack_user
    stack_pointer = kernel.architecture.sp

    def prepare(sample: Sample, cpu: Cpu) -> None:
        task = kernel.current(cpu)
        if task is None:
            sample.user_stack = b""
            return
        space = task.mm.space
        address = cpu.core.read_register(stack_pointer)
        data = space.read(address, size)
        if isinstance(data, int):  # the first byte that is missing
            present = data - address
            data = space.read(address, present) if present > 0 else b""
            assert isinstance(data, bytes)
        sample.user_stack_size = len(data)
        sample.user_stack = data.ljust(size, b"\0")

    return prepare


def _page_of(kernel: Linux, cpu: Cpu, address: int) -> int | None:
    """The frame in which it lies for the task that runs; None: nowhere, or nothing is there."""
    task = kernel.current(cpu)
    found = task.mm.space.lookup(address) if task is not None and address else None
    return None if found is None else found[0]


def _prepare_phys_addr(event: SampledEvent, kernel: Linux) -> Prepare:
    """perf_virt_to_phys."""

    def prepare(sample: Sample, cpu: Cpu) -> None:
        frame = _page_of(kernel, cpu, sample.addr)
        sample.phys_addr = 0 if frame is None else frame * PAGE_SIZE + sample.addr % PAGE_SIZE

    return prepare


def _prepare_data_page_size(event: SampledEvent, kernel: Linux) -> Prepare:
    """perf_get_page_size: there is but one size."""

    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.data_page_size = 0 if _page_of(kernel, cpu, sample.addr) is None else PAGE_SIZE

    return prepare


def _prepare_code_page_size(event: SampledEvent, kernel: Linux) -> Prepare:
    def prepare(sample: Sample, cpu: Cpu) -> None:
        sample.code_page_size = 0 if _page_of(kernel, cpu, sample.ip) is None else PAGE_SIZE

    return prepare


class Preparation(NamedTuple):
    """Where a part of a sample comes from, if it changes from sample to sample."""

    bit: SampleType
    prepare: Callable[[SampledEvent, Linux], Prepare]


PREPARATIONS = (
    Preparation(SampleType.TID, _prepare_tid),
    Preparation(SampleType.TIME, _prepare_time),
    Preparation(SampleType.CPU, _prepare_cpu),
    Preparation(SampleType.READ, _prepare_read),
    Preparation(SampleType.CALLCHAIN, _prepare_callchain),
    Preparation(SampleType.BRANCH_STACK, _prepare_branches),
    Preparation(SampleType.REGS_USER, _prepare_user_regs),
    Preparation(SampleType.REGS_INTR, _prepare_intr_regs),
    Preparation(SampleType.STACK_USER, _prepare_user_stack),
    Preparation(SampleType.CGROUP, _prepare_cgroup),
)
OF_PLACES = (  # the sample's data and instruction, once they are known
    Preparation(SampleType.PHYS_ADDR, _prepare_phys_addr),
    Preparation(SampleType.DATA_PAGE_SIZE, _prepare_data_page_size),
    Preparation(SampleType.CODE_PAGE_SIZE, _prepare_code_page_size),
)
SAMPLE_ID_PREPARATIONS = PREPARATIONS[:3]
