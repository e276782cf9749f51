"""LinuxConfig: what fixes the behaviour of a machine's Linux, besides the machine's own."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.linux.fs.binds import Bind

MOST_TASKS = 4096
MOST_OUTPUT_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class LinuxConfig:
    """Equal ones give equal runs, on any host whose files are the same."""

    sysroot: str | None = None  # looked up before the plain path, as qemu-user's -L
    writable_paths: tuple[str, ...] = ()  # besides the current directory and /tmp
    binds: tuple[Bind, ...] = ()  # the host's files at the guest's paths
    isolated: bool = False  # nothing of the host is there but what is bound
    most_tasks: int = MOST_TASKS  # processes and threads that there may be at once
    most_output_bytes: int = MOST_OUTPUT_BYTES  # that the guest may write to the host's files and streams
    user: tuple[int, int] = (0, 0)  # uid and gid of the first process
    vdso: bool = True  # False: as Linux booted with vdso=0, which answers each call itself
