"""jit_files: what guests write of the code that they make at run time, taken from their files when a recording ends.

perf reads perf-PID.map from /tmp, and jitdump files from where they were mapped. A guest's /tmp is gone after the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from perfcore.perfdata.features import JitFile
from perfemu.symbols.jit import JITDUMP, MOST_BYTES


def jit_files(
    contents: Callable[[str, int], bytes | None], pids: Iterable[int], mapped_files: Iterable[str]
) -> tuple[JitFile, ...]:
    """Those of the processes `pids`, which have made code, and those among `mapped_files`, as `contents` finds them."""
    names = [f"/tmp/perf-{pid}.map" for pid in pids]
    names += [name for name in mapped_files if JITDUMP.fullmatch(name)]
    found = ((name, contents(name, MOST_BYTES)) for name in names)
    return tuple(JitFile(name, data) for name, data in found if data)
