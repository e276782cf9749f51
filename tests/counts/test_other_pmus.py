"""PMUs of the machine besides its CPUs' own count what can be derived, or what the CPUs' own have counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import perfemu
from end_to_end.random_guests import write_program
from guests import DIRECTORY, guest
from perfemu.errors import EventSyntaxError
from tests.unit.native.bare import assemble

INTEL = ("ideal", "skylake", "skylake-fused", "redwood-cove")
CORES = (*INTEL, "zen4", "zen5")
ALWAYS_RUNNING = ("msr/tsc/", "msr/aperf/", "msr/mperf/")
SLEEP_NS = 1_000_000
# nanosleep(&{0, 1,000,000}, 0) and exit(0)
SLEEPS = f"""
        push    ${SLEEP_NS}
        push    $0
        mov     %rsp, %rdi
        xor     %esi, %esi
        mov     $35, %eax
        syscall
        xor     %edi, %edi
        mov     $60, %eax
        syscall
"""


def counts(program: str, events: tuple[str, ...], core: str) -> list[int]:
    found = perfemu.stat(perfemu.Guest([program], core=core), list(events))
    return [round(count.spread.mean) for count in found.counts]


def test_on_the_ideal_core_each_instruction_is_a_cycle_of_all_of_them() -> None:
    program = guest("instructions_million", "x86_64")
    assert counts(str(program.path), ALWAYS_RUNNING, "ideal") == [program.counts["INST_RETIRED"]] * 3


@pytest.mark.parametrize("core", CORES)
def test_a_task_s_are_its_cycles_and_the_kernel_s_for_it(core: str) -> None:
    """It never waits, so that the CPU does not idle while it is there."""
    program = str(guest("memory_access", "x86_64").path)
    *found, cycles = counts(program, (*ALWAYS_RUNNING, "cycles:uk"), core)
    assert found == [cycles] * 3
    assert cycles > 0


def test_the_time_stamp_counter_runs_while_all_cpus_idle(tmp_path: Path) -> None:
    """Nine instructions execute, a cycle each of a nanosecond; in all other cycles both CPUs are halted."""
    program = write_program(tmp_path / "sleeps", "x86_64", assemble("x86_64", SLEEPS, tmp_path))
    events = (*ALWAYS_RUNNING, "cycles")
    found = perfemu.stat(perfemu.Guest(program, core="ideal", cpus=2), list(events), all_cpus=True)
    assert [count.spread.mean for count in found.counts] == [2 * found.elapsed_ns, 9, 9, 9]
    assert found.elapsed_ns == SLEEP_NS + 9


def test_aperf_over_mperf_is_the_frequency_that_there_was() -> None:
    """Of each 4,000 nanoseconds 1,000 have two cycles and 3,000 half a one, 3,500 cycles: 285 times, 997,500 cycles.

    The 2,506 behind those take 1,000 ns and 506 * 2.
    """
    program = guest("instructions_million", "x86_64")
    assert program.counts["INST_RETIRED"] == 285 * 3_500 + 2_506
    steps = str(DIRECTORY / "board_activity_monitors" / "steps.toml")
    found = perfemu.stat(perfemu.Guest([str(program.path)], core="ideal", dvfs=steps), list(ALWAYS_RUNNING))
    time = 285 * 4_000 + 1_000 + 506 * 2
    assert [count.spread.mean for count in found.counts] == [time, 1_000_006, time]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ("msr/tsc/u", "it knows no modifier 'u'"),
        ("msr/smi/", "there is no system management mode"),
        ("msr/event=7/", "has no event 0x7; it has tsc (0x0), aperf (0x1), mperf (0x2)"),
        ("cstate_core/c3-residency/", "PMU 'cstate_core' is not modelled: CPUs here have no C-states"),
        ("uncore_arb/clockticks/", "no arbiter is modelled"),
        ("power/energy-pkg/", "no energy is modelled"),
        ("nothing/x/", "no PMU 'nothing' on x86_64; there is cpu, msr"),
    ],
)
def test_what_is_not_there_is_refused_by_name(event: str, why: str) -> None:
    with pytest.raises(EventSyntaxError, match=re.escape(why)):
        perfemu.stat(perfemu.Guest([str(guest("loop_1k", "x86_64").path)], core="skylake"), [event])
