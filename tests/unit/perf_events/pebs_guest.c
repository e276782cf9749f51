// What a guest gets of PEBS by perf_event_open: each line is checked by test_pebs_driver.py.
#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct perf_event_attr Attr;
typedef unsigned long long u64;

static void show(const char* name) {
    char path[200], text[100] = "none\n";
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/cpu/%s", name);
    FILE* opened = fopen(path, "r");
    if (opened) {
        if (!fgets(text, sizeof text, opened)) text[0] = 0;
        fclose(opened);
    }
    printf("%s: %s", name, text);
}

static int open_event(Attr attr, int group) { return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, 0); }

static void try_event(const char* what, Attr attr) {
    int event = open_event(attr, -1);
    printf("%s: %s\n", what, event < 0 ? strerrorname_np(errno) : "yes");
    if (event >= 0) close(event);
}

__attribute__((noinline)) static void work(long times) { __asm__ volatile("1: sub $1, %0\n jne 1b" : "+r"(times)); }

static u64 data[1 << 16];

__attribute__((noinline)) static void store(long times) {
    for (long i = 0; i < times; i++) __asm__ volatile("mov %1, %0" : "=m"(data[i % (1 << 16)]) : "r"(i));
}

// Samples: IP, TIME, ADDR, PERIOD; whether their times ascend, and all that are within `function`.
static void sample(const char* what, Attr attr, void (*function)(long), long times) {
    attr.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    int event = open_event(attr, -1);
    struct perf_event_mmap_page* page = mmap(0, 65 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    function(times);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    u64 count = 0, last = 0;
    if (read(event, &count, sizeof count) != sizeof count) count = 0;
    unsigned samples = 0, within = 0, exact = 0, ascending = 0, in_data = 0;
    for (char *at = (char*)page + 4096, *end = at + page->data_head; at < end;) {
        struct perf_event_header* record = (void*)at;
        if (record->type == PERF_RECORD_SAMPLE) {
            u64* body = (void*)(record + 1);
            samples++;
            within += body[0] >= (u64)function && body[0] < (u64)function + 64;
            exact += (record->misc & PERF_RECORD_MISC_EXACT_IP) != 0;
            ascending += body[1] >= last;
            last = body[1];
            in_data += body[2] >= (u64)data && body[2] < (u64)(data + (1 << 16));
        }
        at += record->size;
    }
    printf("%s: %u samples, %u outside, %u exact, %u ascending, %u in data, counted %llu\n", what, samples,
           samples - within, exact, ascending, in_data, count);
    munmap(page, 65 * 4096);
    close(event);
}

__attribute__((noinline)) static void count_in_xmm1(long times) {
    __asm__ volatile(
        "pxor %%xmm1, %%xmm1\n pcmpeqd %%xmm0, %%xmm0\n"
        "1: psubq %%xmm0, %%xmm1\n sub $1, %0\n jne 1b"
        : "+r"(times)::"xmm0", "xmm1");
}

// Samples of the loop's SUB have its count in XMM1, both halves of which are alike, and what is left in a register.
static void vectors(Attr attr) {
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_INTR;
    attr.sample_regs_intr = 3ull << 34 | 1 << 5; /* XMM1 and DI */
    attr.sample_period = 2999;                   /* of 3 instructions each time */
    int event = open_event(attr, -1);
    if (event < 0) {
        printf("vectors: %s\n", strerrorname_np(errno));
        return;
    }
    struct perf_event_mmap_page* page = mmap(0, 65 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    count_in_xmm1(100000);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    unsigned samples = 0, right = 0;
    for (char *at = (char*)page + 4096, *end = at + page->data_head; at < end;) {
        struct perf_event_header* record = (void*)at;
        u64* body = (void*)(record + 1); /* ip, abi, DI, XMM1 */
        if (record->type == PERF_RECORD_SAMPLE && body[0] >= (u64)count_in_xmm1) {
            samples++;
            u64 sum = body[2] + body[3];
            right += body[3] == body[4] && (sum == 100000 || sum == 100001);
        }
        at += record->size;
    }
    printf("vectors: %u of %u\n", right, samples);
}

int main(void) {
    unsigned eax, ebx, ecx, edx;
    __cpuid(1, eax, ebx, ecx, edx);
    printf("ds %u, dtes64 %u, pdcm %u\n", edx >> 21 & 1, ecx >> 2 & 1, ecx >> 15 & 1);
    show("caps/max_precise");
    show("format/ldlat");
    show("events/mem-loads");
    show("events/mem-stores");
    Attr attr = {.type = PERF_TYPE_HARDWARE,
                 .size = sizeof(Attr),
                 .config = PERF_COUNT_HW_INSTRUCTIONS,
                 .disabled = 1,
                 .exclude_kernel = 1,
                 .exclude_hv = 1,
                 .sample_period = 10000,
                 .precise_ip = 2};
    Attr counts = attr;
    counts.sample_period = 0;
    try_event("counting", counts);
    Attr loads = attr;
    loads.type = PERF_TYPE_RAW;
    loads.config = 0x1cd;
    loads.config1 = 0x10000;
    try_event("long latency", loads);
    loads.config1 = 30;
    try_event("latency", loads);
    loads.precise_ip = 0;
    try_event("latency without records", loads);
    sample("large", attr, work, 1000000);
    vectors(attr);
    Attr single = attr;
    single.wakeup_events = 1;
    sample("single", single, work, 1000000);
    Attr next = attr;
    next.precise_ip = 1;
    sample("next", next, work, 1000000);
    Attr frequency = attr;
    frequency.config = PERF_COUNT_HW_CPU_CYCLES;
    frequency.freq = 1;
    frequency.sample_freq = 50000;
    sample("frequency", frequency, work, 1000000);
    Attr stores = attr;
    stores.type = PERF_TYPE_RAW;
    stores.config = 0x82d0;
    stores.sample_period = 1000;
    sample("stores", stores, store, 100000);
    return 0;
}
