/* GICv3 by its registers: Arm IHI 0069. One security state, affinity routing, all interrupts in group 1. */
#include "bare.h"

enum {
    CTLR = 0,
    TYPER = 8,
    WAKER = 0x14,
    GROUPS = 0x80,
    SET_ENABLE = 0x100,
    CLEAR_ENABLE = 0x180,
    SET_PENDING = 0x200,
    CLEAR_PENDING = 0x280,
    SET_ACTIVE = 0x300,
    CLEAR_ACTIVE = 0x380,
    PRIORITIES = 0x400,
    CONFIGURATIONS = 0xc00,
    ROUTES = 0x6000
};
#define PRIVATE 32

/* The first frame of this CPU's redistributor */
static uint64_t redistributor(void) {
    uint64_t frame = board.redistributors, affinity = READ(mpidr_el1) & 0xffffff;
    while (at(frame + TYPER)[1] != affinity && !(at(frame + TYPER)[0] & 1 << 4)) /* Last */
        frame += 0x20000;
    return frame;
}

static uint64_t part(unsigned interrupt) { return interrupt < PRIVATE ? redistributor() + 0x10000 : board.distributor; }

static volatile uint32_t* bits(unsigned interrupt, unsigned kind) {
    return at(part(interrupt) + kind + interrupt / 32 * 4);
}

void start_distributor(void) {
    at(board.distributor)[0] = 1 << 4; /* ARE */
    for (unsigned interrupt = PRIVATE; interrupt < 288; interrupt += 32) {
        *bits(interrupt, GROUPS) = ~0u;
        *bits(interrupt, CLEAR_ENABLE) = ~0u;
    }
    at(board.distributor)[0] = 1 << 4 | 1 << 1; /* and group 1 */
    BARRIER();
}

void start_interface(void) {
    uint64_t frame = redistributor();
    *at(frame + WAKER) &= ~2u;
    while (*at(frame + WAKER) & 4) {
    }
    *bits(0, GROUPS) = ~0u;
    *bits(0, CLEAR_ENABLE) = ~0u;
    WRITE(s3_0_c12_c12_5, 7);  /* ICC_SRE_EL1 */
    WRITE(s3_0_c4_c6_0, 0xf0); /* ICC_PMR_EL1 */
    WRITE(s3_0_c12_c12_4, 0);  /* ICC_CTLR_EL1 */
    WRITE(s3_0_c12_c12_7, 1);  /* ICC_IGRPEN1_EL1 */
}

void set_priority(unsigned interrupt, unsigned priority) {
    ((volatile uint8_t*)part(interrupt))[PRIORITIES + interrupt] = (uint8_t)priority;
    BARRIER();
}

void enable(unsigned interrupt, bool is_enabled) {
    *bits(interrupt, is_enabled ? SET_ENABLE : CLEAR_ENABLE) = 1u << interrupt % 32;
    BARRIER();
}

bool is_pending(unsigned interrupt) { return *bits(interrupt, SET_PENDING) >> interrupt % 32 & 1; }

bool is_active(unsigned interrupt) { return *bits(interrupt, SET_ACTIVE) >> interrupt % 32 & 1; }

void set_pending(unsigned interrupt, bool pends) {
    *bits(interrupt, pends ? SET_PENDING : CLEAR_PENDING) = 1u << interrupt % 32;
    BARRIER();
}

void set_active(unsigned interrupt, bool is_active) {
    *bits(interrupt, is_active ? SET_ACTIVE : CLEAR_ACTIVE) = 1u << interrupt % 32;
    BARRIER();
}

uint32_t edges_near(unsigned interrupt) { return *at(part(interrupt) + CONFIGURATIONS + interrupt / 16 * 4); }

void set_edge(unsigned interrupt, bool by_edge) {
    uint32_t bit = 2u << interrupt % 16 * 2, others = edges_near(interrupt) & ~bit;
    *at(part(interrupt) + CONFIGURATIONS + interrupt / 16 * 4) = others | (by_edge ? bit : 0);
    BARRIER();
}

void send_to_list(unsigned interrupt, unsigned list) {
    BARRIER();
    WRITE(s3_0_c12_c11_5, (uint64_t)interrupt << 24 | list);
}

void route(unsigned interrupt, uint64_t affinity) {
    *(volatile uint64_t*)(board.distributor + ROUTES + 8 * interrupt) = affinity;
    BARRIER();
}

void send_to(unsigned interrupt, uint64_t affinity) {
    BARRIER();
    WRITE(s3_0_c12_c11_5, (uint64_t)interrupt << 24 | (affinity & 0xff00) << 8 | 1u << (affinity & 15));
}

void send_to_self(unsigned interrupt) { send_to(interrupt, READ(mpidr_el1) & 0xffffff); }

void send_to_others(unsigned interrupt) {
    BARRIER();
    WRITE(s3_0_c12_c11_5, (uint64_t)interrupt << 24 | 1ull << 40);
}
