// Counts system calls that fail with EBADF, by a filter, and prints what orders about filters answer.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SYS_EXIT_ID = 348 };

static int open_event(uint32_t type, uint64_t config) {
    struct perf_event_attr attr = {.size = PERF_ATTR_SIZE_VER6, .type = type, .config = config, .disabled = 1};
    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static int set_filter(int event, const char *text) {
    return ioctl(event, PERF_EVENT_IOC_SET_FILTER, text) ? errno : 0;
}

int main(void) {
    int failed = open_event(PERF_TYPE_TRACEPOINT, SYS_EXIT_ID), other = open_event(PERF_TYPE_TRACEPOINT, SYS_EXIT_ID);
    int software = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
    uint64_t count = 0;
    if (set_filter(failed, "ret == -9")) return 1;
    ioctl(failed, PERF_EVENT_IOC_ENABLE, 0);
    for (int i = 0; i < 5; i++) close(1000 + i);
    for (int i = 0; i < 3; i++) getppid();
    ioctl(failed, PERF_EVENT_IOC_DISABLE, 0);
    if (read(failed, &count, sizeof count) != sizeof count) return 2;
    printf("failed calls: %lu\n", (unsigned long)count);
    printf("again: %d\n", set_filter(failed, "ret == -2"));
    printf("wrong: %d\n", set_filter(other, "ret === 2"));
    printf("software: %d\n", set_filter(software, "ret == -2"));
    printf("nowhere: %d\n", set_filter(other, (const char *)16));
    return 0;
}
