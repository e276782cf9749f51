"""What runs before the first command: SIGINT is no traceback from the first line of ours on."""

from __future__ import annotations

import subprocess
import sys

# SIGINT comes amid the import of the first module that the command itself needs.
INTERRUPTED = """
import os, signal, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "perfemu.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
import perfemu.__main__
"""


def test_sigint_while_modules_are_imported_just_ends_it() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (-2, "", "")


# What every command has loaded before it knows which one it is.
LOADED = "import perfemu.cli.main, sys; print(sorted({name.partition('.')[0] for name in sys.modules}))"


def test_a_command_loads_only_what_it_needs() -> None:
    """The machine is 0.15 s, which whoever asks for the version need not wait for."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=300, check=True)
    assert "'perfemu'" in done.stdout
    assert not {"emulator", "perfcore", "pmu"} & set(done.stdout.replace("'", " ").split())
