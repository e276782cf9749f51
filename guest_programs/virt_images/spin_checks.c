/* CPUs that wait for one another by looking, as kernels' spin locks and test images' cpu_relax do. */
#include "bare.h"

enum { ROUNDS = 200, TURNS = 100, COMPARISONS = 500, SGI = 7, CALLS = 50 };

static volatile unsigned waiting, phase, errors, sums[MOST_CPUS];

static unsigned add(volatile unsigned* to, unsigned amount) { return __atomic_add_fetch(to, amount, __ATOMIC_ACQ_REL); }

static void relax(void) { __asm__ volatile("yield" : : : "memory"); }

/* All meet here. */
static void meet(void) {
    unsigned now = phase;
    if (add(&waiting, 1) == board.cpus) {
        waiting = 0;
        BARRIER();
        phase = now + 1;
    }
    while (phase == now) relax();
}

static void meet_often(void) {
    unsigned number = number_of_this_cpu();
    for (unsigned round = 0; round < ROUNDS; round++) {
        sums[number]++;
        meet();
        for (unsigned cpu = 0; cpu < board.cpus; cpu++)
            if (sums[cpu] != round + 1) errors++;
        meet();
    }
}

/* Whose turn it is. */
static volatile unsigned turn;

static void pass_on(void) {
    unsigned number = number_of_this_cpu();
    for (unsigned count = 0; count < TURNS; count++) {
        while (turn % board.cpus != number) relax();
        turn++;
        BARRIER();
        __asm__ volatile("sev" : : : "memory");
    }
}

static void pass_on_by_event(void) {
    unsigned number = number_of_this_cpu();
    for (unsigned count = 0; count < TURNS; count++) {
        while (turn % board.cpus != number) __asm__ volatile("wfe" : : : "memory");
        turn++;
        BARRIER();
        __asm__ volatile("sev" : : : "memory");
    }
}

static void wait_by_the_clock(void) {
    for (uint64_t end_ticks = ticks() + READ(cntfrq_el0) / 1000; ticks() < end_ticks;) relax();
}

/* Time that one has seen, no other sees again. */
static unsigned lock, steps_back;
static uint64_t latest_ticks;

static void compare_times(void) {
    for (unsigned count = 0; count < COMPARISONS; count++) {
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) relax();
        uint64_t now = ticks();
        if (now < latest_ticks) steps_back++;
        latest_ticks = now;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
}

static void on_all(void (*job)(void), const char* what) {
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) start_on(cpu, job);
    job();
    bool all = true;
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) all &= waits_for(is_done, cpu);
    check(all, what, 0);
}

/* Each of them is called often, and answers. */
static volatile unsigned answered;

static void answer(unsigned interrupt) {
    if (interrupt == SGI) add(&answered, 1);
}

static void listen(void) {
    enable(SGI, true);
    set_priority(SGI, 0x80);
    forget();
    this_cpu()->during = answer;
    unmask();
    meet();
    while (this_cpu()->taken < CALLS) relax();
    mask();
}

static void call_all(void) {
    answered = 0;
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) start_on(cpu, listen);
    meet();
    for (unsigned call = 1; call <= CALLS; call++) {
        send_to_others(SGI);
        while (answered != call * (board.cpus - 1)) relax();
    }
    bool all = true;
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) all &= waits_for(is_done, cpu);
    check(all, "spinning: CPUs that are called answer", answered);
}

void check_spinning(void) {
    on_all(meet_often, "spinning: all meet often");
    check(!errors, "spinning: nobody goes ahead", errors);
    on_all(pass_on, "spinning: one after the other");
    check(turn == TURNS * board.cpus, "spinning: each has had its turns", turn);
    turn = 0;
    on_all(pass_on_by_event, "WFE: one after the other");
    check(turn == TURNS * board.cpus, "WFE: each has had its turns", turn);
    on_all(wait_by_the_clock, "spinning: by the clock");
    on_all(compare_times, "time: compared by all");
    check(!steps_back, "time: never goes back", steps_back);
    call_all();
}
