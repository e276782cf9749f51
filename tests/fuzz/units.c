/* Uses the PMUs of units as no driver's author has thought of: argument 1 is the seed. Whatever comes of it is well. */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define STEPS 60
#define MOST_EVENTS 32

static const char* const pmus[] = {"intel_pt", "intel_bts", "ibs_op", "ibs_fetch", "arm_spe_0", "cpu", "armv8_pmuv3_0"};
static int types[sizeof pmus / sizeof *pmus], type_count;
static int events[MOST_EVENTS], event_count;
static unsigned long long state;

static unsigned below(unsigned bound) { /* xorshift */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % bound;
}

static int loop(int turns) {
    volatile int sum = 0;
    for (int i = 0; i < turns; i++) sum += i & 3 ? 1 : 2;
    return sum;
}

static int recursion(int depth) { return depth ? recursion(depth - 1) + loop(3) : 0; }

static void work(void) {
    loop((int)below(400));
    recursion((int)below(60));
    getppid();
    char* memory = malloc(below(9000) + 100);
    memset(memory, 1, 100);
    free(memory);
}

static void* work_in_a_thread(void* nothing) {
    work();
    return nothing;
}

static unsigned long long some_config(void) {
    switch (below(5)) {
        case 0: return (unsigned long long)below(1 << 30) * below(1 << 30);
        case 1: return 1ull << below(64);
        case 2: return 1ull << 16 | 1ull << below(20);
        case 3: return below(3) ? 0x1cd + 0x100 * below(2) : 0x81d0 + 0x100 * below(3); /* Intel's loads and stores */
        default: return 0;
    }
}

// One that samples branches, as its kind of unit likes it: all of them for any, 0xC4 for AMD's branch sampling alone.
static void want_branches(struct perf_event_attr* attr) {
    attr->type = below(2) ? PERF_TYPE_RAW : PERF_TYPE_HARDWARE;
    attr->config = attr->type == PERF_TYPE_RAW ? 0xC4 : below(8);
    attr->config1 = attr->config2 = 0;
    attr->freq = attr->precise_ip = 0;
    attr->sample_period = 1 + below(300);
    attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
    attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
}

static void open_event(void) {
    if (event_count == MOST_EVENTS) return;
    struct perf_event_attr attr = {.size = sizeof attr, .exclude_hv = 1};
    attr.type = below(4) ? (unsigned)types[below((unsigned)type_count)] : below(2);
    attr.config = some_config();
    attr.config1 = below(3) ? 0 : some_config();
    attr.config2 = below(5) ? 0 : some_config();
    attr.sample_period = below(2) ? below(5000) * (1 + below(16)) : 0;
    attr.freq = !below(6);
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_RAW | PERF_SAMPLE_ADDR;
    if (below(2)) attr.sample_type = 1ull << below(25) | 1ull << below(25) | PERF_SAMPLE_BRANCH_STACK;
    attr.branch_sample_type = below(2) ? 1ull << below(19) | 1 : PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
    attr.precise_ip = below(4);
    attr.sample_regs_intr = below(2) ? 0xff0fff : 1ull << below(64);
    attr.use_clockid = !below(8);
    attr.exclude_kernel = below(4) != 0;
    attr.inherit = !below(3);
    attr.disabled = below(2);
    attr.aux_watermark = below(3) ? 0 : below(20000);
    attr.aux_output = !below(12);
    attr.aux_sample_size = below(10) ? 0 : below(8192);
    attr.read_format = below(16);
    attr.wakeup_events = below(3);
    if (!below(4)) want_branches(&attr);
    int leader = event_count && !below(3) ? events[below((unsigned)event_count)] : -1;
    int event = (int)syscall(SYS_perf_event_open, &attr, 0, below(4) ? -1 : 0, leader, below(10) ? 0 : 8);
    if (event >= 0) events[event_count++] = event;
}

static void map(int event) {
    size_t size = (1 + (1ul << below(4))) * PAGE, aux_size = PAGE << below(6);
    struct perf_event_mmap_page* page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    if (page == MAP_FAILED) return;
    if (below(4)) {
        page->aux_offset = size + (below(8) ? 0 : PAGE);
        page->aux_size = aux_size;
        int protection = below(3) ? PROT_READ | PROT_WRITE : PROT_READ;
        void* area = mmap(NULL, aux_size, protection, MAP_SHARED, event, (off_t)page->aux_offset);
        work();
        if (area != MAP_FAILED && !below(3)) page->aux_tail = below(3) ? page->aux_head : below(1 << 20);
        if (area != MAP_FAILED && !below(3)) munmap(area, aux_size);
    }
    if (!below(6)) munmap(page, size);
}

static void control(int event) {
    static const unsigned long requests[] = {PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_REFRESH,
                                             PERF_EVENT_IOC_RESET};
    unsigned long long period = below(9000);
    if (below(5))
        ioctl(event, requests[below(4)], below(3));
    else
        ioctl(event, PERF_EVENT_IOC_PERIOD, &period);
}

static void read_or_close(unsigned number) {
    char values[256];
    if (below(3) && read(events[number], values, sizeof values) >= 0) return;
    close(events[number]);
    events[number] = events[--event_count];
}

static void step(void) {
    pthread_t thread;
    unsigned kind = below(8);
    if (!event_count && kind > 4) kind = 0;
    switch (kind) {
        case 2: work(); break;
        case 3:
            if (!pthread_create(&thread, NULL, work_in_a_thread, NULL)) pthread_join(thread, NULL);
            break;
        case 4:
            if (!fork()) {
                work();
                _exit(0);
            }
            wait(NULL);
            break;
        case 5: map(events[below((unsigned)event_count)]); break;
        case 6: control(events[below((unsigned)event_count)]); break;
        case 7: read_or_close(below((unsigned)event_count)); break;
        default: open_event();
    }
    if (below(2)) work();
}

int main(int count, char** arguments) {
    if (count != 2) return 2;
    state = strtoull(arguments[1], NULL, 0) * 2654435761u + 88172645463325252ull;
    for (unsigned i = 0; i < sizeof pmus / sizeof *pmus; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", pmus[i]);
        FILE* file = fopen(path, "r");
        if (file && fscanf(file, "%d", &types[type_count]) == 1) type_count++;
        if (file) fclose(file);
    }
    if (type_count < 2) return 3;
    for (int i = 0; i < STEPS; i++) step();
    return 0;
}
