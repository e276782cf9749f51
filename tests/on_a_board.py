"""A script in Debian's own kernel, on a board: what its commands print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import debian_kernel
from perfemu.initramfs import Entry
from tests.end_to_end.command import ENVIRONMENT, PERFEMU

TIMEOUT_S = 600  # 10 to 30 s on an idle host
KERNELS_LINE = re.compile(r"\[ *\d+\.\d+\] ")
TROUBLE = "trouble: "  # before each line of the kernel's own that tells of some
# The pc's kernel traces the call by which it writes the last branch records that it expects of a real Intel processor.
WORDS = {"virt": "WARNING:|BUG:|Oops|Internal error|Call trace", "pc": "WARNING:|BUG:|Oops|Internal error"}
LOOK = "\n/bin/busybox dmesg | /bin/busybox grep -E '{words}' | /bin/busybox sed 's/^/{trouble}/'\n"
BOARDS = {"virt": ("arm64", "ttyAMA0"), "pc": ("amd64", "ttyS0")}  # Debian's architecture, and the console


@dataclass(frozen=True)
class Board:
    """What is booted on it: the host's release of Debian, on one CPU."""

    name: str = "virt"
    core: str = "ideal"
    cpus: int = 1
    memory: str = "1G"
    release: str = ""
    pmu: str = ""  # instead of the core's
    options: tuple[str | Path, ...] = ()  # of the command, more of them
    parameters: str = ""  # of the kernel, more of them
    warns_in: tuple[str, ...] = ()  # the kernel's functions that warn of what the script does, as they should
    timeout_s: int = TIMEOUT_S

    def run(self, script: str, folder: Path, files: Sequence[Entry] = ()) -> list[str]:
        """The console's lines but the kernel's, which must have found nothing wrong.

        busybox has the script's commands; `files` are in its root besides.
        """
        initrd = folder / "initrd"
        architecture, console = BOARDS[self.name]
        script += LOOK.format(words=WORDS[self.name], trouble=TROUBLE)
        initrd.write_bytes(debian_kernel.initramfs(script, *files, architecture=architecture))
        done = subprocess.run(
            [PERFEMU, "run", "--board", self.name, "--core", self.core, "--memory", self.memory]
            + ["--cpus", str(self.cpus)]
            + (["--pmu", self.pmu] if self.pmu else [])
            + [*self.options, "--initrd", initrd, "--append", f"console={console} quiet {self.parameters}".strip()]
            + [debian_kernel.vmlinux(self.release, architecture)],
            capture_output=True, stdin=subprocess.DEVNULL, timeout=self.timeout_s, env=ENVIRONMENT, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        lines = done.stdout.decode().splitlines()
        assert "reboot: Power down" in lines.pop()
        trouble = self._unexpected([line for line in lines if line.startswith(TROUBLE)])
        assert not trouble, "\n".join(trouble)
        return [line for line in lines if not line.startswith(TROUBLE) and not KERNELS_LINE.match(line)]

    def _unexpected(self, trouble: list[str]) -> list[str]:
        """Without the warnings in `warns_in`, each of which there must be, and the call trace that each has."""
        warnings = []
        for function in self.warns_in:
            found = [line for line in trouble if "WARNING:" in line and function in line]
            assert found, f"the kernel does not warn in {function}"
            warnings += found
        traces = [line for line in trouble if "Call trace" in line][: len(warnings)]
        return [line for line in trouble if line not in warnings and line not in traces]
