// PERF_SAMPLE_RAW: the fields as the format file lays them out: common_type first, common_pid, the call's number.
#include "../behaviour.h"

BEHAVIOUR(raw_data, TRACEFS) {
    long id = number_in("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id");
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, id);
    attr.exclude_kernel = 0;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_RAW;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    syscall(SYS_getppid);
    disable(event);
    char* raw = (char*)body_of(ring, PERF_RECORD_SAMPLE);
    uint32_t size = *(uint32_t*)raw;
    EQUAL((size + 4) % 8, 0);
    COMPARE(size, >=, 64);
    EQUAL(*(uint16_t*)(raw + 4), id);
    EQUAL(*(int32_t*)(raw + 8), getpid());
    EQUAL(*(uint64_t*)(raw + 12), SYS_getppid);
}
