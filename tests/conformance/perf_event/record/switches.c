// attr.context_switch: PERF_RECORD_SWITCH when the task leaves its CPU, and when it comes.
#include "../behaviour.h"

BEHAVIOUR(switches, NOTHING) {
    Attr attr = DUMMY;
    attr.context_switch = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    sleep_ms(5);
    disable(event);
    int outs = 0, ins = 0;
    Header* header;
    while ((header = next_of(ring, PERF_RECORD_SWITCH))) {
        EQUAL(header->size, sizeof *header);
        if (header->misc & PERF_RECORD_MISC_SWITCH_OUT)
            outs++;
        else
            ins++;
    }
    COMPARE(outs, >=, 1);
    COMPARE(ins, >=, 1);
}
