/* The local APIC, and the I/O APIC. Intel SDM volume 3. */
#include "bare.h"

#define APIC 0xfee00000u
#define IO_APIC 0xfec00000u
enum {
    ONE_SHOT = 0,
    PERIODIC = 1 << 17,
    MASKED = 1 << 16,
    BY_1 = 11,
    BY_16 = 3,
    VECTOR = 0x50,
    OTHER = 0x61,
    PIT_PIN = 2
};

uint32_t apic(unsigned offset) { return *(volatile uint32_t*)(word)(APIC + offset); }

void set_apic(unsigned offset, uint32_t value) { *(volatile uint32_t*)(word)(APIC + offset) = value; }

uint32_t io_apic(unsigned number) {
    *(volatile uint32_t*)(word)IO_APIC = number;
    return *(volatile uint32_t*)(word)(IO_APIC + 16);
}

void set_io_apic(unsigned number, uint32_t value) {
    *(volatile uint32_t*)(word)IO_APIC = number;
    *(volatile uint32_t*)(word)(IO_APIC + 16) = value;
}

void start_apic(void) {
    set_apic(SPURIOUS, 0x1ff);
    set_apic(TASK_PRIORITY, 0);
}

unsigned this_cpu(void) { return apic(ID) >> 24; }

void let_interrupts_come(bool on) {
    if (on)
        __asm__ volatile("sti\n\tnop" : : : "memory");
    else
        __asm__ volatile("cli" : : : "memory");
}

static uint64_t ticks(void) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* Within a second or so */
bool waits_for(bool (*happens)(word), word argument) {
    uint64_t end_ticks = ticks() + (2ull << 30);
    while (!happens(argument)) {
        if (ticks() > end_ticks) return happens(argument);
        __asm__ volatile("pause");
    }
    return true;
}

static void wait_a_little(void) {
    uint64_t end_ticks = ticks() + 200000;
    while (ticks() < end_ticks) __asm__ volatile("pause");
}

void forget(unsigned vector) { taken[this_cpu()][vector] = 0; }

static struct {
    volatile unsigned* taken;
    unsigned count;
} awaited;

static bool has_come(word argument) { return *awaited.taken >= awaited.count + argument; }

static bool comes_so_often(unsigned vector, unsigned count) {
    awaited.taken = &taken[this_cpu()][vector];
    awaited.count = count;
    return waits_for(has_come, 0);
}

bool comes(unsigned vector, unsigned count) {
    let_interrupts_come(true);
    bool enough = comes_so_often(vector, count);
    wait_a_little();
    let_interrupts_come(false);
    return enough && taken[this_cpu()][vector] == count;
}

static void self_interrupts(void) {
    forget(VECTOR);
    set_apic(COMMAND, 1 << 18 | VECTOR); /* to itself */
    check(comes(VECTOR, 1), "IPI: to itself", taken[this_cpu()][VECTOR]);
    set_apic(TASK_PRIORITY, 0x50);
    set_apic(COMMAND, 1 << 18 | VECTOR);
    check(comes(VECTOR, 1), "TPR: keeps its class away", taken[this_cpu()][VECTOR]);
    expect(apic(0x200 + 0x10 * (VECTOR / 32)) >> VECTOR % 32 & 1, 1, "IRR: it waits");
    set_apic(COMMAND, 1 << 18 | OTHER);
    check(comes(OTHER, 1), "TPR: lets a higher class come", taken[this_cpu()][OTHER]);
    set_apic(TASK_PRIORITY, 0);
    check(comes(VECTOR, 2), "TPR: lowered", taken[this_cpu()][VECTOR]);
    expect(apic(0x200 + 0x10 * (VECTOR / 32)), 0, "IRR: nothing waits");
    expect(apic(0x100 + 0x10 * (VECTOR / 32)), 0, "ISR: nothing is in service");
}

static bool is_zero(word offset) { return !apic((unsigned)offset); }

static void timer(void) {
    set_apic(DIVIDE, BY_16);
    forget(VECTOR);
    set_apic(TIMER, ONE_SHOT | VECTOR);
    set_apic(INITIAL, 1000);
    check(comes(VECTOR, 1), "APIC timer: once", taken[this_cpu()][VECTOR]);
    expect(apic(CURRENT), 0, "APIC timer: has come to its end");
    set_apic(TIMER, MASKED | VECTOR);
    set_apic(INITIAL, 1000);
    check(waits_for(is_zero, CURRENT) && comes(VECTOR, 1), "APIC timer: masked", taken[this_cpu()][VECTOR]);
    set_apic(TIMER, ONE_SHOT | VECTOR);
    set_apic(INITIAL, 0xffffffff);
    uint32_t first = apic(CURRENT);
    wait_a_little();
    check(apic(CURRENT) < first && first > 0xf0000000, "APIC timer: counts down", first);
    set_apic(INITIAL, 0);
    check(!apic(CURRENT) && comes(VECTOR, 1), "APIC timer: stopped", apic(CURRENT));
    forget(VECTOR);
    set_apic(TIMER, PERIODIC | VECTOR);
    set_apic(INITIAL, 10000);
    let_interrupts_come(true);
    bool often = comes_so_often(VECTOR, 5);
    set_apic(TIMER, MASKED | VECTOR);
    set_apic(INITIAL, 0);
    let_interrupts_come(false);
    check(often, "APIC timer: periodic", taken[this_cpu()][VECTOR]);
}

/* The 8254's channel 0, by the I/O APIC */
static void pit(void) {
    expect(io_apic(1) >> 16 & 0xff, 23, "I/O APIC: 24 pins");
    set_io_apic(0x10 + 2 * PIT_PIN + 1, this_cpu() << 24);
    set_io_apic(0x10 + 2 * PIT_PIN, MASKED | OTHER);
    out8(0x43, 0x34); /* channel 0, both bytes, a rate generator */
    out8(0x40, 0xa9); /* of 1 kHz */
    out8(0x40, 0x04);
    forget(OTHER);
    check(comes(OTHER, 0), "I/O APIC: masked", taken[this_cpu()][OTHER]);
    set_io_apic(0x10 + 2 * PIT_PIN, OTHER);
    let_interrupts_come(true);
    bool often = comes_so_often(OTHER, 3);
    let_interrupts_come(false);
    check(often, "I/O APIC: the 8254", taken[this_cpu()][OTHER]);
    set_io_apic(0x10 + 2 * PIT_PIN, MASKED | OTHER);
    out8(0x43, 0x30); /* once, from now on for ever: no count */
    expect(io_apic(0x10 + 2 * PIT_PIN), MASKED | OTHER, "I/O APIC: an entry is read back");
}

void check_apic(void) {
    expect(apic(VERSION) & 0xff, 0x14, "APIC: its version");
    expect(apic(ID) >> 24, 0, "APIC: the first CPU's");
    self_interrupts();
    timer();
    pit();
}
