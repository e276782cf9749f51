// IOC_SET_BPF with what is no descriptor: EBADF.
#include "../behaviour.h"

BEHAVIOUR(set_program, NOTHING) {
    int event = open_event(DUMMY);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_BPF, 9999), EBADF);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_BPF, -1), EBADF);
}
