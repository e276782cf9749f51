"""Programs become Python functions: one for each of their own, made once when a program is loaded.

Registers are local variables, and the blocks of a function are found by their number. Only what the verifier has taken
is compiled, so that nothing is checked again. A jump backwards, a call and each turn of a helper's loop is paid out of
the run's budget.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from perfcore.bpf.helpers.table import ALL_HELPERS
from perfcore.bpf.instructions import (
    ADD,
    ALU64,
    AND,
    ARSH,
    ATOMIC,
    CALL,
    CMPXCHG,
    DIV,
    END,
    EXIT,
    FETCH,
    JA,
    JEQ,
    JGE,
    JGT,
    JLE,
    JLT,
    JMP32,
    JNE,
    JSET,
    JSGE,
    JSGT,
    JSLE,
    JSLT,
    LOAD_IMM64,
    LSH,
    MASK32,
    MASK64,
    MEMSX,
    MOD,
    MOV,
    MUL,
    NEG,
    OR,
    PSEUDO_FUNC,
    RSH,
    ST,
    SUB,
    XCHG,
    XOR,
    Instruction,
    compute,
    signed,
    swapped,
)
from perfcore.bpf.run import LOADS, STORES, call_helper

Function = Callable[..., int]
_INDENT = "    "
_SIGNS = {ADD: "+", SUB: "-", MUL: "*", OR: "|", AND: "&", XOR: "^"}
_COMPARISONS = {JEQ: "==", JNE: "!=", JGT: ">", JGE: ">=", JLT: "<", JLE: "<=", JSET: "&"}
_SIGNED_COMPARISONS = {JSGT: ">", JSGE: ">=", JSLT: "<", JSLE: "<="}


def compile_program(
    instructions: Sequence[Instruction],
    entries: Sequence[int],
    constants: Mapping[int, int],
    object_loads: Collection[int] = frozenset(),
) -> dict[int, Function]:
    """Its functions by where they begin. `constants`: what 64-bit immediates load that are no numbers; `object_loads`:
    the instructions that load from objects of the kernel's.
    """
    names: dict[str, Any] = {
        "call": call_helper, "compute": compute, "signed": signed, "swapped": swapped,
        **{f"load{8 * size}": function for size, function in LOADS.items()},
        **{f"store{8 * size}": function for size, function in STORES.items()},
    }  # fmt: skip
    for number, row in ALL_HELPERS.items():
        names[f"h{number}"] = row.run
    text = "".join(
        "".join(_Function(instructions, constants, object_loads, first, end).lines())
        for first, end in zip(entries, (*entries[1:], len(instructions)), strict=True)
    )
    exec(compile(text, "<BPF program>", "exec"), names)
    return {entry: names[f"f{entry}"] for entry in entries}


class _Function:
    """One, as text."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        constants: Mapping[int, int],
        object_loads: Collection[int],
        first: int,
        end: int,
    ) -> None:
        self._instructions = instructions
        self._constants = constants
        self._object_loads = object_loads
        self._first, self._end = first, end
        starts = {first}
        for pc, instruction in enumerate(instructions[first:end], start=first):
            if instruction.is_jump and instruction.operation not in (CALL, EXIT):
                starts |= {pc + 1, pc + 1 + instruction.jump_distance}
        self._starts = sorted(start for start in starts if start < end)
        self._numbers = {start: number for number, start in enumerate(self._starts)}

    def lines(self) -> Iterator[str]:
        yield f"def f{self._first}(run, r1=0, r2=0, r3=0, r4=0, r5=0):\n"
        yield f"{_INDENT}r0 = r6 = r7 = r8 = r9 = 0\n"
        yield f"{_INDENT}r10 = run.enter({self._end - self._first})\n"
        yield f"{_INDENT}block = 0\n"
        yield f"{_INDENT}while True:\n"
        yield from self._choose(0, len(self._starts), 2)

    def _choose(self, first: int, end: int, depth: int) -> Iterator[str]:
        """One of the blocks from `first` to `end`, by halves."""
        if end - first == 1:
            for line in self._block(first):
                yield f"{_INDENT * depth}{line}\n"
            return
        middle = (first + end) // 2
        yield f"{_INDENT * depth}if block < {middle}:\n"
        yield from self._choose(first, middle, depth + 1)
        yield f"{_INDENT * depth}else:\n"
        yield from self._choose(middle, end, depth + 1)

    def _block(self, number: int) -> Iterator[str]:
        pc = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self._end
        instruction = self._instructions[pc]
        while pc < end:
            instruction = self._instructions[pc]
            yield from self._instruction(pc, instruction)
            pc += 2 if instruction.opcode == LOAD_IMM64 else 1
        if not instruction.is_jump or instruction.operation == CALL:
            yield f"block = {number + 1}"

    # ---- instructions

    def _instruction(self, pc: int, instruction: Instruction) -> Iterator[str]:
        match instruction.cls:
            case 4 | 7:
                yield from _alu(instruction)
            case 5 | 6:
                yield from self._jump(pc, instruction)
            case 0:
                yield f"r{instruction.dst} = {self._immediate(pc, instruction)}"
            case 1:
                yield _load(instruction, of_object=pc in self._object_loads)
            case 2 | 3:
                yield from _store(instruction)

    def _immediate(self, pc: int, instruction: Instruction) -> int:
        if instruction.src == PSEUDO_FUNC:
            return pc + 1 + instruction.imm
        number = (instruction.imm & MASK32) | (self._instructions[pc + 1].imm & MASK32) << 32
        return self._constants.get(pc, number)

    def _jump(self, pc: int, instruction: Instruction) -> Iterator[str]:
        operation = instruction.operation
        if operation == EXIT:
            yield "run.leave()"
            yield "return r0"
            return
        if operation == CALL:
            yield f"r0 = {self._call(pc, instruction)}"
            return
        target = pc + 1 + instruction.jump_distance
        if operation == JA:
            if target <= pc:
                yield f"run.spend({pc + 1 - target})"
            yield f"block = {self._numbers[target]}"
            return
        yield f"if {_condition(instruction)}:"
        if target <= pc:
            yield f"{_INDENT}run.spend({pc + 1 - target})"
        yield f"{_INDENT}block = {self._numbers[target]}"
        yield "else:"
        yield f"{_INDENT}block = {self._numbers[pc + 1]}"

    def _call(self, pc: int, instruction: Instruction) -> str:
        if instruction.is_call_of_program:
            return f"f{pc + 1 + instruction.imm}(run, r1, r2, r3, r4, r5)"
        row = ALL_HELPERS[instruction.imm]
        arguments = "".join(f", r{number}" for number in range(1, len(row.args) + row.unchecked + 1))
        return f"call(h{row.number}, run{arguments})"


def _source(instruction: Instruction, bits: int) -> str:
    if not instruction.by_register:
        return str(instruction.imm & (1 << bits) - 1)
    return f"r{instruction.src}" if bits == 64 else f"(r{instruction.src} & {MASK32})"


def _alu(instruction: Instruction) -> Iterator[str]:
    bits = 64 if instruction.cls == ALU64 else 32
    mask = MASK64 if bits == 64 else MASK32
    operation, dst = instruction.operation, f"r{instruction.dst}"
    source = _source(instruction, bits)
    if operation == END:
        yield f"{dst} = {_in_order(instruction)}"
    elif operation == MOV:
        yield f"{dst} = {f'signed({source}, {instruction.offset}) & {mask}' if instruction.offset else source}"
    elif operation == NEG:
        yield f"{dst} = -{dst} & {mask}"
    elif operation in _SIGNS:
        yield f"{dst} = ({dst} {_SIGNS[operation]} {source}) & {mask}"
    elif operation in (LSH, RSH) and not instruction.by_register:
        low = dst if bits == 64 else f"({dst} & {MASK32})"
        yield (
            f"{dst} = {low} >> {instruction.imm}"
            if operation == RSH
            else f"{dst} = ({low} << {instruction.imm}) & {mask}"
        )
    else:
        assert operation in (LSH, RSH, ARSH, DIV, MOD), f"operation {operation:#x}"
        yield f"{dst} = compute({operation}, {dst}, {source}, {bits}, {instruction.offset})"


def _in_order(instruction: Instruction) -> str:
    bits, dst = instruction.imm, f"r{instruction.dst}"
    if instruction.cls == ALU64 or instruction.by_register:
        return f"swapped({dst}, {bits})"
    return f"{dst} & {(1 << bits) - 1}"


def _condition(instruction: Instruction) -> str:
    bits = 32 if instruction.cls == JMP32 else 64
    dst = f"r{instruction.dst}" if bits == 64 else f"(r{instruction.dst} & {MASK32})"
    source = _source(instruction, bits)
    sign = _COMPARISONS.get(instruction.operation)
    if sign is not None:
        return f"{dst} {sign} {source}"
    half = 1 << bits - 1  # moves the signed order to where the unsigned one is
    return f"({dst} ^ {half}) {_SIGNED_COMPARISONS[instruction.operation]} ({source} ^ {half})"


def _address(register: int, offset: int) -> str:
    return f"r{register} + {offset}" if offset else f"r{register}"


def _load(instruction: Instruction, *, of_object: bool) -> str:
    bits = 8 * instruction.size
    address = _address(instruction.src, instruction.offset)
    loaded = f"run.load_object({address}, {instruction.size})" if of_object else f"load{bits}(run.views, {address})"
    if instruction.mode == MEMSX:
        loaded = f"signed({loaded}, {bits}) & {MASK64}"
    return f"r{instruction.dst} = {loaded}"


def _store(instruction: Instruction) -> Iterator[str]:
    bits = 8 * instruction.size
    mask = (1 << bits) - 1
    address = _address(instruction.dst, instruction.offset)
    if instruction.cls == ST:
        yield f"store{bits}(run.views, {address}, {instruction.imm & mask})"
        return
    value = f"r{instruction.src}" if bits == 64 else f"r{instruction.src} & {mask}"
    if instruction.mode != ATOMIC:
        yield f"store{bits}(run.views, {address}, {value})"
        return
    yield f"old = load{bits}(run.views, {address})"
    if instruction.imm == CMPXCHG:
        yield f"if old == r0 & {mask}:"
        yield f"{_INDENT}store{bits}(run.views, {address}, {value})"
        yield "r0 = old"
        return
    operation = instruction.imm & ~FETCH
    new = value if instruction.imm == XCHG else f"(old {_SIGNS[operation]} r{instruction.src}) & {mask}"
    yield f"store{bits}(run.views, {address}, {new})"
    if instruction.imm & FETCH:
        yield f"r{instruction.src} = old"
