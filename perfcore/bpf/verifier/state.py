"""What is known of a program at one of its instructions: registers, the stack, what it has to give back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from perfcore.bpf.instructions import FRAME_POINTER, REGISTERS, STACK_BYTES
from perfcore.bpf.maps.map import Map
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.scalar import Scalar


class Kind(Enum):
    """enum bpf_reg_type, by the names of the kernel's log."""

    NOT_INIT = "?"
    SCALAR = "scalar"
    CTX = "ctx"
    STACK = "fp"
    MAP_PTR = "map_ptr"
    MAP_KEY = "map_key"
    MAP_VALUE = "map_value"
    MEM = "mem"
    FUNC = "func"
    OBJECT = "ptr"  # of the kernel's, of a type that BTF has: PTR_TO_BTF_ID


class Reg(NamedTuple):
    """A register, or what has been spilled to the stack."""

    kind: Kind
    scalar: Scalar = scalar.const(0)  # the number; of a pointer: how far it is from where it began
    map: Map | None = None
    frame: int = 0  # STACK: whose
    size: int = 0  # MEM: bytes. FUNC: its first instruction. OBJECT: the number of its type
    null: bool = False  # it may be, instead
    id: int = 0  # what has the same is the same: numbers in several registers; what is null together
    ref: int = 0  # of what has to be given back

    @property
    def is_pointer(self) -> bool:
        return self.kind not in (Kind.SCALAR, Kind.NOT_INIT)

    @property
    def is_null(self) -> bool:
        """The constant 0."""
        return self.kind is Kind.SCALAR and self.scalar.is_const and self.scalar.value == 0

    @property
    def type_name(self) -> str:
        return self.kind.value + "_or_null" * self.null

    def covers(self, other: Reg, ids: dict[int, int]) -> bool:
        """Whether what was found safe with this is so with `other`. `ids`: of this, and what those of the other are."""
        if self.kind is Kind.NOT_INIT:
            return True
        if self[:1] + self[2:6] != other[:1] + other[2:6] or not self.scalar.contains(other.scalar):
            return False
        for mine, its in ((self.id, other.id), (self.ref, other.ref)):
            if (mine and ids.setdefault(mine, its) != its) or (mine and not its):
                return False
        return True

    def __str__(self) -> str:
        if self.kind is Kind.SCALAR:
            return str(self.scalar) if self.scalar.is_const else f"scalar{self.scalar}"
        at = "" if self.scalar.is_const and not self.scalar.value else f"+{self.scalar}"
        frame = f"[{self.frame}]" if self.kind is Kind.STACK and self.frame else ""
        return self.type_name + frame + at


NOT_INIT = Reg(Kind.NOT_INIT)
UNKNOWN = Reg(Kind.SCALAR, scalar.UNKNOWN)


def number(known: Scalar, id: int = 0) -> Reg:
    return Reg(Kind.SCALAR, known, id=id)


class Spilled(NamedTuple):
    """What is known of some bytes of the stack, aligned to their size."""

    size: int
    reg: Reg


@dataclass(slots=True)
class Frame:
    """One call of a function of the program. `stack`: by the first byte, of which 0 is the lowest."""

    entry: int  # of the function
    returns_to: int  # the instruction where its caller goes on
    number: int = 0
    is_callback: bool = False  # of a helper, which is to be looked at again
    regs: list[Reg] = field(default_factory=list)
    stack: dict[int, Spilled] = field(default_factory=dict)
    depth: int = 0  # bytes of the stack that it uses

    @classmethod
    def new(cls, entry: int, returns_to: int, number: int, is_callback: bool = False) -> Frame:
        frame = cls(entry, returns_to, number, is_callback, [NOT_INIT] * REGISTERS)
        frame.regs[FRAME_POINTER] = Reg(Kind.STACK, frame=number)
        return frame

    def copy(self) -> Frame:
        return Frame(
            self.entry, self.returns_to, self.number, self.is_callback, list(self.regs), dict(self.stack), self.depth
        )

    def forget(self, first: int, size: int) -> None:
        """Nothing is known any more of these bytes of the stack."""
        stack = self.stack
        for start in [start for start, spilled in stack.items() if start < first + size and first < start + spilled[0]]:
            del stack[start]

    def store(self, first: int, size: int, reg: Reg) -> None:
        """`reg`, of which the low `size` bytes are kept."""
        self.forget(first, size)
        if not reg.is_pointer:
            known = scalar.truncated(reg.scalar, size)
            if known != scalar.UNKNOWN_BY_BYTES[size]:
                self.stack[first] = Spilled(size, Reg(Kind.SCALAR, known, id=reg.id if known == reg.scalar else 0))
        elif size == 8:
            self.stack[first] = Spilled(size, reg)

    def overlapping(self, first: int, size: int) -> Iterator[tuple[int, Spilled]]:
        for start, spilled in self.stack.items():
            if start < first + size and first < start + spilled.size:
                yield start, spilled

    def is_covered(self, other: Frame, live: int, ids: dict[int, int]) -> bool:
        """Whether what was found safe here is so with `other`; `live`: the registers whose values matter, as bits."""
        if (self.entry, self.returns_to, self.is_callback) != (other.entry, other.returns_to, other.is_callback):
            return False
        for bit, (mine, its) in enumerate(zip(self.regs, other.regs, strict=True)):
            if live >> bit & 1 and mine is not its and not mine.covers(its, ids):
                return False
        theirs = other.stack
        for start, spilled in self.stack.items():
            found = theirs.get(start)
            if found is None or found.size != spilled.size or not spilled.reg.covers(found.reg, ids):
                return False
        return True


ALL_LIVE = (1 << REGISTERS) - 1


@dataclass(slots=True, eq=False)
class State:
    """At `pc`, before that instruction. `parent` is the state that was kept on the way, and `branches` how many ways
    from this one have not come to their end yet."""

    frames: list[Frame]
    pc: int = 0
    refs: tuple[int, ...] = ()
    parent: State | None = None
    branches: int = 1
    misses: int = 0
    hits: int = 0
    kept_at: int = 0  # how many instructions had been looked at when one was kept on the way

    @property
    def frame(self) -> Frame:
        """That of what executes."""
        return self.frames[-1]

    @property
    def size(self) -> int:
        """How much it is to copy or to compare: frames, and what is known of their stacks."""
        return len(self.frames) + sum([len(frame.stack) for frame in self.frames])

    @property
    def regs(self) -> list[Reg]:
        return self.frames[-1].regs

    def copy(self) -> State:
        return State([frame.copy() for frame in self.frames], self.pc, self.refs, self.parent, kept_at=self.kept_at)

    def covers(self, other: State, live: int) -> bool:
        """Whether whatever is safe from here on is so from `other`."""
        if len(self.frames) != len(other.frames) or len(self.refs) != len(other.refs):
            return False
        ids: dict[int, int] = dict(zip(self.refs, other.refs, strict=True))
        last = len(self.frames) - 1
        for number, (mine, its) in enumerate(zip(self.frames, other.frames, strict=True)):
            if not mine.is_covered(its, live if number == last else ALL_LIVE, ids):
                return False
        return True

    def all_regs(self) -> Iterator[tuple[Frame, int, Reg, bool]]:
        """Frame, which, what, and whether that is on the stack: of all frames."""
        for frame in self.frames:
            for index, reg in enumerate(frame.regs):
                yield frame, index, reg, False
            for start, spilled in frame.stack.items():
                yield frame, start, spilled.reg, True

    def simplify(self, live: int) -> None:
        """Before it is kept: what does not matter is forgotten, so that it covers more."""
        regs = self.regs
        for index in range(REGISTERS):
            if not live >> index & 1:
                regs[index] = NOT_INIT
        shared = Counter(reg.id for _, _, reg, _ in self.all_regs() if reg.id)
        for frame, where, reg, spilled in list(self.all_regs()):
            if shared[reg.id] == 1 and reg.kind is Kind.SCALAR:
                self.put(frame, where, reg._replace(id=0), spilled)

    def put(self, frame: Frame, where: int, reg: Reg, spilled: bool) -> None:
        if spilled:
            frame.stack[where] = Spilled(frame.stack[where].size, reg)
        else:
            frame.regs[where] = reg

    def describe(self) -> str:
        """A line for the log."""
        parts = [f"R{index}={reg}" for index, reg in enumerate(self.regs) if reg.kind is not Kind.NOT_INIT]
        parts += [f"fp{start - STACK_BYTES}={spilled.reg}" for start, spilled in sorted(self.frame.stack.items())]
        return " ".join(parts)
