"""Exact callchains of Go, whose stacks move: what Go's own runtime knows of the same moments (runtime.Callers)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import debian
import require
from guests import ISAS
from perfemu.api import record
from perfemu.guest import Guest

SOURCE = Path(__file__).with_name("call_stacks.go")
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}
SLOW = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="takes a minute: make kernels")
CORES = [("aarch64", "ideal"), ("x86_64", "ideal"), pytest.param("x86_64", "zen5", marks=SLOW)]
OTHERS = 12  # of the source: goroutines that wait, each by one call deeper, while their stacks are made smaller


def built(isa: str, directory: Path) -> Path:
    """Go brings no libraries that are compiled already: those stay in a cache of the tests' own."""
    program = directory / "call_stacks"
    go = require.command("go", package="golang-go")
    environment = {
        **os.environ,
        "GOARCH": ARCHITECTURES[isa],
        "GOCACHE": str(debian.cache_directory().parent / "go"),
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
    }
    subprocess.run([go, "build", "-gcflags=-l", "-o", program, SOURCE], check=True, env=environment)
    return program


def functions(path: Path) -> list[tuple[int, int, str]]:
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return sorted((each["st_value"], each["st_size"], each.name) for each in symbols if each.name[:5] == "main.")


@pytest.mark.parametrize(("isa", "core"), CORES)
def test_go_stacks_that_grow_shrink_and_wait_keep_their_callers(
    isa: str, core: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert set(ARCHITECTURES) == set(ISAS)
    program = built(isa, tmp_path)
    known = functions(program)
    marker = next(at for at, _, name in known if name == "main.marker")
    guest = Guest([program], core=core)
    found = record(guest, [f"mem:{marker:#x}:x"], period=1, callchains="exact", output=tmp_path / "out", capture=True)
    assert found.exit_status == 0
    chains = [
        [name for address in sample.callchain for at, size, name in known if at <= address < at + size]
        for _, sample in found.samples()
    ]
    lines = found.stdout.decode().splitlines()
    runtime_knows = [[name for name in line.split() if name.startswith("main.")] for line in lines]
    assert [chain[1:] for chain in chains] == runtime_knows  # without marker, which is the first
    # What the source says of two moments: the deepest call, and the goroutines whose stacks have been made smaller.
    assert runtime_knows[0] == ["main.deep"] * 41 + ["main.main"]
    inner = [["main.inner"] * (n + 1) + ["main.waits"] for n in range(OTHERS)]
    assert sorted(chain for chain in runtime_knows if chain[0] == "main.inner") == sorted(inner)
