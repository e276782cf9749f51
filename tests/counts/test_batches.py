"""Blocks that retire by batches, many at once, count what they count when they retire one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import require
from debian import ARCHITECTURES
from emulator.core_file.core_file import CoreFile, load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest
from perfemu.cores import DEFAULT_CORES

BENCH = Path(__file__).resolve().parents[1] / "bench" / "cores"
PIPELINES = {"ideal": load_core(str(BENCH / "caches.toml")), "in_order": load_core(str(BENCH / "in_order.toml"))}
# Loops; REP and page faults; changing code; unaligned and split accesses; calls, returns and pages beyond the TLB
PROGRAMS = {
    "embedded_mix": "2",
    "string_instructions": "",
    "self_modifying": "",
    "page_crossing": "",
    "recursion": "",
    "sort": "2000",
    "matrix": "12",
}
SMALL: dict[str, object] = {
    "l1i": {"size": 2048, "ways": 2, "latency": 1},
    "l1d": {"size": 2048, "ways": 2, "latency": 4},
    "l2": {"size": 8192, "ways": 4, "latency": 12},
    "itlb": {"entries": 4, "ways": 2},
    "dtlb": {"entries": 4, "ways": 2},
    "branch": {"direction": "gshare", "indirect": "last_target", "btb_entries": 16, "btb_ways": 2},
}
# Everything, one part less, and such as few lines, pages and branches find their places in: there the order in which
# fetches and data accesses miss is seen in the outer caches.
CORES: dict[str, dict[str, object]] = {
    "whole": {},
    "without_tlbs": {"itlb": None, "dtlb": None, "l2tlb": None},
    "without_l1i": {"l1i": None},
    "other_predictor": {"branch": {"direction": "bimodal"}},
    "small": SMALL,
    "small_exclusive": {**SMALL, "l2": {"size": 8192, "ways": 4, "latency": 12, "inclusion": "exclusive"}},
    "small_inclusive": {**SMALL, "l2": {"size": 8192, "ways": 4, "latency": 12, "inclusion": "inclusive"}},
    "walks_read": {**SMALL, "page_walk": {"reads_entries": True}},
    "prefetching": {
        **SMALL,
        "l1d": {"size": 2048, "ways": 2, "latency": 4, "prefetchers": ["next_line"]},
        "l1i": {"size": 2048, "ways": 2, "latency": 1, "prefetchers": ["next_line"]},
    },
    "write_through": {**SMALL, "l1d": {"size": 2048, "ways": 2, "latency": 4, "write_policy": "write_through"}},
    "other_replacement": {
        "l1d": {"size": 4096, "ways": 4, "latency": 4, "replacement": "plru"},
        "dtlb": {"entries": 16, "ways": 4, "replacement": "plru"},
    },
    # Which ask for every access and its PC, in the first level and in the next.
    "signatures": {
        **SMALL,
        "l1d": {"size": 2048, "ways": 2, "latency": 4, "replacement": "ship"},
        "dtlb": {"entries": 4, "ways": 2, "replacement": "ship"},
    },
    "signatures_of_l2": {**SMALL, "l2": {"size": 8192, "ways": 4, "latency": 12, "replacement": "ship"}},
}


def totals(program: str, isa: str, core: CoreFile, *, one_by_one: bool) -> dict[str, int]:
    machine = LinuxMachine(MachineConfig(isa, core=core))
    native = machine.cpus[0].core
    native.follow_branches()
    if one_by_one:
        native.start_trace()  # what is traced retires block by block
    path = str(guest(program, isa).path)
    machine.start(Program(path, (path, PROGRAMS[program]) if PROGRAMS[program] else (path,), stdout=-1))
    status = machine.run()
    return {probe.name: native.total(probe) for probe in Probe} | {"cycles": native.cycles, "status": status}


def cases() -> list[tuple[str, str]]:
    found = []
    for isa in ("aarch64", "x86_64"):
        for program in PROGRAMS:
            try:
                guest(program, isa)
            except StopIteration:
                continue
            found.append((program, isa))
    return found


def changed(pipeline: str, core: str) -> CoreFile:
    base = PIPELINES[pipeline]
    tables = {**base.tables, **CORES[core]}
    return replace(base, tables={name: table for name, table in tables.items() if table is not None})


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(("program", "isa"), cases())
def test_batches_count_what_single_blocks_count(program: str, isa: str, pipeline: str, core: str) -> None:
    by_batches = totals(program, isa, changed(pipeline, core), one_by_one=False)
    assert by_batches == totals(program, isa, changed(pipeline, core), one_by_one=True)
    assert by_batches["INST_RETIRED"] > 0


OUT_OF_ORDER = {isa: load_core(core) for isa, core in DEFAULT_CORES.items()}
OFF: dict[str, object] = {"l0_filter": {"enabled": False}}  # of no core file: what is counted does not depend on it


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(("program", "isa"), [case for case in cases() if case[0] in ("recursion", "sort")])
def test_without_the_l0_filter_the_same_is_counted(program: str, isa: str, pipeline: str, core: str) -> None:
    filtered = changed(pipeline, core)
    unfiltered = replace(filtered, tables={**filtered.tables, **OFF})
    assert totals(program, isa, unfiltered, one_by_one=False) == totals(program, isa, filtered, one_by_one=False)


@pytest.mark.parametrize(("program", "isa"), cases())
def test_out_of_order_without_the_l0_filter_the_same_is_counted(program: str, isa: str) -> None:
    filtered = OUT_OF_ORDER[isa]
    unfiltered = replace(filtered, tables={**filtered.tables, **OFF})
    assert totals(program, isa, unfiltered, one_by_one=False) == totals(program, isa, filtered, one_by_one=False)


FORKS = 'for i in 1 2 3; do seq 60 | sort -r | md5sum & x=$(echo $i | sed "s/./<&>/g"); done; wait; echo $x'


@pytest.mark.parametrize("core", ["whole", "small", "small_exclusive"])
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_processes_in_turn_count_so_too(isa: str, pipeline: str, core: str) -> None:
    """What a block accessed is counted before another address space comes."""
    path = str(require.debian_tree(ARCHITECTURES[isa], "busybox-static") / "bin/busybox")

    def run(one_by_one: bool) -> dict[str, int]:
        machine = LinuxMachine(MachineConfig(isa, core=changed(pipeline, core)))
        native = machine.cpus[0].core
        native.follow_branches()
        if one_by_one:
            native.start_trace()
        machine.start(Program(path, (path, "sh", "-c", FORKS), stdout=-1))
        status = machine.run()
        return {probe.name: native.total(probe) for probe in Probe} | {"cycles": native.cycles, "status": status}

    assert run(one_by_one=False) == run(one_by_one=True)
