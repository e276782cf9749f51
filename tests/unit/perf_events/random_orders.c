// Opens, maps, orders, reads and closes software events in random orders, and prints every answer. For each seed that is
// named. Says "denied" where perf_event_open is.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 6, STEPS = 150, PAGE = 4096, NOTHING = 999 };

static unsigned long state;
static int inherited;
static int event[EVENTS];
static int redirected[EVENTS];  // writes another's buffer: kernels differ in whether it can be mapped by this one, too
static struct perf_event_mmap_page *buffer[EVENTS];
static size_t length[EVENTS];

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (state >> 33) % below;
}

static long answer(long result) { return result < 0 ? -errno : result; }

static int number(int which) { return event[which] < 0 ? NOTHING : event[which]; }

static void fault(int pages) {
    for (int i = 0; i < pages; i++) {
        volatile char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *page = 1;
        munmap((void *)page, PAGE);
    }
}

static long open_one(int which, int leader) {
    static const int configs[] = {PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_PAGE_FAULTS_MIN};
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = PERF_ATTR_SIZE_VER6;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = configs[draw(3)];
    attr.disabled = draw(2);
    attr.exclude_kernel = draw(3) > 0;
    attr.sample_period = draw(3) > 0;
    // Linux 6.13 and later let PERF_SAMPLE_READ be inherited. A host's own switches are in no order.
    attr.sample_type = draw(4) ? PERF_SAMPLE_IP : draw(1 << 15) & ~PERF_SAMPLE_READ;
    attr.exclude_user = draw(6) == 0;
    attr.exclude_hv = draw(4) == 0;
    attr.exclude_idle = draw(6) == 0;
    attr.exclude_host = draw(9) == 0;
    attr.exclude_guest = draw(9) == 0;
    attr.exclude_callchain_user = draw(8) == 0;
    attr.mmap = draw(6) == 0;
    attr.comm = draw(6) == 0;
    attr.task = draw(8) == 0;
    attr.freq = draw(12) == 0;
    attr.precise_ip = draw(12) ? 0 : draw(4);
    attr.sample_id_all = draw(4) == 0;
    attr.enable_on_exec = draw(8) == 0;
    attr.remove_on_exec = draw(20) == 0;
    attr.inherit_stat = draw(9) == 0;
    attr.inherit_thread = draw(20) == 0;
    attr.use_clockid = draw(12) == 0;
    attr.clockid = draw(2) ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_RAW;
    attr.sample_stack_user = draw(20) ? 0 : draw(100);
    attr.read_format = (draw(2) ? PERF_FORMAT_GROUP : 0) | (draw(2) ? PERF_FORMAT_LOST : 0) | draw(8);
    if (draw(60) == 0) attr.read_format |= PERF_FORMAT_LOST << 1;
    attr.pinned = draw(8) == 0;
    attr.exclusive = draw(12) == 0;
    attr.inherit = draw(8) ? inherited : draw(2);
    attr.watermark = draw(4) == 0;
    attr.wakeup_events = draw(3);
    int group = draw(3) ? -1 : event[leader], cpu = draw(6) ? -1 : 0;
    int flags = (draw(9) ? 0 : PERF_FLAG_FD_NO_GROUP) | (draw(9) ? 0 : PERF_FLAG_FD_OUTPUT);
    long result = answer(syscall(SYS_perf_event_open, &attr, 0, cpu, group, flags | PERF_FLAG_FD_CLOEXEC));
    event[which] = result < 0 ? -1 : result;
    redirected[which] = flags & PERF_FLAG_FD_OUTPUT;
    return result < 0 ? result : 0;
}

static long map_one(int which) {
    static const int pages[] = {1, 2, 3, 4, 2};
    length[which] = PAGE * pages[draw(5)] - (draw(4) ? 0 : draw(PAGE));  // mmap takes whole pages
    int protection = draw(4) ? PROT_READ | PROT_WRITE : PROT_READ;
    void *mapped = mmap(NULL, length[which], protection, draw(10) ? MAP_SHARED : MAP_PRIVATE, event[which], 0);
    if (mapped == MAP_FAILED) return -errno;
    buffer[which] = mapped;
    return buffer[which]->data_head > 0;
}

static long unmap_one(int which) {
    long written = buffer[which]->data_head > 0;
    munmap(buffer[which], length[which]);
    buffer[which] = NULL;
    return written;
}

static long redirect(int which, long to) {
    long result = ioctl(event[which], PERF_EVENT_IOC_SET_OUTPUT, to);
    if (result == 0) redirected[which] = to >= 0;
    return result;
}

static long step(int kind, int which, int other) {
    static char values[PAGE];
    struct pollfd polled = {event[which], POLLIN, 0};
    switch (kind) {
        case 0: return ioctl(event[which], PERF_EVENT_IOC_ENABLE, draw(2));
        case 1: return ioctl(event[which], PERF_EVENT_IOC_DISABLE, draw(2));
        case 2: return ioctl(event[which], PERF_EVENT_IOC_RESET, draw(2));
        case 3: return ioctl(event[which], PERF_EVENT_IOC_REFRESH, draw(3));
        case 4: return redirect(which, draw(8) ? number(other) : -1);
        case 5: return buffer[which] || redirected[which] ? 0 : map_one(which);
        case 6: return poll(&polled, 1, 0) < 0 ? -1 : polled.revents;
        case 7: return read(event[which], values, draw(2) ? 8 : PAGE);
        default: return close(event[which]), event[which] = -1, 0;
    }
}

static void run(unsigned long seed) {
    state = seed * 7919 + 1;
    inherited = seed % 4 == 0;
    for (int i = 0; i < EVENTS; i++) event[i] = -1;
    for (int i = 0; i < STEPS; i++) {
        int kind = draw(13), which = draw(EVENTS), other = draw(EVENTS);
        if (kind < 9 && event[which] < 0) printf("%lu.%d open %d %ld\n", seed, i, which, open_one(which, other));
        else if (kind < 9) printf("%lu.%d kind %d %d %ld\n", seed, i, kind, which, answer(step(kind, which, other)));
        else if (kind == 9 && buffer[which]) printf("%lu.%d unmap %d %ld\n", seed, i, which, unmap_one(which));
        else if (kind == 10) printf("%lu.%d prctl %d\n", seed, i,
                                    prctl(draw(2) ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE));
        else fault(3);
    }
    for (int i = 0; i < EVENTS; i++) {
        if (buffer[i]) unmap_one(i);
        if (event[i] >= 0) close(event[i]);
    }
}

int main(int count, char **seeds) {
    static char output[1 << 20];
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    memset(output, 0, sizeof output);  // so that printing faults no more
    setvbuf(stdout, output, _IOFBF, sizeof output);
    struct perf_event_attr any = {.size = PERF_ATTR_SIZE_VER6, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
    int opened = syscall(SYS_perf_event_open, &any, 0, -1, -1, 0);
    if (opened < 0) return puts("denied"), 0;
    close(opened);
    fault(3);
    if (count == 1)
        for (unsigned long seed = 1; seed <= 12; seed++) run(seed);
    for (int i = 1; i < count; i++) run(strtoul(seeds[i], NULL, 10));
    return 0;
}
