"""NineP: carries messages of 9P. VIRTIO 1.2, "9P Transport"; the kernel's include/uapi/linux/virtio_9p.h."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence

from emulator.board.ninep.server import Server
from emulator.board.ninep.share import Share
from emulator.board.ninep.wire import BadMessage
from emulator.board.virtio.device import Answering
from emulator.board.virtio.queue import BrokenQueue, Chain, Queue

MOUNT_TAG = 1  # feature


class NineP(Answering):
    name, number, features = "virtio-9p", 9, MOUNT_TAG
    kept = "_server", "_asked"

    def __init__(self, tag: str, share: Share) -> None:
        data = os.fsencode(tag)
        self.configuration = struct.pack("<H", len(data)) + data
        self._server = Server(share)
        self._asked = False  # while it is held
        self._tell: Callable[[], None] | None = None
        self.attend: Callable[[int], None] | None = None  # the transport's

    def hold(self, tell: Callable[[], None]) -> None:
        """Nothing is answered until `release`. `tell` is called when there is something to answer first."""
        self._tell = tell

    def release(self) -> None:
        """What has been asked meanwhile is answered now."""
        self._tell = None
        if self._asked:
            assert self.attend is not None, "it has a transport"
            self.attend(0)

    def notified(self, number: int, queues: Sequence[Queue]) -> bool:
        if self._tell is None:
            return super().notified(number, queues)
        if not self._asked:
            self._asked = True
            self._tell()
        return False

    def answer(self, number: int, chain: Chain) -> int:
        try:
            answer = self._server.answer(chain.read())
        except BadMessage as problem:
            raise BrokenQueue(str(problem)) from None
        if len(answer) > chain.room:
            raise BrokenQueue(f"room for {chain.room} bytes of an answer of {len(answer)}")
        return chain.write(answer)

    def reset(self) -> None:
        self._server.reset()
