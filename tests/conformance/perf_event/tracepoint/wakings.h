// How many sched:sched_waking and signal:signal_generate a task has by what an overflow does for those who wait for it.
#pragma once
#include "../behaviour.h"

static inline int tracepoint_event(const char* name, const char* filter) {
    char path[100];
    snprintf(path, sizeof path, "/sys/kernel/tracing/events/%s/id", name);
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in(path));
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_SET_FILTER, filter));
    return event;
}

static inline void until_asleep(int pid) {
    char path[40], text[400], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    while (state != 'S') {
        sleep_ms(1);
        int file = open(path, O_RDONLY);
        COMPARE(read(file, text, sizeof text), >, 0);
        close(file);
        state = strrchr(text, ')')[2];
    }
}

// A process that sleeps until something can be read from this descriptor, or has been hung up.
static inline int sleeper(int descriptor) {
    int pid = fork();
    if (pid == 0) {
        struct pollfd polled = {descriptor, POLLIN, 0};
        poll(&polled, 1, -1);
        _exit(polled.revents & POLLIN ? 0 : 3);
    }
    until_asleep(pid);
    return pid;
}

static volatile int sigios;

static void count_sigio(int number) { (void)number, sigios++; }

// `attr`, whose first overflow is in `work`, wakes a reader and signals this task, and neither is counted.
static inline void wakes_uncounted(Attr attr, void (*work)(void)) {
    attr.wakeup_events = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    int reader = sleeper(event);
    char filter[40];
    snprintf(filter, sizeof filter, "pid == %d", reader);
    int wakings = tracepoint_event("sched/sched_waking", filter);
    int signals = tracepoint_event("signal/signal_generate", "sig == 29");  // SIGIO
    signal(SIGIO, count_sigio);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    enable(wakings);
    enable(signals);
    enable(event);
    work();
    disable(event);
    disable(signals);
    disable(wakings);
    EQUAL(wait_for(reader), 0);
    COMPARE(sigios, >=, 1);
    EQUAL(count_of(wakings), 0);
    EQUAL(count_of(signals), 0);
}
