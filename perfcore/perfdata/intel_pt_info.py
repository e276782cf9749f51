"""What perf's decoder of Intel PT must know of a trace. As tools/perf/util/intel-pt.h, INTEL_PT_PMU_TYPE and on."""

from __future__ import annotations

import struct
from fractions import Fraction

from perfcore.perfdata.auxtrace import AuxTraceType, pack_auxtrace_info

_TSC, _NORETCOMP, _MTC, _CYC = 1 << 10, 1 << 11, 1 << 9, 1 << 1  # bits of attr.config
_MTC_PERIOD = 0xF << 14
_SWITCH_RECORDS = 2  # how it knows who executes: PERF_RECORD_SWITCH of the tasks that are traced


def intel_pt_info(
    pmu_type: int,
    time: tuple[int, int, int],
    tsc_per_crystal: Fraction,
    *,
    per_cpu: bool,
    snapshot: bool,
    max_nonturbo_ratio: int,
    filter: str,
) -> bytes:
    """`filter`: of addresses, as the kernel was told it. `time`: shift, mult and zero by which the time stamp counter
    becomes that of the records."""
    shift, mult, zero = time
    text = filter.encode()
    filtered = text.ljust((len(text) + 8) // 8 * 8, b"\0") if text else b""
    words = (
        pmu_type,
        shift,
        mult,
        zero & (1 << 64) - 1,
        1,  # cap_user_time_zero
        _TSC,
        _NORETCOMP,
        _SWITCH_RECORDS,
        int(snapshot),
        int(per_cpu),
        _MTC,
        _MTC_PERIOD,
        tsc_per_crystal.numerator,
        tsc_per_crystal.denominator,
        _CYC,
        max_nonturbo_ratio,
        len(text),
        *struct.unpack(f"<{len(filtered) // 8}Q", filtered),
    )
    return pack_auxtrace_info(AuxTraceType.INTEL_PT, words)
