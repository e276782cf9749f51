"""DeviceAccess: what a load or store of AArch64 asks of a device. The core says where, and the instruction all else.

Encodings: Arm ARM DDI 0487, "Loads and Stores". Pairs, exclusives, atomics and vectors are not for devices here: they
are refused by name, as by hypervisors that have to make accesses in a guest's stead.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceAccess:
    size: int  # bytes
    is_store: bool
    register: int  # Rt; 31 is the zero register
    sign_extended_to: int = 0  # bytes that a load fills with its sign; 0: it fills the rest with zeroes
    base: int | None = None  # Rn, which changes ...
    increment: int = 0  # ... by so much

    def extended(self, value: int) -> int:
        """What a load of `value` leaves in the register."""
        bits = 8 * self.size
        if self.sign_extended_to and value >> (bits - 1) & 1:
            value |= (1 << 8 * self.sign_extended_to) - (1 << bits)
        return value


def decode(word: int) -> DeviceAccess | None:
    """The access of an instruction; None for one that is none, or is not modelled here."""
    size, register = 1 << (word >> 30), word & 31
    options = word >> 22 & 3
    if word & 0x3F00_0000 == 0x3900_0000:  # unsigned offset
        return _access(size, options, register)
    if word & 0x3F20_0000 == 0x3800_0000:  # with a signed offset, which may change the base before or behind
        mode = word >> 10 & 3
        if mode in (0, 2):
            return _access(size, options, register)
        offset = (word >> 12 & 0x1FF ^ 0x100) - 0x100
        return _access(size, options, register, word >> 5 & 31, offset)
    if word & 0x3F20_0C00 == 0x3820_0800:  # register offset
        return _access(size, options, register)
    if word & 0x3FA0_FC00 == 0x0880_FC00:  # LDAR, STLR
        return DeviceAccess(size, not word >> 22 & 1, register)
    return None


def _access(size: int, options: int, register: int, base: int | None = None, increment: int = 0) -> DeviceAccess | None:
    if options <= 1:
        return DeviceAccess(size, options == 0, register, 0, base, increment)
    extended_to = 8 if options == 2 else 4
    if size >= extended_to:
        return None  # PRFM, and what is not allocated
    return DeviceAccess(size, False, register, extended_to, base, increment)
