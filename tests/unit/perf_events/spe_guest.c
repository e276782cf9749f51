// A reader of Arm's Statistical Profiling Extension: it profiles a loop of its own by perf_event_open. Each check
// prints "ok NAME" or "FAILED NAME ...".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul
#define RECORD 64
#define DEVICE "/sys/bus/event_source/devices/arm_spe_0/"

static void check(const char* name, long got, long expected) {
    if (got == expected)
        printf("ok %s\n", name);
    else
        printf("FAILED %s: %ld, not %ld\n", name, got, expected);
}

static const char* text_in(const char* path) {
    static char text[64];
    int file = open(path, O_RDONLY);
    if (file < 0) return "";
    long size = read(file, text, sizeof text - 1);
    close(file);
    text[size < 0 ? 0 : size] = 0;
    return text;
}

static struct perf_event_attr profile(void) {
    struct perf_event_attr attr = {.size = sizeof attr, .type = atoi(text_in(DEVICE "type")), .disabled = 1};
    attr.sample_period = 1024;
    attr.config = 1;  // ts_enable
    attr.exclude_kernel = 1;
    return attr;
}

static int open_event(struct perf_event_attr attr) {
    int event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    return event < 0 ? -errno : event;
}

struct buffer {
    int event;
    struct perf_event_mmap_page* page;
    uint8_t* area;
    unsigned long pages;
    uint64_t read;  // of data_head
};

static struct buffer map(struct perf_event_attr attr, unsigned long pages, int protection) {
    struct buffer buffer = {.event = open_event(attr), .pages = pages};
    buffer.page = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.event, 0);
    buffer.page->aux_offset = 3 * PAGE;
    buffer.page->aux_size = pages * PAGE;
    buffer.area = mmap(0, pages * PAGE, protection, MAP_SHARED, buffer.event, 3 * PAGE);
    return buffer;
}

static void unmap(struct buffer* buffer) {
    munmap(buffer->area, buffer->pages * PAGE);
    munmap(buffer->page, 3 * PAGE);
    close(buffer->event);
}

struct record {
    struct perf_event_header header;
    uint64_t fields[3];
};

static struct record next(struct buffer* buffer) {
    struct record none = {0};
    if (buffer->read == buffer->page->data_head) return none;
    struct record* record = (void*)((char*)buffer->page + PAGE + buffer->read % (2 * PAGE));
    buffer->read += record->header.size;
    memcpy(&none, record, record->header.size);
    return none;
}

static void check_aux(const char* name, struct buffer* buffer, uint64_t at, uint64_t size, uint64_t flags) {
    struct record record = next(buffer);
    check(name, record.header.type, PERF_RECORD_AUX);
    check("... offset", record.fields[0], at);
    check("... size", record.fields[1], size);
    check("... flags", record.fields[2], flags);
}

// So many times two instructions.
static void loop(uint64_t times) { asm volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(times)::"cc"); }

static void refusals(void) {
    struct perf_event_attr attr = profile();
    attr.freq = 1;
    attr.sample_freq = 1000;
    check("a frequency", open_event(attr), -EINVAL);
    attr = profile();
    attr.exclude_idle = 1;
    check("exclude_idle", open_event(attr), -EOPNOTSUPP);
    attr = profile();
    attr.config1 = 1;  // of exceptions
    check("an event that no filter knows", open_event(attr), -EOPNOTSUPP);
    struct buffer buffer = map(profile(), 1, PROT_READ | PROT_WRITE);
    check("an area of one page", buffer.area == MAP_FAILED ? -errno : 0, -ENOMEM);
    munmap(buffer.page, 3 * PAGE);
    close(buffer.event);
}

static void device(void) {
    check("min_interval", atoi(text_in(DEVICE "caps/min_interval")), 1024);
    check("count_size", atoi(text_in(DEVICE "caps/count_size")), 12);
    check("format", strcmp(text_in(DEVICE "format/min_latency"), "config2:0-11\n"), 0);
    check("inv_event_filter", access(DEVICE "format/inv_event_filter", R_OK), -1);
}

// 64 records fill a page, and the reader is woken at half of four.
static void reading(void) {
    struct buffer buffer = map(profile(), 4, PROT_READ | PROT_WRITE);
    struct pollfd poller = {.fd = buffer.event, .events = POLLIN};
    check("mapped", buffer.area != MAP_FAILED, 1);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    loop(1024 * 10 / 2);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    check("whose it is", next(&buffer).header.type, PERF_RECORD_ITRACE_START);
    check_aux("10 samples", &buffer, 0, 10 * RECORD, 0);
    check("aux_head", buffer.page->aux_head, 10 * RECORD);
    int of_loop = 0;
    uint64_t first = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t pc;
        check("... an address first", buffer.area[i * RECORD], 0xb0);
        memcpy(&pc, buffer.area + i * RECORD + 1, 8);
        pc &= (1ull << 56) - 1;
        if (!first) first = pc;
        of_loop += pc - first + 4 <= 8;
    }
    check("... of the loop", of_loop, 10);
    check("nobody need read", poll(&poller, 1, 0), 0);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    loop(1024 * 118 / 2);  // the 128th comes with what calls cost
    loop(1024 / 2);
    check("somebody should", poll(&poller, 1, 0), 1);
    check("whose it is, said again", next(&buffer).header.type, PERF_RECORD_ITRACE_START);
    check_aux("up to the watermark", &buffer, 10 * RECORD, 118 * RECORD, 0);
    loop(1024 * 200 / 2);  // one page and what is behind it: the area has a byte less than four pages
    struct record record = next(&buffer);
    check("full", record.header.type, PERF_RECORD_AUX);
    check("... offset", record.fields[0], 2 * PAGE);
    check("... size", record.fields[1], PAGE);
    record = next(&buffer);
    check("truncated", record.fields[2], PERF_AUX_FLAG_TRUNCATED);
    loop(1024 * 5);
    check("it is off", next(&buffer).header.type, 0);
    unmap(&buffer);
}

static void overwriting(void) {
    struct buffer buffer = map(profile(), 2, PROT_READ);
    check("mapped to be overwritten", buffer.area != MAP_FAILED, 1);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    loop(1024 * 100 / 2);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    next(&buffer);
    struct record record = next(&buffer);
    check("a half is full", record.fields[2], PERF_AUX_FLAG_OVERWRITE);
    check("... and it goes on", record.fields[0], PAGE);
    record = next(&buffer);
    check("the rest", record.fields[0], 100 * RECORD);
    unmap(&buffer);
}

int main(void) {
    device();
    refusals();
    reading();
    overwriting();
    return 0;
}
