"""Images for PCs as guests of a hypervisor: each does and counts what it does alone, wherever its slices end."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.cpu import Level
from emulator.probes import Probe
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.events.attributes import stat_attr
from perfemu.guest import Guest
from perfemu.virtual_machines import VirtualMachines
from tests.unit.board.pc.images import IMAGES, assembled, built
from tests.unit.board.pc.test_pc import boot, of_its_pmu

LEVELS = {"u": Level.USER, "k": Level.KERNEL}
NEIGHBOURS = ("gates", "timer")
POLL = ("timer",)  # time: how long they do so depends on whose turn it is
GUESTS = [name for name, image in IMAGES.items() if image.cpus == 1]
MEMORY = "384M"  # gates looks at addresses in its second 64 MiB
MEMORY_BYTES = 128 << 20  # ... of each of three
INSTRUCTIONS = {"ideal": "inst_retired.any", "skylake": "inst_retired.any", "zen5": "ex_ret_instr"}
ALL_TOLD = {"core_counters": 4}  # counters, of which it says how many there are
# What lies right behind its own RAM, where another guest's begins, and far behind; then what is stored there is read.
PROBE = f"""
main:   mov     ${MEMORY_BYTES:#x}, %esi
        call    look
        mov     ${2 * MEMORY_BYTES:#x}, %esi
look:   value   (%rsi)
        movq    $0x55, (%rsi)
        value   (%rsi)
        value   -8(%rsi)
        jmp     newline
"""


def images(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).write_bytes(built(name))
    return [folder / name for name in names]


def alone(name: str, core: str) -> dict[str, int]:
    """How many instructions it executes at each level."""
    counted = boot(name, core).cpus[0].core
    return {letter: counted.total(Probe.INST_RETIRED, level) for letter, level in LEVELS.items()}


@pytest.mark.parametrize(("core", "slice_us"), [("ideal", 50), ("ideal", 0.041), ("skylake", 0.3), ("zen5", 0.037)])
@pytest.mark.parametrize("name", GUESTS)
def test_each_does_what_it_does_alone(name: str, core: str, slice_us: float, tmp_path: Path) -> None:
    if not of_its_pmu(name, core):
        pytest.skip("it is for another PMU")
    names = (name, *NEIGHBOURS)
    machines = VirtualMachines(
        images(tmp_path, *names), board="pc", core=core, slice_us=slice_us, guest_counters=ALL_TOLD.get(name, 2),
        memory=MEMORY, most_instructions=10_000_000,
    )  # fmt: skip
    counted = {
        (number, letter): machines.count(f"{INSTRUCTIONS[core]}:{letter}G", guest=number)
        for number in range(len(names))
        for letter in LEVELS
    }
    assert machines.run() is Ended.NONE_ON
    for number, (machine, guest) in enumerate(zip(machines.guests, names, strict=True)):
        assert machine.console.decode() == IMAGES[guest].prints.lstrip()
        assert machine.exit_status == IMAGES[guest].status
        counts = {letter: counted[number, letter].read_values() for letter in LEVELS}
        assert all(values.enabled == values.running for values in counts.values())
        if guest not in POLL:
            assert {letter: values.value for letter, values in counts.items()} == alone(guest, core)


def test_a_guest_reaches_its_own_ram_alone(tmp_path: Path) -> None:
    """A pc answers loads beyond RAM with ones, and its stores there go nowhere."""
    path = tmp_path / "probe"
    path.write_bytes(assembled(PROBE))
    (neighbour,) = images(tmp_path, "user")
    machines = VirtualMachines([neighbour, path, neighbour], board="pc", memory=MEMORY, slice_us=0.1)
    machines.run()
    first, probe, last = machines.guests
    ones = "ffffffffffffffff"
    assert probe.console.decode() == f" {ones} {ones} 0\n {ones} {ones} {ones}\n"
    assert first.console == last.console == IMAGES["user"].prints.lstrip().encode()


def overflows_alone(path: Path, period: int) -> list[int]:
    """Where a board by itself is when every `period`-th instruction has retired."""
    session = BoardSession(
        Guest((str(path),), core="ideal", memory=MEMORY_BYTES, stdin=-1), BoardRequest("pc"), BytesIO(), lambda _: None
    )
    (spec,) = session.parse(["inst_retired.any"])
    attr = stat_attr(spec, system_wide=True).copy(sample_period=period, disabled=0)
    places: list[int] = []
    session.open(attr, 0, system_wide=True).on_signal = lambda reason: places.append(session.hardware.cpus[0].core.pc)
    session.run()
    return places


@pytest.mark.parametrize(("period", "slice_us"), [(7, 50), (97, 0.041)])
def test_the_hosts_overflows_fall_on_the_exact_instruction(period: int, slice_us: float, tmp_path: Path) -> None:
    """Beside guests that overflow a PMU of their own."""
    paths = images(tmp_path, "user", "counters")
    machines = VirtualMachines(paths, board="pc", memory="128M", slice_us=slice_us)
    places: dict[int, list[int]] = {0: [], 1: []}
    for number in places:
        event = machines.open("inst_retired.any:G", guest=number, period=period)
        event.on_signal = lambda reason, here=places[number]: here.append(machines.pc)
    machines.run()
    assert [machine.console.decode() for machine in machines.guests] == [
        IMAGES[name].prints.lstrip() for name in ("user", "counters")
    ]
    assert places == {number: overflows_alone(path, period) for number, path in enumerate(paths)}
    assert min(map(len, places.values())) >= 10_000 // period


def test_guests_are_left_at_accesses_to_their_pmu(tmp_path: Path) -> None:
    machines = VirtualMachines(images(tmp_path, "counters", "hello"), board="pc", memory="128M")
    host = machines.count("inst_retired.any:H")
    machines.run()
    counters, hello = (machine.exits for machine in machines.guests)
    # 19 times WRMSR, 6 times RDMSR and RDPMC, as the source has them; the one that faults is none
    assert (counters["an access to the PMU"], hello["an access to the PMU"]) == (25, 0)
    assert host.count() == 0  # it executes nothing
