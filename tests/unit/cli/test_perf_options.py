"""Every option that perf has is ours, or refused by its name: none is unknown, or silently short for another."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

import require
from guests import DIRECTORY
from perfemu.cli.main import main
from perfemu.cli.options import CommandParser
from perfemu.cli.perf_options import NEWER_OPTIONS, PERF_OPTIONS
from real_perf import trixies_perf

GOOD = str(DIRECTORY / "loop_1k" / "x86_64.elf")


@pytest.mark.parametrize("command", PERF_OPTIONS)
def test_perf_has_no_other(command: str) -> None:
    perf = require.command("perf", package="linux-perf")
    done = subprocess.run([perf, command, "-h"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    rows = re.findall(r"^ +((?:-\w|--[\w-]+)(?:, --[\w-]+)?)", done.stdout + done.stderr, re.MULTILINE)
    assert len(rows) > 5
    if "version 6.1." in subprocess.run([perf, "--version"], capture_output=True, text=True, check=True).stdout:
        assert {*PERF_OPTIONS[command]} == {*rows}


@pytest.mark.parametrize("command", PERF_OPTIONS)
def test_nor_has_a_newer_one(command: str) -> None:
    """perf 6.12, which has also dropped some."""
    words = [*map(str, trixies_perf(platform.machine())), command, "-h"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    rows = re.findall(r"^ +((?:-\w|--[\w-]+)(?:, --[\w-]+)?)", done.stdout + done.stderr, re.MULTILINE)
    assert len(rows) > 5
    known = {name for row in (*PERF_OPTIONS[command], *NEWER_OPTIONS.get(command, ())) for name in row.split(", ")}
    assert {name for row in rows for name in row.split(", ")} <= known


@pytest.mark.parametrize("command", PERF_OPTIONS)
def test_all_are_known(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the parser, each under its whole name."""
    known: set[str] = set()

    def parse(parser: CommandParser, arguments: list[str]) -> None:
        known.update(parser._option_string_actions)
        raise SystemExit(0)

    monkeypatch.setattr(CommandParser, "parse_args", parse)
    with pytest.raises(SystemExit):
        main([command])
    rows = (*PERF_OPTIONS[command], *NEWER_OPTIONS.get(command, ()))
    assert {name for row in rows for name in row.split(", ")} <= known


def test_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in (
        (
            ["stat", "--smi-cost", GOOD],
            "stat --smi-cost (system management interrupts: none is modelled) is not modelled yet",
        ),
        (["stat", "--per-node", GOOD], "stat --per-node (counts per NUMA node: there is none) is not modelled yet"),
        (["record", "--affinity=node", GOOD], "record --affinity: where perf reads its buffers; nothing here depends"),
        (["report", "--no-demangle"], "report --no-demangle is not modelled yet"),
        (["report", "--tas"], "report --tasks (an option of perf's) is not modelled yet"),
        (["list", "--deprecated"], "list --deprecated (an option of perf's) is not modelled yet"),
    ):
        assert main(options) == 129
        assert capsys.readouterr().err.startswith(f"perfemu: {said}")


def test_a_program_that_is_the_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    root.mkdir()
    busybox = require.command("busybox", package="busybox-static")
    assert main(["run", "--core", "ideal", "--sysroot", str(root), busybox, "true"]) == 0
    expected = f"perfemu: {busybox} is the host's ({platform.machine()}): --sysroot {root} does not have it\n"
    assert capsys.readouterr().err == expected
    (root / "bin").mkdir()
    (root / "bin" / "busybox").write_bytes(Path(busybox).read_bytes())
    (root / "bin" / "busybox").chmod(0o755)
    for name in ("/bin/busybox", str(DIRECTORY / "loop_1k" / "aarch64.elf")):  # it has it; a cross-compiled one
        assert main(["run", "--core", "ideal", "--sysroot", str(root), name, "true"]) == 0
        assert capsys.readouterr().err == ""
