// kprobes at what the modelled kernel has: which definitions are accepted, how often functions are called, with what.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"
#ifdef __aarch64__
#define SYS "__arm64_sys_"
#define ARG0 "%x0"
#define ARG1 "%x1"
#define ARG2 "%x2"
#define USER_ARG0 "+0(%x0)"
#define USER_ARG1 "+8(%x0)"
#define RESULT "%x0"
#else
#define SYS "__x64_sys_"
#define ARG0 "%di"
#define ARG1 "%si"
#define ARG2 "%dx"
#define USER_ARG0 "+112(%di)"
#define USER_ARG1 "+104(%di)"
#define RESULT "%ax"
#endif

static void define(const char* text) {
    int fd = open(TRACING "kprobe_events", O_WRONLY | O_APPEND);
    long done = write(fd, text, strlen(text));
    printf("%s: %s\n", text, done < 0 ? strerror(errno) : "written");
    close(fd);
}

static void show(const char* name, int most) {
    char file[256], line[1024];
    snprintf(file, sizeof file, TRACING "%s", name);
    FILE* stream = fopen(file, "r");
    while (stream && most-- && fgets(line, sizeof line, stream))
        if (strncmp(line, "ID:", 3)) printf("  %s", line);
    if (stream) fclose(stream);
}

static unsigned number_in(const char* file) {
    unsigned number = ~0u;
    FILE* stream = fopen(file, "r");
    if (stream && fscanf(stream, "%u", &number) != 1) number = ~0u;
    if (stream) fclose(stream);
    return number;
}

struct recorder {
    int event;
    struct perf_event_mmap_page* page;
};

static struct recorder record(const char* name) {
    char file[256];
    snprintf(file, sizeof file, TRACING "events/%s/id", name);
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
                                   .size = sizeof attr,
                                   .config = number_in(file),
                                   .sample_period = 1,
                                   .sample_type = PERF_SAMPLE_RAW};
    struct recorder recorder = {.event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)};
    recorder.page = recorder.event < 0 ? 0 : mmap(0, 33 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, recorder.event, 0);
    return recorder;
}

static long count_of(int event) {
    uint64_t count = 0;
    return event < 0 ? event : read(event, &count, sizeof count) == sizeof count ? (long)count : -errno;
}

// What is behind the common fields and the addresses.
static void print_samples(struct recorder recorder, const char* name, unsigned addresses) {
    printf("%s: %ld\n", name, count_of(recorder.event));
    if (recorder.event < 0) return;
    char* ring = (char*)recorder.page + 4096;
    for (uint64_t at = 0; at < recorder.page->data_head;) {
        struct perf_event_header* header = (struct perf_event_header*)(ring + at);
        unsigned char* raw = (unsigned char*)(header + 1) + 4;
        printf(" ");
        for (unsigned i = 8 + 8 * addresses; i < header->size - sizeof *header - 4; i++) printf(" %02x", raw[i]);
        printf("\n");
        at += header->size;
    }
    munmap(recorder.page, 33 * 4096);
    close(recorder.event);
}

static const char* DEFINITIONS[] = {
    "p:a " SYS "getppid", "p:a " SYS "getppid", "p:a do_sys_openat2", "r:a " SYS "getppid", "r:b " SYS "getppid",
    "p:c nosuch", "p:d do_sys_openat2+4", "p:e do_sys_openat2+2", "p do_sys_openat2", "r do_sys_openat2", "p:f 0",
    "r10:g do_sys_openat2", "r0:h do_sys_openat2", "r99999:i do_sys_openat2", "p1:j do_sys_openat2",
    "r:k do_sys_openat2+4", "p:l _text+0", "p:m do_sys_openat2 $retval", "p:n do_sys_openat2%return",
    "p:o do_sys_openat2+999999999", "p:p /bin/sh:0x10", "p:q do_sys_openat2-4", "p:r do_sys_openat2 %nothing",
    "p:s/ do_sys_openat2", "p:t/u do_sys_openat2 n=" ARG0 ":s32 s=+0(" ARG1 "):ustring f=+0(" ARG2 "):x64",
    "r:v do_sys_openat2 n=$retval:s32 c=$comm", "p:w do_sys_openat2 " ARG0 ":string", "p:x do_sys_openat2 @+0x10",
    "-:a", "-:nosuch", "p:y do_sys_openat2+0", "p:z handle_mm_fault", "p:aa do_exit", "p:ab try_to_wake_up",
    "p:ac wake_up_new_task", "p:a2 " SYS "newfstat", "p:a3 " SYS "nosuch", "p:a4", "p", "p:1x do_sys_openat2",
};

static void print_opened(void) {
    define("p:o/call " SYS "openat dfd=" USER_ARG0 ":s32 name=+0(" USER_ARG1 "):ustring");
    define("p:o/open do_sys_openat2 dfd=" ARG0 ":s32 name=+0(" ARG1 "):ustring flags=+0(" ARG2 "):x64 mode=+8(" ARG2
           "):x64 resolve=+16(" ARG2 "):x64");
    define("r:o/opened do_sys_openat2 n=$retval:s32");
    define("r:o/back " SYS "openat n=" RESULT ":s64");
    struct recorder call = record("o/call"), open_ = record("o/open");
    struct recorder opened = record("o/opened"), back = record("o/back");
    int directory = openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY);
    int file = openat(directory, "self/stat", O_RDONLY | O_CLOEXEC, 0777);
    close(openat(AT_FDCWD, "/nowhere/at/all", O_WRONLY | O_CREAT, 0640));
    openat(file, "x", O_PATH);
#ifdef SYS_open
    syscall(SYS_open, "/proc/self/stat", O_RDONLY);
    syscall(SYS_creat, "/nowhere/at/all", 0600);
#endif
    uint64_t how[3] = {O_RDONLY, 0, 8};
    syscall(SYS_openat2, directory, "self", how, sizeof how);
    print_samples(call, "call", 1);
    print_samples(open_, "open", 1);
    print_samples(opened, "opened", 2);
    print_samples(back, "back", 2);
}

static void print_calls(void) {
    define("p:k/ppid " SYS "getppid");
    define("r:k/back " SYS "getppid $retval:s32");
    define("p:k/exit do_exit");
    define("p:k/new wake_up_new_task");
    define("p:k/close " SYS "close fd=" USER_ARG0 ":u32");
    struct recorder ppid = record("k/ppid"), closed = record("k/close"), new = record("k/new");
    for (int i = 0; i < 7; i++) syscall(SYS_getppid);
    close(-1), close(1000);
    int filter = ioctl(closed.event, PERF_EVENT_IOC_SET_FILTER, "fd == 77");
    close(77), close(78);
    printf("filter %d\n", filter);
    if (!fork()) _exit(0);
    wait(0);
    print_samples(ppid, "getppid", 1);
    print_samples(closed, "close", 1);
    print_samples(new, "new", 1);
}

static void try(const char* what, unsigned type, const char* name, uint64_t offset, uint64_t config, int exclude) {
    struct perf_event_attr attr = {.type = type,
                                   .size = sizeof attr,
                                   .config = config,
                                   .kprobe_func = (uintptr_t)name,
                                   .probe_offset = offset,
                                   .exclude_kernel = exclude};
    int event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    printf("%s: %s", what, event < 0 ? strerror(errno) : "open");
    for (int i = 0; i < 5; i++) syscall(SYS_getppid);
    printf(", %ld\n", event < 0 ? 0 : count_of(event));
    if (event >= 0) close(event);
}

static void print_pmu(void) {
    unsigned type = number_in("/sys/bus/event_source/devices/kprobe/type");
    try("call", type, SYS "getppid", 0, 0, 0);
    try("return", type, SYS "getppid", 0, 1, 0);
    try("excluded", type, SYS "getppid", 0, 0, 1);
    try("nothing", type, "nosuch", 0, 0, 0);
    try("empty", type, "", 0, 0, 0);
    try("no name", type, 0, 0, 0, 0);
    try("an odd offset", type, SYS "getppid", 2, 0, 0);
    try("far off", type, SYS "getppid", 1 << 30, 0, 0);
    try("unreadable", type, (char*)8, 0, 0, 0);
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, 0);
    for (unsigned i = 0; i < sizeof DEFINITIONS / sizeof *DEFINITIONS; i++) define(DEFINITIONS[i]);
    show("kprobe_events", 99);
    show("events/t/u/format", 99);
    show("events/kprobes/v/format", 99);
    close(open(TRACING "kprobe_events", O_WRONLY | O_TRUNC));
    show("kprobe_events", 99);
    print_opened();
    print_calls();
    print_pmu();
    close(open(TRACING "kprobe_events", O_WRONLY | O_TRUNC));
    return 0;
}
