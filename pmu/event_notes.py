"""What event rows of several vendors share: what they confess, and the probes that one event counts together."""

from __future__ import annotations

from emulator.probes import Probe

OWN_CYCLES = "the core's own: on the ideal core one cycle an instruction"
BY_MODEL = "cycles and slots are the core model's"
MODELLED = "of the core's model, whose caches and TLBs nothing on a wrong path disturbs"
DEMAND = (
    "of the core's model: for loads, stores and fetches of the right path; what a prefetcher asks for is not counted"
)
PREDICTORS = "of the core model's predictors"
LINES_READ = "lines, with those that prefetchers ask for"
UNFED = f"{BY_MODEL}; those lost to mispredicted branches are not among them"  # slots

L1D_REFILL = (Probe.L1D_REFILL_LOAD, Probe.L1D_REFILL_STORE)
L2_REFILL = (Probe.L2_REFILL_FETCH, Probe.L2_REFILL_LOAD, Probe.L2_REFILL_STORE)
LL_REQUESTS = (Probe.LL_ACCESS_FETCH, Probe.LL_ACCESS_LOAD, Probe.LL_ACCESS_STORE, Probe.LL_ACCESS_PREFETCH)
LL_MISSES = (Probe.LL_REFILL_FETCH, Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE, Probe.LL_REFILL_PREFETCH)
SLOTS = (Probe.UOPS_RETIRED, Probe.SLOTS_FRONTEND, Probe.SLOTS_BACKEND, Probe.SLOTS_BAD_SPECULATION)
