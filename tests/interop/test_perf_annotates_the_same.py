"""perfemu annotate's percentages are the unmodified perf's, instruction by instruction: our files and perf's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import require
from end_to_end.command import perfemu
from guests import ISAS, guest
from real_perf import RealPerf

_ROW = re.compile(r"^((?: +[\d.]+)+) : +([0-9a-f]+):", re.MULTILINE)


def rows(text: str) -> dict[str, list[str]]:
    """Cells by address."""
    return {match[2]: match[1].split() for match in _ROW.finditer(text)}


@pytest.mark.parametrize("isa", ISAS)
def test_samples_of_our_recordings(isa: str, tmp_path: Path) -> None:
    require.command("aarch64-linux-gnu-objdump", package="binutils-aarch64-linux-gnu")
    data, perf = tmp_path / "data", RealPerf(tmp_path)
    perfemu("record", "-q", "-e", "{instructions,branches}", "-c", "1009", "-o", data, guest("sort", isa).path)
    for symbol, options in (("quicksort", ()), ("main", ("-n",)), ("partition", ("--percent-type", "local-hits"))):
        theirs = rows(perf.run("annotate", "--stdio", "-i", data, "-s", symbol, *options))
        ours = rows(perfemu("annotate", "-i", data, symbol, *options).stdout.decode())
        assert theirs
        assert all(len(cells) == 2 for cells in theirs.values())  # a group: side by side
        assert ours == theirs


def test_exact_counts_are_perfs_periods(tmp_path: Path) -> None:
    data = tmp_path / "data"
    perfemu("record", "-q", "--exact", "-e", "instructions", "-o", data, guest("sort", "x86_64").path)
    theirs = rows(RealPerf(tmp_path).run("annotate", "--stdio", "--show-total-period", "-i", data, "quicksort"))
    ours = rows(perfemu("annotate", "-i", data, "--show-total-period", "quicksort").stdout.decode().replace(",", ""))
    assert ours == theirs
    assert sum(int(cells[0]) for cells in ours.values()) > 500_000


def test_perfs_own_recording(tmp_path: Path) -> None:
    (tmp_path / "loop.c").write_text("int main(void) { volatile long i; for (i = 0; i < 30000000; i++); return 0; }\n")
    compiler = require.command("gcc", package="gcc")
    subprocess.run([compiler, "-g", "-o", tmp_path / "loop", tmp_path / "loop.c"], check=True)
    perf = require.command("perf", package="linux-perf")
    command = [perf, "record", "-q", "-e", "cpu-clock:u", "-o", tmp_path / "data", tmp_path / "loop"]
    done = subprocess.run(command, capture_output=True, env={"HOME": str(tmp_path)}, check=False)
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr.decode()[-200:]}")
    theirs = rows(RealPerf(tmp_path).run("annotate", "--stdio", "-i", tmp_path / "data", "main"))
    text = perfemu("annotate", "-i", tmp_path / "data", "main").stdout.decode()
    assert rows(text) == theirs
    assert "for (i = 0; i < 30000000; i++)" in text
