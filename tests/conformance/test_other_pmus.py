"""Guests find the machine's other PMUs where Linux has them, and perf_event_open answers as Linux does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import require
from c_programs import build
from corpus.debian_machine import machine
from end_to_end.command import perfemu
from guests import guest

SOURCE = Path(__file__).with_name("other_pmus.c")
HOSTS = Path("/sys/bus/event_source/devices/msr")
CORES = ("ideal", "skylake", "redwood-cove", "zen4", "zen5")
CPU_S_OWN = {  # flags of /proc/cpuinfo by vendor that come with PMUs: what each core has of them
    "ideal": {"arch_perfmon", "aperfmperf"},
    "skylake": {"arch_perfmon", "aperfmperf"},
    "redwood-cove": {"arch_perfmon", "aperfmperf"},
    "zen4": {"aperfmperf", "perfctr_core", "perfmon_v2"},
    "zen5": {"aperfmperf", "perfctr_core", "perfmon_v2"},
}


def cat(file: str, core: str) -> list[str]:
    busybox = require.debian_tree("amd64", "busybox-static") / "bin/busybox"
    return said(busybox, "cat", file, core=core)


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
    text = "\n".join(cat("/proc/cpuinfo", core))
    flags = set(text.partition("flags\t\t: ")[2].partition("\n")[0].split())
    of_pmus = {"arch_perfmon", "aperfmperf", "perfctr_core", "perfctr_nb", "perfctr_llc", "perfmon_v2"}
    assert flags & of_pmus == CPU_S_OWN[core]


@pytest.mark.parametrize(("core", "most"), [("skylake", "3"), ("zen4", "0"), ("zen5", "0")])
def test_amd_has_no_precise_events_without_ibs(core: str, most: str) -> None:
    assert cat("/sys/bus/event_source/devices/cpu/caps/max_precise", core) == [most]
