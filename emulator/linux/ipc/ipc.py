"""Ipc: the machine's objects of System V, of all kinds, and POSIX's message queues."""

from __future__ import annotations

from emulator.linux.ipc.message_queues import MessageQueues
from emulator.linux.ipc.posix_queues import PosixQueue
from emulator.linux.ipc.semaphores import Semaphores
from emulator.linux.ipc.shared_segments import Attachments, SharedSegments
from emulator.linux.mm.page_cache import PageCache


class Ipc:
    """Shared segments, semaphores and message queues, which all processes of a machine see (an IPC namespace)."""

    def __init__(self, pages: PageCache, attachments: Attachments) -> None:
        self.segments = SharedSegments(pages, attachments)
        self.semaphores = Semaphores()
        self.queues = MessageQueues()
        self.posix_queues: dict[str, PosixQueue] = {}  # by name
