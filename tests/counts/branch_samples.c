// Opens an event that samples branches, runs a loop that calls a function, and says what it finds in the samples.
// Arguments: attr.type, config, period, branch_sample_type, exclude_kernel; or a file, which it shows.
// Prints "error N", or: samples, entries in all, entries that are not within the loop or its function, the different
// flags of an entry but its cycles, in hex.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64, PASSES = 2000, MOST_KINDS = 16 };

#define CODE __attribute__((noinline, section("looping")))
extern const char __start_looping[], __stop_looping[];

CODE static int called(volatile int* sum) { return ++*sum; }

CODE static int loop(void) {
    volatile int sum = 0;
    for (int i = 0; i < PASSES; i++) called(&sum);
    return sum;
}

static int is_inside(uint64_t address) {
    return address >= (uintptr_t)__start_looping && address < (uintptr_t)__stop_looping;
}

static int show(const char* path) {
    FILE* file = fopen(path, "r");
    if (!file) return 4;
    for (int c; (c = getc(file)) != EOF;) putchar(c);
    return 0;
}

int main(int count, char** arguments) {
    if (count == 2) return show(arguments[1]);
    if (count != 6) return 2;
    struct perf_event_attr attr = {.size = sizeof attr, .disabled = 1, .exclude_hv = 1};
    attr.type = (uint32_t)strtoul(arguments[1], NULL, 0);
    attr.config = strtoull(arguments[2], NULL, 0);
    attr.sample_period = strtoull(arguments[3], NULL, 0);
    attr.branch_sample_type = strtoull(arguments[4], NULL, 0);
    attr.exclude_kernel = *arguments[5] == '1';
    attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
    int event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (event < 0) {
        printf("error %d\n", errno);
        return 0;
    }
    struct perf_event_mmap_page* page = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ, MAP_SHARED, event, 0);
    if (page == MAP_FAILED) return 3;
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    loop();
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);

    uint64_t kinds[MOST_KINDS], samples = 0, entries = 0, outside = 0;
    unsigned kind_count = 0;
    const char* data = (const char*)page + PAGE;
    for (uint64_t at = 0; at < page->data_head;) {
        const struct perf_event_header* header = (const void*)(data + at);
        const uint64_t* words = (const void*)(header + 1);
        at += header->size;
        if (header->type != PERF_RECORD_SAMPLE) continue;
        samples++;
        for (uint64_t i = 0; i < words[0]; i++) {
            const uint64_t* entry = words + 1 + 3 * i;
            uint64_t flags = entry[2] & ~(0xFFFFull << 4);
            unsigned k = 0;
            entries++;
            outside += !is_inside(entry[0]) || !is_inside(entry[1]);
            while (k < kind_count && kinds[k] != flags) k++;
            if (k == kind_count && k < MOST_KINDS) kinds[kind_count++] = flags;
        }
    }
    printf("%llu %llu %llu", (unsigned long long)samples, (unsigned long long)entries, (unsigned long long)outside);
    for (unsigned k = 0; k < kind_count; k++) printf(" %llx", (unsigned long long)kinds[k]);
    puts("");
    return 0;
}
