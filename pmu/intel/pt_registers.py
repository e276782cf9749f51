"""Registers of Intel Processor Trace. Intel SDM volume 3, "Intel Processor Trace", and volume 4 by their names."""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.register import RO, RW, Bank, Register

ADDRESS_RANGES = 4  # that the architecture has room for


class IA32_RTIT_OUTPUT_BASE(Register):
    """Trace Output Base. Physical: of the table of regions, or of the only one."""

    encoding = Msr(0x560)
    reserved_bits_fault = True

    BASE = RW(51, 7)


class IA32_RTIT_OUTPUT_MASK_PTRS(Register):
    """Trace Output Mask Pointers. Where the next byte goes."""

    encoding = Msr(0x561)

    LOWER_MASK = RO(6, 0)  # always ones
    MASK_OR_TABLE_OFFSET = RW(31, 7)  # of the only region, its size less one; or which entry of the table, 8 bytes each
    OUTPUT_OFFSET = RW(63, 32)  # in the region


class IA32_RTIT_CTL(Register):
    """Trace Control."""

    encoding = Msr(0x570)
    reserved_bits_fault = True

    TRACE_EN = RW(0)
    CYC_EN = RW(1)
    OS = RW(2)  # levels below 3
    USER = RW(3)
    PWR_EVT_EN = RW(4)  # where the processor sleeps
    FUP_ON_PTW = RW(5)  # the address of each PTWRITE, too
    CR3_EN = RW(7)  # only the address space of IA32_RTIT_CR3_MATCH
    TOPA = RW(8)  # the output goes by a table
    MTC_EN = RW(9)
    TSC_EN = RW(10)
    DIS_RETC = RW(11)  # returns are not compressed
    PTW_EN = RW(12)  # what PTWRITE writes
    BRANCH_EN = RW(13)
    MTC_FREQ = RW(17, 14)  # a packet for each 2**n ticks of the crystal clock
    CYC_THRESH = RW(22, 19)  # 2**(n-1) cycles between two packets at least; 0: any
    PSB_FREQ = RW(27, 24)  # 2**(n+11) bytes between two PSBs
    ADDR0_CFG = RW(35, 32)  # 1: only what is in the range is traced; 2: tracing ends where it is entered
    ADDR1_CFG = RW(39, 36)
    ADDR2_CFG = RW(43, 40)
    ADDR3_CFG = RW(47, 44)


class IA32_RTIT_STATUS(Register):
    """Tracing Status."""

    encoding = Msr(0x571)
    reserved_bits_fault = True

    FILTER_EN = RO(0)  # the address that executes is in a range
    CONTEXT_EN = RO(1)  # the level that executes is traced
    TRIGGER_EN = RO(2)  # tracing is on, and has neither stopped nor failed
    ERROR = RW(4)  # the table of regions is malformed
    STOPPED = RW(5)  # a region with STOP is full, or a range has been entered where tracing ends
    PACKET_BYTE_CNT = RW(48, 32)  # since the last PSB


class IA32_RTIT_CR3_MATCH(Register):
    """Trace Filter CR3 Match."""

    encoding = Msr(0x572)
    reserved_bits_fault = True

    CR3 = RW(63, 5)


class IA32_RTIT_ADDR_A(Register):
    """Region Start Address."""

    bank = Bank(ADDRESS_RANGES, "IA32_RTIT_ADDR{}_A", lambda n: Msr(0x580 + 2 * n))

    VIRTUAL_ADDRESS = RW(63, 0)


class IA32_RTIT_ADDR_B(Register):
    """Region End Address. The last one that is in it."""

    bank = Bank(ADDRESS_RANGES, "IA32_RTIT_ADDR{}_B", lambda n: Msr(0x581 + 2 * n))

    VIRTUAL_ADDRESS = RW(63, 0)


class TOPA_ENTRY(Register):
    """An entry of the table of physical addresses. In memory."""

    END = RW(0)  # BASE is the address of the next table
    INT = RW(2)  # an interrupt when the region is full
    STOP = RW(4)  # tracing stops then
    SIZE = RW(9, 6)  # 4 KiB << n
    BASE = RW(51, 12)


class IA32_PERF_GLOBAL_STATUS_TRACE(Register):
    """The bit of IA32_PERF_GLOBAL_STATUS that the trace unit sets, beside those of the counters."""

    encoding = Msr(0x38E)

    TRACE_TOPA_PMI = RO(55)


class IA32_PERF_GLOBAL_STATUS_RESET_TRACE(Register):
    """... and of the register that clears it."""

    encoding = Msr(0x390)

    TRACE_TOPA_PMI = RW(55)
