"""What a guest may open: nothing reads 0 that hardware would count. open_events.c on real cores, both ISAs."""

from __future__ import annotations

from errno import EINVAL, ENOENT, EOPNOTSUPP
from pathlib import Path

import pytest

import perfemu
from c_programs import build
from perfcore.abi.constants import FIRST_DYNAMIC_TYPE, PerfType
from pmu.generic_events import HardwareId

SOURCE = Path(__file__).with_name("open_events.c")
HARDWARE, HW_CACHE, RAW = PerfType.HARDWARE, PerfType.HW_CACHE, PerfType.RAW
USER, KERNEL, BOTH = (0, 1), (1, 0), (0, 0)
CALLS = 11  # that open_events.c makes while it counts


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("open_events")
    return {isa: build(SOURCE, isa, directory / isa) for isa in ("aarch64", "x86_64")}


def described(type: int, config: int, mode: tuple[int, int] = USER, config1: int = 0, where: str = "0:-1") -> str:
    return f"{int(type)}:{config:x}:{config1:x}:{mode[0]}:{mode[1]}:{where}"


def opened(program: Path, *events: str, core: str, **settings: object) -> list[tuple[int, int]]:
    """(minus errno, count) of each."""
    result = perfemu.run(perfemu.Guest([program, *events], core=core, **settings), capture=True)  # type: ignore[arg-type]
    assert result.stdout is not None
    rows = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
    assert len(rows) == len(events)
    return [(row[0], row[1]) for row in rows]


@pytest.mark.parametrize(
    ("isa", "core", "config", "why"),
    [
        ("x86_64", "ideal", 0x08D1, "mem_load_retired.l1_miss: there are no caches"),
        ("x86_64", "ideal", 0x00C5, "br_misp_retired.all_branches: there is no predictor"),
        ("x86_64", "ideal", 0x01B7, "offcore_response"),
        ("x86_64", "skylake", 0x01B7, "offcore_response, which has no row"),
        ("x86_64", "skylake", 0x0109, "memory_disambiguation.history_reset, which has no row"),
        ("x86_64", "skylake", 0x0100_00C0, "inst_retired.any_p with a threshold: cycles in which one retired"),
        ("x86_64", "skylake", 0x0100, "inst_retired.any, which is 0xc0 in Linux"),
        ("x86_64", "zen5", 0xC5, "ex_ret_brn_tkn_misp, which has no row"),
        ("x86_64", "zen4", 0x1_0000_00C1, "ex_ret_ucode_instr, which has no row"),
        ("x86_64", "zen4", 0x0100_00C0, "ex_ret_instr with a threshold: cycles in which one retired"),
        ("aarch64", "ideal", 0x03, "l1d_cache_refill"),
        ("aarch64", "ideal", 0x04, "l1d_cache"),
        ("aarch64", "ideal", 0x12, "br_pred"),
        ("aarch64", "neoverse-n1", 0x20, "l2d_cache_allocate, which has no row"),
        ("aarch64", "neoverse-n1", 0x0A, "exc_return, which retires at EL1"),
        ("aarch64", "cortex-a55", 0xE1, "stall_frontend_cache, its own"),
    ],
)
def test_a_listed_event_that_the_core_cannot_know_is_not_there(
    programs: dict[str, Path], isa: str, core: str, config: int, why: str
) -> None:
    assert opened(programs[isa], described(RAW, config), core=core) == [(-ENOENT, 0)], why


@pytest.mark.parametrize(
    ("isa", "config"),
    [("x86_64", 0x01FF), ("aarch64", 0xE1), ("aarch64", 0x7FF0)],  # 0xe1: of Cortex-A55 alone
)
def test_a_code_in_no_list_opens_and_counts_nothing_as_on_hardware(
    programs: dict[str, Path], isa: str, config: int
) -> None:
    core = {"x86_64": "skylake", "aarch64": "neoverse-n1"}[isa]
    assert opened(programs[isa], described(RAW, config), core=core) == [(0, 0)]


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_the_kernel_alone_is_counted_where_its_time_is_known_and_refused_elsewhere(
    programs: dict[str, Path], isa: str
) -> None:
    """CALLS system calls of 1000 cycles each, on a core where user mode takes a cycle an instruction. Those that enable
    an event and disable it: the first is over when it begins to count, the second is paid before it stops."""
    cycles, instructions = HardwareId.CPU_CYCLES, HardwareId.INSTRUCTIONS
    events = [described(HARDWARE, what, mode) for what in (cycles, instructions) for mode in (KERNEL, USER, BOTH)]
    changes = ["kernel.syscall_cycles=1000"]
    rows = opened(programs[isa], *events, core="ideal", core_changes=changes)
    (_, kernel), (_, user), (_, both), refused, (_, user_instructions), (_, all_instructions) = rows
    assert kernel == CALLS * 1000
    assert both == user + kernel
    assert refused == (-EOPNOTSUPP, 0)
    assert user == user_instructions == all_instructions > CALLS
    timeless = opened(programs[isa], *events, core="ideal")
    assert timeless[0] == refused  # the kernel takes no time there: 0 would look like a measurement
    assert timeless[1] == timeless[2] == (0, user)


def test_amds_generic_events_are_linuxs(programs: dict[str, Path]) -> None:
    """amd_zen4_perfmon_event_map, amd_hw_cache_event_ids_f17h: what is 0 there is ENOENT."""
    generic = [described(HARDWARE, what) for what in HardwareId]
    found = [row[0] for row in opened(programs["x86_64"], *generic, core="zen5")]
    absent = {HardwareId.BUS_CYCLES, HardwareId.STALLED_CYCLES_BACKEND}
    assert found == [-ENOENT if what in absent else 0 for what in HardwareId]
    level_3, level_1_store, prefetches = 2, 1 << 8, 2 << 8
    asked = [described(HW_CACHE, config) for config in (level_3, level_1_store, prefetches, 0x10000, 0x10005)]
    assert [row[0] for row in opened(programs["x86_64"], *asked, core="zen5")] == [-ENOENT, -ENOENT, 0, 0, 0]


def test_amds_event_numbers_have_twelve_bits(programs: dict[str, Path]) -> None:
    """Event 120H are the reference cycles; 20H is none, and 1C0H not the instructions."""
    whats = (0xC0, 0x76, 0x1_0000_0120, 0x0120, 0x1_0000_00C0)
    events = [described(RAW, what) for what in whats]
    rows = opened(programs["x86_64"], *events, core="ideal", core_changes=["pmu.x86_64=zen4"])
    (_, instructions), *others = rows
    assert instructions > CALLS
    assert others == [(0, instructions), (0, instructions), (0, 0), (0, 0)]


def test_bus_cycles_exist_on_intel_cores(programs: dict[str, Path]) -> None:
    ((opens, counted),) = opened(programs["x86_64"], described(HARDWARE, HardwareId.BUS_CYCLES), core="skylake")
    assert opens == 0
    assert counted > 0


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_configurations_that_name_a_pmu_which_nobody_has(programs: dict[str, Path], isa: str) -> None:
    """perf_init_event asks all drivers then, with the PMU's number taken away; that of another PMU is ENOENT."""
    all_ones, of_nobody = 0xFFFF_FFFF_FFFF_FFFF, 99 << 32 | HardwareId.INSTRUCTIONS
    of_software = PerfType.SOFTWARE << 32 | HardwareId.INSTRUCTIONS
    events = [described(HW_CACHE, all_ones), described(HARDWARE, of_nobody), described(HARDWARE, of_software)]
    assert [row[0] for row in opened(programs[isa], *events, core="ideal")] == [-EINVAL, 0, -ENOENT]


LONG, RDPMC = 1, 2  # attr.config1
CPU_WIDE, OWN_TASK = "-1:0", "0:-1"


@pytest.mark.parametrize(
    ("config", "config1", "where", "expected"),
    [
        (0x08, LONG, OWN_TASK, 0),
        (0x08, RDPMC, OWN_TASK, 0),
        (0x08, LONG | RDPMC, OWN_TASK, -EOPNOTSUPP),  # two counters, of which user space would read one
        (0x11, LONG | RDPMC, OWN_TASK, 0),  # the cycle counter has 64 bits
        (0x08, RDPMC, CPU_WIDE, -EINVAL),
        (0x08, LONG, CPU_WIDE, 0),
    ],
)
def test_arms_user_access_is_refused_where_linux_refuses_it(
    programs: dict[str, Path], config: int, config1: int, where: str, expected: int
) -> None:
    """drivers/perf/arm_pmuv3.c, __armv8_pmuv3_map_event; PMUv3p1 has no counters of 64 bits."""
    event = described(FIRST_DYNAMIC_TYPE, config, config1=config1, where=where)
    assert opened(programs["aarch64"], event, core="neoverse-n1")[0][0] == expected


@pytest.mark.parametrize("config1", [1 << 5, 0xFFF << 5])
def test_a_threshold_is_refused_where_there_are_none(programs: dict[str, Path], config1: int) -> None:
    """armv8pmu_set_event_filter: it exceeds threshold_max, which is 0. Without it nothing looks at the other fields."""
    rest = 0b111 << 2
    events = [described(FIRST_DYNAMIC_TYPE, 0x08, config1=bits) for bits in (config1, rest, config1 | rest)]
    assert [row[0] for row in opened(programs["aarch64"], *events, core="neoverse-n1")] == [-EINVAL, 0, -EINVAL]
