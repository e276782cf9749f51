// The PMU's own number for instructions counts what the generic event does.
#include "../behaviour.h"

BEHAVIOUR(raw_event, PMU) {
#ifdef __x86_64__
    Attr attr = attr_of(PERF_TYPE_RAW, 0x00c0);
#else
    Attr attr = attr_of(PERF_TYPE_RAW, 0x08);
#endif
    int generic = open_event(INSTRUCTIONS), raw = open_sibling(attr, generic);
    enable(generic);
    enable(raw);
    SUCCEEDS(ioctl(generic, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
    reset(generic);
    reset(raw);
    SUCCEEDS(ioctl(generic, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
    million();
    SUCCEEDS(ioctl(generic, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
    COMPARE(count_of(raw), >=, 1000000);
    EQUAL(count_of(raw), count_of(generic));
}
