// The PMU uprobe: which events it opens, how often they happen, what a sample holds, and semaphores in the program.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICE "/sys/bus/event_source/devices/uprobe/"
#define FUNCTION __attribute__((noinline, noclone, aligned(16)))

extern char __executable_start[];
static char path[256];
static unsigned type;

// In a page of the file's own data, whose offset there is not its address's.
static volatile struct {
    uint64_t before;
    uint16_t semaphore, other;
} counted __attribute__((section(".data"))) = {1, 0, 0};

FUNCTION long work(long n) {
    __asm__ volatile("" ::: "memory");
    return n + 1;
}
FUNCTION long nested(long n) {
    long result = n ? nested(n - 1) + 1 : work(n);
    __asm__ volatile("" ::: "memory");
    return result;
}

static long offset_of(void* function) { return (char*)function - __executable_start; }

// Of a word of this program's data in its file: looked for by what stands there, between the two numbers.
static long data_offset;
static void find_data(void) {
    static volatile uint64_t mark[2] __attribute__((section(".data"))) = {0x1122334455667788, 0x99aabbccddeeff00};
    char bytes[16], found[16];
    uint64_t first = 0x1122334455667787, second = 0x99aabbccddeeff01;
    first++, second--;
    memcpy(bytes, &first, 8), memcpy(bytes + 8, &second, 8);
    FILE* file = fopen(path, "r");
    for (long at = 0; file && !fseek(file, at, SEEK_SET) && fread(found, 1, 16, file) == 16; at += 8)
        if (!memcmp(found, bytes, 16)) data_offset = at - (long)mark;
    fclose(file);
}

static struct perf_event_attr probe(void* function, int returns) {
    struct perf_event_attr attr = {.type = type,
                                   .size = sizeof attr,
                                   .config = returns,
                                   .uprobe_path = (uintptr_t)path,
                                   .probe_offset = offset_of(function)};
    return attr;
}

static int open_for(struct perf_event_attr attr, int pid, int cpu) {
    int event = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
    return event < 0 ? -errno : event;
}
static int open_event(struct perf_event_attr attr) { return open_for(attr, 0, -1); }

static long count_of(int event) {
    uint64_t count = 0;
    return event < 0 ? event : read(event, &count, sizeof count) == sizeof count ? (long)count : -errno;
}

static void try(const char* what, struct perf_event_attr attr) {
    int event = open_event(attr);
    work(1);
    printf("%s: %s, %ld\n", what, event < 0 ? strerror(-event) : "open", count_of(event));
    if (event >= 0) close(event);
}

static void print_errors(void) {
    struct perf_event_attr attr = probe(work, 0), base = attr;
    try("as it should be", attr);
    attr.config = 1, try("of its return", attr), attr = base;
    attr.config = 2, try("config 2", attr), attr = base;
    attr.config = 0xfffffff0, try("config 0xfffffff0", attr), attr = base;
#ifdef __aarch64__  // elsewhere every byte may be the first of an instruction
    attr.config2 = offset_of(work) + 1, try("an odd offset", attr), attr = base;
    attr.config2 = -1, try("offset -1", attr), attr = base;
#endif
    attr.config2 = offset_of(work) + 4, try("the next instruction", attr), attr = base;
    attr.config2 = 1L << 40, try("beyond the file's end", attr), attr = base;
    attr.config1 = 0, try("no path", attr), attr = base;
    attr.config1 = (uintptr_t)"", try("an empty path", attr), attr = base;
    attr.config1 = (uintptr_t)"/nonexistent", try("a path of nothing", attr), attr = base;
    attr.config1 = (uintptr_t)"/proc", try("a directory", attr), attr = base;
    attr.config1 = (uintptr_t)"/dev/null", try("a device", attr), attr = base;
    attr.config1 = 8, try("a path that cannot be read", attr), attr = base;
    static char longest[8192];
    memset(longest, 'a', sizeof longest - 1);
    attr.config1 = (uintptr_t)longest, try("a long path", attr), attr = base;
    attr.config = 1L << 32, try("semaphore 1", attr), attr = base;
    attr.exclude_kernel = 1, try("exclude_kernel", attr), attr = base;
    attr.exclude_user = 1, try("exclude_user", attr), attr = base;
    attr.sample_type = PERF_SAMPLE_BRANCH_STACK, attr.branch_sample_type = 8, try("branches", attr), attr = base;
    attr.sample_period = 3, try("period", attr), attr = base;
    attr.freq = 1, attr.sample_freq = 100, try("frequency", attr), attr = base;
    attr.exclusive = 1, try("exclusive", attr), attr = base;
    attr.pinned = 1, try("pinned", attr), attr = base;
    attr.disabled = 1, try("disabled", attr), attr = base;
    attr.precise_ip = 1, try("precise_ip", attr), attr = base;
    attr.type = PERF_TYPE_TRACEPOINT, attr.config = 65000, try("no tracepoint", attr), attr = base;
}

static void* in_thread(void* argument) {
    for (int i = 0; i < 5; i++) work(i);
    return argument;
}

static void print_counts(void) {
    for (int inherit = 0; inherit < 2; inherit++) {
        struct perf_event_attr entry = probe(work, 0), back = probe(work, 1), deep = probe(nested, 1);
        entry.inherit = back.inherit = deep.inherit = inherit;
        int entered = open_event(entry), again = open_event(entry), returned = open_event(back);
        int deeply = open_event(deep);
        int everywhere = open_for(entry, -1, 0);
        for (int i = 0; i < 10; i++) work(i);
        ioctl(again, PERF_EVENT_IOC_DISABLE, 0);
        nested(20), nested(63), nested(64), nested(100);
        pthread_t thread;
        pthread_create(&thread, 0, in_thread, 0);
        pthread_join(thread, 0);
        if (!inherit && !fork()) {  // Linux 6.12 may lose what inherited probes of two events hear of a child
            work(1), work(2), work(3);
            _exit(0);
        }
        wait(0);
        printf("inherit %d: entered %ld, %ld, returned %ld, nested %ld, everywhere %ld\n", inherit, count_of(entered),
               count_of(again), count_of(returned), count_of(deeply), count_of(everywhere));
        close(entered), close(again), close(returned), close(deeply), close(everywhere);
    }
}

static void print_sample(int returns) {
    struct perf_event_attr attr = probe(work, returns);
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW | PERF_SAMPLE_ADDR, attr.sample_period = 1;
    int event = open_event(attr);
    char* page = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    work(1);
    struct {
        struct perf_event_header header;
        uint64_t ip, addr;
        uint32_t size;
        uint16_t type;
        uint8_t flags, preempt;
        uint32_t pid;
        uint64_t places[2];
    } __attribute__((packed)) sample;
    memcpy(&sample, page + 4096, sizeof sample);
    printf("sample: %u of %u bytes, misc %x, %s, addr %lx, raw %u bytes, of type %d, pid %d, %d %d\n",
           sample.header.type, sample.header.size, sample.header.misc,
           sample.ip == (uintptr_t)work ? "there" : "elsewhere", (long)sample.addr, sample.size, sample.type != 0,
           sample.pid == (uint32_t)getpid(), sample.places[0] == (uintptr_t)work,
           returns && sample.places[1] == sample.ip);
    for (int i = 0; i < 3; i++) {
        static const char* FILTERS[] = {"__probe_ip != 0", "__probe_func == 0", "nosuch == 0"};
        int failed = ioctl(event, PERF_EVENT_IOC_SET_FILTER, FILTERS[i]);
        work(2);
        printf("filter %s: %s %ld\n", FILTERS[i], failed ? strerror(errno) : "set", count_of(event));
    }
    munmap(page, 2 * 4096);
    close(event);
}

static void print_semaphores(void) {
    struct perf_event_attr attr = probe(work, 0), back = probe(work, 1), without = attr;
    long at = (long)&counted.semaphore + data_offset;
    attr.config |= (uint64_t)at << 32, back.config |= (uint64_t)at << 32;
    printf("semaphore %u", counted.semaphore);
    int first = open_event(attr);
    printf(", opened %u", counted.semaphore);
    int second = open_event(back);
    printf(", twice %u", counted.semaphore);
    int third = open_event(without);
    printf(", without it %s", third < 0 ? strerror(-third) : "open");
    struct perf_event_attr other = attr;
    other.config = (uint64_t)(at + 2) << 32;
    int fourth = open_event(other);
    printf(", another %s", fourth < 0 ? strerror(-fourth) : "open");
    fflush(stdout);
    if (!fork()) {
        printf(", child %u", counted.semaphore);
        close(first), close(second);
        printf(", its closed %u\n", counted.semaphore);
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    ioctl(first, PERF_EVENT_IOC_DISABLE, 0);
    printf("disabled %u", counted.semaphore);
    close(first);
    printf(", closed %u", counted.semaphore);
    work(1);
    printf(", returned %ld", count_of(second));
    close(second);
    printf(", closed %u, neighbours %u %lu\n", counted.semaphore, counted.other, (long)counted.before);
    int everywhere = open_for(attr, -1, 0);
    printf("of a CPU %u", counted.semaphore);
    counted.semaphore = 40;
    close(everywhere);
    printf(", closed %u\n", counted.semaphore);
    counted.semaphore = 0;
}

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 0);
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
    FILE* file = fopen(DEVICE "type", "r");
    if (!file || fscanf(file, "%u", &type) != 1) return 2;
    fclose(file);
    find_data();
    printf("found %d\n", data_offset != 0);
    print_errors();
    print_counts();
    print_sample(0);
    print_sample(1);
    print_semaphores();
    return 0;
}
