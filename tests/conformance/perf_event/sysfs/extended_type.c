// PERF_TYPE_HARDWARE with the PMU's type above 32 bits of config is that PMU's event.
#include "../behaviour.h"

BEHAVIOUR(extended_type, PMU) {
    int event = open_event(
        attr_of(PERF_TYPE_HARDWARE, (unsigned long)number_in(pmu_file("type")) << 32 | PERF_COUNT_HW_INSTRUCTIONS));
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 1000000);
}
