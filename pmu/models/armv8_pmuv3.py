"""armv8_pmuv3: PMUv3 for Armv8.1 (PMUv3p1) with the common events that the core's probes can tell.

Codes and names: Arm ARM DDI 0487, "Common event numbers". Counters as Cortex-A72: six of 32 bits, and cycles.
"""

from __future__ import annotations

from pmu.arm.event_rows import rows
from pmu.event import EventList
from pmu.model import FixedCounter, FormatField, PmuModel, Role

EVENTS = EventList(rows(
    """
    SW_INCR LD_RETIRED ST_RETIRED INST_RETIRED EXC_TAKEN EXC_RETURN PC_WRITE_RETIRED BR_IMMED_RETIRED
    BR_RETURN_RETIRED CPU_CYCLES MEM_ACCESS INST_SPEC CHAIN BR_RETIRED MEM_ACCESS_RD MEM_ACCESS_WR LDREX_SPEC STREX_SPEC
    LD_SPEC ST_SPEC LDST_SPEC DP_SPEC ASE_SPEC VFP_SPEC PC_WRITE_SPEC CRYPTO_SPEC BR_IMMED_SPEC BR_RETURN_SPEC
    BR_INDIRECT_SPEC ISB_SPEC DSB_SPEC DMB_SPEC EXC_UNDEF EXC_SVC EXC_PABORT EXC_DABORT
    """
))  # fmt: skip

MODEL = PmuModel(
    name="armv8_pmuv3",
    isa="aarch64",
    sysfs_name="armv8_pmuv3_0",
    driver="arm_pmuv3",
    version=4,  # PMUv3p1: event numbers of 16 bits
    identification=0x41 << 24,  # PMCR_EL0.IMP: Arm Limited; IDCODE 0: see MIDR_EL1
    counters=6,
    most_counters=31,
    counter_width_bits=32,
    fixed_counters=(FixedCounter("CPU_CYCLES", 0x0011, 64),),
    events=EVENTS,
    format=(
        FormatField("event", 0, 15),
        FormatField("long", 0, 0, Role.OPTION, "config1"),
        FormatField("rdpmc", 1, 1, Role.OPTION, "config1"),
    ),
    generic_events={
        "PERF_COUNT_HW_CPU_CYCLES": "CPU_CYCLES",
        "PERF_COUNT_HW_INSTRUCTIONS": "INST_RETIRED",
        "PERF_COUNT_HW_BRANCH_INSTRUCTIONS": "BR_RETIRED",
    },
    sysfs_aliases={  # as arm_pmuv3.c: the common events that PMCEID0/1 announce, in lower case
        event.name.lower(): event.name
        for event in EVENTS
        if event.listed and (event.code < 0x40 or 0x4000 <= event.code < 0x4040)
    },
)
