"""Calls: which shape each argument of a system call has.

What a row of the syscall table says of an argument (emulator/linux/syscalls/table.py) suffices for most. `ARGUMENTS`
knows more of some by call and parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from emulator.linux.syscalls.table import Parameter, Shown, Syscall
from perfemu.tracing import constants, structures
from perfemu.tracing.values import (
    ADDRESS,
    DESCRIPTOR,
    DIRECTORY,
    HEX,
    HEX32,
    INT,
    LONG,
    MODE,
    NODE_MODE,
    OCTAL,
    OPEN_FLAGS,
    PATH,
    RESULT_ADDRESS,
    SIGNAL,
    TEXT,
    UNSIGNED,
    UNSIGNED_LONG,
    Shape,
    View,
    array,
    bits_of,
    bytes_in,
    bytes_out,
    choice,
    flags,
    in_hex,
    one_of,
    pointer,
    signed,
    structure,
)
from perfemu.tracing.variants import VARIANTS, Argument, Arguments

_BY_KIND = {
    Shown.INT: INT,
    Shown.UNSIGNED_INT: UNSIGNED,
    Shown.LONG: LONG,
    Shown.UNSIGNED_LONG: UNSIGNED_LONG,
    Shown.ADDRESS: ADDRESS,
    Shown.STRING: PATH,
}
_BY_NAME: Mapping[tuple[str, Shown], Shape] = {  # wherever a row uses the word
    ("descriptor", Shown.INT): DESCRIPTOR,
    ("instance", Shown.INT): DESCRIPTOR,
    ("signal", Shown.INT): SIGNAL,
    ("clock", Shown.INT): one_of(constants.CLOCKS, "CLOCK"),
    ("family", Shown.INT): one_of(constants.FAMILIES, "AF"),
}


def _is_at_call(name: str) -> bool:
    """Whether its first descriptor says where a path begins."""
    return name == "statx" or (name.rstrip("0123456789").endswith("at") and name not in ("fstat", "stat", "lstat"))


_PIPE_FLAGS = Shape(lambda view, raw: flags(constants.OPEN[view.isa], raw & 0xFFFFFFFF))
_PROTECTION = bits_of(constants.PROTECTION, "PROT_NONE")
_MAP_FLAGS = bits_of(constants.MAP, first=constants.MAP_KINDS)
_RANDOM = bytes_out(lambda view, raw, size: _hex_bytes(view, raw, size))
_SOCKET_KIND = Shape(lambda view, raw: flags(constants.SOCKET_FLAGS, raw & 0xFFFFFFFF, constants.SOCKET_KINDS))
_SOCKET_FLAGS = bits_of(constants.SOCKET_FLAGS)
_MESSAGE_FLAGS = bits_of(constants.MESSAGE)
_STAT_FLAGS = bits_of(constants.AT_STAT)
_ACCESS = bits_of(constants.ACCESS, "F_OK")
_PRIORITY = one_of(constants.PRIORITY_WHO, "PRIO")
_RESOURCE = one_of(constants.RESOURCES, "RLIMIT")
_POLICY = one_of(constants.POLICIES, "SCHED")
_ITIMER = one_of(constants.ITIMERS, "ITIMER")
_GROUPS_OUT = array(4, lambda view: view.result or 0, lambda view, data: str(int.from_bytes(data, "little")), out=True)
_GROUPS = array(4, lambda view: signed(view.arguments[0], 32), lambda view, data: str(int.from_bytes(data, "little")))
_OFFSET = structure(8, lambda view, data: f"[{int.from_bytes(data, 'little', signed=True)}]")
_FD_SET = Shape(structures.fd_set)
_CPU_MASK = Shape(structures.cpu_mask)
_CPU_MASK_OUT = Shape(structures.cpu_mask, out=True)
_ARGV, _ENVIRONMENT = Shape(structures.strings), Shape(structures.environment)
_ENTRIES = bytes_out(structures.directory_entries)


def _hex_bytes(view: View, raw: int, size: int) -> str:
    data = view.peek(raw, min(size, view.longest))
    return pointer(raw) if data is None else in_hex(data, size > view.longest)


def _level_options(view: View, raw: int) -> str:
    tables = {
        0: constants.IP_OPTIONS,
        1: constants.SOCKET_OPTIONS,
        6: constants.TCP_OPTIONS,
        41: constants.IPV6_OPTIONS,
    }
    return choice(tables.get(signed(view.arguments[1], 32), {}), signed(raw, 32), "SO")


def _option_in(view: View, raw: int) -> str:
    size = signed(view.arguments[4], 32)
    data = view.peek(raw, 4) if size == 4 and raw else None
    return pointer(raw) if data is None else f"[{int.from_bytes(data, 'little', signed=True)}]"


def _option_out(view: View, raw: int) -> str:
    size = view.number(view.arguments[4], 4)
    data = view.peek(raw, 4) if size == 4 and raw and not view.failed else None
    return pointer(raw) if data is None else f"[{int.from_bytes(data, 'little', signed=True)}]"


_SOCKET_NAME = {"address": structures.sockaddr_out(2), "size_at": structures.SIZE_OUT}
_OPTION = Shape(_level_options)
_SOCKET_LEVEL = one_of(constants.LEVELS, "SOL")
_STAT = {"buffer": structures.STAT}
_READV, _WRITEV = {"vector": structures.iovecs(2, True)}, {"vector": structures.iovecs(2, False)}
_PATH_MODE = {"mode": MODE}
_IOV_OFFSET = {"offset": LONG, "flags": bits_of(constants.RWF)}
_INFO = {"info": structures.SIGINFO}
_ATTRIBUTE = {"name": TEXT}

ARGUMENTS: Mapping[str, Mapping[str, Shape]] = {
    # files
    "read": {"buffer": bytes_out()},
    "write": {"buffer": bytes_in(2)},
    "pread64": {"buffer": bytes_out()},
    "pwrite64": {"buffer": bytes_in(2)},
    "readv": _READV,
    "writev": _WRITEV,
    "preadv": _READV,
    "pwritev": _WRITEV,
    "preadv2": {**_READV, **_IOV_OFFSET},
    "pwritev2": {**_WRITEV, **_IOV_OFFSET},
    "lseek": {"whence": one_of(constants.SEEK, "SEEK")},
    "sendfile": {"target": DESCRIPTOR, "source": DESCRIPTOR, "offset": _OFFSET},
    "copy_file_range": {
        "source": DESCRIPTOR, "source_offset": _OFFSET, "target": DESCRIPTOR, "target_offset": _OFFSET,
    },
    "newfstatat": {**_STAT, "flags": _STAT_FLAGS},
    "stat": _STAT,
    "lstat": _STAT,
    "fstat": _STAT,
    "statx": {"flags": Shape(lambda view, raw: _statx_flags(raw)), "mask": bits_of(constants.STATX),
              "buffer": structures.STATX},
    "statfs": {"buffer": structures.STATFS},
    "fstatfs": {"buffer": structures.STATFS},
    "faccessat2": {"mode": _ACCESS, "flags": bits_of(constants.AT_ACCESS)},
    "faccessat": {"mode": _ACCESS},
    "access": {"mode": _ACCESS},
    "fchmodat2": {"mode": OCTAL, "flags": bits_of(constants.AT_STAT)},
    "fchmodat": {"mode": OCTAL},
    "chmod": {"mode": OCTAL},
    "fchmod": {"mode": OCTAL},
    "fchownat": {"flags": bits_of(constants.AT_STAT)},
    "utimensat": {"times": structures.TWO_TIMESPECS, "flags": bits_of(constants.AT_STAT)},
    "utimes": {"times": structures.TWO_TIMEVALS},
    "futimesat": {"times": structures.TWO_TIMEVALS},
    "fallocate": {"mode": bits_of(constants.FALLOCATE)},
    "flock": {"operation": bits_of(constants.FLOCK)},
    "dup2": {"wanted": DESCRIPTOR},
    "dup3": {"flags": _PIPE_FLAGS},
    "pipe": {"descriptors": structures.DESCRIPTOR_PAIR},
    "pipe2": {"descriptors": structures.DESCRIPTOR_PAIR, "flags": _PIPE_FLAGS},
    "memfd_create": {"name": TEXT, "flags": bits_of(constants.MEMFD)},
    "getcwd": {"buffer": Shape(lambda view, raw: pointer(raw) if view.failed else PATH.show(view, raw), out=True)},
    "getdents64": {"buffer": _ENTRIES},
    "getdents": {"buffer": _ENTRIES},
    "mkdirat": _PATH_MODE,
    "mkdir": _PATH_MODE,
    "mknodat": {"mode": NODE_MODE, "device": HEX32},
    "mknod": {"mode": NODE_MODE, "device": HEX32},
    "unlinkat": {"flags": bits_of(constants.AT_UNLINK)},
    "linkat": {"source_descriptor": DIRECTORY, "flags": bits_of(constants.AT_LINK)},
    "renameat2": {"target_descriptor": DIRECTORY, "flags": bits_of(constants.RENAME)},
    "renameat": {"target_descriptor": DIRECTORY},
    "readlinkat": {"buffer": bytes_out()},
    "readlink": {"buffer": bytes_out()},
    "openat": {"flags": OPEN_FLAGS, "mode": MODE},
    "open": {"flags": OPEN_FLAGS, "mode": MODE},
    "creat": _PATH_MODE,
    "openat2": {"how": structure(24, structures.open_how)},
    "close_range": {"flags": bits_of(constants.CLOSE_RANGE)},
    "ioctl": {"request": one_of(constants.IOCTL, "IOC")},
    "fcntl": {"command": one_of(constants.FCNTL, "F")},
    "umask": {"mask": OCTAL},
    "fadvise64": {"advice": one_of(constants.FADVISE, "POSIX_FADV")},
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr", "removexattr",
                     "lremovexattr", "fremovexattr"), _ATTRIBUTE),
    "splice": {"flags": bits_of(constants.SPLICE)},
    "tee": {"flags": bits_of(constants.SPLICE)},
    "vmsplice": {"flags": bits_of(constants.SPLICE)},
    "inotify_init1": {"flags": bits_of(constants.INOTIFY)},
    "inotify_add_watch": {"mask": bits_of(constants.INOTIFY_MASK)},
    # memory
    "mmap": {"protection": _PROTECTION, "flags": _MAP_FLAGS, "offset": HEX},
    "mprotect": {"protection": _PROTECTION},
    "mremap": {"flags": bits_of(constants.REMAP)},
    "madvise": {"advice": one_of(constants.ADVICE, "MADV")},
    "mincore": {"vector": RESULT_ADDRESS},
    "msync": {"flags": bits_of(constants.SYNC)},
    "mlock2": {"flags": bits_of(constants.MLOCK2)},
    "mlockall": {"flags": bits_of(constants.MLOCKALL)},
    # waiting
    "poll": {"descriptors": structures.POLLFDS},
    "ppoll": {"descriptors": structures.POLLFDS, "timeout": structures.TIMESPEC, "mask": structures.SIGSET},
    "select": {"reading": _FD_SET, "writing": _FD_SET, "exceptional": _FD_SET, "timeout": structures.TIMEVAL},
    "pselect6": {
        "reading": _FD_SET, "writing": _FD_SET, "exceptional": _FD_SET, "timeout": structures.TIMESPEC,
        "mask": structure(16, lambda view, data: _sigset_of_pselect(view, data)),
    },
    "epoll_create1": {"flags": bits_of(constants.EPOLL_CREATE)},
    "epoll_ctl": {"operation": one_of(constants.EPOLL_CTL, "EPOLL_CTL"), "event": structures.EPOLL_EVENT},
    "epoll_wait": {"events": structures.EPOLL_EVENTS},
    "epoll_pwait": {"events": structures.EPOLL_EVENTS, "mask": structures.SIGSET},
    "epoll_pwait2": {
        "events": structures.EPOLL_EVENTS, "timeout": structures.TIMESPEC, "mask": structures.SIGSET,
    },
    "eventfd2": {"flags": bits_of(constants.EVENTFD)},
    # processes
    "getrandom": {"buffer": _RANDOM, "flags": bits_of(constants.GETRANDOM)},
    "getgroups": {"groups": _GROUPS_OUT},
    "setgroups": {"groups": _GROUPS},
    "uname": {"buffer": structures.UTSNAME},
    "sysinfo": {"buffer": structures.SYSINFO},
    "prlimit64": {"resource": _RESOURCE},
    "getrlimit": {"resource": _RESOURCE},
    "setrlimit": {"resource": _RESOURCE},
    "getrusage": {"who": one_of(constants.USAGE_WHO, "RUSAGE")},
    "prctl": {"option": one_of(constants.PRCTL, "PR")},
    "arch_prctl": {"code": Shape(lambda view, raw: constants.ARCH_PRCTL.get(raw) or choice({}, raw, "ARCH"))},
    "personality": {"persona": HEX32},
    "execve": {"argv": _ARGV, "environment": _ENVIRONMENT},
    "execveat": {"directory": DIRECTORY, "argv": _ARGV, "environment": _ENVIRONMENT,
                 "flags": bits_of(constants.AT_STAT)},
    "clone3": {"arguments": structures.CLONE_ARGUMENTS},
    "unshare": {"flags": bits_of(constants.CLONE)},
    "wait4": {"status": structures.WAIT_STATUS, "options": bits_of(constants.WAIT4)},
    "waitid": {"kind": one_of(constants.WAITID, "P"), "info": structures.SIGINFO_OUT,
               "options": bits_of(constants.WAIT)},
    "sched_getaffinity": {"mask": _CPU_MASK_OUT},
    "sched_setaffinity": {"mask": _CPU_MASK},
    "sched_setscheduler": {"policy": _POLICY},
    "sched_get_priority_max": {"policy": _POLICY},
    "sched_get_priority_min": {"policy": _POLICY},
    "getpriority": {"which": _PRIORITY},
    "setpriority": {"which": _PRIORITY},
    "rseq": {"length": HEX32, "signature": HEX32},
    "membarrier": {"command": bits_of(constants.MEMBARRIER, "MEMBARRIER_CMD_QUERY")},
    "perf_event_open": {"attr": structures.PERF_EVENT_ATTR, "group_fd": DESCRIPTOR, "flags": bits_of(constants.PERF)},
    # signals
    "rt_sigaction": {"new": structures.SIGACTION, "old": structures.SIGACTION_OUT},
    "rt_sigprocmask": {
        "how": one_of(constants.SIG_HOW, "SIG"), "new": structures.SIGSET, "old": structures.SIGSET_OUT,
    },
    "rt_sigpending": {"result": structures.SIGSET_OUT},
    "rt_sigsuspend": {"mask": structures.SIGSET},
    "rt_sigtimedwait": {"wanted": structures.SIGSET, "info": structures.SIGINFO_OUT},
    "sigaltstack": {"new": structures.SIGNAL_STACK, "old": structures.SIGNAL_STACK_OUT},
    "rt_sigqueueinfo": _INFO,
    "rt_tgsigqueueinfo": _INFO,
    "signalfd": {"mask": structures.SIGSET},
    "signalfd4": {"mask": structures.SIGSET, "flags": bits_of(constants.SIGNALFD)},
    # time
    "nanosleep": {"remaining": structures.REMAINING},
    "clock_nanosleep": {"flags": bits_of(constants.TIMER_FLAGS), "remaining": structures.REMAINING},
    "getitimer": {"which": _ITIMER},
    "setitimer": {"which": _ITIMER},
    "timer_settime": {"flags": bits_of(constants.TIMER_FLAGS)},
    "timerfd_create": {"flags": bits_of(constants.TIMERFD)},
    "timerfd_settime": {"flags": bits_of(constants.TIMERFD_SETTIME)},
    # sockets
    "socket": {"kind": _SOCKET_KIND, "protocol": INT},
    "socketpair": {"kind": _SOCKET_KIND, "descriptors": structures.DESCRIPTOR_PAIR},
    "bind": {"address": structures.sockaddr(2)},
    "connect": {"address": structures.sockaddr(2)},
    **dict.fromkeys(("getsockname", "getpeername", "accept"), _SOCKET_NAME),
    "accept4": {**_SOCKET_NAME, "flags": _SOCKET_FLAGS},
    "shutdown": {"how": one_of(constants.SHUTDOWN, "SHUT")},
    "setsockopt": {"level": _SOCKET_LEVEL, "option": _OPTION, "value": Shape(_option_in)},
    "getsockopt": {"level": _SOCKET_LEVEL, "option": _OPTION, "value": Shape(_option_out, out=True),
                   "size_at": structures.SIZE_OUT},
    "sendto": {"data": bytes_in(2), "flags": _MESSAGE_FLAGS, "address": structures.sockaddr(5)},
    "recvfrom": {"data": bytes_out(), "flags": _MESSAGE_FLAGS, "address": structures.sockaddr_out(5),
                 "size_at": structures.SIZE_OUT},
    "sendmsg": {"header": structures.MESSAGE, "flags": _MESSAGE_FLAGS},
    "recvmsg": {"header": structures.MESSAGE_OUT, "flags": _MESSAGE_FLAGS},
    "sendmmsg": {"flags": _MESSAGE_FLAGS},
    "recvmmsg": {"flags": _MESSAGE_FLAGS},
}  # fmt: skip


def _statx_flags(raw: int) -> str:
    """AT_STATX_SYNC_AS_STAT is what neither of the two bits says, and is shown."""
    text = flags(constants.AT_STAT, raw & 0xFFFFFFFF, nothing="")
    return text if raw & 0x6000 else "|".join(part for part in ("AT_STATX_SYNC_AS_STAT", text) if part)


def _sigset_of_pselect(view: View, data: bytes) -> str:
    address, size = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")
    return f"{{sigmask={structures.SIGSET.show(view, address)}, sigsetsize={size}}}"


def _default(call: str, parameter: Parameter) -> Shape:
    if parameter.name in ("descriptor", "directory") and _is_at_call(call):
        return DIRECTORY
    named = _BY_NAME.get((parameter.name, parameter.shown))
    if named is not None:
        return named
    if parameter.shown in _BY_KIND:
        return _BY_KIND[parameter.shown]
    out = parameter.shown is Shown.RESULT
    known = structures.STRUCTURES.get(parameter.structure) if parameter.structure is not None else None
    if known is None:
        return RESULT_ADDRESS if out else ADDRESS
    return structure(*known, out=out)


@dataclass(frozen=True, slots=True)
class CallShape:
    """How one system call is written."""

    name: str
    usual: Arguments

    @classmethod
    def of(cls, row: Syscall) -> CallShape:
        known = ARGUMENTS.get(row.name, {})
        usual = (
            Argument(index, known.get(parameter.name) or _default(row.name, parameter))
            for index, parameter in enumerate(row.parameters())
        )
        return cls(row.name, tuple(usual))

    @classmethod
    def unknown(cls, name: str, number: int) -> CallShape:
        """Of a call that nothing answers: its registers."""
        arguments = tuple(Argument(index, HEX) for index in range(6))
        return cls(name if name != "unknown" else f"syscall_{number:#x}", arguments)

    def arguments(self, view: View) -> Arguments:
        variant = VARIANTS.get(self.name)
        return self.usual if variant is None else variant(view, self.usual)
