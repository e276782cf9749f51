"""LinuxError: a syscall's failure, and the errno numbers (uapi/asm-generic/errno*.h; the same on both ISAs)."""

from __future__ import annotations

EPERM = 1
ENOENT = 2
ESRCH = 3
EINTR = 4
EIO = 5
ENXIO = 6
E2BIG = 7
ENOEXEC = 8
EBADF = 9
ECHILD = 10
EAGAIN = 11
ENOMEM = 12
EACCES = 13
EFAULT = 14
ENOTBLK = 15
EBUSY = 16
EEXIST = 17
EXDEV = 18
ENODEV = 19
ENOTDIR = 20
EISDIR = 21
EINVAL = 22
ENFILE = 23
EMFILE = 24
ENOTTY = 25
ETXTBSY = 26
EFBIG = 27
ENOSPC = 28
ESPIPE = 29
EROFS = 30
EMLINK = 31
EPIPE = 32
EDOM = 33
ERANGE = 34
EDEADLK = 35
ENAMETOOLONG = 36
ENOLCK = 37
ENOSYS = 38
ENOTEMPTY = 39
ELOOP = 40
ENOMSG = 42
EIDRM = 43
ENODATA = 61
EOVERFLOW = 75
ELIBBAD = 80
ENOTSOCK = 88
EDESTADDRREQ = 89
EMSGSIZE = 90
EPROTOTYPE = 91
ENOPROTOOPT = 92
EPROTONOSUPPORT = 93
ESOCKTNOSUPPORT = 94
EOPNOTSUPP = 95
EPFNOSUPPORT = 96
EAFNOSUPPORT = 97
EADDRINUSE = 98
EADDRNOTAVAIL = 99
ENETDOWN = 100
ENETUNREACH = 101
ECONNABORTED = 103
ECONNRESET = 104
ENOBUFS = 105
EISCONN = 106
ENOTCONN = 107
ETIMEDOUT = 110
ECONNREFUSED = 111
EINPROGRESS = 115
ESTALE = 116
EDQUOT = 122

# Never seen by a guest: an interrupted call, to be tried again when the signal has been dealt with (linux/errno.h)
ENOTSUPP = 524  # include/linux/errno.h: not for user space, where bpf(2) and others let it out
ERESTARTSYS = 512  # ... unless a handler without SA_RESTART ran: EINTR
ERESTARTNOHAND = 514  # ... unless any handler ran: EINTR

NAMES = {value: name for name, value in list(globals().items()) if name.startswith("E") and isinstance(value, int)}


class LinuxError(Exception):
    """A syscall fails with errno `code`. `why`: what was wrong and what would be right; a guest sees only the code."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(code, why)
        self.code = code
        self.why = why

    @property
    def name(self) -> str:
        return NAMES.get(self.code, str(self.code))

    def __str__(self) -> str:
        return f"{self.name}: {self.why}" if self.why else self.name

    @classmethod
    def from_host(cls, error: OSError) -> LinuxError:
        """What the host said about a file that stands behind a guest's (the host is Linux: the same numbers)."""
        if error.errno == EPIPE:  # of a standard stream: one of the host's pipes
            return BrokenPipe(str(error), after_part=True)
        return cls(error.errno or EIO, str(error))


class BrokenPipe(LinuxError):
    """EPIPE of a pipe or a stream socket: it comes with SIGPIPE, unlike that of packets (`failures.fail`).

    `after_part`: even if part of what was to be written has been. So it is with pipes.
    """

    def __init__(self, why: str, *, after_part: bool = False) -> None:
        super().__init__(EPIPE, why)
        self.after_part = after_part


class _HostErrors:
    """``with host_errors:`` around what the host may refuse: its OSError is the guest's LinuxError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise LinuxError.from_host(error) from error


host_errors = _HostErrors()
