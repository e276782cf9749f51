"""Rows of LoongArch's events: those that Linux knows, and what each means on a core of ours.

Codes: Linux's event maps (arch/loongarch/kernel/perf_event.c), of Loongson's 3A5000 and later; Loongson publishes no
list of events, and no names, so these are ours.
"""

from __future__ import annotations

from emulator.probes import Probe
from pmu.event import Event, Support
from pmu.event_notes import DEMAND, L1D_REFILL, MODELLED, OWN_CYCLES, PREDICTORS

_APPROXIMATE = Support.APPROXIMATE
_L1D_ACCESS = (Probe.L1D_ACCESS_LOAD, Probe.L1D_ACCESS_STORE)
_LL_ACCESS = (Probe.LL_ACCESS_FETCH, Probe.LL_ACCESS_LOAD, Probe.LL_ACCESS_STORE)
_LL_REFILL = (Probe.LL_REFILL_FETCH, Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE)
_DTLB_ACCESS = (Probe.DTLB_ACCESS_LOAD, Probe.DTLB_ACCESS_STORE)
_DTLB_REFILL = (Probe.DTLB_REFILL_LOAD, Probe.DTLB_REFILL_STORE)

ROWS = (
    Event(0x000, "CPU_CYCLES", (Probe.CYCLES,), note=OWN_CYCLES),
    Event(0x001, "INSTRUCTIONS_RETIRED", (Probe.INST_RETIRED,)),
    Event(0x002, "BRANCHES_RETIRED", (Probe.BR_RETIRED,), note="on x86-64 with SYSCALL and INT n"),
    Event(0x003, "BRANCH_MISSES_RETIRED", (Probe.BR_MISPREDICTED,), _APPROXIMATE, PREDICTORS),
    Event(0x004, "DTLB_ACCESS", _DTLB_ACCESS, _APPROXIMATE, MODELLED),
    Event(0x006, "L1I_ACCESS", (Probe.L1I_ACCESS,), _APPROXIMATE, MODELLED),
    Event(0x007, "L1I_MISS", (Probe.L1I_REFILL,), _APPROXIMATE, DEMAND),
    Event(0x008, "L1D_ACCESS", _L1D_ACCESS, _APPROXIMATE, MODELLED),
    Event(0x009, "L1D_MISS", L1D_REFILL, _APPROXIMATE, DEMAND),
    Event(0x00C, "LL_ACCESS", _LL_ACCESS, _APPROXIMATE, DEMAND),
    Event(0x00D, "LL_MISS", _LL_REFILL, _APPROXIMATE, DEMAND),
    Event(0x03B, "ITLB_MISS", (Probe.ITLB_REFILL,), _APPROXIMATE, MODELLED),
    Event(0x03C, "DTLB_MISS", _DTLB_REFILL, _APPROXIMATE, MODELLED),
)  # fmt: skip
