// Of branch records, BTS and PT, which are arguments: opens the events in that order, and prints the errno of each, or
// 0.
// "-" before one closes it.
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int type_of(const char* pmu) {
    char path[128], text[16] = "";
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", pmu);
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) < 1) exit(2);
    close(file);
    return atoi(text);
}

int main(int argc, char** argv) {
    static const char* const NAMES[] = {"lbr", "intel_bts", "intel_pt"};
    int events[] = {-1, -1, -1};
    for (int i = 1; i < argc; i++) {
        const int closes = argv[i][0] == '-';
        int unit = 0;
        while (strcmp(NAMES[unit], argv[i] + closes)) unit++;
        if (closes) {
            close(events[unit]);
            continue;
        }
        struct perf_event_attr attr = {.size = sizeof attr, .exclude_kernel = 1, .disabled = 1};
        if (unit) {
            attr.type = type_of(NAMES[unit]);
        } else {
            attr.type = PERF_TYPE_HARDWARE;
            attr.config = PERF_COUNT_HW_INSTRUCTIONS;
            attr.sample_period = 1000;
            attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
            attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
        }
        events[unit] = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
        printf("%d ", events[unit] < 0 ? errno : 0);
    }
    puts("");
    return 0;
}
