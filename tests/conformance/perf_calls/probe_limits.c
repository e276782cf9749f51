// Probes at their limits: records that are longer than perf's buffer for one, semaphores of processes that nobody
// listens to, and registers of the kernel's own code.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
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
#define FUNCTION __attribute__((noinline, noclone, aligned(16)))
#define RING (64 * 4096)
#ifdef __aarch64__
#define SYS "__arm64_sys_"
#define ARG0 "%x0"
#else
#define SYS "__x64_sys_"
#define ARG0 "%di"
#endif

extern char __executable_start[];
static char path[256];
static char letters[4096];

static volatile struct {
    uint64_t before;
    uint16_t semaphore;
} counted __attribute__((section(".data"))) = {1, 0};

FUNCTION long work(const char* data) {
    __asm__ volatile("" ::"r"(data) : "memory");
    return *data;
}

static void define(const char* file, const char* text, const char* shown) {
    char name[64];
    snprintf(name, sizeof name, TRACING "%s", file);
    int fd = open(name, O_WRONLY | O_APPEND);
    long done = write(fd, text, strlen(text));
    printf("%s: %s\n", shown, done < 0 ? strerror(errno) : "written");
    close(fd);
}

static unsigned number_in(const char* file) {
    unsigned number = ~0u;
    FILE* stream = fopen(file, "r");
    if (stream && fscanf(stream, "%u", &number) != 1) number = ~0u;
    if (stream) fclose(stream);
    return number;
}

static int open_for(struct perf_event_attr attr, int pid, int cpu) {
    int event = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
    return event < 0 ? -errno : event;
}

static struct perf_event_attr attr_of(const char* name) {
    char file[256];
    snprintf(file, sizeof file, TRACING "events/%s/id", name);
    return (struct perf_event_attr){.type = PERF_TYPE_TRACEPOINT,
                                    .size = sizeof(struct perf_event_attr),
                                    .config = number_in(file),
                                    .sample_period = 1,
                                    .sample_type = PERF_SAMPLE_RAW};
}

static long count_of(int event) {
    uint64_t count = 0;
    return event < 0 ? event : read(event, &count, sizeof count) == sizeof count ? (long)count : -errno;
}

// How long the records are that there are.
static void print_records(const char* shown, int event, char* ring) {
    struct perf_event_mmap_page* page = (void*)ring;
    printf("%s: %ld", shown, count_of(event));
    for (uint64_t at = 0; at < page->data_head;) {
        struct perf_event_header* header = (void*)(ring + 4096 + at);
        uint32_t size;
        memcpy(&size, header + 1, sizeof size);
        printf(", type %u of %u bytes: %u", header->type, header->size, size);
        at += header->size;
    }
    printf("\n");
}

static void call(int in_kernel, long length) {
    letters[length] = 0;
    if (in_kernel)
        syscall(SYS_openat, AT_FDCWD, letters, O_RDONLY);
    else
        work(letters);
    letters[length] = 'x';
}

// Of `arrays` arrays of 64 numbers of `bits` and `strings` strings of `length` letters.
static void print_record(int in_kernel, int arrays, int bits, int strings, long length) {
    char text[8192], shown[128], *end = text;
    if (in_kernel)
        end += sprintf(end, "p:l/one do_sys_openat2");
    else
        end += sprintf(end, "p:l/one %s:0x%lx", path, (long)((char*)work - __executable_start));
    const char* data = in_kernel ? (ARG0[1] == 'x' ? "%x1" : "%si") : ARG0;
    for (int i = 0; i < arrays; i++) end += sprintf(end, " a%d=+0(%s):u%d[64]", i, data, bits);
    for (int i = 0; i < strings; i++) end += sprintf(end, " s%d=+0(%s):ustring", i, data);
    sprintf(shown, "%s, %d arrays of u%d, %d strings of %ld", in_kernel ? "kprobe" : "uprobe", arrays, bits, strings,
            length);
    const char* file = in_kernel ? "kprobe_events" : "uprobe_events";
    define(file, text, shown);
    for (int raw = 0; raw < 2; raw++) {
        struct perf_event_attr attr = attr_of("l/one");
        if (!raw) attr.sample_type = 0;
        int event = open_for(attr, 0, -1);
        if (event < 0) break;
        char* ring = mmap(0, 4096 + RING, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
        call(in_kernel, length);
        ioctl(event, PERF_EVENT_IOC_SET_FILTER, "common_pid != 0");
        call(in_kernel, length);
        print_records(raw ? "  with its record" : "  without it", event, ring);
        munmap(ring, 4096 + RING);
        close(event);
    }
    define(file, "-:l/one", "removed");
}

static void print_long(void) {
    memset(letters, 'x', sizeof letters);
    print_record(1, 0, 64, 1, 100);
    print_record(1, 4, 64, 0, 100);
    print_record(1, 6, 64, 0, 100);
    print_record(1, 7, 64, 0, 100);
    print_record(1, 6, 64, 1, 100);
    print_record(1, 49, 8, 0, 100);
    print_record(1, 48, 8, 0, 100);
    for (int strings = 1; strings < 10; strings++) print_record(1, 0, 64, strings, 1000);
    print_record(1, 0, 64, 2, 4090);
    print_record(1, 0, 64, 3, 4090);
    print_record(1, 4, 64, 6, 1000);
    print_record(1, 4, 64, 7, 1000);
    for (int length = 1008; length < 1028; length += 2) print_record(1, 0, 64, 8, length);
    print_record(1, 0, 64, 1, 4094);
    print_record(1, 0, 64, 1, 4095);
    print_record(0, 0, 64, 1, 100);
    print_record(0, 4, 64, 0, 100);
    print_record(0, 7, 64, 0, 100);
    for (int strings = 1; strings < 7; strings++) print_record(0, 0, 64, strings, 1000);
    for (int length = 2036; length < 2048; length += 3) print_record(0, 0, 64, 2, length);
    print_record(0, 0, 64, 2, 2046);
    print_record(0, 4, 64, 3, 1000);
}

// Of a word of this program's data in its file: looked for by what stands there, between the two numbers.
static long data_offset;
static void find_data(void) {
    static volatile uint64_t mark[2] __attribute__((section(".data"))) = {0x1122334455667788, 0x99aabbccddeeff00};
    char bytes[16], found[16];
    uint64_t first = 0x1122334455667787, second = 0x99aabbccddeeff01;
    first++, second--;
    memcpy(bytes, &first, 8), memcpy(bytes + 8, &second, 8);
    FILE* file = fopen(path, "r");
    for (long at = 0; file && !fseek(file, at, SEEK_SET) && fread(found, 1, 16, file) == 16; at += 8)
        if (!memcmp(found, bytes, 16)) data_offset = at - (long)mark;
    fclose(file);
}

static struct perf_event_attr probe(int inherit) {
    return (struct perf_event_attr){.type = number_in("/sys/bus/event_source/devices/uprobe/type"),
                                    .size = sizeof(struct perf_event_attr),
                                    .config = (uint64_t)((long)&counted.semaphore + data_offset) << 32,
                                    .uprobe_path = (uintptr_t)path,
                                    .probe_offset = (char*)work - __executable_start,
                                    .inherit = inherit};
}

// A child that says what its semaphore is, each time it is asked.
struct child {
    int pid, ask[2], say[2];
};
static struct child begin_child(int not_its) {
    struct child child;
    if (pipe(child.ask) || pipe(child.say)) exit(3);
    child.pid = fork();
    if (child.pid) return child;
    if (not_its >= 0) close(not_its);
    char letter;
    while (read(child.ask[0], &letter, 1) == 1 && letter != 'e') {
        uint16_t semaphore = counted.semaphore;
        if (letter == 'f') {
            int pid = fork();
            if (!pid) {
                write(child.say[1], &semaphore, sizeof semaphore);
                work(letters);
                semaphore = counted.semaphore;
                write(child.say[1], &semaphore, sizeof semaphore);
                _exit(0);
            }
            waitpid(pid, 0, 0);
        } else {
            write(child.say[1], &semaphore, sizeof semaphore);
        }
    }
    _exit(0);
}
static unsigned ask(struct child child, char what) {
    uint16_t semaphore = 0xffff;
    if (what) write(child.ask[1], &what, 1);
    read(child.say[0], &semaphore, sizeof semaphore);
    return semaphore;
}
static void end_child(struct child child) {
    write(child.ask[1], "e", 1);
    waitpid(child.pid, 0, 0);
    close(child.ask[0]), close(child.ask[1]), close(child.say[0]), close(child.say[1]);
}

static void print_semaphores(void) {
    find_data();
    for (int inherit = 0; inherit < 2; inherit++) {
        struct child other = begin_child(-1);
        int own = open_for(probe(inherit), 0, -1);
        struct child later = begin_child(own);
        printf("inherit %d: own %u, a child from before %u, from behind %u\n", inherit, counted.semaphore,
               ask(other, 's'), ask(later, 's'));
        int its = open_for(probe(inherit), other.pid, -1);
        printf("  the child's, too: own %u, child %u\n", counted.semaphore, ask(other, 's'));
        unsigned forked = ask(other, 'f');
        printf("  its child: %u, and when it has been there %u\n", forked, ask(other, 0));
        close(own);
        printf("  not the own any more: own %u, child %u, the other %u\n", counted.semaphore, ask(other, 's'),
               ask(later, 's'));
        int everybodys = open_for(probe(inherit), -1, 0);
        printf("  everybody's: own %u, child %u, the other %u\n", counted.semaphore, ask(other, 's'), ask(later, 's'));
        close(its);
        printf("  only everybody's: own %u, child %u, the other %u\n", counted.semaphore, ask(other, 's'),
               ask(later, 's'));
        close(everybodys);
        printf("  nobody's: own %u, child %u, the other %u\n", counted.semaphore, ask(other, 's'), ask(later, 's'));
        end_child(other), end_child(later);
    }
}

// What a program that is executed finds.
static void print_executed(void) {
    for (int its = 0; its < 2; its++) {
        int ready[2];
        if (pipe(ready)) exit(3);
        int pid = fork();
        if (!pid) {
            char letter;
            close(ready[1]);
            if (read(ready[0], &letter, 1) != 1) _exit(3);
            execl(path, path, "say", (char*)0);
        }
        int event = open_for(probe(0), its ? pid : 0, -1);
        write(ready[1], "g", 1);
        waitpid(pid, 0, 0);
        close(event), close(ready[0]), close(ready[1]);
    }
}

static const char* REGISTERS[] = {
#ifdef __aarch64__
    "pc",
#else
    "ip",
    "cs",
    "ss",
#endif
};

// Of the kernel's function: what is told, and where the function is.
static void print_registers(void) {
    for (unsigned i = 0; i < sizeof REGISTERS / sizeof *REGISTERS; i++) {
        char text[128];
        snprintf(text, sizeof text, "p:k/one " SYS "getppid r=%%%s", REGISTERS[i]);
        define("kprobe_events", text, text);
        int event = open_for(attr_of("k/one"), 0, -1);
        char* ring = mmap(0, 4096 + RING, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
        syscall(SYS_getppid);
        uint64_t told[2];
        memcpy(told, ring + 4096 + 8 + 4 + 8, sizeof told);  // behind header, size, common fields
        int64_t from = told[1] - told[0];
        if (told[1] < 4096)
            printf("%s: %lx\n", REGISTERS[i], (long)told[1]);
        else
            printf("%s: the probe's address and %ld\n", REGISTERS[i], (long)from);
        munmap(ring, 4096 + RING);
        close(event);
        define("kprobe_events", "-:k/one", "removed");
    }
}

int main(int argc, char** argv) {
    setvbuf(stdout, 0, _IONBF, 0);
    if (argc > 1) {
        printf("executed: %u\n", counted.semaphore);
        return 0;
    }
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, 0);
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
    print_semaphores();
    print_executed();
    print_registers();
    print_long();
    return 0;
}
