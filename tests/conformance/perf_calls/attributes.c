// Opens events by attributes that are mostly right, from a seed, and prints what each call answers: 0 or a size, or minus
// errno. Nothing that is printed is a count or a time.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

static const char *const NAMES[] = {"hardware", "software", "tracepoint", "cache", "raw", "breakpoint", "99"};
static unsigned long state;

static unsigned below(unsigned limit) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (state >> 33) % limit;
}

static int once_in(unsigned times) { return below(times) == 0; }

static long answer(long result) { return result < 0 ? -errno : result; }

static struct perf_event_attr attributes(void) {
    static const struct { unsigned type; unsigned long config; } EVENTS[] = {
        {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}, {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
        {PERF_TYPE_HARDWARE, 77}, {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
        {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}, {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
        {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY}, {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
        {PERF_TYPE_SOFTWARE, 50}, {PERF_TYPE_HW_CACHE, 0xff}, {PERF_TYPE_RAW, 8}, {PERF_TYPE_RAW, 0x11},
        {PERF_TYPE_BREAKPOINT, 0}, {99, 0},
    };
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    unsigned chosen = below(sizeof EVENTS / sizeof *EVENTS);
    attr.type = EVENTS[chosen].type;
    attr.config = EVENTS[chosen].config;
    attr.size = once_in(20) ? below(200) : PERF_ATTR_SIZE_VER5;
    attr.disabled = below(2);
    attr.exclude_kernel = below(2);
    attr.exclude_user = once_in(4);
    attr.exclude_hv = once_in(4);
    attr.exclude_idle = once_in(20);
    attr.exclude_host = once_in(20);
    attr.exclude_guest = once_in(20);
    attr.inherit = once_in(6);
    attr.inherit_stat = once_in(20);
    attr.pinned = once_in(10);
    attr.exclusive = once_in(20);
    attr.mmap = once_in(10);
    attr.comm = once_in(10);
    attr.task = once_in(10);
    attr.enable_on_exec = once_in(10);
    attr.watermark = once_in(10);
    attr.precise_ip = once_in(20) ? below(4) : 0;
    attr.sample_id_all = once_in(5);
    attr.use_clockid = once_in(15);
    attr.clockid = once_in(15) ? below(14) : 1;
    attr.context_switch = once_in(20);
    attr.write_backward = once_in(20);
    if (once_in(3)) attr.sample_period = once_in(10) ? 1UL << 63 : 1000 + below(100000);
    if (once_in(8)) {
        attr.freq = 1;
        attr.sample_freq = once_in(5) ? 1000000 : 1 + below(5000);
    }
    if (once_in(2)) attr.sample_type = below(1 << 13) & below(1 << 13);
    if (once_in(10)) attr.sample_type |= 1UL << below(27);
    if (once_in(2)) attr.read_format = once_in(10) ? below(64) : below(16);
    if (once_in(15)) attr.branch_sample_type = 1UL << below(20);
    if (once_in(15)) attr.sample_regs_user = 1UL << below(40);
    if (once_in(15)) attr.sample_stack_user = below(4) ? 8 * below(9000) : below(70000);
    if (once_in(20)) attr.wakeup_events = below(5000);
    if (once_in(40)) attr.sample_max_stack = below(200);
    if (once_in(40)) attr.__reserved_2 = 1;
    if (attr.type == PERF_TYPE_BREAKPOINT) {
        attr.bp_type = once_in(5) ? below(8) : 1 + below(4);
        attr.bp_addr = (unsigned long)&state + (once_in(4) ? below(8) : 0);
        attr.bp_len = 1UL << below(4);
    }
    return attr;
}

static void tell_descriptor(int event, int other) {
    unsigned long buffer[64], value;
    printf(" read %ld %ld", answer(read(event, buffer, sizeof buffer)), answer(read(event, buffer, 4)));
    printf(" id %ld", answer(ioctl(event, PERF_EVENT_IOC_ID, &value)));
    value = below(3) ? 5000 : 0;
    printf(" period %ld", answer(ioctl(event, PERF_EVENT_IOC_PERIOD, &value)));
    printf(" refresh %ld", answer(ioctl(event, PERF_EVENT_IOC_REFRESH, below(2))));
    printf(" pause %ld", answer(ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 1)));
    printf(" output %ld", answer(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, other)));
    printf(" filter %ld", answer(ioctl(event, PERF_EVENT_IOC_SET_FILTER, "x == 1")));
    printf(" bpf %ld", answer(ioctl(event, PERF_EVENT_IOC_SET_BPF, -1)));
    printf(" unknown %ld", answer(ioctl(event, 0x2477, 0)));
    static const unsigned PAGES[] = {1, 2, 3, 5, 9};
    unsigned long length = PAGE * PAGES[below(5)];
    char *buffer_at = mmap(NULL, length, once_in(4) ? PROT_READ : PROT_READ | PROT_WRITE,
                           once_in(6) ? MAP_PRIVATE : MAP_SHARED, event, once_in(8) ? PAGE : 0);
    printf(" mmap %ld", buffer_at == MAP_FAILED ? (long)-errno : 0);
    if (buffer_at != MAP_FAILED) munmap(buffer_at, length);
    printf(" enable %ld disable %ld reset %ld", answer(ioctl(event, PERF_EVENT_IOC_ENABLE, below(2))),
           answer(ioctl(event, PERF_EVENT_IOC_DISABLE, 0)), answer(ioctl(event, PERF_EVENT_IOC_RESET, 0)));
}

// Nothing, or an event of a seed's choosing that is always there.
static int other_event(void) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = PERF_ATTR_SIZE_VER5;
    attr.type = below(2);  // hardware or software
    attr.config = attr.type == PERF_TYPE_HARDWARE ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    return once_in(2) ? -1 : (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

int main(int count, char **arguments) {
    unsigned long seed = count > 1 ? strtoul(arguments[1], NULL, 0) : 1;
    int times = count > 2 ? atoi(arguments[2]) : 300;
    for (int number = 0; number < times; number++) {
        state = (seed << 32) + number;  // so that what one does is no other's concern
        below(1), below(1);
        struct perf_event_attr attr = attributes();
        int pid = once_in(20) ? -1 : 0, cpu = once_in(6) ? (int)below(3) - 1 : -1;
        int leader = other_event();
        unsigned long flags = once_in(10) ? 1UL << below(5) : 0;
        errno = 0;
        int event = syscall(SYS_perf_event_open, &attr, pid, cpu, leader, flags);
        unsigned long words[17];
        memcpy(words, &attr, sizeof words);
        printf("%d: size %d period %lx sample %lx read %lx bits %lx wakeup %lx branch %lx regs %lx stack %lx clock %lx\n",
               number, attr.size, words[2], words[3], words[4], words[5], words[6], words[9], words[10], words[11] & 0xffffffff,
               words[11] >> 32);
        printf("%d: %s %lx group %d pid %d cpu %d flags %lx: %ld", number, NAMES[attr.type < 6 ? attr.type : 6],
               (unsigned long)attr.config, leader >= 0, pid, cpu, flags, event < 0 ? (long)-errno : 0);
        if (event >= 0) {
            tell_descriptor(event, leader);
            close(event);
        }
        if (leader >= 0) close(leader);
        printf("\n");
    }
    return 0;
}
