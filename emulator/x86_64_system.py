"""Registers of an x86-64 processor that only a kernel reaches, by the numbers of ``Core.read_kernel_register``.

A number below `MACHINE` is an MSR's own, of those that the core keeps itself. Shared with
``native/x86_64_system/registers.cpp``.
"""

from __future__ import annotations

from enum import IntEnum

MACHINE = 0xFFFF_0000
SEGMENT = MACHINE + 0x100


class SystemRegister(IntEnum):
    TSC = 0x10
    SYSENTER_CS = 0x174
    SYSENTER_ESP = 0x175
    SYSENTER_EIP = 0x176
    EFER = 0xC000_0080
    STAR = 0xC000_0081
    LSTAR = 0xC000_0082
    CSTAR = 0xC000_0083
    SFMASK = 0xC000_0084
    FS_BASE = 0xC000_0100
    GS_BASE = 0xC000_0101
    KERNEL_GS_BASE = 0xC000_0102
    TSC_AUX = 0xC000_0103
    CR0 = MACHINE
    CR2 = MACHINE + 2
    CR3 = MACHINE + 3
    CR4 = MACHINE + 4
    CR8 = MACHINE + 8
    DR0 = MACHINE + 0x10
    DR1 = MACHINE + 0x11
    DR2 = MACHINE + 0x12
    DR3 = MACHINE + 0x13
    DR6 = MACHINE + 0x16
    DR7 = MACHINE + 0x17
    GDT_BASE = MACHINE + 0x20
    GDT_LIMIT = MACHINE + 0x21
    IDT_BASE = MACHINE + 0x22
    IDT_LIMIT = MACHINE + 0x23
    CPL = MACHINE + 0x30
    IS_AMD = MACHINE + 0x31  # SYSCALL and SYSENTER are AMD's, not Intel's


class SegmentRegister(IntEnum):
    ES = 0
    CS = 1
    SS = 2
    DS = 3
    FS = 4
    GS = 5
    LDTR = 6
    TR = 7


class SegmentField(IntEnum):
    SELECTOR = 0
    BASE = 1
    LIMIT = 2  # in bytes, the last one that may be accessed
    ATTRIBUTES = 3  # type 0-3, S 4, DPL 5-6, P 7, L 13, D/B 14, G 15; unusable 16


def segment(register: SegmentRegister, field: SegmentField) -> int:
    return SEGMENT + 0x10 * register + field
