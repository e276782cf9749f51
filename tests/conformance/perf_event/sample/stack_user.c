// PERF_SAMPLE_STACK_USER: a size, that many bytes from the stack pointer, and how many of them there were.
#include "../behaviour.h"

static __attribute__((noinline)) void touch_below(char* at) {
    *(volatile char*)at = 1;
    __asm__ volatile("" ::: "memory");
}

// Its frame is above the stack pointer of who touches, not in the red zone.
static __attribute__((noinline)) void touch_with_a_mark(char* at) {
    volatile uint64_t marks[2] = {0x1122334455667788, 0x99aabbccddeeff00};
    touch_below(at);
    (void)marks[0];
}

BEHAVIOUR(stack_user, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_STACK_USER;
    attr.sample_stack_user = 256;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
    touch_with_a_mark(at);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(body[0], 256);
    EQUAL(body[33], 256);
    int found = 0;
    for (int i = 1; i < 32; i++) found |= body[i] == 0x1122334455667788 && body[i + 1] == 0x99aabbccddeeff00;
    EQUAL(found, 1);
}
