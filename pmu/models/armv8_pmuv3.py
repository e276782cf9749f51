"""armv8_pmuv3: PMUv3 for Armv8.1 (PMUv3p1) with the common events that the core's probes can tell.

Codes and names: Arm ARM DDI 0487, "Common event numbers". Counters as Cortex-A72: six of 32 bits, and cycles.
"""

from __future__ import annotations

from emulator.probes import Probe
from pmu.event import Event, EventList, Support
from pmu.model import FixedCounter, FormatField, PmuModel, Role

NO_SPECULATION = "nothing is executed speculatively: counts what retires"
ONE_ACCESS = "one for an instruction that reads or writes; hardware may count a pair or an unaligned access as two"
FROM_EL0 = "counted at EL0, where the exception is taken from"

EVENTS = EventList([
    Event(0x0000, "SW_INCR", (), note="counted by writes to PMSWINC_EL0"),
    Event(0x0006, "LD_RETIRED", (Probe.LOAD,)),
    Event(0x0007, "ST_RETIRED", (Probe.STORE,)),
    Event(0x0008, "INST_RETIRED", (Probe.INST_RETIRED,)),
    Event(0x0009, "EXC_TAKEN", (Probe.EXC_TAKEN,), Support.APPROXIMATE, FROM_EL0),
    Event(0x000A, "EXC_RETURN", (Probe.EXC_RETURN,), note="ERET retires at EL1: 0 with the kernel excluded",
          in_kernel=True),
    Event(0x000C, "PC_WRITE_RETIRED", (Probe.BR_TAKEN,), note="branches that are taken; SVC is not one"),
    Event(0x000D, "BR_IMMED_RETIRED", (Probe.BR_IMMED,)),
    Event(0x000E, "BR_RETURN_RETIRED", (Probe.BR_RETURN,)),
    Event(0x0011, "CPU_CYCLES", (Probe.CYCLES,), note="the core's own: on the ideal core one cycle an instruction"),
    Event(0x0013, "MEM_ACCESS", (Probe.LOAD, Probe.STORE), Support.APPROXIMATE, ONE_ACCESS),
    Event(0x001B, "INST_SPEC", (Probe.INST_RETIRED,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x001E, "CHAIN", (), note="counts overflows of the even counter before an odd one", listed=False),
    Event(0x0021, "BR_RETIRED", (Probe.BR_RETIRED,)),
    Event(0x0066, "MEM_ACCESS_RD", (Probe.LOAD,), Support.APPROXIMATE, ONE_ACCESS),
    Event(0x0067, "MEM_ACCESS_WR", (Probe.STORE,), Support.APPROXIMATE, ONE_ACCESS),
    Event(0x006C, "LDREX_SPEC", (Probe.LOAD_EXCLUSIVE,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x006F, "STREX_SPEC", (Probe.STORE_EXCLUSIVE,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0070, "LD_SPEC", (Probe.LOAD,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0071, "ST_SPEC", (Probe.STORE,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0072, "LDST_SPEC", (Probe.LOAD, Probe.STORE), Support.APPROXIMATE,
          f"{NO_SPECULATION}; an atomic that reads and writes counts twice"),
    Event(0x0073, "DP_SPEC", (Probe.INT_OP,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0074, "ASE_SPEC", (Probe.SIMD_OP,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0075, "VFP_SPEC", (Probe.FP_OP,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0076, "PC_WRITE_SPEC", (Probe.BR_TAKEN,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0077, "CRYPTO_SPEC", (Probe.CRYPTO_OP,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0078, "BR_IMMED_SPEC", (Probe.BR_IMMED,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0079, "BR_RETURN_SPEC", (Probe.BR_RETURN,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x007A, "BR_INDIRECT_SPEC", (Probe.BR_INDIRECT, Probe.BR_RETURN), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x007C, "ISB_SPEC", (Probe.ISB,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x007D, "DSB_SPEC", (Probe.DSB,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x007E, "DMB_SPEC", (Probe.DMB,), Support.APPROXIMATE, NO_SPECULATION),
    Event(0x0081, "EXC_UNDEF", (Probe.EXC_UNDEF,), Support.APPROXIMATE, FROM_EL0),
    Event(0x0082, "EXC_SVC", (Probe.EXC_SVC,), Support.APPROXIMATE, FROM_EL0),
    Event(0x0083, "EXC_PABORT", (Probe.EXC_PABORT,), Support.APPROXIMATE, FROM_EL0),
    Event(0x0084, "EXC_DABORT", (Probe.EXC_DABORT,), Support.APPROXIMATE, FROM_EL0),
])  # fmt: skip

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
