// A hit is a sample: where, and of which address.
#include "../behaviour.h"

static volatile uint64_t sampled_word;
static __attribute__((noinline)) void write_sampled_word(int value) { sampled_word = value; }

BEHAVIOUR(breakpoint_samples, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&sampled_word;
    attr.bp_len = 8;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    for (int i = 0; i < 3; i++) write_sampled_word(i);
    disable(event);
    for (int i = 0; i < 3; i++) {
        uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
        COMPARE(body[0], >=, write_sampled_word);
        COMPARE(body[0], <, (char*)write_sampled_word + 64);
        EQUAL(body[1], &sampled_word);
    }
    CHECK(!next_of(ring, PERF_RECORD_SAMPLE));
}
