// IOC_ID writes 8 bytes, or EFAULT.
#include "../behaviour.h"

BEHAVIOUR(id_to_nowhere, NOTHING) {
    int event = open_event(DUMMY);
    FAILS(ioctl(event, PERF_EVENT_IOC_ID, NULL), EFAULT);
}
