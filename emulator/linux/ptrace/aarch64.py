"""What a tracer sees of an AArch64 task's registers (arch/arm64/kernel/ptrace.c, signal.c)."""

from __future__ import annotations

import struct

from emulator._native import Core
from emulator.linux.arch.aarch64 import FPCR, FPSR, NZCV_BITS, PC, PSTATE, TPIDR_EL0
from emulator.linux.errors import EINTR, EINVAL, EIO, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.process.tracee import NO_CALL, Tracee
from emulator.linux.ptrace import aarch64_breakpoints
from emulator.linux.ptrace.abi import (
    NT_ARM_HW_BREAK,
    NT_ARM_HW_WATCH,
    NT_ARM_SYSTEM_CALL,
    NT_ARM_TLS,
    NT_PRFPREG,
    NT_PRSTATUS,
)
from emulator.linux.ptrace.registers import RESTARTS, RegisterSet, starts_again
from emulator.linux.signals.signal import Interrupted, SignalAction
from emulator.linux.twos_complement import LONG, signed

_USER_PT_REGS = struct.Struct("<34Q")  # x0..x30, sp, pc, pstate
_USER_FPSIMD_STATE = struct.Struct("<512sII8x")
# PSTATE's bits that are the tracer's to write; a state with others of these is none of user mode (valid_native_regs)
USER_PSTATE = NZCV_BITS
MARK = 7  # x7 is 0 in a stop at a call's entry, and 1 at its exit


def _read_general(core: Core, task: Task, tracee: Tracee) -> bytes:
    return _USER_PT_REGS.pack(*core.registers()[: PSTATE + 1])


def _write_general(core: Core, task: Task, tracee: Tracee, data: bytes) -> None:
    values = _USER_PT_REGS.unpack(data)
    if values[PSTATE] & 0x1F or values[PSTATE] & 0x3C0:  # another level than EL0, or interrupts masked
        raise LinuxError(EINVAL, f"a PSTATE of {values[PSTATE]:#x} is not one of user mode")
    for number, value in enumerate(values[:PSTATE]):
        core.write_register(number, value)
    core.write_register(PSTATE, values[PSTATE] & USER_PSTATE)


def _read_vectors(core: Core, task: Task, tracee: Tracee) -> bytes:
    vectors = b"".join(core.read_vector(number) for number in range(32))
    return _USER_FPSIMD_STATE.pack(vectors, core.read_register(FPSR), core.read_register(FPCR))


def _write_vectors(core: Core, task: Task, tracee: Tracee, data: bytes) -> None:
    vectors, status, control = _USER_FPSIMD_STATE.unpack(data)
    for number in range(32):
        core.write_vector(number, vectors[number * 16 : number * 16 + 16])
    core.write_register(FPSR, status)
    core.write_register(FPCR, control)


def _read_tls(core: Core, task: Task, tracee: Tracee) -> bytes:
    return core.read_register(TPIDR_EL0).to_bytes(8, "little")


def _write_tls(core: Core, task: Task, tracee: Tracee, data: bytes) -> None:
    core.write_register(TPIDR_EL0, int.from_bytes(data, "little"))


def _read_call(core: Core, task: Task, tracee: Tracee) -> bytes:
    return tracee.call_number.to_bytes(4, "little", signed=True)


def _write_call(core: Core, task: Task, tracee: Tracee, data: bytes) -> None:
    tracee.call_number = int.from_bytes(data, "little", signed=True)


def _breakpoints(kind: aarch64_breakpoints.Kind) -> RegisterSet:
    """struct user_hwdebug_state"""

    def read(core: Core, task: Task, tracee: Tracee) -> bytes:
        kernels = task.kernel.user_breakpoints
        available = 0 if kernels is None else kernels.available(kind.types)
        return aarch64_breakpoints.read(task, kind, available)

    def write(core: Core, task: Task, tracee: Tracee, data: bytes) -> None:
        aarch64_breakpoints.write(task, kind, data)

    return RegisterSet(aarch64_breakpoints.SIZE, 4, read, write, whole=False)


class AArch64Restart:
    """Registers are set back to the call before a tracer sees them, and forward again where a handler ends it."""

    def __init__(self, core: Core, code: int, first_argument: int) -> None:
        self._code = code
        self._behind = core.read_register(PC)
        core.write_register(0, first_argument)
        core.write_register(PC, self._behind - 4)

    def settle(self, core: Core, action: SignalAction | None) -> None:
        if not starts_again(self._code, action) and core.read_register(PC) == self._behind - 4:
            core.write_register(0, -EINTR & (1 << 64) - 1)
            core.write_register(PC, self._behind)


class Nothing:
    """No call was interrupted."""

    def settle(self, core: Core, action: SignalAction | None) -> None:
        pass


class AArch64Registers:
    """See ``TracedRegisters``."""

    register_sets = {
        NT_PRSTATUS: RegisterSet(_USER_PT_REGS.size, 8, _read_general, _write_general),
        NT_PRFPREG: RegisterSet(_USER_FPSIMD_STATE.size, 4, _read_vectors, _write_vectors),
        NT_ARM_TLS: RegisterSet(8, 8, _read_tls, _write_tls),
        NT_ARM_HW_BREAK: _breakpoints(aarch64_breakpoints.INSTRUCTIONS),
        NT_ARM_HW_WATCH: _breakpoints(aarch64_breakpoints.DATA),
        NT_ARM_SYSTEM_CALL: RegisterSet(4, 4, _read_call, _write_call),
    }

    def enter_call(self, core: Core) -> None:
        pass

    def before_call(self, tracee: Tracee) -> int:
        return tracee.first_argument

    def mark_stop(self, core: Core, entry: bool) -> int:
        kept = core.read_register(MARK)
        core.write_register(MARK, 0 if entry else 1)
        return kept

    def unmark_stop(self, core: Core, kept: int) -> None:
        core.write_register(MARK, kept)

    def restart(self, core: Core, tracee: Tracee, interrupted: Interrupted | None) -> AArch64Restart | Nothing:
        if interrupted is not None:
            code, first_argument = -interrupted.code, interrupted.first_argument
        else:
            code, first_argument = signed(core.read_register(0), LONG), tracee.first_argument
        in_call = interrupted is not None or tracee.call_number != NO_CALL
        tracee.call_number = NO_CALL
        return AArch64Restart(core, code, first_argument) if in_call and code in RESTARTS else Nothing()

    def peek_user(self, core: Core, task: Task, tracee: Tracee, address: int) -> int:
        raise LinuxError(EIO, "AArch64 has no user area: registers are read by PTRACE_GETREGSET")

    def poke_user(self, core: Core, task: Task, tracee: Tracee, address: int, value: int) -> None:
        raise LinuxError(EIO, "AArch64 has no user area: registers are written by PTRACE_SETREGSET")
