"""PMUs of what AMD's cores share, as Linux 6.12 calls them: amd_l3, a complex's cache, and amd_umc_0, the controller of
memory's one channel. arch/x86/events/amd/uncore.c.

Codes and names: AMD's lists of Zen 4 and Zen 5, as perf has them (pmu-events/arch/x86/amdzen4, cache.json and
memory-controller.json).
"""

from __future__ import annotations

from errno import EOPNOTSUPP

from emulator.probes import Probe
from pmu.event import Event, Support, UnknownEvent
from pmu.event_notes import LINES_READ, LL_MISSES, LL_REQUESTS
from pmu.event_source import EventSource
from pmu.format_field import FormatField, Role

_CORE = FormatField("coreid", 42, 44, Role.OPTION)
_ALL_SLICES = FormatField("enallslices", 46, 46, Role.OPTION)
_ALL_CORES = FormatField("enallcores", 47, 47, Role.OPTION)
_SLICE = FormatField("sliceid", 48, 50, Role.OPTION)
_THREADS = FormatField("threadmask", 56, 57, Role.OPTION)

_LINES = "requests for lines, prefetches too; not what a store asks that has the line, and shares it with other cores"
_NO_LATENCIES = "no latencies are sampled in the L3"


def core_of(config: int) -> int | None:
    """As l3_thread_slice_mask of Linux: without a threadmask all threads of all cores are meant, in all slices."""
    threads = _THREADS.extract(config)
    if not threads:
        return None
    if not threads & 1:
        raise UnknownEvent(f"threadmask={threads:#x}: each core has one thread here, which is bit 0")
    if not _ALL_SLICES.extract(config):
        raise UnknownEvent(f"sliceid={_SLICE.extract(config)}: the L3 is one slice here: ask for all by enallslices=1")
    return None if _ALL_CORES.extract(config) else _CORE.extract(config)


AMD_L3 = EventSource(
    "amd_l3",
    (
        FormatField("event", 0, 7),
        FormatField("umask", 8, 15),
        *(_CORE, _ALL_SLICES, _ALL_CORES, _SLICE, _THREADS),
    ),
    (
        Event(0xFF04, "l3_lookup_state.all_coherent_accesses_to_l3", LL_REQUESTS, Support.APPROXIMATE, _LINES),
        Event(0xFE04, "l3_lookup_state.l3_hit", LL_REQUESTS, Support.APPROXIMATE, f"{_LINES}; others' lines are hits",
              less=LL_MISSES),
        Event(0x0104, "l3_lookup_state.l3_miss", LL_MISSES, Support.APPROXIMATE,
              "lines that memory was asked for; of AMD's, requests to change a line's state are misses, too"),
    ),
    not_modelled={"l3_xi_sampled_latency*": _NO_LATENCIES},
    system_wide=True,
    counters=6,  # NUM_COUNTERS_L3
    sysfs_aliases={},
    core_of=core_of,
    sampling_error=EOPNOTSUPP,
)  # fmt: skip

_READS, _WRITES = 0x100, 0x200  # of rdwrmask; none of both: all
AMD_UMC = EventSource(
    "amd_umc_0",
    (FormatField("event", 0, 7), FormatField("rdwrmask", 8, 9)),
    (
        Event(0x0A, "umc_cas_cmd.all", (Probe.DRAM_READ, Probe.DRAM_WRITE), note="lines"),
        Event(0x0A | _READS, "umc_cas_cmd.rd", (Probe.DRAM_READ,), note=LINES_READ),
        Event(0x0A | _WRITES, "umc_cas_cmd.wr", (Probe.DRAM_WRITE,), note="lines"),
    ),
    not_modelled={
        "umc_mem_clk": "DRAM has no clock of its own here",
        "umc_data_slot_clks.*": "DRAM has no clock of its own here",
        "umc_*": "pages of DRAM, and what opens or closes them, are not modelled",
    },
    system_wide=True,
    counters=4,
    sysfs_aliases={},
    sampling_error=EOPNOTSUPP,
)
