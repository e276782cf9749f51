"""Ipc: the machine's objects of System V, of all kinds."""

from __future__ import annotations

from emulator.linux.message_queues import MessageQueues
from emulator.linux.page_cache import PageCache
from emulator.linux.semaphores import Semaphores
from emulator.linux.shared_segments import Attachments, SharedSegments


class Ipc:
    """Shared segments, semaphores and message queues, which all processes of a machine see (an IPC namespace)."""

    def __init__(self, pages: PageCache, attachments: Attachments) -> None:
        self.segments = SharedSegments(pages, attachments)
        self.semaphores = Semaphores()
        self.queues = MessageQueues()
