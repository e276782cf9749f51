// perf_event_open of a PMU by its type in sysfs: what it refuses, and that it counts. Prints a line for each.
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(struct perf_event_attr attr, int pid, int cpu) {
    attr.size = sizeof attr;
    const int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
    return fd < 0 ? -errno : fd;
}

static void say(const char* what, struct perf_event_attr attr, int pid, int cpu) {
    const int fd = open_event(attr, pid, cpu);
    printf("%s: %s\n", what, fd < 0 ? strerror(-fd) : "opens");
    if (fd >= 0) close(fd);
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "msr";
    char path[128], text[32] = "";
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", name);
    FILE* file = fopen(path, "r");
    unsigned type = 0;
    if (!file || fscanf(file, "%u", &type) != 1) return 1;
    fclose(file);
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/cpumask", name);
    file = fopen(path, "r");
    if (file && fscanf(file, "%31s", text) == 1) printf("cpumask %s\n", text);
    if (file) fclose(file);

    struct perf_event_attr attr = {.type = type, .config = argc > 2 ? strtoull(argv[2], 0, 0) : 0};
    say("of a task", attr, 0, -1);
    say("of a CPU", attr, -1, 0);
    struct perf_event_attr other = attr;
    other.exclude_kernel = 1;
    say("exclude_kernel", other, -1, 0);
    other = attr;
    other.exclude_guest = 1;
    say("exclude_guest", other, -1, 0);
    other = attr;
    other.sample_period = 1000;
    say("sample_period", other, -1, 0);
    other = attr;
    other.config = 0xfe;
    say("config 0xfe", other, -1, 0);

    const int fd = open_event(attr, -1, 0);
    uint64_t first = 0, second = 0;
    if (fd < 0 || read(fd, &first, 8) != 8) return 2;
    static volatile char lines[1 << 16];
    for (int i = 0; i < 1 << 16; i += 64) (void)lines[i];
    if (read(fd, &second, 8) != 8) return 3;
    printf("counts %s\n", second > first ? "on" : "nothing");
    return 0;
}
