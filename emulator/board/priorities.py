"""ActivePriorities: of the interrupts that a CPU has acknowledged and not ended, which decide what may preempt it.

Arm IHI 0069, "Preemption": priorities are compared without their lowest bits, as many as the binary point says.
"""

from __future__ import annotations

PRIORITY_MASK = 0xF8  # 32 priorities
LOWEST_BIT = 3
IDLE_PRIORITY = 0xFF


class ActivePriorities:
    """`bits` is ICC_AP1R0_EL1: bit n is priority 8n. None is active twice: an equal one does not preempt."""

    kept = "bits", "first_bit"

    def __init__(self) -> None:
        self.bits = 0
        self.first_bit = LOWEST_BIT  # of a priority that counts: ICC_BPR1_EL1, and GICC_BPR + 1

    def set_first_bit(self, bit: int) -> None:
        """There are no bits below LOWEST_BIT: a lower one is that."""
        self.first_bit = max(bit, LOWEST_BIT)

    @property
    def running(self) -> int:
        """The highest, or IDLE_PRIORITY: ICC_RPR_EL1."""
        return (self.bits & -self.bits).bit_length() - 1 << LOWEST_BIT if self.bits else IDLE_PRIORITY

    def are_preempted_by(self, priority: int) -> bool:
        return self._group(priority) < self.running

    def _group(self, priority: int) -> int:
        return priority >> self.first_bit << self.first_bit

    def start(self, priority: int) -> None:
        self.bits |= 1 << (self._group(priority) >> LOWEST_BIT)

    def drop(self) -> None:
        """The highest ends."""
        self.bits &= self.bits - 1
