"""Program: one that has been verified and compiled, and what it is run for."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from emulator.cpu import Cpu
from perfcore.abi.bpf import AttachType, ProgType
from perfcore.bpf.btf import Btf
from perfcore.bpf.instructions import LOAD_IMM64, PSEUDO_MAP_FD, PSEUDO_MAP_VALUE, Instruction, encode
from perfcore.bpf.maps.map import Map
from perfcore.bpf.objects import Shared
from perfcore.bpf.registers import kernel_registers, probe_registers, user_registers
from perfcore.bpf.run import Call, Reader
from perfcore.bpf.types.vmlinux import Target
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from perfcore.events.programs import OverflownEvent, Register

TAG_BYTES = 8


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a program of type TRACING is for. `program`: whose function, else the kernel's; `number`: its type's."""

    type: AttachType
    target: Target
    number: int
    program: Program | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What BPF_PROG_LOAD has made of a request."""

    type: ProgType
    name: bytes
    instructions: Sequence[Instruction]
    functions: dict[int, Callable[..., int]]
    maps: tuple[Map, ...]
    gpl: bool
    uid: int
    btf: Btf | None
    last_context_byte: int
    verified_insns: int
    load_time_ns: int
    expected_attach_type: int = 0
    attachment: Attachment | None = None  # of a program of type TRACING: what it is for
    function_types: tuple[tuple[int, int], ...] = ()  # of its functions: their first instruction, and type


class Traced(Protocol):
    """Who is run with the program (trampolines.Trampoline)."""

    def entered(self, cpu: Cpu, arguments: Sequence[int], read: Reader | None) -> None: ...
    def returned(self, cpu: Cpu, arguments: Sequence[int], result: int, read: Reader | None) -> None: ...


class Runner(Protocol):
    """Who runs programs."""

    @property
    def kernel(self) -> Linux: ...

    def run(
        self,
        program: Program,
        context: bytes,
        cpu: Cpu,
        *,
        event: PerfEvent | None = None,
        cookie: int = 0,
        probed: int = 0,
        call: Call | None = None,
        read: Reader | None = None,
    ) -> int: ...
    def ended(self, program: Program) -> None: ...


class Program(Shared):
    """As events and links have it."""

    def __init__(self, runner: Runner, loaded: Loaded, discharge: Callable[[], None] = lambda: None) -> None:
        """`discharge`: is called when it ends."""
        self.id = 0
        self.loaded = loaded
        self.maps: list[Map] = list(loaded.maps)
        self.functions = loaded.functions
        self.misses = 0  # runs that did not take place because one was under way
        self.active = False  # of those that are not run while they run
        self.traced_by: Traced | None = None
        self._runner = runner
        self._discharge = discharge
        self.tag = _tag(loaded.instructions)
        for map in self.maps:
            map.retain()
        if loaded.btf is not None:
            loaded.btf.retain()
        if loaded.attachment is not None and loaded.attachment.program is not None:
            loaded.attachment.program.retain()

    @property
    def attachment(self) -> Attachment | None:
        return self.loaded.attachment

    @property
    def type(self) -> ProgType:
        return self.loaded.type

    @property
    def last_context_byte(self) -> int:
        return self.loaded.last_context_byte

    def bind(self, map: Map) -> None:
        """BPF_PROG_BIND_MAP: the map stays as long as the program."""
        if map not in self.maps:
            map.retain()
            self.maps.append(map)

    def end(self) -> None:
        self._runner.ended(self)
        self._discharge()
        for map in self.maps:
            map.release()
        self.maps.clear()
        if self.loaded.btf is not None:
            self.loaded.btf.release()
        if self.attachment is not None and self.attachment.program is not None:
            self.attachment.program.release()

    # ---- what it is run for

    def on_overflow(self, cpu: Cpu, event: OverflownEvent, cookie: int, period: int, address: int) -> bool:
        assert isinstance(event, PerfEvent), "events run programs"
        context = user_registers(self._runner.kernel.architecture, cpu) + struct.pack("<2Q", period, address)
        return bool(self._runner.run(self, context, cpu, event=event, cookie=cookie))

    def on_tracepoint(self, cpu: Cpu, cookie: int, raw: bytes) -> bool:
        return bool(self._runner.run(self, raw, cpu, cookie=cookie))

    def on_probe(self, cpu: Cpu, cookie: int, places: tuple[int, ...], register: Register) -> bool:
        address, architecture = places[0], self._runner.kernel.architecture
        if address >> 63:
            context = kernel_registers(architecture, register, address if len(places) == 1 else None)
        else:
            context = probe_registers(architecture, register)
        return bool(self._runner.run(self, context, cpu, cookie=cookie, probed=address))

    def on_raw_tracepoint(self, cpu: Cpu, cookie: int, arguments: Sequence[int]) -> None:
        context = struct.pack(f"<{len(arguments)}Q", *(argument & (1 << 64) - 1 for argument in arguments))
        self._runner.run(self, context, cpu, cookie=cookie)

    def on_function(self, cpu: Cpu, cookie: int, call: Call, address: int, read: Reader | None) -> None:
        """As a function begins, or has returned."""
        words = call.arguments if call.returned is None else (*call.arguments, call.returned)
        context = struct.pack(f"<{len(words)}Q", *(word & (1 << 64) - 1 for word in words))
        self._runner.run(self, context, cpu, cookie=cookie, probed=address, call=call, read=read)


def _tag(instructions: Sequence[Instruction]) -> bytes:
    """bpf_prog_calc_tag(): SHA-1 of the instructions, without the maps' descriptors."""
    cleared = list(instructions)
    for pc, instruction in enumerate(instructions):
        if instruction.opcode == LOAD_IMM64 and instruction.src in (PSEUDO_MAP_FD, PSEUDO_MAP_VALUE):
            cleared[pc] = instruction._replace(imm=0)
            cleared[pc + 1] = instructions[pc + 1]._replace(imm=0)
    return hashlib.sha1(encode(cleared), usedforsecurity=False).digest()[:TAG_BYTES]
