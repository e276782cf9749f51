"""Our cores against llvm-mca's models of the same machines: cycles of microkernels."""

from __future__ import annotations

from pathlib import Path

import pytest

import require
from emulator.core_file.core_file import load_core
from tests.accuracy import kernels, mca


@pytest.mark.slow
@pytest.mark.parametrize("core", mca.TARGETS)
def test_cores_agree_with_llvm_mca(core: str, tmp_path: Path) -> None:
    """Each kernel within 10 %, 5 % in the mean, but for those listed with a reason, which differ indeed."""
    isa, _ = mca.TARGETS[core]
    language = kernels.LANGUAGES[isa]
    require.command(language.assembler, package=language.package)
    require.command(mca.COMMAND, package="llvm-19")
    compared = mca.compare(core, dict(load_core(core).tables), tmp_path)
    assert mca.differences(core).keys() <= {row.kernel.name for row in compared}
    same = [row for row in compared if row.why is None]
    assert len(same) >= 60
    assert [f"{row.kernel.name}: {row.ours:.2f}, llvm-mca {row.mca:.2f}" for row in same if abs(row.error) > 0.1] == []
    assert sum(abs(row.error) for row in same) / len(same) < 0.05
    assert [row.kernel.name for row in compared if row.why is not None and abs(row.error) <= 0.1] == []
