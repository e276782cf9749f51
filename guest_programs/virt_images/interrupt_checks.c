/* What the GIC and the timers do to one CPU. */
#include "bare.h"

enum { FIRST = 3, SECOND = 5, VIRTUAL_TIMER = 27, PHYSICAL_TIMER = 30, SPI = 100 };

static void prepare(unsigned interrupt, unsigned priority) {
    set_priority(interrupt, priority);
    enable(interrupt, true);
}

static void sgis(void) {
    struct cpu* me = this_cpu();
    prepare(FIRST, 0x80);
    forget();
    send_to_self(FIRST);
    check(takes(1) && me->interrupts[0] == FIRST, "SGI: comes", me->interrupts[0]);
    check(me->priorities[0] == 0x80, "SGI: runs with its priority", me->priorities[0]);
    check(READ(s3_0_c12_c11_3) == 0xff, "SGI: behind EOI nothing runs", READ(s3_0_c12_c11_3));
    check(!is_pending(FIRST) && !is_active(FIRST), "SGI: behind EOI it is neither pending nor active", 0);

    forget();
    enable(FIRST, false);
    send_to_self(FIRST);
    check(takes_none() && is_pending(FIRST), "SGI: pends while it is not enabled", me->taken);
    enable(FIRST, true);
    check(takes(1), "SGI: comes when it is enabled", me->taken);

    forget();
    WRITE(s3_0_c4_c6_0, 0x80);
    send_to_self(FIRST);
    check(takes_none(), "ICC_PMR_EL1: an equal priority does not come", me->taken);
    check(READ(s3_0_c12_c12_2) == FIRST, "ICC_HPPIR1_EL1: what the mask keeps away", READ(s3_0_c12_c12_2));
    WRITE(s3_0_c4_c6_0, 0x88);
    check(takes(1), "ICC_PMR_EL1: a higher one does", me->taken);
    WRITE(s3_0_c4_c6_0, 0xff);
    check(READ(s3_0_c4_c6_0) == 0xf8, "ICC_PMR_EL1: has five bits", READ(s3_0_c4_c6_0));
    WRITE(s3_0_c4_c6_0, 0xf0);

    forget();
    mask();
    prepare(SECOND, 0x40);
    send_to_self(FIRST);
    send_to_self(SECOND);
    check(READ(s3_0_c12_c12_2) == SECOND, "ICC_HPPIR1_EL1: the higher one", READ(s3_0_c12_c12_2));
    check(READ(isr_el1) == 1 << 7, "ISR_EL1: an interrupt while they are masked", READ(isr_el1));
    unmask();
    check(takes(2) && me->interrupts[0] == SECOND, "priorities: the higher one first", me->interrupts[0]);

    forget();
    mask();
    check(READ(s3_0_c12_c12_0) == SPURIOUS, "ICC_IAR1_EL1: spurious where there is none", 0);
    set_pending(FIRST, true);
    check(is_pending(FIRST), "GICR_ISPENDR0: pends", 0);
    set_pending(FIRST, false);
    check(!is_pending(FIRST), "GICR_ICPENDR0: does not any more", 0);
    unmask();
    check(takes_none(), "GICR_ICPENDR0: and never comes", me->taken);
}

static uint64_t active_priorities;

static void interrupted(unsigned interrupt) {
    if (interrupt == FIRST) {
        active_priorities = READ(s3_0_c12_c9_0); /* ICC_AP1R0_EL1 */
        send_to_self(SECOND);
        unmask();
        takes_none();
        mask();
        this_cpu()->priorities[15] = this_cpu()->taken;
    }
}

/* How many were taken when the handler of FIRST had let SECOND come */
static unsigned preempts(unsigned first, unsigned second, unsigned binary_point) {
    forget();
    set_priority(FIRST, first);
    set_priority(SECOND, second);
    WRITE(s3_0_c12_c12_3, binary_point); /* ICC_BPR1_EL1 */
    this_cpu()->during = interrupted;
    send_to_self(FIRST);
    bool both = takes(2);
    WRITE(s3_0_c12_c12_3, 0);
    return both ? this_cpu()->priorities[15] : 0xff;
}

static void preemption(void) {
    expect(preempts(0x80, 0x40, 0), 2, "preemption: by a higher priority");
    expect(preempts(0x80, 0x80, 0), 1, "preemption: not by an equal one");
    expect(preempts(0x80, 0x88, 0), 1, "preemption: not by a lower one");
    expect(preempts(0x88, 0x80, 0), 2, "preemption: by one that is higher by the lowest bit");
    expect(preempts(0x98, 0x80, 5), 1, "ICC_BPR1_EL1: not within a group of priorities");
    expect(this_cpu()->priorities[0], 0x80, "ICC_RPR_EL1: a group's first");
    expect((int64_t)active_priorities, 1 << 16, "ICC_AP1R0_EL1: it is active");
    expect(preempts(0x98, 0x78, 5), 2, "ICC_BPR1_EL1: by another group");
    expect((int64_t)READ(s3_0_c12_c9_0), 0, "ICC_AP1R0_EL1: nothing is active");
    check(READ(s3_0_c12_c12_3) == 3, "ICC_BPR1_EL1: 3 is the least", READ(s3_0_c12_c12_3));
    WRITE(s3_0_c12_c12_3, 7);
    check(READ(s3_0_c12_c12_3) == 7, "ICC_BPR1_EL1: 7 is the most", READ(s3_0_c12_c12_3));
    WRITE(s3_0_c12_c12_3, 0);
}

static void split_end(void) {
    forget();
    WRITE(s3_0_c12_c12_4, 2); /* EOImode */
    send_to_self(FIRST);
    check(takes(1) && is_active(FIRST), "EOImode 1: active behind EOI", is_active(FIRST));
    check(READ(s3_0_c12_c11_3) == 0xff, "EOImode 1: its priority has dropped", READ(s3_0_c12_c11_3));
    send_to_self(FIRST);
    check(takes_none() && is_pending(FIRST), "EOImode 1: it does not come again", this_cpu()->taken);
    WRITE(s3_0_c12_c11_1, FIRST); /* ICC_DIR_EL1 */
    check(takes(2), "ICC_DIR_EL1: it comes again", this_cpu()->taken);
    WRITE(s3_0_c12_c11_1, FIRST);
    WRITE(s3_0_c12_c12_4, 0);
}

static void spis(void) {
    struct cpu* me = this_cpu();
    forget();
    route(SPI, board.affinities[0]);
    set_priority(SPI, 0x60);
    set_pending(SPI, true);
    check(takes_none() && is_pending(SPI), "SPI: pends while it is not enabled", me->taken);
    enable(SPI, true);
    check(takes(1) && me->interrupts[0] == SPI, "SPI: comes when it is enabled", me->interrupts[0]);
    check(!is_pending(SPI) && !is_active(SPI), "SPI: has gone behind EOI", 0);
    set_pending(SPI, true);
    check(takes(2), "SPI: and again", me->taken);
    forget();
    set_active(SPI, true);
    set_pending(SPI, true);
    check(is_active(SPI), "GICD_ISACTIVER: active", 0);
    check(takes_none() && is_pending(SPI), "GICD_ISACTIVER: what is active does not come", me->taken);
    set_active(SPI, false);
    check(takes(1) && !is_active(SPI), "GICD_ICACTIVER: it comes then", me->taken);
    enable(SPI, false);
}

void check_interrupts(void) {
    unmask();
    sgis();
    preemption();
    split_end();
    spis();
    mask();
}

/* ---- the timers */

static void turn_off(unsigned interrupt) {
    if (interrupt == VIRTUAL_TIMER)
        WRITE(cntv_ctl_el0, 0);
    else
        WRITE(cntp_ctl_el0, 0);
}

#define TIMER(name, number, count, CTL, CVAL, TVAL)                                                       \
    do {                                                                                                  \
        struct cpu* me = this_cpu();                                                                      \
        forget();                                                                                         \
        me->during = turn_off;                                                                            \
        prepare(number, 0xa0);                                                                            \
        WRITE(CVAL, READ(count) + READ(cntfrq_el0) * 1000);                                               \
        WRITE(CTL, 1);                                                                                    \
        check(takes_none() && READ(CTL) == 1, name ": not before its time", READ(CTL));                   \
        WRITE(CTL, 3);                                                                                    \
        WRITE(CVAL, 0);                                                                                   \
        check(takes_none() && READ(CTL) == 7, name ": masked, it has met its condition", READ(CTL));      \
        check(!is_pending(number), name ": masked, it does not pend", 0);                                 \
        WRITE(CTL, 1);                                                                                    \
        check(takes(1) && me->interrupts[0] == number, name ": comes", me->interrupts[0]);                \
        check(!is_pending(number), name ": its level falls when it is turned off", 0);                    \
        forget();                                                                                         \
        me->during = turn_off;                                                                            \
        mask();                                                                                           \
        uint64_t before = READ(count), wait = READ(cntfrq_el0) / 1000;                                    \
        WRITE(TVAL, wait);                                                                                \
        WRITE(CTL, 1);                                                                                    \
        check(READ(CVAL) - before - wait < wait, name ": TVAL is as long from now", READ(CVAL) - before); \
        __asm__ volatile("wfi" : : : "memory");                                                           \
        unmask();                                                                                         \
        check(takes(1) && READ(count) - before >= wait, name ": WFI waits for it", me->taken);            \
        check((int32_t)READ(TVAL) < 0, name ": TVAL goes on below zero", READ(TVAL));                     \
        enable(number, false);                                                                            \
    } while (0)

void check_timers(void) {
    unmask();
    check(READ(cntfrq_el0) == 62500000, "timers: CNTFRQ_EL0", READ(cntfrq_el0));
    TIMER("virtual timer", VIRTUAL_TIMER, cntvct_el0, cntv_ctl_el0, cntv_cval_el0, cntv_tval_el0);
    TIMER("physical timer", PHYSICAL_TIMER, cntpct_el0, cntp_ctl_el0, cntp_cval_el0, cntp_tval_el0);
    mask();
}
