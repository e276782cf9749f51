"""perfemu pmu: registers where a run stops, which is the instruction that was asked for, and as they are declared."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import perfemu
from code_hook import retired_addresses
from end_to_end.command import complaint
from end_to_end.command import perfemu as command
from guests import DIRECTORY, guest
from perfemu.cli.main import main
from perfemu.inspecting import Where, inspect_program
from perfemu.session import Session
from pmu.live.live_pmu import open_pmu
from pmu.model import models
from pmu.register_notes import access, notes, undeclared

CORES = {"aarch64": ("ideal", "neoverse-n1", "cortex-a55"), "x86_64": ("ideal", "zen5", "skylake", "redwood-cove")}
ON_CORES = [(isa, core) for isa, cores in CORES.items() for core in cores]


Show = Callable[..., dict[str, Any]]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Show:
    """What -j says, in this process."""

    def show(*arguments: str | Path) -> dict[str, Any]:
        assert main(["pmu", "show", "-j", *map(str, arguments)]) == 0
        found = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert isinstance(found, dict)
        return found

    return show


def registers(cpu: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {register["name"]: register for register in cpu["registers"]}


def fields(register: dict[str, Any]) -> dict[str, int]:
    return {field["name"]: field["value"] for field in register["fields"] if field["value"]}


@cache
def addresses(isa: str) -> list[int]:
    return retired_addresses(isa, guest("sort", isa).path)


@pytest.mark.parametrize(("isa", "core"), ON_CORES)
@pytest.mark.parametrize("instructions", [1, 2, 997, 100_003])
def test_a_run_stops_at_the_instruction(shown: Show, isa: str, core: str, instructions: int) -> None:
    (cpu,) = shown("--core", core, "--at", str(instructions), guest("sort", isa).path)["cpus"]
    assert cpu["instructions"] == instructions
    assert cpu["pc"] == addresses(isa)[instructions]  # the next one to execute


@pytest.mark.parametrize(("isa", "core"), ON_CORES)
@pytest.mark.parametrize("pmu", [None, "loongarch"])
def test_events_are_where_the_driver_has_put_them(shown: Show, isa: str, core: str, pmu: str | None) -> None:
    of = [] if pmu is None else ["--pmu", pmu]
    found = shown("--core", core, *of, "-e", "branches,instructions", "--at", "5000", guest("sort", isa).path)
    assert found["events"] == ["branches:u", "instructions:u"]
    (cpu,) = found["cpus"]
    programmed = {each["event"]: each for each in cpu["programmed"]}
    assert programmed.keys() == {"branches:u", "instructions:u"}
    assert programmed["instructions:u"]["count"] == 5000
    there = registers(cpu)
    for each in programmed.values():
        assert each["counter"] in there
    if pmu == "loongarch":
        assert fields(there["PERFCTRL0"]) == {"EVENT": 2, "PLV2": 1, "PLV3": 1, "IE": 1}
        assert fields(there["PERFCTRL1"]) == {"EVENT": 1, "PLV2": 1, "PLV3": 1, "IE": 1}
        assert next(each["meaning"] for each in there["PERFCTRL0"]["fields"]) == "BRANCHES_RETIRED"


def test_the_period_is_in_the_counter(shown: Show) -> None:
    program = guest("loop_1k", "aarch64").path
    (cpu,) = shown("--core", "ideal", "-e", "instructions", "-c", "1000", "--at", "1300", program)["cpus"]
    assert registers(cpu)["PMEVCNTR0_EL0"]["value"] == (1 << 32) - 700  # 300 into the second period


def test_without_events_it_is_the_programs_own_pmu(shown: Show) -> None:
    """Which counts the million instructions that the program is about; at the end nothing is enabled any more."""
    program = guest("self_monitoring", "aarch64").path
    (cpu,) = shown("--core", "ideal", "--at", "500000", program)["cpus"]
    (programmed,) = cpu["programmed"]
    assert programmed["counter"] == "PMEVCNTR0_EL0"
    assert fields(registers(cpu)["PMCNTENSET_EL0"]) == {"P": 1}
    found = shown("--core", "ideal", program)
    (cpu,) = found["cpus"]
    assert (found["ended"], cpu["programmed"], cpu["instructions"]) == (True, [], 1_000_109)
    assert fields(registers(cpu)["PMCNTENSET_EL0"]) == {}


def test_a_run_stops_where_a_function_is_entered(shown: Show) -> None:
    program = guest("recursion", "x86_64").path
    (cpu,) = shown("--core", "ideal", "-e", "instructions", "--at-symbol", "leaf", program)["cpus"]
    result = perfemu.stat(
        perfemu.Guest([program], core="ideal"), ["instructions"], to_symbol="leaf", from_symbol="_start"
    )
    assert cpu["instructions"] == result["instructions"]
    done = command("pmu", "show", "--at-symbol", "leav", program)
    assert "no file that the program has mapped has such a function; near: leaf" in complaint(done)


@pytest.mark.parametrize(("isa", "core"), ON_CORES)
def test_one_can_look_several_times(isa: str, core: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(guest("sort", isa).path)
    at = (10, 11, 5000)
    arguments = ["--core", core, "-e", "instructions", "--at", ",".join(map(str, at)), "--at-symbol", "main", program]
    assert main(["pmu", "show", "-j", *arguments]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    looks = [
        (cpu["instructions"], cpu["programmed"][0]["count"], cpu["pc"]) for (cpu,) in (each["cpus"] for each in found)
    ]
    assert looks == sorted(looks)
    assert len(looks) == len(at) + 1  # with main's first instruction, which comes soon
    assert [(count, count, addresses(isa)[count]) for count, *_ in looks] == looks
    assert set(at) < {count for count, *_ in looks}


@pytest.mark.parametrize("instructions", [1, 300, 1234])
@pytest.mark.parametrize("core", ["ideal", "neoverse-n1"])
def test_a_board_stops_at_the_instruction(shown: Show, core: str, instructions: int) -> None:
    image = DIRECTORY / "board_pmu_software" / "virt.elf"
    (cpu,) = shown("--core", core, "--board", "virt", "--at", str(instructions), image)["cpus"]
    assert cpu["instructions"] == instructions
    assert cpu["level"] == "kernel"
    assert fields(registers(cpu)["PMCR_EL0"])["N"] == 6


def test_each_cpu_of_a_board_has_its_own(shown: Show) -> None:
    image = DIRECTORY / "board_two_cpus" / "virt.elf"
    found = shown("--core", "ideal", "--board", "virt", "--cpus", "2", "-e", "instructions:k", "--at", "2000", image)
    assert [cpu["cpu"] for cpu in found["cpus"]] == [0, 1]
    assert max(cpu["instructions"] for cpu in found["cpus"]) == 2000
    for cpu in found["cpus"]:
        (programmed,) = cpu["programmed"]
        assert programmed["count"] == cpu["instructions"]  # at EL1, all of them


def test_looking_changes_nothing() -> None:
    """A run that goes on behind the stop counts what another counts, to the cycle."""
    program = guest("sort", "aarch64").path
    plain = Session(perfemu.Guest([program], core="neoverse-n1", stdout=-1))
    plain.run()
    session = Session(perfemu.Guest([program], core="neoverse-n1", stdout=-1))
    states = inspect_program(session, ["cycles"], None, Where(instructions=(1, 997, 100_003)))
    assert [(state.ended, state.cpus[0].instructions) for state in states] == [
        (False, 1),
        (False, 997),
        (False, 100_003),
    ]
    session.machine.run_to_the_end()
    ((first, second),) = zip(plain.machine.cpus, session.machine.cpus, strict=True)
    assert (first.core.cycles, first.core.pc) == (second.core.cycles, second.core.pc)


def test_text_has_what_is_not_zero() -> None:
    program = guest("loop_1k", "x86_64").path
    asked = ("-e", "instructions", "--at", "10", "--registers", "ia32_perf*")
    done = command("pmu", "show", "--core", "ideal", *asked, program)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "PMU cpu (intel_arch_perfmon), counts; core ideal"
    assert lines[2].startswith("CPU 0: 10 instructions, cycle 10, PC 0x")
    assert lines[3] == "  instructions:u is counted by IA32_FIXED_CTR0: 10 so far"
    assert ["EN_FIXED", "35:32", "1"] in [line.split() for line in lines]
    assert not any("IA32_PMC0" in line for line in lines)


@pytest.mark.parametrize("name", models())
def test_declarations_are_shown_with_what_they_hold_at_reset(
    shown: Show, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    found = shown("--pmu", name)
    device = open_pmu(name).device
    assert [each["name"] for each in found["registers"]] == [register.name_of(0) for register in device.registers()]
    for each, register in zip(found["registers"], device.registers(), strict=True):
        assert {field["name"] for field in each["fields"]} == set(register.fields)
        assert each["reset"] == (device.read(register) if device.can_read(register) else None)
    assert main(["pmu", "show", "--pmu", name]) == 0
    text = capsys.readouterr().out
    for register in device.registers():
        for field, note in notes(register).items():
            assert field in register.fields
            assert note in text


def test_facts_of_declarations() -> None:
    fields_of = {register.__name__: register.fields for register in open_pmu("pmuv3p9").device.registers()}
    kinds = {name: access(field) for name, field in fields_of["PMCR_EL0"].items()}
    assert (kinds["E"], kinds["P"], kinds["N"]) == ("RW", "WO", "RO")
    assert {access(field) for field in fields_of["PMOVSCLR_EL0"].values()} == {"W1C"}
    pmcr = next(each for each in open_pmu("pmuv3p9").device.registers() if each.__name__ == "PMCR_EL0")
    assert undeclared(pmcr) == ["63:33", "10", "8"]
    assert notes(pmcr)["E"] == "counters count"


def test_the_list_names_all() -> None:
    lines = command("pmu", "list").stdout.decode().splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "] == models()
    found = json.loads(command("pmu", "list", "-j").stdout)
    assert [each["model"] for each in found] == models()
    assert {each["isa"] for each in found} == {"aarch64", "x86_64", ""}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pmu: wants list or show"),
        (["show"], "pmu show: wants a program, or --pmu NAME (perfemu pmu list), --core or --isa"),
        (["show", "--at", "5"], "pmu show: no program to run: name it after the options"),
        (["show", "--at", "0", "x"], "pmu: argument --at: 0 is not within 1.."),
        (["list", "x"], "pmu list: runs nothing; perfemu pmu show does"),
        (["show", "--at", "5,5", "x"], "pmu: argument --at: 5,5: want numbers that ascend"),
        (["show", "--pmu", "pmuv4"], "--pmu: no PMU model 'pmuv4'; there are armv8_pmuv3, "),
        (["show", "-e", "foo", "GOOD"], "event syntax error: unknown event 'foo'"),
        (["show", "--board", "virt", "--at-symbol", "main", "GOOD"], "--at-symbol: is for programs"),
        (["show", "--core", "cortex-a72", "--isa", "x86_64"], "--core cortex-a72: executes aarch64, not x86_64"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], message: str) -> None:
    program = str(guest("loop_1k", "x86_64").path)
    done = command("pmu", *(program if word == "GOOD" else word for word in arguments))
    assert done.returncode != 0
    assert complaint(done).startswith(message)


def test_a_stop_that_never_comes_is_said() -> None:
    done = command("pmu", "show", "--at", "2005", guest("loop_1k", "x86_64").path)
    assert complaint(done) == (
        "pmu: the run ended before it came to where it was to be looked at: after 2,004 instructions"
    )
    assert done.returncode == 0
