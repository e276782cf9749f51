"""What a type of program is given: its context, and what of that it may read. kernel/trace/bpf_trace.c."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfcore.abi.bpf import ProgType

PT_REGS_BYTES = {"x86_64": 168, "aarch64": 336}  # struct pt_regs: kprobes' context
USER_REGS_BYTES = {"x86_64": 168, "aarch64": 272}  # bpf_user_pt_regs_t: its part that perf events' contexts have
_SAMPLE_FIELDS_BYTES = 16  # sample_period and addr of struct bpf_perf_event_data, behind the registers
_MAX_TRACE_BYTES = 8192  # PERF_MAX_TRACE_SIZE
_MAX_FUNC_ARGS = 12  # MAX_BPF_FUNC_ARGS


@dataclass(frozen=True, slots=True)
class ProgramKind:
    """`first` to `end` may be read, by accesses that are aligned; below `whole_words` only words of 8 bytes."""

    type: ProgType
    first: int
    end: int
    whole_words: int = 0

    def may_read(self, offset: int, size: int) -> bool:
        inside = self.first <= offset and offset + size <= self.end and not offset % size
        return inside and (size == 8 or offset >= self.whole_words)


def program_kinds(isa: str) -> Mapping[ProgType, ProgramKind]:
    """SOCKET_FILTER may be loaded, as libraries do to see what there is; packets, which it would read, do not exist."""
    regs = USER_REGS_BYTES[isa]
    kinds = (
        ProgramKind(ProgType.SOCKET_FILTER, 0, 0),
        ProgramKind(ProgType.KPROBE, 0, PT_REGS_BYTES[isa]),
        ProgramKind(ProgType.TRACEPOINT, 8, _MAX_TRACE_BYTES),
        ProgramKind(ProgType.PERF_EVENT, 0, regs + _SAMPLE_FIELDS_BYTES, whole_words=regs),
        ProgramKind(ProgType.RAW_TRACEPOINT, 0, 8 * _MAX_FUNC_ARGS),
        ProgramKind(ProgType.TRACING, 0, 8 * _MAX_FUNC_ARGS),
    )
    return {kind.type: kind for kind in kinds}
