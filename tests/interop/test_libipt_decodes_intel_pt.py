"""libipt, Intel's own decoder, finds in our traces exactly the instructions that have retired."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator._native import PtEncoder, PtSettings, RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.cpu import Waking
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest
from intel_pt_truth import THREADS, WRITES, built, writes_of, written_by
from libipt import build_decoder
from libipt import instructions as instructions_in

PROGRAMS = ("loop_1k", "recursion", "string_instructions", "page_crossing", "branch_patterns", "instructions_rep")
SETTINGS: dict[str, dict[str, int]] = {
    "plain": {},
    "returns by address": {"compresses_returns": False},
    # 40 ticks of the time stamp counter are one of the crystal clock; a PSB after each 2 KiB
    "timed": {"tsc": True, "mtc": True, "cyc": True, "tsc_ticks": 40, "bytes_between_psbs": 2048},
}
LOAD, EXECUTABLE = 1, 1  # p_type, p_flags


@dataclass(frozen=True, slots=True)
class Traced:
    path: Path
    trace: bytes
    instructions: list[int]
    stopped: bool


def traced(
    program: str | Path,
    core: str,
    settings: dict[str, int],
    size: int = 1 << 20,
    *,
    steps: bool = True,
    wakings: Sequence[int] = (),
) -> Traced:
    """What the program, a guest's name or a file, executes, as a trace of at most `size` bytes and as it was: that only
    if the core goes step by step. Behind it the processor sleeps, and wakes for each of these reasons."""
    machine = LinuxMachine(MachineConfig("x86_64", core=load_core(core)))
    native = machine.cpus[0].core
    native.add_ptwrite()
    recorder = RetirementRecorder(keep=True)
    if steps:
        native.select(recorder, 1 << Probe.INST_RETIRED, 1)
    encoder, memory, asked = PtEncoder(native, machine.clock.shown), bytearray(size), PtSettings()
    for name, value in settings.items():
        setattr(asked, name, value)
    encoder.set_output([(memory, False, True)], 0, 0)
    encoder.begin(asked, 0)
    path = guest(program, "x86_64").path if isinstance(program, str) else program
    machine.start(Program(str(path), (str(path),), stdout=-1))
    machine.run()
    for reason in wakings:
        encoder.sleep()
        encoder.wake(reason)
    length, stopped = encoder.offset, encoder.stopped
    encoder.end()
    return Traced(path, bytes(memory[:length]), [op[0] for op in recorder.take_selected()], stopped)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_decoder(tmp_path_factory.mktemp("libipt"))


def decoded(decoder: Path, run: Traced, folder: Path) -> tuple[list[int], list[str]]:
    """The instructions that libipt finds, and what it says."""
    return instructions_in(decoder, run.trace, segments(run.path), folder)


def segments(path: Path) -> list[str]:
    """FILE OFFSET SIZE ADDRESS of each executable segment of an ELF file."""
    data, words = path.read_bytes(), []
    (start,), (count,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    for number in range(count):
        kind, flags, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, start + 56 * number)
        if kind == LOAD and flags & EXECUTABLE:
            words += [str(path), str(offset), str(size), str(address)]
    return words


@pytest.mark.parametrize(
    ("core", "settings"), [("ideal", "plain"), ("ideal", "returns by address"), ("skylake", "timed")]
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_finds_what_has_retired(decoder: Path, tmp_path: Path, program: str, core: str, settings: str) -> None:
    run = traced(program, core, SETTINGS[settings])
    instructions, complaints = decoded(decoder, run, tmp_path)
    assert complaints == []
    assert instructions == run.instructions


def test_an_address_behind_a_psb_is_whole() -> None:
    """Compressed against zero, as the SDM allows, perf would take it for one near the last before the PSB."""
    trace = traced("branch_patterns", "ideal", {"bytes_between_psbs": 256}).trace
    psbs = trace.split(b"\x02\x82" * 8)[2:]  # the first is before there is an address
    assert len(psbs) > 8
    header = b"\x02\x03\x01\x00\x99\x01"  # CBR, MODE.Exec
    assert {psb[: len(header) + 1] for psb in psbs} == {header + b"\x7d"}  # FUP, 48 bits


def test_a_software_interrupt_is_where_the_trace_leaves_it(decoder: Path, tmp_path: Path) -> None:
    """A FUP says where INT3 is, as the SDM has it, so that decoders do not list the instruction itself."""
    program = built("traps", tmp_path, "-static", "-fno-pie", "-no-pie")
    run = traced(program, "ideal", {})
    instructions, complaints = decoded(decoder, run, tmp_path)
    assert complaints == []
    code = program.read_bytes()
    trap = code.index(bytes.fromhex("0f1f80efbeadde cc"))  # NOP with our number, INT3
    segment, offset, size, address = segments(program)[:4]
    assert segment == str(program)
    at = trap + 7 - int(offset) + int(address)
    assert 0 < at - int(address) < int(size)
    assert run.instructions.count(at) == 3
    assert instructions == [each for each in run.instructions if each != at]


def test_a_full_buffer_ends_the_trace_and_what_is_there_is_right(decoder: Path, tmp_path: Path) -> None:
    """branch_patterns makes 4 KB of packets; here is room for one."""
    run = traced("branch_patterns", "ideal", {}, size=1024)
    instructions, complaints = decoded(decoder, run, tmp_path)
    assert run.stopped
    assert len(run.trace) == 1024
    assert complaints == []
    assert 1000 < len(instructions) < len(run.instructions)
    assert instructions == run.instructions[: len(instructions)]


@pytest.mark.parametrize("addresses", [False, True])
@pytest.mark.parametrize("core", ["ideal", "redwood-cove"])
def test_it_finds_what_ptwrite_has_written(decoder: Path, tmp_path: Path, core: str, addresses: bool) -> None:
    """Each value, and where, as they have retired; the trace is the same whether the core goes step by step or not."""
    program = built("ptwrites", tmp_path, "-static", "-fno-pie", "-no-pie")
    settings = {"ptwrite": True, "ptwrite_addresses": addresses, "cyc": True}
    run = traced(program, core, settings)
    assert traced(program, core, settings, steps=False).trace == run.trace
    instructions, told = decoded(decoder, run, tmp_path)
    assert instructions == run.instructions
    places = writes_of(program)
    found = [line.split() for line in told]
    assert [int(words[0], 16) for words in found] == [each for each in run.instructions if each in places]
    assert len(found) == THREADS * WRITES + 3
    widths = {int(words[0], 16): int(words[3]) for words in found}
    assert sorted(widths.values()) == [4, 4, 8, 8, 8, 8, 8, 8]
    alone = [int(words[2].strip(","), 16) for words in found[: WRITES + 3]]
    assert alone == written_by(0)


@pytest.mark.parametrize("settings", [{}, {"tsc": True, "mtc": True, "cyc": True, "tsc_ticks": 40}])
def test_it_finds_where_the_processor_sleeps(decoder: Path, tmp_path: Path, settings: dict[str, int]) -> None:
    run = traced("loop_1k", "ideal", {"power": True, **settings}, wakings=list(Waking))
    instructions, told = decoded(decoder, run, tmp_path)
    assert instructions == run.instructions
    sleeps = ["sleeps: 0.0, by hardware: 0", "stops"]
    wakes = [f"wakes: last 0, deepest 0, interrupt {way}, store {1 - way}, autonomous 0" for way in (1, 0)]
    assert told == [*sleeps, wakes[0], *sleeps, wakes[1]]


@pytest.mark.parametrize("core", ["ideal", "skylake"])
def test_tracing_changes_nothing(core: str) -> None:
    """What is counted with a trace is what is counted without, cycles and all."""
    totals = []
    for traces in (False, True):
        machine = LinuxMachine(MachineConfig("x86_64", core=load_core(core)))
        native = machine.cpus[0].core
        native.follow_branches()
        encoder = PtEncoder(native, machine.clock.shown)
        if traces:
            encoder.set_output([(bytearray(1 << 20), False, True)], 0, 0)
            encoder.begin(PtSettings(), 0)
        path = str(guest("branch_patterns", "x86_64").path)
        machine.start(Program(path, (path,), stdout=-1))
        machine.run()
        totals.append(([native.total(probe) for probe in Probe], native.cycles))
        assert (encoder.offset > 1000) == traces
        encoder.end()
    assert totals[0] == totals[1]


def test_a_trace_tells_its_settings_apart() -> None:
    """What is asked for is what is there: times are bytes, and compressed returns are none."""
    sizes = {name: len(traced("recursion", "ideal", settings).trace) for name, settings in SETTINGS.items()}
    assert sizes["plain"] < sizes["timed"]
    assert sizes["plain"] < sizes["returns by address"]
