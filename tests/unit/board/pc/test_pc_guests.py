"""Images for PCs as guests of a hypervisor: each does and counts what it does alone, wherever its slices end."""

from __future__ import annotations

from pathlib import Path

import pytest

from board_images import pc_image
from emulator.board.board import Ended
from emulator.cpu import Level
from emulator.probes import Probe
from perfemu.virtual_machines import VirtualMachines
from tests.unit.board.pc.images import IMAGES, assembled, built
from tests.unit.board.pc.test_pc import boot

LEVELS = {"u": Level.USER, "k": Level.KERNEL}
NEIGHBOURS = ("gates", "timer")
POLL = ("timer",)  # time: how long they do so depends on whose turn it is
GUESTS = [name for name, image in IMAGES.items() if image.cpus == 1]
MEMORY = "384M"  # gates looks at addresses in its second 64 MiB
MEMORY_BYTES = 128 << 20  # ... of each of three
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


@pytest.mark.parametrize(
    ("name", "core", "slice_us"), [*((name, "ideal", 0.041) for name in GUESTS), ("user", "skylake", 0.3)]
)
def test_each_does_what_it_does_alone(name: str, core: str, slice_us: float, tmp_path: Path) -> None:
    names = (name, *NEIGHBOURS)
    machines = VirtualMachines(
        images(tmp_path, *names), board="pc", core=core, slice_us=slice_us, memory=MEMORY, most_instructions=10_000_000,
    )  # fmt: skip
    counted = {
        (number, letter): machines.count(f"inst_retired.any:{letter}G", guest=number)
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


def test_guests_are_left_at_accesses_to_their_pmu(tmp_path: Path) -> None:
    machines = VirtualMachines(images(tmp_path, "board_pmu_freeze", "hello"), board="pc", memory="128M")
    host = machines.count("inst_retired.any:H")
    machines.run()
    freezes, hello = (machine.exits for machine in machines.guests)
    # wr, rd, count and stop, as the source has them: 10 for what is frozen, 7 until the reset, 8 by software, 8 without
    assert (freezes["an access to the PMU"], hello["an access to the PMU"]) == (33, 0)
    assert host.count() == 0  # it executes nothing


def test_all_checks_of_the_image_in_c_pass_in_a_guest(tmp_path: Path) -> None:
    """What the manual says of perfmon, of CPUID, exceptions and local APICs: guest_programs/pc_images."""
    path = tmp_path / "image"
    path.write_bytes(pc_image(64))
    machines = VirtualMachines(
        [path, *images(tmp_path, "user")],
        board="pc", memory="256M", slice_us=3, guest_counters=3, command_line="image perfmon",
    )  # fmt: skip
    counted = machines.count("inst_retired.any:uG", guest=1)
    machines.run()
    image = machines.guests[0]
    lines = image.console.decode().splitlines()
    assert [line for line in lines if line.startswith("FAIL")] == []
    assert (image.exit_status, lines[-1]) == (1, "all passed")
    assert sum(line.startswith("PASS") for line in lines) > 200
    assert counted.count() == alone("user", "ideal")["u"]


# CPUID leaf 1's DS, DTES64; IA32_PERF_CAPABILITIES' LBR and PEBS formats; how many of four MSRs of LBR, PEBS and the
# debug store are #GP; what IA32_MISC_ENABLE says of BTS and PEBS: unavailable.
UNITS = """
main:   handle  13, refused
        mov     $1, %eax
        cpuid
        mov     %edx, %r12d
        shr     $21, %r12d
        and     $1, %r12d
        and     $4, %ecx
        mov     %ecx, %r13d
        value   %r12
        value   %r13
        mov     $0x345, %ecx
        rdmsr
        and     $0xF3F, %eax
        call    puthex
        .irp    register, 0x1C8, 0x680, 0x600, 0x3F1
        mov     $\\register, %ecx
        rdmsr
        .endr
        value   faults
        mov     $0x1A0, %ecx
        rdmsr
        shr     $11, %eax
        and     $3, %eax
        call    puthex
        jmp     newline
refused:
        addq    $2, 16(%rbx)
        incl    faults
        ret
        .data
faults: .quad   0
        .text
"""


def test_a_guest_is_shown_no_unit_that_it_is_not_given(tmp_path: Path) -> None:
    path = tmp_path / "units"
    path.write_bytes(assembled(UNITS))
    (neighbour,) = images(tmp_path, "user")
    machines = VirtualMachines([path, neighbour], board="pc", core="skylake", memory=MEMORY, slice_us=0.3)
    machines.run()
    assert machines.guests[0].console.decode() == " 0 0 0 4 3\n"
