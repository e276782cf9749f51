"""Cpu: the Python face of one native core, and the reasons why it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from emulator._native import AddressSpace, Core, GuestPageTables, PhysicalMemory, SharedCaches
from emulator.core_file.layers import Tables
from emulator.sysregs import SystemRegisters


class ExitReason(IntEnum):
    """Why ``Core.run`` returned. The numbers are shared with ``native/core/core.hpp``."""

    SYSCALL = 0  # SVC or SYSCALL retired; PC is after it
    REGISTER = 1  # an instruction that the machine answers: MRS/MSR, CPUID, RDTSC, RDPMC, ...; not yet retired
    OVERFLOW = 2  # an armed counter wrapped; PC is the next instruction
    FAULT = 3  # page not present or not permitted; PC is on the faulting instruction, which has not retired
    EXCEPTION = 4  # undefined instruction, breakpoint, divide error, ...
    DEADLINE = 5  # `until_cycle` reached, exactly
    BREAKPOINT = 6  # PC is on an instruction at which the address space has a breakpoint; it has not been executed
    IDLE = 7  # a guest's own kernel waits for an interrupt: WFI has retired; PC is after it
    DEVICE = 8  # a data access of its leads beyond RAM; PC is on the instruction, which has not retired
    WATCHPOINT = 9  # PC is on an instruction that is about to access what is watched; the next run executes it
    STEP = 10  # one instruction has retired, as `Core.set_steps` asks for
    SOFTWARE_STEP = 11  # the guest's own kernel is due to hear that what it steps has executed one; PC is on the next
    INTERRUPT = 12  # x86: the CPU takes an interrupt here, and wants its vector
    SHUTDOWN = 13  # x86: an exception of a guest could not be delivered, nor the double fault: a reset is left


class ExceptionKind(IntEnum):
    """What an EXCEPTION exit is. PC is on the instruction, except after BREAKPOINT on x86 (INT3: after it)."""

    UNDEFINED = 0
    BREAKPOINT = 1
    DIVIDE = 2
    ALIGNMENT = 3
    PRIVILEGED = 4  # x86 #GP: a privileged instruction in user mode
    OVERFLOW = 5  # x86 INTO, INT n without a gate
    INTERNAL = 6  # the engine stopped in a way that we do not know: a bug of ours, reported by name
    X87 = 7  # x86 #MF: an unmasked exception of the x87 unit; PC is on the instruction that waited for it
    SIMD = 8  # x86 #XM: an unmasked exception of an SSE instruction
    STACK = 9  # x86 #SS: an address of the stack that is not canonical
    STEP = 10  # x86 #DB: the guest's own single-stepping, RFLAGS.TF
    ILLEGAL_STATE = 11  # Arm: an exception return has asked for a state that there is not; PC is where it led
    VECTORS = 12  # Arm: vector and floating-point registers are switched off, by CPACR_EL1


class TrapKind(IntEnum):
    """Which instruction a REGISTER exit is about."""

    MRS = 0
    MSR = 1
    CPUID = 2
    RDTSC = 3
    RDTSCP = 4
    RDPMC = 5
    XGETBV = 6
    RDMSR = 7  # this one and those behind: where a guest's own kernel executes
    WRMSR = 8
    IN = 9
    OUT = 10
    INS = 11
    OUTS = 12
    DEBUG_REGISTERS = 13  # x86: what breaks has changed


class Gear(IntEnum):
    """How much of a core's models hears of what executes. Shared with ``native/core/core.hpp``.

    What is decoded from instructions is counted in all of them; cycles and what models count, in DETAILED alone.
    """

    FUNCTIONAL = 0  # none: one cycle an instruction
    WARMING = 1  # caches, TLBs and predictors: they learn, and count nothing; one instruction waits for the one before
    DETAILED = 2  # all


class Level(IntEnum):
    """Which privilege what executes has. Shared with ``native/core/counters.hpp``."""

    USER = 0  # EL0, CPL 3
    KERNEL = 1  # EL1, CPL 0


class WalkFault(IntEnum):
    """Why page tables of a guest's own do not lead to a page. Shared with ``native/guest_page_tables.hpp``."""

    NONE = 0  # they do: a fault is one of permission
    TRANSLATION = 1
    ADDRESS_SIZE = 2
    ACCESS_FLAG = 3
    EXTERNAL = 4  # a descriptor, or the page itself, is where no RAM is


class Waking(IntEnum):
    """What ends a processor's sleep. The bits of Intel PT's PWRX packet."""

    INTERRUPT = 1
    STORE = 4  # by another CPU, to the address that MWAIT monitors


class SleepListener(Protocol):
    """A unit of the CPU that hears of its sleeping."""

    def sleeps(self) -> None: ...

    def wakes(self, waking: Waking) -> None: ...


class InterruptSource(Protocol):
    """A device on the CPU's interrupt line (a PMU)."""

    def interrupt_asserted(self) -> bool: ...

    def take_interrupt(self) -> None:
        """What the hardware does as it delivers the interrupt, before the handler runs."""


class Cpu:
    """One CPU: a native core, its system registers, and its interrupt line. Knows no Linux."""

    kept = "idle_cycles", "halted_cycles", "system_cycles", "in_kernel", "asleep"  # besides the core

    def __init__(
        self,
        number: int,
        isa: str,
        memory: PhysicalMemory,
        model: Tables | None = None,
        shared: SharedCaches | None = None,
        features: Sequence[str] = (),
    ) -> None:
        """`model`: a core file's tables, if there is more to time than one cycle an instruction.

        `shared`: the caches that it has in common with other CPUs. `features`: what it executes beyond Armv8.0-A.
        """
        self.number = number
        self.isa = isa
        self.core = Core(isa, memory, model=model, shared=shared, features=features)
        self.space: AddressSpace | None = None  # in which the core executes
        self.guest_tables: GuestPageTables | None = None  # ... or a guest's own kernel has it execute
        self.passed: Callable[[int, int], int] = lambda start, end: end - start  # Clock.passed, of its machine
        self.idle_cycles = 0  # reference cycles that have passed without being executed
        self.halted_cycles = 0  # the same in cycles of the core
        self.system_cycles = 0  # ... that the kernel has worked
        self.in_kernel = False  # an interrupt has come while the kernel worked
        self.system_registers = SystemRegisters()
        self._interrupts: list[tuple[InterruptSource, Callable[[], None]]] = []
        self.asleep = False  # in the first idle state; modelled Linux says so, and the board pc
        self.sleep_listeners: list[SleepListener] = []

    @property
    def gear(self) -> Gear:
        return Gear(self.core.gear)

    def set_gear(self, gear: Gear) -> None:
        """From the next instruction on. Not while it executes. ValueError if the core has no models."""
        self.core.set_gear(gear)

    @property
    def level(self) -> Level:
        return Level(self.core.level)

    @property
    def masks_debug_exceptions(self) -> bool:
        """AArch64, a guest's own kernel: PSTATE.D."""
        return bool(self.core.processor_state & 1 << 9)

    def set_level(self, level: Level) -> None:
        """An exception was taken, or returned from: whoever delivers it says so. The modelled Linux executes nothing
        in the core: with it all guest code is at USER.
        """
        self.core.set_level(level)

    def enter_kernel_mode(self, ram_base: int = 0) -> GuestPageTables:
        """A guest's own kernel executes here, by its own page tables: in place of `set_address_space`.

        `ram_base`: the physical address at which RAM begins.
        """
        self.guest_tables = self.core.enter_kernel_mode(ram_base)
        return self.guest_tables

    def set_address_space(self, space: AddressSpace) -> None:
        self.space = space
        self.core.set_address_space(space)

    def idle(self, cycles: int) -> None:
        """Let so many cycles pass."""
        now = self.core.cycles
        self.core.elapse(cycles)
        self.halted_cycles += cycles
        self.idle_cycles += self.passed(now, now + cycles)

    def sleep(self) -> None:
        """Its kernel has nothing to execute, until `wake`."""
        self.asleep = True
        for listener in self.sleep_listeners:
            listener.sleeps()

    def wake(self, waking: Waking) -> None:
        self.asleep = False
        for listener in self.sleep_listeners:
            listener.wakes(waking)

    def work(self, cycles: int) -> None:
        """The kernel works for so long. Counters of its cycles may interrupt it: at the end, since nothing is between.

        What the CPU has begun is completed before.
        """
        now = self.core.cycles
        interrupted = self.core.work(cycles)
        self.system_cycles += self.passed(now, now + cycles)
        if interrupted:
            self.in_kernel = True
            self.deliver_interrupts()
            self.in_kernel = False

    def skip(self, cycles: int) -> None:
        """The same, with all other CPUs, and so many that nothing which is modelled lasts as long."""
        now = self.core.cycles
        self.core.skip(cycles)
        self.halted_cycles += cycles
        self.idle_cycles += self.passed(now, now + cycles)

    def connect_interrupt(self, source: InterruptSource, handler: Callable[[], None]) -> None:
        """Call `handler` when `source` asserts the interrupt line. Called in the order of connection."""
        self._interrupts.append((source, handler))

    def deliver_interrupts(self) -> None:
        """Run the handlers of all sources that assert the line; called by the machine after an OVERFLOW exit."""
        for source, handler in self._interrupts:
            if source.interrupt_asserted():
                source.take_interrupt()
                handler()
