// Hardware breakpoints: how often instructions and data are hit, and what the calls about them answer. Counts are exact
// and follow from the program; on a machine without debug registers nothing is like this.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static union {
    char bytes[64];
    uint64_t words[8];
} data __attribute__((aligned(64)));

static __attribute__((noinline, noclone)) void function(void) { __asm__ volatile("" ::: "memory"); }

static struct perf_event_attr watch(unsigned type, volatile void* address, unsigned long length) {
    struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
                                   .size = sizeof attr,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .bp_type = type,
                                   .bp_len = length};
    attr.bp_addr = (unsigned long)address;
    return attr;
}

static int open_for(struct perf_event_attr attr, int pid, int cpu) {
    int event = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
    return event < 0 ? -errno : event;
}

static int open_event(struct perf_event_attr attr) { return open_for(attr, 0, -1); }

static long count_of(int event) {
    uint64_t count = 0;
    return read(event, &count, sizeof count) == sizeof count ? (long)count : -errno;
}

static long closed(int event) {
    long count = count_of(event);
    close(event);
    return count;
}

static long tried(struct perf_event_attr attr) {
    int event = open_event(attr);
    if (event >= 0) close(event);
    return event < 0 ? event : 0;
}

static void store8(volatile void* at) { *(volatile uint8_t*)at = 1; }
static void store16(volatile void* at) { *(volatile uint16_t*)at = 1; }
static void store32(volatile void* at) { *(volatile uint32_t*)at = 1; }
static void store64(volatile void* at) { *(volatile uint64_t*)at = 1; }
static void load32(volatile void* at) { (void)*(volatile uint32_t*)at; }

static void two_words_stored(volatile void* at) {
#ifdef __aarch64__
    __asm__ volatile("stp xzr, xzr, [%0]" ::"r"(at) : "memory");
#else
    __asm__ volatile("movups %%xmm0, (%0)" ::"r"(at) : "memory");
#endif
}
static void two_words_loaded(volatile void* at) {
#ifdef __aarch64__
    __asm__ volatile("ldp x9, x10, [%0]" ::"r"(at) : "memory", "x9", "x10");
#else
    __asm__ volatile("movups (%0), %%xmm1" ::"r"(at) : "memory", "xmm1");
#endif
}
static void vector_stored(volatile void* at) {
#ifdef __aarch64__
    __asm__ volatile("str q0, [%0]" ::"r"(at) : "memory");
#else
    __asm__ volatile("movups %%xmm0, (%0)" ::"r"(at) : "memory");
#endif
}

static const struct {
    const char* name;
    void (*run)(volatile void*);
} ACCESSES[] = {{"store of 1", store8},
                {"store of 2", store16},
                {"store of 4", store32},
                {"store of 8", store64},
                {"load of 4", load32},
                {"pair stored", two_words_stored},
                {"pair loaded", two_words_loaded},
                {"vector stored", vector_stored}};

// Each kind of access at each place around what is watched, by each length: hits, a digit each.
static void print_overlaps(void) {
    for (unsigned type = HW_BREAKPOINT_W; type <= HW_BREAKPOINT_RW; type++)
        for (unsigned length = 1; length <= 8; length *= 2)
            for (unsigned kind = 0; kind < sizeof ACCESSES / sizeof *ACCESSES; kind++) {
                printf("type %u, %u bytes, %s:", type, length, ACCESSES[kind].name);
                int event = open_event(watch(type, data.bytes + 24, length));
                for (unsigned offset = 0; offset < 40; offset++) {
                    ioctl(event, PERF_EVENT_IOC_RESET, 0);
                    ACCESSES[kind].run(data.bytes + offset);
                    ACCESSES[kind].run(data.bytes + offset);
                    printf(" %ld", count_of(event));
                }
                printf("\n");
                close(event);
            }
}

static void print_counts(void) {
    struct perf_event_attr attr = watch(HW_BREAKPOINT_X, function, sizeof(long));
    int event = open_event(attr);
    for (int i = 0; i < 10; i++) function();
    printf("executed %ld\n", closed(event));

    event = open_event(watch(HW_BREAKPOINT_W, &data.words[2], 8));
    for (int i = 0; i < 20; i++) store64(&data.words[2]);
    for (int i = 0; i < 15; i++) load32(&data.words[2]);
    printf("written %ld\n", closed(event));

    event = open_event(watch(HW_BREAKPOINT_RW, &data.words[2], 8));
    for (int i = 0; i < 20; i++) store64(&data.words[2]);
    for (int i = 0; i < 15; i++) load32(&data.words[2]);
    printf("accessed %ld\n", closed(event));

#ifdef __x86_64__  // a watched LDXR never gets to its STXR: each hit's exception clears the monitor
    event = open_event(watch(HW_BREAKPOINT_RW, &data.words[2], 8));
    for (int i = 0; i < 10; i++) __atomic_fetch_add(&data.words[2], 1, __ATOMIC_RELAXED);
    printf("atomic %ld\n", closed(event));
#endif

    attr.exclude_user = 1;
    event = open_event(attr);
    function();
    printf("exclude_user %ld\n", event < 0 ? event : closed(event));

    // two of the same instruction, and data that is accessed there
    attr.exclude_user = 0;
    int events[2] = {open_event(attr), open_event(attr)};
    for (int i = 0; i < 7; i++) function();
    printf("two of one place %ld", closed(events[0]));
    function();
    printf(" %ld\n", closed(events[1]));
}

static void print_errors(void) {
    for (unsigned type = 0; type < 9; type++)
        for (unsigned length = 0; length < 18; length++)
            printf("type %u, length %u: %ld\n", type, length, tried(watch(type, data.bytes + 16, length)));
    for (unsigned offset = 0; offset < 8; offset++)
        for (unsigned length = 1; length <= 16; length *= 2)
            printf("offset %u, length %u: %ld\n", offset, length,
                   tried(watch(HW_BREAKPOINT_W, data.bytes + 16 + offset, length)));
    struct perf_event_attr attr = watch(HW_BREAKPOINT_X, function, sizeof(long));
    attr.bp_addr = 0xffffffff80001000;
    printf("of the kernel, exclude_kernel %ld\n", tried(attr));
    attr.bp_addr = ~0UL;
    printf("the last address %ld\n", tried(attr));
    attr.bp_addr = 0;
    printf("address 0 %ld\n", tried(attr));
    attr = watch(HW_BREAKPOINT_X, function, sizeof(long));
    attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
    printf("branch stack %ld\n", tried(attr));
}

static int open_all(struct perf_event_attr attr, int* events, int pid, int cpu) {
    int opened = 0;
    while (opened < 32 && (events[opened] = open_for(attr, pid, cpu)) >= 0) opened++;
    return opened;
}

static void close_all(int* events, int opened) {
    while (opened) close(events[--opened]);
}

static void print_slots(void) {
    int events[33], others[33];
    struct perf_event_attr code = watch(HW_BREAKPOINT_X, function, sizeof(long));
    struct perf_event_attr bytes = watch(HW_BREAKPOINT_W, data.bytes, 4);
    int opened = open_all(code, events, 0, -1);
    printf("code: as many as there are %d, then %d", opened > 1, events[opened]);
    int rest = open_all(bytes, others, 0, -1);
    printf("; data besides: any %d, then %d\n", rest > 0, others[rest]);
    close_all(others, rest);
    close_all(events, opened);
    opened = open_all(bytes, events, 0, -1);
    printf("data: as many as there are %d, then %d", opened > 1, events[opened]);
    store32(data.bytes);
    for (int i = 0; i < opened; i++)
        if (count_of(events[i]) != 1) printf(", one of them counts %ld", count_of(events[i]));
    int of_cpu = open_for(bytes, -1, 0);
    printf("; of the CPU %d", of_cpu);
    close(events[--opened]);
    of_cpu = open_for(bytes, -1, 0);
    printf(", %d\n", of_cpu >= 0 ? 0 : of_cpu);
    printf("beside that of the CPU %ld\n", tried(bytes));
    close(of_cpu);
    close_all(events, opened);
    bytes.pinned = 1;
    opened = open_all(bytes, events, 0, -1);
    printf("pinned: then %d\n", events[opened]);
    close_all(events, opened);
}

static void print_moves(void) {
    struct perf_event_attr attr = watch(HW_BREAKPOINT_W, &data.words[0], 8), other;
    int event = open_event(attr);
    store64(&data.words[0]);
    other = attr;
    other.bp_addr = (unsigned long)&data.words[1];
    printf("moved %d\n", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &other));
    store64(&data.words[0]);
    store64(&data.words[1]), store64(&data.words[1]);
    printf("counts %ld\n", count_of(event));
    other.bp_type = HW_BREAKPOINT_X, other.bp_addr = (unsigned long)function;
    printf("to code %d", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &other));
    store64(&data.words[1]);
    function();
    printf(" %ld\n", count_of(event));
    other.disabled = 1;
    printf("disabled %d", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &other));
    function();
    printf(" %ld\n", count_of(event));
    other.disabled = 0;
    other.bp_len = 9;
    printf("bad length %d", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &other) < 0 ? -errno : 0);
    function();
    printf(" %ld\n", count_of(event));
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    function();
    printf("enabled %ld\n", count_of(event));
    other.bp_len = 8;
    other.inherit = 1;
    printf("another flag %d", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &other) < 0 ? -errno : 0);
    other.inherit = 0;
    other.type = PERF_TYPE_SOFTWARE;
    printf(", another type %d\n", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &other) < 0 ? -errno : 0);
    close(event);
    struct perf_event_attr faults = {.type = PERF_TYPE_SOFTWARE, .size = sizeof faults, .config = 2};
    event = open_event(faults);
    printf("page faults %d\n", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &faults) < 0 ? -errno : 0);
    close(event);
}

static void* in_thread(void* unused) {
    for (int i = 0; i < 5; i++) store64(&data.words[3]);
    return unused;
}

static void print_inherited(void) {
    for (int inherit = 0; inherit < 2; inherit++) {
        struct perf_event_attr attr = watch(HW_BREAKPOINT_W, &data.words[3], 8);
        attr.inherit = inherit;
        int event = open_event(attr);
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, in_thread, NULL);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        printf("inherit %d: threads %ld", inherit, count_of(event));
        int child = fork();
        if (child == 0) {
            in_thread(NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        printf(", with a process %ld\n", closed(event));
    }
}

static void print_disabled(void) {
    struct perf_event_attr attr = watch(HW_BREAKPOINT_W, &data.words[4], 8);
    attr.disabled = 1;
    int event = open_event(attr);
    store64(&data.words[4]);
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    for (int i = 0; i < 3; i++) store64(&data.words[4]);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    store64(&data.words[4]);
    printf("between enable and disable %ld\n", count_of(event));
    prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0);
    store64(&data.words[4]);
    printf("by prctl %ld\n", closed(event));
}

int main(void) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    print_counts();
    print_errors();
    print_slots();
    print_moves();
    print_inherited();
    print_disabled();
    print_overlaps();
    return 0;
}
