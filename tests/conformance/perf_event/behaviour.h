// What the programs of this folder share. Each shows one behaviour of perf_event: it checks, and is silent if all is
// so.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// What a behaviour needs of the machine; who has it not leaves the program out, and says so.
enum needs {
    NOTHING = 0,
    PMU = 1 << 0,        // counters
    SLOTS = 1 << 1,      // hardware breakpoints
    TRACEFS = 1 << 2,    // at /sys/kernel/tracing
    TWO_CPUS = 1 << 3,   // CPUs 0 and 1
    ROOT = 1 << 4,       // all capabilities
    A_MACHINE = 1 << 5,  // that is there for tests: its sysctls are changed
};

struct behaviour {
    const char* name;
    void (*run)(void);
    unsigned long needs;
};

// The program: BEHAVIOUR(its file's name, what it needs) { ... }
#define BEHAVIOUR(name, needs)                                                                       \
    static void behaviour_##name(void);                                                              \
    static const struct behaviour row_##name                                                         \
        __attribute__((section("behaviours"), used, aligned(8))) = {#name, behaviour_##name, needs}; \
    static void behaviour_##name(void)

// Checks. The first that is not so ends the program with exit status 1.

static const char* behaviour_name;

#define FAIL(...)                                                            \
    do {                                                                     \
        char why_[600];                                                      \
        snprintf(why_, sizeof why_, __VA_ARGS__);                            \
        dprintf(1, "%s FAIL line %d: %s\n", behaviour_name, __LINE__, why_); \
        _exit(1);                                                            \
    } while (0)
#define CHECK(condition)                          \
    do {                                          \
        if (!(condition)) FAIL("%s", #condition); \
    } while (0)
#define COMPARE(actual, compare, expected)                                                                        \
    do {                                                                                                          \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                               \
        if (!(actual_ compare expected_)) FAIL("%s is %lld, not %s %lld", #actual, actual_, #compare, expected_); \
    } while (0)
#define EQUAL(actual, expected) COMPARE(actual, ==, expected)
// A call that answers -1 with this errno.
#define FAILS(call, error)                                                                                             \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        long answer_ = (long)(call);                                                                                   \
        if (answer_ != -1 || errno != (error)) FAIL("%s is %ld with errno %d, not %s", #call, answer_, errno, #error); \
    } while (0)
#define SUCCEEDS(call)                                            \
    do {                                                          \
        if ((call) == -1) FAIL("%s: %s", #call, strerror(errno)); \
    } while (0)
// This machine has not what the behaviour is about: known only now.
#define SKIP(why)                                        \
    do {                                                 \
        dprintf(1, "%s skip %s\n", behaviour_name, why); \
        _exit(2);                                        \
    } while (0)

// Events. All are made disabled, and count user mode alone.

typedef struct perf_event_attr Attr;

static inline Attr attr_of(unsigned type, unsigned long config) {
    Attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = type;
    attr.config = config;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    return attr;
}

#define HARDWARE(event) attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_##event)
#define SOFTWARE(event) attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##event)
#define INSTRUCTIONS HARDWARE(INSTRUCTIONS)
#define DUMMY SOFTWARE(DUMMY)

// A descriptor, or -1 and errno.
static inline int try_open(Attr attr, int pid, int cpu, int group, unsigned long flags) {
    return syscall(SYS_perf_event_open, &attr, pid, cpu, group, flags);
}

// errno of an event of this task that cannot be opened; 0: it can be.
static inline int open_error(Attr attr) {
    int event = try_open(attr, 0, -1, -1, 0);
    if (event < 0) return errno;
    close(event);
    return 0;
}

static inline int open_of(Attr attr, int pid, int cpu, int group) {
    int event = try_open(attr, pid, cpu, group, 0);
    if (event < 0) FAIL("perf_event_open(type %u config %llx): %s", attr.type, attr.config, strerror(errno));
    return event;
}

static inline int open_event(Attr attr) { return open_of(attr, 0, -1, -1); }

static inline int open_sibling(Attr attr, int leader) { return open_of(attr, 0, -1, leader); }

static inline void enable(int event) { SUCCEEDS(ioctl(event, PERF_EVENT_IOC_ENABLE, 0)); }

static inline void disable(int event) { SUCCEEDS(ioctl(event, PERF_EVENT_IOC_DISABLE, 0)); }

static inline void reset(int event) { SUCCEEDS(ioctl(event, PERF_EVENT_IOC_RESET, 0)); }

static inline uint64_t id_of(int event) {
    uint64_t id = 0;
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_ID, &id));
    return id;
}

static inline uint64_t count_of(int event) {
    uint64_t values[3];
    COMPARE(read(event, values, sizeof values), >=, 8);
    return values[0];
}

// Work whose instructions are known.

// Exactly 1,000,000 of them, of which 499,999 are branches.
static __attribute__((noinline)) void million(void) {
#ifdef __x86_64__
    // 1 + 1 + 499,999 * 2
    __asm__ volatile("nop\n mov $499999, %%ecx\n 1: dec %%ecx\n jnz 1b" ::: "ecx", "cc");
#else
    // 2 + 499,999 * 2
    __asm__ volatile("mov w9, #0xa11f\n movk w9, #7, lsl #16\n 1: subs w9, w9, #1\n b.ne 1b" ::: "x9", "cc");
#endif
}

// A number of loops of two instructions each.
static inline void loops(unsigned long times) {
#ifdef __x86_64__
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(times)::"cc");
#else
    __asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(times)::"cc");
#endif
}

static inline long page_size(void) { return sysconf(_SC_PAGESIZE); }

// Fresh pages that have not been touched, and touching them: a minor fault each.
static inline char* fresh(int pages) {
    char* at = mmap(NULL, pages * page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    madvise(at, pages * page_size(), MADV_NOHUGEPAGE);
    return at;
}

static inline void touch(char* at, int pages) {
    for (int page = 0; page < pages; page++) ((volatile char*)at)[page * page_size()] = 1;
}

static inline void fault(int pages) {
    char* at = fresh(pages);
    touch(at, pages);
    munmap(at, pages * page_size());
}

static inline void sleep_ms(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static inline void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    SUCCEEDS(sched_setaffinity(0, sizeof set, &set));
}

// Other processes.

// One that does `run` when it is let go, and ends; `run` may be NULL.
struct child {
    int pid, gate;
};

static inline struct child start(void (*run)(void)) {
    int gate[2];
    SUCCEEDS(pipe(gate));
    int pid = fork();
    if (pid == 0) {
        char byte;
        close(gate[1]);
        while (read(gate[0], &byte, 1) == 1) {
        }
        close(gate[0]);
        if (run) run();
        _exit(0);
    }
    close(gate[0]);
    return (struct child){pid, gate[1]};
}

static inline int wait_for(int pid) {
    int status = 0;
    EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status)) _exit(WEXITSTATUS(status));  // it has said why
    return status;
}

static inline void let_go(struct child child) { close(child.gate); }

static inline void finish(struct child child) {
    let_go(child);
    EQUAL(wait_for(child.pid), 0);
}

// Checks in a process of its own, which may give up what it has.
static inline void apart(void (*run)(void)) {
    int pid = fork();
    if (pid == 0) {
        run();
        _exit(0);
    }
    EQUAL(wait_for(pid), 0);
}

// This program again, as `behaviour_again` says: for what execve does.
static inline void exec_again(const char* how) {
    execl("/proc/self/exe", "again", behaviour_name, how, NULL);
    FAIL("execve: %s", strerror(errno));
}

extern const char* behaviour_again;  // NULL, or `how`

static inline void become_nobody(void) {
    SUCCEEDS(syscall(SYS_setresgid, 65534, 65534, 65534));
    SUCCEEDS(syscall(SYS_setresuid, 65534, 65534, 65534));
    prctl(PR_SET_DUMPABLE, 1);
}

// Files.

static inline long number_in(const char* path) {
    char text[64] = "";
    int file = open(path, O_RDONLY);
    if (file < 0) FAIL("%s: %s", path, strerror(errno));
    COMPARE(read(file, text, sizeof text - 1), >, 0);
    close(file);
    char* end;
    long number = strtol(text, &end, 10);
    if (end == text || (*end != '\n' && *end)) FAIL("%s is no number: %s", path, text);
    return number;
}

// 0 or errno
static inline int write_error(const char* path, const char* text) {
    int file = open(path, O_WRONLY);
    if (file < 0) FAIL("%s: %s", path, strerror(errno));
    int error = write(file, text, strlen(text)) < 0 ? errno : 0;
    close(file);
    return error;
}

// A file of the CPUs' own PMU in sysfs.
static inline const char* pmu_file(const char* name) {
    static char path[400];
    DIR* devices = opendir("/sys/bus/event_source/devices");
    struct dirent* entry;
    while (devices && (entry = readdir(devices)))
        if (strcmp(entry->d_name, "cpu") == 0 || strncmp(entry->d_name, "armv8_", 6) == 0)
            snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/%s", entry->d_name, name);
    if (devices) closedir(devices);
    return path;
}

// A sysctl of perf_event, for the rest of this program: the driver puts all back.
static inline void set_sysctl(const char* name, long value) {
    char path[100], text[32];
    snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
    snprintf(text, sizeof text, "%ld\n", value);
    EQUAL(write_error(path, text), 0);
}

// The buffer.

struct ring {
    struct perf_event_mmap_page* page;
    uint64_t at;
    char record[1 << 16] __attribute__((aligned(8)));
};

typedef struct perf_event_header Header;

static inline void* map(int event, int data_pages) {
    return mmap(NULL, (1 + data_pages) * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
}

// The event's buffer. There are two at once, at most.
static inline struct ring* ring_of(int event, int data_pages) {
    static struct ring rings[2];
    struct ring* ring = &rings[rings[0].page != NULL];
    ring->page = map(event, data_pages);
    if (ring->page == MAP_FAILED) FAIL("mmap: %s", strerror(errno));
    return ring;
}

// The next record, or NULL: there is no more now.
static inline Header* next_record(struct ring* ring) {
    struct perf_event_mmap_page* page = ring->page;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    if (ring->at == head) return NULL;
    char* data = (char*)page + page->data_offset;
    Header* header = (Header*)(data + ring->at % page->data_size);  // headers do not wrap: all are multiples of 8
    COMPARE(header->size, >=, sizeof *header);
    COMPARE(header->size, <=, head - ring->at);
    EQUAL(header->size % 8, 0);
    for (unsigned i = 0; i < header->size; i++) ring->record[i] = data[(ring->at + i) % page->data_size];
    ring->at += header->size;
    __atomic_store_n(&page->data_tail, ring->at, __ATOMIC_RELEASE);
    return (Header*)ring->record;
}

static inline Header* next_of(struct ring* ring, unsigned type) {
    Header* record = next_record(ring);
    while (record && record->type != type) record = next_record(ring);
    return record;
}

// The words behind the header of the next record of a type, which there must be.
static inline uint64_t* body_of(struct ring* ring, unsigned type) {
    Header* record = next_of(ring, type);
    if (!record) FAIL("there is no record of type %u", type);
    return (uint64_t*)(record + 1);
}

static inline int remaining(struct ring* ring, unsigned type) {
    int found = 0;
    while (next_of(ring, type)) found++;
    return found;
}

static inline int ready(int event) {
    struct pollfd polled = {event, POLLIN, 0};
    return poll(&polled, 1, 0) == 1 ? polled.revents : 0;
}

#ifdef __x86_64__
enum { NO_REGISTER = 24 };  // a bit of sample_regs_user that means none
#else
enum { NO_REGISTER = 63 };
#endif
