"""What CPUID says of architectural perfmon: leaf 0AH, and 23H from version 6 on. Intel SDM volume 2, "CPUID"."""

from __future__ import annotations

from pmu.model import PmuModel

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
_PDCM = 1 << 15  # leaf 1, ECX: IA32_PERF_CAPABILITIES is there

ARCHITECTURAL_EVENTS = (0x003C, 0x00C0, 0x013C, 0x4F2E, 0x412E, 0x00C4, 0x00C5, 0x01A4)
"""UMASK:EVENT of core cycles, instructions, reference cycles, last-level references and misses, branches, branch
mispredictions, slots: bits 0..7 of leaf 0AH, EBX (not there), and of leaf 23H, subleaf 3, EAX (there)."""
EVENTS_BEFORE_SLOTS = 7
BITMAP_VERSION = 5  # which fixed counters there are, by a bit each; and ANY is no more
EXTENDED_VERSION = 6  # leaf 23H
ANY_DEPRECATED = 1 << 15
EXTENDED_LEAF_IS_THERE = 1 << 8  # leaf 7, subleaf 1, EAX


def _there(model: PmuModel) -> int:
    return sum(1 << bit for bit, code in enumerate(ARCHITECTURAL_EVENTS) if model.events.by_code(code) is not None)


def cpuid_leaf_0a(model: PmuModel) -> Leaf:
    width = model.fixed_counters[0].width_bits if model.fixed_counters else 0
    events = len(ARCHITECTURAL_EVENTS) if model.version >= BITMAP_VERSION else EVENTS_BEFORE_SLOTS
    eax = model.version | model.counters << 8 | model.counter_width_bits << 16 | events << 24
    ebx = ~_there(model) & (1 << events) - 1
    edx = len(model.fixed_counters) | width << 5
    if model.version < BITMAP_VERSION:
        return eax, ebx, 0, edx
    return eax, ebx, (1 << len(model.fixed_counters)) - 1, edx | ANY_DEPRECATED


def cpuid_leaf_23(model: PmuModel, subleaf: int) -> Leaf:
    """Subleaf 0 says that 0, 1 and 3 are there: no UMASK2, no EQ, and no counter that reloads itself (2)."""
    if model.version < EXTENDED_VERSION:
        return 0, 0, 0, 0
    subleaves = {
        0: (0b1011, 0, 0, 0),
        1: ((1 << model.counters) - 1, (1 << len(model.fixed_counters)) - 1, 0, 0),
        3: (_there(model), 0, 0, 0),
    }
    return subleaves.get(subleaf, (0, 0, 0, 0))


def answer(model: PmuModel, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
    """CPUID of a processor with this PMU, which without would say `plain`."""
    eax, ebx, ecx, edx = plain
    if leaf == 0xA:
        return cpuid_leaf_0a(model)
    if model.version < EXTENDED_VERSION:
        return plain
    if leaf == 0x0:  # the largest leaf
        return max(eax, 0x23), ebx, ecx, edx
    if leaf == 0x7 and subleaf == 0:  # the largest subleaf
        return max(eax, 1), ebx, ecx, edx
    if leaf == 0x7 and subleaf == 1:
        return eax | EXTENDED_LEAF_IS_THERE, ebx, ecx, edx
    return cpuid_leaf_23(model, subleaf) if leaf == 0x23 else plain


def cpuid_of(model: PmuModel, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
    """To a kernel, which has all of the model's registers."""
    if leaf == 0x1:
        return plain[0], plain[1], plain[2] | _PDCM, plain[3]
    return answer(model, leaf, subleaf, plain)
