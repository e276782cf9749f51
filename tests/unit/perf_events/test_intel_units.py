"""Branch records, Intel BTS and PT exclude each other, as in Debian's Linux 6.12 on the board pc (skylake)."""

from __future__ import annotations

import subprocess
import sys
from errno import EBUSY
from itertools import permutations
from pathlib import Path

import pytest

from c_programs import build

SOURCE = Path(__file__).with_name("intel_units.c")
UNITS = "lbr", "intel_bts", "intel_pt"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, "x86_64", tmp_path_factory.mktemp("units") / "intel_units")


def opened(program: Path, *words: str) -> list[int]:
    command = [sys.executable, "-m", "perfemu", "run", "--core", "skylake", "--untimed", "--", program, *words]
    return [int(word) for word in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


@pytest.mark.parametrize("order", list(permutations(UNITS)), ids="-".join)
def test_the_first_has_them_all_until_it_is_closed(program: Path, order: tuple[str, str, str]) -> None:
    first, second, third = order
    words = (first, second, third, f"-{first}", second, first)
    assert opened(program, *words) == [0, EBUSY, EBUSY, 0, EBUSY]
