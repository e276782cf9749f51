"""Limits: a process's resource limits (getrlimit(2)), pinned, never the host's."""

from __future__ import annotations

INFINITY = (1 << 64) - 1

# uapi/asm-generic/resource.h
RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_RSS, RLIMIT_NPROC, RLIMIT_NOFILE = range(8)
RLIMIT_MEMLOCK, RLIMIT_AS, RLIMIT_LOCKS, RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE, RLIMIT_NICE, RLIMIT_RTPRIO = range(8, 15)
RLIMIT_RTTIME = 15
RLIM_NLIMITS = 16
MAX_OPEN_FILES = 1 << 20  # fs.nr_open: what RLIMIT_NOFILE can be

# What Linux gives its first process (asm-generic/resource.h), with a descriptor limit that programs expect.
INITIAL: dict[int, tuple[int, int]] = {
    RLIMIT_STACK: (8 << 20, INFINITY),
    RLIMIT_CORE: (0, INFINITY),
    RLIMIT_NPROC: (31_192, 31_192),
    RLIMIT_NOFILE: (1024, 524_288),
    RLIMIT_MEMLOCK: (8 << 20, 8 << 20),
    RLIMIT_SIGPENDING: (31_192, 31_192),
    RLIMIT_MSGQUEUE: (819_200, 819_200),
    RLIMIT_NICE: (0, 0),
    RLIMIT_RTPRIO: (0, 0),
}


MAX_ARG_STRLEN = 32 << 12  # bytes of one string of an execve, with its NUL (uapi/linux/binfmts.h)
ARGUMENT_FLOOR, ARGUMENT_CEILING = 128 << 10, 6 << 20  # ARG_MAX; three quarters of _STK_LIM


def argument_limit(stack_limit: int) -> int:
    """Bytes that the strings of an execve and the pointers to them may have (fs/exec.c, bprm_stack_limits)."""
    return max(min(stack_limit // 4, ARGUMENT_CEILING), ARGUMENT_FLOOR)


class Limits:
    """Resource -> (soft, hard)."""

    def __init__(self) -> None:
        self._limits = {resource: INITIAL.get(resource, (INFINITY, INFINITY)) for resource in range(RLIM_NLIMITS)}

    def get(self, resource: int) -> tuple[int, int]:
        return self._limits[resource]

    def soft(self, resource: int) -> int:
        return self._limits[resource][0]

    def set(self, resource: int, soft: int, hard: int) -> None:
        self._limits[resource] = (soft, hard)

    def copy(self) -> Limits:
        copy = Limits()
        copy._limits = dict(self._limits)
        return copy

    def __contains__(self, resource: int) -> bool:
        return resource in self._limits
