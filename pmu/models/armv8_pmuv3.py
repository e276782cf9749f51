"""armv8_pmuv3: PMUv3 for Armv8.1 (PMUv3p1) with the common events that the core's probes can tell.

Codes and names: Arm ARM DDI 0487, "Common event numbers". Counters as Cortex-A72: six of 32 bits, and cycles.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_v3
from pmu.arm.event_rows import rows
from pmu.event import EventList
from pmu.generic_events import HardwareId

EVENTS = EventList(rows(
    """
    SW_INCR LD_RETIRED ST_RETIRED INST_RETIRED EXC_TAKEN PC_WRITE_RETIRED BR_IMMED_RETIRED
    BR_RETURN_RETIRED CPU_CYCLES MEM_ACCESS INST_SPEC CHAIN BR_RETIRED MEM_ACCESS_RD MEM_ACCESS_WR LDREX_SPEC STREX_SPEC
    LD_SPEC ST_SPEC LDST_SPEC DP_SPEC ASE_SPEC VFP_SPEC PC_WRITE_SPEC CRYPTO_SPEC BR_IMMED_SPEC BR_RETURN_SPEC
    BR_INDIRECT_SPEC ISB_SPEC DSB_SPEC DMB_SPEC EXC_UNDEF EXC_SVC EXC_PABORT EXC_DABORT
    """
))  # fmt: skip

MODEL = pmu_v3(
    "armv8_pmuv3",
    EVENTS,
    {
        HardwareId.CPU_CYCLES: "CPU_CYCLES",
        HardwareId.INSTRUCTIONS: "INST_RETIRED",
        HardwareId.BRANCH_INSTRUCTIONS: "BR_RETIRED",
    },
)
