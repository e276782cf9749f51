"""PMUs of Intel's uncore, as Linux 6.12 has them for the parts that our cores name: the last cache, memory controllers.

Skylake, the client: arch/x86/events/intel/uncore_snb.c. Granite Rapids: uncore_snbep.c, gnr_uncores. Codes and names
besides Linux's own: Intel's lists, as perf has them (pmu-events/arch/x86/skylake/uncore-cache.json and its like). There
is one box of each kind here, which Linux then gives no number: the last cache is one slice, memory one channel.
"""

from __future__ import annotations

from emulator.probes import Probe
from pmu.event import Event, Support
from pmu.event_notes import LINES_READ, LL_MISSES, LL_REQUESTS
from pmu.event_source import MIB_OF_LINES, EventSource
from pmu.format_field import FormatField, Role

_APPROXIMATE = Support.APPROXIMATE
_SNOOP_HITS = (Probe.SNOOP_HIT, Probe.SNOOP_HITM)
_WRITTEN_BACK = "written lines that this cache, or another core, takes out of L2 count as requests, too"
_OWNERSHIP = "with stores' reads for ownership, and prefetches: Intel does not say whether they are reads"
_NO_STATES = "in which state a line was found is not told apart"
_DIRECTORY = 'a core is asked only where it has the line; with coherence.filter = "none" all are'


def _thresholds(compared: str, last: int) -> tuple[FormatField, ...]:
    """What counters have that compare; zero here."""
    return (
        FormatField("edge", 18, 18, Role.ABSENT),
        FormatField("inv", 23, 23, Role.ABSENT),
        FormatField(compared, 24, last, Role.ABSENT),
    )


SKYLAKE_CBOX = EventSource(
    "uncore_cbox",
    (FormatField("event", 0, 7), FormatField("umask", 8, 15), *_thresholds("cmask", 28)),  # snb_uncore_format_group
    (
        Event(0x8834, "unc_cbo_cache_lookup.any_i", LL_MISSES, note="lines that memory was asked for, prefetches too"),
        Event(0x8F34, "unc_cbo_cache_lookup.any_mesi", (*LL_REQUESTS, Probe.L2_WRITE_BACK), _APPROXIMATE,
              _WRITTEN_BACK),
        Event(0x1834, "unc_cbo_cache_lookup.read_i", LL_MISSES, _APPROXIMATE, _OWNERSHIP),
        Event(0x1F34, "unc_cbo_cache_lookup.read_mesi", LL_REQUESTS, _APPROXIMATE, _OWNERSHIP),
        Event(0x4122, "unc_cbo_xsnp_response.miss_xcore", (Probe.SNOOP,), _APPROXIMATE, _DIRECTORY, less=_SNOOP_HITS),
        Event(0x4422, "unc_cbo_xsnp_response.hit_xcore", (Probe.SNOOP_HIT,), _APPROXIMATE, _DIRECTORY),
        Event(0x4822, "unc_cbo_xsnp_response.hitm_xcore", (Probe.SNOOP_HITM,), _APPROXIMATE, _DIRECTORY),
    ),
    not_modelled={
        "unc_cbo_cache_lookup.write_*": "Intel does not say which requests are writes",
        "unc_cbo_cache_lookup.*": _NO_STATES,
        "unc_cbo_xsnp_response.miss_eviction": "a line's eviction asks nobody who has not got it",
        "clockticks": "the uncore has no clock of its own here",
    },
    system_wide=True,
    counters=4,  # skl_uncore_cbox
    sysfs_aliases={},
)  # fmt: skip

SKYLAKE_IMC = EventSource(
    "uncore_imc",
    (FormatField("event", 0, 7),),  # snb_uncore_imc_format_group
    (
        Event(0x01, "data_reads", (Probe.DRAM_READ,), note=LINES_READ),
        Event(0x02, "data_writes", (Probe.DRAM_WRITE,), note="lines"),
        Event(0x04, "ia_requests", (Probe.DRAM_READ, Probe.DRAM_WRITE), note="lines: both, since only cores ask"),
    ),
    not_modelled={
        "gt_requests": "there is no graphics unit",
        "io_requests": "no device reads or writes memory by itself",
    },
    system_wide=True,
    units=dict.fromkeys(("data_reads", "data_writes", "ia_requests"), MIB_OF_LINES),
)

_EXTENDED_UMASK = (32, 55)  # umask_ext4
GRANITE_RAPIDS_IMC = EventSource(
    "uncore_imc",
    (  # spr_uncore_raw_format_group
        FormatField("event", 0, 7),
        FormatField("umask", 8, 15, upper=_EXTENDED_UMASK),
        *_thresholds("thresh", 31),
    ),
    (
        Event(0xCF05, "unc_m_cas_count_sch0.rd", (Probe.DRAM_READ,), note=LINES_READ),
        Event(0xC105, "unc_m_cas_count_sch0.rd_reg", (Probe.DRAM_READ,), note="all are: whole lines are written"),
        Event(0xF005, "unc_m_cas_count_sch0.wr", (Probe.DRAM_WRITE,), note="lines"),
        Event(0xFF05, "unc_m_cas_count_sch0.all", (Probe.DRAM_READ, Probe.DRAM_WRITE), note="lines"),
    ),
    not_modelled={
        "unc_m_cas_count_sch0.rd_underfill": "writes are of whole lines, which read nothing",
        "unc_m_cas_count_sch0.*": "pages of DRAM, and what opens or closes them, are not modelled",
        "unc_m_cas_count_sch1.*": "memory is one channel here, with one command scheduler: sch0",
        "*clockticks": "DRAM has no clock of its own here",
        "unc_m_*": "of DRAM and its queues nothing is modelled but the lines that are read and written",
    },
    system_wide=True,
    counters=4,
    sysfs_aliases={"cas_count_read": "unc_m_cas_count_sch0.rd", "cas_count_write": "unc_m_cas_count_sch0.wr"},
    units=dict.fromkeys(("cas_count_read", "cas_count_write"), MIB_OF_LINES),
)

_LOOKUP = 0x34


def _lookup(umask: int) -> int:
    """UNC_CHA_LLC_LOOKUP's code: the low byte of `umask` is the states that are counted, 0x01 a miss."""
    return _LOOKUP | (umask & 0xFF) << 8 | umask >> 8 << 32


GRANITE_RAPIDS_CHA = EventSource(
    "uncore_cha",
    (  # spr_uncore_chabox_format_group
        FormatField("event", 0, 7),
        FormatField("umask", 8, 15, upper=(32, 63)),  # umask_ext5
        FormatField("tid_en", 16, 16, Role.ABSENT),
        *_thresholds("thresh", 31),
        FormatField("filter_tid", 0, 9, Role.ABSENT, config="config1"),
    ),
    (
        Event(_lookup(0x1850FF), "unc_cha_llc_lookup.local_dmnd_code", (Probe.LL_ACCESS_FETCH,), note="lines"),
        Event(_lookup(0x1841FF), "unc_cha_llc_lookup.local_dmnd_data_rd", (Probe.LL_ACCESS_LOAD,),
              note="lines, with page walks' reads where they are modelled"),
        Event(_lookup(0x1848FF), "unc_cha_llc_lookup.local_dmnd_rfo", (Probe.LL_ACCESS_STORE,), _APPROXIMATE,
              "lines; not what a store asks that has the line, and shares it with other cores"),
        Event(_lookup(0x199DFF), "unc_cha_llc_lookup.local_pf", (Probe.LL_ACCESS_PREFETCH,), note="lines"),
    ),
    not_modelled={
        "unc_cha_llc_lookup.*remote*": "there is one package",
        "unc_cha_llc_lookup.*": "prefetches are not told apart by what they are for, nor snoops from requests",
        "unc_cha_tor_*": "the CHA's table of requests (TOR) is not modelled",
        "unc_cha_*": "of the CHA nothing is modelled but what cores ask the last cache",
    },
    system_wide=True,
    counters=4,
    sysfs_aliases={},
)  # fmt: skip
