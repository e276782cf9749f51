"""What loops take on this host, and on our core for it: the tables of docs/accuracy.md.

usage: python -m tests.silicon [CORE]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from emulator.core_file.core_file import load_core
from emulator.core_file.layers import CoreFileError
from tests.silicon import measure, model

SIZES = [16 << 10, 32 << 10, 48 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20]  # of the chase, bytes


def main() -> int:
    host, core = measure.host_core()
    if len(sys.argv) > 2:
        print("usage: python -m tests.silicon [CORE]", file=sys.stderr)
        return 2
    if host in ("aarch64", "arm64") or shutil.which("gcc") is None:
        print(f"this measures x86-64 hosts and needs gcc; the host is {host}", file=sys.stderr)
        return 1
    if len(sys.argv) == 2:
        core = sys.argv[1]
    print(f"The host is {host}; " + (f"our core is {core}." if core else "no core of ours models it."))
    try:
        tables = dict(load_core(core).tables) if core else None
    except CoreFileError as error:
        print(error, file=sys.stderr)
        return 2
    loops = measure.loops()
    with tempfile.TemporaryDirectory() as folder:
        program = measure.build(loops, Path(folder))
        codes = model.bodies(program, len(loops))
        for judged in (False, True):
            print("", "Judged loops:" if judged else "Probes, from which parameters may come:", sep="\n\n")
            numbers = [number for number, loop in enumerate(loops) if loop.judged is judged]
            rows = [
                (loops[number].name, measured, model.cycles(tables, loops[number], codes[number]) if tables else None)
                for number, measured in measure.all_cycles(program, numbers).items()
            ]
            for line in table("loop", rows):
                print(line, flush=True)
        print("\n\nA pointer chase in random order, by size in KiB:")
        chases = [
            (f"{size >> 10}", measure.chase_cycles(program, size), model.chase_cycles(tables, size) if tables else None)
            for size in SIZES
        ]
        for line in table("size", chases):
            print(line, flush=True)
    return 0


def table(what: str, rows: list[tuple[str, float, float | None]]) -> Iterator[str]:
    yield ""
    yield f"| {what} | host, cycles | model | difference |"
    yield "|---|---|---|---|"
    errors = []
    for name, measured, modelled in rows:
        if modelled is None:
            yield f"| {name} | {measured:.2f} | | |"
            continue
        errors.append(modelled / measured - 1)
        yield f"| {name} | {measured:.2f} | {modelled:.2f} | {errors[-1]:+.1%} |"
    if errors:
        yield ""
        yield f"Mean absolute difference of {len(errors)}: {sum(map(abs, errors)) / len(errors):.1%}."


if __name__ == "__main__":
    sys.exit(main())
