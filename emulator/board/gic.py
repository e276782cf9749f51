"""Gic: Arm's interrupt controller GICv3, with one security state, affinity routing, and no LPIs.

Registers: Arm IHI 0069, "The GICv3 programmers' model". Only Group 1 is there: Group 0 is the other security state's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emulator.board.priorities import IDLE_PRIORITY, PRIORITY_MASK, ActivePriorities
from emulator.sysregs import Access, SysReg, SystemRegisters

GICV2, GICV3 = 2, 3  # versions
PRIVATE = 32  # SGIs 0..15 and PPIs 16..31 of each CPU
SHARED = 256  # SPIs from 32 on
SENT = 0xFFFF  # mask of SGIs
SPURIOUS = 1023
OTHER_AFFINITIES = 0xFF_00FF << 16 | 0xFF << 48  # of ICC_SGI1R_EL1: all CPUs differ in the lowest alone
IMPLEMENTER = 0x43B  # Arm
ARCHITECTURE_3 = 0x3B  # GICD_PIDR2, GICR_PIDR2
WORD = 0xFFFF_FFFF

# GICD_*, and GICR_* of a redistributor's second frame, by what they begin with
GROUPS, SET_ENABLE, CLEAR_ENABLE, SET_PENDING, CLEAR_PENDING, SET_ACTIVE, CLEAR_ACTIVE = range(0x80, 0x400, 0x80)
PRIORITIES, CONFIGURATIONS, ROUTES = 0x400, 0xC00, 0x6000
PENDING_WORDS = (SET_PENDING, CLEAR_PENDING)

DISTRIBUTOR_BYTES, REDISTRIBUTOR_BYTES = 0x1_0000, 0x2_0000


RAISED, LOWERED = "the line of %d is raised", "the line of %d is lowered"
Hears = Callable[[int | None, str, int], None]
"""From a CPU, or a device, what happens to an interrupt."""


def _nobody_hears(cpu: int | None, what: str, interrupt: int) -> None:
    pass


class Interrupts:
    """The state of some interrupts, as masks: bit n is the n-th of them."""

    kept = "groups", "enabled", "pended", "asserted", "active", "edges", "priorities"

    def __init__(self, count: int, always_edges: int = 0) -> None:
        """`always_edges`: of which the driver cannot say otherwise."""
        self.count = count
        self.kept_ranges = dict.fromkeys(self.kept, range(1 << count))
        self.groups = self.enabled = self.active = 0
        self.pended = 0  # until they are acknowledged: by the driver, by other CPUs, by edges
        self.asserted = 0  # lines, which are levels
        self.edges = self._always_edges = always_edges  # pend from when their line rises, not while it is
        self.priorities = bytearray(count)

    @property
    def pending(self) -> int:
        return self.pended | self.asserted & ~self.edges

    @property
    def ready(self) -> int:
        return self.pending & self.enabled & ~self.active & self.groups

    def set_line(self, number: int, asserted: bool) -> bool:
        """Whether that is another level than before."""
        bit = 1 << number
        if bool(self.asserted & bit) == asserted:
            return False
        self.asserted ^= bit
        if asserted:
            self.pended |= bit & self.edges
        return True

    def read(self, offset: int, size: int) -> int:
        """Of the registers that all interrupts have, at that offset from this part's first one."""
        if offset >= CONFIGURATIONS:
            return _spread(self.edges >> 4 * (offset - CONFIGURATIONS)) & WORD
        if offset >= PRIORITIES:
            return int.from_bytes(self.priorities[offset - PRIORITIES :][:size], "little")
        kind, shift = offset & ~0x7F, 8 * (offset & 0x7F)
        return self._mask(kind) >> shift & WORD

    def _mask(self, kind: int) -> int:
        if kind == GROUPS:
            return self.groups
        if kind in (SET_ENABLE, CLEAR_ENABLE):
            return self.enabled
        if kind in PENDING_WORDS:
            return self.pending
        return self.active

    def write(self, offset: int, size: int, value: int) -> None:
        data = value.to_bytes(size, "little")
        if offset >= CONFIGURATIONS:
            self._configure(4 * (offset - CONFIGURATIONS), 4 * size, _gathered(value))
        elif offset >= PRIORITIES:
            _store(self.priorities, offset - PRIORITIES, bytes(byte & PRIORITY_MASK for byte in data))
        else:
            self._write_mask(offset & ~0x7F, 8 * (offset & 0x7F), value & WORD)

    def _write_mask(self, kind: int, shift: int, word: int) -> None:
        bits = word << shift & ((1 << self.count) - 1)
        if kind == GROUPS:
            self.groups = self.groups & ~(WORD << shift) | bits
        elif kind == SET_ENABLE:
            self.enabled |= bits
        elif kind == CLEAR_ENABLE:
            self.enabled &= ~bits
        elif kind == SET_PENDING:
            self.pended |= bits
        elif kind == CLEAR_PENDING:
            self.pended &= ~bits
        elif kind == SET_ACTIVE:
            self.active |= bits
        else:
            self.active &= ~bits

    def _configure(self, first: int, count: int, edges: int) -> None:
        written = (1 << count) - 1 << first & (1 << self.count) - 1
        self.edges = self.edges & ~written | edges << first & written | self._always_edges


def _spread(edges: int) -> int:
    """As ICFGR has it: two bits for each interrupt, the upper one of which says so."""
    return sum(2 << 2 * number for number in range(16) if edges >> number & 1)


def _gathered(word: int) -> int:
    """The same backwards."""
    return sum(1 << number for number in range(16) if word >> 2 * number & 2)


def _store(kept: bytearray, start: int, data: bytes) -> None:
    """What of the data is within."""
    kept[start : start + len(data)] = data[: max(len(kept) - start, 0)]


class CpuInterface:
    """What one CPU sees of the controller: its private interrupts, and the ICC registers."""

    kept = "private", "sleeps", "enabled", "mask", "drops_only", "priorities"

    def __init__(self, gic: Gic, number: int) -> None:
        self.gic = gic
        self.number = number
        self.private = Interrupts(PRIVATE, always_edges=SENT)
        self.sleeps = True  # GICR_WAKER.ProcessorSleep
        self.enabled = False
        self.mask = 0  # ICC_PMR_EL1
        self.drops_only = False  # ICC_CTLR_EL1.EOImode: EOI drops the priority, and DIR deactivates
        self.priorities = ActivePriorities()

    def highest(self) -> int:
        """The interrupt to be taken next, or SPURIOUS."""
        interrupt, priority = self._pending() if self.enabled else (SPURIOUS, IDLE_PRIORITY)
        return interrupt if priority < self.mask and self.priorities.are_preempted_by(priority) else SPURIOUS

    def pending(self) -> int:
        """The one that would be taken next if no priority kept it away, or SPURIOUS: ICC_HPPIR1_EL1."""
        return self._pending()[0]

    def _pending(self) -> tuple[int, int]:
        """And its priority."""
        best, limit = SPURIOUS, IDLE_PRIORITY
        if not self.gic.enabled:
            return best, limit
        for first, interrupts, ready in (
            (0, self.private, self.private.ready),
            (PRIVATE, self.gic.shared, self.gic.shared.ready & self.gic.routed_to(self.number)),
        ):
            while ready:
                number = (ready & -ready).bit_length() - 1
                ready &= ready - 1
                if interrupts.priorities[number] < limit:
                    best, limit = first + number, interrupts.priorities[number]
        return best, limit

    @property
    def is_asserted(self) -> bool:
        return self.highest() != SPURIOUS

    def _find(self, interrupt: int) -> tuple[Interrupts, int]:
        if interrupt < PRIVATE:
            return self.private, interrupt
        return self.gic.shared, interrupt - PRIVATE

    def acknowledge(self) -> int:
        interrupt = self.highest()
        self.gic.hears(self.number, "acknowledges %d", interrupt)
        if interrupt != SPURIOUS:
            interrupts, number = self._find(interrupt)
            interrupts.active |= 1 << number
            interrupts.pended &= ~(1 << number)
            self.priorities.start(interrupts.priorities[number])
            self.gic.changed()
        return interrupt

    def end(self, value: int) -> None:
        if value & 0xFF_FFFF >= PRIVATE + SHARED or not self.priorities.bits:
            return
        self.gic.hears(self.number, "ends %d", value & 0xFF_FFFF)
        self.priorities.drop()
        if not self.drops_only:
            self._deactivate(value)
        self.gic.changed()

    def deactivate(self, value: int) -> None:
        """ICC_DIR_EL1, which is for those whose end only drops the priority."""
        if self.drops_only and value & 0xFF_FFFF < PRIVATE + SHARED:
            self._deactivate(value)
            self.gic.changed()

    def _deactivate(self, value: int) -> None:
        interrupts, number = self._find(value & 0xFF_FFFF)
        interrupts.active &= ~(1 << number)

    def set_level(self, interrupt: int, asserted: bool) -> None:
        """A private interrupt's line."""
        if self.private.set_line(interrupt, asserted):
            self.gic.hears(self.number, RAISED if asserted else LOWERED, interrupt)
            self.gic.changed()

    def claim_registers(self, registers: SystemRegisters) -> None:
        def claim(crn: int, crm: int, op2: int, access: Access) -> None:
            registers.claim(SysReg(3, 0, crn, crm, op2), access)

        claim(4, 6, 0, Access(lambda: self.mask, self._set_mask))
        claim(12, 12, 0, Access(read=self.acknowledge))
        claim(12, 12, 1, Access(write=self.end))
        claim(12, 12, 2, Access(read=self.pending))
        claim(12, 12, 3, Access(lambda: self.priorities.first_bit, self._set_binary_point))
        claim(12, 12, 4, Access(self._control, self._set_control))
        claim(12, 12, 5, Access(lambda: 7, lambda value: None))  # ICC_SRE_EL1: nothing but system registers
        claim(12, 12, 7, Access(lambda: int(self.enabled), self._set_enabled))
        claim(12, 11, 1, Access(write=self.deactivate))
        claim(12, 11, 3, Access(read=lambda: self.priorities.running))
        claim(12, 11, 5, Access(write=partial(self.gic.send, self.number)))
        claim(12, 8, 4, Access(lambda: 0, lambda value: None))  # ICC_AP0R0_EL1: of Group 0
        claim(12, 9, 0, Access(lambda: self.priorities.bits, self._set_active_priorities))

    def _set_mask(self, value: int) -> None:
        self.mask = value & PRIORITY_MASK
        self.gic.changed()

    def _set_binary_point(self, value: int) -> None:
        self.priorities.set_first_bit(value & 7)
        self.gic.changed()

    def _set_active_priorities(self, value: int) -> None:
        self.priorities.bits = value & WORD
        self.gic.changed()

    def _control(self) -> int:
        return 1 << 18 | 4 << 8 | self.drops_only << 1  # RSS; five bits of priority

    def _set_control(self, value: int) -> None:
        self.drops_only = bool(value >> 1 & 1)

    def _set_enabled(self, value: int) -> None:
        self.enabled = bool(value & 1)
        self.gic.changed()


class Gic:
    """The distributor, and what the CPUs have of it. A device by its first frame."""

    kept = "version", "enabled", "shared", "_routes", "_routed", "_control", "interfaces"
    kept_ranges = {"_routed": range(1 << SHARED)}

    def __init__(self, cpus: int, changed: Callable[[], None], version: int = GICV3) -> None:
        """`changed` is called when another interrupt may be the highest of some CPU. `version`: of the registers."""
        self.changed = changed
        self.hears: Hears = _nobody_hears
        self.version = version
        self.kept_ranges = {**self.kept_ranges, "version": range(version, version + 1)}
        self.enabled = False
        self.shared = Interrupts(SHARED)
        self._routes = [0] * SHARED
        self._routed = [0] * cpus  # masks of SPIs
        self._routed[0] = (1 << SHARED) - 1
        self._control = 0
        self.interfaces = [CpuInterface(self, number) for number in range(cpus)]

    def routed_to(self, cpu: int) -> int:
        return self._routed[cpu]

    def set_level(self, interrupt: int, asserted: bool) -> None:
        """A shared interrupt's line."""
        if self.shared.set_line(interrupt - PRIVATE, asserted):
            self.hears(None, RAISED if asserted else LOWERED, interrupt)
            self.changed()

    def send(self, sender: int, value: int) -> None:
        """ICC_SGI1R_EL1 of CPU `sender`."""
        number, to_all = value >> 24 & 15, value >> 40 & 1
        targets = (value & 0xFFFF) << 16 * (value >> 44 & 15)  # by the range selector
        for interface in self.interfaces:
            listed = not value & OTHER_AFFINITIES and targets >> interface.number & 1
            if interface.number != sender if to_all else listed:
                interface.private.pended |= 1 << number
                self.hears(sender, f"sends %d to CPU {interface.number}", number)
        self.changed()

    def read(self, offset: int, size: int) -> int:
        if offset == 0:
            return self._control | 0x50  # affinity routing; one security state
        if offset == 4:
            return (
                SHARED // 32 | 9 << 19 | 1 << 25 | 1 << 26
            )  # GICD_TYPER: ten bits of numbers, SPIs go to one CPU, RSS
        if offset == 8:
            return IMPLEMENTER
        if offset == 0xFFE8:
            return ARCHITECTURE_3
        if ROUTES + 8 * PRIVATE <= offset < ROUTES + 8 * (PRIVATE + SHARED):
            return self._routes[(offset - ROUTES) // 8 - PRIVATE] >> 8 * (offset & 4)
        inner = of_shared(offset)
        return 0 if inner is None else self.shared.read(inner, size)

    def write(self, offset: int, size: int, value: int) -> None:
        if offset == 0:
            self._control = value & 0x37
            self.enabled = bool(value & 3)
        elif ROUTES + 8 * PRIVATE <= offset < ROUTES + 8 * (PRIVATE + SHARED):
            self._route((offset - ROUTES) // 8 - PRIVATE, value if size == 8 or not offset & 4 else 0)
        elif (inner := of_shared(offset)) is not None:
            self.shared.write(inner, size, value)
        self.changed()

    def _route(self, number: int, value: int) -> None:
        """To the CPU of that affinity, or with the highest bit to any: the first."""
        self._routes[number] = value & 0xFF_80FF_FFFF
        self.route(number, 1 if value >> 31 & 1 else 1 << (value & 0xFF))

    def route(self, number: int, cpus: int) -> None:
        """That SPI to any of the CPUs of the mask."""
        for cpu in range(len(self._routed)):
            self._routed[cpu] = self._routed[cpu] & ~(1 << number) | (cpus >> cpu & 1) << number


def of_shared(offset: int) -> int | None:
    """The same register, counted from the first SPI's; None for those of private interrupts and what is none."""
    if PRIORITIES <= offset < PRIORITIES + PRIVATE + SHARED:
        return offset - PRIVATE if offset >= PRIORITIES + PRIVATE else None
    if CONFIGURATIONS <= offset < CONFIGURATIONS + (PRIVATE + SHARED) // 4:
        return offset - PRIVATE // 4 if offset >= CONFIGURATIONS + PRIVATE // 4 else None
    if GROUPS <= offset < PRIORITIES and 4 <= offset & 0x7F < 4 + SHARED // 8:
        return offset - 4
    return None


class Redistributors:
    """A device: two frames for each CPU."""

    def __init__(self, gic: Gic) -> None:
        self._gic = gic

    def read(self, offset: int, size: int) -> int:
        interface = self._gic.interfaces[offset // REDISTRIBUTOR_BYTES]
        offset %= REDISTRIBUTOR_BYTES
        if offset >= 0x1_0000:
            return interface.private.read(offset - 0x1_0000, size) if is_private(offset - 0x1_0000) else 0
        is_last = interface.number == len(self._gic.interfaces) - 1
        typer = interface.number << 32 | interface.number << 8 | is_last << 4
        return {
            0x4: IMPLEMENTER,
            0x8: typer,
            0xC: typer >> 32,
            0x14: interface.sleeps << 1 | interface.sleeps << 2,
            0xFFE8: ARCHITECTURE_3,
        }.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        interface = self._gic.interfaces[offset // REDISTRIBUTOR_BYTES]
        offset %= REDISTRIBUTOR_BYTES
        if offset == 0x14:
            interface.sleeps = bool(value & 2)
        elif offset >= 0x1_0000 and is_private(offset - 0x1_0000):
            interface.private.write(offset - 0x1_0000, size, value)
        self._gic.changed()


def is_private(offset: int) -> bool:
    return (
        (GROUPS <= offset < PRIORITIES and offset & 0x7F < 4)
        or PRIORITIES <= offset < PRIORITIES + PRIVATE
        or CONFIGURATIONS <= offset < CONFIGURATIONS + PRIVATE // 4
    )
