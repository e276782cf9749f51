// uprobes by tracefs: which definitions are accepted and how they are shown, what samples tell, how often they happen.
// Counts and values follow from the program. Lines have no addresses: those that are told are compared here.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
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

#ifdef __aarch64__
#define ARG0 "%x0"
#define ARG1 "%x1"
#define ARG2 "%x2"
#define SP "%sp"
#else
#define ARG0 "%di"
#define ARG1 "%si"
#define ARG2 "%dx"
#define SP "%sp"
#endif

extern char __executable_start[];
static char path[256];

static struct inner {
    int8_t small;
    uint16_t half;
    int32_t word;
    uint64_t large;
    const char* name;
    int array[4];
    const char* names[2];
} data = {-2, 0xBEEF, -100000, 0x123456789ABCDEF0, "a name", {1, -2, 3, -4}, {"first", "second"}};
char text[] = "a text";

FUNCTION long work(long number, const char* name, struct inner* inner) {
    __asm__ volatile("" ::"r"(name), "r"(inner) : "memory");
    return number * 3;
}
FUNCTION long factorial(long n) {
    long result = n < 2 ? 1 : n * factorial(n - 1);
    __asm__ volatile("" ::: "memory");
    return result;
}
FUNCTION long tail(long n) {
    __asm__ volatile("" ::: "memory");
    return work(n + 1, "", 0);
}
static jmp_buf jumped;
FUNCTION void jumps(long n) {
    if (n) longjmp(jumped, 1);
    __asm__ volatile("" ::: "memory");
}

static long offset_of(void* function) { return (char*)function - __executable_start; }

static void write_file(const char* name, const char* what, int flags, const char* shown) {
    char file[256];
    snprintf(file, sizeof file, TRACING "%s", name);
    int fd = open(file, flags);
    long done = fd < 0 ? -1 : write(fd, what, strlen(what));
    const char* how = done == (long)strlen(what) ? "written" : done < 0 ? strerror(errno) : "partly";
    printf("%s: %s\n", shown, how);
    if (fd >= 0) close(fd);
}

// What stands in a file, with the path and the offsets of this program replaced.
static void show_file(const char* name) {
    char file[256], line[1024];
    snprintf(file, sizeof file, TRACING "%s", name);
    FILE* stream = fopen(file, "r");
    if (!stream) {
        printf("%s: %s\n", name, strerror(errno));
        return;
    }
    while (fgets(line, sizeof line, stream)) {
        if (!strncmp(line, "ID:", 3)) continue;
        char* at = strstr(line, path);
        if (at) {
            char* end = at + strlen(path);
            while (*end && *end != ' ' && *end != '\n' && *end != '(') end++;
            printf("  %.*sPROGRAM%s", (int)(at - line), line, end);
        } else
            printf("  %s", line);
    }
    fclose(stream);
}

// @P stands for the program, @W, @F, @L and @J for functions there, @T for the text.
static void define(const char* definition) {
    static const struct {
        char letter;
        void* function;
    } PLACES[] = {{'W', work}, {'F', factorial}, {'L', tail}, {'J', jumps}};
    char whole[8192] = "", *end = whole;
    for (const char* from = definition; *from && end < whole + 8000; from++) {
        char letter = *from == '@' ? from[1] : 0, *before = end;
        if (letter == 'P') end += sprintf(end, "%s", path);
        if (letter == 'T') end += sprintf(end, "@+0x%lx", offset_of(text));
        for (unsigned i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
            if (letter == PLACES[i].letter) end += sprintf(end, "%s:0x%lx", path, offset_of(PLACES[i].function));
        if (end == before)
            *end++ = *from;
        else
            from++;
    }
    *end = 0;
    write_file("uprobe_events", whole, O_WRONLY | O_APPEND, definition);
}

static void clear(void) {
    int fd = open(TRACING "uprobe_events", O_WRONLY | O_TRUNC);
    printf("cleared: %s\n", fd < 0 ? strerror(errno) : "yes");
    if (fd >= 0) close(fd);
}

static const char* DEFINITIONS[] = {
    "p @W", "p:name @W", "p:group/name @W", "r:group/back @W", "p:group/name @W", "p:group/name @W a=%s",
    "p:group/ @W", "p:/name @W", "p: @W", "p:group/na-me @W", "p:gr-oup/name2 @W", "p:1group/name @W",
    "p:group/1name @W", "p", "p ", "q @W", "px @W", "p1:group/p1 @W", "r1:group/r1 @W", "p:group/noplace",
    "p:group/x /nonexistent:0x10", "p:group/x /:0x10", "p:group/x @P", "p:group/x @P:", "p:group/x @P:main",
    "p:group/x @P:0x", "p:group/x @P:-1", "p:group/x @P:0x7fffffffffff", "p:group/x @P:16",
    "p:group/x @P:0x10(0x20)", "p:group/x2 @P:0x10()", "p:group/x3 @P:0x10(zz)", "p:group/x4 @P:0x10(0x20",
    "p:group/x5 @W%return", "p:group/x6 @W%returns", "r:group/x7 @W%return", "r:group/x8 @W(0x20)",
    "p:group/x9 @W%return(0x10)", "p:group/x10 @W(0x10)%return", "p:a/b @W " ARG0, "p:a/b2 @W n=" ARG0 ":u8",
    "p:a/b3 @W n=" ARG0 ":u9", "p:a/b4 @W n=" ARG0 ":", "p:a/b5 @W =" ARG0, "p:a/b6 @W n=", "p:a/b7 @W n",
    "p:a/c1 @W n=%nosuch", "p:a/c2 @W $stack $stack0 $stack1", "p:a/c3 @W $stackx", "p:a/c4 @W $stack-1",
    "p:a/c5 @W $retval", "r:a/c6 @W $retval", "p:a/c7 @W $comm", "p:a/c8 @W $comm:string", "p:a/c9 @W $comm:u8",
    "p:a/c10 @W $arg1", "p:a/c11 @W $nosuch", "p:a/c12 @W $", "p:a/c13 @W @0x400000", "p:a/c14 @W @main",
    "p:a/c15 @W @+0x100", "p:a/c16 @W @", "p:a/d1 @W +0(" ARG0 ")", "p:a/d2 @W +0(" ARG0 ")::",
    "p:a/d3 @W -8(" ARG0 "):x64", "p:a/d4 @W 8(" ARG0 "):x64", "p:a/d5 @W +0(+8(" ARG0 ")):s32",
    "p:a/d6 @W +0(" ARG0, "p:a/d7 @W +u0(" ARG0 "):string", "p:a/d8 @W +(" ARG0 ")", "p:a/d9 @W +0(\\5)",
    "p:a/d10 @W +0(" ARG0 "):ustring", "p:a/d11 @W " ARG0 ":string", "p:a/d12 @W +0(" ARG0 "):symbol",
    "p:a/d13 @W " ARG0 ":symbol", "p:a/d14 @W +0(" ARG0 "):symstr", "p:a/d15 @W " ARG0 ":char",
    "p:a/d16 @W +0(" ARG0 "):char[4]", "p:a/e1 @W " ARG0 ":b4@0/32", "p:a/e2 @W " ARG0 ":b40@0/32",
    "p:a/e3 @W " ARG0 ":b4@30/32", "p:a/e4 @W " ARG0 ":b4@4/33", "p:a/e5 @W " ARG0 ":b0@4/32",
    "p:a/e6 @W " ARG0 ":b4", "p:a/e7 @W " ARG0 ":b4@4/64", "p:a/f1 @W +0(" ARG0 "):u32[3]",
    "p:a/f2 @W " ARG0 ":u32[3]", "p:a/f3 @W +0(" ARG0 "):u32[0]", "p:a/f4 @W +0(" ARG0 "):u32[65]",
    "p:a/f5 @W +0(" ARG0 "):u32[64]", "p:a/f6 @W +0(" ARG0 "):u32[", "p:a/f7 @W +0(" ARG0 "):u32[3",
    "p:a/f8 @W +0(" ARG0 "):string[2]", "p:a/f9 @W +0(" ARG0 "):u32[3]x", "p:a/f10 @W +0(" ARG0 "):u32[-1]",
    "p:a/f11 @W $comm[2]", "p:a/f12 @W +0(" ARG0 "):ustring[2]", "p:a/g1 @W \\5 \\-3:s32 i=\\0x10:x8",
    "p:a/g2 @W \\\"text\\\"", "p:a/g3 @W s=\\\"text\\\":string", "p:a/g4 @W \\", "p:a/g5 @W \\zz",
    "p:a/g6 @W \\\"text", "p:a/g7 @W \\\"text\\\":u8", "p:a/h1 @W a=" ARG0 " a=" ARG1, "p:a/h2 @W common_pid=" ARG0,
    "p:a/h3 @W __probe_ip=" ARG0, "p:a/h4 @W 1a=" ARG0, "p:a/h5 @W a-b=" ARG0,
    "p:a/h6 @W a=" ARG0 " arg2=" ARG1 " " ARG2, "p:a/h7 @W arg2=" ARG0 " " ARG1, "p:a/h8 @W common_x=" ARG0,
    "p:a/h9 @W __probe_func=" ARG0, "p:a/h10 @W a_very_long_name_that_is_longer_than_32_characters=" ARG0,
    "p:a/h11 @W a=" SP,
    "p:a/i1 @W a=" ARG0 ":x8 b=" ARG0 ":x16 c=" ARG0 ":x32 d=" ARG0 ":x64 e=" ARG0 ":s8 f=" ARG0 ":s16 g=" ARG0
    ":s32 h=" ARG0 ":s64",
    "p:a/j1 @W +0(+0(+0(+0(+0(+0(+0(" ARG0 ")))))))",
    "p:a/j2 @W +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(" ARG0 ")))))))))))))))))))",
    "p:a/j3 @W +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(" ARG2 "))))))))))))))",
    "p:a/j4 @W +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(" ARG2 ")))))))))))))))",
    "p:a/k1 @W # comment", "# comment", "", " ", "p:a/k2 @W \\1 ; ", "p:a/k3 @P:0x10 \\1\np:a/k4 @P:0x11 \\2\n",
    "p:a/k5 @P:0x10\nbad\np:a/k6 @P:0x10\n", "  p:a/k7   @W    a=" ARG0 "  \t b=" ARG1, "p:a/k8 @W %ip",
    "p:a/k9 @W %pc", "p:a/k10 @W %flags", "p:a/k11 @W %pstate", "p:a/k12 @W %x30", "p:a/k13 @W %lr",
    "p:a/k14 @W %rdi", "p:a/k15 @W %r8", "p:a/k16 @W %cs", "p:a/k17 @W %orig_ax", "p:a/k18 @W %ax %bx %bp",
    "-:group/name", "-:group/name", "-:a/b", "-:nosuch", "-:", "-", "-:a/", "-:group/", "- a/b2", "-:b3",
    "p:uprobes/very_long_name_of_an_event_that_has_more_than_sixty_four_characters_in_it @W",
    "p:very_long_name_of_a_group_that_has_more_than_sixty_four_characters_in_it_x/y @W", "p:m/n @W", "p:m/n @P:0x11",
    "r:m/n @W", "p:m/n @W a=" ARG0, "p:m/n @W b=" ARG0, "p:m/n @W a=" ARG0 ":u8", "p:m/n @W",
    "p:sched/sched_switch @W", "p:sched/mine @W",
};

static void print_definitions(void) {
    clear();
    for (unsigned i = 0; i < sizeof DEFINITIONS / sizeof *DEFINITIONS; i++) define(DEFINITIONS[i]);
    char many[8192];
    int length = sprintf(many, "p:a/many @W");
    for (int i = 0; i < 130; i++) {
        length += sprintf(many + length, " a%d=%s", i, ARG0);
        if (i == 127) {
            define(many);
            define("-:a/many");
        }
    }
    define(many);
    memset(many, 'x', sizeof many - 1), memcpy(many, "p:a/long @W ", 12), many[5000] = 0;
    many[4000] = '\n';
    write_file("uprobe_events", many, O_WRONLY | O_APPEND, "a long line, then more");
    memset(many, 'x', sizeof many - 1), many[5000] = 0;
    write_file("uprobe_events", many, O_WRONLY | O_APPEND, "a line that is too long");
    show_file("uprobe_events");
    clear();
    show_file("uprobe_events");
}

static const char* FORMATS[] = {
    "p:f/plain @W", "r:f/back @W $retval", "r:f/back2 @W a=$retval:s32 c=$comm",
    "p:f/types @W a=" ARG0 ":x8 b=" ARG0 ":x16 c=" ARG0 ":x32 d=" ARG0 ":x64 e=" ARG0 ":s8 f=" ARG0 ":s16 g=" ARG0
    ":s32 h=" ARG0 ":s64 i=" ARG0 ":u8 j=" ARG0 ":u16 k=" ARG0 ":u32 l=" ARG0 ":u64 m=" ARG0 ":char",
    "p:f/strings @W a=+0(" ARG0 "):string b=+0(" ARG0 "):ustring c=$comm d=\\\"x\\\"",
    "p:f/arrays @W a=+0(" ARG0 "):u32[3] b=+0(" ARG0 "):x8[2] c=+0(" ARG0 "):string[2] d=+0(" ARG0
    "):s16[3] e=+0(" ARG0 "):char[8]",
    "p:f/bits @W a=" ARG0 ":b4@4/32 b=" ARG0 ":b12@20/64 c=" ARG0 ":b1@0/8 d=" ARG0 ":b1@0/16",
    "p:f/others @W a=@0x400000 b=@+0x100 c=\\5 d=$stack e=$stack3",
};

static void print_formats(void) {
    for (unsigned i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        char file[256], name[64];
        define(FORMATS[i]);
        sscanf(FORMATS[i], "%*c:%63s", name);
        snprintf(file, sizeof file, "events/%s/format", name);
        show_file(file);
    }
    show_file("events/f/plain/enable");
    show_file("events/f/plain/filter");
    clear();
}

static int id_of(const char* name) {
    char file[256];
    int id = -1;
    snprintf(file, sizeof file, TRACING "events/%s/id", name);
    FILE* stream = fopen(file, "r");
    if (stream && fscanf(stream, "%d", &id) != 1) id = -1;
    if (stream) fclose(stream);
    return id;
}

struct recorder {
    int event;
    struct perf_event_mmap_page* page;
    uint64_t tail;
};

static struct recorder record_for(const char* name, int pid, int inherit) {
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
                                   .size = sizeof attr,
                                   .config = id_of(name),
                                   .sample_period = 1,
                                   .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW,
                                   .inherit = inherit};
    struct recorder recorder = {.event = syscall(SYS_perf_event_open, &attr, pid, inherit ? 0 : -1, -1, 0)};
    if (recorder.event < 0) {
        printf("%s: %s\n", name, strerror(errno));
        return recorder;
    }
    recorder.page = mmap(0, 33 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, recorder.event, 0);
    return recorder;
}
static struct recorder record(const char* name) { return record_for(name, 0, 0); }

static long count_of(int event) {
    uint64_t count = 0;
    return read(event, &count, sizeof count) == sizeof count ? (long)count : -errno;
}

struct sample {
    struct perf_event_header header;
    uint64_t ip;
    uint32_t size;
    unsigned char raw[];
} __attribute__((packed));

// Samples so far; of each the bytes behind the common fields and the addresses.
static void print_samples(struct recorder* recorder, const char* name, void* place, unsigned addresses) {
    if (recorder->event < 0) return;
    printf("%s: %ld\n", name, count_of(recorder->event));
    char* ring = (char*)recorder->page + 4096;
    while (recorder->tail < recorder->page->data_head) {
        struct sample* sample = (struct sample*)(ring + recorder->tail % (32 * 4096));
        uint64_t first, second;
        memcpy(&first, sample->raw + 8, 8), memcpy(&second, sample->raw + 16, 8);
        recorder->tail += sample->header.size;
        if (sample->header.type != PERF_RECORD_SAMPLE) {
            printf("  record %u\n", sample->header.type);
            continue;
        }
        const char* where = first != (uint64_t)place ? "elsewhere" : addresses == 1 ? "there" : "back";
        if ((addresses == 1 ? first : second) != sample->ip) where = "another ip";
        int user = (sample->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
        printf("  %s, %s, %u bytes:", user ? "user" : "kernel", where, sample->size);
        for (unsigned i = 8 + 8 * addresses; i < sample->size; i++) printf(" %02x", sample->raw[i]);
        printf("\n");
    }
    recorder->page->data_tail = recorder->tail;
}

static void done(struct recorder* recorder) {
    if (recorder->event < 0) return;
    munmap(recorder->page, 33 * 4096);
    close(recorder->event);
}

// One definition after the other, each event's two occurrences.
static void print_values(void) {
    static const char* VALUES[] = {
        ARG0, "a=" ARG0 ":x8 b=" ARG0 ":s16 c=" ARG0 ":x32 d=" ARG0 ":u64",
        "a=" ARG0 ":b4@4/32 b=" ARG0 ":b8@8/16 c=" ARG0 ":b1@3/8 d=" ARG0 ":b12@52/64", "s=+0(" ARG1 "):string",
        "s=+0(" ARG1 "):ustring n=" ARG0 " t=+2(" ARG1 "):string", "c=$comm n=" ARG0 ":u8",
        "a=+0(" ARG2 "):s8 b=+2(" ARG2 "):u16 c=+4(" ARG2 "):s32 d=+8(" ARG2 "):x64 e=+0(+16(" ARG2 ")):string",
        "a=+24(" ARG2 "):s32[4] b=+24(" ARG2 "):x8[3] n=" ARG0 ":u8", "a=+40(" ARG2 "):string[2] n=" ARG0 ":u8",
        "a=+0(" ARG0 "):u64", "a=+0(" ARG0 "):string n=" ARG0 ":u8", "a=+0(" ARG0 "):ustring",
        "a=\\5 b=\\-3:s32 c=\\\"imm\\\" d=\\0x1234:x16", "a=@T:string",
        "a=+0(" ARG0 "):u32[2]", "a=+0(+8(" ARG2 ")):string b=+0(+0(+16(" ARG2 "))):u8",
        "a=" ARG0 ":char b=+0(" ARG1 "):char[1]", "a=+0(\\\"imm\\\"):u8",
        "a=+24(" ARG2 "):b4@4/32[2]",
    };
    for (unsigned i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        char definition[512];
        snprintf(definition, sizeof definition, "p:v/one @W %s", VALUES[i]);
        define(definition);
        struct recorder recorder = record("v/one");
        work(0x123456789ABCDE77, "a string", &data);
        work(5, "", &data);
        print_samples(&recorder, "values", work, 1);
        done(&recorder);
        define("-:v/one");
    }
}

static void* in_thread(void* argument) { return (void*)work((long)argument, "thread", &data); }

static void print_returns(void) {
    define("r:r/work @W n=$retval:s64\nr:r/factorial @F n=$retval:s64\nr:r/tail @L n=$retval\n");
    define("r:r/jumps @J\np:r/in @F n=" ARG0);
    struct recorder back = record("r/work"), factor = record("r/factorial"), tails = record("r/tail");
    struct recorder jumping = record("r/jumps"), in = record("r/in");
    work(14, "", 0);
    factorial(4);
    tail(5);
    for (volatile int i = 0; i < 3; i++)
        if (!setjmp(jumped)) jumps(i);
    jumps(0);
    if (!fork()) {
        work(100, "", 0);
        _exit(0);
    }
    wait(0);
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, (void*)7);
    pthread_join(thread, 0);
    print_samples(&back, "work", work, 2);
    print_samples(&factor, "factorial", factorial, 2);
    print_samples(&in, "in", factorial, 1);
    print_samples(&tails, "tail", tail, 2);
    print_samples(&jumping, "jumps", jumps, 2);
    define("-:r/work");
    clear();
    done(&back), done(&factor), done(&tails), done(&jumping), done(&in);
    clear();
}

static void print_inherited(void) {
    define("p:i/work @W n=" ARG0 ":u16");
    struct recorder one = record_for("i/work", 0, 1);
    work(1, "", 0);
    if (!fork()) {
        work(2, "", 0);
        if (!fork()) {
            work(3, "", 0);
            _exit(0);
        }
        wait(0);
        _exit(0);
    }
    wait(0);
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, (void*)4);
    pthread_join(thread, 0);
    print_samples(&one, "inherited", work, 1);
    show_file("uprobe_profile");
    done(&one);
    define("-:i/work");
}

static void print_filters(void) {
    static const char* FILTERS[] = {
        "n == 5", "n > 3 && n < 8", "s == \"two\"", "s ~ \"t*\"", "s ~ \"*o*\" || n == 0", "nosuch == 1", "n == ",
        "__probe_ip == 0", "__probe_ip != 0", "n == 5 garbage", "COMM == \"uprobes\"", "b < 0", "b == 253", "b == -3",
        "x == 5", "s != \"\"", "l == 0xfffffffffffffffb", "n & 4", "n == 5 garbage", "n == 5)", "n == 5 n == 5",
        "(n == 5", "n == 5 & n == 5", "n", "n 5", "", "0", " ", "n == 5 && (", "!", "!n == 5", "|| n == 5",
        "n == 5 || || n == 5", "()", "(n == 5))", "n == 'a'", "n == 0x", "s == two", "s == \"two", "n =! 5",
        "a == 0x6e6f", "b == 1", "n == 5 ! n == 5", "n == 5 (n == 5)", "n == -5", "n == 99999999999999999999",
        "s > \"a\"", "n ~ \"a\"", "COMM == 5", "CPU == 0", "cpu == 0", "common_pid == 0", "n == 5 |", "n == 5 | n",
        "((n == 5)", "n == 5 &&& n == 5", "!(n == 5", "n == 5 'x'",
    };
    static const char* NAMES[] = {"", "one", "two", "three"};
    define("p:w/work @W n=" ARG0 ":s32 b=" ARG2 ":s8 s=+0(" ARG1 "):string l=" ARG0 ":u64 a=+0(" ARG1 "):u8[2]");
    for (unsigned i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        struct recorder one = record("w/work");
        int failed = ioctl(one.event, PERF_EVENT_IOC_SET_FILTER, FILTERS[i]);
        printf("filter %s: %s", FILTERS[i], failed ? strerror(errno) : "set");
        for (int n = 0; n < 10; n++) work(n, NAMES[n % 4], (struct inner*)-3L);
        work(-5, "two", 0);
        printf(" %ld\n", count_of(one.event));
        done(&one);
    }
    define("-:w/work");
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, 0);
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
    print_definitions();
    print_formats();
    print_values();
    print_returns();
    print_inherited();
    print_filters();
    return 0;
}
