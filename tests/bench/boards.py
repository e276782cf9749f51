"""What a board costs: loops on the bare machine, and a kernel's boot.

The loops execute at EL1 with the guest's MMU on. Of each, in one run and by turns:
  raw       Unicorn, walking the guest's tables by itself (its TLB mode for CPUs) and without hooks: the yardstick
  count     a board's core, ideal
  default   a board's core, neoverse-n1
  program   the same instructions as a program of Linux's on neoverse-n1
A boot is that of Debian's kernel, with busybox, on the board virt: millions of instructions in a CPU second.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from unicorn import Uc
from unicorn.arm64_const import UC_ARM64_REG_CP_REG, UC_ARM64_REG_PSTATE
from unicorn.unicorn_const import UC_ARCH_ARM64, UC_MODE_ARM
from workloads import cpu_seconds

import debian_kernel
from emulator._native import AddressSpace, Core, PhysicalMemory
from emulator.core_file.core_file import load_core
from emulator.cpu import ExitReason
from emulator.machine import Hardware, MachineConfig
from emulator.probes import Probe
from emulator.sysregs import SysReg
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.guest import Guest
from tests.unit.native.bare import FOREVER, PC, assemble

MEMORY_BYTES, CODE, DATA, TABLES = 4 << 20, 0x1_0000, 0x20_0000, 0x1000
FRAME_SHIFT, TURNS = 12, 20_000_000
TABLE, BLOCK, NEVER_EXECUTED = 3, 0x701, 1 << 53 | 1 << 54  # Armv8-A descriptors: accessed, inner shareable; PXN, UXN
TTBR0_EL1, TCR_EL1, SCTLR_EL1 = SysReg(3, 0, 2, 0, 0), SysReg(3, 0, 2, 0, 2), SysReg(3, 0, 1, 0, 0)
SCR_EL3 = SysReg(3, 6, 1, 1, 0)
LOWER_HALF_ALONE = 25 | 1 << 23  # of 39 bits of address
SCTLR_M, SCR_RW, EL1H = 1, 1 << 10, 0x3C5

# Between the head and the loop's end; x9 is DATA.
LOOPS = {
    "compute": "add x1, x1, x2; eor x3, x3, x1; ror x2, x2, #3; madd x4, x1, x3, x4; sub x5, x4, x2; and x6, x5, x1",
    "memory": "ldr x1, [x9]; add x1, x1, #1; str x1, [x9]; ldr x2, [x9, #64]; add x2, x2, x1; str x2, [x9, #64]",
    "branches": """eor x1, x1, x1, lsl #13; eor x1, x1, x1, lsr #7; eor x1, x1, x1, lsl #17
        tbz x1, #3, 2f; add x2, x2, #1; 2: tbz x1, #9, 3f; add x3, x3, #1; 3: tbz x1, #20, 4f; add x4, x4, #1; 4:""",
}


def code_of(loop: str, end: str, folder: Path) -> bytes:
    head = f"movz x0, #{TURNS >> 16}, lsl #16; movk x0, #{TURNS & 0xFFFF}; mov x9, #{DATA}; mov x1, #1"
    return assemble("aarch64", f"{head}; 1: {LOOPS[loop]}; subs x0, x0, #1; b.ne 1b; {end}", folder)


def tables() -> bytes:
    """Code and data, each in a block of 2 MiB."""
    level_1 = (TABLES + 0x1000 | TABLE).to_bytes(8, "little").ljust(0x1000, b"\0")
    return level_1 + BLOCK.to_bytes(8, "little") + (DATA | BLOCK | NEVER_EXECUTED).to_bytes(8, "little")


def raw(code: bytes) -> Callable[[], None]:
    engine = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
    engine.ctl_set_page_size(1 << FRAME_SHIFT)
    engine.mem_map(0, MEMORY_BYTES)
    engine.mem_write(CODE, code)
    engine.mem_write(TABLES, tables())

    def write(register: SysReg, value: int) -> None:
        op0, op1, crn, crm, op2 = register
        engine.reg_write(UC_ARM64_REG_CP_REG, (crn, crm, op0, op1, op2, value))

    write(SCR_EL3, SCR_RW)
    engine.reg_write(UC_ARM64_REG_PSTATE, EL1H)
    for register, value in ((TTBR0_EL1, TABLES), (TCR_EL1, LOWER_HALF_ALONE), (SCTLR_EL1, SCTLR_M)):
        write(register, value)
    return partial(engine.emu_start, CODE, 1 << 40)  # until WFI


def on_a_board(core_name: str, code: bytes) -> Callable[[], None]:
    hardware = Hardware(MachineConfig("aarch64", load_core(core_name), MEMORY_BYTES))
    hardware.memory.allocate(MEMORY_BYTES >> FRAME_SHIFT)
    memory = hardware.memory.view(0, MEMORY_BYTES >> FRAME_SHIFT)
    for at, data in ((CODE, code), (TABLES, tables())):
        memory[at : at + len(data)] = data
    cpu = hardware.cpus[0]
    cpu.enter_kernel_mode()
    for register, value in ((TTBR0_EL1, TABLES), (TCR_EL1, LOWER_HALF_ALONE), (SCTLR_EL1, SCTLR_M)):
        held = cpu.core.read_kernel_register(register.encoding)
        cpu.core.write_kernel_register(register.encoding, held | value)
    cpu.core.write_register(PC["aarch64"], CODE)
    return partial(_expect, cpu.core, ExitReason.IDLE)


def as_a_program(core_name: str, code: bytes) -> Callable[[], None]:
    core_file = load_core(core_name)
    memory = PhysicalMemory(MEMORY_BYTES)
    space = AddressSpace(memory)
    frame = memory.allocate(2)
    memory.view(frame)[: len(code)] = code
    space.map(CODE, frame, 1, 5)  # read, execute
    space.map(DATA, frame + 1, 1, 3)  # read, write
    core = Core("aarch64", memory, model=core_file.model, features=core_file.features)
    core.set_address_space(space)
    core.write_register(PC["aarch64"], CODE)
    return partial(_expect, core, ExitReason.SYSCALL)


def _expect(core: Core, reason: ExitReason) -> None:
    if core.run(FOREVER) != reason:
        raise SystemExit(f"a loop has not come to its end: PC {core.pc:#x}")


def boot(cpus: int) -> None:
    with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as directory:
        initrd = Path(directory) / "initrd"
        initrd.write_bytes(debian_kernel.initramfs("uname -r"))
        guest = Guest((str(debian_kernel.kernel()),), core="ideal", memory="512M", cpus=cpus, stdin=-1)
        request = BoardRequest("virt", initrd=str(initrd), command_line="console=ttyAMA0")
        session = BoardSession(guest, request, io.BytesIO(), lambda line: None)
        seconds = cpu_seconds(lambda: _check_off(session))
    instructions = sum(cpu.core.total(Probe.INST_RETIRED) for cpu in session.hardware.cpus)
    print(f"boards: boot, {cpus} CPUs: {seconds:.2f} s, {instructions / seconds / 1e6:.0f} MIPS", flush=True)


def _check_off(session: BoardSession) -> None:
    if session.run().exit_status:
        raise SystemExit("the kernel has not turned its board off")


def run(repeats: int, only: set[str]) -> None:
    print(f"{'':20}{'raw s':>8}{'count':>8}{'default':>9}{'program':>9}   of raw; minima of the repeats")
    with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as directory:
        for loop in LOOPS:
            if only and loop not in only:
                continue
            waits, calls = (code_of(loop, end, Path(directory)) for end in ("wfi", "svc #0"))
            times: dict[str, list[float]] = {"raw": [], "count": [], "default": [], "program": []}
            for _ in range(repeats):
                times["raw"].append(cpu_seconds(raw(waits)))
                for mode, core in (("count", "ideal"), ("default", "neoverse-n1")):
                    times[mode].append(cpu_seconds(on_a_board(core, waits)))
                times["program"].append(cpu_seconds(as_a_program("neoverse-n1", calls)))
            least = {mode: min(each) for mode, each in times.items()}
            ratios = "".join(f"{least['raw'] / least[mode]:9.3f}" for mode in list(times)[1:])
            print(f"boards: {loop:12}{least['raw']:8.3f}{ratios}", flush=True)
    for cpus in (1, 4):
        if not only or "boot" in only:
            boot(cpus)
