"""Branch filters: which branches record -b and -j keep with each sample, by perf's names."""

from __future__ import annotations

from perfcore.abi.constants import BranchSampleType

_NAMES = {  # tools/perf/util/parse-branch-options.c
    "u": BranchSampleType.USER,
    "k": BranchSampleType.KERNEL,
    "hv": BranchSampleType.HV,
    "any": BranchSampleType.ANY,
    "any_call": BranchSampleType.ANY_CALL,
    "any_ret": BranchSampleType.ANY_RETURN,
    "ind_call": BranchSampleType.IND_CALL,
    "abort_tx": BranchSampleType.ABORT_TX,
    "in_tx": BranchSampleType.IN_TX,
    "no_tx": BranchSampleType.NO_TX,
    "cond": BranchSampleType.COND,
    "ind_jmp": BranchSampleType.IND_JUMP,
    "call": BranchSampleType.CALL,
    "no_flags": BranchSampleType.NO_FLAGS,
    "no_cycles": BranchSampleType.NO_CYCLES,
    "save_type": BranchSampleType.TYPE_SAVE,
    "stack": BranchSampleType.CALL_STACK,
    "hw_index": BranchSampleType.HW_INDEX,
    "priv": BranchSampleType.PRIV_SAVE,
    "counter": BranchSampleType.COUNTERS,
}
ANY_BRANCH = int(BranchSampleType.ANY)  # -b
CALL_STACK = int(  # --call-graph lbr, as perf opens it
    BranchSampleType.USER
    | BranchSampleType.CALL_STACK
    | BranchSampleType.NO_CYCLES
    | BranchSampleType.NO_FLAGS
    | BranchSampleType.HW_INDEX
)


def branch_filter(text: str) -> int:
    """attr.branch_sample_type of ``any_call,u``. Levels alone mean any branch there. ValueError names what there is."""
    wanted = 0
    for name in text.lower().split(","):
        if name not in _NAMES:
            raise ValueError(f"'{name}' is no branch filter; there is {', '.join(_NAMES)}")
        wanted |= _NAMES[name]
    return wanted if wanted & ~BranchSampleType.PLM_ALL else wanted | ANY_BRANCH
