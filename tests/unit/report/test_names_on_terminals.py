"""Names come from guests and files: nothing that they contain reaches the terminal as a command, or ends a line."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
from pathlib import Path

import pytest

from guests import DIRECTORY
from perfcore.abi.constants import SampleType
from perfcore.perfdata.features import EventGroup
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.cli.main import main
from perfemu.formats import format_names, output_format
from perfemu.visible import visible
from synthetic_elf import TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import SAMPLE_TYPE, Recording, event, features

EVIL = "e\x1b[2J\rv\ni\x9bl\x07\u202e"  # ANSI's clear screen, a new line, CSI as one character, a bell, right to left
SHOWN = r"e\x1b[2J\rv\ni\x9bl\x07\u202e"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """All that a command prints, of which each line is harmless."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    main(arguments)
    captured = capsys.readouterr()
    text = captured.out + captured.err
    for line in text.split("\n"):
        assert all(char.isprintable() or char == "\t" for char in line), line
    return text


def test_visible() -> None:
    assert visible(EVIL) == SHOWN
    assert visible("plain, ü and \udcff") == "plain, ü and \udcff"
    assert visible("\udc9b") == r"\x9b"


@pytest.fixture
def evil_file(tmp_path: Path) -> Path:
    program = synthetic_elf(tmp_path / EVIL, [ElfSymbol(EVIL, 0, 0x100)])
    made = Recording([event(EVIL, sample_type=SAMPLE_TYPE | SampleType.CALLCHAIN), event(EVIL, 2)])
    made.start(program, 0x1000, EVIL, 0x401000, TEXT_OFFSET)
    made.map(tmp_path / f"{EVIL}missing", 0x1000, 0x600000)
    made.map(f"[{EVIL}]", 0x1000, 0x700000)
    for address in (0x401000, 0x401010, 0x600000, 0x700000):
        made.sample(address, [0x401020])
    told = features()
    told.hostname = told.cpu_description = told.version = EVIL
    told.command_line = (EVIL,)
    told.pmu_mappings = ((1, EVIL),)
    told.groups = (EventGroup(0, 2, EVIL),)
    path = tmp_path / "data"
    with PerfDataWriter(path, made.events, told) as writer:
        writer.write(b"".join(made.records))
    return path


TEXTS = [name for name in format_names() if not output_format(name).is_binary]


@pytest.mark.parametrize(
    "options", [("--header",), ("-D",), ("-s", "srcline,pid,dso"), *(("--format", name) for name in TEXTS)]
)
def test_reports(options: tuple[str, ...], evil_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "report", *options, "-i", str(evil_file))
    assert SHOWN in text or SHOWN.replace("\\", "\\\\") in text  # as JSON writes a backslash


def test_pprof_is_given_harmless_names(evil_file: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["report", "--format", "pprof", "-i", str(evil_file)]) == 0
    profile = gzip.decompress(capsysbinary.readouterr().out)
    assert SHOWN.encode() in profile
    assert EVIL.encode() not in profile


def test_stat_trace_and_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / EVIL
    shutil.copy(DIRECTORY / "loop_1k" / "x86_64.elf", program)
    data = str(tmp_path / f"{EVIL}.data")
    split = ("stat", "--per-thread")
    for command in (
        *(("stat",), split, (*split, "-x,"), (*split, "-j")),
        *(("trace",), ("record", "-o", data), ("report", "-i", data)),
    ):
        guest = () if command[0] == "report" else ("--core", "ideal", str(program))
        run(capsys, *command, *guest)
    assert r"e\x1b[2J\rv" in run(capsys, "stat", "--core", "ideal", str(program / "none"))
