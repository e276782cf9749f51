"""Structures in system calls' arguments as text, abbreviated as strace does. Layouts: uapi headers, 64-bit."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from emulator.linux.errors import EINTR, ERESTARTNOHAND, ERESTARTSYS
from emulator.linux.process.limits import INFINITY
from emulator.linux.signals.signal import SIGCHLD, SignalInfo
from emulator.linux.structures import U32, U64, Itimerspec, Itimerval, Timespec, Timeval
from emulator.linux.syscalls.attributes import UTIME_NOW, UTIME_OMIT
from emulator.linux.syscalls.limits import Rlimit, Rusage
from perfcore.abi.constants import PerfType
from perfemu.tracing import constants
from perfemu.tracing.values import (
    Read,
    Shape,
    View,
    array,
    buffer_text,
    choice,
    file_mode,
    flags,
    hexadecimal,
    pointer,
    quoted,
    signal_name,
    signal_set,
    signed,
    string_text,
    structure,
)

MOST_VARIABLES = 10_000  # that are counted


def word(data: bytes, offset: int = 0, size: int = 8) -> int:
    return int.from_bytes(data[offset : offset + size], "little")


# ---- times


def timespec(view: View, data: bytes) -> str:
    seconds, nanoseconds = struct.unpack("<qq", data)
    names = {UTIME_NOW: "UTIME_NOW", UTIME_OMIT: "UTIME_OMIT"}
    return names.get(nanoseconds) or f"{{tv_sec={seconds}, tv_nsec={nanoseconds}}}"


def timeval(view: View, data: bytes) -> str:
    seconds, microseconds = struct.unpack("<qq", data)
    return f"{{tv_sec={seconds}, tv_usec={microseconds}}}"


def _itimer(part: Read) -> Read:
    return lambda view, data: f"{{it_interval={part(view, data[:16])}, it_value={part(view, data[16:])}}}"


def rlimit(view: View, data: bytes) -> str:
    return f"{{rlim_cur={_limit(word(data))}, rlim_max={_limit(word(data, 8))}}}"


def _limit(value: int) -> str:
    if value == INFINITY:
        return "RLIM64_INFINITY"
    return f"{value >> 10}*1024" if value > 1024 and value % 1024 == 0 else str(value)


def rusage(view: View, data: bytes) -> str:
    return f"{{ru_utime={timeval(view, data[:16])}, ru_stime={timeval(view, data[16:32])}, ...}}"


STRUCTURES: Mapping[type, tuple[int, Read]] = {  # of the rows' annotations: size in bytes, text
    Timespec: (16, timespec),
    Timeval: (16, timeval),
    Itimerspec: (32, _itimer(timespec)),
    Itimerval: (32, _itimer(timeval)),
    U32: (4, lambda view, data: f"[{signed(word(data), 32)}]"),
    U64: (8, lambda view, data: f"[{word(data)}]"),
    Rlimit: (16, rlimit),
    Rusage: (144, rusage),
}
TIMESPEC = structure(16, timespec)
_INTERRUPTED = (-EINTR, -ERESTARTSYS, -ERESTARTNOHAND)


def _remaining(view: View, raw: int) -> str:
    """Of a sleep, if a signal broke it off."""
    data = view.peek(raw, 16) if raw and view.result in _INTERRUPTED else None
    return pointer(raw) if data is None else timespec(view, data)


REMAINING = Shape(_remaining, out=True)
TWO_TIMESPECS = array(16, lambda view: 2, timespec)
TWO_TIMEVALS = array(16, lambda view: 2, timeval)
TIMEVAL = structure(16, timeval)

# ---- files


def stat_text(mode: int, size: int, special: int) -> str:
    kind = mode & 0o170000
    if kind in (0o020000, 0o060000):
        major, minor = special >> 8 & 0xFFF, special & 0xFF | special >> 12 & 0xFFF00
        return f"{{st_mode={file_mode(mode)}, st_rdev=makedev({major:#x}, {minor:#x}), ...}}"
    return f"{{st_mode={file_mode(mode)}, st_size={size}, ...}}"


def _stat(view: View, data: bytes) -> str:
    mode_at, special_at = (24, 40) if view.isa == "x86_64" else (16, 32)  # asm/stat.h of each
    return stat_text(word(data, mode_at, 4), word(data, 48), word(data, special_at))


def _statx(view: View, data: bytes) -> str:
    mask = flags(constants.STATX, word(data, 0, 4))
    mode, size = word(data, 28, 2), word(data, 40)
    attributes = hexadecimal(word(data, 8))
    return f"{{stx_mask={mask}, stx_attributes={attributes}, stx_mode={file_mode(mode)}, stx_size={size}, ...}}"


def _statfs(view: View, data: bytes) -> str:
    kind, block_size, blocks, free, available, files, files_free = struct.unpack("<7Q", data[:56])
    name = constants.FILE_SYSTEMS.get(kind, f"{kind:#x}")
    sizes = f"f_bsize={block_size}, f_blocks={blocks}, f_bfree={free}, f_bavail={available}"
    ids = f"f_fsid={{val=[{hexadecimal(word(data, 56, 4))}, {hexadecimal(word(data, 60, 4))}]}}"
    rest = f"f_namelen={word(data, 64)}, f_frsize={word(data, 72)}, f_flags={hexadecimal(word(data, 80))}"
    return f"{{f_type={name}, {sizes}, f_files={files}, f_ffree={files_free}, {ids}, {rest}}}"


STAT = structure(128, _stat, out=True)
STATX = structure(256, _statx, out=True)
STATFS = structure(120, _statfs, out=True)


def open_how(view: View, data: bytes) -> str:
    how, mode, resolve = struct.unpack("<3Q", data)
    text = f"flags={flags(constants.OPEN[view.isa], how, constants.OPEN_ACCESS)}"
    if mode:
        text += f", mode={mode:#o}".replace("0o", "0")
    return f"{{{text}, resolve={flags(constants.RESOLVE, resolve)}}}"


def _flock(view: View, data: bytes) -> str:
    kind, whence, start, length, pid = struct.unpack("<hh4xqqi", data[:28])
    text = f"l_type={choice(constants.LOCK_TYPES, kind, 'F')}, l_whence={choice(constants.SEEK, whence, 'SEEK')}"
    owner = f", l_pid={pid}" if pid else ""
    return f"{{{text}, l_start={start}, l_len={length}{owner}}}"


FLOCK = structure(32, _flock)


def directory_entries(view: View, address: int, size: int) -> str:
    """getdents64 and getdents: how many there are."""
    data = view.peek(address, size)
    if data is None:
        return pointer(address)
    count, at = 0, 0
    while at + 18 <= size:
        length = word(data, at + 16, 2)
        if length == 0:
            break
        count, at = count + 1, at + length
    return f"{pointer(address)} /* {count} entries */"


DESCRIPTOR_PAIR = array(4, lambda view: 2, lambda view, data: str(signed(word(data), 32)), out=True)


def _iovec(result_limits: bool) -> Read:
    """`result_limits`: for what has been read, of which only as much is there as the result says."""

    def read(view: View, data: bytes) -> str:
        base, size = struct.unpack("<QQ", data)
        there = min(size, max(view.result or 0, 0)) if result_limits else size
        return f"{{iov_base={buffer_text(view, base, there)}, iov_len={size}}}"

    return read


def iovecs(count_index: int, out: bool) -> Shape:
    return array(16, lambda view: signed(view.arguments[count_index], 32), _iovec(out), out)


# ---- signals


def _sigset(view: View, data: bytes) -> str:
    return signal_set(word(data))


SIGSET = structure(8, _sigset)
SIGSET_OUT = structure(8, _sigset, out=True)


def _sigaction(view: View, data: bytes) -> str:
    """struct kernel_sigaction: handler, flags, restorer, mask; the same on both ISAs here."""
    handler, bits, restorer, mask = struct.unpack("<4Q", data)
    name = {0: "SIG_DFL", 1: "SIG_IGN"}.get(handler, f"{handler:#x}")
    text = f"sa_handler={name}, sa_mask={signal_set(mask)}, sa_flags={flags(constants.SA, bits)}"
    if bits & 0x04000000:
        text += f", sa_restorer={restorer:#x}"
    return f"{{{text}}}"


SIGACTION = structure(32, _sigaction)
SIGACTION_OUT = structure(32, _sigaction, out=True)


def _stack(view: View, data: bytes) -> str:
    address, bits, size = struct.unpack("<Qi4xQ", data)
    return f"{{ss_sp={pointer(address)}, ss_flags={flags(constants.SS, bits & 0xFFFFFFFF)}, ss_size={size}}}"


SIGNAL_STACK = structure(24, _stack)
SIGNAL_STACK_OUT = structure(24, _stack, out=True)


def signal_info(info: SignalInfo) -> str:
    """``{si_signo=SIGCHLD, si_code=CLD_EXITED, ...}``"""
    return _siginfo(info.pack())


def _siginfo(data: bytes) -> str:
    number, code = signed(word(data, 0), 32), signed(word(data, 8), 32)
    name = signal_name(number)
    known = constants.SI_CODES.get(code) or constants.SIGNAL_CODES.get(name, {}).get(code)
    text = f"si_signo={name}, si_code={known or hexadecimal(code & 0xFFFFFFFF)}"
    first, second, value = struct.unpack("<iiQ", data[16:32])
    if number == SIGCHLD and code > 0:
        status = signed(value, 32) if code == 1 else signal_name(signed(value, 32))
        ticks = struct.unpack("<qq", data[32:48])
        text += f", si_pid={first}, si_uid={second}, si_status={status}, si_utime={ticks[0]}, si_stime={ticks[1]}"
    elif 0 < code < 0x80:
        text += f", si_addr={pointer(word(data, 16))}"
    elif code == -2:
        text += f", si_timerid={hexadecimal(first)}, si_overrun={second}, si_value={_value(value)}"
    elif code != 0x80:
        text += f", si_pid={first}, si_uid={second}"
        if code == -1:
            text += f", si_value={_value(value)}"
    return f"{{{text}}}"


def _value(value: int) -> str:
    return f"{{sival_int={signed(value, 32)}, sival_ptr={pointer(value)}}}"


SIGINFO = structure(128, lambda view, data: _siginfo(data))
SIGINFO_OUT = structure(128, lambda view, data: _siginfo(data), out=True)


def wait_status(view: View, data: bytes) -> str:
    status = word(data)
    code, signal = status >> 8 & 0xFF, status & 0x7F
    if status & 0xFFFF == 0xFFFF:
        return "[{WIFCONTINUED(s)}]"
    if status & 0xFF == 0x7F:
        return f"[{{WIFSTOPPED(s) && WSTOPSIG(s) == {signal_name(code)}}}]"
    if signal:
        core = " && WCOREDUMP(s)" if status & 0x80 else ""
        return f"[{{WIFSIGNALED(s) && WTERMSIG(s) == {signal_name(signal)}{core}}}]"
    return f"[{{WIFEXITED(s) && WEXITSTATUS(s) == {code}}}]"


_WAIT_STATUS = structure(4, wait_status, out=True)
WAIT_STATUS = Shape(lambda view, raw: _WAIT_STATUS.show(view, raw) if view.result else pointer(raw), out=True)

# ---- waiting


def _pollfd(view: View, data: bytes) -> str:
    return f"{{fd={signed(word(data), 32)}, events={flags(constants.POLL, word(data, 4, 2))}}}"


POLLFDS = array(8, lambda view: view.arguments[1] & 0xFFFFFFFF, _pollfd)


def _epoll_event(view: View, data: bytes) -> str:
    value = word(data, 4 if view.isa == "x86_64" else 8)  # packed on x86 alone
    return f"{{events={flags(constants.EPOLL, word(data, 0, 4))}, data={{u32={value & 0xFFFFFFFF}, u64={value:#x}}}}}"


def _epoll(view: View, raw: int) -> str:
    return structure(12 if view.isa == "x86_64" else 16, _epoll_event).show(view, raw)


def _epoll_events(view: View, raw: int) -> str:
    count = view.result or 0
    return array(12 if view.isa == "x86_64" else 16, lambda view: count, _epoll_event).show(view, raw)


EPOLL_EVENT = Shape(_epoll)
EPOLL_EVENTS = Shape(lambda view, raw: pointer(raw) if view.failed else _epoll_events(view, raw), out=True)


def fd_set(view: View, raw: int) -> str:
    """The descriptors below the first argument whose bits are set."""
    if not raw:
        return "NULL"
    count = min(max(signed(view.arguments[0], 32), 0), 1024)
    data = view.peek(raw, -(-count // 64) * 8)
    if data is None:
        return pointer(raw)
    bits = word(data, 0, len(data))
    return f"[{' '.join(str(number) for number in range(count) if bits >> number & 1)}]"


# ---- sockets


def socket_address(view: View, data: bytes) -> str:
    family = word(data, 0, 2)
    name = constants.FAMILIES.get(family, str(family))
    if family == 1:
        path = data[2:]
        if path[:1] == b"\0" and len(path) > 1:
            return f"{{sa_family=AF_UNIX, sun_path=@{quoted(path[1:])}}}"
        return f"{{sa_family=AF_UNIX, sun_path={quoted(path.split(bytes(1))[0])}}}" if path else "{sa_family=AF_UNIX}"
    if family == 2 and len(data) >= 8:
        port, address = int.from_bytes(data[2:4], "big"), socket.inet_ntop(socket.AF_INET, data[4:8])
        return f'{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr("{address}")}}'
    if family == 10 and len(data) >= 28:
        port, address = int.from_bytes(data[2:4], "big"), socket.inet_ntop(socket.AF_INET6, data[8:24])
        return (
            f"{{sa_family=AF_INET6, sin6_port=htons({port}), sin6_flowinfo=htonl({int.from_bytes(data[4:8], 'big')}), "
            f'inet_pton(AF_INET6, "{address}", &sin6_addr), sin6_scope_id={word(data, 24, 4)}}}'
        )
    return f"{{sa_family={name}, sa_data={quoted(data[2:16])}}}"


def sockaddr(size_index: int) -> Shape:
    """What the call is given."""

    def show(view: View, raw: int) -> str:
        size = min(signed(view.arguments[size_index], 32), 128)
        return structure(size, socket_address).show(view, raw) if size >= 2 else pointer(raw)

    return Shape(show)


def sockaddr_out(size_at_index: int) -> Shape:
    """What the call has written, of a size that it has written elsewhere."""

    def show(view: View, raw: int) -> str:
        size = view.number(view.arguments[size_at_index], 4)
        if view.failed or not raw or size is None or size < 2:
            return pointer(raw)
        return structure(min(size, 128), socket_address).show(view, raw)

    return Shape(show, out=True)


SIZE_OUT = structure(4, lambda view, data: f"[{signed(word(data), 32)}]", out=True)


def _message(result_limits: bool) -> Read:
    """struct user_msghdr. Control data is told by its size."""

    def read(view: View, data: bytes) -> str:
        name, name_size, vector, count, control, control_size, bits = struct.unpack("<Qi4xQQQQi", data[:52])
        address = structure(name_size, socket_address).show(view, name) if 2 <= name_size <= 128 else pointer(name)
        pieces = array(16, lambda view: count, _iovec(result_limits)).show(view, vector)
        ancillary = f", msg_control={pointer(control)}" if control_size else ""
        return (
            f"{{msg_name={address}, msg_namelen={name_size}, msg_iov={pieces}, msg_iovlen={count}{ancillary}, "
            f"msg_controllen={control_size}, msg_flags={flags(constants.MESSAGE, bits & 0xFFFFFFFF)}}}"
        )

    return read


MESSAGE = structure(56, _message(False))
MESSAGE_OUT = structure(56, _message(True), out=True)

# ---- processes


def strings(view: View, raw: int) -> str:
    """argv: ``["ls", "-l"]``"""
    if not raw:
        return "NULL"
    items: list[str] = []
    for index in range(view.longest):
        address = view.number(raw + 8 * index, 8)
        if address is None:
            return pointer(raw)
        if address == 0:
            return f"[{', '.join(items)}]"
        items.append(string_text(view, address, view.longest))
    return f"[{', '.join((*items, '...'))}]"


def environment(view: View, raw: int) -> str:
    """envp, by its size."""
    if not raw:
        return "NULL"
    count = 0
    while count < MOST_VARIABLES and view.number(raw + 8 * count, 8):
        count += 1
    return f"{raw:#x} /* {count} var{'' if count == 1 else 's'} */"


def _clone_arguments(view: View, data: bytes) -> str:
    """struct clone_args: what it asks; at the end what came of it."""
    bits, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls = struct.unpack("<8Q", data)
    fields = [f"flags={flags(constants.CLONE, bits)}"]
    if bits & 0x1000:
        fields.append(f"pidfd={pointer(pidfd)}")
    if bits & 0x01200000:
        fields.append(f"child_tid={pointer(child_tid)}")
    if bits & 0x00100000:
        fields.append(f"parent_tid={pointer(parent_tid)}")
    fields.append(f"exit_signal={signal_name(exit_signal) if exit_signal else '0'}")
    fields += [f"stack={pointer(stack)}", f"stack_size={hexadecimal(stack_size)}"]
    if bits & 0x00080000:
        fields.append(f"tls={pointer(tls)}")
    return f"{{{', '.join(fields)}}}"


CLONE_ARGUMENTS = structure(64, _clone_arguments)


def _perf_event_attr(view: View, data: bytes) -> str:
    """struct perf_event_attr: what it begins with."""
    kind, size, config, period, sample_type, read_format, bits = struct.unpack("<II5Q", data)
    name = f"PERF_TYPE_{PerfType(kind).name}" if kind in set(PerfType) else str(kind)
    often = f"sample_freq={period}" if bits >> 10 & 1 else f"sample_period={period}"
    return (
        f"{{type={name}, size={size}, config={hexadecimal(config)}, {often}, sample_type={hexadecimal(sample_type)}, "
        f"read_format={hexadecimal(read_format)}, disabled={bits & 1}, inherit={bits >> 1 & 1}, ...}}"
    )


PERF_EVENT_ATTR = structure(48, _perf_event_attr)


def _utsname(view: View, data: bytes) -> str:
    system, node = (data[at : at + 65].split(b"\0")[0] for at in (0, 65))
    return f"{{sysname={quoted(system)}, nodename={quoted(node)}, ...}}"


UTSNAME = structure(390, _utsname, out=True)


def _sysinfo(view: View, data: bytes) -> str:
    uptime, *loads = struct.unpack("<4Q", data[:32])
    total, free = word(data, 32), word(data, 40)
    return f"{{uptime={uptime}, loads=[{', '.join(map(str, loads))}], totalram={total}, freeram={free}, ...}}"


SYSINFO = structure(112, _sysinfo, out=True)


def cpu_mask(view: View, raw: int) -> str:
    """sched_setaffinity: ``[0 1]``"""
    size = min(view.arguments[1], 128)
    if view.result is not None and view.result > 0:
        size = min(size, view.result)
    data = view.peek(raw, size)
    if data is None or view.failed:
        return pointer(raw)
    bits = word(data, 0, size)
    return f"[{' '.join(str(number) for number in range(size * 8) if bits >> number & 1)}]"
