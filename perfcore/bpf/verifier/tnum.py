"""Tristate numbers: 64 bits of which some are known. linux/tnum.h.

The addition, subtraction and multiplication are those of Vishwanathan, Shachnai, Narayana and Nagarakatte,
"Sound, Precise, and Fast Abstract Interpretation with Tristate Numbers", CGO 2022.
"""

from __future__ import annotations

from typing import NamedTuple

MASK64 = (1 << 64) - 1


class Tnum(NamedTuple):
    """A bit of `mask` is unknown; of the others `value` has what they are."""

    value: int
    mask: int

    @property
    def is_const(self) -> bool:
        return not self.mask

    def is_aligned(self, size: int) -> bool:
        return not (self.value | self.mask) & size - 1

    def contains(self, other: Tnum) -> bool:
        """Whether whatever `other` may be, this may be."""
        return not other.mask & ~self.mask and other.value & ~self.mask == self.value

    def intersect(self, other: Tnum) -> Tnum:
        """What is known of a number that is both."""
        mask = self.mask & other.mask
        return Tnum((self.value | other.value) & ~mask, mask)

    def add(self, other: Tnum) -> Tnum:
        masks = self.mask + other.mask
        values = self.value + other.value
        unknown = (masks + values ^ values | self.mask | other.mask) & MASK64
        return Tnum(values & ~unknown & MASK64, unknown)

    def sub(self, other: Tnum) -> Tnum:
        difference = self.value - other.value
        unknown = ((difference + self.mask ^ difference - other.mask) | self.mask | other.mask) & MASK64
        return Tnum(difference & ~unknown & MASK64, unknown)

    def bitwise_and(self, other: Tnum) -> Tnum:
        may = (self.value | self.mask) & (other.value | other.mask)
        value = self.value & other.value
        return Tnum(value, may & ~value)

    def bitwise_or(self, other: Tnum) -> Tnum:
        value = self.value | other.value
        return Tnum(value, (self.mask | other.mask) & ~value)

    def bitwise_xor(self, other: Tnum) -> Tnum:
        mask = self.mask | other.mask
        return Tnum((self.value ^ other.value) & ~mask, mask)

    def multiply(self, other: Tnum) -> Tnum:
        known = Tnum(self.value * other.value & MASK64, 0)
        unknown = Tnum(0, 0)
        left, right = self, other
        while left.value or left.mask:
            if left.value & 1:
                unknown = unknown.add(Tnum(0, right.mask))
            elif left.mask & 1:
                unknown = unknown.add(Tnum(0, right.value | right.mask))
            left = Tnum(left.value >> 1, left.mask >> 1)
            right = Tnum(right.value << 1 & MASK64, right.mask << 1 & MASK64)
        return known.add(unknown)

    def shifted_left(self, by: int) -> Tnum:
        return Tnum(self.value << by & MASK64, self.mask << by & MASK64)

    def shifted_right(self, by: int) -> Tnum:
        return Tnum(self.value >> by, self.mask >> by)

    def low(self, bits: int) -> Tnum:
        """Zeroes above."""
        kept = (1 << bits) - 1
        return Tnum(self.value & kept, self.mask & kept)


UNKNOWN = Tnum(0, MASK64)


def const(value: int) -> Tnum:
    return Tnum(value & MASK64, 0)


def between(least: int, most: int) -> Tnum:
    """The bits that all numbers from `least` to `most` have in common."""
    mask = (1 << (least ^ most).bit_length()) - 1
    return Tnum(least & ~mask, mask)
