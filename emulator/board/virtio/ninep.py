"""NineP: carries messages of 9P. VIRTIO 1.2, "9P Transport"; the kernel's include/uapi/linux/virtio_9p.h."""

from __future__ import annotations

import os
import struct

from emulator.board.ninep.server import Server
from emulator.board.ninep.share import Share
from emulator.board.ninep.wire import BadMessage
from emulator.board.virtio.device import Answering
from emulator.board.virtio.queue import BrokenQueue, Chain

MOUNT_TAG = 1  # feature


class NineP(Answering):
    name, number, features = "virtio-9p", 9, MOUNT_TAG

    def __init__(self, tag: str, share: Share) -> None:
        data = os.fsencode(tag)
        self.configuration = struct.pack("<H", len(data)) + data
        self._server = Server(share)

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
