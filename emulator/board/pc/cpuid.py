"""What CPUID answers on a pc: what it does for programs, and what is for kernels. Intel SDM volume 2, "CPUID"."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from emulator.arch.cpuid import INTEL, Cpuid, Leaf
from emulator.arch.processor import Processor
from emulator.board.pc.apic_timer import INPUT_HZ
from emulator.board.pc.msrs import BUS_HZ

MAX_BASIC = 0x16  # of Intel's
MHZ = 1_000_000
_X2APIC, _TSC_DEADLINE = 1 << 21, 1 << 24  # leaf 1, ECX
_APIC = 1 << 9  # EDX
_MTRR = 1 << 12  # EDX
_SMEP = 1 << 7  # leaf 7, EBX
_UMIP = 1 << 2  # ECX
_IBRS, _ARCH_CAPABILITIES = 1 << 26, 1 << 29  # EDX
_ARAT = 1 << 2  # leaf 6, EAX: the local APIC's timer never stops
_ADDRESSES = 0x8000_0008
PHYSICAL_BITS = 40  # that the core's page tables have


class PcCpuid:
    """Of CPU `number`, without its PMU."""

    def __init__(self, processor: Processor, number: int) -> None:
        self._cpuid = Cpuid(processor, number)
        self.apic_is_on: Callable[[], bool] = lambda: True  # what IA32_APIC_BASE says
        intel = processor.vendor == INTEL
        ratio = Fraction(processor.frequency_hz, INPUT_HZ)
        base_mhz = processor.frequency_hz // MHZ
        self._also: dict[tuple[int, int], Leaf] = {  # bits besides
            (0x1, 0): (0, 0, _X2APIC | _TSC_DEADLINE, _MTRR),
            (0x7, 0): (0, _SMEP, _UMIP, _IBRS | _ARCH_CAPABILITIES if intel else 0),
        }
        self._only: dict[int, Leaf] = {0x6: (_ARAT, 0, 0, 0)}
        if intel:
            self._only |= {
                0x0: (MAX_BASIC, *self._cpuid(0x0, 0)[1:]),
                0x15: (
                    ratio.denominator,
                    ratio.numerator,
                    INPUT_HZ,
                    0,
                ),  # the time stamp counter's and the APIC timer's
                0x16: (base_mhz, base_mhz, BUS_HZ // MHZ, 0),
            }

    def __call__(self, leaf: int, subleaf: int) -> Leaf:
        if (only := self._only.get(leaf)) is not None:
            return only
        eax, ebx, ecx, edx = self._cpuid(leaf, subleaf)
        if leaf == _ADDRESSES:
            eax = eax & ~0xFF | PHYSICAL_BITS
        if leaf == 0x1 and not self.apic_is_on():
            edx &= ~_APIC
        also = self._also.get((leaf, subleaf if leaf == 0x7 else 0))
        if also is None:
            return eax, ebx, ecx, edx
        return eax | also[0], ebx | also[1], ecx | also[2], edx | also[3]
