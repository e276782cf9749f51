"""IBS as a guest finds it, opens it and samples with it: as Linux 6.12's arch/x86/events/amd/ibs.c has it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from c_programs import build

SOURCE = Path(__file__).with_name("ibs_guest.c")
ANSWERS = """\
caps: 1 0
ops: yes
group: EINVAL
exclude_kernel: EINVAL
reserved: EINVAL
count and period: EINVAL
no period: EINVAL
count: yes
precise instructions: ENOENT
precise_ip 3: EOPNOTSUPP
"""


def test_what_a_guest_gets(tmp_path: Path) -> None:
    program = build(SOURCE, "x86_64", tmp_path / "ibs_guest", "-D_GNU_SOURCE")
    command = [sys.executable, "-m", "perfemu", "run", "--core", "zen5", "--", str(program)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    assert said.startswith(ANSWERS)
    found = re.findall(r"^(.*): (\d+) samples, (\d+) outside, (\d+) exact, period (\d+)$", said, re.MULTILINE)
    (_, ops, *of_ops), (_, cycles, *of_cycles) = ((name, *map(int, rest)) for name, *rest in found)
    # work(1000000) is 2 instructions each time; of each count of 10,000 0 to 127 are left out: 2,000,000 / 9,936.5
    assert 199 <= ops <= 204
    assert cycles >= 50
    for samples, (outside, exact, period) in ((ops, of_ops), (cycles, of_cycles)):
        assert outside <= 1  # around the calls that enable and disable it
        assert exact == samples
        assert period == 10_000  # a multiple of 16
