"""Host limits: what the host allows this process by default is too little for a machine in it."""

from __future__ import annotations

import resource
from contextlib import suppress

from perfemu.errors import PerfemuError

_CPU_BYTES = 72 << 20  # of address space for each, its translations most of all; as measured
_OTHER_BYTES = 128 << 20  # Python, libraries, a core's models


def address_space_kib() -> int | None:
    """What ``ulimit -v`` allows this process; None if it sets no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft >> 10


def check_address_space(memory_bytes: int, cpus: int) -> None:
    """PerfemuError if ``ulimit -v`` leaves no room for a machine: the engine would end this process without a word."""
    limit = address_space_kib()
    if limit is not None and (memory_bytes + cpus * _CPU_BYTES + _OTHER_BYTES) >> 10 > limit:
        machine = f"a machine with {memory_bytes >> 20} MiB of memory and {cpus} CPU{'s'[: cpus > 1]}"
        raise PerfemuError(f"{machine} is more than ulimit -v {limit} leaves: --memory wants less")


def raise_descriptor_limit() -> None:
    """Allow as many host descriptors as the user may have: each host file that a guest maps keeps one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # then the guest is told EMFILE earlier
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
