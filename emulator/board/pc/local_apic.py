"""LocalApic: each CPU's interrupt controller. Intel SDM volume 3, "Advanced Programmable Interrupt Controller (APIC)".

Registers are in memory in xAPIC mode, and MSRs in x2APIC mode: emulator.board.pc.x2apic. There is no EOI-broadcast
suppression.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from emulator.board.pc import extended_apic
from emulator.board.pc.apic_timer import ApicTimer

VERSION = 5 << 16 | 0x14  # six entries of the local vector table
ID, APIC_VERSION, TPR, APR, PPR, EOI, LDR, DFR, SVR = 0x20, 0x30, 0x80, 0x90, 0xA0, 0xB0, 0xD0, 0xE0, 0xF0
ISR, TMR, IRR, ESR, ICR_LOW, ICR_HIGH = 0x100, 0x180, 0x200, 0x280, 0x300, 0x310
LVT_TIMER, LVT_THERMAL, LVT_PMC, LVT_LINT0, LVT_LINT1, LVT_ERROR = 0x320, 0x330, 0x340, 0x350, 0x360, 0x370
INITIAL_COUNT, CURRENT_COUNT, DIVIDE = 0x380, 0x390, 0x3E0
SELF_IPI = 0x3F0  # in x2APIC mode alone
REGISTER_BYTES = 4

# What is kept of each register that is nothing but its bits
_VECTOR, _MODE, _LEVEL, _MASK = 0xFF, 7 << 8, 1 << 13 | 1 << 15, 1 << 16
_ENTRIES = {
    LVT_TIMER: _VECTOR | _MASK | 3 << 17,
    LVT_THERMAL: _VECTOR | _MODE | _MASK,
    LVT_PMC: _VECTOR | _MODE | _MASK,
    LVT_LINT0: _VECTOR | _MODE | _LEVEL | _MASK,
    LVT_LINT1: _VECTOR | _MODE | _LEVEL | _MASK,
    LVT_ERROR: _VECTOR | _MASK,
}
KEPT_BITS = {
    ID: 0xFF00_0000,
    TPR: 0xFF,
    LDR: 0xFF00_0000,
    DFR: 0xF000_0000,
    SVR: 0x3FF,
    ICR_LOW: 0xC_CFFF,
    ICR_HIGH: 0xFF00_0000,
    DIVIDE: 0b1011,
    INITIAL_COUNT: 0xFFFF_FFFF,
    **_ENTRIES,
}
ENABLED = 1 << 8  # SVR
SEND_ILLEGAL_VECTOR, RECEIVED_ILLEGAL_VECTOR, ILLEGAL_REGISTER = 1 << 5, 1 << 6, 1 << 7  # ESR
FIRST_LEGAL_VECTOR = 16
EVERYBODY, EVERYBODY_8 = 0xFFFF_FFFF, 0xFF  # as destinations, of 32 bits and of 8
LOGICAL, ASSERTED, LEVEL_TRIGGERED = 1 << 11, 1 << 14, 1 << 15  # ICR


class Mode(IntEnum):
    """What IA32_APIC_BASE says."""

    OFF = 0  # as on a processor without one: its LINT0 is the processor's INTR
    XAPIC = 1
    X2APIC = 2


class Delivery(IntEnum):
    """How an interrupt is delivered: bits 10:8 of entries and of the ICR."""

    FIXED = 0
    LOWEST_PRIORITY = 1
    SMI = 2
    NMI = 4
    INIT = 5
    STARTUP = 6
    EXTERNAL = 7  # an 8259 says the vector


DELIVERIES = {int(delivery): delivery for delivery in Delivery}


class Messages(Protocol):
    """What local APICs and the I/O APIC are connected by."""

    def send(self, message: Message, sender: LocalApic | None) -> None:
        """To whoever it is for."""

    def end_of_interrupt(self, vector: int) -> None:
        """Of a level-triggered interrupt: the I/O APIC hears it."""


class Message:
    """An interrupt under way: `destination` is an APIC's identification, or a set of logical ones."""

    def __init__(
        self,
        delivery: Delivery,
        vector: int,
        destination: int = 0,
        *,
        logical: bool = False,
        level_triggered: bool = False,
        shorthand: int = 0,
    ) -> None:
        """`shorthand`: 1 the sender, 2 all, 3 all but the sender; 0: `destination` says."""
        self.delivery = delivery
        self.vector = vector
        self.destination = destination
        self.logical = logical
        self.level_triggered = level_triggered
        self.shorthand = shorthand


class ProcessorPins(Protocol):
    """What of its CPU a local APIC reaches besides the interrupt line."""

    def nmi(self) -> None: ...

    def init(self) -> None: ...

    def start_up(self, vector: int) -> None: ...


class LocalApic:
    """Of CPU `number`. `changed` is called when its interrupt line may have changed."""

    kept = "timer", "mode", "_kept", "requested", "in_service", "level_triggered", "_errors", "_new_errors"
    kept_ranges = {
        "mode": range(len(Mode)),
        **dict.fromkeys(("requested", "in_service", "level_triggered"), range(1 << 256)),
    }

    def __init__(
        self,
        number: int,
        timer: ApicTimer,
        messages: Messages,
        pins: ProcessorPins,
        changed: Callable[[], None],
        *,
        is_amd: bool = False,
    ) -> None:
        """`is_amd`: with the extended registers, of which there are the entries of the local vector table alone."""
        self.number = number
        self.is_amd = is_amd
        self.timer = timer
        self.external: Callable[[], int | None] = lambda: None  # the 8259's vector, acknowledged, if it asserts that
        self.external_asserted: Callable[[], bool] = lambda: False
        self.when_pmc_is_written: Callable[[int], None] = lambda value: None
        self.when_priority_is_written: Callable[[int], None] = lambda value: None  # in memory
        self.hears: Callable[[int, str], None] | None = None  # (CPU, what) of each interrupt that is taken, and ended
        self._messages = messages
        self._pins = pins
        self._changed = changed
        self.mode = Mode.XAPIC
        extended = dict.fromkeys(extended_apic.ENTRIES if is_amd else (), _VECTOR | _MODE | _MASK)
        self._entries = _ENTRIES | extended
        self._bits = KEPT_BITS | extended
        self._reads: dict[int, Callable[[], int]] = {
            APIC_VERSION: lambda: VERSION | (extended_apic.IS_THERE if is_amd else 0),
            APR: lambda: 0,
            PPR: lambda: self.processor_priority,
            ESR: lambda: self._errors,
            CURRENT_COUNT: lambda: self.timer.current_count,
        }
        self._writes: dict[int, Callable[[int], None]] = {
            EOI: lambda value: self._end_of_interrupt(),
            ESR: lambda value: self._latch_errors(),
            TPR: lambda value: self.when_priority_is_written(self._kept[TPR]),
            SVR: self._set_spurious_vector,
            ICR_LOW: self._send,
            INITIAL_COUNT: lambda value: self.timer.set_initial_count(value),
            DIVIDE: lambda value: self.timer.set_divide(value),
            **{entry: self._entry_written(entry) for entry in self._entries},
        }
        if is_amd:
            self._reads |= extended_apic.READS
            self._writes |= extended_apic.WRITES
        self.reset()

    def reset(self) -> None:
        """As at power-up, and by an INIT, which leaves the identification and the mode."""
        self._kept = dict.fromkeys(self._bits, 0) | {ID: self.number << 24, DFR: 0xFFFF_FFFF, SVR: 0xFF}
        self._kept |= dict.fromkeys(self._entries, _MASK)
        if self.mode == Mode.X2APIC:
            self._identify_by_32_bits()
        self.requested = self.in_service = self.level_triggered = 0  # a bit for each vector
        self._errors = self._new_errors = 0
        self.timer.reset()

    def set_mode(self, mode: Mode) -> None:
        """IA32_APIC_BASE: what turns it off forgets all of it; xAPIC mode's registers stay as they are in x2APIC's."""
        if mode == Mode.OFF:
            self.reset()
            self.when_pmc_is_written(self._kept[LVT_PMC])
        if mode == Mode.X2APIC and self.mode != mode:
            self._identify_by_32_bits()
        self.mode = mode
        self._changed()

    def _identify_by_32_bits(self) -> None:
        self._kept[ID] = self.number
        self._kept[LDR] = self.number >> 4 << 16 | 1 << (self.number & 0xF)  # a cluster of 16, and who of them

    def act_as_boot_processor(self) -> None:
        """As firmware leaves the first CPU's: enabled, with the 8259 and NMI at its pins ("virtual wire")."""
        self._kept[SVR] |= ENABLED
        self._kept[LVT_LINT0] = Delivery.EXTERNAL << 8
        self._kept[LVT_LINT1] = Delivery.NMI << 8

    # ---- the CPU's side

    @property
    def is_enabled(self) -> bool:
        return bool(self._kept[SVR] & ENABLED) and self.mode != Mode.OFF

    @property
    def processor_priority(self) -> int:
        task, service = self._kept[TPR], _highest(self.in_service) & 0xF0
        return task if task & 0xF0 >= service else service

    def set_task_priority(self, priority_class: int) -> None:
        """By CR8, which is bits 7:4, and clears what is below."""
        self._kept[TPR] = priority_class << 4
        self._changed()

    @property
    def is_asserted(self) -> bool:
        """Whether there is an interrupt for the CPU, if it takes any."""
        return self._deliverable is not None or self._external_comes

    @property
    def _deliverable(self) -> int | None:
        if not self.requested or not self.is_enabled:
            return None
        vector = _highest(self.requested)
        return vector if vector & 0xF0 > self.processor_priority & 0xF0 else None

    @property
    def _external_comes(self) -> bool:
        entry = self._kept[LVT_LINT0]
        unmasked = self.mode == Mode.OFF or (not entry & _MASK and entry >> 8 & 7 == Delivery.EXTERNAL)
        return unmasked and self.external_asserted()

    def acknowledge(self) -> int:
        """The CPU takes the interrupt: its vector."""
        if self._external_comes and (external := self.external()) is not None:
            self._note(f"takes {external:#x}, of the 8259")
            return external
        vector = self._deliverable
        if vector is None:
            self._note("takes the spurious one")
            return self._kept[SVR] & _VECTOR
        self.requested &= ~(1 << vector)
        self.in_service |= 1 << vector
        self._note(f"takes {vector:#x}")
        self._changed()
        return vector

    def _end_of_interrupt(self) -> None:
        if not self.in_service:
            return
        vector = _highest(self.in_service)
        self.in_service &= ~(1 << vector)
        self._note(f"ends {vector:#x}")
        if self.level_triggered >> vector & 1:
            self._messages.end_of_interrupt(vector)
        self._changed()

    def _note(self, what: str) -> None:
        if self.hears is not None:
            self.hears(self.number, what)

    # ---- what comes

    def is_destination(self, destination: int, *, logical: bool) -> bool:
        if self.mode == Mode.OFF:
            return False
        own = self._kept[LDR]
        if self.mode == Mode.X2APIC:
            if not logical or destination == EVERYBODY:
                return destination in (EVERYBODY, self.number)
            return destination >> 16 == own >> 16 and bool(destination & own & 0xFFFF)
        own >>= 24
        if not logical:
            return destination in (EVERYBODY, self._kept[ID] >> 24)
        if destination == EVERYBODY:
            return True
        if self._kept[DFR] >> 28 == 0xF:  # flat
            return bool(own & destination)
        same_cluster = destination >> 4 in (0xF, own >> 4)
        return same_cluster and bool(own & destination & 0xF)

    def receive(self, message: Message) -> None:
        delivery = message.delivery
        if delivery in (Delivery.FIXED, Delivery.LOWEST_PRIORITY):
            self._accept(message.vector, level_triggered=message.level_triggered)
        elif delivery is Delivery.NMI:
            self._pins.nmi()
        elif delivery is Delivery.INIT:
            self._pins.init()
        elif delivery is Delivery.STARTUP:
            self._pins.start_up(message.vector)

    def _accept(self, vector: int, *, level_triggered: bool) -> None:
        if vector < FIRST_LEGAL_VECTOR:
            self._note_error(RECEIVED_ILLEGAL_VECTOR)
            return
        if not self.is_enabled:
            return
        self.requested |= 1 << vector
        self.level_triggered &= ~(1 << vector)
        self.level_triggered |= level_triggered << vector
        self._changed()

    def local(self, entry: int) -> bool:
        """What that entry of the local vector table is for has happened. Whether it is not masked."""
        value = self._kept[entry]
        if value & _MASK:
            return False
        delivery = Delivery.FIXED if entry in (LVT_TIMER, LVT_ERROR) else value >> 8 & 7
        if delivery in DELIVERIES:
            self.receive(Message(DELIVERIES[delivery], value & _VECTOR))
        return True

    def is_masked(self, entry: int) -> bool:
        return bool(self._kept[entry] & _MASK)

    def mask(self, entry: int) -> None:
        """As the APIC itself does with LVT_PMC, when it has delivered that."""
        self._kept[entry] |= _MASK

    def look_at_timer(self) -> None:
        if self.timer.take_expiry():
            self.local(LVT_TIMER)

    # ---- registers

    def read(self, offset: int, size: int) -> int:
        register = offset & ~0xF
        if offset & 0xC or size > REGISTER_BYTES:
            return 0  # undefined, and what others answer
        if (read := self._reads.get(register)) is not None:
            return read() >> 8 * (offset & 3)
        if (kept := self._kept.get(register)) is not None:
            return kept >> 8 * (offset & 3)
        for first, vectors in ((ISR, self.in_service), (TMR, self.level_triggered), (IRR, self.requested)):
            if first <= register < first + 0x80:
                return vectors >> 2 * (register - first) & 0xFFFF_FFFF
        if register != EOI:
            self._note_error(ILLEGAL_REGISTER)
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        if offset & 0xF or size != REGISTER_BYTES:
            return
        if offset in self._bits:
            whole = offset == ICR_HIGH and self.mode == Mode.X2APIC
            self._kept[offset] = value if whole else value & self._bits[offset]
            if offset == DFR:
                self._kept[DFR] |= 0x0FFF_FFFF
        elif offset not in self._writes:
            self._note_error(ILLEGAL_REGISTER)
            return
        if (write := self._writes.get(offset)) is not None:
            write(value)
        self._changed()

    def _entry_written(self, entry: int) -> Callable[[int], None]:
        def written(value: int) -> None:
            if not self.is_enabled:
                self._kept[entry] |= _MASK
            if entry == LVT_TIMER:
                self.timer.set_mode(self._kept[entry] >> 17 & 3)
            elif entry == LVT_PMC:
                self.when_pmc_is_written(self._kept[entry])

        return written

    def _set_spurious_vector(self, value: int) -> None:
        if self.is_enabled:
            return
        for entry in self._entries:
            self._kept[entry] |= _MASK
        self.when_pmc_is_written(self._kept[LVT_PMC])

    def _latch_errors(self) -> None:
        self._errors, self._new_errors = self._new_errors, 0

    def _note_error(self, error: int) -> None:
        new = error & ~self._new_errors
        self._new_errors |= error
        if new:
            self.local(LVT_ERROR)

    def _send(self, value: int) -> None:
        number, vector = value >> 8 & 7, value & _VECTOR
        delivery = DELIVERIES.get(number)
        if delivery is None:
            return
        if delivery is Delivery.INIT and value & LEVEL_TRIGGERED and not value & ASSERTED:
            return  # "INIT level de-assert": only for processors before the Pentium 4
        if delivery in (Delivery.FIXED, Delivery.LOWEST_PRIORITY) and vector < FIRST_LEGAL_VECTOR:
            self._note_error(SEND_ILLEGAL_VECTOR)
            return
        destination, logical = self._kept[ICR_HIGH], bool(value & LOGICAL)
        if self.mode != Mode.X2APIC:
            destination = of_32_bits(destination >> 24, logical=logical)
        self._messages.send(Message(delivery, vector, destination, logical=logical, shorthand=value >> 18 & 3), self)

    def interrupt_itself(self, vector: int) -> None:
        """SELF IPI, which only x2APIC mode has."""
        if vector < FIRST_LEGAL_VECTOR:
            self._note_error(SEND_ILLEGAL_VECTOR)
        else:
            self._accept(vector, level_triggered=False)


def of_32_bits(destination: int, *, logical: bool) -> int:
    """A destination of 8 bits, as local APICs in xAPIC mode and I/O APICs have it: all ones is everybody."""
    return EVERYBODY if destination == EVERYBODY_8 and not logical else destination


def _highest(vectors: int) -> int:
    """The highest of a set; 0 of none."""
    return max(vectors.bit_length() - 1, 0)
