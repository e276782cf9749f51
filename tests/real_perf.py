"""RealPerf: the unmodified `perf` of Debian's linux-perf, as the judge of what we write and print."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import require
from debian import TRIXIE

# x86 builds of perf say this once for each AArch64 file; builds for arm64 do not (docs/perf-data.md).
_FOREIGN_UNWIND = "unwind: target platform=arm64 is not supported"


@cache
def trixies_perf(isa: str) -> tuple[str | Path, ...]:
    """The command that runs Debian trixie's perf 6.12 as built for `isa`, whose lists of events and metrics it has."""
    if isa == "aarch64":
        tree = require.debian_tree("arm64", "linux-perf", release=TRIXIE)
        return (require.command("qemu-aarch64", package="qemu-user"), "-L", tree, tree / "usr/bin/perf")
    return require.of_tree(require.debian_tree("amd64", "linux-perf", release=TRIXIE), "usr/bin/perf")


class RealPerf:
    """Runs perf with nothing of the user's: no configuration, no build-id cache, no pager."""

    def __init__(self, home: Path, command: Sequence[str] = (), says: Sequence[str] = ()) -> None:
        """`command` is another perf than the host's, with what it takes to run it; `says` are lines that do no harm."""
        self._command = list(command) or [require.command("perf", package="linux-perf")]
        self._home = home
        self._harmless = {_FOREIGN_UNWIND, *says}
        self.errors: list[str] = []  # lines on standard error so far: only ones that are known to be harmless

    def run(self, *arguments: str | Path) -> str:
        """Its standard output. It must end well and say nothing on standard error."""
        words = [*self._command, *map(str, arguments)]
        environment = {"HOME": str(self._home), "PATH": os.environ["PATH"], "PAGER": "cat", "LC_ALL": "C"}
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, env=environment, check=False
        )
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        self.errors += said
        assert set(said) <= self._harmless, said
        assert done.returncode == 0, done
        return done.stdout

    def report(self, file: str | Path, *options: str) -> list[str]:
        """`perf report --stdio` without the tip at its end, which is chosen at random."""
        lines = self.run("report", "--stdio", "--no-inline", "-i", file, *options).splitlines()
        while lines and (lines[-1] in ("", "#") or lines[-1].startswith("# (")):
            lines.pop()
        return lines
