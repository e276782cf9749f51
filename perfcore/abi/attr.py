"""PerfEventAttr: struct perf_event_attr, every field up to PERF_ATTR_SIZE_VER8."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields, replace

PERF_ATTR_SIZE_VER0 = 64
PERF_ATTR_SIZE_VER1 = 72  # config2
PERF_ATTR_SIZE_VER2 = 80  # branch_sample_type
PERF_ATTR_SIZE_VER3 = 96  # sample_regs_user, sample_stack_user, clockid
PERF_ATTR_SIZE_VER4 = 104  # sample_regs_intr
PERF_ATTR_SIZE_VER5 = 112  # aux_watermark, sample_max_stack
PERF_ATTR_SIZE_VER6 = 120  # aux_sample_size, aux_action
PERF_ATTR_SIZE_VER7 = 128  # sig_data
PERF_ATTR_SIZE_VER8 = 136  # config3
ATTR_SIZE = PERF_ATTR_SIZE_VER8  # sizeof(struct perf_event_attr) of this kernel
ATTR_SIZE_LIMIT = 4096  # a page: what the kernel refuses to look at

# The words in order of their offset. `sample_period` is also sample_freq, `wakeup_events` wakeup_watermark, `config1`
# bp_addr, `config2` bp_len; `flags` are the one-bit fields below.
_WORDS = (
    ("type", "I"),
    ("size", "I"),
    ("config", "Q"),
    ("sample_period", "Q"),
    ("sample_type", "Q"),
    ("read_format", "Q"),
    ("flags", "Q"),
    ("wakeup_events", "I"),
    ("bp_type", "I"),
    ("config1", "Q"),
    ("config2", "Q"),
    ("branch_sample_type", "Q"),
    ("sample_regs_user", "Q"),
    ("sample_stack_user", "I"),
    ("clockid", "i"),
    ("sample_regs_intr", "Q"),
    ("aux_watermark", "I"),
    ("sample_max_stack", "H"),
    ("reserved_2", "H"),
    ("aux_sample_size", "I"),
    ("aux_action", "I"),
    ("sig_data", "Q"),
    ("config3", "Q"),
)
_LAYOUT = struct.Struct("<" + "".join(format for _, format in _WORDS))
assert _LAYOUT.size == ATTR_SIZE

# The bit-fields of `flags`, from bit 0 up, with their widths.
_FLAGS = (
    ("disabled", 1),
    ("inherit", 1),
    ("pinned", 1),
    ("exclusive", 1),
    ("exclude_user", 1),
    ("exclude_kernel", 1),
    ("exclude_hv", 1),
    ("exclude_idle", 1),
    ("mmap", 1),
    ("comm", 1),
    ("freq", 1),
    ("inherit_stat", 1),
    ("enable_on_exec", 1),
    ("task", 1),
    ("watermark", 1),
    ("precise_ip", 2),
    ("mmap_data", 1),
    ("sample_id_all", 1),
    ("exclude_host", 1),
    ("exclude_guest", 1),
    ("exclude_callchain_kernel", 1),
    ("exclude_callchain_user", 1),
    ("mmap2", 1),
    ("comm_exec", 1),
    ("use_clockid", 1),
    ("context_switch", 1),
    ("write_backward", 1),
    ("namespaces", 1),
    ("ksymbol", 1),
    ("bpf_event", 1),
    ("aux_output", 1),
    ("cgroup", 1),
    ("text_poke", 1),
    ("build_id", 1),
    ("inherit_thread", 1),
    ("remove_on_exec", 1),
    ("sigtrap", 1),
    ("reserved_1", 26),
)


class AttrTooBig(Exception):
    """E2BIG: the size cannot be right, or bits are set beyond what we know. `size` is written back to the caller."""

    size = ATTR_SIZE


@dataclass(slots=True)
class PerfEventAttr:
    """struct perf_event_attr under the kernel's names; bit-fields are ints. A field that is not given is 0."""

    type: int = 0
    size: int = ATTR_SIZE
    config: int = 0
    sample_period: int = 0  # or sample_freq, in Hz, where freq is set
    sample_type: int = 0
    read_format: int = 0
    disabled: int = 0
    inherit: int = 0
    pinned: int = 0
    exclusive: int = 0
    exclude_user: int = 0
    exclude_kernel: int = 0
    exclude_hv: int = 0
    exclude_idle: int = 0
    mmap: int = 0
    comm: int = 0
    freq: int = 0
    inherit_stat: int = 0
    enable_on_exec: int = 0
    task: int = 0
    watermark: int = 0
    precise_ip: int = 0
    mmap_data: int = 0
    sample_id_all: int = 0
    exclude_host: int = 0
    exclude_guest: int = 0
    exclude_callchain_kernel: int = 0
    exclude_callchain_user: int = 0
    mmap2: int = 0
    comm_exec: int = 0
    use_clockid: int = 0
    context_switch: int = 0
    write_backward: int = 0
    namespaces: int = 0
    ksymbol: int = 0
    bpf_event: int = 0
    aux_output: int = 0
    cgroup: int = 0
    text_poke: int = 0
    build_id: int = 0
    inherit_thread: int = 0
    remove_on_exec: int = 0
    sigtrap: int = 0
    reserved_1: int = 0
    wakeup_events: int = 0  # or wakeup_watermark, in bytes, where watermark is set
    bp_type: int = 0
    config1: int = 0  # or bp_addr
    config2: int = 0  # or bp_len
    branch_sample_type: int = 0
    sample_regs_user: int = 0
    sample_stack_user: int = 0
    clockid: int = 0
    sample_regs_intr: int = 0
    aux_watermark: int = 0
    sample_max_stack: int = 0
    reserved_2: int = 0
    aux_sample_size: int = 0
    aux_action: int = 0
    sig_data: int = 0
    config3: int = 0

    @property
    def flags(self) -> int:
        """The 64 bits of bit-fields as they lie in memory."""
        bits = shift = 0
        for name, width in _FLAGS:
            value = getattr(self, name)
            if value >> width:
                raise ValueError(f"perf_event_attr.{name}: {value} does not fit in {width} bits")
            bits |= value << shift
            shift += width
        return bits

    @property
    def sample_freq(self) -> int:
        """The other name of sample_period, in Hz; meant where freq is set."""
        return self.sample_period

    def pack(self) -> bytes:
        """The structure's bytes, `size` of them."""
        return _LAYOUT.pack(*(getattr(self, name) for name, _ in _WORDS))[: self.size].ljust(self.size, b"\0")

    @classmethod
    def unpack(cls, data: bytes) -> PerfEventAttr:
        """The structure in `data`, whose length is at least its own size field (0 means VER0), by the kernel's rules.

        Raises AttrTooBig as the kernel answers E2BIG: a size below VER0 or above a page, or a tail that is not zero.
        """
        size = attr_size(data)
        if len(data) < size:
            raise ValueError(f"perf_event_attr: size is {size} but there are only {len(data)} bytes")
        if any(data[ATTR_SIZE:size]):
            raise AttrTooBig(f"perf_event_attr: bytes {ATTR_SIZE}..{size} must be zero for this kernel")
        known = bytes(data[: min(size, ATTR_SIZE)]).ljust(ATTR_SIZE, b"\0")
        words: dict[str, int] = {name: word for (name, _), word in zip(_WORDS, _LAYOUT.unpack(known), strict=True)}
        words["size"] = size
        flags = words.pop("flags")
        for name, width in _FLAGS:
            words[name] = flags & (1 << width) - 1
            flags >>= width
        return cls(**words)

    def copy(self, **changes: int) -> PerfEventAttr:
        return replace(self, **changes)

    def __repr__(self) -> str:
        """Only what is set."""
        shown = (f"{field.name}={getattr(self, field.name):#x}" for field in fields(self) if getattr(self, field.name))
        return f"PerfEventAttr({', '.join(shown)})"


def attr_size(data: bytes) -> int:
    """The size that an attr starting with `data` (8 bytes or more) claims. Raises AttrTooBig where the kernel would."""
    size: int = struct.unpack_from("<I", data, 4)[0] or PERF_ATTR_SIZE_VER0
    if not PERF_ATTR_SIZE_VER0 <= size <= ATTR_SIZE_LIMIT:
        raise AttrTooBig(f"perf_event_attr.size: {size} is not within {PERF_ATTR_SIZE_VER0}..{ATTR_SIZE_LIMIT}")
    return size
