"""Tables for docs/accuracy.md: our cores against llvm-mca and the vendor's guides.

usage: python -m tests.accuracy CORE
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from emulator.core_file.core_file import load_core
from tests.accuracy import guide, mca


def main() -> int:
    names = sorted({*guide.CORES, *mca.TARGETS})
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        print(f"usage: python -m tests.accuracy {'|'.join(names)}", file=sys.stderr)
        return 2
    core = sys.argv[1]
    tables = dict(load_core(core).tables)
    with tempfile.TemporaryDirectory() as folder:
        if core in mca.TARGETS:
            print("\n".join(mca_table(mca.compare(core, tables, Path(folder)))))
            print()
        if core in guide.CORES:
            print("\n".join(guide_table(guide.compare(core, tables, Path(folder)))))
    return 0


def mca_table(compared: list[mca.Comparison]) -> Iterator[str]:
    yield "| kernel | ours, cycles | llvm-mca 19 | difference | why |"
    yield "|---|---|---|---|---|"
    for row in compared:
        yield f"| {row.kernel.name} | {row.ours:.2f} | {row.mca:.2f} | {row.error:+.1%} | {row.why or ''} |"
    same = [row for row in compared if row.why is None]
    mean = sum(abs(row.error) for row in same) / len(same)
    worst = max(same, key=lambda row: abs(row.error))
    yield ""
    yield (
        f"{len(same)} kernels without a listed reason: mean difference {mean:.1%}, the largest {worst.error:+.1%} "
        f"({worst.kernel.name}); {len(compared) - len(same)} listed ones."
    )


def guide_table(compared: list[guide.Comparison]) -> Iterator[str]:
    yield "| group | instruction | what | guide | ours | why |"
    yield "|---|---|---|---|---|---|"
    for row in compared:
        why = row.row.why if row.listed is not None else ""
        yield f"| {row.row.name} | `{row.row.code}` | {row.what} | {row.guide:g} | {row.ours:.3g} | {why} |"
    differ = sum(row.listed is not None for row in compared)
    yield ""
    yield f"{len(compared)} figures, of which {differ} differ from the guide."


if __name__ == "__main__":
    sys.exit(main())
