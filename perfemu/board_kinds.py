"""The boards that there are: what each boots, and what of it is its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from emulator.board import virt_tree
from emulator.board.board import Boot, Outside
from emulator.board.image import Image, read_image
from emulator.board.trace import Traced
from emulator.board.virt import Virt
from emulator.machine import Hardware
from emulator.sysregs import SysReg
from pmu.arm.pmuv3 import PmuV3
from pmu.model import PmuModel

AnyBoard = Virt


@dataclass(frozen=True, slots=True)
class Tables:
    """What tells processes apart: the register that points at their page tables."""

    register: int  # as Core.read_kernel_register has it
    mask: int  # of the address in it
    name: str


@dataclass(frozen=True, slots=True)
class BoardKind:
    isa: str
    read_image: Callable[[bytes], Image]  # raises NotBootable
    build: Callable[[Hardware, PmuModel, Boot | None, Outside], AnyBoard]  # no Boot: from a checkpoint
    ram_base: int
    consoles: Mapping[str, bool]  # name -> whether it is the virtio console that receives
    tables: Tables
    traced: Collection[Traced]
    without: Mapping[str, str]  # what it has not: fields of BoardRequest, and what to say of them
    most_ram_bytes: int | None = None


def _virt(hardware: Hardware, model: PmuModel, boot: Boot | None, outside: Outside) -> Virt:
    pmus = [PmuV3(cpu.core.add_bank(model.bank_size(model.counters)), model) for cpu in hardware.cpus]
    return Virt(hardware, boot, outside, pmus)


BOARDS = {
    "virt": BoardKind(
        "aarch64",
        lambda data: read_image(data, virt_tree.RAM_BASE),
        _virt,
        virt_tree.RAM_BASE,
        {"pl011": False, "virtio": True},
        Tables(SysReg(3, 0, 2, 0, 0).encoding, (1 << 48) - 2, "ttbr0"),  # BADDR: without the ASID, and CnP
        (Traced.EXCEPTIONS, Traced.INTERRUPTS, Traced.MMIO, Traced.SYSREGS),
        {},
    ),
}
