"""Programs of type TRACING: what they are loaded for. kernel/bpf/verifier.c, bpf_check_attach_target()."""

from __future__ import annotations

import struct

from emulator.linux.errors import EINVAL, ENOTSUPP, LinuxError
from perfcore.abi.bpf import AttachType, Attr, ProgType
from perfcore.abi.btf import Kind
from perfcore.bpf.btf import Btf
from perfcore.bpf.files import BtfFile
from perfcore.bpf.program import Attachment, Program
from perfcore.bpf.refusal import malformed
from perfcore.bpf.request import Request
from perfcore.bpf.types.reader import Parameter, Prototype, Types
from perfcore.bpf.types.vmlinux import KernelTypes, Target
from perfcore.bpf.verifier.traced import Traced
from perfcore.events.programs import ProgramFile

_FUNCTION = struct.Struct("<II")  # struct bpf_func_info: insn_off, type_id
_MOST_RECORD_BYTES = 252  # MAX_FUNCINFO_REC_SIZE
_SLEEPABLE = 1 << 4  # BPF_F_SLEEPABLE
_BTF_PREFIX = "btf_trace_"
_WORD = Parameter("", 0, 8)
_UNRELIABLE = Prototype((_WORD,) * 5, _WORD)
_CONTEXTS = {  # structures, by the type of program that is given them
    ProgType.KPROBE: ("pt_regs", "user_pt_regs"),
    ProgType.PERF_EVENT: ("bpf_perf_event_data",),
    ProgType.RAW_TRACEPOINT: ("bpf_raw_tracepoint_args",),
}
_OF_FUNCTIONS = (AttachType.TRACE_FENTRY, AttachType.TRACE_FEXIT)


def traced(attachment: Attachment) -> Traced:
    """What a program is given that is for this."""
    target, returns = attachment.target, attachment.type == AttachType.TRACE_FEXIT
    return Traced(target.name, target.prototype, target.unknown, returns, attachment.type in _OF_FUNCTIONS)


def target_program(request: Request, attr: Attr) -> Program | None:
    """What the descriptor attach_prog_fd is: a program, or the kernel's types. LinuxError as bpf_prog_load() fails."""
    descriptor, number = attr["attach_prog_fd"], attr["attach_btf_id"]
    if not descriptor and not number:
        return None
    program: Program | None = None
    if descriptor:
        file = request.task.files.get(descriptor)
        if isinstance(file, ProgramFile):
            assert isinstance(file.program, Program), "there is one kind of program"
            program = file.program
        elif not isinstance(file, BtfFile):
            raise LinuxError(EINVAL, f"descriptor {descriptor} is neither a program's nor BTF's")
        elif not file.thing.is_kernels:
            raise LinuxError(ENOTSUPP, "attach_btf_obj_fd: programs are attached to functions of the kernel's BTF")
        elif not number:
            raise LinuxError(EINVAL, "attach_btf_obj_fd is of no use without attach_btf_id")
    if attr["prog_type"] != ProgType.TRACING:
        raise LinuxError(EINVAL, "attach_btf_id, attach_prog_fd: only programs of type TRACING have targets here")
    return program


def function_types(request: Request, attr: Attr) -> tuple[tuple[int, int], ...]:
    """Of a program's functions: where each begins, and its type. check_btf_func_early()"""
    count, size = attr["func_info_cnt"], attr["func_info_rec_size"]
    if not count:
        return ()
    if not _FUNCTION.size <= size <= _MOST_RECORD_BYTES or size % 4:
        raise LinuxError(EINVAL, f"func_info_rec_size {size}")
    if count > attr["insn_cnt"]:
        raise LinuxError(EINVAL, f"{count} functions in {attr['insn_cnt']} instructions")
    data = request.task.mm.read(attr["func_info"], count * size)
    return tuple(_FUNCTION.unpack_from(data, size * index) for index in range(count))


def attachment(kernel: KernelTypes, attr: Attr, program: Program | None, types: Btf | None) -> Attachment:
    """Of a program of type TRACING; `types`: those of `program`. Refusal."""
    number, wanted = attr["attach_btf_id"], attr["expected_attach_type"]
    if not number:
        raise malformed("Tracing programs must provide btf_id")
    if wanted not in (AttachType.TRACE_RAW_TP, *_OF_FUNCTIONS):
        name = AttachType(wanted).name if wanted in AttachType.__members__.values() else str(wanted)
        raise malformed(f"attach type {name} is not modelled, but TRACE_RAW_TP, TRACE_FENTRY, TRACE_FEXIT")
    if attr["prog_flags"] & _SLEEPABLE:
        raise malformed("sleepable programs are not modelled")
    type = AttachType(wanted)
    if program is None:
        return Attachment(type, _of_kernel(kernel, number, type), number)
    if types is None:
        raise malformed("FENTRY/FEXIT program can only be attached to another program annotated with BTF")
    return Attachment(type, _of_program(Types(types.data), program, number, type), number, program)


def _check_named(types: Types, number: int) -> str:
    if not types.kind(number):
        raise malformed(f"attach_btf_id {number} is invalid")
    name = types.name(number)
    if not name:
        raise malformed(f"attach_btf_id {number} doesn't have a name")
    return name


def _of_kernel(kernel: KernelTypes, number: int, type: AttachType) -> Target:
    types = kernel.types
    name = _check_named(types, number)
    if type == AttachType.TRACE_RAW_TP:
        if types.kind(number) != Kind.TYPEDEF:
            raise malformed(f"attach_btf_id {number} is not a typedef")
        if not name.startswith(_BTF_PREFIX):
            raise malformed(f"attach_btf_id {number} points to wrong type name {name}")
    elif types.kind(number) != Kind.FUNC:
        raise malformed(f"attach_btf_id {number} is not a function")
    target = kernel.targets[number]
    if type == AttachType.TRACE_FEXIT and target.function is not None and not target.function.returns:
        raise malformed(f"{name}: when it returns the modelled kernel does not know")
    return target


def _of_program(types: Types, program: Program, number: int, type: AttachType) -> Target:
    """Its main function: what it is given there is not told."""
    name = _check_named(types, number)
    if type == AttachType.TRACE_RAW_TP:
        raise malformed("Only FENTRY/FEXIT progs are attachable to another BPF prog")
    prototype = types.function(number)
    if prototype is None:
        raise malformed(f"attach_btf_id {number} is not a function")
    starts = [start for start, each in program.loaded.function_types if each == number]
    if not starts:
        raise malformed(f"Subprog {name} doesn't exist")
    if starts[0]:
        raise malformed(f"{name}: fentry and fexit are modelled of a program's first function alone")
    if program.attachment is not None and program.attachment.program is not None:
        raise malformed("Cannot nest tracing program attach more than once")
    if not _is_reliable(types, program, prototype):
        prototype = _UNRELIABLE
    return Target(name, prototype, frozenset(range(len(prototype.parameters))))


def _is_reliable(types: Types, program: Program, prototype: Prototype) -> bool:
    """Whether its types say what such a program is given; else they are not believed (func_info_aux.unreliable)."""
    parameters = prototype.parameters
    return len(parameters) == 1 and types.name(max(parameters[0].target, 0)) in _CONTEXTS.get(program.type, ())
