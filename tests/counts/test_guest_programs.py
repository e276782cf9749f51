"""The guest programs themselves: built from their sources, and counted by others as expected.toml says."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

import reference
import require
from guests import DIRECTORY, ISAS, Guest, guests
from perfemu.symbols.vdso import vdso_file

# Where the reference counts otherwise than the architecture, and why. Everything else has to be equal.
EXCLUSIVE = "qemu makes STXR a compare-and-exchange, and reports its read"
ZERO_BLOCK = "qemu does not report the store of DC ZVA"
RESTARTED = "qemu starts an instruction again that stored into its own block, and counts it twice"
DIFFERENCES = {
    ("locked_operations", "aarch64", "LOAD"): (+1_000, EXCLUSIVE),
    ("memory_access", "aarch64", "LOAD"): (+200, EXCLUSIVE),
    ("memory_access", "aarch64", "STORE"): (-1, ZERO_BLOCK),
    ("self_modifying", "x86_64", "INST_RETIRED"): (+11, RESTARTED),
    ("self_modifying", "x86_64", "BR_COND_TAKEN"): (+10, RESTARTED),
}
NEED_PERF_EVENT_OPEN = {"enable_disable", "self_monitoring", "user_counter"}  # which qemu-user does not have


def test_checked_in_programs_have_their_hashes() -> None:
    lines = (DIRECTORY / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    listed = {name: digest for digest, name in (line.split() for line in lines)}
    actual = {
        str(path.relative_to(DIRECTORY)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in DIRECTORY.glob("*/*.elf")
    }
    for isa in ISAS:
        actual[f"vdso/{isa}.elf"] = hashlib.sha256(Path(vdso_file(isa)).read_bytes()).hexdigest()
    assert actual == listed


def test_sources_give_the_checked_in_programs() -> None:
    require.command("x86_64-linux-gnu-gcc", package="gcc")
    compiler = require.command("aarch64-linux-gnu-gcc", package="gcc-aarch64-linux-gnu")
    version = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    if version != "12.2.0":
        require.missing(f"package gcc-aarch64-linux-gnu of Debian 12 is not installed (this is GCC {version})")
    built = subprocess.run([sys.executable, DIRECTORY / "build.py"], capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.parametrize("guest", [g for g in guests() if g.name not in NEED_PERF_EVENT_OPEN], ids=str)
def test_qemu_counts_what_was_derived(guest: Guest) -> None:
    run = reference.qemu_counts(guest.isa, [str(guest.path)], memory=True)
    assert (run.exit_status, run.stdout.decode()) == (guest.exit_status, guest.stdout)
    expected = {
        probe: count + DIFFERENCES.get((guest.name, guest.isa, probe), (0, ""))[0]
        for probe, count in guest.counts.items()
        if probe != "SOFTWARE_PREFETCH"  # QEMU tells plugins of no access there
    }
    assert run.probes == expected
