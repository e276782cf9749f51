"""PcCpu: one x86-64 CPU of a pc: its local APIC, what becomes of each exit of its core, and how it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from emulator.arch.cpuid import AMD
from emulator.arch.processor import Processor
from emulator.board.bus import Bus
from emulator.board.calls import CallWatcher
from emulator.board.pausable import Pausable
from emulator.board.pc import msrs, x2apic
from emulator.board.pc.apic_timer import ApicTimer
from emulator.board.pc.beyond_ram import BeyondRam
from emulator.board.pc.cpuid import PcCpuid
from emulator.board.pc.local_apic import LVT_PMC, LocalApic, Messages, Mode
from emulator.board.pc.pc_pmu import PcPmu
from emulator.board.pc.pc_unit import PcUnit
from emulator.board.pc.ports import Ports
from emulator.board.pc.stops import PcStops
from emulator.board.pc.taken_exceptions import CoreExceptions
from emulator.board.trace import NOTHING
from emulator.clock import Clock
from emulator.cpu import Cpu, ExitReason, TrapKind, Waking
from emulator.sysregs import Msr, UndefinedRegister
from emulator.x86_64_system import SegmentField, SegmentRegister, SystemRegister, segment

RAX, RBX, RCX, RDX, RIP, RFLAGS = 0, 1, 2, 3, 16, 17
INTERRUPTS_ENABLED = 1 << 9  # RFLAGS.IF
GENERAL_PROTECTION = 13
WORD = 0xFFFF_FFFF
REAL_MODE_CODE = 0x9B  # attributes
PORT_NS = 1000  # that an access to a port takes, as on ISA and LPC buses: software counts on it for delays
LOAD, STORE, UPDATE = 0, 1, 2  # kinds of accesses
AT_PORTS = TrapKind.IN, TrapKind.OUT, TrapKind.INS, TrapKind.OUTS


class PcCpu:
    """A CPU that is on, waits in HLT, or waits to be started by another."""

    kept = (
        "cpu", "is_on", "waits", "due_cycle", "has_died", "_timers_changed", "apic", "_msrs", "_pmu", "_pmu_interrupts",
        "_units",
    )  # fmt: skip

    def __init__(
        self,
        cpu: Cpu,
        clock: Clock,
        processor: Processor,
        messages: Messages,
        bus: Bus,
        ports: Ports,
        pmu: PcPmu | None,
        changed: Callable[[], None],
        reset: Callable[[], None],
        message: Callable[[str], None],
        units: Sequence[PcUnit] = (),
    ) -> None:
        """`changed`: interrupts must be looked at; `reset`: the whole board's."""
        self.cpu = cpu
        self.core = cpu.core
        self.is_on = False
        self.waits = False  # in HLT
        self.due_cycle: int | None = None
        self.trace = NOTHING
        self.calls: CallWatcher | None = None
        self.has_died = False  # it could execute nothing any more
        self.last_exceptions = CoreExceptions(cpu.number, cpu.core)
        self._clock = clock
        self._ports = ports
        self._pmu = pmu
        self._units = list(units)
        self._pmu_interrupts = 0
        self._reset, self._message = reset, message
        self._port_reference = clock.reference_in(PORT_NS)
        self._timers_changed = True
        self.tables = cpu.enter_kernel_mode()
        self.debug = PcStops(cpu, self.tables)
        self.core.share_shown_cycles(clock.shown)
        is_amd = processor.vendor == AMD
        self.core.write_kernel_register(SystemRegister.IS_AMD, is_amd)
        self.apic = LocalApic(cpu.number, ApicTimer(self, self._note_timers), messages, self, changed, is_amd=is_amd)
        self.apic.when_priority_is_written = self._set_cr8
        self._beyond_ram = BeyondRam(cpu, self.apic, bus, lambda: self.trace, message)
        registers = cpu.system_registers
        cpuid = PcCpuid(processor, cpu.number)
        cpuid.apic_is_on = lambda: self.apic.mode != Mode.OFF
        registers.claim_cpuid(cpuid)
        timer = self.apic.timer
        deadline = (lambda: timer.deadline), timer.set_deadline
        self.msr_names, self._msrs = msrs.claim(
            registers, processor, deadline, *([] if pmu is None else [pmu.unavailable])
        )
        self.msr_names |= x2apic.claim(registers, self.apic)
        if pmu is not None:
            registers.amend_cpuid(pmu.cpuid)
            self.msr_names |= pmu.claim(registers)
            pmu.tell = message
            self.apic.when_pmc_is_written = pmu.set_local_vector
        for unit in units:
            registers.amend_cpuid(unit.cpuid)
            self.msr_names |= unit.attach(cpu, registers)
        self._traps: Mapping[TrapKind, Callable[[], None]] = {
            TrapKind.CPUID: self._cpuid,
            TrapKind.RDPMC: self._rdpmc,
            TrapKind.RDMSR: self._read_msr,
            TrapKind.WRMSR: self._write_msr,
            TrapKind.IN: self._in,
            TrapKind.INS: self._in,
            TrapKind.OUT: self._out,
            TrapKind.OUTS: self._out,
            TrapKind.DEBUG_REGISTERS: self._debug_registers,
            TrapKind.MSR: self._task_priority,  # MOV to CR8
        }
        self.answers: Mapping[ExitReason, Callable[[], None]] = {
            ExitReason.REGISTER: self._trapped,
            ExitReason.FAULT: self._nowhere,
            ExitReason.DEADLINE: lambda: None,
            ExitReason.BREAKPOINT: self._breakpoint,
            ExitReason.WATCHPOINT: lambda: None,  # of a debugger outside; the guest's are the core's
            ExitReason.OVERFLOW: self._overflow,
            ExitReason.IDLE: self._wait,
            ExitReason.DEVICE: self._device,
            ExitReason.INTERRUPT: self._take_interrupt,
            ExitReason.SHUTDOWN: self._shut_down,
        }

    # ---- its time: emulator.board.pc.apic_timer.Time

    def ns(self) -> int:
        return self._clock.at(self.core.cycles)

    def tsc(self) -> int:
        """As the CPU would read it now: others may be ahead, and what they have been shown it is shown, too."""
        own = self.core.read_kernel_register(SystemRegister.TSC)
        return own if self.waits else own + max(self._clock.latest_shown - self.core.cycles, 0)

    def cycle_at_ns(self, ns: int) -> int:
        return self._clock.cycle_at(ns)

    def cycle_at_tsc(self, tsc: int) -> int:
        return self._clock.after(self.core.cycles, tsc - self.core.read_kernel_register(SystemRegister.TSC))

    def _note_timers(self) -> None:
        self._timers_changed = True

    def look_at_timers(self) -> None:
        """Bring the timer's interrupt, and when the next one is due, up to date."""
        is_due = self.due_cycle is not None and self.core.cycles >= self.due_cycle
        if not self._timers_changed and not is_due and not self.apic.timer.is_overdue:
            return
        self.apic.look_at_timer()
        self.due_cycle = self.apic.timer.due_cycle
        self._timers_changed = False

    # ---- interrupts

    @property
    def _takes_interrupts(self) -> bool:
        return bool(self.core.read_register(RFLAGS) & INTERRUPTS_ENABLED)

    def look_at_interrupts(self, now: int) -> None:
        """Another interrupt may be the highest. One that waits goes on at cycle `now`, at the earliest."""
        asserted = self.apic.is_asserted
        self.core.set_interrupt_line(asserted)
        if asserted and self.waits and self._takes_interrupts:
            self._wake(now)

    def _wake(self, now: int) -> None:
        self.waits = False
        self.cpu.idle(max(now - self.core.cycles, 0))
        self.cpu.wake(Waking.INTERRUPT)

    def _take_interrupt(self) -> None:
        self.core.take_interrupt(self.apic.acknowledge())
        self.core.set_interrupt_line(self.apic.is_asserted)

    def _wait(self) -> None:
        self.waits = not (self.apic.is_asserted and self._takes_interrupts)
        if self.waits:
            self.cpu.sleep()

    def _overflow(self) -> None:
        self.cpu.deliver_interrupts()
        self.look_at_pmu()

    @property
    def pmu_interrupts(self) -> int:
        """How often its own PMU has interrupted."""
        return self._pmu_interrupts

    def look_at_pmu(self) -> None:
        """It may interrupt."""
        if self._pmu is not None and self._pmu.interrupt_asserted():
            self._pmu.take_interrupt()
            self._pmu_interrupts += 1
            self.apic.local(LVT_PMC)
            if self._pmu.masks_its_vector:
                self.apic.mask(LVT_PMC)
        for unit in self._units:
            if unit.interrupt_asserted():
                unit.take_interrupt()
                self._pmu_interrupts += 1
                self.apic.local(unit.entry)

    @property
    def listening(self) -> list[Pausable]:
        """Of its guest's."""
        return [*self._units] if self._pmu is None else [self._pmu, *self._units]

    # ---- how it starts: emulator.board.pc.local_apic.ProcessorPins

    def nmi(self) -> None:
        if not self.is_on:
            return
        self.core.raise_nmi()
        if self.waits:
            self._wake(self._clock.cycles())

    def init(self) -> None:
        """The first CPU begins anew then, where a PC has its firmware, and this board nothing: a reset of all."""
        if self.cpu.number == 0:
            self._reset()
            return
        if self.waits:
            self._wake(self.core.cycles)
        self.is_on = False
        self._reset_core()
        self.core.set_interrupt_line(False)
        self.apic.reset()

    def _reset_core(self) -> None:
        self.core.reset()
        self.debug.apply()

    def start_up(self, vector: int) -> None:
        """One that waits for it since its INIT begins at that page, in real mode."""
        if self.is_on:
            return
        self._reset_core()
        self._set_segment(SegmentRegister.CS, vector << 8, vector << 12, 0xFFFF, REAL_MODE_CODE)
        self.core.write_register(RIP, 0)
        self.cpu.idle(max(self._clock.cycles() - self.core.cycles, 0))
        self.is_on = True

    def start(
        self,
        registers: Mapping[int, int],
        system: Mapping[int, int],
        code: tuple[int, int],
        data: tuple[int, int],
    ) -> None:
        """As a loader leaves it. `code`, `data`: selector and attributes of the flat segments."""
        for register, value in system.items():
            self.core.write_kernel_register(int(register), value)
        self._set_segment(SegmentRegister.CS, code[0], 0, WORD, code[1])
        named = SegmentRegister
        for name in (named.DS, named.ES, named.SS, named.FS, named.GS):
            self._set_segment(name, data[0], 0, WORD, data[1])
        for number, value in registers.items():
            self.core.write_register(number, value)
        self.is_on = True

    def _set_segment(self, name: SegmentRegister, selector: int, base: int, limit: int, attributes: int) -> None:
        for field, value in zip(SegmentField, (selector, base, limit, attributes), strict=True):
            self.core.write_kernel_register(segment(name, field), value)

    # ---- how it stops

    def _die(self, what: str) -> None:
        self.is_on, self.has_died = False, True
        self._message(f"CPU {self.cpu.number} {what}")

    def _nowhere(self) -> None:
        self._die(f"cannot fetch from {self.core.fault_address:#x}, where this board has nothing")

    def _shut_down(self) -> None:
        last = self.last_exceptions.rows[-1]
        self.has_died = True
        self._message(
            f"CPU {self.cpu.number} has shut down at {self.core.pc:#x} (triple fault): the last exception was"
            f" {last.what}, CR2 {self.core.read_kernel_register(SystemRegister.CR2):#x}"
        )
        self._reset()

    def _breakpoint(self) -> None:
        if self.calls is not None and self.debug.hits_watched_code:
            self.calls.reached(self.cpu)
        self.debug.answer_breakpoint()

    def _debug_registers(self) -> None:
        self.core.complete_trapped()
        self.debug.apply()

    # ---- instructions that the board answers

    def _trapped(self) -> None:
        self._traps[TrapKind(self.core.trapped[0])]()
        self.look_at_pmu()

    def _cpuid(self) -> None:
        core = self.core
        leaf, subleaf = core.read_register(RAX) & WORD, core.read_register(RCX) & WORD
        for register, value in zip((RAX, RBX, RCX, RDX), self.cpu.system_registers.cpuid(leaf, subleaf), strict=True):
            core.write_register(register, value)
        core.complete_trapped()

    def _answer(self, value: int) -> None:
        """In EDX:EAX."""
        self.core.write_register(RAX, value & WORD)
        self.core.write_register(RDX, value >> 32 & WORD)
        self.core.complete_trapped()

    def _task_priority(self) -> None:
        self.core.complete_trapped()
        self.apic.set_task_priority(self.core.read_kernel_register(SystemRegister.CR8))

    def _set_cr8(self, priority: int) -> None:
        self.core.write_kernel_register(SystemRegister.CR8, priority >> 4)

    def _rdpmc(self) -> None:
        try:
            value = self.cpu.system_registers.rdpmc(self.core.read_register(RCX) & WORD)
        except UndefinedRegister:
            self.core.take_exception(GENERAL_PROTECTION, 0)
            return
        self._answer(value)

    def _read_msr(self) -> None:
        number = self.core.read_register(RCX) & WORD
        try:
            value = self.cpu.system_registers.read(Msr(number))
        except UndefinedRegister as error:
            self._refuse_msr("RDMSR", number, error)
            return
        if self.trace.msrs:
            self.trace.note(self.cpu, f"RDMSR {self._msr_name(number)} is {value:#x}")
        self._answer(value)

    def _write_msr(self) -> None:
        core = self.core
        number, low, high = (core.read_register(register) & WORD for register in (RCX, RAX, RDX))
        value = high << 32 | low
        try:
            write = self.cpu.system_registers.writer(Msr(number))
            if self.trace.msrs:
                self.trace.note(self.cpu, f"WRMSR {self._msr_name(number)}, {value:#x}")
            self.cpu.system_registers.check_value(Msr(number), value)
        except UndefinedRegister as error:
            self._refuse_msr("WRMSR", number, error)
            return
        core.complete_trapped()  # what is written holds for the instructions behind: it counts as it did
        write(value)

    def _msr_name(self, number: int) -> str:
        return self.msr_names.get(number) or msrs.ABSENT.get(number) or f"{number:#x}"

    def _refuse_msr(self, what: str, number: int, error: UndefinedRegister) -> None:
        if self.trace.msrs:
            self.trace.note(self.cpu, f"{what} {self._msr_name(number)}: #GP")
        if number not in msrs.ABSENT:
            self._message(f"{what} of MSR {self._msr_name(number)} at {self.core.pc:#x}: #GP ({error})")
        self.core.take_exception(GENERAL_PROTECTION, 0)

    # ---- ports and devices

    def _in(self) -> None:
        _, port, size = self.core.trapped
        value = self._ports.read(port, size)
        if self.trace.ports:
            self.trace.note(self.cpu, f"{self._ports.place(port)}: IN of {size} bytes: {value:#x}")
        self.core.complete_access(value)
        self._work_for_port()

    def _work_for_port(self) -> None:
        now = self.core.cycles
        self.cpu.work(self._clock.after(now, self._port_reference) - now)

    def _out(self) -> None:
        core = self.core
        _, port, size = core.trapped
        assert core.access is not None, "OUT has a value"
        value = core.access[3]
        core.complete_access(0)
        self._work_for_port()
        self.cpu.deliver_interrupts()  # of what has just retired: the access may end the run
        if self.trace.ports:
            self.trace.note(self.cpu, f"{self._ports.place(port)}: OUT of {size} bytes: {value:#x}")
        self._ports.write(port, size, value)

    def _device(self) -> None:
        core = self.core
        access = core.access
        if access is None:
            code = self.tables.read(core.pc, 15)
            shown = code.hex(" ") if isinstance(code, bytes) else "?"
            self._die(
                f"reaches a device at {core.fault_address:#x} by an instruction that is not modelled there: {shown}"
            )
            return
        address, size, kind, value = access
        old = 0 if kind == STORE else self._beyond_ram.read(address, size)
        new = core.complete_access(old)
        if kind != LOAD:
            self._beyond_ram.write(address, size, (new if kind == UPDATE else value) or 0)
        self.look_at_pmu()

    # ---- for a hypervisor: emulator.board.hypervisor.GuestProcessor

    def calls_host(self, reason: ExitReason) -> bool:
        """By CPUID."""
        return reason is ExitReason.REGISTER and self.core.trapped[0] == TrapKind.CPUID

    def reaches_device(self, reason: ExitReason) -> bool:
        """In memory or at a port."""
        return reason is ExitReason.DEVICE or (reason is ExitReason.REGISTER and self.core.trapped[0] in AT_PORTS)
