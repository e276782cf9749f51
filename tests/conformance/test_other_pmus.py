"""Guests find the machine's other PMUs where Linux has them, and perf_event_open answers as Linux does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import require
from c_programs import build
from corpus.debian_machine import machine
from debian import TRIXIE
from end_to_end.command import perfemu
from end_to_end.random_guests import write_program
from guests import guest
from tests.unit.native.bare import assemble

SOURCE = Path(__file__).with_name("other_pmus.c")
HOSTS = Path("/sys/bus/event_source/devices/msr")
CORES = ("ideal", "skylake", "redwood-cove", "zen4", "zen5")
CPU_S_OWN = {  # flags of /proc/cpuinfo by vendor that come with PMUs: what each core has of them
    "ideal": {"arch_perfmon", "aperfmperf"},
    "skylake": {"arch_perfmon", "aperfmperf"},
    "redwood-cove": {"arch_perfmon", "aperfmperf"},
    "zen4": {"aperfmperf", "perfctr_core", "perfctr_llc", "perfmon_v2"},
    "zen5": {"aperfmperf", "perfctr_core", "perfctr_llc", "perfmon_v2"},
}


def cat(core: str, *files: str) -> list[str]:
    busybox = require.debian_tree("amd64", "busybox-static") / "bin/busybox"
    return said(busybox, "cat", *files, core=core)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, "x86_64", tmp_path_factory.mktemp("other_pmus") / "other_pmus")


def said(*arguments: str | Path, core: str, options: tuple[str, ...] = (), cwd: Path | str = "/") -> list[str]:
    done = perfemu("run", "--core", core, *options, "--", *map(str, arguments), cwd=cwd)
    assert done.returncode == 0, done
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("core", CORES)
def test_msr_answers_as_linux_does(program: Path, core: str) -> None:
    """arch/x86/events/msr.c: events of tasks, too; neither samples nor filters."""
    refused = ["exclude_kernel", "exclude_guest", "sample_period", "config 0xfe"]
    expected = ["of a task: opens", "of a CPU: opens", *(f"{what}: Invalid argument" for what in refused), "counts on"]
    for config in ("0", "1", "2"):
        assert said(program, "msr", config, core=core) == expected
    if HOSTS.exists():  # the host's Linux, where it lets us count a CPU
        done = subprocess.run([program, "msr", "0"], capture_output=True, text=True, check=False)
        assert done.returncode != 0 or done.stdout.splitlines() == expected


def test_perf_counts_by_it_what_we_count(tmp_path: Path) -> None:
    """Debian's, unmodified. It counts from execve's return on, and so do we."""
    debian = ("--sysroot", str(machine("x86_64", ("linux-perf",))))
    million = guest("instructions_million", "x86_64")
    events = "msr/tsc/,msr/aperf/,msr/mperf/,instructions:u"
    said("perf", "stat", "-x,", "-o", "out", "-e", events, million.path, core="ideal", options=debian, cwd=tmp_path)
    rows = [line.split(",") for line in (tmp_path / "out").read_text().splitlines() if "," in line]
    assert [(row[2], int(row[0])) for row in rows] == [
        (event, million.counts["INST_RETIRED"]) for event in events.split(",")
    ]


@pytest.mark.parametrize("core", CORES)
def test_cpuinfo_has_the_flags_of_its_pmus(core: str) -> None:
    text = "\n".join(cat(core, "/proc/cpuinfo"))
    flags = set(text.partition("flags\t\t: ")[2].partition("\n")[0].split())
    of_pmus = {"arch_perfmon", "aperfmperf", "perfctr_core", "perfctr_nb", "perfctr_llc", "perfmon_v2"}
    assert flags & of_pmus == CPU_S_OWN[core]


@pytest.mark.parametrize(("core", "most"), [("skylake", "3"), ("zen4", "0"), ("zen5", "0")])
def test_amd_has_no_precise_events_without_ibs(core: str, most: str) -> None:
    assert cat(core, "/sys/bus/event_source/devices/cpu/caps/max_precise") == [most]


UNCORE = {  # core, PMU: an event's config, files of sysfs as Linux 6.12 has them
    ("skylake", "uncore_imc"): (
        "1",
        {
            "cpumask": "0",
            "format/event": "config:0-7",
            "events/data_reads": "event=0x01",
            "events/data_reads.scale": "6.103515625e-5",
            "events/data_reads.unit": "MiB",
            "events/data_writes": "event=0x02",
        },
    ),
    ("skylake", "uncore_cbox"): ("0x8834", {"cpumask": "0", "format/cmask": "config:24-28", "format/inv": "config:23"}),
    ("redwood-cove", "uncore_imc"): (
        "0xcf05",
        {
            "cpumask": "0",
            "format/umask": "config:8-15,32-55",
            "format/thresh": "config:24-31",
            "events/cas_count_read": "event=0x05,umask=0xcf",
            "events/cas_count_write": "event=0x05,umask=0xf0",
            "events/cas_count_write.unit": "MiB",
        },
    ),
    ("redwood-cove", "uncore_cha"): (
        "0x1841_0000_ff34".replace("_", ""),
        {"cpumask": "0", "format/umask": "config:8-15,32-63", "format/filter_tid": "config1:0-9"},
    ),
    **{
        (core, "amd_l3"): (
            "0xff04",
            {
                "cpumask": "0",
                "format/event": "config:0-7",
                "format/umask": "config:8-15",
                "format/coreid": "config:42-44",
                "format/enallslices": "config:46",
                "format/enallcores": "config:47",
                "format/sliceid": "config:48-50",
                "format/threadmask": "config:56-57",
            },
        )
        for core in ("zen4", "zen5")
    },
    ("zen5", "amd_umc_0"): (
        "0x10a",
        {"cpumask": "0", "format/event": "config:0-7", "format/rdwrmask": "config:8-9"},
    ),
}


@pytest.mark.parametrize(("core", "pmu"), UNCORE)
def test_what_all_cpus_share_answers_as_linux_does(program: Path, core: str, pmu: str) -> None:
    """uncore.c of both vendors: of no task (perf_invalid_context), neither samples nor filters; any CPU stands for its.

    Of AMD's, perf_event_open itself refuses samples.
    """
    config, files = UNCORE[core, pmu]
    invalid, no_samples = "Invalid argument", "Operation not supported" if "amd" in pmu else "Invalid argument"
    expected = [
        *("cpumask 0", f"of a task: {invalid}", "of a CPU: opens"),
        *(f"exclude_{what}: {invalid}" for what in ("kernel", "guest")),
        *(f"sample_period: {no_samples}", f"config 0xfe: {invalid}", "counts on"),
    ]
    assert said(program, pmu, config, core=core, options=("--cpus", "2")) == expected
    device = f"/sys/bus/event_source/devices/{pmu}"
    assert dict(zip(files, cat(core, *(f"{device}/{name}" for name in files)), strict=True)) == files


@pytest.mark.parametrize(
    ("core", "events", "options"),
    [
        ("skylake", "uncore_imc/data_reads/,uncore_imc/data_writes/,uncore_imc/event=0x01/", ((),)),
        (
            "redwood-cove",
            "uncore_imc/cas_count_read/,uncore_imc/cas_count_write/,uncore_imc/event=5,umask=0xcf/",
            (("-a",),),
        ),
        (
            "zen5",
            "amd_l3/event=0x04,umask=0xff/,amd_l3/event=0x04,umask=0x01/,amd_l3/event=0x04,umask=0xfe/",
            ((), ("-a",)),
        ),
    ],
    ids=("skylake", "redwood-cove", "zen5"),
)
def test_perf_counts_what_all_cpus_share(
    core: str, events: str, options: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    """Debian's, unmodified; with -a, and without, where it says "system wide" by itself. A group's counts add up."""
    debian = ("--sysroot", str(machine("x86_64", ("linux-perf",))))
    scan = guest("scan_and_reuse", "x86_64").path
    counted = []
    for option in options:
        said(
            "perf",
            "stat",
            *option,
            "-x;",
            "-o",
            "out",
            "-e",
            f"{{{events}}}",
            scan,
            core=core,
            options=debian,
            cwd=tmp_path,
        )
        rows = [line.split(";") for line in (tmp_path / "out").read_text().splitlines() if ";" in line]
        assert [row[2] for row in rows] == re.split(r",(?=[a-z_]+[0-9]?/)", events)
        counted.append([float(row[0]) for row in rows])
        if core == "zen5":
            assert rows[0][1] == ""
            assert counted[-1][0] == counted[-1][1] + counted[-1][2] > 0
        else:
            assert rows[0][1] == rows[1][1] == "MiB"
            assert counted[-1][0] == pytest.approx(counted[-1][2] * 64 / (1 << 20), abs=0.005)
            assert counted[-1][2] > 0


@pytest.mark.parametrize(
    ("core", "event", "counters"),
    [("zen5", "amd_l3/event=4,umask=1/", 6), ("skylake", "uncore_cbox/event=0x34,umask=0x88/", 4)],
)
def test_events_take_turns_on_as_many_counters_as_the_part_has(
    core: str, event: str, counters: int, tmp_path: Path
) -> None:
    """Debian's perf as a guest asks for two more: each counts its share of the time, to a turn of 4 of the 100 ms."""
    debian = ("--sysroot", str(machine("x86_64", ("linux-perf",))))
    perf = ("perf", "stat", "-a", "-x;", "-o", "out", *("-e", event) * (counters + 2), "sleep", "0.1")
    said(*perf, core=core, options=debian, cwd=tmp_path)
    rows = [line.split(";") for line in (tmp_path / "out").read_text().splitlines() if ";" in line]
    shares = [float(row[4]) for row in rows]
    assert len(shares) == counters + 2
    assert all(share == pytest.approx(100 * counters / (counters + 2), abs=8) for share in shares), shares
    assert sum(shares) == pytest.approx(100 * counters, abs=len(shares))  # each is printed whole


LINES = 4096
# mmap(0, 4096 * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS), a store to each line, exit(0)
STORES = f"""
        mov     $9, %eax
        xor     %edi, %edi
        mov     ${LINES * 64}, %esi
        mov     $3, %edx
        mov     $0x22, %r10d
        syscall
        mov     ${LINES}, %ebx
1:      mov     %ebx, (%rax)
        add     $64, %rax
        dec     %ebx
        jnz     1b
        xor     %edi, %edi
        mov     $60, %eax
        syscall
"""
PLAIN = ("l1i.prefetchers=", "l1d.prefetchers=", "l2.prefetchers=", "kernel.fresh_pages=memory")


@pytest.mark.parametrize(
    ("core", "events"),
    [
        ("skylake", "unc_cbo_cache_lookup.any_i,uncore_imc/event=1/"),
        ("redwood-cove", "unc_m_cas_count_sch0.rd,unc_cha_llc_lookup.local_dmnd_rfo"),
        ("zen4", "l3_lookup_state.l3_miss,umc_cas_cmd.rd"),
        ("zen5", "l3_lookup_state.l3_miss,umc_cas_cmd.rd"),
    ],
)
def test_perf_6_12_counts_them_by_the_vendors_names(core: str, events: str, tmp_path: Path) -> None:
    """Debian's, unmodified: the names are in its own lists, which it chooses by CPUID.

    Each line is read for ownership before it is written; besides, perf's own work until it stops is counted.
    """
    tree = require.debian_tree("amd64", "linux-perf", release=TRIXIE)
    (stores,) = write_program(tmp_path / "stores", "x86_64", assemble("x86_64", STORES, tmp_path))
    options = [part for change in PLAIN for part in ("--set", change)]
    perf = ("/usr/bin/perf", "stat", "-a", "-x;", "-o", "out", "-e", events, stores)
    said(*perf, core=core, options=("--sysroot", str(tree), *options), cwd=tmp_path)
    rows = [line.split(";") for line in (tmp_path / "out").read_text().splitlines() if ";" in line]
    assert [row[2] for row in rows] == events.split(",")
    assert all(LINES <= int(row[0]) < LINES + 500 for row in rows), rows
