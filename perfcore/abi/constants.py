"""The numbers of uapi/linux/perf_event.h, under the kernel's names without their common prefix.

Those of events that PMUs count are in pmu/generic_events.py.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

from pmu.generic_events import NamedNumber

PERF_MAX_STACK_DEPTH = 127  # callchain entries, sysctl kernel.perf_event_max_stack
PERF_MAX_CONTEXTS_PER_STACK = 8  # PERF_CONTEXT_* markers, sysctl kernel.perf_event_max_contexts_per_stack


class PerfType(IntEnum):
    """enum perf_type_id; dynamic PMUs have numbers from MAX on."""

    HARDWARE = 0
    SOFTWARE = 1
    TRACEPOINT = 2
    HW_CACHE = 3
    RAW = 4
    BREAKPOINT = 5
    MAX = 6


KPROBE_TYPE, UPROBE_TYPE = 6, 7  # the first PMUs whose numbers Linux chooses
FIRST_DYNAMIC_TYPE = 8  # ... and those that come then


class SoftwareId(NamedNumber):
    """enum perf_sw_ids."""

    CPU_CLOCK = 0, "cpu-clock"
    TASK_CLOCK = 1, "task-clock"
    PAGE_FAULTS = 2, "page-faults", "faults"
    CONTEXT_SWITCHES = 3, "context-switches", "cs"
    CPU_MIGRATIONS = 4, "cpu-migrations", "migrations"
    PAGE_FAULTS_MIN = 5, "minor-faults"
    PAGE_FAULTS_MAJ = 6, "major-faults"
    ALIGNMENT_FAULTS = 7, "alignment-faults"
    EMULATION_FAULTS = 8, "emulation-faults"
    DUMMY = 9, "dummy"
    BPF_OUTPUT = 10, "bpf-output"
    CGROUP_SWITCHES = 11, "cgroup-switches"


CLOCKS = (SoftwareId.CPU_CLOCK, SoftwareId.TASK_CLOCK)  # counted in ns
FAULTS = (SoftwareId.PAGE_FAULTS, SoftwareId.PAGE_FAULTS_MIN, SoftwareId.PAGE_FAULTS_MAJ)  # whose address is the data's


class SampleType(IntFlag):
    """enum perf_event_sample_format (attr.sample_type)."""

    IP = 1 << 0
    TID = 1 << 1
    TIME = 1 << 2
    ADDR = 1 << 3
    READ = 1 << 4
    CALLCHAIN = 1 << 5
    ID = 1 << 6
    CPU = 1 << 7
    PERIOD = 1 << 8
    STREAM_ID = 1 << 9
    RAW = 1 << 10
    BRANCH_STACK = 1 << 11
    REGS_USER = 1 << 12
    STACK_USER = 1 << 13
    WEIGHT = 1 << 14
    DATA_SRC = 1 << 15
    IDENTIFIER = 1 << 16
    TRANSACTION = 1 << 17
    REGS_INTR = 1 << 18
    PHYS_ADDR = 1 << 19
    AUX = 1 << 20
    CGROUP = 1 << 21
    DATA_PAGE_SIZE = 1 << 22
    CODE_PAGE_SIZE = 1 << 23
    WEIGHT_STRUCT = 1 << 24


PERF_SAMPLE_MAX = 1 << 25


class BranchSampleType(IntFlag):
    """enum perf_branch_sample_type (attr.branch_sample_type)."""

    USER = 1 << 0
    KERNEL = 1 << 1
    HV = 1 << 2
    ANY = 1 << 3
    ANY_CALL = 1 << 4
    ANY_RETURN = 1 << 5
    IND_CALL = 1 << 6
    ABORT_TX = 1 << 7
    IN_TX = 1 << 8
    NO_TX = 1 << 9
    COND = 1 << 10
    CALL_STACK = 1 << 11
    IND_JUMP = 1 << 12
    CALL = 1 << 13
    NO_FLAGS = 1 << 14
    NO_CYCLES = 1 << 15
    TYPE_SAVE = 1 << 16
    HW_INDEX = 1 << 17
    PRIV_SAVE = 1 << 18
    COUNTERS = 1 << 19
    PLM_ALL = USER | KERNEL | HV


PERF_SAMPLE_BRANCH_MAX = 1 << 20


class BranchType(IntEnum):
    """enum perf_branch_entry's type: what `BranchSampleType.TYPE_SAVE` asks for."""

    UNKNOWN = 0
    COND = 1
    UNCOND = 2
    IND = 3
    CALL = 4
    IND_CALL = 5
    RET = 6
    SYSCALL = 7
    SYSRET = 8
    COND_CALL = 9
    COND_RET = 10
    ERET = 11
    IRQ = 12
    SERROR = 13
    NO_TX = 14
    EXTEND_ABI = 15


class NewBranchType(IntEnum):
    """enum perf_branch_entry's new_type: of branches whose type is `BranchType.EXTEND_ABI`."""

    FAULT_ALGN = 0
    FAULT_DATA = 1
    FAULT_INST = 2


class BranchPrivilege(IntEnum):
    """enum perf_branch_entry's priv: of a branch's target."""

    UNKNOWN = 0
    USER = 1
    KERNEL = 2
    HV = 3


class BranchFlag(IntFlag):
    """struct perf_branch_entry, behind its addresses."""

    MISPRED = 1 << 0
    PREDICTED = 1 << 1
    IN_TX = 1 << 2
    ABORT = 1 << 3


class BranchSpeculation(IntEnum):
    """enum perf_branch_entry's spec."""

    NOT_AVAILABLE = 0
    WRONG_PATH = 1
    NON_SPECULATIVE = 2
    CORRECT_PATH = 3


BRANCH_CYCLES_SHIFT = 4  # 16 bits
BRANCH_TYPE_SHIFT = 20  # 4 bits
BRANCH_SPEC_SHIFT = 24  # 2 bits
BRANCH_NEW_TYPE_SHIFT = 26  # 4 bits
BRANCH_PRIV_SHIFT = 30  # 3 bits


class ReadFormat(IntFlag):
    """enum perf_event_read_format (attr.read_format)."""

    TOTAL_TIME_ENABLED = 1 << 0
    TOTAL_TIME_RUNNING = 1 << 1
    ID = 1 << 2
    GROUP = 1 << 3
    LOST = 1 << 4


PERF_FORMAT_MAX = 1 << 5


class RecordType(IntEnum):
    """enum perf_event_type: perf_event_header.type."""

    MMAP = 1
    LOST = 2
    COMM = 3
    EXIT = 4
    THROTTLE = 5
    UNTHROTTLE = 6
    FORK = 7
    READ = 8
    SAMPLE = 9
    MMAP2 = 10
    AUX = 11
    ITRACE_START = 12
    LOST_SAMPLES = 13
    SWITCH = 14
    SWITCH_CPU_WIDE = 15
    NAMESPACES = 16
    KSYMBOL = 17
    BPF_EVENT = 18
    CGROUP = 19
    TEXT_POKE = 20
    AUX_OUTPUT_HW_ID = 21


class Misc(IntFlag):
    """PERF_RECORD_MISC_*: perf_event_header.misc. Bits 13..15 mean different things in different records."""

    CPUMODE_MASK = 7 << 0
    KERNEL = 1 << 0
    USER = 2 << 0
    HYPERVISOR = 3 << 0
    GUEST_KERNEL = 4 << 0
    GUEST_USER = 5 << 0
    PROC_MAP_PARSE_TIMEOUT = 1 << 12
    MMAP_DATA = 1 << 13
    COMM_EXEC = 1 << 13
    FORK_EXEC = 1 << 13
    SWITCH_OUT = 1 << 13
    EXACT_IP = 1 << 14
    SWITCH_OUT_PREEMPT = 1 << 14
    MMAP_BUILD_ID = 1 << 14
    EXT_RESERVED = 1 << 15


class PerfContext(IntEnum):
    """enum perf_callchain_context: markers among a callchain's addresses."""

    HV = (1 << 64) - 32
    KERNEL = (1 << 64) - 128
    USER = (1 << 64) - 512
    GUEST = (1 << 64) - 2048
    GUEST_KERNEL = (1 << 64) - 2176
    GUEST_USER = (1 << 64) - 2560
    MAX = (1 << 64) - 4095


class OpenFlag(IntFlag):
    """PERF_FLAG_*: the flags of perf_event_open."""

    FD_NO_GROUP = 1 << 0
    FD_OUTPUT = 1 << 1
    PID_CGROUP = 1 << 2
    FD_CLOEXEC = 1 << 3


PERF_FLAG_ALL = 0xF


class AuxAction(IntFlag):
    """attr.aux_action. Of Linux 6.13, and of Debian's 6.12."""

    START_PAUSED = 1 << 0
    PAUSE = 1 << 1
    RESUME = 1 << 2
    ALL = 7


class AuxFlag(IntFlag):
    """PERF_AUX_FLAG_*: of PERF_RECORD_AUX."""

    TRUNCATED = 1 << 0  # there was no room for all
    OVERWRITE = 1 << 1
    PARTIAL = 1 << 2  # there are gaps
    COLLISION = 1 << 3  # a sample met another one


class SampleRegsAbi(IntEnum):
    """enum perf_sample_regs_abi."""

    NONE = 0
    ABI_32 = 1
    ABI_64 = 2
