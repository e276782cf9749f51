"""redwood_cove: the PMU of Intel's Redwood Cove as in Granite Rapids: perfmon, version 5, with the events of its list.

Eight general-purpose counters and four fixed ones. The last of these counts slots, and MSR_PERF_METRICS says where they
went.
"""

from __future__ import annotations

from pmu.intel.core_pmu import redwood_cove

MODEL = redwood_cove("redwood_cove", counters=8)
