"""Calls: which shape each argument of a system call has.

What a row of the syscall table says of an argument (emulator/linux/syscalls/table.py), its type and the name that Linux
gives it, suffices for most. `ARGUMENTS` knows more of some by call.
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


_OPTION = Shape(_level_options)
_SOCKET_LEVEL = one_of(constants.LEVELS, "SOL")


def _statx_flags(raw: int) -> str:
    """AT_STATX_SYNC_AS_STAT is what neither of the two bits says, and is shown."""
    text = flags(constants.AT_STAT, raw & 0xFFFFFFFF, nothing="")
    return text if raw & 0x6000 else "|".join(part for part in ("AT_STATX_SYNC_AS_STAT", text) if part)


def _sigset_of_pselect(view: View, data: bytes) -> str:
    address, size = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")
    return f"{{sigmask={structures.SIGSET.show(view, address)}, sigsetsize={size}}}"


def _named(names: tuple[str, ...], shown: Shown, shape: Shape) -> dict[tuple[str, Shown], Shape]:
    return {(name, shown): shape for name in names}


# By the name that Linux gives it in any call, and how its register is read.
_BY_NAME: Mapping[tuple[str, Shown], Shape] = {
    ("advice", Shown.INT): one_of(constants.FADVISE, "POSIX_FADV"),
    ("behavior", Shown.INT): one_of(constants.ADVICE, "MADV"),
    **_named(("clockid", "which_clock"), Shown.INT, one_of(constants.CLOCKS, "CLOCK")),
    **_named(("dfd", "newdfd", "olddfd"), Shown.INT, DIRECTORY),
    **_named(
        ("epfd", "fd", "fd_in", "fd_out", "fildes", "in_fd", "mqdes", "newfd", "oldfd", "out_fd", "pidfd", "ufd"),
        Shown.INT,
        DESCRIPTOR,
    ),
    ("family", Shown.INT): one_of(constants.FAMILIES, "AF"),
    ("flag", Shown.INT): _STAT_FLAGS,
    ("level", Shown.INT): _SOCKET_LEVEL,
    ("mask", Shown.INT): OCTAL,
    ("optname", Shown.INT): _OPTION,
    ("policy", Shown.INT): _POLICY,
    ("sig", Shown.INT): SIGNAL,
    **_named(("dev", "personality", "rseq_len", "sig"), Shown.UNSIGNED_INT, HEX32),
    ("resource", Shown.UNSIGNED_INT): _RESOURCE,
    ("type", Shown.UNSIGNED_INT): _SOCKET_KIND,
    ("unshare_flags", Shown.UNSIGNED_INT): bits_of(constants.CLONE),
    ("whence", Shown.UNSIGNED_INT): one_of(constants.SEEK, "SEEK"),
    ("off", Shown.UNSIGNED_LONG): HEX,
    ("prot", Shown.UNSIGNED_LONG): _PROTECTION,
    ("uname", Shown.STRING): TEXT,
    ("act", Shown.ADDRESS): structures.SIGACTION,
    **_named(("addr_len", "optlen", "upeer_addrlen", "usockaddr_len"), Shown.ADDRESS, structures.SIZE_OUT),
    ("argv", Shown.ADDRESS): _ARGV,
    ("buff", Shown.ADDRESS): bytes_in(2),
    ("buffer", Shown.ADDRESS): structures.STATX,
    ("dirent", Shown.ADDRESS): _ENTRIES,
    ("envp", Shown.ADDRESS): _ENVIRONMENT,
    ("event", Shown.ADDRESS): structures.EPOLL_EVENT,
    ("events", Shown.ADDRESS): structures.EPOLL_EVENTS,
    **_named(("exp", "inp", "outp"), Shown.ADDRESS, _FD_SET),
    **_named(("fildes", "usockvec"), Shown.ADDRESS, structures.DESCRIPTOR_PAIR),
    ("how", Shown.ADDRESS): structure(24, structures.open_how),
    ("infop", Shown.ADDRESS): structures.SIGINFO_OUT,
    ("name", Shown.ADDRESS): TEXT,
    ("oact", Shown.ADDRESS): structures.SIGACTION_OUT,
    **_named(("off_in", "off_out", "offset"), Shown.ADDRESS, _OFFSET),
    ("sig", Shown.ADDRESS): structure(16, lambda view, data: _sigset_of_pselect(view, data)),
    ("sigmask", Shown.ADDRESS): structures.SIGSET,
    ("statbuf", Shown.ADDRESS): structures.STAT,
    ("tsp", Shown.ADDRESS): structures.TIMESPEC,
    ("tvp", Shown.ADDRESS): structures.TIMEVAL,
    ("uargs", Shown.ADDRESS): structures.CLONE_ARGUMENTS,
    ("ufds", Shown.ADDRESS): structures.POLLFDS,
    **_named(("umyaddr", "uservaddr"), Shown.ADDRESS, structures.sockaddr(2)),
    ("uoss", Shown.ADDRESS): structures.SIGNAL_STACK_OUT,
    **_named(("upeer_sockaddr", "usockaddr"), Shown.ADDRESS, structures.sockaddr_out(2)),
    ("uset", Shown.ADDRESS): structures.SIGSET_OUT,
    ("uss", Shown.ADDRESS): structures.SIGNAL_STACK,
    **_named(("nset", "unewset", "user_mask", "uthese"), Shown.STRUCTURE, structures.SIGSET),
    ("oset", Shown.RESULT): structures.SIGSET_OUT,
    ("rmtp", Shown.RESULT): structures.REMAINING,
    ("stat_addr", Shown.RESULT): structures.WAIT_STATUS,
}


def _alike(calls: tuple[str, ...], known: Mapping[str, Shape]) -> dict[str, Mapping[str, Shape]]:
    return dict.fromkeys(calls, known)


# Of one call, or a few, by the name as well.
ARGUMENTS: Mapping[str, Mapping[str, Shape]] = {
    **_alike(("read", "pread64", "readlinkat", "readlink"), {"buf": bytes_out()}),
    **_alike(("write", "pwrite64"), {"buf": bytes_in(2)}),
    **_alike(("readv", "preadv"), {"vec": structures.iovecs(2, True)}),
    **_alike(("writev", "pwritev"), {"vec": structures.iovecs(2, False)}),
    "preadv2": {"vec": structures.iovecs(2, True), "flags": bits_of(constants.RWF)},
    "pwritev2": {"vec": structures.iovecs(2, False), "flags": bits_of(constants.RWF)},
    "statx": {"flags": Shape(lambda view, raw: _statx_flags(raw)), "mask": bits_of(constants.STATX)},
    **_alike(("statfs", "fstatfs"), {"buf": structures.STATFS}),
    "faccessat2": {"mode": _ACCESS, "flags": bits_of(constants.AT_ACCESS)},
    **_alike(("faccessat", "access"), {"mode": _ACCESS}),
    "fchmodat2": {"mode": OCTAL, "flags": bits_of(constants.AT_STAT)},
    **_alike(("fchmodat", "chmod", "fchmod"), {"mode": OCTAL}),
    "fchownat": {"flag": bits_of(constants.AT_STAT)},
    "utimensat": {"utimes": structures.TWO_TIMESPECS, "flags": bits_of(constants.AT_STAT)},
    **_alike(("utimes", "futimesat"), {"utimes": structures.TWO_TIMEVALS}),
    "fallocate": {"mode": bits_of(constants.FALLOCATE)},
    "flock": {"cmd": bits_of(constants.FLOCK)},
    **_alike(("dup3", "pipe2"), {"flags": _PIPE_FLAGS}),
    "memfd_create": {"flags": bits_of(constants.MEMFD)},
    "getcwd": {"buf": Shape(lambda view, raw: pointer(raw) if view.failed else PATH.show(view, raw), out=True)},
    **_alike(("mkdirat", "mkdir", "creat"), {"mode": MODE}),
    **_alike(("mknodat", "mknod"), {"mode": NODE_MODE}),
    "unlinkat": {"flag": bits_of(constants.AT_UNLINK)},
    "linkat": {"flags": bits_of(constants.AT_LINK)},
    "renameat2": {"flags": bits_of(constants.RENAME)},
    **_alike(("openat", "open"), {"flags": OPEN_FLAGS, "mode": MODE}),
    "close_range": {"flags": bits_of(constants.CLOSE_RANGE)},
    "ioctl": {"cmd": one_of(constants.IOCTL, "IOC")},
    "fcntl": {"cmd": one_of(constants.FCNTL, "F")},
    **_alike(("splice", "tee", "vmsplice"), {"flags": bits_of(constants.SPLICE)}),
    "inotify_init1": {"flags": bits_of(constants.INOTIFY)},
    "inotify_add_watch": {"mask": bits_of(constants.INOTIFY_MASK)},
    "mmap": {"flags": _MAP_FLAGS},
    "mremap": {"flags": bits_of(constants.REMAP)},
    "mincore": {"vec": RESULT_ADDRESS},
    "msync": {"flags": bits_of(constants.SYNC)},
    "mlock2": {"flags": bits_of(constants.MLOCK2)},
    "mlockall": {"flags": bits_of(constants.MLOCKALL)},
    "epoll_create1": {"flags": bits_of(constants.EPOLL_CREATE)},
    "epoll_ctl": {"op": one_of(constants.EPOLL_CTL, "EPOLL_CTL")},
    "epoll_pwait2": {"timeout": structures.TIMESPEC},
    "eventfd2": {"flags": bits_of(constants.EVENTFD)},
    "getrandom": {"ubuf": _RANDOM, "flags": bits_of(constants.GETRANDOM)},
    "getgroups": {"grouplist": _GROUPS_OUT},
    "setgroups": {"grouplist": _GROUPS},
    "uname": {"name": structures.UTSNAME},
    "sysinfo": {"info": structures.SYSINFO},
    "getrusage": {"who": one_of(constants.USAGE_WHO, "RUSAGE")},
    "prctl": {"option": one_of(constants.PRCTL, "PR")},
    "arch_prctl": {"option": Shape(lambda view, raw: constants.ARCH_PRCTL.get(raw) or choice({}, raw, "ARCH"))},
    "execveat": {"fd": DIRECTORY, "flags": bits_of(constants.AT_STAT)},
    "wait4": {"options": bits_of(constants.WAIT4)},
    "waitid": {"which": one_of(constants.WAITID, "P"), "options": bits_of(constants.WAIT)},
    "sched_getaffinity": {"user_mask_ptr": _CPU_MASK_OUT},
    "sched_setaffinity": {"user_mask_ptr": _CPU_MASK},
    **_alike(("getpriority", "setpriority"), {"which": _PRIORITY}),
    "membarrier": {"cmd": bits_of(constants.MEMBARRIER, "MEMBARRIER_CMD_QUERY")},
    "perf_event_open": {"attr": structures.PERF_EVENT_ATTR, "group_fd": DESCRIPTOR, "flags": bits_of(constants.PERF)},
    "rt_sigprocmask": {"how": one_of(constants.SIG_HOW, "SIG")},
    "rt_sigtimedwait": {"uinfo": structures.SIGINFO_OUT},
    **_alike(("rt_sigqueueinfo", "rt_tgsigqueueinfo"), {"uinfo": structures.SIGINFO}),
    "signalfd4": {"flags": bits_of(constants.SIGNALFD)},
    **_alike(("clock_nanosleep", "timer_settime"), {"flags": bits_of(constants.TIMER_FLAGS)}),
    **_alike(("getitimer", "setitimer"), {"which": _ITIMER}),
    "timerfd_create": {"flags": bits_of(constants.TIMERFD)},
    "timerfd_settime": {"flags": bits_of(constants.TIMERFD_SETTIME)},
    "socket": {"protocol": INT},
    "accept4": {"flags": _SOCKET_FLAGS},
    "shutdown": {"how": one_of(constants.SHUTDOWN, "SHUT")},
    "setsockopt": {"optval": Shape(_option_in)},
    "getsockopt": {"optval": Shape(_option_out, out=True)},
    "sendto": {"flags": _MESSAGE_FLAGS, "addr": structures.sockaddr(5)},
    "recvfrom": {"ubuf": bytes_out(), "flags": _MESSAGE_FLAGS, "addr": structures.sockaddr_out(5)},
    "sendmsg": {"msg": structures.MESSAGE, "flags": _MESSAGE_FLAGS},
    "recvmsg": {"msg": structures.MESSAGE_OUT, "flags": _MESSAGE_FLAGS},
    **_alike(("sendmmsg", "recvmmsg"), {"flags": _MESSAGE_FLAGS}),
    "pidfd_getfd": {"fd": INT},
}


def _default(parameter: Parameter) -> Shape:
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
            Argument(index, known.get(parameter.name) or _default(parameter))
            for index, parameter in enumerate(row.parameters())
            if parameter.shown is not Shown.UNUSED
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
