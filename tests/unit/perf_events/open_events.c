// Opens each event that is named as TYPE:CONFIG:CONFIG1:EXCLUDE_USER:EXCLUDE_KERNEL:PID:CPU, counts itself a little with
// it, and prints 0 or minus errno, and the count.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **names) {
    for (int i = 1; i < count; i++) {
        struct perf_event_attr attr;
        unsigned type, exclude_user, exclude_kernel;
        unsigned long long config, config1, value = 0;
        int pid, cpu;
        if (sscanf(names[i], "%u:%llx:%llx:%u:%u:%d:%d", &type, &config, &config1, &exclude_user, &exclude_kernel, &pid,
                   &cpu) != 7)
            return 2;
        memset(&attr, 0, sizeof attr);
        attr.size = PERF_ATTR_SIZE_VER5;
        attr.type = type;
        attr.config = config;
        attr.config1 = config1;
        attr.exclude_user = exclude_user;
        attr.exclude_kernel = exclude_kernel;
        int event = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
        if (event < 0) {
            printf("%d 0\n", -errno);
            continue;
        }
        for (int k = 0; k < 10; k++) syscall(SYS_getppid);
        ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
        if (read(event, &value, sizeof value) != sizeof value) return 3;
        printf("0 %llu\n", value);
        close(event);
    }
    return 0;
}
