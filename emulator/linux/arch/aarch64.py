"""AArch64 as Linux runs it: Armv8-A with cryptography, 48-bit addresses, 4 KiB pages."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from emulator._native import AddressSpace, Core
from emulator.aarch64_features import ID_AA64PFR0_EL1, features_of
from emulator.arch.processor import Processor
from emulator.clock import Clock
from emulator.cpu import Cpu, TrapKind
from emulator.linux.arch.architecture import Layout, OpenFlags, Read, SignalDelivery, SignalReturn, Stat
from emulator.linux.signals.signal import SA_RESTORER, SA_SIGINFO, STACK_T
from emulator.sysregs import Access, SysReg

LR, SP, PC, PSTATE, TPIDR_EL0, FPCR, FPSR = 30, 31, 32, 33, 34, 35, 36
ZERO_REGISTER = 31  # Rt of MRS and MSR

COUNTER_HZ = 1_000_000_000  # CNTFRQ_EL0, as from Armv8.6 on: CNTVCT_EL0 tells what the clocks do, not a part of it

# ID registers as Linux' trap handler shows them to EL0 (Documentation/arch/arm64/cpu-feature-registers.rst): visible
# fields, to which those of the core's features come; hidden fields at their safe value. Others of the ID space read as
# zero. MIDR_EL1 is the modelled core's.
ID_REGISTERS: dict[SysReg, int] = {
    SysReg(3, 0, 0, 0, 5): 0x8000_0000,  # MPIDR_EL1
    SysReg(3, 0, 0, 0, 6): 0,  # REVIDR_EL1
    ID_AA64PFR0_EL1: 0x11,  # EL0 and EL1 AArch64, FP, AdvSIMD
    SysReg(3, 0, 0, 5, 0): 0x6,  # ID_AA64DFR0_EL1: debug architecture v8
    SysReg(3, 0, 0, 7, 0): 0xFF00_0000,  # ID_AA64MMFR0_EL1
}
MIDR_EL1 = SysReg(3, 0, 0, 0, 0)
ID_SPACE = [SysReg(3, 0, 0, crm, op2) for crm in range(2, 8) for op2 in range(8)]

CNTFRQ_EL0 = SysReg(3, 3, 14, 0, 0)
CNTVCT_EL0 = SysReg(3, 3, 14, 0, 2)

# struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, ucontext with sigcontext, its 4096 reserved bytes; offsets
SIGINFO = 0
UCONTEXT = 128
UC_STACK = UCONTEXT + 16
UC_SIGMASK = UCONTEXT + 40
MCONTEXT = UCONTEXT + 176  # struct sigcontext, 16-byte aligned
MC_REGISTERS = MCONTEXT + 8  # regs[31], sp, pc, pstate
MC_RESERVED = MCONTEXT + 288
FRAME_SIZE = MC_RESERVED + 4096
FPSIMD_MAGIC, FPSIMD_SIZE = 0x46508001, 528
ESR_MAGIC, ESR_SIZE = 0x45535201, 16
NZCV_BITS = 0xF000_0000

# What a handler without SA_RESTORER returns to: mov x8, #139 (rt_sigreturn); svc #0
SIGNAL_TRAMPOLINE = bytes.fromhex("681180d2010000d4")

_STAT = struct.Struct("<QQIIIIQQqiiqqQqQqQII")  # uapi/asm-generic/stat.h, 128 bytes


def _general(number: int) -> str:
    return f"x{number}"


class AArch64:
    """See ``Architecture``."""

    isa = "aarch64"
    uname_machine = "aarch64"
    platform = "aarch64"
    hwcap2 = 0
    minimum_signal_stack = FRAME_SIZE + 16
    minimum_alternate_stack = 5120
    layout = Layout(
        stack_top=1 << 48,
        mmap_top=0xFFFF_F7FF_F000,  # 128 MiB and a page below
        pie_base=0xAAAA_AAAA_0000,  # two thirds of the way up, a multiple of 64 KiB
        task_size=1 << 48,
    )
    open_flags = OpenFlags(directory=0o40000, nofollow=0o100000, direct=0o200000, largefile=0o400000)
    register_names = (*map(_general, range(31)), "sp", "pc", "pstate", "tpidr_el0", "fpcr", "fpsr")
    perf_registers = tuple(range(33))  # uapi/asm/perf_regs.h: X0..X29, LR, SP, PC
    counter_bits = 56  # what every implementation has
    perf_constants: Mapping[int, int] = MappingProxyType({})
    perf_vectors = 0
    dwarf_registers = tuple(range(33))  # AADWARF64: X0..X30, SP, PC
    pc = PC
    sp = SP
    fp = 29
    thread_pointer = TPIDR_EL0
    result = 0
    syscall_length = 4
    instruction_alignment = 4
    epoll_event_packed = False
    clone_tls_first = True
    signal_trampoline = SIGNAL_TRAMPOLINE

    def caller(self, core: Core, space: AddressSpace) -> tuple[int | None, int]:
        return core.read_register(LR), core.read_register(SP)

    def set_syscall_result(self, core: Core, value: int) -> None:
        core.write_register(0, value & 0xFFFF_FFFF_FFFF_FFFF)

    def floating_point_exceptions(self, core: Core, vector: int) -> int:
        return 0  # the CPUs that we model trap none

    def start_program(self, core: Core, entry: int, stack_pointer: int) -> None:
        for register in (*range(31), PSTATE, TPIDR_EL0, FPCR, FPSR):
            core.write_register(register, 0)
        for register in range(32):
            core.write_vector(register, bytes(16))
        core.write_register(SP, stack_pointer)
        core.write_register(PC, entry)

    def fault_syndrome(self, access: int, present: bool) -> tuple[int, int]:
        status = 0x0F if present else 0x07  # permission or translation fault, level 3
        if access == 4:
            return 0, 0x20 << 26 | 1 << 25 | status  # EC: instruction abort from a lower level
        return 0, 0x24 << 26 | 1 << 25 | (1 << 6 if access == 2 else 0) | status  # data abort; WnR

    def misaligned_syndrome(self, access: int) -> tuple[int, int]:
        return 0, 0x24 << 26 | 1 << 25 | (1 << 6 if access == 2 else 0) | 0x21

    def is_address(self, address: int) -> bool:
        return True

    def pack_stat(self, stat: Stat) -> bytes:
        return _STAT.pack(
            stat.device,
            stat.inode,
            stat.mode,
            stat.links,
            stat.uid,
            stat.gid,
            stat.special_device,
            0,
            stat.size,
            stat.block_size,
            0,
            stat.blocks,
            *divmod(stat.access_ns, 1_000_000_000),
            *divmod(stat.modify_ns, 1_000_000_000),
            *divmod(stat.change_ns, 1_000_000_000),
            0,
            0,
        )

    def hwcap(self, processor: Processor) -> int:
        return sum(1 << feature.bit for feature in features_of(processor.features))

    def cpu_features(self, processor: Processor) -> tuple[str, ...]:
        return tuple(feature.name for feature in features_of(processor.features))

    def offers(self, processor: Processor) -> str:
        return ", ".join(("Armv8.0-A with cryptography and CRC32", *processor.features))

    def counter_hz(self, clock: Clock) -> int:
        return COUNTER_HZ

    def claim_registers(self, cpu: Cpu, clock: Clock, processor: Processor) -> None:
        registers = {**dict.fromkeys(ID_SPACE, 0), **ID_REGISTERS, MIDR_EL1: processor.midr_el1}
        for feature in features_of(processor.features):
            if feature.register is not None:
                registers[feature.register] += feature.value << feature.shift
        for register, value in registers.items():
            _claim(cpu, register, partial(int, value))
        _claim(cpu, CNTFRQ_EL0, lambda: COUNTER_HZ)
        _claim(cpu, CNTVCT_EL0, clock.shown_ns)

    def complete_register_access(self, cpu: Cpu) -> None:
        core = cpu.core
        kind, encoding, rt = core.trapped
        register = SysReg.from_encoding(encoding)
        if kind == TrapKind.MSR:
            cpu.system_registers.write(register, 0 if rt == ZERO_REGISTER else core.read_register(rt))
        else:
            value = cpu.system_registers.read(register)
            if rt != ZERO_REGISTER:
                core.write_register(rt, value)
        core.complete_trapped()

    def push_signal_frame(self, core: Core, delivery: SignalDelivery, write: Callable[[int, bytes], None]) -> None:
        registers = core.registers()
        record = (delivery.stack_pointer - 16) & -16
        frame = (record - FRAME_SIZE) & -16
        data = bytearray(FRAME_SIZE)
        data[SIGINFO:UCONTEXT] = delivery.info
        STACK_T.pack_into(data, UC_STACK, *delivery.stack)
        struct.pack_into("<Q", data, UC_SIGMASK, delivery.blocked)
        struct.pack_into("<Q", data, MCONTEXT, delivery.fault_address)
        struct.pack_into("<34Q", data, MC_REGISTERS, *registers[: PSTATE + 1])
        struct.pack_into("<4I", data, MC_RESERVED, FPSIMD_MAGIC, FPSIMD_SIZE, registers[FPSR], registers[FPCR])
        position = MC_RESERVED + 16
        data[position : position + 512] = b"".join(core.read_vector(number) for number in range(32))
        position += 512
        if delivery.error_code:
            struct.pack_into("<2IQ", data, position, ESR_MAGIC, ESR_SIZE, delivery.error_code)
        write(record, struct.pack("<2Q", registers[29], registers[LR]))
        write(frame, bytes(data))
        core.write_register(0, delivery.signal)
        if delivery.flags & SA_SIGINFO:
            core.write_register(1, frame + SIGINFO)
            core.write_register(2, frame + UCONTEXT)
        core.write_register(29, record)
        core.write_register(LR, delivery.restorer if delivery.flags & SA_RESTORER else delivery.trampoline)
        core.write_register(SP, frame)
        core.write_register(PC, delivery.handler)

    def pop_signal_frame(self, core: Core, read: Read) -> SignalReturn:
        data = read(core.read_register(SP), FRAME_SIZE)
        for number, value in enumerate(struct.unpack_from("<33Q", data, MC_REGISTERS)):
            core.write_register(number, value)
        (flags,) = struct.unpack_from("<Q", data, MC_REGISTERS + 33 * 8)
        core.write_register(PSTATE, flags & NZCV_BITS)
        magic, size, status, control = struct.unpack_from("<4I", data, MC_RESERVED)
        if (magic, size) == (FPSIMD_MAGIC, FPSIMD_SIZE):
            core.write_register(FPSR, status)
            core.write_register(FPCR, control)
            for number in range(32):
                start = MC_RESERVED + 16 + number * 16
                core.write_vector(number, data[start : start + 16])
        address, stack_flags, stack_size = STACK_T.unpack_from(data, UC_STACK)
        (blocked,) = struct.unpack_from("<Q", data, UC_SIGMASK)
        return SignalReturn(blocked, (address, stack_flags, stack_size))

    def rewind_syscall(self, core: Core, number: int, first_argument: int) -> None:
        core.write_register(0, first_argument)
        core.write_register(PC, core.read_register(PC) - self.syscall_length)


def _claim(cpu: Cpu, register: SysReg, read: Callable[[], int]) -> None:
    cpu.system_registers.claim(register, Access(read=read))
