"""Calls of helpers: what each argument must be, and what comes back. kernel/bpf/verifier.c, check_helper_call()."""

from __future__ import annotations

from collections.abc import Callable

from perfcore.abi.bpf import MapFlag
from perfcore.bpf.helpers.helper import Arg, Helper, Returns, takes
from perfcore.bpf.helpers.table import ALL_HELPERS
from perfcore.bpf.instructions import Instruction
from perfcore.bpf.maps.map import Map
from perfcore.bpf.refusal import malformed, unsafe
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.accesses import MAX_OFFSET, check_memory, check_pointer_may_be_used
from perfcore.bpf.verifier.state import NOT_INIT, UNKNOWN, Frame, Kind, Reg, State, number
from perfcore.bpf.verifier.subject import Subject

_LARGEST_ALLOCATION = (1 << 30) - 1


class Call:
    """One, while its arguments are looked at in their order."""

    def __init__(self, subject: Subject, state: State, instruction: Instruction) -> None:
        self.subject = subject
        self.state = state
        self.row = self._row(instruction)
        self.map: Map | None = None
        self.allocated = 0
        self.released: Reg | None = None
        self.function: Reg | None = None
        self._memory: tuple[Reg, int, bool] | None = (
            None  # whose size the next argument says; its number; it is written
        )

    def _row(self, instruction: Instruction) -> Helper:
        row = ALL_HELPERS.get(instruction.imm)
        if instruction.by_register or instruction.dst or instruction.offset or instruction.src:
            raise malformed(
                "BPF_CALL uses reserved fields, or calls a function of the kernel (kfunc), of which there are none"
            )
        if row is None:
            raise malformed(f"invalid func unknown#{instruction.imm}")
        if self.subject.kind.type not in row.programs:
            raise malformed(f"program of this type cannot use helper bpf_{row.name}#{row.number}")
        if row.gpl and not self.subject.gpl:
            raise malformed("cannot call GPL-restricted function from non-GPL compatible program")
        return row

    def check_arguments(self) -> None:
        for index, kind in enumerate(self.row.args, start=1):
            reg, name = self.state.regs[index], f"R{index}"
            if reg.kind is Kind.NOT_INIT:
                raise unsafe(f"{name} !read_ok")
            _ARGUMENTS[kind](self, reg, name, index)
        if self.map is not None and not takes(self.row, self.map):
            what = f"bpf_{self.row.name}#{self.row.number}"
            raise malformed(f"cannot pass map_type {self.map.request.type.value} into func {what}")

    # ---- arguments

    def _wrong(self, name: str, reg: Reg, expected: str) -> Exception:
        return unsafe(f"{name} type={reg.type_name} expected={expected}")

    def take_anything(self, reg: Reg, name: str, index: int) -> None:
        """Whatever it is."""

    def take_context(self, reg: Reg, name: str, index: int) -> None:
        if reg.kind is not Kind.CTX or not reg.scalar.is_const or reg.scalar.value:
            raise self._wrong(name, reg, "ctx")

    def take_map(self, reg: Reg, name: str, index: int) -> None:
        if reg.kind is not Kind.MAP_PTR or reg.map is None:
            raise self._wrong(name, reg, "map_ptr")
        self.map = reg.map

    def take_key(self, reg: Reg, name: str, index: int) -> None:
        self._check_of_map(reg, name, "key_size", write=False)

    def take_value(self, reg: Reg, name: str, index: int) -> None:
        self._check_of_map(reg, name, "value_size", write=False)

    def take_uninit_value(self, reg: Reg, name: str, index: int) -> None:
        self._check_of_map(reg, name, "value_size", write=True)

    def _check_of_map(self, reg: Reg, name: str, size: str, *, write: bool) -> None:
        assert self.map is not None, "the map is an argument before"
        if reg.kind not in _MEMORY:
            raise self._wrong(name, reg, "fp, map_key, map_value, mem")
        wanted: int = getattr(self.map.request, size)
        if not wanted:
            raise unsafe(f"{name} invalid zero-sized access: the map has no such part")
        check_memory(self.state, reg, name, scalar.const(wanted), write=write)

    def take_memory(self, reg: Reg, name: str, index: int) -> None:
        if reg.kind not in _MEMORY or reg.null:
            raise self._wrong(name, reg, "fp, map_key, map_value, mem")
        self._memory = reg, index, False

    def take_memory_or_null(self, reg: Reg, name: str, index: int) -> None:
        if reg.is_null:
            self._memory = reg, index, False
        else:
            self.take_memory(reg, name, index)

    def take_uninit_memory(self, reg: Reg, name: str, index: int) -> None:
        self.take_memory(reg, name, index)
        self._memory = reg, index, True

    def take_size(self, reg: Reg, name: str, index: int) -> None:
        self._check_size(reg, name, least=1)

    def take_size_or_zero(self, reg: Reg, name: str, index: int) -> None:
        self._check_size(reg, name, least=0)

    def _check_size(self, reg: Reg, name: str, least: int) -> None:
        """check_mem_size_reg()"""
        assert self._memory is not None, "the memory is an argument before"
        memory, index, write = self._memory
        if reg.is_pointer:
            raise self._wrong(name, reg, "scalar")
        if reg.scalar.smin < 0:
            raise unsafe(f"{name} min value is negative, either use unsigned or 'var &= const'")
        if reg.scalar.umin < least:
            raise unsafe(f"{name} invalid zero-sized read: u64=[{reg.scalar.umin},{reg.scalar.umax}]")
        if reg.scalar.umax >= MAX_OFFSET:
            raise unsafe(f"{name} unbounded memory access, use 'var &= const' or 'if (var < const)'")
        if memory.is_null:
            if reg.scalar.umax:
                raise unsafe(f"R{index} type=scalar expected=fp, map_key, map_value, mem")
            return
        check_memory(self.state, memory, f"R{index}", reg.scalar, write=write)

    def take_constant_size(self, reg: Reg, name: str, index: int) -> None:
        if reg.is_pointer or not reg.scalar.is_const:
            raise unsafe(f"{name} is not a known constant: it says how much is allocated")
        if reg.scalar.value > _LARGEST_ALLOCATION:
            raise unsafe(f"{name} is too large a size to be allocated")
        self.allocated = reg.scalar.value

    def take_allocated(self, reg: Reg, name: str, index: int) -> None:
        if reg.kind is not Kind.MEM or not reg.ref or reg.null:
            raise self._wrong(name, reg, "ringbuf_mem")
        if not reg.scalar.is_const or reg.scalar.value:
            raise malformed(f"{name} must have zero offset when passed to release func")
        self.released = reg

    def take_function(self, reg: Reg, name: str, index: int) -> None:
        if reg.kind is not Kind.FUNC:
            raise self._wrong(name, reg, "func")
        self.function = reg

    def take_callback_context(self, reg: Reg, name: str, index: int) -> None:
        if reg.kind is not Kind.STACK and not reg.is_null:
            raise self._wrong(name, reg, "fp")

    def take_string(self, reg: Reg, name: str, index: int) -> None:
        constant = reg.map.constant_bytes if reg.map is not None and reg.kind is Kind.MAP_VALUE else None
        if constant is None or reg.map is None or not reg.map.request.flags & MapFlag.RDONLY_PROG:
            raise unsafe(f"{name} does not point to a readonly map")
        if not reg.scalar.is_const:
            raise unsafe(f"{name} is not a constant address")
        check_memory(self.state, reg, name, scalar.const(1), write=False)
        if 0 not in constant[reg.scalar.value : reg.map.request.value_size].tobytes():
            raise malformed("string is not zero-terminated")

    def take_long(self, reg: Reg, name: str, index: int) -> None:
        if reg.kind not in _MEMORY:
            raise self._wrong(name, reg, "fp, map_value, mem")
        check_pointer_may_be_used(reg, name)
        check_memory(self.state, reg, name, scalar.const(8), write=True, aligned=8)

    # ---- what comes back

    def finish(self) -> None:
        """R0, and what the call has taken from R1 to R5."""
        if self.released is not None:
            release(self.state, self.released.ref)
        regs = self.state.regs
        regs[0:6] = [self._result(), *[NOT_INIT] * 5]

    def _result(self) -> Reg:
        match self.row.returns:
            case Returns.VOID:
                return NOT_INIT
            case Returns.VALUE_OR_NULL:
                return Reg(Kind.MAP_VALUE, map=self.map, null=True, id=self.subject.new_id())
            case Returns.TASK:
                return Reg(Kind.OBJECT, size=self.subject.kernel_types().task)
            case Returns.RINGBUF_MEM_OR_NULL:
                new = self.subject.new_id()
                self.state.refs = (*self.state.refs, new)
                return Reg(Kind.MEM, size=self.allocated, null=True, id=new, ref=new)
        return self._number()

    def _number(self) -> Reg:
        """A result of which something is known."""
        if self.row.name not in _RETURN_LENGTHS:
            return UNKNOWN
        return number(scalar.signed_between(-_MAX_ERRNO, self._memory_limit))

    @property
    def _memory_limit(self) -> int:
        """How many bytes there are for what the helper writes."""
        index = next(index for index, kind in enumerate(self.row.args, start=1) if kind in (Arg.SIZE, Arg.SIZE_OR_ZERO))
        return self.state.regs[index].scalar.umax

    def enter_callback(self) -> State:
        """The state in which the helper calls the program's function. It comes back to the call itself.

        What the function may change from one time to the next is nothing that is known: numbers on the stack of who
        it was called by.
        """
        assert self.function is not None, "it is an argument"
        state = self.state
        for frame in state.frames:
            for start in [start for start, spilled in frame.stack.items() if not spilled.reg.is_pointer]:
                del frame.stack[start]
        inner = state.copy()
        caller = inner.regs
        frame = Frame.new(self.function.size, state.pc, len(inner.frames), is_callback=True)
        arguments = _CALLBACKS[self.row.name](self, caller)
        frame.regs[1 : 1 + len(arguments)] = arguments
        inner.frames.append(frame)
        inner.pc = self.function.size
        return inner


def release(state: State, ref: int) -> None:
    """It has been given back: nobody may use it any more."""
    state.refs = tuple(each for each in state.refs if each != ref)
    for frame, where, reg, spilled in list(state.all_regs()):
        if reg.ref == ref:
            state.put(frame, where, UNKNOWN if spilled else NOT_INIT, spilled)


def _of_each_element(call: Call, caller: list[Reg]) -> list[Reg]:
    assert call.map is not None, "the map is an argument"
    return [
        Reg(Kind.MAP_PTR, map=call.map),
        Reg(Kind.MAP_KEY, map=call.map),
        Reg(Kind.MAP_VALUE, map=call.map),
        caller[3],
    ]


_CALLBACKS: dict[str, Callable[[Call, list[Reg]], list[Reg]]] = {
    "loop": lambda call, caller: [UNKNOWN, caller[3]],
    "for_each_map_elem": _of_each_element,
}
_MEMORY = (Kind.STACK, Kind.MAP_KEY, Kind.MAP_VALUE, Kind.MEM)
_RETURN_LENGTHS = ("get_stack", "probe_read_str", "probe_read_user_str", "probe_read_kernel_str")  # or errors
_MAX_ERRNO = 4095
_ARGUMENTS: dict[Arg, Callable[[Call, Reg, str, int], None]] = {
    Arg.ANYTHING: Call.take_anything,
    Arg.CTX: Call.take_context,
    Arg.MAP: Call.take_map,
    Arg.KEY: Call.take_key,
    Arg.VALUE: Call.take_value,
    Arg.UNINIT_VALUE: Call.take_uninit_value,
    Arg.MEM: Call.take_memory,
    Arg.MEM_OR_NULL: Call.take_memory_or_null,
    Arg.UNINIT_MEM: Call.take_uninit_memory,
    Arg.SIZE: Call.take_size,
    Arg.SIZE_OR_ZERO: Call.take_size_or_zero,
    Arg.ALLOC_SIZE: Call.take_constant_size,
    Arg.RINGBUF_MEM: Call.take_allocated,
    Arg.FUNC: Call.take_function,
    Arg.CALLBACK_CTX: Call.take_callback_context,
    Arg.CONST_STR: Call.take_string,
    Arg.LONG: Call.take_long,
}
