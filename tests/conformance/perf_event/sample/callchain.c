// PERF_SAMPLE_CALLCHAIN: a marker, the instruction, and where it returns to.
#include "../behaviour.h"

// It keeps a frame pointer, whatever the compiler's options are.
void touch_one(char* at);
#ifdef __x86_64__
__asm__(
    ".text\n .globl touch_one, call_touch_one, behind_the_call\n touch_one: push %rbp\n mov %rsp, %rbp\n movb $1, "
    "(%rdi)\n pop %rbp\n ret\n"
    "call_touch_one: push %rbp\n mov %rsp, %rbp\n call touch_one\n behind_the_call: pop %rbp\n ret");
#else
__asm__(
    ".text\n .globl touch_one, call_touch_one, behind_the_call\n touch_one: stp x29, x30, [sp, #-16]!\n mov x29, sp\n "
    "strb wzr, [x0]\n ldp x29, x30, [sp], #16\n ret\n"
    "call_touch_one: stp x29, x30, [sp, #-16]!\n mov x29, sp\n bl touch_one\n behind_the_call: ldp x29, x30, [sp], "
    "#16\n ret");
#endif
void call_touch_one(char* at);
extern char behind_the_call[];

BEHAVIOUR(callchain, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
    call_touch_one(at);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    COMPARE(body[1], >=, 3);
    EQUAL(body[2], PERF_CONTEXT_USER);
    EQUAL(body[3], body[0]);
    COMPARE(body[0], >=, touch_one);
    COMPARE(body[0], <, call_touch_one);
    EQUAL(body[4], behind_the_call);
}
