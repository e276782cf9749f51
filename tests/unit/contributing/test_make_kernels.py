"""What a test run leaves out for `make kernels` is there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_each_test_that_waits_for_it_is_run_by_it() -> None:
    _, _, rest = (ROOT / "Makefile").read_text().partition("\nkernels:")
    listed = set(rest.partition("\n\n")[0].split())
    waiting = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("test_*.py")
        if file != Path(__file__) and '"KERNELS"' in file.read_text()
    }
    assert len(waiting) > 10
    assert waiting <= listed
