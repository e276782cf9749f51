"""PEBS as a guest finds it, opens it and samples with it: as Linux 6.12's arch/x86/events/intel/ds.c has it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from c_programs import build

SOURCE = Path(__file__).with_name("pebs_guest.c")
FOUND = {
    "skylake": """\
caps/max_precise: 3
format/ldlat: config1:0-15
events/mem-loads: event=0xcd,umask=0x01,ldlat=3
events/mem-stores: event=0xd0,umask=0x82
""",
    "redwood-cove": """\
caps/max_precise: 3
format/ldlat: config1:0-15
events/mem-loads: event=0xcd,umask=0x01,ldlat=3
events/mem-stores: event=0xcd,umask=0x02
""",
}
ANSWERS = """\
counting: EINVAL
long latency: EINVAL
latency: yes
latency without records: EOPNOTSUPP
"""


@pytest.mark.parametrize("core", FOUND)
def test_what_a_guest_gets(core: str, tmp_path: Path) -> None:
    program = build(SOURCE, "x86_64", tmp_path / "pebs_guest", "-D_GNU_SOURCE")
    command = [sys.executable, "-m", "perfemu", "run", "--core", core, "--", str(program)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    assert said.startswith("ds 1, dtes64 1, pdcm 1\n" + FOUND[core] + ANSWERS)
    found = re.findall(
        r"^(.*): (\d+) samples, (\d+) outside, (\d+) exact, (\d+) ascending, (\d+) in data, counted (\d+)$",
        said,
        re.MULTILINE,
    )
    rows = {name: list(map(int, rest)) for name, *rest in found}
    for name, (samples, outside, _, ascending, _, counted) in rows.items():
        assert outside <= 1 or name == "frequency"  # around the calls that enable and disable it; that begins at 1
        assert ascending == samples
        assert counted > 0
    for name in ("large", "single", "next"):  # work(1000000) is 2 instructions each time, and the period even
        samples, _, exact, _, _, counted = rows[name]
        assert samples == counted // 10_000 == 200
        assert exact == (0 if name == "next" and core == "skylake" else samples)
    assert rows["large"][5] == rows["single"][5] == rows["next"][5]
    assert rows["frequency"][0] > 10
    samples, outside, exact, _, in_data, counted = rows["stores"]
    assert samples == counted // 1000 == exact
    assert in_data >= samples - outside - 1
    assert samples >= 100
    (vectors,) = re.findall(r"^vectors: (.*)$", said, re.MULTILINE)
    if core == "skylake":  # whose records have none
        assert vectors == "EOPNOTSUPP"
    else:
        right, samples = map(int, vectors.split(" of "))
        assert right >= samples - 1 >= 98  # 300,000 instructions; one may be around the calls
