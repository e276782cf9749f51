"""GICv2: the older interrupt controller's registers, all of them in memory, over the same state that GICv3's are over.

Registers: Arm IHI 0048, "Programmers' Model", without the Security Extensions: there is one group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.board.gic import (
    CONFIGURATIONS,
    GROUPS,
    IMPLEMENTER,
    PRIVATE,
    SHARED,
    SPURIOUS,
    CpuInterface,
    Gic,
    Interrupts,
    is_private,
    of_shared,
)
from emulator.board.priorities import PRIORITY_MASK

MOST_CPUS = 8
TARGETS, SEND, CLEAR_SENT, SET_SENT = 0x800, 0xF00, 0xF10, 0xF20  # GICD_ITARGETSR, SGIR, CPENDSGIR, SPENDSGIR
IDENTIFICATION, ARCHITECTURE_2 = 0xFE8, 0x2B  # ICPIDR2
INTERFACE_BYTES = 0x2000
SENT = 16  # interrupts that CPUs send each other
TO_OTHERS, TO_ITSELF = 1, 2  # GICD_SGIR.TargetListFilter


class Senders:
    """Who has sent each CPU which interrupt: a mask of CPUs for each."""

    def __init__(self, gic: Gic) -> None:
        self._gic = gic
        self._masks = [[0] * SENT for _ in gic.interfaces]

    def of(self, cpu: int, number: int) -> int:
        return self._masks[cpu][number]

    def change(self, cpu: int, number: int, mask: int) -> None:
        self._masks[cpu][number] = mask
        private = self._gic.interfaces[cpu].private
        private.pended = private.pended | 1 << number if mask else private.pended & ~(1 << number)


class Distributor:
    """A device. What it says of interrupts below 32 is of the CPU that asks."""

    def __init__(self, gic: Gic, senders: Senders, current: Callable[[], int]) -> None:
        """`current`: the CPU that makes the access."""
        self._gic = gic
        self._senders = senders
        self._current = current
        self._targets = bytearray([1]) * SHARED
        gic.shared.groups = (1 << SHARED) - 1
        for interface in gic.interfaces:
            interface.private.groups = (1 << PRIVATE) - 1

    def read(self, offset: int, size: int) -> int:
        return sum(self._byte(offset + number) << 8 * number for number in range(min(size, 4)))

    def _byte(self, offset: int) -> int:
        word, shift = offset & ~3, 8 * (offset & 3)
        if TARGETS <= offset < TARGETS + PRIVATE:
            return 1 << self._current()
        if TARGETS + PRIVATE <= offset < TARGETS + PRIVATE + SHARED:
            return self._targets[offset - TARGETS - PRIVATE]
        if CLEAR_SENT <= offset < SET_SENT + SENT:
            return self._senders.of(self._current(), (offset - CLEAR_SENT) % SENT)
        if GROUPS + 0x80 <= offset < SEND:
            if is_private(word):
                return self._private.read(word, 4) >> shift & 0xFF
            inner = of_shared(word)
            return 0 if inner is None else self._gic.shared.read(inner, 4) >> shift & 0xFF
        lines = SHARED // 32 | len(self._gic.interfaces) - 1 << 5  # GICD_TYPER
        fixed = {0: int(self._gic.enabled), 4: lines, 8: IMPLEMENTER, IDENTIFICATION: ARCHITECTURE_2}
        return fixed.get(word, 0) >> shift & 0xFF

    @property
    def _private(self) -> Interrupts:
        return self._gic.interfaces[self._current()].private

    def write(self, offset: int, size: int, value: int) -> None:
        size = min(size, 4)
        if offset == 0:
            self._gic.enabled = bool(value & 1)
        elif offset == SEND:
            self._send(value)
        elif TARGETS <= offset < CONFIGURATIONS:
            self._set_targets(offset - TARGETS - PRIVATE, (value & 0xFFFF_FFFF).to_bytes(4, "little")[:size])
        elif CLEAR_SENT <= offset < SET_SENT + SENT:
            self._change_sent(offset, (value & 0xFFFF_FFFF).to_bytes(4, "little")[:size])
        elif GROUPS + 0x80 <= offset < SEND:
            value &= (1 << 8 * size) - 1
            if is_private(offset):
                self._private.write(offset, size, value)
            elif (inner := of_shared(offset)) is not None:
                self._gic.shared.write(inner, size, value)
        self._gic.changed()

    def _set_targets(self, first: int, masks: bytes) -> None:
        for number, mask in enumerate(masks, first):
            if 0 <= number < SHARED:
                self._targets[number] = mask & (1 << len(self._gic.interfaces)) - 1
                self._gic.route(number, self._targets[number])

    def _send(self, value: int) -> None:
        sender, how = self._current(), value >> 24 & 3
        listed = {TO_OTHERS: 0xFF & ~(1 << sender), TO_ITSELF: 1 << sender}.get(how, value >> 16 & 0xFF)
        for cpu in range(len(self._gic.interfaces)):
            if listed >> cpu & 1:
                number = value & 15
                self._gic.hears(sender, f"sends %d to CPU {cpu}", number)
                self._senders.change(cpu, number, self._senders.of(cpu, number) | 1 << sender)

    def _change_sent(self, offset: int, masks: bytes) -> None:
        cpu = self._current()
        for number, mask in enumerate(masks, offset - CLEAR_SENT):
            if number < 2 * SENT:
                before = self._senders.of(cpu, number % SENT)
                self._senders.change(cpu, number % SENT, before & ~mask if number < SENT else before | mask)


class Interfaces:
    """A device: of each CPU its own, at one address."""

    def __init__(self, gic: Gic, senders: Senders, current: Callable[[], int]) -> None:
        self._gic = gic
        self._senders = senders
        self._current = current
        self._reads: Mapping[int, Callable[[CpuInterface], int]] = {
            0x00: lambda cpu: cpu.enabled | cpu.drops_only << 9,
            0x04: lambda cpu: cpu.mask,
            0x08: lambda cpu: cpu.priorities.first_bit - 1,
            0x0C: self._acknowledge,
            0x14: lambda cpu: cpu.priorities.running,
            0x18: lambda cpu: self._with_sender(cpu, cpu.pending()),
            0xFC: lambda cpu: 2 << 16 | IMPLEMENTER,
        }
        self._writes: Mapping[int, Callable[[CpuInterface, int], None]] = {
            0x00: self._set_control,
            0x04: lambda cpu, value: setattr(cpu, "mask", value & PRIORITY_MASK),
            0x08: lambda cpu, value: cpu.priorities.set_first_bit((value & 7) + 1),
            0x10: lambda cpu, value: cpu.end(value & SPURIOUS),
            0x1000: lambda cpu, value: cpu.deactivate(value & SPURIOUS),
        }

    def read(self, offset: int, size: int) -> int:
        read = self._reads.get(offset)
        return 0 if read is None else read(self._gic.interfaces[self._current()])

    def write(self, offset: int, size: int, value: int) -> None:
        write = self._writes.get(offset)
        if write is not None:
            write(self._gic.interfaces[self._current()], value)
            self._gic.changed()

    def _set_control(self, cpu: CpuInterface, value: int) -> None:
        cpu.enabled, cpu.drops_only = bool(value & 1), bool(value >> 9 & 1)

    def _with_sender(self, cpu: CpuInterface, interrupt: int) -> int:
        """An interrupt that was sent says by whom: of several the first."""
        senders = self._senders.of(cpu.number, interrupt) if interrupt < SENT else 0
        return interrupt | ((senders & -senders).bit_length() - 1 << 10 if senders else 0)

    def _acknowledge(self, cpu: CpuInterface) -> int:
        found = self._with_sender(cpu, cpu.acknowledge())
        number = found & SPURIOUS
        if number < SENT:
            self._senders.change(cpu.number, number, self._senders.of(cpu.number, number) & ~(1 << (found >> 10)))
            self._gic.changed()
        return found
