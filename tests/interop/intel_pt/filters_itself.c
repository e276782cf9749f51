// PERF_EVENT_IOC_SET_FILTER by the program itself: which texts are taken; and the unit is free when the event is
// closed.
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int opened(int type, pid_t pid, int cpu) {
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = 0x300e601, .disabled = 1};
    attr.exclude_kernel = attr.exclude_hv = 1;
    return syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
}

int main(int count, char** arguments) {
    int type = 0;
    FILE* file = fopen("/sys/bus/event_source/devices/intel_pt/type", "r");
    if (!file || fscanf(file, "%d", &type) != 1) return 1;
    for (int round = 0; round < 2; round++) {
        int event = opened(type, 0, -1);
        if (event < 0) return 2;
        for (int i = 1; i < count; i++) {
            int result = ioctl(event, PERF_EVENT_IOC_SET_FILTER, arguments[i]);
            if (round) printf("%d\n", result ? errno : 0);
        }
        close(event);
    }
    int of_cpu = opened(type, -1, 0);
    printf("%d\n", of_cpu < 0 ? errno : 0);
    printf("%d\n", ioctl(of_cpu, PERF_EVENT_IOC_SET_FILTER, arguments[1]) ? errno : 0);
    return 0;
}
