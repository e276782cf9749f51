// What a guest gets of IBS by perf_event_open: each line is checked by test_ibs_driver.py.
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct perf_event_attr Attr;

static int number_of(const char* file) {
    int number = -1;
    FILE* opened = fopen(file, "r");
    if (opened) {
        if (fscanf(opened, "%d", &number) != 1) number = -2;
        fclose(opened);
    }
    return number;
}

static int open_event(Attr attr, int group) { return syscall(SYS_perf_event_open, &attr, 0, -1, group, 0); }

static void try_event(const char* what, Attr attr, int group) {
    int event = open_event(attr, group);
    printf("%s: %s\n", what, event < 0 ? strerrorname_np(errno) : "yes");
    if (event >= 0) close(event);
}

__attribute__((noinline)) static void work(long times) {
    __asm__ volatile("1: sub $1, %0\n jne 1b" : "+r"(times));
}

static void sample(const char* what, Attr attr) {
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
    int event = open_event(attr, -1);
    struct perf_event_mmap_page* page = mmap(0, 65 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    work(1000000);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    unsigned samples = 0, within = 0, exact = 0;
    unsigned long period = 0;
    for (char *at = (char*)page + 4096, *end = at + page->data_head; at < end;) {
        struct perf_event_header* record = (void*)at;
        if (record->type == PERF_RECORD_SAMPLE) {
            unsigned long* body = (void*)(record + 1);
            samples++;
            within += body[0] >= (unsigned long)work && body[0] < (unsigned long)work + 32;
            exact += (record->misc & PERF_RECORD_MISC_EXACT_IP) != 0;
            period = body[1];
        }
        at += record->size;
    }
    printf("%s: %u samples, %u outside, %u exact, period %lu\n", what, samples, samples - within, exact, period);
}

int main(void) {
    int op = number_of("/sys/bus/event_source/devices/ibs_op/type");
    printf("caps: %d %d\n", number_of("/sys/bus/event_source/devices/ibs_op/caps/zen4_ibs_extensions"),
           number_of("/sys/bus/event_source/devices/cpu/caps/max_precise"));
    Attr base = {.type = op, .size = sizeof base, .sample_period = 10000, .config = 1 << 19, .disabled = 1}, attr = base;
    try_event("ops", attr, -1);
    try_event("group", attr, open_event(attr, -1));
    attr.exclude_kernel = 1, try_event("exclude_kernel", attr, -1), attr = base;
    attr.config = 1 << 18, try_event("reserved", attr, -1), attr = base;
    attr.config = 1, try_event("count and period", attr, -1), attr = base;
    attr.sample_period = 0, try_event("no period", attr, -1);
    attr.config = 0x100, try_event("count", attr, -1), attr = base;
    Attr cycles = base, instructions;
    cycles.type = PERF_TYPE_HARDWARE, cycles.config = PERF_COUNT_HW_CPU_CYCLES, cycles.precise_ip = 2;
    instructions = cycles, instructions.config = PERF_COUNT_HW_INSTRUCTIONS;
    try_event("precise instructions", instructions, -1);
    cycles.precise_ip = 3, try_event("precise_ip 3", cycles, -1), cycles.precise_ip = 2;
    sample("ops", base);
    sample("precise cycles", cycles);
    return 0;
}
