"""The PMU arm_spe_0 as data: the format of its attr. drivers/perf/arm_spe_pmu.c of Linux 6.12."""

from __future__ import annotations

from pmu.format_field import FormatField, Role
from pmu.unit_pmu import UnitPmu

NAME = "arm_spe_0"
LEAST_INTERVAL = 1024  # instructions: what PMSIDR_EL1.Interval recommends; Neoverse N1's

FORMAT = (
    FormatField("ts_enable", 0, 0, Role.OPTION),
    FormatField("pa_enable", 1, 1, Role.OPTION),
    FormatField("pct_enable", 2, 2, Role.OPTION),
    FormatField("jitter", 16, 16, Role.OPTION),
    FormatField("branch_filter", 32, 32, Role.OPTION),
    FormatField("load_filter", 33, 33, Role.OPTION),
    FormatField("store_filter", 34, 34, Role.OPTION),
    FormatField("event_filter", 0, 63, Role.OPTION, config="config1"),
    FormatField("min_latency", 0, 11, Role.OPTION, config="config2"),
)
INVERTED = FormatField("inv_event_filter", 0, 63, Role.OPTION, config="config3")  # where there is PMSNEVFR_EL1

PMUS = (
    UnitPmu(
        NAME,
        FORMAT,
        (),
        unit="spe",
        tells_of_memory=True,
        default_period=LEAST_INTERVAL,
        caps={"arch_inst": "1", "ernd": "0", "count_size": "12", "min_interval": f"{LEAST_INTERVAL}"},
        note="one instruction of so many (-c), what it did and how long it took",
    ),
)
