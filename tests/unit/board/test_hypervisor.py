"""What guests of a hypervisor cannot reach, where the host interrupts them, and how their runs end."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.board.virt_tree import RAM_BASE
from guests import BoardGuest, board_guests
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import stat_attr
from perfemu.guest import Guest
from perfemu.virtual_machines import VirtualMachines
from unit.native.bare import assemble

BY_BOARD = {(guest.name, guest.board): guest for guest in board_guests()}
GUESTS = {name: guest for (name, board), guest in BY_BOARD.items() if board == "virt"}
MEMORY_BYTES = 48 << 20
EACH_BYTES = MEMORY_BYTES // 3
# Each access beyond the guest's own RAM is an exception, counted in x19, which is the exit status.
PROBE = f"""
        adr     x0, vectors
        msr     vbar_el1, x0
        isb
        mov     x19, #0
        ldr     x1, ={RAM_BASE - 8:#x}
        ldr     x2, [x1]
        str     x2, [x1]
        ldr     x1, ={RAM_BASE - EACH_BYTES:#x}
        ldr     x2, [x1]
        ldr     x1, ={RAM_BASE + EACH_BYTES:#x}
        ldr     x2, [x1]
        str     x2, [x1]
        ldr     x1, ={RAM_BASE + EACH_BYTES - 8:#x} // its last
        ldr     x2, [x1]
        adr     x1, block
        str     x19, [x1, #8]
        mov     w0, #0x18
        hlt     #0xf000
        .balign 2048
vectors: .space 0x200
        add     x19, x19, #1
        mrs     x3, elr_el1
        add     x3, x3, #4
        msr     elr_el1, x3
        eret
        .balign 8
block:  .quad   0x20026, 0
"""
SPIN = "spin: b spin"
WAITS = "wait: wfi\n b wait"


def image(source: str, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(assemble("aarch64", source, folder))
    return path


def test_a_guest_reaches_its_own_ram_alone(tmp_path: Path) -> None:
    neighbour = GUESTS["board_paging"].path
    machines = VirtualMachines([neighbour, image(PROBE, tmp_path, "probe"), neighbour], memory="48M", slice_us=0.1)
    machines.run()
    assert [machine.exit_status for machine in machines.guests] == [0, 5, 0]


def overflows_alone(guest: BoardGuest, period: int) -> list[int]:
    """Where a board by itself is when every `period`-th instruction has retired."""
    session = BoardSession(Guest((str(guest.path),), core="ideal", memory="64M", stdin=-1),
                           BoardRequest(guest.board, semihosting=guest.board == "virt"), BytesIO(),
                           lambda line: None)  # fmt: skip
    (spec,) = session.parse(["instructions"])
    attr = stat_attr(spec, system_wide=True).copy(sample_period=period, disabled=0)
    places: list[int] = []
    session.open(attr, 0, system_wide=True).on_signal = lambda reason: places.append(session.hardware.cpus[0].core.pc)
    session.run()
    return places


SHARING = {"virt": ("board_interrupts", "board_paging"), "pc": ("board_pmu_interrupts", "board_pmu_rdpmc")}


@pytest.mark.parametrize("slice_us", [50, 0.041])
@pytest.mark.parametrize("period", [7, 97])
@pytest.mark.parametrize("board", SHARING)
def test_the_hosts_overflows_fall_on_the_exact_instruction(board: str, period: int, slice_us: float) -> None:
    """Also of guests that overflow a PMU of their own, and where the instruction ends the run."""
    guests = [BY_BOARD[name, board] for name in SHARING[board]]
    machines = VirtualMachines([guest.path for guest in guests], board=board, memory="64M", slice_us=slice_us)
    places: dict[int, list[int]] = {0: [], 1: []}
    for number in places:
        event = machines.open("instructions:G", guest=number, period=period)
        event.on_signal = lambda reason, here=places[number]: here.append(machines.pc)
    machines.run()
    assert [machine.exit_status for machine in machines.guests] == [guest.exit_status for guest in guests]
    assert places == {number: overflows_alone(guest, period) for number, guest in enumerate(guests)}
    assert [len(each) for each in places.values()] == [
        sum(guest.counts[level]["INST_RETIRED"] for level in guest.counts) // period for guest in guests
    ]


def test_runs_end_by_a_limit_or_when_nothing_will_wake_anybody(tmp_path: Path) -> None:
    spins = image(SPIN, tmp_path, "spins")
    machines = VirtualMachines([spins, spins], slice_us=1, most_instructions=100_000)
    counted = [machines.count("inst_retired:G", guest=number) for number in range(2)]
    assert machines.run() is Ended.LIMIT
    assert [event.count() for event in counted] == [50_000, 50_000]  # in slices of a thousand
    machines = VirtualMachines([spins, spins], slice_us=1, timeout="20us")
    both = machines.count("inst_retired:G")
    assert machines.run() is Ended.LIMIT
    assert both.count() == 20_000  # at 1 GHz
    waits = image(WAITS, tmp_path, "waits")
    assert VirtualMachines([waits, waits]).run() is Ended.IDLE


def test_one_guest_ends_and_the_others_go_on(tmp_path: Path) -> None:
    machines = VirtualMachines(
        [GUESTS["board_paging"].path, image(SPIN, tmp_path, "spins")], slice_us=0.5, most_instructions=50_000
    )
    assert machines.run() is Ended.LIMIT
    assert machines.guests[0].console.decode() == GUESTS["board_paging"].stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"images": []}, "0 guests"),
        ({"images": ["/missing"]}, "/missing: No such file"),
        ({"memory": "1M"}, "1M is not within"),
        ({"memory": "16M", "images": [GUESTS["board_paging"].path] * 9}, "RAM for 9 guests"),
        ({"guest_counters": 7}, "7 event counters for guests; there can be 1 to 6"),
        ({"pmu": "loongarch"}, "PMUs that guests share are those of arm_pmuv3, amd_core, intel_core"),
        ({"slice_us": 0}, "must be at least one"),
        ({"board": "pcs"}, "board 'pcs': there are virt and pc"),
        ({"timeout": "soon"}, "timeout"),
    ],
)
def test_what_cannot_be(arguments: dict[str, object], problem: str) -> None:
    images = arguments.pop("images", [GUESTS["board_paging"].path])
    with pytest.raises((PerfemuError, UsageError, ValueError), match=problem):
        VirtualMachines(images, **arguments)


def test_an_event_without_a_counter_for_guests_is_refused_in_a_group_and_waits_otherwise() -> None:
    machines = VirtualMachines([GUESTS["board_paging"].path], guest_counters=6)
    event = machines.count("inst_retired:G")
    machines.run()
    values = event.read_values()
    assert (values.value, values.running) == (0, 0)
