"""What a tracer asks of a task that is stopped for it: a row for each request (kernel/ptrace.c, ptrace_request)."""

from __future__ import annotations

import struct
from collections.abc import Callable

from emulator.linux.errors import EINVAL, EIO, EPERM, LinuxError
from emulator.linux.mm.remote_access import read_remote, write_remote
from emulator.linux.process.credentials import CAP_SYS_ADMIN
from emulator.linux.process.task import Task
from emulator.linux.process.tracee import PTRACE_O_SUSPEND_SECCOMP, Stop, Tracee
from emulator.linux.ptrace import abi
from emulator.linux.ptrace.isas import TRACED_REGISTERS
from emulator.linux.ptrace.links import unlink
from emulator.linux.ptrace.registers import RegisterSet
from emulator.linux.ptrace.stops import EVENT_SHIFT, SYSCALL_GOOD, let_go
from emulator.linux.signals.signal import NSIG, SIGKILL, SIGSET_SIZE, SIGTRAP, UNBLOCKABLE, SignalInfo
from emulator.linux.twos_complement import LONG, signed

Request = Callable[[Task, Task, Tracee, int, int], int]
"""Tracer, task, how that is traced, and the call's addr and data."""

WORD = 8
SIGINFO_SIZE = 128
IOVEC = struct.Struct("<QQ")
PEEKSIGINFO_ARGS = struct.Struct("<QIi")  # off, flags, nr
MASK = (1 << 64) - 1


# ---- memory


def peek(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    word = read_remote(task.mm, address, WORD)
    if len(word) < WORD:
        raise LinuxError(EIO, f"nothing to read at {address:#x}")
    tracer.mm.write(data, word)
    return 0


def poke(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    if write_remote(task.mm, address, data.to_bytes(WORD, "little")) < WORD:
        raise LinuxError(EIO, f"nothing to write at {address:#x}")
    return 0


# ---- registers


def peek_user(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    with task.kernel.dispatcher.registers_of(task) as core:
        value = TRACED_REGISTERS[task.architecture.isa].peek_user(core, task, tracee, address)
    tracer.mm.write(data, value.to_bytes(WORD, "little"))
    return 0


def poke_user(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    with task.kernel.dispatcher.registers_of(task) as core:
        TRACED_REGISTERS[task.architecture.isa].poke_user(core, task, tracee, address, data)
    return 0


def _register_set(task: Task, number: int) -> RegisterSet:
    found = TRACED_REGISTERS[task.architecture.isa].register_sets.get(number & 0xFFFF_FFFF)
    if found is None:
        raise LinuxError(EINVAL, f"register set {number:#x} is not modelled, or not one of {task.architecture.isa}")
    return found


def _read_set(task: Task, tracee: Tracee, registers: RegisterSet) -> bytes:
    with task.kernel.dispatcher.registers_of(task) as core:
        return registers.read(core, task, tracee)


def _write_set(task: Task, tracee: Tracee, registers: RegisterSet, data: bytes) -> None:
    """The first of them, if there are fewer bytes."""
    with task.kernel.dispatcher.registers_of(task) as core:
        if registers.whole and len(data) < registers.size:
            data += registers.read(core, task, tracee)[len(data) :]
        registers.write(core, task, tracee, data)


def _vector(tracer: Task, registers: RegisterSet, address: int) -> tuple[int, int]:
    base, length = IOVEC.unpack(tracer.mm.read(address, IOVEC.size))
    if length % registers.unit:
        raise LinuxError(EINVAL, f"{length} bytes of registers of {registers.unit}")
    return base, min(length, registers.size)


def get_register_set(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    registers = _register_set(task, address)
    base, length = _vector(tracer, registers, data)
    tracer.mm.write(base, _read_set(task, tracee, registers)[:length])
    tracer.mm.write(data, IOVEC.pack(base, length))
    return 0


def set_register_set(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    registers = _register_set(task, address)
    base, length = _vector(tracer, registers, data)
    _write_set(task, tracee, registers, tracer.mm.read(base, length))
    tracer.mm.write(data, IOVEC.pack(base, length))
    return 0


def _get_whole(number: int) -> Request:
    """PTRACE_GETREGS, PTRACE_GETFPREGS"""

    def get(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
        tracer.mm.write(data, _read_set(task, tracee, _register_set(task, number)))
        return 0

    return get


def _set_whole(number: int) -> Request:
    def set_(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
        registers = _register_set(task, number)
        _write_set(task, tracee, registers, tracer.mm.read(data, registers.size))
        return 0

    return set_


# ---- the stop


def set_options(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    check_options(tracer, data)
    tracee.options = data
    return 0


def check_options(tracer: Task, options: int) -> None:
    """EINVAL for what is none; EPERM for who would let another make calls that it may not make itself."""
    if options & ~abi.OPTIONS:
        raise LinuxError(EINVAL, f"options {options:#x}: want those of {abi.OPTIONS:#x}")
    if options & PTRACE_O_SUSPEND_SECCOMP:
        suspended = tracer.tracee is not None and tracer.tracee.suspends_seccomp
        if not tracer.credentials.has(CAP_SYS_ADMIN) or tracer.seccomp is not None or suspended:
            raise LinuxError(EPERM, "PTRACE_O_SUSPEND_SECCOMP needs CAP_SYS_ADMIN, and no seccomp of one's own")


def get_event_message(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    tracer.mm.write(data, tracee.message.to_bytes(8, "little"))
    return 0


def _stop_with_info(tracee: Tracee) -> tuple[Stop, SignalInfo]:
    stop = tracee.stop
    if stop is None or stop.info is None:
        raise LinuxError(EINVAL, "a group-stop has no siginfo_t")
    return stop, stop.info


def get_signal_info(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    _, info = _stop_with_info(tracee)
    tracer.mm.write(data, info.pack())
    return 0


def set_signal_info(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    given = tracer.mm.read(data, SIGINFO_SIZE)
    stop, _ = _stop_with_info(tracee)
    signal, code = (int.from_bytes(given[at : at + 4], "little", signed=True) for at in (0, 8))
    stop.info = SignalInfo(signal, code, raw=given)
    return 0


def get_signal_mask(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    _check_mask_size(address)
    signals = task.signals
    mask = signals.blocked if signals.restore_mask is None else signals.restore_mask
    tracer.mm.write(data, mask.to_bytes(SIGSET_SIZE, "little"))
    return 0


def set_signal_mask(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    _check_mask_size(address)
    task.signals.blocked = int.from_bytes(tracer.mm.read(data, SIGSET_SIZE), "little") & ~UNBLOCKABLE
    task.signals.restore_mask = None
    return 0


def _check_mask_size(size: int) -> None:
    if size != SIGSET_SIZE:
        raise LinuxError(EINVAL, f"a signal set of {size} bytes; the kernel's has {SIGSET_SIZE}")


def peek_signal_info(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    """Of pending signals, from one on: how many there were."""
    first, flags, count = PEEKSIGINFO_ARGS.unpack(tracer.mm.read(address, PEEKSIGINFO_ARGS.size))
    if flags & ~abi.PTRACE_PEEKSIGINFO_SHARED or count < 0:
        raise LinuxError(EINVAL, f"flags {flags:#x}, {count} signals")
    signals = task.signals
    queue = list(signals.shared.pending if flags else signals.pending)[first : first + count]
    for place, info in enumerate(queue):
        tracer.mm.write(data + place * SIGINFO_SIZE, info.pack())
    return len(queue)


SYSCALL_INFO = struct.Struct("<B3xIQQ")  # op, arch, instruction_pointer, stack_pointer
SYSCALL_INFO_BYTES = 88  # with the seccomp part, which is the longest


def get_syscall_info(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    """struct ptrace_syscall_info, as much of it as `address` says there is room for; how long it is."""
    architecture = task.architecture
    with task.kernel.dispatcher.registers_of(task) as core:
        arguments = core.syscall_arguments()[1:]
        pc, sp, result = (core.read_register(one) for one in (architecture.pc, architecture.sp, architecture.result))
    code = 0 if tracee.stop is None else tracee.stop.code
    at_call = code == SIGTRAP | SYSCALL_GOOD
    operation, body = abi.PTRACE_SYSCALL_INFO_NONE, b""
    if at_call and tracee.message == abi.PTRACE_EVENTMSG_SYSCALL_ENTRY:
        operation = abi.PTRACE_SYSCALL_INFO_ENTRY
        body = struct.pack("<7Q", tracee.call_number & MASK, *arguments)
    elif at_call and tracee.message == abi.PTRACE_EVENTMSG_SYSCALL_EXIT:
        operation = abi.PTRACE_SYSCALL_INFO_EXIT
        value = signed(result, LONG)
        body = struct.pack("<qB", value, 1 if -4095 <= value < 0 else 0)
    elif code == SIGTRAP | abi.PtraceEvent.SECCOMP << EVENT_SHIFT:
        operation = abi.PTRACE_SYSCALL_INFO_SECCOMP
        body = struct.pack("<7QI", tracee.call_number & MASK, *arguments, tracee.message)
    head = SYSCALL_INFO.pack(operation, abi.AUDIT_ARCHITECTURES[architecture.isa], pc, sp)
    found = head + body
    tracer.mm.write(data, found.ljust(SYSCALL_INFO_BYTES, b"\0")[: min(address, len(found))])
    return len(found)


RSEQ_CONFIGURATION = struct.Struct("<QIIII")  # rseq_abi_pointer, size, signature, flags, padding


def get_rseq_configuration(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    """What rseq(2) has registered; the size of what is written, of which `address` must be told."""
    if address != RSEQ_CONFIGURATION.size:
        raise LinuxError(EINVAL, f"{address} bytes; struct ptrace_rseq_configuration has {RSEQ_CONFIGURATION.size}")
    own = task.rseq
    fields = (0, 0, 0) if own is None else (own.address, own.length, own.signature)
    tracer.mm.write(data, RSEQ_CONFIGURATION.pack(*fields, 0, 0))
    return RSEQ_CONFIGURATION.size


# ---- going on


def _resume(*, calls: bool = False, emulates: bool = False, steps: bool = False) -> Request:
    """ptrace_resume(): with a signal, or 0."""

    def resume(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
        if not 0 <= data <= NSIG:
            raise LinuxError(EIO, f"signal {data}")
        tracee.reports_calls, tracee.emulates_calls, tracee.steps = calls, emulates, steps
        if steps:
            task.kernel.stepping.begin()
        if data == SIGKILL:
            task.kernel.lifecycle.end_process(task.process, SIGKILL)
        else:
            let_go(task, data)
        return 0

    return resume


def detach(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    if not 0 <= data <= NSIG:
        raise LinuxError(EIO, f"signal {data}")
    unlink(task, data)
    return 0


def listen(tracer: Task, task: Task, tracee: Tracee, address: int, data: int) -> int:
    """PTRACE_LISTEN: it stays in its group-stop, and others may let the process go on."""
    stop = tracee.stop
    if not tracee.seized or stop is None or stop.code >> EVENT_SHIFT != abi.PtraceEvent.STOP:
        raise LinuxError(EIO, f"thread {task.tid} is not seized, or in another stop than PTRACE_EVENT_STOP")
    tracee.listens = True
    if tracee.notified:
        let_go(task)
    return 0


REQUESTS: dict[int, Request] = {
    abi.PTRACE_PEEKTEXT: peek,
    abi.PTRACE_PEEKDATA: peek,
    abi.PTRACE_POKETEXT: poke,
    abi.PTRACE_POKEDATA: poke,
    abi.PTRACE_PEEKUSER: peek_user,
    abi.PTRACE_POKEUSER: poke_user,
    abi.PTRACE_CONT: _resume(),
    abi.PTRACE_SYSCALL: _resume(calls=True),
    abi.PTRACE_SINGLESTEP: _resume(steps=True),
    abi.PTRACE_SYSEMU: _resume(emulates=True),
    abi.PTRACE_SYSEMU_SINGLESTEP: _resume(emulates=True, steps=True),
    abi.PTRACE_DETACH: detach,
    abi.PTRACE_LISTEN: listen,
    abi.PTRACE_SETOPTIONS: set_options,
    abi.PTRACE_GETEVENTMSG: get_event_message,
    abi.PTRACE_GETSIGINFO: get_signal_info,
    abi.PTRACE_SETSIGINFO: set_signal_info,
    abi.PTRACE_GETSIGMASK: get_signal_mask,
    abi.PTRACE_SETSIGMASK: set_signal_mask,
    abi.PTRACE_PEEKSIGINFO: peek_signal_info,
    abi.PTRACE_GETREGSET: get_register_set,
    abi.PTRACE_SETREGSET: set_register_set,
    abi.PTRACE_GET_SYSCALL_INFO: get_syscall_info,
    abi.PTRACE_GET_RSEQ_CONFIGURATION: get_rseq_configuration,
}

REQUESTS_OF_X86: dict[int, Request] = {
    abi.PTRACE_GETREGS: _get_whole(abi.NT_PRSTATUS),
    abi.PTRACE_SETREGS: _set_whole(abi.NT_PRSTATUS),
    abi.PTRACE_GETFPREGS: _get_whole(abi.NT_PRFPREG),
    abi.PTRACE_SETFPREGS: _set_whole(abi.NT_PRFPREG),
}
