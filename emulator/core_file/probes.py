"""Probes of a core: those that its tables make it fire. A count of what it does not have would be nobody's."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.probes import Probe

_BRANCH_PARTS = {  # [branch]'s keys; without one, that part is never wrong
    Probe.BR_COND_MISPREDICTED: "direction",
    Probe.BR_INDIRECT_MISPREDICTED: "indirect",
    Probe.BR_RETURN_MISPREDICTED: "return_stack",
    Probe.BTB_MISS: "btb_entries",
}
_TABLES = {  # what a memory probe's name begins with -> the table that it needs
    "L1I_": "l1i",
    "L1D_": "l1d",
    "L2_": "l2",
    "LL_": "llc",
    "DRAM_": "memory",
    "UNALIGNED_": "l1d",
    "ITLB_": "itlb",
    "DTLB_": "dtlb",
    "L2TLB_": "l2tlb",
    "SNOOP": "l1d",
    "INVALIDATED": "l1d",
    "FETCHED_": "l1d",
}
KERNEL_WORK = ("syscall", "fault", "exception", "switch")  # what [kernel] gives cycles to
_OUT_OF_ORDER = (Probe.STALL_ROB, Probe.STALL_SCHEDULER, Probe.STALL_LOAD_QUEUE, Probe.MOVE_ELIMINATED)


def fires(tables: Mapping[str, object], probe: Probe) -> bool:
    """Whether a core of these tables (those of a core file) can fire the probe. Those of the engine always do."""
    if probe < Probe.L1I_ACCESS:
        return True
    if probe >= Probe.UOPS_DISPATCHED:
        pipeline = tables.get("pipeline")
        model = pipeline.get("model", "ideal") if isinstance(pipeline, dict) else "ideal"
        return model == "out_of_order" if probe in _OUT_OF_ORDER else model != "ideal"
    if probe >= Probe.BR_MISPREDICTED:
        branch = tables.get("branch")
        if not isinstance(branch, dict):
            return False
        part = _BRANCH_PARTS.get(probe)
        return any(key in branch for key in _BRANCH_PARTS.values()) if part is None else part in branch
    table = next(table for start, table in _TABLES.items() if probe.name.startswith(start))
    return table in tables


def kernel_takes_time(tables: Mapping[str, object]) -> bool:
    """Whether there are cycles of the kernel's."""
    costs = tables.get("kernel")
    return isinstance(costs, dict) and any(costs.get(f"{work}_cycles") for work in KERNEL_WORK)
