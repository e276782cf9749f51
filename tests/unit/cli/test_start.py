"""What runs before the first command: SIGINT is no traceback from the first line of ours on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from guests import guest

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


# What `perfemu stat` of a program has loaded when that has ended.
COUNTED = """
import sys
from perfemu.cli.main import main
status = main(["stat", "--core", "ideal", sys.argv[1]])
print(status, *sorted(name for name in sys.modules if name.startswith("perfcore.events.probes.")))
"""


def test_what_defines_probes_is_loaded_for_who_looks_into_tracefs() -> None:
    """But where the kernel's functions are, which tracepoints tell."""
    command = [sys.executable, "-c", COUNTED, guest("loop_1k", "x86_64").path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == ["0", "perfcore.events.probes.kernel_functions"]


# ... and which units' modules: those of units that the core has not.
UNITS_LOADED = """
import sys
from perfemu.cli.main import main
status = main(["stat", "--core", sys.argv[1], sys.argv[2]])
modules = {"pmu.branch_records", "pmu.arm.brbe_registers", "perfcore.events.drivers.arm_brbe", "pmu.intel.bts"}
print(status, *sorted(modules & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("core", "isa", "loaded"),
    [("neoverse-n1", "aarch64", []), ("redwood-cove", "x86_64", ["pmu.branch_records"])],
)
def test_units_that_a_core_has_not_are_not_loaded(core: str, isa: str, loaded: list[str]) -> None:
    command = [sys.executable, "-c", UNITS_LOADED, core, guest("loop_1k", isa).path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == ["0", *loaded]
