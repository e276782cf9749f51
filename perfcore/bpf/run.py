"""Run: one execution of a program: its stack, its budget, and what its helpers ask of the machine."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from emulator.cpu import Cpu
from emulator.linux.errors import LinuxError
from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SignalInfo
from perfcore.bpf.instructions import FRAMES, MASK64, STACK_BYTES
from perfcore.bpf.kernel_objects import KernelObjects
from perfcore.bpf.maps.map import Map
from perfcore.bpf.maps.ringbuf import RingbufMap
from perfcore.bpf.memory import KernelMemory, Region
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux

BUDGET = 2_000_000  # instructions of one run; Linux has no such end, and its machine stands still meanwhile
_BYTES_SHIFT = 8  # 256 bytes are moved in the time of an instruction
_BYTES_OF_KEY_SHIFT = 3  # ... and 8 are kept
_OFFSET = (1 << 32) - 1
Views = Mapping[int, memoryview]
Reader = Callable[[int, int], "bytes | None"]
"""Some bytes at an address; None where there are none."""


class Call(NamedTuple):
    """Of a function that is traced: its arguments, those of them that are not known, and what it has returned."""

    arguments: tuple[int, ...]
    unknown: frozenset[int] = frozenset()
    returned: int | None = None


def _loader(code: str) -> Callable[[Views, int], int]:
    unpack = struct.Struct("<" + code).unpack_from

    def load(views: Views, address: int) -> int:
        value: int = unpack(views[address >> 32], address & _OFFSET)[0]
        return value

    return load


def _storer(code: str) -> Callable[[Views, int, int], None]:
    pack = struct.Struct("<" + code).pack_into

    def store(views: Views, address: int, value: int) -> None:
        pack(views[address >> 32], address & _OFFSET, value)

    return store


_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
LOADS = {size: _loader(code) for size, code in _CODES.items()}
STORES = {size: _storer(code) for size, code in _CODES.items()}


class Exhausted(Exception):
    """The run has come to the end of its budget."""


class Services(Protocol):
    """What helpers need that is not of one run."""

    @property
    def kernel(self) -> Linux: ...
    @property
    def memory(self) -> KernelMemory: ...
    @property
    def objects(self) -> KernelObjects: ...

    @property
    def max_stack(self) -> int:
        """kernel.perf_event_max_stack."""

    def map_at(self, address: int) -> Map: ...
    def random_u32(self) -> int: ...
    def print(self, cpu: Cpu, task: Task | None, text: bytes) -> None: ...
    def signal_task(self, task: Task, info: SignalInfo) -> None: ...
    def signal_process(self, task: Task, info: SignalInfo) -> None: ...


class Run:
    """While a program runs. `occasion` is what it runs for."""

    def __init__(
        self,
        services: Services,
        functions: Mapping[int, Callable[..., int]],
        stack: int,
        cpu: Cpu,
        task: Task | None,
        *,
        event: PerfEvent | None = None,
        cookie: int = 0,
        probed: int = 0,
        budget: int = BUDGET,
        call: Call | None = None,
        read_more: Reader | None = None,
    ) -> None:
        self.services = services
        self.functions = functions
        self.memory = Metered(self)
        self.views = services.memory.views
        self.cpu = cpu
        self.task = task
        self.event = event  # that has overflowed
        self.cookie = cookie
        self.probed = probed  # the address of the probed instruction, or function
        self.call = call
        self._read_more = read_more  # what is known there and then
        self.reserved: dict[int, RingbufMap] = {}  # records that are not given back yet
        self._stack = stack
        self._frames = 0
        self._budget = self.given = budget
        self._keys: list[Region] = []  # that callbacks are shown

    @property
    def spent(self) -> int:
        return self.given - self._budget

    def enter(self, instructions: int) -> int:
        """A function of the program begins: its frame pointer."""
        self.spend(instructions)
        self._frames += 1
        assert self._frames <= FRAMES, "the verifier knows how deep calls go"
        return self._stack + STACK_BYTES * (FRAMES - self._frames + 1)

    def leave(self) -> None:
        self._frames -= 1

    def read_kernel(self, address: int, size: int) -> bytes | None:
        """Of what the modelled kernel has: BPF's own memory, and its objects as far as they are known."""
        if not address >> 63:
            return None
        found = self._read_more(address, size) if self._read_more is not None else None
        if found is None:
            found = self.services.objects.read(address, size, self.cpu)
        if found is not None:
            return found
        try:
            return self.memory.read(address, size)
        except LinuxError:
            return None

    def load_object(self, address: int, size: int) -> int:
        """A member of an object; 0 where there is none, as where Linux meets a fault."""
        return int.from_bytes(self.read_kernel(address & MASK64, size) or b"", "little")

    def key_region(self, size: int) -> Region:
        """Where a callback finds a key. It stays until the run ends: programs may have kept the address."""
        self.spend(size >> _BYTES_OF_KEY_SHIFT)
        self._keys.append(self.memory.kernel.add(memoryview(bytearray(size))))
        return self._keys[-1]

    def finish(self) -> None:
        """The run is over, or was ended: what it has not given back goes."""
        for key in self._keys:
            self.memory.kernel.remove(key)
        self._keys.clear()
        for address, ringbuf in self.reserved.items():
            ringbuf.commit(address, 0, discard=True)
        self.reserved.clear()

    def spend_for_bytes(self, count: int) -> None:
        """For what is moved, or will be."""
        self.spend(count >> _BYTES_SHIFT)

    def spend(self, instructions: int) -> None:
        self._budget -= instructions
        if self._budget < 0:
            raise Exhausted


class Metered:
    """Memory as the helpers of a run reach it: what they move is paid out of its budget."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.kernel = run.services.memory

    def read(self, address: int, size: int) -> bytes:
        self._run.spend_for_bytes(size)
        return self.kernel.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        self._run.spend_for_bytes(len(data))
        self.kernel.write(address, data)


def call_helper(function: Callable[..., int], run: Run, *arguments: int) -> int:
    """What a helper returns, in 64 bits; an error as minus its number."""
    try:
        return function(run, *arguments) & MASK64
    except LinuxError as error:
        return -error.code & MASK64
