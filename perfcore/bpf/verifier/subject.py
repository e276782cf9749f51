"""Subject: a program that is to be verified, and what is known of it before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perfcore.bpf.instructions import Instruction
from perfcore.bpf.log import Log
from perfcore.bpf.program_kind import ProgramKind
from perfcore.bpf.types.vmlinux import KernelTypes
from perfcore.bpf.verifier.state import Reg
from perfcore.bpf.verifier.traced import Traced


@dataclass(slots=True)
class Subject:
    """`immediates`: what 64-bit immediates load that are more than numbers, by instruction."""

    kind: ProgramKind
    instructions: Sequence[Instruction]
    gpl: bool
    log: Log
    kernel_types: Callable[[], KernelTypes]
    immediates: Mapping[int, Reg] = field(default_factory=dict)
    traced: Traced | None = None  # what it is given, where BTF says so
    object_loads: dict[int, bool] = field(default_factory=dict)  # loads by instruction: whether of kernel objects
    last_context_byte: int = 0  # max_ctx_offset: of what it reads of its context
    last_id: int = 0
    work: int = 0  # what it takes to look at it: 1 for each instruction, and for states and lines of the log

    def new_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def reads_context(self, end: int) -> None:
        self.last_context_byte = max(self.last_context_byte, end)
