// More events than counters, in groups from a seed: which count after each order, and in which order they take turns.
// Prints a letter for each event: a count that grows (+), that stands (.), an end of file (e), one that is closed (-).
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENTS = 12, STEPS = 12, CHANGES = 16 };

static unsigned long state;
static int event[EVENTS], leader[EVENTS];

static unsigned below(unsigned limit) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (state >> 33) % limit;
}

static void set_interval(const char *interval, unsigned ms) {
    char text[16];
    int file = open(interval, O_WRONLY), length = snprintf(text, sizeof text, "%u\n", ms);
    if (file < 0 || write(file, text, length) != length) exit(puts("no interval"));
    close(file);
}

static void spin(unsigned times) {
    for (volatile unsigned i = 0; i < times; i++) continue;
}

static int open_event(int of, int hardware) {
    struct perf_event_attr attr = {.size = PERF_ATTR_SIZE_VER5};
    attr.type = hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
    attr.config = hardware ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_SW_TASK_CLOCK;
    attr.exclude_kernel = hardware;
    attr.disabled = below(3) == 0;
    attr.pinned = of < 0 && below(8) == 0;
    attr.exclusive = of < 0 && below(12) == 0;
    return syscall(SYS_perf_event_open, &attr, 0, -1, of < 0 ? -1 : event[of], 0);
}

static char counts(int which, uint64_t *last) {
    uint64_t value = 0;
    if (event[which] < 0) return '-';
    if (read(event[which], &value, sizeof value) != sizeof value) return 'e';
    char grown = value != *last ? '+' : '.';
    *last = value;
    return grown;
}

static void show(char *letters) {
    uint64_t last[EVENTS] = {0};
    for (int i = 0; i < EVENTS; i++) counts(i, &last[i]);
    spin(2000);
    for (int i = 0; i < EVENTS; i++) letters[i] = counts(i, &last[i]);
}

static void open_all(void) {
    for (int i = 0; i < EVENTS; i++) {
        int of = i && below(3) == 0 ? (int)below(i) : -1;
        if (of >= 0 && leader[of] != of) of = -1;
        event[i] = open_event(of, below(6) > 0);
        leader[i] = event[i] < 0 ? -1 : of < 0 ? i : of;
    }
}

static void order(void) {
    int which = below(EVENTS), kind = below(8);
    if (event[which] < 0) return;
    if (kind < 4) ioctl(event[which], PERF_EVENT_IOC_ENABLE, kind == 0 ? PERF_IOC_FLAG_GROUP : 0);
    else if (kind < 7) ioctl(event[which], PERF_EVENT_IOC_DISABLE, kind == 4 ? PERF_IOC_FLAG_GROUP : 0);
    else close(event[which]), event[which] = leader[which] = -1;
}

static void orders(unsigned long seed) {
    char letters[EVENTS + 1] = {0};
    for (int i = 0; i < STEPS; i++) {
        order();
        usleep(100);  // off and on again: a counter that has become free is taken
        show(letters);
        printf("%lu.%d %s\n", seed, i, letters);
    }
}

static void turns(unsigned long seed) {
    char before[EVENTS + 1] = {0}, now[EVENTS + 1] = {0}, told[EVENTS + 1] = {0};
    for (int i = 0; i < STEPS; i++) order();
    for (int changes = 0, looks = 0; changes < CHANGES && looks < 800; looks++) {
        show(before);
        show(now);
        if (strcmp(now, before) != 0 || strcmp(now, told) == 0) continue;  // a turn ended in between, or none
        memcpy(told, now, sizeof told);
        printf("%lu turn %s\n", seed, now);
        changes++;
    }
}

// INTERVAL_FILE orders|turns SEEDS
int main(int count, char **arguments) {
    if (count != 4) return 1;
    int takes_turns = strcmp(arguments[2], "turns") == 0;
    set_interval(arguments[1], takes_turns ? 5 : 1000000);
    for (unsigned long seed = 1; seed <= strtoul(arguments[3], NULL, 10); seed++) {
        state = seed * 7919;
        open_all();
        (takes_turns ? turns : orders)(seed);
        for (int i = 0; i < EVENTS; i++)
            if (event[i] >= 0) close(event[i]);
    }
    return 0;
}
