// IOC_SET_BPF with a descriptor of something else: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(set_program_of_no_program, NOTHING) {
    int event = open_event(DUMMY);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_BPF, event), EINVAL);
}
