// A reader of an AUX area: the unit test_trace writes the number of each system call, 8 bytes, into it. Each check
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
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define DEVICE "/sys/bus/event_source/devices/test_trace/"

static void check(const char* name, long got, long expected) {
    if (got == expected)
        printf("ok %s\n", name);
    else
        printf("FAILED %s: %ld, not %ld\n", name, got, expected);
}

static long number_in(const char* path) {
    char text[64] = "";
    int file = open(path, O_RDONLY);
    if (file < 0) return -errno;
    int size = read(file, text, sizeof text - 1);
    close(file);
    return size < 0 ? -errno : atol(text);
}

static struct perf_event_attr trace(void) {
    struct perf_event_attr attr = {.size = sizeof attr, .type = number_in(DEVICE "type"), .disabled = 1};
    return attr;
}

static int open_event(struct perf_event_attr attr, int group) {
    int event = syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);
    return event < 0 ? -errno : event;
}

struct buffer {
    int event;
    struct perf_event_mmap_page* page;
    uint64_t* area;
    unsigned long pages;
    uint64_t read;  // of data_head
};

static struct buffer map(struct perf_event_attr attr, unsigned long pages, int protection) {
    struct buffer buffer = {.event = open_event(attr, -1), .pages = pages};
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

static void calls(int times) {
    for (int i = 0; i < times; i++) syscall(SYS_getppid);
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

static void device(void) {
    check("type", number_in(DEVICE "type") >= 6, 1);
    check("caps", number_in(DEVICE "caps/packet_bytes"), 8);
    check("cpumask", number_in(DEVICE "cpumask"), 0);
    check("interval", number_in(DEVICE "perf_event_mux_interval_ms") > 0, 1);
    check("format", access(DEVICE "format/mark", R_OK), 0);
    struct perf_event_attr attr = trace();
    attr.config = 6;
    check("a config that is none", open_event(attr, -1), -EINVAL);
    attr = trace();
    attr.sample_period = 1;
    check("it cannot sample", open_event(attr, -1), -EINVAL);
}

static void reading(void) {
    struct buffer buffer = map(trace(), 1, PROT_READ | PROT_WRITE);
    check("mapped", buffer.area != MAP_FAILED, 1);
    struct pollfd poller = {.fd = buffer.event, .events = POLLIN};
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    calls(100);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    struct record start = next(&buffer);
    check("whose trace", start.header.type, PERF_RECORD_ITRACE_START);
    check("... pid and tid", start.fields[0], getpid() | (uint64_t)gettid() << 32);
    check_aux("100 calls, and the one that ends it", &buffer, 0, 101 * 8, 0);
    check("aux_head", buffer.page->aux_head, 101 * 8);
    int right = 0;
    for (int i = 0; i < 100; i++) right += buffer.area[i] == SYS_getppid;
    check("their numbers", right, 100);
    check("the last", buffer.area[100], SYS_ioctl);
    check("nobody need read", poll(&poller, 1, 0), 0);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    calls(155);  // 256 packets are the watermark, half of the area
    check("somebody should", poll(&poller, 1, 0), 1);
    check("... POLLIN", poller.revents, POLLIN);
    check_aux("up to the watermark", &buffer, 101 * 8, 155 * 8, 0);
    calls(300);  // more than there is room for: 510 packets and 15 bytes, since one stays free
    check_aux("truncated", &buffer, 2048, 2040, PERF_AUX_FLAG_TRUNCATED);
    buffer.page->aux_tail = buffer.page->aux_head;
    calls(10);
    check("it is off", next(&buffer).header.type, 0);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    calls(1);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    check_aux("on again, up to the watermark", &buffer, 4088, 8, 0);  // 4096
    check_aux("over the end", &buffer, 4096, 8, 0);
    check("at the end", buffer.area[511], SYS_getppid);
    check("at the beginning", buffer.area[0], SYS_ioctl);
    unmap(&buffer);
}

static void overwriting(void) {
    struct buffer buffer = map(trace(), 1, PROT_READ);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    calls(600);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    next(&buffer);
    check("aux_head has gone round", buffer.page->aux_head, 601 * 8);
    check_aux("what there is", &buffer, 601 * 8, 601 * 8, PERF_AUX_FLAG_OVERWRITE);
    check("the last", buffer.area[600 % 512], SYS_ioctl);
    unmap(&buffer);
}

static void mapping(void) {
    struct buffer buffer = map(trace(), 2, PROT_READ | PROT_WRITE);
    void* again = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, buffer.event, 3 * PAGE);
    check("twice", again != MAP_FAILED, 1);
    buffer.page->aux_size = 4 * PAGE;
    void* other = mmap(0, 4 * PAGE, PROT_READ, MAP_SHARED, buffer.event, 3 * PAGE);
    check("with another size", other == MAP_FAILED ? -errno : 0, -EINVAL);
    buffer.page->aux_size = 2 * PAGE;
    buffer.page->aux_offset = 7 * PAGE;
    other = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, buffer.event, 7 * PAGE);
    check("at another place", other == MAP_FAILED ? -errno : 0, -EINVAL);
    munmap(again, 2 * PAGE);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    calls(9);
    munmap(buffer.area, 2 * PAGE);  // the unit stops
    next(&buffer);
    check_aux("the last of it", &buffer, 0, 80, 0);  // with munmap
    calls(9);
    buffer.page->aux_offset = 3 * PAGE;
    buffer.area = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.event, 3 * PAGE);
    check("mapped anew", buffer.area != MAP_FAILED, 1);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    calls(1);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    check_aux("it goes on where it was", &buffer, 80, 16, 0);
    buffer.page->aux_offset = 0;
    munmap(buffer.page, 3 * PAGE);  // the area keeps it
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    calls(1);
    ioctl(buffer.event, PERF_EVENT_IOC_DISABLE, 0);
    check("without the first pages", buffer.area[12], SYS_getppid);
    munmap(buffer.area, 2 * PAGE);
    close(buffer.event);
    struct perf_event_attr attr = trace();
    buffer = map(attr, 1024, PROT_READ | PROT_WRITE);
    check("more than the unit can use", buffer.area == MAP_FAILED ? -errno : 0, -ENOMEM);
    unmap(&buffer);
}

static void going(void) {
    struct buffer buffer = map(trace(), 1, PROT_READ | PROT_WRITE);
    ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0);
    syscall(SYS_getpgid, 0);  // the test takes this as the sign to unregister the PMU
    char value[64];
    struct pollfd poller = {.fd = buffer.event, .events = POLLIN};
    check("ioctl of what is gone", ioctl(buffer.event, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0, -ENODEV);
    check("read", read(buffer.event, value, sizeof value), 0);
    check("poll", poll(&poller, 1, 0), 1);
    check("... POLLERR", poller.revents, POLLERR);
    void* other = mmap(0, PAGE, PROT_READ, MAP_SHARED, buffer.event, 0);
    check("mmap", other == MAP_FAILED ? -errno : 0, -ENODEV);
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_SOFTWARE};
    check("as a leader", open_event(attr, buffer.event), -ENODEV);
    check("its directory", access(DEVICE, R_OK) < 0 ? -errno : 0, -ENOENT);
    unmap(&buffer);
}

int main(void) {
    device();
    reading();
    overwriting();
    mapping();
    going();
    printf("done\n");
}
