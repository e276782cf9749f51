// Links: what they can be asked, and those of a program to many instructions of a file.

#include <fcntl.h>
#include <sys/wait.h>
#include "bpf.h"

enum { KPROBE_MULTI = 42, UPROBE_MULTI = 48, RETURNS = 1, REPLACE = 4 };

// Of union bpf_attr, where older headers do not have it.
struct uprobe_multi {
    uint32_t program, target, type, flags;
    uint64_t path, offsets, semaphores, cookies;
    uint32_t count, multi_flags;
    int32_t pid;
    uint32_t behind;
};
struct update {
    uint32_t link, program, flags, old;
};

static int call(int command, const void* data, size_t size) {
    union bpf_attr attr = {0};
    memcpy(&attr, data, size);
    return bpf(command, &attr);
}

static int loaded_for(int type, int attach_type, int map) {
    struct bpf_insn program[] = {
        MOVX(6, 1),
        CALL(BPF_FUNC_get_attach_cookie),
        MOVX(7, 0),
        MOVX(1, 6),
        CALL(BPF_FUNC_get_func_ip),
        MOVX(8, 0),
        STORE(BPF_W, 10, -4, 0),
        MOVX(2, 10),
        ALU(BPF_ADD, 2, -4),
        MAP(1, map),
        CALL(BPF_FUNC_map_lookup_elem),
        JUMP(BPF_JEQ, 0, 0, 5),
        LOAD(BPF_DW, 1, 0, 0),
        ALU(BPF_ADD, 1, 1),
        STOREX(BPF_DW, 0, 1, 0),
        STOREX(BPF_DW, 0, 7, 8),
        STOREX(BPF_DW, 0, 8, 16),
        MOV(0, 0),
        EXIT,
    };
    union bpf_attr attr = {.prog_type = type};
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = LENGTH(program);
    attr.license = (uintptr_t)"GPL";
    attr.expected_attach_type = attach_type;
    return bpf(BPF_PROG_LOAD, &attr);
}

static __attribute__((noinline)) void first(void) { __asm__ volatile(""); }

static __attribute__((noinline)) void second(void) { __asm__ volatile("nop"); }

static uint64_t offset_of(void (*function)(void)) {
    FILE* maps = fopen("/proc/self/maps", "r");
    unsigned long start, end, offset, found = 0;
    char line[500];
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && (uintptr_t)function >= start &&
            (uintptr_t)function < end)
            found = (uintptr_t)function - start + offset;
    fclose(maps);
    return found;
}

static void told(const char* what, int map) {
    uint64_t value[3] = {0}, none[3] = {0};
    uint32_t key = 0;
    element(BPF_MAP_LOOKUP_ELEM, map, &key, value, 0);
    const char* where = value[2] == (uintptr_t)first    ? "the first"
                        : value[2] == (uintptr_t)second ? "the second"
                                                        : "neither";
    printf("%s: %d times, cookie %d, %s\n", what, (int)value[0], (int)value[1], where);
    element(BPF_MAP_UPDATE_ELEM, map, &key, none, 0);
}

static void in_a_child(void) {
    if (fork() == 0) {
        second();
        _exit(0);
    }
    wait(NULL);
}

static void information(int link, struct uprobe_multi* of) {
    struct {
        uint32_t type, id, program, pad;
        uint64_t path, offsets, semaphores, cookies;
        uint32_t path_size, count, flags, pid;
    } info = {0};
    char path[100] = "";
    uint64_t offsets[3] = {0}, cookies[3] = {0};
    union bpf_attr attr = {0};
    attr.info.bpf_fd = link;
    attr.info.info_len = sizeof info;
    attr.info.info = (uintptr_t)&info;
    info.path = (uintptr_t)path, info.path_size = sizeof path;
    info.offsets = (uintptr_t)offsets, info.cookies = (uintptr_t)cookies, info.count = 3;
    say("information", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
    printf("type %u, %s of %d, flags %u, pid %d, count %u\n", info.type, strrchr(path, '/'),
           info.path_size == strlen(path) + 1, info.flags, info.pid == getpid(), info.count);
    printf("offsets %d, cookies %d %d\n", offsets[1] == ((uint64_t*)of->offsets)[1], (int)cookies[0], (int)cookies[1]);
    attr.info.info_len = sizeof info;
    info.count = 1, info.path_size = sizeof path;
    say("for one of two", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
    info.count = 2, info.path_size = 3;
    say("with a short path", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
    info.path_size = 0;
    say("with a path of no size", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
    info.path_size = sizeof path, info.count = 0;
    say("with no count", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
}

static void uprobe_multi(int map) {
    uint64_t offsets[2] = {offset_of(first), offset_of(second)}, cookies[2] = {11, 22}, far = 1ull << 40,
             below = 1ull << 63;
    int program = loaded_for(BPF_PROG_TYPE_KPROBE, UPROBE_MULTI, map), plain = loaded_for(BPF_PROG_TYPE_KPROBE, 0, map);
    struct uprobe_multi good = {.program = program, .type = UPROBE_MULTI, .count = 2}, attr;
    good.path = (uintptr_t)"/proc/self/exe", good.offsets = (uintptr_t)offsets, good.cookies = (uintptr_t)cookies;
#define TRY(what, ...)                                         \
    do {                                                       \
        attr = good;                                           \
        __VA_ARGS__;                                           \
        int link_ = call(BPF_LINK_CREATE, &attr, sizeof attr); \
        say(what, link_);                                      \
        if (link_ >= 0) close(link_);                          \
    } while (0)
    TRY("two functions");
    TRY("of another attach type", attr.type = 41);
    TRY("of kprobes' attach type", attr.type = KPROBE_MULTI);
    TRY("a program of no attach type", attr.program = plain);
    TRY("no program", attr.program = 1000);
    TRY("flags of links", attr.flags = 1);
    TRY("flags", attr.multi_flags = 2);
    TRY("no path", attr.path = 0);
    TRY("a bad path", attr.path = 1);
    TRY("an empty path", attr.path = (uintptr_t)"");
    TRY("a missing path", attr.path = (uintptr_t)"/proc/self/nothing");
    TRY("a directory", attr.path = (uintptr_t)"/");
    TRY("a device", attr.path = (uintptr_t)"/dev/null");
    TRY("no offsets", attr.offsets = 0);
    TRY("bad offsets", attr.offsets = 1);
    TRY("none", attr.count = 0);
    TRY("too many", attr.count = (1 << 20) + 1);
    TRY("a pid below 0", attr.pid = -1);
    TRY("a pid of nobody", attr.pid = 4000000);
    TRY("my pid", attr.pid = getpid());
    TRY("bad cookies", attr.cookies = 1);
    TRY("no cookies", attr.cookies = 0);
    TRY("bad semaphores", attr.semaphores = 1);
    TRY("beyond the file", attr.offsets = (uintptr_t)&far, attr.count = 1);
    TRY("a negative offset", attr.offsets = (uintptr_t)&below, attr.count = 1);
    TRY("a negative semaphore", attr.semaphores = (uintptr_t)&below, attr.count = 1);
    TRY("something behind", attr.behind = 1);
    int link = call(BPF_LINK_CREATE, &good, sizeof good);
    told("before", map);
    first(), second(), first();
    told("here", map);
    in_a_child();
    told("in a child", map);
    information(link, &good);
    close(link);
    first();
    told("closed", map);
    attr = good, attr.multi_flags = RETURNS, attr.cookies = 0;
    link = call(BPF_LINK_CREATE, &attr, sizeof attr);
    second();
    told("returns", map);
    close(link);
    attr = good, attr.pid = getpid();
    link = call(BPF_LINK_CREATE, &attr, sizeof attr);
    in_a_child();
    told("not in a child", map);
    first();
    told("but here", map);
    close(link);
    attr = good, offsets[1] = offsets[0];
    link = call(BPF_LINK_CREATE, &attr, sizeof attr);
    first();
    told("twice at one place", map);
    close(link);
    close(program);
}

static int perf_link(int program) {
    struct perf_event_attr of = {.type = PERF_TYPE_SOFTWARE, .size = sizeof of, .config = PERF_COUNT_SW_CPU_CLOCK};
    of.sample_period = 1000000;
    int event = syscall(__NR_perf_event_open, &of, 0, -1, -1, 0);
    union bpf_attr attr = {0};
    attr.link_create.prog_fd = program;
    attr.link_create.target_fd = event;
    attr.link_create.attach_type = 41;
    return bpf(BPF_LINK_CREATE, &attr);
}

static void commands(void) {
    struct bpf_insn nothing[] = {MOV(0, 0), EXIT};
    int program = load(BPF_PROG_TYPE_PERF_EVENT, nothing, 2), raw = load(BPF_PROG_TYPE_RAW_TRACEPOINT, nothing, 2);
    int links[2] = {perf_link(program)};
    union bpf_attr attr = {0};
    attr.raw_tracepoint.name = (uintptr_t)"sched_switch";
    attr.raw_tracepoint.prog_fd = raw;
    links[1] = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
    for (int i = 0; i < 2; i++) {
        int of = i ? raw : program;
        struct update rows[] = {
            {links[i], of, 0, 0}, {links[i], of, REPLACE, of}, {links[i], of, REPLACE, 1000}, {links[i], of, 0, of},
            {links[i], of, 1, 0}, {links[i], 1000, 0, 0},      {links[i], links[i], 0, 0},    {1000, of, 0, 0},
            {of, of, 0, 0},
        };
        for (unsigned row = 0; row < LENGTH(rows); row++)
            say("update", call(BPF_LINK_UPDATE, &rows[row], sizeof *rows));
        uint32_t behind[5] = {links[i], of, 0, 0, 1}, iterator[3] = {links[i], 0, 0};
        say("something behind", call(BPF_LINK_UPDATE, behind, sizeof behind));
        say("detach", call(BPF_LINK_DETACH, &links[i], 4));
        say("detach of a program", call(BPF_LINK_DETACH, &of, 4));
        say("iterator", call(BPF_ITER_CREATE, iterator, sizeof iterator));
        iterator[1] = 1;
        say("with flags", call(BPF_ITER_CREATE, iterator, sizeof iterator));
        iterator[0] = 1000, iterator[1] = 0;
        say("of nothing", call(BPF_ITER_CREATE, iterator, sizeof iterator));
        iterator[0] = of;
        say("of a program", call(BPF_ITER_CREATE, iterator, sizeof iterator));
    }
}

int main(void) {
    commands();
    uprobe_multi(new_map(BPF_MAP_TYPE_ARRAY, 4, 24, 1, 0));
    return 0;
}
