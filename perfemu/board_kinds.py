"""The boards that there are: what each boots, and what of it is its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from emulator.board import virt_tree
from emulator.board.board import Boot, Outside
from emulator.board.image import Image, read_image
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.memory_map import MOST_RAM_BYTES
from emulator.board.pc.pc import Pc
from emulator.board.trace import Traced
from emulator.board.virt import Virt
from emulator.machine import Hardware
from emulator.sysregs import SysReg
from emulator.x86_64_system import SystemRegister
from perfemu.board_activity_monitors import activity_monitors
from perfemu.board_pc_units import add_debug_store, add_trace, pc_units
from perfemu.board_units import board_brbe, board_spe
from perfemu.pmu_kinds import branch_unit
from pmu.amd.core_counters import CoreCounters
from pmu.arm.pmuv3 import PmuV3
from pmu.intel.pebs_events import with_pebs
from pmu.intel.perfmon import Perfmon
from pmu.model import PmuModel
from pmu.register_view import RegisterFile, Registers

AnyBoard = Virt | Pc
Built = tuple[AnyBoard, Sequence[RegisterFile], Sequence[Registers]]
"""A board, and the PMUs that its guest programs, one a CPU, or none; and what its CPUs have besides, likewise."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What tells processes apart: the register that points at their page tables."""

    register: int  # as Core.read_kernel_register has it
    mask: int  # of the address in it
    name: str


@dataclass(frozen=True, slots=True)
class BoardKind:
    isa: str
    keeps_frame_pointers: bool  # whether Linux always does there
    read_image: Callable[[bytes], Image]  # raises NotBootable
    board: type[Virt] | type[Pc]
    build: Callable[[Hardware, PmuModel, Boot | None, Outside], Built]  # no Boot: from a checkpoint
    ram_base: int
    consoles: Mapping[str, bool]  # name -> whether it is the virtio console that receives
    tables: Tables
    kernel_code: range  # virtual addresses at which Linux has its kernel's
    traced: Collection[Traced]
    without: Mapping[str, str]  # what it has not: fields of BoardRequest, and what to say of them
    most_ram_bytes: int | None = None


def _virt(hardware: Hardware, model: PmuModel, boot: Boot | None, outside: Outside) -> Built:
    monitors = activity_monitors(hardware, model)
    profiling = board_spe(hardware, model)
    if model.driver != "arm_pmuv3":  # whose registers no AArch64 instruction names: it only measures
        return Virt(hardware, boot, outside, monitors=monitors, profiling=profiling), (), monitors
    pmus = [
        PmuV3(cpu.core.add_bank(model.bank_size(model.counters)), model, branches=board_brbe(cpu, hardware, model))
        for cpu in hardware.cpus
    ]
    return Virt(hardware, boot, outside, pmus, monitors, profiling), pmus, monitors


PC_PMUS: Mapping[str, type[Perfmon] | type[CoreCounters]] = {
    "intel_core": Perfmon,
    "amd_core": CoreCounters,
}  # by the driver that the model is for


def _pc(hardware: Hardware, model: PmuModel, boot: Boot | None, outside: Outside) -> Built:
    kind = PC_PMUS.get(model.driver)
    if kind is None:  # whose registers no x86 instruction names: it only measures
        return Pc(hardware, boot, outside), (), ()
    for_guests = with_pebs(model) if "pebs" in model.units else model
    pmus: list[Perfmon | CoreCounters] = []
    for cpu in hardware.cpus:
        bank = cpu.core.add_bank(model.bank_size(model.counters))
        pmu = kind(bank, for_guests, branches=branch_unit(cpu.core, model))
        if isinstance(pmu, Perfmon):
            add_debug_store(cpu, hardware, model, pmu, outside.message)
            add_trace(cpu, hardware, model, pmu)
        pmus.append(pmu)
    return Pc(hardware, boot, outside, pmus, pc_units(hardware, model)), pmus, ()


BOARDS = {
    "virt": BoardKind(
        "aarch64",
        True,
        lambda data: read_image(data, virt_tree.RAM_BASE),
        Virt,
        _virt,
        virt_tree.RAM_BASE,
        {"pl011": False, "virtio": True},
        Tables(SysReg(3, 0, 2, 0, 0).encoding, (1 << 48) - 2, "ttbr0"),  # BADDR: without the ASID, and CnP
        range(1 << 63, 1 << 64),
        (Traced.EXCEPTIONS, Traced.INTERRUPTS, Traced.MMIO, Traced.SYSREGS),
        {},
    ),
    "pc": BoardKind(
        "x86_64",
        False,
        read_pc_image,
        Pc,
        _pc,
        0,
        {"com1": False, "virtio": True},
        Tables(SystemRegister.CR3, (1 << 52) - (1 << 12), "cr3"),
        range(0xFFFF_FFFF_8000_0000, 0xFFFF_FFFF_C000_0000),  # then modules; mm.rst: "kernel text mapping"
        (Traced.EXCEPTIONS, Traced.INTERRUPTS, Traced.MMIO, Traced.PORTS, Traced.MSRS),
        {"gic": "--gic", "semihosting": "--semihosting"},
        MOST_RAM_BYTES,
    ),
}
