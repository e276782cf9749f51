"""Event rows and lists: lookups, honesty, PMCEID derivation; models and their sysfs texts."""

import pytest

from emulator.probes import Probe
from pmu.event import LESS_SHIFT, Event, EventList, Support, UnknownEvent
from pmu.format_field import FormatField
from pmu.generic_events import CacheId, CacheResult, HardwareId
from pmu.intel.cpuid import cpuid_leaf_0a
from pmu.model import ANY_ISA, PmuModel, model, models

ARM = model("armv8_pmuv3")
INTEL = model("intel_arch_perfmon")


def row(code: int, name: str = "") -> Event:
    return Event(code, name or f"E{code:04X}", (Probe.CYCLES,))


@pytest.mark.parametrize(
    ("code", "register", "bit"),
    [
        (0x0000, 0, 0),
        (0x001F, 0, 31),
        (0x0020, 1, 0),
        (0x003F, 1, 31),
        (0x4000, 0, 32),
        (0x401F, 0, 63),
        (0x4020, 1, 32),
        (0x403F, 1, 63),
    ],
)
def test_pmceid_bit_of_common_events(code: int, register: int, bit: int) -> None:
    ids = [0, 0]
    ids[register] = 1 << bit
    assert EventList([row(code)]).pmceid() == tuple(ids)


@pytest.mark.parametrize("code", [0x0040, 0x3FFF, 0x4040, 0x8000, 0xFFFF])
def test_other_events_have_no_pmceid_bit(code: int) -> None:
    assert EventList([row(code)]).pmceid() == (0, 0)


def test_armv8_pmuv3_announces_its_common_events() -> None:
    # 0x00 06-09 0c-0e 11 13 1b 1e, and 0x21; a new row may add to them
    first = sum(1 << n for n in (0x00, 0x06, 0x07, 0x08, 0x09, 0x0C, 0x0D, 0x0E, 0x11, 0x13, 0x1B, 0x1E))
    low, high = ARM.events.pmceid()
    assert (low & first, high & 1 << 1) == (first, 1 << 1)


def test_names_are_found_in_either_case() -> None:
    found = INTEL.events.by_name("br_inst_retired.near_call")
    assert found is not None
    assert (found.name, found.code) == ("BR_INST_RETIRED.NEAR_CALL", 0x02C4)


def test_unknown_names_are_refused_with_those_near() -> None:
    with pytest.raises(UnknownEvent, match="no event 'INST_RETIRD'; near are INST_RETIRED"):
        ARM.events.find("INST_RETIRD")
    with pytest.raises(UnknownEvent, match=r"no event 'br_inst'; near are BR_INST_RETIRED\.ALL_BRANCHES"):
        INTEL.events.find("br_inst")


def test_unknown_codes_are_refused_with_those_near() -> None:
    # the nearest of the same event byte: 0x40c4 is 0x100 away
    with pytest.raises(
        UnknownEvent, match=r"no event with code 0x41c4; near are BR_INST_RETIRED.FAR_BRANCH \(0x40c4\)"
    ):
        INTEL.events.find_code(0x41C4)


def test_an_approximate_row_says_how() -> None:
    with pytest.raises(ValueError, match="L1D_CACHE: say in `note` what differs"):
        Event(0x0004, "L1D_CACHE", (Probe.LOAD,), Support.APPROXIMATE)
    with pytest.raises(ValueError, match="CHAIN: no probe fires it"):
        Event(0x001E, "CHAIN", ())


def test_a_list_has_each_name_once_and_one_meaning_a_code() -> None:
    with pytest.raises(ValueError, match="event Same stands twice"):
        EventList([row(1, "SAME"), row(2, "Same")])
    with pytest.raises(ValueError, match="B: code 0x0001 is A, which counts something else"):
        EventList([row(1, "A"), Event(1, "B", (Probe.LOAD,))])


def _format_mask(found: PmuModel) -> int:
    return sum(bits.mask for bits in found.format if bits.config == "config")


@pytest.mark.parametrize("name", models())
def test_models_are_what_their_files_say(name: str) -> None:
    found = model(name)
    assert found.isa in ("aarch64", "x86_64", ANY_ISA)
    assert found.counters <= found.most_counters
    for generic in HardwareId:
        event = found.generic_event(generic)
        assert (event is None) == (generic not in found.generic_events)
    for event in found.events:
        assert 0 <= event.code <= _format_mask(found)
        if event.listed:
            assert found.config_of(found.event_of(found.config_of(event))) == found.config_of(event)


def test_unknown_models_are_refused_with_those_there() -> None:
    with pytest.raises(ValueError, match="no PMU model 'cortex-a72'; there are armv8_pmuv3, cortex_a55, cortex_a72, "):
        model("cortex-a72")


def test_what_the_ideal_core_cannot_know_is_not_there() -> None:
    for name in ("CACHE_REFERENCES", "CACHE_MISSES", "BRANCH_MISSES", "STALLED_CYCLES_FRONTEND"):
        assert ARM.generic_event(HardwareId[name]) is None
        assert INTEL.generic_event(HardwareId[name]) is None


def test_x86_kernels_spell_generic_events_their_own_way() -> None:
    """arch/x86/events/core.c, the EVENT_ATTRs above events_attr."""
    assert [generic.sysfs_name for generic in HardwareId] == [
        *("cpu-cycles", "instructions", "cache-references", "cache-misses", "branch-instructions", "branch-misses"),
        *("bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"),
    ]


def test_sysfs_texts() -> None:
    assert ARM.sysfs_format()["event"] == "config:0-15"
    assert ARM.sysfs_events()["inst_retired"] == "event=0x0008"
    assert "chain" not in ARM.sysfs_events()  # as in Linux: of no use by itself
    assert "ld_spec" not in ARM.sysfs_events()  # 0x0070 is not announced by PMCEID
    assert INTEL.sysfs_format()["cmask"] == "config:24-31"
    assert INTEL.sysfs_format()["edge"] == "config:18"
    assert INTEL.sysfs_events()["instructions"] == "event=0xc0"
    assert INTEL.sysfs_events()["ref-cycles"] == "event=0x00,umask=0x03"


def test_format_fields_place_values() -> None:
    umask = FormatField("umask", 8, 15)
    assert umask.insert(0x81) == 0x8100
    assert umask.extract(0x81D0) == 0x81
    with pytest.raises(ValueError, match="umask=0x100 does not fit in config:8-15"):
        umask.insert(0x100)


def test_amds_event_numbers_are_in_two_parts() -> None:
    """arch/x86/events/amd/core.c: PMU_FORMAT_ATTR(event, "config:0-7,32-35"), and amd_event_sysfs_show."""
    zen = model("zen5")
    event = zen.format[0]
    assert event.text == "config:0-7,32-35"
    assert event.insert(0x120) == 0x1_0000_0020
    assert event.extract(0xF_0000_01D0) == 0xFD0
    with pytest.raises(ValueError, match="event=0x1000 does not fit in config:0-7,32-35"):
        event.insert(0x1000)
    with pytest.raises(ValueError, match="event=-0x1 does not fit"):
        event.insert(-1)
    assert zen.sysfs_events()["cpu-cycles"] == "event=0x76"
    assert zen.sysfs_events()["ref-cycles"] == "event=0x120,umask=0x01"
    assert zen.sysfs_events()["cache-misses"] == "event=0x64,umask=0x09"
    assert not {"stalled-cycles-backend", "bus-cycles"} & set(zen.sysfs_events())


def test_fixed_counters_events_have_linuxs_configs() -> None:
    configs = {
        name: INTEL.config_of(INTEL.events.find(name)) for name in ("INST_RETIRED.ANY", "CPU_CLK_UNHALTED.REF_TSC")
    }
    assert configs == {"INST_RETIRED.ANY": 0x00C0, "CPU_CLK_UNHALTED.REF_TSC": 0x0300}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (0x0100_00C0, "cmask=1 in 0x10000c0: this core cannot tell it of single cycles for this event"),
        (0x0180_00C0, "inv=1"),
        (0x0004_00C0, "edge=1"),
        (0x0100, "INST_RETIRED.ANY is counted by a fixed counter: its config is 0x00c0, not 0x0100"),
        (0x1_0000_00C0, "bits 0x100000000 of 0x1000000c0 are not in the format of cpu"),
        (0x4F2E, "0x4f2e is LONGEST_LAT_CACHE.REFERENCE, which this core cannot know"),
        (0x42, "no event with code 0x0042"),
    ],
)
def test_raw_configs_are_refused_by_name(config: int, message: str) -> None:
    with pytest.raises(UnknownEvent, match=message):
        INTEL.event_of(config)


def test_raw_configs_name_their_event() -> None:
    assert INTEL.event_of(0x0000_81D0).name == "MEM_INST_RETIRED.ALL_LOADS"
    assert INTEL.event_of(0x0020_00C0).name == "INST_RETIRED.ANY_P"  # any=1: there is one thread
    assert ARM.event_of(0x0008).name == "INST_RETIRED"


def test_cpuid_leaf_0a() -> None:
    # EAX: version 4, 4 counters, 48 bits, 7 architectural events. EBX: bits of those that are not there: 2 reference
    # cycles, 3 and 4 last-level cache, 6 mispredictions. EDX: 3 fixed counters of 48 (0x30 << 5 = 0x600) bits
    assert cpuid_leaf_0a(INTEL) == (0x0730_0404, 0b101_1000, 0, 0x603)


def test_what_another_event_says_is_taken_away() -> None:
    hits = model("skylake").events.find("MEM_LOAD_RETIRED.L1_HIT")
    assert hits.probe_mask == 1 << Probe.L1D_ACCESS_LOAD | 1 << LESS_SHIFT + Probe.L1D_REFILL_LOAD
    with pytest.raises(ValueError, match="a probe stands twice"):
        Event(1, "A", (Probe.LOAD,), less=(Probe.LOAD,))


def test_a_threshold_is_part_of_the_code_where_the_event_has_it() -> None:
    skylake = model("skylake")
    stalls = skylake.events.find("UOPS_RETIRED.STALL_CYCLES")
    assert skylake.event_text(stalls) == "event=0xc2,umask=0x02,inv=0x1,cmask=0x01"
    assert skylake.event_of(0x0180_02C2) is stalls
    with pytest.raises(UnknownEvent, match="cmask=2 in 0x20002c2: this core cannot tell"):
        skylake.event_of(0x0200_02C2)


@pytest.mark.parametrize("name", ["neoverse_n1", "cortex_a72", "cortex_a55", "skylake", "zen4", "zen5"])
def test_a_modelled_core_answers_the_generic_events(name: str) -> None:
    found = model(name)
    for generic in ("CACHE_REFERENCES", "CACHE_MISSES", "BRANCH_INSTRUCTIONS", "BRANCH_MISSES"):
        assert found.generic_event(HardwareId[generic]) is not None
    reads = {cache for cache, operation, result in found.generic_cache_events if result is CacheResult.MISS}
    unknown_to_linux = {CacheId.NODE, *([CacheId.LL] if found.driver == "amd_core" else [])}
    assert {*CacheId} - unknown_to_linux <= reads


def test_where_the_second_level_is_the_last_it_answers_for_it() -> None:
    assert model("cortex_a72").events.find("LL_CACHE_RD").probes == (Probe.L2_ACCESS_FETCH, Probe.L2_ACCESS_LOAD)
    assert model("cortex_a72").events.by_name("L3D_CACHE") is None
    assert model("neoverse_n1").events.find("LL_CACHE_RD").probes == (Probe.LL_ACCESS_FETCH, Probe.LL_ACCESS_LOAD)
