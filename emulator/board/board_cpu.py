"""BoardCpu: one AArch64 CPU of a board: its timer and interrupts, and what becomes of each exit of its core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from emulator.arch.processor import Processor
from emulator.board import id_registers
from emulator.board.bus import Bus, Unmodelled
from emulator.board.calls import CallWatcher
from emulator.board.debug_unit import DebugUnit
from emulator.board.device_access import DeviceAccess, decode
from emulator.board.generic_timer import COUNTERS, GenericTimer
from emulator.board.gic import GICV3, CpuInterface
from emulator.board.last_exceptions import LastExceptions
from emulator.board.pausable import Pausable
from emulator.board.semihosting import TRAP, Caller
from emulator.board.syndromes import (
    ALIGNMENT_FAULT,
    ANY_CONDITION,
    EXTERNAL_ABORT,
    ExceptionClass,
    abort,
    described,
    fault_status,
    syndrome,
    trapped_access,
)
from emulator.board.trace import NOTHING, register_name
from emulator.board.traps import SCTLR_EL1, Undefined
from emulator.clock import Clock
from emulator.cpu import Cpu, ExceptionKind, ExitReason, Level, TrapKind, WalkFault
from emulator.probes import Probe
from emulator.sysregs import Access, HigherRegister, SysReg, SystemRegisters, TrappedRegister, UndefinedRegister

PC, ZERO_REGISTER = 32, 31
TCR_EL1, SPSEL = SysReg(3, 0, 2, 0, 2), SysReg(3, 0, 4, 2, 0)
ELR_EL1, ISR_EL1 = SysReg(3, 0, 4, 0, 1), SysReg(3, 0, 12, 1, 0)
MASKED = 0x3C0  # PSTATE.DAIF
CALL_MASK, HVC, SMC = 0xFFE0_001F, 0xD400_0002, 0xD400_0003
OP1_OF_EL0 = 3  # of registers that EL0 may reach
INSTRUCTION_BYTES = 4
PMU_INTERRUPT, PROFILING_INTERRUPT = 23, 21  # PPIs, as Arm's Base System Architecture has them
WORD, DOUBLE_WORD = (1 << 32) - 1, (1 << 64) - 1
NEVER = DOUBLE_WORD, DOUBLE_WORD  # a PC, and so many instructions

FirmwareCall = Callable[["BoardCpu", int, tuple[int, int, int]], int]
HostCall = Callable[[Caller, int, int], int]  # (memory, W0, X1) -> X0


class BoardPmu(Pausable, Protocol):
    """The counting unit that the guest programs."""

    tell: Callable[[str], None]  # of what the guest asks for and does not get

    @property
    def identification(self) -> Mapping[SysReg, int]:
        """The fields of ID registers that tell of it: register -> its bits."""

    def grant_access(self, system_registers: SystemRegisters, level: Callable[[], Level]) -> None:
        """Claim its registers; `level`: at which an access happens."""

    def interrupt_asserted(self) -> bool: ...


class BoardMonitors(Protocol):
    """A CPU's activity monitors (pmu/arm/activity_monitors.py)."""

    @property
    def identification(self) -> Mapping[SysReg, int]: ...
    def grant_access(self, system_registers: SystemRegisters, level: Callable[[], Level]) -> None: ...


class BoardProfiling(Pausable, Protocol):
    """A CPU's statistical profiling unit."""

    @property
    def identification(self) -> Mapping[SysReg, int]: ...
    def attach(self, cpu: Cpu, registers: SystemRegisters) -> None:
        """Claim its registers. It writes where the CPU's page tables say, which are there."""

    def interrupt_asserted(self) -> bool: ...


class BoardCpu:
    """A CPU that is on, waits for an interrupt, or is off."""

    kept = (
        "cpu",
        "is_on",
        "waits",
        "_failed",
        "due_cycle",
        "_timers_changed",
        "timer",
        "debug",
        "_pmu",
        "_held",
        "_monitors",
        "_profiling",
    )

    def __init__(
        self,
        cpu: Cpu,
        ram_base: int,
        clock: Clock,
        processor: Processor,
        interface: CpuInterface,
        bus: Bus,
        pmu: BoardPmu | None,
        firmware: FirmwareCall,
        message: Callable[[str], None],
        monitors: BoardMonitors | None = None,
        profiling: BoardProfiling | None = None,
    ) -> None:
        """`firmware(cpu, function, arguments)` answers HVC and SMC: what X0 is then."""
        self.cpu = cpu
        self.core = cpu.core
        self.interface = interface
        self.is_on = False
        self.waits = False  # for an interrupt
        self.has_read_counter = False  # and nothing else, in the last exit for a register
        self._failed = NEVER  # PC and instructions retired, at the last exception but calls
        self.due_cycle: int | None = None  # at which a timer interrupts
        self.host_call: HostCall | None = None  # semihosting, if that is there
        self.trace = NOTHING
        self.last_exceptions = LastExceptions()
        self.has_died = False  # it could execute nothing any more
        self.calls: CallWatcher | None = None
        self._bus = bus
        self._pmu = pmu
        self._monitors = monitors
        self._profiling = profiling
        self._firmware = firmware
        self._message = message
        self._timers_changed = True
        self.timer = GenericTimer(clock, cpu, self._note_timers)
        self.tables = cpu.enter_kernel_mode(ram_base)
        self._at_reset = {SPSEL: 1, SCTLR_EL1: self.core.read_kernel_register(SCTLR_EL1.encoding), TCR_EL1: 0}
        self.debug = DebugUnit(cpu, self.tables, self._take, message)
        registers = cpu.system_registers
        parts = [part for part in (pmu, monitors, profiling) if part is not None]
        identification = [part.identification for part in parts]
        self._held = id_registers.claim(cpu, processor, identification, gic_registers=interface.gic.version == GICV3)
        if pmu is not None:
            pmu.grant_access(registers, lambda: cpu.level)
            pmu.tell = message
        if monitors is not None:
            monitors.grant_access(registers, lambda: cpu.level)
        if profiling is not None:
            profiling.attach(cpu, registers)
        registers.claim(ISR_EL1, Access(read=lambda: interface.is_asserted << 7))
        self.timer.claim_registers(registers)
        self.timer.answer_natively(on=True)
        if interface.gic.version == GICV3:
            interface.claim_registers(registers)
        self.answers: Mapping[ExitReason, Callable[[], None]] = {
            ExitReason.SYSCALL: self._supervisor_call,
            ExitReason.REGISTER: self._register,
            ExitReason.FAULT: self._abort,
            ExitReason.EXCEPTION: self._exception,
            ExitReason.DEADLINE: lambda: None,
            ExitReason.OVERFLOW: self._overflow,
            ExitReason.IDLE: self._wait,
            ExitReason.DEVICE: self._device,
            ExitReason.BREAKPOINT: self._breakpoint,
            ExitReason.WATCHPOINT: self.debug.answer_watchpoint,
            ExitReason.SOFTWARE_STEP: self.debug.answer_step,
        }

    @property
    def has_pmu(self) -> bool:
        return self._pmu is not None

    @property
    def has_profiling(self) -> bool:
        return self._profiling is not None

    @property
    def listening(self) -> list[Pausable]:
        """Of its guest's."""
        return [unit for unit in (self._pmu, self._profiling) if unit is not None]

    def start(self, entry: int, argument: int) -> None:
        """As PSCI's CPU_ON does, and the board at power-up: at EL1, interrupts masked, with the MMU off."""
        for register, value in self._at_reset.items():
            self.core.write_kernel_register(register.encoding, value)
        self.core.processor_state = MASKED
        self.core.write_register(PC, entry)
        self.core.write_register(0, argument)
        self.is_on = True

    # ---- time and interrupts

    def _note_timers(self) -> None:
        self._timers_changed = True

    def look_at_timers(self) -> None:
        """Bring their interrupts, and when the next one is due, up to date."""
        if not self._timers_changed and (self.due_cycle is None or self.core.cycles < self.due_cycle):
            return
        for timer in self.timer.timers:
            self.interface.set_level(timer.interrupt, timer.is_asserted)
        self.due_cycle = self.timer.due_cycle()
        self._timers_changed = False

    def look_at_interrupts(self, now: int) -> None:
        """Another interrupt may be the highest. One that waits goes on at cycle `now`, at the earliest."""
        asserted = self.interface.is_asserted
        self.core.set_interrupt_line(asserted)
        if asserted and self.waits:
            self.waits = False
            self.cpu.idle(max(now - self.core.cycles, 0))

    def _overflow(self) -> None:
        self.cpu.deliver_interrupts()
        self.look_at_pmu()

    @property
    def pmu_interrupts(self) -> int:
        """Whether its own PMU and profiling unit assert their interrupts, as the interrupt controller knows: bits."""
        return self.interface.private.asserted & (1 << PMU_INTERRUPT | 1 << PROFILING_INTERRUPT)

    def look_at_pmu(self) -> None:
        """Its interrupt, and that of what profiles, may be another than it was."""
        if self._pmu is not None:
            self.interface.set_level(PMU_INTERRUPT, self._pmu.interrupt_asserted())
        if self._profiling is not None:
            self.interface.set_level(PROFILING_INTERRUPT, self._profiling.interrupt_asserted())

    def suspend(self) -> None:
        """PSCI's: to the next interrupt, masked or not."""
        self._wait()

    def _wait(self) -> None:
        self.waits = not self.interface.is_asserted

    # ---- exceptions

    def _word(self, address: int) -> int:
        data = self.tables.read(address, INSTRUCTION_BYTES)
        return int.from_bytes(data, "little") if isinstance(data, bytes) else 0

    def _take(self, cause: int, address: int | None = None) -> None:
        """An exception to EL1. `address`: FAR_EL1, if the exception sets it."""
        if self.trace.exceptions:
            self.trace.note(
                self.cpu, f"exception: {described(cause)}" + ("" if address is None else f", FAR {address:#x}")
            )
        core = self.core
        self.last_exceptions.note(core.cycles, self.cpu.number, core.level, core.pc, cause, address)
        core.take_exception(0, cause, address)

    def _breakpoint(self) -> None:
        if self.calls is not None and self.debug.hits_watched_code:
            self.calls.reached(self.cpu)
        self.debug.answer_breakpoint()

    def _supervisor_call(self) -> None:
        if self.calls is not None and self.cpu.level == Level.USER:
            self.calls.called(self.cpu)
        immediate = self._word(self.core.pc - INSTRUCTION_BYTES) >> 5 & 0xFFFF
        self._take(syndrome(ExceptionClass.SVC, immediate))

    def _fail(self, cause: int, address: int | None = None) -> None:
        """What is there does not execute. If that is the vector, the CPU comes there for ever: it ends."""
        core = self.core
        state = core.pc, core.total(Probe.INST_RETIRED)
        if state == self._failed:
            self._die(cause, address)
            return
        self._failed = state
        self._take(cause, address)

    def _undefined(self) -> None:
        self._fail(Undefined(self._word(self.core.pc), self.cpu.level, self._read_in_core).cause)

    def _abort(self) -> None:
        core = self.core
        _, fault, table_level, _, output = self.tables.walk(core.fault_address)
        if fault == WalkFault.EXTERNAL and (output or not core.fault_address):  # the walk has come to its end
            self._take_abort(EXTERNAL_ABORT)
        else:
            self._take_abort(fault_status(WalkFault(fault), table_level))

    def _take_abort(self, status: int) -> None:
        core = self.core
        cause = abort(core.fault_access, self.cpu.level, status)
        self._fail(cause, core.fault_address)

    def _die(self, cause: int, address: int | None) -> None:
        core = self.core
        self.is_on, self.has_died = False, True
        what = "fetch" if described(cause).startswith("instruction abort") else "execute"
        far = "" if address is None else f", FAR {address:#x}"
        self._message(
            f"CPU {self.cpu.number} cannot {what} its exception vector at {core.pc:#x}: {described(cause)}{far};"
            f" it came there from {core.read_kernel_register(ELR_EL1.encoding):#x}"
        )

    def _exception(self) -> None:
        core = self.core
        kind = ExceptionKind(core.exception)
        word = self._word(core.pc)
        if kind is ExceptionKind.ALIGNMENT:
            self._take_abort(ALIGNMENT_FAULT)
        elif kind is ExceptionKind.ILLEGAL_STATE:
            self._fail(syndrome(ExceptionClass.ILLEGAL_STATE))
        elif kind is ExceptionKind.VECTORS:
            self._fail(syndrome(ExceptionClass.FP_ACCESS, ANY_CONDITION))
        elif kind is ExceptionKind.BREAKPOINT:
            self._fail(syndrome(ExceptionClass.BRK, word >> 5 & 0xFFFF))
        elif self.cpu.level and word & CALL_MASK in (HVC, SMC):
            function, *arguments = core.read_registers(range(4))
            core.write_register(PC, core.pc + INSTRUCTION_BYTES)
            result = self._firmware(self, function & WORD, (arguments[0], arguments[1], arguments[2]))
            if self.trace.exceptions:
                call = "HVC" if word & CALL_MASK == HVC else "SMC"
                self.trace.note(
                    self.cpu, f"{call}: function {function & WORD:#x} is answered with {result & DOUBLE_WORD:#x}"
                )
            core.write_register(0, result & DOUBLE_WORD)
        elif self.cpu.level and word == TRAP and self.host_call is not None:
            operation, block = core.read_registers(range(2))
            core.write_register(PC, core.pc + INSTRUCTION_BYTES)
            core.write_register(0, self.host_call(self.tables, operation & WORD, block) & DOUBLE_WORD)
        elif core.pc % INSTRUCTION_BYTES:
            self._fail(syndrome(ExceptionClass.PC_ALIGNMENT), core.pc)
        else:
            self._undefined()

    # ---- for a hypervisor: emulator.board.hypervisor.GuestProcessor

    def calls_host(self, reason: ExitReason) -> bool:
        """By HVC or SMC."""
        if reason is not ExitReason.EXCEPTION or not self.cpu.level:
            return False
        return self._word(self.core.pc) & CALL_MASK in (HVC, SMC)

    def reaches_device(self, reason: ExitReason) -> bool:
        return reason is ExitReason.DEVICE

    def _read_in_core(self, register: SysReg) -> int:
        return self.core.read_kernel_register(register.encoding)

    # ---- system registers and devices

    def _register(self) -> None:
        core, registers = self.core, self.cpu.system_registers
        kind, encoding, rt = core.trapped
        register = SysReg.from_encoding(encoding)
        self.has_read_counter = kind == TrapKind.MRS and register in COUNTERS
        try:
            if not self.cpu.level and register.op1 != OP1_OF_EL0:
                raise UndefinedRegister(f"{register} at EL0")
            if not self.cpu.level:
                self.timer.check_user_access(register)
            if kind == TrapKind.MSR:
                write = registers.writer(register)
                value = 0 if rt == ZERO_REGISTER else core.read_register(rt)
                if self.trace.sysregs:
                    self.trace.note(self.cpu, f"MSR {register_name(register)}, {value:#x}")
                core.complete_trapped()  # what is written holds for the instructions behind: it counts as it did
                write(value)
            else:
                value = registers.read(register)
                if self.trace.sysregs:
                    self.trace.note(self.cpu, f"MRS {register_name(register)} is {value:#x}")
                if rt != ZERO_REGISTER:
                    core.write_register(rt, value)
                core.complete_trapped()
        except TrappedRegister:
            self._fail(trapped_access(register, rt, reads=kind == TrapKind.MRS))
        except UndefinedRegister as problem:
            if self.cpu.level and not isinstance(problem, HigherRegister):  # of what EL0 tries, its kernel knows more
                name = "S{}_{}_C{}_C{}_{}".format(*register)
                self._message(f"{TrapKind(kind).name} of {name} at {core.pc:#x} is not modelled: undefined")
            self._undefined()
        self.look_at_pmu()

    def _device(self) -> None:
        core = self.core
        address, word = self.tables.walk(core.fault_address)[4], self._word(core.pc)
        access = decode(word)
        try:
            if access is None:
                raise Unmodelled(f"the instruction {word:#010x}, at a device at {address:#x}")
            self._access(access, address)
        except Unmodelled as error:
            cause = abort(core.fault_access, self.cpu.level, EXTERNAL_ABORT)
            self._message(f"{error}: not modelled: {described(cause)}; PC {core.pc:#x}")
            self._take_abort(EXTERNAL_ABORT)
            return
        core.complete_trapped()
        self.look_at_pmu()

    def _access(self, access: DeviceAccess, address: int) -> None:
        core = self.core
        if access.is_store:
            value = 0 if access.register == ZERO_REGISTER else core.read_register(access.register)
            if self.trace.mmio:
                self._note_access("store", address, access.size, value)
            self._bus.write(address, access.size, value)
        else:
            value = self._bus.read(address, access.size)
            if self.trace.mmio:
                self._note_access("load", address, access.size, value)
            value = access.extended(value)
            if access.register != ZERO_REGISTER:
                core.write_register(access.register, value)
        if access.base is not None:
            core.write_register(access.base, core.read_register(access.base) + access.increment & DOUBLE_WORD)

    def _note_access(self, what: str, address: int, size: int, value: int) -> None:
        place = self._bus.place(address, size)
        self.trace.note(self.cpu, f"{place}: {what} of {size} bytes: {value & ((1 << 8 * size) - 1):#x}")
