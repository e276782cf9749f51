"""What -e strings mean, and what is said of wrong ones. Numbers: uapi/linux/perf_event.h, and the vendors' codes."""

import pytest

from perfemu.errors import USAGE_STATUS, EventSyntaxError
from perfemu.events.names import GENERIC_EVENTS
from perfemu.events.parser import parse_events
from perfemu.events.spec import EventSpec
from pmu.model import model

ARM = model("armv8_pmuv3")
X86 = model("intel_arch_perfmon")
ARM_TYPE = 8
HARDWARE, SOFTWARE, CACHE, RAW = 0, 1, 3, 4


def arm(*texts: str) -> list[EventSpec]:
    return parse_events(texts, ARM, ARM_TYPE)


def x86(*texts: str) -> list[EventSpec]:
    return parse_events(texts, X86, RAW)


@pytest.mark.parametrize(
    ("text", "name", "type_", "address", "length"),
    [  # perf-list(1), and tests/parse-events.c: the name is evsel__bp_name()'s, without the length
        ("mem:0x401000:x", "mem:0x401000:x", 4, 0x401000, 4),
        ("mem:0x1000/8:w", "mem:0x1000:w", 2, 0x1000, 8),
        ("mem:4096", "mem:0x1000:rw", 3, 0x1000, 4),
        ("mem:0x1000:wr:u", "mem:0x1000:rw:u", 3, 0x1000, 4),
        ("mem:0x1000/1:r:u", "mem:0x1000:r:u", 1, 0x1000, 1),
    ],
)
def test_one_breakpoint(text: str, name: str, type_: int, address: int, length: int) -> None:
    (spec,) = arm(text)
    assert (spec.name, spec.type, spec.bp_type, spec.config1, spec.config2) == (name, 5, type_, address, length)


def test_breakpoints_among_others() -> None:
    specs = x86("{mem:0x10/8:w,cycles},mem:0x20:x,cpu/event=0xc0,umask=0/")
    assert [spec.base_name for spec in specs] == ["mem:0x10:w", "cycles", "mem:0x20:x", "cpu/event=0xc0,umask=0/"]
    assert [(spec.group, spec.config2) for spec in specs[:3]] == [(0, 8), (0, 0), (1, 8)]


@pytest.mark.parametrize(
    ("text", "name", "type_", "config"),
    [
        ("cycles", "cycles:u", HARDWARE, 0),
        ("cpu-cycles", "cpu-cycles:u", HARDWARE, 0),
        ("INSTRUCTIONS", "instructions:u", HARDWARE, 1),
        ("branch-instructions", "branch-instructions:u", HARDWARE, 4),
        ("branch-misses", "branch-misses:u", HARDWARE, 5),
        ("idle-cycles-backend", "idle-cycles-backend:u", HARDWARE, 8),
        ("ref-cycles", "ref-cycles:u", HARDWARE, 9),
        ("cpu-clock", "cpu-clock", SOFTWARE, 0),
        ("cs", "cs", SOFTWARE, 3),
        ("faults", "faults", SOFTWARE, 2),
        ("dummy", "dummy", SOFTWARE, 9),
        ("page-faults:u", "page-faults:u", SOFTWARE, 2),
        # L1D 0, LL 2, DTLB 3, ITLB 4, BPU 5; op << 8: read 0, write 1, prefetch 2; result << 16: access 0, miss 1
        ("L1-dcache-loads", "L1-dcache-loads:u", CACHE, 0x00000),
        ("l1d-load-miss", "l1d-load-miss:u", CACHE, 0x10000),
        ("L1-dcache-stores", "L1-dcache-stores:u", CACHE, 0x00100),
        ("LLC-load-misses:u", "LLC-load-misses:u", CACHE, 0x10002),
        ("L2-prefetches", "L2-prefetches:u", CACHE, 0x00202),
        ("dTLB-store-misses", "dTLB-store-misses:u", CACHE, 0x10103),
        ("iTLB-loads", "iTLB-loads:u", CACHE, 0x00004),
        ("branch-load-misses", "branch-load-misses:u", CACHE, 0x10005),
        ("r8", "r8:u", RAW, 0x8),
        ("r0021", "r0021:u", RAW, 0x21),
        ("inst_retired", "inst_retired:u", ARM_TYPE, 0x8),
        ("BR_RETIRED", "BR_RETIRED:u", ARM_TYPE, 0x21),
        ("armv8_pmuv3_0/inst_retired/", "armv8_pmuv3_0/inst_retired/u", ARM_TYPE, 0x8),
        ("armv8_pmuv3_0/event=0x21/u", "armv8_pmuv3_0/event=0x21/u", ARM_TYPE, 0x21),
        ("armv8_pmuv3_0/event=0x8,name=foo/", "foo:u", ARM_TYPE, 0x8),
        ("armv8_pmuv3_0/config=0x8/", "armv8_pmuv3_0/config=0x8/u", ARM_TYPE, 0x8),
    ],
)
def test_one_event(text: str, name: str, type_: int, config: int) -> None:
    (spec,) = arm(text)
    assert (spec.name, spec.type, spec.config) == (name, type_, config)


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("r1c4", 0x01C4),
        ("br_inst_retired.conditional", 0x01C4),
        ("cpu/event=0xc4,umask=0x20,name=foo/", 0x20C4),
        ("cpu/event=0xc0/", 0x00C0),
        ("cpu/instructions/", 0x00C0),
        ("inst_retired.any", 0x00C0),  # of a fixed counter: Linux's code for it
        ("cpu/event=0xc4,pc/", 0x800C4),  # pc is bit 19, and changes nothing
    ],
)
def test_x86_codes(text: str, config: int) -> None:
    (spec,) = x86(text)
    assert (spec.type, spec.config) == (RAW, config)


def test_every_spelling_of_every_generic_event_is_understood() -> None:
    for event in GENERIC_EVENTS:
        assert arm(event.name)[0].config == event.config
        for name in event.names:
            assert arm(name.upper())[0].base_name in {other.name for other in GENERIC_EVENTS}


@pytest.mark.parametrize(
    ("letters", "set_fields"),
    [
        ("", {"exclude_guest"}),
        ("u", {"exclude_kernel", "exclude_hv", "exclude_guest"}),
        ("k", {"exclude_user", "exclude_hv", "exclude_guest"}),
        ("h", {"exclude_user", "exclude_kernel", "exclude_guest"}),
        ("uk", {"exclude_hv", "exclude_guest"}),
        ("G", {"exclude_host"}),
        ("H", {"exclude_guest"}),
        ("GH", set()),
        ("I", {"exclude_idle", "exclude_guest"}),
        ("D", {"pinned", "exclude_guest"}),
        ("e", {"exclusive", "exclude_guest"}),
        ("S", {"sample_read", "exclude_guest"}),
    ],
)
def test_modifiers(letters: str, set_fields: set[str]) -> None:
    modifiers = arm(f"cycles:{letters}" if letters else "cycles")[0].modifiers
    flags = ("exclude_user", "exclude_kernel", "exclude_hv", "exclude_host", "exclude_guest", "exclude_idle")
    present = {name for name in (*flags, "pinned", "exclusive", "sample_read") if getattr(modifiers, name)}
    assert present == set_fields


@pytest.mark.parametrize(("letters", "precise"), [("p", 1), ("pp", 2), ("ppp", 3), ("P", 3), ("upp", 2)])
def test_precise_levels(letters: str, precise: int) -> None:
    assert arm(f"cycles:{letters}")[0].modifiers.precise == precise


def test_names_say_that_only_user_mode_is_counted_unless_the_user_said_so() -> None:
    texts = ("cycles:u", "cycles:up", "cycles:G", "cycles:k", "cycles:pp", "cycles:uk", "task-clock")
    names = [spec.name for spec in arm(*texts)]
    assert names == ["cycles:u", "cycles:up", "cycles:Gu", "cycles:k", "cycles:ppu", "cycles:uk", "task-clock"]
    assert arm("cycles:h")[0].counts_nothing
    assert not arm("cycles:k")[0].counts_nothing
    assert not arm("context-switches:h")[0].counts_nothing  # no event of a PMU


def test_groups_and_several_options() -> None:
    specs = arm("{cycles,branches:p}:u,instructions", "{faults}")
    assert [(spec.name, spec.group, spec.leads, spec.group_size) for spec in specs] == [
        ("cycles:u", 0, True, 2),
        ("branches:pu", 0, False, 2),
        ("instructions:u", 1, True, 1),
        ("faults", 2, True, 1),
    ]


def test_terms_of_sampling() -> None:
    (by_period, by_frequency) = arm("cycles/period=1000/,armv8_pmuv3_0/event=8,freq=100/")
    assert (by_period.period, by_period.frequency, by_period.name) == (1000, None, "cycles/period=1000/u")
    assert (by_frequency.period, by_frequency.frequency) == (None, 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cycels", "unknown event 'cycels', did you mean cycles, "),
        ("instructoins,cycles", "unknown event 'instructoins', did you mean instructions"),
        ("zzz", "unknown event 'zzz' (perfemu list names them all)"),
        ("cycles:z", "'cycles:z': unknown modifier 'z'"),
        ("cycles:uu", "'cycles:uu': modifier 'u' stands twice"),
        ("cycles:pppp", "asks for precise_ip 4; at most 3 exists"),
        ("{cycles,instructions}:b", "modifier 'b' (BPF counters) is not modelled"),
        ("{cycles", "'{' without '}' in '{cycles'"),
        ("cycles}", "'}' without '{' in 'cycles}'"),
        ("cycles,,branches", "an empty event in 'cycles,,branches'"),
        ("", "no event in ''"),
        ("{}", "no event in ''"),
        ("r999", "'r999': armv8_pmuv3_0: no event with code 0x0999; near are "),
        ("armv8_pmuv3_0/event=0x999/", "no event with code 0x0999"),
        ("armv8_pmuv3_0/event=0x12345/", "event=0x12345 does not fit in config:0-15"),
        ("armv8_pmuv3_0/event=x/", "'event=x' in 'armv8_pmuv3_0/event=x/' wants a number"),
        ("armv8_pmuv3_0/umask=1/", "unknown term 'umask' in 'armv8_pmuv3_0/umask=1/'; there are event, "),
        ("armv8_pmuv3_0/inst_retird/", "unknown term 'inst_retird' in 'armv8_pmuv3_0/inst_retird/', did you mean"),
        ("cpu/instructions/", "no PMU 'cpu' on aarch64; there is armv8_pmuv3_0"),
        ("cycles/event=1/", "unknown term 'event' in 'cycles/event=1/'; there are name, period, freq"),
        ("cycles/", "'/' without a closing '/'"),
        ("kmem:mm_page_alloc", "no tracepoint 'kmem:mm_page_alloc' (perfemu list tracepoint names them all)"),
        ("sched:sched_switch:x", "unknown modifier 'x'"),
        ("duration_time", "'duration_time': perf's own events are not modelled"),
        ("mem:main:x", "a breakpoint is written mem:ADDRESS[/LENGTH][:rwx], of numbers, as 0x401000"),
        ("mem:0x1000:xr", "one breakpoint is for an instruction (x) or for data (r, w, rw)"),
        ("mem:0x1000:ww", "'ww' says one kind of access twice"),
        ("mem:0x10000000000000000", "an address has 64 bits"),
    ],
)
def test_wrong_events_are_named(text: str, message: str) -> None:
    with pytest.raises(EventSyntaxError) as raised:
        arm(text)
    assert raised.value.message.startswith("event syntax error: ")
    assert message in raised.value.message
    assert raised.value.exit_status == USAGE_STATUS
    assert "\n" not in raised.value.message
