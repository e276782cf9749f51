"""PMUs that CPUs share count what can be derived of lines, and what the cores' own PMUs and probes say."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

import perfemu
from board_images import pc_image
from emulator.core_file.core_file import load_core
from emulator.core_file.probes import fires
from emulator.probes import Probe
from end_to_end.command import perfemu as command
from end_to_end.random_guests import write_program
from guests import guest
from perfemu.api import StatResult
from perfemu.counters import enable_groups, open_counters
from perfemu.errors import EventSyntaxError, UsageError
from perfemu.session import Session
from pmu.model import model
from tests.unit.native.bare import assemble

SCAN = str(guest("scan_and_reuse", "x86_64").path)
PLAIN = ("l1i.prefetchers=", "l1d.prefetchers=", "l2.prefetchers=", "kernel.fresh_pages=memory")
MISSES = {"skylake": "unc_cbo_cache_lookup.any_i", "zen4": "l3_lookup_state.l3_miss", "zen5": "l3_lookup_state.l3_miss"}
ALL_MISSES = (Probe.LL_REFILL_FETCH, Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE, Probe.LL_REFILL_PREFETCH)
MIB = 1 << 20

LINES = 4096
# In one line of code: mmap(0, 4096 * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS), a store to each line,
# exit(whatever). No stack, no data besides.
STORES = f"""
        mov     $9, %al
        xor     %edi, %edi
        mov     ${LINES * 64}, %esi
        mov     $3, %dl
        mov     $0x22, %r10b
        syscall
        mov     ${LINES}, %ebx
1:      mov     %ebx, (%rax)
        add     $64, %rax
        dec     %ebx
        jnz     1b
        mov     $60, %eax
        syscall
"""
# Two processes of a machine with two CPUs: fork, and each loads lines of its own, as many.
TWO = f"""
        mov     $57, %eax
        syscall
        mov     $0x22, %r10d
        mov     $9, %eax
        xor     %edi, %edi
        mov     ${LINES * 64}, %esi
        mov     $3, %edx
        syscall
        mov     ${LINES}, %ebx
1:      mov     (%rax), %rcx
        mov     %rcx, (%rax)
        add     $64, %rax
        dec     %ebx
        jnz     1b
        mov     $61, %eax
        mov     $-1, %edi
        xor     %esi, %esi
        xor     %edx, %edx
        xor     %r10d, %r10d
        syscall
        xor     %edi, %edi
        mov     $60, %eax
        syscall
"""


def counted(program: str, events: list[str], core: str, *changes: str, **options: object) -> StatResult:
    return perfemu.stat(perfemu.Guest([program], core=core, core_changes=changes), events, **options)  # type: ignore[arg-type]


def values(program: str, events: list[str], core: str, *changes: str, **options: object) -> list[int]:
    return [round(count.spread.mean) for count in counted(program, events, core, *changes, **options).counts]


def program(tmp_path: Path, source: str) -> str:
    return write_program(tmp_path / "program", "x86_64", assemble("x86_64", source, tmp_path))[0]


@pytest.mark.parametrize(
    ("core", "events", "data"),
    [
        ("skylake", ["uncore_imc/data_reads/", MISSES["skylake"]], "offcore_requests.l3_miss_demand_data_rd"),
        (
            "redwood-cove",
            ["uncore_imc/cas_count_read/", "unc_m_cas_count_sch0.all"],
            "offcore_requests.l3_miss_demand_data_rd",
        ),
        ("zen4", [MISSES["zen4"], "umc_cas_cmd.rd"], "ls_dmnd_fills_from_sys.dram_io_near"),
        ("zen5", [MISSES["zen5"], "umc_cas_cmd.rd"], "ls_dmnd_fills_from_sys.dram_io_near"),
    ],
)
def test_each_line_of_a_scan_is_read_once(core: str, events: list[str], data: str) -> None:
    """Two lines that are used again, 1,600 that are read once, and the 60 bytes of code at the start of a page.

    `data`: the core's own PMU, which tells data from code.
    """
    assert values(SCAN, [*events, data], core, *PLAIN) == [2 + 1600 + 1, 2 + 1600 + 1, 2 + 1600]


@pytest.mark.parametrize("core", ["skylake", "redwood-cove", "zen4", "zen5"])
def test_prefetches_count_where_they_are_asked_for(core: str) -> None:
    """With them, too, each line that is loaded is read once; what they bring besides is read as well."""
    reads = {"skylake": "uncore_imc/event=1/", "redwood-cove": "unc_m_cas_count_sch0.rd"}.get(core, "umc_cas_cmd.rd")
    requests = {
        "skylake": ("unc_cbo_cache_lookup.read_mesi",),
        "redwood-cove": tuple(f"unc_cha_llc_lookup.local_{kind}" for kind in ("pf", "dmnd_code", "dmnd_data_rd")),
    }.get(core, ("l3_lookup_state.all_coherent_accesses_to_l3",))
    read, *asked = values(SCAN, [reads, *requests], core)
    assert read == sum(asked) >= 1603  # nothing that is asked for is in the last cache already
    assert min(asked) > 0


def test_written_lines_leave_for_memory(tmp_path: Path) -> None:
    """L1D and L2 of 512 lines each, an inclusive LLC of 1,024: 64 sets of 16 ways, as many sets as a page has lines.

    Each of the 4,096 lines is read for ownership, 64 in every set of the LLC. At the end that holds the line of code,
    which is in L1I, and 1,023 written ones; all others have been written to memory. In its set the code's line is the
    one that was used longest ago whenever 16 others have come: 4 times in all it is taken out and read again.
    """
    smaller = ("l2.size=32KiB", "l2.ways=8", "llc.size=64KiB", "llc.ways=16")
    events = ["uncore_imc/event=1/", "uncore_imc/event=2/", "uncore_imc/event=4/", MISSES["skylake"]]
    reads = LINES + 1 + 64 // 16
    writes = LINES - (1024 - 1)
    found = values(program(tmp_path, STORES), events, "skylake", *PLAIN, *smaller)
    assert found == [reads, writes, reads + writes, reads]


def test_counts_of_memory_are_shown_in_mib() -> None:
    """1,603 lines of 64 bytes; as perf, two digits behind the point."""
    events = "uncore_imc/data_reads/,uncore_imc/data_writes/,uncore_imc/event=1/"
    changes = [part for change in PLAIN for part in ("--set", change)]
    done = command("stat", "--core", "skylake", *changes, "-x,", "-e", events, SCAN)
    rows = [line.split(",")[:3] for line in done.stderr.decode().splitlines()]
    assert rows == [
        [f"{1603 * 64 / MIB:.2f}", "MiB", "uncore_imc/data_reads/"],
        ["0.00", "MiB", "uncore_imc/data_writes/"],
        ["1603", "", "uncore_imc/event=1/"],
    ]


def test_results_in_mib_are_compared_by_lines(tmp_path: Path) -> None:
    """1,603 and 1,608 of them."""
    counted = ("stat", "--core", "skylake", "-j", "-e", "uncore_imc/data_reads/", "-o")
    for name, changes in (("plain", PLAIN), ("prefetched", ())):
        options = [part for change in changes for part in ("--set", change)]
        assert command(*counted, name, *options, SCAN, cwd=tmp_path).returncode == 0
    lines = command("diff", "plain", "prefetched", cwd=tmp_path).stdout.decode().splitlines()
    assert lines[-1].split()[:3] == ["1,603", "1,608", "+5"]


@pytest.mark.parametrize("core", ["zen4", "zen5"])
def test_bandwidth_is_lines_over_time(core: str) -> None:
    """AMD's formula, with the seconds that have elapsed: 1,603 lines of 64 bytes."""
    changes = [part for change in PLAIN for part in ("--set", change)]
    done = command("stat", "--core", core, *changes, "-x,", "-M", "umc_mem_bandwidth", SCAN)
    row = done.stderr.decode().splitlines()[0].split(",")
    elapsed_ns = counted(SCAN, ["umc_cas_cmd.all"], core, *PLAIN).elapsed_ns
    assert row[:3] == ["1603", "", "umc_cas_cmd.all"]
    assert (float(row[5]), row[6]) == (round(1603 * 64 / 1e6 / (elapsed_ns / 1e9), 1), "MB/s  umc_mem_bandwidth")


@pytest.mark.parametrize("core", MISSES)
@pytest.mark.parametrize("name", ["sort", "memory_access", "fresh_pages", "interpreter"])
def test_shared_counts_are_the_sum_of_the_cores_probes(core: str, name: str) -> None:
    """And of lines that memory is asked for: by demand, prefetchers and page walks, each read of DRAM is a miss."""
    session = Session(perfemu.Guest([str(guest(name, "x86_64").path)], core=core))
    (spec,) = session.parse([MISSES[core]])
    opened = open_counters(session, [spec])
    enable_groups(opened)  # type: ignore[arg-type]
    session.run()
    cores = [cpu.core for cpu in session.machine.cpus]
    missed = sum(core.total(probe) for core in cores for probe in ALL_MISSES)
    assert opened[0].read_values().value == missed  # type: ignore[union-attr]
    assert missed == sum(core.total(Probe.DRAM_READ) for core in cores) > 0


@pytest.mark.parametrize("walks", ["page_walk.reads_entries=false", "page_walk.reads_entries=true"])
@pytest.mark.parametrize("name", ["sort", "matrix"])
def test_memory_s_lines_are_what_the_last_cache_brings_and_evicts(name: str, walks: str) -> None:
    """Of an inclusive LLC: each line that it has not is read, whoever asks; each written one that leaves is written."""
    small = ("l1d.size=4KiB", "l2.size=8KiB", "l2.ways=4", "llc.size=32KiB", walks)
    program = str(guest(name, "x86_64").path)
    events = ["uncore_imc/event=1/", MISSES["skylake"], "uncore_imc/event=2/"]
    session = Session(perfemu.Guest([program], core="skylake", core_changes=small))
    opened = open_counters(session, session.parse(events))
    enable_groups(opened)  # type: ignore[arg-type]
    session.run()
    evicted = sum(cpu.core.total(Probe.LL_WRITE_BACK) for cpu in session.machine.cpus)
    reads, misses, writes = (event.read_values().value for event in opened)  # type: ignore[union-attr]
    assert reads == misses > 0
    assert writes == evicted > 0


@pytest.mark.parametrize("options", [{"all_cpus": True}, {"cpu_list": "0"}, {"cpu_list": "1"}, {}])
def test_all_cpus_count_whichever_is_asked_for(options: dict[str, object], tmp_path: Path) -> None:
    """Once, as the cpumask of the PMU has it. coreid tells cores apart: each process has a CPU, and reads lines of its
    own; the two lines of code are read by whoever comes first.
    """
    both = perfemu.Guest([program(tmp_path, TWO)], core="zen5", core_changes=PLAIN, cpus=2)
    one = "amd_l3/event=4,umask=1,threadmask=1,enallslices,coreid={}/"
    events = [MISSES["zen5"], one.format(0), one.format(1)]
    found = perfemu.stat(both, events, **options)  # type: ignore[arg-type]
    sum_of_all, first, second = (round(count.spread.mean) for count in found.counts)
    assert (sum_of_all, first + second) == (2 * LINES + 2, 2 * LINES + 2)
    assert min(first, second) >= LINES
    again = perfemu.stat(both, events)
    assert [round(count.spread.mean) for count in again.counts] == [sum_of_all, first, second]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    stores = program(tmp_path, STORES)
    events = ["cycles", "instructions", "LLC-load-misses"]
    for core, further in (("skylake", "uncore_imc/data_reads/"), ("zen5", MISSES["zen5"])):
        own = events if core == "skylake" else events[:2]
        alone, together = counted(stores, own, core), counted(stores, [*own, further], core)
        assert [together[event] for event in own] == [alone[event] for event in own]
        assert together.elapsed_ns == alone.elapsed_ns


def test_each_cpu_s_line_is_where_the_pmu_counts() -> None:
    """perf stat -a -A has a line for the CPU of the cpumask alone."""
    events = f"{MISSES['skylake']},instructions"
    done = command("stat", "--core", "skylake", "--cpus", "2", "-aA", "-x,", "-e", events, SCAN)
    rows = [line.split(",")[:4:3] for line in done.stderr.decode().splitlines()]
    assert rows == [["CPU0", MISSES["skylake"]], ["CPU0", "instructions:u"], ["CPU1", "instructions:u"]]


def test_a_socket_s_line_says_how_many_cpus_have_counted() -> None:
    """As Debian's perf as a guest: one, of what all of them share."""
    per_socket = ("stat", "--core", "zen5", "--cpus", "3", "-a", "--per-socket", "-e", f"{MISSES['zen5']},instructions")
    rows = [line.split(",") for line in command(*per_socket, "-x,", SCAN).stderr.decode().splitlines()]
    retired = guest("scan_and_reuse", "x86_64").counts["INST_RETIRED"]
    assert [row[:2] + row[4:5] for row in rows] == [["S0", "1", MISSES["zen5"]], ["S0", "3", "instructions:u"]]
    assert int(rows[1][2]) == retired
    text = command(*per_socket, SCAN).stderr.decode()
    assert f"\nS0        3 {retired:>18,}      instructions:u" in text
    objects = [json.loads(line) for line in command(*per_socket, "-j", SCAN).stderr.splitlines()]
    assert [(row["socket"], row["aggregate-number"]) for row in objects] == [("S0", 1), ("S0", 3)]
    parts = perfemu.stat(perfemu.Guest([SCAN], core="zen5"), ["instructions"], all_cpus=True, per_socket=True).parts
    assert {name: counts["instructions"] for name, counts in parts.items()} == {"S0": retired}
    for wrong, why in ((("-aA",), "-A and --per-socket exclude each other"), ((), "counts of sockets want -a or -C")):
        done = command("stat", "--per-socket", *wrong, SCAN)
        assert done.returncode == 129
        assert why in done.stderr.decode()


@pytest.mark.parametrize(
    ("core", "event", "why"),
    [
        ("ideal", "uncore_imc/data_reads/", "PMU 'uncore_imc' is not modelled: this core models no caches"),
        ("ideal", "unc_cbo_cache_lookup.any_i", "PMU 'uncore_cbox' is not modelled: this core models no caches"),
        ("skylake", "uncore_imc/gt_requests/", "there is no graphics unit"),
        ("skylake", "uncore_imc/data_reads/u", "it knows no modifier 'u'"),
        ("skylake", "uncore_imc_0/data_reads/", "there is one of its kind here, which is called uncore_imc"),
        ("skylake", "uncore_cbox/event=0x34,umask=0x88,edge/", "edge=1: uncore_cbox has nothing like it here"),
        ("skylake", "unc_cbo_cache_lookup.any_m", "in which state a line was found is not told apart"),
        ("skylake", "unc_arb_trk_requests.all", "no arbiter is modelled"),
        ("skylake", "unc_cha_tor_inserts.ia", "servers have it; clients like this one have uncore_cbox"),
        ("skylake", "{cycles,uncore_imc/data_reads/}", "events of uncore_imc are of all CPUs"),
        ("redwood-cove", "unc_m_cas_count_sch1.rd", "memory is one channel here, with one command scheduler: sch0"),
        ("redwood-cove", "uncore_cha/event=0x34,umask=0x1850ff,filter_tid=1/", "filter_tid=1: uncore_cha has nothing"),
        ("zen5", "l3_xi_sampled_latency.all", "no latencies are sampled in the L3"),
        ("zen5", "umc_mem_clk", "DRAM has no clock of its own here"),
        ("zen5", "amd_umc_3/event=0xa/", "there is one of its kind here, which is called amd_umc_0"),
        ("ideal", "amd_l3/event=4/", "no PMU 'amd_l3' on x86_64; there is cpu, msr"),
        ("zen5", "amd_l3/event=9/", "amd_l3 has no event 0x9; it has l3_lookup_state.all_coherent"),
        ("zen5", "amd_l3/event=4,umask=1,threadmask=2,enallslices/", "each core has one thread here, which is bit 0"),
        ("zen5", "amd_l3/event=4,umask=1,threadmask=1,sliceid=2/", "sliceid=2: the L3 is one slice here"),
    ],
)
def test_what_is_not_there_is_refused_by_name(core: str, event: str, why: str) -> None:
    with pytest.raises(EventSyntaxError, match=re.escape(why)):
        counted(SCAN, [event], core)


def test_what_cannot_be_told_apart_is_refused() -> None:
    for options in ({"per_thread": True}, {"from_symbol": "_start"}):
        with pytest.raises(UsageError, match="it is counted for the machine as a whole"):
            counted(SCAN, ["uncore_imc/data_reads/"], "skylake", **options)
    with pytest.raises(perfemu.PerfemuError, match="coreid=3: there are 1 cores"):
        counted(SCAN, ["amd_l3/event=4,umask=1,threadmask=1,enallslices,coreid=3/"], "zen5")
    done = command("record", "--core", "skylake", "-e", "uncore_imc/data_reads/", "-o", "/dev/null", SCAN)
    assert done.returncode != 0
    assert b"its counters do not interrupt" in done.stderr


def test_a_core_without_a_last_cache_has_what_is_left() -> None:
    """Memory alone, or nothing: by the parts that a core file has."""
    tables = load_core("skylake").fired_by
    without = {name: table for name, table in tables.items() if name != "llc"}
    limited = model("skylake").limited_to(partial(fires, without))
    assert {source.name: len(source.events) for source in limited.sources} == {
        "msr": 3,
        "uncore_cbox": 3,  # what cores answer each other
        "uncore_imc": 3,
    }
    assert [source.name for source in model("skylake").limited_to(partial(fires, {})).sources] == ["msr"]


def test_a_board_s_own_kernel_is_counted(tmp_path: Path) -> None:
    """All that its CPUs read: each line that the last cache has not is read from memory."""
    image = tmp_path / "image"
    image.write_bytes(pc_image(64))
    events = f"uncore_imc/event=1/,{MISSES['skylake']},uncore_imc/event=2/"
    done = command("stat", "--board", "pc", "--core", "skylake", "--cpus", "2", "-x,", "-e", events, str(image))
    reads, misses, writes = (int(line.split(",")[0]) for line in done.stderr.decode().splitlines())
    assert reads == misses > 100
    assert writes == 0  # 8 MiB hold all that it touches
