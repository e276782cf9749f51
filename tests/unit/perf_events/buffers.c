// Buffers that are written from the end on, and records by other clocks: prints what this Linux answers and writes. Says
// "denied" where perf_event_open is.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static struct perf_event_attr faults(int backward) {
    struct perf_event_attr attr = {.size = PERF_ATTR_SIZE_VER6, .type = PERF_TYPE_SOFTWARE};
    attr.config = PERF_COUNT_SW_PAGE_FAULTS;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID;
    attr.exclude_kernel = 1;
    attr.write_backward = backward;
    attr.comm = 1;
    attr.disabled = 1;
    return attr;
}

static int open_event(struct perf_event_attr *attr) { return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0); }

static void fault(int pages) {
    for (int i = 0; i < pages; i++) {
        volatile char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *page = 1;
        munmap((void *)page, PAGE);
    }
}

// Types and sizes of the records in `left` bytes from `from` on: runs of equal ones are counted.
static void show(const struct perf_event_mmap_page *page, uint64_t from, uint64_t left) {
    const char *data = (const char *)page + page->data_offset;
    unsigned type = 0, size = 0, times = 0;
    while (left) {
        struct perf_event_header header;
        for (unsigned i = 0; i < sizeof header; i++) ((char *)&header)[i] = data[(from + i) % page->data_size];
        if (header.size == 0 || header.size > left) break;
        if (times && (header.type != type || header.size != size)) printf(" %ux%u/%u", times, type, size), times = 0;
        type = header.type, size = header.size, times++;
        from += header.size, left -= header.size;
    }
    printf(" %ux%u/%u, then %lu\n", times, type, size, left);
}

static void buffers(int protection, int backward, int pages) {
    struct perf_event_attr attr = faults(backward);
    int event = open_event(&attr);
    struct perf_event_mmap_page *page = mmap(NULL, (1 + pages) * PAGE, protection, MAP_SHARED, event, 0);
    char name[] = "renamed";
    if (protection & PROT_WRITE) page->data_tail = 0;  // so that the store below faults no more
    else (void)*(volatile char *)page;
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    for (int round = 0; round < 4; round++) {
        fault(round < 2 ? 7 : 150);  // 16 bytes each: more than a page
        prctl(PR_SET_NAME, name);
        ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 1);
        int64_t head = page->data_head;
        uint64_t written = backward ? -head : head, kept = written < page->data_size ? written : page->data_size;
        struct pollfd polled = {event, POLLIN, 0};
        int ready = poll(&polled, 1, 0);
        printf("protection %d backward %d round %d: head %ld poll %d %x:", protection, backward, round, (long)head,
               ready, polled.revents);
        show(page, backward ? head : head - kept, kept);
        if (protection & PROT_WRITE) page->data_tail = round == 1 ? head : page->data_tail;
        ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 0);
    }
    munmap(page, (1 + pages) * PAGE);
    close(event);
}

static void mixed(void) {
    struct perf_event_attr there = faults(1), back = faults(0);
    int first = open_event(&there), second = open_event(&back), third = open_event(&there);
    mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, first, 0);
    int other = ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first) ? errno : 0;
    int same = ioctl(third, PERF_EVENT_IOC_SET_OUTPUT, first) ? errno : 0;
    printf("into one buffer in two directions: %d, in one: %d\n", other, same);
    close(first), close(second), close(third);
}

static void clocks(void) {
    for (int clock = -1; clock < 13; clock++) {
        struct perf_event_attr attr = faults(0);
        attr.sample_type = PERF_SAMPLE_TIME;
        attr.use_clockid = 1;
        attr.clockid = clock;
        int event = open_event(&attr);
        printf("clock %d: %d", clock, event < 0 ? errno : 0);
        if (event >= 0) {
            struct perf_event_mmap_page *page = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, event, 0);
            struct timespec before, after;
            clock_gettime(clock, &before);
            ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
            fault(1);
            ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
            clock_gettime(clock, &after);
            uint64_t time = ((uint64_t *)((char *)page + PAGE))[1];
            printf(" %d %d", before.tv_sec * 1000000000UL + before.tv_nsec <= time,
                   time <= after.tv_sec * 1000000000UL + after.tv_nsec);
            close(event);
        }
        puts("");
    }
}

int main(void) {
    static char output[1 << 16];
    memset(output, 0, sizeof output);
    setvbuf(stdout, output, _IOFBF, sizeof output);
    struct perf_event_attr any = faults(0);
    int opened = open_event(&any);
    if (opened < 0) return puts("denied"), 0;
    close(opened);
    fault(3);
    for (int backward = 0; backward < 2; backward++) {
        buffers(PROT_READ, backward, 1);
        buffers(PROT_READ | PROT_WRITE, backward, 1);
        buffers(PROT_READ | PROT_WRITE, backward, 4);
    }
    mixed();
    clocks();
    return 0;
}
