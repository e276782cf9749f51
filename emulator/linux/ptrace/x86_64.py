"""What a tracer sees of an x86-64 task's registers (arch/x86/kernel/ptrace.c, signal.c; struct user)."""

from __future__ import annotations

import struct

from emulator._native import Core
from emulator.linux.arch.x86_64 import (
    DS,
    ES,
    FS,
    FS_BASE,
    FXSAVE_SIZE,
    GS,
    GS_BASE,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
    RAX,
    RBP,
    RBX,
    RCX,
    RDI,
    RDX,
    RFLAGS,
    RIP,
    RSI,
    RSP,
    USER_CS,
    USER_SS,
    fxrstor,
    fxsave,
)
from emulator.linux.errors import EINTR, EINVAL, EIO, ENOSYS, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.process.tracee import NO_CALL, Tracee
from emulator.linux.ptrace.abi import NT_PRFPREG, NT_PRSTATUS
from emulator.linux.ptrace.registers import RESTARTS, RegisterSet, starts_again
from emulator.linux.ptrace.x86_breakpoints import debug_registers
from emulator.linux.signals.signal import Interrupted, SignalAction
from emulator.linux.twos_complement import LONG, signed

MASK = (1 << 64) - 1
WORD = 8
ORIG_RAX, CS, SS = "orig_rax", "cs", "ss"  # of struct user_regs_struct, what is no register of the core
USER_REGS: tuple[int | str, ...] = (
    R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI, ORIG_RAX, RIP, CS, RFLAGS, RSP, SS,
    FS_BASE, GS_BASE, DS, ES, FS, GS,
)  # fmt: skip
USER_REGS_SIZE = len(USER_REGS) * WORD
TASK_SIZE = 0x7FFF_FFFF_F000
FLAG_MASK = 0x50DD5 | 1 << 8 | 1 << 14  # what a tracer may write: CF PF AF ZF SF TF DF OF NT RF AC
SELECTORS = (DS, ES, FS, GS)

# struct user: user_regs_struct, u_fpvalid, user_i387_struct, sizes and addresses, u_comm, u_debugreg[8]
USER_SIZE = 928
DEBUG_REGISTERS = 848
DR_COUNT = 8
STATUS_REGISTER, DR6_AFTER_RESET = 6, 0xFFFF_0FF0
MXCSR_BITS = 0xFFFF


def _read_one(core: Core, tracee: Tracee, register: int | str) -> int:
    if isinstance(register, int):
        return core.read_register(register)
    return {ORIG_RAX: tracee.call_number & MASK, CS: USER_CS, SS: USER_SS}[register]


def _write_one(core: Core, tracee: Tracee, register: int | str, value: int) -> None:
    """putreg(): EIO for what no user mode has."""
    if register == ORIG_RAX:
        tracee.call_number = signed(value, LONG)
    elif register in (CS, SS):
        if value & 3 != 3 or value not in (USER_CS, USER_SS):
            raise LinuxError(EIO, f"a selector {value:#x} in {register}")
    elif register in (FS_BASE, GS_BASE) and value >= TASK_SIZE:
        raise LinuxError(EIO, f"a base of {value:#x} is not the user's")
    elif register in SELECTORS and value & 0xFFFF and value & 3 != 3:
        raise LinuxError(EIO, f"a selector {value:#x} is not the user's")
    elif register == RFLAGS:
        flags = core.read_register(RFLAGS)
        core.write_register(RFLAGS, flags & ~FLAG_MASK | value & FLAG_MASK)
    elif register in SELECTORS:
        if core.read_register(int(register)) != value & 0xFFFF:
            core.write_register(int(register), value & 0xFFFF)
    else:
        core.write_register(int(register), value)


def _read_general(core: Core, task: Task, tracee: Tracee) -> bytes:
    registers = core.registers()
    values = [registers[one] if isinstance(one, int) else _read_one(core, tracee, one) for one in USER_REGS]
    return struct.pack(f"<{len(values)}Q", *values)


def _write_general(core: Core, task: Task, tracee: Tracee, data: bytes) -> None:
    values = struct.unpack(f"<{len(USER_REGS)}Q", data)
    by_register = dict(zip(USER_REGS, values, strict=True))
    for register in SELECTORS:  # whoever loads FS or GS loses its base: those come behind
        _write_one(core, tracee, register, by_register[register])
    for one in USER_REGS:
        if one not in SELECTORS:
            _write_one(core, tracee, one, by_register[one])


def _read_fpu(core: Core, task: Task, tracee: Tracee) -> bytes:
    return fxsave(core, core.registers())


def _write_fpu(core: Core, task: Task, tracee: Tracee, data: bytes) -> None:
    mxcsr = int.from_bytes(data[24:28], "little")
    if mxcsr & ~MXCSR_BITS:
        raise LinuxError(EINVAL, f"MXCSR has no bits {mxcsr & ~MXCSR_BITS:#x}")
    fxrstor(core, data)


class X86Restart:
    """RAX shows why the call was interrupted until it is decided what becomes of it."""

    def __init__(self, tracee: Tracee) -> None:
        self._tracee = tracee

    def settle(self, core: Core, action: SignalAction | None) -> None:
        number, result = self._tracee.call_number, signed(core.read_register(RAX), LONG)
        if number == NO_CALL or result not in RESTARTS:
            return
        if starts_again(result, action):
            core.write_register(RAX, number & MASK)
            core.write_register(RIP, core.read_register(RIP) - 2)
        else:
            core.write_register(RAX, -EINTR & MASK)


class X86Registers:
    """See ``TracedRegisters``."""

    register_sets = {
        NT_PRSTATUS: RegisterSet(USER_REGS_SIZE, WORD, _read_general, _write_general),
        NT_PRFPREG: RegisterSet(FXSAVE_SIZE, 4, _read_fpu, _write_fpu),
    }

    def enter_call(self, core: Core) -> None:
        core.write_register(RAX, -ENOSYS & MASK)

    def before_call(self, tracee: Tracee) -> int:
        return tracee.call_number

    def mark_stop(self, core: Core, entry: bool) -> int:
        return 0  # RAX is -ENOSYS at the entry

    def unmark_stop(self, core: Core, kept: int) -> None:
        pass

    def restart(self, core: Core, tracee: Tracee, interrupted: Interrupted | None) -> X86Restart:
        if interrupted is not None:
            core.write_register(RAX, -interrupted.code & MASK)
            tracee.call_number = interrupted.number
        return X86Restart(tracee)

    def peek_user(self, core: Core, task: Task, tracee: Tracee, address: int) -> int:
        _check_place(address)
        if address < USER_REGS_SIZE:
            return _read_one(core, tracee, USER_REGS[address // WORD])
        if address == DEBUG_REGISTERS + STATUS_REGISTER * WORD:
            return task.debug_status ^ DR6_AFTER_RESET
        number = (address - DEBUG_REGISTERS) // WORD
        if 0 <= number < DR_COUNT:
            return debug_registers(task).read(number)
        return 0  # the rest of struct user is for core files

    def poke_user(self, core: Core, task: Task, tracee: Tracee, address: int, value: int) -> None:
        _check_place(address)
        if address < USER_REGS_SIZE:
            _write_one(core, tracee, USER_REGS[address // WORD], value)
            return
        number = (address - DEBUG_REGISTERS) // WORD
        if not 0 <= number < DR_COUNT or number in (4, 5):
            raise LinuxError(EIO, f"offset {address} of struct user cannot be written")
        if number == STATUS_REGISTER:
            task.debug_status = value ^ DR6_AFTER_RESET
            return
        debug_registers(task).write(number, value)


def _check_place(address: int) -> None:
    if address % WORD or not 0 <= address < USER_SIZE:
        raise LinuxError(EIO, f"offset {address:#x} is no word of struct user")
