"""python -m tests.unit.board.pc.on_qemu: do our images print on QEMU's PC what we say that they do? Package
qemu-system-x86, which no test needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.unit.board.pc.images import COMMAND_LINE, IMAGES, built

TIMEOUT_S = 300


def run(name: str) -> tuple[str, int]:
    """What it prints, and the exit status."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(built(name))
        done = subprocess.run(
            ["qemu-system-x86_64", "-kernel", path, "-append", COMMAND_LINE, "-m", "128"]
            + ["-smp", str(IMAGES[name].cpus), "-display", "none", "-serial", "stdio", "-monitor", "none"]
            + ["-no-reboot", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        return done.stdout, done.returncode


def main() -> int:
    wrong = 0
    for name, image in IMAGES.items():
        expected = image.prints.lstrip()
        for here, there in image.differs_on_qemu:
            expected = expected.replace(here, there)
        found = run(name)
        is_equal = found == (expected, image.status)
        wrong += not is_equal
        print(f"{name}: {'as expected' if is_equal else found}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
