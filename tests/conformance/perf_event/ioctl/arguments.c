// Of the arguments of ENABLE, DISABLE and RESET one bit means something, PERF_IOC_FLAG_GROUP; pointers may be bad ones.
#include "../behaviour.h"

BEHAVIOUR(arguments, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1000;
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_ENABLE, 6));
    fault(2);
    COMPARE(count_of(leader), >=, 2);
    EQUAL(count_of(sibling), 0);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_ENABLE, 7));
    fault(2);
    COMPARE(count_of(sibling), >=, 2);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_DISABLE, 1));
    uint64_t count = count_of(sibling);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_RESET, -2L));
    EQUAL(count_of(leader), 0);
    EQUAL(count_of(sibling), count);
    FAILS(ioctl(leader, PERF_EVENT_IOC_PERIOD, NULL), EFAULT);
    FAILS(ioctl(leader, PERF_EVENT_IOC_SET_FILTER, NULL), EFAULT);
    FAILS(ioctl(leader, PERF_EVENT_IOC_SET_BPF, 1000), EBADF);
}
