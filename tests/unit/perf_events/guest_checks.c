// What a guest may expect of perf_event_open(2) and of the descriptor. Each check prints "ok NAME" or "FAILED NAME ...".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define SIGNAL (SIGRTMIN + 2)

static void check(const char *name, long got, long expected) {
    if (got == expected) printf("ok %s\n", name);
    else printf("FAILED %s: %ld, not %ld\n", name, got, expected);
}

static void in_range(const char *name, long got, long lowest, long highest) {
    if (got >= lowest && got <= highest) printf("ok %s\n", name);
    else printf("FAILED %s: %ld is not in %ld..%ld\n", name, got, lowest, highest);
}

// 1,000,000 instructions within a few
static void million(void) {
#ifdef __x86_64__
    __asm__ volatile("mov $499999, %%ecx\n1: dec %%ecx\njnz 1b\nnop" ::: "ecx", "cc");
#else
    __asm__ volatile("mov w9, #41248\nmovk w9, #7, lsl #16\n1: subs w9, w9, #1\nb.ne 1b" ::: "x9", "cc");
#endif
}

static struct perf_event_attr instructions(void) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = PERF_ATTR_SIZE_VER5;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
    return attr;
}

static long open_event(void *attr, int pid, int cpu, int group, unsigned long flags) {
    errno = 0;
    long descriptor = syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
    return descriptor < 0 ? -errno : descriptor;
}

static void check_errors(void) {
    struct perf_event_attr attr = instructions();
    attr.size = 4097;
    check("size above a page", open_event(&attr, 0, -1, -1, 0), -E2BIG);
    check("the kernel's size", attr.size, 136);
    char large[256] = {0};
    attr.size = 200;
    memcpy(large, &attr, PERF_ATTR_SIZE_VER5);
    long larger = open_event(large, 0, -1, -1, 0);
    check("larger attr, zero tail", larger >= 0, 1);
    close(larger);
    large[199] = 1;
    check("larger attr, other tail", open_event(large, 0, -1, -1, 0), -E2BIG);
    attr = instructions();
    check("NULL", open_event(NULL, 0, -1, -1, 0), -EFAULT);
    check("flag 30", open_event(&attr, 0, -1, -1, 1UL << 30), -EINVAL);
    check("flag 40", open_event(&attr, 0, -1, -1, 1UL << 40), -EINVAL);
    check("cpu -5", open_event(&attr, 0, -5, -1, 0), -EINVAL);
    check("group -2", open_event(&attr, 0, -1, -2, 0), -EBADF);
    check("group that is no event", open_event(&attr, 0, -1, 0, 0), -EBADF);
    check("nobody", open_event(&attr, 77, -1, -1, 0), -ESRCH);
    check("neither task nor cpu", open_event(&attr, -1, -1, -1, 0), -EINVAL);
    attr.type = -5;
    check("type -5", open_event(&attr, 0, -1, -1, 0), -ENOENT);
    attr = instructions();
    int leader = open_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    check("close on exec", fcntl(leader, F_GETFD), FD_CLOEXEC);
    attr.exclusive = attr.pinned = 1;
    check("exclusive sibling", open_event(&attr, 0, -1, leader, 0), -EINVAL);
    check("unknown ioctl", ioctl(leader, _IO('$', 99), 0) < 0 ? -errno : 0, -ENOTTY);
    check("refresh without period", ioctl(leader, PERF_EVENT_IOC_REFRESH, 1) < 0 ? -errno : 0, -EINVAL);
    char small[4];
    check("short read", read(leader, small, 4) < 0 ? -errno : 0, -ENOSPC);
    long values[4];
    struct iovec pieces[] = {{values, 8}, {values + 1, 8}}, short_ones[] = {{values, 4}, {small, 4}};
    check("read to nowhere", read(leader, (void *)16, 8) < 0 ? -errno : 0, -EFAULT);
    check("readv", readv(leader, pieces, 2), 16);
    check("short readv", readv(leader, short_ones, 2) < 0 ? -errno : 0, -ENOSPC);
    pieces[1].iov_base = (void *)16;
    check("readv to here and nowhere", readv(leader, pieces, 2), 8);
    close(leader);
}

static void check_exhaustion(void) {
    struct perf_event_attr attr = instructions();
    int opened[2048], count = 0;
    long result;
    while ((result = open_event(&attr, 0, -1, -1, 0)) >= 0) opened[count++] = result;
    check("all descriptors in use", result, -EMFILE);
    check("1024 less the standard streams", count, 1021);
    while (count) close(opened[--count]);
}

static void check_prctl(void) {
    struct perf_event_attr attr = instructions();
    int event = open_event(&attr, 0, -1, -1, 0);
    long before, counted, after;
    read(event, &before, 8);
    prctl(PR_TASK_PERF_EVENTS_ENABLE);
    million();
    prctl(PR_TASK_PERF_EVENTS_DISABLE);
    read(event, &counted, 8);
    million();
    read(event, &after, 8);
    check("off before prctl", before, 0);
    in_range("between the prctls", counted, 1000000, 1000100);
    check("off after prctl", after, counted);
    close(event);
}

static void check_groups(void) {
    struct perf_event_attr attr = instructions();
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int leader = open_event(&attr, 0, -1, -1, 0);
    attr.disabled = 0;
    int sibling = open_event(&attr, 0, -1, leader, 0);
    ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
    million();
    ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
    long words[7], ids[2];
    ioctl(leader, PERF_EVENT_IOC_ID, &ids[0]);
    ioctl(sibling, PERF_EVENT_IOC_ID, &ids[1]);
    check("bytes of a group", read(leader, words, sizeof words), 56);
    check("nr", words[0], 2);
    check("enabled is running", words[1] - words[2], 0);
    in_range("leader", words[3], 1000000, 1000100);
    check("leader's id", words[4], ids[0]);
    check("siblings count alike", words[5], words[3]);
    check("sibling's id", words[6], ids[1]);
    close(leader);
    close(sibling);
}

static int in, hup, other, use_refresh;

static void on_overflow(int signal, siginfo_t *info, void *context) {
    ioctl(info->si_fd, PERF_EVENT_IOC_DISABLE, 0);
    if (info->si_code == POLL_IN) in++;
    else if (info->si_code == POLL_HUP) hup++;
    else other++;
    if (use_refresh) ioctl(info->si_fd, PERF_EVENT_IOC_REFRESH, 1);
    else ioctl(info->si_fd, PERF_EVENT_IOC_ENABLE, 0);
}

// 100 million instructions with a period of 100,000: 1000 overflows, each a signal whose handler stops and starts counting
static void check_overflow(void) {
    struct perf_event_attr attr = instructions();
    attr.sample_period = 100000;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.wakeup_events = 1;
    attr.pinned = 1;
    struct sigaction action = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO};
    sigaction(SIGNAL, &action, NULL);
    in = hup = other = 0;
    int event = open_event(&attr, 0, -1, -1, 0);
    struct perf_event_mmap_page *page = mmap(NULL, 17 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    check("mapped", page != MAP_FAILED, 1);
    fcntl(event, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
    fcntl(event, F_SETSIG, SIGNAL);
    fcntl(event, F_SETOWN, getpid());
    struct pollfd polled = {event, POLLIN, 0};
    check("nothing to poll", poll(&polled, 1, 0), 0);
    ioctl(event, PERF_EVENT_IOC_RESET, 0);
    ioctl(event, use_refresh ? PERF_EVENT_IOC_REFRESH : PERF_EVENT_IOC_ENABLE, 1 * use_refresh);
    for (int i = 0; i < 100; i++) million();
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    check("POLL_IN", in, use_refresh ? 0 : 1000);
    check("POLL_HUP", hup, use_refresh ? 1000 : 0);
    check("no other reason", other, 0);
    check("bytes of 1000 samples", page->data_head, 16000);
    poll(&polled, 1, 0);
    check("poll", polled.revents, POLLIN);
    munmap(page, 17 * PAGE);
    close(event);
}

static void check_mapping(void) {
    struct perf_event_attr attr = instructions();
    attr.sample_period = 1000;
    for (int pages = 0; pages <= 17; pages++) {
        int event = open_event(&attr, 0, -1, -1, 0);
        void *page = mmap(NULL, (1 + pages) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
        if ((page != MAP_FAILED) != !(pages & (pages - 1))) printf("FAILED %d data pages\n", pages);
        close(event);
    }
    printf("ok data pages\n");
}

static void check_children_of_output(void) {
    struct perf_event_attr attr = instructions();
    attr.sample_period = 1000000;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER;
    int first = open_event(&attr, 0, -1, -1, 0);
    int second = open_event(&attr, 0, -1, -1, 0);
    check("output to an event without a buffer", ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first) < 0 ? -errno : 0, -EINVAL);
    struct perf_event_mmap_page *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, first, 0);
    check("output to another's buffer", ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first), 0);
    ioctl(second, PERF_EVENT_IOC_ENABLE, 0);
    million();
    million();
    ioctl(second, PERF_EVENT_IOC_DISABLE, 0);
    long id;
    ioctl(second, PERF_EVENT_IOC_ID, &id);
    long *record = (long *)((char *)page + page->data_offset);
    in_range("samples of the second", page->data_head / 16, 2, 2);
    check("are its own", record[1], id);
    close(first);
    close(second);
}

static long next_record(struct perf_event_mmap_page *page) { return page->data_head; }

static void check_unmapping(void) {
    struct perf_event_attr attr = instructions();
    attr.sample_period = 10000;
    attr.sample_type = PERF_SAMPLE_IP;
    int event = open_event(&attr, 0, -1, -1, 0), other = open_event(&attr, 0, -1, -1, 0);
    struct pollfd waiting = {event, POLLIN}, redirected = {other, POLLIN};
    void *first = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    void *second = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    check("output to it", ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, event), 0);
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    million();
    check("samples", next_record(first), 100 * 16);
    munmap(first, 2 * PAGE);
    check("still mapped", (poll(&waiting, 1, 0), waiting.revents), 0);
    check("one buffer", next_record(second), 100 * 16);
    munmap(second, 2 * PAGE);
    check("detached", (poll(&waiting, 1, 0), waiting.revents), POLLHUP);
    check("with whom it was shared", (poll(&redirected, 1, 0), redirected.revents), POLLHUP);
    million();
    first = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    check("a new buffer", next_record(first), 0);
    check("its owner's output", ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, -1L) < 0 ? -errno : 0, -EINVAL);
    million();
    check("samples again", next_record(first), 100 * 16);
    second = mmap(first, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, event, 0);
    check("in its own place", second == first, 1);
    check("after the old one went", next_record(first), 0);
    close(event);
    million();
    check("a mapping keeps the event", next_record(first), 100 * 16);
    munmap(first, 2 * PAGE);
    close(other);
}

static unsigned long ticks(void) {
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    unsigned long now;
    __asm__ volatile("isb\nmrs %0, cntvct_el0" : "=r"(now));
    return now;
#endif
}

static void page_times(struct perf_event_mmap_page *page, unsigned long *times) {
    unsigned sequence;
    do {
        sequence = page->lock;
        times[0] = page->time_enabled;
        times[1] = page->time_running;
        if (page->cap_user_time && times[0] != times[1]) {
            unsigned long now = ticks(), rest = now & ((1UL << page->time_shift) - 1);
            unsigned long delta = page->time_offset + (now >> page->time_shift) * page->time_mult +
                                  (rest * page->time_mult >> page->time_shift);
            times[0] += delta;
            if (page->index) times[1] += delta;
        }
    } while (page->lock != sequence);
}

// What user space reads, and read(2) a few instructions later; 10 ns is a tick of arm64's counter.
static void check_times(const char *name, int event, struct perf_event_mmap_page *page) {
    unsigned long seen[2], told[3];
    page_times(page, seen);
    read(event, told, sizeof told);
    in_range(name, told[1] - seen[0], -20, 400);
    in_range(name, told[2] - seen[1], -20, 400);
}

static void check_user_times(void) {
    struct perf_event_attr attr = instructions();
    int others[8];
#ifdef __x86_64__
    attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
#else
    attr.type = 8;
    attr.config = 0x21;
    attr.config1 = 2;
#endif
    attr.disabled = 0;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    for (int i = 0; i < 8; i++) others[i] = open_event(&attr, 0, -1, -1, 0);
    int event = open_event(&attr, 0, -1, -1, 0);
    million();
    struct perf_event_mmap_page *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    check("no counter yet", page->index, 0);
    check("the kernel's clock", page->cap_user_time_zero, 1);
    million();
    check_times("waiting", event, page);
    for (int i = 0; i < 8; i++) close(others[i]);
    check("no counter before its next turn", page->index, 0);
    usleep(1);
    check("a counter", page->index > 0, 1);
    million();
    check_times("running", event, page);
    in_range("has waited", page->time_enabled - page->time_running, 2000000, 2100000);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    million();
    check_times("disabled", event, page);
    munmap(page, PAGE);
    close(event);
}

static long nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void check_zero(void) {
    struct perf_event_attr attr = instructions();
    int event = open_event(&attr, 0, -1, -1, 0);
    struct perf_event_mmap_page *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    million();
    unsigned long now = ticks(), rest = now & ((1UL << page->time_shift) - 1);
    long converted = page->time_zero + (now >> page->time_shift) * page->time_mult +
                     (rest * page->time_mult >> page->time_shift);
    in_range("ticks as perf's time", nanoseconds() - converted, -20, 1000);
    close(event);
}

int main(void) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    check_errors();
    check_exhaustion();
    check_prctl();
    check_groups();
    check_overflow();
    use_refresh = 1;
    check_overflow();
    check_mapping();
    check_children_of_output();
    check_unmapping();
    check_user_times();
    check_zero();
    printf("done\n");
    return 0;
}
