"""x86-64 as Linux runs it: x86-64-v2, four-level paging."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from emulator._native import AddressSpace, Core
from emulator.arch.cpuid import Cpuid, feature_names
from emulator.arch.processor import Processor
from emulator.clock import Clock
from emulator.cpu import Cpu, TrapKind
from emulator.linux.arch.architecture import Layout, OpenFlags, Read, SignalDelivery, SignalReturn, Stat
from emulator.linux.errors import EFAULT, LinuxError
from emulator.linux.signals.signal import SA_RESTORER, STACK_T
from emulator.sysregs import UndefinedRegister

RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15 = range(16)
RIP, RFLAGS, FS_BASE, GS_BASE, MXCSR, FPCW, FPSW, FPTAG = range(16, 24)
DS, ES, FS, GS = SELECTORS = range(24, 28)  # whoever loads FS or GS loses its base
NAMES = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)))

INITIAL_RFLAGS = 0x202  # IF and the bit that is always 1
INITIAL_MXCSR = 0x1F80
INITIAL_FPCW = 0x37F
FPSW_EXCEPTIONS, FPSW_PENDING = 0x3F, 0x8080  # ES and B: one of them is not masked
X87_TRAP = 16  # vector of #MF; SSE has its own
EMPTY_FPTAG = 0xFFFF  # two bits for each register; 3: empty
USER_FLAGS = 0x50DD5  # what rt_sigreturn restores: FIX_EFLAGS, arch/x86/kernel/signal.c
RF = 1 << 16  # resume: the next instruction hits no breakpoint
RF_TF_DF = RF | 1 << 8 | 1 << 10  # cleared when a handler is entered
USER_CS, USER_SS = 0x33, 0x2B
NO_REGISTER = -1
ALIGNMENT_CHECK = 17
PAGE_FAULT = 14  # vector
LOW_32 = 0xFFFF_FFFF

# struct rt_sigframe (arch/x86/include/asm/sigframe.h): return address, ucontext, siginfo; offsets
UCONTEXT = 8
UC_STACK = UCONTEXT + 16
MCONTEXT = UCONTEXT + 40  # struct sigcontext_64
MC_SEGMENTS = MCONTEXT + 144
MC_FPSTATE = MCONTEXT + 184
UC_SIGMASK = MCONTEXT + 256
SIGINFO = UC_SIGMASK + 8
FRAME_SIZE = SIGINFO + 128
FXSAVE_SIZE = 512
MC_ORDER = (R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP, RFLAGS)
UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS = 2, 4
RED_ZONE = 128

_STAT = struct.Struct("<QQQIIIIQ12q")  # arch/x86/include/uapi/asm/stat.h, 144 bytes


class X86_64:
    """See ``Architecture``."""

    isa = "x86_64"
    uname_machine = "x86_64"
    platform = "x86_64"
    hwcap2 = 2  # HWCAP2_FSGSBASE
    minimum_signal_stack = FRAME_SIZE + FXSAVE_SIZE + 64
    minimum_alternate_stack = 2048
    layout = Layout(
        stack_top=0x7FFF_FFFF_F000,
        mmap_top=0x7FFF_F7FF_F000,  # 128 MiB below
        pie_base=0x5555_5555_4000,  # two thirds of the way up
        task_size=0x7FFF_FFFF_F000,
    )
    open_flags = OpenFlags(directory=0o200000, nofollow=0o400000, direct=0o40000, largefile=0o100000)
    register_names = (*NAMES, "rip", "rflags", "fs_base", "gs_base", "mxcsr", "fpcw", "fpsw", "fptag",
                      "ds", "es", "fs", "gs")  # fmt: skip
    perf_registers = (  # uapi/asm/perf_regs.h: AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS R8..R15
        RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, RIP, RFLAGS, *([NO_REGISTER] * 6), *range(R8, R15 + 1),
    )  # fmt: skip
    perf_constants: Mapping[int, int] = MappingProxyType({10: USER_CS, 11: USER_SS})
    perf_vectors = 0xFFFF_FFFF << 32  # XMM0 to XMM15, two bits each
    counter_bits = 0
    dwarf_registers = (RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, *range(R8, R15 + 1), RIP)  # System V psABI, figure 3.36
    pc = RIP
    sp = RSP
    fp = RBP
    thread_pointer = FS_BASE
    result = RAX
    syscall_length = 2
    instruction_alignment = 1
    epoll_event_packed = True
    clone_tls_first = False
    signal_trampoline = b""  # handlers bring their own restorer

    def caller(self, core: Core, space: AddressSpace) -> tuple[int | None, int]:
        stack_pointer = core.read_register(RSP)
        return space.read_u64(stack_pointer), stack_pointer + 8

    def set_syscall_result(self, core: Core, value: int) -> None:
        core.write_register(RAX, value & 0xFFFF_FFFF_FFFF_FFFF)

    def floating_point_exceptions(self, core: Core, vector: int) -> int:
        """arch/x86/kernel/fpu/core.c, fpu__exception_code"""
        if vector == X87_TRAP:
            return core.read_register(FPSW) & ~core.read_register(FPCW)
        mxcsr = core.read_register(MXCSR)
        return mxcsr & ~(mxcsr >> 7)

    def start_program(self, core: Core, entry: int, stack_pointer: int) -> None:
        for register in (*range(16), *SELECTORS, FS_BASE, GS_BASE):
            core.write_register(register, 0)
        _initial_fpu(core)
        core.write_register(RFLAGS, INITIAL_RFLAGS)
        core.write_register(RSP, stack_pointer)
        core.write_register(RIP, entry)

    def fault_syndrome(self, access: int, present: bool) -> tuple[int, int]:
        user = 4
        return PAGE_FAULT, user | (1 if present else 0) | (2 if access == 2 else 0) | (16 if access == 4 else 0)

    def misaligned_syndrome(self, access: int) -> tuple[int, int]:
        return ALIGNMENT_CHECK, 0

    def is_address(self, address: int) -> bool:
        """Canonical: bits 63 to 47 are the same."""
        return address >> 47 in (0, 0x1_FFFF)

    def pack_stat(self, stat: Stat) -> bytes:
        return _STAT.pack(
            stat.device,
            stat.inode,
            stat.links,
            stat.mode,
            stat.uid,
            stat.gid,
            0,
            stat.special_device,
            stat.size,
            stat.block_size,
            stat.blocks,
            *divmod(stat.access_ns, 1_000_000_000),
            *divmod(stat.modify_ns, 1_000_000_000),
            *divmod(stat.change_ns, 1_000_000_000),
            0,
            0,
            0,
        )

    def hwcap(self, processor: Processor) -> int:
        return Cpuid(processor, 0)(1, 0)[3]  # EDX

    def offers(self, processor: Processor) -> str:
        return "x86-64-v2 with BMI"

    def cpu_features(self, processor: Processor) -> tuple[str, ...]:
        return feature_names(processor)

    def counter_hz(self, clock: Clock) -> int:
        return clock.frequency_hz

    def claim_registers(self, cpu: Cpu, clock: Clock, processor: Processor) -> None:
        cpu.system_registers.claim_cpuid(Cpuid(processor, cpu.number))
        cpu.system_registers.claim_tsc(clock.counter)

    def complete_register_access(self, cpu: Cpu) -> None:
        kind = TrapKind(cpu.core.trapped[0])
        answer = _ANSWERS.get(kind)
        if answer is None:
            raise UndefinedRegister(kind.name)
        answer(cpu)
        cpu.core.complete_trapped()

    def push_signal_frame(self, core: Core, delivery: SignalDelivery, write: Callable[[int, bytes], None]) -> None:
        if not delivery.flags & SA_RESTORER:
            raise LinuxError(EFAULT, "x86-64 handlers need SA_RESTORER")
        registers = core.registers()
        if delivery.resumes:
            registers[RFLAGS] |= RF
        on_own_stack = delivery.stack_pointer == registers[RSP]
        fpstate = (delivery.stack_pointer - (RED_ZONE if on_own_stack else 0) - FXSAVE_SIZE) & -64
        frame = ((fpstate - FRAME_SIZE) & -16) - 8
        data = bytearray(FRAME_SIZE)
        struct.pack_into("<3Q", data, 0, delivery.restorer, UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS, 0)
        STACK_T.pack_into(data, UC_STACK, *delivery.stack)
        struct.pack_into("<18Q", data, MCONTEXT, *(registers[number] for number in MC_ORDER))
        struct.pack_into("<4H", data, MC_SEGMENTS, USER_CS, 0, 0, USER_SS)
        struct.pack_into(
            "<5Q",
            data,
            MC_SEGMENTS + 8,
            delivery.error_code,
            delivery.trap_number,
            delivery.blocked,
            delivery.fault_address,
            fpstate,
        )
        struct.pack_into("<Q", data, UC_SIGMASK, delivery.blocked)
        data[SIGINFO:FRAME_SIZE] = delivery.info
        write(fpstate, fxsave(core, registers))
        write(frame, bytes(data))
        _initial_fpu(core)
        for register, value in (
            (RDI, delivery.signal),
            (RAX, 0),
            (RSI, frame + SIGINFO),
            (RDX, frame + UCONTEXT),
            (RSP, frame),
            (RFLAGS, registers[RFLAGS] & ~RF_TF_DF),
            (RIP, delivery.handler),
        ):
            core.write_register(register, value)

    def pop_signal_frame(self, core: Core, read: Read) -> SignalReturn:
        frame = core.read_register(RSP) - 8
        data = read(frame, FRAME_SIZE)
        flags = core.read_register(RFLAGS)
        resumes = False
        for number, value in zip(MC_ORDER, struct.unpack_from("<18Q", data, MCONTEXT), strict=True):
            if number == RFLAGS:
                resumes = bool(value & RF)
                value = flags & ~USER_FLAGS | value & USER_FLAGS & ~RF
            core.write_register(number, value)
        if resumes:
            core.pass_breakpoint(core.pc)
        (fpstate,) = struct.unpack_from("<Q", data, MC_FPSTATE)
        if fpstate:
            fxrstor(core, read(fpstate, FXSAVE_SIZE))
        address, stack_flags, stack_size = STACK_T.unpack_from(data, UC_STACK)
        (blocked,) = struct.unpack_from("<Q", data, UC_SIGMASK)
        return SignalReturn(blocked, (address, stack_flags, stack_size))

    def rewind_syscall(self, core: Core, number: int, first_argument: int) -> None:
        core.write_register(RAX, number)
        core.write_register(RIP, core.read_register(RIP) - self.syscall_length)


def _cpuid(cpu: Cpu) -> None:
    core = cpu.core
    leaf, subleaf = core.read_register(RAX) & LOW_32, core.read_register(RCX) & LOW_32
    for register, value in zip((RAX, RBX, RCX, RDX), cpu.system_registers.cpuid(leaf, subleaf), strict=True):
        core.write_register(register, value & LOW_32)


def _write_edx_eax(core: Core, value: int) -> None:
    core.write_register(RAX, value & LOW_32)
    core.write_register(RDX, value >> 32 & LOW_32)


def _rdtsc(cpu: Cpu) -> None:
    _write_edx_eax(cpu.core, cpu.system_registers.tsc())


def _rdtscp(cpu: Cpu) -> None:
    _rdtsc(cpu)
    cpu.core.write_register(RCX, cpu.number)  # IA32_TSC_AUX: node 0, the CPU's number


def _rdpmc(cpu: Cpu) -> None:
    _write_edx_eax(cpu.core, cpu.system_registers.rdpmc(cpu.core.read_register(RCX) & LOW_32))


_ANSWERS: dict[TrapKind, Callable[[Cpu], None]] = {
    TrapKind.CPUID: _cpuid,
    TrapKind.RDTSC: _rdtsc,
    TrapKind.RDTSCP: _rdtscp,
    TrapKind.RDPMC: _rdpmc,
}  # no XGETBV: CPUID does not show OSXSAVE


def _initial_fpu(core: Core) -> None:
    """As execve and the entry of a handler leave it (fpu__clear_user_states)."""
    for number in range(16):
        core.write_vector(number, bytes(16))
    core.write_register(MXCSR, INITIAL_MXCSR)
    core.write_register(FPCW, INITIAL_FPCW)
    core.write_register(FPSW, 0)
    core.write_register(FPTAG, EMPTY_FPTAG)
    for number in range(8):
        core.write_x87(number, bytes(10))


def fxsave(core: Core, registers: list[int]) -> bytes:
    """FXSAVE's 512 bytes, without the address of the last x87 instruction (Intel SDM, FXSAVE)."""
    area = bytearray(FXSAVE_SIZE)
    status, tags = registers[FPSW], registers[FPTAG]
    in_use = sum((tags >> 2 * number & 3 != 3) << number for number in range(8))
    struct.pack_into("<3H", area, 0, registers[FPCW], status, in_use)
    struct.pack_into("<2I", area, 24, registers[MXCSR], 0xFFFF)
    for number in range(8):
        area[32 + 16 * number : 42 + 16 * number] = core.read_x87(_physical(status, number))
    area[160:416] = b"".join(core.read_vector(number) for number in range(16))
    return bytes(area)


def fxrstor(core: Core, area: bytes) -> None:
    control, status, in_use = struct.unpack_from("<3H", area, 0)
    for number in range(8):
        core.write_x87(_physical(status, number), area[32 + 16 * number : 42 + 16 * number])
    pending = status & ~control & FPSW_EXCEPTIONS != 0
    core.write_register(FPCW, control)
    core.write_register(FPSW, status & ~FPSW_PENDING | (FPSW_PENDING if pending else 0))
    core.write_register(FPTAG, sum((0 if in_use >> number & 1 else 3) << 2 * number for number in range(8)))
    core.write_register(MXCSR, int.from_bytes(area[24:28], "little") & 0xFFFF)
    for number in range(16):
        core.write_vector(number, area[160 + number * 16 : 176 + number * 16])


def _physical(status: int, number: int) -> int:
    """Which register ST(number) is: the status word's TOP counts from it."""
    return (status >> 11) + number & 7
