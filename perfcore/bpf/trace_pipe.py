"""trace_pipe: what bpf_trace_printk() prints. kernel/trace/trace_output.c"""

from __future__ import annotations

from collections import deque

from emulator.cpu import Cpu
from emulator.linux.errors import EAGAIN, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDONLY, POLLIN, POLLRDNORM, Caller, File
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import WaitQueue

TRACE_PIPE = "/sys/kernel/tracing/trace_pipe"
_KEPT_BYTES = 1 << 20  # older lines go


class TraceBuffer:
    """Lines that nobody has read yet."""

    def __init__(self) -> None:
        self.readers = WaitQueue()
        self._lines: deque[bytes] = deque()
        self._bytes = 0

    def add(self, cpu: Cpu, task: Task | None, now_ns: int, text: bytes) -> None:
        comm, tid = ("<idle>", 0) if task is None else (task.comm, task.tid)
        seconds, rest = divmod(now_ns, 1_000_000_000)
        head = f"{comm:>16}-{tid:<7} [{cpu.number:03}] ..... {seconds:5}.{rest // 1000:06}: bpf_trace_printk: "
        line = head.encode("utf-8", "surrogateescape") + text.removesuffix(b"\n") + b"\n"
        self._lines.append(line)
        self._bytes += len(line)
        while self._bytes > _KEPT_BYTES:
            self._bytes -= len(self._lines.popleft())
        self.readers.wake()

    def __bool__(self) -> bool:
        return bool(self._lines)

    def take(self, most: int) -> bytes:
        """Whole lines, as many as there is room for; of one that is longer a part."""
        taken = bytearray()
        while self._lines and (not taken or len(taken) + len(self._lines[0]) <= most):
            taken += self._lines.popleft()
        self._bytes -= len(taken)
        if len(taken) > most:
            self._lines.appendleft(bytes(taken[most:]))
            self._bytes += len(taken) - most
        return bytes(taken[:most])


class TracePipe(File):
    """An open trace_pipe: who reads waits for lines, and takes them."""

    def __init__(self, buffer: TraceBuffer, flags: int) -> None:
        super().__init__(O_RDONLY | flags, TRACE_PIPE)
        self._buffer = buffer

    def read(self, task: Caller, destination: Destination) -> int:
        if not self._buffer:
            raise LinuxError(EAGAIN, "nothing has been printed")
        return destination.give_whole(self._buffer.take(destination.left))

    def poll(self) -> int:
        return POLLIN | POLLRDNORM if self._buffer else 0

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        return (self.changed, self._buffer.readers)
