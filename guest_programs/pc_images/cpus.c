/* Other CPUs: how they start, IPIs to them, and how they wait for one another. */
#include "bare.h"

extern const uint8_t trampoline[], trampoline_end[];
enum { TRAMPOLINE = 0x8000, INIT = 0x4500, START_UP = 0x4600, ALL_OTHERS = 3 << 18, HERE = 0x70, ROUNDS = 300 };

static struct {
    volatile bool is_online;
    void (*volatile job)(void);
} cpu_states[MOST_CPUS];
static volatile unsigned online = 1, waiting, phase, lock, turn;
static volatile uint32_t counted, added;

static void relax(void) { __asm__ volatile("pause" : : : "memory"); }

void works(unsigned number) {
    start_apic();
    unsigned me = this_cpu();
    (void)number;
    cpu_states[me].is_online = true;
    __atomic_add_fetch(&online, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        while (!cpu_states[me].job) relax();
        cpu_states[me].job();
        cpu_states[me].job = 0;
    }
}

static bool are_online(word count) { return online == count; }

static bool is_done(word cpu) { return !cpu_states[cpu].job; }

static void on_all(void (*job)(void), const char* what) {
    for (unsigned cpu = 1; cpu < cpus; cpu++) cpu_states[cpu].job = job;
    job();
    bool all = true;
    for (unsigned cpu = 1; cpu < cpus; cpu++) all &= waits_for(is_done, cpu);
    check(all, what, 0);
}

static void meet(void) {
    unsigned now = phase;
    if (__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST) == cpus) {
        waiting = 0;
        phase = now + 1;
    }
    while (phase == now) relax();
}

static void meet_often(void) {
    for (unsigned round = 0; round < ROUNDS; round++) meet();
}

static void count(void) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_SEQ_CST)) relax();
        counted = counted + 1;
        __atomic_store_n(&lock, 0, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&added, 1, __ATOMIC_SEQ_CST);
    }
}

static void pass_on(void) {
    unsigned me = this_cpu();
    for (unsigned round = 0; round < ROUNDS / 3; round++) {
        while (turn % cpus != me) relax();
        turn = turn + 1;
    }
}

static void listen(void) {
    unsigned me = this_cpu();
    meet();
    while (!taken[me][HERE]) __asm__ volatile("sti\n\thlt\n\tcli" : : : "memory");
    meet();
}

static void spin_and_listen(void) {
    unsigned me = this_cpu();
    meet();
    let_interrupts_come(true);
    while (!taken[me][HERE]) relax();
    let_interrupts_come(false);
    meet();
}

static void call(void (*how)(void), unsigned rounds, const char* what) {
    bool all = true;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned cpu = 1; cpu < cpus; cpu++) {
            taken[cpu][HERE] = 0;
            cpu_states[cpu].job = how;
        }
        meet();
        set_apic(COMMAND, ALL_OTHERS | HERE);
        meet();
        for (unsigned cpu = 1; cpu < cpus; cpu++) all &= waits_for(is_done, cpu) && taken[cpu][HERE] == 1;
    }
    check(all, what, 0);
}

static void call_each(void) {
    bool all = true;
    for (unsigned cpu = 1; cpu < cpus; cpu++) taken[cpu][HERE] = 0;
    for (unsigned called = 1; called < cpus; called++) {
        for (unsigned cpu = 1; cpu < cpus; cpu++)
            if (taken[cpu][HERE] != (cpu < called)) all = false;
        unsigned before = cpus;
        cpus = 2; /* only two meet */
        cpu_states[called].job = listen;
        meet();
        set_apic(COMMAND_TO, called << 24);
        set_apic(COMMAND, 0x4000 | HERE);
        meet();
        cpus = before;
        all &= waits_for(is_done, called);
    }
    check(all, "IPI: to each by itself", 0);
}

void check_cpus(void) {
    for (word at = 0; at < (word)(trampoline_end - trampoline); at++)
        ((volatile uint8_t*)TRAMPOLINE)[at] = trampoline[at];
    if (cpus > 1) {
        set_apic(COMMAND, ALL_OTHERS | INIT);
        set_apic(COMMAND, ALL_OTHERS | START_UP | TRAMPOLINE >> 12);
        set_apic(COMMAND, ALL_OTHERS | START_UP | TRAMPOLINE >> 12);
    }
    check(waits_for(are_online, cpus), "SIPI: as many CPUs as fw_cfg says", online);
    for (unsigned cpu = 1; cpu < cpus; cpu++) check(cpu_states[cpu].is_online, "SIPI: it has the next APIC ID", cpu);
    on_all(count, "a lock: all count");
    expect(counted, cpus * ROUNDS, "a lock: one at a time");
    expect(added, cpus * ROUNDS, "LOCK ADD: nothing is lost");
    on_all(meet_often, "spinning: all meet often");
    on_all(pass_on, "spinning: one after the other");
    call(listen, 20, "IPI: to all others, which halt");
    call(spin_and_listen, 20, "IPI: to all others, which spin");
    call_each();
}
