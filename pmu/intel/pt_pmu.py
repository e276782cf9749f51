"""The PMU of Intel PT, as data."""

from __future__ import annotations

from pmu.format_field import FormatField
from pmu.intel.pt_registers import IA32_RTIT_CTL
from pmu.unit_pmu import UnitPmu

_FORMAT = (  # arch/x86/events/intel/pt.c, pt_formats_attr: bits of IA32_RTIT_CTL
    FormatField("pt", 0, 0),
    FormatField("cyc", 1, 1),
    FormatField("pwr_evt", 4, 4),
    FormatField("fup_on_ptw", 5, 5),
    FormatField("mtc", 9, 9),
    FormatField("tsc", 10, 10),
    FormatField("noretcomp", 11, 11),
    FormatField("ptw", 12, 12),
    FormatField("branch", 13, 13),
    FormatField("event", 31, 31),
    FormatField("notnt", 55, 55),
    FormatField("mtc_period", 14, 17),
    FormatField("cyc_thresh", 19, 22),
    FormatField("psb_period", 24, 27),
)
# tools/perf/arch/x86/util/intel-pt.c, intel_pt_default_config: times by TSC and, each 8 ticks of the crystal clock,
# MTC; a PSB each 16 KiB; branches
_DEFAULT = IA32_RTIT_CTL.make(TRACE_EN=1, TSC_EN=1, MTC_EN=1, MTC_FREQ=3, PSB_FREQ=3, BRANCH_EN=1)
PMUS = (
    UnitPmu(
        "intel_pt",
        _FORMAT,
        (),
        unit="pt",
        default_config=_DEFAULT,
        goes_into_samples=True,
        address_filters=True,
        note="a trace of what user mode executes",
    ),
)
