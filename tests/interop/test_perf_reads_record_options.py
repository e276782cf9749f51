"""What record's options put into samples and files: both perf 6.1 and 6.12 read it without a word, and print it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from c_programs import build
from guests import DIRECTORY
from ideal import on_ideal
from real_perf import RealPerf, trixies_perf

SORT = DIRECTORY / "sort" / "x86_64.elf"
PERIOD = 1009
INSTRUCTIONS = ("-e", "instructions", "-c", str(PERIOD))
RETIRED = 273_464  # sort 2000: what stat counts

NESTED = """
#define FUNCTION __attribute__((noinline)) static int
FUNCTION leaf(int n) { volatile int sum = 0; for (int i = 0; i < n; ++i) sum += i; return sum; }
FUNCTION middle(int n) { return leaf(n) + 1; }
int main(void) { return middle(1000) == 0; }
"""


@pytest.fixture(params=["6.1", "6.12"])
def perf(request: pytest.FixtureRequest, tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path, trixies_perf("x86_64") if request.param == "6.12" else ())


def record(path: Path, *options: str, program: Path = SORT) -> list[Path]:
    """The files that there are then."""
    words = ["record", "-q", *options, "-o", path, "--", program, "2000"]
    command = [sys.executable, "-m", "perfemu", *on_ideal(list(map(str, words)))]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return sorted(path.parent.glob(f"{path.name}*"))


def script(perf: RealPerf, path: Path, fields: str) -> list[list[str]]:
    return [line.split() for line in perf.run("script", "-i", path, "-F", fields).splitlines()]


# options -> fields of perf script, and what the first sample has in them
SAMPLES = {
    "-d --phys-data --data-page-size --code-page-size -W": ("addr,phys_addr,data_page_size,code_page_size,weight", 5),
    "-T -P --sample-cpu --sample-identifier": ("time,period,cpu,ip", 4),
    "-I --user-regs=ip,sp": ("ip,iregs,uregs", 1 + 21 + 3),  # each begins with the ABI
    "-s --running-time --switch-events": ("ip,sym", 2),
    "-R -k raw": ("time,cpu,ip", 3),
    "--per-thread --no-bpf-event": ("pid,tid,ip", 2),  # as one word, pid/tid
    "--no-timestamp": ("ip,period", 2),
    "--call-graph dwarf,1024 --all-user": ("comm,tid", 2),
}


@pytest.mark.parametrize("options", SAMPLES)
def test_samples(options: str, perf: RealPerf, tmp_path: Path) -> None:
    (path,) = record(tmp_path / "perf.data", *INSTRUCTIONS, *options.split())
    fields, count = SAMPLES[options]
    lines = [line for line in script(perf, path, fields) if line]
    assert len(lines) >= RETIRED // PERIOD
    assert len(lines[0]) == count
    assert "partition" in "\n".join(perf.report(path))


def test_page_faults_have_addresses_and_pages(perf: RealPerf, tmp_path: Path) -> None:
    """The frames are the machine's: each page that was touched first has one of its own."""
    options = "-d --phys-data --data-page-size --code-page-size -e minor-faults -c 1"
    (path,) = record(tmp_path / "perf.data", *options.split())
    rows = script(perf, path, "addr,phys_addr,data_page_size,code_page_size")
    assert len(rows) > 2
    assert {tuple(row[2:]) for row in rows} == {("4K", "4K")}
    assert len({int(row[1], 16) & ~0xFFF for row in rows}) == len(rows)
    assert all(int(row[0], 16) & 0xFFF == int(row[1], 16) & 0xFFF for row in rows)


def test_control_groups(perf: RealPerf, tmp_path: Path) -> None:
    """The guest makes one, and what it executes there is named by it; before, it is in the root."""
    script = f"mkdir /sys/fs/cgroup/new; echo 0 > /sys/fs/cgroup/new/cgroup.procs; exec {SORT} 2000"
    words = ["record", "-q", *INSTRUCTIONS, "--all-cgroups", "-o", tmp_path / "perf.data", "--", "sh", "-c", script]
    command = [sys.executable, "-m", "perfemu", *on_ideal(list(map(str, words)))]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    lines = perf.report(tmp_path / "perf.data", "-F", "sample,comm", "-s", "cgroup")
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    inside = {comm: int(samples) for samples, comm, group in rows if group == "/new"}
    assert inside[SORT.name[:15]] - RETIRED // PERIOD in (0, 1)  # the shell's last period ends there
    assert {group for _, _, group in rows} == {"/", "/new"}


def test_only_a_control_group(perf: RealPerf, tmp_path: Path) -> None:
    """Only what is executed there has samples; what was mapped before, and elsewhere, has its names."""
    script = f"mkdir /sys/fs/cgroup/new; sh -c 'echo 0 > /sys/fs/cgroup/new/cgroup.procs; exec {SORT} 2000'; :"
    words = ["record", "-q", "-a", *INSTRUCTIONS, "-G", "new", "-o", tmp_path / "perf.data", "--", "sh", "-c", script]
    command = [sys.executable, "-m", "perfemu", *on_ideal(list(map(str, words)))]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    lines = perf.report(tmp_path / "perf.data", "-F", "sample,comm,dso", "-s", "comm,dso")
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    samples = {comm: int(number) for number, comm, dso in rows if dso == SORT.name}
    assert samples[SORT.name[:15]] - RETIRED // PERIOD in (0, 1)  # the shell's last period ends there
    assert {comm for _, comm, _ in rows} == {"sh", SORT.name[:15]}
    assert "[unknown]" not in {dso for _, _, dso in rows}


def test_delayed(perf: RealPerf, tmp_path: Path) -> None:
    """Symbols are there, of what was mapped before the first sample."""
    (path,) = record(tmp_path / "perf.data", *INSTRUCTIONS, "-D", "100us-150us,200us")
    times = [float(line[0].rstrip(":")) - 100 for line in script(perf, path, "time,sym")]
    assert len(times) == 50_000 // PERIOD + (RETIRED - 200_000 + 50_000 % PERIOD) // PERIOD
    assert all(0.0001 <= time <= 0.00015 or time >= 0.0002 for time in times)
    assert "partition" in "\n".join(perf.report(path))


def test_only_the_last_samples(perf: RealPerf, tmp_path: Path) -> None:
    """A page has room for 102 samples of 40 bytes (header, IDENTIFIER, IP, TID, TIME), one of them cut."""
    (path,) = record(tmp_path / "perf.data", *INSTRUCTIONS, "--overwrite", "-m", "1", "--tail-synthesize")
    times = [line[0] for line in script(perf, path, "time,sym")]
    assert len(times) == 4096 // 40
    assert times == sorted(times)
    assert times[-1] == f"100.{RETIRED // PERIOD * PERIOD // 1000:06}:"
    assert "check" in "\n".join(perf.report(path))


def test_several_files(perf: RealPerf, tmp_path: Path) -> None:
    """Together they have all samples; each has its own symbols. Their names say when they begin."""
    paths = record(tmp_path / "perf.data", *INSTRUCTIONS, "--switch-output=100us")
    assert [path.name for path in paths] == [f"perf.data.20231114221320000{us}00000" for us in (0, 1, 2)]
    assert sum(len(script(perf, path, "ip")) for path in paths) == RETIRED // PERIOD
    for path in paths:
        assert "unknown" not in perf.run("script", "-i", path)


def test_files_of_a_size(perf: RealPerf, tmp_path: Path) -> None:
    options = ("--switch-output=4K", "--switch-max-files", "2", "-m", "1")
    paths = record(tmp_path / "perf.data", *INSTRUCTIONS, *options)
    assert len(paths) == 2
    assert all(len(script(perf, path, "ip,sym")) > 20 for path in paths)


def test_the_time_of_day(perf: RealPerf, tmp_path: Path) -> None:
    """The guest's, of its --date; perf prints the host's time zone's."""
    path = record(tmp_path / "perf.data", *INSTRUCTIONS, "-k", "mono", "--date", "2026-11-26T12:30")[0]
    header = perf.run("report", "--header-only", "-i", path).splitlines()
    assert "# clockid frequency: 1000 MHz" in header
    assert "# clockid: monotonic (1)" in header
    assert script(perf, path, "tod")[0][1].rstrip(":").endswith(":30:00.000001")


def test_callers_by_dwarf(perf: RealPerf, tmp_path: Path) -> None:
    """Of functions without frame pointers; perf 6.1 and 6.12 of x86-64 unwind that ISA."""
    source = tmp_path / "nested.c"
    source.write_text(NESTED, encoding="utf-8")
    program = build(source, "x86_64", tmp_path / "nested", "-fomit-frame-pointer", "-Wl,--eh-frame-hdr")
    path = record(
        tmp_path / "perf.data", "--call-graph", "dwarf,4096", "-e", "instructions", "-c", "500", program=program
    )[0]
    chains = perf.run("script", "--no-inline", "-i", path, "-F", "ip,sym").split("\n\n")
    names = [[line.split()[1] for line in chain.splitlines() if line] for chain in chains]
    assert ["leaf", "middle", "main"] in [chain[:3] for chain in names]


def test_filters(perf: RealPerf, tmp_path: Path) -> None:
    """sort writes one line; nothing that is shorter."""
    options = ("-e", "syscalls:sys_enter_write", "--filter", "count > 4", "--filter", "fd == 1")
    (path,) = record(tmp_path / "perf.data", *options, "-e", "syscalls:sys_enter_write", "--filter", "count < 4")
    events = [line[0] for line in script(perf, path, "event")]
    assert events == ["syscalls:sys_enter_write:"]
