"""intel_arch_perfmon: architectural perfmon version 4 with Skylake's names for what the core's probes can tell.

Codes and names: Intel's event list of Skylake. Counters as Skylake with Hyper-Threading: four
and three fixed, of 48 bits.
"""

from __future__ import annotations

from emulator.probes import Probe
from pmu.event import Event, EventList, Support
from pmu.model import FixedCounter, FormatField, PmuModel, Role

FAR_TOO = "SYSCALL and INT n, which are far, are counted too"
BY_ITERATION = "REP string instructions count by iteration; hardware moves wider pieces"
OWN_CYCLES = "the core's own: on the ideal core one cycle an instruction"

EVENTS = EventList([
    # fixed counters; the list gives them event 0x00
    Event(0x0100, "INST_RETIRED.ANY", (Probe.INST_RETIRED,)),
    Event(0x0200, "CPU_CLK_UNHALTED.THREAD", (Probe.CYCLES,), note=OWN_CYCLES),
    Event(0x0300, "CPU_CLK_UNHALTED.REF_TSC", (Probe.CYCLES,), Support.APPROXIMATE,
          "the time stamp counter runs at the core's frequency, so the same as cycles"),
    # general-purpose counters
    Event(0x003C, "CPU_CLK_UNHALTED.THREAD_P", (Probe.CYCLES,), note=OWN_CYCLES),
    Event(0x00C0, "INST_RETIRED.ANY_P", (Probe.INST_RETIRED,), note="REP string instructions retire once"),
    Event(0x00C4, "BR_INST_RETIRED.ALL_BRANCHES", (Probe.BR_RETIRED,)),
    Event(0x01C4, "BR_INST_RETIRED.CONDITIONAL", (Probe.BR_COND,)),
    Event(0x01C4, "BR_INST_RETIRED.COND", (Probe.BR_COND,)),
    Event(0x02C4, "BR_INST_RETIRED.NEAR_CALL", (Probe.BR_CALL,)),
    Event(0x08C4, "BR_INST_RETIRED.NEAR_RETURN", (Probe.BR_RETURN,)),
    Event(0x20C4, "BR_INST_RETIRED.NEAR_TAKEN", (Probe.BR_TAKEN,), Support.APPROXIMATE, FAR_TOO),
    Event(0x40C4, "BR_INST_RETIRED.FAR_BRANCH", (Probe.EXC_SVC,), Support.APPROXIMATE,
          "SYSCALL only: interrupts, faults and returns from the kernel are not counted"),
    Event(0x21D0, "MEM_INST_RETIRED.LOCK_LOADS", (Probe.LOCKED,)),
    Event(0x81D0, "MEM_INST_RETIRED.ALL_LOADS", (Probe.LOAD,), Support.APPROXIMATE, BY_ITERATION),
    Event(0x82D0, "MEM_INST_RETIRED.ALL_STORES", (Probe.STORE,), Support.APPROXIMATE, BY_ITERATION),
    Event(0x83D0, "MEM_INST_RETIRED.ANY", (Probe.LOAD, Probe.STORE), Support.APPROXIMATE,
          f"{BY_ITERATION}; a read-modify-write counts twice"),
])  # fmt: skip

MODEL = PmuModel(
    name="intel_arch_perfmon",
    isa="x86_64",
    sysfs_name="cpu",
    driver="intel_core",
    version=4,
    identification=1 << 13,  # IA32_PERF_CAPABILITIES.FW_WRITE
    counters=4,
    most_counters=32,
    counter_width_bits=48,
    fixed_counters=(
        FixedCounter("INST_RETIRED.ANY", 0x00C0, 48),
        FixedCounter("CPU_CLK_UNHALTED.THREAD", 0x003C, 48),
        FixedCounter("CPU_CLK_UNHALTED.REF_TSC", 0x0300, 48, programmable=False),
    ),
    events=EVENTS,
    format=(
        FormatField("event", 0, 7),
        FormatField("umask", 8, 15),
        FormatField("edge", 18, 18, Role.UNMODELLED),
        FormatField("pc", 19, 19, Role.NO_EFFECT),
        FormatField("any", 21, 21, Role.NO_EFFECT),
        FormatField("inv", 23, 23, Role.UNMODELLED),
        FormatField("cmask", 24, 31, Role.UNMODELLED),
    ),
    generic_events={
        "PERF_COUNT_HW_CPU_CYCLES": "CPU_CLK_UNHALTED.THREAD_P",
        "PERF_COUNT_HW_INSTRUCTIONS": "INST_RETIRED.ANY_P",
        "PERF_COUNT_HW_BRANCH_INSTRUCTIONS": "BR_INST_RETIRED.ALL_BRANCHES",
        "PERF_COUNT_HW_REF_CPU_CYCLES": "CPU_CLK_UNHALTED.REF_TSC",
    },
    generic_cache_events={  # arch/x86/events/intel/core.c, Skylake: what needs no cache, TLB or predictor
        ("L1D", "OP_READ", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_LOADS",
        ("L1D", "OP_WRITE", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_STORES",
        ("DTLB", "OP_READ", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_LOADS",
        ("DTLB", "OP_WRITE", "RESULT_ACCESS"): "MEM_INST_RETIRED.ALL_STORES",
        ("BPU", "OP_READ", "RESULT_ACCESS"): "BR_INST_RETIRED.ALL_BRANCHES",
    },
    sysfs_aliases={
        "cpu-cycles": "CPU_CLK_UNHALTED.THREAD_P",
        "instructions": "INST_RETIRED.ANY_P",
        "branch-instructions": "BR_INST_RETIRED.ALL_BRANCHES",
        "ref-cycles": "CPU_CLK_UNHALTED.REF_TSC",
    },
)
