// Opens events until none is left, closes one, and opens one more.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    struct rlimit limit = {4000, 4000};
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_DUMMY};
    int opened = 0, last = -1, event;
    setrlimit(RLIMIT_NOFILE, &limit);
    while ((event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)) >= 0) opened++, last = event;
    printf("%d, then errno %d\n", opened, errno);
    close(last);
    printf("%d\n", (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) == last);
}
