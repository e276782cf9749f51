"""/sys/kernel/btf/vmlinux of the modelled kernel: made of its functions, its tracepoints, and what these tell."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.abi.tracepoints import LOCATION, Field, TracepointEvent
from perfcore.bpf.types.declarations import CLASSES, FUNCTIONS, SYSTEM_CALL, TASK, TOLD, UNKNOWN_ARGUMENTS, declarations
from perfcore.bpf.types.reader import Prototype, Types
from perfcore.bpf.types.writer import Members, TypeWriter
from perfcore.events.probes.kernel_functions import KernelFunction, KernelFunctions

_TOLD_PREFIX = "btf_trace_"
_MODELLED_ALONE = ("struct bpf_perf_event_data", "struct open_how")  # what programs are given
_SYSTEM_CALLS = ("struct syscall_trace_enter", "struct syscall_trace_exit")


class Target(NamedTuple):
    """What a program may be attached to: a function of the kernel, or a raw tracepoint (of which `function` is none).
    `unknown`: the parameters that the modelled kernel does not have."""

    name: str
    prototype: Prototype
    unknown: frozenset[int]
    function: KernelFunction | None = None


class KernelTypes:
    """`data` is the file."""

    def __init__(self, data: bytes, targets: Mapping[int, Target], task: int) -> None:
        self.data = data
        self.types = Types(data)
        self.targets = targets
        self.task = task  # the number of struct task_struct


def _members(event: TracepointEvent) -> Members:
    """struct trace_event_raw_NAME: what a program of the tracepoint is given."""
    return (("struct trace_entry", "ent"), *map(_member, event.fields), ("char [0]", "__data"))


def _member(field: Field) -> tuple[str, str]:
    if field.type == LOCATION:
        return "u32", f"__data_loc_{field.name}"
    c_type = field.c_type or field.type
    return (f"{c_type} [{field.length}]" if field.length else c_type), field.name


@cache
def kernel_types(isa: str) -> KernelTypes:
    """Of the kernel of an ISA."""
    events = tracepoints_of(isa).values()
    structures = {
        f"struct trace_event_raw_{CLASSES.get(event.name, event.name)}": _members(event)
        for event in events
        if event.system != "syscalls"
    }
    typedefs = {_TOLD_PREFIX + name: prototype for name, prototype in TOLD.items()}
    declared = declarations(isa, structures, typedefs)
    writer = TypeWriter(declared)
    named = (name for name in declared.typedefs if name not in typedefs)
    for name in (*named, *_MODELLED_ALONE, *_SYSTEM_CALLS, *structures):
        writer.number(name)
    for event in events:
        for field in event.fields:
            writer.number(_member(field)[0])
    told = {name: writer.number(_TOLD_PREFIX + name) for name in TOLD}
    functions = {
        writer.function(function.name, FUNCTIONS.get(function.name, SYSTEM_CALL)): function
        for function in KernelFunctions(isa).by_name.values()
    }
    task = writer.number(TASK)
    data = writer.data()
    types = Types(data)
    targets: dict[int, Target] = {}
    for name, number in told.items():
        found = types.function_pointer(number)
        assert found is not None, "it has been written so"
        prototype = Prototype(found.parameters[1:], None)
        targets[number] = Target(name, prototype, UNKNOWN_ARGUMENTS.get(name, frozenset()))
    for number, function in functions.items():
        of_function = types.function(number)
        assert of_function is not None, "it has been written so"
        known = [index for index, parameter in enumerate(function.parameters) if parameter]
        unknown = frozenset(range(len(of_function.parameters))).difference(known)
        targets[number] = Target(function.name, of_function, unknown, function)
    return KernelTypes(data, targets, task)
