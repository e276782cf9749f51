// ... of a CPU's event: PERF_RECORD_SWITCH_CPU_WIDE names the task that comes next, and that was there before.
#include "../behaviour.h"

BEHAVIOUR(switches_of_a_cpu, ROOT) {
    run_on(0);
    Attr attr = DUMMY;
    attr.context_switch = attr.sample_id_all = 1;
    attr.sample_type = PERF_SAMPLE_TID;
    int event = open_of(attr, -1, 0, -1);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    sleep_ms(5);
    disable(event);
    Header* header;
    int left = 0, back = 0;
    while ((header = next_of(ring, PERF_RECORD_SWITCH_CPU_WIDE))) {
        EQUAL(header->size, sizeof *header + 16);
        uint32_t* body = (uint32_t*)(header + 1);  // pid and tid of the other, then those of the sample
        int own = body[2] == (uint32_t)getpid();
        if (header->misc & PERF_RECORD_MISC_SWITCH_OUT)
            left += own && body[0] != (uint32_t)getpid();
        else
            back += own && body[0] != (uint32_t)getpid();
    }
    COMPARE(left, >=, 1);
    COMPARE(back, >=, 1);
}
