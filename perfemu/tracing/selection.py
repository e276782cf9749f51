"""Selection: which system calls and signals are shown: ``-e openat,read``, ``-e trace=%file``, ``-e signal=none``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from emulator.linux.syscalls.names import syscall_names
from perfemu.errors import UsageError
from perfemu.tracing.values import signal_name

# What strace(1) means by its classes, of the calls that there are.
CLASSES: Mapping[str, str] = {
    "%process": "clone clone3 fork vfork execve execveat exit exit_group wait4 waitid unshare kill tkill tgkill "
    "rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal",
    "%network": "socket socketpair bind connect listen accept accept4 getsockname getpeername sendto recvfrom sendmsg "
    "recvmsg sendmmsg recvmmsg shutdown setsockopt getsockopt",
    "%signal": "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo "
    "rt_tgsigqueueinfo sigaltstack kill tkill tgkill signalfd signalfd4 pause pidfd_send_signal",
    "%ipc": "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl",
    "%memory": "brk mmap munmap mprotect mremap madvise mincore msync mlock mlock2 munlock mlockall munlockall mbind "
    "set_mempolicy get_mempolicy shmat shmdt remap_file_pages pkey_mprotect process_madvise",
    "%desc": "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 lseek sendfile copy_file_range "
    "open openat openat2 creat close close_range dup dup2 dup3 fcntl fstat newfstatat statx fstatfs fchmod fchown "
    "ftruncate fallocate flock fsync fdatasync sync_file_range fadvise64 readahead getdents getdents64 fchdir pipe "
    "pipe2 poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 "
    "eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime memfd_create ioctl mmap "
    "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch splice tee vmsplice perf_event_open pidfd_open",
    "%clock": "clock_gettime clock_settime clock_getres clock_nanosleep gettimeofday settimeofday time adjtimex",
    "%creds": "getuid geteuid getgid getegid getresuid getresgid setuid setgid setreuid setregid setresuid setresgid "
    "setfsuid setfsgid getgroups setgroups capget capset prctl",
    "%stat": "stat",
    "%lstat": "lstat",
    "%fstat": "fstat newfstatat",
    "%%stat": "stat lstat fstat newfstatat statx",
    "%file": "access acct chdir chmod chown chroot creat execve execveat faccessat faccessat2 fchmodat fchmodat2 "
    "fchownat futimesat getcwd getxattr inotify_add_watch lchown lgetxattr link linkat listxattr llistxattr "
    "lremovexattr lsetxattr lstat mkdir mkdirat mknod mknodat mount name_to_handle_at newfstatat open openat openat2 "
    "quotactl readlink readlinkat removexattr rename renameat renameat2 rmdir setxattr stat statfs statx swapoff "
    "swapon symlink symlinkat truncate umount2 unlink unlinkat uselib utime utimensat utimes",
}
ALL_CALLS = frozenset(name for isa in ("aarch64", "x86_64") for name in syscall_names(isa).values())
_SHORT = {"file", "process", "network", "signal", "ipc", "memory", "desc"}  # strace takes these without %
_ALIASES = {"%net": "%network", "%proc": "%process", "%mem": "%memory"}


@dataclass(frozen=True, slots=True)
class Selection:
    """What is shown. None: everything."""

    calls: frozenset[str] | None = None
    signals: frozenset[str] | None = None
    only_failed: bool = False
    only_successful: bool = False

    def shows(self, call: str) -> bool:
        return self.calls is None or call in self.calls

    def shows_signal(self, number: int) -> bool:
        return self.signals is None or signal_name(number) in self.signals

    def shows_result(self, failed: bool) -> bool:
        return not (self.only_failed and not failed) and not (self.only_successful and failed)


def parse(expressions: Iterable[str], *, failed: bool = False, successful: bool = False) -> Selection:
    """The ``-e`` options; the last one of a kind holds. Raises UsageError."""
    calls: frozenset[str] | None = None
    signals: frozenset[str] | None = None
    for expression in expressions:
        kind, equals, rest = expression.partition("=")
        if not equals:
            kind, rest = "trace", expression
        if kind in ("trace", "t"):
            calls = _calls(rest)
        elif kind in ("signal", "signals", "s"):
            signals = _signals(rest)
        elif kind == "status" and rest in ("failed", "successful"):
            failed, successful = rest == "failed", rest == "successful"
        else:
            raise UsageError(f"trace -e {expression}: there is trace=SET, signal=SET and status=failed or =successful")
    return Selection(calls, signals, failed, successful)


def _calls(text: str) -> frozenset[str] | None:
    known = ALL_CALLS
    text, inverted = _inverted(text)
    if text in ("all", "none"):
        return None if (text == "all") != inverted else frozenset()
    chosen: set[str] = set()
    for item in filter(None, text.split(",")):
        chosen |= _item(item, known)
    return known - chosen if inverted else frozenset(chosen)


def _item(item: str, known: frozenset[str]) -> set[str]:
    """One of the set: a call, a class, or ``/REGEX``. With ``?`` before it, it need not exist."""
    name = item.removeprefix("?")
    name = f"%{name}" if name in _SHORT else _ALIASES.get(name, name)
    if name.startswith("/"):
        try:
            found = {call for call in known if re.search(name[1:], call)}
        except re.error as problem:
            raise UsageError(f"trace -e {item}: {problem}") from None
    elif name in CLASSES:
        return set(known & set(CLASSES[name].split()))
    else:
        found = {name} & known
    if not found and not item.startswith("?"):
        near = difflib.get_close_matches(name, [*known, *CLASSES], n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(f"trace -e {item}: no such system call or class{hint}")
    return found


def _signals(text: str) -> frozenset[str] | None:
    known = {signal_name(number) for number in range(1, 65)}
    text, inverted = _inverted(text)
    if text in ("all", "none"):
        return None if (text == "all") != inverted else frozenset()
    chosen = set()
    for item in filter(None, text.split(",")):
        name = signal_name(int(item)) if item.isdecimal() else item.upper()
        name = name if name.startswith("SIG") else f"SIG{name}"
        if name not in known:
            raise UsageError(f"trace -e signal={item}: no such signal")
        chosen.add(name)
    return frozenset(known - chosen) if inverted else frozenset(chosen)


def _inverted(text: str) -> tuple[str, bool]:
    return (text[1:], True) if text.startswith("!") else (text, False)
