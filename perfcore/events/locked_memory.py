"""LockedMemory: what the buffers of guests hold of RAM, by user and by process. As perf_mmap counts it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

from emulator.linux.errors import EPERM, LinuxError
from emulator.linux.fs.file import Caller
from emulator.linux.mm.mapping import PAGE_SIZE
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.credentials import CAP_IPC_LOCK
from emulator.linux.process.limits import RLIMIT_MEMLOCK
from perfcore.events.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Charge:
    """Pages of one buffer: those within the user's limit, and those beyond it, which are the process's."""

    uid: int
    memory: MemoryMap
    of_user: int
    of_process: int


class LockedMemory:
    """user_struct.locked_vm, and mm_struct.pinned_vm."""

    def __init__(self, settings: Settings, cpus: int) -> None:
        self._settings = settings
        self._cpus = cpus
        self._of_users: Counter[int] = Counter()  # pages by uid
        self._of_processes: Counter[MemoryMap] = Counter()

    @property
    def pages(self) -> int:
        """Of all users and processes."""
        return self._of_users.total() + self._of_processes.total()

    def charge(self, task: Caller, pages: int) -> Charge:
        """For a buffer that `task` maps. EPERM: it is more than perf_event_mlock_kb and RLIMIT_MEMLOCK allow."""
        settings, credentials = self._settings, task.credentials
        for_user = (settings.mlock_kib << 10) // PAGE_SIZE * self._cpus
        uid, memory = credentials.uid, task.mm
        beyond = max(min(self._of_users[uid], for_user) + pages - for_user, 0)
        for_process = task.limits.soft(RLIMIT_MEMLOCK) // PAGE_SIZE
        limited = settings.paranoid > -1 and not credentials.has(CAP_IPC_LOCK)
        if limited and self._of_processes[memory] + beyond > for_process:
            raise LinuxError(EPERM, f"{pages} pages, with perf_event_mlock_kb {settings.mlock_kib} and RLIMIT_MEMLOCK")
        charge = Charge(uid, memory, pages - beyond, beyond)
        self._of_users[uid] += charge.of_user
        self._of_processes[memory] += charge.of_process
        return charge

    def release(self, charge: Charge) -> None:
        """The buffer is mapped nowhere any more."""
        _take(self._of_users, charge.uid, charge.of_user)
        _take(self._of_processes, charge.memory, charge.of_process)


def _take(counts: Counter[T], whose: T, pages: int) -> None:
    counts[whose] -= pages
    if not counts[whose]:
        del counts[whose]
