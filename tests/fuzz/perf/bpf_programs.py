"""Random BPF programs: most of them such as the verifier takes, some a little wrong, some noise."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from perfcore.abi.bpf import MapType
from perfcore.bpf.helpers.table import ALL_HELPERS
from perfcore.bpf.instructions import (
    ADD,
    ALU,
    ALU64,
    AND,
    ARSH,
    ATOMIC,
    ATOMIC_OPERATIONS,
    CALL_OPCODE,
    DIV,
    EXIT_OPCODE,
    JEQ,
    JGE,
    JGT,
    JLT,
    JMP,
    JMP32,
    JNE,
    JSET,
    JSGT,
    LDX,
    LOAD_IMM64,
    LSH,
    MEM,
    MOD,
    MOV,
    MUL,
    OR,
    PSEUDO_CALL,
    PSEUDO_FUNC,
    PSEUDO_MAP_FD,
    PSEUDO_MAP_VALUE,
    REGISTER_SOURCE,
    RSH,
    ST,
    STX,
    SUB,
    XOR,
    Instruction,
    encode,
)

MAPS = 60  # the descriptor of the first of the maps that programs use
MAP_TYPES = (
    MapType.HASH, MapType.ARRAY, MapType.PERCPU_HASH, MapType.PERCPU_ARRAY, MapType.LRU_HASH, MapType.RINGBUF,
    MapType.PERF_EVENT_ARRAY, MapType.STACK_TRACE, MapType.QUEUE, MapType.STACK, MapType.ARRAY, MapType.HASH,
)  # fmt: skip
KEY_BYTES, VALUE_BYTES, ENTRIES = 4, 16, 8
MOST_INSTRUCTIONS = 120

HELPERS = {row.name: number for number, row in ALL_HELPERS.items()}
DW, W = 0x18, 0x00
CTX, R7, R8, R9, FP = 6, 7, 8, 9, 10  # what stays over calls
_OPERATIONS = (ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, MOD, XOR, MOV, ARSH)
_JUMPS = (JEQ, JNE, JGT, JGE, JLT, JSGT, JSET)

Part = list[Instruction]


def insn(opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> Instruction:
    return Instruction(opcode, dst, src, offset, imm)


def mov(register: int, value: int) -> Instruction:
    return insn(ALU64 | MOV, register, imm=value)


def copy(to: int, register: int) -> Instruction:
    return insn(ALU64 | MOV | REGISTER_SOURCE, to, register)


def call(name: str) -> Instruction:
    return insn(CALL_OPCODE, imm=HELPERS[name])


def _stack(register: int, offset: int) -> Part:
    return [copy(register, FP), insn(ALU64 | ADD, register, imm=offset)]


class RandomBpf:
    """One program, from a generator."""

    def __init__(self, rng: random.Random, context_bytes: int, spoiled: float = 0.1) -> None:
        """`context_bytes`: how much of a context may be read. `spoiled`: how many of them have wrong instructions."""
        self._rng = rng
        self._context_bytes = context_bytes
        self._functions: list[tuple[int, int]] = []  # (where it is called, how many arguments)
        self._code: Part = [copy(CTX, 1), mov(R7, 0), mov(R8, 1), mov(R9, 5)]
        for _ in range(rng.choice((0, 1, 2, 3, 5, 8))):
            self._code += rng.choice(_PARTS)(self)
        self._code += [mov(0, rng.choice((0, 1, 1))), insn(EXIT_OPCODE)]
        self._add_functions()
        if rng.random() < spoiled:
            self._spoil()

    def data(self) -> bytes:
        return encode(self._code[:MOST_INSTRUCTIONS])

    # ---- parts

    def _map(self, *types: MapType) -> Part:
        """The descriptor of one of these types in R1, or sometimes of any."""
        rng = self._rng
        fitting = [number for number, type in enumerate(MAP_TYPES) if type in types]
        number = rng.choice(fitting) if rng.random() < 0.95 else rng.randrange(len(MAP_TYPES))
        return [insn(LOAD_IMM64, 1, PSEUDO_MAP_FD, imm=MAPS + number), insn(0)]

    def load_context(self) -> Part:
        words = max(self._context_bytes // 8, 1)
        size, step = self._rng.choice(((DW, 8), (DW, 8), (W, 4)))
        return [insn(LDX | MEM | size, R7, CTX, 8 * self._rng.randrange(words) + self._rng.choice((0, 0, 0, step)))]

    def compute(self) -> Part:
        rng = self._rng
        wide = rng.choice((ALU64, ALU64, ALU))
        dst, src = rng.sample((R7, R8, R9), 2)
        operation = rng.choice(_OPERATIONS)
        if rng.randrange(2):
            return [insn(wide | operation | REGISTER_SOURCE, dst, src)]
        value = rng.choice((1, 2, 7, 31, 0x7FFF_FFFF, -1, rng.getrandbits(31)))
        return [insn(wide | operation, dst, imm=value & 31 if operation in (LSH, RSH, ARSH) else value)]

    def jump(self) -> Part:
        rng = self._rng
        skipped = [part for _ in range(rng.randrange(1, 4)) for part in self.compute()]
        cls = rng.choice((JMP, JMP, JMP32))
        return [insn(cls | rng.choice(_JUMPS), R7, offset=len(skipped), imm=rng.choice((0, 1, 16, -1))), *skipped]

    def store(self) -> Part:
        rng = self._rng
        at = -8 * rng.randrange(1, 20)
        if rng.randrange(3):
            return [insn(STX | MEM | DW, FP, R7, at), insn(LDX | MEM | rng.choice((DW, W)), R8, FP, at)]
        return [insn(ST | MEM | DW, FP, offset=at), insn(STX | ATOMIC | DW, FP, R7, at, rng.choice(ATOMIC_OPERATIONS))]

    def spill(self) -> Part:
        return [insn(STX | MEM | DW, FP, CTX, -504), insn(LDX | MEM | DW, CTX, FP, -504)]

    def loop(self) -> Part:
        turns = self._rng.choice((1, 3, 10, 60))
        return [mov(R9, turns), insn(ALU64 | SUB, R9, imm=1), insn(JMP | JNE, R9, offset=-2)]

    def _key(self) -> Part:
        return [insn(ST | MEM | W, FP, offset=-4, imm=self._rng.choice((0, 1, 2, 7, 8, -1)))]

    _ELEMENTS = (MapType.HASH, MapType.ARRAY, MapType.PERCPU_HASH, MapType.PERCPU_ARRAY, MapType.LRU_HASH)

    def look_up(self) -> Part:
        rng = self._rng
        at = rng.choice((0, 4, 8, 8, VALUE_BYTES))
        uses = [rng.choice((insn(LDX | MEM | W, R8, 0, at), insn(STX | MEM | W, 0, R7, at)))]
        if rng.randrange(3) == 0:  # at a place that the context says
            uses = [insn(ALU64 | AND, R7, imm=rng.choice((7, 15, 31))), insn(ALU64 | ADD | REGISTER_SOURCE, 0, R7)]
            uses.append(insn(LDX | MEM | 0x10, R8, 0, 0))
        check = [insn(JMP | JEQ, 0, offset=len(uses))] if rng.random() < 0.95 else []
        return [*self._map(*self._ELEMENTS), *self._key(), *_stack(2, -4), call("map_lookup_elem"), *check, *uses]

    def update(self) -> Part:
        rng = self._rng
        value = [insn(ST | MEM | DW, FP, offset=-24, imm=1), insn(STX | MEM | DW, FP, R7, -16), *_stack(3, -24)]
        rest = [mov(4, rng.choice((0, 0, 0, 1, 2, 4, -1))), call("map_update_elem")]
        return [*self._map(*self._ELEMENTS), *self._key(), *_stack(2, -4), *value, *rest]

    def delete(self) -> Part:
        return [*self._map(*self._ELEMENTS), *self._key(), *_stack(2, -4), call("map_delete_elem")]

    def use_queue(self) -> Part:
        name = self._rng.choice(("map_push_elem", "map_pop_elem", "map_peek_elem"))
        value = [insn(STX | MEM | DW, FP, R7, -24), insn(STX | MEM | DW, FP, R8, -16), *_stack(2, -24)]
        flags = [mov(3, self._rng.choice((0, 0, 2)))] if name == "map_push_elem" else []
        return [*self._map(MapType.QUEUE, MapType.STACK), *value, *flags, call(name)]

    def reserve(self) -> Part:
        rng = self._rng
        size = rng.choice((8, 16, 64, 1000, 5000))
        ending = rng.choice(("ringbuf_submit", "ringbuf_submit", "ringbuf_discard"))
        used = [insn(STX | MEM | DW, 0, R7, 0), copy(1, 0), mov(2, rng.choice((0, 1, 2))), call(ending)]
        check = [mov(2, size), mov(3, 0), call("ringbuf_reserve"), insn(JMP | JEQ, 0, offset=len(used))]
        return [*self._map(MapType.RINGBUF), *check, *used]

    def output(self) -> Part:
        size = self._rng.choice((0, 8, 24, 64))
        where = [*_stack(2, -64), mov(3, size), mov(4, 0), call("ringbuf_output")]
        return [*self._written(), *self._map(MapType.RINGBUF), *where]

    def _written(self) -> Part:
        """The stack from -64 on."""
        return [insn(STX | MEM | DW, FP, R7, at) for at in range(-64, 0, 8)]

    def output_sample(self) -> Part:
        rng = self._rng
        map = [part._replace(dst=2) if part.opcode else part for part in self._map(MapType.PERF_EVENT_ARRAY)]
        flags = [insn(ALU | MOV, 3, imm=rng.choice((-1, -1, 0, 1, 100)))]
        rest = [*_stack(4, -64), mov(5, rng.choice((0, 4, 8, 64))), call("perf_event_output")]
        return [*self._written(), copy(1, CTX), *map, *flags, *rest]

    def read_event(self) -> Part:
        map, flags = self._map(MapType.PERF_EVENT_ARRAY), [insn(ALU | MOV, 2, imm=self._rng.choice((-1, 0, 1)))]
        if self._rng.randrange(2):
            return [*map, *flags, call("perf_event_read")]
        return [*map, *flags, *_stack(3, -24), mov(4, 24), call("perf_event_read_value")]

    def stack_of_task(self) -> Part:
        rng = self._rng
        flags = rng.choice((0x100, 0x100, 0x102, 0x500, 0x300, 0, 0x8FF))
        if rng.randrange(2):
            map = [part._replace(dst=2) if part.opcode else part for part in self._map(MapType.STACK_TRACE)]
            return [copy(1, CTX), *map, mov(3, flags), call("get_stackid")]
        return [copy(1, CTX), *_stack(2, -64), mov(3, rng.choice((0, 8, 64))), mov(4, flags), call("get_stack")]

    def ask(self) -> Part:
        names = (
            "ktime_get_ns", "get_current_pid_tgid", "get_prandom_u32", "get_smp_processor_id", "get_current_uid_gid",
            "get_current_task", "ktime_get_boot_ns", "jiffies64", "get_numa_node_id",
        )  # fmt: skip
        return [call(self._rng.choice(names)), copy(R7, 0)]

    def read_memory(self) -> Part:
        rng = self._rng
        name = rng.choice((
            "probe_read", "probe_read_user", "probe_read_kernel", "probe_read_str", "probe_read_user_str",
            "probe_read_kernel_str",
        ))  # fmt: skip
        address = [copy(3, rng.choice((R7, R7, CTX, FP)))]
        return [*_stack(1, -64), mov(2, rng.choice((0, 1, 8, 63, 64))), *address, call(name)]

    def name_of_task(self) -> Part:
        return [*_stack(1, -32), mov(2, self._rng.choice((1, 8, 16, 32))), call("get_current_comm")]

    def print(self) -> Part:
        text = self._rng.choice((b"%d %s %p\0", b"%lx%%\0", b"%500d\0", b"%.3s%u\0", b"%Q\0", b"no end", b"%pks\0"))
        words = struct.unpack("<2i", text[:8].ljust(8, b"\0")), struct.unpack("<2i", text[8:16].ljust(8, b"\0"))
        stores = [
            insn(ST | MEM | W, FP, offset=-16 + 8 * row + 4 * column, imm=word)
            for row, pair in enumerate(words)
            for column, word in enumerate(pair)
        ]
        arguments = [copy(3, R7), copy(4, R8), copy(5, R9)]
        return [*stores, *_stack(1, -16), mov(2, len(text)), *arguments, call("trace_printk")]

    def signal(self) -> Part:
        name = self._rng.choice(("send_signal", "send_signal_thread"))
        return [mov(1, self._rng.choice((0, 10, 12, 18, 19, 34, 64, 65, -1))), call(name)]

    def direct_value(self) -> Part:
        number = self._rng.choice((10,) * 9 + (1,))
        offset = self._rng.choice((0, 8, 8, 8, 4, VALUE_BYTES - 8, VALUE_BYTES))
        return [
            insn(LOAD_IMM64, 1, PSEUDO_MAP_VALUE, imm=MAPS + number), insn(0, imm=offset),
            insn(LDX | MEM | DW, R7, 1, 0),
        ]  # fmt: skip

    # ---- functions of the program

    def call_function(self) -> Part:
        self._functions.append((len(self._code) + 1, 0))
        return [copy(1, R7), insn(CALL_OPCODE, src=PSEUDO_CALL)]

    def call_loop(self) -> Part:
        self._functions.append((len(self._code) + 1, 2))
        turns = self._rng.choice((0, 1, 10, 1 << 23, 1 << 24))
        given = self._rng.choice((_stack(3, -8), [mov(3, 0)]))
        return [mov(1, turns), insn(LOAD_IMM64, 2, PSEUDO_FUNC), insn(0), *given, mov(4, 0), call("loop")]

    def each_element(self) -> Part:
        self._functions.append((len(self._code) + 2, 4))
        rest = [insn(LOAD_IMM64, 2, PSEUDO_FUNC), insn(0), *_stack(3, -8), mov(4, 0), call("for_each_map_elem")]
        return [*self._map(*self._ELEMENTS), *rest]

    def _add_functions(self) -> None:
        """Behind the program, one for each time that one is called."""
        for place, arguments in self._functions:
            target = len(self._code)
            self._code[place] = self._code[place]._replace(imm=target - place - 1)
            if arguments == 4 and self._rng.randrange(2):
                self._code += [insn(LDX | MEM | W, 0, 2, 0), insn(STX | MEM | W, 3, 0, 0)]
                if self._rng.randrange(2):  # keep the key's address for the caller
                    self._code += [insn(STX | MEM | DW, 4, 2, 0)]
            self._code += [mov(0, self._rng.choice((0,) * 9 + (1, 1, 2))), insn(EXIT_OPCODE)]

    def _spoil(self) -> None:
        rng = self._rng
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(self._code))
            field = rng.choice(("opcode", "dst", "src", "offset", "imm"))
            most = {"opcode": 256, "dst": 12, "src": 12, "offset": 32, "imm": 64}[field]
            self._code[at] = self._code[at]._replace(**{field: rng.randrange(most)})


_PARTS: tuple[Callable[[RandomBpf], Part], ...] = (
    RandomBpf.load_context, RandomBpf.load_context, RandomBpf.compute, RandomBpf.compute, RandomBpf.jump,
    RandomBpf.store, RandomBpf.spill, RandomBpf.loop, RandomBpf.look_up, RandomBpf.look_up, RandomBpf.update,
    RandomBpf.update, RandomBpf.delete, RandomBpf.use_queue, RandomBpf.reserve, RandomBpf.output,
    RandomBpf.output_sample, RandomBpf.read_event, RandomBpf.stack_of_task, RandomBpf.ask, RandomBpf.read_memory,
    RandomBpf.name_of_task, RandomBpf.print, RandomBpf.signal, RandomBpf.direct_value, RandomBpf.call_function,
    RandomBpf.call_loop, RandomBpf.each_element,
)  # fmt: skip
