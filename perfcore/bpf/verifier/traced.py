"""What a program of type TRACING is given: arguments with types, of BTF. kernel/bpf/btf.c, btf_ctx_access()."""

from __future__ import annotations

from dataclasses import dataclass

from perfcore.bpf.instructions import signed
from perfcore.bpf.refusal import malformed, unsafe
from perfcore.bpf.types.reader import POINTER_BYTES, Parameter, Prototype, Types
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.scalar import Scalar
from perfcore.bpf.verifier.state import Kind, Reg, number

_WORD = 8


@dataclass(frozen=True, slots=True)
class Traced:
    """`unknown`: the arguments that the modelled kernel does not have; `returns`: whether the result is given behind
    them; `zero`: whether the program has to return 0.
    """

    name: str
    prototype: Prototype
    unknown: frozenset[int]
    returns: bool
    zero: bool

    def argument(self, offset: int, size: int) -> Reg:
        """What a load from the context gives."""
        index, within = divmod(offset, _WORD)
        if within:
            raise unsafe(f"func '{self.name}' offset {offset} is not multiple of 8")
        parameters = self.prototype.parameters
        if index < len(parameters):
            if index in self.unknown:
                what = f"arg{index} '{parameters[index].name}'"
                raise unsafe(f"func '{self.name}' {what} is not modelled: the modelled kernel does not have it")
            return self._given(parameters[index], index, size)
        if not self.returns or index > len(parameters):
            raise unsafe(f"func '{self.name}' doesn't have {index + 1}-th argument")
        returned = self.prototype.returns
        if returned is None:
            raise unsafe(f"func '{self.name}' arg{index} '' has type VOID. Only pointer access is allowed")
        return self._given(returned, index, size)

    def _given(self, parameter: Parameter, index: int, size: int) -> Reg:
        if parameter.target < 0:
            raise unsafe(f"func '{self.name}' arg{index} '{parameter.name}' is neither a number nor a pointer")
        if parameter.is_pointer and size != POINTER_BYTES:
            raise unsafe(f"func '{self.name}' size {size} must be 8")
        if parameter.target:
            return Reg(Kind.OBJECT, size=parameter.target)
        return number(scalar.UNKNOWN_BY_BYTES[size])


def member(types: Types, reg: Reg, name: str, at: Scalar, size: int) -> Reg:
    """What a load from an object gives, of a type of the kernel's. btf_struct_access()"""
    what = types.name(reg.size)
    if not at.is_const:
        raise unsafe(f"{name} is ptr_{what} invalid variable offset: {at}")
    offset = signed(at.value, 64)
    if offset < 0:
        raise unsafe(f"{name} is ptr_{what} invalid negative access: off={offset}")
    if not types.members(reg.size):
        raise malformed(f"Type '{what}' is not a struct: the modelled kernel has nothing in it")
    found = types.access(reg.size, offset, size)
    if found is None:
        raise unsafe(f"access beyond struct {what} at off {offset} size {size}")
    if found.target > 0:
        return Reg(Kind.OBJECT, size=found.target)
    return number(scalar.UNKNOWN_BY_BYTES[size])
