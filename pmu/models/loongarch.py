"""loongarch: LoongArch's performance monitors, four of 64 bits, on any core. Events as Linux's event maps have them.

Nothing here executes LoongArch, so programs of AArch64 and x86-64 are counted, and none reads the counters by itself.
"""

from __future__ import annotations

from pmu.event import EventList
from pmu.format_field import FormatField
from pmu.generic_events import CacheId, CacheOp, CacheResult, HardwareId
from pmu.loongarch.event_rows import ROWS
from pmu.loongarch.not_modelled import NOT_MODELLED
from pmu.loongarch.registers import MOST_MONITORS, WIDTH_BITS
from pmu.model import ANY_ISA, PmuModel

_READ, _WRITE, _ACCESS, _MISS = CacheOp.READ, CacheOp.WRITE, CacheResult.ACCESS, CacheResult.MISS

MODEL = PmuModel(
    name="loongarch",
    isa=ANY_ISA,
    sysfs_name="cpu",
    driver="loongarch",
    version=1,
    identification=0,
    counters=4,  # Loongson 3A5000's and 3A6000's: perfctrl0-3
    most_counters=MOST_MONITORS,
    counter_width_bits=WIDTH_BITS,
    fixed_counters=(),
    events=EventList(ROWS),
    format=(FormatField("event", 0, 9),),
    generic_events={  # loongson_event_map
        HardwareId.CPU_CYCLES: "CPU_CYCLES",
        HardwareId.INSTRUCTIONS: "INSTRUCTIONS_RETIRED",
        HardwareId.CACHE_REFERENCES: "L1D_ACCESS",
        HardwareId.CACHE_MISSES: "L1D_MISS",
        HardwareId.BRANCH_INSTRUCTIONS: "BRANCHES_RETIRED",
        HardwareId.BRANCH_MISSES: "BRANCH_MISSES_RETIRED",
    },
    generic_cache_events={  # loongson_cache_map, which does not tell loads from stores
        (CacheId.L1D, _READ, _ACCESS): "L1D_ACCESS",
        (CacheId.L1D, _READ, _MISS): "L1D_MISS",
        (CacheId.L1D, _WRITE, _ACCESS): "L1D_ACCESS",
        (CacheId.L1D, _WRITE, _MISS): "L1D_MISS",
        (CacheId.L1I, _READ, _ACCESS): "L1I_ACCESS",
        (CacheId.L1I, _READ, _MISS): "L1I_MISS",
        (CacheId.LL, _READ, _ACCESS): "LL_ACCESS",
        (CacheId.LL, _READ, _MISS): "LL_MISS",
        (CacheId.LL, _WRITE, _ACCESS): "LL_ACCESS",
        (CacheId.LL, _WRITE, _MISS): "LL_MISS",
        (CacheId.ITLB, _READ, _MISS): "ITLB_MISS",
        (CacheId.DTLB, _READ, _ACCESS): "DTLB_ACCESS",
        (CacheId.DTLB, _READ, _MISS): "DTLB_MISS",
        (CacheId.DTLB, _WRITE, _ACCESS): "DTLB_ACCESS",
        (CacheId.DTLB, _WRITE, _MISS): "DTLB_MISS",
        (CacheId.BPU, _READ, _ACCESS): "BRANCHES_RETIRED",
        (CacheId.BPU, _READ, _MISS): "BRANCH_MISSES_RETIRED",
    },
    not_modelled=NOT_MODELLED,
)
