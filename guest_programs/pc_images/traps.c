/* Exceptions and interrupts, as they come. */
#include "bare.h"

extern const uint8_t stubs[];
extern uint8_t gates[];
extern word trying;
enum { STUB_BYTES = 16, CODE = 8, GATE = 0x8e, OF_USERS = 0x60, CALL = 0x30, FIRST_FREE = 32 };

struct seen seen;
volatile unsigned taken[MOST_CPUS][256];

void set_gates(void) {
    for (unsigned vector = 0; vector < 256; vector++) {
        word stub = (word)stubs + STUB_BYTES * vector;
        uint32_t* gate = (uint32_t*)(gates + (LONG ? 16 : 8) * vector);
        bool for_users = vector == BREAKPOINT || vector == OVERFLOW || vector == CALL;
        gate[0] = CODE << 16 | (stub & 0xffff);
        gate[1] = (stub & 0xffff0000) | (GATE | (for_users ? OF_USERS : 0)) << 8;
    }
}

/* Whether try() is over */
bool trap(const struct frame* frame) {
    if (frame->vector >= FIRST_FREE && frame->vector != CALL) {
        taken[this_cpu()][frame->vector]++;
        if (frame->vector != 0xff) set_apic(END, 0);
        return false;
    }
    seen = (struct seen){frame->vector, frame->error, frame->ip, frame->cs, 0};
    __asm__ volatile("mov %%cr2, %0" : "=r"(seen.address));
    if (trying) return true;
    check(false, "an exception: vector", frame->vector);
    check(false, "its error code", frame->error);
    check(false, "its place", frame->ip);
    end();
    return false;
}
