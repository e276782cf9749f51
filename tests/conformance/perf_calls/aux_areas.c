// AUX areas of events that have none: what mmap answers, in which order, and what needs an AUX event.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul

static struct perf_event_mmap_page* page;

static int event_of(struct perf_event_attr attr, int group) {
    attr.size = sizeof attr;
    attr.exclude_kernel = attr.exclude_hv = attr.disabled = 1;
    int event = syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);
    return event < 0 ? -errno : event;
}

static void tried(const char* what, struct perf_event_attr attr, int group) {
    int event = event_of(attr, group);
    printf("%s: %s\n", what, event < 0 ? strerrorname_np(-event) : "opened");
    if (event >= 0) close(event);
}

static void map(const char* what, int event, unsigned long pages, unsigned long at, int flags) {
    void* area = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, flags, event, at * PAGE);
    printf("%s: %s\n", what, area == MAP_FAILED ? strerrorname_np(errno) : "mapped");
    if (area != MAP_FAILED) munmap(area, pages * PAGE);
}

static void want(unsigned long pages, unsigned long at) {
    page->aux_size = pages * PAGE;
    page->aux_offset = at * PAGE;
}

static void maps(struct perf_event_attr attr) {
    int event = event_of(attr, -1);
    map("no buffer", event, 4, 5, MAP_SHARED);
    page = mmap(0, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    map("nothing wanted", event, 4, 5, MAP_SHARED);
    want(4, 5);
    map("private", event, 4, 5, MAP_PRIVATE);
    map("another size", event, 2, 5, MAP_SHARED);
    map("another offset", event, 4, 6, MAP_SHARED);
    want(4, 4);
    map("within the data", event, 4, 4, MAP_SHARED);
    want(3, 5);
    map("3 pages", event, 3, 5, MAP_SHARED);
    want(4, 9);
    map("behind a hole", event, 4, 9, MAP_SHARED);
    want(4, 5);
    page->aux_size += 1;
    map("no whole pages", event, 4, 5, MAP_SHARED);
    want(4, 5);
    page->aux_offset += 1;
    map("no whole offset", event, 4, 5, MAP_SHARED);
    want(4, 5);
    map("no such area", event, 4, 5, MAP_SHARED);
    map("the buffer again", event, 5, 0, MAP_SHARED);
    int other = event_of(attr, -1);
    printf("output %d\n", ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, event));
    map("of who writes there, too", other, 4, 5, MAP_SHARED);
    want(3, 5);
    map("of who writes there, 3 pages", other, 3, 5, MAP_SHARED);
    close(other);
    munmap(page, 5 * PAGE);
    map("no buffer any more", event, 4, 5, MAP_SHARED);
    close(event);
}

int main(void) {
    struct perf_event_attr attrs[] = {{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS},
                                      {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY}};
    for (int kind = 0; kind < 2; kind++) {
        struct perf_event_attr attr = attrs[kind];
        printf("%s\n", kind ? "software" : "hardware");
        maps(attr);
        int leader = event_of(attr, -1);
        attr.aux_output = 1;
        tried("aux_output", attr, -1);
        tried("aux_output in a group", attr, leader);
        attr.aux_sample_size = 8;
        tried("aux_output and aux_sample_size", attr, leader);
        attr.aux_output = 0;
        tried("aux_sample_size", attr, -1);
        tried("aux_sample_size in a group", attr, leader);
        attr.sample_type = PERF_SAMPLE_AUX;
        attr.sample_period = 1000;
        tried("... and samples", attr, leader);
        attr.aux_sample_size = 0;
        tried("samples of no area", attr, leader);
        attr.aux_watermark = 77;
        tried("a watermark of no area", attr, -1);
        attr.aux_sample_size = -1;
        tried("aux_sample_size -1", attr, -1);
        attr.aux_sample_size = 0;
        // the kernel's headers of the compiler need not know aux_action: it follows
        for (uint32_t action = 1; action <= 16; action += action < 8 ? 1 : 8) {
            *((uint32_t*)&attr.aux_sample_size + 1) = action;
            printf("aux_action %u", action);
            tried("", attr, -1);
            tried("in a group", attr, leader);
            attr.aux_output = 1;
            tried("with aux_output", attr, leader);
            attr.aux_output = 0;
        }
        attr.type = 4711;
        attr.aux_output = 1;
        tried("aux_output, no type", attr, -1);
        close(leader);
    }
}
