"""Helpers that say what happens: time, the task, memory, registers, stacks, counts; and those that tell others."""

from __future__ import annotations

import struct

from emulator.linux.errors import (
    E2BIG,
    EFAULT,
    EINVAL,
    EOPNOTSUPP,
    EPERM,
    ERANGE,
    LinuxError,
)
from emulator.linux.signals.signal import NSIG, SI_KERNEL, SignalInfo
from perfcore.abi.bpf import ProgType
from perfcore.abi.constants import PerfType, SoftwareId
from perfcore.abi.sample import SampleTooLong
from perfcore.bpf.helpers.helper import TRACING, Arg, Returns, helper
from perfcore.bpf.helpers.text import formatted
from perfcore.bpf.kernel_objects import comm_of, task_address
from perfcore.bpf.maps.perf_event_array import PerfEventArrayMap
from perfcore.bpf.maps.stack_trace import FAST_STACK_CMP, REUSE_STACKID, SKIP_FIELD, USER_STACK, StackTraceMap
from perfcore.bpf.run import Run
from perfcore.events.event import PerfEvent

_ROOT_CGROUP = 1
_TICK_HZ = 250
_CURRENT_CPU = 0xFFFF_FFFF  # BPF_F_CURRENT_CPU, and the bits of the index
_STACK_FLAGS = SKIP_FIELD | USER_STACK
_STRING_STRIDE = 256
_LONGEST_LINE = 1024

# ---- time, place, who


@helper(5)
def ktime_get_ns(run: Run) -> int:
    return run.services.kernel.clock.monotonic_ns()


@helper(125)
def ktime_get_boot_ns(run: Run) -> int:
    """The machine has never slept."""
    return run.services.kernel.clock.monotonic_ns()


@helper(160)
def ktime_get_coarse_ns(run: Run) -> int:
    """As of the last tick."""
    now = run.services.kernel.clock.monotonic_ns()
    return now - now % (1_000_000_000 // _TICK_HZ)


@helper(118, gpl=True)
def jiffies64(run: Run) -> int:
    return run.services.kernel.clock.monotonic_ns() // (1_000_000_000 // _TICK_HZ)


@helper(7)
def get_prandom_u32(run: Run) -> int:
    """The same numbers in every run of the machine, and none of the guest's own."""
    return run.services.random_u32()


@helper(8)
def get_smp_processor_id(run: Run) -> int:
    return run.cpu.number


@helper(42)
def get_numa_node_id(run: Run) -> int:
    return 0


@helper(14, programs=TRACING)
def get_current_pid_tgid(run: Run) -> int:
    return 0 if run.task is None else run.task.pid << 32 | run.task.tid


@helper(15, programs=TRACING)
def get_current_uid_gid(run: Run) -> int:
    return 0 if run.task is None else run.task.credentials.gid << 32 | run.task.credentials.uid


@helper(16, Arg.UNINIT_MEM, Arg.SIZE, programs=TRACING)
def get_current_comm(run: Run, buf: int, size_of_buf: int) -> int:
    text = comm_of(run.task, run.cpu)[: size_of_buf - 1]
    run.memory.write(buf, text.ljust(size_of_buf, b"\0"))
    return 0


@helper(35, gpl=True)
def get_current_task(run: Run) -> int:
    return task_address(run.task)


@helper(158, gpl=True, returns=Returns.TASK, programs=TRACING)
def get_current_task_btf(run: Run) -> int:
    return task_address(run.task)


@helper(80, programs=TRACING)
def get_current_cgroup_id(run: Run) -> int:
    return _ROOT_CGROUP


@helper(173, Arg.CTX, programs=frozenset({ProgType.KPROBE, ProgType.TRACING}), gpl=True)
def get_func_ip(run: Run, ctx: int) -> int:
    return run.probed


@helper(174, Arg.CTX, programs=TRACING)
def get_attach_cookie(run: Run, ctx: int) -> int:
    return run.cookie


# ---- memory


def _read(run: Run, destination: int, size: int, data: bytes | None) -> int:
    """Zeroes where nothing can be read."""
    run.memory.write(destination, bytes(size) if data is None else data)
    if data is None:
        raise LinuxError(EFAULT, "nothing can be read there")
    return 0


def _user(run: Run, address: int, size: int) -> bytes | None:
    """Nothing is brought in: who watches changes nothing."""
    task = run.task
    if task is None or address + size > task.mm.layout.task_size:
        return None
    return task.mm.peek(address, size)


def _kernel(run: Run, address: int, size: int) -> bytes | None:
    return run.read_kernel(address, size)


def _either(run: Run, address: int, size: int) -> bytes | None:
    return _kernel(run, address, size) if address >> 63 else _user(run, address, size)


@helper(4, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING, gpl=True, programs=TRACING)
def probe_read(run: Run, dst: int, size: int, unsafe_ptr: int) -> int:
    return _read(run, dst, size, _either(run, unsafe_ptr, size))


@helper(112, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING, gpl=True)
def probe_read_user(run: Run, dst: int, size: int, unsafe_ptr: int) -> int:
    return _read(run, dst, size, _user(run, unsafe_ptr, size))


@helper(113, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING, gpl=True)
def probe_read_kernel(run: Run, dst: int, size: int, unsafe_ptr: int) -> int:
    _check_kernel_address(run, dst, size, unsafe_ptr)
    return _read(run, dst, size, _kernel(run, unsafe_ptr, size) if size else b"")


def _check_kernel_address(run: Run, destination: int, size: int, address: int) -> None:
    """x86-64 knows without trying: copy_from_kernel_nofault_allowed()"""
    if run.services.kernel.architecture.isa == "x86_64" and not address >> 63:
        run.memory.write(destination, bytes(size))
        raise LinuxError(ERANGE, f"{address:#x} is not the kernel's")


def _string(run: Run, address: int, size: int, user: bool) -> bytes | None:
    """At most `size` bytes with the NUL; None where there is none that can be read."""
    read = _user if user else _kernel
    text = bytearray()
    while len(text) < size:
        run.spend(1)
        at = address + len(text)
        part = read(run, at, min(_STRING_STRIDE - at % _STRING_STRIDE, size - len(text)))
        if part is None:
            part = _up_to_the_end(run, at, size - len(text), user)
        if part is None:
            return None
        end = part.find(0)
        if end >= 0:
            return bytes(text + part[: end + 1])
        text += part
    return bytes(text[: size - 1]) + b"\0" if size else b""


def _up_to_the_end(run: Run, address: int, size: int, user: bool) -> bytes | None:
    """Of the kernel's own memory, which ends anywhere."""
    if user:
        return None
    text = b""
    while len(text) < min(size, _STRING_STRIDE):
        byte = _kernel(run, address + len(text), 1)
        if byte is None:
            return None
        text += byte
        if byte == b"\0":
            break
    return text


def _read_string(run: Run, destination: int, size: int, address: int, user: bool) -> int:
    text = _string(run, address, size, user)
    if text is None:
        run.memory.write(destination, bytes(size))
        raise LinuxError(EFAULT, f"no string can be read at {address:#x}")
    run.memory.write(destination, text)
    return len(text)


@helper(45, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING, gpl=True, programs=TRACING)
def probe_read_str(run: Run, dst: int, size: int, unsafe_ptr: int) -> int:
    return _read_string(run, dst, size, unsafe_ptr, user=not unsafe_ptr >> 63)


@helper(114, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING, gpl=True)
def probe_read_user_str(run: Run, dst: int, size: int, unsafe_ptr: int) -> int:
    return _read_string(run, dst, size, unsafe_ptr, user=True)


@helper(115, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING, gpl=True)
def probe_read_kernel_str(run: Run, dst: int, size: int, unsafe_ptr: int) -> int:
    return _read_string(run, dst, size, unsafe_ptr, user=False)


@helper(182, Arg.MEM, Arg.SIZE, Arg.CONST_STR)
def strncmp(run: Run, s1: int, s1_sz: int, s2: int) -> int:
    first = run.memory.read(s1, s1_sz)
    second = _string(run, s2, s1_sz + 1, user=False) or b""
    one, other = first.partition(b"\0")[0], second.partition(b"\0")[0][:s1_sz]
    return (one > other) - (one < other)


# ---- stacks


def _user_stack(run: Run, flags: int, most: int) -> list[int]:
    """The kernel's own stack has no addresses here, as that of a task in user mode has none."""
    if not flags & USER_STACK or run.task is None:
        raise LinuxError(EFAULT, "the modelled kernel has no addresses")
    skip = flags & SKIP_FIELD
    core = run.cpu.core
    walked = min(skip + most, run.services.max_stack)  # kernel.perf_event_max_stack
    if walked <= skip:
        return []
    addresses = [core.pc, *core.frame_chain(walked - 1)][skip:walked]
    run.spend(len(addresses))
    return addresses


@helper(27, Arg.CTX, Arg.MAP, Arg.ANYTHING, gpl=True, programs=TRACING)
def get_stackid(run: Run, ctx: int, map: int, flags: int) -> int:
    if flags & ~(_STACK_FLAGS | FAST_STACK_CMP | REUSE_STACKID):
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    found = run.services.map_at(map)
    assert isinstance(found, StackTraceMap), "no other kind names the helper"
    addresses = _user_stack(run, flags, found.request.value_size // 8)
    if not addresses:
        raise LinuxError(EFAULT, "the stack is shorter than what is to be skipped")
    return found.number_of(addresses, flags)


@helper(67, Arg.CTX, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING, gpl=True, programs=TRACING)
def get_stack(run: Run, ctx: int, buf: int, size: int, flags: int) -> int:
    if flags & ~_STACK_FLAGS or size % 8:
        run.memory.write(buf, bytes(size))
        raise LinuxError(EINVAL, f"flags {flags:#x}, size {size}")
    try:
        addresses = _user_stack(run, flags, size // 8)
    except LinuxError:
        run.memory.write(buf, bytes(size))
        raise
    data = struct.pack(f"<{len(addresses)}Q", *addresses)
    run.memory.write(buf, data.ljust(size, b"\0"))
    return len(data)


# ---- perf events


def _event(run: Run, map: int, flags: int) -> PerfEvent:
    found = run.services.map_at(map)
    assert isinstance(found, PerfEventArrayMap), "no other kind names the helper"
    if flags & ~_CURRENT_CPU:
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    return found.event(run.cpu.number if flags == _CURRENT_CPU else flags)


def _readable_event(run: Run, map: int, flags: int) -> PerfEvent:
    """perf_event_read_local()"""
    event = _event(run, map, flags)
    if event.attr.inherit:
        raise LinuxError(EOPNOTSUPP, "inherited events are not read")
    of_another = event.of_task and event.target is not run.task
    if of_another or (event.cpu not in (-1, run.cpu.number)):
        raise LinuxError(EINVAL, "the event counts another task, or on another CPU")
    return event


@helper(22, Arg.MAP, Arg.ANYTHING, programs=TRACING)
def perf_event_read(run: Run, map: int, flags: int) -> int:
    return _readable_event(run, map, flags).own_values().value


@helper(55, Arg.MAP, Arg.ANYTHING, Arg.UNINIT_MEM, Arg.SIZE, programs=TRACING)
def perf_event_read_value(run: Run, map: int, flags: int, buf: int, buf_size: int) -> int:
    return _write_values(run, _readable_event, (run, map, flags), buf, buf_size)


@helper(56, Arg.CTX, Arg.UNINIT_MEM, Arg.SIZE, programs=frozenset({ProgType.PERF_EVENT}), gpl=True)
def perf_prog_read_value(run: Run, ctx: int, buf: int, buf_size: int) -> int:
    return _write_values(run, lambda: run.event, (), buf, buf_size)


def _write_values(run: Run, find: object, arguments: tuple[object, ...], buf: int, size: int) -> int:
    """struct bpf_perf_event_value; zeroes where there is none."""
    try:
        if size != 24:
            raise LinuxError(EINVAL, f"struct bpf_perf_event_value has 24 bytes, not {size}")
        event: PerfEvent = find(*arguments)  # type: ignore[operator]
        values = event.own_values()
    except LinuxError:
        run.memory.write(buf, bytes(size))
        raise
    run.memory.write(buf, struct.pack("<3Q", values.value, values.enabled, values.running))
    return 0


@helper(25, Arg.CTX, Arg.MAP, Arg.ANYTHING, Arg.MEM, Arg.SIZE_OR_ZERO, gpl=True, programs=TRACING)
def perf_event_output(run: Run, ctx: int, map: int, flags: int, data: int, size: int) -> int:
    """A sample whose raw data are the program's. E2BIG where a record has not so many bytes; Linux writes it."""
    event = _event(run, map, flags)
    if (event.attr.type, event.attr.config) != (PerfType.SOFTWARE, SoftwareId.BPF_OUTPUT):
        raise LinuxError(EINVAL, "the event is no bpf-output")
    if event.on_cpu is not run.cpu:
        raise LinuxError(EOPNOTSUPP, "the event is not on this CPU")
    try:
        sample = event.output.sample(run.cpu, 0, raw=run.memory.read(data, size))
    except SampleTooLong as long:
        raise LinuxError(E2BIG, f"perf_event_output: {long}") from None
    event.write_records((sample,), event.wakeup_events)
    return 0


# ---- telling others


def _text(run: Run, format: bytes, values: tuple[int, ...]) -> bytes:
    def read_string(address: int, user: bool) -> bytes:
        user = user or not address >> 63
        text = _string(run, address, _LONGEST_LINE, user)
        return b"(fault)" if text is None else text[:-1]

    return formatted(format, values, read_string)


@helper(6, Arg.MEM, Arg.SIZE, unchecked=3, gpl=True)
def trace_printk(run: Run, fmt: int, fmt_size: int, arg1: int, arg2: int, arg3: int) -> int:
    return _print(run, fmt, fmt_size, (arg1, arg2, arg3))


@helper(177, Arg.MEM, Arg.SIZE, Arg.MEM_OR_NULL, Arg.SIZE_OR_ZERO, gpl=True)
def trace_vprintk(run: Run, fmt: int, fmt_size: int, data: int, data_len: int) -> int:
    return _print(run, fmt, fmt_size, _numbers(run, data, data_len))


def _numbers(run: Run, data: int, size: int) -> tuple[int, ...]:
    if size % 8 or size > 8 * 12:
        raise LinuxError(EINVAL, f"{size} bytes of numbers: at most 12 of 8 bytes each")
    return struct.unpack(f"<{size // 8}Q", run.memory.read(data, size)) if size else ()


def _print(run: Run, address: int, size: int, values: tuple[int, ...]) -> int:
    format = run.memory.read(address, size)
    if 0 not in format:
        raise LinuxError(EINVAL, "the format has no end")
    text = _text(run, format[: format.index(0)], values)[: _LONGEST_LINE - 1]
    run.services.print(run.cpu, run.task, text)
    return len(text)


@helper(165, Arg.UNINIT_MEM, Arg.SIZE_OR_ZERO, Arg.CONST_STR, Arg.MEM_OR_NULL, Arg.SIZE_OR_ZERO)
def snprintf(run: Run, str: int, str_size: int, fmt: int, data: int, data_len: int) -> int:
    """How long it would be, with the NUL."""
    values = _numbers(run, data, data_len)
    format = _string(run, fmt, _LONGEST_LINE, user=False)
    assert format is not None, "the verifier has seen the format"
    text = _text(run, format[:-1], values)
    if str_size:
        run.memory.write(str, text[: str_size - 1] + b"\0")
    return len(text) + 1


def _signal(run: Run, number: int, *, whole_process: bool) -> int:
    task = run.task
    if task is None or task.exit_code is not None or task.pid == 1:
        raise LinuxError(EPERM, "there is nobody to be signalled")
    if not 0 < number & 0xFFFF_FFFF <= NSIG:
        raise LinuxError(EINVAL, f"signal {number}")
    info = SignalInfo(number & 0xFFFF_FFFF, SI_KERNEL)
    if whole_process:
        run.services.signal_process(task, info)
    else:
        run.services.signal_task(task, info)
    return 0


@helper(109, Arg.ANYTHING, programs=TRACING)
def send_signal(run: Run, sig: int) -> int:
    return _signal(run, sig, whole_process=True)


@helper(117, Arg.ANYTHING, programs=TRACING)
def send_signal_thread(run: Run, sig: int) -> int:
    return _signal(run, sig, whole_process=False)
