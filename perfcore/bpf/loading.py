"""BPF_PROG_LOAD: from a process's memory to a program that can be run."""

from __future__ import annotations

import struct

from emulator.linux.errors import E2BIG, EINVAL, ENOSPC, ENOTSUPP, EPERM, LinuxError
from perfcore.abi.bpf import LAST_PROG_TYPE, LAYOUTS, Attr, Cmd, ProgType
from perfcore.bpf.compiler import compile_program
from perfcore.bpf.files import btf_of, map_file
from perfcore.bpf.helpers.helper import TRACING
from perfcore.bpf.instructions import (
    INSN_BYTES,
    LOAD_IMM64,
    MAX_INSNS,
    PSEUDO_BTF_ID,
    PSEUDO_FUNC,
    PSEUDO_MAP_FD,
    PSEUDO_MAP_IDX,
    PSEUDO_MAP_IDX_VALUE,
    PSEUDO_MAP_VALUE,
    Instruction,
    decode,
)
from perfcore.bpf.log import Log
from perfcore.bpf.maps.array import ArrayMap
from perfcore.bpf.maps.map import Map
from perfcore.bpf.program import Attachment, Loaded, Program
from perfcore.bpf.refusal import Refusal, malformed
from perfcore.bpf.request import CAP_BPF, CAP_PERFMON, Request, object_name
from perfcore.bpf.subsystem import Bpf
from perfcore.bpf.tracing import attachment, function_types, target_program, traced
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.state import Kind, Reg
from perfcore.bpf.verifier.subject import Subject
from perfcore.bpf.verifier.verifier import Verifier, verify
from perfcore.events.programs import ProgramFile

MOST_INSNS = 1 << 16  # of one program: more is refused, since a host has to compile it
_GPL = frozenset({"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"})
_FLAGS = 0x3F | 0x40  # BPF_F_STRICT_ALIGNMENT .. BPF_F_XDP_DEV_BOUND_ONLY
_MOST_MAPS = 64  # MAX_USED_MAPS
_LICENSE_BYTES = 128
_PROGRAM_BYTES, _BYTES_OF_INSN = 8192, 1536  # what we need of the host for one: the machine's RAM has as much less
_RUN_OF_WORK = 50  # instructions that could have been run, for one that is looked at


def prog_load(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.PROG_LOAD])
    if attr["prog_flags"] & ~_FLAGS or attr["prog_token_fd"]:
        raise LinuxError(EINVAL, f"prog_flags {attr['prog_flags']:#x}, token {attr['prog_token_fd']}")
    text = request.task.mm.read_string(attr["license"], _LICENSE_BYTES)
    gpl = text.decode("utf-8", "replace") in _GPL
    _check_permission(request, attr)
    number = attr["prog_type"]
    target = target_program(request, attr)
    data = request.task.mm.read(attr["insns"], attr["insn_cnt"] * INSN_BYTES)
    kind = next((kind for type, kind in bpf.kinds.items() if type == number), None)
    if kind is None:
        raise LinuxError(
            EINVAL, f"programs of type {number} are not modelled, but {', '.join(type.name for type in bpf.kinds)}"
        )
    name = object_name(attr.name("prog_name"))
    btf = btf_of(request.task, attr["prog_btf_fd"]) if attr["func_info_cnt"] or attr["line_info_cnt"] else None
    functions_of_btf = function_types(request, attr)
    log = Log(attr["log_level"], attr["log_size"], attr["log_buf"])
    if attr["insn_cnt"] > MOST_INSNS:
        raise LinuxError(E2BIG, f"a program of more than {MOST_INSNS} instructions is not modelled")
    bpf.check_allowance("a program is verified")
    loading = _Loading(bpf, request, attr, decode(data))
    subject = Subject(kind, loading.instructions, gpl, log, bpf.kernel_types)
    discharge = bpf.memory.charge(_PROGRAM_BYTES + len(loading.instructions) * _BYTES_OF_INSN)
    try:
        attached, verified = _verified(bpf, request, attr, loading, subject, target)
    except LinuxError:
        discharge()
        raise
    of_objects = frozenset(pc for pc, of_object in subject.object_loads.items() if of_object)
    functions = compile_program(loading.instructions, verified.entries, loading.constants, of_objects)
    loaded = Loaded(
        kind.type, name, loading.instructions, functions, tuple(loading.maps), gpl, request.task.credentials.uid,
        btf, subject.last_context_byte, verified.processed, bpf.kernel.clock.monotonic_ns(),
        attr["expected_attach_type"], attached, functions_of_btf,
    )  # fmt: skip
    program = Program(bpf, loaded, discharge)
    try:
        bpf.programs.add(program)
    except LinuxError:
        program.drop_unused()
        raise
    bpf.tell(program, loaded=True)
    return install_program(request, program)


def _verified(
    bpf: Bpf, request: Request, attr: Attr, loading: _Loading, subject: Subject, target: Program | None
) -> tuple[Attachment | None, Verifier]:
    """What it is for, where its type has such, and what the verifier says of it, in the log, too."""
    attached: Attachment | None = None
    try:
        if subject.kind.type == ProgType.TRACING:
            types = None if target is None else target.loaded.btf
            attached = attachment(bpf.kernel_types(), attr, target, types)
            subject.traced = traced(attached)
        subject.immediates = loading.immediates()
        verified = verify(subject)
    except Refusal as refusal:
        _finish_log(request, attr, subject.log)
        raise LinuxError(refusal.code, f"the verifier: {refusal.why}") from None
    finally:
        bpf.allowance.spend(subject.work * _RUN_OF_WORK)
    _finish_log(request, attr, subject.log)
    return attached, verified


def install_program(request: Request, program: Program) -> int:
    return request.task.files.install(ProgramFile(program, "anon_inode:bpf-prog"), cloexec=True)


def _check_permission(request: Request, attr: Attr) -> None:
    """kernel.unprivileged_bpf_disabled: nobody loads programs without CAP_BPF."""
    if not request.may(CAP_BPF):
        raise LinuxError(EPERM, "programs are loaded with CAP_BPF (kernel.unprivileged_bpf_disabled)")
    if not 0 < attr["insn_cnt"] <= MAX_INSNS:
        raise LinuxError(E2BIG, f"{attr['insn_cnt']} instructions")
    if not request.may(CAP_PERFMON):
        why = "programs that observe are loaded with CAP_PERFMON"
        if attr["prog_type"] not in TRACING:
            why = "without CAP_PERFMON programs may not know addresses: that is not modelled"
        raise LinuxError(EPERM, why)
    if attr["prog_type"] > LAST_PROG_TYPE:
        raise LinuxError(EINVAL, f"prog_type {attr['prog_type']}")


def _finish_log(request: Request, attr: Attr, log: Log) -> None:
    """bpf_vlog_finalize(): ENOSPC where it is not whole."""
    end = attr.offset("log_true_size") + 4
    if request.size >= end:
        request.write_back(attr, "log_true_size", log.total + 1 if log.level else 0)
    if log.address:
        request.task.mm.write(log.address, log.contents())
        if log.overflows:
            raise LinuxError(ENOSPC, f"the log has {log.total + 1} bytes, its buffer {log.size}")


class _Loading:
    """What the program's 64-bit immediates name. resolve_pseudo_ldimm64()"""

    def __init__(self, bpf: Bpf, request: Request, attr: Attr, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self.maps: dict[Map, None] = {}
        self.constants: dict[int, int] = {}  # what is loaded, by instruction
        self._bpf = bpf
        self._request = request
        self._descriptors = attr["fd_array"]

    def immediates(self) -> dict[int, Reg]:
        found: dict[int, Reg] = {}
        pc = 0
        while pc < len(self.instructions) - 1:
            instruction = self.instructions[pc]
            if instruction.opcode == LOAD_IMM64:
                if instruction.src not in (0, PSEUDO_FUNC):
                    found[pc] = self._named(pc, instruction, self.instructions[pc + 1].imm)
                pc += 1
            pc += 1
        return found

    def _named(self, pc: int, instruction: Instruction, upper: int) -> Reg:
        if instruction.src == PSEUDO_BTF_ID:
            raise malformed("invalid module BTF object FD specified: the BTF of the modelled kernel has no variables")
        if instruction.src not in (PSEUDO_MAP_FD, PSEUDO_MAP_VALUE, PSEUDO_MAP_IDX, PSEUDO_MAP_IDX_VALUE):
            raise malformed("unrecognized bpf_ld_imm64 insn")
        is_value = instruction.src in (PSEUDO_MAP_VALUE, PSEUDO_MAP_IDX_VALUE)
        if not is_value and upper:
            raise malformed("unrecognized bpf_ld_imm64 insn")
        map = self._map(self._descriptor(instruction))
        if not is_value:
            self.constants[pc] = self._bpf.address_of(map)
            return Reg(Kind.MAP_PTR, map=map)
        if not isinstance(map, ArrayMap) or map.request.max_entries != 1:
            raise Refusal(
                ENOTSUPP if isinstance(map, ArrayMap) else EINVAL, "no direct value access support for this map"
            )
        offset = upper & 0xFFFF_FFFF
        if offset >= map.request.value_size:
            raise malformed(f"invalid access to map value pointer, value_size={map.request.value_size} off={offset}")
        self.constants[pc] = map.memory.address_of(offset)
        return Reg(Kind.MAP_VALUE, scalar.const(offset), map=map)

    def _descriptor(self, instruction: Instruction) -> int:
        if instruction.src in (PSEUDO_MAP_FD, PSEUDO_MAP_VALUE):
            return instruction.imm
        if not self._descriptors:
            raise Refusal(EINVAL, "fd_idx without fd_array is invalid")
        at = self._descriptors + 4 * (instruction.imm & 0xFFFF_FFFF)
        descriptor: int = struct.unpack("<i", self._request.task.mm.read(at, 4))[0]
        return descriptor

    def _map(self, descriptor: int) -> Map:
        try:
            map = map_file(self._request.task, descriptor).thing
        except LinuxError as error:
            raise Refusal(error.code, f"fd {descriptor} is not pointing to valid bpf_map") from None
        if map not in self.maps and len(self.maps) >= _MOST_MAPS:
            raise Refusal(E2BIG, f"The total number of maps per program has reached the limit of {_MOST_MAPS}")
        self.maps[map] = None
        return map
