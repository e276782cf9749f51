"""A board under a debugger: it stops where that wants, and does, counts and takes in time what it does alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.board.debugging import Debugged, Stop, Why
from emulator.board.stops import Watched
from emulator.probes import Probe
from tests.unit.board.booted import LOADED_AT, Booted, boot
from tests.unit.board.test_virt import SGI, TIMER, TWO_CPUS, WITH_VECTORS

CORES = ("ideal", "cortex-a55", "cortex-a72")
PROBES = (Probe.INST_RETIRED, Probe.LOAD, Probe.STORE, Probe.BR_RETIRED, Probe.EXC_TAKEN)
MOST_STOPS = 1500  # then it lets the board go


class Scripted:
    """Does at each stop what the function does with it, which says how to go on; after the last, lets go."""

    debugged: Debugged

    def __init__(self, at_stop: Callable[[Scripted, Stop], None]) -> None:
        self._at_stop = at_stop
        self.stops: list[Stop] = []

    def stopped(self, stop: Stop) -> None:
        self.stops.append(stop)
        self._at_stop(self, stop)

    def look(self) -> bool:
        return True

    def register(self, number: int, cpu: int = 0) -> int:
        return self.debugged.cpus[cpu].core.read_register(number)

    def pc(self, cpu: int = 0) -> int:
        return self.debugged.cpus[cpu].core.pc


def outcome(booted: Booted) -> list[object]:
    return [
        (cpu.core.registers(), cpu.core.cycles, cpu.level, [cpu.core.total(probe) for probe in PROBES])
        for cpu in booted.cpus
    ]


def test_it_stops_at_the_first_instruction_and_at_breakpoints(tmp_path: Path) -> None:
    """The loop's third turn is the third stop there, before the instruction."""
    source = "mov x3, #5\n1: add x4, x4, #1\nsubs x3, x3, #1\nb.ne 1b\n"  # START is one instruction
    seen = []

    def at_stop(debugger: Scripted, stop: Stop) -> None:
        debugger.debugged.set_breakpoint(LOADED_AT + 8)
        seen.append((stop.why, debugger.pc(), debugger.register(4)))
        if len(seen) == 4:
            debugger.debugged.clear_breakpoint(LOADED_AT + 8)
        debugger.debugged.resume()

    booted = boot(source, tmp_path, debugger=Scripted(at_stop))
    assert seen == [
        (Why.START, LOADED_AT, 0),
        *((Why.BREAKPOINT, LOADED_AT + 8, turns) for turns in range(3)),
    ]
    assert outcome(booted) == outcome(boot(source, tmp_path))


@pytest.mark.parametrize("core", CORES)
def test_steps_are_of_one_instruction_at_both_levels(core: str, tmp_path: Path) -> None:
    source = """
        adr     x0, user        // 1
        msr     elr_el1, x0     // 2
        msr     spsr_el1, xzr   // 3
        mrs     x9, mpidr_el1   // 4: which the board answers
        str     wzr, [x20]      // 5: a device
        eret                    // 6
user:   mov     x1, #1          // 7
        svc     #0              // 8
        .balign 0x800
vectors: .org vectors + 0x400
        nop                     // 9
        b       off
    """
    places = []

    def at_stop(debugger: Scripted, stop: Stop) -> None:
        places.append((debugger.pc() - LOADED_AT, debugger.debugged.cpus[0].core.level))
        debugger.debugged.resume({0} if len(places) <= 13 else None)

    prepare = "adr x0, vectors\nmsr vbar_el1, x0\nisb\n"
    booted = boot(prepare + source, tmp_path, core=core, debugger=Scripted(at_stop))
    first = 16  # behind START and what prepares
    assert places == [
        *((at, 1) for at in range(0, first, 4)),
        *((first + at, 1) for at in range(0, 24, 4)),
        (first + 24, 0),
        (first + 28, 0),
        (0x800 + 0x400, 1),
        (0x800 + 0x404, 1),
    ]
    assert outcome(booted) == outcome(boot(prepare + source, tmp_path, core=core))


def test_a_step_goes_over_the_interrupts_that_come_first(tmp_path: Path) -> None:
    """The timer interrupts within the loop: the handler is no instruction of the loop's."""
    source = WITH_VECTORS + TIMER.replace("TICKS", "10") + "1: add x16, x16, #1\ncbz x13, 1b\n"
    places = []

    def at_stop(debugger: Scripted, stop: Stop) -> None:
        if stop.why is not Why.START:
            places.append(debugger.pc())
        if debugger.register(13):
            debugger.debugged.resume()
        else:
            debugger.debugged.resume({0})

    booted = boot(source, tmp_path, debugger=Scripted(at_stop))
    assert outcome(booted) == outcome(boot(source, tmp_path))
    vectors = LOADED_AT + 0x800
    assert not [place for place in places if vectors <= place < vectors + 0x800]
    assert len(places) > 100


def test_watchpoints_stop_before_the_access(tmp_path: Path) -> None:
    source = "adr x1, data\nmov x2, #7\nldr x3, [x1]\nstr x2, [x1]\nldr x3, [x1]\nb off\ndata: .quad 1\n"
    seen = []

    def at_stop(debugger: Scripted, stop: Stop) -> None:
        data = LOADED_AT + 4 + 24
        if stop.why is Why.START:
            debugger.debugged.watch([Watched(data, 8, 2), Watched(data + 4, 1, 1)])
        else:
            value = debugger.debugged.read(0, data, 8)
            assert stop.watched is not None
            seen.append((stop.why, stop.watched.accesses, stop.address - data, debugger.pc() - LOADED_AT, value[0]))
        debugger.debugged.resume()

    booted = boot(source, tmp_path, debugger=Scripted(at_stop))
    assert seen == [
        (Why.WATCHPOINT, 1, 4, 12, 1),
        (Why.WATCHPOINT, 2, 0, 16, 1),
        (Why.WATCHPOINT, 1, 4, 20, 7),
    ]
    assert outcome(booted) == outcome(boot(source, tmp_path))


class Restless:
    """Stops at random, does at random what a user may do, and changes nothing."""

    debugged: Debugged

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.stops = dict.fromkeys(Why, 0)
        self._breakpoints: list[int] = []

    def stopped(self, stop: Stop) -> None:
        self.stops[stop.why] += 1
        debugged, draw = self.debugged, self._random
        on = [number for number, cpu in enumerate(debugged.cpus) if cpu.is_on and not cpu.waits]
        place = debugged.cpus[draw.choice(on or [0])].core.pc
        if sum(self.stops.values()) > MOST_STOPS:
            debugged.forget()
            return
        for _ in range(draw.randrange(3)):
            debugged.set_breakpoint(self._drawn(place + draw.choice((0, 4, 8, 40))))
        for address in draw.sample(self._breakpoints, len(self._breakpoints) // 2):
            self._breakpoints.remove(address)
            debugged.clear_breakpoint(address)
        if draw.random() < 0.5:
            near = (place & ~7) + 8 * draw.randrange(-8, 8)
            debugged.watch([Watched(near, 8, draw.choice((1, 2, 3)))])
        debugged.want_look()
        steps = {number for number in on if draw.random() < 0.9}
        debugged.resume(steps, alone=bool(steps) and draw.random() < 0.3)

    def _drawn(self, address: int) -> int:
        self._breakpoints.append(address)
        return address

    def look(self) -> bool:
        """At a turn's end."""
        self.debugged.want_look()
        return self._random.random() < 0.8


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("core", CORES)
def test_who_debugs_changes_nothing(core: str, seed: int, tmp_path: Path) -> None:
    """Two CPUs with exclusive pairs and an interrupt: not even which CPU's store comes first."""
    source = WITH_VECTORS + SGI + TWO_CPUS
    alone, restless = boot(source, tmp_path, core=core, cpus=2, quantum=100), Restless(seed)
    debugged = boot(source, tmp_path, core=core, cpus=2, quantum=100, debugger=restless)
    assert outcome(debugged) == outcome(alone)
    assert all(restless.stops.values()), restless.stops


def test_a_debugger_may_end_the_run(tmp_path: Path) -> None:
    def at_stop(debugger: Scripted, stop: Stop) -> None:
        debugger.debugged.kill()
        debugger.debugged.resume()

    booted = boot("b .\n", tmp_path, debugger=Scripted(at_stop))
    assert booted.board.ended is Ended.KILLED
    assert booted.cpus[0].core.total(Probe.INST_RETIRED) == 0


def test_physical_memory(tmp_path: Path) -> None:
    seen = []

    def at_stop(debugger: Scripted, stop: Stop) -> None:
        debugged = debugger.debugged
        seen.append(debugged.read_physical(LOADED_AT, 4) == debugged.read(0, LOADED_AT, 4))
        seen.append(debugged.write_physical(LOADED_AT + 0xFFE, b"abcd"))  # over the end of a page
        seen.append(debugged.read(0, LOADED_AT + 0xFFE, 4))
        seen.append(debugged.read_physical(0, 4))
        seen.append(debugged.write_physical(0x900_0000, b"x"))
        debugged.resume()

    boot("nop\n", tmp_path, debugger=Scripted(at_stop))
    assert seen == [True, True, b"abcd", b"", False]
