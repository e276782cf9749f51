"""Do real programs run unchanged? Output, exit status and the instructions of every function equal qemu-user's.

Each run takes every program for one ISA by turns, CORPUS=all (`make corpus`) for both. Here and under qemu-user it
has the same processor, arguments, environment and addresses (equal_start.py). Where a function may still count
otherwise, corpus.toml names it with the reason.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import require
from conformance.comparison import compare
from conformance.corpus import Case, cases
from debian import ARCHITECTURES


def chosen() -> list[Case]:
    """Of the table, where a program's two ISAs are neighbours: the first, the second, the second, the first."""
    everything = os.environ.get("CORPUS") == "all"
    return [case for number, case in enumerate(cases()) if everything or number % 4 in (0, 3)]


@pytest.mark.parametrize("case", chosen(), ids=str)
def test_program_does_and_counts_as_under_qemu(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = require.debian_tree(ARCHITECTURES[case.isa], case.package)
    compare(case, tree / case.file, tree, tmp_path, monkeypatch)
