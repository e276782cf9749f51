"""BPF programs without a guest: verified, compiled and run by a kernel of which they see nothing."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from emulator._native import PhysicalMemory
from emulator.linux.errors import EFAULT, LinuxError
from emulator.linux.fs.file import FileTable
from emulator.linux.tracepoints import Tracepoints
from perfcore.abi.bpf import ATTR_BYTES, LAYOUTS, Cmd, MapFlag, MapType, ProgType
from perfcore.bpf.compiler import compile_program
from perfcore.bpf.instructions import LOAD_IMM64, PSEUDO_MAP_FD, Instruction
from perfcore.bpf.log import Log
from perfcore.bpf.maps.kinds import MAP_KINDS
from perfcore.bpf.maps.map import Map, MapRequest
from perfcore.bpf.program import Loaded, Program
from perfcore.bpf.request import Request
from perfcore.bpf.subsystem import Bpf
from perfcore.bpf.verifier.state import Kind, Reg
from perfcore.bpf.verifier.subject import Subject
from perfcore.bpf.verifier.verifier import verify
from perfcore.events.settings import Settings

LOG_BYTES = 1 << 20


@dataclass
class Workbench:
    """A `Bpf` and what it has said."""

    isa: str = "x86_64"
    said: list[str] = field(default_factory=list)
    executed: int = 0  # instructions of the guest's

    def __post_init__(self) -> None:
        cpu = SimpleNamespace(number=0, core=SimpleNamespace(total=lambda probe: self.executed))
        self.cpu: Any = cpu
        kernel = SimpleNamespace(
            memory=PhysicalMemory(64 << 20),
            cpus=[cpu],
            executing_cpu=cpu,
            architecture=SimpleNamespace(isa=self.isa),
            current=lambda cpu: None,
            tasks={},
            tracepoints=Tracepoints(),
            clock=SimpleNamespace(monotonic_ns=lambda: 5000),
            name_once=self.said.append,
        )
        self.settings = Settings()
        self.bpf = Bpf(cast(Any, kernel), self.settings)
        self.log = Log(1, LOG_BYTES, 1)

    def map(self, type: MapType, key: int, value: int, entries: int, flags: int = 0) -> Map:
        made = MAP_KINDS[type](MapRequest(type, key, value, entries, MapFlag(flags)), self.bpf)
        self.bpf.maps.add(made)
        return made

    def load(
        self, instructions: Sequence[Instruction], maps: Sequence[Map] = (), type: ProgType = ProgType.RAW_TRACEPOINT
    ) -> Program:
        """`maps`: by the descriptors that the instructions have. Raises Refusal."""
        self.log = Log(1, LOG_BYTES, 1)
        subject = Subject(self.bpf.kinds[type], instructions, True, self.log, self.bpf.kernel_types)
        named = {
            pc: maps[each.imm]
            for pc, each in enumerate(instructions)
            if each.opcode == LOAD_IMM64 and each.src == PSEUDO_MAP_FD
        }
        subject.immediates = {pc: Reg(Kind.MAP_PTR, map=map) for pc, map in named.items()}
        entries = verify(subject).entries
        constants = {pc: self.bpf.address_of(map) for pc, map in named.items()}
        functions = compile_program(instructions, entries, constants)
        return Program(self.bpf, Loaded(type, b"it", instructions, functions, tuple(maps), True, 0, None, 0, 0, 0))

    def run(self, program: Program, context: bytes = b"") -> int:
        return self.bpf.run(program, context, self.cpu)


def insn(opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> Instruction:
    return Instruction(opcode, dst, src, offset, imm)


def bpf_attr(command: Cmd, fields: Mapping[str, int]) -> bytes:
    """The union with these fields set."""
    data = bytearray(ATTR_BYTES)
    for name, value in fields.items():
        offset, code = LAYOUTS[command].fields[name]
        size = struct.calcsize(code)
        data[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(data)


class Process:
    """Who calls bpf(2): its memory has these few places, all of it can be written, and whatever it may do, it may."""

    def __init__(self, memory: Mapping[int, bytes], files: FileTable) -> None:
        self.memory = dict(memory)
        self.files = files
        self.credentials = SimpleNamespace(has=lambda capability: True, uid=0)
        self.mm = SimpleNamespace(
            read=self._read, read_string=lambda address, most: self.memory[address], write=lambda address, data: None
        )

    def _read(self, address: int, size: int) -> bytes:
        if address not in self.memory:
            raise LinuxError(EFAULT, f"{address:#x}")
        return self.memory[address][:size]

    def request(self, command: Cmd, **fields: int) -> Request:
        return Request(cast(Any, self), 0, ATTR_BYTES, bpf_attr(command, fields))
