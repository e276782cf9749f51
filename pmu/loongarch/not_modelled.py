"""What Linux knows of LoongArch's events and no row of ours counts."""

from __future__ import annotations

NOT_MODELLED = {  # code -> name
    0x0A9: "L1D_PREFETCH_MISS",  # of a prefetcher's own accesses to L1D nothing is known
    0x0AA: "L1D_PREFETCH_ACCESS",
}
