"""Do real programs run unchanged? Output, exit status and the instructions of every function equal qemu-user's.

Both runs have the same processor, arguments, environment and addresses (equal_start.py). Where a function may still
count otherwise, corpus.toml names it with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import require
from conformance.comparison import compare
from conformance.corpus import Case, cases
from debian import ARCHITECTURES


@pytest.mark.parametrize("case", cases(), ids=str)
def test_program_does_and_counts_as_under_qemu(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = require.debian_tree(ARCHITECTURES[case.isa], case.package)
    compare(case, tree / case.file, tree, tmp_path, monkeypatch)
