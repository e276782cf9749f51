"""Listeners get the branches and the selected instructions that were counted, and change nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from emulator._native import Core, RetirementRecorder
from emulator.core_file.core_file import CoreFile, load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.op_classes import OpClass
from emulator.probes import Probe
from guests import guest

CONDITIONAL, DIRECT, CALL, RETURN = 1, 2, 4, 6  # kinds of branches
NOTHING, FIRST_LEVEL, MEMORY = 0, 1, 5  # levels that answer
CORES = {"aarch64": ("ideal", "cortex-a55", "neoverse-n1"), "x86_64": ("ideal", "skylake", "zen5")}
# Loops that come to few states; REP and page faults; changing code; calls of oneself
PROGRAMS = {"embedded_mix": "2", "string_instructions": "", "self_modifying": "", "page_crossing": "", "recursion": ""}


def cases() -> list[tuple[str, str, str]]:
    """(program, ISA, core) of all programs that there are."""
    found = []
    for isa, cores in CORES.items():
        for program in PROGRAMS:
            with suppress(StopIteration):
                guest(program, isa)
                found += [(program, isa, core) for core in cores]
    return found


@dataclass
class Run:
    """A program that has run to its end."""

    core: Core
    totals: dict[Probe, int]
    cycles: int
    recorder: RetirementRecorder = field(default_factory=RetirementRecorder)


def run(
    program: str, isa: str, core_file: CoreFile, listen: Callable[[Core, RetirementRecorder], None] | None = None
) -> Run:
    machine = LinuxMachine(MachineConfig(isa, core=core_file))
    core = machine.cpus[0].core
    core.follow_branches()
    recorder = RetirementRecorder(keep=True)
    if listen is not None:
        listen(core, recorder)
    path = str(guest(program, isa).path)
    arguments = (PROGRAMS[program],) if PROGRAMS.get(program) else ()
    machine.start(Program(path, (path, *arguments), stdout=-1))
    machine.run()
    return Run(core, {probe: core.total(probe) for probe in Probe}, core.cycles, recorder)


def listen_to_all(core: Core, recorder: RetirementRecorder) -> None:
    core.listen(recorder)


@pytest.mark.parametrize(("program", "isa", "core"), cases())
def test_listeners_get_all_branches_and_change_nothing(program: str, isa: str, core: str) -> None:
    core_file = load_core(core)
    plain = run(program, isa, core_file)
    listened = run(program, isa, core_file, listen_to_all)
    assert (listened.totals, listened.cycles) == (plain.totals, plain.cycles)
    branches = listened.recorder.take_branches()
    of_the_kernel = plain.totals[Probe.EXC_SVC] if isa == "x86_64" else 0  # SYSCALL counts as a branch, and goes there
    assert len(branches) == plain.totals[Probe.BR_RETIRED] - of_the_kernel
    assert sum(branch[4] for branch in branches) == plain.totals[Probe.BR_TAKEN] - of_the_kernel
    assert sum(branch[5] for branch in branches) == plain.totals[Probe.BR_MISPREDICTED]
    for kind, probe in ((CONDITIONAL, Probe.BR_COND), (RETURN, Probe.BR_RETURN)):
        assert sum(branch[3] == kind for branch in branches) == plain.totals[probe]
    assert all(before[2] <= after[2] for before, after in pairwise(branches))
    assert branches[-1][2] <= plain.cycles
    # between two branches execution goes straight on, unless the kernel has put it elsewhere
    strays = sum(not 0 <= after[0] - before[1] < 1 << 16 for before, after in pairwise(branches))
    assert strays <= plain.totals[Probe.EXC_TAKEN]


@pytest.mark.parametrize("isa", CORES)
def test_branches_are_the_same_executed_and_recalled(isa: str) -> None:
    core_file = load_core(CORES[isa][2])
    pipeline = core_file.tables["pipeline"]
    assert isinstance(pipeline, dict)
    branches = [
        run(
            "embedded_mix",
            isa,
            replace(core_file, tables={**core_file.tables, "pipeline": {**pipeline, "recall": mode}}),
            listen_to_all,
        ).recorder.take_branches()
        for mode in ("never", "check")
    ]
    assert len(branches[0]) > 1000
    assert branches[0] == branches[1]


def select(probe: Probe, period: int) -> Callable[[Core, RetirementRecorder], None]:
    return lambda core, recorder: core.select(recorder, 1 << probe, period)


@pytest.mark.parametrize("probe", [Probe.INST_RETIRED, Probe.LOAD, Probe.BR_COND, Probe.L1D_REFILL_LOAD])
@pytest.mark.parametrize(
    ("program", "isa", "core"), [case for case in cases() if case[0] in ("embedded_mix", "recursion")]
)
def test_the_instruction_that_made_the_event_is_selected(program: str, isa: str, core: str, probe: Probe) -> None:
    core_file = load_core(core)
    period = 97
    plain = run(program, isa, core_file)
    listened = run(program, isa, core_file, select(probe, period))
    assert (listened.totals, listened.cycles) == (plain.totals, plain.cycles)
    selected = listened.recorder.take_selected()
    assert len(selected) == plain.totals[probe] // period
    for _, next_pc, op_class, kind, address, size, level, cycle, cycles, fired, dispatched, completed, *_ in selected:
        assert dispatched <= completed
        assert dispatched <= cycle
        assert probe is Probe.INST_RETIRED or fired >> probe & 1
        assert next_pc
        assert 0 < cycle <= plain.cycles
        assert cycles <= cycle
        assert op_class in {int(each) for each in OpClass}
        if probe is Probe.LOAD and core != "ideal":
            assert address is not None
            assert size > 0
            assert level >= FIRST_LEVEL
        if probe is Probe.L1D_REFILL_LOAD:
            assert level > FIRST_LEVEL
        if probe is Probe.BR_COND:
            assert (kind, level) == (CONDITIONAL, NOTHING)


def test_a_known_loop() -> None:
    """loop_1k: 2 instructions, 1,000 times; before that one, and after it what ends the program: 2,004 in all."""
    branches = run("loop_1k", "aarch64", load_core("ideal"), listen_to_all).recorder.take_branches()
    backwards = [branch for branch in branches if branch[3] == CONDITIONAL]
    assert len(backwards) == 1000
    assert [branch[4] for branch in backwards] == [True] * 999 + [False]
    assert {after[2] - before[2] for before, after in pairwise(backwards)} == {2}
    first = backwards[0]
    selected = run("loop_1k", "aarch64", load_core("ideal"), select(Probe.BR_COND, 10)).recorder.take_selected()
    assert [op[:2] for op in selected] == [first[:2]] * 99 + [(first[0], first[0] + 4)]


@pytest.mark.parametrize(("isa", "core"), [(isa, core) for isa, cores in CORES.items() for core in cores])
def test_cycles_select_too(isa: str, core: str) -> None:
    """One instruction each time that so many cycles have passed, unless it takes longer than that itself: of those that
    pass while the first pages and lines come, some 7,000 of 55,000 and more, fewer."""
    core_file = load_core(core)
    plain = run("embedded_mix", isa, core_file)
    listened = run("embedded_mix", isa, core_file, select(Probe.CYCLES, 1000))
    assert (listened.totals, listened.cycles) == (plain.totals, plain.cycles)
    user = plain.totals[Probe.CYCLES]
    assert user // 1000 - 7 <= len(listened.recorder.take_selected()) <= user // 1000


def test_a_listener_may_stop() -> None:
    def briefly(core: Core, recorder: RetirementRecorder) -> None:
        core.listen(recorder)
        core.select(recorder, 1 << Probe.INST_RETIRED, 1)
        core.stop_listening(recorder)

    listened = run("loop_1k", "aarch64", load_core("ideal"), briefly)
    assert (listened.recorder.branches, listened.recorder.selections) == (0, 0)


@pytest.mark.parametrize(
    ("core", "last"), [("cortex-a72", Probe.L2_REFILL_LOAD), ("neoverse-n1", Probe.LL_REFILL_LOAD)]
)
def test_what_the_last_cache_has_not_memory_answers(core: str, last: Probe) -> None:
    """Whichever cache of the core is the last."""
    ran = run("fresh_pages", "aarch64", load_core(core), select(Probe.LOAD, 1))
    selected = ran.recorder.take_selected()
    answered = [(op[6], op[9]) for op in selected]
    refill = 1 << Probe.L1D_REFILL_LOAD
    assert all((op[13] > 0) == bool(op[9] & refill) for op in selected if not op[9] >> Probe.ITLB_REFILL & 1)
    missed = [level for level, fired in answered if fired >> last & 1]
    assert missed
    assert set(missed) == {MEMORY}
    assert all(level < MEMORY for level, fired in answered if not fired >> last & 1)


_CYCLES = 1 << Probe.CYCLES


@pytest.mark.parametrize(("probes", "period"), [(0, 1), (1 << Probe.INST_RETIRED, 0), (_CYCLES | 1 << Probe.LOAD, 5)])
def test_what_cannot_be_selected(probes: int, period: int) -> None:
    with pytest.raises(ValueError, match=r"select"):
        run("loop_1k", "aarch64", load_core("ideal"), lambda core, recorder: core.select(recorder, probes, period))


@pytest.mark.parametrize("core", CORES["x86_64"])
@pytest.mark.parametrize("probe", [Probe.LOAD, Probe.STORE])
def test_each_iteration_of_a_rep_is_what_it_accesses(core: str, probe: Probe) -> None:
    """It has not retired, unless it is the last one; what answered is known where there are caches."""

    def listen(core: Core, recorder: RetirementRecorder) -> None:
        core.select(recorder, 1 << probe, 1)

    rows = run("string_instructions", "x86_64", load_core(core), listen).recorder.take_selected()
    iterations = [row for row in rows if row[0] == row[1]]
    assert len(iterations) > 100
    assert all(row[9] >> probe & 1 for row in rows)
    assert not any(row[9] >> Probe.INST_RETIRED & 1 for row in iterations)
    assert all(row[9] >> Probe.INST_RETIRED & 1 for row in rows if row[0] != row[1])
    if core != "ideal":
        assert all(row[6] != NOTHING for row in rows)


def test_instructions_are_followed_by_distances(tmp_path: Path) -> None:
    """Of all that retire those whose turn it is, and of loads, too; of cycles the next one behind each."""
    core_file = load_core("skylake")
    distances = [7, 100, 1, 1, 50, 3000]

    def listen_to_each(core: Core, recorder: RetirementRecorder) -> None:
        core.select(recorder, 1 << Probe.INST_RETIRED, 1)

    everything = run("embedded_mix", "x86_64", core_file, listen_to_each).recorder.take_selected()
    loads = [row for row in everything if row[9] >> Probe.LOAD & 1]

    def followed(probe: Probe, *, from_now: bool = False) -> list[tuple]:
        path = tmp_path / probe.name
        with path.open("wb") as file:

            def listen(core: Core, recorder: RetirementRecorder) -> None:
                recorder.write_to(file.fileno(), whole=True)
                core.follow(recorder, 1 << probe, distances, from_now)

            recorder = run("embedded_mix", "x86_64", core_file, listen).recorder
            recorder.flush()
        rows = [*struct.iter_unpack("<13Q", path.read_bytes())]
        found = recorder.take_selected()
        for words, row in zip(rows, found, strict=True):
            pc, following, address, physical, cycle, dispatched, _, completed, walked, waited, low, high, rest = words
            assert (pc, following, cycle, low | high << 64) == (row[0], row[1], row[7], row[9])
            assert (dispatched, completed, walked, waited) == row[10:]
            assert (rest & 0xFFFF, rest >> 16 & 0xFF, rest >> 24 & 0xFF) == (row[5], row[6], row[3])
            assert (address if rest >> 32 else None) == row[4]
            assert physical % 4096 == address % 4096
        return found

    places = [*accumulate(distances)]
    assert followed(Probe.INST_RETIRED) == [everything[place - 1] for place in places]
    assert followed(Probe.LOAD, from_now=True) == [loads[place - 1] for place in places]
    cycles = [row[7] for row in followed(Probe.CYCLES)]
    assert all(after - before >= least for before, after, least in zip(cycles, cycles[1:], distances[1:], strict=False))
    assert cycles[0] >= distances[0]
