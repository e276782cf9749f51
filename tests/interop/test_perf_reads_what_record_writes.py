"""perfemu record, then the real perf: no warning, and the report that perfemu shows. Both ISAs."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import require
from ideal import on_ideal
from real_perf import RealPerf

GUESTS = Path(__file__).parents[2] / "guest_programs"
ISAS = ("x86_64", "aarch64")
PERIOD = 1009


def perfemu(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "perfemu", *on_ideal([str(argument) for argument in arguments])]
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


@pytest.fixture
def perf(tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path)


@pytest.fixture(scope="module", params=ISAS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of the sorting guest with call chains: quicksort is recursive."""
    path = tmp_path_factory.mktemp(request.param) / "perf.data"
    perfemu("record", "-q", "-g", "-e", "instructions", "-c", str(PERIOD), "-o", path, "--", program(request.param))
    return path


def program(isa: str) -> Path:
    return GUESTS / "sort" / f"{isa}.elf"


def isa_of(recording: Path) -> str:
    return next(isa for isa in ISAS if recording.parent.name.startswith(isa))


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--no-children",),
        ("--sort", "sym", "-n"),
        ("-g", "callee,2", "--no-children"),
        ("--sort", "pid,dso,sym"),
        ("-g", "fractal,0"),  # nothing is left out: perf's line `[...]` ends with what was on its stack
        ("-g", "fractal,0,callee", "--no-children"),
        ("-g", "fractal,0", "--sort", "sym"),
    ],
    ids=" ".join,
)
def test_report_is_perfs(recording: Path, perf: RealPerf, options: tuple[str, ...]) -> None:
    ours = perfemu("report", "-i", recording, *options).rstrip("\n").splitlines()
    assert ours == perf.report(recording, *options)
    assert any("quicksort" in line for line in ours)


def test_script_has_every_sample_and_its_chain(recording: Path, perf: RealPerf) -> None:
    """As many samples as periods, each one period after the one before, since one instruction takes one ns."""
    times = perf.run("script", "-i", recording, "-G", "-F", "time").split()
    nanoseconds = [round(float(time.rstrip(":")) * 1e9) for time in times]
    header = perf.report(recording, "-g", "none", "--no-children")
    assert f"# Event count (approx.): {len(times) * PERIOD}" in header
    steps = {later - earlier for earlier, later in pairwise(nanoseconds)}
    assert steps <= {1000, 2000}  # perf shows whole microseconds of 1009 ns
    assert "quicksort+" in perf.run("script", "-i", recording, "-F", "ip,sym,symoff")


def test_evlist_shows_the_event(recording: Path, perf: RealPerf) -> None:
    line = perf.run("evlist", "-v", "-i", recording)
    assert line.startswith("instructions:u: ")
    for told in (f"{{ sample_period, sample_freq }}: {PERIOD}", "sample_id_all: 1", "exclude_kernel: 1", "mmap2: 1"):
        assert told in line
    assert "CALLCHAIN" in line


def test_header_names_the_emulated_machine(recording: Path, perf: RealPerf) -> None:
    header = perf.run("report", "--header-only", "-i", recording)
    assert f"# arch : {isa_of(recording)}" in header
    assert "# hostname : perfemu" in header


def test_header_is_printed_as_perf_does(recording: Path, perf: RealPerf) -> None:
    """But for the time of the file, which is the host's."""
    theirs = perf.run("report", "--header-only", "-i", recording).splitlines()
    ours = perfemu("report", "--header-only", "-i", recording).splitlines()
    assert ours == [line for line in theirs if not line.startswith("# captured on")]


def test_annotate_shows_code_and_percentages(recording: Path, perf: RealPerf) -> None:
    if isa_of(recording) == "aarch64":
        require.command("aarch64-linux-gnu-objdump", package="binutils-aarch64-linux-gnu")
    else:
        require.command("objdump", package="binutils")
    text = perf.run("annotate", "--stdio", "-i", recording, "quicksort")
    assert "samples, percent: local period" in text
    shown = [float(line.split()[0]) for line in text.splitlines() if " : " in line and line.split()[0][:1].isdigit()]
    assert sum(shown) == pytest.approx(100, abs=1)


def test_a_pipe_feeds_perf(tmp_path: Path, perf: RealPerf) -> None:
    command = [
        sys.executable,
        "-m",
        "perfemu",
        "record",
        "--core",
        "ideal",
        "-q",
        "-e",
        "instructions",
        "-c",
        "1009",
        "-o",
        "-",
        "--",
    ]
    stream = tmp_path / "stream"
    with open(stream, "wb") as output:
        subprocess.run([*command, str(program("x86_64"))], stdout=output, stderr=subprocess.DEVNULL, check=True)
    assert any("quicksort" in line for line in perf.report(stream))
